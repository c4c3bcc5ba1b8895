"""`halo lock FILE`: what MCP servers say of their tools, kept in `halo.lock` (plan.md).

The one command that starts servers without running a pipeline; so it says which, and asks first.
"""

from __future__ import annotations

import sys

from ..boundary.host import ConfigError
from .failing import CommandError
from .output import visible
from .programs import has_errors, read_file, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from ..app.lock import Locked
    from ..app.locking import Asked
    from ..check.program import CheckedProgram

EXAMPLE = """For example:

  halo lock tidy.halo
  halo lock tidy.halo --yes
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--yes", action="store_true", help="start the servers without asking")
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    from ..app.lock import lock_file, lock_text, read_lock

    program = _program(options)
    file = lock_file(options.file)
    try:
        before = read_lock(file)
        servers = _servers(program, options)
        if not servers:
            print(f"{visible(options.file)}: it has no MCP server, so there is nothing to lock", file=sys.stderr)
            return 0
        _ask(servers, options)
        locked = _locked(servers)
    except ConfigError as trouble:
        raise CommandError(str(trouble)) from None
    _show(servers, before, locked, options)
    text = lock_text({**before, **locked})
    if not before or text != lock_text(before):
        from .files import replace_file

        replace_file(file, text.encode())
    return 0


def _program(options: Namespace) -> CheckedProgram:
    """The program without its lock: what a server said before must not stand in the way of asking it anew."""
    from ..app.checking import checked

    program = checked(options.file, read_file(options.file), locked=False)
    if has_errors(program):
        show(program.diagnostics, program.source, quiet=True)
        raise CommandError(f"{options.file} has errors, so no server of it is started")
    return program


def _servers(program: CheckedProgram, options: Namespace) -> list[Asked]:
    from pathlib import Path

    from ..app.locking import servers_of
    from ..app.settings import read_settings

    path = Path(options.file)
    return servers_of(program, path, read_settings(path))


def _ask(servers: list[Asked], options: Namespace) -> None:
    """Asks whether the servers may be started. Raises `CommandError` where nobody says yes."""
    if options.yes:
        return
    print("To ask what their tools are, these MCP servers are started, as a run would:", file=sys.stderr)
    for asked in servers:
        print(f"  {asked.name}: {visible(asked.shown)}", file=sys.stderr)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError("nobody is there to be asked; --yes starts them without asking", 2)
    print("Start them? [y, anything else is no] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was started, and nothing locked")


def _locked(servers: list[Asked]) -> Locked:
    from ..app.locking import lock_servers
    from ..app.loop import run_to_end
    from .live import log_plainly

    log_plainly(False)
    return run_to_end(lock_servers(servers))


def _show(servers: list[Asked], before: Locked, locked: Locked, options: Namespace) -> None:
    from ..app.locking import lock_changes

    for asked in servers:
        methods = locked[asked.key]
        for method in methods:
            print(f"{asked.name}.{method.name}: {method.effect} (server's claim)")
        if asked.key in before and not options.quiet:
            changes = lock_changes(before[asked.key], methods)
            said = f"changed since it was locked: {', '.join(changes)}" if changes else "as it was locked before"
            print(f"{asked.name}: {said}", file=sys.stderr)
