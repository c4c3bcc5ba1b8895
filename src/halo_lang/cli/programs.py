"""Reading a `.halo` file for a command, and showing what was found in it.

Owns the errors of files (missing, a folder, unreadable) and where diagnostics go: to stderr, one block each.
"""

from __future__ import annotations

import sys

from ..boundary.host import ConfigError
from ..language.diagnostics import ERROR, WARNING, as_json, render
from ..language.source import MAX_BYTES
from .failing import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..app.project import Project
    from ..catalog.prices import Price
    from ..check.program import CheckedPipeline, CheckedProgram
    from ..doors.within import Within
    from ..language.diagnostics import Diagnostic
    from ..language.source import Source


def read_file(name: str, most: int = MAX_BYTES) -> bytes:
    """A file's bytes, at most one more than `most` (what a program may have). Raises `CommandError` naming the file."""
    try:
        with open(name, "rb") as file:
            return file.read(most + 1)
    except FileNotFoundError:
        raise CommandError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise CommandError(f"{name}: this is a folder; name a .halo file") from None
    except (OSError, ValueError) as trouble:
        raise CommandError(f"{name}: cannot be read: {getattr(trouble, 'strerror', None) or trouble}") from None


class ProjectPrices:
    """The prices of the project that a file belongs to, as of today; `halo.toml` is read only if a price is asked."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._project: Project | None = None
        self._today = ""

    @property
    def project(self) -> Project:
        """Raises `CommandError` for a `halo.toml` that has an error."""
        if self._project is None:
            from ..app.clock import today
            from ..app.project import read_project

            try:
                self._project = read_project(self._file)
            except ConfigError as trouble:
                raise CommandError(str(trouble)) from None
            self._today = today()
        return self._project

    def price(self, model: str) -> Price | None:
        """The price that bounds requests to a model from today on, or None."""
        return self.project.price(model, self._today)


def checked_file(name: str) -> tuple[CheckedProgram, ProjectPrices]:
    """The program of a file, checked, and its project's prices. Raises `CommandError` where the file cannot be read, or
    `halo.lock` has an error."""
    from ..app.checking import checked

    prices = ProjectPrices(name)
    try:
        program = checked(name, read_file(name), priced=lambda model: prices.price(model) is not None)
    except ConfigError as trouble:
        raise CommandError(str(trouble)) from None
    return program, prices


def held_to_plan(program: CheckedProgram, prices: ProjectPrices, pipeline: CheckedPipeline, name: str) -> Within:
    """What a kept plan allows. Raises `CommandError` for a plan of other source, or made with other prices."""
    from hashlib import sha256

    from ..check.identity import source_key
    from ..doors.within import Within
    from ..plan.document import MAX_BYTES as MOST
    from ..plan.document import read_document

    data = read_file(name, MOST)
    try:
        kept = read_document(data)
    except ValueError as trouble:
        raise CommandError(f"{name}: {trouble}", 2) from None
    again = f"make it anew: halo plan {program.source.name} --out {name}"
    if kept["sha256"] != source_key(program.source):
        raise CommandError(f"{name}: BEYOND_PLAN: this is the plan of other source; {again}")
    if kept["assumes"]["pricesKey"] != prices.project.prices_key():
        raise CommandError(f"{name}: BEYOND_PLAN: this plan was made with other prices; {again}")
    try:
        return Within(kept, pipeline.name, name, sha256(data).hexdigest())
    except KeyError:
        raise CommandError(f"{name}: BEYOND_PLAN: the pipeline {pipeline.name} is not in this plan; {again}") from None


def program_with_models(program: CheckedProgram, words: list[str]) -> CheckedProgram:
    """The program with other models for some agents (`--model AGENT=provider/model`)."""
    if not words:
        return program
    from ..app.preparing import with_models

    try:
        return with_models(program, _models(words))
    except ConfigError as trouble:
        raise CommandError(f"--model: {trouble}", 2) from None


def _models(words: list[str]) -> dict[str, str]:
    models: dict[str, str] = {}
    for word in words:
        agent, equals, model = word.partition("=")
        provider, slash, name = model.partition("/")
        if not (agent and equals and provider and slash and name):
            raise CommandError(f"--model takes AGENT=provider/model, and got `{word}`", 2)
        models[agent] = model
    return models


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
