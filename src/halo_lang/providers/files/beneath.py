"""Opening what a path names beneath a folder, so that nothing outside can be reached (tools.md §2).

Owns the one walk from the tool's folder to a file. It goes name by name, each opened relative to the folder before it
and never through a link; a link is read as text, and its names are walked in the same way, from the tool's folder
again where it goes up. So neither `..`, nor a link, nor a folder that becomes a link between two steps leads out:
what is used is always an open folder that was reached from within, and a name in it. What is kept from every path
(`guard.py`) is looked for in the path as given and in the names that were really walked. Read `reading.py` or
`writing.py` next.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager

from ...boundary.host import ToolError
from ...language.record import Record
from .guard import Guard, refuse_denied, refuse_file, refuse_names, refuse_program
from .paths import MAX_DEPTH, Asked, asked, failure, outside, shown, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..blocking import Stop

_MAX_LINKS = 40
_MAX_STEPS = 10_000
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WALKED = _FOLDER | getattr(os, "O_PATH", os.O_RDONLY)


class Folder(Record):
    """A tool's folder. `path` is absolute; it need not exist where the tool may write. `named` is it as the program
    names it."""

    path: str
    named: str
    guard: Guard


class Root(Record):
    """The tool's folder, opened: `fd`, and its real path, by which links with an absolute target are told apart."""

    fd: int
    path: str


class Place(Record):
    """Where a path leads. `at` is an open folder and `name` a name in it; it is `""` for the tool's folder itself.

    `names` are the names really walked from the tool's folder, links followed. `missing` are the names of folders
    that have to be made between `at` and `name`; `status` is None for what does not exist. Where the tool's folder
    itself does not exist, `at` is None.
    """

    asked: Asked
    root: str
    at: int | None
    name: str
    names: tuple[str, ...]
    missing: tuple[str, ...]
    status: os.stat_result | None

    @property
    def is_folder(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def is_file(self) -> bool:
        return self.status is not None and stat.S_ISREG(self.status.st_mode)

    @property
    def plain(self) -> str:
        return self.asked.plain

    @property
    def here(self) -> int:
        """The open folder, for a place that exists."""
        assert self.at is not None
        return self.at


@contextmanager
def opened(folder: Folder) -> Iterator[Root]:
    """The tool's folder, open for as long as the block lasts. Raises `ToolError` where it does not exist."""
    try:
        fd = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ToolError(
            f"the tool's folder {shown(folder.named)} does not exist yet, so there is nothing in it"
        ) from None
    except OSError as error:
        raise failure(error, folder.named) from None
    try:
        yield Root(fd, os.path.realpath(folder.path))
    finally:
        os.close(fd)


@contextmanager
def reached(
    folder: Folder,
    path: str,
    denied: Sequence[str],
    stop: Stop,
    *,
    writes: bool = False,
    follow: bool = True,
) -> Iterator[Place]:
    """Where a path leads, open for as long as the block lasts; all that is kept from it has been refused.

    `writes` says that it will be changed; `follow` that a link at its end is followed. Raises `ToolError`, also for
    failures of the system inside the block.
    """
    wanted = asked(path)
    refuse_names(wanted.parts, writes=writes)
    refuse_denied(denied, wanted.plain)
    try:
        if writes and not os.path.lexists(folder.path):
            place = _unmade(folder, wanted)
            refuse_program(folder.guard, place.root, place.names)
            yield place
            return
        with opened(folder) as root:
            place = find(root, wanted, stop, follow=follow)
            try:
                _refuse(folder.guard, place, denied, writes)
                yield place
            finally:
                os.close(place.here)
    except OSError as error:
        raise failure(error, path) from None


def find(root: Root, wanted: Asked, stop: Stop, *, follow: bool = True) -> Place:
    """Walks to where a path leads; the caller closes the place's folder. Decides nothing about what is kept.

    Raises `ToolError` for a path that leads out or goes round in links, `OSError` for what the system refuses.
    """
    pending = list(reversed(wanted.parts))
    names: list[str] = []
    links = steps = 0
    at = os.open(".", _WALKED, dir_fd=root.fd)
    try:
        while pending:
            stop.check()
            steps += 1
            if steps > _MAX_STEPS or len(names) > MAX_DEPTH:
                raise ToolError(f"{shown(wanted.plain)} leads through too many folders and links")
            name = pending.pop()
            if name == "..":
                if not names:
                    raise outside(wanted.plain)
                pending.extend(reversed(names[:-1]))
                names, at = [], _swap(at, root.fd, ".")
                continue
            status = _status(name, at)
            if status is None:
                return _missing(root, wanted, at, names, name, pending)
            if stat.S_ISLNK(status.st_mode) and (pending or follow):
                links += 1
                if links > _MAX_LINKS:
                    raise ToolError(f"{shown(wanted.plain)} goes round in links")
                target, from_root = _target(root, at, name, wanted)
                pending.extend(reversed(target))
                if not pending and not from_root:
                    pending.extend(reversed(names))
                    from_root = True
                if from_root:
                    names, at = [], _swap(at, root.fd, ".")
                continue
            if not pending:
                return Place(wanted, root.path, at, name, (*names, name), (), status)
            at = _swap(at, at, name)
            names.append(name)
        return Place(wanted, root.path, at, "", (), (), os.stat(root.fd))
    except BaseException:
        os.close(at)
        raise


def open_file(place: Place) -> int:
    """Opens a place's file for reading. Raises `ToolError` for what is missing or no regular file; never waits."""
    refuse_unless_file(place)
    fd = os.open(
        place.name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=place.here
    )
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _special(place)
    return fd


def open_folder(place: Place) -> int:
    """Opens a place's folder for listing. Raises `ToolError` for what is missing or no folder."""
    if place.status is None:
        raise ToolError(f"there is no folder {shown(place.plain)}")
    if not place.is_folder:
        raise ToolError(f"{shown(place.plain)} is no folder")
    return os.open(place.name or ".", os.O_RDONLY | _FOLDER, dir_fd=place.here)


def refuse_unless_file(place: Place, *, or_missing: bool = False) -> None:
    """Raises `ToolError` for what is no regular file, unless it is missing and may be."""
    if place.asked.folder_only and not place.is_folder:
        raise ToolError(f"{shown(place.plain + '/')} is written as a folder's path; leave out the slash at its end")
    if place.status is None and not place.is_folder:
        if or_missing:
            return
        raise ToolError(f"there is no file {shown(place.plain)}")
    if place.is_folder:
        raise ToolError(f"{shown(place.plain)} is a folder, not a file")
    if not place.is_file:
        raise _special(place)


def _refuse(guard: Guard, place: Place, denied: Sequence[str], writes: bool) -> None:
    refuse_names(place.names, writes=writes)
    refuse_denied(denied, text_of(place.names))
    if writes:
        refuse_program(guard, place.root, place.names)
    if place.status is not None:
        refuse_file(guard, place.status, place.names, writes=writes)


def _unmade(folder: Folder, wanted: Asked) -> Place:
    name = wanted.parts[-1] if wanted.parts else ""
    return Place(wanted, os.path.realpath(folder.path), None, name, wanted.parts, wanted.parts[:-1], None)


def _missing(root: Root, wanted: Asked, at: int, names: list[str], name: str, pending: list[str]) -> Place:
    rest = (name, *reversed(pending))
    if ".." in rest:
        raise ToolError(f"there is no {shown(wanted.plain)}: a link on the way leads through a folder that is missing")
    return Place(wanted, root.path, at, rest[-1], (*names, *rest), rest[:-1], None)


def _status(name: str, at: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _target(root: Root, at: int, name: str, wanted: Asked) -> tuple[list[str], bool]:
    """The names of a link's target, and whether they start at the tool's folder."""
    text = os.readlink(name, dir_fd=at)
    from_root = text.startswith("/")
    if from_root:
        inside = root.path.rstrip("/")
        if text != inside and not text.startswith(inside + "/"):
            raise outside(wanted.plain)
        text = text[len(inside) :]
    return [n for n in text.split("/") if n not in ("", ".")], from_root


def _swap(old: int, base: int, name: str) -> int:
    """Opens a folder in another one and closes the one held until now."""
    fd = os.open(name, _WALKED, dir_fd=base)
    os.close(old)
    return fd


def _special(place: Place) -> ToolError:
    return ToolError(f"{shown(place.plain)} is no regular file (a device, a pipe or the like), so it is left alone")
