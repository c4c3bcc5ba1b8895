"""Types of Python as JSON Schema, and JSON values as what a function with these types expects.

Owns the list of types that have a form in JSON; any other is refused when the function is described, not when it is
called.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any

from ...boundary.host import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...language.values import Value

_PLAIN: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}
_SCALARS = frozenset(("string", "integer", "number", "boolean", "null"))
_WAY_OUT = "use str, int, float, bool, list, dict, Literal, or one of these or None"


def schema_of(annotation: object, where: str) -> dict[str, Any]:
    """The JSON Schema of a type. `where` names its place, for the `ConfigError` of one that has no form in JSON."""
    if annotation is Any or annotation is object:
        return {}
    if isinstance(annotation, type) and annotation in _PLAIN:
        return {"type": _PLAIN[annotation]}
    if annotation is None:
        return {"type": "null"}
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        schema = schema_of(args[0], where)
        about = next((one for one in args[1:] if isinstance(one, str)), None)
        return schema if about is None else {**schema, "description": about}
    if origin is typing.Literal:
        return _literal(args, where)
    if origin is list:
        return {"type": "array", "items": schema_of(args[0], where)}
    if origin is dict and args[0] is str:
        inner = schema_of(args[1], where)
        return {"type": "object", **({"additionalProperties": inner} if inner else {})}
    if origin is typing.Union or origin is types.UnionType:
        return _union([schema_of(one, where) for one in args], annotation, where)
    raise _refused(annotation, where)


def _literal(values: tuple[Any, ...], where: str) -> dict[str, Any]:
    for value in values:
        if not isinstance(value, str | int | bool | None):
            raise ConfigError(f"{where} has a Literal of {type(value).__name__}; {_WAY_OUT}")
    kinds = list(dict.fromkeys(_PLAIN[type(value)] for value in values))
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": list(values)}


def _union(members: list[dict[str, Any]], annotation: object, where: str) -> dict[str, Any]:
    """One schema for several types: of any one and None, or of types that hold nothing else."""
    if {} in members:
        return {}
    nullable = {"type": "null"} in members
    others = [member for member in members if member != {"type": "null"}]
    if len(others) == 1:
        (only,) = others
        kinds = only["type"] if isinstance(only["type"], list) else [only["type"]]
        made = {**only, "type": list(dict.fromkeys([*kinds, "null"]))}
        if "enum" in only:
            made["enum"] = list(dict.fromkeys([*only["enum"], None]))
        return made
    if all(member.keys() == {"type"} and member["type"] in _SCALARS for member in others):
        return {"type": [member["type"] for member in others] + (["null"] if nullable else [])}
    raise _refused(annotation, where)


def _refused(annotation: object, where: str) -> ConfigError:
    name = getattr(annotation, "__name__", None) if isinstance(annotation, type) else None
    shown = " ".join(str(name or annotation).split())[:120]
    return ConfigError(f"{where} has the type `{shown}`, which has no form in JSON; {_WAY_OUT}")


def setting_type(schema: Mapping[str, Any]) -> str:
    """The type of the language for a provider's setting of this schema."""
    kinds = schema.get("type", ())
    named = {kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null"}
    if len(named) != 1:
        return "Number" if named == {"integer", "number"} else "Any"
    return _SETTINGS[named.pop()]


_SETTINGS = {
    "string": "String",
    "integer": "Number",
    "number": "Number",
    "boolean": "Boolean",
    "array": "List",
    "object": "Object",
}


def fitted(schema: Mapping[str, Any], value: Value) -> Value:
    """A value that fits its schema as the function expects it: a whole number as an int, also inside lists and
    objects."""
    if isinstance(value, float) and schema.get("type") in ("integer", ["integer", "null"]) and value.is_integer():
        return int(value)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [fitted(schema["items"], item) for item in value]
    if isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict):
        return {name: fitted(schema["additionalProperties"], item) for name, item in value.items()}
    return value
