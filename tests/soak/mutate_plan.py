"""Breaks the planner, the permit and the ledger on purpose, one way at a time, and shows that the properties notice.

    python tests/soak/mutate_plan.py [--programs N] [--only WORD]

Prints a table: the fault, the first seed whose program shows it, and what was said of it. Exit 1 where one was missed.
A quick part of it runs in the suite (`tests/property/test_plan_sound.py`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1] / "property")]

from plan_checks import problems_of  # noqa: E402

from halo_lang.app import model_door  # noqa: E402
from halo_lang.boundary.call import Limit  # noqa: E402
from halo_lang.check.program import EachStage, PipelineCall  # noqa: E402
from halo_lang.doors import spend  # noqa: E402
from halo_lang.language.ast import Number  # noqa: E402
from halo_lang.language.record import replace  # noqa: E402
from halo_lang.plan import bounds, effects, making, totals  # noqa: E402
from halo_lang.runtime import agent, permit, stages  # noqa: E402

PROGRAMS = 10_000
Fault = Callable[["Patches"], None]
FAULTS: dict[str, Fault] = {}


class Patches:
    """What a fault puts in the place of what; taken back at the end."""

    def __init__(self) -> None:
        self._kept: list[tuple[Any, str, Any]] = []

    def put(self, name: str, value: Any, *owners: Any) -> Any:
        """Sets `name` of each owner; gives what the first had."""
        before = [getattr(owner, name) for owner in owners]
        for owner, old in zip(owners, before, strict=True):
            self._kept.append((owner, name, old))
            setattr(owner, name, value)
        return before[0]

    def take_back(self) -> None:
        for owner, name, old in reversed(self._kept):
            setattr(owner, name, old)


def fault(about: str) -> Callable[[Fault], Fault]:
    def register(made: Fault) -> Fault:
        FAULTS[about] = made
        return made

    return register


@contextmanager
def broken(about: str) -> Iterator[None]:
    patches = Patches()
    FAULTS[about](patches)
    try:
        yield
    finally:
        patches.take_back()


# The planner -----------------------------------------------------------------------------------------------------


@fault("an agent's last method is not listed")
def _(patches: Patches) -> None:
    real = effects.offered_calls
    patches.put("offered_calls", lambda *given: list(real(*given))[:-1], making, totals)


@fault("loops do not multiply")
def _(patches: Patches) -> None:
    patches.put("loops_around", lambda pipeline: (1,) * len(pipeline.stages), making, totals)


@fault("only the innermost loop multiplies")
def _(patches: Patches) -> None:
    def innermost(pipeline: Any) -> tuple[int, ...]:
        times = [1] * len(pipeline.stages)
        for at, stage in enumerate(pipeline.stages):
            if isinstance(stage, bounds.LoopStage):
                times[stage.extent : at] = [stage.max] * (at - stage.extent)
        return tuple(times)

    patches.put("loops_around", innermost, making, totals)


@fault("a loop's extent is taken to begin where it jumps to")
def _(patches: Patches) -> None:
    def short(pipeline: Any) -> tuple[int, ...]:
        times = [1] * len(pipeline.stages)
        for at, stage in enumerate(pipeline.stages):
            if isinstance(stage, bounds.LoopStage):
                for inside in range(stage.back_to, at):
                    times[inside] *= stage.max
        return tuple(times)

    patches.put("loops_around", short, making, totals)


@fault("only the first arm of a branch is planned")
def _(patches: Patches) -> None:
    real = effects.planned_calls

    def first(stage: Any) -> Any:
        found = list(real(stage))
        return found[:1] if type(stage).__name__ == "BranchStage" else found

    patches.put("planned_calls", first, making, totals)


@fault("the last request of an agent with tools is not counted")
def _(patches: Patches) -> None:
    real = bounds.requests
    patches.put("requests", lambda call, shadow=False: max(1, real(call, shadow=shadow) - 1), bounds, making)


@fault("a request does not resend the replies before it")
def _(patches: Patches) -> None:
    def flat(call: Any, prices: Any, input_tokens: int, shadow: bool = False) -> int | None:
        once = real(call, prices, input_tokens, shadow=True)
        return None if once is None else once * bounds.requests(call, shadow=shadow)

    real = patches.put("call_cost", flat, making, totals)


@fault("the system prompt is not counted")
def _(patches: Patches) -> None:
    real = bounds._written_bytes
    patches.put("_written_bytes", lambda call: real(call) - len(call.agent.system.encode()), bounds)


@fault("a prompt is taken to have a token for four bytes")
def _(patches: Patches) -> None:
    real = bounds._written_bytes
    patches.put("_written_bytes", lambda call: real(call) // 4, bounds)


@fault("long prompts are taken at the price of short ones")
def _(patches: Patches) -> None:
    real = bounds.bound
    patches.put("bound", lambda price, into, out: real(type(price)(price.steps[:1]), into, out), bounds)


@fault("shadows are forgotten")
def _(patches: Patches) -> None:
    real = effects.planned_calls
    patches.put("planned_calls", lambda stage: [one for one in real(stage) if not one[2]], making, totals)


@fault("an each with a limit is counted once")
def _(patches: Patches) -> None:
    real = bounds.each_limit
    patches.put("each_limit", lambda stage: None if real(stage) is None else 1, making, totals)


@fault("an each without a limit is taken to have one item")
def _(patches: Patches) -> None:
    def one(stage: Any) -> int:
        limit = stage.limit if isinstance(stage, EachStage) else None
        return int(limit.value) if isinstance(limit, Number) else 1

    patches.put("each_limit", one, making, totals)


@fault("what a called pipeline does is not listed")
def _(patches: Patches) -> None:
    real = making._Listing._add_pipeline

    def root_alone(self: Any, pipeline: Any, around: Any) -> None:
        if not around.prefix:
            real(self, pipeline, around)

    patches.put("_add_pipeline", root_alone, making._Listing)


@fault("what a called pipeline costs is not counted")
def _(patches: Patches) -> None:
    real = totals._Costs._call
    patches.put(
        "_call",
        lambda self, call, circle, is_shadow: (
            None if isinstance(call, PipelineCall) else real(self, call, circle, is_shadow=is_shadow)
        ),
        totals._Costs,
    )


@fault("an effect that is not described is taken as read")
def _(patches: Patches) -> None:
    def harmless(call: Any) -> Any:
        return call if call is None or call.effect is not None else replace(call, effect="read")

    made, offered = effects.made_call, effects.offered_calls
    patches.put("made_call", lambda *given: harmless(made(*given)), making, totals)
    patches.put("offered_calls", lambda *given: [harmless(call) for call in offered(*given)], making, totals)


@fault("recursion is taken to happen once")
def _(patches: Patches) -> None:
    patches.put("_around_again", lambda program, costs: costs, totals)


@fault("approval is promised for every method of a tool where one needs it")
def _(patches: Patches) -> None:
    real = effects.offered_calls

    def promised(*given: Any) -> Any:
        calls = list(real(*given))
        needed = next((call.approval for call in calls if call.approval), ())
        return [replace(call, approval=call.approval or needed) for call in calls]

    patches.put("offered_calls", promised, making, totals)


@fault("an agent's own policies are taken to hold for the pipeline's calls")
def _(patches: Patches) -> None:
    real = effects.made_call

    def strict(call: Any, policies: Any) -> Any:
        made = real(call, policies)
        return made and replace(made, approval=made.approval or ("Q0",))

    patches.put("made_call", strict, making, totals)


@fault("approval is promised for a server where a policy names one of its methods")
def _(patches: Patches) -> None:
    real = effects.decide

    def any_method(policies: Any, target: str, effect: Any) -> Any:
        decision = real(policies, target, effect)
        named = [
            p.name for p in policies for r in p.rules if r.kind == "ApproveTools" and "Web." in "".join(r.patterns)
        ]
        return replace(decision, approval=decision.approval or tuple(named)) if target.endswith(".*") else decision

    patches.put("decide", any_method, effects)


@fault("a server's methods are not listed where a policy names some of them")
def _(patches: Patches) -> None:
    def named(policies: Any, tool: str) -> bool:
        return not any(r.kind in ("AllowTools", "DenyTools") for p in policies for r in p.rules)

    patches.put("may_allow", named, effects)


@fault("the run is said to stop at the lowest of the limits")
def _(patches: Patches) -> None:
    real = totals._Seen.spend_limits

    def lowest(self: Any) -> Any:
        limits, stops = real(self)
        return limits, stops and min(limits, key=lambda limit: limit.limit)

    patches.put("spend_limits", lowest, totals._Seen)


@fault("the run is said to stop although an agent has no limit")
def _(patches: Patches) -> None:
    real = totals._Seen.spend_limits

    def anyway(self: Any) -> Any:
        limits, _ = real(self)
        return limits, max(limits, key=lambda limit: limit.limit) if limits else None

    patches.put("spend_limits", anyway, totals._Seen)


@fault("a listing is referred to whatever the policies")
def _(patches: Patches) -> None:
    patches.put("_names", lambda policies: frozenset(), making)


# The permit ------------------------------------------------------------------------------------------------------


@fault("a pipeline's policies do not govern the run")
def _(patches: Patches) -> None:
    patches.put("governed_by", lambda self, governors: governors, stages.CompiledPipeline)


@fault("an approval with changed arguments runs the old ones")
def _(patches: Patches) -> None:
    real = permit._tool_call
    patches.put("_tool_call", lambda wanted, args, digest, granted: real(wanted, wanted.args, digest, granted), permit)


@fault("an approval holds for the method in the rest of the run")
def _(patches: Patches) -> None:
    real = permit.rights

    def lenient(run: Any, governors: Any, target: str, effect: Any) -> Any:
        if run.calls.get(target):
            run.standing.add(target)
        return real(run, governors, target, effect)

    patches.put("rights", lenient, permit)


# The ledger ------------------------------------------------------------------------------------------------------


@fault("what is reserved is forgotten")
def _(patches: Patches) -> None:
    patches.put("_room", lambda self, limit: limit.amount - self.spent - self.unsettled, spend.Ledger)


@fault("what is unsettled is forgotten")
def _(patches: Patches) -> None:
    patches.put("_room", lambda self, limit: limit.amount - self.spent - self.reserved, spend.Ledger)


@fault("what was spent is forgotten")
def _(patches: Patches) -> None:
    patches.put("_room", lambda self, limit: limit.amount - self.unsettled - self.reserved, spend.Ledger)


@fault("an answer is settled after those that wait were let through")
def _(patches: Patches) -> None:
    def late(self: Any, amount: int, spent: int, unsettled: int, *, is_beside: bool) -> None:
        self.reserved -= amount
        self._serve()
        self.spent += spent
        self.unsettled += unsettled
        self._serve()

    patches.put("_release", late, spend.Ledger)


@fault("a lost attempt gives its reservation back")
def _(patches: Patches) -> None:
    def lost(self: Any) -> int:
        self.give_back()
        return 0

    patches.put("keep", lost, spend.Grant)


@fault("a request that does not fit is sent as it is")
def _(patches: Patches) -> None:
    patches.put("_most_tokens", lambda need, room: need.max_tokens, spend)


@fault("tokens are lowered by a token too few")
def _(patches: Patches) -> None:
    real = spend._most_tokens
    patches.put("_most_tokens", lambda need, room: min(need.max_tokens, real(need, room) + 1), spend)


@fault("a small request overtakes those that wait")
def _(patches: Patches) -> None:
    real = spend.Ledger.admit

    async def pushy(self: Any, need: Any) -> Any:
        if need.limits and self._lowest_room(need)[0] >= need.cost(need.max_tokens):
            return self._grant(need, need.max_tokens)
        return await real(self, need)

    patches.put("admit", pushy, spend.Ledger)


@fault("a shadow is sent whether it fits or not")
def _(patches: Patches) -> None:
    patches.put("fits", lambda self, need: self._grant(need, need.max_tokens), spend.Ledger)


@fault("of several limits the highest holds")
def _(patches: Patches) -> None:
    def highest(governors: Any) -> Limit | None:
        rules = [r for g in governors for p in g.policies for r in p.rules if r.kind == "MaxSpend"]
        rule = max(rules, key=lambda rule: rule.limit, default=None)
        return None if rule is None else Limit(rule.limit, rule.limit_text, rule.policy)

    patches.put("_limit", highest, agent)


@fault("the agent's limit holds, and the pipeline's does not")
def _(patches: Patches) -> None:
    real = agent._limit
    patches.put("_limit", lambda governors: real(governors[-1:]), agent)


@fault("the provider's framing is not reserved for")
def _(patches: Patches) -> None:
    patches.put("FRAMING_TOKENS", 0, model_door)


@fault("only the first attempt is reserved for")
def _(patches: Patches) -> None:
    real = spend.Ledger.admit

    async def careless(self: Any, need: Any) -> Any:
        if id(need) in seen:
            return spend.Grant(self, need.max_tokens, 0)
        seen[id(need)] = need
        return await real(self, need)

    seen: dict[int, Any] = {}
    patches.put("admit", careless, spend.Ledger)


def caught(about: str, programs: int) -> tuple[int, str] | None:
    """The first seed whose program shows a fault, and what is said of it; None where it goes unnoticed."""
    with broken(about):
        for seed in range(programs):
            try:
                found = problems_of(seed)
            except Exception as trouble:
                found = [f"{type(trouble).__name__}: {trouble}"]
            if found:
                return seed, found[0]
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    missed = 0
    for about in FAULTS:
        if options.only not in about:
            continue
        found = caught(about, options.programs)
        missed += found is None
        seed, said = ("-", "NOT NOTICED") if found is None else (str(found[0]), found[1])
        print(f"{about:<72} {seed:>6}  {said[:90]}", flush=True)
    print(f"{missed} went unnoticed" if missed else "all were noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
