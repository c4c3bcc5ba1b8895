"""Runs of Halo programs with doors made for measuring: the live loop, with what answers put in place of the world.

The one place here that knows how a run is wired, so that all rows measure the same thing.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from tempfile import TemporaryDirectory
from typing import Any

from halo_lang.boundary.call import AGENT, TOOL, Answer, Call
from halo_lang.check.check import check
from halo_lang.check.program import CheckedProgram
from halo_lang.doors.account import Account
from halo_lang.doors.answering import answered
from halo_lang.doors.folder import AppendFile
from halo_lang.doors.keeping import Keeper
from halo_lang.doors.live import Live
from halo_lang.language.source import Source
from halo_lang.runtime.driver import Driver
from halo_lang.runtime.stages import compiled_program
from halo_lang.runtime.state import Frame, Run

Door = Callable[[Call], Awaitable[Answer]]


class Silent:
    """Shows nothing of a run."""

    def printed(self, value: object) -> None: ...

    def logged(self, value: object) -> None: ...

    def stage_began(self, number: str, target: str, scope: tuple[int, ...]) -> None: ...

    def stage_ended(self, number: str, target: str, scope: tuple[int, ...]) -> None: ...


async def instant(call: Call) -> Answer:
    """A model that answers at once."""
    return Answer("x")


def checked(text: str) -> CheckedProgram:
    """The program of a text, which must have no errors."""
    program = check(Source("benchmark.halo", text))
    errors = [d for d in program.diagnostics if d.severity == "error"]
    assert not errors, errors
    return program


def runnable(
    text: str, agent: Door = instant, tool: Door = instant, *, recorded: bool = False
) -> Callable[..., Awaitable[Any]]:
    """A function that runs the pipeline `Main` of a program, compiled once, and gives its output.

    With `recorded` every answer is written to a file before the run gets it, as in `halo run` (but to the same file,
    for making and deleting files is none of what is measured).
    """
    pipeline = compiled_program(checked(text))["Main"]
    gc.set_threshold(10_000)  # as the command `halo` does
    folder = TemporaryDirectory()

    async def run(**params: Any) -> Any:
        run = Run("00000000-0000-4000-8000-000000000000", Silent())
        frame = Frame(run, "Main", params, (), "", pipeline.governed_by(()), 0)
        live = Live({AGENT: agent, TOOL: tool})
        keeper = Keeper(AppendFile(f"{folder.name}/recording.jsonl")) if recorded else None
        ending = await answered(Driver(pipeline.run(frame)), Account(), live=live, keeper=keeper)
        if keeper is not None:
            keeper.close()
        assert ending.status == "completed", ending
        return ending.output

    return run
