"""OpenAI's wire against a real server: what is sent, and every kind of reply (tools.md §4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from model_server import asking, client_of, response, serving, sse, stream

from halo_lang.boundary.attempt import AttemptFailed, Cut
from halo_lang.boundary.call import Answer, Data, Message, ModelRequest, ToolOffer, ToolUse, Usage

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 7},
}
COUNTED = Usage(100, 20, 7)
FILES_READ = ToolOffer("Files_read", "Files.read", "Reads a file.", {"type": "object", "properties": {"path": {}}})


def reply(content: Any = "Hello.", finish: Any = "stop", usage: Any = USAGE, **message: Any) -> dict[str, Any]:
    return {
        "model": "gpt-4o-2024-08-06",
        "choices": [{"message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}],
        "usage": usage,
    }


def call(identity: Any = "c1", name: Any = "Files_read", arguments: Any = '{"path":"a.md"}') -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o-2024-08-06", "choices": [{"delta": delta or {}, "finish_reason": finish}], **more}


async def answered(body: Any, request: ModelRequest | None = None) -> Answer:
    async with serving(response(body)) as server, client_of(server) as client:
        return await client.attempt(request or asking())


async def streamed(*events: Any, request: ModelRequest | None = None) -> tuple[Answer, list[str]]:
    shown: list[str] = []
    async with serving(stream(*events)) as server, client_of(server) as client:
        return await client.attempt(request or asking(), shown.append), shown


async def test_an_answer() -> None:
    assert await answered(reply()) == Answer("Hello.", None, (), "openai/gpt-4o-2024-08-06", COUNTED)


async def test_what_is_sent() -> None:
    conversation = (
        Message("user", ("Look at ", Data("the note", "note"))),
        Message(
            "assistant", ("I will.",), (ToolUse("c1", "Files_read", {"path": "ä.md"}), ToolUse("c2", "x", None, "{"))
        ),
        Message("tool", (Data("text of it"),), (), "c1"),
        Message("tool", (Data("error TOOL_ERROR: no"),), (), "c2", True),
    )
    request = ModelRequest("openai/gpt-4o", "Be short.", conversation, (FILES_READ,), 50, 0.0, 0.5)
    async with serving(response(reply())) as server, client_of(server) as client:
        await client.attempt(request)
        size = client.wire_bytes(request)
    assert server.heads[0].startswith("POST /v1/chat/completions HTTP/1.1\r\n")
    assert "authorization: Bearer sk-secret-key" in server.heads[0]
    sent = server.bodies[0]
    system, user, assistant, first, second = sent.pop("messages")
    assert sent == {
        "model": "gpt-4o",
        "max_completion_tokens": 50,
        "temperature": 0.0,
        "top_p": 0.5,
        "tools": [
            {
                "type": "function",
                "function": {"name": "Files_read", "description": "Reads a file.", "parameters": FILES_READ.schema},
            }
        ],
    }
    assert system["role"] == "system"
    assert system["content"].startswith("Be short.")
    assert user["role"] == "user"
    assert user["content"].startswith("Look at ")
    assert "the note" in user["content"]
    assert user["content"] != "Look at the note"
    assert assistant["content"] == "I will."
    calls = [(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in assistant["tool_calls"]]
    assert calls == [("c1", "Files_read", {"path": "ä.md"}), ("c2", "x", {"unreadable": "{"})]
    assert first == {"role": "tool", "tool_call_id": "c1", "content": "text of it"}
    assert second == {"role": "tool", "tool_call_id": "c2", "content": "error TOOL_ERROR: no"}
    assert 0 <= size - server.sizes[0] < 80


async def test_the_bytes_of_a_streamed_body_are_known() -> None:
    request = asking(text="Wörter, 語", system="s")
    async with serving(stream(chunk({"content": "x"}), "[DONE]")) as server, client_of(server) as client:
        await client.attempt(request, print)
        assert client.wire_bytes(request) == server.sizes[0]
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}


async def test_other_servers_get_max_tokens_and_no_key_where_there_is_none() -> None:
    async with serving(response(reply())) as server, client_of(server) as client:
        await client.attempt(asking("local/llama", max_tokens=9))
    assert server.bodies[0]["max_tokens"] == 9
    assert "max_completion_tokens" not in server.bodies[0]
    assert "authorization" not in server.heads[0].lower()


async def test_mistral_gets_no_stream_options() -> None:
    async with serving(stream(chunk({"content": "x"}, "stop", usage=USAGE))) as server, client_of(server) as client:
        answer = await client.attempt(asking("mistral/small"), print)
    assert "stream_options" not in server.bodies[0]
    assert answer.usage == COUNTED


async def test_lone_surrogates_are_neither_sent_nor_given() -> None:
    body = b'{"choices":[{"message":{"content":"a\\ud800b"}}]}'
    async with serving(response(body)) as server, client_of(server) as client:
        answer = await client.attempt(asking(text="x\ud800y"))
    assert server.bodies[0]["messages"][0]["content"] == "x?y"
    assert answer.value == "a�b"


async def test_tool_calls() -> None:
    answer = await answered(reply(None, "tool_calls", tool_calls=[call(), call("c2", arguments="{}")]))
    assert answer.tool_uses == (ToolUse("c1", "Files_read", {"path": "a.md"}), ToolUse("c2", "Files_read", {}))
    assert answer.value == ""
    assert answer.error is None


@pytest.mark.parametrize(
    ("arguments", "args", "raw"),
    [
        ('{"path":', None, '{"path":'),
        ("[1]", None, "[1]"),
        ("null", None, "null"),
        ('{"a":1,"a":2}', None, '{"a":1,"a":2}'),
        ('{"a":NaN}', None, '{"a":NaN}'),
        ("[" * 5000, None, "[" * 5000),
        (7, None, "7"),
        (["x"], None, '["x"]'),
        ("", {}, ""),
        (None, {}, ""),
        ({"path": "a"}, {"path": "a"}, ""),
    ],
)
async def test_arguments_that_are_no_object(arguments: Any, args: Any, raw: str) -> None:
    answer = await answered(reply(None, "tool_calls", tool_calls=[call(arguments=arguments)]))
    assert answer.tool_uses == (ToolUse("c1", "Files_read", args, raw),)


async def test_tool_calls_that_nobody_offered_are_reported() -> None:
    answer = await answered(reply(None, tool_calls=[call()]))
    assert answer.error is None
    assert len(answer.tool_uses) == 1


async def test_a_tool_call_without_an_id_gets_one() -> None:
    answer = await answered(reply(None, tool_calls=[call(""), call(None)]))
    assert [u.id for u in answer.tool_uses] == ["call_1_0", "call_1_1"]


async def test_a_cut_reply_is_a_failure() -> None:
    answer = await answered(reply("Half a", "length"))
    assert isinstance(answer.error, Cut)
    assert answer.error.code == "MODEL_ERROR"
    assert "max_tokens" in answer.error.message
    assert answer.usage == COUNTED
    assert answer.value is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (reply("", "content_filter"), "refused"),
        (reply(None, refusal="I can't\x1b[31m do that."), "refused to answer: I can't [31m do that."),
        (reply(""), "empty reply"),
        (reply(" \n\t"), "empty reply"),
        (reply(None), "empty reply"),
        (reply([{"type": "thinking", "thinking": "hm"}]), "empty reply"),
        (reply(None, tool_calls=[call(), call()]), "one id"),
        (reply(5), "no text"),
        (reply([{"type": "text", "text": 5}]), "no text"),
        (reply(None, tool_calls={}), "no list"),
        (reply(None, tool_calls=[5]), "no JSON object"),
        (reply(None, tool_calls=[{"id": "c1"}]), "no JSON object"),
        (reply(None, tool_calls=[call(name=None)]), "without a name"),
        (reply(None, tool_calls=[call(identity=5)]), "id is no text"),
        ({"choices": [], "usage": USAGE}, "no choices"),
        ({"choices": "x", "usage": USAGE}, "no choices"),
        ({"choices": [None], "usage": USAGE}, "no choices"),
        ({"choices": [{}], "usage": USAGE}, "no message"),
        ({"choices": [{"message": "hi"}], "usage": USAGE}, "no message"),
    ],
)
async def test_replies_that_are_no_answer(body: Any, said: str) -> None:
    answer = await answered(body)
    assert answer.error is not None
    assert answer.error.code == "MODEL_ERROR"
    assert said in answer.error.message
    assert answer.usage == COUNTED


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html><body>Sign in</body></html>", "no JSON: <html><body>Sign in"),
        (b"", "is empty"),
        (b"[1,2]", "no JSON object"),
        (b"null", "no JSON object"),
        (b'{"choices": NaN}', "no JSON"),
        (b"\xff\xfe\x00", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"choices":[{"message":{"content":' + b"9" * 5000 + b"}}]}", "no JSON"),
        (b'{"choices":[{"message":{"content":"x"', "no JSON"),
    ],
)
async def test_replies_that_are_no_reply(body: bytes, said: str) -> None:
    answer = await answered(body)
    assert answer.error is not None
    assert answer.error.code == "MODEL_ERROR"
    assert said in answer.error.message
    assert answer.usage is None


async def test_parts_of_content_are_joined_without_the_thinking() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert (await answered(reply(parts))).value == "ab"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, None),
        ("many", None),
        ({}, None),
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": 1.5, "completion_tokens": 2}, None),
        ({"prompt_tokens": True, "completion_tokens": 2}, None),
        ({"prompt_tokens": 10**12, "completion_tokens": 2}, None),
        ({"prompt_tokens": 10, "completion_tokens": 2}, Usage(10, 2, 0)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": None}, Usage(10, 2, 0)),
        (
            {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 99}},
            Usage(10, 2, 10),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 4}, Usage(10, 2, 4)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 52}, Usage(10, 42, 0)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 0}, Usage(10, 2, 0)),
    ],
)
async def test_usage_is_believed_only_where_it_can_be_true(usage: Any, counted: Usage | None) -> None:
    answer = await answered(reply(usage=usage))
    assert answer.value == "Hello."
    assert answer.usage == counted


@pytest.mark.parametrize("named", [None, 7, "", "x" * 300, "a\nb"])
async def test_a_model_that_names_itself_wrongly_keeps_its_name(named: Any) -> None:
    assert (await answered({**reply(), "model": named})).model == "openai/gpt-4o"


async def test_a_stream() -> None:
    answer, shown = await streamed(
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Grüße, "}),
        chunk({"content": "語 👋"}),
        chunk({}, "stop"),
        {"choices": [], "usage": USAGE, "model": "m"},
        "[DONE]",
    )
    assert answer == Answer("Grüße, 語 👋", None, (), "openai/gpt-4o-2024-08-06", COUNTED)
    assert shown == ["Grüße, ", "語 👋"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
async def test_a_stream_split_anywhere(size: int) -> None:
    events = b": ping\r\n\r\n" + b"".join(
        sse(e).replace(b"\n", b"\r\n")
        for e in (chunk({"content": "Grüße, "}), chunk({"content": "語 👋"}, "stop"), chunk(usage=USAGE), "[DONE]")
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [events[at : at + size] for at in range(0, len(events), size)]
    chunked = [b"%x\r\n%s\r\n" % (len(p), p) for p in pieces]
    async with serving([head, *chunked, b"0\r\n\r\n"]) as server, client_of(server) as client:
        answer = await client.attempt(asking(), lambda _: None)
    assert answer.value == "Grüße, 語 👋"
    assert answer.usage == COUNTED


async def test_tool_calls_of_a_stream_come_in_pieces() -> None:
    answer, _ = await streamed(
        chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "Files_read", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "Files_list"}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"path"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ':"a.md"}'}}]}, "tool_calls"),
        "[DONE]",
    )
    assert answer.tool_uses == (ToolUse("c1", "Files_read", {"path": "a.md"}), ToolUse("c2", "Files_list", {}))


async def test_tool_calls_of_a_stream_without_an_index() -> None:
    answer, _ = await streamed(
        chunk({"tool_calls": [{"id": "c1", "function": {"name": "a", "arguments": "{}"}}]}),
        chunk({"tool_calls": [{"id": "c2", "function": {"name": "b", "arguments": {"x": 1}}}]}, "tool_calls"),
        "[DONE]",
    )
    assert answer.tool_uses == (ToolUse("c1", "a", {}), ToolUse("c2", "b", {"x": 1}))


async def test_a_cut_stream_is_a_failure_with_its_usage() -> None:
    answer, shown = await streamed(chunk({"content": "Half"}, "length"), chunk(usage=USAGE), "[DONE]")
    assert isinstance(answer.error, Cut)
    assert answer.usage == COUNTED
    assert shown == ["Half"]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((chunk({"refusal": "No, "}), chunk({"refusal": "never."}, "stop"), "[DONE]"), "No, never."),
        ((chunk({}, "content_filter"), "[DONE]"), "refused"),
        ((chunk({}, "stop"), "[DONE]"), "empty reply"),
        (("[DONE]",), "empty reply"),
        (("{oops",), "no JSON"),
        (("[1]",), "no JSON object"),
        (({"choices": [3]},), "no JSON object"),
        ((chunk({"content": {}}),), "no text"),
        ((chunk({"tool_calls": 3}),), "no list"),
        ((chunk({"tool_calls": [3]}),), "no JSON object"),
        ((chunk({"tool_calls": [{"index": -1}]}),), "wrong index"),
        ((chunk({"tool_calls": [{"index": 10**9}]}),), "wrong index"),
        ((chunk({"tool_calls": [{"index": "0"}]}),), "wrong index"),
        ((chunk({"tool_calls": [{"index": 0, "id": "c"}]}, "tool_calls"), "[DONE]"), "without a name"),
    ],
)
async def test_streams_that_are_no_answer(events: Any, said: str) -> None:
    answer, _ = await streamed(*events)
    assert answer.error is not None
    assert answer.error.code == "MODEL_ERROR"
    assert said in answer.error.message


async def test_a_torn_stream_may_have_been_billed() -> None:
    with pytest.raises(AttemptFailed, match="ended before the reply") as caught:
        await streamed(chunk({"content": "Half"}))
    assert caught.value.retry
    assert caught.value.billed is None


async def test_an_error_in_a_stream() -> None:
    with pytest.raises(AttemptFailed, match="overloaded") as caught:
        await streamed(chunk({"content": "Half"}), {"error": {"message": "overloaded", "code": 503}})
    assert caught.value.retry
    assert caught.value.billed is None


async def test_an_error_under_a_status_of_200() -> None:
    with pytest.raises(AttemptFailed, match="no such model") as caught:
        await answered({"error": {"message": "no such model", "code": 404}})
    assert not caught.value.retry
    with pytest.raises(AttemptFailed, match='"deep"'):
        await answered({"error": {"deep": [1]}})


async def test_a_server_that_does_not_stream_is_read_as_a_whole() -> None:
    shown: list[str] = []
    async with serving(response(reply())) as server, client_of(server) as client:
        answer = await client.attempt(asking(), shown.append)
    assert answer.value == "Hello."
    assert shown == ["Hello."]
