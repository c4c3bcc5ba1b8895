"""How a run is kept: recorded, journaled while it is paused or checkpointed, and let go when it ends (runs.md §3, §5).

Owns what is written when a run starts, pauses and ends, and what a resume finds. Read `feeds.py` for how that answers
the run, `resuming.py` for resuming.
"""

from __future__ import annotations

from itertools import chain, islice

from ..boundary.call import APPROVAL, TOOL
from ..boundary.question import canonical
from ..boundary.recording import (
    DAMAGE,
    RecordingError,
    encoded,
    entry_of,
    nano_amount,
    numbered,
    opening_of,
    scope_of,
    start_line,
)
from ..check.identity import part_keys, source_key
from ..doors.folder import KeepingError, lines_of
from ..doors.stores import RunUnknown
from ..language.record import Record, replace
from .clock import now
from .feeds import ResumeFeed, Signal
from .result import error_json
from .waits import OUTCOME, place_of, place_of_wait, wait_id, wait_of, waits_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    from ..boundary.call import Call, Scope
    from ..boundary.host import Preview
    from ..boundary.recording import Entry, Opening
    from ..doors.keeping import Keeper
    from ..doors.mask import Mask
    from ..doors.run_store import RunJournal, RunStore
    from ..language.values import Value
    from .result import RunResult
    from .underway import What
    from .waits import Place

    Made: TypeAlias = tuple[str, Scope, str]
    """A call of a tool: its target, scope, and arguments as canonical JSON."""


class Journaled(Record):
    """What a journal says besides its answers.

    `spent` is what answered requests cost, `shadows` the part of it that shadows cost, `unsettled` what requests
    without an answer may have cost, in nano-dollars.
    `begun` are calls with an effect that have no answer, with the number of the line that says that they began. `waits`
    are those of the last pause that have no answer yet, `finish` how the run ended or paused where it did not go on
    since. `resumed` is the number of the line by which the run went on last, 0 where it never did. `signals` are the
    events that were sent and not yet delivered, in the order of arrival. `changed` says whether the run ever went on
    with another program than it began with.
    """

    opening: Opening
    resumed: int
    spent: int
    shadows: int
    unsettled: int
    begun: dict[Made, int]
    waits: list[dict[str, Any]]
    finish: dict[str, Any] | None
    signals: list[Signal]
    changed: bool

    @property
    def is_paused(self) -> bool:
        """Whether nothing can go on before somebody answers; else the run was interrupted."""
        return self.finish is not None and bool(self.waits)


class Kept:
    """How one run is kept.

    `keeper` writes its lines. `recording_path` is the recording's file where it holds the lines as they were; from them
    the journal of a run that pauses is made, in `store`. `journaled` is what the journal of a run that goes on holds,
    `feed` what answers it from there, and `given` the lines of a person's answers among that, by their numbers; `go_on`
    writes down, once, that the run goes on with them.
    """

    def __init__(
        self,
        run_id: str,
        keeper: Keeper,
        store: RunStore | None,
        *,
        recording_path: str | None = None,
        journaled: Journaled | None = None,
        feed: ResumeFeed | None = None,
        given: Mapping[int, Mapping[str, Any]] | None = None,
        go_on: Callable[[], None] | None = None,
    ) -> None:
        self._run_id = run_id
        self._store = store
        self._recording_path = recording_path
        self.keeper = keeper
        self.journaled = journaled
        self.feed = feed
        self._given = given or {}
        self._go_on = go_on

    def is_uncertain(self, call: Call) -> bool:
        """Whether nobody can know if this call happened: it had begun, and no answer was written."""
        return self._began_at(call) is not None

    def _began_at(self, call: Call) -> int | None:
        if self.journaled is None or not self.journaled.begun or call.kind != TOOL:
            return None
        return self.journaled.begun.get((call.target, call.scope, canonical(call.args)))

    async def waits(
        self,
        calls: Iterable[Call],
        preview: Callable[[Call], Awaitable[Preview | None]],
        seen: Mapping[Place, int],
    ) -> tuple[dict[str, Any], ...]:
        """What a paused run waits for, as its `finish` line and documents hold it. `seen` says how many answers each
        place has had."""
        since = {wait["id"]: wait.get("since") for wait in (self.journaled.waits if self.journaled is not None else ())}
        made = []
        for call in calls:
            began_at = self._began_at(call)
            kind = call.kind if began_at is None else OUTCOME
            identity = wait_id(call, kind, seen.get(place_of(call), 0) if began_at is None else began_at)
            shown = await _shown(call, preview) if call.kind == APPROVAL else None
            made.append(wait_of(call, kind, identity, since.get(identity) or now(), shown))
        return tuple(made)

    def finish(self, result: RunResult, shadows_unsettled: int = 0) -> None:
        """Writes how the run ended. A paused run's journal stays, and so does that of one that was stopped, or could
        not go on because nothing could be written; any other's is deleted, and that of a run that was changed by hand,
        which no answers make run so again. The journal alone says what shadows have cost, and may have: they are in no
        recording. Raises `KeepingError`."""
        keeper, journal = self.keeper, self.keeper.journal
        can_go_on = result.status in ("paused", "cancelled") and not keeper.is_changed
        stays = journal is not None and (can_go_on or keeper.is_broken)
        try:
            if keeper.is_broken:
                return
            if self._go_on is not None:  # the run may have ended with what it had
                self._go_on()
            for number in self.feed.not_handed() if self.feed is not None else ():
                keeper.not_handed_in(self._given[number])
            cost = sum(shadow.cost for shadow in result.shadows)
            shadows = {"type": "shadows", "cost": cost, "unsettled": shadows_unsettled}
            if result.shadows:
                keeper.note(shadows)
            keeper.finish(result.status, result.output, error_json(result.error), result.waits)
            if result.status == "paused" and can_go_on and journal is None:
                self._new_journal([shadows] if result.shadows else []).release()
            elif journal is not None and stays:
                journal.sync()
            elif journal is not None:
                journal.delete()
        finally:
            keeper.close()
            if journal is not None:
                journal.release()

    def _new_journal(self, more: Iterable[Mapping[str, Any]]) -> RunJournal:
        """The journal of a run that pauses for the first time: its lines so far, and some more."""
        if self._store is None:
            raise KeepingError("the run pauses, and there is no store that would keep it")
        lines = self.keeper.spooled() if self._recording_path is None else lines_of(self._recording_path)
        try:
            return self._store.create(self._run_id, chain(lines, map(encoded, more)))
        except OSError as trouble:
            raise KeepingError(f"{self._recording_path}: cannot be read: {trouble.strerror}") from None

    def abandon(self) -> None:
        """The run could not begin, or its end could not be written: nothing more is kept of it."""
        self.keeper.close()
        if self.keeper.journal is not None:
            self.keeper.journal.release()


def check_place(store: RunStore, run_id: str) -> None:
    """Raises `KeepingError` where a run that begins now could not be kept once it pauses: one of that id is kept
    already, or the store is none that can be used."""
    try:
        for _ in store.peek(run_id):
            break
    except RunUnknown:
        return
    raise KeepingError(f"a run {run_id} is paused, and kept: resume it, or begin a run with an id of its own")


async def _shown(call: Call, preview: Callable[[Call], Awaitable[Preview | None]]) -> Preview | None:
    try:
        return await preview(call)
    except Exception:  # what cannot be shown is said by the call itself, once it is approved
        return None


def opening_line(what: What, **more: Value) -> dict[str, Any]:
    """The first line of a run. `more` says how it was started, for a resume."""
    source = what.program.source
    return start_line(
        what.run_id,
        what.pipeline,
        what.args,
        source.name,
        source_key(source),
        now(),
        parts=dict(part_keys(what.program)),
        **more,
    )


# Reading ---------------------------------------------------------------------------------------------------------


def entries_of(journal: RunJournal, first: int, last: int) -> Iterator[Entry]:
    """The recorded answers in some of a journal's lines, those included that came too late for the run."""
    for number, line in islice(numbered(journal.lines()), first - 1, last):
        if line.get("type") == "call":
            yield entry_of(line, number)


def signals_of(journal: RunJournal, mask: Mask | None = None) -> list[Signal]:
    """The events that were sent to the run and not yet delivered, in the order of arrival. Raises `RecordingError`.

    Who sent them need not have known the run's secrets: with `mask` those are masked here, before the run sees them.
    """
    found: dict[str, Signal] = {}
    for number, line in numbered(journal.lines()):
        _note_signal(found, line, number)
    if mask is None:
        return list(found.values())
    return [replace(signal, payload=mask.value(signal.payload)) for signal in found.values()]


def _note_signal(found: dict[str, Signal], line: Mapping[str, Any], number: int) -> None:
    """Adds the event that a line sends, or takes away the one that it delivers."""
    if line.get("type") == "signal":
        signal = _signal(line, number)
        found[signal.id] = signal
    elif line.get("type") == "call" and "signal" in line:
        found.pop(line["signal"] + "", None)


def _signal(line: Mapping[str, Any], number: int) -> Signal:
    identity, event = line.get("id"), line.get("event")
    if not isinstance(identity, str) or not isinstance(event, str):
        raise RecordingError(f"line {number} is no signal")
    return Signal(identity, event, line.get("payload"))


def read_journal(lines: Iterable[bytes]) -> Journaled:
    """Looks through a journal. Raises `RecordingError` for one that is damaged."""
    reading: _Reading | None = None
    for number, line in numbered(lines):
        if reading is None:
            reading = _Reading(opening_of(line))
        try:
            reading.add(line, number)
        except DAMAGE:
            raise RecordingError(f"line {number} is damaged") from None
    if reading is None:
        raise RecordingError("the journal is empty")
    return reading.journaled()


class _Reading:
    """A journal that is being looked through, line by line."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._resumed = 0
        self._spent = self._unsettled = self._shadows = 0
        self._reserved: dict[tuple[str, Scope, int], int] = {}
        self._changed = False
        self._begun: dict[Made, int] = {}
        self._waits: dict[Place, dict[str, Any]] = {}
        self._finish: dict[str, Any] | None = None
        self._signals: dict[str, Signal] = {}

    def add(self, line: dict[str, Any], number: int) -> None:
        _note_signal(self._signals, line, number)
        match line.get("type"):
            case "call":
                self._add_call(line, number)
            case "begun":
                self._begun[_made(line)] = number
            case "again":
                made = _made(line)
                self._begun.pop(made, None)
                self._waits.pop((TOOL, made[0], made[1]), None)
            case "reserved":
                key = line["target"] + "", scope_of(line["scope"]), int(line.get("shadow", 0))
                self._reserved[key] = nano_amount(line["amount"])
            case "shadows":
                self._shadows += nano_amount(line["cost"])
                self._unsettled += nano_amount(line["unsettled"])
                self._reserved = {key: amount for key, amount in self._reserved.items() if not key[2]}
            case "finish":
                self._finish = line
                self._waits = {place_of_wait(wait): wait for wait in waits_in(line, lambda: number)}
            case "resume":
                self._finish, self._resumed = None, number
                self._changed = self._changed or line.get("changed") is True
                # What was reserved before gets no answer any more, though the same be asked again.
                self._unsettled += sum(self._reserved.values())
                self._reserved.clear()
            case "changed":
                raise RecordingError(f"line {number}: the run was changed in the debugger here, so it cannot go on")

    def _add_call(self, line: dict[str, Any], number: int) -> None:
        entry = entry_of(line, number)
        self._spent += entry.answer.cost or 0
        self._unsettled += entry.answer.unsettled
        scope = entry.scope or ()
        if entry.kind == TOOL:
            self._begun.pop((entry.target, scope, entry.asked), None)
        self._reserved.pop((entry.target, scope, 0), None)
        if self._waits:
            self._waits.pop((entry.kind, entry.target, scope), None)

    def journaled(self) -> Journaled:
        unsettled = self._unsettled + sum(self._reserved.values())
        waits = list(self._waits.values())
        return Journaled(
            self._opening,
            self._resumed,
            self._spent + self._shadows,
            self._shadows,
            unsettled,
            self._begun,
            waits,
            self._finish,
            list(self._signals.values()),
            self._changed,
        )


def _made(line: Mapping[str, Any]) -> Made:
    return line["target"] + "", scope_of(line["scope"]), canonical(line["args"])
