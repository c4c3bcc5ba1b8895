"""Functions and classes as described providers (library.md).

Owns what becomes a method, its arguments and a setting. A class whose methods none is marked with `@tool` is a provider
all the same: its public methods, whose effect is then not described. Everything that is wrong is said at once, before
anything runs.
"""

from __future__ import annotations

import inspect
import re
import typing
from typing import Any

from ...boundary.host import ConfigError
from ...catalog.builtin import PROVIDERS
from ...catalog.describe import Method, Provider, Setting
from ...catalog.marks import MARK, Mark
from ...language.record import Record
from .calling import CLOSING, Started, started
from .types import schema_of, setting_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Start = Callable[[Mapping[str, Any]], Started]

MAX_METHODS = 200

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_SECRET = re.compile(r"(\A|_)(key|token|secret|password|credentials?)\Z")
_SENTENCE = re.compile(r"(?<=[.!?])\s")


class Own(Record):
    """A provider of somebody's own: its description, and what starts it with settings by name."""

    provider: Provider
    start: Start


def described(name: str, given: object, origin: str = "") -> Own:
    """The provider that a class, a function or a list of functions is, under a name. `origin` is the package that it
    comes from. Raises `ConfigError`, which says what cannot be described and why."""
    refuse_name(name)
    if isinstance(given, type):
        return _of_class(name, given, origin)
    if inspect.isroutine(given):
        return _of_functions(name, [given], origin)
    if isinstance(given, list | tuple) and given and all(inspect.isroutine(one) for one in given):
        return _of_functions(name, list(given), origin)
    what = type(given).__name__
    raise ConfigError(
        f"the provider `{name}` must be a class, a function or a list of functions, and is of type {what}"
    )


def named_alone(name: str) -> Own:
    """A provider of which nothing but the name is known: any settings, methods and effects not described."""
    refuse_name(name)

    def start(_: Mapping[str, Any]) -> Started:
        raise ConfigError(f'the provider `{name}` is known by its name alone; runtime.register("{name}", …) gives it')

    return Own(Provider(name, "tool", "", (), lambda _: None, open=True), start)


def refuse_name(name: object) -> None:
    """Raises `ConfigError` for what cannot be a provider's name."""
    if not isinstance(name, str) or not _NAME.match(name):
        raise ConfigError(f"a provider's name is a word of letters, digits and `_`, not {str(name)[:60]!r}")
    if name in PROVIDERS:
        raise ConfigError(f"`{name}` is a provider of Halo's own, which no other replaces; choose another name")


# Classes ----------------------------------------------------------------------------------------------------------


def _of_class(name: str, cls: type, origin: str) -> Own:
    found = dict(_functions_of(cls))
    marked = {n: f for n, f in found.items() if _mark(f) is not None}
    chosen = marked or {n: f for n, f in found.items() if not n.startswith("_") and n not in CLOSING}
    if not chosen:
        raise ConfigError(f"the class {cls.__name__} has no methods that could be a tool's")
    if len(chosen) > MAX_METHODS:
        raise ConfigError(f"the class {cls.__name__} has more than {MAX_METHODS} methods; mark those that count")
    methods = tuple(_method(n, f, f"{name}.{n}", bound=not isinstance(f, staticmethod)) for n, f in chosen.items())
    settings = tuple(_settings(cls, name))
    about = _sentence(cls.__doc__) if cls.__doc__ != object.__doc__ else ""
    provider = Provider(name, "tool", about, settings, lambda _: methods, origin=origin)
    return Own(provider, lambda given: started(provider, cls, methods, given))


def _functions_of(cls: type) -> Iterator[tuple[str, Any]]:
    """The functions of a class and of those above it, the nearest of a name, in the order in which they are written."""
    for above in reversed(cls.__mro__[:-1]):
        for name, member in vars(above).items():
            if inspect.isfunction(member) or isinstance(member, staticmethod | classmethod):
                yield name, member


def _settings(cls: type, name: str) -> Iterator[Setting]:
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return
    making = getattr(cls, "__init__", None)
    kinds = {} if making is object.__init__ else _kinds_of(making, f"{name}(…)")
    for parameter in parameters:
        where = f"the setting `{parameter.name}` of {name}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"{where} must be a plain parameter: no `*`, `**` or `/`")
        schema = schema_of(kinds.get(parameter.name, Any), where)
        default = parameter.default
        keeps = isinstance(default, bool | int | float | str)
        yield Setting(
            parameter.name,
            setting_type(schema),
            schema.get("description") or f"{_words(parameter.name)}.",
            default is parameter.empty,
            parameter.kind is parameter.POSITIONAL_OR_KEYWORD,
            bool(_SECRET.search(parameter.name)),
            default if keeps and default is not parameter.empty else None,
            schema=schema,
        )


# Functions --------------------------------------------------------------------------------------------------------


def _of_functions(name: str, functions: list[Any], origin: str) -> Own:
    found = {getattr(f, "__name__", ""): f for f in functions}
    if len(found) != len(functions):
        raise ConfigError(f"the provider `{name}` has two functions of one name")
    methods = tuple(_method(n, f, f"{name}.{n}", bound=False) for n, f in found.items())
    about = methods[0].about if len(methods) == 1 else f"{len(methods)} functions."
    provider = Provider(name, "tool", about, (), lambda _: methods, origin=origin)
    return Own(provider, lambda _: Started(name, methods, found))


def _method(name: str, function: Any, where: str, *, bound: bool) -> Method:
    """The description of one function; `bound`: its first parameter is the object or class that it belongs to."""
    if not _NAME.match(name):
        raise ConfigError(f"`{where}` cannot be a method's name: give the function a name of letters, digits and `_`")
    mark = _mark(function)
    plain = function.__func__ if isinstance(function, staticmethod | classmethod) else function
    schema = _schema(plain, where, bound=bound, strict=mark is not None)
    about = _sentence(inspect.getdoc(plain)) or f"{_words(name)}."
    said = mark or Mark()
    return Method(name, about, schema, said.effect, said.idempotent, said.timeout_s)


def _schema(function: Any, where: str, *, bound: bool, strict: bool) -> dict[str, Any]:
    """The schema of a function's arguments. Where it is not `strict`, a type that is missing or has no form in JSON
    stands for any value."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise ConfigError(f"`{where}` cannot be described: its parameters are not known") from None
    kinds = _kinds_of(function, where, strict=strict)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters[1 if bound else 0 :]:
        place = f"the parameter `{parameter.name}` of `{where}`"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(f"{place} must be a plain parameter: no `*`, `**` or `/`")
        if strict and parameter.name not in kinds:
            raise ConfigError(f"{place} has no type; write one, as in `{parameter.name}: str`")
        try:
            schema = schema_of(kinds.get(parameter.name, Any), place)
        except ConfigError:
            if strict:
                raise
            schema = {}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(parameter.default, bool | int | float | str):
            schema = {**schema, "default": parameter.default}
        properties[parameter.name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _kinds_of(function: Any, where: str, *, strict: bool = True) -> dict[str, Any]:
    """The types of a function's parameters, those that are written as text read."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as trouble:  # a type that is written as text can be any code
        if not strict:
            return {}
        raise ConfigError(f"the types of `{where}` cannot be read: {type(trouble).__name__}: {trouble}") from None


def _mark(function: Any) -> Mark | None:
    found = getattr(function, MARK, None) or getattr(getattr(function, "__func__", None), MARK, None)
    return found if isinstance(found, Mark) else None


def _sentence(text: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    first = " ".join((text or "").strip().split("\n\n")[0].split())
    sentence = _SENTENCE.split(first, maxsplit=1)[0][:500]
    return "".join(c if c.isprintable() else "?" for c in sentence)


def _words(name: str) -> str:
    words = name.replace("_", " ").strip() or name
    return words[:1].upper() + words[1:]
