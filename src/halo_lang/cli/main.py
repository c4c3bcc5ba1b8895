"""The command `halo` (cli.md): finds the command, runs it, and turns what goes wrong into one message.

Owns exit codes and the last line of defence: no stack trace ever reaches a user. Each command is a module beside this
one, imported only when it is asked for, with `configure(parser)` and `execute(options) -> int`; where there is a
`prepared(words)`, the parser gets the words that it gives.
"""

from __future__ import annotations

import gc
import sys

from .failing import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from typing import Any, NoReturn

COMMANDS = {
    "run": "runs a pipeline",
    "plan": "shows what a run could do and cost, runs nothing",
    "debug": "runs a pipeline stage by stage",
    "replay": "runs a recorded run again, calling nothing",
    "resume": "goes on with a paused or crashed run",
    "runs": "lists the paused runs, or gives one up",
    "signal": "sends an event to a run",
    "recordings": "lists, shows, exports and removes recordings",
    "test": "runs the tests of files",
    "check": "finds the errors of files, runs nothing",
    "fmt": "formats files",
    "lock": "asks MCP servers for their tools, and keeps them in halo.lock",
    "tools": "lists the providers of tools and stores, their methods and effects",
    "explain": "explains an error code",
}


READER_GONE = 141
"""The exit code where whoever read the output has gone: what a shell gives for a program that SIGPIPE has ended."""


def entry() -> None:
    """The console script."""
    _open_closed_streams()
    _forgive_standard_error()
    _take_sigterm_for_an_interrupt()
    gc.set_threshold(10_000)  # a command keeps nearly all that it makes: looking for cycles so often finds none
    code = main(sys.argv[1:])
    gc.freeze()  # nor is there any use in looking at all of it once more, as the interpreter does when it ends
    sys.exit(code)


def main(argv: list[str]) -> int:
    """Runs one command line (without the program's name) and gives its exit code (cli.md). Never raises."""
    try:
        _tolerate_odd_text()
        code = _command(argv)
        sys.stdout.flush()
        return code
    except CommandError as error:
        _say(f"error: {error}")
        return error.exit_code
    except BrokenPipeError:
        _forget_output()
        return READER_GONE  # `| head` has all that it wanted
    except KeyboardInterrupt:
        _leave_things_undone()
        _say("stopped")
        return 130
    except Exception as fault:
        return _report_fault(fault)
    except BaseException as ending:
        if type(ending).__name__ != "CancelledError":  # asyncio's, which is not imported for its name alone
            raise
        _say("stopped")
        return 130


def _command(argv: list[str]) -> int:
    name = argv[0] if argv else "--help"
    if name in ("-h", "--help", "help"):
        print(_overview())
        return 0
    if name in ("--version", "version"):
        from ..version import VERSION

        print(f"halo {VERSION}")
        return 0
    if name not in COMMANDS:
        from ..language.diagnostics import did_you_mean

        near = did_you_mean(name, COMMANDS)
        raise CommandError(f"there is no command `{name}`; {near or '`halo --help` lists them'}", 2)
    from importlib import import_module

    module = import_module(f".{name}", __package__)
    parser = _parser(name)
    module.configure(parser)
    try:
        options, unknown = parser.parse_known_intermixed_args(getattr(module, "prepared", list)(argv[1:]))
        if unknown:
            parser.error(_unrecognized(unknown, parser))
    except SystemExit as end:
        return int(end.code or 0)
    return int(module.execute(options))


def _unrecognized(words: list[str], parser: ArgumentParser) -> str:
    from ..language.diagnostics import did_you_mean

    flag = next((word.partition("=")[0] for word in words if word.startswith("-")), "")
    near = did_you_mean(flag, parser._option_string_actions)
    return f"unrecognized arguments: {' '.join(words)}{f'; {near}' if near else ''}"


def _parser(name: str) -> ArgumentParser:
    from argparse import ArgumentParser, RawDescriptionHelpFormatter

    from ..language.visible import visible_in_line

    width = _columns() - 2  # else argparse finds it out itself, for each argument, by a module that is slow to import

    def formatter(prog: str) -> RawDescriptionHelpFormatter:
        return RawDescriptionHelpFormatter(prog, width=width)

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            super().error(visible_in_line(message))

    parser = Parser(f"halo {name}", formatter_class=formatter, allow_abbrev=False, description=COMMANDS[name])
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    parser.add_argument("-v", "--verbose", action="store_true", help="say where settings come from, and more")
    return parser


def _columns() -> int:
    """The width of the terminal, where there is one."""
    import os

    try:
        return int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns) or 80
    except (OSError, ValueError):
        return 80


def _overview() -> str:
    rows = "\n".join(f"  {name:<11}{about}" for name, about in COMMANDS.items())
    return f"""usage: halo COMMAND …

Pipelines of LLM agents, with plans that bind and replays that are exact.

{rows}

`halo COMMAND --help` shows a command's arguments and an example. For example:

  halo check tidy.halo
  halo run tidy.halo task="Tidy the notes"
"""


def _open_closed_streams() -> None:
    """Opens nothing in the place of standard streams that the process was started without (`>&-`). Else what is said
    to one would go to another, and a file or a connection could take its number."""
    import os

    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            while (handle := os.open(os.devnull, os.O_RDWR)) < number:
                continue
            setattr(sys, name, open(handle, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def _forgive_standard_error() -> None:
    """Lets no command fail because nobody takes what it says about itself: standard error may be a full disk, or a pipe
    that somebody has closed."""
    import io

    class Forgiving(io.FileIO):
        def write(self, data: Any) -> int:
            try:
                return super().write(data) or 0
            except OSError:
                return len(data)

    sys.stderr.flush()
    raw = Forgiving(sys.stderr.fileno(), "w", closefd=False)
    encoding = sys.stderr.encoding
    sys.stderr = io.TextIOWrapper(io.BufferedWriter(raw), encoding, "backslashreplace", line_buffering=True)


def _take_sigterm_for_an_interrupt() -> None:
    """A command that is asked to end says so and exits with 130, whichever signal asks; a live run does more."""
    import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations, which takes longer than all else here

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    _signal.signal(_signal.SIGTERM, interrupt)


def _tolerate_odd_text() -> None:
    """What cannot be written in the terminal's encoding is shown as an escape, not as a failure."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _report_fault(fault: Exception) -> int:
    if isinstance(fault, OSError) and fault.strerror:
        _forget_output()
        name = f"{fault.filename}: " if fault.filename else ""
        _say(f"error: {name}{fault.strerror}")
        return 1
    import logging

    logging.getLogger("halo").debug("unforeseen", exc_info=fault)
    _say(f"error: halo itself failed ({type(fault).__name__}: {fault}); please report this with the file that shows it")
    return 1


def _leave_things_undone() -> None:
    """Has the interpreter say nothing of coroutines that a run had made, and that nobody will await any more."""
    from warnings import simplefilter

    simplefilter("ignore", RuntimeWarning)


def _say(text: str) -> None:
    """Says something on standard error. It may hold whatever a file, a recording or a model said."""
    from ..language.visible import visible

    try:
        print(visible(text), file=sys.stderr, flush=True)
    except OSError:
        _forget_output()


def _forget_output() -> None:
    """Points the closed streams at nothing, so that the interpreter does not complain when it flushes them."""
    import os

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
