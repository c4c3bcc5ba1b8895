"""Row 4, pydantic-graph: a chain of instant steps. Argument: how many."""

from __future__ import annotations

import asyncio

from measuring import median_s, repeats, report, sizes
from pydantic_graph import GraphBuilder, StepContext


async def step(context: StepContext[None, None, str]) -> str:
    return "x"


async def main() -> None:
    (count,) = sizes(100)
    builder = GraphBuilder(input_type=str, output_type=str)
    at = builder.start_node
    for n in range(count):
        then = builder.step(step, node_id=f"stage_{n}")
        builder.add(builder.edge_from(at).to(then))
        at = then
    builder.add(builder.edge_from(at).to(builder.end_node))
    chain = builder.build()
    taken = await median_s(lambda: chain.run(inputs="x"), min(20, repeats(count * 10)))
    report(us_stage=taken / count * 1e6)


asyncio.run(main())
