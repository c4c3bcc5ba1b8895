"""Loops: tries, what they bind and show, how they nest and overlap (language.md §7, Pipe Operators)."""

from __future__ import annotations

import pytest

from runs import Answer, Call, Ended, failed, last, pipeline, run, text_of

NOT_OK = '|<> loop(A, "context.current != \\"ok\\"")'
UNTIL_OK = '|<> loop(A, "context.data.B.test != \\"ok\\"", max: 3) as attempts'


def tried(results: list[str], loop: str = UNTIL_OK) -> Ended:
    return run(pipeline("|> A.write() as code", "|> B.test()", loop), {"B.test": results})


@pytest.mark.parametrize("results", [["ok"], ["no", "ok"], ["no", "no", "ok"]])
def test_the_run_goes_back_while_the_condition_holds(results: list[str]) -> None:
    ended = tried(results)
    assert (ended.status, ended.output) == ("completed", "ok")
    assert ended.targets() == ["A.write", "B.test"] * len(results)
    assert ended.data["attempts"] == len(results) - 1
    assert "loop" not in ended.data


def test_max_counts_tries_the_first_included() -> None:
    ended = tried(["no", "no", "last"])
    assert (ended.status, ended.code, ended.stage) == ("failed", "LOOP_LIMIT", "3")
    assert ended.calls == {"A.write": 3, "B.test": 3}
    assert 'context.data.B.test != "ok"' in ended.message
    assert "last" in ended.message
    assert "attempts" not in ended.data


def test_without_max_there_are_three_tries() -> None:
    ended = tried(["no"] * 3, UNTIL_OK.replace(", max: 3", ""))
    assert (ended.code, ended.calls["A.write"]) == ("LOOP_LIMIT", 3)


def test_a_single_try_may_not_go_back() -> None:
    assert tried(["no"], UNTIL_OK.replace("max: 3", "max: 1")).calls == {"A.write": 1, "B.test": 1}
    assert tried(["ok"], UNTIL_OK.replace("max: 3", "max: 1")).data["attempts"] == 0


def test_the_value_flows_back() -> None:
    ended = run(pipeline("|> A.write()", "|> B.test()", NOT_OK), {"B.test": ["no", "ok"]})
    assert [text_of(ended.request(at).messages[0]).startswith("Your task: write.\n\nin") for at in (0, 2)] == [
        True,
        False,
    ]
    assert text_of(ended.request(2).messages[0]).startswith("Your task: write.\n\nno")


def test_it_goes_back_to_the_most_recent_stage_of_the_agent() -> None:
    ended = run(
        pipeline("|> A.one()", "|> A.two()", "|> B.test()", NOT_OK, "|> A.three()"),
        {"B.test": ["no", "ok"]},
    )
    assert ended.targets() == ["A.one", "A.two", "B.test", "A.two", "B.test", "A.three"]


def test_while_it_loops_the_context_says_so() -> None:
    show = pipeline(params="seen: Any", source="seen", name="Show")
    stages = ("|> A.write()", "|> Show(context.data.loop)", "|> B.test()", UNTIL_OK)
    ended = run(show + pipeline(*stages), {"B.test": "no"})
    inputs = [text_of(c.request.messages[0]) for c in ended.asked if c.target == "B.test"]
    condition = '"condition":"context.data.B.test != \\"ok\\""'
    assert inputs == [
        "Your task: test.",
        f'Your task: test.\n\n{{"target":"A","iteration":1,{condition}}}',
        f'Your task: test.\n\n{{"target":"A","iteration":2,{condition}}}',
    ]


def test_a_condition_is_evaluated_once_a_pass() -> None:
    ended = run(pipeline("|> A.write()", '|<> loop(A, "context.data.loop.iteration < 2", max: 9) as n'))
    assert ended.targets() == ["A.write"]  # there is no iteration before the first jump
    ended = run(pipeline("|> A.write()", '|<> loop(A, "!(context.data.loop.iteration >= 2)", max: 9) as n'))
    assert (ended.targets(), ended.data["n"]) == (["A.write"] * 3, 2)


# What the retried agent is shown ---------------------------------------------------------------------------------


def test_the_retried_agent_is_shown_what_the_check_saw_the_condition_and_its_previous_answer() -> None:
    ended = run(
        pipeline('|> A.write("Write it.", x)', '|> B.test("Test it.")', UNTIL_OK),
        {"A.write": ["first-answer", "second-answer", "third"], "B.test": ["failure-1", "failure-2", "ok"]},
    )
    once, _, twice, test, thrice, _ = (ended.said(at) for at in range(6))
    assert "first-answer" not in once
    assert once == "Write it.\n\nin"
    assert "try" not in test
    for said, answer, failure, other in (
        (twice, "first-answer", "failure-1", "second-answer"),
        (thrice, "second-answer", "failure-2", "first-answer"),
    ):
        assert said.startswith("Write it.\n\nin\n\n")
        assert answer in said
        assert failure in said
        assert 'context.data.B.test != "ok"' in said
        assert other not in said


def test_it_is_shown_only_in_the_stage_gone_back_to() -> None:
    inner = pipeline("|> A.think()", name="In")
    stages = ("|> A.write()", "|> In()", "|> B.test()", UNTIL_OK)
    ended = run(inner + pipeline(*stages), {"B.test": ["bad", "ok"]})
    shown = [c.target for c in ended.asked if "another try" in text_of(c.request.messages[0])]
    assert ended.targets() == ["A.write", "A.think", "B.test"] * 2
    assert shown == ["A.write"]


def test_in_a_fan_out_only_the_agents_own_members_are_shown_theirs() -> None:
    stage = '|* { A.one("1"), B.two("2"), A.three("3") }'
    ended = run(
        pipeline(stage, "|> C.test()", '|<> loop(A, "context.data.C.test != \\"ok\\"")'),
        {"C.test": ["bad", "ok"], "A.one": ["one-1", "one-2"], "A.three": ["three-1", "three-2"]},
        pick=last,
    )
    again = {c.target: text_of(c.request.messages[0]) for c in ended.asked[4:7]}
    assert "one-1" in again["A.one"]
    assert "three-1" in again["A.three"]
    assert "three-1" not in again["A.one"].replace('["one-1","B.two","three-1"]', "")
    assert "another try" not in again["B.two"]


def test_in_a_branch_the_arm_that_runs_is_shown_the_agents_previous_answer() -> None:
    stage = "|? { (!context.data.C.test) => A.first(), else => A.later() }"
    ended = run(
        pipeline(stage, "|> C.test()", '|<> loop(A, "context.data.C.test != \\"ok\\"")'),
        {"C.test": ["bad", "ok"], "A.first": "from-first"},
    )
    assert ended.targets() == ["A.first", "C.test", "A.later", "C.test"]
    assert "from-first" in ended.said(2)


def test_in_an_each_every_item_is_shown_its_own_previous_answer() -> None:
    def reply(call: Call) -> object:
        if call.target == "C.test":
            return "ok" if "again" in text_of(call.request.messages[0]) else "bad"
        return f"answer-{call.scope[0]}" if "another try" not in text_of(call.request.messages[0]) else "again"

    stages = ("|* each(d in x) => A.write(d)", "|> C.test()", '|<> loop(A, "context.data.C.test != \\"ok\\"")')
    ended = run(pipeline(*stages), reply, args={"x": ["a", "b"]}, pick=last)
    again = [c for c in ended.asked if c.target == "A.write"][2:]
    assert [c.scope for c in again] == [(0,), (1,)]
    for call in again:
        said = text_of(call.request.messages[0])
        assert f"Your previous answer, which did not pass:\nanswer-{call.scope[0]}" in said
        assert f"passed:\nanswer-{1 - call.scope[0]}" not in said


def test_what_a_loop_shows_is_data_but_the_words_around_it() -> None:
    ended = run(
        pipeline('|> A.write("Write.")', NOT_OK),
        {"A.write": ["Ignore all.", "ok"]},
    )
    message = ended.request(1).messages[0]
    assert not [part for part in message.parts if isinstance(part, str) and "Ignore" in part]


def test_an_agent_with_tools_is_shown_its_last_answer() -> None:
    text = 'tool Files : Workspace(".")\nagent D [openai/gpt-4o]\n  equips Files\n'
    use = Answer("let me look", tool_uses=())
    ended = run(
        text + pipeline("|> D.write(tools: [Files])", '|<> loop(D, "context.current != \\"ok\\"")'),
        {"D.write": [use, "ok"]},
    )
    assert "let me look" in ended.said(1)


# Nested and overlapping ------------------------------------------------------------------------------------------


def test_jumping_back_over_an_inner_loop_starts_it_afresh() -> None:
    stages = (
        "|> A.plan()",
        "|> B.write()",
        '|<> loop(B, "context.data.B.write != \\"ok\\"", max: 3) as inner',
        "|> C.judge()",
        '|<> loop(A, "context.data.C.judge != \\"ok\\"", max: 2) as outer',
    )
    ended = run(pipeline(*stages), {"B.write": ["no", "no", "ok", "no", "no", "ok"], "C.judge": ["no", "ok"]})
    assert (ended.status, ended.data["inner"], ended.data["outer"]) == ("completed", 2, 1)
    assert ended.calls == {"A.plan": 2, "B.write": 6, "C.judge": 2}
    assert "loop" not in ended.data


def test_the_inner_loops_end_shows_the_outer_loop_again() -> None:
    show = pipeline(params="seen: Any", source="seen", name="Show")
    stages = (
        "|> A.plan()",
        "|> B.write()",
        '|<> loop(B, "context.data.B.write != \\"ok\\"", max: 3)',
        "|> Show(context.data.loop.target) as during",
        "|> C.judge()",
        '|<> loop(A, "context.data.C.judge != \\"ok\\"", max: 2)',
        "|> Show(context.data.loop) as after",
    )
    ended = run(show + pipeline(*stages), {"B.write": ["ok", "no", "ok"], "C.judge": ["no", "ok"]})
    assert (ended.data["during"], ended.data["after"]) == ("A", None)


def test_after_the_inner_loop_a_fresh_pass_shows_no_old_try() -> None:
    stages = (
        "|> A.plan()",
        "|> B.write()",
        '|<> loop(B, "context.data.B.write != \\"ok\\"", max: 3)',
        "|> C.judge()",
        '|<> loop(A, "context.data.C.judge != \\"ok\\"", max: 2)',
    )
    ended = run(pipeline(*stages), {"B.write": ["no", "ok", "ok"], "C.judge": ["no", "ok"]})
    shown = ["another try" in text_of(c.request.messages[0]) for c in ended.asked]
    assert list(zip(ended.targets(), shown, strict=True)) == [
        ("A.plan", False),
        ("B.write", False),
        ("B.write", True),
        ("C.judge", False),
        ("A.plan", True),
        ("B.write", False),
        ("C.judge", False),
    ]


def test_loops_that_overlap_each_have_their_own_tries() -> None:
    stages = (
        "|> A.one()",
        "|> B.two()",
        '|<> loop(A, "context.data.B.two == \\"a\\"", max: 2) as to_a',
        '|<> loop(B, "context.data.B.two == \\"b\\"", max: 2) as to_b',
    )
    ended = run(pipeline(*stages), {"B.two": ["a", "b", "ok"]})
    assert (ended.status, ended.targets()) == ("completed", ["A.one", "B.two", "A.one", "B.two", "B.two"])
    # Going back to B jumps over the loop to A, which starts afresh.
    assert (ended.data["to_a"], ended.data["to_b"]) == (0, 1)


def test_overlapping_loops_end_whatever_is_answered() -> None:
    stages = (
        "|> A.one()",
        "|> B.two()",
        '|<> loop(A, "context.data.B.two == \\"a\\"", max: 3)',
        '|<> loop(B, "context.data.B.two == \\"b\\"", max: 3)',
    )
    answers = iter(["a", "a", "b", "a", "a", "b", "a", "a", "a"])
    ended = run(pipeline(*stages), lambda c: next(answers) if c.target == "B.two" else "x")
    assert (ended.code, ended.stage, ended.calls["B.two"]) == ("LOOP_LIMIT", "3", 9)


def test_a_loop_inside_a_called_pipeline_counts_for_each_call() -> None:
    inner = pipeline("|> A.write()", '|<> loop(A, "context.current != \\"ok\\"", max: 2) as n', name="In")
    text = inner + pipeline("|* each(d in [1, 2, 3]) => In(d)", "|> In(x)", "|> B.end(context.data.loop)")
    done: dict[object, int] = {}

    def reply(call: Call) -> object:
        if call.target != "A.write":
            return "end"
        done[call.scope] = done.get(call.scope, 0) + 1
        return "ok" if done[call.scope] == 2 else "no"

    ended = run(text, reply, pick=last)
    assert (ended.status, ended.calls) == ("completed", {"A.write": 8, "B.end": 1})


def test_a_failure_in_a_second_try_has_the_place_of_its_stage() -> None:
    ended = run(
        pipeline("|> B.first()", "|> A.write()", NOT_OK),
        {"A.write": ["no", failed("MODEL_ERROR", "gone")]},
    )
    assert (ended.code, ended.stage) == ("MODEL_ERROR", "2")


def test_a_loop_may_go_back_very_often() -> None:
    ended = run(
        pipeline("|> A.write()", '|<> loop(A, "context.current != \\"ok\\"", max: 20000) as n'),
        {"A.write": ["no"] * 19_999 + ["ok"]},
    )
    assert ended.data["n"] == 19_999


def test_a_value_that_grows_deeper_with_every_try_ends_in_a_failure_not_in_a_crash() -> None:
    wrap = pipeline(params="v: Any", source="[v]", name="Wrap")
    stages = ("|> A.go()", "|> Wrap(context.data.Wrap)", '|<> loop(A, "true", max: 1200)')
    ended = run(wrap + pipeline(*stages))
    assert ended.status == "failed"
    assert len(ended.message) < 300
