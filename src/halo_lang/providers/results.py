"""How large a tool's result may be (tools.md §1).

Owns the bound and how a result is held to it: a text is cut at a line and says so, anything else that is larger is a
failure that says how to ask for less. Whatever answers a call with a tool's result gives it to `bounded` first; so
every result is also JSON, and text that can be written as UTF-8. Pure.
"""

from __future__ import annotations

from ..boundary.host import ToolError
from ..language.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..language.values import Value

LIMIT = 256 * 1024
"""Bytes of UTF-8 that a result may have: of a text itself, of anything else as compact JSON."""

_NOTE_ROOM = 200


def bounded(value: Value, less: str = "ask for less") -> Value:
    """The result as a run may have it; the same object where nothing has to be done (tools.md §1).

    A text over 256 KiB is cut after a whole line, or inside the first line where that alone is longer, and a last line
    says how much was left out; the note is within the bound, so that doing it twice changes nothing. Halves of
    surrogate pairs, which are no characters, become `?`. Raises `ToolError` for a larger value of another type, with
    `less` as the way out, and for what is no JSON.
    """
    if isinstance(value, str):
        return _bounded_text(value)
    if value is None or (isinstance(value, bool | float) and value == value and abs(value) != float("inf")):
        return value
    try:
        json = to_json(value)
    except (TypeError, ValueError, RecursionError):
        raise ToolError("the result is not a JSON value") from None
    size = len(json)
    if size <= LIMIT and json.isascii():
        return value
    data = json.encode("utf-8", "replace")
    if len(data) > LIMIT:
        raise ToolError(
            f"the result has {len(data):,} bytes of JSON, more than the {LIMIT:,} that a result may have; {less}"
        )
    mended = data.decode()
    return value if mended == json else _read(mended)


def cut(text: bytes, room: int) -> bytes:
    """The longest start of UTF-8 text that fits into `room` bytes and ends with a line, or, where the first line is
    longer than that, with a whole character."""
    if len(text) <= room:
        return text
    line_end = text.rfind(b"\n", 0, room)
    if line_end >= 0:
        return text[: line_end + 1]
    end = room
    while end > 0 and text[end] & 0xC0 == 0x80:
        end -= 1
    return text[:end]


def _bounded_text(text: str) -> str:
    if len(text) <= LIMIT and text.isascii():
        return text
    data = text.encode("utf-8", "replace")
    if len(data) <= LIMIT:
        mended = data.decode()
        return text if mended == text else mended
    kept = cut(data, LIMIT - _NOTE_ROOM)
    left = len(data) - len(kept)
    lines = data.count(b"\n", len(kept)) + (not data.endswith(b"\n"))
    ends = b"" if kept.endswith(b"\n") else b"\n"
    note = f"[cut here: {lines:,} more line{'' if lines == 1 else 's'}, {left:,} bytes, left out]"
    return (kept + ends + note.encode()).decode()


def _read(json: str) -> Value:
    from json import loads

    value: Value = loads(json)
    return value
