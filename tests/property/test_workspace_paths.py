"""Whatever path is asked of a Workspace, nothing outside its folder, and nothing a run stands on, is touched."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from halo_lang.boundary.host import Environment, Given, ProviderHost, ToolError
from halo_lang.providers.workspace import Workspace

SECRET = "outside-or-secret"
_PLACES = (
    "..",
    ".",
    "",
    "a",
    "A",
    "sub",
    "SUB",
    "out",
    "out-abs",
    "up",
    "here",
    "abs",
    "file",
    "notes-too",
    "new",
    "é",
)
_KEPT = (".env", ".ENV", ".Env.x", ".halo", ".HALO", ".git", "halo.toml", "HALO.LOCK", "main.halo", "MAIN.halo", "hard")
_ODD = ("é", "soft-env", "soft-halo", "e\u0301", ".\u200benv", "\uff0eenv", "~", "\\..", "..\\", "...", "x" * 256)
_NAMES = st.sampled_from((*_PLACES, *_KEPT, *_ODD))
_PATHS = st.one_of(
    st.lists(_NAMES, min_size=1, max_size=6).map("/".join),
    st.lists(_NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts)),
    st.text(max_size=12),
)
_CALLS = st.tuples(st.sampled_from(["read", "write", "edit", "list", "search", "mkdir", "delete", "glob"]), _PATHS)


def _built(top: Path) -> tuple[Workspace, Path]:
    """A Workspace on `project/notes` where links of every kind lead in and out, with secrets around and inside it."""
    project = top / "project"
    notes = project / "notes"
    for folder in ("sub/deep", ".halo", ".git"):
        (notes / folder).mkdir(parents=True)
    (project / "notes-too").mkdir()
    (project / ".halo").mkdir()
    for kept in ("../notes-too/s.txt", "../.env", ".env", ".halo/r", "../.halo/r"):
        (notes / kept).write_text(SECRET)
    for fixed in ("../main.halo", "main.halo", ".git/config", "halo.toml"):
        (notes / fixed).write_text("fixed")
    for free in ("a", "sub/a", "sub/deep/a", "é"):
        (notes / free).write_text("free")
    os.link(project / "main.halo", notes / "hard")
    for name, target in (
        ("out", "../notes-too"),
        ("out-abs", str(project / "notes-too")),
        ("up", ".."),
        ("sub/up", "../.."),
        ("here", "."),
        ("abs", str(notes / "sub")),
        ("soft-env", ".env"),
        ("soft-halo", ".halo"),
        ("file", "../notes-too/s.txt"),
        ("sub/out", "../../notes-too/new"),
    ):
        (notes / name).symlink_to(target)
    host = ProviderHost(project, project, (project / "main.halo", notes / "main.halo"), Environment({}, {}))
    return Workspace({"folder": "notes", "write": True}, host), notes


def _kept(top: Path, notes: Path) -> dict[str, str | bytes | None]:
    """All that no call may change: what is outside, and in the folder what a run stands on."""
    found: dict[str, str | bytes | None] = {}
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            path = Path(folder) / name
            inside = path.is_relative_to(notes) and path != notes
            parts = [p.lower() for p in path.relative_to(notes).parts] if inside else []
            settled = parts[-1:] in (["halo.toml"], ["halo.lock"]) or parts in (["main.halo"], ["hard"])
            if not inside or settled or any(p.startswith((".halo", ".git", ".env")) for p in parts):
                is_file = path.is_file() and not path.is_symlink()
                found[str(path)] = path.read_bytes() if is_file else os.readlink(path) if path.is_symlink() else None
    return found


def _arguments(method: str, path: str) -> dict[str, Any]:
    match method:
        case "write":
            return {"path": path, "content": "written"}
        case "edit":
            return {"path": path, "old": "e", "new": "E"}
        case "search":
            return {"query": "e", "path": path}
        case "glob":
            return {"pattern": path}
    return {"path": path}


async def _all(tool: Workspace, calls: list[tuple[str, str]]) -> list[Any]:
    values = []
    for method, path in calls:
        try:
            values.append(await tool.call(method, _arguments(method, path), Given()))
        except ToolError as error:
            values.append(error.message)
    return values


@settings(max_examples=60)
@given(st.lists(_CALLS, min_size=1, max_size=12))
@example([("write", "MAIN.halo/a"), ("mkdir", "here/MAIN.halo/sub"), ("write", "Main.Halo./a/b")])
def test_no_path_leaves_the_folder_or_reaches_what_is_kept(calls: list[tuple[str, str]]) -> None:
    top = Path(tempfile.mkdtemp())
    real_sync, os.fsync = os.fsync, lambda _: None
    try:
        tool, notes = _built(top)
        before = _kept(top, notes)
        values = asyncio.run(_all(tool, calls))
        assert _kept(top, notes) == before
        assert SECRET not in repr(values)
        assert str(top) not in repr(values)
    finally:
        os.fsync = real_sync
        shutil.rmtree(top)
