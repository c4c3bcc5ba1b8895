"""The tests of files (language.md §9): mocks, what expectations see, how a failure is explained, and JUnit's XML."""

from __future__ import annotations

import pickle
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.app.testing import Outcome, run_test
from halo_lang.cli.junit import junit
from halo_lang.cli.test import FileOutcome, run_file
from runs import checked

TOOLS = """policy Careful : ApproveEffects(write)
tool Files : Workspace("./notes", write: true)
store Notes : KeyValue("notes.db")
agent Clerk [openai/gpt-4o-mini]
  equips Files
  requires Careful
"""


def outcome(program: str, *steps: str, run: str = 'P(x: "in")', agents: bool = True) -> Outcome:
    """The outcome of one test of a program, run as `run` says, with some steps."""
    text = f'{program}\ntest "t":\n  run {run}\n' + "".join(f"  {step}\n" for step in steps)
    compiled = checked(text, agents=agents)
    return run_test(compiled, compiled.tests[0], "t.halo")


def failures(program: str, *steps: str, run: str = 'P(x: "in")') -> list[str]:
    return list(outcome(program, *steps, run=run).failures)


def pipeline(*stages: str, params: str = "x: Any", source: str = "x") -> str:
    return f"pipeline P({params}) -> Result:\n  {source}\n" + "".join(f"    {stage}\n" for stage in stages)


# Mocks -----------------------------------------------------------------------------------------------------------


def test_several_answers_are_a_sequence_whose_last_repeats() -> None:
    program = pipeline("|> A.a() as one", "|> A.a() as two", "|> A.a() as three")
    same = "expect (context.data.one == 1 && context.data.two == 2 && context.data.three == 2)"
    assert failures(program, "mock A.a => 1", "mock A.a => 2", same) == []


def test_a_sequence_is_counted_in_each_scope() -> None:
    program = pipeline("|* { Two(), Two() }") + "\npipeline Two(x: Any) -> Result:\n  x\n    |> A.a()\n    |> A.a()\n"
    assert failures(program, "mock A => 1", "mock A => 2", "mock A => 3", "expect (output == [2, 2])") == []


def test_in_an_each_every_item_begins_the_sequence_anew() -> None:
    program = pipeline("|* each(item in x) => A.a(item)")
    assert failures(program, "mock A => 1", "mock A => 2", "expect (output == [1, 1])", run="P(x: [7, 8])") == []


def test_a_test_that_fails_says_where_items_began_a_sequence_anew() -> None:
    program = pipeline("|* each(item in x) => A.a(item)")
    steps = ["mock A.a => 1", "mock A.a => 2", "expect (output == [1, 2])"]
    assert failures(program, *steps, run="P(x: [7, 8, 9])") == [
        "expected: output == [1, 2]\n  output is [1,1,1]\n  note: `A.a` has 2 mocks, one after the other; every branch "
        "of a fan-out and every item of an `each` begins with the first, and 3 of them came no further than the first"
    ]
    (found,) = failures(program, *steps, run="P(x: [7])")
    assert "note" not in found
    (found,) = failures(program, "mock A.a => 1", "expect (output == 3)", run="P(x: [7, 8])")
    assert "note" not in found
    twice = pipeline("|* { Two(), Two() }") + "\npipeline Two(x: Any) -> Result:\n  x\n    |> A.a()\n    |> A.a()\n"
    (found,) = failures(twice, "mock A.a => 1", "mock A.a => 2", "expect (output == 3)")
    assert "note" not in found
    (found,) = failures(twice, "mock A.a => 1", "mock A.a => 2", "mock A.a => 3", "expect (output == 3)")
    assert "came no further than the second" in found
    assert failures(program, "mock A.a => 1", "mock A.a => 2", "expect (output == [1, 1])", run="P(x: [7, 8])") == []


def test_a_failure_can_stand_in_a_sequence() -> None:
    program = pipeline("|> A.a()", "|> A.a()")
    assert failures(program, "mock A => 1", 'fail A => "no more"', 'expect (error.message == "no more")') == []


@pytest.mark.parametrize(
    ("target", "stage", "code"),
    [
        ("A", "|> A.a()", "MODEL_ERROR"),
        ("A.a", "|> A.a()", "MODEL_ERROR"),
        ("Files", '|> Files.read("a.md")', "TOOL_ERROR"),
        ("Files.read", '|> Files.read("a.md")', "TOOL_ERROR"),
        ("Notes.get", '|> Notes.get("a")', "TOOL_ERROR"),
    ],
)
def test_fail_is_a_failure_of_that_kind(target: str, stage: str, code: str) -> None:
    program = TOOLS + pipeline(stage)
    assert failures(program, f'fail {target} => "down"', f'expect (error.code == "{code}")') == []


def test_the_method_is_asked_before_its_agent_or_tool() -> None:
    program = TOOLS + pipeline("|> A.a() as a", "|> A.b() as b", '|> Files.read("a") as c', '|> Files.read("b") as d')
    steps = ["mock A => 1", "mock A.b => 2", "mock Files => 3", "mock Files.read => 4"]
    data = "expect (context.data.a == 1 && context.data.b == 2 && context.data.c == 4 && context.data.d == 4)"
    assert failures(program, *steps, data) == []


def test_the_text_of_an_agents_mock_is_read_as_an_answer_is() -> None:
    program = TOOLS + pipeline("|> A.a() as said", '|> Files.read("a") as read')
    answer = r'"```json\n{\"score\": 85}\n```"'
    kept = r'expect (context.data.read == "```json\n{\"score\": 85}\n```")'
    steps = [f"mock A => {answer}", f"mock Files => {answer}", "expect (context.data.said.score == 85)", kept]
    assert failures(program, *steps) == []


def test_braces_in_a_mock_are_text_and_read_by_nobody() -> None:
    assert failures(pipeline("|> A.a()"), r'mock A => "\{{x}}"', r'expect (output == "\{{x}}")') == []


def test_events_and_the_systems_calls_can_be_mocked() -> None:
    program = pipeline("~> listen(Chat.Said) as said", "|> System.Now() as now", "|> System.Wait(2d)")
    mocks = ['mock Chat.Said => {by: "me"}', 'mock System.Now => "2026"']
    assert failures(program, *mocks, 'expect (context.data.said.by == "me" && context.data.now == "2026")') == []


def test_nothing_is_published() -> None:
    assert failures(pipeline("|> System.Publish(x)"), 'expect (output == "in")') == []


# What is not mocked ----------------------------------------------------------------------------------------------


def test_an_unmocked_call_fails_the_test_and_names_it() -> None:
    program = TOOLS + pipeline('|> Files.write(path: "a", content: "b")')
    words = "nothing is mocked for Files.write: add `mock Files.write => …`"
    assert failures(program, "expect (status)") == [words]
    assert failures(program, 'expect (status == "failed")') == [words]


def test_a_yield_without_a_mock_is_a_yes() -> None:
    program = pipeline('|! yield("Go on?") as answer', "|? (answer.approved == true)")
    assert failures(program, 'expect (status == "completed")') == []


def test_an_approval_without_a_mock_is_a_yes() -> None:
    program = TOOLS + "pipeline P(x: Any) -> Result requires Careful:\n  x\n    |> Files.mkdir(path: x)\n"
    assert failures(program, 'mock Files => {path: "in"}', "expect (calls.Files.mkdir == 1)") == []


@pytest.mark.parametrize(("answer", "calls"), [("true", 1), ("false", 0), ("null", 0), ('"yes"', 0), ("{}", 0)])
def test_only_a_yes_approves(answer: str, calls: int) -> None:
    program = TOOLS + "pipeline P(x: Any) -> Result requires Careful:\n  x\n    |> Files.mkdir(path: x)\n"
    steps = [f"mock approval => {answer}", 'mock Files => {path: "in"}', f"expect (calls.Files.mkdir == {calls})"]
    assert failures(program, *steps, "expect (status)") == []


def test_an_approval_may_change_the_arguments() -> None:
    program = TOOLS + "pipeline P(x: Any) -> Result requires Careful:\n  x\n    |> Files.mkdir(path: x)\n"
    steps = ["mock approval => {approved: true, args: {path: 7}}", "mock Files => {}"]
    assert failures(program, *steps, 'expect (error.code == "TOOL_ARGUMENTS")') == []


def test_a_call_of_an_agent_with_tools_is_one_answer() -> None:
    program = TOOLS + pipeline("|> Clerk.work(tools: [Files])")
    assert failures(program, 'mock Clerk => "done"', "expect (calls.Clerk.work == 1 && calls.Files.read == 0)") == []


# Expectations ----------------------------------------------------------------------------------------------------


def test_what_was_never_called_was_called_0_times() -> None:
    program = TOOLS + pipeline('|? {\n  (x == 1) => A.a(),\n  (x == 2) => Files.read("a"),\n}')
    assert failures(program, "expect (calls.A.a == 0 && calls.Files.read == 0 && calls.Files.glob == 0)") == []


def test_cost_is_nothing_and_error_null_where_none_is() -> None:
    assert failures(pipeline(), "expect (cost == 0 && error == null && error.code == null)") == []


def test_the_context_is_that_at_the_end() -> None:
    program = pipeline("|> A.a() as a", "|? (a == 2)")
    steps = ["mock A => 1", "expect (context.current == 1 && context.data.A.a == 1 && context.data.a == 1)"]
    meta = 'expect (context.meta.pipeline == "P" && context.meta.halted.stage == "2" && context.meta.runId)'
    assert failures(program, *steps, meta, 'expect (context.meta.halted.condition == "a == 2" && output == 1)') == []


def test_a_comparison_shows_the_values_of_both_sides() -> None:
    found = failures(pipeline("|> A.a() as a"), 'mock A => {n: [1, "two"]}', "expect (output.n == context.data.b)")
    assert found == ['expected: output.n == context.data.b\n  output.n is [1,"two"]\n  context.data.b is null']


def test_anything_else_shows_each_value_once() -> None:
    found = failures(
        pipeline(),
        "expect (output == 1 || (output == 2 && !cost == 1))",
    )
    assert found == ['expected: output == 1 || (output == 2 && !cost == 1)\n  output is "in"\n  cost is 0.0']


def test_a_long_value_is_cut() -> None:
    found = failures(pipeline("|> A.a()"), f'mock A => "{"x" * 2000}"', "expect (output == 1)")
    assert len(found[0]) < 600
    assert found[0].endswith("…")


def test_all_that_does_not_hold_is_said_and_the_failure_once() -> None:
    steps = ['fail A => "down"', 'expect (status == "halted")', "expect (output)", "expect (error)"]
    first, second = failures(pipeline("|> A.a()"), *steps)
    assert "down" not in first
    assert second.endswith("the run failed: MODEL_ERROR: down")


def test_a_failure_that_no_expectation_speaks_of_is_one() -> None:
    steps = ['fail A => "down"', "expect (calls.A.a == 1)"]
    assert [f.split("\n")[0] for f in failures(pipeline("|> A.a()"), *steps)] == ["the run failed: MODEL_ERROR: down"]


def test_a_halt_is_no_failure() -> None:
    assert failures(pipeline("|? (x == 1)")) == []


def test_arguments_are_checked_before_anything_runs() -> None:
    program = pipeline(params="x: Any, n: Number = 2", source="n")
    assert failures(program, "expect (output == 3)", run='P("a", n: 3)') == []
    assert failures(program, "expect (output == 2)") == []


def test_what_nests_too_deep_ends_with_the_runs_own_error() -> None:
    program = pipeline("|> P()")
    assert failures(program, 'expect (error.code == "CALL_DEPTH")') == []


# Coverage --------------------------------------------------------------------------------------------------------


def test_what_ran_is_told_by_stage_and_arm() -> None:
    program = pipeline("|? {\n  (x == 1) => A.a(),\n  else => Sub(),\n}", "|? (x == 1)", "|> A.b()")
    program += "\npipeline Sub(x: Any) -> Result:\n  x\n    |> A.c()\n"
    covered = outcome(program, "mock A => 1").covered
    assert covered == {("P", 1, None), ("P", 1, 1), ("Sub", 1, None), ("P", 2, None)}


def test_a_stage_that_fails_has_run() -> None:
    assert outcome(pipeline("|> A.a()", "|> A.b()"), 'fail A => "no"', "expect (error)").covered == {("P", 1, None)}


# Files -----------------------------------------------------------------------------------------------------------


def test_results_go_from_one_process_to_another(tmp_path: Path) -> None:
    file = tmp_path / "a.halo"
    file.write_text('pipeline P(x: Any) -> Result:\n  x\n\ntest "t":\n  run P(x: 1)\n  expect (output == 2)\n')
    result = run_file((str(file), "", False))
    again = pickle.loads(pickle.dumps(result))
    assert again.outcomes[0].failures == ("expected: output == 2\n  output is 1",)
    assert (again.outcomes[0].line, again.problem) == (4, None)


def test_a_file_that_is_no_text_is_said_to_be_none(tmp_path: Path) -> None:
    file = tmp_path / "a.halo"
    file.write_bytes(b"\xff\xfe")
    problem = run_file((str(file), "", False)).problem
    assert problem is not None
    assert "NOT_UTF8" in problem


# JUnit -----------------------------------------------------------------------------------------------------------


@given(st.text(), st.text(), st.lists(st.text(), max_size=2))
def test_any_name_and_any_failure_is_well_formed_xml(file: str, name: str, failed: list[str]) -> None:
    results = [
        FileOutcome(file, (Outcome(name, file, 1, tuple(failed), 0.25, frozenset()),), None, {}),
        FileOutcome(file, (), name, {}),
        FileOutcome(file, (), None, {}),
    ]
    root = ElementTree.fromstring(junit(results, 1.0).encode("utf-8"))
    suites = root.findall("testsuite")
    assert [suite.get("tests") for suite in suites] == ["1", "1"]
    assert [suite.get("failures") for suite in suites] == ["1" if failed else "0", "1"]
    case = suites[0].findall("testcase")[0]
    assert len(case.findall("failure")) == bool(failed)
    if all(c.isprintable() or c in "\n\t" for c in name):
        assert case.get("name") == name
