"""Row 4, LangGraph: a chain of instant nodes, without a checkpointer. Argument: how many."""

from __future__ import annotations

import asyncio
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from measuring import median_s, repeats, report, sizes


class State(TypedDict):
    value: str


async def model(text: str) -> str:
    return "x"


async def node(state: State) -> State:
    return {"value": await model(state["value"])}


async def main() -> None:
    (count,) = sizes(100)
    graph = StateGraph(State)
    names = [f"stage_{n}" for n in range(count)]
    for name in names:
        graph.add_node(name, node)
    for here, there in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(here, there)
    chain = graph.compile()
    taken = await median_s(
        lambda: chain.ainvoke({"value": "x"}, {"recursion_limit": count + 10}), min(20, repeats(count * 10))
    )
    report(us_stage=taken / count * 1e6)


asyncio.run(main())
