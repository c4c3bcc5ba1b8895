"""Runs whose process dies, at a write, a sync, a rename or an effect of one's choice, and that then are resumed.

Each leg of a run is a process of its own, forked from this one. What reaches the world (requests, effects, what is
published) is written to a log outside, by which it is judged what happened: no recorded answer may be asked for
again, no effect may happen twice without a person's word, none may be lost, and the end must be that of a run that did
not die. A person answers for calls of unknown outcome, by what the log says.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from halo_lang.app.kept import read_journal
from halo_lang.boundary.call import AGENT, TOOL, Answer, Call, ToolUse
from halo_lang.boundary.question import canonical, question
from halo_lang.boundary.recording import RecordingError
from halo_lang.cli.keep import RUNS, run_store
from halo_lang.doors.stores import RunUnknown
from kept_runs import Given, Watching, World, answer_for, begin, checked, end_of, go_on, replayed
from recorded import RUN

PROGRAM = """\
tool Files : Workspace("./notes", write: true)
agent A [openai/gpt-4o, max_steps: 3]
  equips Files
pipeline P(x: Any) -> Result:
  x
    |> A.plan("Plan.") as plan
    |> Files.write(path: "1", content: "{{plan}}")
    |* { Out(2), Out(3), A.think("Think."), Files.read(path: "r") }
    |> A.work("Work.", tools: [Files])
    |! yield("Go?") as go
    |* each(i in [6, 7], concurrency: 2) => Files.write(path: "{{i}}", content: "x")
    ~> listen(Some.Event) as got
    |> System.Publish("published")
    |> A.last("Last.", got)
pipeline Out(n: Number) -> Result:
  n
    |> Files.write(path: "{{n}}", content: "x")
    |> System.Print("written")
"""
EFFECTS = ("1", "2", "3", "4", "5", "6", "7", "published")
"""What must have happened once in the end: the files that were written, and what was published."""

DIED = 137


class Crash(NamedTuple):
    """Where a process dies: at its so-and-so-many-th operation, `before`, `after` or in the middle (`half`) of it. With
    `power` what was not synced is lost, but for a part as chance has it."""

    at: int
    how: str
    power: bool = False
    chance: int = 0


class Operations:
    """Counts the operations of a process, and lets it die at one of them."""

    def __init__(self, crash: Crash | None) -> None:
        self.count = 0
        self._crash = crash
        self._synced: dict[int, int] = {}
        self._write, self._fsync = os.write, os.fsync
        os.write = self._operation(os.write)
        os.fsync = self._operation(self._sync)
        for name in ("rename", "unlink", "ftruncate", "mkdir"):
            setattr(os, name, self._operation(getattr(os, name)))

    def _sync(self, handle: int) -> None:
        self._fsync(handle)
        found = os.fstat(handle)
        self._synced[found.st_ino] = found.st_size

    def _operation(self, do: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            if not str(sys._getframe(1).f_globals.get("__name__")).startswith("halo_lang."):
                return do(*given)
            self.step("before")
            crash = self._crash
            if crash is not None and crash.at == self.count and crash.how == "half" and do is self._write:
                do(given[0], given[1][: len(given[1]) // 2])
                self.die()
            done = do(*given)
            self.step("after")
            return done

        return counted

    def step(self, when: str) -> None:
        """One operation, before and after it: here the process may die."""
        if when == "before":
            self.count += 1
        crash = self._crash
        if (
            crash is not None
            and crash.at == self.count
            and (crash.how == when or (when == "after" and crash.how == "half"))
        ):
            self.die()

    def die(self) -> None:
        if self._crash is not None and self._crash.power:
            self._lose_what_was_not_synced(Random(self._crash.chance))
        os._exit(DIED)

    def _lose_what_was_not_synced(self, chance: Random) -> None:
        path = os.path.join(RUNS, f"{RUN}.jsonl")
        try:
            found = os.stat(path)
        except FileNotFoundError:
            return
        synced = self._synced.get(found.st_ino)
        if synced is not None and synced < found.st_size:
            os.truncate(path, chance.randint(synced, found.st_size))


class Outside(World):
    """The world of one process; what reaches it stands in the log, whoever dies."""

    def __init__(self, operations: Operations, log: str, chance: Random | None) -> None:
        super().__init__(self._model, self._method)
        self._operations = operations
        self._log = log
        self._chance = chance

    def note(self, what: str, key: str) -> None:
        handle = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._operations._write(handle, (json.dumps([what, key]) + "\n").encode())
        os.close(handle)

    async def _wait(self) -> None:
        if self._chance is not None:
            from asyncio import sleep

            await sleep(self._chance.choice((0, 0.1, 1)))

    async def _model(self, call: Call) -> Answer:
        assert call.request is not None
        self.note("asked", f"{call.target} {call.scope} {question(call)}")
        await self._wait()
        if call.target == "A.work" and call.request.messages[-1].role != "tool":
            wanted = (
                ("Files_read", {"path": "r2"}),
                *(("Files_write", {"path": n, "content": "x"}) for n in ("4", "5")),
            )
            return Answer("", tool_uses=tuple(ToolUse(f"c{at}", *one) for at, one in enumerate(wanted)), cost=5)
        return Answer(f"said by {call.target}", cost=7)

    async def _method(self, target: str, args: Mapping[str, Any]) -> Any:
        await self._wait()
        if target == "Files.write":
            self.effect(str(args["path"]))
            await self._wait()
            return {"path": args["path"]}
        self.note("read", str(args["path"]))
        return "alpha"

    def effect(self, key: str) -> None:
        """An effect: the process may die before it, and after it."""
        self._operations.step("before")
        self.note("effect", key)
        self._operations.step("after")


class Publishing(Watching):
    def __init__(self, outside: Outside) -> None:
        super().__init__()
        self._outside = outside

    def published(self, value: Any) -> None:
        self._outside.effect(str(value))


class Ended(NamedTuple):
    """What a leg came to: whether its process died, its end in the form of `end_of`, and what it printed."""

    died: bool
    end: dict[str, Any]
    operations: int
    shown: list[Any]


def forked(work: Callable[[Operations], dict[str, Any]], crash: Crash | None) -> Ended:
    """Does something in a process of its own, which may die."""
    path = os.path.abspath("leg.json")
    if os.path.exists(path):
        os.unlink(path)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            operations = Operations(crash)
            done = work(operations)
            with open(path, "w") as file:
                json.dump({**done, "operations": operations.count}, file)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == DIED:
        return Ended(True, {}, 0, [])
    assert code == 0, "the process failed otherwise than by dying"
    with open(path) as file:
        found = json.load(file)
    return Ended(False, found["end"], found["operations"], found["shown"])


class CrashedRun:
    """One run, from its beginning to its end, however often its process dies."""

    def __init__(self, *, checkpoint: bool = True, seed: int | None = None) -> None:
        self._program = checked(PROGRAM)
        self._checkpoint = checkpoint
        self._seed = seed
        self._log = os.path.abspath("outside.log")
        self.died = 0

    def log(self, what: str) -> Counter[str]:
        """What reached the world, counted."""
        if not os.path.exists(self._log):
            return Counter()
        with open(self._log) as file:
            return Counter(key for kind, key in map(json.loads, file) if kind == what)

    def begun(self, crash: Crash | None) -> Ended:
        def work(operations: Operations) -> dict[str, Any]:
            outside = self._outside(operations)
            watcher = Publishing(outside)
            result = begin(self._program, outside, run_id=RUN, checkpoint=self._checkpoint, watcher=watcher)
            return {"end": end_of(result), "shown": watcher.shown}

        return self._leg(work, crash)

    def resumed(self, crash: Crash | None, *given: Given) -> Ended:
        def work(operations: Operations) -> dict[str, Any]:
            outside = self._outside(operations)
            watcher = Publishing(outside)
            result = go_on(self._program, RUN, outside, *given, watcher=watcher)
            return {"end": end_of(result), "shown": watcher.shown}

        return self._leg(work, crash)

    def _outside(self, operations: Operations) -> Outside:
        chance = None if self._seed is None else Random(self._seed * 31 + self.died)
        return Outside(operations, self._log, chance)

    def _leg(self, work: Callable[[Operations], dict[str, Any]], crash: Crash | None) -> Ended:
        ended = forked(work, crash)
        self.died += ended.died
        return ended

    def to_the_end(self, crashes: list[Crash]) -> dict[str, Any] | None:
        """Begins the run and resumes it until it has ended; each leg dies by the next of the crashes. Gives its end,
        None where the last process died when all was done but telling it."""
        left = list(crashes)
        leg = self.begun(_next(left))
        while True:
            if not leg.died and leg.end["status"] != "paused":
                return leg.end
            kept = _journal()
            if kept is None:
                assert leg.died, "a run that has not ended is kept"
                if self.log("asked"):
                    assert any(key.startswith("A.last") for key in self.log("asked")), "what was begun is kept"
                    return None
                assert not self.log("effect")
                _forget_what_was_half_made()
                leg = self.begun(_next(left))
                continue
            recorded = _recorded_requests()
            asked = self.log("asked")
            waits = leg.end["waits"] if not leg.died else []
            leg = self.resumed(_next(left), *self._answers(waits))
            again = self.log("asked") - asked
            assert not set(again) & recorded, "a recorded answer was asked for again"

    def _answers(self, waits: list[dict[str, Any]]) -> list[Given]:
        """A person's answers: what is unknown is looked up in the log."""
        given = []
        for wait in waits:
            if wait["kind"] == "outcome":
                key = str(wait["args"].get("path", wait["args"].get("value")))
                happened = self.log("effect")[key]
                value = None if wait["target"] == "System.Publish" else {"path": key}
                given.append(Given("done", value, wait=wait["id"]) if happened else Given("again", wait=wait["id"]))
            elif wait["kind"] == "listen":
                given.append(Given("event", {"n": 1}, wait["target"], wait["id"]))
            else:
                given.append(answer_for(wait))
        return given


def _next(crashes: list[Crash]) -> Crash | None:
    return crashes.pop(0) if crashes else None


def _journal() -> Any:
    try:
        return read_journal(run_store().peek(RUN))
    except (RunUnknown, RecordingError):
        return None


def _forget_what_was_half_made() -> None:
    """The run begins anew, here under the same id."""
    half_made = os.path.join(RUNS, f"{RUN}.jsonl.new")
    if os.path.exists(half_made):
        os.unlink(half_made)


def _recorded_requests() -> set[str]:
    """The requests that have an answer in the journal, as the log names them."""
    found = set()
    for data in run_store().peek(RUN):
        line = json.loads(data) if data.endswith(b"\n") else {}
        if line.get("type") == "call" and line["kind"] == AGENT:
            found.add(f"{line['target']} {tuple(line['scope'])} {line['asked']}")
    return found


def without_names(end: dict[str, Any]) -> dict[str, Any]:
    """The end of a run without what differs between two that ended alike."""
    return {name: value for name, value in end.items() if name not in ("waits",)}


def survives(crashes: list[Crash], *, checkpoint: bool = True, seed: int | None = None) -> int:
    """Runs with these crashes, one a leg, and holds what became of it to what becomes of a run that does not die. Gives
    how often its process died. Raises `AssertionError`."""
    wanted = _undisturbed(checkpoint)
    before = os.getcwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run = CrashedRun(checkpoint=checkpoint, seed=seed)
            end = run.to_the_end(crashes if checkpoint else [_NEVER, *crashes])
            assert end is None or without_names(end) == without_names(wanted)
            assert run.log("effect") == Counter(EFFECTS)
            assert run_store().ids() == []
            if not checkpoint and end is not None:
                again, comparison = replayed(PROGRAM, RUN)
                assert (comparison.same, comparison.notes) == (True, ())
                assert without_names(json.loads(json.dumps(end_of(again)))) == without_names(end)
            return run.died
        finally:
            os.chdir(before)


_NEVER = Crash(-1, "before")
_ends: dict[bool, dict[str, Any]] = {}


def _undisturbed(checkpoint: bool) -> dict[str, Any]:
    """The end of a run whose process never dies."""
    if checkpoint not in _ends:
        before = os.getcwd()
        with TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                end = CrashedRun(checkpoint=checkpoint).to_the_end([])
                assert end is not None
                _ends[checkpoint] = end
            finally:
                os.chdir(before)
    return _ends[checkpoint]


def operations_of_legs(*, checkpoint: bool = True) -> list[int]:
    """How many operations each leg of a run has that does not die."""
    before, counts = os.getcwd(), []
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run = CrashedRun(checkpoint=checkpoint)
            leg = run.begun(None)
            counts.append(leg.operations)
            while leg.end["status"] == "paused":
                leg = run.resumed(None, *run._answers(leg.end["waits"]))
                counts.append(leg.operations)
        finally:
            os.chdir(before)
    return counts


__all__ = ["AGENT", "TOOL", "Crash", "canonical", "operations_of_legs", "survives"]
