"""`halo recordings`: lists recordings; `show ID`, `rm ID`, `export ID` (runs.md §3)."""

from __future__ import annotations

import os
import sys

from ..boundary.recording import RecordingError, encoded, entry_of, numbered
from ..doors.folder import lines_of
from ..doors.keeping import redacted_line
from ..doors.recordings import is_under_way, read_recording_file
from ..language.values import to_json
from .ending import EXIT
from .failing import CommandError
from .files import replace_file
from .keep import kept_runs, redaction_of
from .output import name_of, visible, write_document
from .programs import checked_file
from .recorded import kept_recordings, recording_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from ..doors.recordings import Recording

EXAMPLE = """For example:

  halo recordings
  halo recordings show 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77
  halo recordings export 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77 --redact > kept.jsonl
  halo recordings rm 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "action",
        metavar="ACTION",
        nargs="?",
        choices=("list", "show", "rm", "export"),
        default="list",
        help="list (the default), show, export or rm",
    )
    parser.add_argument("run", metavar="RUN", nargs="?", help="the run's id")
    parser.add_argument("--redact", action="store_true", help="use the file's Redact rules on what is exported")
    parser.add_argument("--test", action="store_true", help="export beside the file, and print a test")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    if options.action == "list":
        if options.run is not None:
            raise CommandError("`halo recordings list` takes no run", 2)
        return _list(options)
    if options.run is None:
        raise CommandError(f"say which: halo recordings {options.action} RUN", 2)
    try:
        return {"show": _show, "rm": _remove, "export": _export}[options.action](recording_path(options.run), options)
    except RecordingError as trouble:
        raise CommandError(f"RECORDING_INVALID: {trouble.message}") from None
    except RecursionError:
        raise CommandError(f"RECORDING_INVALID: {options.run}: a value nests too deep to be shown") from None


def _list(options: Namespace) -> int:
    found = []
    for run_id, path in kept_recordings():
        try:
            found.append(_described(run_id, read_recording_file(path), under_way=is_under_way(path)))
        except RecordingError as trouble:
            found.append({"runId": run_id, "status": "damaged", "message": trouble.message})
    if options.json:
        write_document({"recordings": found})
        return 0
    for row in found:
        named = f"{row.get('pipeline', '')} ({row.get('file', '')})  {row.get('startedAt', '')}"
        print(visible(f"{row['runId']}  {row['status']:<9}  {row.get('message') or named}"))
    if not found and not options.quiet:
        print("there are no recordings here", file=sys.stderr)
    return 0


def _described(run_id: str, recording: Recording, *, under_way: bool) -> dict[str, Any]:
    opening = recording.opening
    ended = "running" if under_way else "cut off"
    return {
        "runId": run_id,
        "status": ended if recording.finish is None else str(recording.finish.get("status")),
        "pipeline": opening.pipeline,
        "file": opening.file,
        "startedAt": opening.started_at,
    }


def _show(path: str, options: Namespace) -> int:
    recording = read_recording_file(path)
    if options.json:
        write_document({"lines": [line for _, line in numbered(lines_of(path))]})
        return 0
    opening = recording.opening
    print(visible(f"{opening.pipeline} ({opening.file})  {opening.started_at}"))
    print(visible(f"arguments: {_short(opening.args)}"))
    for number, line in numbered(lines_of(path)):
        if line.get("type") == "call":
            entry_of(line, number)  # raises for one that is damaged
            print(visible(_call_row(line)))
        elif line.get("type") == "resume":
            print(visible(f"  resumed  {line.get('at')}"))
    finish = recording.finish
    if finish is None:
        print("the run has no end here")
    else:
        ended = finish.get("waits") or finish.get("error") or finish.get("output")
        print(visible(f"{finish.get('status')}: {_short(ended)}"))
    return 0


def _call_row(line: dict[str, Any]) -> str:
    scope = f" {line['scope']}" if line.get("scope") else ""
    row = f"  {line['kind']:<8} {line['target']}{scope}"
    if line.get("args"):
        row += f" {_short(line['args'])}"
    row += f" → {_short(line['error'])}" if "error" in line else f" → {_short(line.get('value'))}"
    more = [f"{line['ms']}ms"] if "ms" in line else []
    if "cost" in line:
        more.append(f"${line['cost']:.4f}")
    if line.get("late"):
        more.append("too late for the run")
    if more:
        row += f"  ({', '.join(more)})"
    for use in line.get("toolCalls", ()):
        wanted = use.get("args", use.get("raw"))
        row += f"\n           asks for {use.get('target') or use.get('name')} {_short(wanted)}"
    return row


def _short(value: Any) -> str:
    text = to_json(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _remove(path: str, options: Namespace) -> int:
    if is_under_way(path):
        raise CommandError(f"the run {options.run} is still under way")
    if options.run in kept_runs():
        ways = "end it with `halo resume`, or give it up with `halo runs rm`"
        raise CommandError(f"the run {options.run} is paused: {ways}")
    os.unlink(path)
    return 0


def _export(path: str, options: Namespace) -> int:
    """Prints a recording's lines, or makes a test of it."""
    recording = read_recording_file(path)
    if options.test:
        return _export_test(path, recording, options)
    sys.stdout.flush()
    for line in _exported(path, recording, options):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
    return 0


def _export_test(path: str, recording: Recording, options: Namespace) -> int:
    """Keeps a recording beside its file, and prints the test that replays it. A recording may be a stranger's: nothing
    that it says becomes a path, or text of the program, unless it is known."""
    file, pipeline, run_id = recording.opening.file, recording.opening.pipeline, options.run
    program, _ = checked_file(file)
    if pipeline not in program.pipelines:
        raise CommandError(f"{file} has no pipeline {name_of(pipeline)}, which was recorded", code="REPLAY_MISMATCH")
    if recording.finish is None:
        raise CommandError(f"the run {run_id} has no end, so there is nothing that a test could expect")
    ended = recording.finish.get("status")
    if not isinstance(ended, str) or ended not in EXIT:
        raise CommandError("it does not say how the run ended", code="RECORDING_INVALID")
    folder = os.path.join(os.path.dirname(file), "recordings")
    os.makedirs(folder, exist_ok=True)
    name = f"{run_id}.jsonl"
    replace_file(os.path.join(folder, name), b"".join(_exported(path, recording, options)))
    print(f'\ntest "{pipeline} as recorded, {ended}":\n  replay "recordings/{name}"')
    if not options.quiet:
        print(visible(f"kept in {os.path.join(folder, name)}; add the test to {file}"), file=sys.stderr)
    return 0


def _exported(path: str, recording: Recording, options: Namespace) -> Iterator[bytes]:
    """A recording's lines, redacted by the rules of its file if that is asked."""
    redact = None
    if options.redact:
        program, _ = checked_file(recording.opening.file)
        redact = redaction_of(program)
        if redact is None:
            raise CommandError(f"{recording.opening.file} has no Redact rule to redact by")
    for _, line in numbered(lines_of(path)):
        yield encoded(line if redact is None else redacted_line(line, redact))
