"""Shell commands: values inserted in them as inert data, and what they run (tools.md §2 Bash, §3 DenyArgs).

Owns what the checker, the policies and the runtime ask about a command line. Runs nothing. The command that bash is
given holds shell variables in the places of the values, so that bash has read the whole command before it sees one.
`shell_places.py` says in which places that keeps a value inert, `shell_commands.py` takes a line apart; both stand on
`shell_grammar.py`.
"""

from __future__ import annotations

from ..language.ast import Path, Text
from ..language.diagnostics import Diagnostic
from ..language.record import Record
from ..language.source import Span
from .shell_commands import simple_commands as simple_commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..language.values import Value


class ShellCommand(Record):
    """A command with shell variables in the places of its values. `names` is the variable of each inserted path, in
    the order of the text's parts; a path that is inserted twice has one."""

    command: str
    names: tuple[str, ...]


def place_values(text: Text) -> tuple[ShellCommand | None, tuple[Diagnostic, ...]]:
    """The command that a literal stands for, or None and a `SHELL_PLACE` for each value that has no inert place in it
    (language.md §4, tools.md §2).

    For every command given, whatever the values are: each arrives byte for byte, as or in one word of the shell, and
    nothing else about the command depends on it.
    """
    paths = tuple(p for p in text.parts if isinstance(p, Path))
    known = "".join(p for p in text.parts if isinstance(p, str))
    if not paths:
        return ShellCommand(known, ()), ()
    if "\0" in known:
        span = Span(paths[0].start, paths[0].end)
        return None, (Diagnostic("SHELL_PLACE", "a command cannot hold a NUL", span, help="take the NUL out"),)

    from .shell_places import judge, written

    source = "".join("\0" if isinstance(p, Path) else p for p in text.parts)
    styles, refused = judge(source)
    if refused:
        return None, tuple(
            Diagnostic("SHELL_PLACE", f"{_shown(paths[at])} {why}", Span(paths[at].start, paths[at].end), help=way_out)
            for at, (why, way_out) in sorted(refused.items())
        )
    stem = "HALO_V"
    while stem in known:
        stem += "V"
    variables: dict[tuple[object, ...], str] = {}
    for path in paths:
        variables.setdefault((path.root, *path.parts), f"{stem}{len(variables) + 1}")
    names = tuple(variables[(p.root, *p.parts)] for p in paths)
    places = iter(zip(styles, names, strict=True))
    return ShellCommand("".join(p if isinstance(p, str) else written(*next(places)) for p in text.parts), names), ()


def render(command: ShellCommand, values: tuple[str, ...]) -> dict[str, Value]:
    """The arguments for the door: the command, and the values (texts, in the order of `names`) beside it.

    Raises `ValueError`, with a message for `TOOL_ARGUMENTS`, for a value that no program can be given: one with a NUL,
    or with half of a surrogate pair.
    """
    if len(values) != len(command.names):
        raise ValueError(f"the command takes {len(command.names)} values")
    for value in values:
        if "\0" in value:
            raise ValueError("a value inserted in a shell command holds a NUL, which no command can be given")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("a value inserted in a shell command holds half of a surrogate pair") from None
    args: dict[str, Value] = {"command": command.command}
    if command.names:
        given: dict[str, Value] = dict(zip(command.names, values, strict=True))
        args["values"] = given
    return args


def _shown(path: Path) -> str:
    parts = "".join(f".{p}" if isinstance(p, str) else f"[{p}]" for p in path.parts)
    return f"`{{{{{path.root}{parts}}}}}`"
