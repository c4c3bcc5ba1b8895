"""What changed between two plans, for a review (plan.md).

Owns what counts as a change, and as widening: a new call, one with a graver effect, more often, with a longer reply, or
no longer with approval; a gate or a question to a person taken away; a higher or no bound on the cost; a limit raised
or gone. Works on the documents of `document.py`, so that a kept plan can be compared.
"""

from __future__ import annotations

from ..language.record import Record
from .report import dollars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_RANK = {"read": 0, "write": 1, "external": 2, None: 3}
"""How grave an effect is; one that is not described may be any."""

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
    """All that one plan says of one thing that is called, in all the stages that call it. `times` counts what is
    bounded, `items` what is done for each item of lists; `tokens` is the longest reply."""

    effect: str | None
    approved: bool
    times: int
    items: int
    tokens: int


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
    if (old.items, old.times) != (new.items, new.times):
        text = f"{words}: {_often(old)} → {_often(new)}"
        yield Change(name, "~", text, (new.items, new.times) > (old.items, old.times))
    if old.tokens != new.tokens:
        text = f"{words}: replies of up to {old.tokens} → {new.tokens} tokens"
        yield Change(name, "~", text, new.tokens > old.tokens)


def _changed_asks(name: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    before, after = _asks(old), _asks(new)
    for text in after:
        if after[text] > before.get(text, 0):
            yield Change(name, "+", text, False)
    for text in before:
        if before[text] > after.get(text, 0):
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
    if old["stopsAt"] != new["stopsAt"]:
        text = f"where spend limits stop the run: {_limit(old['stopsAt'])} → {_limit(new['stopsAt'])}"
        wider = old["stopsAt"] is not None and (new["stopsAt"] is None or new["stopsAt"] > old["stopsAt"])
        yield Change(name, "~", text, wider)


def _calls(plan: dict[str, Any]) -> dict[tuple[str, str], _Call]:
    found: dict[tuple[str, str], _Call] = {}

    def add(key: tuple[str, str], effect: str | None, stage: dict[str, Any], approved: bool, requests: int = 1) -> None:
        times, items = (0, stage["loops"] * requests) if stage["times"] is None else (stage["times"] * requests, 0)
        tokens = stage["maxTokens"] or 0
        known = found.get(key)
        if known is not None:
            approved, tokens = approved and known.approved, max(tokens, known.tokens)
            times, items = times + known.times, items + known.items
            effect = max(effect, known.effect, key=lambda one: _RANK[one])
        found[key] = _Call(effect, approved, times, items, tokens)

    for stage in plan["stages"]:
        for call in stage["calls"]:
            add((call["by"], call["target"]), call["effect"], {**stage, "maxTokens": None}, bool(call["approval"]))
        if stage["kind"] == "agent":
            add(("model", f"{stage['target']} [{stage['model']}]"), "read", stage, False, stage["requests"] or 0)
        elif stage["kind"] == "pipeline":
            note = f" ({stage['note']})" if stage["note"] else ""
            add(("enters", f"{stage['target']}{note}"), "read", stage, False)
    return found


def _asks(plan: dict[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for stage in plan["stages"]:
        if stage["kind"] in ("yield", "gate"):
            found[stage["text"]] = found.get(stage["text"], 0) + 1
    return found


def _all_of(plan: dict[str, Any]) -> list[str]:
    return [_line(key, call) for key, call in _calls(plan).items()] + [
        f"worst-case model cost: {_shown(_bound(plan['summary']))}"
    ]


def _line(key: tuple[str, str], call: _Call) -> str:
    if key[0] in ("model", "enters"):
        return f"{_words(key)}: {_often(call)}"
    approval = " · needs approval" if call.approved else ""
    return f"{_words(key)}: {call.effect or 'not described'}{approval}"


def _words(key: tuple[str, str]) -> str:
    by, target = key
    return f"{_VERBS[by]} {target}"


_VERBS = {"pipeline": "calls", "agent": "may call", "model": "asks", "enters": "goes into"}


def _often(call: _Call) -> str:
    rows = [f"×{call.times}"] if call.times or not call.items else []
    if call.items:
        rows.append(f"×{call.items} × each item" if call.items > 1 else "× each item")
    return " and ".join(rows)


def _bound(summary: dict[str, Any]) -> float:
    if summary["unbounded"]:
        return _ENDLESS
    return float(summary["maxCost"] or 0)


def _shown(bound: float) -> str:
    return "unbounded" if bound == _ENDLESS else dollars(round(bound * 1_000_000_000))


def _limit(limit: float | None) -> str:
    if limit is None:
        return "none"
    whole, _, decimals = f"{limit:.9f}".rstrip("0").partition(".")
    return f"${whole}.{decimals:0<2}"
