"""A live run from the command line: settings, signals, and who is there to ask.

Owns the one place where an event loop is started, and what SIGINT and SIGTERM do (runs.md §5).
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from ..app.loop import run_to_end
from ..app.running import Host
from ..app.settings import read_settings
from ..boundary.host import Environment, Handlers
from ..doors.answering import Stop
from ..doors.live import GRACE_S
from ..language.record import replace
from .output import Output, visible
from .terminal import Terminal
from .yes_to import said_yes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from ..app.result import RunResult
    from ..app.settings import Settings
    from ..boundary.call import Call
    from ..boundary.host import Preview
    from ..doors.within import Within
    from ..language.values import Value


def on_terminal(
    file: str,
    options: Namespace,
    within: Within | None,
    start: Callable[[Host, Stop], Coroutine[Any, Any, RunResult]],
) -> tuple[RunResult, Output]:
    """Runs what `start` begins, with what a command has: settings, signals, and the terminal to ask, if there is one.

    `options` holds `json`, `quiet`, `verbose` and `yes_to`. Raises what `start` raises.
    """
    path = Path(file)
    settings = read_settings(path)
    if options.verbose:
        settings = say_where_from(settings)
    log_plainly(options.verbose)
    output = _output(options)
    asks = sys.stdin.isatty() and sys.stderr.isatty()
    handlers = handlers_of(Terminal(output) if asks else None, options.yes_to)

    async def run() -> RunResult:
        stop = Stop()
        listen_for_signals(stop, output)
        return await start(Host(path, settings, output, handlers, within), stop)

    try:
        return run_to_end(run()), output
    finally:
        output.close()


def _output(options: Namespace) -> Output:
    from os import environ

    if sys.stderr.isatty() and not options.quiet and environ.get("TERM") != "dumb":
        from .display import Display

        return Display(as_document=options.json, quiet=options.quiet)
    return Output(as_document=options.json, quiet=options.quiet)


def handlers_of(terminal: Terminal | None, yes_to: list[str]) -> Handlers:
    """A terminal answers yields, approvals and listens; `--yes-to` approves without one."""

    is_approved = said_yes(yes_to)

    async def approve(call: Call, preview: Preview | None) -> Value:
        if terminal is None or is_approved(call.target):
            return {"approved": True}
        return await terminal.approve(call, preview)

    if terminal is None:
        return Handlers(on_approval=approve if yes_to else None, approves=lambda call: is_approved(call.target))
    return Handlers(terminal.answer_yield, approve, terminal.receive)


def log_plainly(verbose: bool) -> None:
    """Lets the log of Halo and of the libraries it uses say one line a fault, without the trace that it has."""
    import logging

    class Plain(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print(f"{record.levelname.lower()}: {visible(record.getMessage())}", file=sys.stderr)

    logging.root.handlers = [Plain()]
    logging.getLogger("halo").setLevel(logging.INFO if verbose else logging.WARNING)


def listen_for_signals(
    stop: Stop, output: Output, interrupted: Callable[[], bool] | None = None
) -> Callable[[], object]:
    """The first signal stops the run and leaves calls under way some seconds; a second one does not wait. `interrupted`
    may take a SIGINT for itself. A run whose output nobody takes any more is stopped like one that is signalled. Gives
    what ends the run without waiting."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def on_signal(number: int) -> None:
        if number == signal.SIGINT and interrupted is not None and not stop.asked and interrupted():
            return
        if stop.asked:
            task.cancel()
            return
        begin_to_stop()
        output.close()
        print(f"stopping: calls under way get {GRACE_S:g} s; again stops at once", file=sys.stderr)

    def begin_to_stop() -> None:
        stop.ask()
        loop.call_later(GRACE_S, task.cancel)

    output.when_lost = begin_to_stop

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # ignored under `nohup`
            loop.add_signal_handler(number, on_signal, number)
    return task.cancel


def say_where_from(settings: Settings) -> Settings:
    """Says where settings come from, never what they are. Gives the settings by which each variable of the environment
    is named too, when it is first used."""
    environment, project = settings.environment, settings.project
    rows = list(settings.found)
    for name in environment.project:
        won = "from .env" if environment.is_projects(name) else "set in the environment, .env is not used"
        rows.append(f"{name} {won}")
    rows += [f"[models.{name}] from halo.toml" for name in project.models]
    rows += [f"the price of {model} from halo.toml" for model in project.prices]
    for row in rows:
        print(f"settings: {visible(row)}", file=sys.stderr)
    return replace(settings, environment=Environment(_Named(environment.process), environment.project))


class _Named(dict[str, str]):
    """Variables, each of which is named when it is first used."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__(variables)
        self._named: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        value = super().get(name, default)
        if value and name not in self._named:
            self._named.add(name)
            print(f"settings: {visible(name)} from the environment", file=sys.stderr)
        return value
