"""Locking: MCP servers are started and asked what their tools are, once, for `halo.lock` (plan.md).

Owns which servers a program has and how they are asked. Nothing is started before `lock_servers` is called: whoever
does has been told what would be, by `servers_of`. Read `lock.py` for the file.
"""

from __future__ import annotations

from typing import cast

from ..boundary.host import ConfigError, ToolError
from ..doors.mask import Mask
from ..language.record import Record
from .lock import MCP, server_key
from .preparing import resolved_settings, start_tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

    from ..catalog.describe import Method
    from ..check.program import CheckedProgram
    from ..language.values import Value
    from ..providers.mcp import Mcp
    from .lock import Locked
    from .settings import Settings


class Asked(Record):
    """A tool of a program that is an MCP server, not started yet. `shown` says what is started or reached; `mask` hides
    what it is given and nobody may see."""

    name: str
    key: str
    shown: str
    server: Mcp
    mask: Mask


def servers_of(program: CheckedProgram, file: Path, settings: Settings) -> list[Asked]:
    """The MCP servers of a program, each once. Raises `ConfigError` naming all that is missing."""
    names: dict[str, str] = {}
    for tool in program.tools.values():
        if tool.provider == MCP:
            names.setdefault(server_key(tool.settings), tool.name)
    values, secrets = resolved_settings(program, names.values(), settings.environment)
    started = cast("dict[str, Mcp]", start_tools(program, file, values, settings.environment, secrets=secrets))
    for server in started.values():
        secrets |= server.secrets
    mask = Mask(secrets)
    return [Asked(name, key, mask.text(started[name].shown()), started[name], mask) for key, name in names.items()]


async def lock_servers(servers: list[Asked]) -> Locked:
    """What the servers say of their tools, by `server_key`. They are stopped again, whatever happens. Raises
    `ConfigError` naming the tool whose server failed."""
    locked: Locked = {}
    try:
        for asked in servers:
            try:
                methods = await asked.server.methods()
            except ToolError as trouble:
                raise ConfigError(f"tool {asked.name}: {asked.mask.text(trouble.message)}") from None
            finally:
                await asked.server.close()
            said: Value = [[method.about, method.schema] for method in methods]
            if asked.mask.value(said) != said:
                raise ConfigError(
                    f"tool {asked.name}: what the server says of its tools holds a secret that it was given"
                )
            locked[asked.key] = methods
    finally:
        for asked in servers:
            await asked.server.close()
    return locked


def lock_changes(before: tuple[Method, ...] | None, after: tuple[Method, ...]) -> list[str]:
    """What a new lock of a server changes, in words."""
    from ..providers.mcp.listing import differences

    return differences(before or (), after)
