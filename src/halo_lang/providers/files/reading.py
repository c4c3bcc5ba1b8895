"""Reading a text file, or some of its lines (tools.md §2).

Owns `read`. What it gives is what stands in the file, byte for byte, a byte-order mark and CRLF included, so that
`edit` finds it again. It holds no more of a file than it gives, however large the file is. A line ends with LF.
"""

from __future__ import annotations

import codecs
import os

from ...boundary.host import ToolError
from ..results import LIMIT, cut
from .beneath import open_file, reached
from .paths import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..blocking import Stop
    from .beneath import Folder

_CHUNK = 1 << 18
_NOTE_ROOM = 400


def read(folder: Folder, path: str, first: int, lines: int | None, denied: Sequence[str], stop: Stop) -> str:
    """The text of a file from line `first` (from 1) on, `lines` lines of it or all.

    What does not fit into a result is cut at a line, and a last line says which lines are there and how to go on.
    Raises `ToolError` for a file that is missing, is no text in UTF-8, or has no such line.
    """
    with reached(folder, path, denied, stop) as place:
        fd = open_file(place)
        try:
            size = os.fstat(fd).st_size
            passed, chunk = _skipped(fd, first - 1, stop)
            if chunk is None:
                raise ToolError(
                    f"{shown(place.plain)} has {passed:,} line{'' if passed == 1 else 's'}, "
                    f"so there is no line {first:,}"
                )
            data = _taken(fd, chunk, lines, stop)
        finally:
            os.close(fd)
        kept = cut(data, LIMIT - _NOTE_ROOM) if len(data) > LIMIT else data
        try:
            text = kept.decode()
        except UnicodeDecodeError:
            raise not_text(place.plain, size) from None
        return text if kept is data else text + _cut_note(kept, first, size)


def not_text(plain: str, size: int) -> ToolError:
    """The failure for a file that is no text in UTF-8."""
    return ToolError(f"{shown(plain)} is not UTF-8 text ({size:,} bytes)")


def is_utf8(data: bytes) -> bool:
    try:
        codecs.utf_8_decode(data, "strict", True)
    except UnicodeDecodeError:
        return False
    return True


def _skipped(fd: int, count: int, stop: Stop) -> tuple[int, bytes | None]:
    """Reads past `count` lines: how many there were, and what has been read of the line after them, None where there
    is no such line. The first line of an empty file is there, and empty."""
    passed, whole = 0, True
    while chunk := os.read(fd, _CHUNK):
        stop.check()
        breaks = chunk.count(b"\n")
        if passed + breaks >= count:
            rest = chunk[_after_breaks(chunk, count - passed) :]
            if rest or (rest := os.read(fd, _CHUNK)) or count == 0:
                return count, rest
            return count, None
        passed += breaks
        whole = chunk.endswith(b"\n")
    return (0, b"") if count == 0 else (passed + (not whole), None)


def _taken(fd: int, chunk: bytes, lines: int | None, stop: Stop) -> bytes:
    """The next `lines` lines, or all: no more of them than is needed to know that they are over `LIMIT`."""
    data = bytearray()
    while chunk and len(data) <= LIMIT:
        stop.check()
        if lines is not None:
            breaks = chunk.count(b"\n")
            if breaks >= lines:
                return bytes(data + chunk[: _after_breaks(chunk, lines)])
            lines -= breaks
        data += chunk
        chunk = os.read(fd, _CHUNK)
    return bytes(data)


def _after_breaks(chunk: bytes, count: int) -> int:
    """The offset after the `count`-th line break of a chunk that has so many."""
    at = 0
    for _ in range(count):
        at = chunk.index(b"\n", at) + 1
    return at


def _cut_note(kept: bytes, first: int, size: int) -> str:
    shown_lines = kept.count(b"\n")
    if not kept.endswith(b"\n"):
        return f"\n[cut here: line {first:,} alone is longer than a result may be; the file has {size:,} bytes]"
    last = first + shown_lines - 1
    return (
        f"[cut here: these are lines {first:,} to {last:,}, {len(kept):,} of the file's {size:,} bytes; "
        f"read on with `from: {last + 1}`]"
    )
