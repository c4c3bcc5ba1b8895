"""`halo fmt FILE …`: formats in place; `--check` and `--diff` only look."""

from __future__ import annotations

import sys

from ..language.diagnostics import ERROR
from ..language.source import decode
from .files import replace_file
from .output import visible, write_line
from .programs import read_file, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="change nothing; print what would change")
    parser.epilog = "For example:\n\n  halo fmt tidy.halo\n  halo fmt --check --diff *.halo"


def execute(options: Namespace) -> int:
    failed = False
    for name in options.files:
        failed |= _format(name, options)
    return 1 if failed else 0


def _format(name: str, options: Namespace) -> bool:
    """Formats one file; gives whether the command fails because of it."""
    from ..language.format import format_source
    from ..language.parser import parse

    data = read_file(name)
    source, found = decode(name, data)
    program, more = parse(source)
    errors = [d for d in (*found, *more) if d.severity == ERROR]
    if errors:
        show(errors, source)
        return True
    text = format_source(source, program)
    if text.encode() == data:
        return False
    if options.diff:
        _print_difference(name, source.text, text)
    if options.check or options.diff:
        if options.check and not options.quiet:
            print(f"{visible(name)}: would be formatted", file=sys.stderr)
        return bool(options.check)
    replace_file(name, text.encode())
    if not options.quiet:
        print(f"{visible(name)}: formatted", file=sys.stderr)
    return False


def _print_difference(name: str, before: str, after: str) -> None:
    from difflib import unified_diff

    for line in unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm=""):
        write_line(line, sys.stdout)
