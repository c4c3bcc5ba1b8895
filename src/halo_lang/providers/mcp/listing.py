"""What a server says of its tools, made into methods (tools.md §2).

Owns the names, the words and the schemas as Halo uses them: everything here comes from a stranger. A name becomes one
that the language can write; a description is set off as the server's words, on one line, bounded, with nothing hidden
in it; a schema by which nothing can be checked gives way to one that takes anything. What is used of a listing is
compared with a lock, or with an earlier listing, by `differences`: whatever does not show there reaches nobody. Pure.
"""

from __future__ import annotations

from ...boundary.host import ToolError
from ...catalog.claims import about_of
from ...catalog.describe import EXTERNAL, READ, Method
from ...catalog.schemas import nests_deeper, schema_trouble
from ...language.record import Record
from ...language.values import to_json
from ..results import LIMIT
from .text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MAX_TOOLS = 1_000
MAX_ABOUT = 1_000
"""Characters of a tool's description."""
MAX_SAID = 300
"""Characters of each description and title in a schema."""
MAX_NAME = 100
MAX_SCHEMA_BYTES = 32 * 1024
MAX_SCHEMA_DEPTH = 32

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_ONES = ("items", "additionalItems", "contains", "not", "if", "then", "else", "propertyNames", "additionalProperties")
_MORE = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "patternProperties", "if", "unevaluatedProperties")


class Listed(Record):
    """A server's tool. `name` is the server's own; `method` is what Halo makes of it, with the effect that the server
    claims."""

    name: str
    method: Method


def listed(tools: Iterable[Mapping[str, Any]]) -> dict[str, Listed]:
    """A server's tools by the names that their methods have, in the server's order.

    `tools` hold `name`, `title`, `description`, `inputSchema` and `annotations`, as on the wire. Raises `ToolError` for
    a listing that cannot be used: one name twice, or more tools or text than a listing may have.
    """
    found = list(tools)
    if len(found) > MAX_TOOLS:
        raise ToolError(f"the server lists more than {MAX_TOOLS:,} tools")
    names = [str(tool.get("name") or "") for tool in found]
    twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
    if twice is not None:
        raise ToolError(f"the server lists two tools named `{one_line(twice, 60)}`, so nobody can tell which is meant")
    in_halo = _names_in_halo(names)
    made = {in_halo[name]: Listed(name, _method(in_halo[name], tool)) for name, tool in zip(names, found, strict=True)}
    size = len(to_json(entries(made)).encode("utf-8", "replace"))
    if size > LIMIT:
        raise ToolError(
            f"the server's list of {len(made)} tools has {size:,} bytes, more than the {LIMIT:,} it may have"
        )
    return made


def entries(tools: Mapping[str, Listed]) -> list[Any]:
    """The listing as the answer to the call that asks a tool for its methods (`runtime/described.py`). No effect: it is
    not described before somebody has locked the server."""
    return [{"name": t.method.name, "about": t.method.about, "schema": t.method.schema} for t in tools.values()]


def differences(before: Iterable[Method], after: Iterable[Method]) -> list[str]:
    """What changed between two listings, in words: `log (its description)`, `push (new)`, `diff (gone)`."""
    old, new = {m.name: m for m in before}, {m.name: m for m in after}
    found = []
    for name, method in new.items():
        if name not in old:
            found.append(f"{name} (new)")
            continue
        parts = []
        if method.about != old[name].about:
            parts.append("its description")
        if method.schema != old[name].schema:
            parts.append("its arguments")
        if (method.effect, method.idempotent) != (old[name].effect, old[name].idempotent):
            parts.append("its effect")
        if parts:
            found.append(f"{name} ({', '.join(parts)})")
    return [*found, *(f"{name} (gone)" for name in old if name not in new)]


def _names_in_halo(names: list[str]) -> dict[str, str]:
    """By each of a server's names the one that the language can write: other characters are `_`. Where two come out
    alike the one that is written so keeps it, and the others get a number, in the order of their names."""
    made: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names, key=lambda n: (_plain(n) != n, n)):
        plain, number = _plain(name), 2
        fit = plain
        while fit in taken:
            fit, number = f"{plain}_{number}", number + 1
        taken.add(fit)
        made[name] = fit
    return made


def _plain(name: str) -> str:
    fit = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name[:MAX_NAME])
    return f"_{fit}" if not fit or fit[0].isdigit() else fit


def _method(name: str, tool: Mapping[str, Any]) -> Method:
    hints = tool.get("annotations") or {}
    reads = hints.get("readOnlyHint") is True
    return Method(
        name,
        about_of(_words(tool)),
        _schema(tool.get("inputSchema")),
        READ if reads else EXTERNAL,
        reads or hints.get("idempotentHint") is True,
        claimed=True,
    )


def _words(tool: Mapping[str, Any]) -> str:
    said = tool.get("description") or tool.get("title") or (tool.get("annotations") or {}).get("title") or ""
    return one_line(str(said), MAX_ABOUT)


def _schema(given: object) -> dict[str, Any]:
    """The schema as Halo uses it. Where nothing can be checked by the server's it is one that takes anything."""
    trouble: str | None = None
    if not isinstance(given, dict) or given.get("type", "object") != "object":
        trouble = "it is not of an object"
    elif nests_deeper(given, MAX_SCHEMA_DEPTH):
        trouble = f"it nests more than {MAX_SCHEMA_DEPTH} deep"
    elif len(to_json(given).encode("utf-8", "replace")) > MAX_SCHEMA_BYTES:
        trouble = f"it has more than {MAX_SCHEMA_BYTES:,} bytes"
    elif not _can_be_seen(given):
        trouble = "it has names with characters that cannot be seen"
    elif schema_trouble(given) is not None:
        trouble = "it is no valid JSON Schema, or refers to others"
    if trouble is not None or not isinstance(given, dict):
        about = f"The server's own schema of the arguments is left out: {trouble}."
        return {"type": "object", "description": about, "additionalProperties": True}
    made = {"type": "object", **_cleaned(given)}
    if "additionalProperties" not in made:
        # A schema that is silent on other names allows them. A name that is not among those it has is rather a slip
        # than meant, and a server drops it silently; only a schema that has none, or gathers them elsewhere, is open.
        made["additionalProperties"] = not made.get("properties") or any(key in made for key in _MORE)
    return made


def _can_be_seen(schema: Any) -> bool:
    """Whether the names of all arguments can be shown as they are."""
    if isinstance(schema, list):
        return all(map(_can_be_seen, schema))
    if not isinstance(schema, dict):
        return True
    return all(name.isprintable() for name in schema) and all(map(_can_be_seen, schema.values()))


def _cleaned(schema: Any) -> dict[str, Any]:
    """A schema with its texts as they may be shown, and `true` and `false` as the objects that they stand for."""
    if not isinstance(schema, dict):
        return {} if schema is True else {"not": {}}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("description", "title") and isinstance(value, str):
            made[key] = one_line(value, MAX_SAID)
        elif key in ("default", "examples"):
            made[key] = _shown(value)
        elif key == "$comment" or key.startswith("x-"):
            continue  # words for somebody else
        elif key in _MAPS and isinstance(value, dict):
            made[key] = {name: _cleaned(inner) for name, inner in value.items()}
        elif key in _LISTS and isinstance(value, list):
            made[key] = [_cleaned(inner) for inner in value]
        elif key in _ONES and (isinstance(value, dict) or (isinstance(value, bool) and key == "items")):
            made[key] = _cleaned(value)
        else:
            made[key] = value
    return made


def _shown(value: Any) -> Any:
    """A value that checks nothing, with its texts as they may be shown."""
    if isinstance(value, str):
        return one_line(value, MAX_SAID)
    if isinstance(value, list):
        return [_shown(one) for one in value]
    return {name: _shown(one) for name, one in value.items()} if isinstance(value, dict) else value
