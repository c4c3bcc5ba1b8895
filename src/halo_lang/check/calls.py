"""Calls: which arguments are instructions, inputs, options or parameters, and what the flowing value fills.

Owns the reading of every call of a pipeline (language.md §6), so that plan and runtime need not ask again. A call that
has an error becomes a `BrokenCall`. Read `stages.py` next.
"""

from __future__ import annotations

from ..catalog.describe import value_error
from ..language.ast import Duration, ListExpr, Number, Path, Text
from ..language.record import Record, replace
from ..language.source import Span
from .agents import read_option
from .expressions import check_expr
from .findings import a, listed
from .literals import AGENT_OPTIONS, UNKNOWN, fits, sample_of, seconds_of, value_of
from .names import with_article
from .policies import decide
from .program import AgentCall, Bound, BrokenCall, Input, PipelineCall, SystemCall, ToolCall
from .settings import switch_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..catalog.describe import Method, Provider
    from ..language.ast import Arg, Call, Expr, Name, PipelineDecl
    from .findings import Findings
    from .names import Declared, Scope
    from .program import Agent, CheckedCall, Tool

SYSTEM: dict[str, str | None] = {
    "Print": "value",
    "Log": "value",
    "Publish": "value",
    "Wait": "duration",
    "Fail": "message",
    "Now": None,
}
"""The methods of `System`, each with its one argument."""


class Context:
    """What the calls of one pipeline are read against."""

    __slots__ = ("declared", "findings", "providers", "scope")

    def __init__(
        self, declared: Declared, providers: Mapping[str, Provider], findings: Findings, scope: Scope | None
    ) -> None:
        self.declared = declared
        self.providers = providers
        self.findings = findings
        self.scope = scope

    def check(self, expr: Expr) -> None:
        check_expr(expr, self.scope, self.declared, self.findings)


def read_call(call: Call, context: Context) -> CheckedCall:
    """A call of a pipeline's stage."""
    before = context.findings.errors
    name = call.target.text
    made: CheckedCall | None = None
    if name == "System":
        made = _system_call(call, context)
    else:
        kind = context.declared.kinds.get(name)
        context.declared.used.add(name)
        if kind == "agent" and name in context.declared.agents:
            made = _agent_call(call, context.declared.agents[name], context)
        elif kind == "tool" or kind == "store":
            made = _tool_call(call, context.declared.tools[name], context)
        elif kind == "pipeline":
            made = _pipeline_call(call, context.declared.pipelines[name], context)
        else:
            _unknown_target(call, kind, context)
            for arg in call.args:
                _check_loosely(arg.value, context)
    if made is None or context.findings.errors > before:
        return BrokenCall(_target(call), Span(call.start, call.end))
    return made


def read_shadow(call: Call, context: Context) -> AgentCall | None:
    """The call beside a stage, which must be an agent's and gets no tools."""
    kind = context.declared.kinds.get(call.target.text)
    if kind != "agent" and (kind is not None or call.target.text == "System"):
        context.declared.used.add(call.target.text)
        what = with_article(kind) if kind is not None else "the language's own"
        help_ = "only a call of an agent can be made on the side"
        context.findings.error("WRONG_KIND", f"`{call.target.text}` is {what}", call.target, help_)
        return None
    for arg in call.args:
        if arg.name is not None and arg.name.text == "tools":
            context.findings.warning("BAD_OPTION", "a `@shadow` call gets no tools", arg.name)
    made = read_call(call, context)
    return replace(made, tools=()) if isinstance(made, AgentCall) else None


def _unknown_target(call: Call, kind: str | None, context: Context) -> None:
    name = call.target.text
    if kind is not None:
        what = f"`{name}` is {with_article(kind)}, and cannot be called"
        context.findings.error("WRONG_KIND", what, call.target)
    elif name not in context.declared.lost:
        near = context.findings.near(
            name, context.declared.callable(), f"declare it: `agent {name} [provider/model]`, a tool or a pipeline"
        )
        context.findings.error("UNKNOWN_NAME", f"nothing is called `{name}`", call.target, near)


def _check_loosely(expr: Expr, context: Context) -> None:
    """Checks an argument of a call whose target is unknown: what it may be is unknown too."""
    if isinstance(expr, Duration) or (isinstance(expr, ListExpr) and all(type(i) is Path for i in expr.items)):
        return
    context.check(expr)


# Agents ----------------------------------------------------------------------------------------------------------


def _agent_call(call: Call, agent: Agent, context: Context) -> AgentCall:
    method = call.method.text if call.method is not None else "prompt"
    instructions: list[Text] = []
    inputs: list[Input] = []
    changes: dict[str, Any] = {}
    tools: tuple[str, ...] = ()
    seen: set[str] = set()
    for arg in call.args:
        name = arg.name
        if name is None:
            context.check(arg.value)
            if isinstance(arg.value, Text):
                instructions.append(arg.value)
            else:
                inputs.append(Input(None, arg.value))
            continue
        if name.text in seen:
            context.findings.error("REPEATED_ARGUMENT", f"`{name.text}` is given twice", name)
        seen.add(name.text)
        if name.text in AGENT_OPTIONS:
            changes |= read_option(arg, context.findings)
        elif name.text == "tools":
            tools = _offered(arg, agent, context)
        elif name.text == "system":
            help_ = f'give the agent one: `agent {agent.name} […] system "…"`'
            context.findings.error("UNKNOWN_OPTION", "a call has no `system`", name, help_)
        else:
            context.check(arg.value)
            _warn_misspelt(name, arg.value, context)
            inputs.append(Input(name.text, arg.value))
    return AgentCall(
        f"{agent.name}.{method}",
        agent,
        method,
        tuple(instructions),
        None if instructions or method == "prompt" else as_words(method),
        tuple(inputs),
        replace(agent.options, **changes) if changes else agent.options,
        tools,
        Span(call.start, call.end),
    )


def as_words(method: str) -> str:
    """A method's name read as words: `argue_for` and `argueFor` are "argue for"."""
    made = method.replace("_", " ")
    if any(c.isupper() for c in made) and not made.isupper():
        made = "".join(
            f" {c.lower()}" if c.isupper() and at and made[at - 1].islower() else c for at, c in enumerate(made)
        )
    return " ".join(made.split()) or method


def _warn_misspelt(name: Name, value: Expr, context: Context) -> None:
    """Warns of an input with nearly the name of an option and a number: it would be sent, and change nothing."""
    if isinstance(value, Number | Duration) and name.text.lower().replace("_", "") in _ALMOST:
        option = _ALMOST[name.text.lower().replace("_", "")]
        what = f"`{name.text}` is no option, so it is an input of the agent"
        context.findings.warning("UNKNOWN_OPTION", what, name, f"did you mean `{option}`?")


_ALMOST = {
    "maxtokens": "max_tokens",
    "maxtoken": "max_tokens",
    "maxsteps": "max_steps",
    "maxstep": "max_steps",
    "temprature": "temperature",
    "temp": "temperature",
    "topp": "top_p",
    "retry": "retries",
    "timeouts": "timeout",
}


def _offered(arg: Arg, agent: Agent, context: Context) -> tuple[str, ...]:
    """The tools that `tools:` names."""
    findings = context.findings
    if not isinstance(arg.value, ListExpr) or any(type(i) is not Path or i.parts for i in arg.value.items):
        help_ = "for example `tools: [Files]`; a plan must know them before anything runs"
        findings.error("NOT_A_LITERAL", "`tools` is a list of names of tools, written down", arg.value, help_)
        return ()
    equipped = frozenset(agent.equips)
    offered: dict[str, None] = {}
    for item in arg.value.items:
        assert isinstance(item, Path)
        name, kind = item.root, context.declared.kinds.get(item.root)
        context.declared.used.add(name)
        if name in offered:
            findings.error("DUPLICATE_NAME", f"`tools` names `{name}` twice", item)
        elif name in equipped:
            offered[name] = None
        elif name in context.declared.lost:
            continue  # perhaps a clause that could not be parsed equips the agent with it
        elif kind in ("tool", "store"):
            what = f"the agent `{agent.name}` is not equipped with `{name}`"
            findings.error("NOT_EQUIPPED", what, item, f"add it to the agent: `equips {name}`")
        elif kind is not None:
            findings.error("WRONG_KIND", f"`{name}` is {with_article(kind)}; `tools` takes tools and stores", item)
        else:
            near = findings.near(name, context.declared.of_kind("tool", "store"))
            findings.error("UNKNOWN_NAME", f"there is no tool `{name}`", item, near)
    _check_clash(tuple(offered), agent, arg, context)
    return tuple(offered)


def _check_clash(offered: Sequence[str], agent: Agent, arg: Arg, context: Context) -> None:
    """Reports two methods that a model would be offered under one name."""
    if len(offered) < 2:
        return
    owners: dict[str, str] = {}
    for name in offered:
        for method in context.declared.tools[name].methods or ():
            target, wire = f"{name}.{method.name}", wire_name(name, method.name)
            if not decide(agent.policies, target, method.effect).allowed:
                continue
            if wire in owners:
                what = f"`{owners[wire]}` and `{target}` would both be offered to the model as `{wire}`"
                help_ = "rename one of the tools, or offer them in different calls"
                context.findings.error("TOOL_NAMES_CLASH", what, arg.value, help_)
            owners.setdefault(wire, target)


def wire_name(tool: str, method: str) -> str:
    """The name of a method as a model is offered it (language.md §6)."""
    return f"{tool}_{method}"


# Tools -----------------------------------------------------------------------------------------------------------


def _tool_call(call: Call, tool: Tool, context: Context) -> ToolCall | None:
    target, span = _target(call), Span(call.start, call.end)
    method: Method | None = None
    if call.method is None:
        _missing_method(call, tool, context)
    elif tool.methods is not None:
        method = tool.method(call.method.text)
        if method is None:
            _unknown_method(call.method, tool, context)
    if call.method is None or (method is None and tool.methods is not None):
        for arg in call.args:
            _check_loosely(arg.value, context)
        return None
    if method is None:
        bound, flowing = _bind_unknown(call, context)
    else:
        bound, flowing = _bind_method(call, method, context)
    if tool.provider == "Bash":
        _check_command(call, bound, flowing, context)
    return ToolCall(target, tool, method, bound, flowing, span)


def _missing_method(call: Call, tool: Tool, context: Context) -> None:
    names = [m.name for m in tool.methods or ()]
    help_ = f"its methods are {listed(names)}" if names else f"write `{tool.name}.method(…)`"
    context.findings.error(
        "UNKNOWN_METHOD", f"a call of the {tool.keyword} `{tool.name}` needs a method", call.target, help_
    )


def _unknown_method(method: Name, tool: Tool, context: Context) -> None:
    switch = switch_for(tool, method.text, context.providers)
    names = [m.name for m in tool.methods or ()]
    if switch:
        help_: str | None = f"it has it with `{switch}: true`"
    else:
        help_ = context.findings.near(method.text, names, f"its methods are {listed(names)}")
    context.findings.error("UNKNOWN_METHOD", f"`{tool.name}` has no method `{method.text}`", method, help_)


def _bind_unknown(call: Call, context: Context) -> tuple[tuple[Bound, ...], str | None]:
    """Arguments for a method that is not described: `""` stands for its first argument, whatever its name is."""
    bound: list[Bound] = []
    for arg in call.args:
        context.check(arg.value)
        name = arg.name.text if arg.name is not None else ""
        if any(b.name == name for b in bound):
            code = "REPEATED_ARGUMENT" if name else "EXTRA_ARGUMENT"
            what = (
                f"`{name}` is given twice" if name else "the method is not described, so only one argument has no name"
            )
            context.findings.error(code, what, arg.name or arg.value)
        bound.append(Bound(name, arg.value))
    return tuple(bound), None if any(b.name == "" for b in bound) else ""


def _bind_method(call: Call, method: Method, context: Context) -> tuple[tuple[Bound, ...], str | None]:
    names = method.parameters()
    open_ended = method.schema.get("additionalProperties", False) is not False
    what = f"`{_target(call)}`"
    bindings = _bind(call.args, names, what, context, open_ended=open_ended)
    bound, flowing = bindings.bound, bindings.flowing
    given = {flowing, *method.internal, *(b.name for b in bound)}
    if bindings.whole:
        _check_missing([name for name in method.required() if name not in given], what, call, context)
    properties: Mapping[str, Any] = method.schema.get("properties", {})
    for argument in bound:
        schema = properties.get(argument.name)
        if schema is None:
            continue
        value = value_of(argument.value)
        if value is not UNKNOWN:
            trouble = value_error(schema, value)
        else:
            sample = "" if isinstance(argument.value, Text) else sample_of(argument.value)
            kind = {"type": schema["type"]} if "type" in schema else {}
            trouble = None if sample is UNKNOWN else value_error(kind, sample)
        if trouble:
            context.findings.error("ARGUMENT_TYPE", f"`{argument.name}` of {what} {trouble}", argument.value)
    return bound, flowing


def _check_command(call: Call, bound: tuple[Bound, ...], flowing: str | None, context: Context) -> None:
    """Checks where values are inserted in a shell command, and warns of one that is computed (tools.md §2)."""
    command = next((b.value for b in bound if b.name == "command"), None)
    if command is None and flowing != "command":
        return
    if isinstance(command, Text):
        if any(type(part) is Path for part in command.parts):
            from .shell import place_values

            _, found = place_values(command)
            for diagnostic in found:
                context.findings.add(diagnostic)
        return
    help_ = 'write the command down, and insert values: `"grep {{word}} notes.txt"`'
    what = "this command is computed, so whatever makes it decides what is run"
    context.findings.warning("COMMAND_NOT_LITERAL", what, command or call, help_)


# Pipelines and System --------------------------------------------------------------------------------------------


def _pipeline_call(call: Call, pipeline: PipelineDecl, context: Context) -> PipelineCall | None:
    name = pipeline.name.text
    if call.method is not None:
        help_ = f"call it as `{name}(…)`"
        context.findings.error("UNKNOWN_METHOD", f"`{name}` is a pipeline, and has no methods", call.method, help_)
        for arg in call.args:
            _check_loosely(arg.value, context)
        return None
    bound, flowing = bind_pipeline(call.args, pipeline, context, call, flows=True)
    return PipelineCall(name, bound, flowing, Span(call.start, call.end))


def bind_pipeline(
    args: Sequence[Arg], pipeline: PipelineDecl, context: Context, at: Call | Name, *, flows: bool
) -> tuple[tuple[Bound, ...], str | None]:
    """Arguments bound to a pipeline's parameters. `flows`: there is a flowing value, which fills the first one."""
    params = context.declared.params_of(pipeline)
    what = f"`{pipeline.name.text}`"
    bindings = _bind(args, params.names, what, context, flows=flows)
    given = {b.name: b.value for b in bindings.bound}
    if bindings.whole:
        _check_missing([n for n in params.required if n not in given and n != bindings.flowing], what, at, context)
    for name, expr in given.items():
        type_name = params.types[name]
        value = value_of(expr)
        value = sample_of(expr) if value is UNKNOWN else value
        if value is not UNKNOWN and not fits(type_name, value):
            context.findings.error("ARGUMENT_TYPE", f"`{name}` of {what} must be {a(type_name)}", expr)
    return bindings.bound, bindings.flowing


def _check_missing(missing: list[str], what: str, at: Call | Name, context: Context) -> None:
    if missing:
        context.findings.error("MISSING_ARGUMENT", f"{what} needs {listed(missing)}", at)


class Bindings(Record):
    """Arguments bound to names, and the name that takes the flowing value, if one does. `whole` is false where an
    argument has found no place, so that nothing can be said to be missing."""

    bound: tuple[Bound, ...]
    flowing: str | None
    whole: bool


def _bind(
    args: Sequence[Arg],
    names: Sequence[str],
    what: str,
    context: Context,
    *,
    flows: bool = True,
    open_ended: bool = False,
) -> Bindings:
    """Arguments by position and name (language.md §6)."""
    findings = context.findings
    bound: dict[str, Bound] = {}
    position, whole = 0, True
    for arg in args:
        context.check(arg.value)
        if arg.name is not None:
            name = arg.name.text
            if name not in names and not open_ended:
                near = findings.near(name, names, _takes(what, names))
                findings.error("UNKNOWN_ARGUMENT", f"{what} has no argument `{name}`", arg.name, near)
                whole = False
                continue
        elif position < len(names):
            name = names[position]
            position += 1
        else:
            findings.error("EXTRA_ARGUMENT", f"{what} takes no more arguments", arg.value, _takes(what, names))
            whole = False
            continue
        if name in bound:
            findings.error("REPEATED_ARGUMENT", f"`{name}` of {what} is given twice", arg.name or arg.value)
        bound[name] = Bound(name, arg.value)
    flowing = names[0] if flows and position == 0 and names and names[0] not in bound else None
    return Bindings(tuple(bound.values()), flowing, whole)


def _takes(what: str, names: Sequence[str]) -> str:
    return f"{what} takes {listed(names, 'no arguments')}"


def _system_call(call: Call, context: Context) -> SystemCall | None:
    method = call.method
    if method is None or method.text not in SYSTEM:
        known = f"its methods are {listed(SYSTEM)}"
        if method is None:
            context.findings.error("UNKNOWN_METHOD", "a call of `System` needs a method", call.target, known)
        else:
            near = context.findings.near(method.text, SYSTEM, known)
            context.findings.error("UNKNOWN_METHOD", f"`System` has no method `{method.text}`", method, near)
        for arg in call.args:
            _check_loosely(arg.value, context)
        return None
    parameter = SYSTEM[method.text]
    what = f"`System.{method.text}`"
    value: Expr | None = None
    for arg in call.args:
        waits = method.text == "Wait" and isinstance(arg.value, Duration)
        if not waits:
            context.check(arg.value)
        if arg.name is not None and arg.name.text != parameter:
            takes = _takes(what, [parameter] if parameter else [])
            context.findings.error("UNKNOWN_ARGUMENT", f"{what} has no argument `{arg.name.text}`", arg.name, takes)
        elif parameter is None or value is not None:
            context.findings.error("EXTRA_ARGUMENT", f"{what} takes no more arguments", arg.value)
        else:
            value = arg.value
    if method.text == "Wait":
        _check_wait(call, value, context)
    return SystemCall(f"System.{method.text}", method.text, value, Span(call.start, call.end))


def _check_wait(call: Call, value: Expr | None, context: Context) -> None:
    if value is None:
        help_ = "for example `System.Wait(30s)`"
        context.findings.error("MISSING_ARGUMENT", "`System.Wait` needs how long to wait", call, help_)
    elif isinstance(value, Duration | Number):
        if seconds_of(value) is None and value_of(value) != 0:
            context.findings.error("BAD_OPTION", "`System.Wait` waits a duration, or seconds above 0", value)
    elif value_of(value) is not UNKNOWN or sample_of(value) is not UNKNOWN:
        help_ = "for example `System.Wait(30s)`"
        context.findings.error("ARGUMENT_TYPE", "`System.Wait` waits a duration, or seconds", value, help_)


def _target(call: Call) -> str:
    if call.method is not None:
        return f"{call.target.text}.{call.method.text}"
    return call.target.text
