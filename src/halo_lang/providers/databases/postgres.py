"""PostgreSQL servers for `Sql` (tools.md §2), by psycopg.

Owns what keeps `query` from changing anything, all of it the server's doing: the statement is declared as a cursor,
which the server's grammar takes for one SELECT alone, in a transaction that is read-only and rolled back; where the
role is a superuser, as a role that can only read. Every call has a connection of its own, so nothing that a statement
does to its session outlives it. Psycopg is imported when a tool of such an address is started.
"""

from __future__ import annotations

import asyncio

from ...boundary.host import ConfigError, ToolError
from .rows import TOO_LARGE, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from psycopg import AsyncConnection, Error

    from ...language.values import Value

MAX_CONNECTIONS = 8
"""Connections of one tool at once; further calls wait."""

TIMEOUT_MS = 30_000
_CONNECT_S = 10
_FETCH = 500
_MAX_STATEMENT = 256 * 1024
_READ_ROLE_SINCE = 140_000

_PLAIN_SETTINGS = frozenset(
    (
        *(
            "user",
            "password",
            "host",
            "port",
            "dbname",
            "application_name",
            "sslmode",
            "sslrootcert",
            "sslcert",
            "sslkey",
        ),
        *("channel_binding", "target_session_attrs", "gssencmode"),
    )
)
"""What an address may say. A `service` or a password file could lend a password of the user's to another host."""

_NO_ROWS = (
    "the statement sends its rows back, which `execute` does not give, and they are too many; leave out RETURNING"
)

_TABLES = """
SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
AND pg_catalog.has_table_privilege(c.oid, 'SELECT') ORDER BY 1
"""


class PostgresServer:
    """A database on a server. Raises `ConfigError` where psycopg is missing or the address cannot be used."""

    def __init__(self, address: str, writes: bool) -> None:
        self._settings = _settings(address)
        self._secret = str(self._settings["password"])
        self._writes = writes
        self._places: asyncio.Semaphore | None = None

    async def query(self, sql: str, params: Any) -> Value:
        """The rows of one SELECT."""
        from psycopg import AsyncRawServerCursor, AsyncServerCursor

        kind = AsyncServerCursor if isinstance(params, dict) else AsyncRawServerCursor
        async with self._reading() as connection, kind(connection, "halo", scrollable=False) as cursor:
            await cursor.execute(_statement(sql), params or None)
            rows = Rows(column.name for column in cursor.description or ())
            while found := await cursor.fetchmany(_FETCH):
                for row in found:
                    rows.add(row)
            return rows.values

    async def execute(self, sql: str, params: Any) -> Value:
        """Carries out one statement in one transaction; how many rows it touched."""
        from psycopg import AsyncCursor, AsyncRawCursor

        kind = AsyncCursor if isinstance(params, dict) else AsyncRawCursor
        async with self._connected(reads_only=False) as connection, kind(connection) as cursor:
            # Prepared: a statement that is sent plainly may be several.
            await cursor.execute(_statement(sql), params or None, prepare=True)
            touched = max(0, cursor.rowcount)
            await connection.commit()
            return {"rows": touched}

    async def tables(self) -> Value:
        """The names of tables and views that can be read, in order; with their schema where they need it."""
        async with self._reading() as connection:
            found = await connection.execute(_TABLES)
            return [name for (name,) in await found.fetchall()]

    def _reading(self) -> Any:
        return self._connected(reads_only=True)

    def _connected(self, *, reads_only: bool) -> Any:
        from contextlib import asynccontextmanager

        @asynccontextmanager
        async def connected() -> AsyncIterator[AsyncConnection[Any]]:
            import psycopg

            from .relay import bounded

            if self._places is None:
                self._places = asyncio.Semaphore(MAX_CONNECTIONS)
            async with self._places:
                try:
                    connection = await psycopg.AsyncConnection.connect(
                        **self._settings, options=_options(reads_only), autocommit=False
                    )
                except psycopg.Error as error:
                    raise ToolError(f"the database cannot be reached: {self._said(error)}") from None
                async with bounded(connection.fileno()) as received:
                    try:
                        if reads_only:
                            await _begin_reading(connection)
                        yield connection
                    except psycopg.Error as error:
                        if received.too_much:
                            raise ToolError(TOO_LARGE if reads_only else _NO_ROWS) from None
                        raise self._failure(error, reads_only=reads_only) from None
                    except UnicodeError:
                        what = "the statement or `params` hold characters that are not valid Unicode"
                        raise ToolError(what) from None
                    finally:
                        await connection.close()  # what is not committed is rolled back

        return connected()

    def _failure(self, error: Error, *, reads_only: bool) -> ToolError:
        from psycopg import errors

        if isinstance(error, errors.QueryCanceled):
            return ToolError(f"the statement took longer than {TIMEOUT_MS // 1000} s", "TOOL_TIMEOUT")
        hint = ""
        if reads_only and isinstance(error, errors.SyntaxError | errors.InvalidCursorDefinition):
            hint = "; `query` takes one SELECT, VALUES or TABLE, which may begin with WITH"
        elif isinstance(error, errors.SyntaxError) and "multiple commands" in str(error):
            hint = "; give one statement at a time"
        return ToolError(f"PostgreSQL says: {self._said(error)}{hint}")

    def _said(self, error: Error) -> str:
        diagnosis = error.diag
        parts = [diagnosis.message_primary or str(error).strip() or type(error).__name__]
        parts += [part for part in (diagnosis.message_detail, diagnosis.message_hint) if part]
        text = "; ".join(" ".join(part.split()).rstrip(".") for part in parts)[:1000]
        return text.replace(self._secret, "[password]") if self._secret else text


def _settings(address: str) -> dict[str, Any]:
    """An address as settings of a connection, in which nothing of the surroundings' passwords is used. Raises
    `ConfigError`, which holds no part of the address."""
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise ConfigError(
            "PostgreSQL needs the package psycopg: install it with `pip install 'halo-lang[postgres]'`"
        ) from None
    try:
        given = conninfo_to_dict(address)
    except (ProgrammingError, UnicodeError, ValueError):
        raise ConfigError(_UNREADABLE) from None
    if not _is_sound({name: str(value) for name, value in given.items()}):
        raise ConfigError(_UNREADABLE)
    for name in given:
        if name not in _PLAIN_SETTINGS:
            raise ConfigError(f"the address of an Sql tool holds `{name[:40]}`, which it may not")
    return {
        "application_name": "halo",
        **given,
        # With these two given, libpq takes a password from nowhere else: not from PGPASSWORD, not from ~/.pgpass.
        "password": given.get("password") or "",
        "passfile": "/dev/null/none",
        "connect_timeout": _CONNECT_S,
        "client_encoding": "utf8",
    }


_UNREADABLE = (
    "the address of an Sql tool cannot be read; it looks like `postgresql://user:password@host:5432/database`, "
    "and what is special in a password is escaped, as `%40` for `@`"
)


def _is_sound(given: dict[str, str]) -> bool:
    """Whether the parts of an address are what they seem: in one whose password is not escaped, pieces of it stand in
    other places, and from there they would come into errors."""
    port_is_number = all(c.isdigit() or c == "," for c in given.get("port", ""))
    return port_is_number and not any("@" in given.get(name, "") for name in ("host", "dbname"))


def _options(reads_only: bool) -> str:
    settings = {
        "default_transaction_read_only": "on" if reads_only else "off",
        "statement_timeout": str(TIMEOUT_MS),
        "idle_in_transaction_session_timeout": str(2 * TIMEOUT_MS),
        "DateStyle": "ISO",
    }
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


async def _begin_reading(connection: AsyncConnection[Any]) -> None:
    """Begins the transaction in which one statement is read. A superuser's is done as the role that may read all data
    and nothing else; where row security would then hide rows, that is an error and not a shorter answer."""
    await connection.set_read_only(True)
    is_superuser = connection.info.parameter_status("is_superuser") == "on"
    if is_superuser and connection.info.server_version >= _READ_ROLE_SINCE:
        await connection.execute("SET LOCAL row_security = off")
        await connection.execute("SET LOCAL ROLE pg_read_all_data")


def _statement(sql: str) -> bytes:
    if "\0" in sql:
        raise ToolError("the argument `sql` holds a NUL", "TOOL_ARGUMENTS")
    data = sql.encode()
    if len(data) > _MAX_STATEMENT:
        raise ToolError(f"the argument `sql` has more than {_MAX_STATEMENT:,} bytes", "TOOL_ARGUMENTS")
    return data
