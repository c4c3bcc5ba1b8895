"""Resuming: a paused or crashed run goes on from its journal, in another process (runs.md §5).

Owns what answers may be given to a paused run, and what is refused: a run that somebody else resumes or that has
ended, an answer that fits no wait, a program that changed. Read `waits.py` for what a run waits for.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain

from ..boundary.call import APPROVAL, LISTEN, TOOL, YIELD, approves_all, has_effect
from ..boundary.question import canonical
from ..boundary.recording import UNWRITABLE, RecordingError, decoded, encoded, entry_of, numbered
from ..check.identity import changed_parts, part_keys, source_key
from ..doors.folder import KeepingError, lines_of
from ..doors.keeping import Keeper
from ..doors.mock import Mock
from ..doors.stores import RunConflict, RunUnknown
from ..language.record import Record, replace
from .clock import new_run_id, now
from .feeds import ResumeFeed
from .kept import Kept, entries_of, read_journal, signals_of
from .running import PEOPLE, run_live
from .waits import OUTCOME, described, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from ..boundary.call import Answer, Call
    from ..boundary.recording import Entry, Opening
    from ..check.program import CheckedProgram
    from ..doors.answering import Stop
    from ..doors.folder import AppendFile
    from ..doors.mask import Mask
    from ..doors.run_store import RunJournal, RunStore
    from ..language.values import Value
    from ..runtime.redact import Redaction
    from .kept import Journaled
    from .result import RunResult
    from .running import Host
    from .underway import What


class ResumeError(Exception):
    """Why a run cannot be resumed so. `code` is `RESUME_CONFLICT`, `PROGRAM_CHANGED` or, for an answer that fits
    nothing, `CONFIG`; `usage` where the command's words are at fault."""

    def __init__(self, code: str, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.usage = usage


class Given(Record):
    """A person's answer to one wait. `kind` is `yes`, `no`, `answer`, `event`, `again`, `done` or `skip`; `value` its
    reason, JSON or payload; `event` the event's name; `wait` the id of the wait, where it was said."""

    kind: str
    value: Value = None
    event: str | None = None
    wait: str | None = None


class Resumed(Record):
    """A run's journal, claimed, with what it holds."""

    run_id: str
    journal: RunJournal
    journaled: Journaled

    @property
    def opening(self) -> Opening:
        return self.journaled.opening

    @property
    def waits(self) -> list[dict[str, Any]]:
        return self.journaled.waits


def claim(store: RunStore, run_id: str, ended: Callable[[str], bool]) -> Resumed:
    """Claims a run that is to go on. Raises `ResumeError` with `RESUME_CONFLICT` where somebody else has it or it has
    `ended`, `RecordingError` where there is no such run or its journal is damaged."""
    try:
        journal = store.claim(run_id)
    except RunConflict:
        raise ResumeError("RESUME_CONFLICT", f"the run {run_id} is being resumed, or is still running") from None
    except RunUnknown:
        if ended(run_id):
            raise ResumeError("RESUME_CONFLICT", f"the run {run_id} is not kept any more: it has ended") from None
        raise RecordingError(f"there is no paused run {run_id}; `halo runs` lists them") from None
    try:
        return Resumed(run_id, journal, read_journal(journal.lines()))
    except BaseException:
        journal.release()
        raise


def check_program(resumed: Resumed, program: CheckedProgram, *, changed: bool) -> bool:
    """Whether recorded answers may be found in other places too: where the program, or what its tools say of
    themselves, may have `changed`. Raises `ResumeError` (`PROGRAM_CHANGED`) where it has and may not."""
    if changed:
        return True
    opening, name = resumed.opening, program.source.name
    before, after = opening.more.get("parts"), part_keys(program)
    if not isinstance(before, dict):
        before = {}
    if opening.sha256 == source_key(program.source):
        parts = changed_parts(before, {part: key for part, key in after.items() if part in before})
        if not parts:
            return False
        what = f"what {name} stands on has changed since the run began: {', '.join(parts)}"
    else:
        parts = changed_parts(before, after) if before else []
        said = f": {', '.join(parts)}" if parts else " (comments or blanks alone)" if before else ""
        what = f"{name} has changed since the run began{said}"
    raise ResumeError("PROGRAM_CHANGED", f"{what}; bring it back, or go on with --changed")


# Answers ---------------------------------------------------------------------------------------------------------


def answer_lines(waits: Iterable[dict[str, Any]], given: Iterable[Given], mask: Mask | None = None) -> list[Any]:
    """The lines by which answers stand in a journal, with the secrets in them masked. Raises `ResumeError` for an
    answer that fits no wait, or does not say which of several."""
    lines: list[dict[str, Any]] = []
    left = list(waits)
    for one in given:
        if mask is not None:
            one = replace(one, value=mask.value(one.value))
        if one.kind == "event" and one.wait is None and not any(_listens(wait, one.event) for wait in left):
            lines.append(signal_line(str(one.event), one.value))
            continue
        wait = _wait_for(one, left)
        left.remove(wait)
        if one.kind == "again":
            lines.append({"type": "again", "target": wait["target"], "scope": wait["scope"], "args": wait["args"]})
            continue
        value = _value(one, wait)
        lines.append(_answer_line(wait, value))
        if wait["kind"] == APPROVAL and approves_all(value):
            for other in [w for w in left if w["kind"] == APPROVAL and w["target"] == wait["target"]]:
                left.remove(other)
                lines.append(_answer_line(other, {"approved": True, "all": True}))
    return lines


def signal_line(event: str, payload: Value) -> dict[str, Any]:
    """The line by which an event is sent to a run that may not listen for it yet."""
    return {"type": "signal", "id": new_run_id(), "event": event, "payload": payload, "at": now()}


def _answer_line(wait: Mapping[str, Any], value: Value) -> dict[str, Any]:
    kind = TOOL if wait["kind"] == OUTCOME else wait["kind"]
    line: dict[str, Any] = {"type": "call", "kind": kind, "target": wait["target"], "scope": wait["scope"]}
    if "call" in wait:
        line["call"] = wait["call"]
    if kind != LISTEN:
        line["args"] = wait["args"]
    if wait.get("effect") is not None:
        line["effect"] = wait["effect"]
    line["value"] = value
    if wait.get("digest"):
        line["digest"] = wait["digest"]
    return line


_ANSWERS = {
    "yes": (YIELD, APPROVAL),
    "no": (YIELD, APPROVAL),
    "answer": (YIELD, APPROVAL, LISTEN),
    "event": (LISTEN,),
    "again": (OUTCOME,),
    "done": (OUTCOME,),
    "skip": (OUTCOME,),
}
"""Which kinds of waits an answer can be for."""


def _listens(wait: Mapping[str, Any], event: str | None) -> bool:
    return (wait["kind"], wait["target"]) == (LISTEN, event)


def _wait_for(given: Given, waits: list[dict[str, Any]]) -> dict[str, Any]:
    fitting = [w for w in waits if w["kind"] in _ANSWERS[given.kind] and given.event in (None, w["target"])]
    if given.wait is not None:
        found = next((wait for wait in waits if wait["id"] == given.wait), None)
        if found is None:
            raise _wrong(f"the run does not wait for an answer with the id {given.wait}{listed(waits)}")
        if found not in fitting:
            raise _wrong(f"--{given.kind} does not answer {described(found)}")
        return found
    if len(fitting) == 1 and (len(waits) == 1 or given.event is not None):
        return fitting[0]
    if not fitting:
        raise _wrong(f"--{given.kind} answers nothing that the run waits for{listed(waits)}")
    raise _wrong(f"the run waits for several answers: say which with --wait{listed(waits)}")


def _wrong(message: str) -> ResumeError:
    return ResumeError("CONFIG", message, usage=True)


def _value(given: Given, wait: Mapping[str, Any]) -> Value:
    match given.kind:
        case "yes":
            return {"approved": True}
        case "no":
            return {"approved": False, "reason": given.value} if given.value else {"approved": False}
        case "answer" if wait["kind"] == APPROVAL and not isinstance(given.value, dict):
            return {"approved": given.value is True}
        case "skip":
            return None
    return given.value


# Going on --------------------------------------------------------------------------------------------------------


async def resume(
    what: What,
    host: Host,
    resumed: Resumed,
    store: RunStore,
    given: Iterable[Given] = (),
    *,
    changed: bool = False,
    recording: AppendFile | None = None,
    redact: Redaction | None = None,
    stop: Stop | None = None,
    tell: Callable[[Mapping[str, Any]], None] | None = None,
) -> RunResult:
    """Goes on with a claimed run, with a person's answers. They are written down, into the journal and the recording,
    once nothing is missing that the run needs and it asks for all that it has had; until then the run is as it was.
    `tell` is given the line of each.

    Raises `ConfigError` and `ResumeError` before anything runs: the latter for an answer that fits no wait, and where
    the run does not ask any more for an answer that it has had; with `changed`, for an effect that was made.
    """
    answers = list(given)
    answer_lines(resumed.waits, answers)
    journal, muted = resumed.journal, Muted(host.watcher)
    within, name = host.within, what.program.source.name

    def keep(_: What, mask: Mask) -> Kept:
        durable = bool(resumed.opening.more.get("checkpoint"))
        keeper = Keeper(recording, journal, redact=redact, durable=durable, tell=tell)
        resume_line = {"type": "resume", "at": now(), **({"changed": True} if changed else {})}
        lines = answer_lines(resumed.waits, answers, mask)
        written = _as_written((resume_line, *lines))
        if recording is not None and recording.is_empty():  # its first line was lost with the machine's power
            keeper.begins_again(decoded(next(journal.lines()), 1))
        unrecorded = _unrecorded(journal, recording)
        journaled = read_journal(chain(journal.lines(), written))
        at = journaled.resumed  # what others add to the journal meanwhile are events alone
        goes_on = False

        def go_on() -> None:
            nonlocal goes_on
            if not goes_on:
                goes_on = True
                keeper.goes_on(resume_line, lines)

        def handed(call: Call, answer: Answer, is_new: bool) -> None:
            if is_new or unrecorded(call):
                keeper.handed_in(call, answer)
            if within is not None and not is_new:
                within.made(call, answer)

        def caught_up(feed: ResumeFeed) -> None:
            if changed or journaled.changed:
                _refuse_left_out(feed, journaled)
            else:
                _refuse_unasked(feed, journaled, name)
            go_on()
            muted.is_muted = False

        feed = ResumeFeed(
            entries_of(journal, 1, at),
            [entry_of(line, number) for number, line in numbered(written, at) if line["type"] == "call"],
            changed=changed,
            elsewhere=_elsewhere(host),
            caught_up=caught_up,
            handed=handed,
            signals=lambda: signals_of(journal, mask),
            delivered=_delivers(keeper),
        )
        given = dict(enumerate(lines, at + 1))
        return Kept(resumed.run_id, keeper, store, journaled=journaled, feed=feed, given=given, go_on=go_on)

    return await run_live(what, replace(host, watcher=muted), keep=keep, begins=False, stop=stop)


def _as_written(lines: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Lines as a journal will have them. Raises `KeepingError`."""
    try:
        return [encoded(line) for line in lines]
    except UNWRITABLE as trouble:
        raise KeepingError(f"the answer cannot be kept: {trouble}") from None


def _elsewhere(host: Host) -> Callable[[Call], bool] | None:
    """Which calls are answered by what is written down nowhere: by mocks and, offline, where nothing is called."""
    covers = Mock(host.mocks, now=now, publish=lambda _: None, defaults=False).covers
    if host.is_offline:
        return lambda call: call.kind not in PEOPLE or covers(call)
    return covers if host.mocks else None


def first_feed(keeper: Keeper, journal: RunJournal, mask: Mask) -> ResumeFeed:
    """What answers a run from its journal from the start: events that are sent to it while it runs."""
    return ResumeFeed(
        iter(()),
        [],
        caught_up=lambda _: None,
        handed=lambda call, answer, is_new: None,
        signals=lambda: signals_of(journal, mask),
        delivered=_delivers(keeper),
    )


def _delivers(keeper: Keeper) -> Callable[[Call, str, Answer], None]:
    def delivered(call: Call, signal: str, answer: Answer) -> None:
        line = {"type": "call", "kind": LISTEN, "target": call.target, "scope": call.scope, "signal": signal}
        keeper.write({**line, "value": answer.value})

    return delivered


def _unrecorded(journal: RunJournal, recording: AppendFile | None) -> Callable[[Call], bool]:
    """Whether an answer that stands in the journal is missing in the recording, asked for each in turn: the process
    that wrote the two may have died between them."""
    if recording is None:
        return lambda call: False
    if sum(1 for _ in _calls(journal.lines())) == sum(1 for _ in _calls(lines_of(recording.path))):
        return lambda call: False
    recorded = Counter(
        (line["kind"], line["target"], tuple(line.get("scope", ()))) for line in _calls(lines_of(recording.path))
    )

    def is_unrecorded(call: Call) -> bool:
        place = call.kind, call.target, call.scope
        recorded[place] -= 1
        return recorded[place] < 0

    return is_unrecorded


def _calls(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    return (line for _, line in numbered(lines) if line.get("type") == "call")


_MOST_NAMED = 20

_NOTHING_DONE = ("BEYOND_PLAN", "CHANGED", "CONFIG", "DENIED", "TOOL_ARGUMENTS")
"""Failures of calls that were surely not made."""


def _refuse_left_out(feed: ResumeFeed, journaled: Journaled) -> None:
    """Raises `ResumeError` where calls with an effect are among those that a changed program has not made again."""
    left = [entry.target for entry in feed.unused() if _may_be_done(entry)]
    left += _begun_unasked(feed, journaled)
    if left:
        raise ResumeError(
            "PROGRAM_CHANGED",
            f"the run has called {_named(left)}, and the changed program goes on without that: undo it, and run anew",
        )


def _refuse_unasked(feed: ResumeFeed, journaled: Journaled, name: str) -> None:
    """Raises `ResumeError` where the program is the same, and the run does not ask for all that it was given: it would
    ask, and do, again what it did already. What is asked depends on more than the program."""
    left = [entry.target for entry in feed.unused()] + _begun_unasked(feed, journaled)
    if left:
        raise ResumeError(
            "PROGRAM_CHANGED",
            f"{name} is as it was, and yet the run does not ask again for what it has: {_named(left)}. What it asks "
            "hangs on halo.lock, halo.toml, variables, tools and models of your own, and Halo's version too; bring "
            "back what has changed there, or go on with --changed",
        )


def _may_be_done(entry: Entry) -> bool:
    error = entry.answer.error
    return entry.kind == TOOL and has_effect(entry) and (error is None or error.code not in _NOTHING_DONE)


def _begun_unasked(feed: ResumeFeed, journaled: Journaled) -> list[str]:
    """The calls that had begun, and of which nobody knows what became, that are not asked for any more."""
    if not journaled.begun:
        return []
    asked = {(call.target, call.scope, canonical(call.args)) for call in feed.asked() if call.kind == TOOL}
    return [made[0] for made in journaled.begun if made not in asked]


def _named(targets: Iterable[str]) -> str:
    names = list(dict.fromkeys(targets))
    return ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")


class Muted:
    """A watcher that is shown nothing while a resumed run catches up: it was shown that before."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self.is_muted = True
        self.watches: bool = watcher.watches

    def __getattr__(self, name: str) -> Any:
        shown = getattr(self._watcher, name)
        if name == "spends":
            return shown
        return lambda *given: None if self.is_muted else shown(*given)
