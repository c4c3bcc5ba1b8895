"""`Documents`: texts in a file with ranked full-text search, as a store (tools.md §2).

Owns the four methods, and the reading of a query as plain words: whatever stands in it, it is never read as the search
engine's own syntax. Read `databases/store.py` for the file.
"""

from __future__ import annotations

from ..boundary.host import Given, ToolError
from ..catalog.builtin import PROVIDERS
from ..language.values import to_json
from .arguments import refuse_arguments
from .blocking import in_thread
from .databases.store import StoreFile
from .keyvalue import storable, stored
from .results import LIMIT, bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..boundary.host import ProviderHost
    from ..language.values import Value
    from .blocking import Stop

MAX_ID = 200
MAX_WORDS = 64
"""Different words of a query that are looked for; further ones are left out."""

DEFAULT_LIMIT = 10
_LONGEST_WORD = 100
_ROOM = 512

# The index holds no text of its own; `_add` and `_forget` keep it to the table, in the same transaction. (Triggers
# would be read from a file that a stranger may have written, so SQLite lets them touch no index.)
_TABLES = """CREATE TABLE IF NOT EXISTS halo_documents
(number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, meta TEXT NOT NULL);

CREATE VIRTUAL TABLE IF NOT EXISTS halo_words USING fts5
(text, content = 'halo_documents', content_rowid = 'number', tokenize = 'unicode61 remove_diacritics 2')"""


class Documents:
    """A started Documents store. Raises `ConfigError` for a file that cannot be a store's; makes none before the first
    `add`."""

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        self._file = StoreFile(settings.get("file"), host, "Documents", _TABLES)
        self._methods = {m.name: m for m in PROVIDERS["Documents"].describe(settings) or ()}

    async def call(self, method: str, args: Mapping[str, Value], given: Given | None = None) -> Value:
        """`add` and `delete`: `{id}`; `get`: `{id, text, meta}` or null; `search`: a list of `{id, text, meta, score}`,
        the best first. Raises `ToolError`."""
        described = self._methods.get(method)
        if described is None:
            raise ToolError(f"a Documents store has no method `{method}`; it has {', '.join(self._methods)}")
        refuse_arguments(described, args)
        if "id" in args:
            _refuse_id(str(args["id"]))
        work = _WORK[method]
        return bounded(await in_thread(lambda stop: work(self._file, args, stop)), "give a smaller `limit`")

    async def close(self) -> None:
        self._file.close()


def _refuse_id(name: str) -> None:
    if not name or "\0" in name or len(name.encode()) > MAX_ID:
        raise ToolError(f"an id has 1 to {MAX_ID} bytes of UTF-8, and no NUL", "TOOL_ARGUMENTS")


def _add(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    from uuid import uuid4

    name, text = str(args.get("id") or uuid4()), str(args["text"])
    meta = storable(args.get("meta", {}), "meta")
    if "\0" in text:
        raise ToolError("the argument `text` holds a NUL, which no text has", "TOOL_ARGUMENTS")
    if len(to_json(text).encode()) + len(meta.encode()) > LIMIT - _ROOM:
        raise ToolError(
            f"the document has more than {LIMIT - _ROOM:,} bytes of JSON; add it in parts", "TOOL_ARGUMENTS"
        )

    def write(connection: sqlite3.Connection) -> None:
        _forget(connection, name)
        added = connection.execute(
            "INSERT INTO halo_documents (id, text, meta) VALUES (?, ?, ?)", (name, text, meta)
        ).lastrowid
        connection.execute("INSERT INTO halo_words (rowid, text) VALUES (?, ?)", (added, text))

    file.write(write, stop)
    return {"id": name}


def _get(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    def read(connection: sqlite3.Connection) -> Value:
        found = connection.execute("SELECT id, text, meta FROM halo_documents WHERE id = ?", (args["id"],)).fetchone()
        return None if found is None else {"id": found[0], "text": found[1], "meta": stored(found[2])}

    return file.read(read, None, stop)


def _search(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    words = _words(str(args["query"]))
    limit = int(args.get("limit", DEFAULT_LIMIT))  # type: ignore[arg-type]
    if not words:
        return []

    def read(connection: sqlite3.Connection) -> Value:
        found = connection.execute(
            "SELECT d.id, d.text, d.meta, bm25(halo_words) AS rank FROM halo_words "
            "JOIN halo_documents d ON d.number = halo_words.rowid "
            "WHERE halo_words MATCH ? ORDER BY rank, d.number LIMIT ?",
            (" OR ".join(words), limit),
        )
        made: list[Value] = []
        for name, text, meta, rank in found:
            made.append({"id": name, "text": text, "meta": stored(meta), "score": round(-rank, 9)})
        return made

    none: Value = []
    return file.read(read, none, stop)


def _delete(file: StoreFile, args: Mapping[str, Value], stop: Stop) -> Value:
    name = str(args["id"])
    file.write(lambda connection: _forget(connection, name), stop)
    return {"id": name}


def _forget(connection: sqlite3.Connection, name: str) -> None:
    """Takes a document out of the table and the index, which must be told the text that it holds."""
    found = connection.execute("SELECT number, text FROM halo_documents WHERE id = ?", (name,)).fetchone()
    if found is not None:
        connection.execute("INSERT INTO halo_words (halo_words, rowid, text) VALUES ('delete', ?, ?)", found)
        connection.execute("DELETE FROM halo_documents WHERE number = ?", (found[0],))


_WORK: dict[str, Callable[[StoreFile, Mapping[str, Value], Stop], Value]] = {
    "add": _add,
    "get": _get,
    "search": _search,
    "delete": _delete,
}


def _words(query: str) -> list[str]:
    """The words of a query, each as a string of the search engine, in which nothing has a meaning of its own. Words
    without a letter or digit find nothing, and are left out."""
    plain = "".join(c if c.isalnum() or c.isspace() or not c.isascii() else " " for c in query.replace("\0", " "))
    found = (word[:_LONGEST_WORD] for word in plain.split() if any(c.isalnum() for c in word))
    return [f'"{word}"' for word in list(dict.fromkeys(found))[:MAX_WORDS]]
