"""Row 4, Burr: a chain of instant actions, its application made anew for each run. Argument: how many."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from statistics import median

from burr.core import Application, ApplicationBuilder, State, action
from measuring import report, sizes


@action(reads=["value"], writes=["value"])
async def stage(state: State) -> State:
    return state.update(value="x")


def application(names: list[str]) -> Application:
    return (
        ApplicationBuilder()
        .with_actions(**dict.fromkeys(names, stage))
        .with_transitions(*pairwise(names))
        .with_state(value="x")
        .with_entrypoint(names[0])
        .build()
    )


async def main() -> None:
    (count,) = sizes(100)
    names = [f"stage_{n}" for n in range(count)]
    durations = []
    for _ in range(4):
        chain = application(names)
        began = time.process_time()
        await chain.arun(halt_after=[names[-1]])
        durations.append(time.process_time() - began)
    report(us_stage=median(durations[1:]) / count * 1e6)


asyncio.run(main())
