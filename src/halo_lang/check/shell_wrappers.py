"""What the words of a simple command make it run: commands that run commands, and words that are code.

Owns the knowledge of `eval`, `sh -c`, `sudo`, `env`, `xargs`, `find -exec` and their like. A command that runs others
in a way that is not known here, or with options that are not, is `opaque`. Anything else is a command that takes its
words as data. Read `shell_commands.py` and `shell_places.py` for who asks.
"""

from __future__ import annotations

import re

from ..language.record import Record
from .shell_options import git_runs, sed_runs, tar_runs
from .shell_tree import Computed, Word, bare_text, is_one, literal, prefix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHELLS = frozenset(("sh", "bash", "dash", "ash", "ksh", "mksh", "rbash"))
_OTHER_SHELLS = frozenset(("zsh", "fish", "csh", "tcsh", "pwsh", "nu", "elvish", "xonsh", "rc"))
_OPAQUE = frozenset(
    re.findall(
        r"\S+",
        "alias complete compgen bind enable fc parallel chpst unshare nsenter capsh start-stop-daemon systemd-run at "
        "batch crontab expect unbuffer entr tmux screen runcon setpriv firejail bwrap proot fakeroot dbus-run-session "
        "setarch linux32 linux64 i386 i486 i586 i686 x86_64 uname26 prlimit numactl sg newgrp pkexec xvfb-run cpulimit "
        "gdb lldb valgrind perf rr cgexec softlimit daemonize schroot fakechroot eatmydata choom uclampset",
    )
)


class Code(Record):
    """Words that are read as shell code, joined by blanks. `bash`: by this bash, else by some shell."""

    words: tuple[Word, ...]
    bash: bool


class Reading(Record):
    """What a command runs besides itself. `commands` are commands given as words. `reads_stdin`: what it reads is run
    as shell code (`bash`: by bash). `open`: words added at its end would be run too. `fed`: it gives the command in it
    more words, in the place of `replaced` or, where that is empty, at the end. `opaque`: what it runs cannot be told.
    """

    commands: tuple[tuple[Word, ...], ...] = ()
    code: tuple[Code, ...] = ()
    reads_stdin: bool = False
    bash: bool = False
    open: bool = False
    fed: bool = False
    replaced: str = ""
    opaque: bool = False


NOTHING = Reading()
_LOADER = re.compile(r"ld[-.0-9A-Za-z_]*\.so[.0-9]*\Z")
OPAQUE = Reading(opaque=True)
_OPEN = Reading(open=True)
_READS = Reading(reads_stdin=True, open=True)


def command_name(word: Word) -> str | None:
    """The name of the command that a word names, without its folder, or None where it is computed: by an expansion, a
    pattern or braces."""
    name, bare = literal(word), bare_text(word)
    if name is None or any(c in bare for c in "*?{") or ("[" in bare and bare != "["):
        return None
    return name.rsplit("/", 1)[-1]


def read_command(words: tuple[Word, ...]) -> Reading:
    """What a command of these words (at least one) runs."""
    name = command_name(words[0])
    if name is None or name in _OPAQUE or _LOADER.match(name):
        return OPAQUE
    if name in SHELLS:
        return _shell(words, name == "bash")
    if name in _OTHER_SHELLS:
        return OPAQUE if len(words) < 2 or prefix(words[1]).startswith("-") or literal(words[1]) is None else NOTHING
    if name in _WRAPPERS:
        return _wrapped(words, _WRAPPERS[name])
    special = _SPECIAL.get(name)
    return special(words) if special else NOTHING


class _Wrapper(Record):
    """A command that runs the command in its words. `flags` and `takes` are its option letters without and with a
    value, the long names likewise; with one of `idle` it runs nothing. `operands` is how many words stand before the
    command; `assigns`: `NAME=value` may too; `whole`: the words are joined to code; `alone`: what it does without a
    command."""

    flags: str = ""
    takes: str = ""
    long: str = ""
    long_takes: str = ""
    operands: int = 0
    assigns: bool = False
    fed: bool = False
    alone: Reading = _OPEN
    whole: bool = False
    idle: str = ""


_WRAPPERS: dict[str, _Wrapper] = {
    "sudo": _Wrapper(
        "AbEeHKklnPSsiVv",
        "aCcDghpRrTtUu",
        "askpass background login non-interactive preserve-env set-home shell stdin edit list validate preserve-groups",
        "user group chdir chroot host prompt close-from other-user role type command-timeout",
        assigns=True,
        alone=_READS,
    ),
    "doas": _Wrapper("Lns", "aCu", alone=_READS),
    "env": _Wrapper("i0v", "uC", "ignore-environment null debug unset chdir", "unset chdir", assigns=True),
    "nohup": _Wrapper(),
    "setsid": _Wrapper("cfw", "", "ctty fork wait"),
    "stdbuf": _Wrapper("", "ioe", "input output error", "input output error"),
    "nice": _Wrapper("0123456789", "n", "adjustment", "adjustment"),
    "ionice": _Wrapper("t", "cnpPu", "class classdata ignore", "class classdata"),
    "chrt": _Wrapper("bfiorRav", "TPD", "batch fifo idle other rr", "", operands=1),
    "taskset": _Wrapper("ac", "", "all-tasks cpu-list", "", operands=1),
    "timeout": _Wrapper(
        "v", "ks", "foreground preserve-status verbose kill-after signal", "kill-after signal", operands=1
    ),
    "time": _Wrapper("pvaqV", "fo", "portability verbose append quiet format output", "format output"),
    "command": _Wrapper("pvV", idle="vV"),
    "builtin": _Wrapper(),
    "exec": _Wrapper("cl", "a"),
    "chroot": _Wrapper("", "", "userspec groups skip-chdir", "", operands=1, alone=_READS),
    "busybox": _Wrapper("", "", "list list-full"),
    "toybox": _Wrapper(),
    "strace": _Wrapper("cCdfFhiqrtTvVwxyzZ", "abeEIoOpPsSuUX"),
    "ltrace": _Wrapper("cCfhiLrStTV", "aAdDeElnopsuwxX"),
    "catchsegv": _Wrapper(),
    "xargs": _Wrapper(
        "0oprtx",
        "adEILnPs",
        "null interactive no-run-if-empty verbose open-tty exit show-limits replace delimiter arg-file eof max-lines "
        "max-args max-procs max-chars process-slot-var",
        "delimiter arg-file max-args max-procs max-chars process-slot-var",
        fed=True,
    ),
    "watch": _Wrapper(
        "bcdegptvwxr", "ns", "beep color differences errexit chgexit no-title precise exec", "interval", whole=True
    ),
    "ssh": _Wrapper("1246AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw", operands=1, alone=_READS, whole=True),
}


def _wrapped(words: tuple[Word, ...], wrapper: _Wrapper) -> Reading:
    at = _after_options(words, wrapper)
    if at is None:
        return OPAQUE
    for word in words[at : at + wrapper.operands]:
        if not _one_text(word) or (wrapper.operands and prefix(word).startswith("-")):
            return OPAQUE
    at += wrapper.operands
    while wrapper.assigns and at < len(words) and "=" in prefix(words[at]):
        if prefix(words[at]).startswith(("BASH_FUNC_", "BASH_ENV=", "ENV=")):
            return OPAQUE
        at += 1
    rest = words[at:]
    if not rest:
        return wrapper.alone
    if prefix(rest[0]).startswith("-"):
        return OPAQUE
    if wrapper.idle and any(c in wrapper.idle for w in words[1:at] for c in prefix(w)):
        return NOTHING
    if wrapper.whole:
        return Reading(code=(Code(rest, False),), open=True)
    return Reading(commands=(rest,), fed=wrapper.fed, replaced=_replaced(words[1:at]) if wrapper.fed else "")


def _replaced(options: Sequence[Word]) -> str:
    """The text that `xargs` replaces, of its options, or nothing."""
    for at, word in enumerate(options):
        text = literal(word) or ""
        if text.startswith("--replace"):
            return text.partition("=")[2] or "{}"
        if text.startswith("-i"):
            return text[2:] or "{}"
        if text.startswith("-") and "I" in text:
            return text.partition("I")[2] or (literal(options[at + 1]) or "{}" if at + 1 < len(options) else "{}")
    return ""


def _after_options(words: Sequence[Word], wrapper: _Wrapper) -> int | None:
    """Where a wrapper's options end, or None where that cannot be told."""
    at = 1
    while at < len(words):
        text = literal(words[at])
        if text is None:
            return at if not prefix(words[at]).startswith("-") and prefix(words[at]) else None
        if text == "--":
            return at + 1
        if len(text) < 2 or text[0] != "-":
            return at + (text == "-")
        at += 1
        if text.startswith("--"):
            name, given, _ = text[2:].partition("=")
            if name not in wrapper.long.split() and name not in wrapper.long_takes.split():
                return None
            takes = name in wrapper.long_takes.split() and not given
        elif wrapper.fed and text[1] in "eil":
            continue
        else:
            taking = next((i for i, c in enumerate(text[1:], 1) if c in wrapper.takes), None)
            if any(c not in wrapper.flags for c in text[1:taking]):
                return None
            takes = taking == len(text) - 1
        if takes:
            if at >= len(words) or literal(words[at]) is None:
                return None
            at += 1
    return at


def _one_text(word: Word) -> bool:
    """Whether a word is surely one argument that is no option."""
    return literal(word) is not None or prefix(word) != ""


def _shell(words: tuple[Word, ...], bash: bool) -> Reading:
    """`bash -lc CODE`, `sh FILE`, `sh -s`, `sh`."""
    code = stdin = False
    at = 1
    while at < len(words):
        text = literal(words[at])
        if text is None and code:
            break
        if text is None:
            return OPAQUE
        if text in ("--", "-"):
            at += 1
            break
        if text[:1] not in ("-", "+") or len(text) < 2:
            break
        at += 1
        if text.startswith("--"):
            if text in ("--rcfile", "--init-file"):
                at += 1
            elif text not in ("--norc", "--noprofile", "--login", "--posix", "--verbose", "--restricted"):
                return OPAQUE
        elif any(c not in "abcefhiklmnoprstuvxBCEHOPT" for c in text[1:]):
            return OPAQUE
        else:
            code = code or (text[0] == "-" and "c" in text)
            stdin = stdin or "s" in text
            at += text.count("o") + text.count("O")
    if code:
        return Reading(code=(Code((words[at],), bash),)) if at < len(words) else OPAQUE
    if stdin or at >= len(words) or literal(words[at]) in _STDIN_FILES:
        return Reading(reads_stdin=True, bash=bash, open=True)
    return NOTHING if literal(words[at]) is not None else OPAQUE


_STDIN_FILES = frozenset(("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-"))


def _eval(words: tuple[Word, ...]) -> Reading:
    rest = words[2:] if len(words) > 1 and literal(words[1]) == "--" else words[1:]
    return Reading(code=(Code(rest, True),) if rest else (), open=True)


def _trap(words: tuple[Word, ...]) -> Reading:
    rest = words[2:] if len(words) > 1 and literal(words[1]) == "--" else words[1:]
    if len(rest) < 2:
        return _OPEN if all(literal(w) is not None for w in rest) else OPAQUE
    if literal(rest[0]) in ("-", "", "-l", "-p"):
        return NOTHING
    return Reading(code=(Code(rest[:1], True),))


def _source(words: tuple[Word, ...]) -> Reading:
    rest = words[2:] if len(words) > 1 and literal(words[1]) == "--" else words[1:]
    if not rest:
        return _OPEN
    if literal(rest[0]) in _STDIN_FILES:
        return Reading(reads_stdin=True, bash=True, open=True)
    return OPAQUE if literal(rest[0]) is None else NOTHING


def _find(words: tuple[Word, ...]) -> Reading:
    """`find … -exec COMMAND ;`. Words that are computed could hold an `-exec` too."""
    commands = []
    at = 1
    computed = [w for w in words if any(isinstance(p, Computed) for p in w.parts) and not prefix(w)]
    while at < len(words):
        if literal(words[at]) in ("-exec", "-execdir", "-ok", "-okdir"):
            stop = at + 1
            while stop < len(words) and not (
                literal(words[stop]) == ";" or (literal(words[stop]) == "+" and literal(words[stop - 1]) == "{}")
            ):
                stop += 1
            if stop == at + 1 or stop >= len(words):
                return OPAQUE
            commands.append(words[at + 1 : stop])
            at = stop
        elif literal(words[at]) in (";", "+") and computed:
            return OPAQUE
        at += 1
    if len(computed) > 1 or not all(is_one(w) for w in computed):
        return OPAQUE
    return Reading(commands=tuple(commands), open=True)


def _su(words: tuple[Word, ...]) -> Reading:
    """`su -c CODE`; the shell that it starts reads its stdin otherwise."""
    code = []
    for at, word in enumerate(words[1:], 1):
        text = literal(word)
        if text is None:
            return OPAQUE
        if text.startswith("--command=") or (text.startswith("-c") and len(text) > 2 and not text.startswith("--")):
            return OPAQUE
        if text in ("-c", "--command") or (text.startswith("-") and not text.startswith("--") and text.endswith("c")):
            if at + 1 >= len(words):
                return OPAQUE
            code.append(Code((words[at + 1],), False))
            return Reading(code=tuple(code))
    return _READS


def _option_runs(letters: str) -> Callable[[tuple[Word, ...]], Reading]:
    """A command that is opaque with one of these options: it then runs something given in its words."""

    def read(words: tuple[Word, ...]) -> Reading:
        for word in words[1:]:
            text = prefix(word)
            if text == "--":
                break
            if text.startswith("--command") or (
                text.startswith("-") and not text.startswith("--") and any(c in letters for c in text)
            ):
                return OPAQUE
        return NOTHING

    return read


def _script(words: tuple[Word, ...]) -> Reading:
    """`script -c CODE`, `script FILE -- COMMAND`; the shell that it starts reads its stdin otherwise."""
    return OPAQUE if len(words) > 1 else _READS


def _runs(asked: Callable[[tuple[Word, ...]], bool]) -> Callable[[tuple[Word, ...]], Reading]:
    """A command that is opaque where its words make it run another."""

    def read(words: tuple[Word, ...]) -> Reading:
        return OPAQUE if asked(words) else NOTHING

    return read


def _flock(words: tuple[Word, ...]) -> Reading:
    """`flock [OPTIONS] FILE COMMAND…` and `flock FILE -c CODE`."""
    at = _after_options(words, _Wrapper("sxunoFv", "wE", "shared exclusive unlock nonblock close no-fork", "timeout"))
    if at is None or at >= len(words) or literal(words[at]) is None:
        return OPAQUE
    rest = words[at + 1 :]
    if not rest:
        return _OPEN
    if literal(rest[0]) in ("-c", "--command"):
        return Reading(code=(Code(rest[1:2], False),)) if len(rest) > 1 else OPAQUE
    return Reading(commands=(rest,))


_SPECIAL: dict[str, Callable[[tuple[Word, ...]], Reading]] = {
    "eval": _eval,
    "trap": _trap,
    "source": _source,
    ".": _source,
    "find": _find,
    "su": _su,
    "runuser": _su,
    "flock": _flock,
    "hash": _option_runs("p"),
    "mapfile": _option_runs("C"),
    "readarray": _option_runs("C"),
    "script": _script,
    "git": _runs(git_runs),
    "tar": _runs(tar_runs),
    "gtar": _runs(tar_runs),
    "bsdtar": _runs(tar_runs),
    "sed": _runs(sed_runs),
    "gsed": _runs(sed_runs),
}
