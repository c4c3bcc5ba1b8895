"""`halo debug FILE [NAME=VALUE …]`: a run, stage by stage (cli.md, docs/reference/debug.md).

Owns the command's flags and what a debugged run is wired to: mocks, a recording, or the world. The commands are in
`debugger.py`, what they do in `app/debugging.py`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ..app.clock import new_run_id
from ..app.debugging import Session
from ..app.feeds import ReplayFeed
from ..app.loop import run_to_end
from ..app.replaying import compared
from ..app.running import Host, debug_mocked, debug_replayed, run_live
from ..app.settings import read_settings
from ..app.underway import What
from ..boundary.host import ConfigError
from ..boundary.recording import RecordingError
from ..doors.answering import Stop
from ..doors.folder import KeepingError
from ..doors.live import GRACE_S
from .arguments import chosen_pipeline, given_arguments
from .debugger import Debugger
from .ending import EXIT, report
from .failing import CommandError
from .keep import start_keeping
from .live import handlers_of, listen_for_signals, log_plainly, say_where_from
from .mock_file import mock_answers
from .output import Output, name_of, visible
from .programs import held_to_plan
from .replay import read_recording, tell
from .run import program_of
from .terminal import Terminal
from .yes_to import add_yes_to, said_yes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Coroutine
    from typing import Any

    from ..app.result import RunResult
    from ..check.program import CheckedProgram
    from ..doors.recordings import Recording
    from ..doors.within import Within
    from ..language.values import Value

    Start = Callable[["Desk"], Coroutine[Any, Any, RunResult]]

EXAMPLE = """For example:

  halo debug tidy.halo task="Tidy the notes"
  halo debug tidy.halo task=x --mock answers.json
  halo debug tidy.halo --replay 6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77
  printf 'break 3\\ncontinue\\nprint context.data\\n' | halo debug tidy.halo task=x --mock

Commands come from standard input; `help` lists them.
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("arguments", metavar="NAME=VALUE", nargs="*", help="NAME=@FILE too")
    parser.add_argument("--pipeline", metavar="P", help="which pipeline, where the file has several")
    parser.add_argument("--args", metavar="JSON", help="arguments as a JSON object, or @FILE")
    parser.add_argument(
        "--mock", metavar="FILE.json", nargs="?", const="", help="call nothing; answers from the file or by default"
    )
    parser.add_argument("--replay", metavar="RUN", help="a recorded run, forward and back; calls nothing")
    parser.add_argument("--json", action="store_true", help="one JSON document with all of the result")
    parser.add_argument("--no-record", action="store_true", help="keep no recording")
    parser.add_argument("--redact-recording", action="store_true", help="use the file's Redact rules on the recording")
    parser.add_argument("--within", metavar="PLAN.json", help="fail before anything that this kept plan has not")
    parser.add_argument("--model", metavar="AGENT=provider/model", action="append", default=[], help="another model")
    add_yes_to(parser)
    parser.set_defaults(checkpoint=False)
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    if any(word.endswith("=-") for word in options.arguments):
        raise CommandError("standard input holds the debugger's commands; give the argument by NAME=@FILE", 2)
    if options.replay is not None and (options.mock is not None or options.arguments or options.args):
        raise CommandError("--replay takes the recorded arguments and answers, and neither --mock nor NAME=VALUE", 2)
    program, prices = program_of(options)
    try:
        if options.replay is not None:
            return _replay(program, read_recording(options.replay), options)
        pipeline = chosen_pipeline(program, options.pipeline)
        args = given_arguments(pipeline, options.arguments, options.args)
        within = None if options.within is None else held_to_plan(program, prices, pipeline, options.within)
        what = What(program, pipeline.name, args, new_run_id())
        if options.mock is not None:
            return _mocked(what, mock_answers(options.mock, program, quiet=options.quiet), within, options)
        return _live(what, within, options)
    except ConfigError as trouble:
        raise CommandError(str(trouble)) from None
    except KeepingError as trouble:
        raise CommandError(f"nothing was run: {trouble.message}") from None


class Desk:
    """What a debugged run has at the command line."""

    def __init__(self, options: Namespace, output: Output) -> None:
        self.options = options
        self.output = output
        self.stop = Stop()
        self._end = listen_for_signals(self.stop, output, lambda: self.debugger.interrupted())
        self.debugger = Debugger(self._leave)
        self.stop.told = self.debugger.wake
        self.session = self.debugger.session = Session(self.debugger, replays=options.replay is not None)

    def _leave(self) -> None:
        self.stop.ask()
        asyncio.get_running_loop().call_later(GRACE_S, self._end)


def _at_desk(options: Namespace, output: Output, start: Start) -> tuple[RunResult, Session]:
    session: list[Session] = []

    async def run() -> RunResult:
        desk = Desk(options, output)
        session.append(desk.session)
        return await start(desk)

    return run_to_end(run()), session[0]


def _mocked(what: What, answers: dict[str, Value], within: Within | None, options: Namespace) -> int:
    output = Output(as_document=options.json, quiet=options.quiet)
    result, _ = _at_desk(
        options, output, lambda desk: debug_mocked(what, answers, output, within, desk.session, desk.stop)
    )
    return report(what.program, result, output, options)


def _live(what: What, within: Within | None, options: Namespace) -> int:
    path = Path(options.file)
    settings = read_settings(path)
    if options.verbose:
        settings = say_where_from(settings)
    log_plainly(options.verbose)
    output = Output(as_document=options.json, quiet=options.quiet)
    asks = sys.stdin.isatty() and sys.stderr.isatty()

    def start(desk: Desk) -> Coroutine[Any, Any, RunResult]:
        handlers = desk.debugger.in_turn(handlers_of(Terminal(output) if asks else None, options.yes_to))
        host = Host(path, settings, output, handlers, within, stepper=desk.session)
        keep = lambda begun, mask: start_keeping(begun, options, settings.project, mask, within)  # noqa: E731
        return run_live(what, host, keep=keep, stop=desk.stop)

    result, session = _at_desk(options, output, start)
    is_replayable = not options.no_record and session.change is None
    replay = options.file if is_replayable else None
    lost = "" if session.change is None else f"changed {session.change}: the run can be neither replayed nor resumed"
    code = report(what.program, result, output, options, replay, not_kept=lost)
    if lost and result.status != "paused" and not options.quiet:
        print(visible(lost), file=sys.stderr)
    return code


def _replay(program: CheckedProgram, recording: Recording, options: Namespace) -> int:
    opening = recording.opening
    if opening.pipeline not in program.pipelines:
        raise CommandError(
            f"{options.file} has no pipeline {name_of(opening.pipeline)}, which was recorded", code="REPLAY_MISMATCH"
        )
    what = What(program, opening.pipeline, opening.args, opening.run_id)
    output = _Replayed(as_document=options.json, quiet=options.quiet)
    feeds: list[ReplayFeed] = []

    async def start(desk: Desk) -> RunResult:
        session, debugger = desk.session, desk.debugger
        output.session = session
        while True:
            feed = ReplayFeed(recording, frozenset(), said_yes(options.yes_to))
            feeds[:] = [feed]
            result = await debug_replayed(what, feed, output, session, desk.stop)
            if debugger.goal is None:
                return result
            goal, debugger.goal = debugger.goal, None
            session.start_over(goal)
            output.values.clear()

    try:
        result, session = _at_desk(options, output, start)
    except RecordingError as trouble:
        raise CommandError(trouble.message, code=trouble.code) from None
    except ValueError as trouble:
        raise CommandError(f"REPLAY_MISMATCH: the pipeline or its input changed: {trouble}") from None
    code = report(program, result, output, options, not_kept="it is a replay")
    if result.status == "cancelled" and EXIT["cancelled"] == code and recording.finish is not None:
        return code
    if session.change is not None or session.hands_used:
        print("changed in the debugger, so it is not compared with the recorded run", file=sys.stderr)
        return code
    comparison = compared(result, recording, feeds[0], strict=False)
    tell(result, comparison, recording, options)
    return 0 if comparison.same else 1


class _Replayed(Output):
    """Shows a replay, but for what it was on its way to where it is wanted: that was shown before."""

    session: Session | None = None

    def _write(self, value: Value) -> None:
        if self.session is None or not self.session.is_seeking:
            super()._write(value)

    def logged(self, value: Value) -> None:
        if self.session is None or not self.session.is_seeking:
            super().logged(value)
