"""Whether a plan was sound for a run: what it promised of calls, approvals, requests and cost, and what happened."""

from __future__ import annotations

from random import Random
from typing import Any

import plan_programs as world
from plan_runs import AGENT, History, checked, price, run

from halo_lang.app.project import Project
from halo_lang.doors.within import Within
from halo_lang.plan import making
from halo_lang.plan.document import document, read_document
from halo_lang.plan.making import make_plan
from halo_lang.plan.plan import Plan, PlannedStage

RANK = {"read": 0, "write": 1, "external": 2, None: 3}


class Blocks:
    """The blocks of a plan by the number of a stage of a run, which may lie in a listing that is only referred to."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.by_number: dict[str, list[PlannedStage]] = {}
        for stage in plan.stages:
            self.by_number.setdefault(stage.number, []).append(stage)

    def at(self, number: str) -> list[PlannedStage]:
        """All blocks that may stand for a stage; several where calls share a number."""
        places = {""}
        parts = number.split(".")
        for part in parts[:-1]:
            places = {inner for place in places for inner in self._inside(place + part)}
        return [block for place in places for block in self.by_number.get(place + parts[-1], ())]

    def _inside(self, number: str) -> set[str]:
        """The prefixes of the listings of the pipelines that a stage calls."""
        found = set()
        for block in self.by_number.get(number, ()):
            if block.kind != "pipeline":
                continue
            if block.again is None:
                found.add(f"{number}.")
            elif block.again.startswith("as listed at "):
                found.add(block.again.removeprefix("as listed at ") + ".")
            elif block.again.startswith("calls itself"):
                found |= self._around(number, block.target)
        return found

    def _around(self, number: str, target: str) -> set[str]:
        """The listings of a pipeline that lie around a stage, or that stand for it where the plan is crowded."""
        found = {""} if target == self.plan.pipeline else set()
        found |= {
            f"{b.number}." for b in self.plan.stages if b.kind == "pipeline" and b.target == target and b.again is None
        }
        return found


def problems_of(seed: int) -> list[str] | None:
    """What is wrong with the plan of the program of a seed, or with its run; None where the program has an error."""
    chance = Random(seed)
    made = world.made_program(chance)
    program = checked(made.text)
    if not program.ok:
        return None
    allowance = chance.choice((2_000, 2_000, 0, 700))
    kept = making.MAX_LINES
    if chance.random() < 0.3:
        making.MAX_LINES = chance.choice((0, 3, 8))  # so that listings are referred to
    try:
        plan = make_plan(program, "P0", price, allowance)
    finally:
        making.MAX_LINES = kept
    within = _within(program, plan, allowance) if chance.random() < 0.25 else None
    stops_at = None if plan.summary.stops_at is None else plan.summary.stops_at.limit
    history = run(program, made, chance, allowance=allowance, stops_at=stops_at, within=within)
    return list(dict.fromkeys([*history.problems, *broken(plan, history), *broken_money(plan, history)]))


def _within(program: Any, plan: Plan, allowance: int) -> Within:
    from json import dumps

    keys = {"prices": "2026-11-30", "prices_key": Project(None, {}, world.PRICES).prices_key()}
    kept = document(program, [plan], input_tokens=allowance, **keys)
    return Within(read_document(dumps(kept).encode()), "P0")


def broken(plan: Plan, history: History) -> list[str]:
    """Promises on calls, approvals and requests that a run has broken."""
    found: list[str] = []
    blocks = Blocks(plan)
    requests: dict[tuple[str, str], int] = {}
    by_scope: dict[tuple[str, str, Any], int] = {}
    costs: dict[tuple[str, str], int] = {}
    for event in history.events:
        call = event.call
        where = blocks.at(call.stage)
        if call.kind == AGENT:
            own = [b for b in where if b.kind == "agent" and b.target == call.target and b.shadow == call.shadow]
            if not own:
                found.append(f"{call.stage} {call.target}: a request that the plan has not")
            key = (call.stage, call.target)
            requests[key] = requests.get(key, 0) + 1
            by_scope[(*key, call.scope)] = by_scope.get((*key, call.scope), 0) + 1
            if event.within:
                costs[key] = costs.get(key, 0) + (event.cost or 0)
            if call.request is not None and any(call.request.max_tokens > (b.max_tokens or 0) for b in own):
                found.append(f"{call.stage} {call.target}: more tokens than the plan has")
        elif call.target not in ("System.Now", "System.Wait"):
            found += _broken_call(where, event)
    for (number, target), count in requests.items():
        own = [b for b in blocks.at(number) if b.target == target]
        if all(b.number == number and b.times is not None for b in own) and not _refers(plan):
            if count > sum((b.requests or 0) * (b.times or 0) for b in own):
                found.append(f"{number} {target}: {count} requests, more than the plan has")
            if (
                own
                and all(b.cost is not None for b in own)
                and costs.get((number, target), 0) > sum(b.cost or 0 for b in own)
            ):
                found.append(f"{number} {target}: dearer than the plan says")
    for (number, target, _), count in by_scope.items():
        own = [b for b in blocks.at(number) if b.target == target]
        most = sum((b.requests or 0) * b.loops for b in own)
        if count > most and all(b.number == number for b in own) and not _refers(plan):
            found.append(f"{number} {target}: {count} requests in one branch, more than the plan has")
    for call in history.refused:
        found.append(f"{call.stage} {call.target}: refused by the run's own plan")
    return found


def _refers(plan: Plan) -> bool:
    """Whether some listing stands for several calls: the bounds in it are then not all that may happen there."""
    return any(stage.again is not None and not stage.again.startswith("would be") for stage in plan.stages)


def _broken_call(where: list[PlannedStage], event: Any) -> list[str]:
    call = event.call
    by = "pipeline" if call.by is None else "agent"
    tool = call.target.partition(".")[0]
    own = [c for b in where for c in b.calls if c.by == by and c.target in (call.target, f"{tool}.*")]
    if not own:
        return [f"{call.stage} {call.target}: a call that the plan has not"]
    found = []
    if tool != "System" and all(RANK[call.effect] > RANK[c.effect] for c in own):
        found.append(f"{call.stage} {call.target}: of a graver effect than the plan says")
    if all(c.approval for c in own) and not event.approved:
        found.append(f"{call.stage} {call.target}: not approved, although the plan says that it needs to be")
    return found


def broken_money(plan: Plan, history: History) -> list[str]:
    """Promises on the cost of a whole run that it has broken."""
    found: list[str] = []
    summary = plan.summary
    priced = [e for e in history.events if e.call.kind == AGENT and not e.call.request.model.startswith("Env.")]
    spent = sum(e.cost or 0 for e in priced if e.within)
    if not summary.unbounded and spent > (summary.cost or 0):
        found.append(f"the run cost {spent}, and the plan says {summary.cost}")
    for event in priced:
        if price(event.call.request.model) is not None and not summary.has_cost:
            found.append(f"{event.call.target} has a price, and the plan has no cost")
    ledger = history.ledger
    if ledger is not None:
        if ledger.reserved:
            found.append(f"{ledger.reserved} is still reserved after the run")
        if ledger.spent + ledger.unsettled < history.billed:
            found.append(f"{history.billed} was billed, and the ledger knows of {ledger.spent + ledger.unsettled}")
        if history.cost != ledger.spent:
            found.append(f"the run shows a cost of {history.cost}, and the ledger of {ledger.spent}")
    found += _broken_summary(plan, history)
    return found


def _broken_summary(plan: Plan, history: History) -> list[str]:
    """Whether the summary has all that was done without asking."""
    summary, found = plan.summary, []
    for event in history.events:
        call = event.call
        if call.kind == AGENT or call.target in ("System.Now", "System.Wait"):
            continue
        tool = call.target.partition(".")[0]
        if call.policies and not event.approved:
            found.append(f"{call.target}: wants approval, and ran without")
        listed = {*summary.external, *summary.writes, *summary.not_described}
        if call.effect != "read" and not call.policies and not {call.target, f"{tool}.*"} & listed:
            found.append(f"{call.target}: runs without asking, and the summary has it not")
    return found
