"""SIGINT and SIGTERM to a real process (runs.md §5): calls are cancelled, effects are named, nothing hangs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from commands import SIGHUP, SIGINT, SIGKILL, SIGTERM, Started, halo, wait_until
from servers.scripted import ModelServer, Reply

TALK = "agent A [local/scripted]\npipeline P(x: String) -> Result:\n  x\n    |> A.one()\n    |> A.two()\n"
HANG = Reply(hang=True)


def program(folder: Path, text: str) -> Path:
    (folder / "p.halo").write_text(text)
    return folder


def taken_up(started: Started) -> None:
    """Waits until the process says that it has taken up a signal."""
    assert started.process.stderr is not None
    assert b"stopping: calls under way get 5 s" in started.process.stderr.readline()


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_second_signal_stops_at_once(tmp_path: Path, number: int) -> None:
    with (
        ModelServer(HANG) as server,
        Started(program(tmp_path, TALK), "run", "p.halo", "x=1", "--no-record", env=server.environment) as started,
    ):
        server.wait_for_request()
        started.send(number)
        taken_up(started)
        started.send(number)
        server.wait_for_leaver()
        ended = started.end()
    assert (ended.code, ended.out) == (130, "")
    assert "cancelled" in ended.err
    assert "Traceback" not in ended.err
    assert len(server.bodies) == 1


def test_calls_under_way_may_end_and_no_new_one_begins(tmp_path: Path) -> None:
    with (
        ModelServer(Reply("slow answer", held=True)) as server,
        Started(
            program(tmp_path, TALK), "run", "p.halo", "x=1", "--json", "--no-record", env=server.environment
        ) as started,
    ):
        server.wait_for_request()
        started.send(SIGINT)
        taken_up(started)
        server.let_go()
        ended = started.end()
    document = json.loads(ended.out)
    assert (ended.code, document["status"], len(server.bodies)) == (130, "cancelled", 1)
    assert document["usage"] == {"input": 100, "output": 20, "cached": 0}


def test_the_recording_of_a_stopped_run_is_finished(tmp_path: Path) -> None:
    with (
        ModelServer(Reply("slow answer", held=True)) as server,
        Started(program(tmp_path, TALK), "run", "p.halo", "x=1", env=server.environment) as started,
    ):
        server.wait_for_request()
        started.send(SIGTERM)
        taken_up(started)
        server.let_go()
        assert started.end().code == 130
    (recording,) = (tmp_path / ".halo" / "recordings").glob("*.jsonl")
    assert json.loads(recording.read_text().splitlines()[-1])["status"] == "cancelled"


def test_branches_are_stopped_together(tmp_path: Path) -> None:
    text = TALK.replace("|> A.one()", "|* { A.a(), A.b(), A.c() }")
    with (
        ModelServer(HANG) as server,
        Started(program(tmp_path, text), "run", "p.halo", "x=1", "--no-record", env=server.environment) as started,
    ):
        for _ in range(3):
            server.wait_for_request()
        started.send(SIGINT)
        taken_up(started)
        started.send(SIGINT)
        for _ in range(3):
            server.wait_for_leaver()
        assert started.end().code == 130


def test_an_effect_under_way_is_named(tmp_path: Path) -> None:
    text = "tool Shell : Bash()\npipeline P(x: String) -> Result:\n  x\n"
    text += '    |> Shell.run(command: "touch begun; sleep 60")\n'
    with Started(program(tmp_path, text), "run", "p.halo", "x=1", "--no-record") as started:
        wait_until((tmp_path / "begun").exists)
        started.send(SIGINT)
        taken_up(started)
        started.send(SIGINT)
        ended = started.end()
    assert ended.code == 130
    assert "stage 1: Shell.run was under way and may or may not have happened" in ended.err


def test_effects_under_way_are_counted_and_what_changes_nothing_is_not_named(tmp_path: Path) -> None:
    text = "tool Shell : Bash()\npipeline P(x: String) -> Result:\n  x\n    |* { Three, System.Wait(60s) }\n"
    text += "pipeline Three(x: Any) -> Result:\n  x\n"
    text += '    |* each(i in [1, 2, 3]) => Shell.run(command: "touch begun{{i}}; sleep 60")\n'
    with Started(program(tmp_path, text), "run", "p.halo", "--pipeline", "P", "x=1", "--no-record") as started:
        wait_until(lambda: len(list(tmp_path.glob("begun*"))) == 3)
        started.send(SIGINT)
        taken_up(started)
        started.send(SIGINT)
        ended = started.end()
    assert [line for line in ended.err.splitlines() if "under way" in line] == [
        "stage 1.1: Shell.run was under way 3 times and may or may not have happened"
    ]


@pytest.mark.parametrize("number", [SIGINT, SIGTERM])
def test_a_mock_run_that_is_interrupted_says_so(tmp_path: Path, number: int) -> None:
    os.mkfifo(tmp_path / "args.json")
    text = "pipeline P(x: String) -> Result:\n  x\n"
    with Started(program(tmp_path, text), "run", "p.halo", "--mock", "--args", "@args.json") as started:
        # It waits for somebody to write into the pipe; opening it for writing shows that it has come that far.
        handle = os.open(tmp_path / "args.json", os.O_WRONLY)
        started.send(number)
        ended = started.end()
        os.close(handle)
    assert (ended.code, ended.out) == (130, "")
    assert ended.err == "stopped\n"


def test_a_terminal_that_goes_away_stops_the_run_but_not_under_nohup(tmp_path: Path) -> None:
    program(tmp_path, "tool Shell : Bash()\npipeline P(x: String) -> Result:\n  x\n    |> Shell.run(command: x)\n")
    command = "touch begun; while ! [ -e go ]; do sleep 0.02; done; touch ended"
    for nohup in (False, True):
        with Started(tmp_path, "run", "p.halo", "-q", f"x={command}", "--no-record", ignore_sighup=nohup) as started:
            wait_until((tmp_path / "begun").exists)
            started.send(SIGHUP)
            if not nohup:
                taken_up(started)
                started.send(SIGHUP)
            else:
                (tmp_path / "go").touch()
            assert started.end().code == (0 if nohup else 130)
        (tmp_path / "begun").unlink()
        assert (tmp_path / "ended").exists() is nohup


def test_a_failed_branch_leaves_no_request_behind(tmp_path: Path) -> None:
    text = TALK.replace("|> A.one()", '|* { A.hare("Be quick."), A.tortoise("Be slow.") }')

    def reply(body: dict[str, object]) -> Reply:
        """The tortoise hangs; the hare fails once both are under way."""
        if "slow" in json.dumps(body):
            return HANG
        wait_until(lambda: len(server.bodies) == 2)
        return Reply(status=400)

    with ModelServer(reply) as server:
        ended = halo(program(tmp_path, text), "run", "p.halo", "x=1", "--no-record", env=server.environment)
        server.wait_for_leaver()
    assert ended.code == 1
    assert "MODEL_ERROR" in ended.err


def test_a_spend_limit_holds_over_crashes(tmp_path: Path) -> None:
    """Each request that died with its process may have been billed."""
    (tmp_path / "halo.toml").write_text('[prices]\n"local/scripted" = {input = 1.0, output = 2.0}\n')
    (tmp_path / "p.halo").write_text(
        "policy Cap : MaxSpend(0.009)\nagent A [local/scripted, max_tokens: 1000]\n  requires Cap\n"
        'pipeline P(x: Any) -> Result:\n  x\n    |> A.one("Say.")\n'
    )
    sent, reserved = [], 0
    with ModelServer(HANG) as server:
        words = ["run", "p.halo", "x=1", "--checkpoint"]
        while True:
            with Started(tmp_path, *words, env=server.environment) as started:
                while not (asked := server.asked.acquire(timeout=0.02)) and started.process.poll() is None:
                    pass
                if asked:
                    sent.append(server.bodies[-1]["max_tokens"])
                    started.send(SIGKILL)
                ended = started.end()
            if not asked:
                break
            (journal,) = (tmp_path / ".halo" / "runs").glob("*.jsonl")
            lines = [json.loads(line) for line in journal.read_text().splitlines()]
            reserved = sum(line["amount"] for line in lines if line["type"] == "reserved")
            assert reserved <= 9_000_000
            words = ["resume", journal.stem]
    assert sent[:2] == [1000, 1000]
    assert 256 <= sent[2] < 1000  # lowered to what is left
    assert len(sent) == 3
    assert (ended.code, "error SPEND_LIMIT" in ended.err) == (1, True), ended
    assert f"up to ${reserved / 1e9:.4f} more for requests that got no answer" in ended.err


@pytest.mark.parametrize("how", ["", "--checkpoint", "--no-record"])
def test_what_shadows_cost_counts_on_after_a_pause(tmp_path: Path, how: str) -> None:
    (tmp_path / "halo.toml").write_text('[prices]\n"local/scripted" = {input = 1.0, output = 2.0}\n')
    shadowed = "    @shadow(B.one())\n    |> A.one()\n"
    program(
        tmp_path,
        "policy Cap : MaxSpend(1)\nagent A [local/scripted]\n  requires Cap\nagent B [local/scripted]\n  requires Cap\n"
        f'pipeline P(x: Any) -> Result:\n  x\n{shadowed * 3}    |! yield("Go?")\n    |> A.two()\n',
    )
    with ModelServer("said") as server:
        paused = halo(tmp_path, "run", "p.halo", "x=1", "--json", *how.split(), env=server.environment)
        before = json.loads(paused.out)
        assert (paused.code, before["status"], len(before["shadows"])) == (3, "paused", 3)
        ended = halo(tmp_path, "resume", before["runId"], "--yes", "--json", env=server.environment)
    after = json.loads(ended.out)
    assert (ended.code, after["status"]) == (0, "completed"), ended
    assert after["cost"] == pytest.approx(before["cost"] + 0.00014)
    assert after["unsettled"] == before["unsettled"]
    answered = sum(shadow["error"] is None for shadow in before["shadows"])
    assert before["cost"] == pytest.approx(0.00014 * (3 + answered))
