"""Every simple command that a line would run, as text: what DenyArgs is tried on (tools.md §3).

Owns the taking apart of a line, through all that wraps commands in it. Where it cannot tell what runs it says so, and
never leaves something out. Pure; bounded in time and memory. Read `shell_wrappers.py` for what wraps commands.
"""

from __future__ import annotations

from .shell_grammar import parse, parse_expansions
from .shell_tree import Computed, Literal, NotUnderstood, Part, Redirect, Script, Simple, Word, literal, plain
from .shell_wrappers import NOTHING, read_command

MAX_LINE = 4 * 1024 * 1024
"""Characters of a line that is taken apart; a longer one is not."""

MAX_NESTED_CODE = 12
"""Wrappers, and code in code, that are followed."""

MAX_COMMANDS = 20_000

_RUN_BY_BASH = ("BASH_ENV", "ENV", "PROMPT_COMMAND", "BASH_FUNC_")


def simple_commands(line: str) -> tuple[str, ...] | None:
    """The simple commands of a line, each as its words with quotes taken out and one blank between them.

    A command in a folder (`/bin/rm x`) is given by its bare name too, one with assignments or redirections with and
    without them, and one that `xargs` gives more words with `{}` at its end too. Commands inside others (`$(…)`,
    `eval`, `sh -c`, `sudo`, `find -exec`, functions, here-documents that a shell reads, …) are included, and so is what
    stands quoted but would run if the text were evaluated. What is computed stands as it is written.

    None where the line cannot be taken apart: it counts as matching every pattern (tools.md §3).
    """
    if len(line) > MAX_LINE or "\0" in line:
        return None
    found = _Found(len(line))
    try:
        found.code(line, True, 0)
    except NotUnderstood:
        return None
    return tuple(found.texts)


class _Found:
    """What has been found so far, in order; a line must not make more of it than a small multiple of itself."""

    def __init__(self, length: int) -> None:
        self.texts: dict[str, None] = {}
        self.left = 16 * length + 65536

    def add(self, text: str) -> None:
        self.left -= len(text) + 16
        if self.left < 0 or len(self.texts) >= MAX_COMMANDS:
            raise NotUnderstood(0, "too many commands")
        self.texts.setdefault(text)

    def code(self, text: str, bash: bool, depth: int) -> None:
        if depth > MAX_NESTED_CODE:
            raise NotUnderstood(0, "code nests too deep")
        self.left -= len(text)
        if self.left < 0:
            raise NotUnderstood(0, "too much code")
        self.script(parse(text, bash=bash).script, depth)

    def script(self, script: Script, depth: int) -> None:
        for command in script.commands:
            self.simple(command, depth)
        for loose in script.loose:
            self.words(loose.words, depth)
        for group in script.groups:
            self.redirects(group.redirects, depth)

    def simple(self, command: Simple, depth: int) -> None:
        self.words(command.assignments, depth)
        self.words(command.words, depth)
        self.redirects(command.redirects, depth)
        if any(plain(w).startswith(_RUN_BY_BASH) for w in command.assignments):
            raise NotUnderstood(0, "a variable that bash runs")
        if command.words:
            self.run(command.words, command.redirects, depth, False)
        shown = [_shown(r) for r in command.redirects if r.operator not in ("<<", "<<-")]
        if command.assignments or shown:
            self.add(" ".join([*(plain(w) for w in (*command.assignments, *command.words)), *shown]))

    def run(
        self, words: tuple[Word, ...], redirects: list[Redirect], depth: int, fed: bool = False, replaced: str = ""
    ) -> None:
        """A command of these words, and what it runs. `fed`: it gets more words from elsewhere (`replaced`: in place
        of that text)."""
        if depth > MAX_NESTED_CODE:
            raise NotUnderstood(0, "commands nest too deep")
        reading = read_command(words)
        if fed and not replaced:
            unknown = reading.open
        else:
            unknown = fed and any(replaced in plain(w) for w in (words if reading != NOTHING else words[:1]))
        if reading.opaque or unknown:
            raise NotUnderstood(words[0].start, "what it runs cannot be told")
        text = " ".join(plain(w) for w in words)
        name = plain(words[0])
        for shown in dict.fromkeys((text, text[len(name) - len(name.rsplit("/", 1)[-1]) :])):
            self.add(shown)
            if fed and not replaced:
                self.add(f"{shown} {{}}")
        for inner in reading.commands:
            self.run(inner, redirects, depth + 1, fed or reading.fed, replaced or reading.replaced)
        for code in reading.code:
            texts = [literal(w) for w in code.words]
            if None in texts:
                raise NotUnderstood(0, "code that is computed")
            self.code(" ".join(t for t in texts if t is not None), code.bash, depth + 1)
        if reading.reads_stdin:
            self.stdin(redirects, reading.bash, depth)

    def stdin(self, redirects: list[Redirect], bash: bool, depth: int) -> None:
        """A shell that runs what it reads: the text of a here-document or a here-string, or a file."""
        given = [r for r in redirects if r.operator[0] == "<" and r.descriptor in ("", "0")]
        if not given or given[-1].operator in ("<&", "<>"):
            raise NotUnderstood(0, "what the shell reads cannot be told")
        text = literal(given[-1].target)
        if text is None:
            raise NotUnderstood(0, "what the shell reads is computed")
        if given[-1].operator != "<":
            self.code(text, bash, depth + 1)

    def redirects(self, redirects: list[Redirect], depth: int) -> None:
        for redirect in redirects:
            if redirect.operator in ("<<", "<<-"):
                self.parts(redirect.target.parts, depth)
            else:
                self.words((redirect.target,), depth)

    def words(self, words: tuple[Word, ...], depth: int) -> None:
        for word in words:
            self.parts(word.parts, depth)
            self.words(word.items, depth)
            for part in word.parts:
                if isinstance(part, Literal) and ("$(" in part.text or "`" in part.text):
                    self.parts(parse_expansions(part.text), depth + 1)

    def parts(self, parts: tuple[Part, ...], depth: int) -> None:
        if depth > MAX_NESTED_CODE:
            raise NotUnderstood(0, "code nests too deep")
        for part in parts:
            if isinstance(part, Computed):
                self.parts(part.inner, depth)
                if part.script is not None:
                    self.script(part.script, depth)


def _shown(redirect: Redirect) -> str:
    blank = "" if redirect.operator.endswith("&") else " "
    return f"{redirect.descriptor}{redirect.operator}{blank}{plain(redirect.target)}"
