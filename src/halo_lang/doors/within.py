"""Within: holds a run to a kept plan (plan.md `--within`).

Owns what a kept plan allows: which calls, by whom, and how many model requests. A call beyond it is answered with
`BEYOND_PLAN` and never made. The cost is held by the spend limit's ledger, with the plan's total as a limit for all.
"""

from __future__ import annotations

from ..boundary.call import AGENT, TOOL, Limit, failed
from .spend import BEYOND_PLAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..boundary.call import Answer, Call

UNTOUCHING = ("System.Now", "System.Wait")
"""Calls that touch nothing outside, which a plan does not list."""


class Within:
    """What the plan of one pipeline in a kept document allows. Raises `KeyError` where the pipeline is not in it."""

    def __init__(self, document: dict[str, Any], pipeline: str) -> None:
        plan = next((p for p in document["pipelines"] if p["name"] == pipeline), None)
        if plan is None:
            raise KeyError(pipeline)
        summary = plan["summary"]
        self._calls: set[tuple[str, str]] = set()
        self._requests: dict[tuple[str, str], float] = {}
        # A plan that lists a pipeline's stages once for all the times it is called does not count its requests.
        self._counts = all(stage["note"] is None for stage in plan["stages"])
        for stage in plan["stages"]:
            self._calls.update((call["target"], call["by"]) for call in stage["calls"])
            if stage["kind"] == "agent":
                key = (stage["target"], stage["model"])
                times = float("inf") if stage["times"] is None else stage["times"]
                self._requests[key] = self._requests.get(key, 0) + times * stage["requests"]
        bounded = summary["maxCost"] is not None and not summary["unpriced"]
        amount = round(summary["maxCost"] * 1_000_000_000) if bounded else 0
        self.limit = Limit(amount, f"{amount / 1_000_000_000:.4f}", BEYOND_PLAN) if bounded else None

    def refusal(self, call: Call) -> Answer | None:
        """The refusal of a call that the plan has not, or None; a request that is let through is counted."""
        if call.kind == TOOL and call.target not in UNTOUCHING:
            return self._refused_tool(call)
        if call.kind == AGENT and call.request is not None:
            key = (call.target, call.request.model)
            left = self._requests.get(key, 0)
            if left < 1:
                what = f"one more request of {call.target} [{call.request.model}] is beyond the kept plan"
                return failed("BEYOND_PLAN", what)
            if self._counts:
                self._requests[key] = left - 1
        return None

    def _refused_tool(self, call: Call) -> Answer | None:
        by = "pipeline" if call.by is None else "agent"
        tool = call.target.partition(".")[0]
        if (call.target, by) in self._calls or (f"{tool}.*", by) in self._calls:
            return None
        return failed("BEYOND_PLAN", f"the call of {call.target} is beyond the kept plan")
