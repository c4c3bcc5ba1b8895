"""Where the file of a database may be (tools.md §2).

Owns the refusal of what a run stands on, in whatever spelling, and of what is no ordinary file: a folder, a pipe, for a
store also a link. Relative paths start from the folder of the `.halo` file; an absolute one is its author's decision.
"""

from __future__ import annotations

import os
import stat

from ...boundary.host import ConfigError, ToolError
from ..files.guard import folded, is_secret
from ..files.paths import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...boundary.host import ProviderHost

_FIXED = (".git", "halo.toml", "halo.lock")


def place_of(named: object, host: ProviderHost, what: str) -> str:
    """The absolute path of a database's file. `what` says whose it is, for errors. Raises `ConfigError`."""
    if not isinstance(named, str) or not named or "\0" in named or not _is_unicode(named):
        raise ConfigError(f"{what} needs the name of a file, as text")
    base = os.path.abspath(host.base)
    path = os.path.normpath(os.path.join(base, named))
    if named.endswith("/") or path == base:
        raise ConfigError(f"{what} needs a file, and {shown(named)} names a folder")
    grounds = tuple(dict.fromkeys((base, os.path.abspath(host.working))))
    _refuse_ground(path, named, what, grounds)
    _refuse_ground(os.path.realpath(path), named, what, tuple(os.path.realpath(g) for g in grounds))
    if os.path.realpath(path) in {os.path.realpath(p) for p in host.program_files}:
        raise ConfigError(f"{shown(named)} cannot be {what}'s file: it is the program's own")
    return path


def trouble_with(path: str, named: str, *, links: bool) -> str | None:
    """What is odd about a file that is there, or None. `links`: whether a link may stand in its place."""
    try:
        there = os.stat(path) if links else os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return f"{shown(named)} cannot be used: {error.strerror}"
    if stat.S_ISLNK(there.st_mode):
        return f"{shown(named)} is a link; name the file that it leads to"
    if stat.S_ISDIR(there.st_mode):
        return f"{shown(named)} is a folder, and must be a file"
    if not stat.S_ISREG(there.st_mode):
        return f"{shown(named)} is no ordinary file"
    return None


def refuse_odd(path: str, named: str, *, links: bool) -> None:
    """Raises `ToolError` for a file that is no ordinary one."""
    trouble = trouble_with(path, named, links=links)
    if trouble:
        raise ToolError(trouble)


def _refuse_ground(path: str, named: str, what: str, grounds: tuple[str, ...]) -> None:
    names: set[str] = set()
    below = [parts for ground in grounds if (parts := os.path.relpath(path, ground).split("/"))[0] != ".."]
    names.update(*(below or ((os.path.basename(path),),)))
    for name in names:
        if is_secret(name) or folded(name) in _FIXED:
            raise ConfigError(f"{shown(named)} cannot be {what}'s file: `{name}` is kept from every tool")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
