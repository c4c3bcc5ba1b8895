"""`halo run FILE [NAME=VALUE …]`: runs a pipeline (cli.md).

Owns the command's flags, what it prints and its exit codes. The run itself is wired by `app`.
"""

from __future__ import annotations

import sys

from ..app.clock import new_run_id
from ..app.running import run_mocked
from ..app.underway import What
from ..boundary.host import ConfigError
from ..doors.folder import KeepingError
from .arguments import chosen_pipeline, given_arguments
from .ending import report, report_not_run
from .failing import CommandError
from .output import Output
from .programs import checked_file, has_errors, held_to_plan, program_with_models, show
from .yes_to import add_yes_to, check_yes_to

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..app.result import RunResult
    from ..check.program import CheckedProgram
    from ..doors.within import Within
    from .programs import ProjectPrices

EXAMPLE = """For example:

  halo run tidy.halo task="Tidy the notes"
  halo run tidy.halo --pipeline Tidy --args '{"task": "Tidy"}' --json
  halo run tidy.halo task=@task.txt --mock answers.json
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("arguments", metavar="NAME=VALUE", nargs="*", help="NAME=@FILE and NAME=- (stdin) too")
    parser.add_argument("--pipeline", metavar="P", help="which pipeline, where the file has several")
    parser.add_argument("--args", metavar="JSON", help="arguments as a JSON object, or @FILE")
    parser.add_argument(
        "--mock", metavar="FILE.json", nargs="?", const="", help="call nothing; answers from the file or by default"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document with all of the result")
    parser.add_argument("--no-record", action="store_true", help="keep no recording")
    parser.add_argument("--redact-recording", action="store_true", help="use the file's Redact rules on the recording")
    parser.add_argument("--checkpoint", action="store_true", help="keep each answer on disk: a crash loses nothing")
    parser.add_argument("--within", metavar="PLAN.json", help="fail before anything that this kept plan has not")
    parser.add_argument("--model", metavar="AGENT=provider/model", action="append", default=[], help="another model")
    add_yes_to(parser)
    parser.epilog = EXAMPLE


def prepared(words: list[str]) -> list[str]:
    """The words with `--mock` closed where the next one is the program or an argument: `--mock p.halo x=1`."""
    made = list(words)
    for at, word in enumerate(words[:-1]):
        after = words[at + 1]
        if word == "--mock" and (after.endswith(".halo") or ("=" in after and not _exists(after))):
            made[at] = "--mock="
    return made


def execute(options: Namespace) -> int:
    program, prices = program_of(options)
    pipeline = chosen_pipeline(program, options.pipeline)
    args = given_arguments(pipeline, options.arguments, options.args)
    within = None if options.within is None else held_to_plan(program, prices, pipeline, options.within)
    what = What(program, pipeline.name, args, new_run_id())
    if options.mock is not None:
        from .mock_file import mock_answers

        answers = mock_answers(options.mock, program, quiet=options.quiet)
        output = Output(as_document=options.json, quiet=options.quiet)
        return report(program, run_mocked(what, answers, output, within), output, options)
    result, output = _run_live(what, options, within)
    is_recorded = not (options.no_record or options.checkpoint)
    return report(program, result, output, options, replay=options.file if is_recorded else None)


def program_of(options: Namespace) -> tuple[CheckedProgram, ProjectPrices]:
    """The program to run, and its project's prices. Raises `CommandError` for one that has errors."""
    program, prices = checked_file(options.file)
    show(program.diagnostics, program.source, quiet=options.quiet)
    if has_errors(program):
        if options.json:
            report_not_run(program, None)
        raise CommandError(f"{options.file} has errors, so nothing was run")
    check_yes_to(program, options.yes_to)
    return program_with_models(program, options.model), prices


def _run_live(what: What, options: Namespace, within: Within | None) -> tuple[RunResult, Output]:
    from ..app.running import run_live
    from .keep import start_keeping
    from .live import on_terminal

    if options.checkpoint:
        print(f"run {what.run_id} (halo resume {what.run_id} goes on after a crash)", file=sys.stderr)
    try:
        return on_terminal(
            options.file,
            options,
            within,
            lambda host, stop: run_live(
                what,
                host,
                keep=lambda begun, mask: start_keeping(begun, options, host.settings.project, mask, within),
                stop=stop,
            ),
        )
    except (ConfigError, KeepingError) as trouble:
        message = str(trouble) if isinstance(trouble, ConfigError) else f"nothing was run: {trouble.message}"
        if options.json:
            report_not_run(what.program, message)
        raise CommandError(message) from None


def _exists(name: str) -> bool:
    import os

    return os.path.exists(name)
