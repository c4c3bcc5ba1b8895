"""A server's answer to a call, made into a value or a failure (tools.md §2).

Owns what becomes of each kind of content: what has structure comes as it is, text as text; anything else is named, and
left out. Pure.
"""

from __future__ import annotations

from ...boundary.host import ToolError
from ..results import bounded
from .text import last_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...language.values import Value

MAX_ERROR = 4_000
"""Characters of a server's own words about a failure."""


def value_of(result: Mapping[str, Any]) -> Value:
    """The value of the result of `tools/call`, as on the wire. Raises `ToolError` with the server's own words where it
    says that the tool failed, and for what is no result."""
    if result.get("resultType") == "input_required" or "inputRequests" in result:
        raise ToolError("the server asks for more input before it answers, and there is nobody here to give it")
    content = result.get("content")
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ToolError("the server's answer is no result of a tool")
    said = "\n".join(_text(part) for part in content)
    if result.get("isError") is True:
        raise ToolError(last_lines(said, MAX_ERROR) or "the server says that it failed, and not why")
    structured = result.get("structuredContent")
    if structured is not None:
        return bounded(structured, "ask the server for less")
    return bounded(said, "ask the server for less") if content else None


def _text(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text":
        return str(part.get("text") or "")
    if kind in ("image", "audio"):
        return f"[{kind}, {_size(part.get('data'))} of {_word(part.get('mimeType'))}, left out]"
    if kind == "resource_link":
        return f"[resource {_word(part.get('name'))} at {_word(part.get('uri'))}]"
    if kind == "resource":
        resource = part.get("resource")
        held: Mapping[str, Any] = resource if isinstance(resource, dict) else {}
        if isinstance(held.get("text"), str):
            return str(held["text"])
        named = f"resource {_word(held.get('uri'))}"
        return f"[{named}, {_size(held.get('blob'))} of {_word(held.get('mimeType'))}, left out]"
    return f"[{_word(kind)}, left out]"


def _word(given: object) -> str:
    return one_line(str(given or "an unknown kind"), 200)


def _size(base64: object) -> str:
    return f"{len(base64) * 3 // 4 if isinstance(base64, str) else 0:,} bytes"
