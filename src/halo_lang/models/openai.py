"""OpenAI's chat completions: what is sent, and how the reply is read (tools.md §4).

Owns the shapes of this wire. Pure: `transport.py` moves the bytes. A tool
call in a reply to a request that offered none is reported, not judged. Read `reply.py` next.
"""

from __future__ import annotations

from typing import Any

from ..boundary.attempt import AttemptFailed
from ..boundary.call import Answer, Message, ModelRequest, ToolUse, Usage
from ..boundary.prompt import frame_key, framed_system, framed_text
from ..language.values import to_json
from .providers import EMBEDDED, Endpoint
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

_ENDINGS = {"length": CUT, "content_filter": REFUSED}
_MAX_PIECES = 1000


def body(request: ModelRequest, endpoint: Endpoint, stream: bool) -> bytes:
    """What is sent. `max_tokens` always, a schema as the provider described it, nothing that was not asked for."""
    key = frame_key(request)
    system = framed_system(request, key)
    # Left without a system prompt the chat template of an embedded model would bring in one of its own.
    messages: list[Any] = [{"role": "system", "content": system}] if system or endpoint.wire == EMBEDDED else []
    messages += [_message(m, key) for m in request.messages]
    sent: dict[str, Any] = {
        "model": endpoint.name,
        "messages": messages,
        endpoint.tokens_field: request.max_tokens,
    }
    if request.temperature is not None:
        sent["temperature"] = request.temperature
    if request.top_p is not None:
        sent["top_p"] = request.top_p
    if request.tools:
        sent["tools"] = [
            {"type": "function", "function": {"name": t.name, "description": t.about, "parameters": t.schema}}
            for t in request.tools
        ]
    if stream:
        sent["stream"] = True
        if endpoint.stream_usage:
            sent["stream_options"] = {"include_usage": True}
    return to_json(sent).encode("utf-8", "replace")


def read(reply: Any, request: ModelRequest, endpoint: Endpoint) -> Answer:
    """The answer in a whole reply. Raises `Malformed`, or `AttemptFailed` for an error under a status of 200."""
    if not isinstance(reply, dict):
        raise Malformed("the reply is no JSON object")
    usage = _usage(reply.get("usage"))
    choices = reply.get("choices")
    if not choices and reply.get("error"):
        raise _error(reply["error"], request, endpoint)
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Malformed("the reply holds no choices", usage)
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise Malformed("the reply holds no message", usage)
    with reporting(usage):
        text = _text(message.get("content"))
        uses = _uses(message.get("tool_calls"), request)
    return answer(
        request,
        reply.get("model"),
        text,
        uses,
        usage,
        _ENDINGS.get(_word(choices[0].get("finish_reason")), STOPPED),
        _word(message.get("refusal")),
    )


class Stream:
    """A reply as it comes together from the events of a stream. `usage` is what it has reported so far."""

    __slots__ = ("_calls", "_ending", "_endpoint", "_model", "_refusals", "_request", "_texts", "done", "usage")

    def __init__(self, request: ModelRequest, endpoint: Endpoint) -> None:
        self._request, self._endpoint = request, endpoint
        self._texts: list[str] = []
        self._refusals: list[str] = []
        self._calls: dict[int, _Pieces] = {}
        self._model: object = None
        self._ending = ""
        self.usage: Usage | None = None
        self.done = False

    def take(self, data: bytes) -> str:
        """Takes the data of one event; gives the text in it. Raises as `read`."""
        if data == b"[DONE]":
            self.done = True
            return ""
        chunk = decoded(data)
        if not isinstance(chunk, dict):
            raise Malformed("the stream holds an event that is no JSON object")
        if chunk.get("error"):
            raise _error(chunk["error"], self._request, self._endpoint)
        self._model = self._model or chunk.get("model")
        self.usage = _usage(chunk.get("usage")) or self.usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:
            return ""
        choice = choices[0]
        if not isinstance(choice, dict):
            raise Malformed("the stream holds a choice that is no JSON object")
        self._ending = _word(choice.get("finish_reason")) or self._ending
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return ""
        if delta.get("tool_calls") is not None:
            _collect(delta["tool_calls"], self._calls)
        self._refusals.append(_word(delta.get("refusal")))
        text = _text(delta.get("content"))
        self._texts.append(text)
        return text

    def answer(self) -> Answer:
        """The answer. A stream that ended before its reply did raises `AttemptFailed`: torn, it may have been
        billed."""
        if not self.done and not self._ending:
            raise torn(self._request)
        pieces = [self._calls[at] for at in sorted(self._calls)]
        return answer(
            self._request,
            self._model,
            "".join(self._texts),
            [p.use(spare_id(self._request, at)) for at, p in enumerate(pieces)],
            self.usage,
            _ENDINGS.get(self._ending, STOPPED),
            "".join(self._refusals),
        )


class _Pieces:
    """A tool call as it comes together from a stream."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id: object = None
        self.name: object = None
        self.arguments: list[str] = []

    def use(self, spare: str) -> ToolUse:
        return tool_use(self.id, self.name, "".join(self.arguments), spare)


def _collect(deltas: object, calls: dict[int, _Pieces]) -> None:
    if not isinstance(deltas, list):
        raise Malformed("the stream holds tool calls that are no list")
    for delta in deltas:
        if not isinstance(delta, dict):
            raise Malformed("the stream holds a tool call that is no JSON object")
        at = delta.get("index")
        if at is None:
            # Some servers send a call whole and leave its index out.
            at = len(calls) if delta.get("id") or not calls else max(calls)
        if type(at) is not int or not 0 <= at < _MAX_PIECES:
            raise Malformed("the stream holds a tool call with a wrong index")
        pieces = calls.setdefault(at, _Pieces())
        pieces.id = pieces.id or delta.get("id")
        function = delta.get("function")
        if not isinstance(function, dict):
            continue
        pieces.name = pieces.name or function.get("name")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            pieces.arguments.append(arguments)
        elif arguments is not None:
            pieces.arguments.append(as_json(arguments))


def _message(message: Message, key: str | None) -> dict[str, Any]:
    text = framed_text(message, key)
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_use_id, "content": text}
    if not message.tool_uses:
        return {"role": message.role, "content": text}
    return {
        "role": "assistant",
        "content": text or None,
        "tool_calls": [
            {
                "id": u.id,
                "type": "function",
                "function": {"name": u.name, "arguments": to_json(read_arguments(u))},
            }
            for u in message.tool_uses
        ],
    }


def _text(content: object) -> str:
    """A message's content: a text, nothing, or parts of which those of type `text` count (the rest is a model's
    thinking)."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [p.get("text") for p in content if isinstance(p, dict) and p.get("type") == "text"]
        if all(isinstance(t, str) for t in texts):
            return "".join(texts)  # type: ignore[arg-type]
    raise Malformed("the reply's content is no text")


def _uses(calls: object, request: ModelRequest) -> list[ToolUse]:
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise Malformed("the reply's tool calls are no list")
    uses = []
    for at, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise Malformed("the reply holds a tool call that is no JSON object")
        uses.append(tool_use(call.get("id"), function.get("name"), function.get("arguments"), spare_id(request, at)))
    return uses


def _usage(reported: object) -> Usage | None:
    """`prompt_tokens` holds the cached ones. Tokens that only the total counts (the thinking, with some servers) are
    paid as output. None where what is reported can't be true."""
    if not isinstance(reported, dict):
        return None
    sent, received = count(reported.get("prompt_tokens")), count(reported.get("completion_tokens"))
    if sent < 0 or received < 0:
        return None
    total = count(reported.get("total_tokens"))
    details = reported.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else -1
    if cached < 0:
        cached = count(reported.get("prompt_cache_hit_tokens"))
    return Usage(sent, max(received, total - sent), min(max(cached, 0), sent))


def _error(error: object, request: ModelRequest, endpoint: Endpoint) -> AttemptFailed:
    """An error that comes with a status of 200, or in the middle of a stream."""
    said = error.get("message") if isinstance(error, dict) else error
    code = error.get("code") if isinstance(error, dict) else None
    passing = code == 429 or (type(code) is int and 500 <= code < 600)
    shown = clean(said if isinstance(said, str) else as_json(error), endpoint.key)
    return AttemptFailed("MODEL_ERROR", f"{request.model} answered with an error: {shown}", retry=passing)


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""
