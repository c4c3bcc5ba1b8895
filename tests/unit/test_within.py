"""A run that is held to a kept plan makes no call, request or effect beyond it (plan.md `--within`)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from halo_lang.boundary.call import AGENT, APPROVAL, TOOL, YIELD, Call, ModelRequest
from halo_lang.doors.within import Within
from halo_lang.language.source import Span
from plans import AGENT as A
from plans import ONCE, kept, pipeline

TOOLS = 'tool Files : Workspace(".", write: true)\ntool Chat : Slack(Env.T)\ntool Web : Mcp("serve")\n'
ASK = "policy Ask : ApproveEffects(external)\n"


def tool(target: str, effect: str | None = "external", by: str | None = None, *policies: str) -> Call:
    return Call(TOOL, target, {}, (), "1", Span(0, 1), by, effect=effect, policies=policies)


def request(target: str = "A.go", model: str = "openai/flat") -> Call:
    return Call(AGENT, target, {}, (), "1", Span(0, 1), request=ModelRequest(model, "", (), (), 1, None, None, 1.0, 0))


def allows(within: Within, call: Call) -> bool:
    refused = within.refusal(call)
    if refused is None:
        return True
    assert refused.error is not None
    assert refused.error.code == "BEYOND_PLAN"
    assert call.target in refused.error.message
    return False


def test_calls_of_the_plan_are_allowed_and_others_are_not() -> None:
    within = Within(kept(TOOLS + pipeline("|> Chat.post(text: x)", "|> System.Publish(x)")), "P")
    assert allows(within, tool("Chat.post"))
    assert allows(within, tool("Chat.post"))
    assert allows(within, tool("System.Publish", None))
    assert not allows(within, tool("Chat.update"))
    assert not allows(within, tool("Chat.post", by="A"))


def test_what_touches_nothing_is_always_allowed() -> None:
    within = Within(kept(pipeline()), "P")
    assert allows(within, tool("System.Now", None))
    assert allows(within, tool("System.Wait", None))
    assert not allows(within, tool("System.Publish", None))
    for kind in (YIELD, APPROVAL):
        assert allows(within, Call(kind, "Chat.post", {}, (), "1", Span(0, 1)))


def test_what_an_agent_may_choose_the_pipeline_may_not() -> None:
    text = TOOLS + A + "  equips Files\n" + pipeline("|> A.go(tools: [Files])")
    within = Within(kept(text), "P")
    assert allows(within, tool("Files.read", "read", "A"))
    assert not allows(within, tool("Files.read", "read"))


def test_methods_of_a_server_are_allowed_as_the_plan_says() -> None:
    text = TOOLS + A + "  equips Web\n" + pipeline("|> A.go(tools: [Web])", "|> Web.find(x)")
    within = Within(kept(text), "P")
    assert allows(within, tool("Web.anything", None, "A"))
    assert allows(within, tool("Web.find", None))
    assert not allows(within, tool("Web.other", None))


@pytest.mark.parametrize(
    ("planned", "found", "allowed"),
    [
        ("read", "read", True),
        ("read", "write", False),
        ("read", "external", False),
        ("read", None, False),
        ("write", "read", True),
        ("write", "external", False),
        ("external", "write", True),
        ("external", None, False),
        (None, None, True),
        (None, "external", True),
    ],
)
def test_a_graver_effect_is_beyond_the_plan(planned: str | None, found: str | None, allowed: bool) -> None:
    document = kept(TOOLS + pipeline("|> Chat.post(text: x)"))
    document["pipelines"][0]["stages"][0]["calls"][0]["effect"] = planned
    assert allows(Within(document, "P"), tool("Chat.post", found)) is allowed


def test_a_call_without_the_approval_that_the_plan_promises_is_beyond_it() -> None:
    text = TOOLS + ASK + pipeline("|> Chat.post(text: x)", requires="Ask")
    assert allows(Within(kept(text), "P"), tool("Chat.post", "external", None, "Ask"))
    assert not allows(Within(kept(text), "P"), tool("Chat.post"))


def test_no_approval_is_asked_for_where_the_plan_has_the_call_without() -> None:
    text = (
        TOOLS
        + ASK
        + pipeline("|> Chat.post(text: x)", "|> Q(x)")
        + pipeline("|> Chat.post(text: x)", name="Q", requires="Ask")
    )
    assert allows(Within(kept(text), "P"), tool("Chat.post"))


# Requests --------------------------------------------------------------------------------------------------------


def test_requests_are_counted() -> None:
    within = Within(kept(A + pipeline("|> A.go()", '|<> loop(A, "x", max: 2)', "|> A.go()")), "P")
    assert [allows(within, request()) for _ in range(4)] == [True, True, True, False]


def test_a_request_to_another_model_or_for_another_task_is_beyond_the_plan() -> None:
    within = Within(kept(A + pipeline("|> A.go()")), "P")
    assert not allows(within, request(model="openai/steps"))
    assert not allows(within, request("A.other"))


def test_requests_without_bound_are_not_counted() -> None:
    for text in (A + pipeline("|* each(i in x) => A.go()"), A + pipeline("|> A.go()", "|? { (x == 1) => P(x) }")):
        within = Within(kept(text), "P")
        assert all(allows(within, request()) for _ in range(1_000))


# Cost ------------------------------------------------------------------------------------------------------------


def limit(text: str) -> int | None:
    within = Within(kept(text), "P")
    return None if within.limit is None else within.limit.amount


def test_the_cost_of_the_plan_is_the_runs_limit() -> None:
    assert limit(A + pipeline("|> A.go()")) == ONCE
    assert limit("agent F [openai/free]\n" + pipeline("|> F.go()")) == 0
    assert limit(A + pipeline("|* each(i in x) => A.go()")) is None
    assert limit(pipeline()) is None


def test_models_without_a_price_leave_the_limit_for_the_others() -> None:
    assert (
        limit(A + "agent L [ollama/mine]\nagent E [Env.M]\n" + pipeline("|> A.go()", "|> L.go()", "|> E.go()")) == ONCE
    )


def test_a_pipeline_that_the_plan_has_not() -> None:
    with pytest.raises(KeyError):
        Within(kept(A + pipeline("|> A.go()")), "Q")


def test_a_plan_that_is_edited_holds_as_it_is() -> None:
    document: dict[str, Any] = copy.deepcopy(kept(A + pipeline("|> A.go()")))
    document["pipelines"][0]["stages"] = []
    assert not allows(Within(document, "P"), request())
