"""What no path reaches, however it is spelled: the ground that a run stands on (tools.md §2, §3).

Owns the names that are neither read nor written, those that are never written, the files that are known by what they
are and not by name (so that no hard link, link or other letter case leads to them), and the patterns of DenyArgs.
Decides only; `beneath.py` asks, with the path as it was given and again with the one that was really opened.
"""

from __future__ import annotations

from ...boundary.host import ToolError
from ...check.policies import denies_path
from ...language.record import Record
from .paths import shown, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

_KEPT = ".halo"
_ENVIRONMENT = ".env"
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {chr(c) for c in range(0xFE00, 0xFE10)}
_FIXED = (".git", "halo.toml", "halo.lock", ".mcp.json")


class Guard(Record):
    """The files that are known by what they are, as absolute paths: `secret` are never read or written, `program` (the
    program's files) and `settled` (settings beside it) never written. They are looked at when a call is made, for an
    editor may put a new file in the old one's place."""

    secret: tuple[str, ...]
    program: tuple[str, ...]
    settled: tuple[str, ...] = ()


def folded(name: str) -> str:
    """A name as the most lenient file system reads it: without regard to letter case, to composed or compatible forms
    of characters, to invisible ones, and to dots and blanks at its end."""
    if name.isascii():
        return name.lower().rstrip(". \t")
    from unicodedata import category, normalize

    text = normalize("NFKC", normalize("NFKC", name).casefold()).casefold()
    return "".join(c for c in text if category(c) != "Cf" and c not in _INVISIBLE).rstrip(". \t")


def is_secret(name: str) -> bool:
    """Whether a name is of what is neither read nor written: `.halo`, `.env*`."""
    if name.isascii() and not name.startswith("."):
        return False
    plain = folded(name)
    return plain == _KEPT or plain.startswith(_ENVIRONMENT)


def refuse_names(names: Sequence[str], *, writes: bool) -> None:
    """Raises `ToolError` for a path with a name in it that is kept from reading, or from writing."""
    for name in names:
        if is_secret(name):
            raise ToolError(
                f"{shown(text_of(names))} is out of reach: `.halo` and `.env*` are neither read nor written"
            )
        if writes and folded(name) in _FIXED:
            raise ToolError(
                f"{shown(text_of(names))} is never written: `.git`, `.mcp.json`, `halo.toml` and `halo.lock` are the "
                "user's own"
            )


def refuse_program(guard: Guard, root: str, names: Sequence[str]) -> None:
    """Raises `ToolError` where a path below `root` is that of one of the program's files, in any letter case, or leads
    through it as if it were a folder."""
    import os

    wanted = [folded(n) for n in names]
    for path in guard.program:
        real = os.path.realpath(path)
        below = [folded(n) for n in os.path.relpath(real, root).split("/")]
        if wanted[: len(below)] == below:
            raise _program(names)


def refuse_file(guard: Guard, status: os.stat_result, names: Sequence[str], *, writes: bool) -> None:
    """Raises `ToolError` where a file is one that is kept from reading, or from writing, under whatever name."""
    if _is_one_of(guard.secret, status):
        raise ToolError(f"{shown(text_of(names))} is out of reach: it is the project's `.env` by another name")
    if writes and _is_one_of((*guard.program, *guard.settled), status):
        raise ToolError(f"{shown(text_of(names))} is never written: it is what the run stands on, by another name")


def refuse_denied(patterns: Sequence[str], path: str) -> None:
    """Raises `ToolError` with the code `DENIED` where a pattern of DenyArgs matches a path."""
    if is_denied(patterns, path):
        raise ToolError(f"a policy denies {shown(path)}", "DENIED")


def is_denied(patterns: Sequence[str], path: str) -> bool:
    """Whether a pattern of DenyArgs matches a path (tools.md §3)."""
    return bool(patterns) and denies_path(tuple(patterns), path)


def _program(names: Sequence[str]) -> ToolError:
    return ToolError(f"{shown(text_of(names))} is never written: it is a file of the program that runs")


def _is_one_of(paths: Iterable[str], status: os.stat_result) -> bool:
    import os

    for path in paths:
        try:
            there = os.stat(path)
        except OSError:
            continue
        if there.st_ino == status.st_ino and there.st_dev == status.st_dev:
            return True
    return False
