"""SQLite files for `Sql` (tools.md §2).

Owns what keeps `query` from changing anything: the file is opened read-only, the connection refuses writes, and
SQLite's authorizer, which is asked while a statement is compiled, whatever its text looks like, permits reading alone.
`execute` is one statement in one transaction on that one file. Every call has a connection of its own; work stops when
the call is cancelled. Blocks: run it in a thread.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from urllib.parse import quote

from ...boundary.host import ToolError
from .places import refuse_odd
from .rows import Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...language.values import Value
    from ..blocking import Stop

    Params = Sequence[Value] | Mapping[str, Value]

BUSY_S = 4.0
"""How long a call waits for a file that somebody else has locked; less than the grace that a cancelled call gets."""

MAX_TEXT = 8 << 20
"""Bytes of one text or blob inside a statement: what would become longer is an error, and takes no memory."""

_STEPS = 2_000
_MAX_STATEMENT = 256 * 1024
_MAX_PATTERN = 500
"""Bytes of a LIKE or GLOB pattern; long ones can take for ever, and nothing stops them."""

_READING = frozenset((sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE))
_BEYOND_ONE_STATEMENT = {
    sqlite3.SQLITE_ATTACH: "other files cannot be reached (ATTACH, VACUUM)",
    sqlite3.SQLITE_DETACH: "other files cannot be reached (DETACH)",
    sqlite3.SQLITE_TRANSACTION: "each call is a transaction of its own (BEGIN, COMMIT, ROLLBACK)",
    sqlite3.SQLITE_SAVEPOINT: "each call is a transaction of its own (SAVEPOINT)",
}
_PRAGMAS_OF_TABLES = frozenset(
    ("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list")
)
_PRAGMAS_THAT_TELL = frozenset(
    (
        *("application_id", "collation_list", "compile_options", "data_version", "database_list", "encoding"),
        *("foreign_keys", "freelist_count", "function_list", "page_count", "page_size", "schema_version"),
        "user_version",
    )
)
_FUNCTIONS = frozenset(("load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "eval"))


class SqliteFile:
    """One SQLite file. `named` is its name in errors; `writes`: whether `execute` is there and makes a missing file."""

    def __init__(self, path: str, named: str, writes: bool) -> None:
        self._path = path
        self._named = named
        self._writes = writes

    def query(self, sql: str, params: Params, stop: Stop) -> Value:
        """The rows of one statement that only reads."""
        refused: list[str] = []
        with self._opened("ro", stop, refused) as connection:
            connection.set_authorizer(_authorizer(refused, writes=False))
            cursor = connection.execute(sql, params)
            if cursor.description is None:
                return []
            rows = Rows(column[0] for column in cursor.description)
            for row in cursor:
                rows.add(row)
            return rows.values

    def execute(self, sql: str, params: Params, stop: Stop) -> Value:
        """Carries out one statement, wholly or not at all; how many rows it touched."""
        refused: list[str] = []
        with self._opened("rwc", stop, refused) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.set_authorizer(_authorizer(refused, writes=True))
            for _ in connection.execute(sql, params):
                continue
            connection.set_authorizer(None)
            (touched,) = connection.execute("SELECT changes()").fetchone()
            connection.execute("COMMIT")
            return {"rows": touched}

    def tables(self, stop: Stop) -> Value:
        """The names of tables and views, in order."""
        with self._opened("ro", stop, []) as connection:
            found = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite^_%' ESCAPE '^' ORDER BY name"
            )
            return [name for (name,) in found]

    @contextmanager
    def _opened(self, mode: str, stop: Stop, refused: list[str]) -> Iterator[sqlite3.Connection]:
        refuse_odd(self._path, self._named, links=True)
        try:
            connection = connect(self._path, mode, BUSY_S)
        except sqlite3.Error as error:
            raise self._opening(error) from None
        try:
            _confine(connection, reads_only=mode == "ro")
            connection.set_progress_handler(lambda: stop.asked, _STEPS)
            yield connection
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
            stop.check()
            raise self._failure(error, refused) from None
        finally:
            connection.close()

    def _opening(self, error: sqlite3.Error) -> ToolError:
        if not self._writes:
            return ToolError(f"`{self._named}` cannot be opened; the file may have gone")
        return ToolError(f"`{self._named}` cannot be opened; where it is not there yet, `execute` makes it")

    def _failure(self, error: Exception, refused: list[str]) -> ToolError:
        if refused:
            return ToolError(refused[0])
        message = str(error)
        if "one statement at a time" in message:
            return ToolError("only one statement at a time can be given")
        if isinstance(error, OverflowError):
            return ToolError("a number among `params` is larger than SQLite can hold", "TOOL_ARGUMENTS")
        if isinstance(error, UnicodeEncodeError):
            return ToolError("the statement or `params` hold characters that are not valid Unicode", "TOOL_ARGUMENTS")
        said = MEANINGS.get(primary_code(error))
        return ToolError(f"`{self._named}` {said}" if said else f"SQLite says: {message[:1000]}")


MEANINGS = {
    sqlite3.SQLITE_BUSY: "is in use by somebody else; try again",
    sqlite3.SQLITE_LOCKED: "is in use by somebody else; try again",
    sqlite3.SQLITE_NOTADB: "is no SQLite database",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_READONLY: "cannot be written",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk fails",
}
"""What SQLite's failures mean for a file, by their code."""


def primary_code(error: BaseException) -> int:
    """SQLite's code for a failure, without its extension."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def connect(path: str, mode: str, busy_s: float) -> sqlite3.Connection:
    """A connection that is in no transaction until it is told so. Text that is not UTF-8 is mended."""
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode={mode}", uri=True, isolation_level=None, timeout=busy_s, check_same_thread=False
    )
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    return connection


def _confine(connection: sqlite3.Connection, *, reads_only: bool) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    if reads_only:
        connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_TEXT)
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_STATEMENT)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MAX_PATTERN)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)


def _authorizer(refused: list[str], *, writes: bool) -> Callable[..., int]:
    """What SQLite asks of each thing that a statement would do. The first refusal is noted, in words."""

    def deny(why: str) -> int:
        refused.append(why)
        return sqlite3.SQLITE_DENY

    def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION and second is not None and second.lower() in _FUNCTIONS:
            return deny(f"the function `{second}` cannot be used")
        if action in _READING:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_UPDATE and first == "sqlite_master":
            # Asked for where a virtual table is only read, too. SQLite itself refuses to carry it out.
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_PRAGMA:
            name = (first or "").lower()
            if name in _PRAGMAS_OF_TABLES or (name in _PRAGMAS_THAT_TELL and second is None):
                return sqlite3.SQLITE_OK
            return deny(f"`PRAGMA {first}` cannot be used here")
        if action in _BEYOND_ONE_STATEMENT:
            return deny(_BEYOND_ONE_STATEMENT[action])
        return sqlite3.SQLITE_OK if writes else deny("`query` only reads, and the statement would change something")

    return authorize
