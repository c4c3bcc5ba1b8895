"""A program as it is checked and resolved: what the plan and the runtime read, so that each asks no name twice.

Owns the records only; `check.py` makes them from the syntax tree, with the diagnostics. Every rule on how a call's
arguments are read (which are instructions, inputs, options; which argument the flowing value fills) has been applied
here once. A `CheckedProgram` exists for a file with errors too: what could not be resolved is a `BrokenCall` or is
left out.
"""

from __future__ import annotations

from ..catalog.describe import EnvRef, Method
from ..language.ast import Expr, Text
from ..language.diagnostics import ERROR, Diagnostic
from ..language.record import Record
from ..language.source import Source, Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from ..language.ast import Program, ReplayTestDecl, TestDecl
    from ..language.values import Value


class PolicyRule(Record):
    """One rule of a policy (tools.md §3). What a rule has no use for is empty.

    `kind` is the rule's name. `patterns`: `Tool.method` patterns of AllowTools, DenyTools, ApproveTools, of DenyArgs
    (one) and MaxCalls (none: every call). `effects`: of ApproveEffects. `args`: DenyArgs' argument names and value
    patterns, all of which must match. `limit`: MaxCalls' number, or MaxSpend's in nano-dollars (rounded down), with
    `limit_text` as it is shown. `redactions`: `email`, `phone`, `card`, `key`, or a regular expression with `regex:`
    before it.
    """

    policy: str
    kind: str
    span: Span
    patterns: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    args: tuple[tuple[str, str], ...] = ()
    limit: int = 0
    limit_text: str = ""
    redactions: tuple[str, ...] = ()


class Policy(Record):
    name: str
    rules: tuple[PolicyRule, ...]
    span: Span


class Tool(Record):
    """A declared tool or store. `methods` is None where its provider does not describe itself (or is unknown).

    `settings` hold the defaults too; a list is a tuple, a duration its seconds, `Env.NAME` an `EnvRef`.
    """

    name: str
    keyword: str
    provider: str
    settings: dict[str, Any]
    methods: tuple[Method, ...] | None
    span: Span

    def method(self, name: str) -> Method | None:
        return next((m for m in self.methods or () if m.name == name), None)


class AgentOptions(Record):
    """Options of an agent or of one call of it; those of the call have been laid over the agent's."""

    max_tokens: int = 4096
    max_steps: int = 10
    temperature: float | None = None
    top_p: float | None = None
    timeout_s: float = 120.0
    retries: int = 2


class Agent(Record):
    name: str
    model: str | EnvRef
    options: AgentOptions
    equips: tuple[str, ...]
    policies: tuple[Policy, ...]
    system: str
    span: Span


class Input(Record):
    """An input of an agent's call. `name` is None for a positional one."""

    name: str | None
    value: Expr


class AgentCall(Record):
    """`instructions` are the positional string literals. `task` is the method's name read as words, or None where
    the call has instructions or is the method `prompt`. `inputs` empty: the flowing value is the input. `tools` names
    the tools that are offered (empty: one request without tools). `options` are the call's own laid over the agent's.
    """

    target: str
    agent: Agent
    method: str
    instructions: tuple[Text, ...]
    task: str | None
    inputs: tuple[Input, ...]
    options: AgentOptions
    tools: tuple[str, ...]
    span: Span


class Bound(Record):
    """An argument bound to a parameter."""

    name: str
    value: Expr


class ToolCall(Record):
    """`flowing` names the parameter that takes the flowing value, if one does. `method` is None where the provider
    does not describe itself: then `""` stands for the name of its first argument, in `args` for a lone positional one,
    in `flowing` where there is none (and counts only if the first argument is not given by name)."""

    target: str
    tool: Tool
    method: Method | None
    args: tuple[Bound, ...]
    flowing: str | None
    span: Span


class SystemCall(Record):
    """`System.Print` and its like. `value` is None for the flowing value. `Wait`'s value is a Duration or any
    expression of seconds."""

    target: str
    method: str
    value: Expr | None
    span: Span


class PipelineCall(Record):
    """`flowing` names the parameter that takes the flowing value, if one does. The pipeline is looked up by name in
    the program, for it may call itself. A parameter in neither takes its default."""

    target: str
    args: tuple[Bound, ...]
    flowing: str | None
    span: Span


class BrokenCall(Record):
    """A call that has an error. It is never run, and plans leave it out."""

    target: str
    span: Span


CheckedCall: TypeAlias = "AgentCall | ToolCall | SystemCall | PipelineCall | BrokenCall"


class CallStage(Record):
    number: int
    call: CheckedCall
    bind: str | None
    shadow: AgentCall | None
    span: Span


class GateStage(Record):
    """`text` is the condition as written."""

    number: int
    condition: Expr
    text: str
    span: Span


class CheckedArm(Record):
    """`condition` and `text` are None for `else`."""

    condition: Expr | None
    text: str | None
    call: CheckedCall


class BranchStage(Record):
    number: int
    arms: tuple[CheckedArm, ...]
    bind: str | None
    span: Span


class CheckedMember(Record):
    call: CheckedCall
    bind: str | None


class FanOutStage(Record):
    number: int
    members: tuple[CheckedMember, ...]
    bind: str | None
    span: Span


class EachStage(Record):
    """`concurrency` is None for the default of 4, `limit` None for none."""

    number: int
    item: str
    source: Expr
    concurrency: Expr | None
    limit: Expr | None
    call: CheckedCall
    bind: str | None
    span: Span


class YieldStage(Record):
    """`channel` is a text, or the name of a tool as one. `timeout_s` is None for no limit."""

    number: int
    message: Expr | None
    channel: Expr | None
    attachments: tuple[Expr, ...]
    timeout_s: float | None
    bind: str | None
    span: Span


class ListenStage(Record):
    """`event` is the event's name, or the path of the context that holds it (`Path` with root `context`)."""

    number: int
    event: str | Expr
    bind: str | None
    span: Span


class LoopStage(Record):
    """`back_to` is the index (from 0) of the stage that it jumps to; `extent` the index of the first stage that lies
    in the loop, which is earlier where a loop inside jumps back further (language.md §7)."""

    number: int
    agent: str
    condition: Expr
    text: str
    max: int
    back_to: int
    extent: int
    bind: str | None
    span: Span


CheckedStage: TypeAlias = (
    "CallStage | GateStage | BranchStage | FanOutStage | EachStage | YieldStage | ListenStage | LoopStage"
)


class Parameter(Record):
    """`type` is one of the language's; `Result` is `Any`. `default` counts only where `required` is false, and is a
    text already where `type` is String."""

    name: str
    type: str
    required: bool
    default: Value
    span: Span


class CheckedPipeline(Record):
    """`bindings` are all the names that an `as` of the pipeline binds. A bare name is, in this order: the item or
    `index` of the `each` around it, one of `bindings`, a parameter (language.md §3)."""

    name: str
    params: tuple[Parameter, ...]
    policies: tuple[Policy, ...]
    source: Expr
    stages: tuple[CheckedStage, ...]
    bindings: frozenset[str]
    span: Span


class CheckedProgram(Record):
    """`syntax` is the tree; the dictionaries keep the order of declaration. `tools` holds the stores too."""

    source: Source
    syntax: Program
    diagnostics: tuple[Diagnostic, ...]
    policies: dict[str, Policy]
    tools: dict[str, Tool]
    agents: dict[str, Agent]
    pipelines: dict[str, CheckedPipeline]
    tests: tuple[TestDecl | ReplayTestDecl, ...]

    @property
    def ok(self) -> bool:
        """Whether there are no errors (warnings may be)."""
        return not any(d.severity == ERROR for d in self.diagnostics)
