"""Calls of agents, tools, the system and pipelines, compiled once (language.md §6).

Owns what each kind of call does with its arguments and where its result is stored ("its usual place", language.md §4).
A compiled call is a function of a frame that gives a coroutine of the result. Read `stages.py` next.
"""

from __future__ import annotations

from ..boundary.call import TOOL, Call
from ..check.program import AgentCall, BrokenCall, PipelineCall, SystemCall, ToolCall
from ..language.ast import Duration, Text
from ..language.diagnostics import did_you_mean
from ..language.record import Record
from ..language.values import as_number, to_text
from .agent import compiled_agent
from .arguments import with_defaults
from .described import methods_of
from .driver import Ask
from .evaluate import compiled
from .failure import RunFailure
from .permit import Wanted, permitted
from .state import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeAlias

    from ..catalog.describe import Method
    from ..check.program import Bound, CheckedCall, CheckedProgram
    from ..language.source import Span
    from ..language.values import Value
    from .evaluate import Names
    from .stages import CompiledPipeline
    from .state import Evaluate

    Make: TypeAlias = Callable[[Frame], Coroutine[Any, Any, Value]]

MAX_WAIT_S = 366 * 24 * 3600.0
"""The longest `System.Wait`."""


class CompiledCall(Record):
    """`place` is where the result is always stored: `("Writer", "outline")`, or `("Draft",)` for a pipeline."""

    make: Make
    place: tuple[str, ...]
    span: Span


class Compiling(Record):
    """What compiling a program shares: its pipelines by name, filled as they are compiled."""

    program: CheckedProgram
    pipelines: dict[str, CompiledPipeline]


def compiled_call(call: CheckedCall, names: Names, compiling: Compiling, stage: str) -> CompiledCall:
    """The compiled form of a call that stands in the stage numbered `stage`."""
    match call:
        case AgentCall():
            make = compiled_agent(call, names, compiling.program.tools, stage)
        case ToolCall():
            make = _tool(call, names, stage)
        case SystemCall():
            make = _system(call, names, stage)
        case PipelineCall():
            make = _pipeline(call, names, compiling, stage)
        case BrokenCall():
            raise ValueError(f"{call.target}: a call with an error is not run")
    return CompiledCall(make, tuple(call.target.split(".")), call.span)


# Tools -----------------------------------------------------------------------------------------------------------


def _tool(call: ToolCall, names: Names, stage: str) -> Make:
    tool, method = call.tool, call.method
    args = _compiled_args(call, names)

    async def use(frame: Frame) -> Value:
        number, given = frame.prefix + stage, args(frame)
        described = method
        if described is None:
            described, given = await _described(frame, call, number, given)
        wanted = Wanted(tool, described, call.target, given, frame.scope, number, call.span)
        answer = await permitted(frame, frame.governors, wanted)
        if answer.error is not None:
            raise RunFailure(answer.error.code, answer.error.message)
        return answer.value

    return use


async def _described(
    frame: Frame, call: ToolCall, stage: str, args: dict[str, Value]
) -> tuple[Method | None, dict[str, Value]]:
    """The method of a tool that had to be asked for its methods, and the arguments: one that stands alone, under no
    name yet, is the first parameter's, unless that is given or there is none."""
    methods = await methods_of(frame, call.tool, stage, call.span)
    name = call.target.partition(".")[2]
    method = next((m for m in methods if m.name == name), None)
    if method is None and methods:
        near = did_you_mean(name, [m.name for m in methods])
        raise RunFailure("TOOL_ARGUMENTS", f"`{call.tool.name}` has no method `{name}`{f'; {near}' if near else ''}")
    if "" in args:
        alone = args.pop("")
        first = next(iter(method.parameters() if method is not None else ("value",)), None)
        if first is not None and first not in args:
            args = {first: alone, **args}
    return method, args


def _compiled_args(call: ToolCall, names: Names) -> Callable[[Frame], dict[str, Value]]:
    """The function that makes the arguments of a tool's call; a shell command's insertions become shell variables."""
    flowing = call.flowing
    given: list[tuple[str, Evaluate]] = []
    shell: Callable[[Frame], dict[str, Value]] | None = None
    for bound in call.args:
        if call.tool.provider == "Bash" and bound.name == "command" and _has_insertions(bound):
            shell = _shell_command(bound.value, names)  # type: ignore[arg-type]
        else:
            given.append((bound.name, compiled(bound.value, names)))

    def args(frame: Frame) -> dict[str, Value]:
        made: dict[str, Value] = {} if flowing is None else {flowing: frame.current}
        for name, value in given:
            made[name] = value(frame)
        if shell is not None:
            made.update(shell(frame))
        return made

    return args


def _has_insertions(bound: Bound) -> bool:
    return isinstance(bound.value, Text) and any(not isinstance(part, str) for part in bound.value.parts)


def _shell_command(text: Text, names: Names) -> Callable[[Frame], dict[str, Value]]:
    from ..check.shell import place_values, render

    command, _ = place_values(text)
    if command is None:
        raise ValueError("a shell command with an error is not run")
    placed = command
    inserted = [compiled(part, names) for part in text.parts if not isinstance(part, str)]

    def args(frame: Frame) -> dict[str, Value]:
        try:
            return render(placed, tuple(to_text(value(frame)) for value in inserted))
        except ValueError as trouble:
            raise RunFailure("TOOL_ARGUMENTS", str(trouble)) from None

    return args


# The system ------------------------------------------------------------------------------------------------------


def _system(call: SystemCall, names: Names, stage: str) -> Make:
    if isinstance(call.value, Duration):
        seconds = call.value.milliseconds / 1000
        value: Evaluate = lambda frame: seconds  # noqa: E731
    else:
        value = (lambda frame: frame.current) if call.value is None else compiled(call.value, names)
    target, span = call.target, call.span

    async def outside(frame: Frame, args: dict[str, Value]) -> Value:
        answer = await Ask(Call(TOOL, target, args, frame.scope, frame.prefix + stage, span))
        if answer.error is not None:
            raise RunFailure(answer.error.code, answer.error.message)
        return answer.value

    async def show(frame: Frame) -> Value:
        shown = value(frame)
        frame.run.sink.printed(shown)
        return shown

    async def log(frame: Frame) -> Value:
        logged = value(frame)
        frame.run.sink.logged(logged)
        return logged

    async def publish(frame: Frame) -> Value:
        published = value(frame)
        await outside(frame, {"value": published})
        return published

    async def now(frame: Frame) -> Value:
        return await outside(frame, {})

    async def wait(frame: Frame) -> Value:
        given = value(frame)
        duration = as_number(given)
        if duration is None or not 0 <= duration <= MAX_WAIT_S:
            raise RunFailure(
                "TOOL_ARGUMENTS", f"`System.Wait` takes a duration, and got {to_text(given)[:80] or 'null'}"
            )
        await outside(frame, {"seconds": duration})
        return frame.current

    async def fail(frame: Frame) -> Value:
        raise RunFailure("PIPELINE_FAILED", to_text(value(frame)))

    return {"Print": show, "Log": log, "Publish": publish, "Now": now, "Wait": wait, "Fail": fail}[call.method]


# Pipelines -------------------------------------------------------------------------------------------------------


def _pipeline(call: PipelineCall, names: Names, compiling: Compiling, stage: str) -> Make:
    checked = compiling.program.pipelines[call.target]
    pipelines, name, flowing = compiling.pipelines, call.target, call.flowing
    given = tuple((bound.name, compiled(bound.value, names)) for bound in call.args)
    prefix = f"{stage}."

    async def enter(frame: Frame) -> Value:
        run, depth = frame.run, frame.depth + 1
        run.enter_pipeline(name, depth)
        args: dict[str, Value] = {} if flowing is None else {flowing: frame.current}
        for parameter, value in given:
            args[parameter] = value(frame)
        try:
            params = with_defaults(checked.params, args)
        except ValueError as trouble:
            raise RunFailure("ARGUMENT_TYPE", f"`{name}`: {trouble}") from None
        pipeline = pipelines[name]
        governors = pipeline.governed_by(frame.governors)
        return await pipeline.run(Frame(run, name, params, frame.scope, frame.prefix + prefix, governors, depth))

    return enter
