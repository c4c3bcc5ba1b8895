"""KeyValue and Documents: what is stored, found, kept through a kill, shared by processes, and refused."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from halo_lang.boundary.host import ConfigError, Environment, ProviderHost, ToolError
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.providers.databases import store as store_file
from halo_lang.providers.documents import _WORK as DOCUMENT_WORK
from halo_lang.providers.documents import Documents
from halo_lang.providers.keyvalue import _WORK as VALUE_WORK
from halo_lang.providers.keyvalue import KeyValue
from halo_lang.providers.results import LIMIT


def host(folder: Path) -> ProviderHost:
    return ProviderHost(folder, folder, (folder / "p.halo",), Environment({}, {}))


@asynccontextmanager
async def opened(kind: type[Any], folder: Path, file: str = "s.db") -> AsyncIterator[Any]:
    made = kind({"file": file}, host(folder))

    async def call(method: str, *args: Any, **named: Any) -> Any:
        described = next(m for m in PROVIDERS[kind.__name__].describe({}) or () if m.name == method)
        return await made.call(method, dict(zip(described.parameters(), args, strict=False)) | named)

    try:
        yield call
    finally:
        await made.close()


@pytest.fixture
async def values(tmp_path: Path) -> AsyncIterator[Any]:
    async with opened(KeyValue, tmp_path) as call:
        yield call


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[Any]:
    async with opened(Documents, tmp_path) as call:
        yield call


async def refusal(call: Any, *args: Any, **named: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await call(*args, **named)
    return raised.value


@pytest.mark.parametrize(("name", "work"), [("KeyValue", VALUE_WORK), ("Documents", DOCUMENT_WORK)])
def test_the_methods_are_those_of_the_catalog(name: str, work: dict[str, Any]) -> None:
    assert [m.name for m in PROVIDERS[name].describe({}) or ()] == list(work)
    assert PROVIDERS[name].keyword == "store"


# KeyValue ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, True, 0, -1.5, 10**30, "", "né\n", [], [1, [2]], {"a": {"b": None}}, "null"])
async def test_a_value_comes_back_as_it_was_set(values: Any, value: Any) -> None:
    assert await values("set", "k", value) == {"key": "k"}
    got = await values("get", "k")
    assert got == value
    assert type(got) is type(value)


async def test_set_replaces_delete_forgets_and_both_can_be_repeated(values: Any) -> None:
    for _ in range(2):
        await values("set", "k", 1)
        await values("set", "k", 2)
        assert await values("get", "k") == 2
    for _ in range(2):
        assert await values("delete", "k") == {"key": "k"}
        assert await values("get", "k") is None
    assert await values("keys") == []


async def test_keys_are_listed_in_order_by_their_prefix(values: Any) -> None:
    for key in ("b", "a/2", "a/1", "a", "é", "a%", "a_", "A/1", "\U0010ffff", "a/\U0010ffff"):
        await values("set", key, 0)
    assert await values("keys") == sorted(
        ("b", "a/2", "a/1", "a", "é", "a%", "a_", "A/1", "\U0010ffff", "a/\U0010ffff")
    )
    assert await values("keys", "a/") == ["a/1", "a/2", "a/\U0010ffff"]
    assert await values("keys", "a%") == ["a%"]
    assert await values("keys", "\U0010ffff") == ["\U0010ffff"]
    assert await values("keys", "zz") == []


@pytest.mark.parametrize("key", ["", "a\0b", "k" * 1025, "é" * 600, "\ud800", 1, None])
async def test_odd_keys_are_refused(values: Any, key: Any) -> None:
    for method in ("get", "set", "delete"):
        named = {"value": 1} if method == "set" else {}
        assert (await refusal(values, method, key=key, **named)).code == "TOOL_ARGUMENTS"


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["x" * LIMIT, ["y" * 1000] * 300, deep(65), deep(100_000), "\ud800", {"\ud800": 1}])
async def test_what_could_not_be_read_again_is_not_stored(values: Any, value: Any) -> None:
    assert (await refusal(values, "set", "k", value)).code == "TOOL_ARGUMENTS"
    assert await values("get", "k") is None


async def test_what_is_as_large_as_it_may_be_comes_back_whole(values: Any) -> None:
    value = ["x" * (LIMIT - 1100)]
    await values("set", "k", value)
    assert await values("get", "k") == value


async def test_more_keys_than_a_result_holds_say_how_to_ask_for_less(values: Any, tmp_path: Path) -> None:
    await values("set", "k", 0)
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.executemany("INSERT INTO halo_values VALUES (?, '0')", ((f"{n:0900}",) for n in range(400)))
    assert "prefix" in (await refusal(values, "keys")).message
    assert len(await values("keys", f"{1:0898}")) == 100
    assert await values("keys", f"{7:0900}") == [f"{7:0900}"]


async def test_unknown_methods_and_arguments_are_refused(values: Any, documents: Any) -> None:
    made = KeyValue({"file": "x.db"}, host(Path("/nowhere")))
    with pytest.raises(ToolError, match="get, set, delete, keys"):
        await made.call("drop", {})
    assert (await refusal(values, "get", "k", other=1)).code == "TOOL_ARGUMENTS"
    assert (await refusal(values, "set", "k")).code == "TOOL_ARGUMENTS"
    assert (await refusal(documents, "add", text=1)).code == "TOOL_ARGUMENTS"
    assert (await refusal(documents, "add", text="a", meta=[1])).code == "TOOL_ARGUMENTS"
    assert (await refusal(documents, "search", "a", limit=101)).code == "TOOL_ARGUMENTS"


# Documents --------------------------------------------------------------------------------------------------------


async def test_documents_are_added_read_replaced_and_deleted(documents: Any) -> None:
    first = (await documents("add", "One fish"))["id"]
    assert await documents("get", first) == {"id": first, "text": "One fish", "meta": {}}
    assert await documents("add", "Two fish", "f", meta={"page": 2}) == {"id": "f"}
    assert await documents("add", "Red fish", "f", meta={"page": [3]}) == {"id": "f"}
    assert await documents("get", "f") == {"id": "f", "text": "Red fish", "meta": {"page": [3]}}
    assert [d["id"] for d in await documents("search", "two")] == []
    assert [d["id"] for d in await documents("search", "red")] == ["f"]
    for _ in range(2):
        assert await documents("delete", "f") == {"id": "f"}
    assert await documents("get", "f") is None
    assert [d["id"] for d in await documents("search", "fish")] == [first]


async def test_generated_ids_differ(documents: Any) -> None:
    made = {(await documents("add", "same"))["id"] for _ in range(20)}
    assert len(made) == 20


async def test_the_best_stands_first(documents: Any) -> None:
    await documents("add", "Rust is a fungus on plants.", "fungus")
    await documents("add", "Rust, rust, rust: the rust of old cars.", "cars")
    await documents("add", "Plants need water.", "water")
    for n in range(20):
        await documents("add", f"Something else, number {n}.", f"n{n}")
    found = await documents("search", "rust on cars")
    assert [d["id"] for d in found] == ["cars", "fungus"]
    assert found[0]["score"] > found[1]["score"] > 0
    assert found[0] == {**found[0], "text": "Rust, rust, rust: the rust of old cars.", "meta": {}}
    assert [d["id"] for d in await documents("search", "something", 3)] == ["n0", "n1", "n2"]
    assert len(await documents("search", "something")) == 10


async def test_search_looks_past_letter_case_and_accents(documents: Any) -> None:
    await documents("add", "Der Bär trinkt CAFÉ", "b")
    for query in ("bar", "BÄR", "cafe", "Café"):
        assert [d["id"] for d in await documents("search", query)] == ["b"], query


@pytest.mark.parametrize(
    "query",
    [
        "", " ", "\0", '"', '""', "'", '"a', 'a"', "a AND", "AND", "OR", "NOT", "NOT apple", "NEAR(apple", "apple*",
        "^apple", "text:apple", "halo_words:apple", "-apple", "(apple", "apple)", "{text}:apple", "apple + pie",
        "a NEAR/2 b", "*", "apple\0pie", "?", ":x", "--", "; DROP TABLE halo_documents", "' OR 1=1 --", "\\", "%",
        "_", "\n",
        "“apple”", "…",
        "a" * 100_000, " ".join(f"w{n}" for n in range(10_000)), '" OR "' * 1000, "(" * 10_000, "\ufffe", "😀", "١٢",
    ],
)  # fmt: skip
async def test_any_query_is_plain_words(documents: Any, query: str) -> None:
    await documents("add", "An apple pie, and near it a not so small orange", "pie")
    await documents("add", "nothing of it", "none")
    found = await documents("search", query)
    assert isinstance(found, list)
    if "apple" in query:
        assert found[0]["id"] == "pie"
    assert (await documents("get", "pie")) is not None


async def test_operators_are_words(documents: Any) -> None:
    await documents("add", "this and that", "and")
    await documents("add", "one or none", "or")
    assert [d["id"] for d in await documents("search", "AND")] == ["and"]
    assert {d["id"] for d in await documents("search", "this OR none")} == {"and", "or"}


@pytest.mark.parametrize("text", ["x" * LIMIT, '"' * (LIMIT // 2), "a\0b", "\ud800"])
async def test_what_could_not_be_read_again_is_not_added(documents: Any, text: str) -> None:
    assert (await refusal(documents, "add", text)).code == "TOOL_ARGUMENTS"


async def test_a_document_as_large_as_it_may_be_is_read_and_found(documents: Any) -> None:
    text = "word " * ((LIMIT - 600) // 5)
    await documents("add", text, "i" * 200, meta={"a": 1})
    assert (await documents("get", "i" * 200))["text"] == text
    assert (await documents("search", "word", 1))[0]["text"] == text
    await documents("add", text)
    assert "limit" in (await refusal(documents, "search", "word")).message


# The file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KeyValue, Documents])
async def test_reading_makes_no_file(kind: type[Any], tmp_path: Path) -> None:
    async with opened(kind, tmp_path, "sub/s.db") as call:
        assert await call("get", "k") is None
        assert await (call("keys") if kind is KeyValue else call("search", "k")) == []
    assert list(tmp_path.iterdir()) == []


async def test_the_file_is_made_in_its_folder_and_kept(tmp_path: Path) -> None:
    async with opened(KeyValue, tmp_path, "a/b/s.db") as call:
        await call("set", "k", 1)
        with sqlite3.connect(tmp_path / "a/b/s.db") as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    async with opened(KeyValue, tmp_path, str(tmp_path / "a/b/s.db")) as call:
        assert await call("get", "k") == 1


async def test_both_kinds_may_share_a_file(tmp_path: Path) -> None:
    async with opened(KeyValue, tmp_path) as values, opened(Documents, tmp_path) as documents:
        await values("set", "k", 1)
        assert await documents("search", "a") == []
        await documents("add", "a b", "d")
        assert (await documents("search", "a"))[0]["id"] == "d"
        assert await values("get", "k") == 1


async def test_a_file_that_was_taken_away_or_replaced_is_noticed(values: Any, tmp_path: Path) -> None:
    await values("set", "k", 1)
    for file in tmp_path.glob("s.db*"):
        file.unlink()
    assert await values("get", "k") is None
    await values("set", "k", 2)
    assert await values("get", "k") == 2
    assert (tmp_path / "s.db").is_file()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a)")


def newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA application_id = {store_file.APPLICATION}")
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda p: p.write_text("no database " * 100), "is no SQLite database"),
        (lambda p: p.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000), "is no SQLite database|is damaged"),
        (foreign, "something else"),
        (newer, "newer version"),
    ],
)
@pytest.mark.parametrize("kind", [KeyValue, Documents])
async def test_a_file_that_is_something_else_is_neither_read_nor_changed(
    kind: type[Any], tmp_path: Path, make: Any, said: str
) -> None:
    make(tmp_path / "s.db")
    before = (tmp_path / "s.db").read_bytes()
    async with opened(kind, tmp_path) as call:
        write = call("set", "k", 1) if kind is KeyValue else call("add", "a")
        with pytest.raises(ToolError, match=said):
            await write
        with pytest.raises(ToolError, match=said):
            await call("get", "k")
    assert (tmp_path / "s.db").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "is a folder"), ("pipe", "no ordinary file"), ("link", "is a link"), ("dangling", "is a link"),
        ("", "needs the name"), ("a\0b", "needs the name"), ("\ud800", "needs the name"), (None, "needs the name"),
        (".", "names a folder"), ("sub/", "names a folder"),
        (".halo/s.db", "kept from every tool"), (".HALO/x/s.db", "kept from"), (".env", "kept from"),
        (".env.local", "kept from"), ("sub/../.Env", "kept from"), (".git/s.db", "kept from"),
        ("halo.toml", "kept from every tool"), ("Halo.Lock", "kept from every tool"), ("p.halo", "the program's own"),
        ("through/s.db", "kept from every tool"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_a_stores_are_refused_before_anything_runs(tmp_path: Path, name: Any, said: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / ".halo").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real.db").touch()
    (tmp_path / "p.halo").touch()
    (tmp_path / "link").symlink_to("real.db")
    (tmp_path / "dangling").symlink_to("gone.db")
    (tmp_path / "through").symlink_to(".halo")
    for kind in (KeyValue, Documents):
        with pytest.raises(ConfigError, match=said):
            kind({"file": name}, host(tmp_path))
    assert not (tmp_path / "gone.db").exists()


async def test_a_link_that_takes_the_files_place_later_is_refused(values: Any, tmp_path: Path) -> None:
    (tmp_path / "s.db").symlink_to(tmp_path / "elsewhere.db")
    assert "is a link" in (await refusal(values, "set", "k", 1)).message
    assert not (tmp_path / "elsewhere.db").exists()


async def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    async with opened(KeyValue, tmp_path, "f/s.db") as call:
        assert "cannot be used" in (await refusal(call, "set", "k", 1)).message


AS_NOBODY = """
import asyncio, os, sys
from pathlib import Path
from halo_lang.boundary.host import Environment, ProviderHost, ToolError
from halo_lang.providers.keyvalue import KeyValue
folder = Path(sys.argv[1])
async def main(file):
    store = KeyValue({"file": file}, ProviderHost(folder, folder, (), Environment({}, {})))
    try:
        print(await store.call("get", {"key": "k"}))
        await store.call("set", {"key": "k", "value": 2})
    except ToolError as error:
        print(error.code, error.message)
asyncio.run(main("warm.db"))  # imports all that is needed, while it may be read
os.setgid(65534); os.setuid(65534)
asyncio.run(main("s.db"))
"""


async def test_a_file_that_may_only_be_read_is_read_and_not_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with opened(KeyValue, folder) as call:
            await call("set", "k", 1)
        folder.chmod(0o777)
        (folder / "s.db").chmod(0o444)
        script = AS_NOBODY if os.geteuid() == 0 else AS_NOBODY.replace("os.setgid(65534); os.setuid(65534)", "")
        done = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["None", "1"]
    assert "cannot be written" in done.stdout


# Several at once --------------------------------------------------------------------------------------------------

WRITER = """
import asyncio, sys
from pathlib import Path
from halo_lang.boundary.host import Environment, ProviderHost
from halo_lang.providers.documents import Documents
from halo_lang.providers.keyvalue import KeyValue
folder, mine, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
host = ProviderHost(folder, folder, (), Environment({}, {}))
async def main():
    values, documents = KeyValue({"file": "s.db"}, host), Documents({"file": "s.db"}, host)
    for n in range(most):
        await values.call("set", {"key": f"{mine}{n}", "value": n})
        await documents.call("add", {"text": f"{mine} wrote number{n}", "id": f"{mine}{n}"})
        print(n, flush=True)
    await values.close()
    await documents.close()
asyncio.run(main())
"""


def writing(folder: Path, mine: str, most: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), mine, str(most)], stdout=subprocess.PIPE, text=True
    )


async def test_several_processes_make_and_use_one_store(tmp_path: Path) -> None:
    """All begin at once, with no file there, so that making it is shared too."""
    others = [writing(tmp_path, mine, 40) for mine in "abc"]
    async with opened(KeyValue, tmp_path) as values, opened(Documents, tmp_path) as documents:
        for n in range(20):
            await values("set", f"d{n}", n)
        for other in others:
            other.communicate()
            assert other.returncode == 0
        assert len(await values("keys")) == 3 * 40 + 20
        assert len(await documents("search", "wrote", 100)) == 100
        assert {d["id"] for d in await documents("search", "number39")} == {"a39", "b39", "c39"}


async def test_what_was_stored_survives_kill_9(tmp_path: Path) -> None:
    writer = writing(tmp_path, "k", 100_000)
    assert writer.stdout is not None
    told = [int(writer.stdout.readline()) for _ in range(25)]
    writer.send_signal(signal.SIGKILL)
    told += [int(line) for line in writer.stdout.read().split()]
    writer.wait()
    writer.stdout.close()
    async with opened(KeyValue, tmp_path) as values, opened(Documents, tmp_path) as documents:
        for n in told:
            assert await values("get", f"k{n}") == n
            assert await documents("get", f"k{n}") is not None
        assert [d["id"] for d in await documents("search", f"number{told[-1]}")] == [f"k{told[-1]}"]
        await values("set", "after", True)
    with sqlite3.connect(tmp_path / "s.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.execute("INSERT INTO halo_words (halo_words, rank) VALUES ('integrity-check', 1)")


async def test_a_file_that_somebody_holds_is_waited_for_and_then_said(
    values: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await values("set", "k", 1)
    holder = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    assert await values("get", "k") == 1, "readers do not wait for a writer"
    waiting = asyncio.ensure_future(values("set", "k", 2))
    await asyncio.sleep(0.3)
    holder.execute("COMMIT")
    assert await waiting == {"key": "k"}
    monkeypatch.setattr(store_file, "PATIENCE_S", 0.0)
    holder.execute("BEGIN IMMEDIATE")
    assert "in use by somebody else" in (await refusal(values, "set", "k", 3)).message
    holder.execute("ROLLBACK")
    holder.close()
    assert await values("get", "k") == 2


async def test_a_cancelled_call_stops_waiting(values: Any, tmp_path: Path) -> None:
    await values("set", "k", 1)
    holder = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(values("set", "k", 2))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    holder.execute("ROLLBACK")
    holder.close()
    assert await values("get", "k") == 1


async def test_calls_side_by_side_all_count(values: Any) -> None:
    await asyncio.gather(*(values("set", f"k{n}", n) for n in range(50)))
    assert len(await values("keys")) == 50
