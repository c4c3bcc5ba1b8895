"""Runs the steps of a case: `halo …` inside this process, which is quick, anything else with bash.

Owns the surroundings that a case sees: an empty folder, no keys, no addresses, no settings of whoever runs it.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from case_format import Case, Step, matches

TIMEOUT_S = 60
Main = Callable[[list[str]], int]

# `halo` and words without anything that a shell would read, but for where the two outputs go.
_WORD = r"(?:[^\s'\"$`\\|&;<>()*?{}~#!]|'[^']*'|\"[^\"$`\\]*\")+"
_PLAIN = re.compile(rf"halo((?: +{_WORD})*?)(?: +(2>&1|2>/dev/null|>/dev/null 2>&1))?\s*\Z")

_CALLERS_OWN = re.compile(
    r"(HALO|GIT_|XDG_|FORCE_COLOR|PYTEST|COVERAGE|VIRTUAL_ENV|(?i:https?|all|no)_proxy|.*(_API_KEY|_BASE_URL|_TOKEN)\Z)"
)


def surroundings(folder: Path) -> dict[str, str]:
    """The environment of a case: `halo` and `python3` are those of this interpreter; nothing listens anywhere."""
    kept = {k: v for k, v in os.environ.items() if not _CALLERS_OWN.match(k)}
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}",
        "HOME": str(folder.parent),
        "HALO_LOCAL_URL": "http://127.0.0.1:9/v1",
        "NO_COLOR": "1",
        "NO_PROXY": "*",
        "COLUMNS": "200",
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PYTHONUTF8": "1",
    }


def prepare(case: Case, folder: Path) -> None:
    """Writes the files of a case. A name that leads out of the folder is refused."""
    for name, text in case.files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"the file {name} is outside the case's folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run_step(step: Step, folder: Path, main: Main) -> tuple[list[str], int, str]:
    """What a step prints to standard output, its exit code, and what it says to standard error."""
    plain = _PLAIN.match(step.command)
    if plain is None:
        out, code, err = _with_bash(step.command, folder)
    else:
        out, code, err = _inside(main, shlex.split(plain[1]), folder, merged=plain[2] == "2>&1")
        if plain[2] == ">/dev/null 2>&1":
            out = ""
    return out.split("\n"), code, err


def run_case(case: Case, folder: Path, main: Main) -> Iterator[tuple[Step, list[str], int, str | None]]:
    """Runs the steps one by one; gives each with its output, exit code and, where they are not as expected, why not."""
    prepare(case, folder)
    for step in case.steps:
        out, code, err = run_step(step, folder, main)
        fits = code == step.exit_code and matches(step.expected, out)
        yield step, out, code, None if fits else _trouble(step, out, code, err)


def _trouble(step: Step, out: list[str], code: int, err: str) -> str:
    def block(lines: list[str]) -> str:
        return "\n".join("    " + line for line in lines)

    return (
        f"line {step.line + 1}: $ {step.command}\n  expected, exit {step.exit_code}:\n{block(step.expected)}\n"
        f"  got, exit {code}:\n{block(out[:80])}\n  standard error:\n{block(err.split(chr(10))[-20:])}"
    )


def _with_bash(command: str, folder: Path) -> tuple[str, int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=surroundings(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace"), done.returncode, done.stderr.decode("utf-8", "replace")


def _inside(main: Main, argv: list[str], folder: Path, *, merged: bool) -> tuple[str, int, str]:
    out = _Output()
    err = out if merged else _Output()
    with _as_process(folder, out, err):
        try:
            code = main(argv)
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return out.text(), code, err.text()


class _Output(io.TextIOWrapper):
    """A standard stream that remembers what is written to it, as text or by its `buffer`."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", newline="", write_through=True)

    def text(self) -> str:
        self.flush()
        return self._bytes.getvalue().decode("utf-8", "replace")


@contextmanager
def _as_process(folder: Path, out: io.TextIOWrapper, err: io.TextIOWrapper) -> Iterator[None]:
    """The working folder, environment and standard streams of a process of its own, for as long as it lasts."""
    kept = os.getcwd(), dict(os.environ), sys.stdin, sys.stdout, sys.stderr
    os.chdir(folder)
    _environment(surroundings(folder))
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), out, err
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept[2:]
        _environment(kept[1])
        os.chdir(kept[0])


def _environment(wanted: dict[str, str]) -> None:
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)
