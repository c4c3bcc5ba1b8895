"""Making a plan from a checked program (plan.md): pure, and in time linear in what it lists.

Owns the walk over pipelines. What a policy says of a call comes from `check.policies.decide`, which the run asks too,
so that the two cannot disagree. A called pipeline is listed each time it is called; what it can cost and do is worked
out once. Read `bounds.py` for costs, `report.py` for the text.
"""

from __future__ import annotations

from ..check.program import (
    AgentCall,
    BrokenCall,
    GateStage,
    ListenStage,
    LoopStage,
    PipelineCall,
    SystemCall,
    ToolCall,
    YieldStage,
)
from ..language.ast import Path, Text
from ..language.record import Record, replace
from .bounds import INPUT_TOKENS, MAX_COST, MAX_TIMES, call_cost, each_limit, loops_around, model_name, requests
from .effects import made_call, offered_calls, one_line, planned_calls, system_call, with_policies
from .plan import Plan, PlannedStage
from .totals import summed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..check.program import CheckedCall, CheckedPipeline, CheckedProgram, CheckedStage, Policy
    from ..language.source import Source, Span
    from .bounds import Prices
    from .plan import PlannedCall

MAX_LINES = 10_000
"""Blocks after which a pipeline that was listed before is referred to, not listed again."""

MAX_DEPTH = 16
"""Calls nest no deeper (language.md §6): what would stand deeper fails before it does anything."""


def make_plan(program: CheckedProgram, pipeline: str, prices: Prices, input_tokens: int = INPUT_TOKENS) -> Plan:
    """The plan of a pipeline. `prices` gives the price that bounds a model, or None; `input_tokens` is the allowance
    for inputs that cannot be known. What has an error is left out. Raises `KeyError` for a name that is none."""
    listing = _Listing(program, prices, input_tokens)
    listing.add_root(program.pipelines[pipeline])
    return Plan(pipeline, tuple(listing.stages), summed(program, pipeline, prices, input_tokens))


class _Around(Record):
    """What stands around the stages of a pipeline that is being listed: the number before theirs, how often it can
    run, whether an `each` without a limit is around it, the conditions of arms, the policies, and the calls that lead
    here."""

    prefix: str
    times: int
    each_item: bool
    conditions: tuple[str, ...]
    policies: tuple[Policy, ...]
    callers: tuple[str, ...]


class _Listing:
    """The blocks of one plan.

    `_listed` says where a pipeline is listed under some policies, and how deep that is. A listing covers every call of
    the pipeline under these or more policies that stands as deep or deeper: what it leaves out for calling itself
    stands in a listing around it, under no more policies. So only such a call is ever referred to it.
    """

    def __init__(self, program: CheckedProgram, prices: Prices, input_tokens: int) -> None:
        self._program = program
        self._prices = prices
        self._input_tokens = input_tokens
        self._listed: dict[tuple[str, frozenset[str]], tuple[int, str]] = {}
        self._loops: dict[str, tuple[int, ...]] = {}
        self._costs: dict[tuple[Span, bool], int | None] = {}
        self._offered: dict[tuple[Span, tuple[str, ...]], tuple[PlannedCall, ...]] = {}
        self.stages: list[PlannedStage] = []

    def add_root(self, pipeline: CheckedPipeline) -> None:
        self._listed[(pipeline.name, _names(pipeline.policies))] = (0, "")
        self._add_pipeline(pipeline, _Around("", 1, False, (), pipeline.policies, (pipeline.name,)))

    def _add_pipeline(self, pipeline: CheckedPipeline, around: _Around) -> None:
        loops = self._loops.get(pipeline.name)
        if loops is None:
            loops = self._loops[pipeline.name] = loops_around(pipeline)
        for stage, own in zip(pipeline.stages, loops, strict=True):
            self._add_stage(stage, around if own == 1 else replace(around, times=_product(around.times, own)))

    def _add_stage(self, stage: CheckedStage, around: _Around) -> None:
        number = f"{around.prefix}{stage.number}"
        words = _words(stage, self._program.source)
        if words is not None:
            kind, target = words
            self._add(number, kind, target, stage.span, around)
            return
        limit = each_limit(stage)
        if limit != 1:
            times, each_item = _product(around.times, limit or 1), around.each_item or limit is None
            around = replace(around, times=times, each_item=each_item)
        for call, condition, shadow in planned_calls(stage):
            inside = around
            if condition is not None:
                inside = replace(around, conditions=(*around.conditions, condition))
            self._add_call(number, call, inside, shadow=shadow)

    def _add_call(self, number: str, call: CheckedCall, around: _Around, *, shadow: bool) -> None:
        match call:
            case AgentCall():
                once = self._cost(call, shadow=shadow)
                tools = call.tools and not shadow
                self._add(
                    number,
                    "agent",
                    call.target,
                    call.span,
                    around,
                    model=model_name(call),
                    cost=None if once is None else min(once * around.times, MAX_COST),
                    shadow=shadow,
                    calls=self._offers(call, around.policies) if tools else (),
                    requests=requests(call, shadow=shadow),
                    max_tokens=call.options.max_tokens,
                    steps=call.options.max_steps if tools else None,
                )
            case ToolCall():
                made = made_call(call, around.policies)
                if made is not None:
                    provider = call.tool.provider
                    self._add(number, "tool", call.target, call.span, around, calls=(made,), provider=provider)
            case SystemCall():
                self._add(number, "system", call.target, call.span, around, calls=system_call(call))
            case PipelineCall():
                self._add_pipeline_call(number, call, around)
            case BrokenCall():
                return

    def _add_pipeline_call(self, number: str, call: PipelineCall, around: _Around) -> None:
        called, depth = self._program.pipelines[call.target], len(around.callers)
        policies = with_policies(around.policies, called.policies)
        known = self._listed.get((call.target, _names(policies)))
        is_crowded = len(self.stages) > MAX_LINES
        if is_crowded and (known is None or known[0] > depth):
            # Not once more for every combination of policies around it: as if none were, which hides no call and
            # promises no approval.
            policies = called.policies
            known = self._listed.get((call.target, _names(policies)))
        is_covered = known is not None and known[0] <= depth
        again = None
        if call.target in around.callers and (is_covered or not is_crowded):
            again = f"calls itself, up to {MAX_DEPTH} deep"
        elif depth > MAX_DEPTH:
            again = f"would be more than {MAX_DEPTH} deep, and fails"
        elif is_crowded and is_covered and known is not None:
            again = f"as listed at {known[1]}"
        self._add(number, "pipeline", call.target, call.span, around, again=again)
        if again is None:
            if not is_covered:
                self._listed[(call.target, _names(policies))] = (depth, number)
            inside = replace(around, prefix=f"{number}.", policies=policies, callers=(*around.callers, call.target))
            self._add_pipeline(called, inside)

    def _add(self, number: str, kind: str, target: str, span: Span, around: _Around, **more: Any) -> None:
        times = None if around.each_item else around.times
        self.stages.append(
            PlannedStage(
                number, kind, target, span, times=times, loops=around.times, conditions=around.conditions, **more
            )
        )

    def _cost(self, call: AgentCall, *, shadow: bool) -> int | None:
        key = (call.span, shadow)
        if key not in self._costs:
            self._costs[key] = call_cost(call, self._prices, self._input_tokens, shadow=shadow)
        return self._costs[key]

    def _offers(self, call: AgentCall, policies: tuple[Policy, ...]) -> tuple[PlannedCall, ...]:
        key = (call.span, tuple(policy.name for policy in policies))
        if key not in self._offered:
            self._offered[key] = tuple(offered_calls(self._program, call, policies))
        return self._offered[key]


def _product(times: int, more: int) -> int:
    return min(times * more, MAX_TIMES)


def _names(policies: tuple[Policy, ...]) -> frozenset[str]:
    return frozenset(policy.name for policy in policies)


def _words(stage: CheckedStage, source: Source) -> tuple[str, str] | None:
    """The kind and the words of a stage that calls nothing, else None."""
    match stage:
        case GateStage():
            return "gate", f"gate if {one_line(stage.text)}"
        case LoopStage():
            tries = f"{stage.max} {'try' if stage.max == 1 else 'tries'}"
            return "loop", f"back to {stage.agent} while {one_line(stage.text)}, up to {tries}"
        case YieldStage():
            message = stage.message
            if message is None:
                return "yield", "asks a person"
            if isinstance(message, Text):
                return "yield", f'asks a person: "{one_line(_shown(message))}"'
            return "yield", f"asks a person: {one_line(source.text[message.start : message.end])}"
        case ListenStage():
            event = stage.event if isinstance(stage.event, str) else source.text[stage.event.start : stage.event.end]
            return "listen", f"waits for {one_line(event)}"
    return None


def _shown(text: Text) -> str:
    """A text as it was written, insertions too."""
    return "".join(part if isinstance(part, str) else "{{" + _path(part) + "}}" for part in text.parts)


def _path(path: Path) -> str:
    return ".".join([path.root, *map(str, path.parts)])
