"""Bodies of answers, read within bounds and made values (tools.md §2, Http; Slack reads its own by it, too).

Owns the unpacking of compressed bodies (by ourselves, so that a small one which unpacks to gigabytes is never unpacked
further than the bound), what becomes JSON or text, and what is said of a body that is neither.
"""

from __future__ import annotations

import codecs
import zlib

from ...boundary.host import ToolError
from ...language.record import Record
from ...language.values import read_json, to_json
from ..results import LIMIT, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from aiohttp import ClientResponse

    from ...language.values import Value

MAX_BODY = 1 << 20
"""Bytes of a body that are read, unpacked."""

ACCEPTED = "gzip, deflate"

_CHARSETS = frozenset(
    [
        "utf-8",
        "us-ascii",
        "ascii",
        "iso-8859-1",
        "iso-8859-2",
        "iso-8859-15",
        "latin1",
        "windows-1250",
        "windows-1251",
        "windows-1252",
        "utf-16",
        "utf-16le",
        "utf-16be",
        "shift_jis",
        "euc-jp",
        "euc-kr",
        "gb2312",
        "gbk",
        "gb18030",
        "big5",
        "koi8-r",
    ]
)
_NOTE_ROOM = 200


class Body(Record):
    """The beginning of a body, and whether that is all of it."""

    data: bytes
    whole: bool


async def read(response: ClientResponse, most: int = MAX_BODY) -> Body:
    """At most so many bytes of a body. The session must not unpack it (`auto_decompress`), and must ask for what is
    `ACCEPTED`; the connection is to be closed afterwards. Raises `ToolError` for one that cannot be unpacked."""
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    unpack = _Unpacking(coding) if coding not in ("", "identity") else None
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk if unpack is None else unpack.more(chunk, most + 1 - len(data))
        if len(data) > most:
            return Body(bytes(data[:most]), False)
    if unpack is not None and not unpack.complete:
        raise ToolError("the answer's body ends too early")
    return Body(bytes(data), True)


def value_of(body: Body, response: ClientResponse, room: int) -> Value:
    """A body as a value, in at most `room` bytes of JSON: JSON by its content type, else text, cut where it is longer.
    Null for no body; for what is no text a line that says its type and size. Raises `ToolError` for JSON that is too
    large."""
    if not body.data:
        return None
    kind = response.content_type
    is_json = kind == "application/json" or kind.endswith("+json")
    text = _text(body, response.charset)
    if is_json and not body.whole:
        raise ToolError(f"the answer is JSON of more than {MAX_BODY:,} bytes; {_LESS}")
    if text is None:
        size = f"{len(body.data):,} bytes" if body.whole else f"more than {len(body.data):,} bytes"
        return f"[{kind[:100]}, {size}, not text]"
    if is_json:
        try:
            value = read_json(text)
        except ValueError:
            return _cut(text, True, room)
        if len(to_json(value).encode("utf-8", "replace")) > room:
            raise ToolError(f"the answer is JSON of more than {LIMIT:,} bytes; {_LESS}")
        return value
    return _cut(text, body.whole, room)


_LESS = "ask for less, by the path or by `query`"


class _Unpacking:
    """Unpacks a body piece by piece, never further than is asked for."""

    def __init__(self, coding: str) -> None:
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise ToolError(f"the answer's body is packed as `{coding[:40]}`, which was not asked for")
        self._wbits = 31 if "gzip" in coding else 15
        self._unpacker = zlib.decompressobj(self._wbits)
        self._began = False

    @property
    def complete(self) -> bool:
        return self._unpacker.eof or not self._began

    def more(self, chunk: bytes, most: int) -> bytes:
        """What a piece unpacks to, at most so many bytes. Raises `ToolError` for what cannot be unpacked."""
        made = bytearray()
        while chunk and len(made) < most:
            if self._unpacker.eof:
                if self._wbits != 31:
                    break  # what follows the end of a body is none of it
                self._unpacker = zlib.decompressobj(self._wbits)
            made += self._step(chunk, most - len(made))
            chunk = self._unpacker.unused_data if self._unpacker.eof else self._unpacker.unconsumed_tail
        return bytes(made)

    def _step(self, chunk: bytes, most: int) -> bytes:
        try:
            unpacked = self._unpacker.decompress(chunk, most)
        except zlib.error:
            if self._began or self._wbits != 15:
                raise ToolError("the answer's body cannot be unpacked") from None
            self._wbits = -15  # servers disagree on whether `deflate` has a header
            self._unpacker = zlib.decompressobj(self._wbits)
            self._began = True
            return self._step(chunk, most)
        self._began = True
        return unpacked


def _text(body: Body, charset: str | None) -> str | None:
    """The text that a body is, or None. The charset is the declared one where it is a usual one, else UTF-8."""
    name = (charset or "utf-8").lower()
    decoder = codecs.getincrementaldecoder(name if name in _CHARSETS else "utf-8")("strict")
    try:
        text = decoder.decode(body.data, body.whole)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.removeprefix("\ufeff")


def _cut(text: str, whole: bool, room: int) -> str:
    """A text that takes at most `room` bytes as JSON; where it is cut, after a line, and a last line says so."""
    if whole and _size(text) <= room:
        return text
    data = text.encode("utf-8", "replace")
    keeping = min(len(data), room - _NOTE_ROOM)
    kept = cut(data, keeping)
    while (size := _size(kept.decode())) > room - _NOTE_ROOM:
        keeping = min(len(kept) - 1, keeping * (room - _NOTE_ROOM) // size)
        kept = cut(data, keeping)
    left = f"{len(data) - len(kept):,} bytes" if whole else f"more than {len(data) - len(kept):,} bytes"
    ends = b"" if kept.endswith(b"\n") or not kept else b"\n"
    return (kept + ends).decode() + f"[cut here: {left} left out]"


def _size(text: str) -> int:
    return len(to_json(text).encode("utf-8", "replace"))
