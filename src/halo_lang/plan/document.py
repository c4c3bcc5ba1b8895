"""A plan as JSON (cli.md, `docs/schemas/plan.schema.json`), made and read.

Owns the form of the document, which is also how a plan is kept (`--out`). Amounts are US dollars; up to four million
of them a float gives back the exact nano-dollars.
"""

from __future__ import annotations

from ..check.identity import source_key
from ..language.diagnostics import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..check.program import CheckedProgram
    from .plan import Plan, PlannedStage, Summary

VERSION = 1

MAX_BYTES = 256 << 20
"""The largest document that is kept, or read."""


def document(
    program: CheckedProgram, plans: Iterable[Plan], *, input_tokens: int, prices: str, prices_key: str
) -> dict[str, Any]:
    """The document of some pipelines' plans. `prices` is the day of the bundled prices, `prices_key` a text that is the
    same only where all prices are."""
    return {
        "version": VERSION,
        "file": program.source.name,
        "sha256": source_key(program.source),
        "pipelines": [plan_json(plan, program) for plan in plans],
        "diagnostics": [as_json(diagnostic, program.source) for diagnostic in program.diagnostics],
        "assumes": {"inputTokens": input_tokens, "prices": prices, "pricesKey": prices_key},
    }


def read_document(data: bytes) -> dict[str, Any]:
    """A kept plan. Raises `ValueError` for what is none, or is of another version of Halo."""
    from json import loads

    if len(data) > MAX_BYTES:
        raise ValueError(f"this is no plan that Halo kept: it has more than {MAX_BYTES >> 20} MiB")
    try:
        found = loads(data)
    except (ValueError, RecursionError):
        raise ValueError("this is no plan: it is no JSON") from None
    if not isinstance(found, dict) or "pipelines" not in found or "version" not in found:
        raise ValueError("this is no plan; `halo plan FILE --out PLAN.json` keeps one")
    version = found["version"]
    if type(version) is not int or version != VERSION:
        shown = version if type(version) is int else "none that is known"
        raise ValueError(f"this plan has version {str(shown)[:20]}; this Halo reads version {VERSION}: make it anew")
    if not _fits(_DOCUMENT, found):
        raise ValueError("this is no plan: it is damaged; `halo plan FILE --out PLAN.json` makes it anew")
    return found


_TEXTS = [str]
_CALL = {"target": str, "effect": ("read", "write", "external", None), "by": ("pipeline", "agent"), "approval": _TEXTS}
_STAGE = {
    "number": str,
    "kind": str,
    "target": (str, None),
    "text": (str, None),
    "model": (str, None),
    "maxCost": (float, None),
    "times": (int, None),
    "loops": int,
    "requests": (int, None),
    "maxTokens": (int, None),
    "calls": [_CALL],
    "note": (str, None),
}
_SUMMARY = {
    "maxCost": (float, None),
    "unbounded": bool,
    "unpriced": _TEXTS,
    "spendLimits": [{"agent": str, "limit": float, "policy": str}],
    "stopsAt": (float, None),
}
_DOCUMENT = {
    "sha256": str,
    "pipelines": [{"name": str, "stages": [_STAGE], "summary": _SUMMARY}],
    "assumes": {"inputTokens": int, "prices": str, "pricesKey": str},
}
"""All that a reader of a kept plan relies on: an object's keys, a list's items, what one may be, a type or a value."""


def _fits(shape: Any, value: Any) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(name in value and _fits(s, value[name]) for name, s in shape.items())
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(shape[0], item) for item in value)
    if isinstance(shape, tuple):
        return any(_fits(one, value) for one in shape)
    if shape is float:
        return type(value) in (int, float) and 0 <= value <= _MOST_DOLLARS
    if shape is int:
        return type(value) is int and value >= 0
    return type(value) is shape if isinstance(shape, type) else value == shape


_MOST_DOLLARS = 1e100


def plan_json(plan: Plan, program: CheckedProgram) -> dict[str, Any]:
    """One pipeline's plan as the document holds it."""
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
        "loops": stage.loops,
        "condition": " · ".join(stage.conditions) or None,
        "shadow": stage.shadow,
        "requests": stage.requests,
        "maxTokens": stage.max_tokens,
        "steps": stage.steps,
        "calls": [
            {
                "target": call.target,
                "effect": call.effect,
                "claimed": call.claimed,
                "by": call.by,
                "approval": list(call.approval),
            }
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
    """A float of dollars gives back the whole nano-dollars it was made from up to four million dollars."""
    return None if nano is None else nano / 1_000_000_000


def nano(dollars: float) -> int:
    """The whole nano-dollars that `dollars` was made from."""
    return round(dollars * 1_000_000_000)
