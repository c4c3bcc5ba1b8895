"""`halo resume RUN`: goes on with a paused or crashed run (runs.md §5)."""

from __future__ import annotations

import sys

from ..app.kept import signals_of
from ..app.resuming import Given, Resumed, ResumeError, check_program, claim, resume
from ..app.underway import What
from ..app.waits import listed
from ..boundary.call import APPROVAL
from ..boundary.host import ConfigError
from ..boundary.recording import RecordingError
from ..doors.folder import KeepingError, found_file
from ..doors.recordings import reopened_recording
from .ending import report, report_not_run
from .failing import CommandError
from .keep import redaction_of, run_store
from .output import visible
from .programs import checked_file, has_errors, held_to_plan, program_with_models, show
from .recorded import RECORDINGS
from .ways import has_come, ways
from .yes_to import add_yes_to, check_yes_to, said_yes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..app.result import RunResult
    from ..doors.folder import AppendFile
    from ..doors.within import Within
    from ..language.values import Value
    from .output import Output

EXAMPLE = """For example:

  halo resume 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77 --yes
  halo resume 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77 --no "not on a Friday"
  halo resume 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77 --event 'Slack.Reaction={"reaction": "approve"}'
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--yes", action="store_true", help="approve")
    parser.add_argument("--no", metavar="REASON", nargs="?", const="", help="refuse")
    parser.add_argument("--answer", metavar="JSON", help="an answer of your own")
    parser.add_argument("--event", metavar="NAME=JSON", action="append", default=[], help="deliver an event")
    parser.add_argument("--again", action="store_true", help="a call of unknown outcome: make it again")
    parser.add_argument("--done", metavar="JSON", help="a call of unknown outcome: it was made, with this result")
    parser.add_argument("--skip", action="store_true", help="a call of unknown outcome: leave it out")
    parser.add_argument("--wait", metavar="ID", help="which wait is answered, where there are several")
    parser.add_argument("--changed", action="store_true", help="go on although the file has changed")
    parser.add_argument("--json", action="store_true", help="one JSON document with all of the result")
    add_yes_to(parser)
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    given = _given(options)
    try:
        resumed = claim(run_store(), options.run, has_ended)
        try:
            return _go_on(resumed, given, options)
        finally:
            resumed.journal.release()
    except (ConfigError, ResumeError, RecordingError, KeepingError) as trouble:
        refused = _error(trouble)
        if options.json and refused.exit_code == 1:
            report_not_run(None, refused.message, refused.code or "CONFIG")
        raise refused from None


def has_ended(run_id: str) -> bool:
    """Whether a run's recording says that it was there."""
    return found_file(RECORDINGS, run_id) is not None


def _go_on(resumed: Resumed, given: list[Given], options: Namespace) -> int:
    opening = resumed.opening
    program, prices = checked_file(opening.file)
    show(program.diagnostics, program.source, quiet=options.quiet)
    if has_errors(program):
        if options.json:
            report_not_run(program, None)
        raise CommandError(f"{opening.file} has errors, so the run does not go on")
    changed = check_program(resumed, program, changed=options.changed)
    models = opening.more.get("models")
    program = program_with_models(program, [f"{a}={m}" for a, m in models.items()] if isinstance(models, dict) else [])
    pipeline = program.pipelines.get(opening.pipeline)
    if pipeline is None:
        raise ResumeError("PROGRAM_CHANGED", f"{opening.file} has no pipeline {opening.pipeline} any more")
    check_yes_to(program, options.yes_to)
    _refuse_silence(resumed, given, options.yes_to)
    kept_plan = opening.more.get("within")
    within = held_to_plan(program, prices, pipeline, kept_plan) if isinstance(kept_plan, str) else None
    if within is not None and opening.more.get("withinSha256", within.sha256) != within.sha256:
        raise ResumeError(
            "PROGRAM_CHANGED", f"{kept_plan}, which the run is held to, has changed since it began; bring it back"
        )
    recording = reopened_recording(RECORDINGS, resumed.run_id)
    try:
        what = What(program, opening.pipeline, opening.args, resumed.run_id)
        result, output = _run(what, resumed, given, changed, recording, within, options)
    finally:
        if recording is not None:
            recording.close()
    return report(program, result, output, options, replay=opening.file if recording is not None else None)


def _run(
    what: What,
    resumed: Resumed,
    given: list[Given],
    changed: bool,
    recording: AppendFile | None,
    within: Within | None,
    options: Namespace,
) -> tuple[RunResult, Output]:
    from .live import on_terminal

    more = resumed.opening.more
    started = more.get("yesTo")
    options.yes_to = [*options.yes_to, *(started if isinstance(started, list) else [])]
    redact = redaction_of(what.program) if more.get("redact") else None
    try:
        return on_terminal(
            resumed.opening.file,
            options,
            within,
            lambda host, stop: resume(
                what,
                host,
                resumed,
                run_store(),
                given,
                changed=changed,
                recording=recording,
                redact=redact,
                stop=stop,
            ),
        )
    except ValueError as trouble:
        raise ResumeError(
            "PROGRAM_CHANGED", f"the run's arguments do not fit the pipeline any more: {trouble}"
        ) from None


def _refuse_silence(resumed: Resumed, given: list[Given], yes_to: list[str]) -> None:
    """Without an answer and without a terminal nothing could go on that waits for a person."""
    if given or not resumed.journaled.is_paused or (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if has_come(resumed.waits, {signal.event for signal in signals_of(resumed.journal)}):
        return
    is_approved = said_yes(yes_to)
    if any(wait["kind"] == APPROVAL and is_approved(wait["target"]) for wait in resumed.waits):
        return  # it is asked anew, and `--yes-to` answers
    how = " or ".join(ways(resumed.waits).values())
    raise CommandError(f"the run waits for an answer: give it with {how}{visible(listed(resumed.waits))}", 2)


def _given(options: Namespace) -> list[Given]:
    found: list[Given] = []
    if options.yes:
        found.append(Given("yes", wait=options.wait))
    if options.no is not None:
        found.append(Given("no", options.no, wait=options.wait))
    if options.answer is not None:
        found.append(Given("answer", json_value("--answer", options.answer), wait=options.wait))
    for name in ("again", "skip"):
        if getattr(options, name):
            found.append(Given(name, wait=options.wait))
    if options.done is not None:
        found.append(Given("done", json_value("--done", options.done), wait=options.wait))
    if len(found) > 1:
        raise CommandError("give one answer at a time", 2)
    for word in options.event:
        event, equals, payload = word.partition("=")
        if not equals or not all(event.split(".")):
            raise CommandError(f"--event takes NAME=JSON, and got `{word[:80]}`", 2)
        found.append(Given("event", json_value("--event", payload), event=event, wait=options.wait))
    if options.wait is not None and len(found) != 1:
        raise CommandError("--wait goes with one answer: --yes, --no, --answer, --event, --again, --done or --skip", 2)
    return found


def json_value(option: str, text: str) -> Value:
    """The JSON value that an option was given. Raises `CommandError`."""
    from ..language.values import read_json

    try:
        return read_json(text)
    except ValueError as trouble:
        raise CommandError(f"{option} takes JSON, and got `{text[:80]}`: {trouble}", 2) from None


def _error(trouble: ConfigError | ResumeError | RecordingError | KeepingError) -> CommandError:
    if isinstance(trouble, ResumeError):
        return CommandError(trouble.message, 2) if trouble.usage else CommandError(trouble.message, code=trouble.code)
    if isinstance(trouble, RecordingError):
        return CommandError(trouble.message, code=trouble.code)
    return CommandError(trouble.message if isinstance(trouble, KeepingError) else str(trouble))
