"""Run stores: where the journals of paused and checkpointed runs are kept (runs.md §5).

Owns two homes of them: a folder of files, and memory. One process at a time has a run's journal claimed; a signal may
be added to it by any. A journal is deleted when its run ends. Read `run_store.py` for what a home must do.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock

from ..boundary.recording import encoded
from .folder import (
    AppendFile,
    KeepingError,
    file_of,
    found_file,
    lines_of,
    made_folder,
    new_file,
    run_ids,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from .run_store import RunJournal


class RunUnknown(Exception):
    """No journal of that run is kept."""

    __module__ = "halo_lang"


class RunConflict(Exception):
    """Somebody else has the run's journal."""

    __module__ = "halo_lang"


class FileRunStore:
    """Journals as files `ID.jsonl` in a folder, `.halo/runs` by default. A claim is a lock on the file."""

    def __init__(self, folder: str = os.path.join(".halo", "runs")) -> None:
        self._folder = folder

    def create(self, run_id: str, lines: Iterable[bytes] = ()) -> RunJournal:
        path = file_of(made_folder(self._folder), run_id)
        with new_file(path, must_lock=True) as file:
            _append_all(file, lines)
            file.sync()
        _sync_folder(self._folder)
        return _FileJournal(file)

    def claim(self, run_id: str) -> RunJournal:
        file = self._opened(run_id)
        if not file.lock():
            file.close()
            raise RunConflict(run_id)
        if not file.is_still_there():  # deleted, by the one who had it, between our opening and our lock
            file.close()
            raise RunUnknown(run_id)
        file.drop_torn_line()
        return _FileJournal(file)

    def add(self, run_id: str, line: Mapping[str, Any]) -> None:
        file = self._opened(run_id)
        try:
            if file.is_torn() and file.lock():  # nobody is writing: who was has died
                file.drop_torn_line()
                file.append(encoded(line))
                file.unlock()
            else:
                file.append(encoded(line))
            file.sync()
            if not file.is_still_there():
                raise RunUnknown(run_id)
        finally:
            file.close()

    def _opened(self, run_id: str) -> AppendFile:
        path = found_file(self._folder, run_id)
        if path is None:
            raise RunUnknown(run_id)
        try:
            return AppendFile(path, old=True)
        except FileNotFoundError:
            raise RunUnknown(run_id) from None
        except OSError as trouble:
            raise KeepingError(f"{path}: cannot be opened: {trouble.strerror}") from None

    def ids(self) -> list[str]:
        return run_ids(self._folder)

    def peek(self, run_id: str) -> Iterator[bytes]:
        path = found_file(self._folder, run_id)
        if path is None:
            raise RunUnknown(run_id)
        return lines_of(path)


class _FileJournal:
    def __init__(self, file: AppendFile) -> None:
        self._file = file

    def lines(self) -> Iterator[bytes]:
        return lines_of(self._file.path)

    def append(self, data: bytes) -> None:
        self._file.append(data)

    def sync(self) -> None:
        self._file.sync()

    def release(self) -> None:
        self._file.close()

    def delete(self) -> None:
        try:
            os.unlink(self._file.path)
        except FileNotFoundError:
            pass
        finally:
            self._file.close()


class MemoryRunStore:
    """Journals in memory: for tests, and for hosts that need no run to outlive the process."""

    def __init__(self) -> None:
        self._journals: dict[str, list[bytes]] = {}
        self._claimed: set[str] = set()
        self._lock = Lock()  # runs may go on in several threads

    def create(self, run_id: str, lines: Iterable[bytes] = ()) -> RunJournal:
        with self._lock:
            if run_id in self._journals:
                raise KeepingError(f"a journal of the run {run_id} is kept already")
            self._journals[run_id] = list(lines)
            self._claimed.add(run_id)
        return _MemoryJournal(self, run_id)

    def claim(self, run_id: str) -> RunJournal:
        with self._lock:
            if run_id not in self._journals:
                raise RunUnknown(run_id)
            if run_id in self._claimed:
                raise RunConflict(run_id)
            self._claimed.add(run_id)
        return _MemoryJournal(self, run_id)

    def add(self, run_id: str, line: Mapping[str, Any]) -> None:
        with self._lock:
            if run_id not in self._journals:
                raise RunUnknown(run_id)
            self._journals[run_id].append(encoded(line))

    def ids(self) -> list[str]:
        return list(self._journals)

    def peek(self, run_id: str) -> Iterator[bytes]:
        if run_id not in self._journals:
            raise RunUnknown(run_id)
        return iter(list(self._journals[run_id]))


class _MemoryJournal:
    def __init__(self, store: MemoryRunStore, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._has_claim = True

    def lines(self) -> Iterator[bytes]:
        return iter(list(self._store._journals[self._run_id]))

    def append(self, data: bytes) -> None:
        self._store._journals[self._run_id] += data.splitlines(keepends=True)

    def sync(self) -> None: ...

    def release(self) -> None:
        if self._has_claim:  # once: the claim may be another's by then
            self._has_claim = False
            self._store._claimed.discard(self._run_id)

    def delete(self) -> None:
        if self._has_claim:
            self._store._journals.pop(self._run_id, None)
        self.release()


def _append_all(file: AppendFile, lines: Iterable[bytes]) -> None:
    pending: list[bytes] = []
    for line in lines:
        pending.append(line)
        if len(pending) >= 1000:
            file.append(b"".join(pending))
            pending.clear()
    file.append(b"".join(pending))


def _sync_folder(path: str) -> None:
    """Waits until a folder knows on the disk what is in it."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # not every file system can
            os.fsync(handle)
    finally:
        os.close(handle)
