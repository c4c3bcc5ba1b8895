"""Whole runs with MCP servers, as processes: an agent that uses one, and no server left, however a run ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_servers import RAW, SDK, notes, runs

from commands import halo, wait_until

HALO = [sys.executable, "-c", "from halo_lang.cli.main import entry; entry()"]


def start(folder: Path, mode: str, *words: str) -> subprocess.Popen[str]:
    command = f'Mcp({json.dumps(sys.executable)}, {json.dumps(RAW)}, "{mode}", "notes")'
    text = f"tool Web : {command}\npipeline P(x: String) -> Result:\n  x\n    |> Web.echo()\n    |> System.Print()\n"
    (folder / "t.halo").write_text(text, "utf-8")
    return subprocess.Popen(
        [*HALO, "run", "t.halo", "x=hi", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def begun(folder: Path, method: str) -> dict[str, Any]:
    """Waits until a server was asked something; what it noted first."""
    wait_until(
        lambda: (folder / "notes").exists() and any(note.get("method") == method for note in notes(folder)),
    )
    return notes(folder)[0]


@pytest.mark.parametrize("mode", ["plain", "dies", "stubborn"])
def test_no_server_outlives_its_run(tmp_path: Path, mode: str) -> None:
    with start(tmp_path, mode) as run:
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == ((1, "") if mode == "dies" else (0, "hi\n")), err
    server = notes(tmp_path)[0]
    assert not runs(server["pid"])
    assert not runs(server.get("child", server["pid"]))


def test_no_server_outlives_a_run_that_is_stopped(tmp_path: Path) -> None:
    with start(tmp_path, "hangs") as run:
        server = begun(tmp_path, "tools/call")
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=120)
    assert run.returncode == 130, err
    assert not runs(server["pid"])
    assert notes(tmp_path)[-1]["method"] == "notifications/cancelled"


def test_a_server_ends_when_its_run_is_killed(tmp_path: Path) -> None:
    with start(tmp_path, "hangs") as run:
        server = begun(tmp_path, "tools/call")
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=120)
    wait_until(lambda: not runs(server["pid"]))  # its input has ended


def test_what_a_server_writes_about_itself_is_not_shown(tmp_path: Path) -> None:
    with start(tmp_path, "mutters", "-v") as run:
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (0, "hi\n")
    assert "mutter" not in err


def test_a_dying_servers_last_words_are_shown_without_what_a_terminal_would_obey(tmp_path: Path) -> None:
    with start(tmp_path, "dies") as run:
        _, err = run.communicate(timeout=120)
    assert "error TOOL_ERROR: the server has ended (exit code 3)" in err
    assert "\x1b" not in err
    assert "Traceback" not in err


@pytest.mark.parametrize("flags", [(), ("-v",)])
def test_how_far_a_call_is_is_said_where_that_is_wanted(tmp_path: Path, flags: tuple[str, ...]) -> None:
    server = f'tool S : Mcp({json.dumps(sys.executable)}, {json.dumps(SDK)}, "notes")\n'
    (tmp_path / "t.halo").write_text(f'{server}pipeline P() -> Result:\n  "go"\n    |> S.slow(seconds: 0.2)\n', "utf-8")
    ended = halo(tmp_path, "run", "t.halo", *flags)
    assert (ended.code, ended.out) == (0, '{"result":"done"}\n'), ended
    assert ended.err.count("info: slow: 0 %\n") == len(flags)
