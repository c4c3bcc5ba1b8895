"""Options and programs by which ordinary commands run others: `git -c`, `tar --to-command`, `sed e`.

Owns the knowledge of which words of such a command make it run something. It says yes where it is not sure. Read
`shell_wrappers.py` for who asks.
"""

from __future__ import annotations

import re

from .shell_tree import Slot, Word, literal, prefix

_GIT_TAKES = frozenset(("-C", "--git-dir", "--work-tree", "--namespace"))
_GIT_INERT = re.compile(
    r"(?:user\.(?:name|email)|color\.[a-z.]+|advice\.[A-Za-z]+|core\.(?:quotepath|autocrlf|safecrlf)|"
    r"init\.defaultbranch|commit\.gpgsign|safe\.directory)(?:=|\Z)",
    re.IGNORECASE,
)
_GIT_RUNNING = frozenset(("filter-branch", "for-each-repo", "difftool", "mergetool"))
_GIT_OPTIONS = ("--upload-pack", "--receive-pack", "--exec", "--open-files-in-pager", "--extcmd", "--config")

_TAR_RUNNING = ("--checkpoint-action", "--to-command", "--use-compress-program", "--info-script",
                "--new-volume-script", "--rsh-command", "--rmt-command")  # fmt: skip
_TAR_VALUE = re.compile(r"[fbCTXKNVgHL]")

_SED_ADDRESS = re.compile(r"(?:[0-9]+(?:~[0-9]+)?|\$|[+~][0-9]+|/((?:\\[^\n]|[^/\\\n])*)/[IM]*)[ \t]*")
_SED_TWO_PARTS = re.compile(
    r"[sy]([^\\\n])((?:\\.|(?!\1)[^\\\n])*)\1(?:\\.|(?!\1)[^\\])*\1([A-Za-z0-9]*)[ \t]*", re.DOTALL
)
_SED_PLAIN = re.compile(r"[dDgGhHnNpPxzF=]|[qQlL][ \t]*[0-9]*")
_SED_LABEL = re.compile(r"[:btT][^;\n}]*")
_SED_FILE = re.compile(r"[rRwW][^\n]*")
_SED_TEXT = re.compile(r"[aic](?:\\.|[^\\\n])*", re.DOTALL)
_SED_BETWEEN = re.compile(r"(?:[ \t\n;{}]|#[^\n]*)+")
_OPEN_BRACKET = re.compile(r"\[\^?\]?[^\]]*\Z")


def git_runs(words: tuple[Word, ...]) -> bool:
    """Whether a `git` runs a command that is given in its words, or may."""
    at = 1
    while at < len(words):
        text = literal(words[at])
        if text is None and (prefix(words[at]) == "" or prefix(words[at]).startswith("-")):
            return True
        text = text or prefix(words[at])
        if text == "-c":
            if at + 1 >= len(words) or not _GIT_INERT.match(prefix(words[at + 1])):
                return True
            at += 2
        elif text.startswith(("-c", "--config-env", "--exec-path=")):
            return True
        elif text.startswith("-"):
            at += 2 if text in _GIT_TAKES else 1
        else:
            break
    if at >= len(words):
        return False
    name, rest = literal(words[at]), [prefix(w) for w in words[at + 1 :]]
    if name is None or name in _GIT_RUNNING:
        return True
    if name == "config":
        return any(t.startswith(("alias.", "!")) for t in rest)
    if name in ("bisect", "submodule"):
        return "run" in rest or "foreach" in rest
    if name == "clone" and any(t.startswith(("-c", "-u")) for t in rest):
        return True
    if name == "rebase" and any(t.startswith("-x") for t in rest):
        return True
    if name == "grep" and any(t.startswith("-O") for t in rest):
        return True
    return any(t.startswith(_GIT_OPTIONS) for t in rest)


def tar_runs(words: tuple[Word, ...]) -> bool:
    """Whether a `tar` runs a command that is given in its words. Long options may be cut short."""
    for at, word in enumerate(words[1:], 1):
        text = prefix(word)
        if text.startswith("--"):
            name = text.partition("=")[0]
            if len(name) > 3 and name != "--checkpoint" and any(full.startswith(name) for full in _TAR_RUNNING):
                return True
        elif text.startswith("-"):
            value = _TAR_VALUE.search(text)
            letters = text[: value.start()] if value else text
            if "I" in letters or "F" in letters:
                return True
        elif at == 1 and ("I" in text or "F" in text):
            return True
    return False


def sed_runs(words: tuple[Word, ...]) -> bool:
    """Whether a `sed` runs shell commands, or may: its program is computed, or holds `e`, or is not understood.

    An inserted value in its program is not looked at: who inserts one refuses it there.
    """
    programs: list[Word] = []
    operands: list[Word] = []
    at, elsewhere = 1, False
    while at < len(words):
        text = prefix(words[at])
        if text == "--":
            operands += words[at + 1 :]
            break
        if not text.startswith("-") or text == "-":
            operands.append(words[at])
        elif text.startswith("--"):
            name, given, _ = text.partition("=")
            if len(name) > 3 and "--expression".startswith(name):
                elsewhere = True
                if given or at + 1 >= len(words):
                    if _program_runs(words[at], len(name) + 1):
                        return True
                else:
                    at += 1
                    programs.append(words[at])
            elif len(name) > 3 and "--file".startswith(name):
                elsewhere = True
                at += not given
                if at >= len(words) or _reads_stdin(prefix(words[at]).partition("=")[2] if given else words[at]):
                    return True
            elif name == "--line-length":
                at += not given
        else:
            taking = next((i for i, c in enumerate(text[1:], 1) if c in "efil"), 0)
            letter = text[taking] if taking else ""
            if letter == "e":
                elsewhere = True
                if len(text) > taking + 1 or len(words[at].parts) > 1:
                    if _program_runs(words[at], taking + 1):
                        return True
                elif at + 1 < len(words):
                    at += 1
                    programs.append(words[at])
            elif letter in ("f", "l"):
                attached = len(text) > taking + 1 or len(words[at].parts) > 1
                at += not attached
                if letter == "f":
                    elsewhere = True
                    if at >= len(words) or _reads_stdin(text[taking + 1 :] if attached else words[at]):
                        return True
        at += 1
    if not elsewhere:
        programs += operands[:1]
    return any(_program_runs(p, 0) for p in programs)


def _reads_stdin(file: str | Word) -> bool:
    """Whether a program's file may be no file on the disk."""
    name = file if isinstance(file, str) else literal(file)
    return not name or name == "-" or name.startswith(("/dev/", "/proc/"))


def _program_runs(word: Word, start: int) -> bool:
    if any(isinstance(p, Slot) for p in word.parts):
        return False
    text = literal(word)
    return text is None or _sed_program_runs(text[start:])


def _sed_program_runs(program: str) -> bool:
    at = 0
    while True:
        between = _SED_BETWEEN.match(program, at)
        at = between.end() if between else at
        while True:
            address = _SED_ADDRESS.match(program, at)
            if address is not None:
                if _OPEN_BRACKET.search(address[1] or ""):
                    return True
                at = address.end()
            elif program[at : at + 1] in (",", "!", " ", "\t"):
                at += 1
            else:
                break
        if at >= len(program):
            return False
        if program[at] in "{}":
            at += 1
            continue
        found = _SED_TWO_PARTS.match(program, at)
        if found is not None:
            flags = found[3]
            if "e" in flags.partition("w")[0] or _OPEN_BRACKET.search(found[2]):
                return True
            at = found.end()
            if "w" in flags:
                at = program.find("\n", at) if "\n" in program[at:] else len(program)
            elif program[at : at + 1] not in ("", ";", "\n", "}", "#"):
                return True
            continue
        for pattern in (_SED_PLAIN, _SED_LABEL, _SED_FILE, _SED_TEXT):
            found = pattern.match(program, at)
            if found is not None:
                at = found.end()
                break
        else:
            return True
