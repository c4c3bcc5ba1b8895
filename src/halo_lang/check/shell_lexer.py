"""Words of the shell, read from text: quotes, escapes, expansions, the bodies of here-documents.

Owns what bash does between two blanks. It is narrow on purpose: what bash would read differently from version to
version, or what is simply rare, is refused (`NotUnderstood`) and never guessed; who asks wants to be sure where a text
ends and what runs, not to be complete (docs/adr/0005). It evaluates nothing. Read `shell_grammar.py` next.
"""

from __future__ import annotations

import re

from .shell_tree import SLOT, Computed, Literal, Loose, NotUnderstood, Part, Redirect, Slot, Word, empty_script

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BARE, DOUBLE, SINGLE, ANSI, HEREDOC = "bare", "double", "single", "ansi", "heredoc"
"""The quotes that an inserted value can stand in."""

MAX_DEPTH = 40
"""Levels of nesting that are followed; more are refused."""

MAX_WORDS = 60_000
"""Words, expansions and commands in one text that are followed; more are refused."""

_BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_PLAIN = re.compile(r"[^ \t\n\\'\"`$<>|&;()\0]+")
_ESCAPED = re.compile(r"(?:\\[^\n\0])+")
_PLAIN_REGEX = re.compile(r"[^ \t\n\\'\"`$<>&;\0]+")
_IN_DOUBLE = re.compile(r"[^\\\"`$\0]+")
_IN_BODY = re.compile(r"[^\\`$\0]+")
_IN_BRACES = re.compile(r"[^\\'\"`${}<>\0]+")
_IN_ARITHMETIC = re.compile(r"[A-Za-z0-9_ \t\n+\-*/%=!^~?:,.@#&|<>\[\]]+")
_ARRAY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_BRACED = re.compile(r"[#!]?([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*])|([#?$!-])(?=\})")
_SUBSCRIPT = re.compile(r"\[(?:[@*]|([A-Za-z0-9_+\-*/% $]+))\]")
_OPERATOR = re.compile(r":[-=?+]|[-=?+]|##?|%%?|//?|\^\^?|,,?|:")
_TRANSFORM = re.compile(r"@([UuLlQEPAKak])(?=\})")
_BACKQUOTED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_BACKQUOTED_ESCAPE = re.compile(r"\\([$`\\])")
_ANSI_CONTENT = re.compile(r"(?:[^'\\]|\\.)*", re.DOTALL)
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|.)", re.DOTALL
)
_ANSI_NAMED = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class WordReader:
    """A text that is read from front to back: from `pos` to `end`. `barred` is the reason why no value may stand in
    what is being read now; `pending` are here-documents whose bodies are still to come."""

    def __init__(self, text: str, bash: bool, depth: int) -> None:
        self.text = text
        self.bash = bash
        self.depth = depth
        self.pos = 0
        self.end = len(text)
        self.script = empty_script()
        self.styles: dict[int, str] = {}
        self.refused: dict[int, str] = {}
        self.barred: str | None = None
        self.pending: list[tuple[str, bool, list[Redirect]]] = []
        self.left = MAX_WORDS

    def commands_until(self, ends: tuple[str, ...], *, may_be_empty: bool = False) -> str:
        raise NotImplementedError

    # Small steps ------------------------------------------------------------------------------------------------

    def fail(self, why: str) -> NotUnderstood:
        return NotUnderstood(self.pos, why)

    def ahead(self, length: int = 1) -> str:
        return self.text[self.pos : min(self.pos + length, self.end)]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.pos, self.end)
        if found is not None:
            self.pos = found.end()
        return found

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.fail("the command is too long")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail("the command nests too deep")

    def slot(self, style: str) -> Slot:
        """An inserted value, right here."""
        if self.barred is not None:
            self.refused.setdefault(self.pos, self.barred)
        self.styles[self.pos] = style
        self.pos += 1
        return Slot(self.pos - 1)

    def refuse_slots(self, start: int, end: int, reason: str) -> None:
        at = self.text.find(SLOT, start, end)
        while at >= 0:
            self.refused.setdefault(at, reason)
            at = self.text.find(SLOT, at + 1, end)

    def blanks(self) -> None:
        """Skips blanks and a comment: what may stand before a token."""
        self.take(_BLANKS)
        if self.ahead() == "#":
            start = self.pos
            self.take(_COMMENT)
            self.refuse_slots(start, self.pos, "comment")

    def newlines(self) -> None:
        self.blanks()
        while self.ahead() == "\n":
            self.pos += 1
            self.bodies()
            self.blanks()

    def barring(self, reason: str, read: Callable[[], None]) -> None:
        """Reads something in which no value may stand."""
        before, self.barred = self.barred, self.barred or reason
        read()
        self.barred = before

    # Words --------------------------------------------------------------------------------------------------------

    def word(self, *, array: bool = False, regex: bool = False) -> Word:
        """One word, from here. `array`: a list in parentheses may follow `NAME=`; `regex`: the right side of `=~`."""
        self.spend()
        start = self.pos
        parts: list[Part] = []
        items: tuple[Word, ...] = ()
        while True:
            found = self.take(_PLAIN_REGEX if regex else _PLAIN)
            if found is not None:
                _add(parts, found[0], False)
            escaped = self.take(_ESCAPED)
            if escaped is not None:
                _add(parts, escaped[0][1::2], True)
                continue
            c = self.ahead()
            if c == "\\":
                self.backslash(parts, BARE)
            elif c == "'":
                self.single(parts)
            elif c == '"':
                self.double(parts)
            elif c == "$":
                self.dollar(parts, BARE)
            elif c == "`":
                self.backquoted(parts, BARE)
            elif c == SLOT:
                parts.append(self.slot(BARE))
            elif c and c in "<>" and self.ahead(2)[1:] == "(":
                self.process(parts)
            elif c == "(" and array and len(parts) == 1 and _ARRAY.match(_known(parts[0])):
                items = self.array()
                break
            elif found is None:
                break
        if self.pos == start:
            raise self.fail("a word is missing")
        known = "".join(p.text for p in parts if isinstance(p, Literal) and not p.quoted)
        if regex and known.count("(") != known.count(")"):
            raise self.fail("parentheses that do not match")
        return Word(start, self.pos, _merged(parts), items)

    def array(self) -> tuple[Word, ...]:
        if not self.bash:
            raise self.fail("an array")
        self.pos += 1
        items = []
        self.newlines()
        while self.ahead() != ")":
            items.append(self.word())
            self.newlines()
        self.pos += 1
        return tuple(items) or (Word(self.pos, self.pos, ()),)

    def backslash(self, parts: list[Part], style: str) -> None:
        """A backslash outside single quotes."""
        after = self.ahead(2)[1:]
        if not after:
            raise self.fail("a backslash at the end")
        if after == SLOT:
            self.refused.setdefault(self.pos + 1, "backslash")
        elif after == "\n":
            self.pos += 2
            return
        elif style == BARE or after in '$`\\"':
            if style == HEREDOC and after == '"':
                _add(parts, "\\", True)
                self.pos += 1
                return
            _add(parts, after, True)
            self.pos += 2
            return
        _add(parts, "\\", True)
        self.pos += 1

    def single(self, parts: list[Part]) -> None:
        close = self.text.find("'", self.pos + 1, self.end)
        if close < 0:
            raise self.fail("a quote is not closed")
        at = self.pos + 1
        _add(parts, "", True)
        while at < close:
            slot = self.text.find(SLOT, at, close)
            stop = slot if slot >= 0 else close
            if stop > at:
                _add(parts, self.text[at:stop], True)
            self.pos = stop
            if slot >= 0:
                parts.append(self.slot(SINGLE))
            at = self.pos + (slot < 0)
        self.pos = close + 1

    def double(self, parts: list[Part]) -> None:
        self.pos += 1
        _add(parts, "", True)
        self.quoted(parts, DOUBLE, _IN_DOUBLE)
        if self.ahead() != '"':
            raise self.fail("a quote is not closed")
        self.pos += 1

    def quoted(self, parts: list[Part], style: str, run: re.Pattern[str]) -> None:
        """What stands between double quotes, or in a here-document: up to what `run` stops at and nothing reads."""
        while True:
            found = self.take(run)
            if found is not None:
                _add(parts, found[0], True)
            c = self.ahead()
            if c == "\\":
                self.backslash(parts, style)
            elif c == "$":
                self.dollar(parts, style)
            elif c == "`":
                self.backquoted(parts, style)
            elif c == SLOT:
                parts.append(self.slot(style))
            elif found is None:
                return

    # Expansions ---------------------------------------------------------------------------------------------------

    def dollar(self, parts: list[Part], style: str) -> None:
        self.spend()
        start = self.pos
        after = self.ahead(3)[1:]
        quoted = style != BARE
        if after[:1] == "'" and not quoted:
            self.ansi(parts)
        elif after[:1] == '"' and not quoted:
            if not self.bash:
                raise self.fail("`$` before a quote")
            self.pos += 1
            parts.append(Computed("parameter", "", True))
            self.double(parts)
        elif after == "((":
            inner: list[Part] = []
            self.pos += 3
            self.arithmetic(inner)
            parts.append(Computed("arithmetic", self.text[start : self.pos], quoted, tuple(inner)))
        elif after[:1] == "(":
            self.pos += 2
            self.substitution(parts, "command", start, quoted)
        elif after[:1] == "{":
            self.pos += 2
            self.barring("parameter", lambda: self.braced(parts, start, style))
        elif after[:1] == "[" or after == "\\\n":
            raise self.fail("a `$` that bash may read in more than one way")
        elif after[:1] and _PARAMETER.match(after):
            self.pos += 1
            self.take(_PARAMETER)
            parts.append(Computed("parameter", self.text[start : self.pos], quoted))
        else:
            self.pos += 1
            _add(parts, "$", True)
            if after[:1] == SLOT:
                self.refused.setdefault(self.pos, "dollar")

    def ansi(self, parts: list[Part]) -> None:
        """`$'…'`."""
        if not self.bash:
            raise self.fail("`$` before a quote")
        self.pos += 2
        found = self.take(_ANSI_CONTENT)
        if found is None or self.ahead() != "'":
            raise self.fail("a quote is not closed")
        start, stop = found.span()
        self.pos += 1
        at = start
        _add(parts, "", True)
        while at < stop:
            slot = self.text.find(SLOT, at, stop)
            until = slot if slot >= 0 else stop
            content = self.text[at:until]
            trailing = len(content) - len(content.rstrip("\\"))
            if trailing % 2:
                self.refused.setdefault(until, "backslash")
                content += "?"
            _add(parts, _ANSI_ESCAPE.sub(self.ansi_escape, content), True)
            if slot >= 0:
                after, self.pos = self.pos, slot
                parts.append(self.slot(ANSI))
                self.pos = after
            at = until + 1

    def ansi_escape(self, found: re.Match[str]) -> str:
        named, octal, short, *long = found.groups()
        if named is not None:
            return _ANSI_NAMED.get(named, named)
        digits = octal or short or long[0] or long[1]
        code = int(digits, 8 if octal else 16) if digits else 0
        if not 0 < code < (0x80 if octal or short else 0xD800):
            raise self.fail("an escape in `$'…'`")
        return chr(code)

    def substitution(self, parts: list[Part], kind: str, start: int, quoted: bool) -> None:
        """`$(…)`, `<(…)`: commands up to the `)`. The here-documents that wait outside are not to be mixed in."""
        self.deeper()
        outside, self.pending = self.pending, []
        script, self.script = self.script, empty_script()
        self.commands_until((")",), may_be_empty=True)
        if self.pending or (outside and "\n" in self.text[start : self.pos]):
            raise self.fail("a here-document that begins and ends on two sides of a parenthesis")
        inner, self.script = self.script, script
        self.pending = outside
        self.depth -= 1
        parts.append(Computed(kind, self.text[start : self.pos], quoted, (), inner))

    def process(self, parts: list[Part]) -> None:
        if not self.bash:
            raise self.fail("a process substitution")
        start = self.pos
        self.pos += 2
        self.substitution(parts, "process", start, False)

    def backquoted(self, parts: list[Part], style: str) -> None:
        self.spend()
        start = self.pos
        found = self.take(_BACKQUOTED)
        if found is None:
            raise self.fail("a backquote is not closed")
        if (style != BARE and '\\"' in found[1]) or (self.pending and "\n" in found[1]):
            raise self.fail("backquotes that bash may read in more than one way")
        self.refuse_slots(start, self.pos, "backquotes")
        self.deeper()
        inner = type(self)(_BACKQUOTED_ESCAPE.sub(r"\1", found[1]), self.bash, self.depth)
        inner.left = self.left
        inner.commands_until(("",), may_be_empty=True)
        self.left = inner.left
        self.depth -= 1
        parts.append(Computed("command", found[0], style != BARE, (), inner.script))

    def braced(self, parts: list[Part], start: int, style: str) -> None:
        """`${…}`, from behind the brace."""
        head = self.take(_BRACED)
        if head is None:
            raise self.fail("an expansion that is not understood")
        inner: list[Part] = []
        subscript = self.take(_SUBSCRIPT)
        if subscript is not None and subscript[1]:
            self.evaluates(subscript[1])
        if head[0][0] == "!" and head[1]:
            self.script.evaluated.append("*")
        transform = self.take(_TRANSFORM)
        if transform is not None and transform[1] == "P":
            raise self.fail("an expansion that runs what a variable holds")
        operator = None if transform else self.take(_OPERATOR)
        if operator is not None:
            self.deeper()
            text_from = self.pos
            self.in_braces(inner, style)
            if operator[0] == ":":
                self.evaluates(self.text[text_from : self.pos])
            self.depth -= 1
        if self.ahead() != "}":
            raise self.fail("an expansion that is not understood")
        self.pos += 1
        parts.append(Computed("parameter", self.text[start : self.pos], style != BARE, tuple(inner)))

    def in_braces(self, parts: list[Part], style: str) -> None:
        quoted = style != BARE
        while True:
            found = self.take(_IN_BRACES)
            if found is not None:
                _add(parts, found[0], quoted)
            c = self.ahead()
            if c == "\\":
                if quoted and self.ahead(2)[1:] not in ("$", "`", "\\", "\n"):
                    raise self.fail("a backslash in an expansion")
                self.backslash(parts, style)
            elif c == "'" and not quoted:
                self.single(parts)
            elif c == '"' and style != HEREDOC:
                self.double(parts)
            elif c == "$":
                self.dollar(parts, style)
            elif c == "`":
                self.backquoted(parts, style)
            elif c == SLOT:
                parts.append(self.slot(style))
            elif c and c in "<>" and self.ahead(2)[1:] != "(":
                _add(parts, c, quoted)
                self.pos += 1
            elif found is None:
                return

    def arithmetic(self, parts: list[Part], *, header: bool = False) -> None:
        """Arithmetic, from behind `((` to behind `))`. `header`: of a `for`, where `;` may stand."""
        self.deeper()
        self.barring("arithmetic", lambda: self.in_arithmetic(parts, header))
        self.depth -= 1

    def in_arithmetic(self, parts: list[Part], header: bool) -> None:
        level = 0
        while True:
            found = self.take(_IN_ARITHMETIC)
            if found is not None:
                self.evaluates(found[0])
            c = self.ahead()
            if c == "(" or (c == ")" and level):
                level += 1 if c == "(" else -1
                self.pos += 1
            elif c == ")" and self.ahead(2) == "))":
                self.pos += 2
                return
            elif c == "$":
                at = self.pos
                self.dollar(parts, DOUBLE)
                self.evaluates(self.text[at : self.pos])
            elif c == "`":
                self.backquoted(parts, DOUBLE)
                self.script.evaluated.append("*")
            elif c == ";" and header:
                self.pos += 1
            elif c == SLOT:
                self.slot(BARE)
            elif found is None:
                raise self.fail("arithmetic that is not understood")

    def evaluates(self, text: str) -> None:
        """Arithmetic is worked out in `text`: bash runs what the variables named in it hold as arithmetic again."""
        self.script.evaluated.extend(_NAME.findall(text))
        if "$" in text or SLOT in text:
            self.script.evaluated.append("*")

    # Here-documents ---------------------------------------------------------------------------------------------------

    def bodies(self) -> None:
        """After a line's end: the bodies of the here-documents that the line began."""
        waiting, self.pending = self.pending, []
        for delimiter, verbatim, redirects in waiting:
            at = next(i for i, r in enumerate(redirects) if r.target is _TO_COME)
            tabs = redirects[at].operator == "<<-"
            start, stop = self.pos, self.body_end(delimiter, verbatim, tabs)
            after = self.pos
            if verbatim:
                self.refuse_slots(start, stop, "verbatim")
                body = Word(start, stop, (Literal(self.text[start:stop], True),))
            else:
                body = self.body(start, stop)
            self.pos = after
            redirects[at] = Redirect(redirects[at].descriptor, redirects[at].operator, body, verbatim)

    def body_end(self, delimiter: str, verbatim: bool, tabs: bool) -> int:
        """Where a body ends; goes on behind the line of its delimiter."""
        while self.pos < self.end:
            start = self.pos
            joined = []
            while True:
                newline = self.text.find("\n", self.pos, self.end)
                stop = newline if newline >= 0 else self.end
                line = self.text[self.pos : stop]
                self.pos = min(stop + 1, self.end)
                if verbatim or newline < 0 or (len(line) - len(line.rstrip("\\"))) % 2 == 0:
                    break
                joined.append(line[:-1])
            joined.append(line)
            whole = "".join(joined)
            if (whole.lstrip("\t") if tabs else whole) == delimiter:
                return start
        raise self.fail(f"the here-document up to `{delimiter}` is not closed")

    def body(self, start: int, stop: int) -> Word:
        """The text from `start` to `stop` as an unquoted here-document's."""
        end, self.pos, self.end = self.end, start, stop
        parts: list[Part] = []
        self.quoted(parts, HEREDOC, _IN_BODY)
        if self.pos != stop:
            raise self.fail("a here-document that is not understood")
        self.end = end
        return Word(start, stop, _merged(parts))

    def loose(self, role: str, *words: Word) -> None:
        self.script.loose.append(Loose(role, words))


_TO_COME = Word(0, 0, ())


def to_come() -> Word:
    """Stands for a here-document's body until it is met."""
    return _TO_COME


def _known(part: Part) -> str:
    return part.text if isinstance(part, Literal) and not part.quoted else ""


def _add(parts: list[Part], text: str, quoted: bool) -> None:
    parts.append(Literal(text, quoted))


def _merged(parts: list[Part]) -> tuple[Part, ...]:
    """The same parts, known text side by side with the same quoting made one."""
    merged: list[Part] = []
    run: list[str] = []
    quoted = False
    for part in parts:
        if isinstance(part, Literal):
            if run and part.quoted != quoted:
                merged.append(Literal("".join(run), quoted))
                run = []
            quoted = part.quoted
            run.append(part.text)
        else:
            if run:
                merged.append(Literal("".join(run), quoted))
                run = []
            merged.append(part)
    if run:
        merged.append(Literal("".join(run), quoted))
    return tuple(merged)
