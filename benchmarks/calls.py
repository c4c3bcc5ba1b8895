"""Row 5: many pipeline calls in one run. Arguments: how many; 1 where each calls an agent, else 0; 1 to record."""

from __future__ import annotations

import asyncio
import time

from halo_runs import runnable
from measuring import peak_mib, report, resident_mib, sizes

PROGRAM = """
agent Writer [openai/gpt-4o-mini]

pipeline Main(pages: List) -> Result:
  pages
    |* each(page in pages, concurrency: 4) => One(page)

pipeline One(page: String) -> Result:
  page
    |{}
"""


async def main() -> None:
    count, asks, recorded = sizes(100_000, 1, 0)
    stage = '> Writer.summarize("Summarize {{page}}.")' if asks else '? (page != "")'
    run = runnable(PROGRAM.format(stage), recorded=bool(recorded))
    pages = [f"page {n}" for n in range(count)]
    await run(pages=pages[:100])
    before = resident_mib()
    began, cpu_began = time.perf_counter(), time.process_time()
    results = await run(pages=pages)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    assert len(results) == count
    report(wall_s=wall, cpu_s=cpu, us_call=cpu / count * 1e6, mib_more=peak_mib() - before)


asyncio.run(main())
