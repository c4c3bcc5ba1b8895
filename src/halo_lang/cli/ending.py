"""What is said of a run that has ended or paused: the document, the error with its place, the summary line (cli.md).

Owns the exit codes of runs.
"""

from __future__ import annotations

import sys

from ..app.result import result_json
from ..app.waits import described
from ..boundary.call import TOOL, has_effect
from ..language.values import to_json
from ..language.visible import visible_in_line
from .output import visible, write_document
from .programs import diagnostics_json, wants_colour
from .ways import going_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..app.result import RunResult
    from ..check.program import CheckedProgram
    from .output import Output

EXIT = {"completed": 0, "halted": 0, "failed": 1, "paused": 3, "cancelled": 130}


def report(
    program: CheckedProgram,
    result: RunResult,
    output: Output,
    options: Namespace,
    replay: str | None = None,
    *,
    not_kept: str = "",
) -> int:
    """Prints all that is to be said of a result and gives the exit code. `replay` is the file with which the run can
    be replayed, where it was recorded. `not_kept` says why it cannot go on, should it have paused."""
    if options.json:
        document = result_json(result, output.values)
        write_document({**document, "diagnostics": diagnostics_json(program)})
    elif result.status in ("completed", "halted"):
        output.finished(result.output)
    explain(result, quiet=options.quiet)
    if not options.quiet:
        print(_summary(result, replay), file=sys.stderr)
    if result.status == "paused":
        _explain_pause(result, not_kept)
    output.check()
    return EXIT[result.status]


def report_not_run(program: CheckedProgram | None, trouble: str | None, code: str = "CONFIG", **more: object) -> None:
    """Writes the document of a run that did not begin, or go on: for the errors of its file, for what it lacks, or
    because it was refused. `more` is what the document of a replay has besides."""
    from ..app.result import RunError, RunResult
    from ..doors.account import Account

    error = None if trouble is None else RunError(code, trouble, None, None)
    nothing = RunResult("", "failed", None, {"current": None, "data": {}, "meta": {}}, error, {}, Account(), (), (), 0)
    diagnostics = [] if program is None else diagnostics_json(program)
    write_document({**result_json(nothing, []), "runId": None, "diagnostics": diagnostics, **more})


def explain(result: RunResult, *, quiet: bool = False) -> None:
    """Says on stderr why a run did not complete, and what is to be known of calls without an answer. With `quiet`
    nothing is said of a halt, which is no error, nor of shadows."""
    red, off = ("\x1b[1;31m", "\x1b[0m") if wants_colour() else ("", "")
    error = result.error
    if error is not None:
        at = f"{visible(error.at)}: " if error.at else ""
        stage = f" (stage {error.stage})" if error.stage else ""
        print(f"{at}{red}error{off} {error.code}: {visible(error.message)}{stage}", file=sys.stderr)
    elif result.status == "halted" and not quiet:
        meta = result.context["meta"]
        halted = meta.get("halted") if isinstance(meta, dict) else None
        if isinstance(halted, dict):
            print(f"halted at stage {halted['stage']}: {visible(str(halted['condition']))}", file=sys.stderr)
    elif result.status == "cancelled":
        print("cancelled", file=sys.stderr)
    for (stage, target), count in _may_have_happened(result).items():
        times = f" {count} times" if count > 1 else ""
        print(f"stage {stage}: {target} was under way{times} and may or may not have happened", file=sys.stderr)
    for stage in () if quiet else result.account.beyond:
        print(f"note: input beyond the allowance at stage {stage}: it cost more than its plan counts", file=sys.stderr)
    for shadow in () if quiet else result.shadows:
        became = f"failed: {shadow.error}" if shadow.error else f"answered in {shadow.ms}ms"
        print(f"shadow {shadow.target} (stage {shadow.stage}) {visible(became)}", file=sys.stderr)


def _may_have_happened(result: RunResult) -> dict[tuple[str, str], int]:
    """The calls with an effect that were under way when the run ended, by stage and target."""
    found: dict[tuple[str, str], int] = {}
    for call in result.unanswered:
        if call.kind == TOOL and has_effect(call):
            key = call.stage, call.target
            found[key] = found.get(key, 0) + 1
    return found


def shown_wait(wait: dict[str, Any]) -> str:
    """A wait with all that is to be known before it is answered: who asks, the arguments, a file's change."""
    rows = [described(wait)]
    if wait["kind"] in ("approval", "outcome"):
        if wait.get("by"):
            rows.append(f"    asked by agent {wait['by']}")
        if wait.get("policies"):
            rows.append(f"    because of the policy {', '.join(wait['policies'])}")
        for name, value in (wait.get("args") or {}).items():
            first, *more = (value if isinstance(value, str) else to_json(value)).split("\n")
            rows += [f"    {visible_in_line(name)}: {first}", *(f"      {row}" for row in more)]
        rows += [f"    {row}" for row in str(wait.get("difference") or "").splitlines()]
    return "\n".join(rows)


def _explain_pause(result: RunResult, not_kept: str) -> None:
    for wait in result.waits:
        print(f"waits: {visible(shown_wait(wait))}", file=sys.stderr)
    if not_kept:
        print(f"paused, and not kept: {not_kept}", file=sys.stderr)
        return
    print(f"paused, and kept in .halo/runs until it ends; {going_on(result.run_id, result.waits)}", file=sys.stderr)


def _summary(result: RunResult, replay: str | None) -> str:
    account = result.account
    parts = [
        f"{result.ms}ms",
        f"{account.llm_calls} LLM call(s)",
        f"{account.tool_calls} tool call(s)",
        f"${account.cost / 1e9:.4f}",
        f"run {result.run_id}",
    ]
    if replay is not None:
        parts[-1] += f" (halo replay {replay} {result.run_id})"
    line = " · ".join(parts)
    if account.unsettled:
        line += f"\nup to ${account.unsettled / 1e9:.4f} more for requests that got no answer"
    return line
