"""What answers a replay, and what answers a resume until it has caught up (runs.md §4, §5).

Owns the two feeds over a journal: what a replay notes and refuses, and what a resume still has to ask a person about.
"""

from __future__ import annotations

from ..boundary.call import APPROVAL, LISTEN, TOOL, YIELD, Answer, failed
from ..boundary.recording import canonical, question
from ..catalog.describe import READ
from ..doors.journal import ASKED_OTHERWISE, Journal
from ..language.record import Record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ..boundary.call import Call
    from ..boundary.recording import Entry
    from ..doors.answering import Ending
    from ..doors.recordings import Recording
    from ..language.values import Value
    from ..runtime.driver import Request

MISMATCH = "REPLAY_MISMATCH"


class Note(Record):
    """Something to know about a replay. `kind` is `asked` (with another question than recorded), `unused`, `yields`,
    `torn` or `ended`."""

    kind: str
    stage: str | None
    target: str | None
    message: str


class ReplayFeed:
    """Answers a replay. Calls of the kinds in `live` are not the recording's."""

    def __init__(self, recording: Recording, live: frozenset[str]) -> None:
        self._recording = recording
        self._live = live
        self._journal = Journal(recording.entries(), rules=3, answers=self._is_recorded)
        self._noted: set[tuple[str, str]] = set()
        self.notes: list[Note] = []
        if recording.torn:
            self.notes.append(Note("torn", None, None, "the recording's last line was torn and is left out"))

    def _is_recorded(self, call: Call) -> bool:
        return call.kind not in self._live or (call.kind == TOOL and call.target.startswith("System."))

    def add(self, request: Request) -> bool:
        return self._journal.add(request)

    def withdraw(self, request: Request) -> None:
        self._journal.withdraw(request)

    def take(self) -> tuple[Request, Answer] | None:
        hit = self._journal.take()
        if hit is None:
            return None
        if hit.rule == ASKED_OTHERWISE:
            self._note_asked(hit.request.call)
        return hit.request, hit.entry.answer

    def stuck(self, waiting: list[Request]) -> tuple[Request, Answer] | None:
        """What to do where the recording has no answer: pause or end where it did, else it is a mismatch."""
        finish = self._recording.finish
        status = None if finish is None else finish.get("status")
        for request in waiting:
            if request.call.kind == YIELD and not self._recording.has_yields and status != "paused":
                self._note_once("yields", "the recording keeps no answers to yields: each is taken as approved")
                return request, Answer({"approved": True})
        if status == "paused" and self._waits_as_recorded(waiting, finish or {}):
            return None
        if status in (None, "cancelled") and not self._journal.unused():
            self._note_once(
                "ended", f"the recorded run {'was cancelled' if status else 'has no end'}; it ends here too"
            )
            return None
        request = waiting[0]
        return request, failed(MISMATCH, self._explained(request.call))

    def recorded_waits(self) -> list[dict[str, Any]]:
        """What the recorded run waited for when it paused."""
        return [] if self._recording.finish is None else list(self._recording.finish.get("waits", ()))

    def ended_as(self, ending: Ending) -> Ending:
        """How the replay ended: where it came to the end of a recording without one, it is cancelled as that was."""
        finish = self._recording.finish
        if ending.status == "paused" and (finish is None or finish.get("status") != "paused"):
            return replace(ending, status="cancelled", waits=())
        return ending

    def finish_notes(self) -> None:
        """Adds what can be said only at the end."""
        unused = [entry for entry in self._journal.unused() if entry.kind not in self._live]
        if unused:
            targets = ", ".join(dict.fromkeys(entry.target for entry in unused))
            word = "answer was" if len(unused) == 1 else "answers were"
            self.notes.append(Note("unused", None, None, f"{len(unused)} recorded {word} not used: {targets}"))

    def _note_asked(self, call: Call) -> None:
        key = (call.stage, call.target)
        if key not in self._noted:
            self._noted.add(key)
            what = "with other arguments" if call.kind == TOOL else "otherwise"
            message = f"{call.stage} {call.target} was asked {what} than recorded"
            self.notes.append(Note("asked", call.stage, call.target, message))

    def _note_once(self, kind: str, message: str) -> None:
        if not any(note.kind == kind for note in self.notes):
            self.notes.append(Note(kind, None, None, message))

    def _waits_as_recorded(self, waiting: list[Request], finish: Mapping[str, Any]) -> bool:
        recorded = {(wait.get("kind"), wait.get("target")) for wait in finish.get("waits", ())}
        return all((request.call.kind, request.call.target) in recorded for request in waiting)

    def _explained(self, call: Call) -> str:
        near = next((e for e in self._journal.unused() if e.kind == call.kind and e.target == call.target), None)
        if near is not None:
            nearest = f"line {near.number} has an answer of {near.target} to another question"
        else:
            targets = dict.fromkeys(e.target for e in self._journal.unused() if e.kind == call.kind)
            left = ", ".join(list(targets)[:5])
            nearest = f"what it has left of that kind is for {left}" if left else "it has none left of that kind"
        what = {
            YIELD: "a person's answer",
            LISTEN: f"the event {call.target}",
            APPROVAL: f"an approval of {call.target}",
        }
        asked = what.get(call.kind, call.target)
        return f"the pipeline or its input changed: the recording has no answer for {asked}; {nearest}"


class Journaled(Record):
    """What a journal says besides its answers: `signals` that were sent to the run and not yet delivered (id, event,
    payload), effects that had `begun` and have no answer, what was `spent` and what requests without an answer may
    have cost (`unsettled`), in nano-dollars; the `waits` of the last pause; how often each place was `answered`."""

    signals: list[tuple[str, str, Value]]
    begun: list[dict[str, Any]]
    unsettled: int
    spent: int
    waits: list[dict[str, Any]]
    finish: dict[str, Any] | None
    answered: dict[tuple[Any, ...], int]


class ResumeFeed:
    """Answers a run that goes on: first all that was recorded, then events that were sent before it listened.

    `old` is the number of the last line that the run had before; `caught_up` is called before it gets anything newer.
    Where the program has `changed` lines also match in other places, and `caught_up` may refuse to go on.
    `record_signal` writes down that a signal was delivered.
    """

    def __init__(
        self,
        entries: Iterator[Entry],
        signals: list[tuple[str, str, Value]],
        old: int,
        caught_up: Callable[[], None],
        *,
        changed: bool = False,
        record_signal: Callable[[Call, str, Answer], None],
    ) -> None:
        self._journal = Journal(entries, rules=2 if changed else 1)
        self._signals = signals
        self._old = old
        self._caught_up: Callable[[], None] | None = caught_up
        self._record_signal = record_signal
        self._listening: dict[Request, None] = {}

    def add(self, request: Request) -> bool:
        if request.call.kind == LISTEN:
            self._listening[request] = None
        return self._journal.add(request)

    def withdraw(self, request: Request) -> None:
        self._journal.withdraw(request)
        self._listening.pop(request, None)

    def take(self) -> tuple[Request, Answer] | None:
        hit = self._journal.take()
        if hit is not None:
            self._listening.pop(hit.request, None)
            if hit.entry.number > self._old:
                self._go_live()
            return hit.request, hit.entry.answer
        self._go_live()
        return self._signalled()

    def unused_effects(self) -> list[Entry]:
        """Recorded calls with an effect that the changed program has not made."""
        return [e for e in self._journal.unused() if e.kind == TOOL and e.effect not in (None, READ)]

    def _go_live(self) -> None:
        if self._caught_up is not None:
            caught_up, self._caught_up = self._caught_up, None
            caught_up()

    def _signalled(self) -> tuple[Request, Answer] | None:
        for request in self._listening:
            for at, (number, event, payload) in enumerate(self._signals):
                if event == request.call.target:
                    del self._signals[at]
                    self.withdraw(request)
                    answer = Answer(payload)
                    self._record_signal(request.call, number, answer)
                    return request, answer
        return None


def wait_id(call: Call, kind: str, seen: int) -> str:
    """A wait's id: the same each time the run comes to it. `seen` is how many answers its place has had."""
    from hashlib import sha256

    text = canonical([kind, call.target, call.scope, call.stage, question(call), seen])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
