"""Which keys of mock answers nothing in a program would ever ask for (cli.md `--mock`, library.md).

Owns the one rule on it: such a key is most likely a slip, and the call that it was meant for would be made for real.
Read `doors/mock.py` for how an answer is found.
"""

from __future__ import annotations

from ..language.diagnostics import did_you_mean
from .file_tests import Asked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .program import CheckedProgram

ALWAYS = ("yield", "approval", "System", "System.Now", "System.Wait", "System.Publish")
"""What may be answered in any program."""


def unasked(keys: Iterable[str], program: CheckedProgram) -> list[tuple[str, str | None]]:
    """The keys that answer nothing, each with the help that offers a near one, if there is one.

    A key answers something if it is an agent, tool or store of the program, a method that an agent is called by or
    that a tool has, an event or its source, or one of `ALWAYS`.
    """
    asked = Asked(program.pipelines)
    sources = {event.partition(".")[0]: None for event in sorted(asked.events)}
    known = dict.fromkeys((*ALWAYS, *asked.events, *sources, *program.agents, *program.tools, *asked.methods))
    found = []
    for key in keys:
        owner, _, method = key.partition(".")
        tool = program.tools.get(owner)
        is_a_method = tool is not None and (tool.methods is None or tool.method(method) is not None)
        if not (key in known or is_a_method or (asked.any_event and owner not in known)):
            found.append((key, did_you_mean(key, known)))
    return found
