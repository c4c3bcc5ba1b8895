"""Rows 4 and 13: one stage with an instant model, through the live loop. Arguments: how many stages; 1 to record."""

from __future__ import annotations

import asyncio

from halo_runs import runnable
from measuring import median_s, repeats, report, sizes
from programs import stages


async def main() -> None:
    count, recorded = sizes(100, 0)
    run = runnable(stages(count), recorded=bool(recorded))
    taken = await median_s(lambda: run(topic="x"), repeats(count))
    report(us_stage=taken / count * 1e6)


asyncio.run(main())
