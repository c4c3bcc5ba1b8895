"""`halo test` as a process among others: what ends it, what it does not read, and what it does where a process dies."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from commands import HALO, PATIENCE_S, Started, halo, surroundings
from halo_lang.runtime import driver
from inside import Commands
from inside import halo as inside

__all__ = ["inside"]  # a fixture

PASSES = 'pipeline P(x: String) -> Result:\n  x\n\ntest "t":\n  run P(x: "a")\n  expect (output == "a")\n'


def files(folder: Path, count: int = 6) -> list[str]:
    names = [f"{number}.halo" for number in range(count)]
    for name in names:
        (folder / name).write_text(PASSES)
    return names


@pytest.mark.parametrize("jobs", ["1", "3"])
@pytest.mark.parametrize("to_all", [False, True])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_processes_at_once_and_without_a_trace(
    tmp_path: Path, jobs: str, to_all: bool, number: int
) -> None:
    """Ctrl-C reaches all processes of a terminal's group, a signal by `kill` one of them."""
    names = files(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen(
        [*HALO, "test", *names, "pipe", "-j", jobs],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    handle = os.open(tmp_path / "pipe", os.O_WRONLY)  # waits until one of the processes reads it
    if to_all:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)  # which also waits until no process holds these any more
    assert process.returncode == 130
    assert err == "stopped\n"
    assert "Traceback" not in out
    with pytest.raises(BrokenPipeError):
        os.write(handle, b"nobody reads it any more")
    os.close(handle)


def test_nothing_is_said_of_what_an_interrupted_run_had_begun(
    inside: Commands, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    """Wherever the interrupt comes: here where a branch is made and has not moved yet."""
    inside.write(
        "a.halo",
        'pipeline P(x: Any) -> Result:\n  x\n    |* { Q(), Q() }\n\npipeline Q(x: Any) -> Result:\n  x\n\ntest "t":\n'
        '  run P(x: "a")\n',
    )
    made = driver._Branch

    def interrupted(steps: Any, group: Any, position: int) -> Any:
        if group is not None:
            raise KeyboardInterrupt
        return made(steps, group, position)

    monkeypatch.setattr(driver, "_Branch", interrupted)
    ended = inside("test", "a.halo")
    assert (ended.code, ended.err) == (130, "stopped\n")
    assert [str(warning.message) for warning in recwarn] == []


def test_a_pipe_below_the_folder_is_not_read(tmp_path: Path) -> None:
    files(tmp_path, 1)
    os.mkfifo(tmp_path / "pipe.halo")
    (tmp_path / "folder.halo").mkdir()
    (tmp_path / "gone.halo").symlink_to("nowhere")
    ended = halo(tmp_path, "test")
    assert (ended.code, ended.out.splitlines()[0]) == (1, "FAIL gone.halo: no test could be run")
    assert ended.out.splitlines()[-1] == "1 passed, 0 failed, 1 file could not be tested"


def test_a_process_that_dies_is_said_to_have(inside: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dies:
        def __init__(self, *given: object) -> None: ...

        def map(self, *given: object, chunksize: int) -> object:
            raise BrokenProcessPool

        def shutdown(self, *, cancel_futures: bool) -> None: ...

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Dies)
    ended = inside("test", *files(inside.folder), "-j", "2")
    assert (ended.code, ended.out) == (1, "")
    assert "a process that ran tests was ended from outside" in ended.err
    assert "-j 1" in ended.err


def test_thousands_of_tests_of_a_file_are_run(tmp_path: Path) -> None:
    program = PASSES.partition("test")[0]
    many = "".join(f'test "t{n}":\n  run P(x: "{n}")\n  expect (output == {n})\n' for n in range(3000))
    (tmp_path / "many.halo").write_text(program + many)
    with Started(tmp_path, "test", "many.halo") as started:
        ended = started.end()
    assert (ended.code, ended.out) == (0, "3000 passed, 0 failed\n")
