"""`Bash`: commands, run by bash, as a tool (tools.md §2).

Owns a command's way into bash and out of it: the variables that it gets, the values that are inserted in it, its end
at the timeout or when it is cancelled, and how much of its output is kept. It does not look at what a command does:
whoever gives an agent this tool lets it do what the user can. Read `processes.py` for how a command is started,
ended and listened to, `check/shell.py` for how values come into a command.
"""

from __future__ import annotations

import os
import re
import shutil

from ..boundary.host import ConfigError, Given, ToolError
from ..catalog.builtin import PROVIDERS
from .arguments import refuse_arguments
from .processes import Output, Process, harmless_variables
from .results import LIMIT, bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..boundary.host import ProviderHost
    from ..language.values import Value

LINGER_S = 1.0
"""How long output is waited for when bash has ended and something that it started still holds its pipes."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST_ARGUMENT = 100_000
"""Bytes of a command that is given as an argument; systems allow 128 KiB and up."""


class Bash:
    """A started Bash tool.

    `settings` are `cwd` (relative to the program's folder), `timeout` (seconds) and `env` (variables by name). Raises
    `ConfigError` where there is no bash, or no such folder.
    """

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        self._variables = _variables(host.environment.process, settings.get("env") or {})
        self._secrets = {name: str(value) for name, value in (settings.get("env") or {}).items()}
        bash = shutil.which("bash", path=self._variables.get("PATH", os.defpath))
        if bash is None:
            raise ConfigError("there is no bash on the PATH, and a Bash tool runs its commands with it")
        self._bash = bash
        named = settings.get("cwd") or "."
        if not isinstance(named, str) or "\0" in named:
            raise ConfigError("`cwd` of a Bash tool must be a folder, as text")
        self._named = named
        self._cwd = os.path.normpath(os.path.join(os.path.abspath(host.base), named))
        if not os.path.isdir(self._cwd):
            raise ConfigError(f"`cwd` of a Bash tool names `{named}`, and there is no such folder")
        timeout_s = settings.get("timeout")
        self._timeout_s = 60.0 if timeout_s is None else float(timeout_s)
        if self._timeout_s <= 0:
            raise ConfigError("`timeout` of a Bash tool must be longer than nothing")
        self._method = next(m for m in PROVIDERS["Bash"].describe({}) or () if m.name == "run")
        self._running: set[Process] = set()

    async def call(self, method: str, args: Mapping[str, Value], given: Given) -> Value:
        """`run`: gives `{stdout, stderr, exitCode}`; an exit code that is not 0 is a result (tools.md §2).

        Raises `ToolError`: `TOOL_TIMEOUT` at the timeout, `TOOL_ARGUMENTS` for what cannot be given to bash. What the
        command left running ends with it; cancelled, it ends as a whole before this does.
        """
        if method != "run":
            raise ToolError(f"Bash has no method `{method}`; it has `run`", "TOOL_ARGUMENTS")
        refuse_arguments(self._method, {n: v for n, v in args.items() if n not in self._method.internal})
        command, stdin = str(args["command"]), args.get("stdin")
        if "\0" in command:
            raise ToolError("a command cannot hold a NUL", "TOOL_ARGUMENTS")
        values = _checked_values(args.get("values"))
        process = self._start(command, values, None if stdin is None else str(stdin))
        self._running.add(process)
        try:
            stdout, stderr, code = await process.finish(self._timeout_s, LINGER_S)
        except TimeoutError:
            raise ToolError(self._too_long(process), "TOOL_TIMEOUT") from None
        finally:
            self._running.discard(process)
        return bounded(_result(stdout, stderr, code))

    async def close(self) -> None:
        """Ends what still runs."""
        for process in tuple(self._running):
            await process.stop()

    def _start(self, command: str, values: dict[str, str], stdin: str | None) -> Process:
        text = command.encode()
        given = list(values.items())
        inner = command
        if len(text) > _LONGEST_ARGUMENT:
            # The variable is gone before the command sees it: `eval` gets its text first.
            name = next(n for n in ("HALO_COMMAND", "HALO_COMMAND_2") if n not in values)
            given.append((name, command))
            inner = f'eval "unset -v {name}; ${name}"'
        data = b"".join(value.encode() + b"\0" for _, value in given)
        try:
            return Process(
                self._bash,
                lambda fd: ["--noprofile", "--norc", "-c", _read_from(fd, [n for n, _ in given]) + inner, "bash"],
                data if given else None,
                None if stdin is None else stdin.encode(),
                self._cwd,
                self._variables,
                self._secrets,
            )
        except OSError as trouble:
            if not os.path.isdir(self._cwd):
                raise ToolError(f"the tool's `cwd`, `{self._named}`, is no folder any more") from None
            raise ToolError(f"bash could not be started: {trouble.strerror}") from None

    def _too_long(self, process: Process) -> str:
        said = f"the command was stopped: it took longer than {self._timeout_s:g}s, the tool's `timeout`"
        last = (process.stderr.text(1000) or process.stdout.text(1000)).strip()
        return f"{said}; the end of its output:\n{last[-1000:]}" if last else f"{said}; it had no output"


def _variables(process: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """The variables that commands get: a harmless few of Halo's own, and those that the tool is given."""
    return {**harmless_variables(process), "TERM": "dumb", **{n: str(v) for n, v in dict(given).items()}}


def _checked_values(given: Value) -> dict[str, str]:
    values: dict[str, str] = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        if not isinstance(value, str) or not _NAME.match(name):
            raise ToolError("`values` are texts by the names of shell variables", "TOOL_ARGUMENTS")
        if "\0" in value:
            raise ToolError("a value for a command cannot hold a NUL", "TOOL_ARGUMENTS")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ToolError("a value for a command holds half of a surrogate pair", "TOOL_ARGUMENTS") from None
        values[name] = value
    return values


def _read_from(fd: int | None, names: list[str]) -> str:
    """Shell code that reads variables, which are not handed on to what bash starts, and closes where they come from.

    It stands on the command's first line, so that bash counts the command's lines as they are.
    """
    if fd is None:
        return ""
    reads = "".join(f"IFS= read -r -d '' -u {fd} {name}; " for name in names)
    return f"{reads}exec {fd}<&-; "


def _result(stdout: Output, stderr: Output, code: int) -> dict[str, Value]:
    """The result, within what a result may have in all (tools.md §1): a stream gets what the other leaves."""
    room = LIMIT - 100
    sizes = sorted((_json_size(stdout.text(LIMIT)), _json_size(stderr.text(LIMIT))))
    most = max(room - sizes[0], room // 2)
    return {"stdout": _fitted(stdout, most), "stderr": _fitted(stderr, most), "exitCode": code}


def _fitted(output: Output, room: int) -> str:
    keep = LIMIT
    while True:
        text = output.text(keep)
        size = _json_size(text)
        if size <= room:
            return text
        keep = max(0, int(keep * room / size * 0.95) - 64)


def _json_size(text: str) -> int:
    from ..language.values import to_json

    return len(to_json(text).encode())
