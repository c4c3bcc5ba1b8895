"""Where the command line keeps runs: `.halo` in the working folder (runs.md §3, §5).

Owns the choice between a recording, a checkpoint's journal, and neither.
"""

from __future__ import annotations

import os

from ..app.kept import Kept, check_place, opening_line
from ..app.resuming import first_feed
from ..boundary.recording import encoded
from ..doors.folder import NAME, KeepingError, found_file
from ..doors.keeping import Keeper
from ..doors.recordings import new_recording
from ..doors.stores import FileRunStore
from ..runtime.redact import redaction
from .failing import CommandError
from .recorded import RECORDINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ..app.project import Project
    from ..app.underway import What
    from ..check.program import CheckedProgram
    from ..doors.mask import Mask
    from ..doors.within import Within
    from ..language.values import Value
    from ..runtime.redact import Redaction

RUNS = os.path.join(NAME, "runs")


def run_store() -> FileRunStore:
    return FileRunStore(RUNS)


def kept_runs() -> list[str]:
    """The ids of the runs that can go on, the oldest first. Raises `CommandError`."""
    try:
        return run_store().ids()
    except KeepingError as trouble:
        raise CommandError(trouble.message) from None


def start_keeping(what: What, options: Namespace, project: Project, mask: Mask, within: Within | None = None) -> Kept:
    """What keeps a run that begins now: its first line is written. Raises `KeepingError`."""
    store = run_store()
    check_place(store, what.run_id)
    started: dict[str, Value] = {
        "models": dict(word.split("=", 1) for word in options.model),
        "yesTo": list(options.yes_to),
        "within": options.within,
    }
    if within is not None:
        started["withinSha256"] = within.sha256
    if options.checkpoint:
        opening = opening_line(what, **started, checkpoint=True)
        journal = store.create(what.run_id, [encoded(opening)])
        keeper = Keeper(None, journal, durable=True)
        return Kept(what.run_id, keeper, store, feed=first_feed(keeper, journal, mask))
    if options.no_record:
        keeper = Keeper(spools=True)
        keeper.write(opening_line(what, **started))
        return Kept(what.run_id, keeper, store)
    redact = redaction_of(what.program) if options.redact_recording else None
    recording = new_recording(
        RECORDINGS, what.run_id, project.keep, lambda run_id: found_file(RUNS, run_id) is not None
    )
    keeper = Keeper(recording, redact=redact, spools=redact is not None)
    try:
        keeper.write(opening_line(what, **started, redact=options.redact_recording))
    except KeepingError:
        keeper.close()
        os.unlink(recording.path)
        raise
    return Kept(what.run_id, keeper, store, recording_path=None if redact else recording.path)


def redaction_of(program: CheckedProgram) -> Redaction | None:
    """The function that does what all Redact rules of a file say."""
    return redaction(tuple(program.policies.values()))
