"""Changing files: `write`, `edit`, `mkdir`, `delete`, and what an approval of them shows (tools.md §2, §3).

Owns the one way in which a file's content changes: a new file in the same folder, complete and synced, is renamed over
the old one. Whatever goes wrong before that (a full disk, a cancelled call, a file that has changed) leaves the folder
as it was: the new file and the folders made for it are taken away again.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress

from ...boundary.host import Preview, ToolError
from .beneath import open_file, reached, refuse_unless_file
from .difference import difference
from .guard import refuse_file
from .paths import shown
from .reading import is_utf8, not_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...boundary.host import Given
    from ...language.values import Value
    from ..blocking import Stop
    from .beneath import Folder, Place

TEMPORARY = ".halo-write-"
"""How the name of a new file starts until it is renamed. Such files are never listed."""

MAX_EDITED = 16 * 1024 * 1024
"""How large a file may be that is edited, in bytes."""

_ABSENT = "absent"
_CHUNK = 1 << 20


class Turns:
    """Whose turn it is to change a file, so that of two changes at once each starts from what the other left."""

    __slots__ = ("_guard", "_turns")

    def __init__(self) -> None:
        from threading import Lock

        self._guard = Lock()
        self._turns: dict[tuple[int, int, str], _Turn] = {}

    @contextmanager
    def taken(self, at: int, name: str, stop: Stop) -> Iterator[None]:
        """Holds the turn for a name in an open folder. `Stopped` where waiting for it is no longer wanted."""
        folder = os.fstat(at)
        key = (folder.st_dev, folder.st_ino, name.casefold())
        with self._guard:
            turn = self._turns.setdefault(key, _Turn())
            turn.wanted += 1
        try:
            while not turn.lock.acquire(timeout=0.05):
                stop.check()
            try:
                yield
            finally:
                turn.lock.release()
        finally:
            with self._guard:
                turn.wanted -= 1
                if not turn.wanted:
                    del self._turns[key]


class _Turn:
    __slots__ = ("lock", "wanted")

    def __init__(self) -> None:
        from threading import Lock

        self.lock = Lock()
        self.wanted = 0


def write(folder: Folder, turns: Turns, path: str, content: bytes, given: Given, stop: Stop) -> Value:
    """Writes a whole file, making missing folders; gives `{path}`.

    Raises `ToolError`, with the code `CHANGED` where the file no longer holds what `given.digest` was made of.
    """
    with reached(folder, path, given.denied_paths, stop, writes=True) as place:
        _refuse_unless_writable(place)
        with _made_folders(folder, place, place.missing) as at, turns.taken(at, place.name, stop):
            _put(folder, place, at, content, given.digest, stop)
        return {"path": place.plain}


def edit(folder: Folder, turns: Turns, path: str, old: bytes, new: bytes, given: Given, stop: Stop) -> Value:
    """Replaces the one piece of a file that is `old`; all other bytes stay. Gives `{path}`.

    Raises `ToolError` where it is not there exactly once, with the code `CHANGED` where the file no longer holds what
    `given.digest` was made of.
    """
    with reached(folder, path, given.denied_paths, stop, writes=True) as place:
        refuse_unless_file(place)
        _refuse_unless_writable(place)
        with turns.taken(place.here, place.name, stop):
            before = _whole(place, stop)
            digest = _digest(before)
            if given.digest and given.digest != digest:
                raise _changed(place)
            _put(folder, place, place.here, _edited(place, before, old, new), digest, stop)
        return {"path": place.plain}


def mkdir(folder: Folder, path: str, given: Given, stop: Stop) -> Value:
    """Makes a folder and those above it; one that is there already is as good. Gives `{path}`."""
    with reached(folder, path, given.denied_paths, stop, writes=True) as place:
        if place.status is not None and not place.is_folder:
            raise ToolError(f"{shown(place.plain)} is there already, and is no folder")
        if not place.is_folder:
            names = (*place.missing, place.name) if place.name else ()
            with _made_folders(folder, place, names):
                stop.check()
        return {"path": place.plain}


def delete(folder: Folder, turns: Turns, path: str, given: Given, stop: Stop) -> Value:
    """Deletes a file, a link (never what it leads to) or an empty folder; gives `{path}`."""
    with reached(folder, path, given.denied_paths, stop, writes=True, follow=False) as place:
        if not place.asked.parts:
            raise ToolError("the tool's folder itself is not deleted")
        if place.status is None:
            raise ToolError(f"there is no {shown(place.plain)}")
        if not place.is_folder and not stat.S_ISLNK(place.status.st_mode):
            refuse_unless_file(place)
        with turns.taken(place.here, place.name, stop):
            if given.digest and given.digest != _digest_at(place.here, place.name, place.status, stop):
                raise _changed(place)
            stop.check()
            if place.is_folder:
                os.rmdir(place.name, dir_fd=place.here)
            else:
                os.unlink(place.name, dir_fd=place.here)
        return {"path": place.plain}


def preview_write(folder: Folder, path: str, content: bytes, stop: Stop) -> Preview:
    """What `write` would change. Raises `ToolError` where it would be refused; changes nothing."""
    with reached(folder, path, (), stop, writes=True) as place:
        _refuse_unless_writable(place)
        new = content.decode()
        if place.status is None:
            return Preview(difference(place.plain, None, new), _ABSENT)
        if place.status.st_size > MAX_EDITED:
            about = f"{place.plain}: {place.status.st_size:,} bytes are replaced by:\n"
            return Preview(
                about + difference(place.plain, None, new), _digest_at(place.here, place.name, place.status, stop)
            )
        before = _bytes(place, stop)
        if not is_utf8(before):
            about = f"{place.plain}: {len(before):,} bytes that are not UTF-8 text are replaced by:\n"
            return Preview(about + difference(place.plain, None, new), _digest(before))
        return Preview(difference(place.plain, before.decode(), new), _digest(before))


def preview_edit(folder: Folder, path: str, old: bytes, new: bytes, stop: Stop) -> Preview:
    """What `edit` would change. Raises `ToolError` where it would be refused; changes nothing."""
    with reached(folder, path, (), stop, writes=True) as place:
        refuse_unless_file(place)
        _refuse_unless_writable(place)
        before = _whole(place, stop)
        after = _edited(place, before, old, new)
        return Preview(difference(place.plain, before.decode(), after.decode()), _digest(before))


def preview_delete(folder: Folder, path: str, stop: Stop) -> Preview:
    """What `delete` would take away: of a file its text, of a link or a folder nothing. Changes nothing."""
    with reached(folder, path, (), stop, writes=True, follow=False) as place:
        if place.status is None:
            raise ToolError(f"there is no {shown(place.plain)}")
        if not place.is_file:
            return Preview("", _digest_at(place.here, place.name, place.status, stop))
        if place.status.st_size <= MAX_EDITED and is_utf8(before := _bytes(place, stop)):
            return Preview(difference(place.plain, before.decode(), ""), _digest(before))
        return Preview(
            f"{place.plain}: {place.status.st_size:,} bytes are deleted\n",
            _digest_at(place.here, place.name, place.status, stop),
        )


def _refuse_unless_writable(place: Place) -> None:
    if not place.name:
        raise ToolError("that is the tool's folder itself, not a file")
    refuse_unless_file(place, or_missing=True)
    if place.status is not None and not os.access(place.name, os.W_OK, dir_fd=place.here):
        raise ToolError(f"{shown(place.plain)} may only be read")


def _edited(place: Place, before: bytes, old: bytes, new: bytes) -> bytes:
    if not is_utf8(before):
        raise not_text(place.plain, len(before))
    if not old:
        raise ToolError("`old` is empty; give the text to replace, as it stands in the file")
    at = before.find(old)
    if at < 0:
        with_crlf = old.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        hint = "; the file's lines end in CRLF (`\\r\\n`), so `old` needs it too" if with_crlf in before else ""
        raise ToolError(f"`old` does not stand in {shown(place.plain)}; read the file to see what does{hint}")
    if before.find(old, at + 1) >= 0:
        raise ToolError(f"`old` stands in {shown(place.plain)} more than once; give more of the text around it")
    return before[:at] + new + before[at + len(old) :]


def _whole(place: Place, stop: Stop) -> bytes:
    """All of a file that is edited."""
    data = _bytes(place, stop)
    if len(data) > MAX_EDITED:
        raise ToolError(f"{shown(place.plain)} has more than {MAX_EDITED:,} bytes, which is too large to edit")
    return data


def _bytes(place: Place, stop: Stop) -> bytes:
    """A file's bytes, no more than one over `MAX_EDITED`. It is opened afresh, whatever it was when it was found."""
    fd = open_file(place)
    try:
        data = bytearray()
        while len(data) <= MAX_EDITED and (chunk := os.read(fd, _CHUNK)):
            stop.check()
            data += chunk
        return bytes(data[: MAX_EDITED + 1])
    finally:
        os.close(fd)


def _put(folder: Folder, place: Place, at: int, content: bytes, digest: str | None, stop: Stop) -> None:
    """Puts a new file in the place's, or where there is none, at one stroke, if it still holds what `digest` tells."""
    temporary = _filled(place, at, content, stop)
    try:
        stop.check()
        now = _status(at, place.name)
        if now is not None:
            refuse_file(folder.guard, now, place.names, writes=True)
        if digest and digest != _digest_at(at, place.name, now, stop):
            raise _changed(place)
        os.rename(temporary, place.name, src_dir_fd=at, dst_dir_fd=at)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=at)
        raise
    _sync_folder(at)


def _filled(place: Place, at: int, content: bytes, stop: Stop) -> str:
    """Makes the new file beside the old one, with the old one's mode and, where the system permits, its owner."""
    from secrets import token_hex

    name = TEMPORARY + token_hex(8)
    old = place.status
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o666 if old is None else 0o600, dir_fd=at)
    try:
        try:
            rest = memoryview(content)
            while rest:
                stop.check()
                rest = rest[os.write(fd, rest[:_CHUNK]) :]
            if old is not None:
                made = os.fstat(fd)
                if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
                    with suppress(PermissionError):
                        os.fchown(fd, old.st_uid, old.st_gid)
                os.fchmod(fd, stat.S_IMODE(old.st_mode) & 0o777)
            os.fsync(fd)
        finally:
            os.close(fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=at)
        raise
    return name


@contextmanager
def _made_folders(folder: Folder, place: Place, names: tuple[str, ...]) -> Iterator[int]:
    """Makes the folders that are missing on the way to a place and gives the last one, open. Where the block fails,
    those that were made are taken away again."""
    made: list[tuple[int, str]] = []
    fds: list[int] = []
    roots: list[str] = []
    try:
        if place.at is None:
            _make_root(folder.path, roots)
            at = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fds.append(at)
        else:
            at = place.at
        for name in names:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=at)
                made.append((at, name))
            at = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
            fds.append(at)
        yield at
    except BaseException:
        for parent, name in reversed(made):
            with suppress(OSError):
                os.rmdir(name, dir_fd=parent)
        for path in reversed(roots):
            with suppress(OSError):
                os.rmdir(path)
        raise
    finally:
        for fd in fds:
            os.close(fd)


def _make_root(path: str, made: list[str]) -> None:
    """Makes the tool's folder and those above it that are missing, and notes each, the topmost first."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for one in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(one)
            made.append(one)


def _sync_folder(at: int) -> None:
    """Makes a renaming last, where the file system can: the content itself has been synced before."""
    with suppress(OSError):
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _status(at: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _digest(data: bytes) -> str:
    from hashlib import sha256

    return "sha256:" + sha256(data).hexdigest()


def _digest_at(at: int, name: str, status: os.stat_result | None, stop: Stop) -> str:
    """The digest of a file's content, or the word for what has none."""
    from hashlib import sha256

    if status is None:
        return _ABSENT
    if not stat.S_ISREG(status.st_mode):
        return "folder" if stat.S_ISDIR(status.st_mode) else "other"
    seen = sha256()
    fd = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=at)
    try:
        while chunk := os.read(fd, _CHUNK):
            stop.check()
            seen.update(chunk)
    finally:
        os.close(fd)
    return "sha256:" + seen.hexdigest()


def _changed(place: Place) -> ToolError:
    return ToolError(f"{shown(place.plain)} has changed meanwhile; read it again", "CHANGED")
