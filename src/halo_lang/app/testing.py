"""Running the tests of a file (language.md §9): mocks, expectations, and what is said where one does not hold.

Owns one test at a time, which runs with no event loop: nothing is ever called for real. Read `cli/test.py` for files,
parallel running and reports.
"""

from __future__ import annotations

import os
import time

from ..boundary.call import APPROVAL, YIELD, Answer, Call, failed
from ..boundary.recording import RecordingError
from ..check.expressions import paths_in
from ..doors.answering import answered, without_waiting
from ..doors.mock import Mock
from ..doors.recordings import read_recording_file
from ..language.ast import Compare, ExpectStep, FailStep, MockStep, Path, ReplayTestDecl
from ..language.record import Record
from ..language.values import is_true, to_json
from ..runtime.evaluate import Names, compiled
from .clock import new_run_id, now
from .feeds import ReplayFeed
from .replaying import compared, difference, ended_with
from .running import run_replayed
from .underway import UnderWay, What

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ..boundary.call import Scope
    from ..check.program import CheckedProgram
    from ..language.ast import Expr, TestDecl
    from ..language.values import Value
    from ..runtime.driver import Request
    from ..runtime.state import Frame
    from .result import RunResult

    Covered = set[tuple[str, int, int | None]]


class Outcome(Record):
    """How a test ended. `failures` are what did not hold, each with its explanation; empty: it passed. `covered` are
    the stages and arms that ran."""

    name: str
    file: str
    line: int
    failures: tuple[str, ...]
    seconds: float
    covered: frozenset[tuple[str, int, int | None]]


def run_test(program: CheckedProgram, test: TestDecl | ReplayTestDecl, file: str) -> Outcome:
    """Runs one test of a program without errors. `file` is the program's path."""
    began = time.perf_counter()
    covered: Covered = set()
    if isinstance(test, ReplayTestDecl):
        failures = _replay(program, test, file, covered)
    else:
        failures = _run(program, test, covered)
    name = "".join(part for part in test.name.parts if isinstance(part, str))
    line, _ = program.source.position(test.start)
    return Outcome(name, file, line, tuple(failures), time.perf_counter() - began, frozenset(covered))


# A run with mocks ------------------------------------------------------------------------------------------------


def _run(program: CheckedProgram, test: TestDecl, covered: Covered) -> list[str]:
    values = _Values()
    pipeline = program.pipelines[test.pipeline.text]
    names = [p.name for p in pipeline.params]
    given = [arg for arg in test.args if arg.name is None]
    args = {name: values.of(arg.value) for name, arg in zip(names, given, strict=False)}
    args |= {arg.name.text: values.of(arg.value) for arg in test.args if arg.name is not None}
    watcher = _Silent()
    try:
        run = UnderWay(What(program, pipeline.name, args, new_run_id()), watcher)
    except ValueError as trouble:
        return [f"the arguments do not fit: {trouble}"]
    mocks = _Mocks(test, values)
    mock = Mock(mocks.entries, now=now, publish=watcher.published, defaults=False)
    ending = without_waiting(answered(run.driver, run.account, mock=mock, stuck=mocks.stuck))
    covered |= run.covered
    if mocks.missing:
        return [f"nothing is mocked for {target}: add `mock {target} => …`" for target in mocks.missing]
    result = run.result(ending)
    expected = [step for step in test.steps if isinstance(step, ExpectStep)]
    failures = [_explained(program, step, result, run.frame) for step in expected]
    found = [failure for failure in failures if failure is not None]
    if result.error is not None:
        failed_with = f"the run failed: {result.error.code}: {result.error.message}"
        if found:
            found[-1] += f"\n  {failed_with}"
        elif not any(_is_of_the_end(step) for step in expected):
            found.append(f"{failed_with}\n  no `expect` is of `status` or `error`, so it should not")
    if found:
        found[-1] += "".join(f"\n  note: {note}" for note in mocks.begun_anew())
    return found


def _is_of_the_end(step: ExpectStep) -> bool:
    return any(path.root in ("status", "error") for path in paths_in(step.condition))


class _Values:
    """The values of literals and of what else can stand in a test; there is no run whose context could be read."""

    def __init__(self) -> None:
        from ..runtime.state import Frame, Run

        self._frame = Frame(Run("", _Silent()), "", {}, (), "", (), 0)

    def of(self, expr: Expr) -> Value:
        return compiled(expr, Names(frozenset()))(self._frame)


class _Mocks:
    """The answers that a test gives: several for one target are a sequence, counted in each scope."""

    def __init__(self, test: TestDecl, values: _Values) -> None:
        answers: dict[str, list[Answer]] = {}
        for step in test.steps:
            if isinstance(step, MockStep):
                answers.setdefault(_target(step.target), []).append(Answer(values.of(step.value)))
            elif isinstance(step, FailStep):
                message = "".join(part for part in step.message.parts if isinstance(part, str))
                answers.setdefault(_target(step.target), []).append(failed("", message))
        self.entries = {target: _Sequence(sequence) for target, sequence in answers.items()}
        self.missing: dict[str, None] = {}

    def begun_anew(self) -> list[str]:
        """What to say of sequences that several branches or items began, and none came to the end of."""
        return [
            f"`{target}` has {len(one.answers)} mocks, one after the other; every branch of a fan-out and every item "
            f"of an `each` begins with the first, and {len(one.used)} of them came no further than the "
            f"{_ORDINALS[max(one.used.values()) - 1]}"
            for target, one in self.entries.items()
            if len(one.used) > 1 and max(one.used.values()) < min(len(one.answers), len(_ORDINALS) + 1)
        ]

    def stuck(self, waiting: Collection[Request]) -> tuple[Request, Answer]:
        """An answer for what has no mock: people say yes, a tool has no methods, anything else fails the test."""
        for request in waiting:
            call = request.call
            if call.kind in (YIELD, APPROVAL):
                return request, Answer({"approved": True})
            if call.target.endswith(".*") or call.target == "System.Publish":
                return request, Answer(None)
        request = next(iter(waiting))
        self.missing[request.call.target] = None
        return request, failed("TOOL_ERROR", "nothing is mocked for this call")


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


class _Sequence:
    """Answers one after the other; `used` counts those that each scope got."""

    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.used: dict[Scope, int] = {}

    def __call__(self, call: Call) -> Answer:
        used = self.used.get(call.scope, 0)
        self.used[call.scope] = used + 1
        answer = self.answers[min(used, len(self.answers) - 1)]
        if answer.error is not None:
            return failed("MODEL_ERROR" if call.kind == "agent" else "TOOL_ERROR", answer.error.message)
        if call.kind == APPROVAL and not isinstance(answer.value, dict):
            return Answer({"approved": answer.value is True})
        return answer


def _target(path: Path) -> str:
    return ".".join([path.root, *map(str, path.parts)])


# Expectations ----------------------------------------------------------------------------------------------------


def _explained(program: CheckedProgram, step: ExpectStep, result: RunResult, frame: Frame) -> str | None:
    """Why an expectation does not hold, with the values of both sides, or None where it does."""
    condition = step.condition
    seen = frame.branch(0, frame.current)
    seen.halted = frame.halted
    seen.params = _expected_names(result, condition)
    names = Names(frozenset())
    if is_true(compiled(condition, names)(seen)):
        return None
    rows = [f"expected: {program.source.text[condition.start : condition.end]}"]
    shown: list[Expr] = []
    if isinstance(condition, Compare):
        shown = [side for side in (condition.left, condition.right) if isinstance(side, Path)]
    for expr in shown or paths_in(condition):
        value = compiled(expr, names)(seen)
        rows.append(f"  {program.source.text[expr.start : expr.end]} is {_short(value)}")
    return "\n".join(dict.fromkeys(rows))


def _expected_names(result: RunResult, condition: Expr) -> dict[str, Value]:
    """What stands in an `expect` besides the context. A target that was never called was called 0 times."""
    calls: dict[str, Value] = {}
    for path in paths_in(condition):
        if path.root == "calls" and len(path.parts) == 2:
            _count(calls, str(path.parts[0]), str(path.parts[1]), 0)
    for target, number in result.calls.items():
        owner, _, method = target.partition(".")
        _count(calls, owner, method, number)
    error = result.error
    return {
        "status": result.status,
        "output": result.output,
        "error": None if error is None else {"code": error.code, "message": error.message},
        "cost": result.account.cost / 1_000_000_000,
        "calls": calls,
    }


def _count(calls: dict[str, Value], owner: str, method: str, number: int) -> None:
    of_owner = calls.setdefault(owner, {})
    if isinstance(of_owner, dict):
        of_owner[method] = number


def _short(value: Value) -> str:
    text = to_json(value)
    return text if len(text) <= 500 else f"{text[:500]}…"


# A kept recording ------------------------------------------------------------------------------------------------


def _replay(program: CheckedProgram, test: ReplayTestDecl, file: str, covered: Covered) -> list[str]:
    named = "".join(part for part in test.recording.parts if isinstance(part, str))
    path = os.path.join(os.path.dirname(file), named)
    try:
        recording = read_recording_file(path)
        if recording.opening.pipeline not in program.pipelines:
            return [f"{named}: the file has no pipeline {recording.opening.pipeline}, which was recorded"]
        opening = recording.opening
        feed = ReplayFeed(recording, frozenset())
        watcher = _Silent()
        what = What(program, opening.pipeline, opening.args, opening.run_id)
        result = run_replayed(what, feed, watcher, covered)
    except RecordingError as trouble:
        return [f"RECORDING_INVALID: {trouble.message}"]
    except ValueError as trouble:
        return [f"REPLAY_MISMATCH: the pipeline or its input changed: {trouble}"]
    comparison = compared(result, recording, feed, strict=False)
    if comparison.same:
        return []
    rows = [f"the recorded run ended with {ended_with(comparison.recorded)}"]
    if result.error is not None:
        rows.append(f"  now it fails: {result.error.code}: {result.error.message}")
    elif comparison.recorded["status"] == result.status:
        rows += [f"  {row}" for row in difference(comparison.recorded["output"], result.output)]
    else:
        rows.append(f"  now it is {result.status}")
    return ["\n".join([*rows, *(f"  note: {note.message}" for note in comparison.notes)])]


class _Silent:
    """A watcher that shows nothing, and for which the stages that run are remembered."""

    watches = True

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given: None
