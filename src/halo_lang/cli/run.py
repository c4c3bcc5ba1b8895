"""`halo run FILE [NAME=VALUE …]`: runs a pipeline (cli.md).

Owns the command's flags, what it prints and its exit codes. The run itself is wired by `app`.
"""

from __future__ import annotations

import sys

from ..app.running import as_json, run_mocked
from ..boundary.host import ConfigError
from .arguments import chosen_pipeline, given_arguments
from .failing import CommandError
from .output import Output
from .programs import checked_file, diagnostics_json, has_errors, read_file, show, wants_colour

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..app.running import RunResult
    from ..check.program import CheckedPipeline, CheckedProgram
    from ..doors.within import Within
    from ..language.values import Value
    from .programs import ProjectPrices

EXIT = {"completed": 0, "halted": 0, "failed": 1, "paused": 3, "cancelled": 130}

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
    parser.add_argument("--within", metavar="PLAN.json", help="fail before anything that this kept plan has not")
    parser.add_argument("--model", metavar="AGENT=provider/model", action="append", default=[], help="another model")
    parser.add_argument("--yes-to", metavar="TOOL.method", action="append", default=[], help="approve these calls")
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    if options.mock and "=" in options.mock and not _exists(options.mock):
        options.arguments.insert(0, options.mock)  # `--mock x=1`: the word after it is an argument
        options.mock = ""
    program, prices = _program(options)
    pipeline = chosen_pipeline(program, options.pipeline)
    args = given_arguments(pipeline, options.arguments, options.args)
    within = None if options.within is None else _within(program, prices, pipeline, options.within)
    if options.mock is not None:
        answers = _mock_answers(options.mock)
        output = Output(as_document=options.json)
        result = run_mocked(program, pipeline.name, args, answers, output, within)
    else:
        result, output = _run_live(program, pipeline, args, options, within)
    return _report(program, result, output, options)


def _program(options: Namespace) -> tuple[CheckedProgram, ProjectPrices]:
    program, prices = checked_file(options.file)
    show(program.diagnostics, program.source, quiet=options.quiet)
    if has_errors(program):
        if options.json:
            from json import dumps

            print(dumps({"status": "failed", "diagnostics": diagnostics_json(program)}, ensure_ascii=False, indent=2))
        raise CommandError(f"{options.file} has errors, so nothing was run")
    if options.model:
        from ..app.preparing import with_models

        try:
            return with_models(program, _models(options.model)), prices
        except ConfigError as trouble:
            raise CommandError(f"--model: {trouble}", 2) from None
    return program, prices


def _within(program: CheckedProgram, prices: ProjectPrices, pipeline: CheckedPipeline, name: str) -> Within:
    """What a kept plan allows. Raises `CommandError` for a plan of other source, or made with other prices."""
    from ..doors.within import Within
    from ..plan.document import read_document, source_key

    try:
        kept = read_document(read_file(name))
    except ValueError as trouble:
        raise CommandError(f"{name}: {trouble}", 2) from None
    again = f"make it anew: halo plan {program.source.name} --out {name}"
    if kept["sha256"] != source_key(program.source):
        raise CommandError(f"{name}: BEYOND_PLAN: this is the plan of other source; {again}")
    if kept["assumes"]["pricesKey"] != prices.project.prices_key():
        raise CommandError(f"{name}: BEYOND_PLAN: this plan was made with other prices; {again}")
    try:
        return Within(kept, pipeline.name)
    except KeyError:
        raise CommandError(f"{name}: BEYOND_PLAN: the pipeline {pipeline.name} is not in this plan; {again}") from None


def _models(words: list[str]) -> dict[str, str]:
    models: dict[str, str] = {}
    for word in words:
        agent, equals, model = word.partition("=")
        provider, slash, name = model.partition("/")
        if not (agent and equals and provider and slash and name):
            raise CommandError(f"--model takes AGENT=provider/model, and got `{word}`", 2)
        models[agent] = model
    return models


def _run_live(
    program: CheckedProgram,
    pipeline: CheckedPipeline,
    args: dict[str, Value],
    options: Namespace,
    within: Within | None,
) -> tuple[RunResult, Output]:
    from .live import run_on_terminal

    try:
        return run_on_terminal(program, pipeline.name, args, options, within)
    except ConfigError as trouble:
        raise CommandError(str(trouble)) from None


# Mock answers ----------------------------------------------------------------------------------------------------


def _mock_answers(name: str) -> dict[str, Value]:
    if not name:
        return {}
    from ..doors.mock import mock_problem
    from ..language.values import read_json

    data = read_file(name)
    try:
        answers = read_json(data.decode())
    except UnicodeDecodeError:
        raise CommandError(f"{name}: is not UTF-8", 2) from None
    except ValueError as trouble:
        raise CommandError(f"{name}: is no JSON: {trouble}", 2) from None
    problem = mock_problem(answers)
    if problem is not None or not isinstance(answers, dict):
        raise CommandError(f"{name}: {problem}", 2)
    return answers


def _exists(name: str) -> bool:
    import os

    return os.path.exists(name)


# What is said of the result --------------------------------------------------------------------------------------


def _report(program: CheckedProgram, result: RunResult, output: Output, options: Namespace) -> int:
    if options.json:
        from json import dumps

        document = as_json(result, output.values) | {"diagnostics": diagnostics_json(program)}  # type: ignore[dict-item]
        print(dumps(document, ensure_ascii=False, indent=2))
    elif result.status in ("completed", "halted"):
        output.finished(result.output)
    _explain_ending(result)
    if not options.quiet:
        print(_summary(result), file=sys.stderr)
    return EXIT[result.status]


def _explain_ending(result: RunResult) -> None:
    red, off = ("\x1b[1;31m", "\x1b[0m") if wants_colour() else ("", "")
    error = result.error
    if error is not None:
        at = f"{error.at}: " if error.at else ""
        stage = f" (stage {error.stage})" if error.stage else ""
        print(f"{at}{red}error{off} {error.code}: {error.message}{stage}", file=sys.stderr)
    elif result.status == "halted":
        halted = result.context["meta"]["halted"]  # type: ignore[index,call-overload]
        print(f"halted at stage {halted['stage']}: {halted['condition']}", file=sys.stderr)  # type: ignore[index,call-overload]
    elif result.status == "cancelled":
        print("cancelled", file=sys.stderr)
    for call in result.unanswered:
        if call.kind == "tool" and call.effect in ("write", "external", None):
            print(f"stage {call.stage}: {call.target} was under way and may or may not have happened", file=sys.stderr)
    for shadow in result.shadows:
        became = f"failed: {shadow.error}" if shadow.error else f"answered in {shadow.ms}ms"
        print(f"shadow {shadow.target} (stage {shadow.stage}) {became}", file=sys.stderr)


def _summary(result: RunResult) -> str:
    account = result.account
    parts = (
        f"{result.ms}ms",
        f"{account.llm_calls} LLM call(s)",
        f"{account.tool_calls} tool call(s)",
        f"${account.cost / 1e9:.4f}",
        f"run {result.run_id}",
    )
    return " · ".join(parts)
