"""What changed between two plans, for a review (plan.md).

Owns what counts as a change, and as widening: a new call, one with a graver effect, more often, or no longer with
approval; a higher or no bound on the cost; a limit raised or gone. Works on the documents of `document.py`, so that a
kept plan can be compared.
"""

from __future__ import annotations

from ..language.record import Record
from .report import dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_RANK = {"read": 0, "write": 1, "external": 2, None: 3}
_ENDLESS = float("inf")


class Change(Record):
    """One line: `sign` is `+` (added), `-` (taken away) or `~` (changed)."""

    pipeline: str
    sign: str
    text: str
    widens: bool


def difference(before: dict[str, Any], after: dict[str, Any]) -> list[Change]:
    """The changes from one plan document to another, in the order of the pipelines of the second."""
    old = {p["name"]: p for p in before["pipelines"]}
    new = {p["name"]: p for p in after["pipelines"]}
    changes: list[Change] = []
    for name, plan in new.items():
        if name in old:
            changes += _changed(name, old[name], plan)
        else:
            changes.append(Change(name, "+", "the pipeline", True))
            changes += [Change(name, "+", text, True) for text in _all_of(plan)]
    changes += [Change(name, "-", "the pipeline", False) for name in old if name not in new]
    return changes


class _Call(Record):
    """All that one plan says of one method, called by the pipeline or by agents."""

    effect: str | None
    approved: bool
    times: float


def _changed(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    before, after = _calls(old), _calls(new)
    for key, call in after.items():
        if key not in before:
            yield Change(name, "+", _line(key, call), True)
        else:
            yield from _changed_call(name, key, before[key], call)
    for key, call in before.items():
        if key not in after:
            yield Change(name, "-", _line(key, call), False)
    yield from _changed_asks(name, old, new)
    yield from _changed_cost(name, old["summary"], new["summary"])


def _changed_call(name: str, key: tuple[str, str], old: _Call, new: _Call) -> Iterator[Change]:
    words = _words(key)
    if old.effect != new.effect:
        wider = _RANK[new.effect] > _RANK[old.effect]
        text = f"{words}: {old.effect or 'not described'} → {new.effect or 'not described'}"
        yield Change(name, "~", text, wider)
    if old.approved != new.approved:
        yield Change(name, "~", f"{words}: {'needs' if new.approved else 'no longer needs'} approval", old.approved)
    if old.times != new.times:
        text = f"{words}: {_often(old.times)} → {_often(new.times)}"
        yield Change(name, "~", text, new.times > old.times)


def _changed_asks(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    before, after = _asks(old), _asks(new)
    for text in after:
        if text not in before:
            yield Change(name, "+", text, False)
    for text in before:
        if text not in after:
            yield Change(name, "-", text, True)


def _changed_cost(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    before, after = _bound(old), _bound(new)
    if before != after:
        text = f"worst-case model cost: {_shown(before)} → {_shown(after)}"
        yield Change(name, "~", text, after > before)
    for model in new["unpriced"]:
        if model not in old["unpriced"]:
            yield Change(name, "+", f"not priced: {model}", True)
    for model in old["unpriced"]:
        if model not in new["unpriced"]:
            yield Change(name, "-", f"not priced: {model}", False)
    limits = {one["agent"]: one["limit"] for one in old["spendLimits"]}
    now = {one["agent"]: one["limit"] for one in new["spendLimits"]}
    for agent in {**limits, **now}:
        if limits.get(agent) != now.get(agent):
            text = f"spend limit of {agent}: {_limit(limits.get(agent))} → {_limit(now.get(agent))}"
            yield Change(name, "~", text, agent in limits and (agent not in now or now[agent] > limits[agent]))


def _calls(plan: dict[str, Any]) -> dict[tuple[str, str], _Call]:
    found: dict[tuple[str, str], _Call] = {}
    for stage in plan["stages"]:
        times = _ENDLESS if stage["times"] is None else stage["times"]
        for call in stage["calls"]:
            key = (call["by"], call["target"])
            known = found.get(key)
            approved, so_far = bool(call["approval"]), times
            if known is not None:
                approved, so_far = approved and known.approved, known.times + times
            found[key] = _Call(call["effect"], approved, so_far)
        if stage["kind"] == "agent":
            key = ("model", f"{stage['target']} [{stage['model']}]")
            requests = times * stage["requests"]
            found[key] = _Call("read", False, requests + (found[key].times if key in found else 0))
    return found


def _asks(plan: dict[str, Any]) -> dict[str, None]:
    return {stage["text"]: None for stage in plan["stages"] if stage["kind"] in ("yield", "gate")}


def _all_of(plan: dict[str, Any]) -> list[str]:
    return [_line(key, call) for key, call in _calls(plan).items()] + [
        f"worst-case model cost: {_shown(_bound(plan['summary']))}"
    ]


def _line(key: tuple[str, str], call: _Call) -> str:
    if key[0] == "model":
        return f"{_words(key)}: {_often(call.times)}"
    approval = " · needs approval" if call.approved else ""
    return f"{_words(key)}: {call.effect or 'not described'}{approval}"


def _words(key: tuple[str, str]) -> str:
    by, target = key
    return f"{ {'pipeline': 'calls', 'agent': 'may call', 'model': 'asks'}[by] } {target}"


def _often(times: float) -> str:
    return "without bound" if times == _ENDLESS else f"×{times:g}"


def _bound(summary: dict[str, Any]) -> float:
    if summary["unbounded"]:
        return _ENDLESS
    return float(summary["maxCost"] or 0)


def _shown(bound: float) -> str:
    return "unbounded" if bound == _ENDLESS else dollars(round(bound * 1_000_000_000))


def _limit(limit: float | None) -> str:
    return "none" if limit is None else f"${limit:.2f}"
