"""Source text and places in it.

Owns the decoding of a file's bytes and the turning of offsets into lines and columns. Never reads a file itself.
Offsets count characters of `Source.text`; lines and columns count from 1, columns in characters. Read `diagnostics.py`
next.
"""

from __future__ import annotations

from .record import Record


class Span(Record):
    """Characters `start` to `end` (exclusive) of a source's text."""

    start: int
    end: int


class Source:
    """A file's name, as the user gave it, and its text (without a byte-order mark, line ends as they are)."""

    __slots__ = ("_line_starts", "name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
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
