"""A plan as a check (plan.md "Beyond the seed"): what it may cost, and which effects may run without approval.

Owns the two rules. Each gives the problems of a plan, naming the stage that breaks the rule.
"""

from __future__ import annotations

from ..catalog.describe import EXTERNAL, WRITE
from ..language.diagnostics import did_you_mean
from .effects import one_line
from .report import dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .plan import Plan, PlannedCall

    Check: TypeAlias = Callable[[Plan], list[str]]


def cost_check(most: str) -> Check:
    """The check that a run can cost at most so many US dollars. Raises `ValueError` for what is no amount.

    A total that is unbounded or has parts without a price breaks it, unless spend limits stop the run in time.
    """
    limit = amount(most)

    def check(plan: Plan) -> list[str]:
        summary = plan.summary
        if summary.stops_at is not None and summary.stops_at.limit <= limit and not summary.unpriced:
            return []
        if summary.unpriced:
            return [f"{plan.pipeline}: the cost is not known, for {', '.join(summary.unpriced)} has no price"]
        if summary.unbounded:
            return [f"{plan.pipeline}: the cost has no bound, for {summary.unbounded[0]}"]
        if summary.cost is None or summary.cost <= limit:
            return []
        problem = f"{plan.pipeline}: could cost {dollars(summary.cost)}, more than ${most.strip().removeprefix('$')}"
        dearest = max((s for s in plan.stages if s.cost), key=lambda s: s.cost or 0, default=None)
        if dearest is not None:
            told = dollars(dearest.cost or 0)
            problem += f"; the dearest is stage {dearest.number}, {dearest.target}, with {told}"
        return [problem]

    return check


def effects_check(denied: str) -> Check:
    """The check that no call with one of the effects (`external,write`) runs without approval. A call whose effect is
    not described counts as external. Raises `ValueError` for an unknown effect."""
    effects = [word.strip() for word in denied.split(",") if word.strip()]
    for word in effects:
        if word not in (EXTERNAL, WRITE):
            near = did_you_mean(word, (EXTERNAL, WRITE))
            raise ValueError(f"--deny takes external, write or both, not `{word}`{f'; {near}' if near else ''}")
    if not effects:
        raise ValueError("--deny takes external, write or both")

    def breaks(call: PlannedCall) -> bool:
        return not call.approval and (call.effect or EXTERNAL) in effects

    def check(plan: Plan) -> list[str]:
        problems: dict[str, str] = {}
        for stage in plan.stages:
            for call in stage.calls:
                if breaks(call) and call.target not in problems:
                    what = call.effect or "effect not described"
                    act = f"stage {stage.number} may run {one_line(call.target)} ({what})"
                    problems[call.target] = f"{plan.pipeline}: {act} without approval"
        return list(problems.values())

    return check


def amount(text: str) -> int:
    """US dollars as nano-dollars, rounded down. Raises `ValueError` for what is no amount."""
    whole, _, decimals = text.strip().removeprefix("$").partition(".")
    digits = whole + decimals
    if not digits.isascii() or not digits.isdigit() or len(whole) > 9:
        raise ValueError(f"--max-cost takes US dollars, such as 1.00, and got `{text[:40]}`")
    return int(whole or "0") * 1_000_000_000 + int(f"{decimals:0<9}"[:9])
