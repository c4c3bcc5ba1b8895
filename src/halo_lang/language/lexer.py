"""Tokens: source text cut into names, literals and marks, in one pass of one regular expression.

Owns where a token begins and ends, and the finding of characters that have no place in a file. Says nothing about
what tokens mean: numbers and strings are read, and refused, where the parser comes upon them, so that only what it
meets is reported. Every character of the text belongs to a token, a comment or a blank, so no text can fail here, and
the time is linear. Read `cursor.py` next.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, repeat
from operator import add, itemgetter

from .ast import Comment
from .diagnostics import WARNING, Diagnostic
from .record import Record
from .source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

NAME, STRING, NUMBER, MARK, JUNK, END = "n", "s", "d", "p", "j", "e"
"""The kinds of tokens. Durations are NUMBER too; a number with a minus sign is a MARK of more than one character."""

MAX_NAME = 200
"""Characters of a name (language.md §1)."""

BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""The characters with Unicode's property Bidi_Control, as the inside of a regular expression's class."""


class Tokens(Record):
    """The tokens of a text, side by side: `texts[i]` is of kind `kinds[i]` and stands from `starts[i]` to `ends[i]`.

    Names joined by dots, without blanks between, are one token (`Writer.draft`, `context.data.x`), for that is what
    most names are part of. A string token is as written, quotes included, and may lack its closing quotes. After the
    last token stand a few of kind END, empty, at the end of the text, so that looking ahead needs no care. `comments`
    holds the starts and the texts of the comments, marks included, which are no tokens. `longest` is the length of the
    longest token.
    """

    texts: list[str]
    kinds: list[str]
    starts: list[int]
    ends: list[int]
    comments: tuple[tuple[int, str], ...]
    longest: int


def tokenize(text: str, base: int = 0) -> Tokens:
    """The tokens of any text whatever, which stands from `base` on in the source (language.md §1)."""
    # A forbidden character counts as a blank: it is reported once, and nothing after it is misread.
    plain = text.isascii() and text.isprintable()
    forbidden = not plain and _has_forbidden(text)
    cut = _FORBIDDEN.sub(" ", text) if forbidden else text
    lead = len(cut) - len(cut.lstrip(_BLANKS))
    texts = _TOKEN.findall(cut, lead)
    starts = list(accumulate(map(len, texts), initial=base + lead))
    blanks = None if plain or (text.isascii() and not any(map(text.__contains__, _OTHER_BLANKS))) else _BLANKS
    for k in range(0, len(texts), _CHUNK):  # piece by piece, so that not all are held twice
        some = texts[k : k + _CHUNK]
        texts[k : k + _CHUNK] = map(str.rstrip, some) if blanks is None else map(str.rstrip, some, repeat(blanks))
    kinds = "".join(map(itemgetter(0), texts)).translate(_KINDS)
    if "//" in text:
        slashes = [_COMMENT if k == _SLASH and t != _SLASH else k for k, t in zip(kinds, texts, strict=True)]
        kinds = "".join(slashes)
    kinds = kinds.replace(_SLASH, MARK)
    comments: tuple[tuple[int, str], ...] = ()
    if _COMMENT in kinds:
        comments = tuple([(starts[i], texts[i]) for i in _places(_COMMENT, kinds)])
        texts, starts = _without(_COMMENT, kinds, texts), _without(_COMMENT, kinds, starts)
        kinds = kinds.replace(_COMMENT, "")
    lengths = list(map(len, texts))
    ends = list(map(add, starts, lengths))
    longest = max(lengths, default=0)
    del lengths
    if forbidden:
        marks = zip(texts, kinds, starts, ends, strict=False)
        texts = [text[a - base : b - base] if k == STRING else t for t, k, a, b in marks]
    texts += [""] * _ENDS
    starts += [starts[-1]] * (_ENDS - 1)
    ends += [starts[-1]] * _ENDS
    return Tokens(texts, list(kinds + END * _ENDS), starts, ends, comments, longest)


def _places(kind: str, kinds: str) -> list[int]:
    found, at = [], kinds.find(kind)
    while at >= 0:
        found.append(at)
        at = kinds.find(kind, at + 1)
    return found


def _without(kind: str, kinds: str, items: list[T]) -> list[T]:
    """The items that are not of a kind; there may be more of them than kinds."""
    kept: list[T] = []
    at = 0
    for place in _places(kind, kinds):
        kept += items[at:place]
        at = place + 1
    return kept + items[at:]


def comment_nodes(tokens: Tokens, text: str) -> tuple[Comment, ...]:
    """The comments as nodes, in order."""
    made = []
    for start, written in tokens.comments:
        before = text[text.rfind("\n", 0, start) + 1 : start]
        content = written[1:] if written[0] == "#" else written[2:]
        made.append(Comment(start, start + len(written), content, not before.isspace() and before != ""))
    return tuple(made)


def long_names(tokens: Tokens) -> list[Diagnostic]:
    """An error for each name of more than 200 characters."""
    if tokens.longest <= MAX_NAME:
        return []
    found = []
    for text, kind, start in zip(tokens.texts, tokens.kinds, tokens.starts, strict=False):
        if len(text) <= MAX_NAME or kind != NAME:
            continue
        for name in text.split("."):
            if len(name) > MAX_NAME:
                message = f"this name has {len(name):,} characters, and {MAX_NAME} are allowed"
                found.append(Diagnostic("NAME_TOO_LONG", message, Span(start, start + len(name))))
            start += len(name) + 1
    return found


def forbidden_characters(tokens: Tokens, text: str, most: int) -> list[Diagnostic]:
    """What is to be said of NUL and of characters that change the direction of text, at most so many times: errors,
    but a warning for the latter inside a string (language.md §1)."""
    if not _has_forbidden(text):
        return []
    found: list[Diagnostic] = []
    for match in _FORBIDDEN.finditer(text):
        if len(found) == most:
            break
        at, character = match.start(), match[0]
        i = bisect_right(tokens.starts, at) - 1
        in_string = i >= 0 and tokens.kinds[i] == STRING and at < tokens.starts[i] + len(tokens.texts[i])
        shown = f"U+{ord(character):04X}"
        span = Span(at, at + 1)
        if character == "\0":
            found.append(Diagnostic("FORBIDDEN_CHARACTER", "a NUL character stands in the file", span, help=_REMOVE))
        elif "\ud800" <= character <= "\udfff":
            found.append(Diagnostic("NOT_UTF8", f"{shown} is half a character", span, help=_REMOVE))
        elif in_string:
            message = f"this string holds {shown}, which changes the direction of the text after it"
            help_ = f"if it is meant, write it as `\\u{{{ord(character):X}}}`"
            found.append(Diagnostic("BIDI_IN_STRING", message, span, WARNING, help_))
        else:
            message = f"{shown} changes the direction of the text after it, and could hide what the file says"
            found.append(Diagnostic("FORBIDDEN_CHARACTER", message, span, help=_REMOVE))
    return found


_ENDS = 4
_CHUNK = 10_000
_COMMENT, _SLASH = "c", "/"
_REMOVE = "remove the character"
_BLANKS = " \t\r\n"
_OTHER_BLANKS = "\0\x0b\x0c\x1c\x1d\x1e\x1f"
"""What `str.rstrip` would take for blanks besides, in ASCII; and NUL."""

# No alternative can give up what a repetition inside it has taken, so none takes more than linear time or any memory.
_TOKEN = re.compile(
    r"""(?:[A-Za-z_][A-Za-z0-9_]*+(?:\.[A-Za-z_][A-Za-z0-9_]*+)*+"""
    r"""|[()\[\]{}.,:]"""
    r'''|"""[^"\\]*+(?:(?:\\[\s\S]?|(?!""")")[^"\\]*+)*+(?:"{3,5})?'''
    r"""|"[^"\\\r\n]*+(?:\\[^\r\n]?[^"\\\r\n]*+)*+"?"""
    r"""|-?[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+[A-Za-z0-9_]*+"""
    r"""|\#[^\n]*+|//[^\n]*+"""
    r"""|\|<>|\|[>?*!|]|~>|->|=>|==|!=|<=|>=|&&"""
    r"""|'[^'\r\n]*+'?"""
    r"""|[^\x00-\x7f]++"""
    r"""|[\s\S])[ \t\r\n]*+"""
)
_FORBIDDEN = re.compile(r"[\0\ud800-\udfff" + BIDI + "]")


def _has_forbidden(text: str) -> bool:
    return "\0" in text or (not text.isascii() and _FORBIDDEN.search(text) is not None)


class _Kinds(dict[int, str]):
    def __missing__(self, character: int) -> str:
        return JUNK


_KINDS = _Kinds(
    {ord(c): NAME for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"}
    | {ord(c): NUMBER for c in "0123456789"}
    | {ord(c): MARK for c in "()[]{}.,:=!<>|&~@-"}
    | {ord('"'): STRING, ord("#"): _COMMENT, ord("/"): _SLASH}
)
