"""A plan as a check (plan.md "Beyond the seed")."""

from __future__ import annotations

import pytest

from halo_lang.plan.checks import amount, cost_check, effects_check
from plans import AGENT, pipeline, plan

TOOLS = 'tool Files : Workspace(".", write: true)\ntool Chat : Slack(Env.T)\ntool Web : Mcp("serve")\n'
NANO = 10**9


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("1", NANO),
        ("1.00", NANO),
        ("$0.5", NANO // 2),
        (" 0.065 ", 65_000_000),
        (".5", NANO // 2),
        ("0", 0),
        ("0.0000000019", 1),
        ("999999999", 999_999_999 * NANO),
    ],
)
def test_amounts(text: str, nano: int) -> None:
    assert amount(text) == nano


@pytest.mark.parametrize(
    "text", ["", ".", "$", "-1", "1e3", "1,5", "1.2.3", "٣", "½", "inf", "nan", "1_0", "1" * 10, "0x1"]
)
def test_no_amounts(text: str) -> None:
    with pytest.raises(ValueError, match="--max-cost takes US dollars"):
        cost_check(text)


def test_a_cost_at_the_limit_is_within_it_and_a_nano_dollar_more_is_not() -> None:
    made = plan(AGENT + pipeline("|> A.go()"))
    assert cost_check("0.025")(made) == []
    assert cost_check("0.024999999")(made) == [
        "P: could cost $0.0250, more than $0.024999999; the dearest is stage 1, A.go, with $0.0250"
    ]


def test_a_cost_that_stands_too_deep_to_be_listed() -> None:
    inner = "".join(pipeline(f"|> P{at + 1}(x)", name=f"P{at}") for at in range(17))
    made = plan(AGENT + inner + pipeline("|> A.go()", name="P17"), "P0")
    assert cost_check("0.01")(made) == ["P0: could cost $0.0250, more than $0.01"]


def test_what_has_no_price_breaks_any_limit_and_what_has_no_bound_all_but_a_spend_limits() -> None:
    limited = "policy Low : MaxSpend(0.5)\n" + AGENT + "  requires Low\n" + pipeline("|* each(i in x) => A.go()")
    assert cost_check("0.5")(plan(limited)) == []
    assert cost_check("0.499999999")(plan(limited)) != []
    assert cost_check("1")(plan("agent B [openai/other]\n" + pipeline("|> B.go()"))) == [
        "P: the cost is not known, for openai/other has no price"
    ]
    env = "policy Low : MaxSpend(0.5)\nagent B [Env.M]\n  requires Low\n" + pipeline("|> B.go()")
    assert cost_check("1")(plan(env)) == ["P: the cost is not known, for Env.M has no price"]


def test_no_model_costs_nothing() -> None:
    assert cost_check("0")(plan(pipeline("|> System.Print(x)"))) == []


def test_each_call_is_named_once_by_the_first_stage_that_makes_it() -> None:
    made = plan(
        TOOLS + pipeline('|> Files.mkdir("d")', "|> Chat.post(text: x)", '|> Files.mkdir("e")', "|> Web.find(x)")
    )
    assert effects_check("external")(made) == [
        "P: stage 2 may run Chat.post (external) without approval",
        "P: stage 4 may run Web.find (effect not described) without approval",
    ]
    assert effects_check(" write ,external,")(made)[0] == "P: stage 1 may run Files.mkdir (write) without approval"
    assert effects_check("write")(made) == ["P: stage 1 may run Files.mkdir (write) without approval"]


def test_a_call_that_is_approved_in_one_place_alone_is_a_problem_in_the_other() -> None:
    text = (
        TOOLS
        + "policy Ask : ApproveEffects(external)\n"
        + pipeline("|> Q(x)", "|> Web.find(x)", "|> Chat.post(text: x)")
        + pipeline("|> Chat.post(text: x)", "|> Web.find(x)", name="Q", requires="Ask")
    )
    assert effects_check("external")(plan(text)) == [
        "P: stage 2 may run Web.find (effect not described) without approval",
        "P: stage 3 may run Chat.post (external) without approval",
    ]
    assert effects_check("external")(plan(text, "Q")) == []


@pytest.mark.parametrize("denied", ["", ",", "read", "extrnal", "external write"])
def test_no_effects(denied: str) -> None:
    with pytest.raises(ValueError, match="--deny takes external, write or both"):
        effects_check(denied)
