"""The answers of `--mock FILE.json` (cli.md): read, and held to what the program asks for.

Owns the reading of such a file. A key that answers nothing is most likely a slip, and is named (`check/unasked.py`).
Read `doors/mock.py` for what an answer may be.
"""

from __future__ import annotations

import sys

from ..check.unasked import unasked
from ..doors.mock import mock_problem
from ..language.source import MAX_BYTES
from ..language.values import read_json
from .failing import CommandError
from .output import visible
from .programs import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..check.program import CheckedProgram
    from ..language.values import Value


def mock_answers(name: str, program: CheckedProgram, *, quiet: bool = False) -> dict[str, Value]:
    """The answers of a mock file; none for the empty name. Raises `CommandError`."""
    if not name:
        return {}
    data = read_file(name)
    if len(data) > MAX_BYTES:
        raise CommandError(f"{name}: is larger than {MAX_BYTES >> 20} MiB", 2)
    try:
        answers = read_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise CommandError(f"{name}: is not UTF-8", 2) from None
    except ValueError as trouble:
        raise CommandError(f"{name}: is no JSON: {trouble}", 2) from None
    problem = mock_problem(answers)
    if problem is not None or not isinstance(answers, dict):
        raise CommandError(f"{name}: {problem}", 2)
    if not quiet:
        for key, near in unasked(answers, program):
            print(f"warning: {name}: nothing asks for `{visible(key)}`{f'; {near}' if near else ''}", file=sys.stderr)
    return answers
