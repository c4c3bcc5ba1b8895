"""Keeping: what is written while a run goes, and what becomes of a run when nothing can be written (runs.md §3, §5)."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from halo_lang.app.project import Project
from halo_lang.app.resuming import signal_line
from halo_lang.boundary.call import TOOL, Answer, Call, ToolUse
from halo_lang.boundary.host import ToolError
from halo_lang.boundary.recording import encoded, finish_line
from halo_lang.cli.keep import run_store
from halo_lang.doors.folder import AppendFile, KeepingError
from halo_lang.doors.keeping import Keeper, redacted_line
from halo_lang.doors.stores import MemoryRunStore
from kept_runs import KEYS, Given, Watching, World, begin, end_of, go_on, recording_of, replayed
from recorded import RUN, call, start

PROGRAM = """\
tool Files : Workspace(".", write: true)
agent A [openai/gpt-4o]
pipeline P(x: Any) -> Result:
  x
    |> A.one("Say {{x}}.") as one
    |> Files.write(path: "a.md", content: "{{one}}")
    |> A.two("More.")
"""
PAUSES = PROGRAM + '    |! yield("Go on?")\n    |> A.three("Last.")\n'
FAN = """\
agent A [openai/gpt-4o]
pipeline P(x: Any) -> Result:
  [1, 2, 3, 4]
    |* each(i in context.current) => A.say("Say {{i}}.")
"""


@pytest.fixture(autouse=True)
def working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(run_id: str, folder: str = "recordings") -> list[dict[str, Any]]:
    text = Path(".halo", folder, f"{run_id}.jsonl").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def everything() -> bytes:
    """All that is kept, as bytes."""
    return b"".join(path.read_bytes() for path in Path(".halo").rglob("*") if path.is_file())


# What is kept, where ---------------------------------------------------------------------------------------------


def test_a_line_is_written_before_its_answer_is_handed_in() -> None:
    seen: list[int] = []
    world = World(agent=lambda asked: seen.append(len(lines(RUN))) or "x", tool=lambda *_: seen.append(len(lines(RUN))))
    begin(PROGRAM, world, run_id=RUN)
    assert seen == [1, 2, 3]  # a stage begins once the line of the one before it is there
    assert [line["type"] for line in lines(RUN)] == ["start", "call", "call", "call", "finish"]
    assert lines(RUN)[-1] == {"type": "finish", "status": "completed", "output": "x"}


def test_without_a_recording_nothing_is_on_the_disk() -> None:
    result = begin(PROGRAM, World(), no_record=True)
    assert result.status == "completed"
    assert not Path(".halo").exists()


def test_without_a_recording_a_pause_is_kept_all_the_same_until_the_run_ends() -> None:
    world = World()
    paused = begin(PAUSES, world, no_record=True)
    assert paused.status == "paused"
    assert not Path(".halo/recordings").exists()
    assert [line["type"] for line in lines(paused.run_id, "runs")] == ["start", *["call"] * 3, "finish"]
    ended = go_on(PAUSES, paused.run_id, world, Given("yes"))
    assert (ended.status, ended.output) == ("completed", "said by A.three")
    assert world.targets() == ["A.one", "Files.write", "A.two", "A.three"]
    assert list(Path(".halo").rglob("*.jsonl")) == []


def test_a_checkpointed_run_has_a_journal_and_no_recording() -> None:
    journals: list[list[dict[str, Any]]] = []
    world = World(agent=lambda _: journals.append(lines(RUN, "runs")) or "x")
    begin(PROGRAM, world, run_id=RUN, checkpoint=True)
    assert not Path(".halo/recordings").exists()
    assert [line["type"] for line in journals[-1]] == ["start", "call", "begun", "call"]
    assert journals[-1][2] | {"args": None} == {"type": "begun", "target": "Files.write", "scope": [], "args": None}
    assert list(Path(".halo/runs").iterdir()) == []


def test_the_number_of_recordings_is_the_projects() -> None:
    world = World(project=Project(None, {}, {}, keep=2))
    ids = [begin(PROGRAM, world).run_id for _ in range(4)]
    assert {path.stem for path in Path(".halo/recordings").iterdir()} == set(ids[-2:])


def test_a_paused_run_keeps_its_recording_among_however_many() -> None:
    world = World(project=Project(None, {}, {}, keep=1))
    paused = begin(PAUSES, world).run_id
    for _ in range(3):
        begin(PROGRAM, world)
    assert {path.stem for path in Path(".halo/recordings").iterdir()} > {paused}
    go_on(PAUSES, paused, world, Given("yes"))
    last = begin(PROGRAM, world).run_id
    assert {path.stem for path in Path(".halo/recordings").iterdir()} == {last}


def test_answers_that_came_too_late_stand_apart_and_count() -> None:
    async def agent(asked: Call) -> Answer:
        await asyncio.sleep(0.001 if asked.scope in ((0,), (1,)) else 0)
        if asked.scope == (0,):
            return Answer(None, Answer(None).error or _failure(), cost=5)
        return Answer("x", cost=7)

    result = begin(FAN, World(agent), run_id=RUN)
    assert result.status == "failed"
    late = [line for line in lines(RUN) if line.get("late")]
    assert [line["scope"] for line in late] == [[1]]
    assert result.account.cost == 5 + 7 * 3
    again, comparison = replayed(FAN, RUN)
    assert comparison.same
    assert end_of(again) == end_of(result)


def _failure() -> Any:
    from halo_lang.boundary.call import Failure

    return Failure("MODEL_ERROR", "no")


# Where nothing can be written --------------------------------------------------------------------------------------


class Disk:
    """A disk that is full after so many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, handle: int, data: bytes) -> int:
        if self.room is None or not stat.S_ISREG(os.fstat(handle).st_mode):
            return self._write(handle, data)
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(handle, data[: self.room])
        self.room -= written
        return written


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.mark.parametrize("room", [0, 1, 100, 200, 300])
def test_a_full_disk_ends_a_run_with_a_clear_error_and_whole_lines(disk: Disk, room: int) -> None:
    def model(asked: Call) -> str:
        disk.room = room if disk.room is None and asked.target == "A.one" else disk.room
        return "x" * 90

    world = World(model)
    result = begin(PROGRAM, world, run_id=RUN)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.code == "CONFIG"
    assert result.error.message.startswith("the run cannot go on: ")
    assert "No space left on device" in result.error.message
    kept = lines(RUN)  # each is whole
    assert len(kept) < 5
    disk.room = None
    assert recording_of(RUN).finish is None
    again, comparison = replayed(PROGRAM, RUN)
    assert (again.status, comparison.same) == ("cancelled", True)


def test_nothing_runs_where_not_even_the_first_line_can_be_written(disk: Disk) -> None:
    disk.room = 10
    world = World()
    with pytest.raises(KeepingError, match="No space left"):
        begin(PROGRAM, world, run_id=RUN)
    assert world.made == []
    assert list(Path(".halo").rglob("*.jsonl")) == []


def test_a_checkpointed_run_whose_disk_is_full_is_kept_and_goes_on(disk: Disk) -> None:
    def tool(target: str, args: Mapping[str, Any]) -> str:
        disk.room = 20
        return "written"

    world = World(tool=tool)
    result = begin(PROGRAM, world, run_id=RUN, checkpoint=True)
    assert result.error is not None
    assert "No space left on device" in result.error.message
    assert result.error.message.endswith("can be resumed")
    disk.room = None
    assert [line["type"] for line in lines(RUN, "runs")] == ["start", "call", "begun"]
    paused = go_on(PROGRAM, RUN, world)
    (wait,) = paused.waits
    assert (wait["kind"], wait["code"], wait["target"]) == ("outcome", "UNKNOWN_OUTCOME", "Files.write")
    ended = go_on(PROGRAM, RUN, world, Given("done", "written"))
    assert ended.output == "said by A.two"
    assert world.targets() == ["A.one", "Files.write", "A.two"]


def test_a_pause_that_cannot_be_kept_is_a_failure_that_says_so(disk: Disk) -> None:
    def model(asked: Call) -> str:
        if asked.target == "A.two":
            disk.room = 700
        return "x"

    result = begin(PAUSES, World(model), run_id=RUN)
    assert result.error is not None
    assert result.error.message.startswith("how the run ended cannot be kept: ")
    assert not any(Path(".halo/runs").iterdir())


def test_a_disk_that_fails_to_sync_ends_a_checkpointed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, syncs = os.fsync, 0

    def failing(handle: int) -> None:
        nonlocal syncs
        syncs += 1
        if syncs == 4:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    world = World()
    result = begin(PROGRAM, world, run_id=RUN, checkpoint=True)
    assert result.error is not None
    assert "Input/output error" in result.error.message
    assert Path(f".halo/runs/{RUN}.jsonl").exists()


def test_once_something_could_not_be_written_nothing_is(working: Path) -> None:
    file = AppendFile(str(working / "f"), new=True)
    keeper = Keeper(file)
    keeper.write(start())
    file.close()
    for attempt in (
        lambda: keeper.write(start()),
        lambda: keeper.answered(call(), Answer("x")),
        lambda: keeper.finish("completed", 1, None),
    ):
        with pytest.raises(KeepingError, match="cannot be written"):
            attempt()
    assert keeper.is_broken
    assert len((working / "f").read_bytes().splitlines()) == 1


def test_a_value_that_nests_too_deep_to_be_written_ends_the_run() -> None:
    program = (
        """\
pipeline P(x: Any) -> Result:
  x
    |> Deeper(0)
    |> System.Publish()
pipeline Deeper(x: Any) -> Result:
  [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]
"""
        + "    |> Wrap(context.current)\n" * 60
        + "pipeline Wrap(x: Any) -> Result:\n  [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[x]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n"
    )
    result = begin(program, World(), run_id=RUN)
    assert result.status == "failed"
    assert result.error is not None
    assert "nests too deep" in result.error.message
    assert [line["type"] for line in lines(RUN)] in (["start"], ["start", "finish"])


# Syncs -----------------------------------------------------------------------------------------------------------


class SlowJournal:
    """A journal that counts its syncs, and lets the event loop go on in them."""

    def __init__(self) -> None:
        self.data = b""
        self.synced = b""
        self.syncs = 0

    def append(self, data: bytes) -> None:
        self.data += data

    def sync(self) -> None:
        self.syncs += 1
        self.synced = self.data


async def test_all_who_wait_for_a_sync_share_the_next_one() -> None:
    journal = SlowJournal()
    keeper = Keeper(None, journal, durable=True)  # type: ignore[arg-type]

    async def note(at: int) -> None:
        keeper.note({"type": "begun", "at": at})
        await keeper.sync()
        assert f'"at":{at}}}'.encode() in journal.synced

    await asyncio.gather(*(note(at) for at in range(200)))
    assert journal.syncs <= 3


async def test_a_keeper_that_is_not_durable_never_syncs() -> None:
    journal = SlowJournal()
    keeper = Keeper(None, journal)  # type: ignore[arg-type]
    keeper.note({"type": "begun"})
    await keeper.sync()
    assert journal.syncs == 0


def test_answers_that_arrive_together_share_a_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, syncs = os.fsync, 0

    def counting(handle: int) -> None:
        nonlocal syncs
        syncs += 1
        fsync(handle)

    monkeypatch.setattr(os, "fsync", counting)
    program = FAN.replace("[1, 2, 3, 4]", "x").replace("in context.current", "in context.current, concurrency: 64")
    begin(program, World(), {"x": list(range(64))}, checkpoint=True)
    assert syncs < 12


# Redaction and secrets ---------------------------------------------------------------------------------------------

REDACTED = """\
policy Hide : Redact(email, "T-\\\\d+")
tool Files : Workspace(".", write: true)
agent A [openai/gpt-4o]
  requires Hide
pipeline P(x: Any) -> Result:
  x
    |> A.one("Write to {{x}}.") as one
    |> Files.write(path: "a.md", content: "{{one}} b@c.org")
    |! yield("Send to d@e.org?", [x], channel: "T-123456")
    |> A.two("More for f@g.org.")
"""
ADDRESSES = (b"a@b.org", b"b@c.org", b"d@e.org", b"g@h.org", b"T-7")


def test_a_redacted_recording_holds_nothing_that_the_rules_match_and_its_run_can_be_resumed() -> None:
    world = World(lambda asked: "for a@b.org, case T-7", lambda *_: {"to": "b@c.org", "b@c.org": 1})
    paused = begin(REDACTED, world, {"x": "a@b.org"}, run_id=RUN, redact_recording=True)
    recording = Path(f".halo/recordings/{RUN}.jsonl")
    assert not [address for address in ADDRESSES if address in recording.read_bytes()]
    assert lines(RUN)[2]["args"] == {"path": "a.md", "content": "for [email], case [redacted] [email]"}
    assert paused.waits[0]["message"] == "Send to d@e.org?"
    ended = go_on(REDACTED, RUN, world, Given("answer", {"approved": True, "to": "g@h.org"}))
    assert ended.status == "completed"
    assert not [address for address in ADDRESSES if address in recording.read_bytes()]
    kept = lines(RUN)
    assert [line["type"] for line in kept] == ["start", "call", "call", "finish", "resume", "call", "call", "finish"]
    assert kept[5]["value"] == {"approved": True, "to": "[email]"}
    assert [line.get("target") for line in kept if line["type"] == "call"] == ["A.one", "Files.write", "yield", "A.two"]


def test_a_redacted_line_keeps_what_a_replay_goes_by() -> None:
    asked = call(TOOL, "Files.read", {"path": "x"}, id="x", scope=(1,))
    uses = (ToolUse("x", "x", {"x": "x"}), ToolUse("x", "Files_read", None, "x"))
    line = json.loads(encoded(redacted_line(_line(asked, uses), lambda text: text.replace("x", "?"))))
    assert (line["target"], line["call"], line["scope"]) == ("Files.read", "x", [1])
    assert line["args"] == {"path": "?"}
    assert line["toolCalls"] == [
        {"id": "x", "name": "x", "args": {"?": "?"}},
        {"id": "x", "name": "Files_read", "raw": "?"},
    ]
    failed = redacted_line({"error": {"code": "x", "message": "x"}}, lambda text: text.replace("x", "?"))
    assert failed == {"error": {"code": "x", "message": "?"}}
    paused = redacted_line(
        finish_line("paused", None, None, [{"id": "x", "kind": "x", "message": "x", "args": {"a": "x"}}]),
        lambda text: text.replace("x", "?"),
    )
    assert paused["waits"] == [{"id": "x", "kind": "x", "message": "?", "args": {"a": "?"}}]


def _line(asked: Call, uses: tuple[ToolUse, ...]) -> dict[str, Any]:
    from halo_lang.boundary.recording import call_line

    return call_line(asked, Answer("x", tool_uses=uses))


SECRET = KEYS["SLACK_BOT_TOKEN"]
LEAKS = """\
tool Chat : Slack(Env.SLACK_BOT_TOKEN, channel: "#x")
tool Files : Workspace(".", write: true)
agent A [openai/gpt-4o]
pipeline P(x: Any) -> Result:
  x
    |> A.one("Say {{x}}.") as one
    |> Files.write(path: "a.md", content: "{{one}} {{x}}")
    |! yield("Send {{x}} {{one}}?", [x])
    ~> listen(Some.Event)
    |> Chat.post(text: "{{x}} {{one}} {{context.data.yield.text}}")
"""


@pytest.mark.parametrize("how", [{}, {"no_record": True}, {"checkpoint": True}, {"redact_recording": True}])
def test_no_secret_is_in_any_file(how: dict[str, Any]) -> None:
    def tool(target: str, args: Mapping[str, Any]) -> Any:
        if target == "Chat.post":
            raise ToolError(f"not with {SECRET}")
        return {"value": [SECRET, f"x{SECRET}y"], SECRET: 1}

    world = World(lambda _: f"the key is {SECRET} and {KEYS['OPENAI_API_KEY']}", tool)
    paused = begin(LEAKS, world, {"x": f"in {SECRET}"}, run_id=RUN, **how)
    first = everything()
    waiting = go_on(LEAKS, RUN, world, Given("answer", f"no: {SECRET}"))
    second = everything()
    failed = go_on(LEAKS, RUN, world, Given("event", {SECRET: [SECRET]}, "Some.Event"))
    assert (paused.status, waiting.status, failed.status) == ("paused", "paused", "failed")
    assert failed.error is not None
    assert failed.error.message == "not with [Env.SLACK_BOT_TOKEN]"
    for kept in (first, second, everything()):
        for secret in (SECRET, KEYS["OPENAI_API_KEY"]):
            assert secret.encode() not in kept
    assert b"[Env.SLACK_BOT_TOKEN]" in first
    if not how:
        again, comparison = replayed(LEAKS, RUN)
        assert comparison.same
        assert end_of(again) == end_of(failed)


UNUSED = """\
tool Chat : Slack(Env.SLACK_BOT_TOKEN, channel: "#x")
tool Files : Workspace(".", write: true)
pipeline P(x: Any) -> Result:
  x
    |> Files.read(path: ".env") as read
    ~> listen(Some.Event) as got
    |> System.Publish("{{read}} {{got}} {{x}}")
"""


@pytest.mark.parametrize("how", [{}, {"checkpoint": True}])
def test_secrets_that_the_run_does_not_use_and_in_events_that_were_sent_are_masked_too(how: dict[str, Any]) -> None:
    keys = KEYS["OPENAI_API_KEY"], SECRET
    world, watcher = World(lambda _: "", lambda *_: " ".join(keys)), Watching()
    begin(UNUSED, world, {"x": keys[0]}, run_id=RUN, **how)
    run_store().add(RUN, signal_line("Some.Event", {"by": keys[1]}))
    ended = go_on(UNUSED, RUN, world, watcher=watcher)
    masked = "[Env.OPENAI_API_KEY]", "[Env.SLACK_BOT_TOKEN]"
    assert ended.output == f'{" ".join(masked)} {{"by":"{masked[1]}"}} {masked[0]}'
    assert watcher.shown == [("published", ended.output)]
    for key in keys:
        assert key.encode() not in everything()


# In memory -------------------------------------------------------------------------------------------------------


def test_a_journal_in_memory_holds_the_lines_that_were_spooled() -> None:
    store = MemoryRunStore()
    keeper = Keeper(spools=True)
    keeper.write(start())
    keeper.answered(call(), Answer("a\r\x85\u2028b"))
    journal = store.create(RUN, keeper.spooled())
    assert list(journal.lines()) == list(keeper.spooled())
    journal.append(b"1\n2\n")
    assert len(list(journal.lines())) == 4
