"""Anthropic's wire against a real server: what is sent, and every kind of reply (tools.md §4)."""

from __future__ import annotations

from typing import Any

import pytest
from model_server import asking, client_of, response, serving, sse, stream

from halo_lang.boundary.attempt import AttemptFailed, Cut
from halo_lang.boundary.call import Answer, Data, Message, ModelRequest, ToolOffer, ToolUse, Usage

MODEL = "anthropic/claude-haiku-4-5"
USAGE = {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3}
COUNTED = Usage(20, 20, 7, 3)
TEXT = {"type": "text", "text": "Hello."}
USE = {"type": "tool_use", "id": "t1", "name": "Files_read", "input": {"path": "a.md"}}


def reply(*content: Any, stop: Any = "end_turn", usage: Any = USAGE) -> dict[str, Any]:
    return {
        "type": "message",
        "model": "claude-snapshot",
        "content": list(content),
        "stop_reason": stop,
        "usage": usage,
    }


def begun(usage: Any = None) -> dict[str, Any]:
    first = {**USAGE, "output_tokens": 1}
    return {"type": "message_start", "message": {"model": "claude-snapshot", "usage": usage or first}}


def block(at: Any, start: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": at, "content_block": start}


def delta(at: Any, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": at, "delta": more}


def text(at: int, said: Any) -> dict[str, Any]:
    return delta(at, type="text_delta", text=said)


def ended(stop: Any = "end_turn", output: int = 20) -> tuple[dict[str, Any], dict[str, Any]]:
    return (
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": output}},
        {"type": "message_stop"},
    )


async def answered(body: Any) -> Answer:
    async with serving(response(body)) as server, client_of(server) as client:
        return await client.attempt(asking(MODEL))


async def streamed(*events: Any) -> tuple[Answer, list[str]]:
    shown: list[str] = []
    async with serving(stream(*events)) as server, client_of(server) as client:
        return await client.attempt(asking(MODEL), shown.append), shown


async def test_an_answer_counts_cached_tokens_once() -> None:
    assert await answered(reply(TEXT)) == Answer("Hello.", None, (), "anthropic/claude-snapshot", COUNTED)


async def test_what_is_sent() -> None:
    offer = ToolOffer("Files_read", "Files.read", "Reads a file.", {"type": "object"})
    conversation = (
        Message("user", ("Look.",)),
        Message("assistant", (), (ToolUse("t1", "Files_read", {"path": "a"}), ToolUse("t2", "x", None, "{"))),
        Message("tool", (Data("text of it"),), (), "t1"),
        Message("tool", (Data("error TOOL_ERROR: no"),), (), "t2", True),
        Message("user", ("Go on.",)),
    )
    request = ModelRequest(MODEL, "Be short.", conversation, (offer,), 50, 0.0, 0.5)
    async with serving(response(reply(TEXT))) as server, client_of(server) as client:
        await client.attempt(request)
        assert 0 <= client.wire_bytes(request) - server.sizes[0] < 80
    head = server.heads[0]
    assert head.startswith("POST /v1/messages HTTP/1.1\r\n")
    assert "x-api-key: sk-secret-key" in head
    assert "anthropic-version: 2023-06-01" in head
    assert "authorization" not in head.lower()
    assert server.bodies[0] == {
        "model": "claude-haiku-4-5",
        "max_tokens": 50,
        "temperature": 0.0,
        "top_p": 0.5,
        "system": "Be short.",
        "tools": [{"name": "Files_read", "description": "Reads a file.", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Look."}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "t1", "name": "Files_read", "input": {"path": "a"}},
                    {"type": "tool_use", "id": "t2", "name": "x", "input": {"unreadable": "{"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "text of it"},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "error TOOL_ERROR: no", "is_error": True},
                    {"type": "text", "text": "Go on."},
                ],
            },
        ],
    }


async def test_a_conversation_with_calls_and_no_tools_left_forbids_them() -> None:
    conversation = (
        Message("user", ("Look.",)),
        Message("assistant", (), (ToolUse("t1", "Files_read", {}),)),
        Message("tool", (Data("x"),), (), "t1"),
    )
    async with serving(response(reply(TEXT))) as server, client_of(server) as client:
        await client.attempt(asking(MODEL, messages=conversation))
    assert server.bodies[0]["tools"] == [{"name": "Files_read", "input_schema": {"type": "object"}}]
    assert server.bodies[0]["tool_choice"] == {"type": "none"}


async def test_text_and_tool_calls() -> None:
    answer = await answered(reply({"type": "thinking", "thinking": "hm"}, TEXT, USE, stop="tool_use"))
    assert answer.value == "Hello."
    assert answer.tool_uses == (ToolUse("t1", "Files_read", {"path": "a.md"}),)


@pytest.mark.parametrize("stop", ["max_tokens", "model_context_window_exceeded"])
async def test_a_cut_reply_is_a_failure(stop: str) -> None:
    answer = await answered(reply(TEXT, stop=stop))
    assert isinstance(answer.error, Cut)
    assert answer.usage == COUNTED


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (reply(stop="refusal"), "refused"),
        (reply(TEXT, stop="refusal"), "refused"),
        (reply(), "empty reply"),
        (reply({"type": "text", "text": " "}), "empty reply"),
        (reply(USE, USE), "one id"),
        (reply({"type": "text", "text": 5}), "no text"),
        (reply("Hello."), "without a type"),
        (reply({"type": 3}), "without a type"),
        (reply({**USE, "name": ""}), "without a name"),
        (reply({**USE, "id": 3}), "id is no text"),
        ({**reply(), "content": "Hello."}, "no content"),
    ],
)
async def test_replies_that_are_no_answer(body: Any, said: str) -> None:
    answer = await answered(body)
    assert answer.error is not None
    assert answer.error.code == "MODEL_ERROR"
    assert said in answer.error.message
    assert answer.usage == COUNTED


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"7", b""])
async def test_replies_that_are_no_reply(body: bytes) -> None:
    answer = await answered(body)
    assert answer.error is not None
    assert answer.error.code == "MODEL_ERROR"


async def test_input_that_is_no_object() -> None:
    answer = await answered(reply({**USE, "input": [1]}))
    assert answer.tool_uses == (ToolUse("t1", "Files_read", None, "[1]"),)


@pytest.mark.parametrize("usage", [None, 3, {}, {"input_tokens": -1, "output_tokens": 1}, {"input_tokens": 3}])
async def test_usage_that_can_not_be_true(usage: Any) -> None:
    assert (await answered(reply(TEXT, usage=usage))).usage is None


STREAM = (
    begun(),
    {"type": "ping"},
    block(0, {"type": "thinking", "thinking": ""}),
    delta(0, type="thinking_delta", thinking="hm"),
    delta(0, type="signature_delta", signature="x"),
    {"type": "content_block_stop", "index": 0},
    block(1, {"type": "text", "text": ""}),
    text(1, "Grüße, "),
    text(1, "語 👋"),
    {"type": "content_block_stop", "index": 1},
    block(2, {"type": "tool_use", "id": "t1", "name": "Files_read", "input": {}}),
    delta(2, type="input_json_delta", partial_json='{"pa'),
    delta(2, type="input_json_delta", partial_json='th":"a.md"}'),
    block(3, {"type": "tool_use", "id": "t2", "name": "Files_list", "input": {}}),
    *ended("tool_use"),
)
STREAMED = Answer(
    "Grüße, 語 👋",
    None,
    (ToolUse("t1", "Files_read", {"path": "a.md"}), ToolUse("t2", "Files_list", {})),
    "anthropic/claude-snapshot",
    COUNTED,
)


async def test_a_stream() -> None:
    answer, shown = await streamed(*STREAM)
    assert answer == STREAMED
    assert shown == ["Grüße, ", "語 👋"]


@pytest.mark.parametrize("size", [1, 5, 13])
async def test_a_stream_split_anywhere(size: int) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
    events = b"".join(sse(e) for e in STREAM)
    pieces = [events[at : at + size] for at in range(0, len(events), size)]
    chunked = [b"%x\r\n%s\r\n" % (len(p), p) for p in pieces]
    async with serving([head, *chunked, b"0\r\n\r\n"]) as server, client_of(server) as client:
        assert await client.attempt(asking(MODEL), lambda _: None) == STREAMED
    assert server.bodies[0]["stream"] is True


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((begun(), *ended()), "empty reply"),
        ((begun(), *ended("refusal")), "refused"),
        ((begun(), text(0, "x")), "never began"),
        ((begun(), block(0, None)), "no JSON object"),
        ((begun(), block("0", TEXT)), "wrong index"),
        ((begun(), block(10**9, TEXT)), "wrong index"),
        ((begun(), block(0, TEXT), text(0, None)), "no text"),
        ((begun(), block(0, USE), delta(0, type="input_json_delta", partial_json=3)), "arguments that are no text"),
        ((begun(), {"no": "type"}), "without a type"),
        ((begun(), "{"), "no JSON"),
    ],
)
async def test_streams_that_are_no_answer(events: Any, said: str) -> None:
    answer, _ = await streamed(*events)
    assert answer.error is not None
    assert said in answer.error.message
    assert answer.usage is not None


async def test_a_cut_stream_is_a_failure_with_its_usage() -> None:
    answer, _ = await streamed(begun(), block(0, TEXT), *ended("max_tokens"))
    assert isinstance(answer.error, Cut)
    assert answer.usage == COUNTED


async def test_a_torn_stream_may_have_been_billed() -> None:
    with pytest.raises(AttemptFailed, match="ended before the reply") as caught:
        await streamed(begun(), block(0, TEXT))
    assert caught.value.retry
    assert caught.value.billed is None


@pytest.mark.parametrize(("kind", "retry"), [("overloaded_error", True), ("invalid_request_error", False), (3, False)])
async def test_an_error_in_a_stream(kind: Any, retry: bool) -> None:
    with pytest.raises(AttemptFailed, match="so it is") as caught:
        await streamed(begun(), {"type": "error", "error": {"type": kind, "message": "so it is"}})
    assert caught.value.retry is retry
    assert caught.value.billed is None
