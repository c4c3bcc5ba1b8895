"""`halo debug` by real processes: on a terminal, against a model server, with recordings, signals and people."""

from __future__ import annotations

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from commands import Ended, OnTerminal, halo
from halo_lang.app import debugging
from halo_lang.boundary.call import Answer, Call
from halo_lang.cli import debug_views as views
from halo_lang.language.source import Span
from servers.scripted import ModelServer, Reply

AGENTS = """\
agent A [local/scripted]
agent B [local/scripted]

pipeline Inner(x: Any) -> Result:
  x
    |> A.inner() as got
    |> B.inner(got)

pipeline Main(x: String) -> Result:
  x
    |> A.first() as one
    |* { A.left(), Inner("b"), B.right() } as all
    |* each(item in all, concurrency: 2) => A.each(item)
    |> System.Print()
"""
TOOLS = """\
policy Careful : ApproveEffects(write)
tool Files : Workspace("./notes", write: true)
agent A [local/scripted, max_steps: 3]
  equips Files
  requires Careful
pipeline P(x: String) -> Result:
  x
    |> A.work("Go.", tools: [Files])
    |> System.Print()
"""
PROMPT = "(debug) "


def debug(folder: Path, script: str, *args: str, env: dict[str, str] | None = None) -> Ended:
    return halo(folder, "debug", "p.halo", *args, env=env, stdin=script.encode())


def program(folder: Path, text: str) -> Path:
    (folder / "p.halo").write_text(text)
    return folder


def recorded(folder: Path) -> list[dict[str, Any]]:
    """The lines of the only recording, without what is another on each run."""
    (path,) = (folder / ".halo" / "recordings").glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("runId", "startedAt", "ms")} for line in lines]


def by_question(body: dict[str, Any]) -> str:
    """An answer that hangs on what is asked alone."""
    return f"answer {len(json.dumps(body['messages']))}"


# The same run ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ["continue\n", "step\n" * 40, "next\n" * 40, "print\nstep\nwhere\ncalls\nout\nc\n"])
def test_a_run_that_is_only_looked_at_is_recorded_like_one_that_is_not(tmp_path: Path, script: str) -> None:
    text = AGENTS.replace("concurrency: 2", "concurrency: 1").replace('A.left(), Inner("b"), B.right()', 'Inner("b")')
    folders = [tmp_path / name for name in ("plain", "debugged")]
    for folder in folders:
        folder.mkdir()
        program(folder, text)
    with ModelServer(by_question) as server:
        plain = halo(folders[0], "run", "p.halo", "x=1", env=server.environment)
        debugged = debug(folders[1], script, "x=1", env=server.environment)
    assert (plain.code, debugged.code) == (0, 0), debugged
    assert debugged.out == plain.out
    assert recorded(folders[1]) == recorded(folders[0])


def test_a_debugged_run_with_parallel_branches_replays(tmp_path: Path) -> None:
    program(tmp_path, AGENTS)
    with ModelServer(by_question) as server:
        ended = debug(tmp_path, "step\n" * 60, "x=1", env=server.environment)
    assert ended.code == 0, ended
    assert "halo replay p.halo" in ended.err
    assert halo(tmp_path, "replay", "p.halo", "--all").out.startswith("✓")


def test_an_answer_by_hand_is_recorded_and_replays(tmp_path: Path) -> None:
    program(tmp_path, AGENTS)
    with ModelServer(by_question) as server:
        script = 'answer {"n": 1}\nstep\nstep\nanswer by hand\nc\n'
        ended = debug(tmp_path, script, "x=1", env=server.environment)
        asked = json.dumps(server.bodies)
    assert ended.code == 0, ended
    assert "call of A.left in stage 2, branch [0]" in ended.err
    answers = {line["target"]: line["value"] for line in recorded(tmp_path) if line["type"] == "call"}
    assert (answers["A.first"], answers["A.left"]) == ('{"n": 1}', "by hand")
    assert "Your task: first" not in asked
    assert "Your task: left" not in asked
    assert halo(tmp_path, "replay", "p.halo", "--all", "--strict").out.startswith("✓")


# An agent's loop -------------------------------------------------------------------------------------------------


def notes(folder: Path) -> Path:
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("old\n")
    return program(folder, TOOLS)


READS_AND_WRITES = (
    Reply(call=[("Files_read", {"path": "a.md"}), ("Files_write", {"path": "a.md", "content": "new\n"})]),
    "done",
)


def test_a_step_goes_into_the_calls_that_an_agent_chooses(tmp_path: Path) -> None:
    notes(tmp_path)
    with ModelServer(*READS_AND_WRITES) as server:
        ended = debug(
            tmp_path, "step\nmessages\nstep\nstep\ncalls\nc\n", "x=1", "--yes-to", "Files.*", env=server.environment
        )
    assert ended.code == 0, ended
    assert "call of Files.read in stage 1, branch [0], chosen by A\npath: a.md\n" in ended.err
    assert "call of Files.write in stage 1, branch [1], chosen by A\npath: a.md\ncontent: new\n" in ended.err
    assert "asks for Files_read, Files_write" in ended.err
    assert (tmp_path / "notes" / "a.md").read_text() == "new\n"


def test_an_agents_call_can_be_answered_by_hand_and_is_not_made(tmp_path: Path) -> None:
    notes(tmp_path)
    with ModelServer(*READS_AND_WRITES) as server:
        ended = debug(
            tmp_path,
            'break Files.write\nc\nanswer "written"\nmessages 4\nc\n',
            "x=1",
            "--yes-to",
            "Files.*",
            env=server.environment,
        )
        told = json.dumps(server.bodies[-1]["messages"])
    assert ended.code == 0, ended
    assert "call of Files.write" in ended.err
    assert "call of Files.read" not in ended.err
    assert "written" in told
    assert (tmp_path / "notes" / "a.md").read_text() == "old\n"
    assert halo(tmp_path, "replay", "p.halo", "--all", "--strict").out.startswith("✓")


def test_an_agents_call_that_is_let_fail_goes_back_to_it(tmp_path: Path) -> None:
    notes(tmp_path)
    with ModelServer(*READS_AND_WRITES) as server:
        ended = debug(
            tmp_path, "step\nfail the disk is full\nc\n", "x=1", "--yes-to", "Files.*", env=server.environment
        )
        told = json.dumps(server.bodies[-1]["messages"])
    assert ended.code == 0, ended
    assert "the disk is full" in told


# Changing things -------------------------------------------------------------------------------------------------

ONE = """\
agent A [local/scripted]
pipeline P(x: String) -> Result:
  x
    |> A.go("Do {{x}}.") as got
    |> System.Print(got)
"""


def test_a_stage_runs_again_with_another_instruction_and_model(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    with ModelServer("first", "second") as server:
        ended = debug(
            tmp_path, 'next\nagain with "Redo {{x}}." model local/other\ncalls\nc\n', "x=it", env=server.environment
        )
        bodies = server.bodies
    assert ended.code == 0, ended
    assert ended.out == "second\n"
    assert [body["model"] for body in bodies] == ["scripted", "other"]
    assert ["Redo" in body["messages"][-1]["content"] for body in bodies] == [False, True]
    assert "2 LLM call(s)" in ended.err
    assert "halo replay p.halo" not in ended.err
    lines = recorded(tmp_path)
    assert {
        "type": "changed",
        "stage": "2",
        "what": "running stage 1 again with another instruction and model",
    } in lines
    assert lines[-1]["changed"] == "at stage 2, by running stage 1 again with another instruction and model"
    assert halo(tmp_path, "replay", "p.halo", "--all").out.startswith("- ")


def test_a_model_that_cannot_be_had_is_said_at_the_prompt(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    with ModelServer("first") as server:
        ended = debug(tmp_path, "next\nagain model openai/gpt-4o\nc\n", "x=it", env=server.environment)
    assert ended.code == 0, ended
    assert "error: " in ended.err
    assert "OPENAI_API_KEY" in ended.err
    assert "changed" not in {line["type"] for line in recorded(tmp_path)}


def test_a_model_error_is_held_at_and_can_be_mended(tmp_path: Path) -> None:
    program(tmp_path, ONE.replace("local/scripted", "local/scripted, retries: 0"))
    with ModelServer(Reply(status=400), "fine") as server:
        ended = debug(tmp_path, "c\nagain\nc\n", "x=it", env=server.environment)
    assert ended.code == 0, ended
    assert "stage 1 of P failed: MODEL_ERROR" in ended.err
    assert ended.out == "fine\n"


def test_a_change_that_is_not_on_the_disk_is_seen_in_a_cut_recording(tmp_path: Path) -> None:
    """A process that was killed after a change has no last line that says so; the change's own line does."""
    program(tmp_path, "pipeline P(x: String) -> Result:\n  x\n    |> System.Publish()\n")
    debug(tmp_path, 'set context.current = "y"\nc\n', "x=1")
    (path,) = (tmp_path / ".halo" / "recordings").glob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    for ended in (halo(tmp_path, "replay", "p.halo", path.stem), halo(tmp_path, "replay", "p.halo", "--all")):
        assert ended.code == 1
        assert "the run was changed in the debugger here" in ended.err + ended.out
        assert "halo itself failed" not in ended.err


def test_calls_that_are_not_kept_count_in_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debugging, "KEPT_CALLS", 2)
    session = debugging.Session(desk=None)  # type: ignore[arg-type]
    for _ in range(3):
        session.answered(Call("agent", "A.go", {}, (), "1", Span(0, 0)), Answer("a", cost=500_000_000))
    rows = views.calls(session).split("\n")
    assert (rows[0], rows[-1], len(rows)) == ("the first 1 are not kept", "3 answered, $1.5000", 4)


# At a terminal ---------------------------------------------------------------------------------------------------


def test_a_session_on_a_terminal_is_plain_lines(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    with (
        ModelServer("fine") as server,
        OnTerminal(tmp_path, "debug", "p.halo", "x=it", env=server.environment) as terminal,
    ):
        terminal.expect(PROMPT)
        for command in ("list", "next", "print got", "calls"):
            terminal.type(f"{command}\n")
            terminal.expect(PROMPT)
        terminal.type("c\n")
        assert terminal.end() == 0
    assert "\x1b" not in terminal.text
    assert "stage 1 of P: A.go, p.halo:4" in terminal.text


@pytest.mark.parametrize(("typed", "said"), [("\x03", "cancelled"), ("\x04", "cancelled"), ("quit\n", "cancelled")])
def test_ctrl_c_the_end_of_input_and_quit_stop_the_run_at_the_prompt(tmp_path: Path, typed: str, said: str) -> None:
    program(tmp_path, ONE)
    with (
        ModelServer("never") as server,
        OnTerminal(tmp_path, "debug", "p.halo", "x=it", env=server.environment) as terminal,
    ):
        terminal.expect(PROMPT)
        terminal.type(typed)
        assert terminal.end() == 130
        assert server.bodies == []
    assert said in terminal.text
    assert recorded(tmp_path)[-1]["status"] == "cancelled"


def test_ctrl_c_while_the_run_goes_holds_it_at_the_next_place(tmp_path: Path) -> None:
    program(tmp_path, ONE.replace("System.Print(got)", "System.Print(got)\n    |> System.Print(got)"))
    began, go = threading.Event(), threading.Event()

    def late(body: dict[str, Any]) -> str:
        began.set()
        assert go.wait(20)
        return "late"

    with (
        ModelServer(late) as server,
        OnTerminal(tmp_path, "debug", "p.halo", "x=it", env=server.environment) as terminal,
    ):
        terminal.expect(PROMPT)
        terminal.type("c\n")
        assert began.wait(20)
        terminal.type("\x03")
        terminal.expect("holding at the next stage")
        go.set()
        terminal.expect("stage 2 of P")
        terminal.expect(PROMPT)
        terminal.type("c\n")
        assert terminal.end() == 0


def test_ctrl_c_twice_while_the_run_goes_stops_it(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    with (
        ModelServer(Reply(hang=True)) as server,
        OnTerminal(tmp_path, "debug", "p.halo", "x=it", env=server.environment) as terminal,
    ):
        terminal.expect(PROMPT)
        terminal.type("c\n")
        server.wait_for_request()
        terminal.type("\x03")
        terminal.expect("holding at the next stage")
        terminal.type("\x03")
        terminal.expect("stopping")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.text


def test_a_signal_stops_a_session_that_waits_for_a_command(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    with (
        ModelServer("never") as server,
        OnTerminal(tmp_path, "debug", "p.halo", "x=it", env=server.environment) as terminal,
    ):
        terminal.expect(PROMPT)
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 130


def test_a_person_is_asked_in_turn_with_the_debugger(tmp_path: Path) -> None:
    """The yield of one branch is being asked when another branch comes to a stage: one prompt at a time."""
    text = """\
agent A [local/scripted]
pipeline Asks(x: Any) -> Result:
  x
    |! yield("Go?") as go
pipeline Thinks(x: Any) -> Result:
  x
    |> A.go()
    |> System.Print("thought")
pipeline Main(x: String) -> Result:
  x
    |* { Asks(), Thinks() }
"""
    program(tmp_path, text)
    with (
        ModelServer("fine") as server,
        OnTerminal(tmp_path, "debug", "p.halo", "x=it", "--no-record", env=server.environment) as terminal,
    ):
        terminal.expect(PROMPT)
        terminal.type("break 1.2\n")
        terminal.expect(PROMPT)
        terminal.type("c\n")
        terminal.expect("stage 1.1 asks: Go?")
        terminal.expect("object] ")
        server.wait_for_request()
        terminal.type("yes\n")
        terminal.expect("stage 1.2 of Thinks, branch [1]")
        terminal.expect(PROMPT)
        terminal.type("where\n")
        terminal.expect("in Main, stage 1: fan-out")
        terminal.expect(PROMPT)
        terminal.type("c\n")
        assert terminal.end() == 0


def test_commands_come_from_a_file_too(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    (tmp_path / "script").write_text("next\nprint got\nc\n")
    with open(tmp_path / "script", "rb") as script, ModelServer("fine") as server:
        ended = halo_from(tmp_path, script, server.environment)
    assert ended.code == 0, ended
    assert "(debug) print got\nfine\n" in ended.err


def halo_from(folder: Path, script: Any, env: dict[str, str]) -> Ended:
    import subprocess

    from commands import HALO, surroundings

    done = subprocess.run(
        [*HALO, "debug", "p.halo", "x=it"],
        cwd=folder,
        env=surroundings(folder, env),
        stdin=script,
        capture_output=True,
        timeout=30,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("end", ["", "\nc\n"])
def test_a_command_without_end_ends_the_commands_and_is_not_done(tmp_path: Path, end: str) -> None:
    program(tmp_path, ONE)
    ended = debug(tmp_path, "answer " + "x" * 3_000_000 + end, "x=it", "--mock")
    assert (ended.code, ended.out) == (130, "")
    assert "error: a command has more than 1 MiB; no more commands are read\ncancelled\n" in ended.err
    assert len(ended.err) < 1000


def test_a_long_command_is_done_and_the_beginning_of_it_shown(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    ended = debug(tmp_path, "answer " + "x" * 900_000 + "\nc\n", "x=it", "--mock")
    assert (ended.code, len(ended.out)) == (0, 900_001)
    assert "(debug) answer xxx" in ended.err
    assert len(ended.err) < 3000


def test_without_commands_nothing_is_run(tmp_path: Path) -> None:
    program(tmp_path, ONE)
    with ModelServer("never") as server:
        ended = halo(tmp_path, "debug", "p.halo", "x=it", env=server.environment)
        assert server.bodies == []
    assert ended.code == 130, ended


# Recordings, forward and back ------------------------------------------------------------------------------------


def test_a_damaged_recording_is_named_once(tmp_path: Path) -> None:
    program(tmp_path, AGENTS)
    with ModelServer(by_question) as server:
        assert debug(tmp_path, "c\n", "x=1", env=server.environment).code == 0
    (path,) = (tmp_path / ".halo" / "recordings").glob("*.jsonl")
    start, _, *rest = path.read_text().splitlines()
    path.write_text("\n".join((start, '{"type": "call"}', *rest, "")))
    refused = debug(tmp_path, "c\n", "--replay", path.stem)
    where = path.relative_to(tmp_path)
    assert refused.err == f"error: RECORDING_INVALID: {where}: line 2 is no recorded call\n"


def test_every_stage_of_a_recording_can_be_gone_back_to(tmp_path: Path) -> None:
    program(tmp_path, AGENTS)
    with ModelServer(by_question) as server:
        assert debug(tmp_path, "c\n", "x=1", env=server.environment).code == 0
    (path,) = (tmp_path / ".halo" / "recordings").glob("*.jsonl")
    forward = debug(tmp_path, "next\nbreak 2.1\n" + "next\n" * 9, "--replay", path.stem)
    assert forward.code == 0, forward
    plain = shown(debug(tmp_path, "step\n" * 60, "--replay", path.stem))
    to_the_end = "step\n" * (len(plain) - 1)
    there_and_back = shown(debug(tmp_path, to_the_end + "back\n" * 60, "--replay", path.stem))
    assert there_and_back[: len(plain)] == plain
    stages = [row for row in plain if row.startswith("stage ")]
    assert there_and_back[len(plain) :] == stages[::-1]
    assert len(stages) == 6


def shown(ended: Ended) -> list[str]:
    """Where the run was held."""
    return [row for row in ended.err.split("\n") if row.startswith(("stage ", "end of ", "call of "))]
