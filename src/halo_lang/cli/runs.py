"""`halo runs`: the runs that are paused or were interrupted, what they wait for, and since when (runs.md §5)."""

from __future__ import annotations

import sys

from ..app.kept import read_journal
from ..app.waits import public_wait
from ..boundary.recording import RecordingError
from ..doors.folder import file_of
from ..doors.recordings import is_under_way
from ..doors.stores import RunUnknown
from .ending import shown_wait
from .keep import RUNS, kept_runs, run_store
from .output import visible, write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = "For example:\n\n  halo runs\n  halo runs --json"


def execute(options: Namespace) -> int:
    store = run_store()
    runs = []
    for run_id in kept_runs():
        try:
            runs.append(_described(run_id, store.peek(run_id)))
        except RunUnknown:
            continue  # it ended just now
    if options.json:
        write_document({"runs": runs})
        return 0
    for run in runs:
        since = run["waits"][0]["since"] if run["waits"] else run["startedAt"]
        print(visible(f"{run['runId']}  {run['status']}  {run['pipeline']} ({run['file']})  since {since}"))
        for wait in run["waits"]:
            print(visible(f"  {shown_wait(wait)}"))
        if run["message"]:
            print(visible(f"  {run['message']}"))
    if not runs and not options.quiet:
        print("there are no paused runs", file=sys.stderr)
    return 0


def _described(run_id: str, lines: Any) -> dict[str, Any]:
    under_way = is_under_way(file_of(RUNS, run_id))
    run: dict[str, Any] = {"runId": run_id, "status": "running" if under_way else "interrupted"}
    try:
        journaled = read_journal(lines)
    except RecordingError as trouble:
        empty: dict[str, Any] = {"pipeline": None, "file": None, "startedAt": None, "waits": []}
        return {**run, **empty, "status": "damaged", "message": trouble.message}
    opening = journaled.opening
    is_paused = journaled.finish is not None and bool(journaled.waits)
    if not under_way and is_paused:
        run["status"] = "paused"
    return {
        **run,
        "pipeline": opening.pipeline,
        "file": opening.file,
        "startedAt": opening.started_at,
        "waits": [public_wait(wait) for wait in journaled.waits],
        "message": None if is_paused or under_way else f"go on with: halo resume {run_id}",
    }
