"""How providers describe themselves (tools.md §1).

Owns the records by which a provider of tools says what it has: its settings, its methods, their arguments, effects and
limits. The checker, the plan, the policies, the approval prompt, the tool list of a model and the documentation are
all derived from these. Never starts a provider. The built-in ones stand in `builtin.py`.
"""

from __future__ import annotations

from ..language.record import Record
from .schemas import full_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from ..language.values import Value

    Settings: TypeAlias = Mapping[str, Any]
    """A provider's arguments by name; a value may be, or hold, an `EnvRef`."""

READ, WRITE, EXTERNAL = "read", "write", "external"
EFFECTS = (READ, WRITE, EXTERNAL)


class EnvRef(Record):
    """`Env.NAME`: a variable of the environment, not yet resolved (language.md §3)."""

    name: str


class Method(Record):
    """One thing that a provider can do.

    `schema` is the JSON Schema of its arguments, an object whose properties stand in positional order. `effect` is
    `"read"`, `"write"`, `"external"` or None where it is not described (which counts as external). `idempotent`:
    twice is the same as once. `internal` names arguments that Halo itself gives and no caller may. `claimed`: the
    effect is what an MCP server says of itself, as `halo.lock` keeps it (plan.md).
    """

    name: str
    about: str
    schema: dict[str, Any]
    effect: str | None
    idempotent: bool = False
    timeout_s: float | None = None
    internal: tuple[str, ...] = ()
    claimed: bool = False

    def parameters(self) -> tuple[str, ...]:
        """The names that a caller may give, in positional order."""
        return tuple(n for n in self.schema.get("properties", {}) if n not in self.internal)

    def required(self) -> tuple[str, ...]:
        return tuple(self.schema.get("required", ()))

    def offered_schema(self) -> dict[str, Any]:
        """The schema as a model is given it: without the internal arguments."""
        properties = {n: s for n, s in self.schema.get("properties", {}).items() if n not in self.internal}
        return {**self.schema, "properties": properties}


class Setting(Record):
    """An argument of a provider. `type` is a type of the language (`String`, `Boolean`, …), `Duration`, or `Env`
    for a list of `Env.NAME`. Positional ones stand first, in order; `rest`: the last of them takes all further
    positional arguments, each a String, as a tuple (or, by its name, a list of them). `schema` is the JSON Schema that
    the value is held to besides, where the type does not say all."""

    name: str
    type: str
    about: str
    required: bool = False
    positional: bool = False
    secret: bool = False
    default: Any = None
    rest: bool = False
    schema: dict[str, Any] = {}  # noqa: RUF012 -- nobody writes into a record


class Provider(Record):
    """A provider as `tool NAME : Provider(…)` names it. `keyword` is `tool` or `store`.

    `describe` gives the methods for some settings, in the provider's own order, or None where they cannot be known
    without starting it. It is pure. `open`: it says nothing of its settings, so any are taken; positional ones under
    their places, `"0"`, `"1"`. `broken` says why one of another package cannot be used. `origin` is the package that
    it comes from, empty for Halo's own and for those registered in code. `cases` are settings under which methods have
    another effect than without them, each in words (`for …`) and as they are.
    """

    name: str
    keyword: str
    about: str
    settings: tuple[Setting, ...]
    describe: Callable[[Settings], tuple[Method, ...] | None]
    open: bool = False
    broken: str = ""
    origin: str = ""
    cases: tuple[tuple[str, Settings], ...] = ()


def arguments_error(method: Method, args: Mapping[str, Value], *, by_author: bool = False) -> str | None:
    """What is wrong with arguments for a method, in words that a model can act on, or None (tools.md §1).

    Checks required and unknown names, and of each value `type`, `enum`, `minimum`, `maximum` and the `type` of
    `items`; where the schema says more than that, which none of Halo's own does, all of it (`schemas.py`). Internal
    arguments are unknown ones unless the author's own text made them (`by_author`).
    """
    properties: dict[str, Any] = method.schema.get("properties", {})
    for name in method.required():
        if name not in args:
            return f"the argument `{name}` is missing; {_signature(method)}"
    for name, value in args.items():
        wanted = properties.get(name)
        if wanted is None or (name in method.internal and not by_author):
            if method.schema.get("additionalProperties", False) is False:
                return f"there is no argument `{name}`; {_signature(method)}"
            continue
        trouble = value_error(wanted, value)
        if trouble:
            return f"the argument `{name}` {trouble}"
    return full_error(method.schema, args)


def _signature(method: Method) -> str:
    required = method.required()
    names = [n if n in required else f"{n}?" for n in method.parameters()]
    return f"`{method.name}` takes {', '.join(names) or 'no arguments'}"


_OF_TYPE: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def value_error(schema: dict[str, Any], value: Value) -> str | None:
    """What is wrong with a value for the schema of one argument (`must be string`), or None."""
    if not isinstance(schema, dict):  # true and false are schemas too, which a stranger may write
        return None
    wanted = schema.get("type")
    if wanted is not None:
        names = wanted if isinstance(wanted, list) else [wanted]
        if not any(_is_type(value, n) for n in names):
            return f"must be {' or '.join(names)}"
    if "enum" in schema and value not in schema["enum"]:
        return "must be one of " + ", ".join(str(v) for v in schema["enum"])
    if "minimum" in schema and isinstance(value, int | float) and value < schema["minimum"]:
        return f"must be at least {schema['minimum']}"
    if "maximum" in schema and isinstance(value, int | float) and value > schema["maximum"]:
        return f"must be at most {schema['maximum']}"
    if isinstance(value, list) and "items" in schema:
        for at, item in enumerate(value):
            trouble = value_error(schema["items"], item)
            if trouble:
                return f"at {at} {trouble}"
    return None


def _is_type(value: Value, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _OF_TYPE.get(name, (object,)))
