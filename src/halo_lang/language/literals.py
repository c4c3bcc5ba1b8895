"""Numbers, paths and strings, from tokens to nodes (language.md §1, §2).

Owns how they are read, and the parsing of texts that stand in a string and have their places there: a template's holes
here, a loop's condition in `expressions.py`. What is wrong inside a number or a string is reported, and nothing given
up. Read `expressions.py` next.
"""

from __future__ import annotations

import re

from .ast import Node, Number, Path, Text
from .cursor import Cursor, Failed
from .diagnostics import Diagnostic
from .lexer import END, NAME, NUMBER, STRING, tokenize
from .record import fields, replace
from .source import Span
from .templates import Hole, Written, content, is_closed, plain, split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    N = TypeVar("N", bound=Node)

MAX_DIGITS = 4000
"""Of a number."""

DURATION = re.compile(r"([0-9]+)(ms|s|m|h|d)")


def path(c: Cursor) -> Path:
    """A name and what stands below it."""
    texts, kinds = c.texts, c.kinds
    first = i = c.i
    root, *names = texts[i].split(".")
    parts: list[str | int] = [*names]
    while True:
        i += 1
        mark = texts[i]
        if mark == ".":
            i += 1
            part, kind = texts[i], kinds[i]
            if kind == NAME:
                parts.extend(part.split("."))
            elif kind == NUMBER and part.replace(".", "").isdigit() and len(part) <= MAX_DIGITS:
                # A number with a fraction is two indexes here: `a.0.1`.
                parts.extend(map(int, part.split(".")))
            else:
                c.i = i
                c.expected("a name or an index after the `.`")
        elif mark == "[":
            c.i = i + 1
            parts.append(_index(c))
            i = c.i
            if texts[i] != "]":
                c.expected("`]`")
        else:
            break
    c.i = i
    return Path(c.starts[first], c.ends[i - 1], root, tuple(parts))


def _index(c: Cursor) -> str | int:
    i = c.i
    token = c.texts[i]
    if c.kinds[i] == NUMBER and token.isdigit() and len(token) <= MAX_DIGITS:
        c.i = i + 1
        return int(token)
    if c.kinds[i] == STRING:
        key = plain_string(c)
        return key.parts[0] if key.parts else ""  # type: ignore[return-value]
    c.expected("an index (a whole number) or a key in quotes")


def string(c: Cursor) -> Text:
    """A string literal; with holes, where the cursor says so."""
    i = c.i
    token = c.texts[i]
    if "{{" in token and c.templates:
        return _templated(c)
    if token.count('"') != 2 or "\\" in token:
        return plain_string(c)
    c.i = i + 1
    inner = token[1:-1]
    return Text(c.starts[i], c.ends[i], (inner,) if inner else (), False)


def _is_simple(token: str) -> bool:
    """Whether a string token is closed, of one line and without escapes: what stands between its quotes is its
    text."""
    return token.count('"') == 2 and "\\" not in token


def plain_string(c: Cursor) -> Text:
    """A string literal in which `{{` is text."""
    i = c.i
    token, start = c.texts[i], c.starts[i]
    if _is_simple(token):
        c.i = i + 1
        return Text(start, c.ends[i], (token[1:-1],) if len(token) > 2 else (), False)
    if not is_closed(token):
        c.expected("a string")
    c.i = i + 1
    found: list[Diagnostic] = []
    text = plain(content(token, start), found)
    for problem in found:
        c.add(problem)
    return Text(start, c.ends[i], (text,) if text else (), token.startswith('"""'))


def _templated(c: Cursor) -> Text:
    i = c.i
    token, start = c.texts[i], c.starts[i]
    if "{{{" not in token and _is_simple(token):
        parts = _simply_templated(token, start)
        if parts is not None:
            c.i = i + 1
            return Text(start, c.ends[i], parts, False)
    return _fully_templated(c)


def _simply_templated(token: str, start: int) -> tuple[str | Path, ...] | None:
    """The parts of a string of one line without escapes, all of whose holes are plain paths; None for any other."""
    pieces = _SIMPLE_HOLE.split(token[1:-1])
    parts: list[str | Path] = []
    at = start + 1
    for k in range(0, len(pieces) - 1, 4):
        text, opening, names, closing = pieces[k : k + 4]
        if text:
            if "{{" in text:
                return None
            parts.append(text)
        begins = at + len(text) + len(opening)
        at = begins + len(names) + len(closing)
        root, *rest = names.split(".")
        parts.append(Path(begins, begins + len(names), root, tuple(rest)))
    if pieces[-1]:
        if "{{" in pieces[-1]:
            return None
        parts.append(pieces[-1])
    return tuple(parts)


def _fully_templated(c: Cursor) -> Text:
    i = c.i
    token, start = c.texts[i], c.starts[i]
    if not is_closed(token):
        c.expected("a string")
    c.i = i + 1
    found: list[Diagnostic] = []
    parts: list[str | Path] = []
    for part in split(content(token, start), found):
        if isinstance(part, Hole):
            inserted = _inserted(c, part)
            if inserted is not None:
                parts.append(inserted)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    for problem in found:
        c.add(problem)
    return Text(start, c.ends[i], tuple(parts), token.startswith('"""'))


def _inserted(c: Cursor, hole: Hole) -> Path | None:
    """The path in a hole; None, with an error, if there is none."""
    inner = inside(c, hole.inner)
    node: Path | None = None
    try:
        if inner.kinds[0] != NAME:
            inner.expected("a path")
        node = path(inner)
        if inner.kinds[inner.i] != END:
            inner.expected("`}}`")
    except Failed:
        node = None
    add_inner(c, inner, hole.inner, hole.start, hole.end, "BAD_TEMPLATE")
    return moved(node, hole.inner) if node and inner.text is not c.text else node


def inside(c: Cursor, text: Written) -> Cursor:
    """A cursor for a text in a string, with problems of its own. Where the text stands in the source without gaps, its
    places are places in the source; else they are its own, and its nodes are to be `moved`."""
    if len(text.places) == 1:
        inner = Cursor(c.text, tokenize(text.text, text.places[0]), [], damaged=c.damaged)
    else:
        inner = Cursor(text.text, tokenize(text.text), [], damaged=c.damaged)
    inner.templates = c.templates
    return inner


def add_inner(c: Cursor, inner: Cursor, text: Written, start: int, end: int, code: str) -> None:
    """Adds what was found in a text inside a string, at its place in the source, within the string; a syntax error
    under a code that says where it is."""
    for problem in inner.problems:
        first, last = problem.span.start, problem.span.end
        if inner.text is not c.text:
            first, last = text.at(first), text.at(last)
        first = min(max(first, start), end - 1)
        if problem.code == "SYNTAX":
            message = problem.message.replace("the end of the file", "the end of what stands in the string")
            help_ = problem.help or (_HOLE_HELP if code == "BAD_TEMPLATE" else None)
            problem = replace(problem, code=code, message=message, help=help_)
        c.add(replace(problem, span=Span(first, min(max(last, first), end))))


def moved(node: N, text: Written) -> N:
    """A node of a text inside the source, with its places in the source."""
    values: list[object] = []
    for field in fields(node):
        value = getattr(node, field)
        if field in ("start", "end"):
            value = text.at(value)
        elif isinstance(value, Node):
            value = moved(value, text)
        elif isinstance(value, tuple):
            value = tuple([moved(item, text) if isinstance(item, Node) else item for item in value])
        values.append(value)
    return node.__class__(*values)  # type: ignore[arg-type]


def number(c: Cursor) -> Number:
    """A number. One that cannot be read is reported, and is 0."""
    i = c.i
    token, start, end = c.texts[i], c.starts[i], c.ends[i]
    c.i = i + 1
    if token.isdigit() and len(token) <= MAX_DIGITS:
        return Number(start, end, int(token), token)
    shown = f"`{token[:40]}`"
    found = _NUMBER.fullmatch(token)
    if found is not None and len(token) <= MAX_DIGITS:
        value = int(token) if found[1] is None and found[2] is None else float(token)
        if value not in (float("inf"), float("-inf")):
            return Number(start, end, value, token)
        c.report("BAD_NUMBER", f"{shown} is too large for a number", start, end)
    elif found is not None:
        c.report("BAD_NUMBER", f"this number has more than {MAX_DIGITS:,} digits", start, end)
    elif DURATION.fullmatch(token):
        help_ = 'a duration is only an argument, as in `yield("Well?", 1h)`; elsewhere write a number'
        c.report("SYNTAX", f"the duration {shown} has no place here", start, end, help_)
    else:
        c.report("BAD_NUMBER", f"{shown} is no number", start, end, _number_help(token))
    return Number(start, end, 0, "0")


def _number_help(token: str) -> str:
    if "_" in token and _NUMBER.fullmatch(token.replace("_", "")):
        return f"write `{token.replace('_', '')}`"
    if token[0] == "-" and DURATION.fullmatch(token[1:]):
        return "a duration is not negative"
    if token[-1] in "smhd" and _NUMBER.fullmatch(token.removesuffix("s").removesuffix("m").rstrip("hd")):
        return "a duration is a whole number: instead of `1.5h` write `90m`"
    return "a number is written `12`, `-0.5` or `1e6`, a duration `500ms`, `30s`, `15m`, `1h` or `2d`"


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_SIMPLE_HOLE = re.compile(r"(\{\{[ \t]*+)([A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+)([ \t]*+\}\})")
_HOLE_HELP = "a path stands here, such as `{{topic}}` or `{{context.data.review}}`; a literal `{{` is written `\\{{`"
