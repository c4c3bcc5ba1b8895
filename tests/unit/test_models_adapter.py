"""Providers that come through pydantic-ai, against a real server (tools.md §4)."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from model_server import Server, asking, response, serving, stream

from halo_lang.boundary.attempt import AttemptFailed, Cut
from halo_lang.boundary.call import Answer, Data, Message, ToolOffer, ToolUse, Usage
from halo_lang.boundary.host import ConfigError, Environment
from halo_lang.models.client import ModelClient

pytest.importorskip("pydantic_ai", reason="needs the extra `providers`")

MODEL = "vllm/some-model"
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 7},
}


def reply(content: Any = "Hello.", finish: str = "stop", **message: Any) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    head = {"id": "x", "object": "chat.completion", "created": 1}
    return response(
        {**head, "model": "snap", "choices": [choice], "usage": USAGE}, "200 OK", "Content-Type: application/json"
    )


def client_at(server: Server, monkeypatch: pytest.MonkeyPatch) -> ModelClient:
    monkeypatch.setenv("VLLM_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("VLLM_API_KEY", "sk-secret-key")
    return ModelClient(Environment({}, {}))


async def answered(monkeypatch: pytest.MonkeyPatch, *replies: bytes, **more: Any) -> tuple[Answer, Server]:
    async with serving(*replies) as server:
        return await client_at(server, monkeypatch).attempt(asking(MODEL, **more)), server


async def test_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, server = await answered(monkeypatch, reply(), max_tokens=55, system="Be short.")
    assert answer == Answer("Hello.", None, (), "vllm/snap", Usage(100, 20, 7))
    sent = json.dumps(server.bodies[0])
    assert "55" in sent
    assert "Be short." in sent


async def test_tools_go_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}}
    conversation = (
        Message("user", ("Look.", Data("a note"))),
        Message("assistant", (), (ToolUse("c1", "Files_read", {"path": "a"}),)),
        Message("tool", (Data("text of it"),), (), "c1"),
    )
    call = {"id": "c2", "type": "function", "function": {"name": "Files_read", "arguments": '{"path":"b"}'}}
    answer, server = await answered(
        monkeypatch,
        reply(None, "tool_calls", tool_calls=[call]),
        messages=conversation,
        tools=(ToolOffer("Files_read", "Files.read", "Reads.", schema),),
    )
    assert answer.tool_uses == (ToolUse("c2", "Files_read", {"path": "b"}),)
    function = server.bodies[0]["tools"][0]["function"]
    assert function["parameters"] == schema
    assert not function.get("strict")
    assert [m["role"] for m in server.bodies[0]["messages"]][-2:] == ["assistant", "tool"]


async def test_it_does_not_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(response({"error": {"message": "busy"}}, "429 Too Many Requests", "Retry-After: 3")) as server:
        with pytest.raises(AttemptFailed) as caught:
            await client_at(server, monkeypatch).attempt(asking(MODEL))
        assert len(server.heads) == 1
    assert (caught.value.retry, caught.value.billed, caught.value.retry_after_s) == (True, False, 3.0)


async def test_a_cut_and_an_empty_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, _ = await answered(monkeypatch, reply("Half", "length"))
    assert isinstance(answer.error, Cut)
    answer, _ = await answered(monkeypatch, reply(""))
    assert answer.error is not None


async def test_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    def chunk(delta: Any, finish: Any = None, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {
            "id": "x",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "snap",
            "choices": [choice],
            **more,
        }

    shown: list[str] = []
    events = (chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo."}), chunk({}, "stop", usage=USAGE))
    async with serving(stream(*events, "[DONE]")) as server:
        answer = await client_at(server, monkeypatch).attempt(asking(MODEL), shown.append)
    assert answer.value == "Hello."
    assert "".join(shown) == "Hello."


def test_a_missing_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="API_KEY"):
        ModelClient(Environment({}, {})).prepare("google/gemini-2.5-flash")
    ModelClient(Environment({}, {"GOOGLE_API_KEY": "of-the-project"})).prepare("google/gemini-2.5-flash")
    assert "GOOGLE_API_KEY" not in os.environ


def test_a_provider_that_nobody_knows() -> None:
    with pytest.raises(ConfigError, match="did you mean `openai`"):
        ModelClient(Environment({}, {})).prepare("opnai/gpt-4o")
