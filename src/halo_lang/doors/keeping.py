"""Keeping: writes down what a run gets, before the run gets it (runs.md §3, §5).

Owns the keeper of one run: its recording (a file, or a function of the host's), its journal in a run store, or both;
when they are synced; and what is kept in memory until a run without a recording pauses.
"""

from __future__ import annotations

from ..boundary.recording import call_line, encoded, finish_line
from ..runtime.redact import redacted_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..boundary.call import Answer, Call
    from ..language.values import Value
    from ..runtime.redact import Redaction
    from .folder import AppendFile
    from .stores import RunJournal

REDACTED = ("args", "value", "error", "toolCalls", "output", "waits")
"""The fields of a line in which a program's Redact rules replace what they match, with `--redact-recording`."""


class Keeper:
    """Writes the lines of one run.

    `recording` is the recording's file, on which `redact` works if it is given; `journal` the run's journal, on which
    nothing does, for a resume needs the values as they were. With `durable` the journal is synced before an answer is
    handed on and before a call with an effect is made. With `spools` the lines are kept in memory for `pause`. `tell`
    is given the line of every answer.
    """

    def __init__(
        self,
        recording: AppendFile | None = None,
        journal: RunJournal | None = None,
        *,
        redact: Redaction | None = None,
        durable: bool = False,
        spools: bool = False,
        tell: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self._recording = recording
        self._redact = redact
        self._tell = tell
        self.journal = journal
        self.durable = durable and journal is not None
        self._spool: list[bytes] | None = [] if spools and journal is None else None
        self._syncing: asyncio.Task[None] | None = None
        self._written = 0
        self._synced = 0
        self._change: str | None = None

    def write(self, line: Mapping[str, Any]) -> None:
        """Adds a line. Raises `KeepingError`."""
        data = encoded(line)
        if self.journal is not None:
            self.journal.append(data)
            self._written += 1
        if self._spool is not None:
            self._spool.append(data)
        if self._recording is not None:
            self._recording.append(data if self._redact is None else encoded(redacted_line(line, self._redact)))

    def note(self, line: Mapping[str, Any]) -> None:
        """Adds a line to the journal alone: what only a resume needs. Raises `KeepingError`."""
        if self.journal is not None:
            self.journal.append(encoded(line))
            self._written += 1

    def answered(self, call: Call, answer: Answer, *, late: bool = False) -> None:
        """Writes the line of an answer. Raises `KeepingError`."""
        line = call_line(call, answer, late=late)
        self.write(line)
        if self._tell is not None:
            self._tell(line)

    async def sync(self) -> None:
        """Waits until all that was written so far is on the disk. All who ask while a sync is under way share the next
        one. Raises `KeepingError`."""
        if not self.durable:
            return
        import asyncio

        wanted = self._written
        while self._synced < wanted:
            if self._syncing is None:
                self._syncing = asyncio.get_running_loop().create_task(self._sync_once())
            await asyncio.shield(self._syncing)

    async def _sync_once(self) -> None:
        import asyncio

        assert self.journal is not None
        reached = self._written
        try:
            await asyncio.to_thread(self.journal.sync)
            self._synced = reached
        finally:
            self._syncing = None

    def finish(
        self, status: str, output: Value, error: Mapping[str, Value] | None, waits: Iterable[Mapping[str, Value]] = ()
    ) -> None:
        """Writes how the run ended, or that it paused. Raises `KeepingError`."""
        line = finish_line(status, output, error, waits)
        self.write(line if self._change is None else {**line, "changed": self._change})

    def changed(self, stage: str, what: str) -> None:
        """Writes that a person changed the run where it was held, so that it can be neither replayed nor resumed.
        Raises `KeepingError`."""
        self.write({"type": "changed", "stage": stage, "what": what})
        if self._change is None:
            self._change = f"at stage {stage}, by {what}"

    def spooled(self) -> Iterable[bytes]:
        """The lines that were kept in memory."""
        return self._spool or ()

    def close(self) -> None:
        """Closes the recording. The journal is released or deleted by whoever claimed it."""
        if self._recording is not None:
            self._recording.close()


def redacted_line(line: Mapping[str, Any], redact: Redaction) -> dict[str, Any]:
    """A line with what a program's Redact rules match replaced."""
    return {name: redacted_value(_plain(value), redact) if name in REDACTED else value for name, value in line.items()}


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "items") else value
