"""Diagnostics: the one form in which anything is said about a program, from the lexer to the runtime.

Owns the record and its plain text. Never prints, and knows no colours but those it is told to use. The codes and what
each means stand in `codes.py`.
"""

from __future__ import annotations

from .record import Record
from .visible import visible_in_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .source import Source, Span

ERROR = "error"
WARNING = "warning"


class Diagnostic(Record):
    """One thing found in one place of one source.

    `code` is one that `halo explain` knows; `severity` is `"error"` or `"warning"`; `help` says how to mend it,
    where that is known.
    """

    code: str
    message: str
    span: Span
    severity: str = ERROR
    help: str | None = None


def render(diagnostic: Diagnostic, source: Source, *, colour: bool = False) -> str:
    """The text shown to a person: place and message, the source line with a caret, the help.

    `FILE:LINE:COLUMN` stands on exactly one line, and so does the code (cli.md). Control characters of the source line
    are shown as `?`, and a line longer than 200 characters is cut around the place.
    """
    line, column = source.position(diagnostic.span.start)
    shown, offset = _window(source.line(line), column)
    width = max(1, min(diagnostic.span.end - diagnostic.span.start, len(shown) - (column - 1 - offset)))
    gutter = str(line)
    pad = " " * len(gutter)
    caret = " " * (column - 1 - offset) + "^" * width
    paint = _PAINT if colour else _PLAIN
    tone = paint[diagnostic.severity]
    head = f"{paint['bold']}{visible_in_line(source.name)}:{line}:{column}{paint['off']}"
    rows = [
        f"{head}: {tone}{diagnostic.severity}{paint['off']} {diagnostic.code}: {visible_in_line(diagnostic.message)}",
        f"{pad} |",
        f"{gutter} | {shown}",
        f"{pad} | {tone}{caret}{paint['off']}",
    ]
    if diagnostic.help:
        rows.append(f"{pad} = {paint['help']}help{paint['off']}: {visible_in_line(diagnostic.help)}")
    return "\n".join(rows)


def as_json(diagnostic: Diagnostic, source: Source) -> dict[str, object]:
    """The diagnostic as `--json` gives it (cli.md)."""
    line, column = source.position(diagnostic.span.start)
    end_line, end_column = source.position(diagnostic.span.end)
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "file": source.name,
        "line": line,
        "column": column,
        "endLine": end_line,
        "endColumn": end_column,
    }


def nearest(name: str, candidates: object) -> str | None:
    """The candidate most like `name`, if one is near enough to be what was meant."""
    from difflib import get_close_matches

    pool = sorted({str(c) for c in candidates})  # type: ignore[attr-defined]
    by_lower = {c.lower(): c for c in pool}
    if name.lower() in by_lower:
        return by_lower[name.lower()]
    found = get_close_matches(name[:200], pool, n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(name: str, candidates: object) -> str | None:
    """The help line that offers the nearest name, or None."""
    near = nearest(name, candidates)
    return f"did you mean `{near}`?" if near else None


_WINDOW = 200
_PLAIN = {"error": "", "warning": "", "bold": "", "help": "", "off": ""}
_PAINT = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "bold": "\x1b[1m",
    "help": "\x1b[1;36m",
    "off": "\x1b[0m",
}


def _window(text: str, column: int) -> tuple[str, int]:
    """The part of a line that is shown, and how many characters before it are left out."""
    offset = 0
    if len(text) > _WINDOW:
        offset = max(0, min(column - 1 - _WINDOW // 2, len(text) - _WINDOW))
        text = text[offset : offset + _WINDOW]
    return "".join(c if c.isprintable() or c == " " else " " if c == "\t" else "?" for c in text), offset
