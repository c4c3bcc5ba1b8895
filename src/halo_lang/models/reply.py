"""What every wire's replies have in common: reading what a server claims, and when a reply is no answer (tools.md §4).

Owns the suspicion: nothing that a server sends is taken for the type that its protocol promises. Never does input or
output. The wires `openai.py` and `anthropic.py` use it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from json import JSONDecoder
from typing import Any

from ..boundary.attempt import AttemptFailed, Cut
from ..boundary.call import Answer, Failure, ModelRequest, ToolUse, Usage
from ..language.values import Value, read_json, to_json

STOPPED, CUT, REFUSED = "stopped", "cut", "refused"
"""How a reply ended, whatever the wire calls it."""

MAX_SHOWN = 500
"""Characters of a server's text in a message."""

_MAX_TOKENS = 1_000_000_000
_MAX_NAME = 200


class Malformed(Exception):
    """A reply that came, and so was billed, but is not what the protocol says."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.usage = usage


def answer(
    request: ModelRequest,
    model: object,
    text: str,
    uses: Sequence[ToolUse],
    usage: Usage | None,
    ending: str,
    refusal: str = "",
) -> Answer:
    """The answer that a complete reply is, or its failure: refused, cut and empty replies are never silently answers.

    `model` is the name that the server gives itself.
    """
    snapshot = _snapshot(request.model, model)
    if refusal or ending == REFUSED:
        shown = f": {clean(refusal)}" if refusal else ""
        return _unusable(Failure("MODEL_ERROR", f"{request.model} refused to answer{shown}"), snapshot, usage)
    if ending == CUT:
        return _unusable(
            Cut(
                "MODEL_ERROR",
                f"the reply of {request.model} was cut at {_length(request, usage)}; allow more with `max_tokens`",
            ),
            snapshot,
            usage,
        )
    if not uses and not text.strip():
        return _unusable(Failure("MODEL_ERROR", f"{request.model} gave an empty reply"), snapshot, usage)
    if len({u.id for u in uses}) != len(uses):
        return _unusable(
            Failure("MODEL_ERROR", f"{request.model} gave two tool calls one id"),
            snapshot,
            usage,
        )
    return Answer(mended(text), None, tuple(uses), snapshot, usage)


def unusable(request: ModelRequest, trouble: Malformed) -> Answer:
    """The answer that a malformed reply is: a failure, with the usage that it reported."""
    return _unusable(Failure("MODEL_ERROR", f"{request.model}: {trouble.message}"), request.model, trouble.usage)


@contextmanager
def reporting(usage: Usage | None) -> Iterator[None]:
    """Lets a malformed reply carry what it has reported, however deep it was found out."""
    try:
        yield
    except Malformed as trouble:
        trouble.usage = trouble.usage or usage
        raise


def torn(request: ModelRequest) -> AttemptFailed:
    """The failure of a stream that ended before its reply did."""
    return AttemptFailed("MODEL_ERROR", f"the stream of {request.model} ended before the reply did", retry=True)


def decoded(data: bytes) -> Any:
    """What bytes of JSON say. Raises `Malformed`."""
    try:
        return decode(data.decode("utf-8"))
    except (ValueError, RecursionError):
        shown = clean(data[:400].decode("utf-8", "replace"))
        raise Malformed(f"the reply is no JSON: {shown}" if shown else "the reply is empty") from None


def tool_use(identity: object, name: object, arguments: object, spare_id: str) -> ToolUse:
    """A tool call as the model wrote it. Arguments that are no JSON object stand in `raw`; none at all are `{}`."""
    if not isinstance(name, str) or not name:
        raise Malformed("the reply holds a tool call without a name")
    if identity is None or identity == "":
        identity = spare_id
    if not isinstance(identity, str):
        raise Malformed("the reply holds a tool call whose id is no text")
    identity, name = mended(identity), mended(name)
    if arguments is None or arguments == "":
        return ToolUse(identity, name, {})
    raw = arguments if isinstance(arguments, str) else as_json(arguments)
    args: Value = None
    with suppress(ValueError):
        args = read_json(raw)
    if isinstance(args, dict):
        return ToolUse(identity, name, args)
    return ToolUse(identity, name, None, mended(raw))


def spare_id(request: ModelRequest, at: int) -> str:
    """The id of a tool call that a server gave none: the same in a replay, another in every round."""
    return f"call_{len(request.messages)}_{at}"


def read_arguments(use: ToolUse) -> dict[str, Value]:
    """What a tool call's arguments are when the conversation is sent again. The servers want an object, also where
    the model wrote none."""
    return {"unreadable": use.raw} if use.args is None else use.args


def count(value: object) -> int:
    """A number of tokens, or -1 for what can be none."""
    if type(value) is int and 0 <= value <= _MAX_TOKENS:
        return value
    return -1


def mended(text: str) -> str:
    """The text with lone halves of surrogate pairs, which no file can hold, replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(text: str, key: str = "") -> str:
    """A server's text as a message may hold it: on one line, without control characters, cut, without the key."""
    text = text[: 20 * MAX_SHOWN]
    if key:
        text = text.replace(key, "[key]")
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def as_json(value: object) -> str:
    """What a server sent where a text should stand, as JSON; nothing where not even that can be had."""
    try:
        return to_json(value)  # type: ignore[arg-type]
    except (ValueError, TypeError, RecursionError):
        return ""


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


decode = JSONDecoder(parse_constant=_no_constant).decode
"""JSON from text, strictly. Raises `ValueError` and `RecursionError`."""


def _unusable(failure: Failure, model: str, usage: Usage | None) -> Answer:
    return Answer(None, failure, (), model, usage)


def _snapshot(asked: str, named: object) -> str:
    if not isinstance(named, str) or not named or len(named) > _MAX_NAME or not named.isprintable():
        return asked
    provider = asked.partition("/")[0]
    return f"{provider}/{named}"


def _length(request: ModelRequest, usage: Usage | None) -> str:
    if usage is not None and 0 < usage.output < request.max_tokens:
        return f"{usage.output} tokens, where the model's context is full (max_tokens: {request.max_tokens})"
    return f"max_tokens: {request.max_tokens}"
