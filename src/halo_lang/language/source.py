"""Source text and places in it.

Owns the decoding of a file's bytes and the turning of offsets into lines and columns. Never reads a file itself.
Offsets count characters of `Source.text`; lines and columns count from 1, columns in characters. Read `diagnostics.py`
next.
"""

from __future__ import annotations

import re

from .diagnostics import Diagnostic
from .record import Record

MAX_BYTES = 16 * 1024 * 1024
"""Of a file (language.md §1)."""


class Span(Record):
    """Characters `start` to `end` (exclusive) of a source's text."""

    start: int
    end: int


class Source:
    """A file's name, as the user gave it, and its text (without a byte-order mark, line ends as they are).

    `damaged`: the file held bytes that are not UTF-8, in whose places U+FFFD stands.
    """

    __slots__ = ("_line_starts", "damaged", "name", "text")

    def __init__(self, name: str, text: str, *, damaged: bool = False) -> None:
        self.name = name
        self.text = text
        self.damaged = damaged
        self._line_starts: list[int] | None = None

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both from 1. An offset past the end is the end."""
        from bisect import bisect_right

        starts = self._starts()
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1), without its line end."""
        starts = self._starts()
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")

    def slice(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def _starts(self) -> list[int]:
        if self._line_starts is None:
            starts, at = [0], self.text.find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = self.text.find("\n", at + 1)
            self._line_starts = starts
        return self._line_starts


def decode(name: str, data: bytes) -> tuple[Source, tuple[Diagnostic, ...]]:
    """The source that a file's bytes are, and what is wrong with them (language.md §1).

    Bytes that are not UTF-8 are errors, each run of them one with its place, at most 100; U+FFFD stands in for each,
    so that what else is wrong can be found. A file of more than 16 MiB is an error, and its source empty. Never
    raises.
    """
    if len(data) > MAX_BYTES:
        message = f"the file is larger than {MAX_BYTES // 1024 // 1024} MiB"
        too_large = Diagnostic("FILE_TOO_LARGE", message, Span(0, 0), help="split it into several files")
        return Source(name, ""), (too_large,)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        utf_16 = Diagnostic("NOT_UTF8", "the file is UTF-16, not UTF-8", Span(0, 0), help=_SAVE)
        return Source(name, ""), (utf_16,)
    text = data.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "surrogateescape")
    if text.isascii() or not _UNDECODED.search(text):
        return Source(name, text), ()
    found = [_not_utf8(run) for run, _ in zip(_UNDECODED.finditer(text), range(_MAX_RUNS), strict=False)]
    return Source(name, _UNDECODED.sub(_replaced, text), damaged=True), tuple(found)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_RUNS = 100
# Decoding leaves a lone half of a surrogate pair for each byte that is not UTF-8; nothing else in UTF-8 gives one.
_UNDECODED = re.compile("[\udc80-\udcff]+")


def _not_utf8(run: re.Match[str]) -> Diagnostic:
    shown = " ".join(f"0x{ord(c) - 0xDC00:02X}" for c in run[0][:4])
    more = " …" if len(run[0]) > 4 else ""
    return Diagnostic("NOT_UTF8", f"{shown}{more} is not UTF-8", Span(run.start(), run.end()), help=_SAVE)


def _replaced(run: re.Match[str]) -> str:
    return "\ufffd" * len(run[0])


_SAVE = "save the file in the encoding UTF-8"
