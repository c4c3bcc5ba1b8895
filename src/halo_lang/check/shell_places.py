"""Where in a shell command a value can be inserted so that it stays inert data (language.md §4, tools.md §2).

Owns the judgement: a place is taken only where it is known to be one. Everything else is refused: what bash evaluates
(arithmetic, indexes, the names that some builtins take), what another shell or interpreter would read as a program,
what is no word at all, and any command that the grammar is not sure of. Read `shell.py` for who asks.
"""

from __future__ import annotations

import re

from .shell_grammar import DECLARING, parse
from .shell_hazards import PROGRAM_FIRST, TAKE_NAMES, hazard
from .shell_lexer import ANSI, BARE, SINGLE
from .shell_tree import (
    SLOT,
    Computed,
    Literal,
    Loose,
    NotUnderstood,
    Part,
    Redirect,
    Script,
    Simple,
    Slot,
    Word,
    is_one,
    literal,
    plain,
    prefix,
)
from .shell_wrappers import NOTHING, command_name, read_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_AS_ARGUMENT = "give it to the command as an argument of its own, or through a here-document"
_REASONS: dict[str, tuple[str, str | None]] = {
    "unread": ("stands where bash reads no value", _AS_ARGUMENT),
    "comment": ("stands in a comment", "put it before the `#`, or quote the `#`"),
    "backslash": ("stands right after a backslash", "leave the backslash out; the value needs none"),
    "dollar": ("stands right after a `$`", "write `\\\\$` for a dollar sign"),
    "arithmetic": ("stands in arithmetic, which bash evaluates", "compute outside the shell, or check the value first"),
    "backquotes": ("stands in backquotes, where quotes mean something else", "write `$(…)`"),
    "parameter": ("stands in `${…}`, whose quotes are read in several ways", "insert it outside the braces"),
    "index": ("stands in the index of an array, which bash evaluates", _AS_ARGUMENT),
    "indexes": (
        "stands in a command with the index of an array, which bash evaluates",
        "make two calls of it, or write the index as a number",
    ),
    "traced": (
        "stands in a command that sets what bash itself runs",
        "leave the variable out, or make two calls",
    ),
    "verbatim": (
        "stands in a here-document whose delimiter is quoted, where nothing is inserted",
        "take the quotes off the delimiter, and write `\\\\$` for a dollar sign",
    ),
    "name": ("would decide which command runs", "write the command's name down"),
    "computed": ("is given to a command whose name is computed", "write the command's name down"),
    "opaque": ("is given to a command that may run it", "write the command out, with the value as an argument of it"),
    "code": (
        "stands in words that are run as shell code",
        "give it after the code, as in `sh -c 'echo \"$1\"' sh {{value}}`, or leave the second shell out",
    ),
    "stdin": ("may reach a shell that runs what it reads", "let a command read it that takes it as data"),
    "program": (
        "stands in a program that another interpreter runs",
        "give it to the program as an argument, or through stdin",
    ),
    "builtin": ("is given to a builtin that may evaluate it", _AS_ARGUMENT),
    "declare": ("is given to a builtin that may evaluate it", "assign it first: `NAME={{value}}; export NAME`"),
    "variable": ("would become a variable that changes how commands run", "use a variable of another name"),
    "binding": (
        "would be kept in a variable, in a command that also evaluates variables",
        "insert it where it is used, or make two calls of it",
    ),
    "braces": ("stands in a word with `{`, which bash may expand", "quote the word"),
    "pattern": ("stands in a pattern's brackets", "quote the bracket"),
    "descriptor": ("would be the number of an open file", "write the number down"),
    "test": (
        "stands in a test that may evaluate it",
        'compare text: `[[ {{value}} == "…" ]]`, `[ -n {{value}} ]`',
    ),
    "format": ("would be the format, or an option, of `printf`", "write `printf '%s' {{value}}`"),
}
Refusal = tuple[str, str | None]


def judge(source: str) -> tuple[list[str], dict[int, Refusal]]:
    """For a command with a NUL in the place of each value: the quotes around each, in order; and by number, from 0, why
    a value has no place, and what to write instead. Refusals are empty where each has one."""
    numbers = {m.start(): i for i, m in enumerate(re.finditer(SLOT, source))}
    try:
        parsed = parse(source)
    except NotUnderstood as trouble:
        near = source[trouble.at : trouble.at + 30].partition("\n")[0].partition(SLOT)[0]
        where = f"from `{near}` on" if near.strip() else "as a whole"
        why = f"stands in a command that cannot be surely read {where}: {trouble.why}"
        return [], {0: (why, "write the command more plainly, or put it in a script and give it the value")}
    found = _Places(source, parsed.refused)
    found.script(parsed.script)
    for at in numbers:
        if at not in parsed.styles:
            found.refused.setdefault(at, "unread")
    return (
        [parsed.styles.get(at, BARE) for at in numbers],
        {numbers[at]: _REASONS[reason] for at, reason in found.refused.items()},
    )


def written(style: str, name: str) -> str:
    """A variable in the place of a value between quotes of a style."""
    if style == BARE:
        return f'"${name}"'
    if style == SINGLE:
        return f"'\"${name}\"'"
    if style == ANSI:
        return f"'\"${name}\"$'"
    return f"${{{name}}}"


_BUILTINS = frozenset(
    re.findall(
        r"\S+",
        ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown "
        "echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile "
        "popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true "
        "type typeset ulimit umask unalias unset wait",
    )
)
_TAKE_DATA = frozenset(
    re.findall(r"\S+", ": cd echo exit false kill pushd return true type eval trap source . command")
)
_TAKE_DATA |= {"builtin", "exec"}
_READ_VARIABLES = frozenset(("read", "mapfile", "readarray"))
_SCRIPT = re.compile(r".*\.(?:py|pl|rb|js|mjs|cjs|ts|php|lua|R|tcl)\Z")
_MAKES = frozenset(("make", "gmake"))
_PROGRAM_OPTIONS = {
    "python": "c", "perl": "eE", "ruby": "e", "node": "ep", "nodejs": "ep", "php": "rBRE", "lua": "e", "Rscript": "e",
    "osascript": "e", "deno": "", "bun": "ep", "tclsh": "",
}  # fmt: skip
_VERSIONED = re.compile(r"[0-9.]+\Z")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[[^\]]*\])?\+?=")
_RUN_BY_BASH = re.compile(
    r"(?:BASH|LD_|DYLD_|HALO_V|PS[0-4]\Z|(?:RANDOM|SRANDOM|OPTIND|OPTERR|SECONDS|LINENO|HISTCMD|PROMPT_COMMAND|ENV|IFS|PATH|"
    r"SHELLOPTS|GLOBIGNORE|EXECIGNORE|FUNCNEST|DIRSTACK|GROUPS|FUNCNAME|POSIXLY_CORRECT|TMOUT|UID|EUID|PPID)\Z)"
)
_TEXT_TESTS = frozenset(("=", "==", "!=", "=~", "<", ">", "-nt", "-ot", "-ef"))
_NUMBER_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_UNARY_TESTS = frozenset(f"-{c}" for c in "abcdefghknprstuwxzGLNOS")
_EDGES = frozenset(("&&", "||", "(", ")", "!"))


class _Places:
    """Walks a command and gathers, by offset, why a value has no place."""

    def __init__(self, source: str, refused: dict[int, str]) -> None:
        self.source = source
        self.refused = dict(refused)

    def script(self, whole: Script) -> None:
        scripts = list(_scripts(whole))
        functions = frozenset(f for s in scripts for f in s.functions)
        self.functions = functions
        self.evaluating = any(_evaluates(s) for s in scripts)
        self.piped = any(s.pipes or s.groups or any(_keeps_redirects(c) for c in s.commands) for s in scripts)
        for script in scripts:
            for command in script.commands:
                self.simple(command)
            for loose in script.loose:
                self.loose(loose)
            for group in script.groups:
                self.redirects(group.redirects)
        reason = hazard(scripts, self.source)
        if reason:
            self.refuse_all(reason)

    # Marks --------------------------------------------------------------------------------------------------------

    def refuse(self, reason: str, *words: Word) -> None:
        for word in words:
            at = self.source.find(SLOT, word.start, word.end)
            while at >= 0:
                self.refused.setdefault(at, reason)
                at = self.source.find(SLOT, at + 1, word.end)

    def has_slot(self, word: Word) -> bool:
        return self.source.find(SLOT, word.start, word.end) >= 0

    def refuse_all(self, reason: str) -> None:
        self.refuse(reason, Word(0, len(self.source), ()))

    def bind(self, *words: Word) -> None:
        """Values that become what a variable holds."""
        if self.evaluating:
            self.refuse("binding", *words)

    def shape(self, words: tuple[Word, ...]) -> None:
        """Words in which bash looks for braces and patterns."""
        for word in words:
            bracket = brace = slot = False
            for part in word.parts:
                if isinstance(part, Literal) and not part.quoted:
                    bracket = bracket or "[" in part.text
                    brace = brace or "{" in part.text
                elif isinstance(part, Slot):
                    slot = True
                    if bracket:
                        self.refused.setdefault(part.at, "pattern")
            if slot and brace:
                self.refuse("braces", word)
            self.shape(word.items)

    # Parts of a script --------------------------------------------------------------------------------------------

    def simple(self, command: Simple) -> None:
        self.shape((*command.assignments, *command.words))
        self.redirects(command.redirects)
        for word in command.assignments:
            self.assigned(word)
        if command.words:
            self.command(command.words, command.redirects)

    def assigned(self, word: Word) -> None:
        name = _ASSIGNED.match(prefix(word))
        if name is None or _RUN_BY_BASH.match(name[1]):
            self.refuse("variable", word)
        self.bind(word)

    def redirects(self, redirects: list[Redirect]) -> None:
        for redirect in redirects:
            if redirect.operator in ("<&", ">&"):
                self.refuse("descriptor", redirect.target)
            elif redirect.operator not in ("<<", "<<-"):
                self.shape((redirect.target,))

    def loose(self, loose: Loose) -> None:
        self.shape(loose.words)
        if loose.role == "for":
            name = literal(loose.words[0]) or ""
            if _RUN_BY_BASH.match(name):
                self.refuse("variable", *loose.words)
            self.bind(*loose.words[1:])
        elif loose.role == "test":
            for at, word in enumerate(loose.words):
                if self.has_slot(word) and not _is_inert_operand([literal(w) for w in loose.words], at):
                    self.refuse("test", word)

    # Commands -----------------------------------------------------------------------------------------------------

    def command(self, words: tuple[Word, ...], redirects: list[Redirect], fed: bool = False, into: str = "") -> None:
        """A command of these words. `fed`: what it reads becomes words of it (`into`: in place of that text)."""
        full = literal(words[0])
        if self.has_slot(words[0]) or command_name(words[0]) is None:
            self.refuse("name", words[0])
            self.refuse("computed", *words)
            self.reads(redirects, "stdin")
            return
        name = command_name(words[0]) or ""
        if full in self.functions:
            self.bind(*words[1:])
            return
        reading = read_command(words)
        if reading.opaque:
            self.refuse("opaque", *words)
            self.reads(redirects, "stdin")
        if name == "alias":
            self.refuse_all("opaque")
        if reading.reads_stdin or _reads_program(name, words):
            self.reads(redirects, "stdin" if reading.reads_stdin else "program")
        unknown = reading.open if not into else reading != NOTHING and any(into in plain(w) for w in words)
        if fed and unknown:
            self.reads(redirects, "stdin")
        if name in _READ_VARIABLES and self.evaluating:
            self.refuse("builtin", *words[1:])
            self.refuse_all("binding")
        for code in reading.code:
            self.refuse("code", *code.words)
            self.bind(*words)
        for inner in reading.commands:
            for word in words[: len(words) - len(inner)] if len(reading.commands) == 1 else ():
                if self.has_slot(word) and name in ("env", "sudo"):
                    self.assigned(word)
            if name == "find" and any("{}" in plain(w) for code in read_command(inner).code for w in code.words):
                self.refuse("code", *words)
            self.command(inner, redirects, fed or reading.fed, into or reading.replaced)
        if name in _MAKES:
            self.refuse("program", *words)
        self.refuse("program", *_program_words(name, words))
        if full in _BUILTINS:
            self.builtin(name, words)

    def reads(self, redirects: list[Redirect], reason: str) -> None:
        """A command runs, or may run, what it reads: what it is given here, or whatever reaches it."""
        own = [r for r in redirects if r.operator[0] == "<" and r.descriptor in ("", "0")]
        if self.piped and (not own or own[-1].operator in ("<&", "<>")):
            self.refuse_all(reason)
        for redirect in own:
            self.refuse(reason, redirect.target)

    def builtin(self, name: str, words: tuple[Word, ...]) -> None:
        rest = words[1:]
        if name in ("test", "["):
            self.classic_test(rest[:-1] if name == "[" else rest)
        elif name == "printf":
            self.printf(rest)
        elif name == "export":
            if all(_ASSIGNED.match(prefix(w)) for w in rest):
                for word in rest:
                    if self.has_slot(word):
                        self.assigned(word)
            else:
                self.refuse("declare", *rest)
        elif name in DECLARING:
            self.refuse("declare", *rest)
        elif name == "set" and rest and literal(rest[0]) == "--":
            self.bind(*rest)
        elif name not in _TAKE_DATA:
            self.refuse("builtin", *rest)

    def printf(self, rest: tuple[Word, ...]) -> None:
        if rest and literal(rest[0]) == "--":
            rest = rest[1:]
        if rest and ((prefix(rest[0]) == "" and literal(rest[0]) is None) or prefix(rest[0]).startswith("-")):
            self.refuse("format", *rest)

    def classic_test(self, words: tuple[Word, ...]) -> None:
        """`test` and `[` tell operators from operands by how many words there are."""
        if not any(self.has_slot(w) for w in words):
            return
        texts = [literal(w) for w in words]
        while len(texts) > 1 and texts[0] == "!":
            texts, words = texts[1:], words[1:]
        inert = all(is_one(w) for w in words) and (
            len(texts) == 1
            or (len(texts) == 2 and texts[0] in _UNARY_TESTS)
            or (len(texts) == 3 and texts[1] in _TEXT_TESTS | _NUMBER_TESTS)
        )
        if not inert:
            self.refuse("test", *words)


def _scripts(script: Script) -> Iterator[Script]:
    """A script and all those nested in its words."""
    yield script
    words: list[Word] = []
    for command in script.commands:
        words += [*command.assignments, *command.words, *(r.target for r in command.redirects)]
    for loose in script.loose:
        words += loose.words
    for group in script.groups:
        words += [r.target for r in group.redirects]
    while words:
        word = words.pop()
        words += word.items
        parts: list[Part] = list(word.parts)
        while parts:
            part = parts.pop()
            if isinstance(part, Computed):
                parts += part.inner
                if part.script is not None:
                    yield from _scripts(part.script)


def _keeps_redirects(command: Simple) -> bool:
    """Whether a command changes what those after it read: `exec < FILE`."""
    return bool(command.redirects) and any(literal(w) in ("exec", "command", "builtin") for w in command.words)


def _evaluates(script: Script, depth: int = 0) -> bool:
    """Whether a script, not counting those nested in its words, evaluates what a variable or an argument holds."""
    if script.evaluated or depth > 8:
        return True
    for command in script.commands:
        for word in command.assignments:
            name = _ASSIGNED.match(prefix(word))
            if (name is None or _RUN_BY_BASH.match(name[1])) and any(isinstance(p, Computed) for p in word.parts):
                return True
    return any(_command_evaluates(c.words, depth) for c in script.commands if c.words)


def _only_slots(word: Word) -> bool:
    return not any(isinstance(p, Computed) for p in word.parts)


def _command_evaluates(words: tuple[Word, ...], depth: int) -> bool:
    name, rest = command_name(words[0]), words[1:]
    reading = read_command(words)
    if reading.opaque or reading.reads_stdin or name == "let" or depth > 8:
        return True
    if any(literal(w) is None and not _only_slots(w) for w in _program_words(name or "", words)):
        return True
    if name in _MAKES and any(literal(w) is None for w in rest):
        return True
    if name == "set" and any(re.match(r"-[A-Za-z]*x|xtrace", prefix(w)) for w in rest):
        return True
    if name in TAKE_NAMES and any(literal(w) is None for w in rest):
        return True
    if name in DECLARING and any(prefix(w)[:1] in ("-", "+", "") for w in rest):
        return True
    if name == "printf" and rest and prefix(rest[0])[:1] in ("-", ""):
        return True
    if name in ("test", "[") and any(prefix(w) in ("-v", "-R") or (prefix(w) == "" and not is_one(w)) for w in rest):
        return True
    for code in reading.code:
        texts = [literal(w) for w in code.words]
        if None in texts:
            return True
        try:
            inner = parse(" ".join(t for t in texts if t is not None), bash=code.bash, depth=depth + 1).script
        except NotUnderstood:
            return True
        if any(_evaluates(s, depth + 1) for s in _scripts(inner)):
            return True
    return any(_command_evaluates(c, depth + 1) for c in reading.commands)


def _is_inert_operand(texts: list[str | None], at: int) -> bool:
    """Whether the word at `at` of a `[[ … ]]` is an operand that is only compared or looked up as a file."""
    before = texts[at - 1] if at else "("
    after = texts[at + 1] if at + 1 < len(texts) else ")"
    if before in _UNARY_TESTS:
        return after in _EDGES
    if before in _TEXT_TESTS:
        return at > 1 and after in _EDGES
    return before in _EDGES and (after in _TEXT_TESTS or after in _EDGES)


def _program_words(name: str, words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The words of a command that an interpreter runs as a program; some too many, where its options are not known."""
    found: list[Word] = []
    letters = _PROGRAM_OPTIONS.get(_VERSIONED.sub("", name))
    if letters is not None:
        for at, word in enumerate(words[1:], 1):
            text = prefix(word)
            if _SCRIPT.match(text) or (text.startswith("-m") and name.startswith("python")):
                break
            short = text.startswith("-") and not text.startswith("--") and any(c in letters for c in text)
            if short or text.startswith(("--eval", "--print", "--run", "--process")):
                found += words[at : at + 2]
    elif name in PROGRAM_FIRST:
        sed = name.endswith("sed")
        at, elsewhere = 1, False
        while at < len(words) and prefix(words[at]).startswith("-") and literal(words[at]) != "--":
            text = prefix(words[at])
            if sed and (text.startswith("--expression") or (text[1:2] != "-" and "e" in text)):
                found += words[at : at + 2]
                elsewhere = True
                at += text.endswith(("-e", "expression")) or (text[1:2] != "-" and text[-1] == "e")
            elif text in (("-f", "-l") if sed else ("-f", "-v", "-F", "-E")):
                elsewhere = elsewhere or text == "-f"
                at += 1
            at += 1
        if at < len(words) and literal(words[at]) == "--":
            at += 1
        if not elsewhere:
            found += words[at : at + 1]
    return tuple(found)


def _reads_program(name: str, words: tuple[Word, ...]) -> bool:
    """Whether an interpreter runs what it reads."""
    if _VERSIONED.sub("", name) not in _PROGRAM_OPTIONS:
        return False
    if _program_words(name, words):
        return False
    operands = [w for w in words[1:] if not prefix(w).startswith("-") or prefix(w) == "-"]
    return not operands or literal(operands[0]) in ("-", "/dev/stdin")
