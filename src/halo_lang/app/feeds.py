"""What answers a replay, and what answers a resume until it has caught up (runs.md §4, §5).

Owns the two feeds over journals: what a replay notes and refuses, and how a resume gets what it had, what a person has
answered since, and the events that were sent to it.
"""

from __future__ import annotations

from itertools import islice

from ..boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Data, failed
from ..boundary.recording import RecordingError
from ..doors.journal import ASKED_OTHERWISE, Journal
from ..language.record import Record, replace
from ..language.values import to_json
from .waits import place_of, place_of_wait, wait_id, wait_of, waits_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import Any

    from ..boundary.call import Call
    from ..boundary.recording import Entry
    from ..doors.answering import Ending
    from ..doors.recordings import Recording
    from ..language.values import Value
    from ..runtime.driver import Request

MISMATCH = "REPLAY_MISMATCH"

_MAX_SHOWN = 200
"""Characters of what was asked that a mismatch shows."""


YES_OR_NO = (APPROVAL, YIELD)
"""The kinds of calls to which a person's yes may let something happen."""


def exact_kinds(live: frozenset[str]) -> frozenset[str]:
    """The kinds of which a recorded answer serves the same question alone, given the kinds that are live: where tools
    are, nobody's yes to one thing may let another happen."""
    return frozenset(YES_OR_NO) if TOOL in live else frozenset()


def for_this_call(answer: Answer) -> Answer:
    """A recorded approval, for the one call that it was given for: a yes to all calls of the method was given in
    another run, and where tools are live it does not stand for calls that nobody has seen."""
    value = answer.value
    if not isinstance(value, dict) or "all" not in value:
        return answer
    return replace(answer, value={name: inner for name, inner in value.items() if name != "all"})


class Signal(Record):
    """An event that was sent to a run, under an id of its own."""

    id: str
    event: str
    payload: Value


class Note(Record):
    """Something to know about a replay. `kind` is `asked` (with another question than recorded), `approved`
    (beforehand, for the recording could not), `unused`, `yields`, `torn` or `ended`."""

    kind: str
    stage: str | None
    target: str | None
    message: str


class ReplayFeed:
    """Answers a replay. Calls of the kinds in `live` are not the recording's, but for those of the system and for what
    people said, of which a recorded answer serves the same question alone: an approval the same method with the same
    arguments, a yield the same text (runs.md §4). See `exact_kinds`. `approves` says to which methods somebody has said
    yes beforehand, for approvals that the recording cannot answer; None where that cannot be said."""

    def __init__(
        self, recording: Recording, live: frozenset[str], approves: Callable[[str], bool] | None = None
    ) -> None:
        self._recording = recording
        self._live = live
        self._approves = approves
        self._has_yields = False
        self._yields: dict[Request, None] = {}
        self._noted: set[tuple[str, str, str]] = set()
        self._late: list[Entry] = []
        self.notes: list[Note] = []
        if recording.torn:
            self.notes.append(Note("torn", None, None, "the recording's last line was torn and is left out"))
        self._journal = Journal(self._entries(), rules=3, answers=self._is_recorded, exact=exact_kinds(live))

    def _entries(self) -> Iterator[Entry]:
        for entry in self._recording.entries(self._late.append):
            if entry.kind == YIELD:
                self._has_yields = True
            yield entry

    def _is_recorded(self, call: Call) -> bool:
        kind = call.kind
        return kind not in self._live or kind in YES_OR_NO or (kind == TOOL and call.target.startswith("System."))

    def add(self, request: Request) -> None:
        if request.call.kind == YIELD:
            self._yields[request] = None
        self._journal.add(request)

    def withdraw(self, request: Request) -> None:
        self._journal.withdraw(request)
        self._yields.pop(request, None)

    def take(self) -> tuple[Request, Answer] | None:
        hit = self._journal.take()
        if hit is None:
            return None
        if hit.rule == ASKED_OTHERWISE:
            call = hit.request.call
            what = "with other arguments" if call.kind == TOOL else "otherwise"
            self._note_of_call("asked", call, f"was asked {what} than recorded")
        if hit.request.call.kind == YIELD:
            self._yields.pop(hit.request, None)
        answer = hit.entry.answer
        is_for_one = TOOL in self._live and hit.request.call.kind == APPROVAL
        return hit.request, for_this_call(answer) if is_for_one else answer

    def stuck(self, waiting: Collection[Request]) -> tuple[Request, Answer] | None:
        """What to do where the recording has no answer: pause or end where it did, else it is a mismatch."""
        finish = self._recording.finish
        status = None if finish is None else finish.get("status")
        if status == "paused" and self._are_recorded_waits(waiting):
            return None
        if status in (None, "cancelled") and not self._journal.unused():
            how = "was cancelled" if status else "has no end"
            self._note_once("ended", f"the recorded run {how}; the replay ends where it does")
            return None
        # Nobody's yes is made up for a call that is real, nor where the recording says who waited.
        if self._yields and not self._has_yields and TOOL not in self._live and status != "paused":
            self._note_once("yields", "the recording keeps no answers to yields: each is taken as approved")
            return next(iter(self._yields)), Answer({"approved": True})
        approved = self._approved_beforehand(waiting)
        if approved is not None:
            self._note_of_call("approved", approved.call, "was approved by --yes-to, not by the recording")
            return approved, Answer({"approved": True})
        request = next(iter(waiting))
        return request, failed(MISMATCH, self._explained(request.call))

    def _approved_beforehand(self, waiting: Collection[Request]) -> Request | None:
        approves = self._approves
        if approves is None:
            return None
        return next((one for one in waiting if one.call.kind == APPROVAL and approves(one.call.target)), None)

    def waits(self, calls: Collection[Call]) -> tuple[dict[str, Any], ...]:
        """What the replay waits for where it paused, with the ids that the recorded run gave."""
        recorded = {place_of_wait(wait): wait for wait in self._recorded_waits()}
        made = []
        for call in calls:
            known = recorded.get(place_of(call), {})
            kind = str(known.get("kind", call.kind))
            since = str(known.get("since", self._recording.opening.started_at))
            made.append(wait_of(call, kind, str(known.get("id")) if known else wait_id(call, kind, 0), since))
        return tuple(made)

    def late(self) -> list[Entry]:
        """The answers that came too late for the recorded run: it paid for them. To be asked for at the end."""
        self._journal.unused()
        return self._late

    def ended_as(self, ending: Ending) -> Ending:
        """How the replay ended: where it came to the end of a recording without one, it is cancelled as that was."""
        finish = self._recording.finish
        if ending.status == "paused" and (finish is None or finish.get("status") != "paused"):
            return replace(ending, status="cancelled", waits=())
        if finish is None and ending.code != MISMATCH:
            self._note_once("ended", "the recorded run has no end; its answers are enough for one")
        return ending

    def finish_notes(self) -> None:
        """Adds what can be said only at the end."""
        unused = [entry for entry in self._journal.unused() if entry.kind not in self._live or entry.kind == YIELD]
        if unused:
            targets = ", ".join(islice(dict.fromkeys(entry.target for entry in unused), 20))
            word = "answer was" if len(unused) == 1 else "answers were"
            self.notes.append(Note("unused", None, None, f"{len(unused)} recorded {word} not used: {targets}"))

    def _note_of_call(self, kind: str, call: Call, said: str) -> None:
        """Notes something of a stage's calls of a target, once."""
        key = (kind, call.stage, call.target)
        if key not in self._noted:
            self._noted.add(key)
            self.notes.append(Note(kind, call.stage, call.target, f"{call.stage} {call.target} {said}"))

    def _note_once(self, kind: str, message: str) -> None:
        if not any(note.kind == kind for note in self.notes):
            self.notes.append(Note(kind, None, None, message))

    def _are_recorded_waits(self, waiting: Collection[Request]) -> bool:
        if "waits" not in (self._recording.finish or {}):  # the first recordings did not say what a run waited for
            return all(request.call.kind in (YIELD, LISTEN, APPROVAL) for request in waiting)
        recorded = {place_of_wait(wait) for wait in self._recorded_waits()}
        return all(place_of(request.call) in recorded for request in waiting)

    def _recorded_waits(self) -> list[dict[str, Any]]:
        recording = self._recording
        try:
            return waits_in(recording.finish or {}, recording.finish_number)
        except RecordingError as trouble:
            raise RecordingError(f"{recording.path}: {trouble.message}") from None

    def _explained(self, call: Call) -> str:
        near = self._journal.unused_of(call.kind, call.target)
        if near is not None:
            nearest = f"line {near.number} has an answer of {near.target} to another question"
        else:
            of_kind = dict.fromkeys(e.target for e in self._journal.unused() if e.kind == call.kind)
            left = ", ".join(islice(of_kind, 5))
            nearest = f"what it has left of that kind is for {left}" if left else "it has none left of that kind"
        way_out = f"; --yes-to {call.target} approves it" if call.kind == APPROVAL and self._approves else ""
        return (
            f"the pipeline or its input changed: stage {call.stage} asks for {_asked(call)}, "
            f"and the recording has no answer to that; {nearest}{way_out}"
        )


def _asked(call: Call) -> str:
    """What a call asks for, in words."""
    match call.kind:
        case "yield":
            what = f"a person's answer to {to_json(call.args.get('message'))}"
        case "listen":
            what = f"the event {call.target}"
        case "approval":
            what = f"an approval of {call.target} {to_json(dict(call.args))}"
        case "tool":
            what = f"{call.target} {to_json(dict(call.args))}"
        case _:
            first = call.request.messages[0].parts if call.kind == AGENT and call.request is not None else ()
            said = "".join(part.text if isinstance(part, Data) else part for part in first)
            what = f"{call.target} {to_json(said)}"
    return what if len(what) <= _MAX_SHOWN else f"{what[:_MAX_SHOWN]}…"


class ResumeFeed:
    """Answers a run that is kept in a journal: first what it had before, then what a person has answered since, then
    events that were sent to it.

    `before` and `since` are the entries of the first two. `caught_up` is called once, before the run gets anything that
    it did not have before and before anything is asked of the world; it may refuse to go on, by raising. Where the
    program has `changed` recorded answers match in other places too. `elsewhere` says which calls a mock answers, whose
    answers are in no journal: while one waits the run has not caught up. `handed` is told of every answer that the run
    gets from the journal, and whether it is one that it did not have before. `signals` gives the events that were sent
    to the run so far, and `delivered` writes down that one of them was delivered.
    """

    def __init__(
        self,
        before: Iterator[Entry],
        since: list[Entry],
        *,
        changed: bool = False,
        elsewhere: Callable[[Call], bool] | None = None,
        caught_up: Callable[[ResumeFeed], None],
        handed: Callable[[Call, Answer, bool], None],
        signals: Callable[[], list[Signal]],
        delivered: Callable[[Call, str, Answer], None],
    ) -> None:
        rules = 2 if changed else 1
        self._before = Journal(before, rules=rules)
        kinds = {entry.kind for entry in since}
        self._since = Journal(iter(since), rules=rules, answers=lambda call: call.kind in kinds)
        self._caught_up: Callable[[ResumeFeed], None] | None = caught_up
        self._elsewhere = elsewhere
        self._asked: dict[Request, None] = {}  # what waits, until the run has caught up
        self._mocked: dict[Request, None] = {}  # and what of it a mock answers
        self._handed = handed
        self._read_signals = signals
        self._signals: list[Signal] = []
        self._known: set[str] = set()
        self._delivered = delivered
        self._listening: dict[str, dict[Request, None]] = {}

    def add(self, request: Request) -> None:
        if self._caught_up is not None:
            self._asked[request] = None
            if self._elsewhere is not None and self._elsewhere(request.call):
                self._mocked[request] = None
        if request.call.kind == LISTEN:
            self._listening.setdefault(request.call.target, {})[request] = None
        self._since.add(request)
        self._before.add(request)

    def withdraw(self, request: Request) -> None:
        self._asked_no_more(request)
        self._before.withdraw(request)
        self._since.withdraw(request)
        self._listens_no_more(request)

    def take(self) -> tuple[Request, Answer] | None:
        hit = self._before.take()
        if hit is not None:
            self._asked_no_more(hit.request)
            self._since.withdraw(hit.request)
            self._handed(hit.request.call, hit.entry.answer, False)
        else:
            if self._caught_up is not None:
                if self._mocked:
                    return None
                caught_up, self._caught_up = self._caught_up, None
                caught_up(self)
                self._asked.clear()
                self._look_for_signals()
            hit = self._since.take()
            if hit is None:
                return self._signalled() if self._listening and self._signals else None
            self._before.withdraw(hit.request)
            self._handed(hit.request.call, hit.entry.answer, True)
        self._listens_no_more(hit.request)
        return hit.request, hit.entry.answer

    def stuck(self, waiting: Collection[Request]) -> tuple[Request, Answer] | None:
        """The last look before the run pauses: somebody may have sent an event while it went."""
        if self._caught_up is not None:
            return None
        if self._listening:
            self._look_for_signals()
        return self._signalled()

    def unused(self) -> Collection[Entry]:
        """What the run had before and has not asked for again."""
        return self._before.unused()

    def asked(self) -> Iterator[Call]:
        """What the run asks for that it had no answer to, when it has caught up."""
        return (request.call for request in self._asked)

    def not_handed(self) -> list[int]:
        """The numbers of the lines of a person's answers that the run has not got."""
        return [entry.number for entry in self._since.unused()]

    def _look_for_signals(self) -> None:
        for signal in self._read_signals():
            if signal.id not in self._known:
                self._known.add(signal.id)
                self._signals.append(signal)

    def _signalled(self) -> tuple[Request, Answer] | None:
        for at, signal in enumerate(self._signals):
            for request in self._listening.get(signal.event, ()):
                del self._signals[at]
                self.withdraw(request)
                answer = Answer(signal.payload)
                self._delivered(request.call, signal.id, answer)
                return request, answer
        return None

    def _asked_no_more(self, request: Request) -> None:
        self._asked.pop(request, None)
        self._mocked.pop(request, None)

    def _listens_no_more(self, request: Request) -> None:
        call = request.call
        if call.kind == LISTEN:
            listening = self._listening.get(call.target, {})
            listening.pop(request, None)
            if not listening:
                self._listening.pop(call.target, None)
