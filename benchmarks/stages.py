"""Rows 4 and 13: one stage with an instant model, through the live loop. Argument: how many stages."""

from __future__ import annotations

import asyncio

from halo_runs import runnable
from measuring import median_s, repeats, report, sizes
from programs import stages


async def main() -> None:
    (count,) = sizes(100)
    run = runnable(stages(count))
    taken = await median_s(lambda: run(topic="x"), repeats(count))
    report(us_stage=taken / count * 1e6)


asyncio.run(main())
