"""How a run is kept: recorded, journaled while it is paused or checkpointed, and let go when it ends (runs.md §3, §5).

Owns what is written when a run starts, pauses and ends, and what a resume finds. Read `feeds.py` for how that answers
the run, `resuming.py` for resuming.
"""

from __future__ import annotations

from itertools import islice

from ..boundary.call import TOOL
from ..boundary.recording import RecordingError, canonical, entry_of, numbered, opening_of, question, start_line
from ..check.identity import part_keys, source_key
from ..doors.folder import KeepingError, lines_of
from ..doors.keeping import Keeper
from ..language.record import Record
from .clock import now
from .feeds import Journaled, wait_id
from .result import error_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator
    from typing import Any

    from ..boundary.call import Call
    from ..boundary.host import Preview
    from ..boundary.recording import Entry, Opening
    from ..doors.stores import RunJournal, RunStore
    from ..language.values import Value
    from .result import RunResult
    from .underway import What


class Kept:
    """How one run is kept.

    `keeper` writes its lines. `recording_path` is the recording's file where it holds the lines as they were. A paused
    run's journal goes into `store`. `seen` are the answers that each place has had, for the ids of waits; `uncertain`
    the calls that had begun when a process died.
    """

    def __init__(
        self,
        run_id: str,
        keeper: Keeper,
        store: RunStore | None,
        *,
        recording_path: str | None = None,
        journaled: Journaled | None = None,
    ) -> None:
        self._run_id = run_id
        self._store = store
        self._recording_path = recording_path
        self._before = journaled
        self._uncertain = {_place(line) for line in (journaled.begun if journaled is not None else ())}
        self.keeper = keeper

    def is_uncertain(self, call: Call) -> bool:
        """Whether nobody can know if this call happened: it had begun, and no answer was written."""
        return call.kind == TOOL and (call.target, tuple(call.scope), canonical(call.args)) in self._uncertain

    async def waits(
        self, calls: Iterable[Call], preview: Callable[[Call], Awaitable[Preview | None]]
    ) -> tuple[dict[str, Any], ...]:
        """What a paused run waits for, as its `finish` line and documents hold it."""
        earlier = {wait["id"]: wait for wait in (self._before.waits if self._before is not None else ())}
        return tuple([await self._wait(call, preview, earlier) for call in calls])

    async def _wait(
        self,
        call: Call,
        preview: Callable[[Call], Awaitable[Preview | None]],
        earlier: dict[str, dict[str, Any]],
    ) -> dict[str, Any]:
        uncertain = self.is_uncertain(call)
        kind = "outcome" if uncertain else call.kind
        identity = wait_id(call, kind, self._answers_at(call))
        shown: Preview | None = None
        if call.kind == "approval":
            try:
                shown = await preview(call)
            except Exception:  # what cannot be shown is said by the call itself, once it is approved
                shown = None
        wait: dict[str, Any] = {
            "id": identity,
            "kind": kind,
            "target": call.target,
            "message": call.args.get("message") if call.kind == "yield" else None,
            "channel": call.args.get("channel") if call.kind == "yield" else None,
            "attachments": call.args.get("attachments", []) if call.kind == "yield" else [],
            "args": dict(call.args),
            "stage": call.stage,
            "since": earlier.get(identity, {}).get("since") or now(),
            "by": call.by,
            "effect": call.effect,
            "policies": list(call.policies),
            "scope": list(call.scope),
        }
        if uncertain:
            wait["code"] = "UNKNOWN_OUTCOME"
        if call.id is not None:
            wait["call"] = call.id
        if shown is not None and shown.digest:
            wait["difference"], wait["digest"] = shown.difference, shown.digest
        return wait

    def _answers_at(self, call: Call) -> int:
        place = (call.kind, call.target, tuple(call.scope), question(call))
        return 0 if self._before is None else self._before.answered.get(place, 0)

    def finish(self, result: RunResult) -> None:
        """Writes how the run ended. A paused run's journal stays, and so does a checkpointed one's that was stopped;
        any other's is deleted. Raises `KeepingError`."""
        keeper = self.keeper
        try:
            keeper.finish(result.status, result.output, error_json(result.error), result.waits)
            if result.status == "paused" or (result.status == "cancelled" and keeper.journal is not None):
                journal = keeper.journal or self._new_journal()
                journal.sync()
                journal.release()
            elif keeper.journal is not None:
                keeper.journal.delete()
        finally:
            keeper.close()

    def _new_journal(self) -> RunJournal:
        """The journal of a run that pauses for the first time: its lines so far."""
        if self._store is None:
            raise KeepingError("the run pauses, and there is no store that would keep it")
        journal = self._store.create(self._run_id)
        lines = self.keeper.spooled() if self._recording_path is None else lines_of(self._recording_path)
        pending: list[bytes] = []
        for line in lines:
            pending.append(line)
            if len(pending) >= 1000:
                journal.append(b"".join(pending))
                pending.clear()
        journal.append(b"".join(pending))
        return journal

    def abandon(self) -> None:
        """The run could not begin, or its end could not be written: nothing more is kept of it."""
        self.keeper.close()
        if self.keeper.journal is not None:
            self.keeper.journal.release()


def write_opening(what: What, keeper: Keeper, **more: Value) -> None:
    """Writes the first line of a run. `more` says how it was started, for a resume. Raises `KeepingError`."""
    source = what.program.source
    keeper.write(
        start_line(
            what.run_id,
            what.pipeline,
            what.args,
            source.name,
            source_key(source),
            now(),
            parts=dict(part_keys(what.program)),
            **more,
        )
    )


class Journal(Record):
    """What a claimed journal holds. `lines` counts its lines."""

    opening: Opening
    journaled: Journaled
    lines: int

    def entries(self, journal: RunJournal) -> Iterator[Entry]:
        """The recorded answers, those included that came too late for the run."""
        for number, line in islice(numbered(journal.lines()), self.lines):
            if line.get("type") == "call":
                yield entry_of(line, number)


def read_journal(lines: Iterable[bytes]) -> Journal:
    """Looks through a journal. Raises `RecordingError` for one that is damaged."""
    opening: Opening | None = None
    signals: dict[str, tuple[str, str, Value]] = {}
    begun: dict[tuple[str, tuple[int, ...], str], dict[str, Any]] = {}
    reserved: dict[tuple[str, tuple[int, ...]], int] = {}
    answered: dict[tuple[Any, ...], int] = {}
    spent = unsettled = count = 0
    finish: dict[str, Any] | None = None
    for number, line in numbered(lines):
        count = number
        kind = line.get("type")
        if opening is None:
            opening = opening_of(line)
        elif kind == "call":
            entry = entry_of(line, number)
            spent += entry.answer.cost or 0
            unsettled += entry.answer.unsettled
            scope = entry.scope or ()
            place = (entry.kind, entry.target, scope, entry.asked)
            answered[place] = answered.get(place, 0) + 1
            begun.pop((entry.target, scope, entry.asked), None)
            reserved.pop((entry.target, scope), None)
            signals.pop(entry.signal or "", None)
        elif kind == "changed":
            raise RecordingError(f"line {number}: the run was changed in the debugger here, so it cannot go on")
        elif kind == "signal":
            signals[str(line["id"])] = (str(line["id"]), str(line["event"]), line.get("payload"))
        elif kind == "begun":
            begun[_place(line)] = line
        elif kind == "again":
            begun.pop(_place(line), None)
        elif kind == "reserved":
            reserved[(line["target"], tuple(line["scope"]))] = int(line["amount"])
        elif kind in ("finish", "resume"):
            finish = line if kind == "finish" else None
    if opening is None:
        raise RecordingError("the journal is empty")
    waits = [] if finish is None else list(finish.get("waits", ()))
    journaled = Journaled(
        list(signals.values()),
        list(begun.values()),
        unsettled + sum(reserved.values()),
        spent,
        waits,
        finish,
        answered,
    )
    return Journal(opening, journaled, count)


def _place(line: dict[str, Any]) -> tuple[str, tuple[int, ...], str]:
    return line["target"], tuple(line["scope"]), canonical(line["args"])


def answer_line(wait: dict[str, Any], value: Value) -> dict[str, Any]:
    """The line by which a person's answer to a wait is written into the journal."""
    kind = TOOL if wait["kind"] == "outcome" else wait["kind"]
    line: dict[str, Any] = {"type": "call", "kind": kind, "target": wait["target"], "scope": wait["scope"]}
    if "call" in wait:
        line["call"] = wait["call"]
    if kind != "listen":
        line["args"] = wait["args"]
    if wait.get("effect") is not None:
        line["effect"] = wait["effect"]
    line["value"] = value
    if wait.get("digest"):
        line["digest"] = wait["digest"]
    return line
