"""Real processes of `halo`, killed with SIGKILL at any moment, resumed by the command; and resumes that race.

The effects are lines that commands append to a file outside, or requests to a server outside, which counts them; by
these a person knows what became of a call of unknown outcome.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from commands import HALO, wait_until
from halo_lang.app.resuming import ResumeError, signal_line
from halo_lang.boundary.recording import RecordingError
from halo_lang.cli.keep import run_store
from halo_lang.doors.stores import RunUnknown
from kept_runs import Given, World, begin, checked, go_on
from recorded import RUN
from servers.effects import EffectServer
from servers.scripted import ModelServer, Reply

STEPS = 5
PROGRAM = (
    'tool Shell : Bash()\npipeline P(x: Any) -> Result:\n  x\n    |* { Step("a"), Step("b") }\n    |> Step("c")\n'
    '    |! yield("Go?")\n    |* each(i in ["d", "e"], concurrency: 2) => Step(i)\n    |> System.Print("ended")\n'
    "pipeline Step(n: String) -> Result:\n  n\n"
    '    |> Shell.run(command: "echo {{n}} >> outside; sleep 0.05")\n'
)
SERVED = (
    'tool Web : Http("{address}", private: true)\nagent A [local/scripted, max_steps: 3]\n  equips Web\n'
    'pipeline P(x: Any) -> Result:\n  x\n    |> A.plan("Plan.") as plan\n'
    '    |* {{ Step("a"), Step("b"), Web.get(path: "look") }}\n    |> A.work("Work.", tools: [Web])\n'
    '    |! yield("Go?")\n    |* each(i in ["d", "e"], concurrency: 2) => Step(i)\n'
    '    |> A.last("Last.")\n    |> System.Print("ended")\n'
    'pipeline Step(n: String) -> Result:\n  n\n    |> Web.post(path: "{{{{n}}}}")\n'
)
"""The same against servers: of models, and of a tool."""


def halo(*words: str, env: Mapping[str, str] = {}) -> subprocess.Popen[str]:
    environment = {**os.environ, **env, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [*HALO, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        stdin=subprocess.DEVNULL,
    )


def killed(chance: Random) -> int:
    """One run, begun with checkpoints and killed at some moment in each of its first legs; gives how often it was
    killed. Raises `AssertionError` where an effect was lost, or happened twice without a person's word."""
    before = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("p.halo").write_text(PROGRAM)
            return _to_the_end(chance)
        finally:
            os.chdir(before)


def _to_the_end(chance: Random) -> int:
    kills = 0
    words: list[str] = ["run", "p.halo", "--pipeline", "P", "x=1", "--checkpoint", "--json"]
    for leg in range(30):
        ended = _leg(words, chance.uniform(0.05, 0.6) if leg < 4 else None)
        kills += ended.killed
        wait_until(_no_command_is_left)
        run = _kept()
        if run is None:
            if "ended" in ended.err or ended.code == 0:
                break
            if not Path("outside").exists():
                continue  # it died before it began: begin anew
            assert ended.killed, ended.err  # it died when all was done but telling it
            break
        words = ["resume", run["runId"], "--json", *_answer(run)]
    assert _outside() == Counter("abcde"), (_outside(), ended)
    assert _kept() is None
    return kills


class _Leg(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


def _leg(words: list[str], killed_after_s: float | None, env: Mapping[str, str] = {}) -> _Leg:
    process = halo(*words, env=env)
    if killed_after_s is not None:
        time.sleep(killed_after_s)
        process.send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    return _Leg(process.returncode, out, err)


def _no_command_is_left() -> bool:
    """Whether no process but this one stands in the folder: a command outlives the process that started it, and until
    it has ended nobody can say what it did. Where there is no /proc it is given a while."""
    processes = [path for path in Path("/proc").glob("[0-9]*") if path.name != str(os.getpid())]
    if not processes:
        time.sleep(0.3)
    here = os.getcwd()
    for path in processes:
        with suppress(OSError):  # another user's, or ended meanwhile
            if os.readlink(path / "cwd") == here:
                return False
    return True


def killed_while_served(chance: Random) -> int:
    """The same for a run whose effects are requests to a server outside; no answer of a model that was recorded is
    asked for again."""
    before = os.getcwd()
    with TemporaryDirectory() as folder, EffectServer() as outside, ModelServer(_model) as models:
        os.chdir(folder)
        try:
            Path("p.halo").write_text(SERVED.format(address=outside.address))
            return _served_to_the_end(chance, outside, models)
        finally:
            os.chdir(before)


def _model(body: dict[str, Any]) -> Reply | str:
    said = json.dumps(body["messages"])
    if "Work." in said and body["messages"][-1]["role"] != "tool":
        return Reply(call=[("Web_post", {"path": "c"}), ("Web_get", {"path": "look"})])
    return "said"


def _served_to_the_end(chance: Random, outside: EffectServer, models: ModelServer) -> int:
    kills = 0
    words = ["run", "p.halo", "--pipeline", "P", "x=1", "--checkpoint", "--json"]
    for leg in range(30):
        recorded, asked = _recorded_questions(), Counter(map(_question, models.bodies))
        ended = _leg(words, chance.uniform(0.05, 0.9) if leg < 5 else None, models.environment)
        kills += ended.killed
        outside.settle()
        again = Counter(map(_question, models.bodies)) - asked
        assert not set(again) & recorded, "a recorded answer was asked for again"
        run = _kept()
        if run is None:
            if ended.code == 0 or outside.effects["e"]:
                break
            assert not outside.effects, ended.err
            continue  # it died before it began: begin anew
        words = ["resume", run["runId"], "--json", *_answer(run, outside.effects)]
    assert outside.effects == Counter("abcde"), (outside.effects, ended)
    assert _kept() is None
    return kills


def _question(body: dict[str, Any]) -> str:
    """What a model was asked: the instructions, and how often it was answered before."""
    said = json.dumps(body["messages"])
    instruction = next(one for one in ("Plan.", "Work.", "Last.") if one in said)
    return f"{instruction}@{sum(message['role'] == 'assistant' for message in body['messages'])}"


def _recorded_questions() -> set[str]:
    """The questions that have an answer in the journal."""
    instructions = {"A.plan": "Plan.", "A.work": "Work.", "A.last": "Last."}
    found: Counter[str] = Counter()
    for path in Path(".halo/runs").glob("*.jsonl"):
        for row in path.read_text().splitlines():
            line = json.loads(row) if row.endswith("}") else {}
            if line.get("type") == "call" and line["kind"] == "agent":
                found[instructions[line["target"]]] += 1
    return {f"{said}@{at}" for said, count in found.items() for at in range(count)}


def _kept() -> dict[str, Any] | None:
    out, _ = halo("runs", "--json").communicate(timeout=60)
    runs = json.loads(out)["runs"]
    assert len(runs) <= 1
    return runs[0] if runs else None


def _outside() -> Counter[str]:
    return Counter(Path("outside").read_text().split()) if Path("outside").exists() else Counter()


def _answer(run: dict[str, Any], outside: Counter[str] | None = None) -> list[str]:
    """The words that answer one wait, by what stands outside."""
    if run["status"] != "paused":
        return []
    wait = run["waits"][0]
    if wait["kind"] == "yield":
        return ["--yes", "--wait", wait["id"]]
    assert wait["kind"] == "outcome"
    (step,) = [value for name, value in wait["args"].items() if isinstance(value, str) and value in "abcde"] or [
        next(value for value in _texts(wait["args"]) if len(value) == 1 and value in "abcde")
    ]
    if (_outside() if outside is None else outside)[step]:
        return ["--done", '{"stdout": "", "stderr": "", "exitCode": 0}', "--wait", wait["id"]]
    return ["--again", "--wait", wait["id"]]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _texts(one)]


RACED = (
    'tool Files : Workspace("./notes", write: true)\npipeline P(x: Any) -> Result:\n  x\n    |! yield("Go?")\n'
    '    |> Files.write(path: "a", content: "x")\n'
)


def raced(processes: int = 2) -> None:
    """Resumes of one run at the same moment, each in a process of its own: one goes on, the others are refused; while
    one more process sends events to the run."""
    before = os.getcwd()
    program = checked(RACED)
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            begin(program, World(), run_id=RUN)
            ready, go = os.pipe(), os.pipe()
            children = [_racer(program, ready, go, at) for at in range(processes)]
            children.append(_signaller(ready, go))
            for _ in children:
                os.read(ready[0], 1)
            os.write(go[1], b"g" * len(children))
            for child in children:
                os.waitpid(child, 0)
            for end in (*ready, *go):
                os.close(end)
            outcomes = Counter(path.read_text() for path in Path().glob("racer-*"))
            assert outcomes == Counter({"completed": 1, "RESUME_CONFLICT": processes - 1}), outcomes
            assert Path("made").read_text() == "made\n"
        finally:
            os.chdir(before)


def _signaller(ready: tuple[int, int], go: tuple[int, int]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.write(ready[1], b"r")
        os.read(go[0], 1)
        with suppress(RunUnknown):  # the run has ended
            for at in range(20):
                run_store().add(RUN, signal_line("Some.Event", at))
    finally:
        os._exit(0)


def _racer(program: Any, ready: tuple[int, int], go: tuple[int, int], at: int) -> int:
    child = os.fork()
    if child:
        return child

    def make(*_: Any) -> str:
        with open("made", "a") as file:
            file.write("made\n")
        return "made"

    try:
        world = World(tool=make)
        os.write(ready[1], b"r")
        os.read(go[0], 1)
        try:
            outcome = go_on(program, RUN, world, Given("yes")).status
        except (ResumeError, RecordingError) as refused:
            outcome = refused.code
        except BaseException as fault:
            outcome = repr(fault)
        Path(f"racer-{at}").write_text(outcome)
    finally:
        os._exit(0)
