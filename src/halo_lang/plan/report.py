"""A plan as text, to the character as the seed page *Plan and Replay* shows it (plan.md "Numbers and lines").

Owns the wording and the layout. Pure: gives text, prints nothing.
"""

from __future__ import annotations

from .effects import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .plan import Plan, PlannedCall, PlannedStage, Summary

NANO = 1_000_000_000
"""Nano-dollars in a dollar."""

_DETAIL = " " * 9


def report(plan: Plan) -> str:
    """The whole text of a plan, without a line break at its end."""
    rows = [f"Plan for {plan.pipeline}", ""]
    for stage in plan.stages:
        rows.append(_block(stage))
        rows += [_DETAIL + detail for detail in _details(stage)]
    rows += ["", *summary_lines(plan.summary)] if plan.stages else summary_lines(plan.summary)
    return "\n".join(rows)


def dollars(nano: int, *, places: int = 4) -> str:
    """An amount as it is shown, rounded half up: `$1.3802`."""
    unit = NANO // 10**places
    whole, part = divmod((nano + unit // 2) // unit, 10**places)
    return f"${whole}.{part:0{places}d}"


def summary_lines(summary: Summary) -> list[str]:
    """The lines of the summary, each only where it has something to say."""
    rows = []
    if not (summary.external or summary.writes or summary.approvals or summary.not_described):
        rows.append("Acts on nothing outside.")
    for words, names in (
        ("Acts on the world without asking", summary.external),
        ("Writes without asking", summary.writes),
        ("Needs a person's approval", summary.approvals),
        ("Effect not described", summary.not_described),
    ):
        if names:
            rows.append(f"{words}: {', '.join(map(one_line, names))}")
    if summary.has_cost:
        rows.append(f"Worst-case model cost: {_cost(summary)}")
    if summary.unpriced:
        rows.append(f"Not priced: {', '.join(summary.unpriced)}")
    rows += [
        f"Spend limit: {limit.agent} stops once the run has spent ${limit.text} (policy {limit.policy})"
        for limit in summary.limits
    ]
    return rows


def marks(stage: PlannedStage) -> tuple[str, ...]:
    """What stands behind a block's target: how often it can run, and when."""
    found = []
    if stage.loops != 1:
        found.append(f"×{stage.loops}")
    if stage.times is None:
        found.append("× each item")
    if stage.shadow:
        found.append("shadow")
    found += stage.conditions
    if stage.again is not None:
        found.append(stage.again)
    return tuple(found)


def call_line(call: PlannedCall) -> str:
    """`may call Files.write: write · needs approval (Careful)`, `may call Git.log: read (server's claim)`."""
    verb = "calls" if call.by == "pipeline" else "may call"
    effect = (call.effect or "not described") + (" (server's claim)" if call.claimed else "")
    approval = f" · needs approval ({', '.join(call.approval)})" if call.approval else ""
    return f"{verb} {one_line(call.target)}: {effect}{approval}"


def _block(stage: PlannedStage) -> str:
    head = f"  {stage.number:<6} {stage.target}"
    if stage.model is not None:
        head += f" [{stage.model}]"
    if stage.cost is not None:
        head += f" ≤ {dollars(stage.cost)}"
    return " · ".join([head, *marks(stage)])


def _details(stage: PlannedStage) -> Iterator[str]:
    for call in stage.calls:
        yield call_line(call)
    if stage.steps is not None:
        yield f"chooses its own calls, up to {stage.steps} {'step' if stage.steps == 1 else 'steps'}"
    if stage.provider is not None:
        yield stage.provider


def _cost(summary: Summary) -> str:
    told = f"unbounded, for {summary.unbounded[0]}" if summary.cost is None else dollars(summary.cost)
    if summary.stops_at is not None:
        told += f", but MaxSpend stops the run at ${summary.stops_at.text}"
    return told
