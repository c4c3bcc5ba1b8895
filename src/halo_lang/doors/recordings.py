"""Recordings as files (runs.md §3): made, listed, read, thrown away.

Owns the folder `.halo/recordings`. A recording is read line by line, so that its length costs no memory.
"""

from __future__ import annotations

import os
from contextlib import suppress

from ..boundary.recording import Entry, Opening, RecordingError, decoded, entry_of, numbered, opening_of
from ..language.record import Record
from .folder import (
    AppendFile,
    KeepingError,
    file_of,
    found_file,
    is_locked,
    last_lines,
    lines_of,
    made_folder,
    new_file,
    run_ids,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

KEEP = 50
"""How many recordings are kept when a new run starts, its own among them."""

_TOLD = ("start", "call", "resume", "finish")
"""The types of lines of which the last one says whether a run has ended."""


class Recording(Record):
    """A recording that can be read any number of times, a line at a time.

    `finish` is the line that says how the run ended or paused, None where it did not, or went on since; `torn` says
    whether the last line was cut off.
    """

    path: str
    opening: Opening
    finish: dict[str, Any] | None
    torn: bool

    @property
    def changed(self) -> str | None:
        """Where the run was changed in the debugger, in words: then no answers make it run so again."""
        change = None if self.finish is None else self.finish.get("changed")
        return None if change is None else f"it was changed in the debugger {change}"

    def finish_number(self) -> int:
        """The number of the line `finish`, 0 where there is none; reads all of it. Raises `RecordingError`."""
        found = (number for number, line in numbered(lines_of(self.path)) if line.get("type") == "finish")
        return max(found, default=0)

    def entries(self, late: Callable[[Entry], None] | None = None) -> Iterator[Entry]:
        """The answers that were handed to the run, in order. Those that came too late for the run, and for any resume
        of it, are given to `late`, at the end. Raises `RecordingError`, naming the file, for a malformed line, when it
        comes to it, and where a person changed the run."""
        waiting: list[Entry] = []
        try:
            for number, line in numbered(lines_of(self.path)):
                kind = line.get("type")
                if kind == "call":
                    entry = entry_of(line, number)
                    if line.get("late"):
                        waiting.append(entry)
                    else:
                        yield entry
                elif kind == "resume":  # who goes on is given what came too late before
                    yield from waiting
                    waiting.clear()
                elif kind == "changed":
                    raise RecordingError(f"line {number}: the run was changed in the debugger here")
        except OSError as trouble:
            raise RecordingError(f"{self.path}: cannot be read: {trouble.strerror}") from None
        except RecordingError as trouble:
            raise RecordingError(f"{self.path}: {trouble.message}") from None
        if late is not None:
            for entry in waiting:
                late(entry)


def new_recording(
    folder: str, run_id: str, keep: int = KEEP, paused: Callable[[str], bool] | None = None
) -> AppendFile:
    """A new recording's file, after all but the newest were deleted, so that `keep` are there with it; never one of a
    run that is `paused` or under way. It stays locked while it is open. Raises `KeepingError`."""
    path = file_of(made_folder(folder), run_id)
    _prune(folder, max(keep - 1, 0), paused or (lambda _: False))
    with new_file(path) as made:  # what another run, just starting, finds without a lock, it throws away
        return made


def reopened_recording(folder: str, run_id: str) -> AppendFile | None:
    """The recording of a run that goes on, or None where none is kept. Raises `KeepingError`."""
    path = found_file(folder, run_id)
    if path is None:
        return None
    try:
        made = AppendFile(path, old=True)
    except FileNotFoundError:
        return None
    except OSError as trouble:
        raise KeepingError(f"{path}: cannot be written: {trouble.strerror}") from None
    made.lock()
    made.drop_torn_line()
    return made


def read_recording_file(path: str) -> Recording:
    """Looks at the first and the last line of a recording. Raises `RecordingError`, naming the file and the line."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):  # a pipe would be waited for
            raise RecordingError("is no file")
        first = next(numbered(lines_of(path)), None)
        if first is None:
            raise RecordingError("is empty, and no recording")
        return Recording(path, opening_of(first[1]), _finish(path), _is_torn(path))
    except OSError as trouble:
        raise RecordingError(f"{path}: cannot be read: {trouble.strerror}") from None
    except RecordingError as trouble:
        raise RecordingError(f"{path}: {trouble.message}") from None


def _finish(path: str) -> dict[str, Any] | None:
    for data in last_lines(path):
        try:
            line = decoded(data, 0)
        except RecordingError:
            for _ in numbered(lines_of(path)):  # raises, with the line's number
                pass
            raise
        if line.get("type") in _TOLD:
            return line if line["type"] == "finish" else None
    return None


def recording_ids(folder: str) -> list[str]:
    """The ids of all recordings, the newest first. Raises `KeepingError`."""
    return run_ids(folder)[::-1]


def is_under_way(path: str) -> bool:
    """Whether the process of a run still has its file open."""
    return is_locked(path)


def _prune(folder: str, keep: int, paused: Callable[[str], bool]) -> None:
    for run_id in recording_ids(folder)[keep:]:
        path = file_of(folder, run_id)
        # In this order: a run that pauses is kept as paused before it is under way no more.
        if not is_under_way(path) and not paused(run_id):
            with suppress(OSError):
                os.unlink(path)


def _is_torn(path: str) -> bool:
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
