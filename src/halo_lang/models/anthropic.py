"""Anthropic's messages: what is sent, and how the reply is read (tools.md §4).

Owns the shapes of this wire. Pure: `transport.py` moves the bytes. A tool
call in a reply to a request that offered none is reported, not judged. Read `reply.py` next.
"""

from __future__ import annotations

from typing import Any

from ..boundary.attempt import AttemptFailed
from ..boundary.call import Answer, Message, ModelRequest, ToolUse, Usage
from ..boundary.prompt import frame_key, framed_system, framed_text
from ..language.record import fields, replace
from ..language.values import to_json
from .providers import Endpoint
from .reply import (
    CUT,
    REFUSED,
    STOPPED,
    Malformed,
    answer,
    as_json,
    clean,
    count,
    decoded,
    read_arguments,
    reporting,
    spare_id,
    tool_use,
    torn,
)

_ENDINGS = {"max_tokens": CUT, "model_context_window_exceeded": CUT, "refusal": REFUSED}
_PASSING = ("overloaded_error", "api_error", "rate_limit_error", "timeout_error")
_MAX_BLOCKS = 1000


def body(request: ModelRequest, endpoint: Endpoint, stream: bool) -> bytes:
    """What is sent. `max_tokens` always, a schema as the provider described it, nothing that was not asked for."""
    key = frame_key(request)
    system = framed_system(request, key)
    sent: dict[str, Any] = {
        "model": endpoint.name,
        "max_tokens": request.max_tokens,
        "messages": _messages(request, key),
    }
    if system:
        sent["system"] = system
    if request.temperature is not None:
        sent["temperature"] = request.temperature
    if request.top_p is not None:
        sent["top_p"] = request.top_p
    if request.tools:
        sent["tools"] = [{"name": t.name, "description": t.about, "input_schema": t.schema} for t in request.tools]
    else:
        used = sorted({u.name for m in request.messages for u in m.tool_uses})
        if used:
            # This wire wants the tools of a conversation defined for as long as it holds calls of them.
            sent["tools"] = [{"name": n, "input_schema": {"type": "object"}} for n in used]
            sent["tool_choice"] = {"type": "none"}
    if stream:
        sent["stream"] = True
    return to_json(sent).encode("utf-8", "replace")


def read(reply: Any, request: ModelRequest, endpoint: Endpoint) -> Answer:
    """The answer in a whole reply. Raises `Malformed`, or `AttemptFailed` for an error under a status of 200."""
    if not isinstance(reply, dict):
        raise Malformed("the reply is no JSON object")
    if reply.get("type") == "error":
        raise _error(reply.get("error"), request, endpoint)
    usage = _usage(reply.get("usage"), None)
    content = reply.get("content")
    if not isinstance(content, list):
        raise Malformed("the reply holds no content", usage)
    texts: list[str] = []
    uses: list[ToolUse] = []
    with reporting(usage):
        for at, block in enumerate(content):
            kind = block.get("type") if isinstance(block, dict) else None
            if kind == "text":
                texts.append(_text(block.get("text")))
            elif kind == "tool_use":
                uses.append(tool_use(block.get("id"), block.get("name"), block.get("input"), spare_id(request, at)))
            elif not isinstance(kind, str):
                raise Malformed("the reply holds a block without a type")
    ending = _ENDINGS.get(_word(reply.get("stop_reason")), STOPPED)
    return answer(request, reply.get("model"), "".join(texts), uses, usage, ending)


class _Block:
    """A block of content as it comes together from a stream."""

    __slots__ = ("id", "input", "json", "kind", "name", "texts")

    def __init__(self, start: dict[str, Any]) -> None:
        self.kind = start.get("type")
        self.id, self.name, self.input = start.get("id"), start.get("name"), start.get("input")
        self.texts = [_text(start["text"])] if start.get("text") else []
        self.json: list[str] = []

    def use(self, spare: str) -> ToolUse:
        return tool_use(self.id, self.name, "".join(self.json) or self.input, spare)


class Stream:
    """A reply as it comes together from the events of a stream. `usage` is what it has reported so far."""

    __slots__ = ("_blocks", "_ending", "_endpoint", "_model", "_request", "done", "usage")

    def __init__(self, request: ModelRequest, endpoint: Endpoint) -> None:
        self._request, self._endpoint = request, endpoint
        self._blocks: dict[int, _Block] = {}
        self._model: object = None
        self._ending = ""
        self.usage: Usage | None = None
        self.done = False

    def take(self, data: bytes) -> str:
        """Takes the data of one event; gives the text in it. Raises as `read`."""
        event = decoded(data)
        kind = event.get("type") if isinstance(event, dict) else None
        if not isinstance(kind, str):
            raise Malformed("the stream holds an event without a type")
        if kind == "error":
            raise _error(event.get("error"), self._request, self._endpoint)
        if kind == "message_start":
            message = event.get("message")
            if isinstance(message, dict):
                self._model = message.get("model")
                self.usage = _usage(message.get("usage"), self.usage)
        elif kind == "content_block_start":
            start = event.get("content_block")
            if not isinstance(start, dict):
                raise Malformed("the stream holds a block that is no JSON object")
            block = self._blocks[_index(event)] = _Block(start)
            return "".join(block.texts) if block.kind == "text" else ""
        elif kind == "content_block_delta":
            return _grow(self._blocks.get(_index(event)), event.get("delta"))
        elif kind == "message_delta":
            delta = event.get("delta")
            if isinstance(delta, dict):
                self._ending = _word(delta.get("stop_reason")) or self._ending
            self.usage = _usage(event.get("usage"), self.usage)
        elif kind == "message_stop":
            self.done = True
        return ""

    def answer(self) -> Answer:
        """The answer. A stream that ended before its reply did raises `AttemptFailed`: torn, it may have been
        billed."""
        if not self.done and not self._ending:
            raise torn(self._request)
        blocks = [self._blocks[at] for at in sorted(self._blocks)]
        return answer(
            self._request,
            self._model,
            "".join(t for b in blocks if b.kind == "text" for t in b.texts),
            [b.use(spare_id(self._request, at)) for at, b in enumerate(blocks) if b.kind == "tool_use"],
            self.usage,
            _ENDINGS.get(self._ending, STOPPED),
        )


def _grow(block: _Block | None, delta: object) -> str:
    """Adds a delta to its block; gives the text in it."""
    if block is None or not isinstance(delta, dict):
        raise Malformed("the stream goes on with a block that it never began")
    kind = delta.get("type")
    if kind == "text_delta" and block.kind == "text":
        text = _text(delta.get("text"))
        block.texts.append(text)
        return text
    if kind == "input_json_delta":
        piece = delta.get("partial_json")
        if not isinstance(piece, str):
            raise Malformed("the stream holds arguments that are no text")
        block.json.append(piece)
    return ""


def _index(event: dict[str, Any]) -> int:
    at = event.get("index")
    if type(at) is not int or not 0 <= at < _MAX_BLOCKS:
        raise Malformed("the stream holds a block with a wrong index")
    return at


def _messages(request: ModelRequest, key: str | None) -> list[dict[str, Any]]:
    """Messages in turns: what follows one another with the same role is one message, results of tools first."""
    turns: list[dict[str, Any]] = []
    for message in request.messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, key)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Message, key: str | None) -> list[dict[str, Any]]:
    text = framed_text(message, key)
    if message.role == "tool":
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_use_id, "content": text}
        if message.failed:
            block["is_error"] = True
        return [block]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text or not message.tool_uses else []
    for use in message.tool_uses:
        blocks.append({"type": "tool_use", "id": use.id, "name": use.name, "input": read_arguments(use)})
    return blocks


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise Malformed("the reply's text is no text")
    return text


def _usage(reported: object, before: Usage | None) -> Usage | None:
    """What is sent is counted in three parts here, each once; a stream reports again what has changed."""
    if not isinstance(reported, dict):
        return before
    plain = count(reported.get("input_tokens"))
    received = count(reported.get("output_tokens"))
    if received < 0:
        return before
    if plain < 0:
        if before is None:
            return None
        return replace(before, output=max(before.output, received))
    cached = max(count(reported.get("cache_read_input_tokens")), 0)
    written = max(count(reported.get("cache_creation_input_tokens")), 0)
    made = Usage(plain + cached + written, received, cached, written)
    if before is None:
        return made
    return Usage(*(max(getattr(before, f), getattr(made, f)) for f in fields(made)))


def _error(error: object, request: ModelRequest, endpoint: Endpoint) -> AttemptFailed:
    said = error.get("message") if isinstance(error, dict) else None
    kind = error.get("type") if isinstance(error, dict) else None
    shown = clean(said if isinstance(said, str) else as_json(error), endpoint.key)
    return AttemptFailed("MODEL_ERROR", f"{request.model} answered with an error: {shown}", retry=kind in _PASSING)


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
