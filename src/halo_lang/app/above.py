"""A project's file, looked for beside a program and above it: `halo.toml`, `.mcp.json` (cli.md, tools.md §2).

Owns whose such a file may be. What it says counts as the user's own word (a command to start, a price), and on a
machine of several users anybody can put a file into a folder above, such as `/tmp`. Owns how such a file is read too:
nobody has named it, so it may be a pipe on which nobody writes.
"""

from __future__ import annotations

import os
import stat
from errno import EFBIG, EINVAL

from ..boundary.host import ConfigError


def file_above(name: str, folder: str) -> str | None:
    """The nearest file of a name in a folder or above it. Raises `ConfigError` for one above that belongs to neither
    the user, nor the system, nor whoever owns the folder."""
    start = folder = os.path.realpath(folder)
    while True:
        file = os.path.join(folder, name)
        if os.path.isfile(file):
            if folder != start and _owner(file) not in (0, os.geteuid(), _owner(start)):
                raise ConfigError(
                    f"{file}: it belongs to another user, so it is not used; remove it, or have one beside"
                )
            return file
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def read_whole(file: str, most: int) -> bytes:
    """The bytes of a file that nobody named. Never waits. Raises `OSError`, also for what is no regular file, such as a
    pipe, and for one of more than `most` bytes."""
    handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(EINVAL, "it is no regular file")
        data = opened.read(most + 1)
    if len(data) > most:
        size = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
        raise OSError(EFBIG, f"it is larger than {size}")
    return data


def _owner(path: str) -> int:
    try:
        return os.stat(path).st_uid
    except OSError:
        return -1
