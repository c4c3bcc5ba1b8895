"""Recordings for the library: made from a run, read, and made into mocks (library.md, runs.md §3, §4)."""

from __future__ import annotations

import os

from ..app.clock import now
from ..app.feeds import exact_kinds
from ..boundary.call import AGENT, APPROVAL, TOOL, Answer, failed
from ..boundary.recording import UNWRITABLE, RecordingError, encoded, finish_line, start_line
from ..doors.folder import file_of
from ..doors.journal import Journal
from ..doors.recordings import Recording, new_recording, read_recording_file
from ..language.record import Record
from ..runtime.driver import Request
from .errors import HaloError
from .given import given_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..boundary.call import Call
    from ..doors.folder import AppendFile
    from ..language.values import Value


class RecordedCall(Record):
    """A call and the answer that the run got, as a recorder is told. `line` is its line in a recording."""

    kind: str
    target: str
    scope: tuple[int, ...]
    value: Value
    error: dict[str, str] | None
    tool_calls: tuple[dict[str, Any], ...]
    line: Mapping[str, Any]


def recorded_call(line: Mapping[str, Any]) -> RecordedCall:
    """A line in the form that a recorder is told."""
    return RecordedCall(
        line["kind"],
        line["target"],
        tuple(line["scope"]),
        line.get("value"),
        line.get("error"),
        tuple(line.get("toolCalls", ())),
        line,
    )


class Recorder:
    """Writes a recording into a folder. Give `record` to `HaloRuntime(recorder=…)`, call `start` before the run and
    `finish` after it. Raises `HaloError` where the folder or the file cannot be written."""

    def __init__(self, folder: str | os.PathLike[str], run_id: str) -> None:
        self._folder = os.fspath(folder)
        self._run_id = run_id
        self._file: AppendFile | None = None

    def start(
        self, pipeline: str, args: Mapping[str, object] | None = None, *, file: str = "", sha256: str = ""
    ) -> None:
        """Begins the recording."""
        given = given_arguments(args)
        try:
            self._file = new_recording(self._folder, self._run_id)
        except RecordingError as trouble:
            raise HaloError("CONFIG", trouble.message) from None
        self._write(start_line(self._run_id, pipeline, given, file, sha256, now()))

    def record(self, call: RecordedCall) -> None:
        """Adds a call's line."""
        self._write(call.line)

    def finish(self, *, status: str, output: Value = None, error: Any = None, waits: Iterable[Any] = ()) -> None:
        """Ends the recording. `error` may be a result's error, or its form in JSON."""
        if error is not None and not isinstance(error, dict):
            error = {"code": error.code, "message": error.message, "stage": error.stage, "at": error.at}
        self._write(finish_line(status, output, error, waits))
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._file is None:
            raise HaloError("CONFIG", "call `start` before the run, and `finish` once, after it")
        try:
            self._file.append(encoded(line))
        except UNWRITABLE as trouble:
            raise HaloError("CONFIG", f"a value cannot be written down as JSON: {trouble}") from None


class ReadRecording:
    """A recording that was read. `status`, `output` and `error` are how the run ended, None where it did not."""

    def __init__(self, recording: Recording) -> None:
        finish = recording.finish or {}
        self.recording = recording
        self.run_id = recording.opening.run_id
        self.pipeline = recording.opening.pipeline
        self.args = recording.opening.args
        self.status: str | None = finish.get("status")
        self.output: Value = finish.get("output")
        self.error: dict[str, Value] | None = finish.get("error")


def read_recording(folder: str | os.PathLike[str], run_id: str) -> ReadRecording:
    """Reads a recording. Raises `HaloError` (`RECORDING_INVALID`) for one that is not there or is malformed."""
    try:
        return ReadRecording(read_recording_file(file_of(os.fspath(folder), run_id)))
    except RecordingError as trouble:
        raise HaloError("RECORDING_INVALID", trouble.message) from None


def read_recording_at(path: str | os.PathLike[str]) -> ReadRecording:
    """Reads a recording by its path. Raises `HaloError` as `read_recording` does."""
    try:
        return ReadRecording(read_recording_file(os.fspath(path)))
    except RecordingError as trouble:
        raise HaloError("RECORDING_INVALID", trouble.message) from None


def replay_mocks(
    recording: ReadRecording,
    *,
    live_models: bool = False,
    live_tools: bool = False,
    tools: Iterable[str] | None = None,
) -> dict[str, Callable[[Call], Answer]]:
    """Mocks for `mock_all` that answer as the recording does.

    Give `tools`, the names of the declared tools and stores, to refuse calls of tools that the recording never called;
    without it such calls would run for real. A call finds the answer that it had by the three rules of `halo replay`:
    by its place and question, by its question, by its place.
    """
    live = {AGENT} if live_models else set()
    live |= {TOOL, APPROVAL} if live_tools else set()
    entries = [entry for entry in recording.recording.entries() if entry.kind not in live]
    # With live tools nobody's yes to one thing may let another happen, as in `halo replay`.
    answer = _Answers(Journal(iter(entries), rules=3, exact=exact_kinds(frozenset(live))))
    keys = dict.fromkeys("approval" if entry.kind == APPROVAL else entry.target for entry in entries)
    # Of a tool or an agent that was recorded other methods are answered too: by a refusal.
    keys.update((entry.target.partition(".")[0], None) for entry in entries if entry.kind in (AGENT, TOOL))
    if not live_tools:
        keys.update(dict.fromkeys(tools or ()))
    keys.pop("System", None)
    return dict.fromkeys(keys, answer)


def is_of_a_recording(mock: object) -> bool:
    """Whether a mock is one that `replay_mocks` made."""
    return isinstance(mock, _Answers)


class _Answers:
    """The recorded answers, each used once."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __call__(self, call: Call) -> Answer:
        asked = Request(call, None)  # type: ignore[arg-type]  # of no branch: nothing moves on by it
        self._journal.add(asked)
        hit = self._journal.take()
        if hit is not None:
            return hit.entry.answer
        self._journal.withdraw(asked)
        return failed(
            "REPLAY_MISMATCH", f"the pipeline or its input changed: the recording has no answer for {call.target}"
        )


__all__ = ["ReadRecording", "RecordedCall", "Recorder", "read_recording", "read_recording_at", "replay_mocks"]
