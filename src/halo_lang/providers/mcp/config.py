"""Which server a tool means (tools.md §2): by a command, by an address, or by a name that a `.mcp.json` knows.

Owns the settings and that file, its variables included. What stands in `.mcp.json` is read when a tool is started or
locked, never for a check or a plan. Starts nothing. Read `stdio.py` and `http.py` for how a server is reached.
"""

from __future__ import annotations

import os
import re
import shutil
from urllib.parse import urlsplit

from ...boundary.host import ConfigError
from ...language.diagnostics import did_you_mean
from ...language.record import Record, replace
from ..processes import HARMLESS, harmless_variables
from .text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...boundary.host import Environment, ProviderHost

FILE = ".mcp.json"
MAX_FILE_BYTES = 1 << 20
TIMEOUT_S = 60.0

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")


class Server(Record):
    """A server to be started by `command` in the folder `cwd` with `variables` (and no others), or reached at `url`
    with `headers`. `named` are the variables among these that somebody named for it. `secrets` are values of variables
    that `.mcp.json` refers to, by name. `timeout_s` is for its start and for each call."""

    command: tuple[str, ...]
    cwd: str
    variables: Mapping[str, str]
    named: tuple[str, ...]
    url: str | None
    headers: Mapping[str, str]
    timeout_s: float
    secrets: Mapping[str, str]

    def shown(self) -> str:
        """What is started or reached, in one line."""
        if self.url is not None:
            return self.url
        from shlex import join

        return one_line(join(self.command), 500)


def read_server(settings: Mapping[str, Any], host: ProviderHost) -> Server:
    """The server that a tool's settings mean. Raises `ConfigError` for what is missing or cannot be, in words."""
    command, url = settings.get("command"), settings.get("url")
    if not (isinstance(command, str) or isinstance(url, str)) or (command is not None and url is not None):
        raise ConfigError("Mcp takes either a command, which starts the server, or `url:`, its address")
    entry: dict[str, Any] = {"env": dict(settings.get("env") or {})}
    folder, secrets = str(host.base), dict[str, str]()
    if url is not None:
        if settings.get("arguments"):
            raise ConfigError("Mcp with `url:` takes no command and no arguments")
        entry |= {"url": url, "headers": settings.get("headers") or {}}
    else:
        entry |= {"command": command, "args": list(settings.get("arguments") or ())}
        if settings.get("headers"):
            raise ConfigError("`headers:` of Mcp go with `url:`; a server by its command is given variables by `env:`")
        known = None if entry["args"] else _from_file(str(command), host)
        if known is not None:
            folder, named, secrets = known
            entry = {**named, "env": {**named.get("env", {}), **entry["env"]}}
    timeout = settings.get("timeout")
    base = Server((), folder, {}, (), None, {}, TIMEOUT_S if timeout is None else float(timeout), secrets)
    return _at_address(entry, base) if "url" in entry else _by_command(entry, base, host)


def _at_address(entry: Mapping[str, Any], base: Server) -> Server:
    url, headers = entry["url"], entry.get("headers") or {}
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        fits = False
    if not fits or not url.isprintable() or " " in url:
        raise ConfigError("the address of an MCP server must be an http or https address, such as http://host/mcp")
    if parts.username is not None:
        raise ConfigError("the address of an MCP server holds a user's name; credentials go into `headers:`")
    for name, value in headers.items():
        if not _HEADER.match(name) or not isinstance(value, str) or not value.isprintable() or not value.isascii():
            raise ConfigError(
                f"the header `{one_line(name, 60)}` of an MCP server has a name or a value that cannot be sent"
            )
    if entry.get("env"):
        raise ConfigError("`env:` of Mcp goes with a command; a server at an address is given `headers:`")
    return replace(base, url=url, headers=dict(headers))


def _by_command(entry: Mapping[str, Any], base: Server, host: ProviderHost) -> Server:
    command, given = entry["command"], entry.get("env") or {}
    variables = {**harmless_variables(host.environment.process), **given}
    for text in (command, *entry["args"], *given.values()):
        if not isinstance(text, str) or "\0" in text:
            raise ConfigError("the command, arguments and variables of an MCP server must be texts without NUL")
    if os.sep in command:
        program = os.path.normpath(os.path.join(base.cwd, command))
        found = program if os.access(program, os.X_OK) and not os.path.isdir(program) else None
    else:
        found = shutil.which(command, path=variables.get("PATH", os.defpath))
    if found is None:
        file = _file(host)
        names = [] if file is None else list(_servers(file))
        near = did_you_mean(command, names)
        known = "" if file is None else f", and {file} knows no server of that name{f'; {near}' if near else ''}"
        raise ConfigError(f"there is no command `{one_line(command, 200)}` to start an MCP server with{known}")
    cwd = os.path.join(base.cwd, entry.get("cwd") or "")
    if not os.path.isdir(cwd):
        raise ConfigError(f"the MCP server `{one_line(command, 200)}` is to run in {cwd}, and there is no such folder")
    return replace(base, command=(found, *entry["args"]), cwd=cwd, variables=variables, named=tuple(sorted(given)))


# .mcp.json -------------------------------------------------------------------------------------------------------


def _from_file(name: str, host: ProviderHost) -> tuple[str, dict[str, Any], dict[str, str]] | None:
    """What `.mcp.json` beside the program or above it says of a name: the file's folder, the server's entry with its
    variables replaced, and these variables' values. None where there is no such file or name."""
    file = _file(host)
    servers = {} if file is None else _servers(file)
    if file is None or name not in servers:
        return None
    entry = servers[name]
    _refuse_odd(entry, f"{file}: the server `{name}`")
    secrets: dict[str, str] = {}
    missing: list[str] = []
    made = {key: _resolved(value, host.environment, secrets, missing) for key, value in entry.items()}
    if missing:
        raise ConfigError(
            "\n".join(
                f"the variable {variable} is not set, and the server `{name}` in {file} needs it"
                for variable in dict.fromkeys(missing)
            )
        )
    if "url" not in made:
        made.setdefault("args", [])
    return os.path.dirname(file), made, {n: v for n, v in secrets.items() if n not in HARMLESS}


def _file(host: ProviderHost) -> str | None:
    return None if host.project_file is None else host.project_file(FILE)


def _servers(file: str) -> dict[str, Any]:
    from json import loads

    try:
        with open(file, "rb") as opened:
            data = opened.read(MAX_FILE_BYTES + 1)
    except OSError as trouble:
        raise ConfigError(f"{file}: cannot be read: {trouble.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError(f"{file}: cannot be read: it has more than {MAX_FILE_BYTES >> 20} MiB")
    try:
        document = loads(data)
    except (ValueError, RecursionError):
        raise ConfigError(f"{file}: cannot be read: it is no JSON") from None
    servers = document.get("mcpServers", {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise ConfigError(f'{file}: it must be an object with "mcpServers", an object of servers by name')
    return servers


def _refuse_odd(entry: Any, what: str) -> None:
    """Raises `ConfigError` for an entry of `.mcp.json` that says anything which is not understood."""
    if not isinstance(entry, dict):
        raise ConfigError(f"{what} must be an object")
    kind = entry.get("type", "http" if "url" in entry else "stdio")
    if kind not in ("stdio", "http", "streamable-http"):
        raise ConfigError(
            f"{what} has the type `{one_line(str(kind), 40)}`; Halo speaks `stdio` and `http` (streamable)"
        )
    if ("command" in entry) is ("url" in entry):
        raise ConfigError(f"{what} must have either `command` or `url`")
    texts = {"command": str, "url": str, "cwd": str, "args": list, "env": dict, "headers": dict}
    for key, type_ in texts.items():
        value = entry.get(key, type_())
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if not isinstance(value, type_) or not all(isinstance(one, str) for one in inner):
            shown = {str: "a text", list: "a list of texts", dict: "an object of texts"}[type_]
            raise ConfigError(f"{what}: `{key}` must be {shown}")


def _resolved(value: Any, environment: Environment, secrets: dict[str, str], missing: list[str]) -> Any:
    """A value of `.mcp.json` with its `${NAME}` and `${NAME:-default}` replaced; nothing else in it is looked up."""
    if isinstance(value, list):
        return [_resolved(one, environment, secrets, missing) for one in value]
    if isinstance(value, dict):
        return {name: _resolved(one, environment, secrets, missing) for name, one in value.items()}
    if not isinstance(value, str):
        return value

    def replacement(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        held = environment.get(name)
        if held is not None:
            secrets[name] = held
            return held
        if default is None:
            missing.append(name)
        return default or ""

    return _VARIABLE.sub(replacement, value)
