"""Commands in which no value has a place at all, wherever it stands (language.md §4).

Owns the blunt part of the judgement: what evaluates or runs, in a second step, what a variable, a file or a pipe holds.
It refuses too much rather than follow a value there. Read `shell_places.py` for the places themselves.
"""

from __future__ import annotations

import re

from .shell_grammar import DECLARING, parse
from .shell_tree import SLOT, Computed, NotUnderstood, Part, Redirect, Script, Word, bare_text, literal, plain, prefix
from .shell_wrappers import SHELLS, command_name, read_command

TAKE_NAMES = frozenset(("read", "unset", "getopts", "mapfile", "readarray", "wait", "coproc"))
"""Builtins that take the name of a variable."""

PROGRAM_FIRST = frozenset(("awk", "gawk", "mawk", "nawk", "sed", "gsed"))
"""Commands whose first operand is their program, unless an option gives it or a file that holds it."""

_NAMING = TAKE_NAMES | DECLARING | {"let", "test", "[", "printf"}
_INDEX = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\[(?!(?:[0-9]+|[@*])\])")
_ANY_INDEX = re.compile(r"\[(?!(?:[0-9]+|[@*])\])")
_NAMED_DESCRIPTOR = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\[")
_TRACED = re.compile(r"(?:\A|[^A-Za-z0-9_])(?:PS[0-4]|PROMPT_COMMAND|BASH_ENV|BASH_XTRACEFD)(?:\Z|[^A-Za-z0-9_])")
_INTERPRETERS = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|php|lua|luajit|Rscript|R|osascript|deno|bun|tclsh|expect|awk|gawk|mawk|nawk|"
    r"sed|gsed|make|gmake|bc|dc|psql|sqlite3|mysql|gnuplot|octave|ghci|irb|ed|ex|vi|vim|zsh|fish|csh|tcsh|pwsh|nu|at|"
    r"batch|crontab)[0-9.]*\Z"
)
_STDIN_CODE = re.compile(r"(?:bc|dc|psql|sqlite3|mysql|gnuplot|octave|ghci|irb|ed|ex|vi|vim|R|at|batch|crontab)\Z")


class _Met:
    """What has been met in a command, in whatever it nests."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.reason = ""
        self.shells = 0
        self.reading = False
        self.fed = False

    def has_slot(self, *words: Word) -> bool:
        return any(self.source.find(SLOT, w.start, w.end) >= 0 for w in words)


def hazard(scripts: list[Script], source: str) -> str:
    """The reason why no value has a place in a command with these scripts, or nothing."""
    met = _Met(source)
    joined = any(s.pipes or s.groups for s in scripts)
    for script in scripts:
        _script(met, script, joined, 0)
        for group in script.groups:
            _feeding(met, group.redirects)
    if met.reason:
        return met.reason
    if (met.reading or met.shells) and met.fed:
        return "stdin"
    return ""  # what runs from a file that the command wrote is the author's own doing: the seed page's tests do so


def _script(met: _Met, script: Script, joined: bool, depth: int) -> None:
    for loose in script.loose:
        _words(met, loose.words)
        if loose.role == "for":
            _traced(met, loose.words[0])
        if loose.role == "test" and any(
            _INDEX.search(plain(w))
            for at, w in enumerate(loose.words)
            if at and (literal(loose.words[at - 1]) or "").startswith(("-v", "-R"))
        ):
            met.reason = met.reason or "indexes"
    for group in script.groups:
        _words(met, tuple(r.target for r in group.redirects))
    for command in script.commands:
        targets = tuple(r.target for r in command.redirects)
        _words(met, (*command.assignments, *command.words, *targets))
        for word in command.assignments:
            _traced(met, word)
            if _INDEX.match(plain(word).partition("=")[0]):
                met.reason = met.reason or "indexes"
        runs = _command(met, command.words, depth) if command.words else False
        if depth:
            continue
        _feeding(met, command.redirects)
        if met.has_slot(*command.words, *targets) and not runs:
            name = command_name(command.words[0]) if command.words else ""
            met.fed = met.fed or joined or name == "exec"


def _feeding(met: _Met, redirects: list[Redirect]) -> None:
    if any("<" in r.operator and met.has_slot(r.target) for r in redirects):
        met.fed = True


def _words(met: _Met, words: tuple[Word, ...]) -> None:
    for word in words:
        if _NAMED_DESCRIPTOR.match(bare_text(word)) or any(plain(i).startswith("[") for i in word.items):
            met.reason = met.reason or "indexes"
        _words(met, word.items)
        parts: list[Part] = list(word.parts)
        while parts:
            part = parts.pop()
            if isinstance(part, Computed):
                parts += part.inner
                if part.kind == "process" and part.source.startswith(">"):
                    met.reason = met.reason or "stdin"


def _traced(met: _Met, word: Word) -> None:
    if _TRACED.search(plain(word)):
        met.reason = met.reason or "traced"


def _command(met: _Met, words: tuple[Word, ...], depth: int) -> bool:
    """Looks at a command of these words, and says whether it is a shell or an interpreter."""
    name = command_name(words[0])
    reading = read_command(words)
    if depth > 8:
        met.reading = True
        return True
    rest = words[1:]
    if name in _NAMING:
        for word in rest:
            _traced(met, word)
        named = rest if name != "printf" or (rest and prefix(rest[0]).startswith("-v")) else ()
        pattern = _ANY_INDEX if name not in ("test", "[", "printf") else _INDEX
        if any(pattern.search(plain(w)) for w in named):
            met.reason = met.reason or "indexes"
    runs = name is None or name in SHELLS or name in ("source", ".") or bool(_INTERPRETERS.match(name))
    if name is None or reading.opaque or reading.reads_stdin or _STDIN_CODE.match(name):
        met.reading = True
    if name in SHELLS or name in ("source", "."):
        met.shells += 1
    elif name is not None and _INTERPRETERS.match(name):
        _interpreter(met, name, rest)
    for inner in reading.commands:
        runs = _command(met, inner, depth + 1) or runs
    for code in reading.code:
        texts = [literal(w) for w in code.words]
        if None in texts:
            met.shells += 1
            continue
        try:
            script = parse(" ".join(t for t in texts if t is not None), bash=code.bash, depth=depth + 1).script
        except NotUnderstood:
            met.reading = True
            continue
        inner_met = _Met("")
        _script(inner_met, script, False, depth + 1)
        met.reason = met.reason or inner_met.reason
        met.reading = met.reading or inner_met.reading
        met.shells += inner_met.shells
    return runs


def _interpreter(met: _Met, name: str, rest: tuple[Word, ...]) -> None:
    """An interpreter reads its program from where its words say: a file, or what is piped to it."""
    texts = [prefix(w) for w in rest]
    if name in PROGRAM_FIRST:
        files = [t for t in texts if re.match(r"-[A-Za-z]*f|--f", t)]
        if files and any(t in ("-", "") or "/dev/" in t or "/proc/" in t or t.endswith(("f-", "=-")) for t in texts):
            met.reading = True
        return
    inline = any(re.match(r"-[A-Za-z]*[cemprEBRS]|--(?:eval|print|run)", t) for t in texts)
    named = any(t and not t.startswith("-") for t in texts)
    if not (inline or named) or any(t in ("-", "-i") or t.startswith(("/dev/", "/proc/")) for t in texts):
        met.reading = True
    for word in rest:
        if any(isinstance(p, Computed) and p.kind == "process" for p in word.parts) and "<" in plain(word):
            met.reason = met.reason or "stdin"
