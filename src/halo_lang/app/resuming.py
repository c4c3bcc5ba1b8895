"""Resuming: a paused or crashed run goes on from its journal, in another process (runs.md §5).

Owns what answers may be given to a paused run, and what is refused: a run that somebody else resumes or that has
ended, an answer that fits no wait, a program that changed.
"""

from __future__ import annotations

from ..boundary.call import APPROVAL, LISTEN, YIELD
from ..boundary.recording import RecordingError, encoded
from ..check.identity import changed_parts, part_keys, source_key
from ..doors.keeping import Keeper
from ..doors.stores import Conflict, Unknown
from ..language.record import Record
from .clock import now
from .feeds import ResumeFeed
from .kept import Kept, answer_line, read_journal
from .running import EVERYTHING, Recorded, run_live

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..boundary.call import Call
    from ..boundary.recording import Opening
    from ..check.program import CheckedProgram
    from ..doors.answering import Stop
    from ..doors.folder import AppendFile
    from ..doors.stores import RunJournal, RunStore
    from ..language.values import Value
    from ..runtime.redact import Redaction
    from .kept import Journal
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
    content: Journal

    @property
    def opening(self) -> Opening:
        return self.content.opening

    @property
    def waits(self) -> list[dict[str, Any]]:
        return self.content.journaled.waits


def claim(store: RunStore, run_id: str, ended: Callable[[str], bool]) -> Resumed:
    """Claims a run that is to go on. Raises `ResumeError` with `RESUME_CONFLICT` where somebody else has it or it has
    `ended`, `RecordingError` where there is no such run or its journal is damaged."""
    try:
        journal = store.claim(run_id)
    except Conflict:
        raise ResumeError("RESUME_CONFLICT", f"the run {run_id} is being resumed, or is still running") from None
    except Unknown:
        if ended(run_id):
            raise ResumeError("RESUME_CONFLICT", f"the run {run_id} has ended; nothing is left to resume") from None
        raise RecordingError(f"there is no paused run {run_id}; `halo runs` lists them") from None
    try:
        return Resumed(run_id, journal, read_journal(journal.lines()))
    except RecordingError:
        journal.release()
        raise


def check_program(resumed: Resumed, program: CheckedProgram, *, changed: bool) -> bool:
    """Whether the program differs from the run's. Raises `ResumeError` (`PROGRAM_CHANGED`) unless that is allowed."""
    opening = resumed.opening
    if opening.sha256 == source_key(program.source):
        return False
    if changed:
        return True
    before = opening.more.get("parts")
    parts = changed_parts(before, part_keys(program)) if isinstance(before, dict) and before else []
    what = f": {', '.join(parts)}" if parts else " (comments or blanks alone)" if before else ""
    raise ResumeError(
        "PROGRAM_CHANGED",
        f"{program.source.name} has changed since the run began{what}; bring it back, or go on with --changed",
    )


def write_answers(
    resumed: Resumed,
    given: Iterable[Given],
    recording: AppendFile | None,
    tell: Callable[[Mapping[str, Any]], None] | None = None,
) -> Resumed:
    """Writes answers into the journal (and the recording), so that the run gets them as it goes on; gives what the
    journal holds then. `tell` is given the line of each. Raises `ResumeError` for an answer that fits no wait, or does
    not say which of several.
    """
    lines: list[dict[str, Any]] = [{"type": "resume", "at": now()}]
    open_waits = list(resumed.waits)
    for one in given:
        if one.kind == "event" and not any(w["kind"] == LISTEN and w["target"] == one.event for w in open_waits):
            lines.append(signal_line(str(one.event), one.value))
            continue
        wait = _wait_for(one, open_waits)
        open_waits.remove(wait)
        if one.kind == "again":
            lines.append({"type": "again", "target": wait["target"], "scope": wait["scope"], "args": wait["args"]})
            continue
        value = _value(one, wait)
        lines.append(answer_line(wait, value))
        if wait["kind"] == APPROVAL and isinstance(value, dict) and value.get("approved") is True and value.get("all"):
            for other in [w for w in open_waits if w["kind"] == APPROVAL and w["target"] == wait["target"]]:
                open_waits.remove(other)
                lines.append(answer_line(other, {"approved": True, "all": True}))
    data = b"".join(encoded(line) for line in lines)
    resumed.journal.append(data)
    resumed.journal.sync()
    if recording is not None:
        recording.append(data)
    if tell is not None:
        for line in lines:
            if line["type"] == "call":
                tell(line)
    return Resumed(resumed.run_id, resumed.journal, read_journal(resumed.journal.lines()))


def signal_line(event: str, payload: Value) -> dict[str, Any]:
    """The line by which an event is sent to a run that may not listen for it yet."""
    from .clock import new_run_id

    return {"type": "signal", "id": new_run_id(), "event": event, "payload": payload, "at": now()}


async def resume(
    what: What,
    host: Host,
    resumed: Resumed,
    store: RunStore,
    *,
    old: int,
    changed: bool = False,
    recording: AppendFile | None = None,
    redact: Redaction | None = None,
    stop: Stop | None = None,
    tell: Callable[[Mapping[str, Any]], None] | None = None,
) -> RunResult:
    """Goes on with a claimed run. `old` is the number of the last line that the run had before this resume.

    Raises `ConfigError` before anything runs, `ResumeError` where a changed program leaves out an effect that was made.
    """
    content = resumed.content
    durable = bool(content.opening.more.get("checkpoint"))
    keeper = Keeper(recording, resumed.journal, redact=redact, durable=durable, tell=tell)
    kept = Kept(resumed.run_id, keeper, store, journaled=content.journaled)
    muted = Muted(host.watcher)

    def caught_up() -> None:
        if changed:
            left = feed.unused_effects()
            if left:
                targets = ", ".join(dict.fromkeys(entry.target for entry in left))
                raise ResumeError(
                    "PROGRAM_CHANGED", f"the run has called {targets}, and the changed program does not: undo it first"
                )
        muted.is_muted = False

    def delivered(call: Call, signal: str, answer: Any) -> None:
        line = {"type": "call", "kind": LISTEN, "target": call.target, "scope": call.scope, "signal": signal}
        keeper.write({**line, "value": answer.value})

    feed = ResumeFeed(
        content.entries(resumed.journal),
        list(content.journaled.signals),
        old,
        caught_up,
        changed=changed,
        record_signal=delivered,
    )
    host = _with_watcher(host, muted)
    recorded = Recorded(feed, EVERYTHING, None, content.journaled)
    return await run_live(what, host, keep=lambda: kept, recorded=recorded, stop=stop)


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


def _with_watcher(host: Host, watcher: Any) -> Host:
    from ..language.record import replace

    return replace(host, watcher=watcher)


_ANSWERS = {
    "yes": (YIELD, APPROVAL),
    "no": (YIELD, APPROVAL),
    "answer": (YIELD, APPROVAL, LISTEN),
    "event": (LISTEN,),
    "again": ("outcome",),
    "done": ("outcome",),
    "skip": ("outcome",),
}
"""Which kinds of waits an answer can be for."""


def _wait_for(given: Given, waits: list[dict[str, Any]]) -> dict[str, Any]:
    if given.wait is not None:
        found = [wait for wait in waits if wait["id"] == given.wait]
        if not found:
            raise ResumeError(
                "CONFIG", f"the run does not wait for an answer with the id {given.wait}{_listed(waits)}", usage=True
            )
        if found[0]["kind"] not in _ANSWERS[given.kind]:
            raise ResumeError("CONFIG", f"--{given.kind} does not answer {described(found[0])}", usage=True)
        return found[0]
    fitting = [w for w in waits if w["kind"] in _ANSWERS[given.kind] and given.event in (None, w["target"])]
    if len(fitting) == 1 and (len(waits) == 1 or given.event is not None):
        return fitting[0]
    if not fitting:
        raise ResumeError(
            "CONFIG", f"--{given.kind} answers nothing that the run waits for{_listed(waits)}", usage=True
        )
    raise ResumeError("CONFIG", f"the run waits for several answers: say which with --wait{_listed(waits)}", usage=True)


def _value(given: Given, wait: dict[str, Any]) -> Value:
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


def described(wait: dict[str, Any]) -> str:
    """A wait in a line: `a1b2c3d4  yield at stage 2: Publish this draft?`."""
    what = {
        "yield": wait.get("message") or "a person's answer",
        "approval": f"approval of {wait['target']}",
        "listen": f"the event {wait['target']}",
        "outcome": f"whether {wait['target']} happened is unknown (UNKNOWN_OUTCOME)",
    }[wait["kind"]]
    return f"{wait['id']}  {wait['kind']} at stage {wait['stage']}: {' '.join(str(what).split())}"


def _listed(waits: list[dict[str, Any]]) -> str:
    return "".join(f"\n  {described(wait)}" for wait in waits)
