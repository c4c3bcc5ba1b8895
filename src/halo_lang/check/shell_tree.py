"""A command line taken apart: its words, what is computed in them, its simple commands.

Owns the records and the ways to read a word. Read `shell_lexer.py` for how words are read from text,
`shell_grammar.py` for how commands are.
"""

from __future__ import annotations

from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

SLOT = "\0"
"""The character that stands for an inserted value."""


class NotUnderstood(Exception):
    """A text is not surely read as bash would read it. `at` is the offset of what was met."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.why = why


class Literal(Record):
    """Text that is known. `quoted`: by quotes or a backslash, so that no pattern or brace in it counts."""

    text: str
    quoted: bool


class Slot(Record):
    """An inserted value. `at` is its offset."""

    at: int


class Computed(Record):
    """A part that bash works out. `kind` is `parameter`, `command`, `arithmetic` or `process`; `source` as written;
    `quoted`: in double quotes. `inner` holds the parts nested in it, `script` the commands that it runs."""

    kind: str
    source: str
    quoted: bool
    inner: tuple[Part, ...] = ()
    script: Script | None = None


Part: TypeAlias = "Literal | Slot | Computed"


class Word(Record):
    """One word of the shell, or the body of a here-document. `items` are the elements of an array's assignment."""

    start: int
    end: int
    parts: tuple[Part, ...]
    items: tuple[Word, ...] = ()


class Redirect(Record):
    """`descriptor` is the number before the operator, or empty. The target of a here-document is its body; `verbatim`:
    its delimiter is quoted, so nothing in it is expanded."""

    descriptor: str
    operator: str
    target: Word
    verbatim: bool = False


class Simple(Record):
    """A simple command. `redirects` is filled in when the bodies of its here-documents have been met."""

    assignments: tuple[Word, ...]
    words: tuple[Word, ...]
    redirects: list[Redirect]


class Loose(Record):
    """Words outside simple commands. `role` is `for`, `case`, `pattern`, `test` or `arithmetic`; a test's words include
    its operators as written."""

    role: str
    words: tuple[Word, ...]


class Group(Record):
    """Redirections of a compound command, and which commands (`first` up to, not including, `last`) it holds."""

    first: int
    last: int
    redirects: list[Redirect]


class Script(Record):
    """What a text runs, in the order written, compound commands and functions taken apart.

    `pipes` holds for each pipeline of several stages the index of the first command of each stage, then the end.
    `functions` are the names that are defined, `evaluated` the names that arithmetic looks up (`*`: any).
    """

    commands: list[Simple]
    loose: list[Loose]
    groups: list[Group]
    pipes: list[tuple[int, ...]]
    functions: list[str]
    evaluated: list[str]


class Parsed(Record):
    """`styles` gives the quotes around each inserted value that was met, by its offset; `refused` a reason for each
    that can have no place. One in neither stands where no value is read."""

    text: str
    script: Script
    styles: dict[int, str]
    refused: dict[int, str]


def literal(word: Word) -> str | None:
    """The text of a word in which nothing is computed, quotes taken out, else None."""
    if word.items or any(not isinstance(p, Literal) for p in word.parts):
        return None
    return "".join(p.text for p in word.parts if isinstance(p, Literal))


def plain(word: Word) -> str:
    """The text of a word, quotes taken out, with what is computed as it is written."""
    shown = [p.text if isinstance(p, Literal) else SLOT if isinstance(p, Slot) else p.source for p in word.parts]
    if word.items:
        shown.append("(" + " ".join(plain(w) for w in word.items) + ")")
    return "".join(shown)


def prefix(word: Word) -> str:
    """The known text that a word begins with."""
    found = []
    for part in word.parts:
        if not isinstance(part, Literal):
            break
        found.append(part.text)
    return "".join(found)


def bare_text(word: Word) -> str:
    """What stands outside quotes and is not computed: where patterns and braces count."""
    return "".join(p.text for p in word.parts if isinstance(p, Literal) and not p.quoted)


def is_one(word: Word) -> bool:
    """Whether a word is one argument, whatever is computed in it."""
    return not any(c in bare_text(word) for c in "*?[{") and all(
        not isinstance(p, Computed) or (p.quoted and "@" not in p.source) or p.kind == "process" for p in word.parts
    )


def empty_script() -> Script:
    return Script([], [], [], [], [], [])
