"""`KeyValue`: values by key in a file, as a store (tools.md §2).

Owns the four methods and what a key and a value may be. Read `databases/store.py` for the file.
"""

from __future__ import annotations

from ..boundary.host import Given, ToolError
from ..catalog.builtin import PROVIDERS
from ..language.values import read_json, to_json
from .arguments import refuse_arguments
from .blocking import in_thread
from .databases.store import StoreFile
from .results import LIMIT, bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..boundary.host import ProviderHost
    from ..language.values import Value
    from .blocking import Stop

MAX_KEY = 1_024

_TABLE = "CREATE TABLE IF NOT EXISTS halo_values (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"


class KeyValue:
    """A started KeyValue store. Raises `ConfigError` for a file that cannot be a store's; makes none before the first
    `set`."""

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        self._file = StoreFile(settings.get("file"), host, "KeyValue", _TABLE)
        self._methods = {m.name: m for m in PROVIDERS["KeyValue"].describe(settings) or ()}

    async def call(self, method: str, args: Mapping[str, Value], given: Given | None = None) -> Value:
        """`get`: the value or null; `set` and `delete`: `{key}`; `keys`: a list. Raises `ToolError`."""
        described = self._methods.get(method)
        if described is None:
            raise ToolError(f"a KeyValue store has no method `{method}`; it has {', '.join(self._methods)}")
        refuse_arguments(described, args)
        if "key" in args:
            _refuse_key(str(args["key"]))
        work = _WORK[method]
        return bounded(await in_thread(lambda stop: work(self._file, args, stop)), "give a longer `prefix`")

    async def close(self) -> None:
        self._file.close()


def _refuse_key(key: str) -> None:
    if not key or "\0" in key or len(key.encode()) > MAX_KEY:
        raise ToolError(f"a key has 1 to {MAX_KEY:,} bytes of UTF-8, and no NUL", "TOOL_ARGUMENTS")


def _get(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    def read(connection: sqlite3.Connection) -> Value:
        found = connection.execute("SELECT value FROM halo_values WHERE key = ?", (args["key"],)).fetchone()
        return None if found is None else stored(found[0])

    return file.read(read, None, stop)


def _set(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    text = storable(args["value"], "value")

    def write(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO halo_values (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (args["key"], text),
        )

    file.write(write, stop)
    return {"key": args["key"]}


def _delete(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    def write(connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM halo_values WHERE key = ?", (args["key"],))

    file.write(write, stop)
    return {"key": args["key"]}


def _keys(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    prefix = str(args.get("prefix") or "")

    def read(connection: sqlite3.Connection) -> list[Value]:
        # Keys are compared by their bytes, so those with a prefix stand together, from the prefix itself on.
        found = connection.execute("SELECT key FROM halo_values WHERE key >= ? ORDER BY key", (prefix,))
        keys: list[Value] = []
        size = 0
        for (key,) in found:
            if not key.startswith(prefix) or size > LIMIT:
                break
            keys.append(key)
            size += len(key)
        return keys

    none: list[Value] = []
    return file.read(read, none, stop)


_WORK: dict[str, Callable[[StoreFile, Mapping[str, Value], Stop], Value]] = {
    "get": _get,
    "set": _set,
    "delete": _delete,
    "keys": _keys,
}


def storable(value: Value, name: str) -> str:
    """A value as the JSON that is kept. Raises `ToolError` for one that could not be read again as a result."""
    try:
        text = to_json(value)
        size = len(text.encode())
        read_json(text)
    except (TypeError, ValueError):
        raise ToolError(
            f"the argument `{name}` is no JSON that can be kept: it nests too deep, or holds what is no valid Unicode",
            "TOOL_ARGUMENTS",
        ) from None
    if size > LIMIT - 1024:
        raise ToolError(f"the argument `{name}` has more than {LIMIT - 1024:,} bytes of JSON", "TOOL_ARGUMENTS")
    return text


def stored(text: str) -> Value:
    """A value that was kept. Raises `ToolError` where the file holds something else."""
    try:
        return read_json(text)
    except ValueError:
        raise ToolError("what the store holds there is no JSON; something else has written to its file") from None
