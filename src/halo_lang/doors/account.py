"""What a run has cost so far, and how many calls it made.

Owns the sums. Amounts are nano-dollars; what an answer cost is said by whoever answered.
"""

from __future__ import annotations

from ..boundary.call import AGENT, TOOL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..boundary.call import Answer, Call
    from ..boundary.recording import Entry

NANO = 1_000_000_000
"""Nano-dollars in a dollar."""


class Account:
    """Sums over the answers of a run (runs.md §6): `cost` of answered requests, those of failed and stopped branches
    included; `unsettled` what attempts that got no answer may have cost; tokens; model requests and tool calls."""

    __slots__ = ("cached", "cost", "input", "llm_calls", "output", "tool_calls", "unsettled")

    def __init__(self) -> None:
        self.cost = 0
        self.unsettled = 0
        self.input = 0
        self.output = 0
        self.cached = 0
        self.llm_calls = 0
        self.tool_calls = 0

    def add(self, call: Call | Entry, answer: Answer) -> None:
        """Adds what answered a call, made now or recorded."""
        kind = call.kind
        if kind == AGENT:
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


def dollars(nano: int) -> float:
    """Nano-dollars as dollars, for what is shown and for JSON."""
    return nano / NANO
