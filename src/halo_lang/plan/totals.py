"""What a pipeline can do and cost in all, worked out once a pipeline (plan.md).

Owns the summary. The walks are over pipelines, not over the listing, so that a program whose listing would be huge is
summed up all the same. What cannot be followed further is counted as worse than it is, never as better.
"""

from __future__ import annotations

from ..catalog.describe import EXTERNAL, WRITE
from ..check.program import AgentCall, PipelineCall, SystemCall, ToolCall
from ..language.record import Record
from .bounds import MAX_COST, call_cost, each_limit, loops_around, model_name
from .effects import made_call, offered_calls, planned_calls, system_call, with_policies
from .plan import SpendLimit, Summary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..check.program import CheckedCall, CheckedPipeline, CheckedProgram, Policy, PolicyRule
    from .bounds import Prices
    from .plan import PlannedCall

MAX_GOVERNED = 20_000
"""Calls looked at for each set of policies around them. Past that a pipeline is taken as if none were around it, which
hides no call and promises no approval."""

MAX_REASONS = 3
"""Reasons for an unbounded cost that are named."""


def summed(program: CheckedProgram, pipeline: str, prices: Prices, input_tokens: int) -> Summary:
    """The summary of a pipeline's plan."""
    costs = _Costs(program, prices, input_tokens)
    cost = costs.of(pipeline)
    seen = _Seen()
    for policies, call, is_shadow in _governed_calls(program, pipeline):
        seen.look_at(program, call, policies, is_shadow=is_shadow)
    limits, stops_at = seen.spend_limits()
    return Summary(
        bool(cost.priced),
        None if cost.unbounded or not cost.priced else cost.amount,
        cost.unbounded if cost.priced else (),
        tuple(cost.unpriced),
        tuple(seen.external),
        tuple(seen.writes),
        tuple(seen.approvals),
        tuple(seen.not_described),
        limits,
        stops_at,
    )


def limited_agents(program: CheckedProgram, pipeline: str) -> dict[str, PolicyRule]:
    """The agents that a spend limit holds for in some call that can be reached, each with the first such rule."""
    found: dict[str, PolicyRule] = {}
    for policies, call, _ in _governed_calls(program, pipeline):
        if isinstance(call, AgentCall):
            for policy in with_policies(policies, call.agent.policies):
                for rule in policy.rules:
                    if rule.kind == "MaxSpend":
                        found.setdefault(call.agent.name, rule)
    return found


# Effects and limits ----------------------------------------------------------------------------------------------


def _governed_calls(program: CheckedProgram, pipeline: str) -> Iterator[tuple[tuple[Policy, ...], CheckedCall, bool]]:
    """Every call that can be reached with the policies around it, in the order of first use."""
    root = program.pipelines[pipeline]
    known = {(pipeline, frozenset(p.name for p in root.policies))}
    under_way = [(root.policies, _calls(root))]
    looked_at = 0
    while under_way:
        policies, calls = under_way[-1]
        found = next(calls, None)
        if found is None:
            under_way.pop()
            continue
        yield policies, *found
        looked_at += 1
        call = found[0]
        if isinstance(call, PipelineCall):
            called = program.pipelines[call.target]
            around = with_policies(policies if looked_at < MAX_GOVERNED else (), called.policies)
            key = (call.target, frozenset(p.name for p in around))
            if key not in known:
                known.add(key)
                under_way.append((around, _calls(called)))


def _calls(pipeline: CheckedPipeline) -> Iterator[tuple[CheckedCall, bool]]:
    for stage in pipeline.stages:
        for call, _, is_shadow in planned_calls(stage):
            yield call, is_shadow


class _Seen:
    """What the calls of a plan do, each thing once, in the order of first use."""

    def __init__(self) -> None:
        self.external: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.approvals: dict[str, None] = {}
        self.not_described: dict[str, None] = {}
        self._limits: dict[str, PolicyRule | None] = {}

    def look_at(
        self, program: CheckedProgram, call: CheckedCall, policies: tuple[Policy, ...], *, is_shadow: bool
    ) -> None:
        if isinstance(call, AgentCall):
            self._limit(call.agent.name, with_policies(policies, call.agent.policies))
            if not is_shadow:
                for offered in offered_calls(program, call, policies):
                    self._do(offered)
        elif isinstance(call, ToolCall):
            made = made_call(call, policies)
            if made is not None:
                self._do(made)
        elif isinstance(call, SystemCall):
            for made in system_call(call):
                self._do(made)

    def _do(self, call: PlannedCall) -> None:
        if call.effect is None:
            self.not_described[call.target] = None
        if call.approval:
            self.approvals[call.target] = None
        elif call.effect == EXTERNAL:
            self.external[call.target] = None
        elif call.effect == WRITE:
            self.writes[call.target] = None

    def _limit(self, agent: str, policies: tuple[Policy, ...]) -> None:
        """Of several limits of one call the lowest holds; of several calls of one agent the highest is told."""
        rules = [rule for policy in policies for rule in policy.rules if rule.kind == "MaxSpend"]
        lowest = min(rules, key=lambda rule: rule.limit, default=None)
        if agent not in self._limits:
            self._limits[agent] = lowest
        else:
            known = self._limits[agent]
            if known is not None and (lowest is None or lowest.limit > known.limit):
                self._limits[agent] = lowest

    def spend_limits(self) -> tuple[tuple[SpendLimit, ...], SpendLimit | None]:
        """The limit of each agent all of whose calls have one; and the highest, if that is so of every agent."""
        limits = tuple(
            SpendLimit(agent, rule.limit, rule.limit_text, rule.policy)
            for agent, rule in self._limits.items()
            if rule is not None
        )
        everyone = limits and len(limits) == len(self._limits)
        return limits, max(limits, key=lambda limit: limit.limit) if everyone else None


# Costs -----------------------------------------------------------------------------------------------------------


class _Cost(Record):
    """What a pipeline can cost. `amount` counts only where nothing is `unbounded`. `priced` and `unpriced` are the
    models that it asks, with a price and without; `unbounded` says why, by stages as numbered in this pipeline."""

    amount: int
    unbounded: tuple[str, ...]
    priced: dict[str, None]
    unpriced: dict[str, None]

    @property
    def is_free(self) -> bool:
        return not self.amount and not self.unbounded


class _Costs:
    """Costs by pipeline, worked out once each, callees before callers; no recursion, for calls may chain far."""

    def __init__(self, program: CheckedProgram, prices: Prices, input_tokens: int) -> None:
        self._program = program
        self._prices = prices
        self._input_tokens = input_tokens
        self._known: dict[str, _Cost] = {}

    def of(self, pipeline: str) -> _Cost:
        for group in _callees_first(self._program, pipeline):
            circle = frozenset(group)
            costs = {name: self._sum(self._program.pipelines[name], circle) for name in group}
            if any(name in _called(self._program, name) for name in group) or len(group) > 1:
                costs = _around_again(self._program, costs)
            self._known.update(costs)
        return self._known[pipeline]

    def _sum(self, pipeline: CheckedPipeline, circle: frozenset[str]) -> _Cost:
        """One pass through a pipeline's stages; calls back into the circle of pipelines that it is in are left out."""
        amount = 0
        reasons: list[str] = []
        priced: dict[str, None] = {}
        unpriced: dict[str, None] = {}
        for stage, loops in zip(pipeline.stages, loops_around(pipeline), strict=True):
            for call, _, is_shadow in planned_calls(stage):
                cost = self._call(call, circle, is_shadow=is_shadow)
                if cost is None:
                    continue
                priced.update(cost.priced)
                unpriced.update(cost.unpriced)
                if len(reasons) < MAX_REASONS:
                    reasons += [reason.replace("stage ", f"stage {stage.number}.", 1) for reason in cost.unbounded]
                limit = each_limit(stage)
                if limit is None and not cost.is_free:
                    reasons.append(f"stage {stage.number} runs for each item of a list")
                amount += cost.amount * loops * (limit or 1)
        return _Cost(min(amount, MAX_COST), tuple(reasons[:MAX_REASONS]), priced, unpriced)

    def _call(self, call: CheckedCall, circle: frozenset[str], *, is_shadow: bool) -> _Cost | None:
        if isinstance(call, AgentCall):
            amount = call_cost(call, self._prices, self._input_tokens, shadow=is_shadow)
            name = model_name(call)
            return _Cost(0, (), {}, {name: None}) if amount is None else _Cost(amount, (), {name: None}, {})
        if isinstance(call, PipelineCall) and call.target not in circle:
            return self._known[call.target]
        return None


def _around_again(program: CheckedProgram, costs: dict[str, _Cost]) -> dict[str, _Cost]:
    """The costs of pipelines that call each other in a circle: no bound is told if anything on the way costs."""
    priced = {model: None for cost in costs.values() for model in cost.priced}
    unpriced = {model: None for cost in costs.values() for model in cost.unpriced}
    if all(cost.is_free for cost in costs.values()):
        return {name: _Cost(0, (), priced, unpriced) for name in costs}
    made = {}
    for name, cost in costs.items():
        stage = next(s for s, called in _stages_calling(program, name) if called in costs)
        reasons = (f"stage {stage} calls {name if name in _called(program, name) else 'a pipeline that leads back'}",)
        made[name] = _Cost(0, (*reasons, *cost.unbounded)[:MAX_REASONS], priced, unpriced)
    return made


def _stages_calling(program: CheckedProgram, name: str) -> Iterator[tuple[int, str]]:
    for stage in program.pipelines[name].stages:
        for call, _, _ in planned_calls(stage):
            if isinstance(call, PipelineCall):
                yield stage.number, call.target


def _called(program: CheckedProgram, name: str) -> dict[str, None]:
    return {called: None for _, called in _stages_calling(program, name)}


def _callees_first(program: CheckedProgram, root: str) -> Iterator[list[str]]:
    """The pipelines that can be reached, grouped by the circles in which they call each other, callees before callers
    (Tarjan's algorithm, with a stack of its own)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    under_way: list[tuple[str, Iterator[str]]] = []

    def enter(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        on_stack.add(name)
        under_way.append((name, iter(_called(program, name))))

    enter(root)
    while under_way:
        name, callees = under_way[-1]
        callee = next(callees, None)
        if callee is None:
            under_way.pop()
            if under_way:
                caller = under_way[-1][0]
                low[caller] = min(low[caller], low[name])
            if low[name] == index[name]:
                group: list[str] = []
                while not group or group[-1] != name:
                    group.append(stack.pop())
                    on_stack.discard(group[-1])
                yield group
        elif callee not in index:
            enter(callee)
        elif callee in on_stack:
            low[name] = min(low[name], index[callee])
