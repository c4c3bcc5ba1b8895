"""Sql on SQLite files: rows, parameters, what only reads and cannot be made to write, bounds, and odd files."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from halo_lang.boundary.host import ConfigError, Environment, ProviderHost, ToolError
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.providers.results import LIMIT
from halo_lang.providers.sql import Sql


def host(folder: Path) -> ProviderHost:
    return ProviderHost(folder, folder, (folder / "p.halo",), Environment({}, {}))


@asynccontextmanager
async def opened(folder: Path, address: str = "sqlite:///f.db", *, write: bool = False) -> AsyncIterator[Any]:
    made = Sql({"address": address, "write": write}, host(folder))

    async def call(method: str, sql: str | None = None, params: Any = None) -> Any:
        args: dict[str, Any] = {} if sql is None else {"sql": sql}
        return await made.call(method, args if params is None else {**args, "params": params})

    try:
        yield call
    finally:
        await made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "f.db") as connection:
        connection.executescript("""
            CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, age REAL, photo BLOB);
            INSERT INTO people VALUES (1, 'Ada', 36.5, x'0001ff'), (2, 'Bo', NULL, NULL);
            CREATE VIEW names AS SELECT name FROM people;
            CREATE VIRTUAL TABLE notes USING fts5(body);
            INSERT INTO notes VALUES ('a red fish'), ('a blue bird');
            CREATE TRIGGER noted AFTER INSERT ON people BEGIN UPDATE people SET age = 0 WHERE id = 2; END;
        """)
    connection.close()
    return tmp_path


@pytest.fixture
async def reading(folder: Path) -> AsyncIterator[Any]:
    async with opened(folder) as call:
        yield call


@pytest.fixture
async def writing(folder: Path) -> AsyncIterator[Any]:
    async with opened(folder, write=True) as call:
        yield call


async def refusal(call: Any, *args: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await call(*args)
    assert "\n" not in raised.value.message
    return raised.value


def state(folder: Path) -> dict[str, str]:
    """What is in a folder, but for SQLite's own short-lived files."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal", "-journal"))
    }


def effects(address: Any, write: bool) -> dict[str, str | None]:
    return {m.name: m.effect for m in PROVIDERS["Sql"].describe({"address": address, "write": write}) or ()}


def test_execute_is_there_only_with_write_and_its_effect_depends_on_the_address() -> None:
    from halo_lang.catalog.describe import EnvRef

    assert effects("sqlite:///f.db", False) == {"query": "read", "tables": "read"}
    assert effects("sqlite:///f.db", True) == {"query": "read", "execute": "write", "tables": "read"}
    assert effects("SQLite:////tmp/f.db", True)["execute"] == "write"
    assert effects("postgresql://h/d", True)["execute"] == "external"
    assert effects(EnvRef("DB"), True)["execute"] == "external", "nobody knows yet where it leads"


async def test_rows_are_objects(reading: Any) -> None:
    assert await reading("query", "SELECT * FROM people ORDER BY id") == [
        {"id": 1, "name": "Ada", "age": 36.5, "photo": {"base64": "AAH/"}},
        {"id": 2, "name": "Bo", "age": None, "photo": None},
    ]
    assert await reading("query", "SELECT 1 AS a, 2 AS a, 3 AS a") == [{"a": 1, "a_2": 2, "a_3": 3}]
    assert await reading("query", "SELECT 1 WHERE 0") == []
    assert await reading("query", "VALUES (9e999), (-9e999)") == [{"column1": "Infinity"}, {"column1": "-Infinity"}]
    assert await reading("query", "SELECT CAST(x'ff41' AS TEXT) AS t") == [{"t": "\ufffdA"}]
    assert await reading("tables") == ["names", "notes", "notes_config", "notes_content", "notes_data", "notes_docsize",
        "notes_idx", "people"]  # fmt: skip


async def test_parameters_are_bound(reading: Any) -> None:
    assert await reading("query", "SELECT ? AS a, ? AS b", ["' OR 1=1 --", None]) == [{"a": "' OR 1=1 --", "b": None}]
    assert await reading("query", "SELECT :x AS a, :y AS b", {"x": True, "y": 2.5}) == [{"a": 1, "b": 2.5}]
    assert await reading("query", "SELECT name FROM people WHERE name = ?", ["Ada' OR '1'='1"]) == []
    assert await reading("query", "SELECT length(?) AS n", ["a\0b"]) == [{"n": 1}]


@pytest.mark.parametrize(
    ("sql", "params", "code"),
    [
        ("SELECT ?", None, "TOOL_ERROR"), ("SELECT ?", [1, 2], "TOOL_ERROR"), ("SELECT :a", {"b": 1}, "TOOL_ERROR"),
        ("SELECT ?", [[1]], "TOOL_ARGUMENTS"), ("SELECT ?", [{"a": 1}], "TOOL_ARGUMENTS"),
        ("SELECT ?", [10**30], "TOOL_ARGUMENTS"), ("SELECT ?", ["\ud800"], "TOOL_ARGUMENTS"),
        ("SELECT ?", "x", "TOOL_ARGUMENTS"), ("SELECT ?", [1] * 1001, "TOOL_ARGUMENTS"),
        ("SELECT '\ud800'", None, "TOOL_ARGUMENTS"), ("SELEC 1", None, "TOOL_ERROR"), ("", None, None),
        ("SELECT 1\0; SELECT 2", None, "TOOL_ERROR"), ("SELECT * FROM nowhere", None, "TOOL_ERROR"),
        ("(" * 5000, None, "TOOL_ERROR"), ("SELECT " + "1+" * 100_000 + "1", None, "TOOL_ERROR"),
        ("SELECT '" + "x" * 300_000 + "'", None, "TOOL_ERROR"), ("SELECT zeroblob(1 << 30)", None, "TOOL_ERROR"),
        ("SELECT hex(zeroblob(8 << 20))", None, "TOOL_ERROR"), ("-- nothing", None, None),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_an_error(reading: Any, sql: str, params: Any, code: str | None) -> None:
    if code is None:
        assert await reading("query", sql, params) == []
    else:
        assert (await refusal(reading, "query", sql, params)).code == code


WRITES = [
    "INSERT INTO people VALUES (3, 'C', 1, NULL)",
    "insert into people default values returning id",
    "REPLACE INTO people (id, name) VALUES (1, 'X')",
    "UPDATE people SET name = 'X'",
    "DELETE FROM people",
    "WITH x AS (SELECT 1) DELETE FROM people",
    "WITH x AS (SELECT 1) UPDATE people SET age = 1 RETURNING *",
    "/* SELECT */ DELETE FROM people",
    "-- SELECT\nDELETE FROM people",
    "\ufeffDELETE FROM people",
    "SELECT 1; DELETE FROM people",
    "SELECT 1;DELETE FROM people;--",
    "DELETE FROM people; SELECT 1",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "END; DELETE FROM people",
    "SAVEPOINT a",
    "CREATE TABLE x (a)",
    "CREATE TABLE x AS SELECT * FROM people",
    "CREATE TEMP TABLE x (a)",
    "CREATE TEMP TABLE x AS SELECT 1",
    "CREATE TEMP VIEW x AS SELECT 1",
    "CREATE TEMP TRIGGER x AFTER INSERT ON people BEGIN SELECT 1; END",
    "CREATE INDEX x ON people (name)",
    "CREATE VIEW x AS SELECT 1",
    "CREATE VIRTUAL TABLE x USING fts5(a)",
    "CREATE VIRTUAL TABLE temp.x USING fts5vocab(main, notes, row)",
    "DROP TABLE people",
    "DROP VIEW names",
    "ALTER TABLE people RENAME TO x",
    "ALTER TABLE people ADD COLUMN x",
    "REINDEX",
    "ANALYZE",
    "VACUUM",
    "VACUUM INTO 'copy.db'",
    "VACUUM main INTO 'file:copy.db?mode=rwc'",
    "ATTACH 'other.db' AS o",
    "ATTACH 'file:other.db?mode=rwc' AS o",
    "ATTACH 'f.db' AS o",
    "ATTACH ':memory:' AS o",
    "DETACH main",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA journal_mode",
    "PRAGMA user_version = 7",
    "PRAGMA application_id = 7",
    "PRAGMA query_only = OFF",
    "PRAGMA query_only(0)",
    "PRAGMA writable_schema = ON",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA incremental_vacuum",
    "PRAGMA optimize",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA foreign_keys = ON",
    "PRAGMA main.user_version(7)",
    "PRAGMA trusted_schema = ON",
    "PRAGMA hard_heap_limit = 1000",
    "PRAGMA soft_heap_limit = 1000",
    "PRAGMA mmap_size = 1000",
    "PRAGMA cache_spill = 1",
    "PRAGMA shrink_memory",
    "SELECT * FROM pragma_journal_mode('DELETE')",
    "SELECT * FROM pragma_user_version(7)",
    "SELECT load_extension('x')",
    "SELECT fts3_tokenizer('simple')",
    "SELECT writefile('out.txt', 'x')",
    "SELECT readfile('f.db')",
    "SELECT edit('x', 'touch out.txt')",
    "INSERT INTO notes(notes) VALUES ('optimize')",
    "INSERT INTO notes(notes) VALUES ('delete-all')",
    "INSERT INTO notes(notes, rank) VALUES ('pgsz', 99)",
    "EXPLAIN DELETE FROM people",
    "UPDATE sqlite_master SET sql = ''",
    "INSERT INTO notes_data VALUES (99, x'00')",
]


@pytest.mark.parametrize("sql", WRITES)
@pytest.mark.parametrize("wal", [False, True])
async def test_query_changes_nothing(folder: Path, sql: str, wal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if wal:
        with sqlite3.connect(folder / "f.db") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    (folder / "other.db").touch()
    before = state(folder)
    for write in (False, True):
        async with opened(folder, write=write) as call:
            await refusal(call, "query", sql)
    assert state(folder) == before
    with sqlite3.connect(folder / "f.db") as connection:
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (2,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT count(*) AS n FROM names", [{"n": 2}]),
        ("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2) SELECT n FROM c",
         [{"n": 1}, {"n": 2}]),
        ("SELECT body FROM notes WHERE notes MATCH 'fish'", [{"body": "a red fish"}]),
        ("SELECT name FROM pragma_table_info('people') WHERE pk = 1", [{"name": "id"}]),
        ("PRAGMA user_version", [{"user_version": 0}]),
        ("SELECT json_extract('{\"a\": [1, 2]}', '$.a[1]') AS x", [{"x": 2}]),
        ("SELECT upper(name) AS n, row_number() OVER (ORDER BY id) AS r FROM people LIMIT 1", [{"n": "ADA", "r": 1}]),
        ("SELECT 'DELETE FROM people; --' AS t;", [{"t": "DELETE FROM people; --"}]),
    ],
)  # fmt: skip
async def test_what_reads_is_read(reading: Any, sql: str, value: Any) -> None:
    assert await reading("query", sql) == value


async def test_explain_of_a_query_is_read(reading: Any) -> None:
    assert (await reading("query", "EXPLAIN QUERY PLAN SELECT * FROM people"))[0]["detail"].startswith("SCAN")


async def test_a_refusal_says_why(reading: Any) -> None:
    assert "only reads" in (await refusal(reading, "query", "DELETE FROM people")).message
    assert "one statement" in (await refusal(reading, "query", "SELECT 1; SELECT 2")).message
    assert "other files" in (await refusal(reading, "query", "ATTACH 'x' AS y")).message
    assert "PRAGMA query_only" in (await refusal(reading, "query", "PRAGMA query_only = 0")).message
    assert "no such table: x" in (await refusal(reading, "query", "SELECT * FROM x")).message
    assert "query, tables" in (await refusal(reading, "execute", "DELETE FROM people")).message


# execute ----------------------------------------------------------------------------------------------------------


async def test_execute_changes_rows_and_says_how_many(writing: Any) -> None:
    assert await writing("execute", "INSERT INTO people (name) VALUES (?), (?)", ["C", "D"]) == {"rows": 2}
    assert await writing("execute", "UPDATE people SET age = :age WHERE id > 2", {"age": 7}) == {"rows": 2}
    assert await writing("execute", "WITH x AS (SELECT 3 AS id) DELETE FROM people WHERE id IN (SELECT id FROM x)") == {
        "rows": 1
    }
    assert await writing("execute", "INSERT INTO people (name) VALUES ('E') RETURNING id") == {"rows": 1}
    assert await writing("execute", "CREATE TABLE made (a)") == {"rows": 0}
    assert await writing("execute", "DELETE FROM people WHERE 0") == {"rows": 0}
    assert [row["name"] for row in await writing("query", "SELECT name FROM people ORDER BY id")] == [
        "Ada",
        "Bo",
        "D",
        "E",
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO people VALUES (9, 'x', 1, NULL), (1, 'twice', 1, NULL)",
        "DELETE FROM people; DELETE FROM notes",
        "ATTACH 'other.db' AS o", "VACUUM INTO 'copy.db'", "VACUUM", "COMMIT", "BEGIN", "ROLLBACK", "SAVEPOINT a",
        "PRAGMA writable_schema = ON", "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF",
        "PRAGMA user_version = 7",
        "SELECT load_extension('x')", "INSERT INTO people (name) SELECT writefile('out.txt', 'x')",
        "UPDATE sqlite_master SET sql = ''",
    ],
)  # fmt: skip
async def test_execute_is_one_statement_on_the_one_file_or_nothing(folder: Path, writing: Any, sql: str) -> None:
    before = state(folder)
    await refusal(writing, "execute", sql)
    assert state(folder) == before
    assert await writing("query", "SELECT count(*) AS n FROM people") == [{"n": 2}]


async def test_a_missing_file_is_an_error_or_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        Sql({"address": "sqlite:///new.db"}, host(tmp_path))
    async with opened(tmp_path, "sqlite:///new.db", write=True) as call:
        assert "`execute` makes it" in (await refusal(call, "query", "SELECT 1")).message
        assert list(tmp_path.iterdir()) == []
        await call("execute", "CREATE TABLE t (a)")
        assert await call("tables") == ["t"]
    assert (tmp_path / "new.db").is_file()


# Bounds -----------------------------------------------------------------------------------------------------------

ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT {} FROM c"


async def test_more_rows_than_a_result_holds_are_refused_while_they_are_read(reading: Any) -> None:
    error = await refusal(reading, "query", ENDLESS.format("n"))
    assert f"{LIMIT:,}" in error.message
    assert "LIMIT" in error.message
    assert len(await reading("query", ENDLESS.format("n") + " LIMIT 20000")) == 20_000
    assert "LIMIT" in (await refusal(reading, "query", "SELECT hex(zeroblob(200000)) AS x")).message


@pytest.mark.parametrize(
    ("method", "sql"),
    [
        ("query", ENDLESS.format("count(*)")),
        ("query", ENDLESS.format("n") + " ORDER BY n DESC"),
        ("execute", "INSERT INTO people (name) " + ENDLESS.format("count(*)")),
    ],
)  # fmt: skip
async def test_a_statement_that_never_ends_is_stopped_with_its_call(writing: Any, method: str, sql: str) -> None:
    doing = asyncio.ensure_future(writing(method, sql))
    await asyncio.sleep(0.1)
    assert not doing.done()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert await writing("execute", "UPDATE people SET age = 1 WHERE id = 1") == {"rows": 1}, "nothing is locked"


async def test_a_file_that_somebody_holds_is_said(folder: Path, writing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from halo_lang.providers.databases import sqlite

    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    holder = sqlite3.connect(folder / "f.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert "in use by somebody else" in (await refusal(writing, "execute", "DELETE FROM people")).message
    assert "in use by somebody else" in (await refusal(writing, "query", "SELECT 1 FROM people")).message
    holder.execute("ROLLBACK")
    holder.close()


# Addresses and files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (None, "needs an address"), ("", "needs an address"), ("f.db", "begins with"), ("mysql://h/d", "begins with"),
        ("mysql://u:p4ssw0rd@h/d", "begins with"), ("sqlite:f.db", "names a file"), ("sqlite://f.db", "names a file"),
        ("sqlite://", "names a file"), ("sqlite:///", "names a file"), ("sqlite:///:memory:", "names a file"),
        ("sqlite:///f.db?mode=rwc", "without `\\?`"), ("sqlite:///a\0b", "needs the name"),
        ("sqlite:///sub/", "a folder"), ("sqlite:///sub", "is a folder"), ("sqlite:///pipe", "no ordinary file"),
        ("sqlite:///none.db", "does not exist"),
        ("sqlite:///.halo/x.db", "kept from every tool"), ("sqlite:///.Env", "kept from every tool"),
        ("sqlite:///sub/../.env", "kept from"), ("sqlite:///hidden.db", "kept from"),
        ("sqlite:///halo.lock", "kept from"),
        ("sqlite:///p.halo", "the program's own"), ("sqlite:///same.db", "the program's own"),
    ],
)  # fmt: skip
def test_addresses_that_cannot_be_used_are_refused_before_anything_runs(
    tmp_path: Path, address: Any, said: str
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".env").touch()
    (tmp_path / "p.halo").touch()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "hidden.db").symlink_to(".env")
    (tmp_path / "same.db").symlink_to("p.halo")
    with pytest.raises(ConfigError, match=said) as raised:
        Sql({"address": address}, host(tmp_path))
    assert "p4ssw0rd" not in str(raised.value)


async def test_a_path_is_relative_to_the_file_or_absolute_and_may_hold_odd_characters(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "f.db").rename(folder / "sub" / "a b%20#é.db")
    for named in ("sub/a b%20#é.db", str(folder / "sub" / "a b%20#é.db"), "sub/../sub/a b%20#é.db"):
        async with opened(folder, f"sqlite:///{named}") as call:
            assert await call("query", "SELECT count(*) AS n FROM people") == [{"n": 2}]


@pytest.mark.parametrize("content", [b"no database at all " * 50, b"SQLite format 3\0" + b"\xff" * 4000])
async def test_a_file_that_is_no_database_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f.db").write_bytes(content)
    async with opened(tmp_path, write=True) as call:
        for method, sql in (("query", "SELECT * FROM t"), ("execute", "CREATE TABLE t (a)"), ("tables", None)):
            message = (await refusal(call, method, sql)).message
            assert "is no SQLite database" in message or "is damaged" in message
    assert (tmp_path / "f.db").read_bytes() == content


async def test_a_file_that_goes_away_is_said(folder: Path, reading: Any) -> None:
    (folder / "f.db").unlink()
    assert "cannot be opened" in (await refusal(reading, "query", "SELECT 1")).message
    os.mkfifo(folder / "f.db")
    assert "no ordinary file" in (await refusal(reading, "query", "SELECT 1")).message
