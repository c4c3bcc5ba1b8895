"""The agent loop: what is sent to a model, and what becomes of its answer (language.md §6).

Owns the messages of an agent's call, its rounds, and the order in which the tool calls of one answer are made. Every
tool call goes through `permit`, every text through `redact` where a policy says so. Knows no wire: `boundary.prompt`
frames what is sent, `models` sends it.
"""

from __future__ import annotations

from ..boundary.call import AGENT, MAX_WIRE_NAME, Call, Data, Limit, Message, ModelRequest, ToolOffer, failed, wire_name
from ..catalog.describe import READ, EnvRef
from ..language.record import Record, replace
from ..language.values import read_answer, to_text
from .described import methods_of
from .driver import Aside, Ask, Fork
from .evaluate import compiled, text_parts
from .failure import RunFailure, placed
from .permit import Wanted, permitted, rights
from .redact import redacted_answer, redacted_request, redacted_use, redacted_value, redaction
from .state import Governor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Coroutine, Sequence
    from typing import Any, TypeAlias

    from ..boundary.call import Answer, ToolUse
    from ..catalog.describe import Method
    from ..check.program import AgentCall, Tool
    from ..language.values import Value
    from .evaluate import Names
    from .redact import Redaction
    from .state import Frame, Retry

    Part: TypeAlias = str | Data


class Offered(Record):
    """A method that the agent may call, under its name on the wire."""

    tool: Tool
    method: Method
    target: str


class Toolbox(Record):
    """What an agent's call has under the policies that govern it there."""

    governors: tuple[Governor, ...]
    offers: tuple[ToolOffer, ...]
    by_wire_name: dict[str, Offered]
    redact: Redaction | None
    limit: Limit | None


def compiled_agent(
    call: AgentCall, names: Names, tools: dict[str, Tool], stage: str
) -> Callable[[Frame], Coroutine[Any, Any, Value]]:
    """The function that makes an agent's call and gives its answer as a value. `stage` is the stage's own number."""
    message = _compiled_message(call, names)
    own = Governor(call.agent.name, call.agent.policies)
    offered = tuple(tools[name] for name in call.tools)
    rounds = call.options.max_steps if offered else 0
    toolboxes: dict[tuple[Governor, ...], Toolbox] = {}

    async def ask(frame: Frame) -> Value:
        run, number = frame.run, frame.prefix + stage
        run.count(call.target)
        toolbox = toolboxes.get(frame.governors)
        if toolbox is None:
            methods = [(tool, await methods_of(frame, tool, number, call.span)) for tool in offered]
            toolbox = toolboxes[frame.governors] = _toolbox(frame, own, methods)
        messages = message(frame)
        for taken in range(rounds + 1):
            request = _request(
                call, messages, toolbox.offers if taken < rounds else (), toolbox.redact, stream=run.watched
            )
            answer = await Ask(_asked(call, frame, number, request, toolbox))
            if answer.error is not None:
                raise RunFailure(answer.error.code, answer.error.message)
            if not answer.tool_uses:
                return _answered(answer, toolbox.redact, frame, call)
            if taken == rounds:
                raise RunFailure("MODEL_ERROR", f"`{call.agent.name}` was offered no tools and asked for one")
            messages += await _round(frame, call, toolbox, answer, number)
        raise AssertionError  # the last round returns or raises

    return ask


def compiled_shadow(call: AgentCall, names: Names, stage: str) -> Callable[[Frame], Aside]:
    """The function that makes a shadow's one request, without tools, from the same input (language.md §7)."""
    message = _compiled_message(call, names)
    own = Governor(call.agent.name, call.agent.policies)

    def shadow(frame: Frame) -> Aside:
        toolbox = _toolbox(frame, own, ())
        redact = toolbox.redact
        request = _request(call, message(frame), (), redact, stream=False)
        made = replace(_asked(call, frame, frame.prefix + stage, request, toolbox), shadow=True)
        return Aside(made, redact and (lambda answer: redacted_answer(answer, redact)))

    return shadow


def _request(
    call: AgentCall,
    messages: tuple[Message, ...],
    offers: tuple[ToolOffer, ...],
    redact: Redaction | None,
    *,
    stream: bool,
) -> ModelRequest:
    model, options = call.agent.model, call.options
    request = ModelRequest(
        f"Env.{model.name}" if isinstance(model, EnvRef) else model,
        call.agent.system,
        messages,
        offers,
        options.max_tokens,
        options.temperature,
        options.top_p,
        options.timeout_s,
        options.retries,
        stream and redact is None,
    )
    return request if redact is None else redacted_request(request, redact)


def _asked(call: AgentCall, frame: Frame, stage: str, request: ModelRequest, toolbox: Toolbox) -> Call:
    return Call(AGENT, call.target, {}, frame.scope, stage, call.span, request=request, limit=toolbox.limit)


def _answered(answer: Answer, redact: Redaction | None, frame: Frame, call: AgentCall) -> Value:
    said = answer.value if redact is None else redacted_value(answer.value, redact)
    value = read_answer(said) if isinstance(said, str) else said
    if redact is not None and value is not said:
        value = said = redacted_value(value, redact)  # once more: JSON can hide by an escape what it says
    if frame.place is not None:
        frame.answers[(frame.place, call.agent.name)] = to_text(said)
    return value


# What is sent ----------------------------------------------------------------------------------------------------


def _compiled_message(call: AgentCall, names: Names) -> Callable[[Frame], tuple[Message, ...]]:
    """The function that makes the first message: instructions or task, inputs, and what a loop shows."""
    written: list[str | Callable[[Frame], str]] = []
    for text in call.instructions:
        written += ["\n\n", *text_parts(text, names)] if written else text_parts(text, names)
    if call.task is not None:
        written.append(f"Your task: {call.task}.")
    inputs = [(given.name, compiled(given.value, names)) for given in call.inputs]

    def message(frame: Frame) -> tuple[Message, ...]:
        parts: list[Part] = [p if isinstance(p, str) else Data(p(frame)) for p in written]
        if inputs:
            for name, value in inputs:
                _add(parts, Data(to_text(value(frame)), name))
        elif frame.current is not None:
            _add(parts, Data(to_text(frame.current)))
        if frame.retry is not None and frame.retry.agent == call.agent.name:
            _add_retry(parts, frame, frame.retry)
        return (Message("user", tuple(parts)),)

    return message


def _add(parts: list[Part], *more: Part) -> None:
    if parts:
        parts.append("\n\n")
    parts.extend(more)


def _add_retry(parts: list[Part], frame: Frame, retry: Retry) -> None:
    """What a loop shows the agent that it went back to (language.md §7)."""
    _add(parts, "This is another try. A check looked at the last one and saw:\n", Data(to_text(retry.value), "checked"))
    _add(parts, f"It asks for another try while this holds: {retry.condition}")
    previous = frame.answers.get((frame.place, retry.agent)) if frame.place is not None else None
    if previous is not None:
        _add(parts, "Your previous answer, which did not pass:\n", Data(previous, "previous"))


# Tools -----------------------------------------------------------------------------------------------------------


def _toolbox(frame: Frame, own: Governor, offered: Sequence[tuple[Tool, tuple[Method, ...]]]) -> Toolbox:
    """The toolbox of an agent's call under the governors around it, with the methods of each tool that it offers: first
    those that the file knows, so that no server takes a name that is one of theirs."""
    governors = (*frame.governors, own)
    by_wire_name: dict[str, Offered] = {}
    for tool, methods in sorted(offered, key=lambda one: one[0].methods is None):
        for method in methods:
            target = f"{tool.name}.{method.name}"
            if rights(frame.run, governors, target, method.effect).allowed:
                by_wire_name[_wire_name(target, by_wire_name)] = Offered(tool, method, target)
    return Toolbox(
        governors,
        tuple(
            ToolOffer(name, one.target, one.method.about, one.method.offered_schema())
            for name, one in by_wire_name.items()
        ),
        by_wire_name,
        redaction(tuple(policy for governor in governors for policy in governor.policies)),
        _limit(governors),
    )


def _wire_name(target: str, taken: Container[str]) -> str:
    """The method's name on the wire: `Files_read`. A name that a server chose may hold other characters, be too long,
    or come out like another: then it is made fit, and told apart by a number."""
    plain = wire_name(target)
    name, number = plain, 2
    while name in taken:
        name = f"{plain[: MAX_WIRE_NAME - 4]}_{number}"
        number += 1
    return name


def _limit(governors: tuple[Governor, ...]) -> Limit | None:
    """The lowest of the spend limits that hold together."""
    rules = [rule for g in governors for policy in g.policies for rule in policy.rules if rule.kind == "MaxSpend"]
    lowest = min(rules, key=lambda rule: rule.limit, default=None)
    return None if lowest is None else Limit(lowest.limit, lowest.limit_text, lowest.policy)


async def _round(frame: Frame, call: AgentCall, toolbox: Toolbox, answer: Answer, stage: str) -> tuple[Message, ...]:
    """Makes the tool calls of one answer: those that only read side by side, any other alone, after those before it
    and before those after it. Gives the answer and the results as messages."""
    uses = answer.tool_uses
    if toolbox.redact is not None:
        uses = tuple(redacted_use(use, toolbox.redact) for use in uses)
    results: list[Message] = []

    def one(at: int) -> Coroutine[Any, Any, Message]:
        return placed(_use_tool(frame, call, toolbox, uses[at], at, stage), stage, call.span)

    at = 0
    while at < len(uses):
        end = at + 1
        if _only_reads(toolbox, uses[at]):
            while end < len(uses) and _only_reads(toolbox, uses[end]):
                end += 1
        if end - at == 1:
            results.append(await one(at))
        else:
            first = at
            results += await Fork(end - at, lambda k, first=first: one(first + k), end - at)  # type: ignore[misc]
        at = end
    said = to_text(answer.value)
    if toolbox.redact is not None:
        said = toolbox.redact(said)
    return (Message("assistant", (said,) if said else (), uses), *results)


def _only_reads(toolbox: Toolbox, use: ToolUse) -> bool:
    offered = toolbox.by_wire_name.get(use.name)
    return offered is None or offered.method.effect == READ


async def _use_tool(frame: Frame, call: AgentCall, toolbox: Toolbox, use: ToolUse, at: int, stage: str) -> Message:
    offered = toolbox.by_wire_name.get(use.name)
    if offered is None:
        known = ", ".join(toolbox.by_wire_name) or "none"
        answer = failed("TOOL_ARGUMENTS", f"there is no tool `{use.name[:200]}`; the tools are: {known}")
    elif use.args is None:
        answer = failed("TOOL_ARGUMENTS", f"the arguments for `{use.name}` are no JSON object")
    else:
        wanted = Wanted(
            offered.tool,
            offered.method,
            offered.target,
            use.args,
            (*frame.scope, at),
            stage,
            call.span,
            call.agent.name,
            use.id,
        )
        answer = await permitted(frame, toolbox.governors, wanted)
    if answer.error is not None:
        if answer.error.code in ("BEYOND_PLAN", "LOCK_MISMATCH"):  # no matter of the model's: the run is held to them
            raise RunFailure(answer.error.code, answer.error.message)
        text = f"error {answer.error.code}: {answer.error.message}"
        return Message("tool", (Data(text),), (), use.id, True)
    return Message("tool", (Data(to_text(answer.value)),), (), use.id)
