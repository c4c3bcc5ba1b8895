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
from .bounds import INPUT_TOKENS, call_cost, each_limit, loops_around, model_name, requests
from .effects import made_call, offered_calls, one_line, planned_calls, system_call, with_policies
from .plan import Plan, PlannedStage
from .totals import summed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..check.program import CheckedCall, CheckedPipeline, CheckedProgram, CheckedStage, Policy
    from ..language.source import Source
    from .bounds import Prices

MAX_LINES = 10_000
"""Blocks after which a pipeline that was listed before is referred to, not listed again."""

MAX_DEPTH = 16
"""Calls nest no deeper (language.md §6): what would stand deeper fails before it does anything."""


def make_plan(program: CheckedProgram, pipeline: str, prices: Prices, input_tokens: int = INPUT_TOKENS) -> Plan:
    """The plan of a pipeline. `prices` gives the price that bounds a model, or None; `input_tokens` is the allowance
    for inputs that cannot be known. What has an error is left out. Raises `KeyError` for a name that is none."""
    listing = _Listing(program, prices, input_tokens)
    checked = program.pipelines[pipeline]
    listing.add_pipeline(checked, _Around("", 1, False, (), checked.policies, (pipeline,)))
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
    def __init__(self, program: CheckedProgram, prices: Prices, input_tokens: int) -> None:
        self._program = program
        self._prices = prices
        self._input_tokens = input_tokens
        self._listed: dict[tuple[str, tuple[Policy, ...]], str] = {}
        self.stages: list[PlannedStage] = []

    def add_pipeline(self, pipeline: CheckedPipeline, around: _Around) -> None:
        for stage, loops in zip(pipeline.stages, loops_around(pipeline), strict=True):
            self._add_stage(stage, replace(around, times=around.times * loops))

    def _add_stage(self, stage: CheckedStage, around: _Around) -> None:
        number = f"{around.prefix}{stage.number}"
        words = _words(stage, self._program.source)
        if words is not None:
            kind, target = words
            self.stages.append(_marked(PlannedStage(number, kind, target, stage.span), around))
            return
        for call, condition, shadow in planned_calls(stage):
            limit = each_limit(stage)
            inside = replace(
                around,
                times=around.times * (limit or 1),
                each_item=around.each_item or limit is None,
                conditions=around.conditions if condition is None else (*around.conditions, condition),
            )
            self._add_call(number, call, inside, shadow=shadow)

    def _add_call(self, number: str, call: CheckedCall, around: _Around, *, shadow: bool) -> None:
        match call:
            case AgentCall():
                once = call_cost(call, self._prices, self._input_tokens, shadow=shadow)
                tools = call.tools and not shadow
                block = PlannedStage(
                    number,
                    "agent",
                    call.target,
                    call.span,
                    model_name(call),
                    None if once is None else once * around.times,
                    shadow=shadow,
                    calls=tuple(offered_calls(self._program, call, around.policies)) if tools else (),
                    requests=requests(call, shadow=shadow),
                    max_tokens=call.options.max_tokens,
                    steps=call.options.max_steps if tools else None,
                )
                self.stages.append(_marked(block, around))
            case ToolCall():
                made = made_call(call, around.policies)
                if made is not None:
                    block = PlannedStage(
                        number, "tool", call.target, call.span, calls=(made,), provider=call.tool.provider
                    )
                    self.stages.append(_marked(block, around))
            case SystemCall():
                block = PlannedStage(number, "system", call.target, call.span, calls=system_call(call))
                self.stages.append(_marked(block, around))
            case PipelineCall():
                self._add_pipeline_call(number, call, around)
            case BrokenCall():
                return

    def _add_pipeline_call(self, number: str, call: PipelineCall, around: _Around) -> None:
        called = self._program.pipelines[call.target]
        policies = with_policies(around.policies, called.policies)
        again = None
        if call.target in around.callers:
            again = f"calls itself, up to {MAX_DEPTH} deep"
        elif len(around.callers) > MAX_DEPTH:
            again = f"would be more than {MAX_DEPTH} deep, and fails"
        elif len(self.stages) > MAX_LINES and (call.target, policies) in self._listed:
            again = f"as listed at {self._listed[(call.target, policies)]}"
        block = PlannedStage(number, "pipeline", call.target, call.span, again=again)
        self.stages.append(_marked(block, around))
        if again is None:
            self._listed.setdefault((call.target, policies), number)
            inside = _Around(
                f"{number}.",
                around.times,
                around.each_item,
                around.conditions,
                policies,
                (*around.callers, call.target),
            )
            self.add_pipeline(called, inside)


def _marked(block: PlannedStage, around: _Around) -> PlannedStage:
    return replace(
        block,
        times=None if around.each_item else around.times,
        loops=around.times,
        conditions=around.conditions,
    )


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
            return "listen", f"waits for {event}"
    return None


def _shown(text: Text) -> str:
    """A text as it was written, insertions too."""
    return "".join(part if isinstance(part, str) else "{{" + _path(part) + "}}" for part in text.parts)


def _path(path: Path) -> str:
    return ".".join([path.root, *map(str, path.parts)])
