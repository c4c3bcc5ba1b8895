"""Which question a call asks (runs.md §3, `asked`): a text that is the same only where the same is asked.

Owns canonical JSON and the hash of a model request, by which a recorded answer is found again: both are part of the
recording format, and a change of one byte would part old recordings from their programs. Read `recording.py` next.
"""

from __future__ import annotations

from ..language.encoder import new_encoder, quoted
from .call import AGENT, LISTEN, Data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .call import Call, Message, ModelRequest, ToolOffer


def question(call: Call) -> str:
    """What a call asks: an agent's is the SHA-256 of all that is asked, before framing, without time limits and
    retries; any other's its arguments as canonical JSON."""
    if call.request is not None:
        return _asked(call.request)
    return "" if call.kind == LISTEN else canonical(call.args)


def question_of(line: Mapping[str, Any]) -> str:
    """What the line of a call asked."""
    if line["kind"] == AGENT:
        return str(line.get("asked", ""))
    return "" if line["kind"] == LISTEN else canonical(line.get("args") or {})


def canonical(value: object) -> str:
    """JSON with sorted keys and no blanks."""
    global _canonical
    if _canonical is None:
        _canonical = new_encoder(sort_keys=True)
    return _canonical(value)


def _asked(request: ModelRequest) -> str:
    """The hash of a canonical list: model, system, messages, options, offered tools."""
    global _sha256
    if _sha256 is None:
        from hashlib import sha256

        _sha256 = sha256
    who = f"{quoted(request.model)},{quoted(request.system)}"
    said = ",".join([message._canonical or _message(message) for message in request.messages])
    options = canonical([request.max_tokens, request.temperature, request.top_p])
    text = f"[{who},[{said}],{options},{_offered(request.tools)}]"
    return str(_sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _message(message: Message) -> str:
    """A message as canonical JSON: role, parts, and for any but a user's what it asks for, answers, and whether that
    failed. The messages of a conversation are asked again with each request, so each keeps its own text."""
    parts = ",".join([quoted(part) if isinstance(part, str) else _data(part) for part in message.parts])
    text = f"{quoted(message.role)},[{parts}]"
    if message.role != "user":
        # What a model wrote is kept where it is no arguments, and nowhere else: no question may hang on it then.
        uses = canonical(
            [[use.id, use.name, use.args, use.raw if use.args is None else ""] for use in message.tool_uses]
        )
        text = f"{text},{uses},{quoted(message.tool_use_id)},{'true' if message.failed else 'false'}"
    text = message._canonical = f"[{text}]"  # type: ignore[misc]  # worked out, not changed
    return text


def _data(part: Data) -> str:
    return f"[{quoted(part.text)},{'null' if part.label is None else quoted(part.label)}]"


def _offered(tools: tuple[ToolOffer, ...]) -> str:
    """Offered tools as canonical JSON. An agent offers the same ones in each request, and their schemas are long: the
    text of the last few is kept, by the tuple itself, which is kept with it so that none can take its place."""
    if not tools:
        return "[]"
    known = _offers.get(id(tools))
    if known is None:
        if len(_offers) >= _MAX_OFFERS:
            _offers.clear()
        text = canonical([[offer.name, offer.about, offer.schema] for offer in tools])
        known = _offers[id(tools)] = (tools, text)
    return known[1]


_MAX_OFFERS = 100
_offers: dict[int, tuple[tuple[ToolOffer, ...], str]] = {}

_canonical: Callable[[object], str] | None = None
_sha256: Callable[[bytes], Any] | None = None
