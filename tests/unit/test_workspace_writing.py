"""Changing files with a Workspace: what is kept from it, what a failure leaves, and two changes at once."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from workspaces import Tree, everything

from halo_lang.boundary.host import Given
from halo_lang.providers.files import writing


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


async def test_writes_whole_files_and_missing_folders(tree: Tree) -> None:
    assert await tree.call("write", path="./a//b/c.md", content="é\r\n") == {"path": "a/b/c.md"}
    assert (tree.root / "a/b/c.md").read_bytes() == "é\r\n".encode()
    assert await tree.call("write", path="a/b/c.md", content="") == {"path": "a/b/c.md"}
    assert everything(tree.root) == {"a": None, "a/b": None, "a/b/c.md": b""}


async def test_keeps_the_mode_and_new_files_follow_the_umask(tree: Tree) -> None:
    (tree.root / "run.sh").write_text("x")
    (tree.root / "run.sh").chmod(0o750)
    old = os.umask(0o027)
    try:
        await tree.call("write", path="run.sh", content="y")
        await tree.call("write", path="new/new.md", content="y")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tree.root / "run.sh").stat().st_mode) == 0o750
    assert stat.S_IMODE((tree.root / "new/new.md").stat().st_mode) == 0o640
    assert stat.S_IMODE((tree.root / "new").stat().st_mode) == 0o750


async def test_a_link_inside_is_written_through_and_stays(tree: Tree) -> None:
    (tree.root / "real.md").write_text("old")
    (tree.root / "link").symlink_to("real.md")
    (tree.root / "dangling").symlink_to("new/x.md")
    await tree.call("write", path="link", content="new")
    assert (tree.root / "link").is_symlink()
    assert (tree.root / "real.md").read_text() == "new"
    await tree.call("write", path="dangling", content="made")
    assert (tree.root / "new/x.md").read_text() == "made"


SPELLINGS = (
    ".halo/x",
    ".HALO/recordings/x",
    ".env",
    ".Env.local",
    ".envrc",
    "sub/.env",
    "none/../.env",
    ".env.",
    ".env ",
    ".\u200benv",
    "\uff0eenv",
    ".\uff45nv",
    ".ENV/deep/x",
    "sub/.halo",
)
FIXED = (".git/x", ".GIT/hooks/pre-commit", "sub/.git", "halo.toml", "Halo.Lock", "sub/HALO.TOML", ".g\u200cit/config")
PROGRAM = ("main.halo", "./Main.Halo", "sub/../MAIN.HALO")


@pytest.mark.parametrize("path", SPELLINGS + FIXED + PROGRAM)
async def test_what_a_run_stands_on_is_never_written(tmp_path: Path, path: str) -> None:
    tree = Tree(tmp_path, ".")
    before = everything(tree.project)
    for method, args in (
        ("write", {"content": "x"}),
        ("edit", {"old": "program", "new": "x"}),
        ("mkdir", {}),
        ("delete", {}),
    ):
        await tree.refusal(method, path=path, **args)
    with pytest.raises(Exception, match=r"never written|out of reach|no file"):
        await tree.tool.preview("write", {"path": path, "content": "x"})
    assert everything(tree.project) == before


@pytest.mark.parametrize("path", SPELLINGS)
async def test_secrets_are_never_read_however_they_are_spelled(tmp_path: Path, path: str) -> None:
    tree = Tree(tmp_path, ".")
    there = tree.project / os.path.normpath(path)
    there.parent.mkdir(parents=True, exist_ok=True)
    there.write_text("needle")
    assert "out of reach" in (await tree.refusal("read", path=path)).message
    assert await tree.call("search", query="needle") == []
    assert [p for p in await tree.call("glob", pattern="**") if "main" not in p and "sub" not in p] == []


async def test_names_that_only_look_like_them_are_free(tree: Tree) -> None:
    for path in ("env", "a.env", ".en", ".gitignore", ".github/x", "halo.tom", "halo/x", "sub/main.halo", "x.halo"):
        await tree.call("write", path=path, content="x")
        assert await tree.call("read", path=path) == "x"


async def test_other_names_of_the_same_files_do_not_help(tmp_path: Path) -> None:
    tree = Tree(tmp_path, ".")
    (tree.project / ".env").write_text("SECRET=needle")
    (tree.project / "halo.toml").write_text("needle")
    os.link(tree.project / ".env", tree.project / "hard-env")
    os.link(tree.program, tree.project / "hard-program")
    os.link(tree.project / "halo.toml", tree.project / "hard-settings")
    (tree.project / "soft-env").symlink_to(".env")
    (tree.project / "soft-halo").symlink_to(".halo")
    (tree.project / "soft-program").symlink_to("main.halo")
    before = everything(tree.project)
    for path in ("hard-env", "soft-env", "soft-halo/x"):
        assert "out of reach" in (await tree.refusal("read", path=path)).message
    for path in ("hard-env", "hard-program", "hard-settings", "soft-env", "soft-halo/x", "soft-program"):
        await tree.refusal("write", path=path, content="x")
    for path in ("hard-program", "soft-program"):
        assert "program" in await tree.call("read", path=path)
        await tree.refusal("edit", path=path, old="program", new="x")
    assert everything(tree.project) == before


async def test_nothing_is_left_of_a_refused_write(tree: Tree) -> None:
    outside = tree.project / "outside"
    outside.mkdir()
    (tree.root / "link").symlink_to(outside)
    (tree.root / "file").symlink_to(outside / "new")
    (tree.root / "a.md").write_text("x")
    (tree.root / "dir").mkdir()
    before = everything(tree.project)
    for path in (
        "link/new/deep.md",
        "file",
        "new/.env",
        "new/../../x",
        "a.md/x",
        "new/" + "n" * 300,
        "new/x/",
        "dir",
        ".",
        "dir/..",
        "n" * 300 + "/x",
    ):
        await tree.refusal("write", path=path, content="x")
        assert everything(tree.project) == before
    for path in ("link/new", "new/.halo/x", "new/" + "n" * 300, "a.md", "a.md/x"):
        await tree.refusal("mkdir", path=path)
        assert everything(tree.project) == before


@pytest.mark.parametrize("step", ["write", "fsync", "rename", "fchmod"])
async def test_a_full_disk_leaves_everything_as_it_was(tree: Tree, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    await tree.call("write", path="a.md", content="old")
    before = everything(tree.root)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    for path in ("a.md",) if step == "fchmod" else ("a.md", "new/deep/b.md"):
        error = await tree.refusal("write", path=path, content="new")
        assert error.message == f"the disk is full; `{path}` was not changed"
        assert everything(tree.root) == before
    monkeypatch.undo()
    await tree.call("write", path="a.md", content="new")


async def test_a_full_disk_is_met_for_real(tree: Tree) -> None:
    import resource
    import signal

    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, old_limit[1]))
    try:
        error = await tree.refusal("write", path="new/a.md", content="x" * (1 << 17))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert "larger than the system permits" in error.message
    assert everything(tree.root) == {}


async def test_a_cancelled_write_stops_and_leaves_nothing(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    begun, go_on = threading.Event(), threading.Event()
    real = os.fsync

    def slow(fd: int) -> None:
        begun.set()
        go_on.wait(10)
        real(fd)

    monkeypatch.setattr(os, "fsync", slow)
    task = asyncio.create_task(tree.call("write", path="new/a.md", content="x"))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert everything(tree.root) == {}


EDITS = [
    ("a.c abc abc", "abc", "more than once"),
    ("aaa", "aa", "more than once"),
    ("abc", "zzz", "does not stand"),
    ("abc", "", "`old` is empty"),
    ("a\r\nb\r\n", "a\nb", "CRLF"),
]


@pytest.mark.parametrize(("text", "old", "said"), EDITS)
async def test_edit_needs_the_old_text_exactly_once(tree: Tree, text: str, old: str, said: str) -> None:
    (tree.root / "f.txt").write_bytes(text.encode())
    assert said in (await tree.refusal("edit", path="f.txt", old=old, new="X")).message
    assert (tree.root / "f.txt").read_bytes() == text.encode()


async def test_edit_keeps_all_other_bytes(tree: Tree) -> None:
    (tree.root / "f.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n\x00end")
    await tree.call("edit", path="f.txt", old="two\r", new="2\n")
    assert (tree.root / "f.txt").read_bytes() == b"\xef\xbb\xbfone\r\n2\nthree\n\x00end"
    (tree.root / "b.bin").write_bytes(b"\xffone")
    assert "not UTF-8 text (4 bytes)" in (await tree.refusal("edit", path="b.bin", old="one", new="x")).message
    assert "there is no file" in (await tree.refusal("edit", path="none", old="one", new="x")).message
    monstrous = tree.root / "big"
    with open(monstrous, "wb") as file:
        file.truncate(writing.MAX_EDITED + 1)
    assert "too large to edit" in (await tree.refusal("edit", path="big", old="one", new="x")).message


async def test_two_edits_at_once_lose_nothing(tree: Tree) -> None:
    count = 40
    (tree.root / "sub").mkdir()
    (tree.root / "link").symlink_to("sub")
    (tree.root / "sub/f.txt").write_text("".join(f"<{n}>\n" for n in range(count)))
    paths = ("sub/f.txt", "link/f.txt")
    await asyncio.gather(*(tree.call("edit", path=paths[n % 2], old=f"<{n}>", new=f"[{n}]") for n in range(count)))
    assert (tree.root / "sub/f.txt").read_text() == "".join(f"[{n}]\n" for n in range(count))
    assert os.listdir(tree.root / "sub") == ["f.txt"]


async def test_delete_takes_files_links_and_empty_folders(tree: Tree) -> None:
    (tree.root / "full").mkdir()
    (tree.root / "full/a").write_text("x")
    (tree.root / "empty").mkdir()
    (tree.root / "link").symlink_to("full")
    (tree.root / "out").symlink_to("/etc/passwd")
    assert await tree.call("delete", path="link") == {"path": "link"}
    assert await tree.call("delete", path="out") == {"path": "out"}
    assert await tree.call("delete", path="empty/") == {"path": "empty"}
    assert "not empty" in (await tree.refusal("delete", path="full")).message
    assert await tree.call("delete", path="full/a") == {"path": "full/a"}
    assert "there is no" in (await tree.refusal("delete", path="full/a")).message
    assert "itself" in (await tree.refusal("delete", path="full/..")).message
    assert everything(tree.root) == {"full": None}
    assert Path("/etc/passwd").exists()


async def test_mkdir_makes_parents_and_is_content_with_what_is_there(tree: Tree) -> None:
    assert await tree.call("mkdir", path="a/b/") == {"path": "a/b"}
    assert await tree.call("mkdir", path="a/b") == {"path": "a/b"}
    assert await tree.call("mkdir", path=".") == {"path": "."}
    (tree.root / "f").write_text("x")
    assert "no folder" in (await tree.refusal("mkdir", path="f")).message


async def test_an_approved_change_is_bound_to_what_was_shown(tree: Tree) -> None:
    args = {"path": "a.md", "content": "new\n"}
    shown = await tree.tool.preview("write", args)
    assert shown.difference == "--- /dev/null\n+++ a.md\n@@ -0,0 +1 @@\n+new\n"
    (tree.root / "a.md").write_text("other\n")
    error = await tree.refusal("write", Given(shown.digest), **args)
    assert error.code == "CHANGED"
    assert everything(tree.root) == {"a.md": b"other\n"}
    shown = await tree.tool.preview("write", args)
    assert shown.difference == "--- a.md\n+++ a.md\n@@ -1 +1 @@\n-other\n+new\n"
    await tree.call("write", Given(shown.digest), **args)
    edit = {"path": "a.md", "old": "new", "new": "newer"}
    shown = await tree.tool.preview("edit", edit)
    assert shown.difference == "--- a.md\n+++ a.md\n@@ -1 +1 @@\n-new\n+newer\n"
    (tree.root / "a.md").write_text("new and more\n")
    assert (await tree.refusal("edit", Given(shown.digest), **edit)).code == "CHANGED"
    assert (tree.root / "a.md").read_text() == "new and more\n"
    shown = await tree.tool.preview("delete", {"path": "a.md"})
    assert "-new and more" in shown.difference
    (tree.root / "a.md").write_text("x")
    assert (await tree.refusal("delete", Given(shown.digest), path="a.md")).code == "CHANGED"
    (tree.root / "a.md").unlink()
    assert (await tree.refusal("write", Given(shown.digest), **args)).code == "CHANGED"
    assert everything(tree.root) == {}


async def test_a_preview_of_what_is_no_text_or_too_large(tree: Tree) -> None:
    (tree.root / "b.bin").write_bytes(b"\xff\xfe")
    shown = await tree.tool.preview("write", {"path": "b.bin", "content": "x\n"})
    assert shown.difference.startswith("b.bin: 2 bytes that are not UTF-8 text are replaced by:\n")
    await tree.call("write", Given(shown.digest), path="b.bin", content="x\n")
    with open(tree.root / "big", "wb") as file:
        file.truncate(writing.MAX_EDITED + 1)
    shown = await tree.tool.preview("write", {"path": "big", "content": "x\n"})
    assert shown.difference.startswith("big: 16,777,217 bytes are replaced by:\n")
    await tree.call("write", Given(shown.digest), path="big", content="x\n")
    assert (await tree.tool.preview("mkdir", {"path": "d"})).digest == ""
