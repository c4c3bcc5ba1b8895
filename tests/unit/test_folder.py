"""The folder `.halo`: private whatever the umask, refused where it is not one's own, whole lines whatever happens
(runs.md §3); recordings in it, read, listed and thrown away."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from halo_lang.app.clock import new_run_id
from halo_lang.boundary.call import Answer
from halo_lang.boundary.recording import RecordingError, call_line, encoded, finish_line
from halo_lang.doors import folder as folder_module
from halo_lang.doors.folder import (
    AppendFile,
    KeepingError,
    check_folder,
    file_of,
    is_file,
    is_locked,
    last_lines,
    lines_of,
    made_folder,
)
from halo_lang.doors.recordings import (
    is_under_way,
    new_recording,
    read_recording_file,
    recording_ids,
    reopened_recording,
)
from halo_lang.doors.stores import FileRunStore, MemoryRunStore, RunConflict, RunUnknown
from recorded import RUN, call, start

if TYPE_CHECKING:
    from halo_lang.doors.stores import RunStore


@pytest.fixture
def halo(tmp_path: Path) -> str:
    return str(tmp_path / ".halo" / "recordings")


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def kept(folder: str, run_id: str = RUN, *lines: dict[str, object]) -> str:
    """Keeps a recording; gives its path."""
    file = new_recording(folder, run_id)
    for line in (start(), *lines):
        file.append(encoded(line))
    file.close()
    return file.path


# Folders and files -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_all_is_private_whatever_the_umask(halo: str, umask: int) -> None:
    before = os.umask(umask)
    try:
        path = kept(halo)
        FileRunStore(os.path.join(os.path.dirname(halo), "runs")).create(RUN).release()
    finally:
        os.umask(before)
    top = Path(halo).parent
    assert (mode(top), mode(halo), mode(top / "runs")) == (0o700, 0o700, 0o700)
    assert (mode(path), mode(top / "runs" / f"{RUN}.jsonl"), mode(top / ".gitignore")) == (0o600, 0o600, 0o600)


def test_the_gitignore_is_made_before_anything_else_is(halo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    mkdir = os.mkdir
    monkeypatch.setattr(
        os, "mkdir", lambda path, *more: (seen.append(os.listdir(os.path.dirname(path))), mkdir(path, *more))
    )
    made_folder(halo)
    assert seen == [[], [".gitignore"]]
    assert (Path(halo).parent / ".gitignore").read_text() == "*\n"


def test_a_gitignore_that_a_dying_process_left_empty_is_written(halo: str) -> None:
    made_folder(halo)
    ignore = Path(halo).parent / ".gitignore"
    ignore.write_text("")
    made_folder(halo)
    assert ignore.read_text() == "*\n"
    ignore.write_text("recordings\n")
    made_folder(halo)
    assert ignore.read_text() == "recordings\n"


@pytest.mark.parametrize("part", [".halo", ".halo/recordings"])
def test_a_link_in_the_place_of_a_folder_is_refused(halo: str, tmp_path: Path, part: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = tmp_path / part
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    for refused in (made_folder, check_folder, lambda path: new_recording(path, RUN), FileRunStore(halo).create):
        with pytest.raises(KeepingError, match="is no folder of its own"):
            refused(halo if refused in (made_folder, check_folder) or refused.__name__ == "<lambda>" else RUN)
    assert list(elsewhere.iterdir()) == []


def test_a_file_in_the_place_of_a_folder_is_refused(halo: str, tmp_path: Path) -> None:
    (tmp_path / ".halo").write_text("")
    with pytest.raises(KeepingError, match="is no folder of its own"):
        made_folder(halo)


def test_a_folder_of_somebody_else_is_refused(halo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made_folder(halo)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    for refused in (made_folder, check_folder):
        with pytest.raises(KeepingError, match="belongs to somebody else"):
            refused(halo)
    with pytest.raises(KeepingError, match="belongs to somebody else"):
        FileRunStore(halo).claim(RUN)
    for refused in (reopened_recording, lambda folder, run_id: FileRunStore(folder).peek(run_id)):
        with pytest.raises(KeepingError, match="belongs to somebody else"):
            refused(halo, RUN)
    for refused in (recording_ids, lambda folder: FileRunStore(folder).ids()):
        with pytest.raises(KeepingError, match="belongs to somebody else"):
            refused(halo)


def test_a_folder_that_cannot_be_made_is_an_error_with_its_name(tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / ".halo" / "recordings")
    with pytest.raises(KeepingError, match=r"no/\.halo/recordings: cannot be made: No such file"):
        made_folder(missing)


@pytest.mark.parametrize(
    "run_id",
    ["", ".", "..", "../../etc/passwd", f"../{RUN}", f"{RUN}/", f"{RUN}\n", RUN.upper(), RUN[:-1], f"{RUN}0", "\x00"],
)
def test_a_run_id_is_no_path(run_id: str) -> None:
    with pytest.raises(RecordingError, match="is no run id"):
        file_of("folder", run_id)


def test_a_new_run_id_is_one() -> None:
    assert {len(file_of("f", new_run_id())) for _ in range(100)} == {len(f"f/{RUN}.jsonl")}


# Whole lines -----------------------------------------------------------------------------------------------------


def limited(path: str, bytes_left: int, *lines: bytes) -> str:
    """Appends lines in a process whose files may grow so much and no further; gives what that said."""
    script = (
        "import resource, signal, sys\n"
        "from halo_lang.doors.folder import AppendFile, KeepingError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes_left}, {bytes_left}))\n"
        f"file = AppendFile({path!r})\n"
        "try:\n"
        f"    for line in {lines!r}: file.append(line)\n"
        "except KeepingError as trouble:\n"
        "    print(trouble.message)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("room", range(20, 45))
def test_a_full_disk_leaves_whole_lines_wherever_it_is_full(tmp_path: Path, room: int) -> None:
    path = str(tmp_path / "f")
    said = limited(path, room, b"0123456789abcdef\n", b"0123456789ab\n", b"0123456789ab\n")
    text = Path(path).read_bytes()
    assert text in (
        b"0123456789abcdef\n",
        b"0123456789abcdef\n0123456789ab\n",
        b"0123456789abcdef\n" + b"0123456789ab\n" * 2,
    )
    assert (said == "") is (len(text) == 43)
    if said:
        assert said == f"{path}: cannot be written: File too large\n"


def test_a_file_that_was_closed_is_an_error(tmp_path: Path) -> None:
    file = AppendFile(str(tmp_path / "f"), new=True)
    file.close()
    file.close()
    with pytest.raises(KeepingError, match="cannot be written: Bad file descriptor"):
        file.append(b"x\n")
    with pytest.raises(KeepingError, match="cannot be written"):
        file.sync()


def test_a_write_in_pieces_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:3]))
    file = AppendFile(str(tmp_path / "f"), new=True)
    file.append(b"0123456789\n")
    file.close()
    assert (tmp_path / "f").read_bytes() == b"0123456789\n"


@pytest.mark.parametrize("size", [0, 1, 10, 65535, 65536, 65537, 200_000])
@pytest.mark.parametrize("before", [b"", b"one\n", b"x" * 70_000 + b"\n"])
def test_a_torn_last_line_is_taken_away(tmp_path: Path, before: bytes, size: int) -> None:
    (tmp_path / "f").write_bytes(before + b"y" * size)
    file = AppendFile(str(tmp_path / "f"), old=True)
    assert file.is_torn() is (size > 0)
    file.drop_torn_line()
    assert not file.is_torn()
    file.append(b"next\n")
    file.close()
    assert (tmp_path / "f").read_bytes() == before + b"next\n"


@pytest.mark.parametrize(
    "text", [b"", b"torn", b"\n", b"a\n", b"a\nb\n", b"a\nb\ntorn", b"\n\na\n", b"x" * 65536 + b"\n"]
)
@pytest.mark.parametrize("more", [b"", b"y" * 65535 + b"\n", b"y" * 65536 + b"\n", b"z" * 200_000 + b"\nend\n"])
def test_lines_from_the_last_to_the_first(tmp_path: Path, text: bytes, more: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(more + text)
    whole = [line[:-1] for line in lines_of(str(path)) if line.endswith(b"\n")]
    assert list(last_lines(str(path))) == whole[::-1]


def test_a_line_without_end_is_refused_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from halo_lang.boundary import recording

    for module in (folder_module, recording):
        monkeypatch.setattr(module, "MAX_LINE", 1000)
    path = tmp_path / "f"
    path.write_bytes(encoded(start()) + b"\x00" * 10_000)
    with pytest.raises(RecordingError, match="line 2 is longer than"):
        list(read_recording_file(str(path)).entries())
    path.write_bytes(b"\x00" * 10_000)
    with pytest.raises(RecordingError, match="line 1 is longer than"):
        read_recording_file(str(path))


def test_a_file_is_not_made_where_it_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "f"
    with pytest.raises(FileNotFoundError):
        AppendFile(str(path), old=True)
    AppendFile(str(path), new=True).close()
    with pytest.raises(FileExistsError):
        AppendFile(str(path), new=True)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="symbolic"):
        AppendFile(str(tmp_path / "link"))


# Locks -----------------------------------------------------------------------------------------------------------


def test_a_lock_is_seen_and_kept_from_others(tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    one = AppendFile(path, new=True)
    assert one.lock()
    assert is_locked(path)
    other = AppendFile(path, old=True)
    assert not other.lock()
    one.unlock()
    assert other.lock()
    other.close()
    assert not is_locked(path)
    one.close()


def test_somebody_who_only_looks_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "f")
    looking = AppendFile(path, new=True)
    looking.lock()
    monkeypatch.setattr(time, "sleep", lambda _: looking.close())
    mine = AppendFile(path, old=True)
    assert mine.lock()
    mine.close()


def test_pipes_and_devices_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for name in ("pipe", "link", "missing", "\x00"):
        assert not is_file(str(tmp_path / name))
    assert not is_locked(str(tmp_path / "missing"))
    assert not is_locked(str(tmp_path / "pipe"))  # and does not wait for a writer


# Recordings ------------------------------------------------------------------------------------------------------


def test_a_recording_is_read_by_its_first_and_last_line(halo: str) -> None:
    path = kept(halo, RUN, call_line(call(), Answer("x")), finish_line("completed", "x", None))
    recording = read_recording_file(path)
    assert (recording.opening.pipeline, recording.torn) == ("Tidy", False)
    assert recording.finish == {"type": "finish", "status": "completed", "output": "x"}
    assert [entry.answer.value for entry in recording.entries()] == ["x"]
    assert [entry.number for entry in recording.entries()] == [2]


def test_the_last_finish_counts_and_none_where_the_run_went_on_since(halo: str) -> None:
    paused = finish_line("paused", None, None, [])
    done = finish_line("completed", 1, None)
    resume = {"type": "resume"}
    other = {"type": "weather", "status": "sunny"}
    for lines, status in (
        ((), None),
        ((paused,), "paused"),
        ((paused, resume), None),
        ((paused, resume, call_line(call(), Answer("x"))), None),
        ((paused, resume, done), "completed"),
        ((done, other, other), "completed"),
    ):
        finish = read_recording_file(kept(halo, new_run_id(), *lines)).finish
        assert (finish or {}).get("status") == status


def test_answers_that_came_too_late_are_apart_unless_the_run_went_on(halo: str) -> None:
    def late(value: str) -> dict[str, object]:
        return call_line(call(), Answer(value), late=True)

    lines = [call_line(call(), Answer("a")), late("b"), finish_line("cancelled", None, None), {"type": "resume"}]
    path = kept(halo, RUN, *lines, call_line(call(), Answer("c")), late("d"), finish_line("failed", None, {}))
    apart: list[object] = []
    values = [entry.answer.value for entry in read_recording_file(path).entries(lambda e: apart.append(e.answer.value))]
    assert (values, apart) == (["a", "b", "c"], ["d"])


def test_a_recording_that_ends_damaged_names_the_line(halo: str) -> None:
    path = kept(halo, RUN, call_line(call(), Answer("x")))
    with open(path, "ab") as file:
        file.write(b"damaged\n")
    with pytest.raises(RecordingError, match=f"{RUN}.jsonl: line 3 is no JSON"):
        read_recording_file(path)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is empty"),
        (b"{}\n", "line 1 does not start a recording"),
        (b"\x7fELF\x02\x01\n\n", "line 1 is no JSON"),
        (b'{"type":"start"', "is empty"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "f").write_bytes(data)
    with pytest.raises(RecordingError, match=why):
        read_recording_file(str(tmp_path / "f"))


def test_a_recording_is_torn_where_its_last_line_has_no_end(halo: str) -> None:
    path = kept(halo, RUN, finish_line("completed", 1, None))
    assert not read_recording_file(path).torn
    with open(path, "ab") as file:
        file.write(b'{"type":"call"')
    torn = read_recording_file(path)
    assert torn.torn
    assert torn.finish is not None
    reopened = reopened_recording(halo, RUN)
    assert reopened is not None
    reopened.append(b"{}\n")
    reopened.close()
    assert Path(path).read_bytes().endswith(b'"output":1}\n{}\n')


def test_a_run_without_a_recording_has_none_to_go_on_with(halo: str) -> None:
    assert reopened_recording(halo, RUN) is None
    made_folder(halo)
    assert reopened_recording(halo, RUN) is None


# Throwing away ---------------------------------------------------------------------------------------------------


def aged(folder: str, count: int) -> list[str]:
    """So many recordings, each a second younger than the one before."""
    made = [new_run_id() for _ in range(count)]
    for at, run_id in enumerate(made):
        path = kept(folder, run_id)
        os.utime(path, (at, at))
    return made


def test_the_newest_fifty_are_kept_the_new_one_among_them(halo: str) -> None:
    made = aged(halo, 50)
    assert set(recording_ids(halo)) == set(made)
    new_recording(halo, RUN).close()
    assert set(recording_ids(halo)) == {RUN, *made[1:]}
    assert recording_ids(halo)[:2] == [RUN, made[-1]]


def test_a_paused_run_keeps_its_recording_and_so_does_one_under_way(halo: str) -> None:
    made = aged(halo, 5)
    under_way = AppendFile(file_of(halo, made[1]), old=True)
    under_way.lock()
    assert is_under_way(under_way.path)
    new_recording(halo, RUN, keep=2, paused=lambda run_id: run_id == made[0]).close()
    assert set(recording_ids(halo)) == {made[0], made[1], made[4], RUN}
    under_way.close()


def test_a_run_that_pauses_just_now_keeps_its_recording(halo: str) -> None:
    (other,) = aged(halo, 1)
    going = AppendFile(file_of(halo, other), old=True)
    going.lock()
    paused: list[str] = []

    def is_paused(run_id: str) -> bool:
        was_paused = run_id in paused
        paused.append(other)  # just after somebody has looked: first it is kept as paused, then under way no more
        going.close()
        return was_paused

    new_recording(halo, RUN, keep=1, paused=is_paused).close()
    assert other in recording_ids(halo)
    going.close()


def test_keeping_none_keeps_the_one_that_is_written(halo: str) -> None:
    aged(halo, 3)
    file = new_recording(halo, RUN, keep=0)
    assert recording_ids(halo) == [RUN]
    other = new_run_id()
    new_recording(halo, other, keep=0).close()
    assert set(recording_ids(halo)) == {RUN, other}
    file.close()


def test_only_recordings_are_thrown_away(halo: str, tmp_path: Path) -> None:
    made_folder(halo)
    precious = tmp_path / "precious"
    precious.write_text("")
    strangers = ["notes.jsonl", f"{RUN}.txt", f"{RUN}.jsonl.gz"]
    for name in strangers:
        Path(halo, name).write_text("")
    link, pipe, inner = (Path(halo, f"{new_run_id()}.jsonl") for _ in range(3))
    link.symlink_to(precious)
    os.mkfifo(pipe)
    inner.mkdir()
    new_recording(halo, RUN, keep=1).close()
    assert recording_ids(halo) == [RUN]
    assert {p.name for p in Path(halo).iterdir()} == {*strangers, link.name, pipe.name, inner.name, f"{RUN}.jsonl"}


def test_many_runs_that_start_at_once_all_keep_their_own(halo: str) -> None:
    files: list[AppendFile] = []
    ids = [new_run_id() for _ in range(60)]

    def begin(some: list[str]) -> None:
        for run_id in some:
            files.append(new_recording(halo, run_id, keep=0))

    threads = [threading.Thread(target=begin, args=(ids[at::6],)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(recording_ids(halo)) == set(ids)
    for file in files:
        file.close()


# Run stores ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> RunStore:
    return MemoryRunStore() if request.param == "memory" else FileRunStore(str(tmp_path / ".halo" / "runs"))


def test_a_journal_is_made_claimed_released_and_deleted(store: RunStore) -> None:
    assert store.ids() == []
    journal = store.create(RUN, [b"1\n", b"2\n"])
    journal.append(b"3\n4\n")
    journal.sync()
    assert list(journal.lines()) == list(store.peek(RUN)) == [b"1\n", b"2\n", b"3\n", b"4\n"]
    with pytest.raises(RunConflict):
        store.claim(RUN)
    journal.release()
    again = store.claim(RUN)
    again.append(b"5\n")
    assert list(again.lines())[-1] == b"5\n"
    assert store.ids() == [RUN]
    again.delete()
    assert store.ids() == []
    for missing in (store.claim, store.peek, lambda run_id: store.add(run_id, {})):
        with pytest.raises(RunUnknown):
            missing(RUN)


def test_a_line_is_added_while_somebody_has_the_journal(store: RunStore) -> None:
    journal = store.create(RUN)
    store.add(RUN, {"type": "signal"})
    journal.append(b"{}\n")
    assert list(journal.lines()) == [b'{"type":"signal"}\n', b"{}\n"]
    journal.release()
    store.add(RUN, {"type": "signal"})
    assert len(list(store.peek(RUN))) == 3


def test_a_claim_is_given_back_once(store: RunStore) -> None:
    first = store.create(RUN)
    first.release()
    second = store.claim(RUN)
    first.release()
    with pytest.raises(RunConflict):
        store.claim(RUN)
    second.release()
    store.claim(RUN).delete()


def test_a_journal_of_the_same_run_is_not_made_twice(store: RunStore) -> None:
    store.create(RUN, [b"1\n"]).release()
    with pytest.raises(KeepingError):
        store.create(RUN)
    assert list(store.peek(RUN)) == [b"1\n"]


def test_a_journal_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    store = FileRunStore(str(tmp_path / ".halo" / "runs"))

    def lines() -> Iterator[bytes]:
        yield b"1\n" * 5000
        assert store.ids() == []
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.create(RUN, lines())
    assert store.ids() == []


def test_what_a_dying_process_left_half_made_is_removed_once_it_is_old(tmp_path: Path) -> None:
    folder = tmp_path / ".halo" / "runs"
    store = FileRunStore(str(folder))
    store.create(new_run_id()).release()
    left = {name: folder / f"{new_run_id()}.jsonl.new" for name in ("old", "young", "held")}
    for path in left.values():
        path.write_text("private")
    held = AppendFile(str(left["held"]), old=True)
    held.lock()
    for name in ("old", "held"):
        os.utime(left[name], (time.time() - 7200,) * 2)
    store.create(RUN).release()
    assert [name for name, path in left.items() if path.exists()] == ["young", "held"]
    held.close()


def test_a_signal_to_a_journal_with_a_torn_line_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    store = FileRunStore(str(tmp_path / ".halo" / "runs"))
    store.create(RUN, [b"{}\n"]).release()
    with open(tmp_path / ".halo" / "runs" / f"{RUN}.jsonl", "ab") as file:
        file.write(b'{"torn')
    store.add(RUN, {"type": "signal"})
    assert list(store.peek(RUN)) == [b"{}\n", b'{"type":"signal"}\n']


def test_a_claim_drops_a_torn_line(tmp_path: Path) -> None:
    store = FileRunStore(str(tmp_path / ".halo" / "runs"))
    store.create(RUN, [b"{}\n"]).release()
    with open(tmp_path / ".halo" / "runs" / f"{RUN}.jsonl", "ab") as file:
        file.write(b'{"torn')
    journal = store.claim(RUN)
    journal.append(b"[]\n")
    assert list(journal.lines()) == [b"{}\n", b"[]\n"]


def test_a_line_that_is_being_added_is_not_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FileRunStore(str(tmp_path / "runs"))
    store.create(RUN, [b"1\n"]).release()
    path = tmp_path / "runs" / f"{RUN}.jsonl"
    with open(path, "ab", buffering=0) as other:
        other.write(b"2 in par")
        rest = [b"t", b"s\n"]
        monkeypatch.setattr(time, "sleep", lambda _: other.write(rest.pop(0)))
        journal = store.claim(RUN)
        assert (rest, list(journal.lines())) == ([], [b"1\n", b"2 in parts\n"])
        journal.release()


def test_a_claim_that_comes_as_the_journal_is_deleted_brings_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loser of a race has opened a file, and waits for its lock, when the winner deletes it: it must neither have
    it nor make it anew."""
    store = FileRunStore(str(tmp_path / ".halo" / "runs"))
    journal = store.create(RUN)
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", lambda s: (waited.append(s), journal.delete()))
    with pytest.raises(RunUnknown):
        store.claim(RUN)
    assert (len(waited), store.ids()) == (1, [])
