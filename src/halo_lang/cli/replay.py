"""`halo replay FILE RUN`: a recorded run again, with the answers it got (runs.md §4)."""

from __future__ import annotations

import os
import sys

from ..app.feeds import MISMATCH, ReplayFeed
from ..app.replaying import Comparison, compared, difference, ended_with, live_kinds
from ..app.result import result_json
from ..app.running import Recorded, run_replayed
from ..app.underway import What
from ..boundary.host import ConfigError
from ..boundary.recording import RecordingError
from ..doors.recordings import read_recording_file
from .ending import explain, report_not_run
from .failing import CommandError
from .output import Output, name_of, visible, write_document
from .programs import checked_file, has_errors, program_with_models, show
from .recorded import kept_recordings, recording_path
from .yes_to import add_yes_to, check_yes_to, said_yes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from ..app.result import RunResult
    from ..check.program import CheckedProgram
    from ..doors.recordings import Recording

EXAMPLE = """For example:

  halo replay tidy.halo 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77
  halo replay tidy.halo 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77 --live-models
  halo replay tidy.halo --all
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("run", metavar="RUN", nargs="?", help="the run's id")
    parser.add_argument("--all", action="store_true", help="every recording of the file's pipelines")
    parser.add_argument("--strict", action="store_true", help="every note is a difference")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--live-models", action="store_true", help="ask the models anew")
    parser.add_argument("--live-tools", action="store_true", help="call the tools anew")
    parser.add_argument("--model", metavar="AGENT=provider/model", action="append", default=[], help="another model")
    add_yes_to(parser)
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    if options.live_models and options.live_tools:
        raise CommandError("--live-models and --live-tools together replay nothing: that is `halo run`", 2)
    if (options.run is None) != options.all:
        raise CommandError("say which run to replay, or --all", 2)
    program, _ = checked_file(options.file)
    show(program.diagnostics, program.source, quiet=options.quiet or options.all)
    if has_errors(program):
        if options.json and not options.all:
            report_not_run(program, None, **_NOT_REPLAYED)
        raise CommandError(f"{options.file} has errors, so nothing was replayed")
    check_yes_to(program, options.yes_to)
    program = program_with_models(program, options.model)
    if options.all:
        return _replay_all(program, options)
    try:
        return _replay_one(program, read_recording(options.run), options)
    except CommandError as refused:
        if options.json and refused.exit_code == 1:
            report_not_run(program, refused.message, refused.code or "CONFIG", **_NOT_REPLAYED)
        raise


_NOT_REPLAYED: dict[str, Any] = {"same": False, "recorded": None, "notes": []}
"""What the document of a replay that did not begin has besides that of a run."""


def read_recording(run_id: str) -> Recording:
    """The recording of a run. Raises `CommandError` where there is none that can be replayed."""
    try:
        recording = read_recording_file(recording_path(run_id))
        if recording.changed is not None:
            raise CommandError(f"the run {run_id} cannot be replayed: {recording.changed}")
        return recording
    except RecordingError as trouble:
        raise CommandError(trouble.message, code=trouble.code) from None


def _replay_one(program: CheckedProgram, recording: Recording, options: Namespace) -> int:
    result, comparison, output = _replayed(program, recording, options, Output(as_document=options.json))
    if options.json:
        document = result_json(result, output.values)
        write_document(
            {
                **document,
                "same": comparison.same,
                "recorded": comparison.recorded,
                "notes": [
                    {"kind": n.kind, "stage": n.stage, "target": n.target, "message": n.message}
                    for n in comparison.notes
                ],
            }
        )
    elif result.status in ("completed", "halted"):
        output.finished(result.output)
    explain(result)
    tell(result, comparison, recording, options)
    output.check()
    return 0 if comparison.same else 1


def _replayed(
    program: CheckedProgram, recording: Recording, options: Namespace, output: Output
) -> tuple[RunResult, Comparison, Output]:
    opening = recording.opening
    if opening.pipeline not in program.pipelines:
        raise CommandError(
            f"{options.file} has no pipeline {name_of(opening.pipeline)}, which was recorded", code=MISMATCH
        )
    what = What(program, opening.pipeline, opening.args, opening.run_id)
    live = live_kinds(models=options.live_models, tools=options.live_tools)
    try:
        feed = ReplayFeed(recording, live, said_yes(options.yes_to))
        if live:
            from ..app.running import run_live
            from .live import on_terminal

            recorded = Recorded(feed, live)
            result, output = on_terminal(
                options.file, options, None, lambda host, stop: run_live(what, host, recorded=recorded, stop=stop)
            )
        else:
            result = run_replayed(what, feed, output)
        return result, compared(result, recording, feed, strict=options.strict), output
    except ConfigError as trouble:
        raise CommandError(str(trouble)) from None
    except RecordingError as trouble:
        raise CommandError(trouble.message, code=trouble.code) from None
    except ValueError as trouble:
        raise CommandError(f"the pipeline or its input changed: {trouble}", code=MISMATCH) from None


def tell(result: RunResult, comparison: Comparison, recording: Recording, options: Namespace) -> None:
    """Says how a replay compares with the recorded run."""
    to = sys.stderr
    for note in comparison.notes:
        print(f"note: {visible(note.message)}", file=to)
    run_id = visible(recording.opening.run_id)  # as the recording says
    if comparison.same:
        if not options.quiet:
            print(f"✓ Same output as the recorded run {run_id}", file=to)
        return
    recorded = comparison.recorded
    print(f"≠ Different from the recorded run {run_id}: it ended with {visible(ended_with(recorded))}", file=to)
    apart = next((note for note in comparison.notes if note.stage is not None), None)
    if apart is not None:
        print(visible(f"the two went apart at stage {apart.stage}, {apart.target}"), file=to)
    elif result.error is not None and result.error.stage:
        print(f"the two went apart at stage {result.error.stage}", file=to)
    if result.status in ("completed", "halted") and recorded["status"] in ("completed", "halted"):
        for row in difference(recorded["output"], result.output):
            print(visible(row), file=to)


def _replay_all(program: CheckedProgram, options: Namespace) -> int:
    """Replays every recording of the file's pipelines and prints a table: exit 1 if one differs."""
    rows: list[tuple[str, str, str, str]] = []
    documents = []
    for run_id, path in kept_recordings():
        try:
            recording = read_recording_file(path)
        except RecordingError as trouble:
            rows.append(("≠", run_id, "", f"RECORDING_INVALID: {trouble.message}"))
            documents.append({"runId": run_id, "same": False, "message": trouble.message})
            continue
        if not _is_of(recording, program):
            continue
        if recording.changed is not None:  # no difference: it could not come out the same
            rows.append(("-", run_id, recording.opening.pipeline, f"not replayed: {recording.changed}"))
            continue
        verdict, message = _verdict(program, recording, options)
        rows.append(("✓" if verdict else "≠", run_id, recording.opening.pipeline, message))
        documents.append({"runId": run_id, "pipeline": recording.opening.pipeline, "same": verdict, "message": message})
    if options.json:
        write_document({"replays": documents})
    else:
        for mark, run_id, pipeline, message in rows:
            print(visible(f"{mark} {run_id}  {pipeline}  {message}".rstrip()))
        if not rows:
            print(f"there are no recordings of {visible(options.file)}", file=sys.stderr)
    return 1 if any(mark == "≠" for mark, *_ in rows) else 0


def _is_of(recording: Recording, program: CheckedProgram) -> bool:
    """Whether a recording is of a program's file, or of one that was moved here."""
    opening, file = recording.opening, program.source.name
    if "\0" in opening.file:
        return False
    same_file = os.path.realpath(opening.file) == os.path.realpath(file)
    moved = os.path.basename(opening.file) == os.path.basename(file) and not os.path.exists(opening.file)
    return (same_file or moved) and opening.pipeline in program.pipelines


def _verdict(program: CheckedProgram, recording: Recording, options: Namespace) -> tuple[bool, str]:
    try:
        _, comparison, _ = _replayed(program, recording, options, _Silent(as_document=True))
    except CommandError as trouble:
        return False, str(trouble)
    if comparison.same:
        return True, f"{len(comparison.notes)} note(s)" if comparison.notes else ""
    return False, f"it ended with {ended_with(comparison.recorded)}"


class _Silent(Output):
    """Shows nothing of a run."""

    def printed(self, value: object) -> None: ...

    published = printed
