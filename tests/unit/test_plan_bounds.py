"""The arithmetic of plans: how often a stage can run, what its requests can cost (plan.md "Cost")."""

from __future__ import annotations

from random import Random

import pytest

from halo_lang.catalog.prices import Price, Step, bound
from halo_lang.check.program import LoopStage
from halo_lang.plan import bounds
from halo_lang.plan.bounds import MAX_COST, MAX_TIMES, call_cost, each_limit, loops_around, requests
from plans import AGENT, ONCE, PRICES, pipeline, plan, program


def call_of(text: str):  # type: ignore[no-untyped-def]
    return program(text).pipelines["P"].stages[0].call  # type: ignore[union-attr]


def cost_of(call: str, head: str = AGENT, input_tokens: int = 2_000) -> int | None:
    return call_cost(call_of(head + pipeline(f"|> {call}")), PRICES.get, input_tokens)


def test_a_request_is_its_instructions_the_system_prompt_the_allowance_and_a_full_reply() -> None:
    assert cost_of("A.go()") == ONCE
    assert cost_of('A.go("abcd")') == ONCE + 4 * 5_000
    assert cost_of('A.go("abcd", "ef")') == ONCE + 6 * 5_000
    assert cost_of('A.go("ä€")') == ONCE + 5 * 5_000
    assert cost_of("A.go()", AGENT + '  system "abcde"\n') == ONCE + 5 * 5_000
    assert cost_of("A.go()", input_tokens=0) == 1_000 * 15_000


def test_what_is_inserted_or_an_input_is_in_the_allowance() -> None:
    assert cost_of('A.go("ab{{x}}cd", x, tone: "dry")') == ONCE + 4 * 5_000


def test_four_thousand_and_ninety_six_tokens_where_nothing_is_said() -> None:
    assert cost_of("A.go()", "agent A [openai/flat]\n") == 2_000 * 5_000 + 4_096 * 15_000


FILES = 'tool Files : Workspace(".")\nagent A [openai/flat, max_tokens: 1000, max_steps: 2]\n  equips Files\n'


def test_with_tools_each_request_sends_the_replies_before_it_again() -> None:
    assert requests(call_of(FILES + pipeline("|> A.go(tools: [Files])"))) == 3
    growth = sum(at * 1_000 * 5_000 for at in range(3))
    assert cost_of("A.go(tools: [Files])", FILES) == 3 * ONCE + growth
    assert cost_of("A.go(tools: [])", FILES) == ONCE
    assert cost_of("A.go()", FILES) == ONCE


def test_a_shadow_is_one_request_whatever_its_tools() -> None:
    call = call_of(FILES + pipeline("|> A.go(tools: [Files])"))
    assert requests(call, shadow=True) == 1
    assert call_cost(call, PRICES.get, 2_000, shadow=True) == ONCE


def test_the_dearest_step_that_a_prompt_can_reach() -> None:
    steps = "agent A [openai/steps, max_tokens: 100]\n"
    assert cost_of("A.go()", steps, 3_000) == 3_000 * 1_000 + 100 * 2_000
    assert cost_of("A.go()", steps, 3_001) == 3_001 * 15_000 + 100 * 20_000


def test_no_price_for_a_model_that_is_not_priced_or_that_a_variable_names() -> None:
    assert cost_of("A.go()", "agent A [openai/other]\n") is None
    assert cost_of("A.go()", "agent A [Env.MODEL]\n") is None
    assert cost_of("A.go()", "agent A [openai/free]\n") == 0


@pytest.mark.parametrize("model", ["openai/flat", "openai/steps"])
@pytest.mark.parametrize("steps", [1, 7, 40])
def test_many_requests_at_once_are_bounded_from_above(model: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    head = f'tool Files : Workspace(".")\nagent A [{model}, max_tokens: 333, max_steps: {steps}]\n  equips Files\n'
    exact = cost_of("A.go(tools: [Files])", head)
    assert exact is not None
    monkeypatch.setattr(bounds, "SUMMED_ONE_BY_ONE", 0)
    at_once = cost_of("A.go(tools: [Files])", head)
    assert at_once is not None
    assert exact <= at_once
    if model == "openai/flat":
        assert at_once <= exact + 2 * (steps + 1)


def test_numbers_without_reason_take_no_time_and_no_more_than_can_be_shown() -> None:
    head = 'tool F : Workspace(".")\nagent A [openai/flat, max_tokens: 1e300, max_steps: 1000000000000]\n  equips F\n'
    assert cost_of("A.go(tools: [F])", head) == MAX_COST


# Loops -----------------------------------------------------------------------------------------------------------

TWO = "agent A [openai/flat]\nagent B [openai/flat]\n"


def loops(*stages: str) -> tuple[int, ...]:
    return loops_around(program(TWO + pipeline(*stages)).pipelines["P"])


def loop(agent: str, most: int | None = None) -> str:
    return f'|<> loop({agent}, "x == 1"{"" if most is None else f", max: {most}"})'


def test_a_loop_multiplies_from_its_agents_latest_stage_up_to_itself() -> None:
    assert loops("|> A.a()", "|> B.b()", loop("B", 5), "|> A.c()") == (1, 5, 1, 1)
    assert loops("|> A.a()", "|> A.b()", loop("A")) == (1, 3, 1)


def test_loops_nest_and_overlap() -> None:
    assert loops("|> A.a()", "|> B.b()", loop("B", 2), loop("A", 5)) == (5, 10, 5, 1)
    assert loops("|> A.a()", "|> B.b()", loop("A", 2), loop("B", 5)) == (10, 10, 5, 1)
    assert loops("|> A.a()", loop("A", 2), loop("A", 2), loop("A", 2)) == (8, 4, 2, 1)


def test_loops_one_after_the_other_do_not_multiply_each_other() -> None:
    assert loops("|> A.a()", loop("A", 2), "|> A.b()", loop("A", 5)) == (2, 1, 5, 1)


def test_any_loops_are_the_product_of_those_in_whose_extent_a_stage_lies() -> None:
    chance = Random(7)
    for _ in range(300):
        stages, called = [], []
        for _ in range(chance.randrange(1, 12)):
            if called and chance.random() < 0.5:
                stages.append(loop(chance.choice(called), chance.randrange(1, 5)))
            else:
                called.append(chance.choice("AB"))
                stages.append(f"|> {called[-1]}.go()")
        checked = program(TWO + pipeline(*stages)).pipelines["P"]
        slow = [1] * len(stages)
        for at, stage in enumerate(checked.stages):
            if isinstance(stage, LoopStage):
                for inside in range(stage.extent, at):
                    slow[inside] *= stage.max
        assert loops_around(checked) == tuple(slow), stages


def test_a_file_full_of_loops() -> None:
    assert loops("|> A.a()", *[loop("A", 999_999)] * 3_000)[0] == MAX_TIMES


def test_the_limit_of_an_each() -> None:
    stages = program(
        pipeline(
            "|* each(i in x, limit: 3) => System.Print(i)",
            "|* each(i in x) => System.Print(i)",
            "|* each(i in x, limit: x) => System.Print(i)",
            "|* each(i in x, limit: 1e300) => System.Print(i)",
            "|> System.Print(x)",
        )
    ).pipelines["P"]
    assert [each_limit(stage) for stage in stages.stages] == [3, None, None, MAX_TIMES, 1]


def test_amounts_are_whole_nano_dollars_rounded_up() -> None:
    assert bound(PRICES["openai/flat"], 1, 0) == 5_000
    assert bound(Price((Step(0, 1, 0, 1, 1),)), 1, 0) == 1


def test_the_whole_plan_is_the_sum_of_its_stages() -> None:
    made = plan(
        AGENT
        + pipeline("|> A.one()", "|* each(i in x, limit: 3) => A.two()", '|<> loop(A, "x == 1", max: 2)', name="Q")
        + pipeline("|> A.zero()", "|> Q(x)", "|? { (x == 1) => Q(x), else => A.three() }", '|<> loop(A, "x", max: 5)')
    )
    assert made.summary.cost == sum(stage.cost or 0 for stage in made.stages)
    # Stage 3 calls A in an arm, so the loop goes back to it.
    once = 1 + 2 * 3
    assert made.summary.cost == ONCE * (1 + once + 5 * once + 5)
