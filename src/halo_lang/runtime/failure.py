"""How a run's coroutines end early: failures with a code (runs.md §2) and the halt of a gate.

Owns the two exceptions. Neither is ever caught by a stage: the first one to reach the driver ends the run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    from ..language.source import Span
    from ..language.values import Value

    T = TypeVar("T")


class RunFailure(Exception):
    """The run fails. `stage` (the number in a plan) and `span` are set by the stage in which it happened."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.stage: str | None = None
        self.span: Span | None = None

    def happened_in(self, stage: str, span: Span) -> None:
        """Sets the place, unless it is known: the innermost stage counts."""
        if self.stage is None:
            self.stage, self.span = stage, span


async def placed(steps: Coroutine[Any, Any, T], stage: str, span: Span) -> T:
    """The result of a parallel branch, whose failures reach the driver without passing the stage that began it."""
    try:
        return await steps
    except RunFailure as failure:
        failure.happened_in(stage, span)
        raise
    except RecursionError:
        raise too_deep(stage, span) from None


def too_deep(stage: str, span: Span) -> RunFailure:
    """The failure of a stage in which a value nests deeper than can be written as JSON; only a program that wraps a
    value in itself again and again makes one."""
    made = RunFailure("ARGUMENT_TYPE", "a value nests too deep: lists or objects were put into each other too often")
    made.happened_in(stage, span)
    return made


class Halt(Exception):
    """A gate's condition was false: the run stops, and this is no error. `value` is the value at the gate."""

    def __init__(self, stage: str, condition: str, value: Value) -> None:
        super().__init__(condition)
        self.stage = stage
        self.condition = condition
        self.value = value
