"""How long values are as JSON: a value that would be too long is not made.

Owns the bound on texts, lists and objects that a program makes. A list that holds one value many times takes hardly any
memory, until somebody writes it; nested, it would then be longer than any memory. So its length is worked out when it
is made, from what it holds.
"""

from __future__ import annotations

from .failure import RunFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from ..language.values import Value

    T = TypeVar("T", bound="list[Value] | dict[str, Value]")

MAX_TEXT = 64 << 20
"""Characters that a text with insertions, or a list or an object as JSON, may have."""

_WORTH_KEEPING = 1_000
"""Characters from which on the length of a list or an object is kept: shorter ones are quickly counted again."""

_MOST_KEPT = 1_000


class Sizes:
    """The lengths of values that a run has made. Of long ones they are kept, with the values themselves, which nobody
    changes: so one that stands in many others is counted once."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[int, tuple[int, Value]] = {}

    def checked(self, made: T) -> T:
        """A list or an object that was just made. Raises `RunFailure` where it would have more than `MAX_TEXT`
        characters as JSON."""
        if _characters(made) + sum([self._of(v) for v in _items(made) if v.__class__ in _HOLDERS]) > MAX_TEXT:
            raise RunFailure("ARGUMENT_TYPE", f"a value would have more than {MAX_TEXT:,} characters as JSON")
        return made

    def _of(self, value: Value) -> int:
        """The characters of a list or an object that was checked when it was made: so there is an end to it."""
        kept = self._kept
        known = kept.get(id(value))
        if known is not None:
            return known[0]
        total, waiting = 0, [value]
        while waiting:
            one = waiting.pop()
            total += _characters(one)
            for item in _items(one):
                if item.__class__ in _HOLDERS:
                    known = kept.get(id(item))
                    if known is None:
                        waiting.append(item)
                    else:
                        total += known[0]
        if total >= _WORTH_KEEPING:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[id(value)] = total, value
        return total


_HOLDERS = (list, dict)


def _items(value: Value) -> list[Value]:
    return list(value.values()) if isinstance(value, dict) else value  # type: ignore[return-value]


def _characters(value: Value) -> int:
    """The characters of a list or an object without those of the lists and objects in it."""
    total = 2
    if isinstance(value, dict):
        total += sum(map(len, value)) + 4 * len(value)
    for item in _items(value):
        kind = item.__class__
        if kind is str:
            total += len(item) + 3  # type: ignore[arg-type]
        elif kind is int:
            total += 2 + item.bit_length() // 4  # type: ignore[union-attr]
        else:
            total += 5
    return total
