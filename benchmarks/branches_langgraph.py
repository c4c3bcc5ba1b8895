"""Rows 6 and 13, LangGraph: `Send` to one node. Arguments: how many, how many at a time, the node's milliseconds."""

from __future__ import annotations

import asyncio
import operator
import time
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from measuring import peak_mib, report, resident_mib, sizes


class State(TypedDict):
    results: Annotated[list[str], operator.add]


async def main() -> None:
    count, width, model_ms = sizes(1000, 1000, 10)

    async def branch(page: dict[str, str]) -> State:
        await asyncio.sleep(model_ms / 1000)
        return {"results": ["x"]}

    graph = StateGraph(State)
    graph.add_node("branch", branch)
    graph.add_conditional_edges(START, lambda state: [Send("branch", {"page": f"page {n}"}) for n in range(count)])
    graph.add_edge("branch", END)
    each = graph.compile()
    before, began, cpu_began = resident_mib(), time.perf_counter(), time.process_time()
    done = await each.ainvoke({"results": []}, {"max_concurrency": width})
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    assert len(done["results"]) == count
    ideal = model_ms / 1000 * -(-count // width)
    report(us_branch=cpu / count * 1e6, times_ideal=wall / ideal if ideal else 0, mib_more=peak_mib() - before)


asyncio.run(main())
