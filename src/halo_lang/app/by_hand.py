"""By hand: what a person puts in the place of an answer, or of what a stage asks (docs/reference/debug.md).

Owns how a typed answer is read, and stages with another instruction or another model. Read `debugging.py` next.
"""

from __future__ import annotations

from ..boundary.call import AGENT, APPROVAL, YIELD, Answer, failed
from ..check.program import AgentCall, BranchStage, CallStage, EachStage, FanOutStage
from ..language.ast import Text
from ..language.record import replace
from ..language.values import read_json
from .breakpoints import Trouble, calls_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..boundary.call import Call
    from ..check.program import CheckedCall, CheckedStage
    from ..language.ast import Expr
    from ..language.values import Value


def by_hand(call: Call, text: str, *, fails: bool = False) -> Answer:
    """What was typed as the answer to a call. An agent's is text, as a model's would be; a string in quotes is what it
    says. A person's is yes, no, JSON or text; any other's JSON or text."""
    text = text.strip()
    if fails:
        return failed("MODEL_ERROR" if call.kind == AGENT else "TOOL_ERROR", text)
    try:
        value: Value = read_json(text)
    except ValueError:
        value = text
    if call.kind == AGENT:
        return Answer(value if isinstance(value, str) else text)
    if call.kind in (YIELD, APPROVAL) and text.lower() in ("y", "yes", "n", "no"):
        return Answer({"approved": text.lower() in ("y", "yes")})
    if call.kind == APPROVAL and not isinstance(value, dict):
        return Answer({"approved": value is True})
    return Answer(value)


def varied(stage: CheckedStage, number: str, instruction: Expr | None, model: str | None) -> CheckedStage:
    """A stage, of that number in the run, whose agents are given another instruction, a string literal, or another
    model. Raises `Trouble`."""
    agents = [call for call in calls_of(stage) if isinstance(call, AgentCall)]
    if not agents:
        raise Trouble(
            f"`again` would run stage {number}, the one that ran last, and that asks no agent: "
            "it takes no other instruction or model"
        )
    if instruction is not None and len(agents) > 1:
        raise Trouble(f"stage {number}, the one that ran last, asks several agents; an instruction is for one")
    changes: dict[str, Any] = {}
    if instruction is not None:
        if not isinstance(instruction, Text):
            raise Trouble('an instruction is written as a string: again with "Be brief about {{topic}}."')
        changes |= {"instructions": (instruction,), "task": None}

    def other(call: CheckedCall) -> CheckedCall:
        if not isinstance(call, AgentCall):
            return call
        agent = call.agent if model is None else replace(call.agent, model=model)
        return replace(call, agent=agent, **changes)

    if isinstance(stage, FanOutStage):
        return replace(stage, members=tuple(replace(one, call=other(one.call)) for one in stage.members))
    if isinstance(stage, BranchStage):
        return replace(stage, arms=tuple(replace(arm, call=other(arm.call)) for arm in stage.arms))
    assert isinstance(stage, CallStage | EachStage)
    return replace(stage, call=other(stage.call))
