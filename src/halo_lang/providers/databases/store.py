"""The file of a store: an SQLite database in WAL mode that several processes use at once (tools.md §2).

Owns its making, its opening, and the transactions in which work is done. What a transaction wrote is on the disk when
it ends, so neither `kill -9` nor a loss of power takes it. Reading makes no file. A file that is something else is
never written. Blocks: run it in a thread.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time

from ...boundary.host import ConfigError, ToolError
from ..blocking import Stop
from .places import place_of, refuse_odd, trouble_with
from .sqlite import MEANINGS, connect, primary_code

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from ...boundary.host import ProviderHost

    T = TypeVar("T")

APPLICATION = 0x48414C4F
"""The mark in a database file by which Halo knows its own (`HALO`)."""

VERSION = 1
PATIENCE_S = 20.0
"""How long a call waits for other processes that write."""

_BUSY_S = 0.2
_STEPS = 2_000


class _Busy(Exception):
    """Somebody else holds the file."""


class StoreFile:
    """One store's file. `what` names the store's kind in errors, `tables` makes its tables where they are missing.

    Raises `ConfigError` for a file that cannot be a store's.
    """

    def __init__(self, named: object, host: ProviderHost, what: str, tables: str) -> None:
        self._path = place_of(named, host, f"a store {what}")
        self._named = str(named)
        self._tables = tables
        self._lock = threading.Lock()
        self._stop = Stop()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        trouble = trouble_with(self._path, self._named, links=False)
        if trouble:
            raise ConfigError(trouble)

    def read(self, work: Callable[[sqlite3.Connection], T], missing: T, stop: Stop) -> T:
        """What `work` reads in one transaction; `missing` where there is no file yet."""

        def attempt() -> T:
            connection = self._ready(writes=False)
            return missing if connection is None else _in_transaction(connection, "BEGIN", work)

        return self._patiently(attempt, stop)

    def write(self, work: Callable[[sqlite3.Connection], T], stop: Stop) -> T:
        """What `work` gives, once all that it wrote is on the disk. Makes the file, and the folders on its way."""

        def attempt() -> T:
            connection = self._ready(writes=True)
            assert connection is not None
            return _in_transaction(connection, "BEGIN IMMEDIATE", work)

        return self._patiently(attempt, stop)

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _patiently(self, attempt: Callable[[], T], stop: Stop) -> T:
        """Tries again while others hold the file, for `PATIENCE_S` or until the call is cancelled."""
        until = time.monotonic() + PATIENCE_S
        while not self._lock.acquire(timeout=0.05):
            stop.check()
        try:
            while True:
                stop.check()
                try:
                    return self._attempt(attempt, stop)
                except _Busy:
                    if time.monotonic() > until:
                        raise ToolError(f"`{self._named}` is in use by somebody else; try again") from None
        finally:
            self._lock.release()

    def _attempt(self, attempt: Callable[[], T], stop: Stop) -> T:
        self._stop = stop
        try:
            return attempt()
        except sqlite3.Error as error:
            stop.check()
            code = primary_code(error)
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise _Busy from None
            self._forget()
            said = MEANINGS.get(code)
            raise ToolError(f"`{self._named}` {said}" if said else f"`{self._named}`: {str(error)[:500]}") from None
        except OSError as error:
            self._forget()
            raise ToolError(f"`{self._named}` cannot be used: {error.strerror}") from None

    def _ready(self, *, writes: bool) -> sqlite3.Connection | None:
        """The connection, opened anew where another file has taken the place of the one that was open."""
        refuse_odd(self._path, self._named, links=False)
        there = _identity(self._path)
        if self._connection is not None and there == self._opened:
            if writes:
                self._make_tables(self._connection)
            return self._connection
        self._forget()
        if there is None:
            if not writes:
                return None
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
        connection = connect(self._path, "rwc" if writes else "rw", _BUSY_S)
        try:
            if not self._is_ready(connection, writes=writes):
                connection.close()
                return None
        except BaseException:
            connection.close()
            raise
        self._connection, self._opened = connection, _identity(self._path)
        return connection

    def _is_ready(self, connection: sqlite3.Connection, *, writes: bool) -> bool:
        """Prepares a connection; false where there is nothing to read yet."""
        connection.set_progress_handler(lambda: self._stop.asked, _STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
        if not self._is_own(connection):
            if not writes:
                return False
            connection.execute("PRAGMA journal_mode = WAL")
        if writes:
            self._make_tables(connection)
            return True
        return self._has_tables(connection)

    def _is_own(self, connection: sqlite3.Connection) -> bool:
        """Whether the file is a store already; false for an empty one. Raises `ToolError` for anything else."""
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if mark == APPLICATION:
            if version > VERSION:
                raise ToolError(f"`{self._named}` was made by a newer version of Halo")
            return True
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if mark or version or tables:
            raise ToolError(f"`{self._named}` is a database of something else, and no store of Halo's")
        return False

    def _make_tables(self, connection: sqlite3.Connection) -> None:
        if self._has_tables(connection):
            return

        def make(connection: sqlite3.Connection) -> None:
            self._is_own(connection)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in self._tables.split(";\n\n"):
                connection.execute(statement)

        _in_transaction(connection, "BEGIN IMMEDIATE", make)

    def _has_tables(self, connection: sqlite3.Connection) -> bool:
        name = self._tables.split("(", 1)[0].split()[-1]
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        return found is not None

    def _forget(self) -> None:
        connection, self._connection, self._opened = self._connection, None, None
        if connection is not None:
            connection.close()


def _in_transaction(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute(begin)
    try:
        done = work(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return done


def _identity(path: str) -> tuple[int, int] | None:
    try:
        there = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return there.st_dev, there.st_ino
