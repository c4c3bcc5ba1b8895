"""Where the parser is in the tokens, and what it has found to be wrong so far.

Owns the reporting of syntax errors, each once, and the going on after one: the part that is being parsed (a
declaration, stage, clause or test step) is given up by raising `Failed`, which its caller in `parser.py` catches, and
`skip` goes to where the next begins. Within one part only the first error is reported, for the others are likely to
follow from it. Read `literals.py` next.
"""

from __future__ import annotations

import re

from .ast import Name
from .diagnostics import ERROR, Diagnostic
from .lexer import END, JUNK, MARK, NAME, STRING, Tokens
from .source import Span
from .templates import is_closed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import NoReturn

MAX_PROBLEMS = 1000
"""Errors, and warnings, that are reported of one file."""

MAX_DEPTH = 64
"""Parentheses, brackets, braces and `!` inside one another (language.md §1)."""

FORGET = 10_000
"""Tokens read from which on it is worth letting go of them."""

DECLARATIONS = {"policy": ":", "tool": ":", "store": ":", "agent": "[", "pipeline": "(", "test": ":"}
"""The words that begin a declaration, and what follows the name."""

STAGES = frozenset({"|>", "|?", "|*", "|!", "~>", "|<>", "@"})
"""The marks that begin a stage."""


class Failed(Exception):
    """What is being parsed has a syntax error, which has been reported."""


class TooMany(Exception):
    """There are so many errors that the rest is not looked for."""


class Cursor:
    """The tokens of a text, the index `i` of the next one, and how what stands there is to be read.

    `templates`: `{{` in strings opens a hole. `depth`: brackets that are open and `!` that hold. `quiet`: an error
    of the part at hand has been reported. `lost`: the names in parts that were given up.
    """

    __slots__ = (
        "damaged",
        "depth",
        "ends",
        "i",
        "kinds",
        "lost",
        "problems",
        "quiet",
        "starts",
        "templates",
        "text",
        "texts",
    )

    def __init__(self, text: str, tokens: Tokens, problems: list[Diagnostic], *, damaged: bool = False) -> None:
        self.text = text
        self.texts = tokens.texts
        self.kinds = tokens.kinds
        self.starts = tokens.starts
        self.ends = tokens.ends
        self.i = 0
        self.depth = 0
        self.templates = False
        self.quiet = False
        self.damaged = damaged
        self.problems = problems
        self.lost: set[str] = set()

    # Moving on

    def end(self) -> int:
        """Where the token before the next one ends."""
        return self.ends[self.i - 1]

    def name(self, what: str) -> Name:
        """The name that must stand here."""
        i = self.i
        text, kinds = self.texts[i], self.kinds
        # A name and no mark after it may be the beginning of the next declaration.
        if kinds[i] != NAME or "." in text or (kinds[i + 1] != MARK and self.at_declaration(i)):
            self.expected(what)
        self.i = i + 1
        return Name(self.starts[i], self.ends[i], text)

    def take(self, mark: str, what: str) -> None:
        """Goes past a mark or word that must stand here."""
        if self.texts[self.i] != mark:
            self.expected(what)
        self.i += 1

    def close(self, mark: str, what: str) -> None:
        """Goes past a closing bracket. Where it is missing and nothing that could stand before it follows, says so and
        goes on as if it were there."""
        if self.texts[self.i] == mark:
            self.i += 1
        elif self.at_boundary():
            self.note_expected(what)
        else:
            self.expected(what)

    def enter(self) -> None:
        """Goes into a bracket, or past a `!`. The caller counts `depth` down again."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            message = f"brackets, braces, parentheses and `!` may nest {MAX_DEPTH} deep, and not deeper"
            i = self.i - 1
            help_ = "split it, for example into stages that store a value with `as`"
            self.fail(message, self.starts[i], self.ends[i], code="TOO_DEEP", help=help_)

    def forget(self) -> None:
        """Lets go of tokens that have been read, if they are many, so that a large file's tokens and its tree are not
        both held as a whole. The last one stays, for its place."""
        read = self.i - 1
        if read * 2 > len(self.texts):
            # By a copy: what a list lets go of itself stays with the process.
            self.texts, self.kinds = self.texts[read:], self.kinds[read:]
            self.starts, self.ends = self.starts[read:], self.ends[read:]
            self.i = 1

    # What stands here

    def at_declaration(self, i: int) -> bool:
        """Whether a declaration begins at a token: its word, a name and what must follow stand there. In no text
        without errors do they stand anywhere else."""
        word = self.texts[i]
        if word not in DECLARATIONS or self.kinds[i] != NAME:
            return False
        if self.kinds[i + 1] != (STRING if word == "test" else NAME):
            return False
        return self.texts[i + 2] == DECLARATIONS[word] and self.texts[i + 1] not in _AFTER_OTHER_NAMES

    def _looks_like_declaration(self, i: int) -> bool:
        """Whether what stands at a token is most likely meant as a declaration: at the beginning of a line its word
        and a name, or any word, a name and what must follow."""
        kinds = self.kinds
        if kinds[i] != NAME or not self.begins_line(i):
            return False
        if self.texts[i] in DECLARATIONS:
            return kinds[i + 1] == NAME or self.texts[i] == "test"
        return kinds[i + 1] == NAME and self.texts[i + 2] in _AFTER_NAME

    def begins_line(self, i: int) -> bool:
        """Whether a token stands in the first column."""
        start = self.starts[i]
        return start == 0 or self.text[start - 1] == "\n"

    def first_on_line(self, i: int) -> bool:
        """Whether a token is the first of its line."""
        return i == 0 or "\n" in self.text[self.ends[i - 1] : self.starts[i]]

    def at_boundary(self) -> bool:
        """Whether what stands here can only follow an expression whose brackets are all closed."""
        i = self.i
        text = self.texts[i]
        return text in _BOUNDARIES or self.kinds[i] == END or (text in DECLARATIONS and self.at_declaration(i))

    # Errors

    def report(self, code: str, message: str, start: int, end: int, help: str | None = None) -> None:  # noqa: A002
        """Adds an error."""
        self.add(Diagnostic(code, message, Span(start, end), ERROR, help))

    def add(self, diagnostic: Diagnostic) -> None:
        """Adds what was found. Raises `TooMany` after the thousandth error."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(diagnostic)
        elif diagnostic.severity == ERROR:
            raise TooMany

    def expected(self, what: str, help: str | None = None, *, here: bool = False) -> NoReturn:  # noqa: A002
        """Gives up because something else stands here than may."""
        self.note_expected(what, help, here=here)
        raise Failed

    def note_expected(self, what: str, help: str | None = None, *, here: bool = False) -> None:  # noqa: A002
        """Says that something else stands here than may, if the part at hand is not known to be wrong yet.

        What is missing at the end of a line has its place there, and not in the next line; but with `here` the place
        is what stands here in any case.
        """
        if self.quiet:
            return
        self.quiet = True
        i = self.i
        if self._unreadable(i):
            return
        from .slips import describe, help_for

        start, end = self.starts[i], self.ends[i]
        if i > 0 and (self.kinds[i] == END or (not here and self.first_on_line(i))):
            start = end = self.end()
        self.report(
            "SYNTAX", f"expected {what}, found {describe(self, i)}", start, end, help or help_for(self, i, what)
        )

    def fail(
        self,
        message: str,
        start: int | None = None,
        end: int | None = None,
        *,
        code: str = "SYNTAX",
        help: str | None = None,  # noqa: A002
    ) -> NoReturn:
        """Gives up with an error, at the next token if no place is given."""
        if not self.quiet:
            self.quiet = True
            i = self.i
            if start is None or end is None:
                start, end = self.starts[i], self.ends[i]
            self.report(code, message, start, end, help)
        raise Failed

    def unclosed(self, i: int) -> None:
        """Says that a string token has no closing quotes."""
        token, start = self.texts[i], self.starts[i]
        if token.startswith('"""'):
            message, end = 'this `"""` is not closed', start + 3
            help_ = 'close the string with `"""`'
        else:
            message, end = "this string is not closed on its line", start + len(token)
            help_ = 'close it with `"`; a text over several lines stands in `"""`'
        self.report("UNCLOSED_STRING", message, start, end, help_)

    def _unreadable(self, i: int) -> bool:
        """Reports a token that could stand nowhere; gives whether this was one."""
        if self.kinds[i] == STRING and not is_closed(self.texts[i]):
            self.unclosed(i)
            return True
        if self.kinds[i] != JUNK:
            return False
        token, start = self.texts[i], self.starts[i]
        if not (self.damaged and "\ufffd" in token):
            from .slips import describe, help_for

            end = start + min(len(token), 40)
            self.report("SYNTAX", f"{describe(self, i)} has no place here", start, end, help_for(self, i, ""))
        return True

    def over(self) -> bool:
        """Whether no further stage, clause or step can follow: a declaration begins, or what is most likely meant as
        one, or the text ends."""
        i = self.i
        return self.kinds[i] == END or (
            self.kinds[i] == NAME and (self.texts[i] in DECLARATIONS or self.begins_line(i))
        )

    def skip(self, first: int, words: Container[str] = (), *, stages: bool = False) -> None:
        """Gives up the part that began at token `first`: goes to the next declaration, stage (with `stages`), or one
        of `words` that begins a line."""
        texts, kinds = self.texts, self.kinds
        i = max(self.i, first + 1)
        while kinds[i] != END:
            text = texts[i]
            if (stages and text in STAGES) or (text in words and self.first_on_line(i)):
                break
            if (text in DECLARATIONS and self.at_declaration(i)) or self._looks_like_declaration(i):
                break
            i += 1
        self.i = i = min(i, len(texts) - 1)
        self.lost.update(_NAMES.findall(self.text, self.starts[first], self.starts[i]))
        self.depth = 0
        self.quiet = False


# After a name that is no declaration's word: `each(pipeline in (…` and `mock A => pipeline expect (…`.
_AFTER_OTHER_NAMES = frozenset({"in", "expect"})
_AFTER_NAME = frozenset(DECLARATIONS.values())
_BOUNDARIES = STAGES | {"as", "->", "=>"}
_NAMES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+")
