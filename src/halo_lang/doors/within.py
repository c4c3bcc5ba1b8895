"""Within: holds a run to a kept plan (plan.md `--within`).

Owns what a kept plan allows: which calls, by whom, with which effects, with or without approval, and how many model
requests. A call beyond it is answered with `BEYOND_PLAN` and never made. The cost is held by the spend limit's ledger,
with the plan's total as a limit for all that the plan has priced.
"""

from __future__ import annotations

from ..boundary.call import AGENT, TOOL, UNTOUCHING, Limit, failed
from ..plan.document import nano
from .account import NANO
from .spend import BEYOND_PLAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..boundary.call import Answer, Call

_ENDLESS = 10**18
"""More requests than any run makes."""

_RANK = {"read": 0, "write": 1, "external": 2, None: 3}
"""How grave an effect is; one that is not described may be any."""


class Within:
    """What the plan of one pipeline in a kept document allows. `file` is the document's, which the run never writes,
    and `sha256` that of its bytes. Raises `KeyError` where the pipeline is not in it."""

    def __init__(self, document: dict[str, Any], pipeline: str, file: str = "", sha256: str = "") -> None:
        self.file = file
        self.sha256 = sha256
        plan = next((p for p in document["pipelines"] if p["name"] == pipeline), None)
        if plan is None:
            raise KeyError(pipeline)
        summary = plan["summary"]
        # By method and who calls it: the rank of its effect, and whether every such call wants a person.
        self._calls: dict[tuple[str, str], tuple[int, bool]] = {}
        self._requests: dict[tuple[str, str], int] = {}
        # A plan that lists a pipeline's stages once for all the times it is called does not count its requests.
        self._counts = all(stage["note"] is None for stage in plan["stages"])
        for stage in plan["stages"]:
            for call in stage["calls"]:
                rank, asks = self._calls.get((call["target"], call["by"]), (0, True))
                rank = max(rank, _RANK[call["effect"]])
                self._calls[(call["target"], call["by"])] = rank, asks and bool(call["approval"])
            if stage["kind"] == "agent" and stage["requests"] is not None:
                key = (stage["target"], stage["model"])
                count = _ENDLESS if stage["times"] is None else min(stage["times"] * stage["requests"], _ENDLESS)
                self._requests[key] = min(self._requests.get(key, 0) + count, _ENDLESS)
        self.limit: Limit | None = None
        if summary["maxCost"] is not None:
            amount = nano(summary["maxCost"])
            self.limit = Limit(amount, f"{amount / NANO:.4f}", BEYOND_PLAN)

    def refusal(self, call: Call) -> Answer | None:
        """The refusal of a call that the plan has not, or None; a request that is let through is counted."""
        # A plan lists neither what touches nothing outside, nor that a tool is asked for its methods (`Web.*`).
        if call.kind == TOOL and call.target not in UNTOUCHING and not call.target.endswith(".*"):
            return self._refused_tool(call)
        if call.kind == AGENT and call.request is not None:
            key = (call.target, call.request.model)
            left = self._requests.get(key, 0)
            if left < 1:
                what = f"one more request of {call.target} [{call.request.model}] is beyond the kept plan"
                return failed("BEYOND_PLAN", what)
            if self._counts and left < _ENDLESS:
                self._requests[key] = left - 1
        return None

    def made(self, call: Call, answer: Answer) -> None:
        """Counts a request that the run made before, in another process."""
        is_refused = answer.error is not None and answer.error.code == "BEYOND_PLAN"
        if call.kind == AGENT and call.request is not None and self._counts and not is_refused:
            key = (call.target, call.request.model)
            self._requests[key] = self._requests.get(key, 0) - 1

    def _refused_tool(self, call: Call) -> Answer | None:
        by = "pipeline" if call.by is None else "agent"
        tool = call.target.partition(".")[0]
        allowed = self._calls.get((call.target, by)) or self._calls.get((f"{tool}.*", by))
        if allowed is None:
            return failed("BEYOND_PLAN", f"the call of {call.target} is beyond the kept plan")
        if tool == "System":
            return None
        rank, asks = allowed
        if _RANK[call.effect] > rank:
            what = call.effect or "not described"
            return failed("BEYOND_PLAN", f"the effect of {call.target}, {what}, is beyond what the kept plan says")
        if asks and not call.policies:
            return failed("BEYOND_PLAN", f"the call of {call.target} without approval is beyond the kept plan")
        return None
