"""The mock door: what answers a run of `--mock` (cli.md)."""

from __future__ import annotations

from typing import Any

import pytest

from halo_lang.boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Call
from halo_lang.doors.mock import Mock, mock_problem
from halo_lang.language.source import Span


def call(kind: str, target: str, scope: tuple[int, ...] = (), **args: Any) -> Call:
    return Call(kind, target, args, scope, "1", Span(0, 0))


def mock(**answers: Any) -> Mock:
    return Mock(answers, now=lambda: "2026-11-30T13:00:00.000Z", publish=lambda value: None)


@pytest.mark.parametrize(
    ("kind", "target", "answer"),
    [
        (AGENT, "Writer.draft", "[mock Writer.draft]"),
        (TOOL, "Files.read", None),
        (YIELD, "yield", {"approved": True}),
        (APPROVAL, "Files.write", {"approved": True}),
        (LISTEN, "Slack.Reaction", None),
        (TOOL, "System.Now", "2026-11-30T13:00:00.000Z"),
    ],
)
def test_what_is_answered_where_nothing_is_given(kind: str, target: str, answer: object) -> None:
    assert mock().answer(call(kind, target)) == Answer(answer)


def test_publish_prints_and_wait_does_not_wait() -> None:
    published: list[Any] = []
    door = Mock({}, now=str, publish=published.append)
    assert door.answer(call(TOOL, "System.Publish", value=[1])) == Answer(None)
    assert door.answer(call(TOOL, "System.Wait", seconds=1e9)) == Answer(None)
    assert published == [[1]]


def test_the_method_comes_before_the_agent_or_tool_before_the_default() -> None:
    door = mock(**{"Writer.draft": "method", "Writer": "agent", "Files": "tool"})
    assert [door.answer(call(AGENT, t)).value for t in ("Writer.draft", "Writer.prompt", "Other.draft")] == [
        "method",
        "agent",
        "[mock Other.draft]",
    ]
    assert door.answer(call(TOOL, "Files.read")).value == "tool"


@pytest.mark.parametrize(
    "value", ["text", 42, 1.5, True, False, None, [], {}, {"sequence": [1], "more": 1}, {"error": 1, "b": 2}]
)
def test_an_answer_is_any_value(value: object) -> None:
    assert mock(**{"A.b": value}).answer(call(AGENT, "A.b")) == Answer(value)


def test_a_sequence_is_counted_in_each_scope_and_its_last_answer_repeats() -> None:
    door = mock(**{"A.b": {"sequence": ["one", "two"]}})
    assert [door.answer(call(AGENT, "A.b")).value for _ in range(3)] == ["one", "two", "two"]
    assert [door.answer(call(AGENT, "A.b", (1,))).value for _ in range(2)] == ["one", "two"]
    assert door.answer(call(AGENT, "A.b", (0, 1))).value == "one"


def test_a_sequence_may_fail_in_between() -> None:
    door = mock(A={"sequence": ["one", {"error": "out"}, {"k": 1}]})
    first, second, third = (door.answer(call(AGENT, "A.b")) for _ in range(3))
    assert (first.value, third.value) == ("one", {"k": 1})
    assert second.error is not None
    assert (second.error.code, second.error.message) == ("MODEL_ERROR", "out")


@pytest.mark.parametrize(("kind", "code"), [(AGENT, "MODEL_ERROR"), (TOOL, "TOOL_ERROR")])
def test_an_error_fails_the_call(kind: str, code: str) -> None:
    error = mock(**{"A.b": {"error": "out"}}).answer(call(kind, "A.b")).error
    assert error is not None
    assert (error.code, error.message) == (code, "out")


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        (True, {"approved": True}),
        (False, {"approved": False}),
        ("yes", {"approved": False}),
        ({"approved": True}, {"approved": True}),
    ],
)
def test_approvals_have_an_entry_of_their_own(entry: object, answer: object) -> None:
    door = mock(approval=entry, Files={"error": "never"})
    assert door.answer(call(APPROVAL, "Files.write")) == Answer(answer)


def test_a_tools_entry_answers_no_approval() -> None:
    assert mock(**{"Files.write": {"error": "x"}}).answer(call(APPROVAL, "Files.write")) == Answer({"approved": True})


def test_yields_and_events() -> None:
    door = mock(**{"yield": False, "Slack.Reaction": {"reaction": "ok"}, "Git": 1})
    assert door.answer(call(YIELD, "yield")) == Answer(False)
    assert door.answer(call(LISTEN, "Slack.Reaction")) == Answer({"reaction": "ok"})
    assert door.answer(call(LISTEN, "Git.Push")) == Answer(1)


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ([], "object"),
        ("x", "object"),
        (None, "object"),
        ({"A.b": {"sequence": []}}, "A.b"),
        ({"A.b": {"sequence": "x"}}, "A.b"),
        ({"A.b": {"error": 3}}, "A.b"),
    ],
)
def test_what_is_no_mock_file(answers: Any, word: str) -> None:
    assert word in (mock_problem(answers) or "")


def test_what_is_one() -> None:
    assert (
        mock_problem({"A": {"sequence": [1]}, "B.c": {"error": "x"}, "yield": {}, "C": {"sequence": 1, "k": 2}}) is None
    )
