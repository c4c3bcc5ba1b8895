"""`halo runs`: the runs that are paused or were interrupted, what they wait for, and since when; `rm RUN` gives one up
(runs.md §5)."""

from __future__ import annotations

import sys
import textwrap

from ..app.kept import read_journal
from ..app.waits import public_wait
from ..boundary.recording import RecordingError, encoded, finish_line
from ..doors.folder import KeepingError, file_of
from ..doors.recordings import is_under_way, reopened_recording
from ..doors.stores import RunConflict, RunUnknown
from .ending import shown_wait
from .failing import CommandError
from .keep import RUNS, kept_runs, run_store
from .output import visible, write_document
from .recorded import RECORDINGS
from .ways import going_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable
    from typing import Any


EXAMPLE = """For example:

  halo runs
  halo runs --json
  halo runs rm 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action", metavar="ACTION", nargs="?", choices=("list", "rm"), default="list", help="list (the default) or rm"
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="the run's id")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    if (options.run is None) != (options.action == "list"):
        raise CommandError("`halo runs rm` takes a run, and `halo runs` none", 2)
    if options.action == "rm":
        return _give_up(options.run)
    store = run_store()
    runs = []
    for run_id in kept_runs():
        try:
            runs.append(described(run_id, store.peek(run_id)))
        except RunUnknown:
            continue  # it ended just now
    if options.json:
        write_document({"runs": runs})
        return 0
    for run in runs:
        since = run["waits"][0]["since"] if run["waits"] else run["startedAt"]
        which = "" if run["status"] == "damaged" else f"  {run['pipeline']} ({run['file']})  since {since}"
        print(visible(f"{run['runId']}  {run['status']}{which}"))
        for wait in run["waits"]:
            print(visible(f"  {shown_wait(wait)}"))
        for event in run["events"]:
            print(visible(f"  sent, and not yet delivered: the event {event}"))
        if said := way_on(run):
            print(visible(textwrap.indent(said, "  ")))
    if not runs and not options.quiet:
        print("there are no paused runs", file=sys.stderr)
    return 0


def _give_up(run_id: str) -> int:
    """Gives up a paused, interrupted or damaged run: its recording says that it was cancelled, its journal goes."""
    try:
        journal = run_store().claim(run_id)
        try:
            recording = reopened_recording(RECORDINGS, run_id)
            if recording is not None:
                recording.append(encoded(finish_line("cancelled", None, None)))
                recording.close()
            journal.delete()
        finally:
            journal.release()
    except RunUnknown:
        raise CommandError(f"there is no paused run {run_id}; `halo runs` lists them") from None
    except RunConflict:
        raise CommandError(f"the run {run_id} is being resumed, or is still running", code="RESUME_CONFLICT") from None
    except RecordingError as trouble:
        raise CommandError(trouble.message, code=trouble.code) from None
    except KeepingError as trouble:
        raise CommandError(trouble.message) from None
    return 0


def way_on(run: dict[str, Any]) -> str:
    """How a described run goes on, or what can be done with it; empty for one that is under way."""
    if run["status"] == "paused":
        return going_on(run["runId"], run["waits"], run["events"])
    return run["message"] or ""


def described(run_id: str, lines: Iterable[bytes]) -> dict[str, Any]:
    """What is said of a run that is kept, by the lines of its journal. Raises `RunUnknown`, `KeepingError`."""
    under_way = is_under_way(file_of(RUNS, run_id))
    run: dict[str, Any] = {"runId": run_id, "status": "running" if under_way else "interrupted"}
    try:
        journaled = read_journal(lines)
    except RecordingError as trouble:
        empty: dict[str, Any] = {"pipeline": None, "file": None, "startedAt": None, "waits": [], "events": []}
        message = f"{trouble.message}; give it up with: halo runs rm {run_id}"
        return {**run, **empty, "status": "damaged", "message": message}
    opening = journaled.opening
    if not under_way and journaled.is_paused:
        run["status"] = "paused"
    return {
        **run,
        "pipeline": opening.pipeline,
        "file": opening.file,
        "startedAt": opening.started_at,
        "waits": [public_wait(wait) for wait in journaled.waits],
        "events": [signal.event for signal in journaled.signals],
        "message": None if journaled.is_paused or under_way else going_on(run_id, ()),
    }
