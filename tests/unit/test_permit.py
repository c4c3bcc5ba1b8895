"""Permit: the order of what a tool call must pass, and what the run remembers of it (tools.md §3)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from halo_lang.boundary.call import Failure
from runs import AGENT, APPROVAL, TOOL, Answer, Call, Ended, checked, failed, first, last, run, text_of, uses

HEAD = """\
policy Ask : ApproveTools("Files.write")
policy AskAll : ApproveEffects(write, read)
policy NoEnv : DenyArgs("Files.write", path: "*.env")
policy Two : MaxCalls(2)
policy OneWrite : MaxCalls(1, "Files.write")
policy ReadOnly : AllowTools("Files.read")
tool Files : Workspace(".", write: true)
"""
YES, NO = {"approved": True}, {"approved": False}


def write(path: str = "a", content: str = "c") -> tuple[str, dict[str, object]]:
    return "Files_write", {"path": path, "content": content}


def read(path: str = "a") -> tuple[str, dict[str, object]]:
    return "Files_read", {"path": path}


def governed(
    requires: str,
    answers: list[object],
    reply: Callable[[Call], object] = lambda call: YES,
    *,
    pick=first,
    each: str = "",
) -> Ended:
    """A run in which an agent under policies makes calls. `reply` answers approvals and tools."""
    text = HEAD + f"agent T [openai/gpt-4o]\n  equips Files\n  requires {requires}\n"
    call = 'T.work("Go.", tools: [Files])'
    text += f"pipeline P(x: Any) -> Result:\n  x\n    {f'|* each(i in {each}) => {call}' if each else f'|> {call}'}\n"
    left = list(answers)
    return run(checked(text), lambda call: left.pop(0) if call.kind == AGENT else reply(call))


def tools(ended: Ended) -> list[tuple[str, str, dict[str, object]]]:
    """What was asked of people and tools: kind, target, arguments."""
    return [(c.kind, c.target, dict(c.args)) for c in ended.asked if c.kind in (APPROVAL, TOOL)]


def told(ended: Ended, request: int = 1) -> list[str]:
    """What the model was told of its calls."""
    return [text_of(m) for m in ended.request(request).messages if m.role == "tool"]


# Order -----------------------------------------------------------------------------------------------------------


def test_schema_comes_before_deny_args_and_both_before_a_person() -> None:
    answer = uses(("Files_write", {"path": "b.env"}), write("c.env"), write("ok"))
    ended = governed("Ask, NoEnv", [answer, "end"])
    assert tools(ended) == [
        (APPROVAL, "Files.write", {"path": "ok", "content": "c"}),
        (TOOL, "Files.write", {"path": "ok", "content": "c"}),
    ]
    assert [t.split(":")[0] for t in told(ended)[:2]] == ["error TOOL_ARGUMENTS", "error DENIED"]
    assert "NoEnv" in told(ended)[1]


def test_max_calls_comes_before_a_person() -> None:
    ended = governed("Ask, OneWrite", [uses(write("a"), write("b")), "end"])
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL, TOOL]
    assert told(ended)[1].startswith("error DENIED: ")
    assert ended.calls == {"T.work": 1, "Files.write": 1}


def test_deny_args_comes_before_max_calls() -> None:
    ended = governed("NoEnv, OneWrite", [uses(write("x.env"), write("a")), "end"])
    assert [args["path"] for _, _, args in tools(ended)] == ["a"]


def test_what_is_excluded_is_refused_before_anything_else_is_looked_at() -> None:
    ended = governed("ReadOnly, Ask, OneWrite", [uses(("Files_write", {})), "end"])
    assert told(ended)[0].startswith("error TOOL_ARGUMENTS: there is no tool `Files_write`")
    assert tools(ended) == []


def test_approval_is_asked_for_the_very_arguments_that_are_sent() -> None:
    seen: list[object] = []

    def reply(call: Call) -> object:
        seen.append(call.args)
        return YES

    ended = governed("Ask", [uses(write("a", "é\n" * 100)), "end"], reply)
    assert seen[0] == seen[1]
    approval, call = (c for c in ended.asked if c.kind != AGENT)
    assert (approval.by, approval.id, approval.effect, approval.policies) == ("T", "c0", "write", ("Ask",))
    assert (call.by, call.id, call.scope, call.stage) == ("T", "c0", (0,), "1")
    assert approval.scope == call.scope


def test_one_approval_serves_all_policies_that_want_one() -> None:
    ended = governed("Ask, AskAll", [uses(write()), "end"])
    assert [c.policies for c in ended.asked if c.kind == APPROVAL] == [("Ask", "AskAll")]


@pytest.mark.parametrize(
    "said", [NO, {}, {"approved": "yes"}, {"approved": 1}, {"approved": None}, None, "yes", True, []]
)
def test_only_a_plain_yes_approves(said: object) -> None:
    ended = governed("Ask", [uses(write()), "end"], lambda call: said)
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL]
    assert told(ended) == ["error APPROVAL_DENIED: a person refused this call of `Files.write`"]


def test_a_reason_goes_to_the_model() -> None:
    ended = governed("Ask", [uses(write()), "end"], lambda call: {"approved": False, "reason": "not that file"})
    assert told(ended) == ["error APPROVAL_DENIED: a person refused this call of `Files.write`: not that file"]


def test_an_approval_that_fails_is_the_calls_failure_and_uses_nothing() -> None:
    replies = iter([failed("TOOL_ERROR", "`old` is not in the file"), YES, "done"])
    ended = governed("Ask, OneWrite", [uses(write()), uses(write()), "end"], lambda call: next(replies))
    assert told(ended, 1) == ["error TOOL_ERROR: `old` is not in the file"]
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL, APPROVAL, TOOL]
    assert ended.calls["Files.write"] == 1


# MaxCalls --------------------------------------------------------------------------------------------------------


def test_max_calls_bounds_all_calls_of_the_agent_in_the_run() -> None:
    ended = governed("Two", [uses(read("1")), uses(read("2"), read("3"), write()), "end"])
    assert [args["path"] for _, _, args in tools(ended)] == ["1", "2"]
    assert ["DENIED" in text for text in told(ended, 2)] == [False, False, True, True]


@pytest.mark.parametrize("pick", [first, last])
def test_parallel_branches_share_the_count(pick) -> None:
    answers: dict[object, list[object]] = {(i,): [uses(read(str(i))), "end"] for i in range(4)}
    text = HEAD + "agent T [openai/gpt-4o]\n  equips Files\n  requires Two\n"
    text += 'pipeline P(x: Any) -> Result:\n  x\n    |* each(i in [0, 1, 2, 3]) => T.work("Go.", tools: [Files])\n'
    ended = run(checked(text), lambda c: answers[c.scope].pop(0) if c.kind == AGENT else "r", pick=pick)
    assert ended.calls == {"T.work": 4, "Files.read": 2}
    wanted = ["0", "1"] if pick is first else ["3", "2"]
    assert [args["path"] for _, _, args in tools(ended)] == wanted


def test_a_call_that_waits_for_a_person_holds_its_place() -> None:
    """Two branches, one call left: the second is refused while the first waits, and not let through by its denial."""
    text = HEAD + "agent T [openai/gpt-4o]\n  equips Files\n  requires OneWrite, Ask\n"
    text += 'pipeline P(x: Any) -> Result:\n  x\n    |* each(i in [0, 1]) => T.work("Go.", tools: [Files])\n'
    answers: dict[object, list[object]] = {(i,): [uses(write(str(i))), "end"] for i in range(2)}

    def reply(call: Call) -> object:
        return answers[call.scope].pop(0) if call.kind == AGENT else NO

    def people_last(waiting):
        return next((at for at, r in enumerate(waiting) if r.call.kind == AGENT), 0)

    ended = run(checked(text), reply, pick=people_last)
    assert [(kind, args["path"]) for kind, _, args in tools(ended)] == [(APPROVAL, "0")]
    assert ended.calls == {"T.work": 2}


def test_denied_and_refused_calls_give_their_place_back() -> None:
    replies = iter([NO, YES, "written"])
    answers = [
        uses(write("n")),
        uses(write("x.env")),
        uses(("Files_write", {})),
        uses(write("y")),
        uses(write("z")),
        "end",
    ]
    ended = governed("Ask, OneWrite, NoEnv", answers, lambda call: next(replies))
    assert [(kind, args["path"]) for kind, _, args in tools(ended)] == [(APPROVAL, "n"), (APPROVAL, "y"), (TOOL, "y")]
    assert ended.calls == {"T.work": 1, "Files.write": 1}
    assert told(ended, 5)[-1].startswith("error DENIED: the 1 calls of Files.write")


def test_a_call_that_fails_was_made() -> None:
    ended = governed("OneWrite", [uses(write()), uses(write()), "end"], lambda call: failed("TOOL_ERROR", "disk full"))
    assert ended.calls == {"T.work": 1, "Files.write": 1}
    assert told(ended, 2)[-1].startswith("error DENIED")


def test_each_agent_has_a_count_of_its_own_under_one_policy() -> None:
    text = HEAD + "".join(f"agent {a} [openai/gpt-4o]\n  equips Files\n  requires OneWrite\n" for a in ("T", "U"))
    text += "pipeline P(x: Any) -> Result:\n  x\n    |> T.go(tools: [Files])\n    |> U.go(tools: [Files])\n"
    answers = [uses(write()), "end", uses(write()), "end"]
    assert run(checked(text), lambda c: answers.pop(0) if c.kind == AGENT else "r").calls["Files.write"] == 2


# Denials ---------------------------------------------------------------------------------------------------------


def test_the_third_denial_of_the_same_call_fails_the_run() -> None:
    ended = governed("Ask", [uses(write())] * 3 + ["never"], lambda call: {"approved": False, "reason": "no"})
    assert (ended.status, ended.code, ended.stage) == ("failed", "APPROVAL_DENIED", "1")
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL] * 3
    assert "no" in ended.message
    assert ended.calls == {"T.work": 1}


def test_denials_with_other_arguments_are_others() -> None:
    answers = [uses(write("a")), uses(write("b")), uses(write("a")), uses(write("b")), "end"]
    assert governed("Ask", answers, lambda call: NO).status == "completed"


def test_the_order_of_arguments_makes_no_other_call() -> None:
    forth = ("Files_write", {"path": "a", "content": "c"})
    back = ("Files_write", {"content": "c", "path": "a"})
    assert governed("Ask", [uses(forth), uses(back), uses(forth), "never"], lambda call: NO).code == "APPROVAL_DENIED"


def test_denials_of_all_branches_count_together() -> None:
    ended = governed("Ask", [uses(write())] * 3, lambda call: NO, each="[1, 2, 3]")
    assert (ended.code, ended.stage) == ("APPROVAL_DENIED", "1")


# Changed arguments -----------------------------------------------------------------------------------------------


def test_changed_arguments_are_what_is_sent() -> None:
    changed = {"path": "b", "content": "d"}
    ended = governed("Ask", [uses(write()), "end"], lambda call: {**YES, "args": changed})
    assert tools(ended)[-1] == (TOOL, "Files.write", changed)


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"path": "b.env", "content": "d"}, "DENIED"), ({"path": "b"}, "TOOL_ARGUMENTS"), ({}, "TOOL_ARGUMENTS")],
)
def test_changed_arguments_are_checked_again_and_use_nothing_when_refused(changed: object, code: str) -> None:
    replies = iter([{**YES, "args": changed}, YES, "written"])
    ended = governed("Ask, NoEnv, OneWrite", [uses(write()), uses(write()), "end"], lambda call: next(replies))
    assert told(ended, 1)[0].startswith(f"error {code}: ")
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL, APPROVAL, TOOL]


@pytest.mark.parametrize("changed", ['{"path": "b", "content": "d"}', [write()[1]], None, True, 1])
def test_changed_arguments_that_are_no_object_approve_nothing(changed: object) -> None:
    ended = governed("Ask", [uses(write()), uses(write()), "end"], lambda call: {**YES, "all": True, "args": changed})
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL, APPROVAL]
    refused = "error APPROVAL_DENIED: a person refused this call of `Files.write`"
    assert told(ended) == [f"{refused}: the changed arguments were no JSON object"]


@pytest.mark.parametrize("all_", ["no", 1, ["Files.*"], "true", None, False])
def test_only_true_is_a_yes_to_all(all_: object) -> None:
    ended = governed("Ask", [uses(write()), uses(write("b")), "end"], lambda call: {**YES, "all": all_})
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL, TOOL, APPROVAL, TOOL]


# All like this ---------------------------------------------------------------------------------------------------


def test_yes_to_all_holds_for_the_method_in_this_run() -> None:
    ended = governed("AskAll", [uses(write("a")), uses(write("b"), read()), "end"], lambda call: {**YES, "all": True})
    assert [(kind, target) for kind, target, _ in tools(ended)] == [
        (APPROVAL, "Files.write"),
        (TOOL, "Files.write"),
        (TOOL, "Files.write"),
        (APPROVAL, "Files.read"),
        (TOOL, "Files.read"),
    ]


def test_yes_to_all_does_not_widen_what_is_refused_earlier() -> None:
    ended = governed(
        "Ask, NoEnv, OneWrite",
        [uses(write("a")), uses(write("b.env"), write("c")), "end"],
        lambda c: {**YES, "all": True},
    )
    assert [args["path"] for _, _, args in tools(ended)] == ["a", "a"]


def test_no_to_all_is_no() -> None:
    ended = governed("Ask", [uses(write("a")), uses(write("b")), "end"], lambda c: {**NO, "all": True})
    assert [kind for kind, _, _ in tools(ended)] == [APPROVAL, APPROVAL]


# Files that change meanwhile -------------------------------------------------------------------------------------

CHANGED = Answer(None, Failure("CHANGED", "the file has changed"))


def test_the_digest_of_an_approval_goes_with_the_call() -> None:
    ended = governed("Ask", [uses(write()), "end"], lambda c: Answer(YES, digest="d1") if c.kind == APPROVAL else "ok")
    assert [c.digest for c in ended.asked if c.kind == TOOL] == ["d1"]


def test_a_file_that_changed_meanwhile_is_asked_about_again() -> None:
    replies = iter([Answer(YES, digest="d1"), CHANGED, Answer(YES, digest="d2"), "written"])
    ended = governed("Ask, OneWrite", [uses(write()), "end"], lambda call: next(replies))
    assert [(c.kind, c.digest) for c in ended.asked if c.kind != AGENT] == [
        (APPROVAL, None),
        (TOOL, "d1"),
        (APPROVAL, None),
        (TOOL, "d2"),
    ]
    assert told(ended) == ["written"]
    assert ended.calls == {"T.work": 1, "Files.write": 1}


def test_a_no_to_the_second_question_is_no() -> None:
    replies = iter([Answer({**YES, "all": True}, digest="d1"), CHANGED, NO])
    ended = governed("Ask", [uses(write()), "end"], lambda call: next(replies))
    assert told(ended)[0].startswith("error APPROVAL_DENIED")
    assert ended.calls == {"T.work": 1}


def test_changed_arguments_hold_for_the_second_question() -> None:
    changed = {"path": "b", "content": "d"}
    replies = iter([Answer({**YES, "args": changed}, digest="d1"), CHANGED, Answer(YES, digest="d2"), "written"])
    ended = governed("Ask", [uses(write()), "end"], lambda call: next(replies))
    assert [args for _, _, args in tools(ended)][1:] == [changed] * 3


def test_changed_without_an_approval_is_the_tools_own_failure() -> None:
    assert told(governed("Two", [uses(write()), "end"], lambda call: CHANGED)) == [
        "error CHANGED: the file has changed"
    ]


def test_the_patterns_of_deny_args_go_with_the_call() -> None:
    ended = governed("NoEnv", [uses(write("link")), "end"], lambda call: "ok")
    assert [c.denied_paths for c in ended.asked if c.kind == TOOL] == [("*.env",)]


# Pipelines -------------------------------------------------------------------------------------------------------


def of_pipeline(requires: str, call: str, reply: Callable[[Call], object]) -> Ended:
    text = HEAD + f"pipeline P(x: Any) -> Result requires {requires}:\n  x\n    |> System.Log()\n    |> {call}\n"
    return run(checked(text), reply)


@pytest.mark.parametrize(
    ("requires", "call", "code"),
    [
        ("NoEnv", 'Files.write(path: "{{x}}.env", content: "c")', "DENIED"),
        ("Ask", 'Files.write("a", "c")', "APPROVAL_DENIED"),
        ("OneWrite", "W(x)", "DENIED"),
    ],
)
def test_what_refuses_a_call_of_the_pipeline_fails_the_run(requires: str, call: str, code: str) -> None:
    text = HEAD + f"pipeline P(x: Any) -> Result requires {requires}:\n  x\n    |> System.Log()\n    |> {call}\n"
    text += 'pipeline W(x: Any) -> Result:\n  x\n    |> Files.write("a", "b")\n    |> Files.write("b", "c")\n'
    ended = run(checked(text), lambda c: NO if c.kind == APPROVAL else "ok")
    assert (ended.status, ended.code) == ("failed", code)
    assert ended.stage == ("2.2" if call == "W(x)" else "2")


def test_an_approved_call_of_the_pipeline_is_made_by_nobody() -> None:
    ended = of_pipeline("Ask", 'Files.write("a", "c")', lambda c: YES if c.kind == APPROVAL else "ok")
    assert [(c.kind, c.by, c.scope, c.stage) for c in ended.asked] == [(APPROVAL, None, (), "2"), (TOOL, None, (), "2")]
    assert ended.output == "ok"


def test_a_pipelines_calls_are_not_governed_by_an_agents_policies() -> None:
    text = HEAD + "agent T [openai/gpt-4o]\n  equips Files\n  requires ReadOnly, Ask\n"
    text += 'pipeline P(x: Any) -> Result:\n  x\n    |> T.go()\n    |> Files.write("a", "c")\n'
    assert run(checked(text)).targets() == ["T.go", "Files.write"]


def test_a_called_pipelines_policies_end_with_it() -> None:
    text = HEAD + 'pipeline In(x: Any) -> Result requires Ask:\n  x\n    |> Files.write("a", "c")\n'
    text += 'pipeline P(x: Any) -> Result:\n  x\n    |> In()\n    |> Files.write("b", "c")\n'
    assert run(checked(text)).targets(APPROVAL) == ["Files.write"]


def test_a_pipeline_that_calls_itself_counts_once_for_each_call() -> None:
    text = (
        HEAD + 'pipeline P(x: Any) -> Result requires Two:\n  x\n    |> Files.read("a")\n    |? { (x) => P(false) }\n'
    )
    ended = run(checked(text), args={"x": True})
    assert (ended.status, ended.calls) == ("completed", {"Files.read": 2})


def test_the_systems_own_methods_are_no_tools() -> None:
    text = "policy All : ApproveEffects(external, write, read) & MaxCalls(1)\n"
    text += "pipeline P(x: Any) -> Result requires All:\n  x\n    |> System.Publish()\n    |> System.Publish()\n"
    ended = run(checked(text))
    assert (ended.status, ended.targets(APPROVAL)) == ("completed", [])
