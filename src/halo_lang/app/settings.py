"""Settings of a run: variables, `.env`, and `halo.toml` (cli.md, last section).

Owns where each comes from and which wins: flags (given by the command), then variables of the process, then `.env`
beside the file, which never overrides one that is set, then `halo.toml` beside the file or above it.
"""

from __future__ import annotations

import os
from io import StringIO
from pathlib import Path

from ..boundary.host import ConfigError, Environment
from ..language.record import Record, replace
from .above import read_whole
from .project import Project, read_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


MAX_DOTENV = 256 * 1024
"""Bytes of a `.env`: what reads it takes half a minute for a megabyte."""

KEEP = "HALO_RECORDINGS_KEEP"
"""The variable that wins over `recordings.keep` of halo.toml. The one for an address is in `models/providers.py`."""


class Settings(Record):
    """`found` names the files that were read."""

    environment: Environment
    project: Project
    found: tuple[str, ...]


def read_settings(file: Path, process: Mapping[str, str] | None = None) -> Settings:
    """The settings for a `.halo` file. Raises `ConfigError` for a file that cannot be read or has an error."""
    variables = dict(os.environ if process is None else process)
    dotenv = file.resolve().parent / ".env"
    own = _dotenv(dotenv) if dotenv.is_file() else {}
    environment = Environment(variables, own)
    project = _kept(read_project(str(file)), environment)
    found = tuple(f for f in (str(dotenv) if own else None, project.file) if f is not None)
    return Settings(environment, project, found)


def _kept(project: Project, environment: Environment) -> Project:
    """The project, with what a variable says of how many recordings are kept."""
    said = environment.get(KEEP)
    if said is None:
        return project
    if not (said.isascii() and said.isdigit() and len(said) < 10):
        raise ConfigError(f"the variable {KEEP} must be a whole number of at least 0: the recordings to keep")
    return replace(project, keep=int(said))


def _dotenv(file: Path) -> dict[str, str]:
    from dotenv.parser import parse_stream

    try:
        data = read_whole(str(file), MAX_DOTENV)
        found = list(parse_stream(StringIO(data.decode("utf-8-sig"))))
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: cannot be read: it is not UTF-8") from None
    except OSError as trouble:
        raise ConfigError(f"{file}: cannot be read: {trouble.strerror}") from None
    for binding in found:
        if binding.error:  # what stands there is not shown: it may be a secret
            raise ConfigError(f"{file}:{binding.original.line}: this is no NAME=VALUE; is a quote left open?")
    return {b.key: b.value for b in found if b.key is not None and b.value is not None}
