"""What a run store must do (runs.md §5), for one of somebody's own: a table of a database, say.

Owns the interface alone. Nothing of Halo imports it while it runs. Read `stores.py` for two that do it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol


class RunJournal(Protocol):
    """One run's journal, claimed by whoever has it."""

    def lines(self) -> Iterator[bytes]:
        """All lines so far, as they stand."""
        ...

    def append(self, data: bytes) -> None:
        """Adds whole lines. Raises `KeepingError`."""
        ...

    def sync(self) -> None:
        """Waits until all is on the disk. Raises `KeepingError`."""
        ...

    def release(self) -> None:
        """Gives the claim back; the journal stays."""
        ...

    def delete(self) -> None:
        """The run has ended: the journal goes, and the claim with it."""
        ...


class RunStore(Protocol):
    """Keeps journals by run id."""

    def create(self, run_id: str, lines: Iterable[bytes] = ()) -> RunJournal:
        """A new, claimed journal, which nobody sees before all of `lines` are in it and on the disk. Raises
        `KeepingError`."""
        ...

    def claim(self, run_id: str) -> RunJournal:
        """The journal of a run that goes on. Raises `RunConflict` where somebody has it, `RunUnknown` where none is."""
        ...

    def add(self, run_id: str, line: Mapping[str, Any]) -> None:
        """Adds a line to a journal that somebody else may have claimed. Raises `RunUnknown`, `KeepingError`."""
        ...

    def ids(self) -> list[str]:
        """The runs that are kept, the oldest first. Raises `KeepingError`."""
        ...

    def peek(self, run_id: str) -> Iterator[bytes]:
        """A journal's lines, claimed or not. Raises `RunUnknown`, `KeepingError`."""
        ...
