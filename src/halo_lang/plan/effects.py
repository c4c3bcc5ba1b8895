"""Effects: what each call of a pipeline may do under the policies that govern it (plan.md, tools.md §3).

Owns which methods a call can reach and what they need. Whether a policy hides a method or wants a person is asked of
`check.policies.decide`, as the run asks it.
"""

from __future__ import annotations

from ..catalog.describe import EXTERNAL
from ..check.policies import decide, may_allow
from ..check.program import BranchStage, CallStage, EachStage, FanOutStage
from .plan import PlannedCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..check.program import AgentCall, CheckedCall, CheckedProgram, CheckedStage, Policy, SystemCall, ToolCall


MAX_TEXT = 1_000
"""Characters of a condition or message that a plan shows."""


def planned_calls(stage: CheckedStage) -> Iterator[tuple[CheckedCall, str | None, bool]]:
    """The calls of a stage, each with its arm's mark (`if kind == "bug"`, `else`) and whether it is a shadow."""
    match stage:
        case CallStage():
            if stage.shadow is not None:
                yield stage.shadow, None, True
            yield stage.call, None, False
        case BranchStage():
            for arm in stage.arms:
                yield arm.call, "else" if arm.text is None else f"if {one_line(arm.text)}", False
        case FanOutStage():
            for member in stage.members:
                yield member.call, None, False
        case EachStage():
            yield stage.call, None, False


def made_call(call: ToolCall, policies: tuple[Policy, ...]) -> PlannedCall | None:
    """What a pipeline's call of a tool does, or None where the policies exclude it (it then fails)."""
    effect = None if call.method is None else call.method.effect
    claimed = call.method is not None and call.method.claimed
    decision = decide(policies, call.target, effect)
    return PlannedCall(call.target, effect, "pipeline", decision.approval, claimed) if decision.allowed else None


def offered_calls(program: CheckedProgram, call: AgentCall, policies: tuple[Policy, ...]) -> Iterator[PlannedCall]:
    """The methods that an agent may call, in the order of the tools and of each provider."""
    governing = with_policies(policies, call.agent.policies)
    for name in call.tools:
        tool = program.tools[name]
        if tool.methods is None:
            if may_allow(governing, name):
                yield PlannedCall(f"{name}.*", None, "agent", decide(governing, f"{name}.*", None).approval)
            continue
        for method in tool.methods:
            target = f"{name}.{method.name}"
            decision = decide(governing, target, method.effect)
            if decision.allowed:
                yield PlannedCall(target, method.effect, "agent", decision.approval, method.claimed)


def with_policies(around: tuple[Policy, ...], own: tuple[Policy, ...]) -> tuple[Policy, ...]:
    """Policies that hold together: those around first, each once."""
    if not own or not around:
        return own or around
    known = {policy.name for policy in around}
    return (*around, *(policy for policy in own if policy.name not in known))


def system_call(call: SystemCall) -> tuple[PlannedCall, ...]:
    """What a system call does outside: `Publish` alone does anything."""
    return (PlannedCall(call.target, EXTERNAL, "pipeline", ()),) if call.method == "Publish" else ()


def one_line(text: str) -> str:
    """Text as one line of a plan: every run of blanks as one space, what a terminal would obey as the escape that the
    language writes it with, and what is long cut. So nothing that stands in a file can hide a line of its plan."""
    line = " ".join(text[: 4 * MAX_TEXT].split())
    if len(line) > MAX_TEXT or len(text) > 4 * MAX_TEXT:
        line = f"{line[:MAX_TEXT]}…"
    return line if line.isprintable() else "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in line)
