"""Row 5, LangGraph: a compiled graph of one instant node, called again and again, four at a time. Argument: how often.

Far fewer calls than Halo makes: its time grows with their number alone, so what one costs tells it.
"""

from __future__ import annotations

import asyncio
import time
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from measuring import report, sizes


class State(TypedDict):
    value: str


async def node(state: State) -> State:
    return {"value": "x"}


async def main() -> None:
    (count,) = sizes(2000)
    graph = StateGraph(State)
    graph.add_node("one", node)
    graph.add_edge(START, "one")
    graph.add_edge("one", END)
    one = graph.compile()
    numbers = iter(range(count))

    async def work() -> None:
        for n in numbers:
            await one.ainvoke({"value": f"page {n}"})

    began = time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(work())
    report(us_call=(time.process_time() - began) / count * 1e6)


asyncio.run(main())
