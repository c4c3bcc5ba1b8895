"""The summary of a plan: its lines, their order, and who is said to have a spend limit (plan.md)."""

from __future__ import annotations

import pytest

from halo_lang.plan import totals
from halo_lang.plan.report import dollars, summary_lines
from halo_lang.plan.totals import limited_agents
from plans import AGENT, ONCE, pipeline, plan, program

TOOLS = 'tool Files : Workspace(".", write: true)\ntool Chat : Slack(Env.T)\ntool Web : Mcp("serve")\n'
LIMITS = "policy Low : MaxSpend(0.25)\npolicy High : MaxSpend(2)\n"


def lines(text: str, name: str = "P") -> list[str]:
    return summary_lines(plan(text, name).summary)


def test_all_lines_in_their_order() -> None:
    text = (
        TOOLS
        + 'policy Low : MaxSpend(0.25) & ApproveTools("Files.write")\n'
        + "agent A [openai/flat, max_tokens: 1000]\n  equips Files\n  requires Low\n"
        + "agent B [openai/other]\n"
        + pipeline("|> A.go(tools: [Files], max_steps: 1)", "|> B.go()", "|> Chat.post(text: x)", "|> Web.find(x)")
    )
    assert lines(text) == [
        "Acts on the world without asking: Chat.post",
        "Writes without asking: Files.edit, Files.mkdir, Files.delete",
        "Needs a person's approval: Files.write",
        "Effect not described: Web.find",
        "Worst-case model cost: $0.0550",
        "Not priced: openai/other",
        "Spend limit: A stops once the run has spent $0.25 (policy Low)",
    ]


def test_nothing_outside_stands_alone() -> None:
    assert lines(pipeline("|> System.Print(x)", "|> System.Now()")) == ["Acts on nothing outside."]
    assert lines(TOOLS + pipeline("|> Files.list()")) == ["Acts on nothing outside."]


@pytest.mark.parametrize("call", ["Chat.post(text: x)", "Files.write(x, x)", "Web.find(x)", "System.Publish(x)"])
def test_what_acts_is_said(call: str) -> None:
    assert "Acts on nothing outside." not in lines(TOOLS + pipeline(f"|> {call}"))


def test_a_call_that_is_approved_in_one_place_and_not_in_another_stands_in_both_lines() -> None:
    text = (
        TOOLS
        + "policy Ask : ApproveEffects(external)\n"
        + pipeline("|> Q(x)", "|> Chat.post(text: x)")
        + pipeline("|> Chat.post(text: x)", name="Q", requires="Ask")
    )
    assert lines(text) == ["Acts on the world without asking: Chat.post", "Needs a person's approval: Chat.post"]


# Spend limits ----------------------------------------------------------------------------------------------------


def test_of_several_limits_of_an_agent_the_lowest_holds() -> None:
    text = LIMITS + AGENT + "  requires High, Low\n" + pipeline("|> A.go()")
    assert lines(text)[-2:] == [
        "Worst-case model cost: $0.0250, but MaxSpend stops the run at $0.25",
        "Spend limit: A stops once the run has spent $0.25 (policy Low)",
    ]


def test_the_run_stops_at_the_highest_limit_if_every_agent_has_one() -> None:
    head = LIMITS + AGENT + "  requires Low\nagent B [openai/flat]\n  requires High\nagent C [openai/free]\n"
    assert (
        plan(head + pipeline("|> A.go()", "|> B.go()")).summary.stops_at
        == plan(head + pipeline("|> B.go()", "|> A.go()")).summary.stops_at
    )
    made = plan(head + pipeline("|> A.go()", "|> B.go()")).summary
    assert made.stops_at is not None
    assert made.stops_at.text == "2.00"
    assert plan(head + pipeline("|> A.go()", "|> C.go()")).summary.stops_at is None


def test_a_shadow_is_an_agent_that_calls_a_model_too() -> None:
    head = LIMITS + AGENT + "  requires Low\nagent B [openai/flat]\n"
    assert plan(head + pipeline("@shadow(B.go()) |> A.go()")).summary.stops_at is None


def test_a_pipelines_limit_holds_for_the_agents_inside_and_only_there() -> None:
    inner = pipeline("|> A.go()", name="Q", requires="Low")
    assert "Spend limit: A stops once the run has spent $0.25 (policy Low)" in lines(
        LIMITS + AGENT + pipeline("|> Q(x)") + inner
    )
    made = plan(LIMITS + AGENT + pipeline("|> Q(x)", "|> A.more()") + inner).summary
    assert (made.limits, made.stops_at) == ((), None)


def test_of_the_limits_of_two_calls_of_an_agent_the_highest_is_told() -> None:
    text = (
        LIMITS
        + AGENT
        + pipeline("|> Q(x)", "|> R(x)")
        + pipeline("|> A.go()", name="Q", requires="Low")
        + pipeline("|> A.go()", name="R", requires="High")
    )
    assert lines(text)[-1] == "Spend limit: A stops once the run has spent $2.00 (policy High)"


def test_an_unbounded_cost_that_is_stopped() -> None:
    text = LIMITS + AGENT + "  requires Low\n" + pipeline("|* each(i in x) => A.go()")
    assert lines(text)[1] == (
        "Worst-case model cost: unbounded, for stage 1 runs for each item of a list, "
        "but MaxSpend stops the run at $0.25"
    )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("0.50", "$0.50"),
        ("2", "$2.00"),
        ("0.5", "$0.50"),
        ("0.1234", "$0.1234"),
        ("1e-3", "$0.001"),
        ("1.5e2", "$150.00"),
    ],
)
def test_a_limit_is_shown_with_two_decimals_or_as_many_as_it_is_written_with(written: str, shown: str) -> None:
    text = f"policy Low : MaxSpend({written})\n" + AGENT + "  requires Low\n" + pipeline("|> A.go()")
    assert lines(text)[-1] == f"Spend limit: A stops once the run has spent {shown} (policy Low)"


def test_amounts_have_four_decimals() -> None:
    assert [dollars(nano) for nano in (0, 49_999, 50_000, 1_380_240_000, 10**50)] == [
        "$0.0000",
        "$0.0000",
        "$0.0001",
        "$1.3802",
        f"${10**41}.0000",
    ]


# Which agents are limited at all ---------------------------------------------------------------------------------


def test_agents_that_are_limited_anywhere() -> None:
    text = (
        LIMITS
        + AGENT
        + "agent B [openai/flat]\n  requires High\nagent C [openai/flat]\n"
        + pipeline("|> Q(x)", "|> A.go()", "|> B.go()", "|> C.go()")
        + pipeline("|> A.go()", name="Q", requires="Low")
    )
    assert {name: rule.policy for name, rule in limited_agents(program(text), "P").items()} == {"A": "Low", "B": "High"}


def test_past_the_calls_that_are_told_apart_nothing_is_hidden_and_nothing_promised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        TOOLS
        + 'policy Tight : DenyTools("Files.delete") & ApproveEffects(write) & MaxSpend(1)\n'
        + "agent A [openai/flat]\n  equips Files\n"
        + pipeline("|> Q(x)", requires="Tight")
        + pipeline("|> A.go(tools: [Files])", name="Q")
    )
    exact = plan(text).summary
    assert "Files.delete" not in (*exact.writes, *exact.approvals)
    assert exact.stops_at is not None
    monkeypatch.setattr(totals, "MAX_GOVERNED", 0)
    rough = plan(text).summary
    assert {"Files.write", "Files.delete"} <= set(rough.writes)
    assert rough.stops_at is None
    assert rough.cost == exact.cost == sum(stage.cost or 0 for stage in plan(text).stages)
    assert ONCE > 0
