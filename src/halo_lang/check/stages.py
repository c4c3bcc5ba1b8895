"""Pipelines: their parameters and their stages, one after the other (language.md §7).

Owns the reading of stages and of all that is said about one pipeline alone. Calls are read by `calls.py`; what takes
several pipelines to see is found by `governing.py` and `endless.py`.
"""

from __future__ import annotations

from ..language.ast import Branch, Duration, Each, FanOut, Gate, Listen, ListExpr, Loop, Path, Pipe, Text, Yield
from ..language.source import Span
from ..language.values import to_text
from .agents import read_requires
from .calls import Context, read_call, read_shadow
from .findings import a, listed
from .literals import TYPES, UNKNOWN, fits, is_computed, seconds_of, truth_of, value_of, whole_of
from .names import RESERVED, UNREADABLE, Scope, refer, with_article
from .program import (
    BranchStage,
    CallStage,
    CheckedArm,
    CheckedMember,
    CheckedPipeline,
    EachStage,
    FanOutStage,
    GateStage,
    ListenStage,
    LoopStage,
    Parameter,
    YieldStage,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..catalog.describe import Provider
    from ..language.ast import Arg, Expr, Name, Param, PipelineDecl, Stage
    from ..language.source import Source
    from .findings import Findings
    from .names import Declared
    from .program import CheckedStage

LOOP_MAX = 3
"""The tries of a loop where none are written."""

_STAGES_A_LOOP_NEEDS = "a loop goes back to an earlier stage of the same pipeline that calls its agent"


class Place:
    """Where the reading of a pipeline stands: what its calls are read against, and the source for texts as written."""

    __slots__ = ("context", "indexes", "source")

    def __init__(self, context: Context, source: Source) -> None:
        self.context = context
        self.source = source
        self.indexes: dict[int, int] = {}

    @property
    def findings(self) -> Findings:
        return self.context.findings

    @property
    def scope(self) -> Scope:
        assert self.context.scope is not None
        return self.context.scope


def read_pipeline(
    pipeline: PipelineDecl,
    source: Source,
    declared: Declared,
    providers: Mapping[str, Provider],
    findings: Findings,
) -> CheckedPipeline:
    """A pipeline with its stages. A loop that has nowhere to go back to is left out."""
    scope = Scope(pipeline)
    place = Place(Context(declared, providers, findings, scope), source)
    params = _read_params(pipeline.params, findings)
    _check_type(pipeline.result, findings)
    policies = read_requires(pipeline.requires, declared, findings)
    place.context.check(pipeline.source)
    stages: list[CheckedStage] = []
    for at, stage in enumerate(pipeline.stages):
        scope.stage = at
        if not isinstance(stage, Gate):
            _check_bind(stage.bind, place)
        made = _READERS[type(stage)](at, stage, place)
        if made is not None:
            place.indexes[at] = len(stages)
            stages.append(made)
    name = pipeline.name
    return CheckedPipeline(
        name.text,
        params,
        policies,
        pipeline.source,
        tuple(stages),
        frozenset(scope.first),
        Span(name.start, name.end),
    )


def _read_params(params: tuple[Param, ...], findings: Findings) -> tuple[Parameter, ...]:
    made: dict[str, Parameter] = {}
    for param in params:
        name = param.name
        if name.text in made:
            findings.error("DUPLICATE_NAME", f"there is a parameter `{name.text}` already", name)
            continue
        if name.text in UNREADABLE:
            findings.error("RESERVED_NAME", f"`{name.text}` belongs to the language", name, "choose another name")
        known = _check_type(param.type, findings)
        type_name = "Any" if param.type.text == "Result" or not known else param.type.text
        default = None if param.default is None else _read_default(param.default, type_name, name, findings)
        span = Span(param.start, param.end)
        made[name.text] = Parameter(name.text, type_name, param.default is None, default, span)
    return tuple(made.values())


def _read_default(expr: Expr, type_name: str, name: Name, findings: Findings) -> Any:
    if isinstance(expr, Duration):
        findings.error("ARGUMENT_TYPE", "a duration is no value", expr, "write a number of seconds")
        return None
    value = value_of(expr)
    if value is UNKNOWN:
        if isinstance(expr, Path) and expr.root == "Env":
            findings.error("ENV_MISPLACED", "`Env` is no value of the program", expr)
        else:
            findings.error("NOT_A_LITERAL", f"the default of `{name.text}` is written down, not computed", expr)
        return None
    if not fits(type_name, value):
        findings.error("ARGUMENT_TYPE", f"the default of `{name.text}` must be {a(type_name)}", expr)
    return to_text(value) if type_name == "String" else value


def _check_type(name: Name | None, findings: Findings) -> bool:
    if name is None or name.text in TYPES:
        return True
    near = findings.near(name.text, TYPES, f"the types are {listed(TYPES)}")
    findings.error("UNKNOWN_TYPE", f"there is no type `{name.text}`", name, near)
    return False


def _check_bind(bind: Name | None, place: Place) -> None:
    if bind is None:
        return
    kind = place.context.declared.kinds.get(bind.text)
    if bind.text in RESERVED:
        place.findings.error("RESERVED_NAME", f"`{bind.text}` belongs to the language", bind, "choose another name")
    elif bind.text in place.scope.params:
        place.findings.error("HIDES_NAME", f"`{bind.text}` is a parameter already", bind, "choose another name")
    elif kind is not None and kind != "policy":
        what = f"`{bind.text}` is {with_article(kind)} already, and its results have their place under that name"
        place.findings.error("HIDES_NAME", what, bind, "choose another name")


def _bound(bind: Name | None) -> str | None:
    return bind.text if bind is not None else None


def _span(stage: Stage) -> Span:
    return Span(stage.start, stage.end)


def _written(expr: Expr, place: Place) -> str:
    return place.source.text[expr.start : expr.end]


def _read_pipe(at: int, stage: Pipe, place: Place) -> CallStage:
    shadow = read_shadow(stage.shadow, place.context) if stage.shadow is not None else None
    return CallStage(at + 1, read_call(stage.call, place.context), _bound(stage.bind), shadow, _span(stage))


def _read_gate(at: int, stage: Gate, place: Place) -> GateStage:
    place.context.check(stage.condition)
    return GateStage(at + 1, stage.condition, _written(stage.condition, place), _span(stage))


def _read_branch(at: int, stage: Branch, place: Place) -> BranchStage:
    arms: list[CheckedArm] = []
    taken = False
    seen_else = False
    for number, arm in enumerate(stage.arms, 1):
        condition = arm.condition
        if condition is None:
            if seen_else:
                place.findings.error("MISPLACED_ELSE", "there is an `else` above already", arm, "only the first counts")
            elif number < len(stage.arms):
                place.findings.error("MISPLACED_ELSE", "`else` must be the last arm", arm, "move it to the end")
            seen_else = True
        else:
            place.context.check(condition)
        truth = None if condition is None else truth_of(condition)
        if taken:
            place.findings.error("UNREACHABLE_ARM", "this arm is never taken: one above it always is", arm)
        elif truth is False:
            place.findings.error("UNREACHABLE_ARM", "this arm is never taken: its condition is never true", arm)
        taken = taken or truth is True
        text = None if condition is None else _written(condition, place)
        arms.append(CheckedArm(condition, text, read_call(arm.call, place.context)))
    return BranchStage(at + 1, tuple(arms), _bound(stage.bind), _span(stage))


def _read_fanout(at: int, stage: FanOut, place: Place) -> FanOutStage:
    members: list[CheckedMember] = []
    for member in stage.members:
        _check_bind(member.bind, place)
        members.append(CheckedMember(read_call(member.call, place.context), _bound(member.bind)))
    return FanOutStage(at + 1, tuple(members), _bound(stage.bind), _span(stage))


def _read_each(at: int, stage: Each, place: Place) -> EachStage:
    item = stage.item
    if item.text in UNREADABLE or item.text == "index":
        place.findings.error("RESERVED_NAME", f"`{item.text}` belongs to the language", item, "choose another name")
    place.context.check(stage.source)
    value = value_of(stage.source)
    if value is not UNKNOWN and not isinstance(value, list):
        place.findings.error("ARGUMENT_TYPE", "`each` goes through a list", stage.source)
    options: dict[str, Expr] = {}
    for option in _named(stage.options, ("concurrency", "limit"), "an `each`", place):
        assert option.name is not None
        options[option.name.text] = option.value
        if not is_computed(option.value):
            if whole_of(option.value, 1) is None:
                what = f"`{option.name.text}` must be a whole number of at least 1"
                place.findings.error("BAD_OPTION", what, option.value)
        else:
            place.context.check(option.value)
    place.scope.item = item.text
    call = read_call(stage.call, place.context)
    place.scope.item = None
    return EachStage(
        at + 1,
        item.text,
        stage.source,
        options.get("concurrency"),
        options.get("limit"),
        call,
        _bound(stage.bind),
        _span(stage),
    )


def _named(args: tuple[Arg, ...], known: tuple[str, ...], whose: str, place: Place) -> list[Arg]:
    """The options that are known, each once, with errors for the others."""
    found: dict[str, Arg] = {}
    for arg in args:
        if arg.name is None:
            place.findings.error(
                "UNKNOWN_OPTION", f"the options of {whose} have names", arg, f"there are {listed(known)}"
            )
        elif arg.name.text not in known:
            near = place.findings.near(arg.name.text, known, f"there are {listed(known)}")
            place.findings.error("UNKNOWN_OPTION", f"{whose} has no option `{arg.name.text}`", arg.name, near)
        elif arg.name.text in found:
            place.findings.error("REPEATED_ARGUMENT", f"`{arg.name.text}` is given twice", arg.name)
        else:
            found[arg.name.text] = arg
    return list(found.values())


_YIELD_NAMES = {
    "msg": "message",
    "message": "message",
    "channel": "channel",
    "queue": "channel",
    "timeout": "timeout",
    "attachments": "attachments",
}


def _read_yield(at: int, stage: Yield, place: Place) -> YieldStage:
    given: dict[str, Expr] = {}
    attachments: list[Expr] = []
    has_message = any(a.name is None and isinstance(a.value, Text) for a in stage.args) or any(
        a.name is not None and _YIELD_NAMES.get(a.name.text) == "message" for a in stage.args
    )
    for arg in stage.args:
        part = _yield_part(arg, place, has_message)
        if part is None:
            continue
        value = arg.value
        if part == "attachments":
            place.context.check(value)
            attachments.append(value)
            continue
        if part in given:
            place.findings.error("REPEATED_ARGUMENT", f"this yield has a {part} already", arg.name or value)
            continue
        if part == "channel":
            value = _channel(value, place)
        elif part == "message":
            has_message = True
        if part != "timeout":
            place.context.check(value)
        given[part] = value
    timeout = given.get("timeout")
    return YieldStage(
        at + 1,
        given.get("message"),
        given.get("channel"),
        tuple(attachments),
        None if timeout is None else _timeout(timeout, place),
        _bound(stage.bind),
        _span(stage),
    )


def _yield_part(arg: Arg, place: Place, has_message: bool) -> str | None:
    """Which part of a yield an argument is: `message`, `channel`, `timeout` or `attachments`; None after an error."""
    value = arg.value
    if arg.name is not None:
        part = _YIELD_NAMES.get(arg.name.text)
        if part is None and isinstance(value, ListExpr):
            return "attachments"
        if part is None:
            names = tuple(_YIELD_NAMES)
            near = place.findings.near(arg.name.text, names, f"it takes {listed(names)}")
            place.findings.error("UNKNOWN_ARGUMENT", f"a yield has no argument `{arg.name.text}`", arg.name, near)
        return part
    if isinstance(value, Text):
        return "message"
    if isinstance(value, ListExpr):
        return "attachments"
    if isinstance(value, Duration):
        return "timeout"
    if isinstance(value, Path):
        if _names_tool(value, place):
            return "channel"
        return "attachments" if has_message else "message"
    help_ = "a message is a string, attachments are lists, a timeout is a duration like `1h`"
    place.findings.error("ARGUMENT_TYPE", "a yield has no use for this value", value, help_)
    return None


def _names_tool(path: Path, place: Place) -> bool:
    known = path.root in place.scope.params or path.root in place.scope.first
    return not path.parts and not known and place.context.declared.kinds.get(path.root) in ("tool", "store")


def _channel(value: Expr, place: Place) -> Expr:
    """A channel as an expression: the name of a tool becomes a text."""
    if isinstance(value, Path) and _names_tool(value, place):
        place.context.declared.used.add(value.root)
        return Text(value.start, value.end, (value.root,), False)
    known = value_of(value)
    if known is not UNKNOWN and not isinstance(known, str):
        place.findings.error("ARGUMENT_TYPE", "a channel is a string, or the name of a tool", value)
    return value


def _timeout(value: Expr, place: Place) -> float | None:
    seconds = seconds_of(value)
    if seconds is None:
        if is_computed(value):
            place.findings.error("NOT_A_LITERAL", "a timeout is written down, not computed", value)
        else:
            place.findings.error("BAD_OPTION", "a timeout must be a duration, or seconds above 0", value)
    return seconds


def _read_listen(at: int, stage: Listen, place: Place) -> ListenStage:
    event = stage.event
    name: str | Expr = event
    if event.root == "context":
        place.context.check(event)
    elif event.root == "Env":
        place.findings.error("ENV_MISPLACED", "an event is no variable of the environment", event)
    else:
        name = ".".join(str(part) for part in (event.root, *event.parts))
    return ListenStage(at + 1, name, _bound(stage.bind), _span(stage))


def _read_loop(at: int, stage: Loop, place: Place) -> LoopStage | None:
    declared = place.context.declared
    agent = refer(declared, place.findings, stage.agent, ("agent",), "a loop")
    place.context.check(stage.condition)
    most = LOOP_MAX
    for option in _named(stage.options, ("max",), "a loop", place):
        if is_computed(option.value):
            what = "`max` is written down, not computed"
            place.findings.error("NOT_A_LITERAL", what, option.value, "a plan must know it before anything runs")
        elif (whole := whole_of(option.value, 1)) is None:
            place.findings.error("BAD_OPTION", "`max` must be a whole number of at least 1", option.value)
        else:
            most = whole
    back_to = place.scope.back_to.get(at)
    if agent is None:
        return None
    if back_to is None:
        if agent not in declared.lost:
            what = f"no stage before this loop calls `{agent}`"
            place.findings.error("LOOP_WITHOUT_STAGE", what, stage.agent, _STAGES_A_LOOP_NEEDS)
        return None
    return LoopStage(
        at + 1,
        agent,
        stage.condition,
        "".join(part for part in stage.written.parts if isinstance(part, str)),
        most,
        place.indexes[back_to],
        place.indexes[place.scope.extents[at]],
        _bound(stage.bind),
        _span(stage),
    )


_READERS: dict[type, Callable[[int, Any, Place], CheckedStage | None]] = {
    Pipe: _read_pipe,
    Gate: _read_gate,
    Branch: _read_branch,
    FanOut: _read_fanout,
    Each: _read_each,
    Yield: _read_yield,
    Listen: _read_listen,
    Loop: _read_loop,
}
