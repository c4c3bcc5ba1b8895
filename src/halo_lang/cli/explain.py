"""`halo explain CODE`: the page of an error code."""

from __future__ import annotations

from ..language.codes import CODES
from ..language.diagnostics import did_you_mean
from ..language.explain import explain_page
from .failing import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("code", metavar="CODE", nargs="?", help="without one, all codes are listed")
    parser.epilog = "For example:\n\n  halo explain UNKNOWN_NAME"


def execute(options: Namespace) -> int:
    if options.code is None:
        for code, about in CODES.items():
            print(f"{code:<28}{about}")
        return 0
    page = explain_page(options.code)
    if page is None:
        near = did_you_mean(options.code.upper(), CODES)
        raise CommandError(f"there is no code `{options.code}`; {near or '`halo explain` lists them all'}", 2)
    print(page.rstrip("\n"))
    return 0
