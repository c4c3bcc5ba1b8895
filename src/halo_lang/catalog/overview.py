"""What a provider can do at most, for whoever shows it without a program: `halo tools` and the pages in `docs/tools`.

Owns the questions to a description that has no settings yet: which methods there are with everything permitted, what
each needs, and where its effect is another one. Pure.
"""

from __future__ import annotations

from ..language.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .describe import Method, Provider


def all_methods(provider: Provider) -> tuple[Method, ...] | None:
    """The methods that a provider has where all of its switches are on; None where they are not known."""
    return provider.describe(_switches(provider))


def switch_of(provider: Provider, method: Method) -> str | None:
    """The setting that must be true for a method to be there, or None."""
    for name in _switches(provider):
        without = provider.describe({**_switches(provider), name: False})
        if without is not None and all(m.name != method.name for m in without):
            return name
    return None


def other_effects(provider: Provider, method: Method) -> tuple[tuple[str, str | None], ...]:
    """Where a method has another effect than its first one: when, in words, and which."""
    found = []
    for when, settings in provider.cases:
        for one in provider.describe({**_switches(provider), **settings}) or ():
            if one.name == method.name and one.effect != method.effect:
                found.append((when, one.effect))
    return tuple(found)


def signature(method: Method) -> str:
    """A method with its arguments, those that may be left out with a `?`: `read(path, from?, lines?)`."""
    required = method.required()
    return f"{method.name}({', '.join(n if n in required else f'{n}?' for n in method.parameters())})"


def argument_about(method: Method, name: str) -> str:
    """An argument's type, and what its schema says of it: `string. The key.`"""
    schema = method.schema["properties"][name]
    if not isinstance(schema, dict):  # true and false are schemas too
        return "any"
    kind = schema.get("type", "any")
    said = kind if isinstance(kind, str) else " or ".join(map(str, kind))
    if "enum" in schema:
        said = choices(schema)
    return f"{said}. {schema['description']}" if schema.get("description") else said


def choices(schema: dict[str, Any]) -> str:
    """The values that a schema lists, as a program writes them: `"celsius" or "fahrenheit"`."""
    return " or ".join(map(to_json, schema["enum"]))


def _switches(provider: Provider) -> dict[str, bool]:
    return {setting.name: True for setting in provider.settings if setting.type == "Boolean"}
