"""The folder `.halo` (runs.md §3): private files that are only ever appended to, a whole line at a time.

Owns how folders and files are made and checked. A `.halo` that is a link or somebody else's is refused; a run id is
checked before it is made into a path.
"""

from __future__ import annotations

import os
import re
import stat

from ..boundary.recording import RecordingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = ".halo"
_RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


class KeepingError(Exception):
    """What is to be kept cannot be written: a full disk, a folder that is not ours."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def is_run_id(text: str) -> bool:
    """Whether a text is a UUID, as run ids are."""
    return _RUN_ID.match(text) is not None


def file_of(folder: str, run_id: str) -> str:
    """The path of a run's file in a folder. Raises `RecordingError` for what is no run id."""
    if not is_run_id(run_id):
        raise RecordingError(f"`{run_id[:80]}` is no run id; `halo recordings` and `halo runs` list them")
    return os.path.join(folder, f"{run_id}.jsonl")


def made_folder(path: str) -> str:
    """Makes a folder in a `.halo`, private to its owner, or checks the one that is there. Raises `KeepingError`."""
    path = os.path.abspath(path)
    top = path
    while os.path.basename(top) != NAME:
        above = os.path.dirname(top)
        if above == top:
            top = path
            break
        top = above
    try:
        _make(top)
        ignore = os.path.join(top, ".gitignore")
        if not os.path.lexists(ignore):
            # Made before anything else is in there: nothing private can be added to version control by accident.
            AppendFile(ignore, new=True).close_after(b"*\n")
        if path != top:
            _make(path)
    except FileExistsError:
        return made_folder(path)  # another process was as quick
    except OSError as trouble:
        raise KeepingError(f"{path}: cannot be made: {trouble.strerror}") from None
    return path


def _make(path: str) -> None:
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)  # whatever the umask
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise KeepingError(f"{path}: is no folder of its own (a link?), so nothing is kept there") from None
        if found.st_uid != os.geteuid():
            raise KeepingError(f"{path}: belongs to somebody else, so nothing is kept there") from None


class AppendFile:
    """A private file that grows by whole lines: what could not be written whole is taken back."""

    __slots__ = ("_handle", "path")

    def __init__(self, path: str, *, new: bool = False) -> None:
        """Opens the file, made if it is not there; with `new` it must not be. Raises `OSError`."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
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

    def drop_torn_line(self) -> None:
        """Takes away a last line that was torn, so that what follows begins on a line of its own."""
        with open(self.path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            at = end
            while at > 0:
                step = min(65536, at)
                file.seek(at - step)
                found = file.read(step).rfind(b"\n")
                if found >= 0:
                    at = at - step + found + 1
                    break
                at -= step
        if at < end:
            os.ftruncate(self._handle, at)

    def sync(self) -> None:
        """Waits until all that was appended is on the disk. Raises `KeepingError`."""
        try:
            os.fsync(self._handle)
        except OSError as trouble:
            raise KeepingError(f"{self.path}: cannot be written: {trouble.strerror}") from None

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


def lines_of(path: str) -> Iterator[bytes]:
    """A file's lines as they stand, one at a time. Raises `OSError`."""
    with open(path, "rb") as file:
        yield from file
