"""`halo check FILE …`: errors and warnings, nothing run."""

from __future__ import annotations

from .programs import checked_file, diagnostics_json, has_errors, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..check.program import CheckedProgram


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--strict", action="store_true", help="warnings fail too")
    parser.add_argument("--json", action="store_true", help="one JSON document with all diagnostics")
    parser.epilog = "For example:\n\n  halo check tidy.halo\n  halo check --strict --json *.halo"


def execute(options: Namespace) -> int:
    programs = [_checked(name) for name in options.files]
    if options.json:
        from .output import write_document

        found = [diagnostic for program in programs for diagnostic in diagnostics_json(program)]
        write_document({"diagnostics": found})
    else:
        for program in programs:
            show(program.diagnostics, program.source, quiet=options.quiet)
    return 1 if any(has_errors(program, strict=options.strict) for program in programs) else 0


def _checked(name: str) -> CheckedProgram:
    """The program of a file. Raises `CommandError` where its `halo.toml` has an error too, needed or not."""
    program, prices = checked_file(name)
    _ = prices.project
    return program
