"""Reading with a Workspace: `read`, `list`, and what is wrong with settings and arguments."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from workspaces import Tree

from halo_lang.boundary.host import ConfigError, Environment, Given, ProviderHost
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.providers.results import LIMIT, bounded
from halo_lang.providers.workspace import WORK, Workspace


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_the_methods_are_those_of_the_catalog() -> None:
    described = PROVIDERS["Workspace"].describe({"folder": ".", "write": True})
    assert described is not None
    assert list(WORK) == [m.name for m in described]


async def test_reads_all_or_some_lines(tree: Tree) -> None:
    (tree.root / "a.md").write_text("one\ntwo\r\nthree")
    assert await tree.call("read", path="a.md") == "one\ntwo\r\nthree"
    assert await tree.call("read", path="./x/..//a.md", **{"from": 2, "lines": 1}) == "two\r\n"
    assert await tree.call("read", path="a.md", **{"from": 3}) == "three"
    assert await tree.call("read", path="a.md", lines=1) == "one\n"
    assert await tree.call("read", path="a.md", lines=99) == "one\ntwo\r\nthree"
    assert await tree.call("read", path="a.md", **{"from": 2.0, "lines": 1.0}) == "two\r\n"


@pytest.mark.parametrize(
    ("text", "first", "lines"),
    [("", 2, 0), ("a\n", 2, 1), ("a\nb", 3, 2), ("a\nb\n", 3, 2), ("a", 2, 1), ("\n\n", 4, 2)],
)
async def test_a_line_past_the_end_is_named(tree: Tree, text: str, first: int, lines: int) -> None:
    (tree.root / "a.md").write_text(text)
    said = await tree.refusal("read", path="a.md", **{"from": first})
    assert f"has {lines} line" in said.message


async def test_an_empty_file_is_empty(tree: Tree) -> None:
    (tree.root / "a.md").write_text("")
    assert await tree.call("read", path="a.md") == ""


async def test_a_byte_order_mark_stays(tree: Tree) -> None:
    (tree.root / "a.md").write_bytes(b"\xef\xbb\xbfx")
    assert await tree.call("read", path="a.md") == "\ufeffx"


async def test_what_is_no_utf8_is_refused_with_its_size(tree: Tree) -> None:
    (tree.root / "a.bin").write_bytes(b"ok\n\xff\xfe" + b"x" * 1995)
    assert "`a.bin` is not UTF-8 text (2,000 bytes)" in (await tree.refusal("read", path="a.bin")).message
    assert await tree.call("read", path="a.bin", lines=1) == "ok\n"


async def test_a_large_text_is_cut_at_a_line_that_says_how_to_go_on(tree: Tree) -> None:
    (tree.root / "big").write_text("".join(f"line {n}\n" for n in range(1, 100_001)))
    seen: list[str] = []
    first = 1
    while True:
        text = await tree.call("read", path="big", **{"from": first})
        assert len(text.encode()) <= LIMIT
        assert bounded(text) == text
        body, _, note = text.rpartition("\n")
        if not note.startswith("[cut here"):
            seen += text.splitlines()
            break
        seen += body.splitlines()
        first = int(note.split("`from: ")[1].split("`")[0])
    assert seen == [f"line {n}" for n in range(1, 100_001)]


async def test_a_huge_line_is_cut_at_a_character(tree: Tree) -> None:
    (tree.root / "big").write_text("é" * LIMIT)
    text = await tree.call("read", path="big")
    assert len(text.encode()) <= LIMIT
    assert text.startswith("ééé")
    assert "line 1 alone is longer" in text


async def test_a_sparse_file_of_gigabytes_is_not_held(tree: Tree) -> None:
    import tracemalloc

    with open(tree.root / "huge", "wb") as file:
        file.write(b"first\n")
        file.truncate(10 << 30)
    tracemalloc.start()
    text = await tree.call("read", path="huge")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert text.startswith("first\n")
    assert "10,737,418,240 bytes" in text
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("none.md", "there is no file"),
        ("none/deep.md", "there is no file"),
        ("sub", "is a folder"),
        ("a.md/", "written as a folder"),
        ("a.md/b", "a folder in"),
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("../x", "leads out"),
        ("sub/../../x", "leads out"),
        ("a\0b", "NUL"),
        ("x" * 300, "longer than the file system permits"),
        ("d/" * 300 + "x", "folders deep"),
        ("x" * 5000, "5,000 bytes"),
        (".", "is a folder"),
    ],
)
async def test_paths_that_cannot_be_read(tree: Tree, path: str, said: str) -> None:
    (tree.root / "sub").mkdir()
    (tree.root / "a.md").write_text("x")
    error = await tree.refusal("read", path=path)
    assert said in error.message
    assert error.code == "TOOL_ERROR"
    assert str(tree.root) not in error.message


async def test_special_files_are_refused_without_waiting(tree: Tree) -> None:
    os.mkfifo(tree.root / "fifo")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tree.root / "sock"))
    try:
        for name in ("fifo", "sock"):
            for method, more in (("read", {}), ("write", {"content": "x"}), ("delete", {})):
                assert "no regular file" in (await tree.refusal(method, path=name, **more)).message
        assert await tree.call("search", query="x") == []
    finally:
        server.close()


async def test_lists_sorted_with_slashes(tree: Tree) -> None:
    (tree.root / "sub" / "deep").mkdir(parents=True)
    for name in ("b.md", "a.md", "sub/c.md", ".env", ".Env.local", ".gitignore"):
        (tree.root / name).write_text("x")
    (tree.root / ".halo").mkdir()
    (tree.root / "to-sub").symlink_to("sub")
    (tree.root / "out").symlink_to("/etc")
    assert await tree.call("list") == [".gitignore", "a.md", "b.md", "out", "sub/", "to-sub/"]
    assert await tree.call("list", path="./sub/") == ["sub/c.md", "sub/deep/"]
    assert await tree.call("list", path="to-sub") == ["to-sub/c.md", "to-sub/deep/"]
    assert "is no folder" in (await tree.refusal("list", path="a.md")).message
    assert "there is no folder" in (await tree.refusal("list", path="none")).message
    assert "leads out" in (await tree.refusal("list", path="out")).message


async def test_a_name_that_is_not_utf8_is_shown_and_cannot_be_opened(tree: Tree) -> None:
    with open(os.fsencode(tree.root) + b"/caf\xe9", "wb") as file:
        file.write(b"needle")
    assert await tree.call("list") == ["caf\\xe9 (its name is not UTF-8: it cannot be opened)"]
    assert await tree.call("glob", pattern="*") == []
    assert await tree.call("search", query="needle") == []
    assert (await tree.refusal("read", path="caf\udce9")).code == "TOOL_ARGUMENTS"


async def test_a_folder_with_more_than_a_result_holds_says_how_to_ask_for_less(tree: Tree) -> None:
    for n in range(1500):
        (tree.root / f"{n:0200}").touch()
    assert "use `glob`" in (await tree.refusal("list")).message
    assert "narrower pattern" in (await tree.refusal("glob", pattern="*")).message
    assert len(await tree.call("glob", pattern="*00[01]?")) == 20


async def test_arguments_are_held_to_their_descriptions(tree: Tree) -> None:
    for method, args in (
        ("read", {}),
        ("read", {"path": 3}),
        ("read", {"path": "a", "from": 0}),
        ("read", {"path": "a", "lines": 1.5}),
        ("read", {"pth": "a"}),
        ("write", {"path": "a", "content": "\ud800"}),
    ):
        assert (await tree.refusal(method, **args)).code == "TOOL_ARGUMENTS"
    assert list(tree.root.iterdir()) == []
    assert "no method `chmod`" in (await tree.refusal("chmod", path="a")).message


async def test_without_write_nothing_can_be_changed(tmp_path: Path) -> None:
    tree = Tree(tmp_path, write=False)
    for method in ("write", "edit", "mkdir", "delete"):
        assert "no method" in (await tree.refusal(method, path="a")).message


async def test_links_inside_are_followed_and_no_others(tree: Tree) -> None:
    (tree.project / "secret.txt").write_text("secret")
    deep = tree.root / "a" / "b"
    deep.mkdir(parents=True)
    (tree.root / "x.md").write_text("x")
    (deep / "up").symlink_to("../../x.md")
    (deep / "here").symlink_to(".")
    (deep / "top").symlink_to("../..")
    (deep / "abs").symlink_to(tree.root / "x.md")
    (deep / "root").symlink_to(tree.root)
    (deep / "out").symlink_to("../../../secret.txt")
    (deep / "out-abs").symlink_to(tree.project / "secret.txt")
    (deep / "sibling").symlink_to(str(tree.root) + "-too/x")
    (deep / "round").symlink_to("round")
    (deep / "ping").symlink_to("pong")
    (deep / "pong").symlink_to("ping")
    (deep / "gone").symlink_to("nowhere/../x")
    for path in ("a/b/up", "a/b/here/up", "a/b/here/here/top/x.md", "a/b/abs", "a/b/root/x.md", "a/b/root/a/b/up"):
        assert await tree.call("read", path=path) == "x"
    for path in ("a/b/out", "a/b/out-abs", "a/b/sibling", "a/b/top/a/b/out"):
        assert "leads out" in (await tree.refusal("read", path=path)).message
    for path in ("a/b/round", "a/b/ping", "a/b/round/x"):
        assert "goes round" in (await tree.refusal("read", path=path)).message
    assert "there is no" in (await tree.refusal("read", path="a/b/gone")).message
    assert await tree.call("list", path="a/b/top") == ["a/b/top/a/", "a/b/top/x.md"]
    assert (await tree.call("list", path="a/b/here"))[0] == "a/b/here/abs"


async def test_denied_paths_are_tried_on_what_is_really_opened(tree: Tree) -> None:
    (tree.root / "Secret").mkdir()
    (tree.root / "Secret" / "a.md").write_text("needle")
    (tree.root / "link").symlink_to("Secret")
    (tree.root / "b.md").write_text("needle")
    denied = Given(None, ("secret/*",))
    for path in ("secret/../Secret/A.md", "Secret/a.md", "link/a.md", "./Secret//a.md"):
        assert (await tree.refusal("read", denied, path=path)).code == "DENIED"
        assert (await tree.refusal("write", denied, path=path, content="x")).code == "DENIED"
        assert (await tree.refusal("delete", denied, path=path)).code == "DENIED"
    assert await tree.call("read", denied, path="b.md") == "needle"
    assert await tree.call("search", denied, query="needle") == [{"path": "b.md", "line": 1, "text": "needle"}]
    assert (await tree.refusal("mkdir", Given(None, ("secret/*",)), path="link/new")).code == "DENIED"


def _host(folder: Path) -> ProviderHost:
    return ProviderHost(folder, folder, (), Environment({}, {}))


def test_settings_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / ".halo" / "runs").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "link").symlink_to(".halo/runs")
    for settings, said in (
        ({"folder": "none"}, "`none`"),
        ({"folder": "none"}, str(tmp_path / "none")),
        ({"folder": "file"}, "no folder"),
        ({"folder": "file/x", "write": True}, "cannot be used"),
        ({"folder": ""}, "needs a folder"),
        ({"folder": "a\0b"}, "needs a folder"),
        ({}, "needs a folder"),
        ({"folder": ".", "write": "yes"}, "true or false"),
        ({"folder": ".halo"}, "kept from every tool"),
        ({"folder": ".halo/runs"}, "kept from every tool"),
        ({"folder": "link"}, "kept from every tool"),
        ({"folder": ".HALO/new", "write": True}, "kept from every tool"),
        ({"folder": ".git", "write": True}, "kept from every tool"),
    ):
        with pytest.raises(ConfigError) as raised:
            Workspace(settings, _host(tmp_path))
        assert said in str(raised.value)
    Workspace({"folder": ".git"}, _host(tmp_path))
    Workspace({"folder": "."}, _host(tmp_path / ".halo"))


async def test_a_missing_folder_is_made_by_the_first_change_and_by_nothing_else(tmp_path: Path) -> None:
    tree = Tree(tmp_path, "new/deep", make=False)
    for method, args in (
        ("list", {}),
        ("read", {"path": "a"}),
        ("glob", {"pattern": "*"}),
        ("search", {"query": "x"}),
        ("edit", {"path": "a", "old": "x", "new": "y"}),
        ("delete", {"path": "a"}),
        ("write", {"path": ".env", "content": "x"}),
        ("write", {"path": "../x", "content": "x"}),
    ):
        await tree.refusal(method, **args)
        assert not (tree.project / "new").exists()
    assert "does not exist yet" in (await tree.refusal("list")).message
    assert (await tree.tool.preview("write", {"path": "a", "content": "x"})).digest == "absent"
    assert not (tree.project / "new").exists()
    assert await tree.call("write", path="sub/a", content="x") == {"path": "sub/a"}
    assert (tree.root / "sub" / "a").read_text() == "x"
