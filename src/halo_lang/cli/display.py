"""The live display of a run on a terminal: each running branch, tokens as they come, the cost so far (cli.md).

Owns the screen's last lines, redrawn at most ten times a second by the event loop itself. Shows on stderr; what is
printed goes above it. Never used where stderr is no terminal, or a dumb one.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import contextmanager
from os import get_terminal_size

from .output import Output, visible
from .programs import wants_colour

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..boundary.call import Answer, Call, Scope
    from ..doors.spend import Ledger
    from ..language.values import Value

REDRAW_S = 0.1
ROWS = 12
"""Branches that are shown; of more there is a count."""

TAIL = 400
"""Characters of an answer under way that are kept to be shown."""

NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"
"""While rows are drawn the terminal breaks none of them, however wide its characters are."""


class Display(Output):
    """Shows a run while it goes. Draws nothing before the first stage, nor after `close`."""

    watches = True

    def __init__(self, *, as_document: bool, quiet: bool = False) -> None:
        super().__init__(as_document=as_document, quiet=quiet)
        self._stages: dict[tuple[str, Scope], tuple[str, float]] = {}
        self._said: dict[tuple[str, Scope], str] = {}
        self._ledger: Ledger | None = None
        self._began = time.monotonic()
        self._dim, self._plain = ("\x1b[2m", "\x1b[0m") if wants_colour() else ("", "")
        self._drawn = 0
        self._held = 0
        self._closed = False
        self._next: asyncio.TimerHandle | None = None

    def printed(self, value: Value) -> None:
        self._erase()
        super().printed(value)

    published = printed

    def logged(self, value: Value) -> None:
        self._erase()
        super().logged(value)

    def stage_began(self, number: str, target: str, scope: Scope) -> None:
        self._stages[(number, scope)] = (target, time.monotonic())
        if self._next is None and not self._closed:
            self._next = asyncio.get_running_loop().call_later(REDRAW_S, self._redraw)

    def stage_ended(self, number: str, target: str, scope: Scope) -> None:
        self._stages.pop((number, scope), None)
        self._said.pop((number, scope), None)

    def tokens(self, call: Call, text: str) -> None:
        key = (call.stage, call.scope)
        self._said[key] = (self._said.get(key, "") + text)[-TAIL:]

    def answered(self, call: Call, answer: Answer, cost: int) -> None:
        self._said.pop((call.stage, call.scope), None)

    def spends(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def close(self) -> None:
        self._closed = True
        if self._next is not None:
            self._next.cancel()
        self._erase()

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """While something else is written to the terminal."""
        self._held += 1
        self._erase()
        try:
            yield
        finally:
            self._held -= 1

    def _redraw(self) -> None:
        """Draws, and again in a while. What is printed in between erases: so no more is drawn than that."""
        if self._closed:
            return
        if not self._held:
            columns, lines = _size()
            rows = [visible(row)[:columns] for row in self._rows(columns, min(ROWS, lines - 3))]
            body = f"\x1b[K{self._plain}\n{self._dim}".join(rows)
            sys.stderr.write(f"{self._erasing()}{NO_WRAP}{self._dim}{body}\x1b[K{self._plain}{WRAP}")
            sys.stderr.flush()
            self._drawn = len(rows)
        self._next = asyncio.get_running_loop().call_later(REDRAW_S, self._redraw)

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write(self._erasing())
            sys.stderr.flush()
            self._drawn = 0

    def _erasing(self) -> str:
        """What takes the drawn rows away and leaves the cursor where the first of them began."""
        if not self._drawn:
            return ""
        return "\r" + (f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else "") + "\x1b[J"

    def _rows(self, columns: int, most: int) -> list[str]:
        now = time.monotonic()
        rows = []
        for (number, scope), (target, began) in list(self._stages.items())[-max(1, most) :]:
            branch = f" [{', '.join(map(str, scope))}]" if scope else ""
            head = f"{number:<6} {target}{branch} {now - began:.1f}s "
            said = visible(self._said.get((number, scope), "")).replace("\n", " ").replace("\t", " ")
            room = columns - len(head)
            rows.append(head + (said[-room:] if room > 8 else ""))
        if len(self._stages) > len(rows):
            rows.append(f"… and {len(self._stages) - len(rows)} more")
        return [*rows, f"{now - self._began:.1f}s{self._spending()}"]

    def _spending(self) -> str:
        ledger = self._ledger
        if ledger is None:
            return ""
        reserved = f" and ${ledger.reserved / 1e9:.4f} reserved" if ledger.reserved else ""
        return f" · ${ledger.spent / 1e9:.4f} spent{reserved}"


def _size() -> tuple[int, int]:
    """Columns that may be filled, and lines, of the terminal."""
    try:
        columns, lines = get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        columns, lines = 80, 24
    return max(20, (columns or 80) - 1), lines or 24
