"""Operators: what each stage does to the flowing value, the context and the run (language.md §4, §7)."""

from __future__ import annotations

import pytest

from runs import Answer, checked, failed, first, last, pipeline, run, text_of

INNER = pipeline("|> A.think() as note", '|? (context.current != "stop")', name="Inner")


# Pipe ------------------------------------------------------------------------------------------------------------


def test_a_result_flows_is_named_and_has_its_usual_place() -> None:
    ended = run(pipeline("|> A.outline() as outline", "|> B.draft()"), {"A.outline": "1. cats", "B.draft": "text"})
    assert (ended.status, ended.output) == ("completed", "text")
    assert ended.data == {"A": {"outline": "1. cats"}, "outline": "1. cats", "B": {"draft": "text"}}


def test_the_flowing_value_is_the_input_where_there_is_none_else() -> None:
    ended = run(pipeline("|> A.one()", "|> A.two(x)", "|> A.three(context.data.A.one)"), {"A.one": "1", "A.two": "2"})
    assert [text_of(ended.request(at).messages[0]).split("\n\n")[-1] for at in range(3)] == ["in", "in", "1"]


def test_the_most_recent_call_has_the_usual_place() -> None:
    ended = run(pipeline("|> A.go()", "|> A.go()"), {"A.go": ["old", "new"]})
    assert ended.data == {"A": {"go": "new"}}


def test_a_source_is_any_expression() -> None:
    ended = run(pipeline(source='[1, {a: x, "b c": null}, "{{x}}!", true]'))
    assert ended.output == [1, {"a": "in", "b c": None}, "in!", True]


def test_a_name_bound_twice_holds_what_came_last() -> None:
    ended = run(pipeline("|> A.go() as y", "|> B.go() as y", "|> C.go(y)"), {"B.go": "second"})
    assert ended.data["y"] == "second"
    assert "second" in ended.said(2)


# Gate ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "noted"),
    [
        ('|? (context.current == "no")', 'context.current == "no"'),
        ('|? (context.current  ==  "no") =>', 'context.current  ==  "no"'),
        ("|? (!x)", "!x"),
    ],
)
def test_a_false_gate_halts_with_its_condition_as_written(written: str, noted: str) -> None:
    ended = run(pipeline("|> A.go()", written, "|> A.never()"))
    assert (ended.status, ended.output, ended.stage, ended.condition) == ("halted", "A.go", "2", noted)
    assert ended.targets() == ["A.go"]


def test_a_true_gate_changes_nothing() -> None:
    ended = run(pipeline("|? (x)"))
    assert (ended.status, ended.output, ended.data) == ("completed", "in", {})


def test_a_gate_in_a_called_pipeline_halts_the_whole_run() -> None:
    text = INNER + pipeline("|> B.first()", "|> Inner()", "|> B.never()")
    ended = run(text, {"A.think": "stop"})
    assert (ended.status, ended.output, ended.stage) == ("halted", "stop", "2.2")
    assert ended.condition == 'context.current != "stop"'
    assert ended.targets() == ["B.first", "A.think"]


def test_a_gate_three_pipelines_down_is_named_by_all_their_stages() -> None:
    middle = pipeline("|> B.first()", "|> B.second()", "|> Inner()", name="Middle")
    ended = run(INNER + middle + pipeline("|> Middle()"), {"A.think": "stop"})
    assert (ended.status, ended.stage) == ("halted", "1.3.2")


@pytest.mark.parametrize(
    "stage",
    ["|* { Inner(), B.other() }", "|* { B.other(), Inner() as i }", "|* each(i in [1, 2, 3]) => Inner(i)"],
)
def test_a_gate_in_a_branch_halts_the_whole_run_and_stops_the_others(stage: str) -> None:
    ended = run(
        INNER + pipeline("|> C.first()", stage, "|> B.never()"), lambda c: "stop" if c.target == "A.think" else 1
    )
    assert (ended.status, ended.output, ended.stage) == ("halted", "stop", "2.2")
    assert "B.never" not in ended.targets()
    assert "i" not in ended.data


# Branch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "called"), [("a", "A.one"), ("b", "A.two"), ("c", "A.three")])
def test_a_branch_takes_the_first_arm_that_holds(x: str, called: str) -> None:
    stage = '|? { (x == "a") => A.one(), (x != "c") => A.two(), else => A.three() } as took'
    ended = run(pipeline(stage), args={"x": x})
    assert ended.targets() == [called]
    assert (ended.output, ended.data["took"]) == (called, called)


def test_no_arm_leaves_the_value_and_binds_it_unchanged() -> None:
    ended = run(pipeline('|? { (x == "a") => A.one() } as took'), args={"x": [1]})
    assert (ended.output, ended.data, ended.targets()) == ([1], {"took": [1]}, [])


def test_an_arm_may_call_a_pipeline_or_a_method_of_the_system() -> None:
    ended = run(INNER + pipeline('|? { (x == "in") => Inner(x) }', "|? { else => System.Print(1) } as shown"))
    assert ended.shown.printed_values == [1]
    assert ended.data["shown"] == 1
    assert ended.data["System"] == {"Print": 1}


# Fan-out ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pick", [first, last])
def test_a_fan_out_gives_a_list_in_written_order_whatever_the_order_of_answers(pick) -> None:
    ended = run(INNER + pipeline("|* { A.one() as a, B, C.three(), Inner } as all"), pick=pick)
    assert ended.output == ["A.one", "B.prompt", "C.three", "A.think"]
    assert ended.data == {
        "A": {"one": "A.one"},
        "a": "A.one",
        "B": {"prompt": "B.prompt"},
        "C": {"three": "C.three"},
        "Inner": "A.think",
        "all": ["A.one", "B.prompt", "C.three", "A.think"],
    }


@pytest.mark.parametrize("pick", [first, last])
def test_what_branches_store_is_merged_in_written_order(pick) -> None:
    stage = '|* { A.go("one") as y, A.go("two") as y }'
    ended = run(pipeline(stage), lambda c: text_of(c.request.messages[0])[:3], pick=pick)
    assert ended.data == {"A": {"go": "two"}, "y": "two"}


@pytest.mark.parametrize("pick", [first, last])
def test_a_branch_reads_what_was_stored_before_the_stage_only(pick) -> None:
    show = pipeline(params="seen: Any", source="seen", name="Show")
    stage = "|* { A.go(), Show(context.data.A.go), B.go(), Show(context.data) }"
    ended = run(show + pipeline("|> A.go()", stage), {"A.go": ["before", "after"]}, pick=pick)
    assert ended.output[1] == "before"
    assert ended.output[3] == {"A": {"go": "before"}}


def test_all_branches_are_asked_before_an_answer_is_handed_in() -> None:
    seen = []

    def reply(call):
        seen.append(call.target)
        return failed("MODEL_ERROR", "no") if call.target == "A.one" else "x"

    ended = run(pipeline("|* { A.one(), A.two(), A.three() }"), reply)
    assert (ended.status, ended.stage, ended.calls) == ("failed", "1", {"A.one": 1, "A.two": 1, "A.three": 1})
    assert seen == ["A.one"]
    assert [c.target for c in ended.waiting] == ["A.two", "A.three"]


def test_a_failure_in_a_branch_has_the_place_of_its_call() -> None:
    program = checked(pipeline("|> C.first()", "|* { A.one(), B.two() }"))
    ended = run(program, {"B.two": failed("MODEL_ERROR", "no")}, pick=last)
    assert (ended.code, ended.message, ended.stage) == ("MODEL_ERROR", "no", "2")
    assert program.source.slice(ended.span) == "B.two()"


def test_a_failure_deep_in_a_branch_has_the_place_where_it_happened() -> None:
    program = checked(INNER + pipeline("|* { B.two(), Inner }"))
    ended = run(program, {"A.think": failed("MODEL_ERROR", "no")}, pick=last)
    assert ended.stage == "1.1"
    assert program.source.slice(ended.span).startswith("|> A.think()")


def test_scopes_are_the_positions_of_branches() -> None:
    inner = pipeline("|> A.deep()", "|* { B.one(), B.two() }", name="Two")
    ended = run(inner + pipeline("|> C.go()", "|* { A.go(), Two }", "|* each(i in [1, 2]) => Two(i)"))
    assert [(c.target, c.scope) for c in ended.asked] == [
        ("C.go", ()),
        ("A.go", (0,)),
        ("A.deep", (1,)),
        ("B.one", (1, 0)),
        ("B.two", (1, 1)),
        ("A.deep", (0,)),
        ("A.deep", (1,)),
        ("B.one", (0, 0)),
        ("B.two", (0, 1)),
        ("B.one", (1, 0)),
        ("B.two", (1, 1)),
    ]


# Each ------------------------------------------------------------------------------------------------------------

SHOW = pipeline(params="item: Any, at: Number, flowing: Any", source="[item, at, flowing]", name="Show")


def test_each_gives_the_item_by_name_and_as_the_flowing_value_and_its_index() -> None:
    ended = run(SHOW + pipeline("|* each(d in x) => Show(d, index, context.current) as all"), args={"x": ["a", None]})
    assert ended.output == ended.data["all"] == [["a", 0, "a"], [None, 1, None]]
    assert ended.data["Show"] == [None, 1, None]


def test_items_and_indexes_reach_templates() -> None:
    ended = run(pipeline('|* each(d in x) => A.go("{{index}}: {{d.k}}")'), args={"x": [{"k": "one"}, {"k": "two"}]})
    assert [ended.said(at).split("\n")[0] for at in (0, 1)] == ["0: one", "1: two"]


def test_the_item_hides_a_parameter_only_inside_the_call() -> None:
    ended = run(pipeline("|* each(x in x) => A.go(x)", "|> A.after(x)"), args={"x": ["one"]})
    assert "one" in ended.said(0)
    assert '["one"]' in ended.said(1)


@pytest.mark.parametrize("pick", [first, last])
@pytest.mark.parametrize(("written", "width"), [("", 4), (", concurrency: 1", 1), (", concurrency: 3", 3)])
def test_no_more_items_are_under_way_than_the_concurrency(pick, written: str, width: int) -> None:
    most = 0

    def watching(waiting):
        nonlocal most
        most = max(most, len(waiting))
        return pick(waiting)

    text = pipeline(f"|* each(d in x{written}) => A.go(d)")
    ended = run(text, lambda c: text_of(c.request.messages[0])[-1], args={"x": list("abcdefg")}, pick=watching)
    assert (ended.output, most) == (list("abcdefg"), width)


@pytest.mark.parametrize(("limit", "count"), [("1", 1), ("2", 2), ("9", 3), ("x.n", 2), ('"{{x.n}}"', 2)])
def test_limit_uses_the_first_items(limit: str, count: int) -> None:
    text = SHOW + pipeline(f"|* each(d in x.list, limit: {limit}) => Show(d, index, d)")
    ended = run(text, args={"x": {"list": ["a", "b", "c"], "n": 2}})
    assert [row[0] for row in ended.output] == ["a", "b", "c"][:count]


@pytest.mark.parametrize("option", ["limit", "concurrency"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "two", None, True, []])
def test_a_computed_limit_or_concurrency_is_a_whole_number_of_at_least_one(option: str, value: object) -> None:
    text = pipeline("|> A.first()", f"|* each(d in [1], {option}: x) => A.go(d)")
    ended = run(text, args={"x": value})
    assert (ended.status, ended.code, ended.stage) == ("failed", "ARGUMENT_TYPE", "2")
    assert option in ended.message
    assert ended.targets() == ["A.first"]


@pytest.mark.parametrize("value", ["[1]", None, {}, {"0": 1}, 3, True])
def test_each_over_what_is_no_list_fails(value: object) -> None:
    ended = run(pipeline("|* each(d in x) => A.go(d)"), args={"x": value})
    assert (ended.status, ended.code, ended.stage, ended.targets()) == ("failed", "NOT_A_LIST", "1", [])


@pytest.mark.parametrize("value", ["text" * 1000, "é" * 500])
def test_what_is_said_of_a_value_is_cut(value: str) -> None:
    ended = run(pipeline("|* each(d in x) => A.go(d)"), args={"x": value})
    assert len(ended.message) < 200


def test_each_over_an_empty_list_gives_one_and_stores_no_call() -> None:
    ended = run(pipeline("|* each(d in x) => A.go(d) as all", "|> System.Print()"), args={"x": []})
    assert (ended.data, ended.calls) == ({"all": [], "System": {"Print": []}}, {})


@pytest.mark.parametrize("pick", [first, last])
def test_the_last_item_keeps_the_usual_place(pick) -> None:
    ended = run(pipeline("|* each(d in x) => A.go(d)"), lambda c: c.scope[0], args={"x": [1, 2, 3]}, pick=pick)
    assert ended.data == {"A": {"go": 2}}


@pytest.mark.parametrize("value", ["xs", "data"])
def test_each_goes_over_the_list_as_it_was(value: str) -> None:
    """The list of the flowing value, and one in the context that the stage itself replaces."""
    source = {"xs": "context.current", "data": "context.data.all"}[value]
    inner = pipeline(params="d: Any", source='"{{d}}!"', name="More")
    both = pipeline("|* each(d in x) => More(d) as all", f"|* each(d in {source}) => More(d) as all")
    assert run(inner + both, args={"x": ["a", "b"]}).output == ["a!!", "b!!"]


def test_the_first_failure_of_an_item_stops_the_rest() -> None:
    ended = run(
        pipeline("|* each(d in x, concurrency: 1) => A.go(d)"),
        lambda c: failed("MODEL_ERROR", "no") if c.scope == (1,) else "ok",
        args={"x": [1, 2, 3]},
    )
    assert (ended.code, ended.calls, ended.data) == ("MODEL_ERROR", {"A.go": 2}, {})


# Yield -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "stored"),
    [
        ({"approved": True, "note": 1}, {"approved": True, "note": 1}),
        (True, {"approved": True}),
        (False, {"approved": False}),
        ("go ahead", {"text": "go ahead"}),
        ("yes", {"text": "yes"}),
        ({"approved": False, "timedOut": True}, {"approved": False, "timedOut": True}),
        ({}, {}),
    ],
)
def test_an_answer_to_a_yield_is_an_object_and_the_flowing_value_goes_on(answer: object, stored: object) -> None:
    ended = run(pipeline('|! yield("Go?") as review'), {"yield": answer})
    assert (ended.output, ended.data) == ("in", {"yield": stored, "review": stored})


def test_text_approves_nothing() -> None:
    ended = run(pipeline('|! yield("Go?") as r', "|? (context.data.r.approved == true)"), {"yield": "true"})
    assert ended.status == "halted"


@pytest.mark.parametrize("answer", [None, 3, [[True]]])
def test_any_other_answer_to_a_yield_is_an_object_that_approves_nothing(answer: object) -> None:
    ended = run(pipeline('|! yield("Go?") as r', "|? (r.approved)"), {"yield": answer})
    assert (ended.status, type(ended.data["yield"])) == ("halted", dict)


@pytest.mark.parametrize(
    ("written", "message", "channel", "attachments", "timeout"),
    [
        ('"Go {{x}}?"', "Go in?", None, [], None),
        ('msg: "Go?"', "Go?", None, [], None),
        ("message: x", "in", None, [], None),
        ('"Go?", channel: "#a"', "Go?", "#a", [], None),
        ('"Go?", queue: "#{{x}}"', "Go?", "#in", [], None),
        ('"Go?", Files', "Go?", "Files", [], None),
        ('"Go?", channel: Files', "Go?", "Files", [], None),
        ('"Go?", [x, 1], [[2]], 1h', "Go?", None, ["in", 1, [2]], 3600.0),
        ('"Go?", timeout: 90s', "Go?", None, [], 90.0),
        ('"Go?", timeout: 5', "Go?", None, [], 5.0),
        ("", "", None, [], None),
    ],
)
def test_what_a_yield_asks(
    written: str, message: str, channel: str | None, attachments: list[object], timeout: float | None
) -> None:
    text = 'tool Files : Workspace(".")\n' + pipeline("|> Files.list()", f"|! yield({written})")
    (asked,) = [c for c in run(text).asked if c.kind == "yield"]
    assert dict(asked.args) == {
        "message": message,
        "channel": channel,
        "attachments": attachments,
        "timeout": timeout,
    }
    assert (asked.target, asked.scope, asked.stage) == ("yield", (), "2")


def test_a_channel_only_says_where_to_ask() -> None:
    ended = run('tool Files : Workspace(".")\n' + pipeline('|! yield("Go?", channel: Files)'))
    assert (ended.targets(), ended.calls) == (["yield"], {})


# Listen ----------------------------------------------------------------------------------------------------------


def test_an_event_is_stored_at_its_path_and_the_flowing_value_goes_on() -> None:
    payload = {"reaction": "approve"}
    ended = run(pipeline("~> listen(Slack.Reaction) as got"), {"Slack.Reaction": payload})
    assert (ended.output, ended.data) == ("in", {"Slack": {"Reaction": payload}, "got": payload})
    assert ended.asked[0].kind == "listen"


def test_a_target_may_be_a_path_of_the_context() -> None:
    ended = run(pipeline("~> listen(context.current.event)"), args={"x": {"event": "Git.Push.Main"}})
    assert ended.targets() == ["Git.Push.Main"]
    assert ended.data == {"Git": {"Push": {"Main": "Git.Push.Main"}}}


@pytest.mark.parametrize("event", [None, 3, "", "a..b", ".a", "a.", {}, [], "a." * 100 + "a", "x" * 5000])
def test_an_event_without_a_name_is_a_failure(event: object) -> None:
    ended = run(pipeline("~> listen(context.current.event)"), args={"x": {"event": event}})
    assert (ended.status, ended.code, ended.stage) == ("failed", "ARGUMENT_TYPE", "1")
    assert len(ended.message) < 200


def test_an_event_replaces_what_stands_in_its_way() -> None:
    ended = run(
        pipeline("~> listen(Slack)", "~> listen(Slack.Reaction.Name)", "~> listen(Slack.Reaction)"),
        {"Slack": "text", "Slack.Reaction.Name": 1, "Slack.Reaction": 2},
    )
    assert ended.data == {"Slack": {"Reaction": 2}}


def test_an_event_below_a_value_leaves_that_value_as_it_was_where_it_is_bound() -> None:
    payload = {"a": 1}
    ended = run(pipeline("~> listen(Slack) as first", "~> listen(Slack.b)"), {"Slack": payload, "Slack.b": 2})
    assert ended.data == {"first": {"a": 1}, "Slack": {"a": 1, "b": 2}}
    assert payload == {"a": 1}


def test_a_usual_place_replaces_what_stands_in_its_way() -> None:
    text = INNER + pipeline("|> Inner(x)", "~> listen(Inner.Done)", "|> Inner(x)")
    assert run(text, {"Inner.Done": "event"}).data["Inner"] == "A.think"


# Context ---------------------------------------------------------------------------------------------------------


def test_reading_the_context_gives_a_copy_as_of_then() -> None:
    show = pipeline(params="seen: Any", source="seen", name="Show")
    ended = run(show + pipeline("|> A.one()", "|> Show(context) as then", "|> A.two()"))
    assert ended.data["then"] == {
        "current": "A.one",
        "data": {"A": {"one": "A.one"}},
        "meta": {"pipeline": "P", "runId": "run-1", "halted": None},
    }


@pytest.mark.parametrize("path", ["context.data", "context.data.A", "[context.data.A]", "{k: context.data}"])
def test_a_part_of_the_context_is_a_copy_too(path: str) -> None:
    show = pipeline(params="seen: Any", source="seen", name="Show")
    ended = run(show + pipeline("|> A.one()", f"|> Show({path}) as then", "|> A.two()", "|> Show(then)"))
    assert "two" not in str(ended.output)
    assert "one" in str(ended.output)


def test_a_called_pipeline_has_its_own_context_and_only_its_result_comes_back() -> None:
    inner = pipeline(
        "|> A.go() as mine", "|> System.Print(context)", "|> B.go()", params="y: Any", source="y", name="In"
    )
    ended = run(inner + pipeline("|> C.go() as outer", "|> In(1) as got"))
    assert ended.shown.printed_values == [
        {
            "current": "A.go",
            "data": {"A": {"go": "A.go"}, "mine": "A.go"},
            "meta": {"pipeline": "In", "runId": "run-1", "halted": None},
        }
    ]
    assert ended.data == {"C": {"go": "C.go"}, "outer": "C.go", "In": "B.go", "got": "B.go"}


def test_an_unknown_part_is_null() -> None:
    source = "[context.data.x.y, context.current.a, x.b[0].c, x.0, x[9], x.l[1], x.l.0, x.o[0]]"
    inner = pipeline(params="x: Any", source=source, name="In")
    ended = run(inner + pipeline("|> In(x)"), args={"x": {"l": ["a", "b"], "o": {"0": "zero"}}})
    assert ended.output == [None, None, None, None, None, "b", "a", "zero"]


# Called pipelines ------------------------------------------------------------------------------------------------

TWO = pipeline(params='a: Any, b: String = "dry"', source="[a, b]", name="Two")


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ("Two()", ["in", "dry"]),
        ("Two(1)", [1, "dry"]),
        ("Two(1, 2)", [1, "2"]),
        ("Two(b: 3)", ["in", "3"]),
        ("Two(a: 4)", [4, "dry"]),
        ("Two(5, b: null)", [5, ""]),
        ('Two(b: [1, {k: "v"}])', ["in", '[1,{"k":"v"}]']),
        ("Two(b: true)", ["in", "true"]),
    ],
)
def test_arguments_by_position_and_name(written: str, result: list[object]) -> None:
    assert run(TWO + pipeline(f"|> {written}")).output == result


@pytest.mark.parametrize(
    ("type_", "fits", "does_not"),
    [
        ("Number", [0, -1.5], ["1", True, None, [], {}]),
        ("Boolean", [True, False], ["true", 0, None]),
        ("List", [[], [1]], ["[]", {}, None]),
        ("Object", [{}, {"a": 1}], ["{}", [], None]),
        ("Any", [None, 1, "a", [], {}], []),
        ("Result", [None, 1], []),
    ],
)
def test_an_argument_that_does_not_fit_its_type_fails_the_run(
    type_: str, fits: list[object], does_not: list[object]
) -> None:
    text = pipeline(params=f"v: {type_}", source="v", name="In") + pipeline("|> A.first()", "|> In(x)")
    for value in fits:
        assert run(text, args={"x": value}).output == value
    for value in does_not:
        ended = run(text, args={"x": value})
        assert (ended.code, ended.stage) == ("ARGUMENT_TYPE", "2")
        assert "`v`" in ended.message


def test_calls_nest_sixteen_deep_and_no_deeper() -> None:
    text = pipeline('|? { (x != last) => Down("{{x}}a", last) }', params="x: String, last: String", name="Down")
    assert run(text, name="Down", args={"x": "", "last": "a" * 16}).output == "a" * 16
    ended = run(text, name="Down", args={"x": "", "last": "a" * 17})
    assert (ended.code, ended.stage) == ("CALL_DEPTH", ".".join(["1"] * 17))


def test_a_run_makes_at_most_a_hundred_thousand_pipeline_calls() -> None:
    leaf = pipeline(name="Leaf")
    row = pipeline("|* each(i in x) => Leaf(i)", name="Row")
    text = leaf + row + pipeline("|* each(i in x.rows) => Row(x.row)")
    args = {"rows": list(range(100)), "row": list(range(999))}
    assert run(text, args={"x": args}).status == "completed"
    ended = run(text, args={"x": {**args, "row": list(range(1000))}})
    assert (ended.code, ended.stage) == ("CALL_LIMIT", "1.1")


def test_a_default_is_used_where_an_argument_is_left_out() -> None:
    inner = pipeline(params="a: List = [1, {b: null}], t: String = 5", source="[a, t]", name="In")
    assert run(inner + pipeline("|> In([2])")).output == [[2], "5"]
    assert run(inner + pipeline('|> In(t: "x", a: [])')).output == [[], "x"]


# The system ------------------------------------------------------------------------------------------------------


def test_print_log_and_publish_pass_their_value_on() -> None:
    ended = run(pipeline('|> System.Print("p {{x}}")', "|> System.Log()", "|> System.Publish([1])"))
    assert (ended.shown.printed_values, ended.shown.logged_values) == (["p in"], ["p in"])
    assert ended.output == [1]
    (published,) = ended.asked
    assert (published.kind, published.target, dict(published.args)) == ("tool", "System.Publish", {"value": [1]})
    assert ended.calls == {}


@pytest.mark.parametrize(("written", "seconds"), [("30s", 30), ("1.5", 1.5), ('"{{x}}"', 2), ("500ms", 0.5), ("0", 0)])
def test_wait_waits_through_the_door_and_passes_the_value_on(written: str, seconds: float) -> None:
    ended = run(pipeline(f"|> System.Wait({written})"), {"System.Wait": None}, args={"x": "2"})
    assert dict(ended.asked[0].args) == {"seconds": seconds}
    assert ended.output == "2"


@pytest.mark.parametrize("value", ["soon", -1, None, [], 1e12, "1e400", True])
def test_wait_takes_a_duration(value: object) -> None:
    ended = run(pipeline("|> System.Wait(x)"), args={"x": value})
    assert (ended.code, ended.targets()) == ("TOOL_ARGUMENTS", [])


def test_now_is_asked_of_the_door() -> None:
    ended = run(pipeline("|> System.Now() as t"), {"System.Now": "2026-11-30T13:00:00.000Z"})
    assert ended.data["t"] == "2026-11-30T13:00:00.000Z"


@pytest.mark.parametrize(("written", "message"), [('"No {{x}}."', "No in."), ("", "in"), ("[1]", "[1]")])
def test_fail_fails_the_run(written: str, message: str) -> None:
    ended = run(pipeline("|> A.go(x)", f"|> System.Fail({written})"), {"A.go": "in"})
    assert (ended.status, ended.code, ended.message, ended.stage) == ("failed", "PIPELINE_FAILED", message, "2")


# Tools that the pipeline calls -----------------------------------------------------------------------------------

FILES = 'tool Files : Workspace(".", write: true)\n'


@pytest.mark.parametrize(
    ("written", "args"),
    [
        ("Files.read()", {"path": "in"}),
        ('Files.read(path: "a{{x}}")', {"path": "ain"}),
        ('Files.read("b", 2)', {"path": "b", "from": 2}),
        ('Files.write(content: "c")', {"path": "in", "content": "c"}),
        ('Files.write("p", x)', {"path": "p", "content": "in"}),
        ("Files.list(path: x)", {"path": "in"}),
    ],
)
def test_arguments_of_a_tool(written: str, args: dict[str, object]) -> None:
    ended = run(FILES + pipeline(f"|> {written} as got"))
    (asked,) = ended.asked
    assert (asked.kind, dict(asked.args), asked.by, asked.id) == ("tool", args, None, None)
    assert ended.calls == {asked.target: 1}
    assert ended.data["got"] == asked.target


def test_arguments_that_do_not_fit_the_schema_fail_the_run_before_the_call() -> None:
    ended = run(FILES + pipeline("|> Files.read()"), args={"x": {"path": "a"}})
    assert (ended.code, ended.stage, ended.targets(), ended.calls) == ("TOOL_ARGUMENTS", "1", [], {})


def test_a_failing_tool_fails_the_pipeline_that_called_it() -> None:
    ended = run(FILES + pipeline("|> Files.read()"), {"Files.read": failed("TOOL_ERROR", "there is no in")})
    assert (ended.code, ended.message, ended.stage, ended.calls) == (
        "TOOL_ERROR",
        "there is no in",
        "1",
        {"Files.read": 1},
    )


# Shadows ---------------------------------------------------------------------------------------------------------


def test_a_shadow_is_one_request_from_the_same_input_and_reaches_nothing() -> None:
    text = FILES + "agent D [openai/gpt-4o]\n  equips Files\n"
    ended = run(text + pipeline('@shadow(B.draft("Other: {{x}}")) |> A.draft("One: {{x}}") as d'))
    assert ended.targets() == ["A.draft"]
    (shadow,) = ended.asides
    assert (shadow.kind, shadow.target, shadow.stage, shadow.request.tools) == ("agent", "B.draft", "1", ())
    assert "Other: in" in text_of(shadow.request.messages[0])
    assert ended.data == {"A": {"draft": "A.draft"}, "d": "A.draft"}
    assert ended.calls == {"A.draft": 1}


def test_a_shadow_sees_what_the_stage_sees() -> None:
    ended = run(pipeline("|> C.first()", "@shadow(B.draft()) |> A.draft()"), {"C.first": "flowing"})
    assert "flowing" in text_of(ended.asides[0].request.messages[0])
    assert ended.asides[0].scope == ()


# What a watcher sees ---------------------------------------------------------------------------------------------


def test_a_watched_run_tells_of_its_stages() -> None:
    text = INNER + pipeline("|> Inner()", "|* { A.one(), B.two() }")
    stages = run(text, watched=True).shown.stages
    assert [(what, number) for what, number, _, _ in stages] == [
        ("began", "1"),
        ("began", "1.1"),
        ("ended", "1.1"),
        ("began", "1.2"),
        ("ended", "1.2"),
        ("ended", "1"),
        ("began", "2"),
        ("began", "2"),
        ("began", "2"),
        ("ended", "2"),
        ("ended", "2"),
        ("ended", "2"),
    ]
    assert [(label, scope) for what, _, label, scope in stages[6:9]] == [
        ("fan-out", ()),
        ("A.one", (0,)),
        ("B.two", (1,)),
    ]


def test_an_answer_may_come_as_a_value_or_as_json_text() -> None:
    for answer in ({"k": [1]}, '{"k": [1]}', '```json\n{"k": [1]}\n```', Answer({"k": [1]})):
        assert run(pipeline("|> A.go() as v"), {"A.go": answer}).data["v"] == {"k": [1]}
