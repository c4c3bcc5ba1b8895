"""Rows 6 and 13: many branches of one `each`. Arguments: how many, how many at a time, the model's milliseconds;
1 to record.

With a model that takes time it is the whole against the ideal; with an instant one what a branch costs by itself.
"""

from __future__ import annotations

import asyncio
import time

from halo_runs import instant, runnable
from measuring import median_s, peak_mib, repeats, report, resident_mib, sizes

from halo_lang.boundary.call import Answer, Call

PROGRAM = """
agent Writer [openai/gpt-4o-mini]

pipeline Main(pages: List) -> Result:
  pages
    |* each(page in pages, concurrency: {}) => Writer.summarize("Summarize {{{{page}}}}.")
"""


async def main() -> None:
    count, width, model_ms, recorded = sizes(100_000, 1000, 10, 0)

    async def slow(call: Call) -> Answer:
        await asyncio.sleep(model_ms / 1000)
        return Answer("x")

    run = runnable(PROGRAM.format(width), slow if model_ms else instant, recorded=bool(recorded))
    pages = [f"page {n}" for n in range(count)]
    if not model_ms:
        cpu = await median_s(lambda: run(pages=pages), min(20, repeats(count)))
        report(us_branch=cpu / count * 1e6)
        return
    await run(pages=pages[:100])
    before, began, cpu_began = resident_mib(), time.perf_counter(), time.process_time()
    results = await run(pages=pages)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    assert len(results) == count
    ideal = model_ms / 1000 * -(-count // width)
    report(wall_s=wall, cpu_s=cpu, times_ideal=wall / ideal, mib_more=peak_mib() - before)


asyncio.run(main())
