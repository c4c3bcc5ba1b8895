"""String literals: what their text is, the holes of their templates, and where each character of it stands.

Owns escapes, the indentation that `\"\"\"` strings lose, and the finding of `{{ … }}`. What stands in a hole, and in a
loop's condition, is parsed by `expressions.py`: both are texts with places of their own (`Written`).

A `\"\"\"` string loses (language.md §1):

1. if only blanks stand between the opening quotes and the end of their line, those and the line break;
2. the longest run of blanks with which all its later lines begin. A line of blanks only does not count, and becomes
   empty; so do blanks before closing quotes on a line of their own.

Its line breaks are `\\n`, also in a file with CRLF. Escapes are read afterwards, so what they stand for is never taken
for indentation or for a line's end. One or two quotes may stand right before the closing three.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from .diagnostics import Diagnostic
from .record import Record
from .source import Span


class Written(Record):
    """A text that stands in the source, perhaps with gaps: from `outs[k]` on, its characters stand from `places[k]`
    on, one for one."""

    text: str
    outs: list[int]
    places: list[int]

    def at(self, offset: int) -> int:
        """Where in the source an offset of the text is."""
        k = bisect_right(self.outs, offset) - 1
        return self.places[k] + offset - self.outs[k]


class Hole(Record):
    """`{{ … }}`, from `start` to `end` in the source, and what stands between."""

    start: int
    end: int
    inner: Written


def is_closed(token: str) -> bool:
    """Whether a string token has its closing quotes."""
    return _CLOSED.fullmatch(token) is not None


def content(token: str, start: int) -> Written:
    """What stands between the quotes of a closed string token, escapes as they are; of a `\"\"\"` string without what
    it loses."""
    if token[:3] != '"""':
        return Written(token[1:-1], [0], [start + 1])
    inner = token[3:-3]
    if "\n" not in inner:
        return Written(inner, [0], [start + 3])
    kept: list[str] = []
    outs: list[int] = []
    places: list[int] = []
    size = 0
    for offset, text in block_lines(inner):
        outs.append(size)
        places.append(start + 3 + offset)
        kept.append(text)
        size += len(text)
    return Written("".join(kept), outs, places)


def block_lines(inner: str) -> list[tuple[int, str]]:
    """The lines of what stands between the quotes of a `\"\"\"` string of several lines, each with its `\\n`, and
    where in `inner` what is kept of it begins."""
    lines: list[tuple[int, str]] = []
    offset = 0
    for line in inner.split("\n"):
        lines.append((offset, line.removesuffix("\r")))
        offset += len(line) + 1
    last = inner[inner.rindex("\n") + 1 :]
    lines[-1] = (lines[-1][0], last)
    head = lines.pop(0)
    margin = len(common_indent([text for _, text in lines]))
    made = [(at + margin, text[margin:]) if text.strip(_BLANKS) else (at, "") for at, text in lines]
    if head[1].strip(_BLANKS):
        made.insert(0, head)
    return [(at, text + "\n") for at, text in made[:-1]] + made[-1:]


def common_indent(lines: list[str]) -> str:
    """The longest run of blanks with which all lines begin that hold something else."""
    indents = [line[: len(line) - len(line.lstrip(_BLANKS))] for line in lines if line.strip(_BLANKS)]
    if not indents:
        return ""
    low, high = min(indents), max(indents)
    same = 0
    while same < len(low) and low[same] == high[same]:
        same += 1
    return low[:same]


def split(written: Written, problems: list[Diagnostic]) -> list[str | Hole]:
    """The text of a string, escapes taken out, and the holes in it. Adds what is wrong to `problems`.

    Of a run of more than two `{` the last two open the hole; a hole ends at the first `}}` that stands outside quotes.
    """
    text = written.text
    parts: list[str | Hole] = []
    literal_from = at = 0
    while (mark := _MARK.search(text, at)) is not None:
        at = mark.end()
        if mark[0][0] == "\\":
            continue
        opened = at - 2
        closed = _closing(text, at)
        if closed < 0:
            span = Span(written.at(opened), written.at(at))
            problems.append(Diagnostic("BAD_TEMPLATE", "this `{{` is not closed", span, help=_CLOSE_HOLE))
            break
        _add_literal(parts, written, literal_from, opened, problems)
        inner = _nested(written, at, closed, problems)
        literal_from = at = closed + 2
        parts.append(Hole(written.at(opened), written.at(at - 1) + 1, inner))
    _add_literal(parts, written, literal_from, len(text), problems)
    return parts


def plain(written: Written, problems: list[Diagnostic]) -> str:
    """The text of a string without templates, escapes taken out. Adds what is wrong to `problems`."""
    if "\\" not in written.text:
        return written.text
    return "".join([piece for _, piece in _pieces(written, 0, len(written.text), problems)])


def nested(written: Written, problems: list[Diagnostic]) -> Written:
    """The text of a string, escapes taken out, as one that can be parsed. Adds what is wrong to `problems`."""
    return _nested(written, 0, len(written.text), problems)


# The closing quotes are wanted here; the lexer's own expression lets them be missing.
_CLOSED = re.compile(
    r'"""[^"\\]*+(?:(?:\\[\s\S]|(?!""")")[^"\\]*+)*+"{3,5}'
    r'|(?!""")"[^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+)*+"'
)
_BLANKS = " \t"
_MARK = re.compile(r"\\(?:\{\{|[\s\S])?|\{\{+")
_ESCAPE = re.compile(r"\\(?:u\{([^{}\n]*)\}|\{\{|[\s\S])?")
_MEANS = {"\\n": "\n", "\\t": "\t", "\\r": "\r", '\\"': '"', "\\\\": "\\", "\\{{": "{{"}
_HEX = re.compile(r"[0-9A-Fa-f]{1,6}")
_CLOSE_HOLE = "write `{{ path }}`, or `\\{{` where `{{` itself is meant"


def _closing(text: str, at: int) -> int:
    """Where the `}}` is that closes a hole, or -1."""
    closed, quotes = text.find("}}", at), 0
    while closed >= 0:
        quotes += text.count('"', at, closed)
        if quotes % 2 == 0:
            return closed
        at = closed
        closed = text.find("}}", at + 1)
    return closed


def _add_literal(parts: list[str | Hole], written: Written, start: int, end: int, problems: list[Diagnostic]) -> None:
    literal = "".join([piece for _, piece in _pieces(written, start, end, problems)])
    if literal:
        parts.append(literal)


def _nested(written: Written, start: int, end: int, problems: list[Diagnostic]) -> Written:
    if len(written.places) == 1 and written.text.find("\\", start, end) < 0:
        return Written(written.text[start:end], [0], [written.places[0] + start])
    outs: list[int] = []
    places: list[int] = []
    kept: list[str] = []
    size = 0
    for at, piece in _pieces(written, start, end, problems):
        outs.append(size)
        places.append(written.at(at))
        if len(piece) > 1:
            for k in range(bisect_right(written.outs, at), bisect_right(written.outs, at + len(piece) - 1)):
                outs.append(size + written.outs[k] - at)
                places.append(written.places[k])
        kept.append(piece)
        size += len(piece)
    outs.append(size)
    places.append(written.at(end))
    return Written("".join(kept), outs, places)


def _pieces(written: Written, start: int, end: int, problems: list[Diagnostic]) -> list[tuple[int, str]]:
    """A part of a text with its escapes taken out: what each piece stands for, and where in the text it is."""
    text = written.text
    pieces = []
    at = start
    for found in _ESCAPE.finditer(text, start, end):
        if found.start() > at:
            pieces.append((at, text[at : found.start()]))
        means = _MEANS.get(found[0])
        if means is None:
            means = _character(found[1]) if found[1] is not None else None
        if means is None:
            span = Span(written.at(found.start()), written.at(found.end() - 1) + 1)
            problems.append(_bad_escape(found[0], text[found.end() : found.end() + 8], span))
            means = found[0]
        pieces.append((found.start(), means))
        at = found.end()
    if at < end:
        pieces.append((at, text[at:end]))
    return pieces


def _character(digits: str) -> str | None:
    """What `\\u{…}` stands for; None if that is no character."""
    if _HEX.fullmatch(digits) is None:
        return None
    code = int(digits, 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else None


def _bad_escape(escape: str, rest: str, span: Span) -> Diagnostic:
    after = escape[1:]
    if after.startswith("u{"):
        return Diagnostic("BAD_ESCAPE", f"`{escape[:20]}` is no character", span, help="write it as `\\u{1F600}`")
    if after in ("u", "x"):
        width = 4 if after == "u" else 2
        code = rest[:width] if _HEX.fullmatch(rest[:width]) else "1F600"
        return Diagnostic("BAD_ESCAPE", f"`{escape}` is no escape", span, help=f"write `\\u{{{code}}}`")
    if after in ("", "\n", "\r"):
        message = "a backslash stands before the end of a line"
        return Diagnostic("BAD_ESCAPE", message, Span(span.start, span.start + 1), help=_DOUBLE)
    if after in ("'", "`", "{", "$", "/", "}"):
        more = "; for a literal `{{` write `\\{{`" if after == "{" else ""
        help_ = f"no backslash is needed before `{after}`{more}"
        return Diagnostic("BAD_ESCAPE", f"`{escape}` is no escape", span, help=help_)
    shown = escape if escape.isprintable() else "a backslash here"
    return Diagnostic("BAD_ESCAPE", f"`{shown}` is no escape", span, help=_DOUBLE)


_DOUBLE = 'a backslash itself is written `\\\\`; escapes are `\\n \\t \\r \\" \\\\ \\u{1F600}` and `\\{{`'
