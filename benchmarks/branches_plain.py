"""Row 6, asyncio alone: a task for each branch, behind a semaphore. Arguments: how many, how many at a time, ms."""

from __future__ import annotations

import asyncio
import time

from measuring import peak_mib, report, resident_mib, sizes


async def main() -> None:
    count, width, model_ms = sizes(100_000, 1000, 10)
    places = asyncio.Semaphore(width)

    async def branch(n: int) -> str:
        async with places:
            await asyncio.sleep(model_ms / 1000)
            return "x"

    before = resident_mib()
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(branch(n)) for n in range(count)]
    assert len([task.result() for task in tasks]) == count
    wall = time.perf_counter() - began
    ideal = model_ms / 1000 * -(-count // width)
    report(times_ideal=wall / ideal, mib_more=peak_mib() - before)


asyncio.run(main())
