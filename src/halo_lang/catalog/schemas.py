"""JSON Schema in full, for schemas that Halo did not write: an MCP server's, a package's (tools.md §1).

Owns what the few keywords of `describe.value_error` do not cover. Halo's own methods are described in those alone, so
nothing is imported for them; a stranger's schema may hold anything, and what is checked wrongly there lets arguments
through. So this asks a well-kept validator: its regular expressions take linear time, it looks nothing up outside the
schema, and a schema that refers to itself does not make it run away. Pure; never raises for what a schema holds.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..language.values import Value

MAX_DEPTH = 64
"""How deep a schema, or a value that is held to one, may nest."""

MAX_STEPS = 200_000
"""How many looks at a value a schema may ask for; past them it is not checked. Alternatives that refer to each other
double at every step, so that a short schema could keep the validator busy for ever."""

_MAX_KNOWN = 4_000
_SHOWN = 300

_PLAIN = frozenset(
    {"type", "enum", "minimum", "maximum", "items", "properties", "required", "additionalProperties"}
    | {"description", "title", "default", "examples", "format", "$schema", "$comment", "deprecated", "readOnly"}
)
"""Keywords that `describe` checks itself, and those that check nothing."""

_UNFOLLOWED = frozenset({"$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor"})

_known: dict[int, tuple[Mapping[str, Any], Any, int, int]] = {}
"""Schemas by their identity, each with its validator (None: nothing is left for it), and what it asks for
(`_weight`)."""


def schema_trouble(schema: Mapping[str, Any]) -> str | None:
    """Why nothing can be checked by a schema, in words, or None."""
    if nests_deeper(schema, MAX_DEPTH):
        return f"it nests more than {MAX_DEPTH} deep"
    try:
        _compiled(schema)
    except Exception as trouble:  # whatever the validator minds
        return str(trouble).partition("\n")[0][:_SHOWN] or type(trouble).__name__
    return None


def full_error(schema: Mapping[str, Any], args: Mapping[str, Value]) -> str | None:
    """What is wrong with arguments by all that their schema says, or None. A schema that nothing can be checked by
    refuses nothing."""
    known = _known.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        validator = _validator(schema)
        known = _known[id(schema)] = schema, validator, *((0, 0) if validator is None else _weight(schema))
    _, validator, steps, again = known
    if validator is None:
        return None
    if nests_deeper(args, MAX_DEPTH):
        return f"the arguments nest more than {MAX_DEPTH} deep"
    if steps > MAX_STEPS or (again > 1 and steps * again ** _depth(args) > MAX_STEPS):
        return None
    return None if validator.is_valid(dict(args)) else _said(schema, args, validator)


def nests_deeper(value: object, most: int) -> bool:
    """Whether lists and objects nest more than `most` deep."""
    return _depth(value, most + 1) > most


def _depth(value: object, most: int = MAX_DEPTH) -> int:
    """How deep lists and objects nest, no further than `most`."""
    level: list[Any] = [value]
    for depth in range(most):
        inside = [one for one in level if isinstance(one, dict | list | tuple)]
        if not inside:
            return depth
        level = [inner for one in inside for inner in (one.values() if isinstance(one, dict) else one)]
    return most


def _validator(schema: Mapping[str, Any]) -> Any:
    if _is_plain(schema, top=True) or nests_deeper(schema, MAX_DEPTH):
        return None
    try:
        return _compiled(schema)
    except Exception:  # as `schema_trouble`
        return None


def _is_plain(schema: Any, *, top: bool = False) -> bool:
    if not isinstance(schema, dict) or not schema.keys() <= _PLAIN:
        return False
    if not top and ("properties" in schema or "required" in schema or "additionalProperties" in schema):
        return False
    if "items" in schema and not _is_plain(schema["items"]):
        return False
    return isinstance(schema.get("additionalProperties", False), bool) and all(
        _is_plain(inner) for inner in schema.get("properties", {}).values()
    )


def _weight(root: Mapping[str, Any]) -> tuple[int, int]:
    """How many looks a schema asks for where it refers to nothing twice over, and how often it comes back to a part of
    itself on the way. What refers in a way that is not followed here counts as too much."""
    weights: dict[int, tuple[int, int]] = {}
    under_way: set[int] = set()

    def weigh(part: Any) -> tuple[int, int]:
        if isinstance(part, list):
            found = [weigh(one) for one in part]
        elif not isinstance(part, dict):
            return 0, 0
        elif id(part) in under_way:
            return 1, 1
        elif id(part) in weights:
            return weights[id(part)]
        elif not _UNFOLLOWED.isdisjoint(part) and (part is not root or part.keys() & _UNFOLLOWED != {"$id"}):
            return MAX_STEPS + 1, 0
        else:
            under_way.add(id(part))
            found = [weigh(inner) for key, inner in part.items() if key not in ("$defs", "definitions")]
            if "$ref" in part:
                target = _target(root, part["$ref"])
                found.append((MAX_STEPS + 1, 0) if target is None else weigh(target))
            under_way.discard(id(part))
        steps = min(1 + sum(one for one, _ in found), MAX_STEPS + 1)
        again = min(sum(one for _, one in found), MAX_STEPS + 1)
        if isinstance(part, dict):
            weights[id(part)] = steps, again
        return steps, again

    try:
        return weigh(root)
    except RecursionError:  # a long chain of references
        return MAX_STEPS + 1, 0


def _target(root: Any, reference: Any) -> Any:
    """What a reference within a schema points at, or None."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")) or "%" in reference:
        return None
    found = root
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        elif isinstance(found, dict) and step in found:
            found = found[step]
        else:
            return None
    return found


def _compiled(schema: Mapping[str, Any]) -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(
        dict(schema), offline=True, validate_formats=False, pattern_options=jsonschema_rs.RegexOptions()
    )


def _said(schema: Mapping[str, Any], args: Mapping[str, Value], validator: Any) -> str:
    """The words for arguments that do not fit. The validator's own, but where the schema refers to itself: finding them
    can then take for ever, so that the argument at fault is all that is named."""
    from ..language.values import to_json

    text = to_json(dict(schema))
    if '"$ref"' not in text and '"$dynamicRef"' not in text and '"$recursiveRef"' not in text:
        error = next(iter(validator.iter_errors(dict(args))))
        where = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in error.instance_path[1:])
        named = f"the argument `{error.instance_path[0]}`" if error.instance_path else "the arguments:"
        return f"{named}{f' at {where[:_SHOWN]}' if where else ''} {_clipped(error.message)}"
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    for name, inner in schema.get("properties", {}).items():
        if name in args and isinstance(inner, dict) and not _fits({**inner, **shared}, args[name]):
            return f"the argument `{name}` does not fit its schema: {_clipped(to_json(inner))}"
    return f"the arguments do not fit their schema: {_clipped(text)}"


def _fits(schema: Mapping[str, Any], value: Value) -> bool:
    try:
        return bool(_compiled(schema).is_valid(value))
    except Exception:  # what refers to the whole schema cannot be looked at alone
        return True


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
