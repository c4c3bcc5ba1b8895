"""A plan as JSON (cli.md, `docs/schemas/plan.schema.json`), made and read.

Owns the form of the document, which is also how a plan is kept (`--out`). Amounts are US dollars; up to nine million
of them a float gives back the exact nano-dollars.
"""

from __future__ import annotations

from ..language.diagnostics import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..check.program import CheckedProgram
    from ..language.source import Source
    from .plan import Plan, PlannedStage, Summary

VERSION = 1


def document(
    program: CheckedProgram, plans: Iterable[Plan], *, input_tokens: int, prices: str, prices_key: str
) -> dict[str, Any]:
    """The document of some pipelines' plans. `prices` is the day of the bundled prices, `prices_key` a text that is the
    same only where all prices are."""
    return {
        "version": VERSION,
        "file": program.source.name,
        "sha256": source_key(program.source),
        "pipelines": [_plan(plan, program) for plan in plans],
        "diagnostics": [as_json(diagnostic, program.source) for diagnostic in program.diagnostics],
        "assumes": {"inputTokens": input_tokens, "prices": prices, "pricesKey": prices_key},
    }


def source_key(source: Source) -> str:
    """The SHA-256 of a source's text, by which a kept plan knows its program again."""
    from hashlib import sha256

    return sha256(source.text.encode("utf-8", "surrogatepass")).hexdigest()


def read_document(data: bytes) -> dict[str, Any]:
    """A kept plan. Raises `ValueError` for what is none, or is of another version of Halo."""
    from json import loads

    try:
        found = loads(data)
    except (ValueError, RecursionError):
        raise ValueError("this is no plan: it is no JSON") from None
    if not isinstance(found, dict) or "pipelines" not in found or "version" not in found:
        raise ValueError("this is no plan; `halo plan FILE --out PLAN.json` keeps one")
    if found["version"] != VERSION:
        raise ValueError(f"this plan has version {found['version']}; this Halo reads version {VERSION}: make it anew")
    try:
        _touch_all(found)
    except (KeyError, TypeError, AttributeError):
        raise ValueError("this is no plan: it is damaged; `halo plan FILE --out PLAN.json` makes it anew") from None
    return found


def _touch_all(found: dict[str, Any]) -> None:
    """Looks at all that a reader of a plan relies on."""
    _ = found["sha256"], found["assumes"]["pricesKey"]
    for plan in found["pipelines"]:
        summary = plan["summary"]
        _ = plan["name"], summary["unbounded"], summary["maxCost"], *summary["unpriced"]
        _ = [(limit["agent"], limit["limit"] + 0) for limit in summary["spendLimits"]]
        for stage in plan["stages"]:
            _ = stage["kind"], stage["times"], stage["text"], stage["target"], stage["model"], stage["requests"]
            _ = [(c["by"] + c["target"], c["effect"], list(c["approval"])) for c in stage["calls"]]


def _plan(plan: Plan, program: CheckedProgram) -> dict[str, Any]:
    return {
        "name": plan.pipeline,
        "stages": [_stage(stage, program) for stage in plan.stages],
        "summary": _summary(plan.summary),
    }


def _stage(stage: PlannedStage, program: CheckedProgram) -> dict[str, Any]:
    calls_nothing = stage.kind in ("gate", "yield", "listen", "loop")
    return {
        "number": stage.number,
        "kind": stage.kind,
        "target": None if calls_nothing else stage.target,
        "text": stage.target if calls_nothing else None,
        "model": stage.model,
        "maxCost": _dollars(stage.cost),
        "times": stage.times,
        "condition": " && ".join(stage.conditions) or None,
        "shadow": stage.shadow,
        "requests": stage.requests,
        "maxTokens": stage.max_tokens,
        "steps": stage.steps,
        "calls": [
            {"target": call.target, "effect": call.effect, "by": call.by, "approval": list(call.approval)}
            for call in stage.calls
        ],
        "provider": stage.provider,
        "note": stage.again,
        "line": program.source.position(stage.span.start)[0],
    }


def _summary(summary: Summary) -> dict[str, Any]:
    stops_at = summary.stops_at
    return {
        "maxCost": _dollars(summary.cost),
        "unbounded": bool(summary.unbounded),
        "unboundedBecause": list(summary.unbounded),
        "unpriced": list(summary.unpriced),
        "externalWithoutApproval": list(summary.external),
        "writesWithoutApproval": list(summary.writes),
        "needsApproval": list(summary.approvals),
        "notDescribed": list(summary.not_described),
        "spendLimits": [
            {"agent": limit.agent, "limit": _dollars(limit.limit), "policy": limit.policy} for limit in summary.limits
        ],
        "stopsAt": None if stops_at is None else _dollars(stops_at.limit),
    }


def _dollars(nano: int | None) -> float | None:
    """A float of dollars gives back the whole nano-dollars it was made from up to nine million dollars."""
    return None if nano is None else nano / 1_000_000_000


def nano(dollars: float) -> int:
    """The whole nano-dollars that `dollars` was made from."""
    return round(dollars * 1_000_000_000)
