"""Arguments of a called pipeline against its parameters (language.md §4).

Owns the rule that is also applied to what a run is started with. Pure.
"""

from __future__ import annotations

from ..language.values import to_json, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..check.program import Parameter
    from ..language.values import Value


def fitted(parameter: Parameter, value: Value) -> Value:
    """The value as the parameter takes it: a String takes any, as its text. Raises `ValueError` with the reason."""
    wanted = parameter.type
    if wanted == "String":
        return to_text(value)
    if wanted == "Any" or _FITS[wanted](value):
        return value
    shown = to_json(value)
    raise ValueError(
        f"the parameter `{parameter.name}` takes a {wanted}, and got {shown[:80]}{'…' if len(shown) > 80 else ''}"
    )


def with_defaults(parameters: tuple[Parameter, ...], given: Mapping[str, Value]) -> dict[str, Value]:
    """All parameters with their values, in order. Raises `ValueError` for one that does not fit or is missing."""
    values: dict[str, Value] = {}
    for parameter in parameters:
        if parameter.name in given:
            values[parameter.name] = fitted(parameter, given[parameter.name])
        elif parameter.required:
            raise ValueError(f"the parameter `{parameter.name}` is missing")
        else:
            values[parameter.name] = parameter.default
    return values


_FITS: dict[str, Callable[[Value], bool]] = {
    "Number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "Boolean": lambda value: isinstance(value, bool),
    "List": lambda value: isinstance(value, list),
    "Object": lambda value: isinstance(value, dict),
    "Result": lambda value: True,
}
