"""A run, from a checked program to its result (runs.md §2).

Owns the wiring: the compiled program, the driver, the doors that answer, what is shown, and the result. Everything
that a run could lack is found before it begins. Read `preparing.py` and `doors.py` for the parts.
"""

from __future__ import annotations

import time

from ..doors.account import Account, dollars
from ..doors.answering import Ending, Stop, answered, without_waiting
from ..doors.mock import Mock
from ..language.record import Record
from ..runtime.arguments import with_defaults
from ..runtime.driver import Driver
from ..runtime.stages import compiled_program
from ..runtime.state import Frame, Run
from .clock import new_run_id, now, today

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Protocol

    from ..boundary.call import Answer, Call, Scope
    from ..boundary.host import Handlers
    from ..check.program import CheckedProgram
    from ..doors.spend import Ledger
    from ..doors.within import Within
    from ..language.values import Value
    from .settings import Settings

    class Watcher(Protocol):
        """Who is shown a run while it goes. `watches` asks for tokens and stages."""

        watches: bool

        def printed(self, value: Value) -> None: ...

        def logged(self, value: Value) -> None: ...

        def published(self, value: Value) -> None: ...

        def stage_began(self, number: str, target: str, scope: Scope) -> None: ...

        def stage_ended(self, number: str, target: str, scope: Scope) -> None: ...

        def tokens(self, call: Call, text: str) -> None: ...

        def answered(self, call: Call, answer: Answer, cost: int) -> None: ...

        def spends(self, ledger: Ledger) -> None: ...


class RunError(Record):
    """Why a run failed. `stage` is the number in a plan, `at` the place as `FILE:LINE:COLUMN`."""

    code: str
    message: str
    stage: str | None
    at: str | None


class Shadow(Record):
    """What became of a `@shadow` call: its answer or error, cost in nano-dollars and duration."""

    target: str
    stage: str
    value: Value
    error: str | None
    cost: int
    ms: int


class RunResult(Record):
    """How a run ended, and what it did. Amounts in nano-dollars."""

    run_id: str
    status: str
    output: Value
    context: dict[str, Value]
    error: RunError | None
    calls: dict[str, int]
    account: Account
    shadows: tuple[Shadow, ...]
    unanswered: tuple[Call, ...]
    ms: int


def run_mocked(
    program: CheckedProgram,
    pipeline: str,
    args: Mapping[str, Value],
    answers: Mapping[str, Value],
    watcher: Watcher,
    within: Within | None = None,
) -> RunResult:
    """Runs a pipeline on mock answers alone: needs no key and no event loop, and touches nothing (cli.md `--mock`)."""
    run = _Run(program, pipeline, args, watcher)
    mock = Mock(answers, now=now, publish=watcher.published, refusal=None if within is None else within.refusal)
    return run.result(without_waiting(answered(run.driver, run.account, mock=mock, answering=run.answering)), ())


async def run_live(
    program: CheckedProgram,
    file: Path,
    pipeline: str,
    args: Mapping[str, Value],
    settings: Settings,
    watcher: Watcher,
    handlers: Handlers,
    stop: Stop | None = None,
    within: Within | None = None,
) -> RunResult:
    """Runs a pipeline for real. Raises `ConfigError` before anything runs where something is missing."""
    from ..doors.live import Live
    from ..doors.mask import Mask
    from ..doors.spend import Ledger
    from ..models.client import ModelClient
    from .doors import live_doors
    from .model_door import ModelDoor
    from .preparing import outside, start_tools

    client = ModelClient(settings.environment, settings.project.models, file.resolve().parent)
    project, day = settings.project, today()
    found = outside(program, pipeline, settings.environment, client, lambda m: project.price(m, day) is not None)
    tools = start_tools(program, file, found.settings, settings.environment)
    try:
        mask, ledger = Mask(found.secrets), Ledger(None if within is None else within.limit)
        watcher.spends(ledger)
        models = ModelDoor(client, found.models, project.prices, ledger, mask, watcher.tokens)
        doors = live_doors(
            models.answer,
            {name: (program.tools[name], instance) for name, instance in tools.items()},
            handlers,
            mask=mask,
            publish=watcher.published,
            refusal=None if within is None else within.refusal,
        )
        live = Live(doors, handlers.can_answer)
        run = _Run(program, pipeline, args, watcher)
        ending = await answered(run.driver, run.account, live=live, stop=stop, answering=run.answering)
        run.account.unsettled = ledger.unsettled
        return run.result(ending, tuple(_shadow(call, answer) for call, answer in live.shadowed))
    finally:
        await client.close()
        for tool in tools.values():
            await tool.close()


class _Run:
    """One run under way: its parts, and how its result is made."""

    def __init__(self, program: CheckedProgram, pipeline: str, args: Mapping[str, Value], watcher: Watcher) -> None:
        self._program = program
        self._watcher = watcher
        self._began = time.perf_counter()
        self.run_id = new_run_id()
        compiled = compiled_program(program)[pipeline]
        self._run = Run(self.run_id, watcher, watched=watcher.watches)
        params = with_defaults(program.pipelines[pipeline].params, args)
        self._frame = Frame(self._run, pipeline, params, (), "", compiled.governed_by(()), 0)
        self.account = Account()
        self.driver = Driver(compiled.run(self._frame))

    def answering(self, call: Call, answer: Answer) -> None:
        self._watcher.answered(call, answer, self.account.cost)

    def result(self, ending: Ending, shadows: tuple[Shadow, ...]) -> RunResult:
        frame = self._frame
        if ending.status == "halted":
            frame.halted = {"stage": ending.stage, "condition": ending.condition}
            frame.current = ending.output
        error = None
        if ending.status == "failed":
            source, at = self._program.source, None
            if ending.span is not None:
                line, column = source.position(ending.span.start)
                at = f"{source.name}:{line}:{column}"
            error = RunError(ending.code, ending.message, ending.stage, at)
        return RunResult(
            self.run_id,
            ending.status,
            ending.output,
            frame.context(),
            error,
            dict(self._run.calls),
            self.account,
            shadows,
            ending.unanswered,
            round((time.perf_counter() - self._began) * 1000),
        )


def _shadow(call: Call, answer: Answer) -> Shadow:
    error = None if answer.error is None else answer.error.message
    return Shadow(call.target, call.stage, answer.value, error, answer.cost or 0, answer.ms)


def as_json(result: RunResult, printed: list[Value]) -> dict[str, Value]:
    """The result as `--json` gives it (cli.md)."""
    account, error = result.account, result.error
    return {
        "runId": result.run_id,
        "status": result.status,
        "output": result.output,
        "context": result.context,
        "calls": dict(result.calls),
        "cost": dollars(account.cost),
        "unsettled": dollars(account.unsettled),
        "usage": {"input": account.input, "output": account.output, "cached": account.cached},
        "shadows": [
            {
                "target": s.target,
                "stage": s.stage,
                "value": s.value,
                "error": s.error,
                "cost": dollars(s.cost),
                "ms": s.ms,
            }
            for s in result.shadows
        ],
        "waits": [],
        "error": None
        if error is None
        else {"code": error.code, "message": error.message, "stage": error.stage, "at": error.at},
        "printed": list(printed),
        "diagnostics": [],
    }
