"""Recordings as files (runs.md §3): made, listed, read, thrown away.

Owns the folder `.halo/recordings`. A recording is read line by line, so that its length costs no memory.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from ..boundary.recording import Entry, Opening, RecordingError, entry_of, numbered, opening_of
from ..language.record import Record
from .folder import AppendFile, KeepingError, file_of, is_run_id, lines_of, made_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

KEEP = 50
"""How many recordings are kept when a new run starts, besides those of runs that are paused or under way."""


class Recording(Record):
    """A recording that can be read any number of times.

    `finish` is its last line of that type, or None where the run never ended; `late` counts the answers that came too
    late; `has_yields` says whether it keeps answers to yields, `torn` whether its last line was cut off.
    """

    path: str
    opening: Opening
    finish: dict[str, Any] | None
    has_yields: bool
    torn: bool

    @property
    def changed(self) -> str | None:
        """Where the run was changed in the debugger, in words: then no answers make it run so again."""
        change = None if self.finish is None else self.finish.get("changed")
        return None if change is None else f"it was changed in the debugger {change}"

    def entries(self, *, late: bool = False) -> Iterator[Entry]:
        """The recorded answers in order; with `late` those too that were not handed to the run."""
        for number, line in numbered(lines_of(self.path)):
            if line.get("type") == "changed":
                raise RecordingError(f"line {number}: the run was changed in the debugger here")
            if line.get("type") == "call" and (late or not line.get("late")):
                yield entry_of(line, number)


def new_recording(
    folder: str, run_id: str, keep: int = KEEP, paused: Callable[[str], bool] | None = None
) -> AppendFile:
    """A new recording's file, after all but the newest `keep` others were deleted; never one of a run that is `paused`
    or under way. It stays locked while it is open. Raises `KeepingError`."""
    path = file_of(made_folder(folder), run_id)
    _prune(folder, keep, paused or (lambda _: False))
    try:
        made = AppendFile(path, new=True)
    except OSError as trouble:
        raise KeepingError(f"{path}: cannot be made: {trouble.strerror}") from None
    _lock(made)
    return made


def reopened_recording(folder: str, run_id: str) -> AppendFile | None:
    """The recording of a run that goes on, or None where none is kept. Raises `KeepingError`."""
    path = file_of(folder, run_id)
    if not os.path.isfile(path):
        return None
    try:
        made = AppendFile(path)
    except OSError as trouble:
        raise KeepingError(f"{path}: cannot be written: {trouble.strerror}") from None
    made.drop_torn_line()
    _lock(made)
    return made


def read_recording_file(path: str) -> Recording:
    """Looks through a recording. Raises `RecordingError` naming the first malformed line, or what the file is."""
    opening, finish, has_yields = None, None, False
    try:
        for number, line in numbered(lines_of(path)):
            if opening is None:
                opening = opening_of(line)
            elif line.get("type") == "finish":
                finish = line
            elif line.get("type") == "call":
                entry_of(line, number)
                has_yields = has_yields or line["kind"] == "yield"
    except OSError as trouble:
        raise RecordingError(f"{path}: cannot be read: {trouble.strerror}") from None
    except RecordingError as trouble:
        raise RecordingError(f"{path}: {trouble.message}") from None
    if opening is None:
        raise RecordingError(f"{path}: is empty, and no recording")
    return Recording(path, opening, finish, has_yields, _is_torn(path))


def recording_ids(folder: str) -> list[str]:
    """The ids of all recordings, the newest first."""
    return [run_id for _, run_id in sorted(_found(folder), reverse=True)]


def is_under_way(path: str) -> bool:
    """Whether the process of a run still has its file open."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _prune(folder: str, keep: int, paused: Callable[[str], bool]) -> None:
    for run_id in recording_ids(folder)[keep:]:
        path = file_of(folder, run_id)
        if not paused(run_id) and not is_under_way(path):
            with suppress(OSError):
                os.unlink(path)


def _found(folder: str) -> Iterator[tuple[float, str]]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    for name in names:
        run_id = name.removesuffix(".jsonl")
        if name.endswith(".jsonl") and is_run_id(run_id):
            with suppress(OSError):
                yield os.lstat(os.path.join(folder, name)).st_mtime, run_id


def _lock(file: AppendFile) -> None:
    with suppress(OSError):  # a file system without locks: then nothing tells that the run is under way
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_torn(path: str) -> bool:
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
