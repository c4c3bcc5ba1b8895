"""Rows of a database as JSON, within bounds (tools.md §2, `Sql`).

Owns what each kind of value becomes: dates and times ISO 8601 text, decimals text (exact, and compared as numbers by
the language), bytes an object with `base64`, numbers that JSON lacks their names. Pure.
"""

from __future__ import annotations

from base64 import b64encode
from datetime import date, datetime, time
from decimal import Decimal
from math import isfinite

from ...boundary.host import ToolError
from ...language.values import to_json
from ..results import LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...language.values import Value


_LESS = "select fewer columns, or ask for fewer rows by WHERE or LIMIT"
TOO_LARGE = f"the result has more than {LIMIT:,} bytes; {_LESS}"


class Rows:
    """Collects rows as objects. Raises `ToolError` as soon as they are more than a result may have."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = _distinct(names)
        self._size = 2
        self.values: list[Value] = []

    def add(self, row: Sequence[object]) -> None:
        made = {name: json_value(value) for name, value in zip(self._names, row, strict=True)}
        self._size += len(to_json(made).encode("utf-8", "replace")) + 1
        if self._size > LIMIT:
            raise ToolError(f"the result has more than {LIMIT:,} bytes after {len(self.values):,} rows; {_LESS}")
        self.values.append(made)


def json_value(value: object) -> Value:
    """A value of a database as JSON."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else _NAMES[str(value)]
    if isinstance(value, Decimal):
        return format(value, "f") if value.is_finite() else _NAMES.get(str(value).lower(), "NaN")
    if isinstance(value, bytes | bytearray | memoryview):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    return str(value)


_NAMES = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN", "infinity": "Infinity", "-infinity": "-Infinity"}


def _distinct(names: Iterable[str]) -> list[str]:
    """The names of columns; one that is there already gets a number: `id`, `id_2`."""
    made: dict[str, None] = {}
    for name in names:
        chosen, number = name, 2
        while chosen in made:
            chosen, number = f"{name}_{number}", number + 1
        made[chosen] = None
    return list(made)
