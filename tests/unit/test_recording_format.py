"""The recording format: what is written comes back, and what is no recording is refused by its line (runs.md §3)."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.boundary.call import (
    APPROVAL,
    LISTEN,
    TOOL,
    YIELD,
    Answer,
    Data,
    Failure,
    Message,
    ModelRequest,
    ToolOffer,
    ToolUse,
    Usage,
)
from halo_lang.boundary.question import question
from halo_lang.boundary.recording import (
    UNWRITABLE,
    RecordingError,
    call_line,
    decoded,
    encoded,
    entry_of,
    finish_line,
    numbered,
    opening_of,
)
from halo_lang.language.record import replace
from recorded import ASKS, READ, RUN, call, start


def back(line: dict[str, Any]) -> Any:
    """The entry that a line is once it was written and read."""
    return entry_of(decoded(encoded(line), 7), 7)


# What is written comes back --------------------------------------------------------------------------------------

ANSWERS = {
    "an agent's": (call(scope=(2, 0)), Answer("text", model="gpt-4o-1", usage=Usage(812, 40, 7), cost=2_500_001, ms=8)),
    "usage that was written": (call(), Answer("x", usage=Usage(1, 2, 3, 4), cost=0)),
    "tool calls": (
        call(),
        Answer("I look.", tool_uses=(ToolUse("c1", "Files_read", {"path": "a"}), ToolUse("c2", "Files_read", {}))),
    ),
    "an unknown tool": (call(), Answer("", tool_uses=(ToolUse("c", "No_such.tool", {"a": [1]}),))),
    "arguments that are no JSON": (call(), Answer("", tool_uses=(ToolUse("c", "Files_read", None, '{"path": '),))),
    "no arguments at all": (call(), Answer("", tool_uses=(ToolUse("", "Files_read", None, ""),))),
    "a tool's": (
        call(TOOL, "Files.read", {"path": "a"}, scope=(0,), id="c1", by="Clerk", effect="read"),
        Answer("alpha"),
    ),
    "a failure": (call(TOOL, "Chat.post", {"text": "x"}), Answer(None, Failure("TOOL_ERROR", "no such channel"))),
    "a failure that was billed": (call(), Answer(None, Failure("MODEL_ERROR", "cut"), usage=Usage(1, 1), cost=3)),
    "unsettled": (call(), Answer("x", unsettled=123_456_789)),
    "an approval": (
        call(APPROVAL, "Files.write", {"path": "a", "content": "b"}, id="c1", by="Clerk", effect="write"),
        Answer({"approved": True, "args": {"path": "b"}}, digest="d" * 64),
    ),
    "a yield": (
        call(YIELD, "yield", {"message": "Go?", "channel": None, "attachments": [], "timeout": 1.5}),
        Answer(1),
    ),
    "an event": (call(LISTEN, "Slack.Reaction"), Answer({"reaction": "ok"})),
    "null": (call(TOOL, "System.Publish", {"value": None}), Answer(None)),
    "odd text": (call(TOOL, "T.m", {"a\u2028": "\ud800 \x00 \\ \U0001f600\r\n"}), Answer(["\udfff", "\x85", "\x1e"])),
    "numbers": (call(TOOL, "T.m"), Answer([1, 1.0, -0.0, 1e308, 2**80, 0.1 + 0.2])),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_written_comes_back(name: str) -> None:
    asked, answer = ANSWERS[name]
    entry = back(call_line(asked, answer))
    assert (entry.kind, entry.target, entry.scope, entry.number) == (asked.kind, asked.target, asked.scope, 7)
    assert repr(entry.answer) == repr(answer)  # as text, which tells 1 from 1.0
    assert entry.asked == question(asked)
    assert entry.by_agent is (asked.id is not None)
    assert entry.effect == asked.effect


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
AMOUNTS = st.integers(0, 2_000_000 * 10**9)


@given(VALUES, st.dictionaries(st.text(), VALUES, max_size=4), st.lists(st.integers(0, 10**6), max_size=4))
def test_any_value_comes_back(value: Any, args: dict[str, Any], scope: list[int]) -> None:
    asked = call(TOOL, "T.m", args, scope=tuple(scope))
    entry = back(call_line(asked, Answer(value)))
    assert repr(entry.answer.value) == repr(value)
    assert entry.scope == tuple(scope)
    assert entry.asked == question(asked)


@given(AMOUNTS, AMOUNTS)
def test_amounts_come_back_to_the_nano_dollar(cost: int, unsettled: int) -> None:
    answer = back(call_line(call(), Answer("x", cost=cost, unsettled=unsettled))).answer
    assert (answer.cost, answer.unsettled) == (cost, unsettled)


def test_a_line_is_as_the_page_says() -> None:
    answer = Answer(
        "done", None, (ToolUse("c1", "Files_read", {"path": "a.md"}),), "gpt-4o-2024-08-06", Usage(812, 40), 2_500_000
    )
    line = json.loads(encoded(call_line(call(), replace(answer, ms=812))))
    assert list(line.items()) == [
        ("type", "call"),
        ("kind", "agent"),
        ("target", "Clerk.work"),
        ("scope", []),
        ("asked", question(call())),
        ("value", "done"),
        ("toolCalls", [{"id": "c1", "target": "Files.read", "args": {"path": "a.md"}}]),
        ("model", "gpt-4o-2024-08-06"),
        ("usage", {"input": 812, "output": 40, "cached": 0}),
        ("cost", 0.0025),
        ("ms", 812),
    ]
    assert json.loads(encoded(call_line(call(), Answer("x"), late=True)))["late"] is True


def test_the_first_and_the_last_line() -> None:
    opening = opening_of(decoded(encoded({**start(), "models": {"A": "x/y"}}), 1))
    assert (opening.run_id, opening.pipeline, opening.args) == (RUN, "Tidy", {"task": "go"})
    assert (opening.file, opening.started_at, opening.more) == (
        "tidy.halo",
        "2026-11-30T13:00:00Z",
        {"models": {"A": "x/y"}},
    )
    assert finish_line("completed", None, None) == {"type": "finish", "status": "completed", "output": None}
    assert "output" not in finish_line("failed", "x", {"code": "TOOL_ERROR"})
    assert finish_line("paused", None, None, [{"id": "a"}])["waits"] == [{"id": "a"}]


# What was asked --------------------------------------------------------------------------------------------------

OTHER = {
    "model": replace(ASKS, model="openai/gpt-4o-mini"),
    "system": replace(ASKS, system="Be long."),
    "instructions": replace(ASKS, messages=(Message("user", ("Tidy!", Data("notes"))),)),
    "input": replace(ASKS, messages=(Message("user", ("Tidy.", Data("note"))),)),
    "an input as instructions": replace(ASKS, messages=(Message("user", ("Tidy.", "notes")),)),
    "the input's name": replace(ASKS, messages=(Message("user", ("Tidy.", Data("notes", "n"))),)),
    "where two parts meet": replace(ASKS, messages=(Message("user", ("Tidy", ".", Data("notes"))),)),
    "the conversation": replace(ASKS, messages=(*ASKS.messages, Message("assistant", ("yes",)))),
    "a failed tool": replace(ASKS, messages=(*ASKS.messages, Message("tool", (Data("x"),), (), "c1", True))),
    "no tools": replace(ASKS, tools=()),
    "another schema": replace(ASKS, tools=(replace(READ, schema={}),)),
    "max_tokens": replace(ASKS, max_tokens=1),
    "temperature": replace(ASKS, temperature=0.0),
    "top_p": replace(ASKS, top_p=0.5),
}


@pytest.mark.parametrize("what", OTHER)
def test_another_question_is_told_apart(what: str) -> None:
    assert question(replace(call(), request=OTHER[what])) != question(call())


def test_time_limits_retries_and_streaming_are_no_part_of_a_question() -> None:
    same = replace(ASKS, timeout_s=1.0, retries=0, stream=True)
    assert question(replace(call(), request=same)) == question(call())
    assert len(question(call())) == len(sha256().hexdigest())


def as_documented(request: ModelRequest) -> str:
    """The question of a model request, worked out plainly. Recordings stand by it: it may never come out otherwise."""

    def part(one: str | Data) -> Any:
        return [one.text, one.label] if isinstance(one, Data) else one

    def message(one: Message) -> list[Any]:
        said = [one.role, [part(p) for p in one.parts]]
        uses = [[use.id, use.name, use.args, use.raw if use.args is None else ""] for use in one.tool_uses]
        return said if one.role == "user" else [*said, uses, one.tool_use_id, one.failed]

    content = [
        request.model,
        request.system,
        [message(one) for one in request.messages],
        [request.max_tokens, request.temperature, request.top_p],
        [[offer.name, offer.about, offer.schema] for offer in request.tools],
    ]
    text = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


texts = st.text(max_size=6)
uses = st.builds(ToolUse, texts, texts, st.none() | st.dictionaries(texts, st.integers() | texts, max_size=3), texts)
messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool"]),
    st.lists(texts | st.builds(Data, texts, st.none() | texts), max_size=3).map(tuple),
    st.lists(uses, max_size=2).map(tuple),
    texts,
    st.booleans(),
)
offers = st.builds(ToolOffer, texts, texts, texts, st.dictionaries(texts, st.booleans() | texts, max_size=3))


@given(
    st.lists(messages, max_size=4),
    st.lists(offers, max_size=2).map(tuple),
    st.tuples(texts, texts),
    st.tuples(st.integers(1, 9), st.none() | st.floats(0, 2) | st.integers(0, 2), st.none() | st.floats(0, 1)),
)
def test_a_question_is_the_documented_hash_in_each_request_of_a_conversation(
    conversation: list[Message], tools: tuple[ToolOffer, ...], who: tuple[str, str], options: tuple[Any, Any, Any]
) -> None:
    for end in range(len(conversation) + 1):
        request = ModelRequest(*who, tuple(conversation[:end]), tools, *options)
        assert question(replace(call(), request=request)) == as_documented(request)


def test_a_question_stays_what_it_was_in_the_first_recordings() -> None:
    assert question(call()) == "249cd0514e9cad21dec9162d0b06467f1d99c555e52fada944f921b6dd57721c"


def test_the_order_of_keys_is_no_part_of_a_question() -> None:
    one, other = call(TOOL, "T.m", {"a": 1, "b": {"c": 1, "d": 2}}), call(TOOL, "T.m", {"b": {"d": 2, "c": 1}, "a": 1})
    assert question(one) == question(other)
    assert question(call(TOOL, "T.m", {"a": 1})) != question(call(TOOL, "T.m", {"a": "1"}))


# Foreign, older and damaged --------------------------------------------------------------------------------------


def test_unknown_fields_are_no_matter() -> None:
    line = {**call_line(call(), Answer("x")), "weather": {"sun": True}, "by": None}
    assert back(line).answer == Answer("x")


@pytest.mark.parametrize("version", [2, "1", 1.0, True, None, [1], "\x1b[31m" * 100])
def test_an_unknown_version_is_refused_by_its_name(version: Any) -> None:
    with pytest.raises(RecordingError, match="version") as refused:
        opening_of({**start(), "version": version})
    assert str(version)[:40] in refused.value.message
    assert len(refused.value.message) < 200


def test_a_recording_of_the_seeds_form_says_neither_version_nor_scopes() -> None:
    opening = opening_of({"type": "start", "runId": RUN, "pipeline": "Tidy", "args": {}})
    assert (opening.pipeline, opening.file) == ("Tidy", "")
    entry = entry_of({"type": "call", "kind": "agent", "target": "A.one", "value": "x"}, 2)
    assert (entry.scope, entry.asked, entry.answer) == (None, "", Answer("x"))
    used = entry_of(
        {"kind": "agent", "target": "A.one", "value": "", "toolCalls": [{"target": "F.read", "args": {}}]}, 3
    )
    assert used.answer.tool_uses == (ToolUse("", "F_read", {}),)


def test_a_torn_last_line_is_left_out_wherever_it_was_cut() -> None:
    whole = [encoded(start()), encoded(call_line(call(), Answer("é\U0001f600")))]
    for at in range(len(whole[1])):
        assert [number for number, _ in numbered([whole[0], whole[1][:at]])] == [1]
    assert [number for number, _ in numbered(whole)] == [1, 2]


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"{}}\n",
        b'{"type":"call"\n',
        b"[1]\n",
        b'"text"\n',
        b"1\n",
        b"\xff\xfe\n",
        b"\x00" * 100 + b"\n",
        b'{"a":"\xe9"}\n',
        b"\xef\xbb\xbf{}\n",
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"\n",
        b'{"a":' + b"9" * 10_000 + b"}\n",
        b'{"a":NaN}\n',
        b'{"a":-Infinity}\n',
        b'{"a":[1e999]}\n',
    ],
)
def test_any_other_malformed_line_is_named(data: bytes) -> None:
    with pytest.raises(RecordingError, match="line 2 "):
        list(numbered([encoded(start()), data, encoded(start())]))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1}, b"x", object()])
def test_what_is_no_json_is_not_written(value: object) -> None:
    with pytest.raises(UNWRITABLE):
        encoded({"value": [value]})


WRONG: tuple[Any, ...] = (None, True, 0, 1.5, float("inf"), float("nan"), "x", [], [1], {}, {"a": 1}, [[[]]])
FIELDS = (
    *("type", "kind", "target", "scope", "call", "asked", "args", "effect", "signal", "value", "error", "late"),
    *("toolCalls", "model", "usage", "cost", "unsettled", "digest", "ms"),
)


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_a_wrong_type_is_refused_or_harmless(field: str) -> None:
    asked, answer = ANSWERS["an agent's"]
    full = {**call_line(asked, answer), "args": {}, "digest": "d", "signal": "s", "effect": "read", "call": "c"}
    tries = [{**full, field: wrong} for wrong in WRONG]
    tries += [{**full, "error": {"code": wrong, "message": "m"}} for wrong in WRONG]
    tries += [{**full, "error": {"code": "c", "message": wrong}} for wrong in WRONG]
    tries += [{**full, "usage": {"input": wrong}} for wrong in WRONG]
    tries += [{**full, "toolCalls": [wrong]} for wrong in WRONG]
    tries += [{**full, "toolCalls": [{"id": "c", "name": "n", "args": wrong}]} for wrong in WRONG]
    tries += [{**full, "scope": [wrong]} for wrong in WRONG]
    tries.append({name: value for name, value in full.items() if name != field})
    for line in tries:
        try:
            entry = entry_of(line, 3)
        except RecordingError:
            continue
        hash((entry.kind, entry.target, entry.scope, entry.asked, entry.effect, entry.answer.digest))
        assert all(use.args is None or isinstance(use.args, dict) for use in entry.answer.tool_uses)
        assert isinstance(entry.answer.cost, int | None)


@pytest.mark.parametrize("field", ["type", "version", "runId", "pipeline", "args", "file", "sha256", "startedAt"])
def test_a_first_line_of_wrong_types_is_refused_or_harmless(field: str) -> None:
    for wrong in WRONG:
        try:
            opening = opening_of({**start(), field: wrong})
        except RecordingError:
            continue
        assert isinstance(opening.args, dict)
        assert all(isinstance(text, str) for text in (opening.run_id, opening.pipeline, opening.file))


def test_arguments_that_nest_too_deep_to_be_compared_are_refused() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(RecordingError, match="line 2 "):
        entry_of({"type": "call", "kind": "tool", "target": "T.m", "scope": [], "args": deep}, 2)


@pytest.mark.parametrize("amount", [True, "x", "5", [1], {"a": 1}, -1, -0.5, 1e300, 10**400, 1e13])
@pytest.mark.parametrize("field", ["cost", "unsettled"])
def test_an_amount_is_a_number_within_reason(field: str, amount: object) -> None:
    """A text or a list times a billion would fill the memory."""
    with pytest.raises(RecordingError, match="line 7 is no recorded call"):
        entry_of({**call_line(call(), Answer("x")), field: amount}, 7)
