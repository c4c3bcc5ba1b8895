"""Where the command line keeps recordings: `.halo/recordings` in the working folder (runs.md §3).

Owns finding them. What is kept of a run that begins says `keep.py`, which a replay has no use for.
"""

from __future__ import annotations

import os

from ..boundary.recording import RecordingError
from ..doors.folder import NAME, KeepingError, file_of, found_file
from ..doors.recordings import recording_ids
from .failing import CommandError

RECORDINGS = os.path.join(NAME, "recordings")


def recording_path(run_id: str) -> str:
    """The path of a run's recording. Raises `CommandError` where none is kept, or where that cannot be known."""
    try:
        path = found_file(RECORDINGS, run_id)
    except RecordingError as trouble:
        raise CommandError(trouble.message, code=trouble.code) from None
    except KeepingError as trouble:
        raise CommandError(trouble.message) from None
    if path is None:
        raise CommandError(f"there is no recording of the run {run_id}; `halo recordings` lists them")
    return path


def kept_recordings() -> list[tuple[str, str]]:
    """The ids and paths of all recordings, the newest first. Raises `CommandError`."""
    try:
        return [(run_id, file_of(RECORDINGS, run_id)) for run_id in recording_ids(RECORDINGS)]
    except KeepingError as trouble:
        raise CommandError(trouble.message) from None
