"""The tool `Mcp` (tools.md §2): a server's tools as methods, started when first needed and stopped with the run.

Owns what is held against a server: the methods that `halo.lock` keeps, those that the run was told of, and its own
earlier listing. Where they differ nothing more is asked of it. Read `config.py` for which server it is,
`connection.py` for how it is spoken with, `listing.py` for what is made of what it says.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec

from ...boundary.call import DESCRIBE
from ...boundary.host import ConfigError, ToolError
from ...language.values import to_json
from .config import read_server
from .connection import Connection
from .listing import differences, entries, listed
from .results import value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from ...boundary.host import Given, ProviderHost
    from ...catalog.describe import Method
    from ...language.values import Value
    from .listing import Listed

MASKED = "[Env."
"""What stands in a text where a secret was masked: such a text cannot be compared with the server's own."""


class Mcp:
    """An MCP server as a tool.

    `settings` are `command` and `arguments`, or `url` and `headers`; `env` (variables by name) and `timeout` (seconds,
    for the start and for each call). Nothing is started before the first call. Raises `ConfigError` where a command is
    missing, or the package `mcp`.
    """

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        self._server = read_server(settings, host)
        if find_spec("mcp") is None:
            raise ConfigError("MCP needs the extra `mcp`: pip install 'halo-lang[mcp]'")
        self._connection: Connection | None = None
        self._tools: dict[str, Listed] | None = None
        self._locked: tuple[Method, ...] | None = None
        self._refused: tuple[str, str] | None = None
        self._opening = asyncio.Lock()

    @property
    def secrets(self) -> Mapping[str, str]:
        """Values of variables, by name, that are not to be shown."""
        return self._server.secrets

    @property
    def pid(self) -> int | None:
        """The number of the server's process, while there is one."""
        return None if self._connection is None else self._connection.pid

    def shown(self) -> str:
        """What is started or reached, in one line, with the names of the variables that are given to it."""
        named = f" with {', '.join(self._server.named)}" if self._server.named else ""
        return self._server.shown() + named

    def hold_to(self, methods: tuple[Method, ...]) -> None:
        """Has the server refused unless its tools are these: those that `halo.lock` keeps (plan.md)."""
        self._locked = methods

    async def methods(self) -> tuple[Method, ...]:
        """The server's tools as methods, with the effects that it claims. Starts it. Raises `ToolError`."""
        _, tools = await self._ready()
        return tuple(tool.method for tool in tools.values())

    async def call(self, method: str, args: Mapping[str, Value], given: Given) -> Value:
        """Calls a tool of the server; `*` lists them. Raises `ToolError`, `LOCK_MISMATCH` among its codes."""
        connection, tools = await self._ready()
        if method == DESCRIBE:
            return entries(tools)
        tool = tools.get(method)
        await self._compare_told(method, given.described, tool)
        if tool is None:
            raise ToolError(f"the server has no tool `{method}`", "TOOL_ARGUMENTS")
        try:
            to_json(dict(args)).encode()
        except UnicodeEncodeError:
            raise ToolError("the arguments hold characters that are not valid Unicode", "TOOL_ARGUMENTS") from None
        return value_of(await connection.call(tool.name, args))

    async def close(self) -> None:
        """Stops the server."""
        if self._connection is not None:
            await self._connection.close()

    async def _ready(self) -> tuple[Connection, dict[str, Listed]]:
        """The connection, and the server's tools as it last listed them; opens and asks where that is needed.

        A server at an address is reached anew where the connection was lost. One that was started by a command and has
        ended is not started again: whatever it held is gone.
        """
        async with self._opening:
            if self._refused is not None:
                raise ToolError(*self._refused)
            connection, tools = self._connection, self._tools
            if connection is None or (connection.is_lost and self._server.url is not None):
                if connection is not None:
                    await connection.close()
                connection, tools = Connection(self._server), None
                await connection.open()
                self._connection = connection
            if tools is None or connection.changed:
                tools = listed(await connection.tools())
                await self._compare([tool.method for tool in tools.values()])
                self._tools = tools
            return connection, tools

    async def _compare(self, now: list[Method]) -> None:
        """Refuses a server whose tools are not those of the lock, or those of its own earlier listing."""
        if self._locked is not None:
            changes = differences(self._locked, now)
            if changes:
                await self._refuse(
                    f"the server's tools are not those that halo.lock keeps: {_listed(changes)}. Look at what changed, "
                    "and lock them anew with `halo lock`",
                    "LOCK_MISMATCH",
                )
        elif self._tools is not None:
            changes = differences([tool.method for tool in self._tools.values()], now)
            if changes:
                await self._refuse(f"the server changed what it says of its tools during the run: {_listed(changes)}")

    async def _compare_told(self, method: str, told: Method | None, now: Listed | None) -> None:
        """Refuses a server that says another thing of a method than whoever calls it was told: in an earlier part of a
        run that was paused."""
        if told is None or MASKED in to_json([told.about, told.schema]):
            return
        if now is None or (told.about, told.schema) != (now.method.about, now.method.schema):
            await self._refuse(f"the server changed what it says of its tools during the run: {method}")

    async def _refuse(self, message: str, code: str = "TOOL_ERROR") -> NoReturn:
        self._refused = f"{message}. Nothing more is asked of it", code
        if self._connection is not None:
            await self._connection.close()
        raise ToolError(*self._refused)


def _listed(changes: list[str]) -> str:
    more = f", and {len(changes) - 10} more" if len(changes) > 10 else ""
    return ", ".join(changes[:10]) + more
