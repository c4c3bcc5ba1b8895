"""The grammar of the shell, as far as Halo stands behind it: text in, simple commands out.

Owns lists, pipelines, compound commands, functions, redirections. Like the words below it, it refuses what it is not
sure of. It runs nothing. Read `shell_wrappers.py` for what the words of a command make it run, `shell.py` for what is
built on all of it.
"""

from __future__ import annotations

import re

from .shell_lexer import WordReader, to_come
from .shell_tree import Group, Literal, Parsed, Part, Redirect, Simple, Word, bare_text, literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_WORD_END = r"(?=[ \t\n;&|()<>]|\Z)"
_RESERVED_WORDS = [
    "if",
    "then",
    "elif",
    "else",
    "fi",
    "while",
    "until",
    "do",
    "done",
    "for",
    "in",
    "case",
    "esac",
    "select",
    "function",
    "coproc",
    "time",
    "{",
    "}",
    "!",
    "[[",
    "]]",
]
_RESERVED = re.compile(f"(?:{'|'.join(re.escape(w) for w in _RESERVED_WORDS)}){_WORD_END}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*" + _WORD_END)
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.:+-]*\Z")
_PARENS = re.compile(r"\([ \t]*\)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ELEMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[")
_ELEMENT_SET = re.compile(r"\]\+?=")
_REDIRECT = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|>>|>&|>\||<|>)|()(&>>|&>)")
_DELIMITER = re.compile(r"(?:[A-Za-z0-9_.+\-/%@!,:]|\\[A-Za-z0-9_]|'[^'\"\\\n\0]*'|\"[^'\"\\$`\n\0]*\")+" + _WORD_END)
_DELIMITER_QUOTES = re.compile(r"['\"\\]")
DECLARING = frozenset(("declare", "typeset", "local", "export", "readonly"))
_EVALUATING_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"))
_MOST_BODIES = 16
"""As many here-documents may wait for their bodies in bash."""


def parse(text: str, *, bash: bool = True, depth: int = 0) -> Parsed:
    """The commands of a text. `bash=False` reads it for any POSIX shell and refuses what is bash's own.

    Raises `NotUnderstood`. Time and memory grow with the text, not faster.
    """
    reader = _Reader(text, bash, depth)
    reader.commands_until(("",), may_be_empty=True)
    return Parsed(text, reader.script, reader.styles, reader.refused)


def parse_expansions(text: str, depth: int = 0) -> tuple[Part, ...]:
    """The parts of a text read as between double quotes, a `"` counting for nothing. Raises `NotUnderstood`."""
    return _Reader(text, True, depth).body(0, len(text)).parts


class _Reader(WordReader):
    def commands_until(self, ends: tuple[str, ...], *, may_be_empty: bool = False) -> str:
        """Reads commands up to one of `ends`, which is taken and given back; `""` is the end of the text."""
        self.newlines()
        found = self.at_end(ends)
        if found is not None:
            if not may_be_empty:
                raise self.fail("a command is missing")
            return found
        while True:
            self.and_or()
            self.blanks()
            two = self.ahead(2)
            separated = two[:1] == "&" or (two[:1] == ";" and two not in (";;", ";&"))
            if separated:
                self.pos += 1
            separated = separated or two[:1] == "\n"
            self.newlines()
            found = self.at_end(ends)
            if found is not None:
                return found
            if not separated:
                raise self.fail("something stands where a command should end")

    def at_end(self, ends: tuple[str, ...]) -> str | None:
        if self.pos >= self.end:
            if "" not in ends or self.pending:
                raise self.fail("something is not closed")
            return ""
        if self.ahead() == ")" and ")" in ends:
            self.pos += 1
            return ")"
        for mark in (";;&", ";;", ";&"):
            if mark in ends and self.ahead(len(mark)) == mark:
                self.pos += len(mark)
                return mark
        reserved = self.reserved()
        if reserved and reserved in ends:
            self.pos += len(reserved)
            return reserved
        return None

    def reserved(self) -> str:
        """The reserved word that stands here, where a command may begin, or nothing."""
        found = _RESERVED.match(self.text, self.pos, self.end)
        return found[0] if found else ""

    def and_or(self) -> None:
        self.pipeline()
        self.blanks()
        while self.ahead(2) in ("&&", "||"):
            self.pos += 2
            self.newlines()
            self.pipeline()
            self.blanks()

    def pipeline(self) -> None:
        self.blanks()
        while (reserved := self.reserved()) == "!" or (reserved == "time" and self.bash):
            self.pos += len(reserved)
            self.blanks()
            if reserved == "time" and self.ahead() == "-":
                if self.ahead(3) not in ("-p ", "-p\t"):
                    raise self.fail("an option of `time`")
                self.pos += 2
                self.blanks()
        stages = [len(self.script.commands)]
        self.command()
        self.blanks()
        while self.ahead() == "|" and self.ahead(2) != "||":
            if self.ahead(2) == "|&":
                if not self.bash:
                    raise self.fail("`|&`")
                self.pos += 1
            self.pos += 1
            self.newlines()
            stages.append(len(self.script.commands))
            self.command()
            self.blanks()
        if len(stages) > 1:
            self.script.pipes.append((*stages, len(self.script.commands)))

    def command(self) -> None:
        self.spend()
        self.deeper()
        self.blanks()
        reserved = self.reserved()
        if reserved or self.ahead() == "(":
            first = len(self.script.commands)
            self.compound(reserved)
            redirects: list[Redirect] = []
            self.blanks()
            while self.at_redirect():
                self.redirect(redirects)
                self.blanks()
            if redirects:
                self.script.groups.append(Group(first, len(self.script.commands), redirects))
        else:
            self.simple()
        self.depth -= 1

    # Compound commands --------------------------------------------------------------------------------------------

    def compound(self, reserved: str) -> None:
        read: Callable[[], object] | None = {
            "if": self.if_,
            "while": self.loop,
            "until": self.loop,
            "for": self.for_,
            "case": self.case,
            "{": lambda: self.commands_until(("}",)),
            "function": self.function,
            "[[": self.test,
        }.get(reserved)
        if self.ahead(2) == "((":
            if not self.bash:
                raise self.fail("arithmetic")
            self.evaluated_here()
        elif self.ahead() == "(":
            self.pos += 1
            self.commands_until((")",))
        elif read is None or (reserved in ("function", "[[") and not self.bash):
            raise self.fail(f"`{reserved}`")
        else:
            self.pos += len(reserved)
            read()

    def evaluated_here(self, *, header: bool = False) -> None:
        """`((…))`, with the commands that stand in it."""
        start = self.pos
        parts: list[Part] = []
        self.pos += 2
        self.arithmetic(parts, header=header)
        self.loose("arithmetic", Word(start, self.pos, tuple(parts)))

    def if_(self) -> None:
        self.commands_until(("then",))
        while True:
            end = self.commands_until(("elif", "else", "fi"))
            if end == "fi":
                return
            if end == "else":
                self.commands_until(("fi",))
                return
            self.commands_until(("then",))

    def loop(self) -> None:
        self.commands_until(("do",))
        self.commands_until(("done",))

    def for_(self) -> None:
        self.blanks()
        if self.ahead(2) == "((" and self.bash:
            self.evaluated_here(header=True)
            self.blanks()
            if self.ahead() == ";":
                self.pos += 1
        else:
            start = self.pos
            if self.take(_NAME) is None:
                raise self.fail("a name is missing after `for`")
            words = [Word(start, self.pos, (Literal(self.text[start : self.pos], False),))]
            self.newlines()
            if self.reserved() == "in":
                self.pos += 2
                self.blanks()
                while self.ahead() not in (";", "\n"):
                    words.append(self.word())
                    self.blanks()
            if self.ahead() == ";":
                self.pos += 1
            self.loose("for", *words)
        self.newlines()
        if self.reserved() != "do":
            raise self.fail("`do` is missing")
        self.pos += 2
        self.commands_until(("done",))

    def case(self) -> None:
        self.blanks()
        self.loose("case", self.word())
        self.newlines()
        if self.reserved() != "in":
            raise self.fail("`in` is missing")
        self.pos += 2
        self.newlines()
        while self.reserved() != "esac":
            if self.ahead() == "(":
                self.pos += 1
                self.blanks()
            self.loose("pattern", self.word())
            self.blanks()
            while self.ahead() == "|":
                self.pos += 1
                self.blanks()
                self.loose("pattern", self.word())
                self.blanks()
            if self.ahead() != ")":
                raise self.fail("a `)` is missing after a pattern")
            self.pos += 1
            end = self.commands_until((";;&", ";;", ";&", "esac"), may_be_empty=True)
            if end == "esac":
                return
            if end != ";;" and not self.bash:
                raise self.fail(f"`{end}`")
            self.newlines()
        self.pos += 4

    def function(self) -> None:
        """`function NAME`, from behind the keyword."""
        self.blanks()
        name = literal(self.word())
        self.blanks()
        self.take(_PARENS)
        self.define(name)

    def define(self, name: str | None) -> None:
        if name is None or not _FUNCTION.match(name):
            raise self.fail("the name of a function")
        self.script.functions.append(name)
        self.newlines()
        if not self.reserved() and self.ahead() != "(":
            raise self.fail("the body of a function")
        self.command()

    def test(self) -> None:
        """`[[ … ]]`, from behind the opening."""
        words: list[Word] = []
        while True:
            self.spend()
            self.newlines()
            two = self.ahead(2)
            regex = bool(words) and bare_text(words[-1]) == "=~"
            length = 2 if two in ("&&", "||") else int(two[:1] in ("(", ")", "<", ">"))
            if two in ("<(", ">("):
                raise self.fail("a parenthesis in a test")
            if length and not (regex and two[:1] == "("):
                operator = Literal(self.ahead(length), False)
                words.append(Word(self.pos, self.pos + length, (operator,)))
                self.pos += length
                continue
            word = self.word(regex=regex)
            if word.parts == (Literal("]]", False),):
                break
            if literal(word) in _EVALUATING_TESTS:
                self.script.evaluated.append("*")
            words.append(word)
        if not words:
            raise self.fail("a test is missing")
        self.loose("test", *words)

    # Simple commands ----------------------------------------------------------------------------------------------

    def simple(self) -> None:
        assignments: list[Word] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            if self.at_redirect():
                self.redirect(redirects)
                continue
            c = self.ahead()
            if c == "(" and len(words) == 1 and not assignments and not redirects and self.take(_PARENS):
                if any(not isinstance(p, Literal) or p.quoted for p in words[0].parts):
                    raise self.fail("the name of a function")
                self.define(literal(words[0]))
                return
            if not c or (c in "\n;&|)"):
                break
            word = self.word(array=not words or literal(words[0]) in DECLARING)
            if not words and self.assigns(word):
                assignments.append(word)
                continue
            if not words and self.spells_reserved(word):
                raise self.fail(f"`{bare_text(word)}`")
            words.append(word)
        if not words and not assignments and not redirects:
            raise self.fail("a command is missing")
        self.script.commands.append(Simple(tuple(assignments), tuple(words), redirects))

    def spells_reserved(self, word: Word) -> bool:
        """Whether a command's name is a reserved word that was not met as one: written in a way that bash joins."""
        text = bare_text(word)
        return word.parts == (Literal(text, False),) and text in _RESERVED_WORDS and (self.bash or text != "time")

    def assigns(self, word: Word) -> bool:
        """Whether a word before the command's name is an assignment. The index of an array's element is arithmetic,
        and bash reads it to its end whatever stands in it."""
        first = word.parts[0]
        text = first.text if isinstance(first, Literal) and not first.quoted else ""
        if _ASSIGNMENT.match(text):
            return True
        if _ELEMENT.match(text):
            if not any(isinstance(p, Literal) and not p.quoted and _ELEMENT_SET.search(p.text) for p in word.parts):
                raise self.fail("the index of an array")
            index = word.start + self.text[word.start : word.end].index("]")
            self.refuse_slots(word.start, index, "index")
            self.evaluates(self.text[word.start : index])
            return True
        return False

    # Redirections -------------------------------------------------------------------------------------------------

    def at_redirect(self) -> bool:
        found = _REDIRECT.match(self.text, self.pos, self.end)
        if found is None:
            return False
        return not (found[0] in ("<", ">") and self.text[found.end() : min(found.end() + 1, self.end)] == "(")

    def redirect(self, redirects: list[Redirect]) -> None:
        found = self.take(_REDIRECT)
        assert found is not None
        descriptor, operator = found[1] or found[3] or "", found[2] or found[4]
        if not self.bash and operator in ("&>", "&>>", "<<<"):
            raise self.fail(f"`{operator}`")
        self.blanks()
        if operator not in ("<<", "<<-"):
            redirects.append(Redirect(descriptor, operator, self.word()))
            return
        delimiter = self.take(_DELIMITER)
        if delimiter is None or len(self.pending) == _MOST_BODIES:
            raise self.fail("the delimiter of a here-document")
        plain = _DELIMITER_QUOTES.sub("", delimiter[0])
        redirects.append(Redirect(descriptor, operator, to_come(), plain != delimiter[0]))
        self.pending.append((plain, plain != delimiter[0], redirects))
