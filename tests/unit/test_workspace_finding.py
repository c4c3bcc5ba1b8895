"""Finding with a Workspace: `glob`, `search`, and the patterns of both, held against git's own reading of them."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workspaces import Tree

from halo_lang.boundary.host import ToolError
from halo_lang.providers.files import finding
from halo_lang.providers.files.patterns import is_ignored, read_glob, read_ignore
from halo_lang.providers.results import LIMIT


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def fill(tree: Tree, **files: str) -> None:
    for name, text in files.items():
        path = tree.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


GLOBS = [
    ("*.md", ["a.md", "é.md"]),
    ("**/*.md", ["a.md", "src/b.md", "src/deep/c.md", "é.md"]),
    ("**", ["[x].txt", "a.md", "src/", "src/b.md", "src/deep/", "src/deep/c.md", "é.md"]),
    ("src/**", ["src/b.md", "src/deep/", "src/deep/c.md"]),
    ("src/**/c.md", ["src/deep/c.md"]),
    ("src/**/b.md", ["src/b.md"]),
    ("./src//*", ["src/b.md", "src/deep/"]),
    ("src/*/", ["src/deep/"]),
    ("?.md", ["a.md", "é.md"]),
    ("[a-c].md", ["a.md"]),
    ("[!a].md", ["é.md"]),
    ("[[]x].txt", ["[x].txt"]),
    ("\\[x\\].txt", ["[x].txt"]),
    ("A.md", []),
    ("none/**", []),
    ("*/*", ["src/b.md", "src/deep/"]),
    ("s*/d*/*.md", ["src/deep/c.md"]),
    ("*/deep/**", ["src/deep/c.md"]),
    ("s?c/**/[c]*", ["src/deep/c.md"]),
    ("*/*/*/*", []),
    ("a.md/*", []),
]


@pytest.mark.parametrize(("pattern", "paths"), GLOBS)
async def test_glob(tree: Tree, pattern: str, paths: list[str]) -> None:
    fill(tree, **{"a.md": "", "é.md": "", "src/b.md": "", "src/deep/c.md": "", "[x].txt": ""})
    assert await tree.call("glob", pattern=pattern) == paths


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../*", "[a", "a\\", ".", "x" * 2000, "a\0b"])
async def test_patterns_that_are_none(tree: Tree, pattern: str) -> None:
    await tree.refusal("glob", pattern=pattern)


async def test_search_gives_paths_lines_and_texts(tree: Tree) -> None:
    fill(tree, **{"b.md": "one\r\nneedle two\r\n", "a.md": "x\nneedle\n\nneedle needle", "c/d.md": "Needle"})
    assert await tree.call("search", query="needle") == [
        {"path": "a.md", "line": 2, "text": "needle"},
        {"path": "a.md", "line": 4, "text": "needle needle"},
        {"path": "b.md", "line": 2, "text": "needle two"},
    ]
    assert await tree.call("search", query="^n.+t(w|x)o$", regex=True) == [
        {"path": "b.md", "line": 2, "text": "needle two"}
    ]
    assert await tree.call("search", query="(?i)NEEDLE$", regex=True, path="c") == [
        {"path": "c/d.md", "line": 1, "text": "Needle"}
    ]
    assert await tree.call("search", query="needle", path="b.md") == [{"path": "b.md", "line": 2, "text": "needle two"}]
    assert await tree.call("search", query="needle(", path="b.md") == []


async def test_search_refuses_what_it_cannot_look_for(tree: Tree) -> None:
    fill(tree, **{"a.md": "x"})
    for query, regex, said in (
        ("", False, "empty"),
        ("a\nb", False, "line break"),
        ("(", True, "missing )"),
        (r"(a)\1", True, "back-references"),
        ("(?=a)", True, "look-around"),
        ("x" * 2000, False, "1,000"),
    ):
        assert said in (await tree.refusal("search", query=query, regex=regex)).message
    assert "there is no file" in (await tree.refusal("search", query="x", path="none")).message
    assert "leads out" in (await tree.refusal("search", query="x", path="..")).message


async def test_search_leaves_out_what_is_no_text(tree: Tree) -> None:
    fill(tree, **{"a.md": "needle"})
    (tree.root / "nul").write_bytes(b"needle\x00")
    (tree.root / "late").write_bytes(b"needle\n" * 100_000 + b"\xff")
    (tree.root / "latin").write_bytes(b"needle caf\xe9")
    assert [h["path"] for h in await tree.call("search", query="needle")] == ["a.md"]


async def test_long_lines_and_pieces_of_a_file(tree: Tree) -> None:
    fill(tree, long="x" * 300_000 + "needle" + "y" * 300_000 + "\nneedle é", many="\n" * 300_000 + "needle")
    for regex in (False, True):
        first, second, third = await tree.call("search", query="needle", regex=regex)
        assert (first["path"], first["line"], len(first["text"])) == ("long", 1, 502)
        assert "needle" in first["text"]
        assert second == {"path": "long", "line": 2, "text": "needle é"}
        assert third == {"path": "many", "line": 300_001, "text": "needle"}


async def test_more_lines_than_a_result_holds_say_how_to_ask_for_less(tree: Tree) -> None:
    fill(tree, a="needle and some more\n" * (LIMIT // 20))
    assert "longer query" in (await tree.refusal("search", query="needle")).message


async def test_a_hostile_expression_does_not_run_away(tree: Tree) -> None:
    fill(tree, a="a" * 50_000 + "\n")
    assert await tree.call("search", query="(a+)+$x", regex=True) == []
    assert await tree.call("glob", pattern="*a" * 100 + "b") == []
    fill(tree, **{".gitignore": "*a" * 100 + "b\n", "a" * 200: "x"})
    assert await tree.call("glob", pattern="a*") == ["a", "a" * 200]


async def test_both_skip_git_and_what_gitignore_skips(tree: Tree) -> None:
    fill(
        tree,
        **{
            ".gitignore": "*.log\n/build/\n!keep.log\n",
            "src/.gitignore": "!b.log\nlocal/\n",
            ".git/config": "needle",
            "sub/.git": "needle",
            "a.log": "needle",
            "keep.log": "needle",
            "build/x": "needle",
            "src/build/x": "needle",
            "src/b.log": "needle",
            "src/c.log": "needle",
            "src/local/x": "needle",
        },
    )
    there = ["keep.log", "src/b.log", "src/build/x"]
    assert [h["path"] for h in await tree.call("search", query="needle")] == there
    assert [p for p in await tree.call("glob", pattern="**") if not p.endswith(("/", "ignore"))] == there
    assert await tree.call("glob", pattern="build/*") == []
    assert await tree.call("glob", pattern="src/local/*") == []
    assert [h["path"] for h in await tree.call("search", query="needle", path="src")] == there[1:]
    for path in ("build", "src/local", ".git"):
        assert "skipped" in (await tree.refusal("search", query="needle", path=path)).message
    assert "build/" in await tree.call("list")


async def test_links_are_not_followed_while_walking(tree: Tree) -> None:
    (tree.project / "outside").mkdir()
    (tree.project / "outside" / "s.txt").write_text("needle")
    fill(tree, **{"a/b.md": "needle"})
    (tree.root / "a" / "round").symlink_to("..")
    (tree.root / "out").symlink_to("../outside")
    (tree.root / "file").symlink_to("../outside/s.txt")
    assert [h["path"] for h in await tree.call("search", query="needle")] == ["a/b.md"]
    assert await tree.call("glob", pattern="**") == ["a/", "a/b.md", "a/round/", "file", "out"]
    assert [h["path"] for h in await tree.call("search", query="needle", path="a/round/a")] == ["a/b.md"]


async def test_a_folder_of_git_that_is_a_link_or_a_pipe_is_no_trouble(tree: Tree) -> None:
    os.mkfifo(tree.root / ".gitignore")
    fill(tree, **{"a": "needle", "b/c": "needle"})
    (tree.root / "b/.gitignore").symlink_to("/dev/zero")
    assert len(await tree.call("search", query="needle")) == 2


async def test_walks_are_bounded_in_time_and_number(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tree, **{f"d{n}/f": "needle" for n in range(20)})
    with monkeypatch.context() as patched:
        patched.setattr(finding, "MAX_SEEN", 10)
        assert "more than 10 files" in (await tree.refusal("search", query="needle")).message
        assert await tree.call("glob", pattern="d1/*") == ["d1/f"]
    with monkeypatch.context() as patched:
        patched.setattr(finding, "DEADLINE_S", -1.0)
        assert "took longer" in (await tree.refusal("search", query="needle")).message
        assert "took longer" in (await tree.refusal("glob", pattern="**")).message


async def test_a_cancelled_walk_stops(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tree, **{f"f{n}": "" for n in range(50)})
    seen: list[finding.Bounds] = []
    real, looking, cancelled = finding.Bounds.see, threading.Event(), threading.Event()

    def held(self: finding.Bounds) -> None:
        seen.append(self)
        looking.set()
        cancelled.wait(60)
        real(self)

    monkeypatch.setattr(finding.Bounds, "see", held)
    task = asyncio.create_task(tree.call("glob", pattern="**"))
    assert await asyncio.to_thread(looking.wait, 60)
    task.cancel()
    await asyncio.sleep(0)  # now it knows, and waits for the walk
    cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(seen) == 1


git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
_PLAIN = ("a", "b", "*", "**", "/", "?", "[", "]", "!", "#", "\\", " ", ".")
_BRACKETS = ("[ab]", "[!a]", "[a-b]", "[]a]", "[^b-]", "[[:alpha:]]", "[b-a]", "[\\]]", "[!-a]")
_PIECES = st.sampled_from((*_PLAIN, *_BRACKETS))
_NAME = st.text("ab!#.] ", min_size=1, max_size=3).filter(lambda n: n not in (".", ".."))
_NAMES = st.lists(_NAME, min_size=1, max_size=3)


@git
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(
        st.one_of(
            st.lists(_PIECES, min_size=1, max_size=6).map("".join),
            st.sampled_from(["a/*", "/a/*", "!a/b", "*/", "!a/", "a/**", "!*b", "**/b/*", "!/a/b/a", "*", "!b"]),
        ),
        min_size=1,
        max_size=4,
    ),
    paths=st.lists(_NAMES.map("/".join), min_size=1, max_size=12, unique=True),
)
def test_gitignore_is_read_as_git_reads_it(tmp_path: Path, lines: list[str], paths: list[str]) -> None:
    if not (tmp_path / ".git").exists():
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("\n".join(lines) + "\n")
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=tmp_path,
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
    )
    assert asked.returncode in (0, 1), asked.stderr
    by_git = {p.decode() for p in asked.stdout.split(b"\0") if p}
    stack = [(0, read_ignore((tmp_path / ".gitignore").read_text()))]

    def ignored(path: str) -> bool:
        parts = path.split("/")
        above = ("/".join(parts[:n]) + "/" for n in range(1, len(parts)))
        return any(is_ignored(stack, folder) for folder in above) or is_ignored(stack, path)

    assert {p for p in paths if ignored(p)} == by_git, lines


def test_what_is_kept_from_an_ignored_folder_is_found() -> None:
    for line in ("a/*", "/a/*", "a/***"):
        stack = [(0, read_ignore(f"{line}\n!a/b"))]
        assert not is_ignored(stack, "a/")
        assert not is_ignored(stack, "a/b")
        assert is_ignored(stack, "a/c/")


@settings(max_examples=200)
@given(st.text(max_size=30), st.text(max_size=30))
def test_no_pattern_breaks_the_reading(pattern: str, path: str) -> None:
    read_ignore(pattern).says(path) if pattern.isprintable() and path.isprintable() else None
    try:
        read_glob(pattern).matches(path.encode("utf-8", "replace").decode())
    except ToolError:
        return


@settings(max_examples=200)
@given(st.lists(st.text("ab*?[]!-\\é", min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_path_without_marks_matches_itself(names: list[str]) -> None:
    plain = [n for n in ("".join(c for c in name if c in "abé") for name in names) if n]
    if plain:
        path = "/".join(plain)
        assert read_glob(path).matches(path)
        assert read_glob("**/" + plain[-1]).matches(path)
        assert not read_glob(path).matches(path + "x")
