"""Settings: variables, `.env`, and `halo.toml` (cli.md, last section).

Owns where each comes from and which wins: flags (given by the command), then variables of the process, then `.env`
beside the file, which never overrides one that is set, then `halo.toml` beside the file or above it. Reads only those
two files.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..boundary.host import ConfigError, Environment
from ..catalog.prices import Price, lookup, read_overrides
from ..language.diagnostics import did_you_mean
from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SECTIONS = ("models", "prices", "recordings")


class Settings(Record):
    """`models` and `prices` are the sections of `halo.toml`; `found` names the files that were read."""

    environment: Environment
    models: Mapping[str, Mapping[str, str]]
    prices: Mapping[str, Price]
    found: tuple[Path, ...]

    def price(self, model: str, on: str) -> Price | None:
        """The price that bounds requests to `provider/model` from the day `on`, or None."""
        return lookup(model, on, self.prices)


def read_settings(file: Path, process: Mapping[str, str] | None = None) -> Settings:
    """The settings for a `.halo` file. Raises `ConfigError` for a file that cannot be read or has an error."""
    folder = file.resolve().parent
    variables = dict(os.environ if process is None else process)
    dotenv = folder / ".env"
    project = _dotenv(dotenv) if dotenv.is_file() else {}
    toml = next((f for f in (d / "halo.toml" for d in (folder, *folder.parents)) if f.is_file()), None)
    sections = _toml(toml) if toml is not None else {}
    prices, problems = read_overrides(sections.get("prices", {}))
    if problems:
        raise ConfigError(f"{toml}: {problems[0]}")
    models = sections.get("models", {})
    if not isinstance(models, dict) or not all(isinstance(table, dict) for table in models.values()):
        raise ConfigError(f'{toml}: [models.NAME] must be tables, such as [models.mine] with url = "http://…/v1"')
    found = tuple(f for f in (dotenv if project else None, toml) if f is not None)
    return Settings(Environment(variables, project), models, prices, found)


def _dotenv(file: Path) -> dict[str, str]:
    from dotenv import dotenv_values

    try:
        found = dotenv_values(file, interpolate=False, encoding="utf-8")
    except (OSError, UnicodeDecodeError) as trouble:
        raise ConfigError(f"{file}: cannot be read: {_reason(trouble)}") from None
    return {name: value for name, value in found.items() if value is not None}


def _toml(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        sections = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as trouble:
        raise ConfigError(f"{file}: cannot be read: {_reason(trouble)}") from None
    for name in sections:
        if name not in SECTIONS:
            near = did_you_mean(name, SECTIONS)
            raise ConfigError(f"{file}: there is no section [{name}]{f'; {near}' if near else ''}")
    return sections


def _reason(trouble: Exception) -> str:
    if isinstance(trouble, OSError):
        return trouble.strerror or type(trouble).__name__
    return "it is not UTF-8" if isinstance(trouble, UnicodeDecodeError) else str(trouble)
