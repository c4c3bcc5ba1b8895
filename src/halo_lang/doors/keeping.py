"""Keeping: writes down what a run gets, before the run gets it (runs.md §3, §5).

Owns the keeper of one run: its recording (a file, or a function of the host's), its journal in a run store, or both;
when they are synced; and what is kept in memory until a run without a recording pauses.
"""

from __future__ import annotations

from ..boundary.recording import UNWRITABLE, call_line, encoded, finish_line
from ..runtime.redact import redacted_value
from .folder import KeepingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..boundary.call import Answer, Call
    from ..language.values import Value
    from ..runtime.redact import Redaction
    from .folder import AppendFile
    from .run_store import RunJournal

REDACTED = ("args", "value", "output", "payload", "raw", "message", "attachments", "difference")
"""The fields, of a line and of the objects in it, in which a program's Redact rules replace what they match, with
`--redact-recording`; names, ids and codes stay, for a replay goes by them."""

_HOLDERS = ("error", "toolCalls", "waits")


class Keeper:
    """Writes the lines of one run.

    `recording` is the recording's file, on which `redact` works if it is given; `journal` the run's journal, on which
    nothing does, for a resume needs the values as they were. With `durable` the journal is synced before an answer is
    handed on and before a call with an effect is made. With `spools` the lines are kept in memory, for the journal of
    a run that pauses (`spooled`). `tell` is given the line of every answer.

    Once something could not be written nothing is any more (`is_broken`), so that no line stands without those before
    it.
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
        self._trouble = ""

    @property
    def is_broken(self) -> bool:
        return bool(self._trouble)

    @property
    def is_changed(self) -> bool:
        """Whether a person changed the run where it was held."""
        return self._change is not None

    def write(self, line: Mapping[str, Any]) -> None:
        """Adds a line. Raises `KeepingError`."""
        self._check()
        try:
            data = encoded(line)
            if self.journal is not None:
                self.journal.append(data)
                self._written += 1
            if self._spool is not None:
                self._spool.append(data)
            if self._recording is not None:
                self._recording.append(data if self._redact is None else encoded(redacted_line(line, self._redact)))
        except (KeepingError, *UNWRITABLE) as trouble:
            raise self._broken(trouble) from None

    def note(self, line: Mapping[str, Any]) -> None:
        """Adds a line to the journal alone: what only a resume needs. Raises `KeepingError`."""
        self._check()
        if self.journal is not None:
            try:
                self.journal.append(encoded(line))
            except (KeepingError, *UNWRITABLE) as trouble:
                raise self._broken(trouble) from None
            self._written += 1

    def answered(self, call: Call, answer: Answer, *, late: bool = False) -> None:
        """Writes the line of an answer. Raises `KeepingError`."""
        try:
            line = call_line(call, answer, late=late)
        except UNWRITABLE as trouble:
            raise self._broken(trouble) from None
        self.write(line)
        if self._tell is not None:
            self._tell(line)

    def goes_on(self, resume: Mapping[str, Any], given: Iterable[Mapping[str, Any]]) -> None:
        """Writes that a run goes on, with what it was given meanwhile: into the journal all of that or nothing, and
        onto the disk. In the recording each answer stands where the run gets it (`handed_in`). Raises `KeepingError`.
        """
        assert self.journal is not None
        try:
            self.journal.append(b"".join(encoded(line) for line in (resume, *given)))
            self.journal.sync()
        except (KeepingError, *UNWRITABLE) as trouble:
            raise self._broken(trouble) from None
        self._record(resume)

    def begins_again(self, opening: Mapping[str, Any]) -> None:
        """Records the first line, which stands in the journal already. Raises `KeepingError`."""
        self._record(opening)

    def handed_in(self, call: Call, answer: Answer) -> None:
        """Records an answer that stands in the journal already. Raises `KeepingError`."""
        line = call_line(call, answer)
        self._record(line)
        if self._tell is not None:
            self._tell(line)

    def not_handed_in(self, line: Mapping[str, Any]) -> None:
        """Records an answer that stands in the journal, and that the run ended without. Raises `KeepingError`."""
        self._record({**line, "late": True})

    def _record(self, line: Mapping[str, Any]) -> None:
        self._check()
        if self._recording is None:
            return
        try:
            self._recording.append(encoded(line if self._redact is None else redacted_line(line, self._redact)))
        except (KeepingError, *UNWRITABLE) as trouble:
            raise self._broken(trouble) from None

    def _check(self) -> None:
        if self._trouble:
            raise KeepingError(self._trouble)

    def _broken(self, trouble: Exception) -> KeepingError:
        if isinstance(trouble, KeepingError):
            self._trouble = trouble.message
        elif isinstance(trouble, RecursionError):
            self._trouble = "a value nests too deep to be written down"
        else:
            self._trouble = f"a value is no JSON: {trouble}"
        return KeepingError(self._trouble)

    async def sync(self) -> None:
        """Waits until all that was written so far is on the disk. All who ask while a sync is under way share the next
        one. Raises `KeepingError`."""
        if not self.durable:
            return
        import asyncio

        wanted = self._written
        while self._synced < wanted:
            self._check()
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
        except KeepingError as trouble:
            self._broken(trouble)  # who waits for the sync finds it so
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
    """A line with what a program's Redact rules match replaced. Raises `RecursionError` for one that nests too deep."""
    made: dict[str, Any] = {}
    for name, value in line.items():
        if name in REDACTED:
            made[name] = redacted_value(dict(value) if hasattr(value, "items") else value, redact)
        elif name in _HOLDERS:
            inner = value if isinstance(value, list) else [value]
            redacted = [redacted_line(one, redact) if hasattr(one, "items") else one for one in inner]
            made[name] = redacted if isinstance(value, list) else redacted[0]
        else:
            made[name] = value
    return made
