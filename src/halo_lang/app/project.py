"""A project's `halo.toml`: found beside the file or above it, read and checked (cli.md).

Owns its sections. Reads that one file, and looks at no variable: this is all that a check or a plan takes from
outside the program. Read `settings.py` for what a run takes besides.
"""

from __future__ import annotations

import os.path

from ..boundary.host import ConfigError
from ..catalog.prices import lookup, prices_date, read_overrides, table_digest
from ..language.diagnostics import did_you_mean
from ..language.record import Record
from .above import file_above, read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..catalog.prices import Price

NAME = "halo.toml"
MAX_BYTES = 1024 * 1024
MAX_DOTS = 100
"""In a line. What reads TOML takes memory with the square of the parts that a key has."""
SECTIONS = ("models", "prices", "recordings")


class Project(Record):
    """`file` is the path of `halo.toml`, None where there is none. `models` are its `[models.NAME]`, `prices` its
    `[prices]`, `keep` the number of recordings to keep (`recordings.keep`)."""

    file: str | None
    models: Mapping[str, Mapping[str, str]]
    prices: Mapping[str, Price]
    keep: int = 50

    def price(self, model: str, on: str) -> Price | None:
        """The price that bounds requests to `provider/model` from the day `on`, or None."""
        return lookup(model, on, self.prices)

    def prices_key(self) -> str:
        """A text that is the same only where all prices are: the bundled table's and the project's."""
        from hashlib import sha256

        own = repr(sorted((model, price) for model, price in self.prices.items()))
        return sha256(f"{prices_date()}\n{table_digest()}\n{own}".encode()).hexdigest()


def read_project(program: str) -> Project:
    """The project that a `.halo` file belongs to. Raises `ConfigError` for a `halo.toml` that has an error."""
    file = file_above(NAME, os.path.dirname(os.path.realpath(program)))
    if file is None:
        return Project(None, {}, {})
    sections = _sections(file)
    prices, problems = read_overrides(sections.get("prices", {}))
    if problems:
        raise ConfigError(f"{file}: {problems[0]}")
    models = sections.get("models", {})
    if not isinstance(models, dict) or not all(isinstance(table, dict) for table in models.values()):
        raise ConfigError(f'{file}: [models.NAME] must be tables, such as [models.mine] with url = "http://…/v1"')
    return Project(file, models, prices, _keep(file, sections.get("recordings", {})))


def _keep(file: str, section: object) -> int:
    if not isinstance(section, dict) or not section.keys() <= {"keep"}:
        raise ConfigError(f"{file}: [recordings] takes `keep`, the number of recordings to keep, and nothing else")
    keep = section.get("keep", 50)
    if not isinstance(keep, int) or isinstance(keep, bool) or keep < 0:
        raise ConfigError(f"{file}: recordings.keep must be a whole number of at least 0")
    return keep


def _sections(file: str) -> dict[str, Any]:
    import tomllib

    try:
        data = read_whole(file, MAX_BYTES)
        for number, line in enumerate(data.splitlines(), 1):
            if line.count(b".") > MAX_DOTS and not line.lstrip().startswith(b"#"):
                raise ConfigError(f"{file}: cannot be read: line {number} has more than {MAX_DOTS} dots")
        sections = tomllib.loads(data.decode("utf-8-sig"))
    except OSError as trouble:
        raise ConfigError(f"{file}: cannot be read: {trouble.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: cannot be read: it is not UTF-8") from None
    except ValueError as trouble:  # what is no TOML, and numbers that are too large
        raise ConfigError(f"{file}: cannot be read: {trouble}") from None
    except RecursionError:
        raise ConfigError(f"{file}: cannot be read: it nests too deep") from None
    for name in sections:
        if name not in SECTIONS:
            near = did_you_mean(name, SECTIONS)
            raise ConfigError(f"{file}: there is no section [{name}]{f'; {near}' if near else ''}")
    return sections
