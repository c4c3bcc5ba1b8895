"""Breakpoints: where a debugged run is to be held, and the expressions that are asked of it (docs/reference/debug.md).

Owns how they are written and what they mean. Read `debugging.py` for when they are looked at.
"""

from __future__ import annotations

from ..check.expressions import paths_in
from ..check.policies import matches
from ..check.program import BranchStage, BrokenCall, CallStage, EachStage, FanOutStage, ListenStage, YieldStage
from ..language.parser import parse_expression
from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..check.program import CheckedCall, CheckedStage
    from ..language.ast import Expr
    from ..runtime.stages import CompiledPipeline


class Trouble(Exception):
    """Why a command cannot be done, in words for whoever gave it."""


class Breakpoint(Record):
    """Where a run is to be held: at a stage, where a target is called, where a condition holds, or a stage where one
    does. `text` is how it was written."""

    number: int
    text: str
    stage: str | None
    target: str | None
    condition: Expr | None


def read_breakpoint(number: int, text: str) -> Breakpoint:
    """The breakpoint that a text means: `STAGE`, `TARGET`, `if CONDITION`, or one of the first two with a condition.
    Raises `Trouble`."""
    place, condition = _split_if(text.strip())
    expr = None if condition is None else parsed(condition)
    stage = target = None
    if place and all(part.isdecimal() for part in place.split(".")):
        stage = place
    elif place:
        target = place
    elif expr is None:
        raise Trouble("say where: `break 2`, `break Writer.draft`, `break if context.data.score < 5`")
    return Breakpoint(number, " ".join(text.split()), stage, target, expr)


def calls_of(stage: CheckedStage) -> Iterator[CheckedCall]:
    """The calls that a stage may make, but for its shadow."""
    if isinstance(stage, CallStage | EachStage):
        yield stage.call
    elif isinstance(stage, BranchStage):
        yield from (arm.call for arm in stage.arms)
    elif isinstance(stage, FanOutStage):
        yield from (member.call for member in stage.members)


def targets_of(stage: CheckedStage) -> tuple[str, ...]:
    """What a stage may call. What a listen waits for is `listen`."""
    if isinstance(stage, YieldStage):
        return ("yield",)
    if isinstance(stage, ListenStage):
        return ("listen", stage.event) if isinstance(stage.event, str) else ("listen",)
    return tuple(call.target for call in calls_of(stage) if not isinstance(call, BrokenCall))


def fits(pattern: str, target: str) -> bool:
    """Whether a breakpoint's target is a call's: the whole of it, its agent or tool alone, or a pattern."""
    return pattern == target or pattern == target.partition(".")[0] or matches(pattern, target)


def _split_if(text: str) -> tuple[str, str | None]:
    words = text.split(None, 1)
    if words[:1] == ["if"]:
        return "", words[1] if len(words) > 1 else ""
    place, found, condition = text.partition(" if ")
    return place.strip(), condition if found else None


def parsed(text: str) -> Expr:
    """The expression that a text is. Raises `Trouble`."""
    expr, problems = parse_expression(text.strip())
    errors = [p for p in problems if p.severity == "error"]
    if expr is None or errors:
        said = errors[0].message.replace("the end of the file", "its end") if errors else "it is no expression"
        raise Trouble(f"`{text.strip()[:80]}` cannot be read: {said}")
    return expr


def unknown_name(expr: Expr, pipeline: CompiledPipeline) -> str | None:
    """The first name in an expression that a pipeline does not have."""
    names = names_in(pipeline)
    return next((path.root for path in paths_in(expr) if path.root not in names), None)


def names_in(pipeline: CompiledPipeline) -> list[str]:
    """The names that an expression may begin with where a pipeline is held."""
    checked = pipeline.checked
    return ["context", *(p.name for p in checked.params), *sorted(checked.bindings)]
