"""Reading a `.halo` file for a command, and showing what was found in it.

Owns the errors of files (missing, a folder, unreadable) and where diagnostics go: to stderr, one block each.
"""

from __future__ import annotations

import sys

from ..language.diagnostics import ERROR, WARNING, as_json, render
from ..language.source import MAX_BYTES
from .failing import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..check.program import CheckedProgram
    from ..language.diagnostics import Diagnostic
    from ..language.source import Source


def read_file(name: str) -> bytes:
    """A file's bytes, at most one more than a program may have. Raises `CommandError` naming the file."""
    try:
        with open(name, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise CommandError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise CommandError(f"{name}: this is a folder; name a .halo file") from None
    except (OSError, ValueError) as trouble:
        raise CommandError(f"{name}: cannot be read: {getattr(trouble, 'strerror', None) or trouble}") from None


def checked_file(name: str) -> CheckedProgram:
    """The program of a file, checked. Raises `CommandError` where the file cannot be read."""
    from ..check.check import check_bytes

    return check_bytes(name, read_file(name), priced=_Priced(name))


class _Priced:
    """Whether a model has a price; reads the settings only if a program asks."""

    def __init__(self, file: str) -> None:
        self._file = file

    def __call__(self, model: str) -> bool:
        from pathlib import Path

        from ..app.clock import today
        from ..app.settings import read_settings
        from ..boundary.host import ConfigError

        try:
            return read_settings(Path(self._file)).price(model, today()) is not None
        except ConfigError as trouble:
            raise CommandError(str(trouble)) from None


def show(diagnostics: Iterable[Diagnostic], source: Source, *, quiet: bool = False) -> None:
    """Prints diagnostics to stderr; with `quiet` errors alone."""
    colour = wants_colour()
    for diagnostic in diagnostics:
        if diagnostic.severity == ERROR or not quiet:
            print(render(diagnostic, source, colour=colour), file=sys.stderr)


def wants_colour() -> bool:
    """Whether stderr is to be coloured: a terminal, unless `NO_COLOR`; or `FORCE_COLOR` (cli.md)."""
    from os import environ

    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (sys.stderr.isatty() and environ.get("TERM") != "dumb")


def has_errors(program: CheckedProgram, *, strict: bool = False) -> bool:
    """Whether a command refuses the program: for errors, with `strict` for warnings too."""
    return any(d.severity == ERROR or (strict and d.severity == WARNING) for d in program.diagnostics)


def diagnostics_json(program: CheckedProgram) -> list[dict[str, object]]:
    return [as_json(diagnostic, program.source) for diagnostic in program.diagnostics]
