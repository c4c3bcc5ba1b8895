"""What changed between two plans, and what of it is wider (plan.md)."""

from __future__ import annotations

import pytest

from halo_lang.plan.difference import difference
from plans import AGENT, kept, pipeline

TOOLS = 'tool Files : Workspace(".", write: true)\ntool Chat : Slack(Env.T)\ntool Web : Mcp("serve")\n'
LOW, HIGH = "policy Low : MaxSpend(0.25)\n", "policy Low : MaxSpend(0.5)\n"


def changes(before: str, after: str) -> list[tuple[str, str, bool]]:
    return [(c.sign, c.text, c.widens) for c in difference(kept(before), kept(after))]


def widens(before: str, after: str) -> bool:
    return any(wider for _, _, wider in changes(before, after))


def both(*stages: str, head: str = TOOLS) -> str:
    return head + pipeline(*stages)


POST, WRITE = "|> Chat.post(text: x)", '|> Files.mkdir("d")'
ASKED = TOOLS + "policy Ask : ApproveEffects(external)\n" + pipeline(POST, requires="Ask")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(both(WRITE), both(WRITE, POST), id="a call more"),
        pytest.param(both(POST), both(POST, POST), id="a call more often"),
        pytest.param(both(POST), both("|* each(i in x) => Chat.post(text: i)"), id="for each item"),
        pytest.param(
            both("|* each(i in x) => Chat.post(text: i)"),
            both("|* each(i in x) => Chat.post(text: i)", "|* each(i in x) => Chat.post(text: i)"),
            id="for each item twice",
        ),
        pytest.param(
            AGENT + pipeline("|* each(i in x) => Q(i)") + pipeline("|> A.go()", '|<> loop(A, "x")', name="Q"),
            AGENT + pipeline("|* each(i in x) => Q(i)") + pipeline("|> A.go()", '|<> loop(A, "x", max: 9)', name="Q"),
            id="more often for each item",
        ),
        pytest.param(ASKED, both(POST), id="without approval"),
        pytest.param(both("|? (x == 1)", POST), both(POST), id="a gate less"),
        pytest.param(both("|? (x == 1)", "|? (x == 1)", POST), both("|? (x == 1)", POST), id="one of two gates less"),
        pytest.param(both('|! yield("Go?")', POST), both(POST), id="a question less"),
        pytest.param(AGENT + pipeline("|> A.go()"), AGENT + pipeline("|> A.go()", "|> A.go()"), id="a request more"),
        pytest.param(
            AGENT + pipeline("|* each(i in x) => A.go()"),
            AGENT + pipeline("|* each(i in x) => A.go(max_tokens: 1001)"),
            id="longer replies where there is no bound",
        ),
        pytest.param(AGENT + pipeline("|> A.go()"), AGENT + pipeline('|> A.go("a")'), id="a byte more"),
        pytest.param(
            AGENT + pipeline("|> A.go()"), "agent A [openai/free]\n" + pipeline("|> A.go()"), id="another model"
        ),
        pytest.param(
            "agent A [openai/other]\n" + pipeline(),
            "agent A [openai/other]\n" + pipeline("|> A.go()"),
            id="a model without a price",
        ),
        pytest.param(
            LOW + AGENT + "  requires Low\n" + pipeline("|> A.go()"),
            HIGH + AGENT + "  requires Low\n" + pipeline("|> A.go()"),
            id="a limit raised",
        ),
        pytest.param(
            LOW + AGENT + "  requires Low\n" + pipeline("|> A.go()"), AGENT + pipeline("|> A.go()"), id="a limit gone"
        ),
        pytest.param(both(POST), both(POST, "|? { (x == 1) => P(x) }"), id="recursion"),
        pytest.param(both(POST), both(POST) + pipeline(name="Q"), id="a pipeline more"),
        pytest.param(
            'tool T : Workspace(".")\n' + pipeline("|> T.list()"),
            'tool T : Mcp("serve")\n' + pipeline("|> T.list()"),
            id="a graver effect",
        ),
    ],
)
def test_what_widens(before: str, after: str) -> None:
    assert widens(before, after)


@pytest.mark.parametrize(
    "after",
    [
        both("|? (x == 1)", POST),
        both('|! yield("Go?")', POST),
        both("|? { (x == 1) => Chat.post(text: x) }"),
        both(POST, "|> System.Print(x)"),
        both(),
        ASKED,
    ],
)
def test_what_narrows_or_does_nothing_does_not_widen(after: str) -> None:
    assert not widens(both(POST), after)


def test_from_each_item_to_some_is_narrower_and_back_is_wider() -> None:
    endless, some = "|* each(i in x) => Chat.post(text: i)", "|* each(i in x, limit: 9) => Chat.post(text: i)"
    assert changes(both(endless), both(some)) == [("~", "calls Chat.post: × each item → ×9", False)]
    assert changes(both(some), both(endless)) == [("~", "calls Chat.post: ×9 → × each item", True)]


def test_a_call_that_is_approved_only_in_some_places_counts_as_not_approved() -> None:
    text = ASKED.replace("pipeline P", "pipeline Q") + pipeline("|> Q(x)")
    assert ("~", "calls Chat.post: no longer needs approval", True) in changes(
        text, text + "    |> Chat.post(text: x)\n"
    )


def test_limits_are_shown_as_exactly_as_they_are() -> None:
    texts = [
        f"policy Low : MaxSpend({n})\n" + AGENT + "  requires Low\n" + pipeline("|> A.go()") for n in ("0.001", "2")
    ]
    assert changes(*texts)[0] == ("~", "spend limit of A: $0.001 → $2.00", True)


def test_the_same_plans_have_no_changes() -> None:
    assert changes(ASKED, ASKED) == []


def test_pipelines_come_and_go() -> None:
    assert changes(pipeline(POST, name="Old") + TOOLS, pipeline(WRITE, name="New") + TOOLS) == [
        ("+", "the pipeline", True),
        ("+", "calls Files.mkdir: write", True),
        ("+", "worst-case model cost: $0.0000", True),
        ("-", "the pipeline", False),
    ]
