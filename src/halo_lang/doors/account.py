"""What a run has cost so far, and how many calls it made.

Owns the sums. Amounts are nano-dollars; what an answer cost is said by whoever answered.
"""

from __future__ import annotations

from ..boundary.call import AGENT, TOOL, Call
from ..plan.bounds import INPUT_TOKENS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..boundary.call import Answer, ModelRequest
    from ..boundary.recording import Entry

NANO = 1_000_000_000
"""Nano-dollars in a dollar."""


class Account:
    """Sums over the answers of a run (runs.md §6): `cost` of answered requests, those of failed and stopped branches
    included; `unsettled` what attempts that got no answer may have cost; tokens; model requests and tool calls.
    `beyond` are the stages in which a request had more input than a plan allows for (plan.md "Cost")."""

    __slots__ = ("beyond", "cached", "cost", "input", "llm_calls", "output", "tool_calls", "unsettled")

    def __init__(self) -> None:
        self.cost = 0
        self.unsettled = 0
        self.input = 0
        self.output = 0
        self.cached = 0
        self.llm_calls = 0
        self.tool_calls = 0
        self.beyond: dict[str, None] = {}

    def add(self, call: Call | Entry, answer: Answer) -> None:
        """Adds what answered a call, made now or recorded."""
        kind = call.kind
        if answer.error is not None and _was_refused(answer):
            pass  # it was never made
        elif kind == AGENT:
            self.llm_calls += 1
        elif kind == TOOL and not call.target.startswith("System.") and not call.target.endswith(".*"):
            self.tool_calls += 1
        if answer.cost:
            self.cost += answer.cost
        self.unsettled += answer.unsettled
        usage = answer.usage
        if usage is not None:
            self.input += usage.input
            self.output += usage.output
            self.cached += usage.cached
            # One comparison for the many requests that are small; what stands in a plan is worked out for the others.
            if usage.input > INPUT_TOKENS and isinstance(call, Call) and _is_beyond(call.request, usage.input):
                self.beyond[call.stage] = None


def _was_refused(answer: Answer) -> bool:
    """Whether a limit or a kept plan let nothing of a call through. One that was cut, or tried again, was made."""
    assert answer.error is not None
    return answer.error.code in ("SPEND_LIMIT", "BEYOND_PLAN") and answer.usage is None and not answer.unsettled


def _is_beyond(request: ModelRequest | None, tokens: int) -> bool:
    """Whether a request had more input than a plan counts: what is written, the allowance, the replies before it."""
    if request is None:
        return False
    texts = [request.system, *(part for part in request.messages[0].parts if isinstance(part, str))]
    rounds = sum(message.role == "assistant" for message in request.messages)
    return tokens > sum(len(text.encode()) for text in texts) + INPUT_TOKENS + rounds * request.max_tokens


def dollars(nano: int) -> float:
    """Nano-dollars as dollars, for what is shown and for JSON."""
    return nano / NANO
