"""Stepping: what a debugged run does besides running (docs/adr/0006).

Owns the steps that hold the run before each stage and at a pipeline's end, what a person may say there, and how the
context of a held run is looked at and changed. A run that is not debugged has none of this in its way. Read
`driver.py` for how a run is held, `app/debugging.py` for when.
"""

from __future__ import annotations

from ..language.record import Record
from .driver import Hold
from .evaluate import Names, compiled
from .failure import Halt, RunFailure
from .state import Frame, Places, Retry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..language.ast import Expr
    from ..language.values import Value
    from .stages import CompiledPipeline, Step


class Snapshot(Record):
    """A pipeline's call as it was between two of its stages."""

    current: Value
    data: Places
    loops: dict[int, dict[str, Value]]
    answers: dict[tuple[tuple[int, int], str], str]
    retry: Retry | None


class Again(Record):
    """A stage to run again: its index, the call of its pipeline as it was before, and what runs it in its place."""

    at: int
    before: Snapshot
    step: Step | None = None


class Go(Record):
    """What a person says where a run is held: to go on, perhaps by a stage that runs again."""

    again: Again | None = None


def with_holds(pipeline: CompiledPipeline, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps of a pipeline with a hold before each of them, and one more that is a hold at its end."""

    def held(at: int) -> Step:
        async def step(frame: Frame) -> int | None:
            here, own = at, None if at == len(steps) else steps[at]
            said = await Hold(pipeline, frame, at)
            while True:
                if said.again is not None:
                    here = said.again.at
                    own = said.again.step or steps[here]
                    restore(frame, said.again.before)
                if own is None:
                    return None
                try:
                    jump = await own(frame)
                except (RunFailure, Halt) as failure:
                    if isinstance(failure, RunFailure):
                        failure.happened_in(*pipeline.place(frame, here))
                    said = await Hold(pipeline, frame, here, failure)
                    if said.again is None:
                        raise
                else:
                    return here + 1 if jump is None else jump

        return step

    return tuple(held(at) for at in range(len(steps) + 1))


def snapshot(frame: Frame) -> Snapshot:
    """The call of a pipeline as it is now."""
    return Snapshot(frame.current, frame.data.copy(), dict(frame.loops), dict(frame.answers), frame.retry)


def restore(frame: Frame, before: Snapshot) -> None:
    """Makes the call of a pipeline what it was."""
    frame.current, frame.data, frame.retry = before.current, before.data.copy(), before.retry
    frame.loops, frame.answers = dict(before.loops), dict(before.answers)
    frame.place = None


def value_of(expr: Expr, pipeline: CompiledPipeline, frame: Frame) -> Value:
    """The value that an expression has where a run is held."""
    return compiled(expr, Names(pipeline.checked.bindings))(frame)


def put(frame: Frame, path: tuple[str | int, ...], value: Value) -> None:
    """Stores a value at a path below `context`: `("current", …)` or `("data", name, …)`.

    Raises `ValueError` for an index that a list does not have.
    """
    root, *parts = path
    if root == "current":
        frame.current = _with(frame.current, parts, value)
        return
    at = frame.data
    while len(parts) > 1 and isinstance(parts[0], str) and type(at.get(parts[0])) is Places:
        at = at[parts.pop(0)]
    name = str(parts[0])
    at[name] = _with(at.get(name), parts[1:], value)


def _with(whole: Value, parts: list[str | int], value: Value) -> Value:
    """A value with another in one place of it. Values are never changed: others may hold them."""
    if not parts:
        return value
    first, rest = parts[0], parts[1:]
    if isinstance(whole, list) and isinstance(first, int):
        if first >= len(whole):
            raise ValueError(f"the list has {len(whole)} items, so there is none at [{first}]")
        return [*whole[:first], _with(whole[first], rest, value), *whole[first + 1 :]]
    known = dict(whole) if isinstance(whole, dict) else {}
    return {**known, str(first): _with(known.get(str(first)), rest, value)}
