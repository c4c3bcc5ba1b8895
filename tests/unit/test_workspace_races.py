"""A Workspace while somebody changes the folder under it: nothing outside is touched, nothing half-made is seen."""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from workspaces import Tree, everything

from halo_lang.boundary.host import ToolError

ROUNDS = 150
RENAME_EXCHANGE = 2


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    made = Tree(tmp_path)
    outside = made.project / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "only-outside").write_text("outside")
    (outside / "a.txt").write_text("outside")
    (outside / "deep" / "a.txt").write_text("outside")
    return made


@contextmanager
def meanwhile(swap: Callable[[], None]) -> Iterator[list[int]]:
    """Swaps in a thread, again and again while the block lasts; gives the number of swaps."""
    ended = threading.Event()
    swaps = [0]

    def swapping() -> None:
        while not ended.is_set():
            swap()
            swaps[0] += 1

    thread = threading.Thread(target=swapping)
    thread.start()
    try:
        yield swaps
    finally:
        ended.set()
        thread.join()


def exchange(one: Path, other: Path) -> None:
    """Two names change places at one stroke, so that each is always there."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        pytest.skip("names cannot be exchanged here")
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


async def test_a_folder_that_becomes_a_link_again_and_again(tree: Tree) -> None:
    sub, aside, outside = tree.root / "sub", tree.root / "aside", tree.project / "outside"
    (sub / "deep").mkdir(parents=True)
    (sub / "a.txt").write_text("inside")
    (sub / "deep" / "a.txt").write_text("inside")
    before = everything(outside)

    aside.symlink_to("../outside")
    exchange(sub, aside)
    exchange(sub, aside)

    async def attempt(method: str, **args: object) -> object:
        try:
            return await tree.call(method, **args)
        except ToolError:
            return None

    with meanwhile(lambda: exchange(sub, aside)) as swaps:
        for count in range(ROUNDS):
            await attempt("write", path="sub/deep/a.txt", content="inside")
            await attempt("write", path=f"sub/new{count % 7}/b.txt", content="inside")
            await attempt("edit", path="sub/a.txt", old="side", new="side")
            await attempt("mkdir", path=f"sub/deep/made{count % 5}")
            await attempt("delete", path=f"sub/new{count % 7}/b.txt")
            assert await attempt("read", path="sub/deep/a.txt") in (None, "inside")
            assert "outside" not in str(await attempt("search", query="side"))
            assert "only-outside" not in str(await attempt("glob", pattern="**"))
            assert "only-outside" not in str(await attempt("list", path="sub"))
    assert swaps[0] > ROUNDS
    assert everything(outside) == before
    assert not [p for p in everything(tree.root) if ".halo-write-" in p]


async def test_a_file_that_becomes_a_link_again_and_again(tree: Tree) -> None:
    target, outside = tree.root / "a.txt", tree.project / "outside"
    before = everything(outside)

    def swap() -> None:
        with suppress(OSError):
            os.unlink(target)
        with suppress(OSError):
            os.symlink("../outside/a.txt", target)
        with suppress(OSError):
            os.unlink(target)
        with suppress(OSError):
            target.write_text("inside")

    with meanwhile(swap):
        for _ in range(ROUNDS):
            for method, args in (
                ("write", {"content": "inside"}),
                ("edit", {"old": "in", "new": "in"}),
                ("read", {}),
                ("delete", {}),
            ):
                with suppress(ToolError):
                    value = await tree.call(method, path="a.txt", **args)
                    assert value != "outside"
    assert everything(outside) == before


async def test_a_reader_never_sees_half_a_file(tree: Tree) -> None:
    path = tree.root / "a.txt"
    texts = {"a" * 200_000, "b" * 100_000}
    path.write_text("a" * 200_000)
    seen: set[str] = set()
    stop = threading.Event()

    def reading() -> None:
        while not stop.is_set():
            seen.add(path.read_text())

    thread = threading.Thread(target=reading)
    thread.start()
    try:
        for _ in range(50):
            await asyncio.gather(*(tree.call("write", path="a.txt", content=text) for text in texts))
    finally:
        stop.set()
        thread.join()
    assert seen <= texts
    assert os.listdir(tree.root) == ["a.txt"]
