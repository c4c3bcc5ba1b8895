"""The live display of a run on a terminal: each running branch, tokens as they come, the cost so far (cli.md).

Owns the screen's last lines, redrawn at most ten times a second. Shows on stderr; what is printed goes above it. Never
used where stderr is no terminal.
"""

from __future__ import annotations

import time
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from .output import Output, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..boundary.call import Answer, Call, Scope
    from ..doors.spend import Ledger
    from ..language.values import Value

REDRAWS_A_SECOND = 10
ROWS = 12
"""Branches that are shown; of more there is a count."""

TAIL = 400
"""Characters of an answer under way that are kept to be shown."""


class Display(Output):
    """Shows a run while it goes."""

    watches = True

    def __init__(self, *, as_document: bool) -> None:
        super().__init__(as_document=as_document)
        self._stages: dict[tuple[str, Scope], tuple[str, float]] = {}
        self._said: dict[tuple[str, Scope], str] = {}
        self._ledger: Ledger | None = None
        self._began = time.monotonic()
        self._console = Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._start()

    def printed(self, value: Value) -> None:
        with self.interrupted():
            super().printed(value)

    published = printed

    def stage_began(self, number: str, target: str, scope: Scope) -> None:
        self._stages[(number, scope)] = (target, time.monotonic())

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
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """While something else is written to the terminal."""
        shown = self._live is not None
        self.close()
        try:
            yield
        finally:
            if shown:
                self._start()

    def _start(self) -> None:
        self._live = Live(
            get_renderable=self._drawn,
            console=self._console,
            refresh_per_second=REDRAWS_A_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def _drawn(self) -> Text:
        now = time.monotonic()
        width = max(20, self._console.width - 1)
        # A copy: another thread redraws while the run goes on.
        stages = list(self._stages.items())
        rows = []
        for (number, scope), (target, began) in stages[-ROWS:]:
            branch = f" [{', '.join(map(str, scope))}]" if scope else ""
            head = f"{number:<6} {target}{branch} {now - began:.1f}s "
            said = visible(self._said.get((number, scope), "")).replace("\n", " ")
            room = width - len(head)
            rows.append(head + (said[-room:] if room > 8 else ""))
        if len(stages) > ROWS:
            rows.append(f"… and {len(stages) - ROWS} more")
        rows.append(f"{now - self._began:.1f}s{self._spending()}")
        return Text("\n".join(visible(row)[:width] for row in rows), style="dim")

    def _spending(self) -> str:
        ledger = self._ledger
        if ledger is None:
            return ""
        reserved = f" and ${ledger.reserved / 1e9:.4f} reserved" if ledger.reserved else ""
        return f" · ${ledger.spent / 1e9:.4f} spent{reserved}"
