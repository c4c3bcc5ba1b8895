"""Rows 2 and 4: `halo run --mock` and `halo replay` of ten stages against `halo plan` of the same file, started in
turn; and one replayed stage, of a hundred, from the recording's file. Arguments: rounds, replays.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from halo_runs import checked, instant
from measuring import report, sizes
from programs import stages
from startup import in_turn

from halo_lang.app.feeds import ReplayFeed
from halo_lang.app.kept import opening_line
from halo_lang.app.underway import UnderWay, What
from halo_lang.boundary.call import AGENT
from halo_lang.boundary.recording import finish_line
from halo_lang.check.program import CheckedProgram
from halo_lang.cli.output import Output
from halo_lang.cli.recorded import RECORDINGS
from halo_lang.doors.answering import answered, without_waiting
from halo_lang.doors.folder import file_of
from halo_lang.doors.keeping import Keeper
from halo_lang.doors.live import Live
from halo_lang.doors.recordings import new_recording, read_recording_file

RUN = "6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77"


class Silent(Output):
    def printed(self, value: object) -> None: ...


async def recorded(program: CheckedProgram, run_id: str) -> None:
    """Keeps a recording of a run with an instant model."""
    what = What(program, "Main", {"topic": "x"}, run_id)
    keeper = Keeper(new_recording(RECORDINGS, run_id))
    keeper.write(opening_line(what))
    run = UnderWay(what, Silent(as_document=True))
    ending = await answered(run.driver, run.account, live=Live({AGENT: instant}), keeper=keeper)
    keeper.write(finish_line(ending.status, ending.output, None))
    keeper.close()


def replayed_s(program: CheckedProgram, run_id: str) -> float:
    """How long a replay takes to its end, the reading of its recording included and, as for a stage that runs, the
    compiling left out."""
    feed = ReplayFeed(read_recording_file(file_of(RECORDINGS, run_id)), frozenset())
    run = UnderWay(What(program, "Main", {"topic": "x"}, run_id), Silent(as_document=True))
    began = time.process_time()
    ending = without_waiting(answered(run.driver, run.account, feed=feed, stuck=feed.stuck, answering=run.answering))
    taken = time.process_time() - began
    assert ending.status == "completed", ending
    return taken


def program_of(count: int) -> CheckedProgram:
    text = stages(count)
    Path(f"{count}.halo").write_text(text)
    return checked(text)


def main() -> None:
    rounds, replays = sizes(9, 300)
    gc.set_threshold(10_000)  # as the command `halo` does
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        ten, hundred = program_of(10), program_of(100)
        asyncio.run(recorded(ten, RUN))
        halo = str(Path(sys.executable).with_name("halo"))
        commands = {
            "plan": [halo, "plan", "10.halo"],
            "run": [halo, "run", "10.halo", "topic=x", "--mock"],
            "replay": [halo, "replay", "10.halo", RUN],
        }
        figures = in_turn(commands, rounds)
        other = RUN.replace("6", "7")
        asyncio.run(recorded(hundred, other))
        us_stage = median(replayed_s(hundred, other) for _ in range(replays)) / 100 * 1e6
        os.chdir("/")
    plan = figures["plan_ms"]
    report(**figures, run=figures["run_ms"] / plan, replay=figures["replay_ms"] / plan, us_stage=us_stage)


if __name__ == "__main__":
    main()
