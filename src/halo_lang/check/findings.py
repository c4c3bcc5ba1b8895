"""What the checker has found so far, and the words for it.

Owns the one list that all of the checker's parts add to. Keeps the search for near names bounded, so that a file of
mistakes is checked in time linear in its size. Read `check.py` next.
"""

from __future__ import annotations

from ..language.diagnostics import ERROR, WARNING, Diagnostic, did_you_mean
from ..language.source import Span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class Placed(Protocol):
        @property
        def start(self) -> int: ...
        @property
        def end(self) -> int: ...


_NEAR_BUDGET = 10_000
"""Names that are compared in one file to find near ones: past it errors come without that help."""

_NEAR_AT_MOST = 2_000
"""Names that are compared for one error."""


class Findings:
    """The diagnostics of one file as they are found. `errors` counts the errors among them."""

    __slots__ = ("_budget", "errors", "items")

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []
        self.errors = 0
        self._budget = _NEAR_BUDGET

    def error(self, code: str, message: str, at: Placed, help: str | None = None) -> None:  # noqa: A002
        self.errors += 1
        self.items.append(Diagnostic(code, message, Span(at.start, at.end), ERROR, help))

    def warning(self, code: str, message: str, at: Placed, help: str | None = None) -> None:  # noqa: A002
        self.items.append(Diagnostic(code, message, Span(at.start, at.end), WARNING, help))

    def add(self, diagnostic: Diagnostic) -> None:
        """Takes over what another part has found."""
        self.errors += diagnostic.severity == ERROR
        self.items.append(diagnostic)

    def near(self, name: str, candidates: Iterable[str], otherwise: str | None = None) -> str | None:
        """The help line that offers the candidate most like `name`, else `otherwise`."""
        if self._budget <= 0 or len(name) > 100:
            return otherwise
        pool = _first(candidates, _NEAR_AT_MOST)
        self._budget -= len(pool) + 10
        return did_you_mean(name, pool) or otherwise


def listed(names: Iterable[str], none: str = "none") -> str:
    """`a`, `b` and `c`: names as they stand in a message, at most ten of them."""
    first = _first(names, 11)
    shown = [f"`{name}`" for name in first[:10]]
    if len(first) > 10:
        return ", ".join(shown) + " and more"
    if len(shown) < 2:
        return shown[0] if shown else none
    return ", ".join(shown[:-1]) + " and " + shown[-1]


def a(noun: str) -> str:
    """The noun with its article."""
    return f"an {noun}" if noun[0] in "aeiouAEIOU" else f"a {noun}"


def _first(names: Iterable[str], most: int) -> list[str]:
    found: list[str] = []
    for name in names:
        if len(found) == most:
            break
        found.append(name)
    return found
