"""The mark by which a Python function says what it is as a tool's method: `@tool(effect="read")` (library.md).

Owns the decorator alone, which changes nothing about the function; what is made of a marked one stands in
`providers/own`.
"""

from __future__ import annotations

from ..language.record import Record
from .describe import EFFECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    F = TypeVar("F", bound=Callable[..., Any])
else:

    def overload(_: object) -> None:
        return None


MARK = "__halo_tool__"
"""The attribute of a marked function that holds its `Mark`."""

TIMEOUT_S = 60.0


class Mark(Record):
    """What a function says of itself. `effect` is None where it does not say."""

    effect: str | None = None
    idempotent: bool = False
    timeout_s: float = TIMEOUT_S


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(  # noqa: F811
    *, effect: str | None = None, idempotent: bool = False, timeout_s: float = TIMEOUT_S
) -> Callable[[F], F]: ...


def tool(  # noqa: F811
    function: Any = None, /, *, effect: str | None = None, idempotent: bool = False, timeout_s: float = TIMEOUT_S
) -> Any:
    """Marks a function, or a method of a class, as a tool's method.

    `effect` is `"read"`, `"write"` (it changes something that stays under the user's own control here) or `"external"`
    (it acts on the world); without it plans say that the effect is not described, and it counts as external.
    `idempotent`: twice is the same as once. A call that takes longer than `timeout_s` seconds fails.

    Raises `ValueError` for an effect or a time that there is not, and `TypeError` for what is no function.
    """
    if effect is not None and effect not in EFFECTS:
        raise ValueError(f'the effect of a tool is "read", "write" or "external", not {effect!r}')
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s < float("inf"):
        raise ValueError(f"`timeout_s` of a tool must be seconds above 0, not {timeout_s!r}")
    mark = Mark(effect, bool(idempotent), float(timeout_s))

    def marked(one: Any) -> Any:
        if isinstance(one, type) or not (callable(one) or isinstance(one, staticmethod | classmethod)):
            raise TypeError(f"`@tool` marks functions and methods of a class, and {one!r} is none")
        setattr(one, MARK, mark)
        return one

    return marked if function is None else marked(function)
