"""What a host gives, as values of the language: the one place where the library takes a value up."""

from __future__ import annotations

from ..language.values import plain
from .errors import HaloError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..language.values import Value


def given_value(value: object, what: str) -> Value:
    """A copy of a value, in which tuples are lists and keys are texts. Raises `HaloError` for what is no JSON."""
    try:
        return plain(value)
    except ValueError as trouble:
        raise HaloError("ARGUMENT_TYPE", f"{what} is no JSON: {trouble}") from None


def given_arguments(args: Mapping[str, object] | None) -> dict[str, Value]:
    """The arguments of a run. Raises `HaloError` for what is no JSON."""
    return {name: given_value(value, f"the argument `{name}`") for name, value in (args or {}).items()}
