"""A run under way: its driver, what it has counted, and how its result is made (runs.md §2).

Owns the making of a run from a checked program and arguments, whoever then answers it.
"""

from __future__ import annotations

import time

from ..boundary.call import AGENT, TOOL
from ..doors.account import Account
from ..language.record import Record
from ..runtime.arguments import with_defaults
from ..runtime.driver import Driver
from ..runtime.stages import compiled_program
from ..runtime.state import Frame, Run
from .result import RunError, RunResult
from .waits import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from ..boundary.call import Answer, Call, Scope
    from ..check.program import CheckedProgram
    from ..doors.answering import Ending, Stepper
    from ..doors.mask import Mask
    from ..doors.spend import Ledger
    from ..language.values import Value
    from .result import Shadow
    from .waits import Place

    class Watcher(Protocol):
        """Who is shown a run while it goes. `watches` asks for tokens and stages."""

        watches: bool

        def printed(self, value: Value) -> None: ...

        def logged(self, value: Value) -> None: ...

        def published(self, value: Value) -> None: ...

        def stage_began(self, number: str, target: str, scope: Scope) -> None: ...

        def stage_ended(self, number: str, target: str, scope: Scope) -> None: ...

        def tokens(self, call: Call, text: str) -> None: ...

        def asked(self, call: Call) -> None: ...

        def answered(self, call: Call, answer: Answer, cost: int) -> None: ...

        def spends(self, ledger: Ledger) -> None: ...

    class Debugger(Stepper, Protocol):
        """Who steps through a run, wherever that is answered. `begins` is called before it runs: `changes` writes down
        that it was changed, at a stage and by what; `prepares` gets another model ready, and raises `ConfigError`;
        each is None where there is no use for it. What a person types is given to the run through `mask`."""

        def begins(
            self,
            changes: Callable[[str, str], None] | None,
            prepares: Callable[[str], None] | None,
            mask: Mask,
        ) -> None: ...

        def answered(self, call: Call, answer: Answer) -> None: ...


class What(Record):
    """What is run: a pipeline of a program without errors, with arguments, under a run id."""

    program: CheckedProgram
    pipeline: str
    args: Mapping[str, Value]
    run_id: str


class UnderWay:
    """One run under way. Making it moves the run up to its first calls; with a `stepper`, up to its first stage."""

    def __init__(self, what: What, watcher: Watcher, stepper: Debugger | None = None) -> None:
        self._what = what
        self._watcher = watcher
        self._began = time.perf_counter()
        compiled = compiled_program(what.program)[what.pipeline]
        params = with_defaults(what.program.pipelines[what.pipeline].params, what.args)
        self._stepper = stepper
        stepped = stepper is not None  # whoever steps through a run sees its stages as it goes
        self._run = Run(what.run_id, watcher, watched=watcher.watches and not stepped, stepped=stepped)
        self._frame = Frame(self._run, what.pipeline, params, (), "", compiled.governed_by(()), 0)
        self.account = Account()
        self.answered: dict[Place, int] = {}
        self.driver = Driver(compiled.run(self._frame))

    @property
    def frame(self) -> Frame:
        """The frame of the run's own pipeline."""
        return self._frame

    @property
    def covered(self) -> set[tuple[str, int, int | None]]:
        """The stages that ran and the arms that were taken, where the run is watched."""
        return self._run.covered

    def answering(self, call: Call, answer: Answer) -> None:
        """Tells whoever watches of an answer, and counts those of people and events by their places."""
        if call.kind not in (AGENT, TOOL):
            place = place_of(call)
            self.answered[place] = self.answered.get(place, 0) + 1
        if self._stepper is not None:
            self._stepper.answered(call, answer)
        self._watcher.answered(call, answer, self.account.cost)

    def result(
        self, ending: Ending, shadows: tuple[Shadow, ...] = (), waits: tuple[dict[str, Any], ...] = ()
    ) -> RunResult:
        """The run's result, from how it ended."""
        frame = self._frame
        if ending.status == "halted":
            frame.halted = {"stage": ending.stage, "condition": ending.condition}
            frame.current = ending.output
        return RunResult(
            self._what.run_id,
            ending.status,
            ending.output,
            frame.context(),
            self._error(ending),
            dict(self._run.calls),
            self.account,
            shadows,
            ending.unanswered,
            round((time.perf_counter() - self._began) * 1000),
            waits,
        )

    def _error(self, ending: Ending) -> RunError | None:
        if ending.status != "failed":
            return None
        source, at = self._what.program.source, None
        if ending.span is not None:
            line, column = source.position(ending.span.start)
            at = f"{source.name}:{line}:{column}"
        return RunError(ending.code, ending.message, ending.stage, at)
