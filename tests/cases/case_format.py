"""Cases: Markdown files whose sections hold files and console sessions, run as a user would.

A section (`## name`) is one case. In it a fenced block with the info string `LANG file=NAME` is a file of the case's
own empty folder; a block marked `console` is a session in that folder:

    $ halo check a.halo
    what goes to standard output (with `2>&1`, to standard error too)
    [exit 1]

`[exit N]` may be left out for 0. In expected lines `[..]` stands for any text within the line, a line `...` for any
number of lines. A command goes on in lines that begin with `> `. The steps of a case run in order.

Owns the format: parsing it, matching output against it, writing new output into it. Runs nothing: `case_runner.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


class CaseError(Exception):
    """A case file that cannot be read as one."""


@dataclass
class Step:
    """A command. Lines are counted from 0; those expected are `first` to `last` (exclusive) of the file, with the
    line of the exit code."""

    command: str
    line: int
    expected: list[str] = field(default_factory=list)
    exit_code: int = 0
    first: int = 0
    last: int = 0


@dataclass
class Case:
    name: str
    files: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


_FENCE = re.compile(r"(`{3,})(.*)\Z")
_FILE = re.compile(r"\bfile=(\S+)")
_VARYING = re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<![\w.])\d+(?=ms\b)")
"""What is another on each run: run ids, and how long something took."""
_EXIT = re.compile(r"\[exit (\d+)\]\s*\Z")


def parse(text: str, *, whole: str = "") -> list[Case]:
    """The cases of a file that have a session. With `whole` the entire text is one case of that name, as in a page of
    the documentation, whose reader follows it from top to bottom."""
    cases = [Case(whole)] if whole else []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if lines[at].startswith("## ") and not whole:
            cases.append(Case(lines[at][3:].strip()))
        fence = _FENCE.match(lines[at])
        if fence:
            start, at = at + 1, _closing(lines, at, fence[1])
            if cases:
                _take(cases[-1], fence[2].strip(), lines[start:at], start)
            elif fence[2].strip():
                raise CaseError(f"line {start}: this block stands before the first section")
        at += 1
    names = [c.name for c in cases]
    for name in names:
        if names.count(name) > 1:
            raise CaseError(f"two cases are named {name!r}")
    return [c for c in cases if c.steps]


def _closing(lines: list[str], opening: int, ticks: str) -> int:
    for at in range(opening + 1, len(lines)):
        if lines[at].rstrip() == ticks:
            return at
    raise CaseError(f"line {opening + 1}: this block is never closed")


def _take(case: Case, info: str, body: list[str], first: int) -> None:
    named = _FILE.search(info)
    if named:
        if named[1] in case.files:
            raise CaseError(f"line {first}: the case has two files {named[1]}")
        case.files[named[1]] = "\n".join(body) + "\n"
    elif info == "console":
        case.steps += _session(body, first)
    elif info.startswith("console"):
        raise CaseError(f"line {first}: {info!r} is not understood")


def _session(body: list[str], first: int) -> list[Step]:
    steps: list[Step] = []
    for at, line in enumerate(body, first):
        if line.startswith("$ "):
            steps.append(Step(line[2:], at, first=at + 1, last=at + 1))
            continue
        if not steps:
            raise CaseError(f"line {at + 1}: a session begins with a command, `$ …`")
        step = steps[-1]
        if (line.startswith("> ") or line == ">") and not step.expected:
            step.command += "\n" + line[2:]
            step.first = at + 1
        elif found := _EXIT.match(line):
            step.exit_code = int(found[1])
        else:
            step.expected.append(line)
        step.last = at + 1
    return steps


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether whole outputs agree. Blank lines at the end and blanks at the ends of lines do not count."""
    expected, actual = _trimmed(expected), _trimmed(actual)
    reach = {0}
    for want in expected:
        if want.strip() == "...":
            reach = set(range(min(reach), len(actual) + 1))
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in want.split("[..]")) + r"\Z")
        reach = {n + 1 for n in reach if n < len(actual) and pattern.match(actual[n])}
        if not reach:
            return False
    return len(actual) in reach


def _trimmed(lines: list[str]) -> list[str]:
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    return kept


def updated(text: str, outputs: list[tuple[Step, list[str], int]]) -> str:
    """The file with other expected lines and exit codes for some steps, `[..]` for what is another on each run. Raises
    `CaseError` for output that the format cannot hold."""
    lines = text.split("\n")
    for step, output, code in sorted(outputs, key=lambda o: -o[0].first):
        shown = [_VARYING.sub("[..]", line) for line in _trimmed(output)]
        for line in shown:
            if line.startswith(("$ ", "```")) or _EXIT.match(line) or (line[:1] == ">" and line is shown[0]):
                raise CaseError(f"line {step.line + 1}: a case cannot hold the output line {line!r}")
        lines[step.first : step.last] = [*shown, f"[exit {code}]"] if code else shown
    return "\n".join(lines)
