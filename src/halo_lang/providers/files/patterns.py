"""Patterns of paths: those of `glob`, and those of `.gitignore` (tools.md §2).

Owns their reading, by git's rules, into expressions of a linear engine: no pattern can make a search run away,
whoever wrote it. A path is text such as `a/b.md`; a folder's ends in `/`. Touches no file; read `finding.py` next.
"""

from __future__ import annotations

from ...boundary.host import ToolError
from ...language.record import Record
from .paths import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

_MAX_MEMORY = 8 << 20
_MAX_PATTERN = 1_000
_ANY_FOLDERS = "(?:[^/]*/)*"
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x2e\x30-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x2e\x30-\x7e",
    "punct": r"\x21-\x2e\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\t\n\x0b\x0c\r ",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Glob(Record):
    """A pattern of paths from the tool's folder on. `start` are the names that it begins with and that are no
    patterns: the walk begins there. `leading` are the expressions of its names up to the first `**`, which `is_open`
    says that there is."""

    start: tuple[str, ...]
    leading: tuple[Any, ...]
    is_open: bool
    expression: Any

    def may_match_in(self, names: Sequence[str]) -> bool:
        """Whether something in a folder of that path may match; the folder above it has been found to."""
        at = len(names) - 1
        if at >= len(self.leading) - (not self.is_open):
            return self.is_open
        return self.leading[at].fullmatch(names[at]) is not None

    def matches(self, path: str) -> bool:
        return self.expression.fullmatch(path) is not None


def read_glob(pattern: str) -> Glob:
    """Reads a pattern of `*`, `**`, `?` and `[abc]`. Raises `ToolError` for one that is none or leads out."""
    if len(pattern) > _MAX_PATTERN or "\0" in pattern:
        raise ToolError(f"a pattern is at most {_MAX_PATTERN:,} characters, and holds no NUL")
    parts = [p for p in _parts(pattern) or [pattern] if p not in ("", ".")]
    if pattern.startswith("/") or ".." in parts:
        raise ToolError(f"the pattern {shown(pattern)} leads out of the tool's folder; write it relative to that")
    if not parts:
        raise ToolError("the pattern is empty; `**` matches everything")
    text = _expression(parts, anchored=True)
    if text is None:
        raise ToolError(f"the pattern {shown(pattern)} ends within `[` or after a backslash")
    start = []
    for part in parts[:-1]:
        if any(c in part for c in "*?[\\"):
            break
        start.append(part)
    ends = "/" if pattern.endswith("/") else "/?"
    leading = parts[: parts.index("**")] if "**" in parts else parts
    what = f"pattern {shown(pattern)}"
    names = tuple(compiled(_name(part) or "", what) for part in leading)
    return Glob(tuple(start), names, leading is not parts, compiled(text + ends, what))


class Ignored(Record):
    """The patterns of one `.gitignore`: an expression for all of them, and for each whether it ignores or keeps."""

    expressions: Any
    ignores: tuple[bool, ...]

    def says(self, path: str) -> bool | None:
        """Whether a path, relative to the `.gitignore`'s folder, is ignored; None where no pattern matches it."""
        found = self.expressions.Match(path) if self.ignores else ()
        return self.ignores[max(found)] if found else None


def read_ignore(text: str) -> Ignored:
    """Reads a `.gitignore`. A line that git would not understand matches nothing."""
    import re2

    options = _options()
    options.max_mem = 4 * _MAX_MEMORY
    expressions = re2.Set.FullMatchSet(options)
    ignores: list[bool] = []
    for line in text.removeprefix("\ufeff").split("\n"):
        read = _ignore_line(line.removesuffix("\r"))
        if read is not None and _is_valid(read[1]):
            expressions.Add(read[1])
            ignores.append(read[0])
    if ignores:
        expressions.Compile()
    return Ignored(expressions, tuple(ignores))


def is_ignored(stack: Sequence[tuple[int, Ignored]], path: str) -> bool:
    """Whether a path is ignored by the `.gitignore` files of the folders above it, the nearest first. Each stands in
    the stack with the length of its own folder's path."""
    for length, ignored in reversed(stack):
        said = ignored.says(path[length:])
        if said is not None:
            return said
    return False


def compiled(expression: str, what: str) -> Any:
    """A regular expression of the linear engine. Raises `ToolError` for one that it does not take."""
    import re2

    try:
        return re2.compile(expression, _options())
    except re2.error as error:
        said = error.args[0] if error.args else ""
        reason = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise ToolError(
            f"the {what} cannot be used: {reason[:200]} (it is read by RE2: no back-references, no look-around)"
        ) from None


def _options() -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MAX_MEMORY
    return options


def _is_valid(expression: str) -> bool:
    import re2

    try:
        re2.compile(expression, _options())
    except (re2.error, UnicodeEncodeError):
        return False
    return True


def _ignore_line(line: str) -> tuple[bool, str] | None:
    """Whether a line of a `.gitignore` ignores, and the expression of what it matches; None for no pattern."""
    line = _without_blanks(line)
    if line.startswith("#") or len(line) > _MAX_PATTERN:
        return None
    ignores = not line.startswith("!")
    line = line if ignores else line[1:]
    ends = "/?"
    if line.endswith("/"):
        line, ends = line[:-1], "/"
    if not line:
        return None
    parts = _parts(line.removeprefix("/"))
    expression = None if parts is None else _expression(parts, anchored="/" in line)
    return None if expression is None else (ignores, expression + ends)


def _without_blanks(line: str) -> str:
    """A line without the blanks at its end, unless a backslash stands before them."""
    kept = line.rstrip(" ")
    backslashes = len(kept) - len(kept.rstrip("\\"))
    return line[: len(kept) + 1] if backslashes % 2 and len(kept) < len(line) else kept


def _parts(pattern: str) -> list[str] | None:
    """A pattern's parts between slashes that stand outside of brackets; None where a bracket is not closed."""
    parts, begin, at = [], 0, 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "[":
            read = _bracket(pattern, at)
            if read is None:
                return None
            at = read[1]
        elif char == "/" or pattern.startswith("\\/", at - 1):
            parts.append(pattern[begin : at - 1])
            begin = at = at if char == "/" else at + 1
        elif char == "\\":
            at += 1
    return [*parts, pattern[begin:]]


def _expression(parts: Iterable[str], *, anchored: bool) -> str | None:
    """The expression of a pattern's parts, or None where one is not closed."""
    made = "" if anchored else _ANY_FOLDERS
    parts = list(parts)
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**" and (anchored or len(parts) > 1):
            made += "(?s:.+)" if last else _ANY_FOLDERS
            continue
        name = _name(part)
        if name is None:
            return None
        made += name if last else name + "/"
    return made


def _name(part: str) -> str | None:
    """The expression of a pattern of one name. A name is never empty, whatever stars stand for."""
    if part and not part.strip("*"):
        return "[^/]+"
    made: list[str] = []
    at = 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            if not made or made[-1] != "[^/]*":
                made.append("[^/]*")
        elif char == "?":
            made.append("[^/]")
        elif char == "[":
            read = _bracket(part, at)
            if read is None:
                return None
            made.append(read[0])
            at = read[1]
        else:
            if char == "\\":
                if at == len(part):
                    return None
                char = part[at]
                at += 1
            made.append(_char(char))
    return "".join(made)


def _bracket(part: str, at: int) -> tuple[str, int] | None:
    """The expression of `[abc]`, read from after its `[`, and where it ends; None where it is not closed."""
    inverted = part[at : at + 1] in ("!", "^")
    at += inverted
    members: list[str] = []
    begin, before = at, ""
    while True:
        char = part[at : at + 1]
        if char == "" or (char == "\\" and at + 1 == len(part)):
            return None
        if char == "]" and at > begin:
            break
        if char == "[" and part[at + 1 : at + 2] == ":":
            end = part.find("]", at + 2)
            if end < 0:
                return None
            if end > at + 2 and part[end - 1] == ":":
                if part[at + 2 : end - 1] not in _CLASSES:
                    return None
                members.append(_CLASSES[part[at + 2 : end - 1]])
                at, before = end + 1, ""
                continue
        if char == "-" and before and part[at + 1 : at + 2] not in ("]", ""):
            at += 1
            if part[at] == "\\":
                at += 1
                if at == len(part):
                    return None
            members.append(_range(before, part[at]))
            at, before = at + 1, ""
            continue
        if char == "\\":
            at += 1
            char = part[at]
        members.append(_range(char, char))
        at, before = at + 1, char
    inner = "".join(members)
    if inverted:
        return f"[^/{inner}]", at + 1
    return (f"[{inner}]" if inner else r"[^\x00-\x{10FFFF}]"), at + 1


def _range(first: str, last: str) -> str:
    """A range of characters without the slash, which no name holds; empty where it is the wrong way round."""
    spans = [(ord(first), min(ord(last), 0x2E)), (max(ord(first), 0x30), ord(last))]
    return "".join(f"\\x{{{a:X}}}-\\x{{{b:X}}}" for a, b in spans if a <= b)


def _char(char: str) -> str:
    return char if char.isalnum() else f"\\x{{{ord(char):X}}}"
