"""The folder `.halo` (runs.md §3): private files that are only ever appended to, a whole line at a time.

Owns how folders and files are made and checked. A `.halo` that is a link or somebody else's is refused; a run id is
checked before it is made into a path.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from contextlib import contextmanager, suppress

from ..boundary.host import HaloError
from ..boundary.recording import MAX_LINE, RecordingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = ".halo"

UNNAMED = ".new"
"""The end of a file's name before it gets its own."""

PATIENCE_S = 0.2
"""How long a lock is tried for. Who only looks at a file, or adds a line to it, holds its lock for less."""

_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")

BEING_WRITTEN_S = 0.005
"""How long a line that is being added may stand there in part."""

ABANDONED_S = 3600.0
"""How old a file is that nobody can still be making."""


class KeepingError(HaloError):
    """What is to be kept cannot be written: a full disk, a folder that is not ours. A run store of one's own raises
    it too."""

    __module__ = "halo_lang"

    def __init__(self, message: str) -> None:
        super().__init__("CONFIG", message)


def is_run_id(text: str) -> bool:
    """Whether a text is a UUID, as run ids are."""
    return _RUN_ID.match(text) is not None


def file_of(folder: str, run_id: str) -> str:
    """The path of a run's file in a folder. Raises `RecordingError` for what is no run id."""
    if not is_run_id(run_id):
        raise RecordingError(f"`{run_id[:80]}` is no run id; `halo recordings` and `halo runs` list them")
    return os.path.join(folder, f"{run_id}.jsonl")


def found_file(folder: str, run_id: str) -> str | None:
    """The path of a run's file in a folder, None where none is there. Raises `RecordingError` for what is no run id,
    and `KeepingError` for a folder that is a link or somebody else's."""
    path = file_of(folder, run_id)
    check_folder(folder)
    return path if is_file(path) else None


def run_ids(folder: str) -> list[str]:
    """The runs that have a file of their own in a folder, the oldest first. Raises `KeepingError` for a folder that is
    a link or somebody else's."""
    check_folder(folder)
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as trouble:
        raise KeepingError(f"{folder}: cannot be read: {trouble.strerror}") from None
    found = []
    for name in names:
        run_id = name.removesuffix(".jsonl")
        if name.endswith(".jsonl") and is_run_id(run_id):
            with suppress(OSError):
                at = os.lstat(os.path.join(folder, name))
                if stat.S_ISREG(at.st_mode):
                    found.append((at.st_mtime_ns, run_id))
    return [run_id for _, run_id in sorted(found)]


def is_file(path: str) -> bool:
    """Whether a file of its own stands at a path: no link, no pipe, no device."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def made_folder(path: str) -> str:
    """Makes a folder in a `.halo`, private to its owner, or checks the one that is there. Raises `KeepingError`."""
    path = os.path.abspath(path)
    top = _top(path)
    try:
        _make(top)
        _ignore(os.path.join(top, ".gitignore"))
        if path != top:
            _make(path)
    except OSError as trouble:
        raise KeepingError(f"{path}: cannot be made: {trouble.strerror}") from None
    return path


def check_folder(path: str) -> None:
    """Raises `KeepingError` where a folder in a `.halo`, or the `.halo` itself, is a link or somebody else's."""
    path = os.path.abspath(path)
    for folder in dict.fromkeys((_top(path), path)):
        try:
            _check(folder)
        except FileNotFoundError:
            continue
        except OSError as trouble:
            raise KeepingError(f"{folder}: cannot be read: {trouble.strerror}") from None


def _top(path: str) -> str:
    """The `.halo` that a folder is in; the folder itself where it is in none."""
    top = path
    while os.path.basename(top) != NAME:
        above = os.path.dirname(top)
        if above == top:
            return path
        top = above
    return top


def _make(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)  # whatever the umask
    except FileExistsError:
        _check(path)


def _check(path: str) -> None:
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise KeepingError(f"{path}: is no folder of its own (a link?), so nothing is kept there")
    if found.st_uid != os.geteuid():
        raise KeepingError(f"{path}: belongs to somebody else, so nothing is kept there")


def _ignore(path: str) -> None:
    """Makes the `.gitignore`, before anything else is in there: nothing private can be added to version control by
    accident. One that is empty was begun by a process that died."""
    try:
        if os.lstat(path).st_size:
            return
        AppendFile(path).close_after(b"*\n")
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was as quick
            AppendFile(path, new=True).close_after(b"*\n")


class AppendFile:
    """A private file that grows by whole lines: what could not be written whole is taken back."""

    __slots__ = ("_handle", "path")

    def __init__(self, path: str, *, new: bool = False, old: bool = False) -> None:
        """Opens the file, made if it is not there; with `new` it must not be, with `old` it must. Raises `OSError`."""
        flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        flags |= 0 if old else os.O_CREAT
        self.path = path
        self._handle = os.open(path, flags | (os.O_EXCL if new else 0), 0o600)
        if new:
            os.fchmod(self._handle, 0o600)

    def fileno(self) -> int:
        return self._handle

    def append(self, data: bytes) -> None:
        """Writes whole lines. Raises `KeepingError`; then none of `data` is in the file."""
        written = 0
        try:
            while written < len(data):
                written += os.write(self._handle, data[written:] if written else data)
        except OSError as trouble:
            self._take_back(written)
            raise KeepingError(f"{self.path}: cannot be written: {trouble.strerror}") from None

    def lock(self) -> bool:
        """Locks the file for this process; false where another has it."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                time.sleep(0.002)
            except OSError:
                return False  # a file system without locks
            else:
                return True

    def unlock(self) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_UN)

    def is_still_there(self) -> bool:
        """Whether the opened file is the one that its path names now."""
        try:
            at_path = os.lstat(self.path)
        except FileNotFoundError:
            return False
        opened = os.fstat(self._handle)
        return (at_path.st_dev, at_path.st_ino) == (opened.st_dev, opened.st_ino)

    def is_empty(self) -> bool:
        return os.fstat(self._handle).st_size == 0

    def is_torn(self) -> bool:
        """Whether the last line was cut off, or is being written just now."""
        size = os.fstat(self._handle).st_size
        return size > 0 and os.pread(self._handle, 1, size - 1) != b"\n"

    def drop_torn_line(self) -> None:
        """Takes away a last line that was torn, so that what follows begins on a line of its own. One that somebody is
        adding just now is not torn: it is given a moment to become whole."""
        end = -1
        while (size := os.fstat(self._handle).st_size) != end:
            end, whole = size, self._end_of_lines(size)
            if whole == size:
                return
            time.sleep(BEING_WRITTEN_S)
        os.ftruncate(self._handle, whole)

    def _end_of_lines(self, size: int) -> int:
        """The place after the last line break."""
        at = size
        while at > 0:
            step = min(65536, at)
            found = os.pread(self._handle, step, at - step).rfind(b"\n")
            if found >= 0:
                return at - step + found + 1
            at -= step
        return 0

    def sync(self) -> None:
        """Waits until all that was appended is on the disk. Raises `KeepingError`."""
        try:
            os.fsync(self._handle)
        except (OSError, ValueError) as trouble:  # the latter for one that was closed
            why = getattr(trouble, "strerror", None) or trouble
            raise KeepingError(f"{self.path}: cannot be written: {why}") from None

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def close_after(self, data: bytes) -> None:
        try:
            self.append(data)
        finally:
            self.close()

    def _take_back(self, written: int) -> None:
        try:
            os.ftruncate(self._handle, os.fstat(self._handle).st_size - written)
        except OSError:
            return  # reading drops a torn last line


@contextmanager
def new_file(path: str, *, must_lock: bool = False) -> Iterator[AppendFile]:
    """A new file, locked for this process, that gets its name at the block's end: nobody finds it before it is locked
    and holds what it is to begin with. Raises `KeepingError`, also where the name is taken; then no file is left."""
    try:
        _remove_abandoned(os.path.dirname(path))
        made = AppendFile(f"{path}{UNNAMED}", new=True)
    except OSError as trouble:
        raise KeepingError(f"{path}: cannot be made: {trouble.strerror}") from None
    try:
        if not made.lock() and must_lock:
            raise KeepingError(f"{path}: cannot be locked")
        yield made
        if os.path.lexists(path):
            raise KeepingError(f"{path}: is there already")
        os.rename(made.path, path)
        made.path = path
    except BaseException as trouble:
        with suppress(OSError):
            os.unlink(made.path)
        made.close()
        if isinstance(trouble, OSError):
            raise KeepingError(f"{path}: cannot be made: {trouble.strerror}") from None
        raise


def _remove_abandoned(folder: str) -> None:
    """Removes files whose process died before they were given their names."""
    for name in os.listdir(folder):
        if name.endswith(UNNAMED):
            path = os.path.join(folder, name)
            with suppress(OSError):
                if time.time() - os.lstat(path).st_mtime > ABANDONED_S and not is_locked(path):
                    os.unlink(path)


def is_locked(path: str) -> bool:
    """Whether a process has locked a file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def lines_of(path: str) -> Iterator[bytes]:
    """A file's lines as they stand, one at a time, at most `MAX_LINE` bytes of each. Raises `OSError`."""
    with open(path, "rb") as file:
        while line := file.readline(MAX_LINE):
            yield line


def last_lines(path: str) -> Iterator[bytes]:
    """A file's whole lines from the last to the first, without their line breaks; what stands after the last line
    break is left out. Raises `OSError`."""
    with open(path, "rb") as file:
        at = file.seek(0, os.SEEK_END)
        pieces: list[bytes] = []  # of the line whose start is not found yet, the last piece first
        is_whole = False
        while at > 0:
            step = min(65536, at)
            at -= step
            file.seek(at)
            *before, piece = reversed(file.read(step).split(b"\n"))
            for end in before:
                pieces.append(end)
                if is_whole:
                    yield b"".join(reversed(pieces))
                is_whole = True
                pieces.clear()
            pieces.append(piece)
        if is_whole:
            yield b"".join(reversed(pieces))
