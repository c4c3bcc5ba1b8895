"""`Sql`: a database, as a tool (tools.md §2).

Owns the reading of its address and the choice of what speaks to it: `databases/sqlite.py` or `databases/postgres.py`.
The address may hold a password: it stands in no error, result or log.
"""

from __future__ import annotations

import os

from ..boundary.host import ConfigError, Given, ToolError
from ..catalog.builtin import PROVIDERS
from .arguments import refuse_arguments
from .results import bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    from ..boundary.host import ProviderHost
    from ..language.values import Value

    class Database(Protocol):
        """What carries out the methods. Raises `ToolError`; a cancelled call leaves nothing running."""

        async def query(self, sql: str, params: Any) -> Value: ...

        async def execute(self, sql: str, params: Any) -> Value: ...

        async def tables(self) -> Value: ...


MAX_PARAMS = 1_000


class Sql:
    """A started Sql tool. Raises `ConfigError` for an address that cannot be used, a missing file or a missing driver;
    connects to no server before the first call."""

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        address, writes = settings.get("address"), settings.get("write", False)
        if not isinstance(writes, bool):
            raise ConfigError("`write` of an Sql tool must be true or false")
        self._database = _database(address, writes, host)
        self._methods = {m.name: m for m in PROVIDERS["Sql"].describe(settings) or ()}

    async def call(self, method: str, args: Mapping[str, Value], given: Given | None = None) -> Value:
        """`query`: a list of objects; `execute`: `{rows}`; `tables`: a list of names. Raises `ToolError`."""
        described = self._methods.get(method)
        if described is None:
            there = f"it has {', '.join(self._methods)}"
            raise ToolError(f"a database has no method `{method}` here; {there}")
        refuse_arguments(described, args)
        if method == "tables":
            return bounded(await self._database.tables())
        params = _params(args.get("params"))
        work = self._database.query if method == "query" else self._database.execute
        return bounded(await work(str(args["sql"]), params))

    async def close(self) -> None:
        """Nothing is held between calls."""


def _database(address: object, writes: bool, host: ProviderHost) -> Database:
    if not isinstance(address, str) or not address.strip():
        raise ConfigError("an Sql tool needs an address, such as `sqlite:///file.db` or `postgresql://…`")
    address = address.strip()
    scheme = address.partition(":")[0].lower()
    if scheme == "sqlite":
        return _file(address, writes, host)
    if scheme in ("postgresql", "postgres"):
        from .databases.postgres import PostgresServer

        return PostgresServer(address, writes)
    raise ConfigError("the address of an Sql tool begins with `sqlite:///` or `postgresql://`")


def _file(address: str, writes: bool, host: ProviderHost) -> Database:
    """An SQLite file: three slashes before a path that is relative, four before an absolute one."""
    from .databases.places import place_of, trouble_with

    rest = address[len("sqlite:") :]
    named = rest[3:]
    if not rest.startswith("///") or not named or named == ":memory:":
        raise ConfigError("an SQLite address names a file: `sqlite:///file.db`, or `sqlite:////folder/file.db`")
    if "?" in named:
        raise ConfigError("an SQLite address ends with the file's name, without `?`")
    path = place_of(named, host, "an Sql tool")
    trouble = trouble_with(path, named, links=True)
    if trouble:
        raise ConfigError(trouble)
    if not writes and not os.path.exists(path):
        raise ConfigError(f"the database `{named}` does not exist ({path}); with `write: true` the tool makes it")
    return _InThread(path, named, writes)


class _InThread:
    """An SQLite file whose work is done in threads."""

    def __init__(self, path: str, named: str, writes: bool) -> None:
        from .databases.sqlite import SqliteFile

        self._file = SqliteFile(path, named, writes)

    async def query(self, sql: str, params: Any) -> Value:
        from .blocking import in_thread

        return await in_thread(lambda stop: self._file.query(sql, params, stop))

    async def execute(self, sql: str, params: Any) -> Value:
        from .blocking import in_thread

        return await in_thread(lambda stop: self._file.execute(sql, params, stop))

    async def tables(self) -> Value:
        from .blocking import in_thread

        return await in_thread(self._file.tables)


def _params(given: Value) -> Any:
    """The values for a statement's places. Raises `ToolError` for what cannot be one."""
    if given is None:
        return ()
    assert isinstance(given, list | dict)
    values = given.values() if isinstance(given, dict) else given
    if len(given) > MAX_PARAMS:
        raise ToolError(f"the argument `params` may hold at most {MAX_PARAMS:,} values", "TOOL_ARGUMENTS")
    for value in values:
        if isinstance(value, list | dict):
            raise ToolError(
                "the argument `params` holds a list or an object; a place takes text, a number, true, false or null, "
                "so give what is inside it, or its JSON as text",
                "TOOL_ARGUMENTS",
            )
    return given
