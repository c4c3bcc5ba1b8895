"""Stages and pipelines, compiled once (language.md §7, the seed page Pipe Operators).

Owns what each operator does. A compiled stage is a coroutine function of a frame; it gives None, or the index of the
stage to jump to. Nothing here awaits but the door and its own branches. Read `driver.py` for what steps it.
"""

from __future__ import annotations

from ..boundary.call import LISTEN, YIELD, Call
from ..check.program import (
    BranchStage,
    CallStage,
    EachStage,
    FanOutStage,
    GateStage,
    ListenStage,
    LoopStage,
    YieldStage,
)
from ..language.values import as_number, to_text
from .calls import CompiledCall, Compiling, compiled_call
from .driver import Ask, Fork
from .evaluate import Names, compiled, condition
from .failure import Halt, RunFailure, placed, too_deep
from .state import Frame, Governor, Retry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeAlias

    from ..check.program import CheckedPipeline, CheckedProgram, CheckedStage
    from ..language.source import Span
    from ..language.values import Value
    from .state import Evaluate

    Step: TypeAlias = Callable[[Frame], Coroutine[Any, Any, int | None]]

CONCURRENCY = 4
"""How many items of an `each` are under way at a time where nothing is said."""

MAX_EVENT, MAX_EVENT_PARTS = 1000, 32
"""Characters and parts of an event's name."""


class CompiledPipeline:
    """A pipeline, ready to run any number of times."""

    __slots__ = ("_compiling", "_governor", "_has_loops", "_labels", "_source", "_steps", "checked")

    def __init__(self, checked: CheckedPipeline, compiling: Compiling) -> None:
        targets = {s.back_to for s in checked.stages if isinstance(s, LoopStage)}
        self.checked = checked
        self._compiling = compiling
        self._governor = Governor(f"pipeline {checked.name}", checked.policies) if checked.policies else None
        self._source = compiled(checked.source, Names(checked.bindings))
        self._has_loops = bool(targets)
        self._labels = tuple(_label(stage) for stage in checked.stages)
        self._steps = tuple(self._compiled(stage, at in targets) for at, stage in enumerate(checked.stages))

    def _compiled(self, stage: CheckedStage, is_target: bool) -> Step:
        step = _COMPILERS[type(stage)](stage, Names(self.checked.bindings), self._compiling)
        return _remembering(stage.number, step) if is_target else step

    def variant(self, at: int, stage: CheckedStage) -> Step:
        """What runs another stage in the place of the one at an index."""
        is_target = any(isinstance(s, LoopStage) and s.back_to == at for s in self.checked.stages)
        return self._compiled(stage, is_target)

    @property
    def program(self) -> CheckedProgram:
        return self._compiling.program

    def label(self, at: int) -> str:
        """The words by which the stage at an index is shown."""
        return self._labels[at]

    def governed_by(self, governors: tuple[Governor, ...]) -> tuple[Governor, ...]:
        """The governors of a call of this pipeline: those around it and, where it requires policies, itself."""
        if self._governor is None or self._governor in governors:
            return governors
        return (*governors, self._governor)

    async def run(self, frame: Frame) -> Value:
        """Runs all stages in a fresh frame and gives the flowing value. Raises `RunFailure` and `Halt`, with the place
        of the innermost stage in which it happened."""
        frame.current = self._source(frame)
        if self._has_loops:
            frame.answers, frame.loops = {}, {}
        at, steps, run = 0, self._steps, frame.run
        if run.stepped:
            from .stepping import with_holds

            steps = with_holds(self, steps)
        try:
            while at < len(steps):
                if run.watched:
                    run.covered.add((frame.name, self.checked.stages[at].number, None))
                    number = f"{frame.prefix}{self.checked.stages[at].number}"
                    run.sink.stage_began(number, self._labels[at], frame.scope)
                    jump = await steps[at](frame)
                    run.sink.stage_ended(number, self._labels[at], frame.scope)
                else:
                    jump = await steps[at](frame)
                at = at + 1 if jump is None else jump
        except RunFailure as failure:
            failure.happened_in(*self.place(frame, at))
            raise
        except RecursionError:
            raise too_deep(*self.place(frame, at)) from None
        return frame.current

    def place(self, frame: Frame, at: int) -> tuple[str, Span]:
        """The number in a plan, and the span, of the stage at an index."""
        stage = self.checked.stages[at]
        return f"{frame.prefix}{stage.number}", stage.span


def compiled_program(program: CheckedProgram) -> dict[str, CompiledPipeline]:
    """All pipelines of a program without errors, compiled."""
    compiling = Compiling(program, {})
    for name, checked in program.pipelines.items():
        compiling.pipelines[name] = CompiledPipeline(checked, compiling)
    return compiling.pipelines


def _label(stage: CheckedStage) -> str:
    """The words by which a stage is shown while it runs."""
    match stage:
        case CallStage():
            return stage.call.target
        case GateStage():
            return f"gate if {stage.text}"
        case BranchStage():
            return "branch"
        case FanOutStage():
            return "fan-out"
        case EachStage():
            return f"each {stage.call.target}"
        case YieldStage():
            return "yield"
        case ListenStage():
            return f"listen {stage.event}" if isinstance(stage.event, str) else "listen"
        case LoopStage():
            return f"loop {stage.agent}"


def _store(frame: Frame, call: CompiledCall, value: Value, bind: str | None) -> None:
    frame.data.put(call.place, value)
    if bind is not None:
        frame.data[bind] = value


def _remembering(number: int, step: Step) -> Step:
    """A stage that a loop goes back to: agents in it are shown their own previous answers on a retry."""

    async def remember(frame: Frame) -> int | None:
        frame.place = (number, 0)
        jump = await step(frame)
        frame.place = frame.retry = None
        return jump

    return remember


# Calls, gates, branches ------------------------------------------------------------------------------------------


def _call(stage: CallStage, names: Names, compiling: Compiling) -> Step:
    call, bind = compiled_call(stage.call, names, compiling, str(stage.number)), stage.bind
    make = call.make
    if stage.shadow is not None:
        make = _with_shadow(make, stage, names, compiling)

    async def step(frame: Frame) -> None:
        value = frame.current = await make(frame)
        _store(frame, call, value, bind)

    return step


def _with_shadow(make: Any, stage: CallStage, names: Names, compiling: Compiling) -> Any:
    """The call, with its shadow's request sent beside it, made from the same input (language.md §7)."""
    from .agent import compiled_shadow

    assert stage.shadow is not None
    shadow = compiled_shadow(stage.shadow, names, str(stage.number))

    async def both(frame: Frame) -> Value:
        await shadow(frame)
        return await make(frame)  # type: ignore[no-any-return]

    return both


def _gate(stage: GateStage, names: Names, compiling: Compiling) -> Step:
    holds = condition(stage.condition, names)

    async def step(frame: Frame) -> None:
        if not holds(frame):
            raise Halt(f"{frame.prefix}{stage.number}", stage.text, frame.current)

    return step


def _branch(stage: BranchStage, names: Names, compiling: Compiling) -> Step:
    number, bind = str(stage.number), stage.bind
    arms = [
        (
            None if arm.condition is None else condition(arm.condition, names),
            compiled_call(arm.call, names, compiling, number),
        )
        for arm in stage.arms
    ]

    async def step(frame: Frame) -> None:
        for at, (holds, call) in enumerate(arms):
            if holds is None or holds(frame):
                if frame.run.watched:
                    frame.run.covered.add((frame.name, stage.number, at))
                value = frame.current = await call.make(frame)
                _store(frame, call, value, bind)
                return
        if bind is not None:
            frame.data[bind] = frame.current

    return step


# Parallel branches -----------------------------------------------------------------------------------------------


def _fan_out(stage: FanOutStage, names: Names, compiling: Compiling) -> Step:
    calls = [(compiled_call(m.call, names, compiling, str(stage.number)), m.bind) for m in stage.members]
    bind = stage.bind

    async def step(frame: Frame) -> None:
        current, number = frame.current, f"{frame.prefix}{stage.number}"

        def branch(at: int) -> Coroutine[Any, Any, Value]:
            return _branch_of(calls[at][0], frame.branch(at, current), number)

        results = frame.run.sizes.checked(await Fork(len(calls), branch, len(calls)))
        for (call, name), value in zip(calls, results, strict=True):
            _store(frame, call, value, name)
        frame.current = results
        if bind is not None:
            frame.data[bind] = results

    return step


def _each(stage: EachStage, names: Names, compiling: Compiling) -> Step:
    call = compiled_call(stage.call, Names(names.bindings, stage.item), compiling, str(stage.number))
    source, bind = compiled(stage.source, names), stage.bind
    concurrency = None if stage.concurrency is None else compiled(stage.concurrency, names)
    limit = None if stage.limit is None else compiled(stage.limit, names)

    async def step(frame: Frame) -> None:
        items = source(frame)
        if not isinstance(items, list):
            raise RunFailure("NOT_A_LIST", f"`each` takes a list, and got {_described(items)}")
        count = len(items)
        if limit is not None:
            count = min(count, _at_least_one("limit", limit(frame)))
        number = f"{frame.prefix}{stage.number}"
        width = CONCURRENCY if concurrency is None else _at_least_one("concurrency", concurrency(frame))

        def branch(at: int) -> Coroutine[Any, Any, Value]:
            view = frame.branch(at, items[at])
            view.item, view.index = items[at], at
            return _branch_of(call, view, number)

        results = frame.run.sizes.checked(await Fork(count, branch, width))
        if results:
            frame.data.put(call.place, results[-1])
        frame.current = results
        if bind is not None:
            frame.data[bind] = results

    return step


def _branch_of(call: CompiledCall, view: Frame, number: str) -> Coroutine[Any, Any, Value]:
    """The steps of a parallel branch that makes a call; a watcher is told when it begins and ends."""
    steps = placed(call.make(view), number, call.span)
    return _shown(steps, view, number, ".".join(call.place)) if view.run.watched else steps


async def _shown(steps: Coroutine[Any, Any, Value], view: Frame, number: str, label: str) -> Value:
    view.run.sink.stage_began(number, label, view.scope)
    result = await steps
    view.run.sink.stage_ended(number, label, view.scope)
    return result


def _at_least_one(option: str, value: Value) -> int:
    number = as_number(value)
    if number is None or number < 1 or number != int(number):
        raise RunFailure(
            "ARGUMENT_TYPE", f"`{option}` must be a whole number of at least 1, and is {_described(value)}"
        )
    return int(number)


def _described(value: Value) -> str:
    text = "null" if value is None else to_text(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


# People and events -----------------------------------------------------------------------------------------------


def _yield(stage: YieldStage, names: Names, compiling: Compiling) -> Step:
    message = None if stage.message is None else compiled(stage.message, names)
    channel = None if stage.channel is None else compiled(stage.channel, names)
    attachments = [compiled(given, names) for given in stage.attachments]

    async def step(frame: Frame) -> None:
        attached: list[Value] = []
        for value in (given(frame) for given in attachments):
            attached += value if isinstance(value, list) else [value]
        args: dict[str, Value] = {
            "message": "" if message is None else to_text(message(frame)),
            "channel": None if channel is None else to_text(channel(frame)),
            "attachments": attached,
            "timeout": stage.timeout_s,
        }
        answer = await _ask(frame, YIELD, "yield", args, stage.number, stage.span)
        response = answered_yield(answer)
        frame.data["yield"] = response
        if stage.bind is not None:
            frame.data[stage.bind] = response

    return step


def answered_yield(value: Value) -> dict[str, Value]:
    """A person's answer to a yield as the object that a program sees: a bare yes or no becomes `{approved: …}`, text
    becomes `{text: …}` and approves nothing (language.md §7)."""
    if isinstance(value, dict):
        return value
    if isinstance(value, bool):
        return {"approved": value}
    if isinstance(value, str):
        return {"text": value}
    return {"value": value}


def _listen(stage: ListenStage, names: Names, compiling: Compiling) -> Step:
    written = stage.event
    named: Evaluate = (lambda frame: written) if isinstance(written, str) else compiled(written, names)

    async def step(frame: Frame) -> None:
        event = named(frame)
        if not (isinstance(event, str) and _names_event(event)):
            raise RunFailure("ARGUMENT_TYPE", f"`listen` takes an event's name, and got {_described(event)}")
        payload = await _ask(frame, LISTEN, event, {}, stage.number, stage.span)
        frame.data.put(tuple(event.split(".")), payload)
        if stage.bind is not None:
            frame.data[stage.bind] = payload

    return step


def _names_event(text: str) -> bool:
    """Whether a text is an event's name: names with dots between, of bounded depth, for it is where the payload is
    stored."""
    parts = text.split(".", MAX_EVENT_PARTS)
    return len(text) <= MAX_EVENT and len(parts) <= MAX_EVENT_PARTS and all(parts)


async def _ask(frame: Frame, kind: str, target: str, args: dict[str, Value], number: int, span: Span) -> Value:
    answer = await Ask(Call(kind, target, args, frame.scope, f"{frame.prefix}{number}", span))
    if answer.error is not None:
        raise RunFailure(answer.error.code, answer.error.message)
    return answer.value


# Loops -----------------------------------------------------------------------------------------------------------


def _loop(stage: LoopStage, names: Names, compiling: Compiling) -> Step:
    holds = condition(stage.condition, names)

    async def step(frame: Frame) -> int | None:
        own = frame.loops.get(stage.number)
        gone_back = 0 if own is None else int(own["iteration"])  # type: ignore[arg-type]
        if not holds(frame):
            frame.loops.pop(stage.number, None)
            _show_loop(frame)
            if stage.bind is not None:
                frame.data[stage.bind] = gone_back
            return None
        if gone_back + 1 >= stage.max:
            raise RunFailure(
                "LOOP_LIMIT",
                f"after {stage.max} {'try' if stage.max == 1 else 'tries'} the condition still holds: {stage.text}; "
                f"the last value was {_described(frame.current)}",
            )
        # Loops that lie between start afresh when this one jumps back over them.
        for inner in [n for n in frame.loops if stage.back_to < n < stage.number]:
            del frame.loops[inner]
        frame.loops.pop(stage.number, None)
        frame.loops[stage.number] = {"target": stage.agent, "iteration": gone_back + 1, "condition": stage.text}
        _show_loop(frame)
        frame.retry = Retry(stage.agent, frame.current, stage.text)
        return stage.back_to

    return step


def _show_loop(frame: Frame) -> None:
    """`context.data.loop` is the loop that went back last and has not ended."""
    if frame.loops:
        frame.data["loop"] = next(reversed(frame.loops.values()))
    else:
        frame.data.pop("loop", None)


_COMPILERS: dict[type, Callable[..., Step]] = {
    CallStage: _call,
    GateStage: _gate,
    BranchStage: _branch,
    FanOutStage: _fan_out,
    EachStage: _each,
    YieldStage: _yield,
    ListenStage: _listen,
    LoopStage: _loop,
}
