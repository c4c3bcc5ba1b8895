"""`--yes-to TOOL.method`: the calls to which somebody has said yes beforehand (cli.md).

Owns the flag: how it is declared, what it refuses, and which calls it means.
"""

from __future__ import annotations

from .failing import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

    from ..check.program import CheckedProgram


def add_yes_to(parser: ArgumentParser) -> None:
    parser.add_argument("--yes-to", metavar="TOOL.method", action="append", default=[], help="approve these calls")


def check_yes_to(program: CheckedProgram, patterns: list[str]) -> None:
    """Refuses a pattern that approves nothing: most likely it is not what was meant. Raises `CommandError`."""
    from ..check.policies import matches

    if not patterns or any(tool.methods is None for tool in program.tools.values()):
        return
    known = [f"{tool.name}.{method.name}" for tool in program.tools.values() for method in tool.methods or ()]
    for pattern in patterns:
        if not any(matches(pattern, target) for target in known):
            from ..language.diagnostics import did_you_mean

            near = did_you_mean(pattern, known) or "it takes TOOL.method, with * for any run of characters"
            raise CommandError(f"--yes-to: the file has no method `{pattern}`; {near}", 2)


def said_yes(patterns: list[str]) -> Callable[[str], bool]:
    """Whether the method of a call is among those that were approved."""
    from ..check.policies import matches

    return lambda target: any(matches(pattern, target) for pattern in patterns)
