"""Paths as text: what a caller asks for, made plain (tools.md §2, §3).

Owns the reading of a path before any file is touched: it is relative, and its `.` and `..` are taken away as text, in
the same way in which policies read it. Also how paths and the system's failures are shown. Touches no file; read
`beneath.py` next.
"""

from __future__ import annotations

import errno
import os
import sys

from ...boundary.host import ToolError
from ...language.record import Record
from ...language.visible import visible_in_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DEPTH = 255
"""How many folders deep a path may lead."""

_MAX_BYTES = 4096


class Asked(Record):
    """A path that a caller asked for. `parts` are its names without `.` and `..`, empty for the folder itself;
    `plain` is them as text, `"."` for the folder itself; `folder_only` says that it is written as a folder's."""

    parts: tuple[str, ...]
    plain: str
    folder_only: bool


def asked(path: str) -> Asked:
    """Reads a path. Raises `ToolError` for one that is empty, absolute, leads out of the folder, is no text, or is
    too long."""
    if path == "":
        raise ToolError("the path is empty; give one relative to the tool's folder")
    if "\0" in path:
        raise ToolError("a path holds no NUL character")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise ToolError("the path holds characters that are not valid Unicode") from None
    if size > _MAX_BYTES:
        raise ToolError(f"the path has {size:,} bytes, more than the {_MAX_BYTES:,} that a path may have")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolError(
            f"{shown(path)} cannot be named here: Python takes this system's file names for "
            f"{sys.getfilesystemencoding()}; set a locale of UTF-8, or PYTHONUTF8=1"
        ) from None
    if path.startswith("/"):
        raise ToolError(f"{shown(path)} is absolute; give a path relative to the tool's folder")
    parts: list[str] = []
    names = path.split("/")
    for name in names:
        if name == "..":
            if not parts:
                raise outside(path)
            parts.pop()
        elif name not in ("", "."):
            parts.append(name)
    if len(parts) > MAX_DEPTH:
        raise ToolError(f"the path leads more than {MAX_DEPTH} folders deep")
    return Asked(tuple(parts), text_of(parts), names[-1] in ("", ".", ".."))


def text_of(parts: Iterable[str]) -> str:
    """Names as a path; `"."` for none."""
    return "/".join(parts) or "."


def readable(name: str) -> str:
    """A name as the file system gave it, as text that can be written: bytes that are not UTF-8 as `\\xNN`."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_readable(name: str) -> bool:
    """Whether a name that the file system gave is UTF-8, so that a path can name it."""
    return name.isascii() or not any("\udc80" <= c <= "\udcff" for c in name)


def shown(path: str) -> str:
    """A path as messages show it: in backticks, on one line, at most about 200 characters."""
    text = readable(path) if not is_readable(path) else path
    if len(text) > 200:
        text = text[:100] + "…" + text[-90:]
    return f"`{visible_in_line(text)}`"


def outside(path: str) -> ToolError:
    return ToolError(f"{shown(path)} leads out of the tool's folder; only what is in it can be reached")


_MEANINGS = {
    errno.ENOENT: "there is no {}",
    errno.EACCES: "the system does not permit that on {}",
    errno.EPERM: "the system does not permit that on {}",
    errno.EROFS: "{} is on a file system that can only be read",
    errno.ENOSPC: "the disk is full; {} was not changed",
    errno.EDQUOT: "the disk quota is used up; {} was not changed",
    errno.EFBIG: "{} would become larger than the system permits",
    errno.ENAMETOOLONG: "a name in {} is longer than the file system permits",
    errno.EISDIR: "{} is a folder",
    errno.ENOTDIR: "a folder in {} is none",
    errno.ENOTEMPTY: "the folder {} is not empty (what is kept from every tool is not listed)",
    errno.ELOOP: "{} changed into a link while it was used",
    errno.EMFILE: "too many files are open to reach {}; try again",
    errno.ENFILE: "too many files are open to reach {}; try again",
    errno.ETXTBSY: "{} is a program that is running",
}


def failure(error: OSError, path: str) -> ToolError:
    """A failure of the system in words that a model can act on; never the path of the tool's folder itself."""
    from os import strerror

    number = error.errno or 0
    meaning = _MEANINGS.get(number)
    if meaning:
        return ToolError(meaning.format(shown(path)))
    return ToolError(f"{shown(path)} cannot be used: {strerror(number)}")
