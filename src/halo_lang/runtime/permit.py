"""Permit: what stands between the language and the door for every tool call (tools.md §3).

Owns the order for one call (exists and allowed, schema, DenyArgs, MaxCalls, approval, the call) and what the run
remembers for it. What a policy says of a method is decided by `check.policies.decide`, which the plan asks too; a tool
never knows that approvals exist. Refusals are given as answers: an agent's go back to the model, a pipeline's fail
the run.
"""

from __future__ import annotations

from ..boundary.call import APPROVAL, TOOL, Answer, Call, approves, approves_all, failed
from ..catalog.describe import arguments_error
from ..check.policies import decide, denied_by, paths_to_deny
from ..language.record import Record
from ..language.values import to_json
from .driver import Ask
from .failure import RunFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..boundary.call import Scope
    from ..catalog.describe import Method
    from ..check.program import PolicyRule, Tool
    from ..language.source import Span
    from ..language.values import Value
    from .state import Frame, Governor, Run

DENIALS = 3
"""Refusals of one method with the same arguments after which the run fails."""


UNUSABLE = "the changed arguments were no JSON object"
"""Why a yes that changes the arguments so is a no."""


class Rights(Record):
    """What all the policies that govern a call say of a method. `counted` are the MaxCalls rules with their owners."""

    allowed: bool
    hidden_by: str | None
    approval: tuple[str, ...]
    deny_args: tuple[PolicyRule, ...]
    counted: tuple[tuple[str, PolicyRule], ...]


class Wanted(Record):
    """A tool call that somebody wants to make: an agent (`by`, `id` its name for the call), or the pipeline. `method`
    is None where the provider does not describe itself."""

    tool: Tool
    method: Method | None
    target: str
    args: dict[str, Value]
    scope: Scope
    stage: str
    span: Span
    by: str | None = None
    id: str | None = None

    @property
    def effect(self) -> str | None:
        return None if self.method is None else self.method.effect


def rights(run: Run, governors: tuple[Governor, ...], target: str, effect: str | None) -> Rights:
    """What the policies of `governors` say of a method; remembered by the run."""
    key = (governors, target)
    known = run.governed.get(key)
    if known is None:
        decisions = [(g.owner, decide(g.policies, target, effect)) for g in governors]
        known = run.governed[key] = Rights(
            all(d.allowed for _, d in decisions),
            next((d.hidden_by for _, d in decisions if d.hidden_by), None),
            tuple(dict.fromkeys(name for _, d in decisions for name in d.approval)),
            tuple(rule for _, d in decisions for rule in d.deny_args),
            tuple((owner, rule) for owner, d in decisions for rule in d.max_calls),
        )
    return known


async def permitted(frame: Frame, governors: tuple[Governor, ...], wanted: Wanted) -> Answer:
    """Makes a tool call if all that governs it lets it through; the answer is the tool's, or the refusal.

    Raises `RunFailure` with `APPROVAL_DENIED` when a person has refused the same call for the third time.
    """
    run = frame.run
    granted = rights(run, governors, wanted.target, wanted.effect)
    if not granted.allowed:
        return failed("DENIED", f"`{wanted.target}` is excluded by the policy {granted.hidden_by}")
    args, digest = wanted.args, None
    refusal = _refused(wanted, granted, args) or _exhausted(run, granted)
    if refusal:
        return refusal
    _take(run, granted)
    while True:
        if granted.approval and wanted.target not in run.standing:
            answer = await Ask(_approval(wanted, args, granted))
            if answer.error is not None:
                _give_back(run, granted)
                return answer
            said: dict[str, Any] = answer.value if isinstance(answer.value, dict) else {}
            if not approves(said):
                _give_back(run, granted)
                unusable = said.get("approved") is True
                return _denied(run, wanted, args, UNUSABLE if unusable else said.get("reason"))
            if approves_all(said):
                run.standing.add(wanted.target)
            if "args" in said and said["args"] != args:
                args = said["args"]
                refusal = _refused(wanted, granted, args)
                if refusal:
                    _give_back(run, granted)
                    return refusal
            digest = answer.digest
        run.count(wanted.target)
        answer = await Ask(_tool_call(wanted, args, digest, granted))
        if answer.error is not None and answer.error.code == "CHANGED" and granted.approval:
            run.uncount(wanted.target)
            run.standing.discard(wanted.target)
            continue
        return answer


def _refused(wanted: Wanted, granted: Rights, args: dict[str, Value]) -> Answer | None:
    if wanted.method is not None:
        trouble = arguments_error(wanted.method, args, by_author=wanted.by is None)
        if trouble:
            return failed("TOOL_ARGUMENTS", f"`{wanted.target}`: {trouble}")
    if granted.deny_args:
        rule = denied_by(granted.deny_args, wanted.tool, args)
        if rule is not None:
            return failed("DENIED", f"`{wanted.target}` with these arguments is refused by the policy {rule.policy}")
    return None


def _exhausted(run: Run, granted: Rights) -> Answer | None:
    for owner, rule in granted.counted:
        if run.used.get((owner, rule.span.start), 0) >= rule.limit:
            of = f" of {', '.join(rule.patterns)}" if rule.patterns else ""
            return failed("DENIED", f"the {rule.limit} calls{of} that the policy {rule.policy} allows are used up")
    return None


def _take(run: Run, granted: Rights) -> None:
    for owner, rule in granted.counted:
        key = (owner, rule.span.start)
        run.used[key] = run.used.get(key, 0) + 1


def _give_back(run: Run, granted: Rights) -> None:
    for owner, rule in granted.counted:
        run.used[(owner, rule.span.start)] -= 1


def _denied(run: Run, wanted: Wanted, args: dict[str, Value], reason: Value) -> Answer:
    key = (wanted.target, to_json(_ordered(args)))
    run.denials[key] = run.denials.get(key, 0) + 1
    said = f": {reason}" if isinstance(reason, str) and reason else ""
    if run.denials[key] >= DENIALS:
        raise RunFailure(
            "APPROVAL_DENIED", f"`{wanted.target}` was refused {DENIALS} times with the same arguments{said}"
        )
    return failed("APPROVAL_DENIED", f"a person refused this call of `{wanted.target}`{said}")


def _ordered(value: Value) -> Value:
    """The value with the keys of its objects in order, so that the same arguments are the same text."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _approval(wanted: Wanted, args: dict[str, Value], granted: Rights) -> Call:
    return Call(
        APPROVAL,
        wanted.target,
        args,
        wanted.scope,
        wanted.stage,
        wanted.span,
        wanted.by,
        wanted.id,
        effect=wanted.effect,
        policies=granted.approval,
    )


def _tool_call(wanted: Wanted, args: dict[str, Value], digest: str | None, granted: Rights) -> Call:
    return Call(
        TOOL,
        wanted.target,
        args,
        wanted.scope,
        wanted.stage,
        wanted.span,
        wanted.by,
        wanted.id,
        effect=wanted.effect,
        policies=granted.approval,
        digest=digest,
        denied_paths=paths_to_deny(granted.deny_args, args) if granted.deny_args else (),
        described=wanted.method,
    )
