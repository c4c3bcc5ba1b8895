"""`halo plan FILE`: what a run could do and cost, before it runs (plan.md)."""

from __future__ import annotations

import sys

from ..plan.bounds import INPUT_TOKENS
from ..plan.effects import one_line
from ..plan.making import make_plan
from ..plan.report import report
from .failing import CommandError
from .output import visible
from .programs import checked_file, has_errors, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from ..check.program import CheckedProgram
    from ..plan.checks import Check
    from ..plan.difference import Change
    from ..plan.plan import Plan
    from .programs import ProjectPrices

NOT_MET = 3

EXAMPLE = """For example:

  halo plan tidy.halo
  halo plan tidy.halo --pipeline Tidy --json
  halo plan tidy.halo --max-cost 1.00 --deny external
  halo plan tidy.halo --out plan.json; halo run tidy.halo --within plan.json
  halo plan tidy.halo --diff before.halo
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--pipeline", metavar="P", help="this pipeline alone")
    parser.add_argument("--json", action="store_true", help="the same facts as one JSON document")
    parser.add_argument(
        "--input-tokens",
        metavar="N",
        type=int,
        default=INPUT_TOKENS,
        help="the allowance for inputs that a plan cannot know (default: %(default)s)",
    )
    parser.add_argument("--max-cost", metavar="USD", help="exit 3 if it could cost more")
    parser.add_argument("--deny", metavar="EFFECTS", help="exit 3 if such calls run without approval: external,write")
    parser.add_argument("--graph", choices=("mermaid", "svg"), help="the plan as a picture")
    parser.add_argument("--out", metavar="PLAN.json", help="keep the plan, for `halo run --within`")
    parser.add_argument("--diff", metavar="OTHER", help="what changed against a file or a kept plan; exit 3 if wider")
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    if options.input_tokens < 0:
        raise CommandError("--input-tokens takes a whole number of at least 0", 2)
    _refuse_two_outputs(options)
    checks = _checks(options)
    program, prices = checked_file(options.file)
    show(program.diagnostics, program.source, quiet=options.quiet)
    plans = _plans(program, prices, options)
    if not plans:
        print(f"{visible(options.file)}: there is no pipeline, so there is nothing to plan", file=sys.stderr)
    code = 0
    if options.diff is not None:
        code = _compare(options.diff, _document(program, prices, plans, options), options)
    elif options.json:
        _print_json(_document(program, prices, plans, options))
    elif options.graph is not None:
        from ..plan import graph

        print({"mermaid": graph.mermaid, "svg": graph.svg}[options.graph](plans))
    elif options.out is None and plans:
        print("\n\n".join(report(plan) for plan in plans))
    if has_errors(program):
        if options.out is not None:
            print(visible(f"{options.out}: not written, for {options.file} has errors"), file=sys.stderr)
        return 1
    if options.out is not None:
        _keep(options.out, _document(program, prices, plans, options))
    for problem in (problem for check in checks for plan in plans for problem in check(plan)):
        print(visible(f"{options.file}: {problem}"), file=sys.stderr)
        code = NOT_MET
    return code


def _refuse_two_outputs(options: Namespace) -> None:
    if options.graph is not None and (options.json or options.diff is not None):
        raise CommandError(f"--graph and {'--json' if options.json else '--diff'} both want standard output", 2)


def _checks(options: Namespace) -> list[Check]:
    from ..plan.checks import cost_check, effects_check

    checks: list[Check] = []
    try:
        if options.max_cost is not None:
            checks.append(cost_check(options.max_cost))
        if options.deny is not None:
            checks.append(effects_check(options.deny))
    except ValueError as trouble:
        raise CommandError(str(trouble), 2) from None
    return checks


def _plans(program: CheckedProgram, prices: ProjectPrices, options: Namespace) -> list[Plan]:
    names = list(program.pipelines)
    if options.pipeline is not None:
        from .arguments import chosen_pipeline

        names = [chosen_pipeline(program, options.pipeline).name]
    return [make_plan(program, name, prices.price, options.input_tokens) for name in names]


def _document(program: CheckedProgram, prices: ProjectPrices, plans: list[Plan], options: Namespace) -> dict[str, Any]:
    from ..catalog.prices import prices_date
    from ..plan.document import document

    return document(
        program,
        plans,
        input_tokens=options.input_tokens,
        prices=prices_date(),
        prices_key=prices.project.prices_key(),
    )


def _print_json(content: object) -> None:
    from json import dumps

    print(dumps(content, ensure_ascii=False, indent=2))


def _keep(name: str, content: dict[str, Any]) -> None:
    from json import dumps

    from ..plan.document import MAX_BYTES
    from .files import replace_file

    data = (dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
    if len(data) > MAX_BYTES:
        most = f"{MAX_BYTES >> 20} MiB"
        raise CommandError(f"{name}: the plan has more than {most}; keep that of one pipeline, with --pipeline")
    replace_file(name, data)


def _compare(other: str, after: dict[str, Any], options: Namespace) -> int:
    """Prints what changed against a file or a kept plan; gives exit code 3 where something was widened."""
    from ..plan.difference import difference

    before = _other_document(other, options)
    _say_other_assumptions(other, before["assumes"], after["assumes"])
    changes = difference(before, after)
    if options.json:
        _print_json({"widened": any(c.widens for c in changes), "changes": [_change_json(c) for c in changes]})
    else:
        for change in changes:
            print(f"{change.sign} {one_line(f'{change.pipeline}: {change.text}')}{' (wider)' if change.widens else ''}")
        if not changes and not options.quiet:
            print("the plans are the same", file=sys.stderr)
    return NOT_MET if any(change.widens for change in changes) else 0


def _change_json(change: Change) -> dict[str, object]:
    return {"pipeline": change.pipeline, "sign": change.sign, "text": change.text, "widens": change.widens}


def _say_other_assumptions(other: str, before: dict[str, Any], after: dict[str, Any]) -> None:
    if before["pricesKey"] != after["pricesKey"]:
        print(f"{visible(other)}: planned with other prices, so costs may differ for that alone", file=sys.stderr)
    if before["inputTokens"] != after["inputTokens"]:
        what = f"planned with --input-tokens {before['inputTokens']}, not {after['inputTokens']}"
        print(f"{visible(other)}: {what}, so costs differ for that alone", file=sys.stderr)


def _other_document(other: str, options: Namespace) -> dict[str, Any]:
    from ..plan.document import MAX_BYTES, read_document
    from .programs import read_file

    data = read_file(other, MAX_BYTES)
    if other.endswith(".json") or data.lstrip()[:1] == b"{":  # no program begins so
        try:
            kept = read_document(data)
        except ValueError as trouble:
            raise CommandError(f"{other}: {trouble}", 2) from None
        chosen = [p for p in kept["pipelines"] if options.pipeline in (None, p["name"])]
        return {**kept, "pipelines": chosen}
    program, prices = checked_file(other)
    if has_errors(program):
        show(program.diagnostics, program.source, quiet=True)
        raise CommandError(f"{other} has errors, so there is no plan to compare with")
    names = [name for name in program.pipelines if options.pipeline in (None, name)]
    plans = [make_plan(program, name, prices.price, options.input_tokens) for name in names]
    return _document(program, prices, plans, options)
