"""The Python library (library.md): programs, runs, handlers, streams, stores, recordings; nothing printed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import uuid

import pytest

import halo_lang
from halo_lang import (
    FileRunStore,
    HaloError,
    HaloRuntime,
    MemoryRunStore,
    Printed,
    RunEnded,
    StageBegan,
    Tokens,
    load,
    loads,
)
from halo_lang.library.recordings import recorded_call
from halo_lang.replay import Recorder, read_recording, replay_mocks
from servers.scripted import ModelServer, Reply


def nested(levels: int) -> list:
    made: list = []
    for _ in range(levels):
        made = [made]
    return made


PROGRAM = """
tool Files : Workspace("./notes", write: true)
agent A [local/scripted]
pipeline Note(x: String) -> Result:
  x
    |> A.one("First of {{x}}.") as one
    |> Files.write(path: "a.md", content: "{{one}}")
    |! yield("Keep {{one}}?", [one]) as review
    |? (review.approved == true)
    |> System.Print("{{one}}, {{review.note}}")
"""

CHOOSING = """
policy Careful : ApproveEffects(write)
tool Files : Workspace("./notes", write: true)
agent A [local/scripted]
  equips Files
  requires Careful
pipeline Work(x: String) -> Result:
  x
    |> A.work("Work.", tools: [Files])
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "note.halo").write_text(PROGRAM)
    return load(tmp_path / "note.halo")


def test_every_public_name_is_there():
    for name in halo_lang.__all__:
        assert getattr(halo_lang, name) is not None
    with pytest.raises(AttributeError):
        _ = halo_lang.no_such_name


def test_importing_the_package_imports_nothing_that_costs():
    code = "import sys, halo_lang; print([m for m in ('asyncio', 'json', 'aiohttp') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_a_program_tells_its_parts(program):
    assert [tool.name for tool in program.tools] == ["Files"]
    assert program.stores == ()
    assert [agent.name for agent in program.agents] == ["A"]
    assert [pipeline.name for pipeline in program.pipelines] == ["Note"]


def test_errors_come_with_their_diagnostics(tmp_path):
    with pytest.raises(HaloError) as raised:
        loads("agent A [openai/gpt-4o]\npipeline P(x: String):\n  y\n    |> A.go()\n", path=str(tmp_path / "p.halo"))
    assert raised.value.code == "UNKNOWN_NAME"
    assert [d.code for d in raised.value.diagnostics] == ["UNKNOWN_NAME"]
    assert "p.halo:3:3" in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(HaloError, match=r"gone\.halo"):
        load(tmp_path / "gone.halo")


def test_a_plan_is_what_the_command_prints(program):
    plan = program.plan("Note")
    assert str(plan).startswith("Plan for Note\n")
    assert [call.target for call in plan.calls] == ["Files.write"]
    assert plan.max_cost is None
    assert plan.summary.unpriced == ("local/scripted",)
    with pytest.raises(HaloError, match="no pipeline `Nothing`"):
        program.plan("Nothing")


def test_a_plan_and_its_difference_are_shown_in_a_notebook_with_everything_escaped(tmp_path):
    before = loads('agent A [openai/gpt-4o]\npipeline P(x: String):\n  x\n    |> A.go("<b>")\n')
    after = loads('agent A [openai/gpt-4o]\npipeline P(x: String):\n  x\n    |? (x != "<b>")\n    |> A.go("<b>!")\n')
    assert "&lt;b&gt;" in after.plan()._repr_html_()
    changed = after.plan().difference(before.plan())
    assert changed.widened
    assert "worst-case model cost" in str(changed)
    assert "<pre" in changed._repr_html_()
    assert not after.plan().difference(after.plan())


async def test_a_run_a_pause_a_resume_and_one_recording_of_it_all(program, tmp_path, capfd):
    run_id, shown = str(uuid.uuid4()), []
    recorder = Recorder(tmp_path / ".halo" / "recordings", run_id)
    with ModelServer("hello") as server:
        runtime = HaloRuntime(
            recorder=recorder.record,
            environment=server.environment,
            run_store=FileRunStore(str(tmp_path / ".halo" / "runs")),
            on_print=shown.append,
        ).load(program)
        recorder.start("Note", {"x": "cats"})
        paused = await runtime.run("Note", {"x": "cats"}, run_id=run_id)
        assert (paused.status, paused.ok, paused.run_id) == ("paused", False, run_id)
        assert [(w["kind"], w["message"], w["attachments"]) for w in paused.waits] == [
            ("yield", "Keep hello?", ["hello"])
        ]
        ended = await runtime.resume(run_id, {"approved": True, "note": "fine"})
        assert len(server.bodies) == 1
    recorder.finish(status=ended.status, output=ended.output, error=ended.error)
    assert (ended.status, ended.ok, ended.output) == ("completed", True, "hello, fine")
    assert ended.calls == {"A.one": 1, "Files.write": 1}
    assert (ended.usage.input, ended.usage.output) == (100, 20)
    assert shown == ["hello, fine"]
    assert (tmp_path / "notes" / "a.md").read_text() == "hello"
    with pytest.raises(HaloError, match="RESUME_CONFLICT"):
        await runtime.resume(run_id, {"approved": True})

    recording = read_recording(tmp_path / ".halo" / "recordings", run_id)
    (tmp_path / "notes" / "a.md").unlink()
    tools = [tool.name for tool in (*program.tools, *program.stores)]
    again = (
        await HaloRuntime(environment={})
        .load(program)
        .mock_all({"yield": {"approved": False}, **replay_mocks(recording, tools=tools)})
        .run(recording.pipeline, recording.args)
    )
    assert (again.status, again.output) == (recording.status, recording.output)
    assert not (tmp_path / "notes" / "a.md").exists()
    assert capfd.readouterr() == ("", "")


async def test_mocks_of_a_recording_follow_the_rules_of_a_replay(tmp_path):
    run_id, asks = str(uuid.uuid4()), "agent A [mine/x]\npipeline P(x: Any) -> Result:\n  x\n    {}\n"
    fan = "|* each(i in x, concurrency: 100) => A.say({})"
    recorder = Recorder(tmp_path / "recordings", run_id)
    ids = list(range(2_000))
    runtime = HaloRuntime(recorder=recorder.record)
    runtime.register_model("mine", lambda request: f"said to {request.messages[0].parts}")
    recorder.start("P", {"x": ids})
    said = await runtime.load(loads(asks.format(fan.format("i")))).run(args={"x": ids})
    recorder.finish(status=said.status, output=said.output)
    recording = read_recording(tmp_path / "recordings", run_id)

    async def again(program):
        runtime = HaloRuntime(live=False).load(loads(program)).mock_all(replay_mocks(recording))
        return await runtime.run(recording.pipeline, recording.args)

    assert (await again(asks.format(fan.format("i")))).output == recording.output
    assert (await again(asks.format(fan.format('"{{i}} otherwise"')))).output == recording.output
    elsewhere = await again(asks.format("|> A.say(x)"))
    assert elsewhere.error is not None
    assert elsewhere.error.code == "REPLAY_MISMATCH"  # no place and no question of it was recorded


async def test_a_recorded_approval_is_for_its_arguments_alone(tmp_path):
    run_id = str(uuid.uuid4())
    approved = {"type": "call", "kind": "approval", "target": "Files.write", "scope": [], "value": {"approved": True}}
    recorder = Recorder(tmp_path / "recordings", run_id)
    recorder.start("P", {"x": "a"})
    recorder.record(recorded_call({**approved, "args": {"path": "a", "content": "k"}}))
    recorder.finish(status="failed")
    text = 'policy Careful : ApproveEffects(write)\ntool Files : Workspace("./notes", write: true)\n'
    text += "pipeline P(x: Any) -> Result requires Careful:\n  x\n"
    text += '    |> Files.write(path: "{{x}}", content: "k")\n'
    program = loads(text, path=str(tmp_path / "p.halo"))
    codes = []
    for path in ("b", "a"):
        runtime = HaloRuntime().load(program)
        runtime.mock_all(replay_mocks(read_recording(tmp_path / "recordings", run_id)))
        result = await runtime.run(args={"x": path})
        codes.append(result.error and result.error.code)
    assert codes == ["REPLAY_MISMATCH", None]
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["a"]


async def test_a_tool_that_the_recording_never_called_is_refused_if_it_is_named(program, tmp_path):
    run_id = str(uuid.uuid4())
    recorder = Recorder(tmp_path / ".halo" / "recordings", run_id)
    recorder.start("Note", {"x": "q"})
    recorder.finish(status="completed", output="q")
    recording = read_recording(tmp_path / ".halo" / "recordings", run_id)
    runtime = HaloRuntime(environment={}).load(program)
    runtime.mock_all({"A": "text", **replay_mocks(recording, tools=["Files"])})
    result = await runtime.run("Note", {"x": "q"})
    assert result.error is not None
    assert result.error.code == "REPLAY_MISMATCH"
    assert not (tmp_path / "notes").exists()


async def test_handlers_answer_plain_or_asynchronous(tmp_path):
    (tmp_path / "w.halo").write_text(CHOOSING)
    asked = []

    def approve(call, preview):
        asked.append((call.target, dict(call.args), "+k" in preview.difference.splitlines()))
        return {"approved": True, "args": {"path": "b.md", "content": "changed"}}

    call = Reply(call=[("Files_write", {"path": "a.md", "content": "k"})])
    with ModelServer(call, "done") as server:
        runtime = HaloRuntime(environment=server.environment, on_approval=approve).load(load(tmp_path / "w.halo"))
        result = await runtime.run(args={"x": "1"})
    assert result.output == "done"
    assert asked == [("Files.write", {"path": "a.md", "content": "k"}, True)]
    assert [p.name for p in (tmp_path / "notes").iterdir()] == ["b.md"]

    async def say(call):
        return "text, which approves nothing"

    halted = (
        await HaloRuntime(on_yield=say).load(loads(PROGRAM)).mock_all({"A": "a", "Files": None}).run(args={"x": "1"})
    )
    assert (halted.status, halted.context["data"]["review"]) == ("halted", {"text": "text, which approves nothing"})


async def test_a_handler_that_fails_approves_nothing(tmp_path):
    (tmp_path / "w.halo").write_text(CHOOSING)

    def broken(call, preview):
        raise RuntimeError("no")

    call = Reply(call=[("Files_write", {"path": "a.md", "content": "k"})])
    with ModelServer(call, "done") as server:
        runtime = HaloRuntime(environment=server.environment, on_approval=broken).load(load(tmp_path / "w.halo"))
        assert (await runtime.run(args={"x": "1"})).output == "done"
    assert not (tmp_path / "notes").exists()


NO_JSON = [float("nan"), {1}, [b"x"], {"a": object()}, 10**5000, nested(5000)]


@pytest.mark.parametrize("value", NO_JSON, ids=range(len(NO_JSON)))
async def test_what_is_no_json_is_refused_before_it_is_kept(tmp_path, value):
    program = loads('pipeline P(x: Any = 1) -> Result:\n  x\n    |! yield("Go?") as a\n    |? (a.approved != false)\n')
    store, run_id = FileRunStore(tmp_path / "runs"), str(uuid.uuid4())
    runtime = HaloRuntime(run_store=store).load(program)
    with pytest.raises(HaloError, match="ARGUMENT_TYPE"):
        await runtime.run("P", {"x": value})
    with pytest.raises(HaloError, match="ARGUMENT_TYPE"):
        runtime.mock_all({"yield": value})
    await runtime.run(run_id=run_id)
    before = (tmp_path / "runs" / f"{run_id}.jsonl").read_bytes()
    with pytest.raises(HaloError, match="ARGUMENT_TYPE"):
        runtime.signal(run_id, "Some.Event", value)
    with pytest.raises(HaloError, match="ARGUMENT_TYPE"):
        await runtime.resume(run_id, value)
    assert (tmp_path / "runs" / f"{run_id}.jsonl").read_bytes() == before
    assert (await runtime.resume(run_id, {"approved": True})).status == "completed"
    asked = HaloRuntime(on_yield=lambda call: value).load(program)
    assert (await asked.run()).status == "halted"  # a handler that fails approves nothing


async def test_a_stream_gives_events_and_ends_with_the_result(program):
    runtime = HaloRuntime().load(program).mock_all({"A": "one", "Files": None, "yield": True})
    events = [event async for event in runtime.stream(args={"x": "1"})]
    assert isinstance(events[0], StageBegan)
    assert [event.value for event in events if isinstance(event, Printed)] == ["one, "]
    assert isinstance(events[-1], RunEnded)
    assert events[-1].result.status == "completed"


async def test_a_stream_gives_tokens_and_can_be_left(program):
    with ModelServer(Reply("slow words " * 200, held=True)) as server:
        runtime = HaloRuntime(environment=server.environment).load(program)
        async for event in runtime.stream(args={"x": "1"}):
            if isinstance(event, Tokens):
                break
        for _ in range(500):  # the run is stopped in the background
            if len(asyncio.all_tasks()) == 1:
                break
            await asyncio.sleep(0.01)
        assert len(asyncio.all_tasks()) == 1


async def test_cancel_stops_a_run(program):
    with ModelServer(Reply(hang=True)) as server:
        runtime = HaloRuntime(environment=server.environment).load(program)
        run_id = str(uuid.uuid4())
        run = asyncio.ensure_future(runtime.run(args={"x": "1"}, run_id=run_id))
        assert await asyncio.to_thread(server.asked.acquire, timeout=10)
        assert runtime.cancel(run_id)
        run.cancel()
        assert (await run).status == "cancelled"
        assert not runtime.cancel(run_id)


async def test_a_cancelled_task_leaves_nothing_behind(program):
    with ModelServer(Reply(hang=True)) as server:
        run = asyncio.ensure_future(HaloRuntime(environment=server.environment).load(program).run(args={"x": "1"}))
        assert await asyncio.to_thread(server.asked.acquire, timeout=10)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert await asyncio.to_thread(server.gone.acquire, timeout=10)
    assert len(asyncio.all_tasks()) == 1


async def test_signals_wait_for_their_listen_and_are_delivered_once_each_in_order():
    program = loads(
        "pipeline P(x: String):\n  x\n    |! yield(x)\n    ~> listen(A.b) as first\n    ~> listen(A.b) as second\n"
        '    |> System.Print("{{first}} {{second}}")\n'
    )
    store = MemoryRunStore()
    runtime = HaloRuntime(run_store=store).load(program)
    run_id = str(uuid.uuid4())
    assert (await runtime.run(args={"x": "1"}, run_id=run_id)).status == "paused"
    runtime.signal(run_id, "A.b", "early")
    waiting = await runtime.resume(run_id, True)
    assert [w["target"] for w in waiting.waits] == ["A.b"]
    runtime.signal(run_id, "A.b", "late")
    runtime.signal(run_id, "A.b", "too late")
    assert (await runtime.resume(run_id)).output == "early late"
    assert store.ids() == []
    with pytest.raises(HaloError):
        runtime.signal(run_id, "A.b", "gone")


def test_run_sync_works_in_plain_code(program):
    runtime = HaloRuntime().load(program).mock_all({"A": "a", "Files": None, "yield": True})
    assert runtime.run_sync("Note", {"x": "1"}).status == "completed"


async def test_run_sync_works_where_a_loop_runs_already(program):
    runtime = HaloRuntime().load(program).mock_all({"A": "a", "Files": None, "yield": True})
    assert runtime.run_sync("Note", {"x": "1"}).status == "completed"


async def test_several_runtimes_run_at_once(program):
    runtimes = [HaloRuntime().load(program).mock_all({"A": f"a{n}", "Files": None, "yield": True}) for n in range(20)]
    results = await asyncio.gather(*(runtime.run(args={"x": "1"}) for runtime in runtimes))
    assert [result.context["data"]["one"] for result in results] == [f"a{n}" for n in range(20)]


@pytest.mark.parametrize(
    ("args", "code"),
    [({}, "ARGUMENT_TYPE"), ({"x": "1", "y": 2}, "UNKNOWN_ARGUMENT")],
)
async def test_wrong_arguments_are_refused_before_anything_runs(program, args, code):
    runtime = HaloRuntime().load(program).mock_all({"A": "a", "Files": None, "yield": True})
    with pytest.raises(HaloError) as raised:
        await runtime.run("Note", args)
    assert raised.value.code == code


async def test_arguments_in_the_place_of_the_pipeline_are_an_error_of_the_library(program):
    with pytest.raises(HaloError, match=r"there is no pipeline `{'task': 'x'}`; there are: ") as raised:
        await HaloRuntime().load(program).run({"task": "x"})
    assert raised.value.code == "UNKNOWN_NAME"


async def test_a_missing_key_is_named_before_anything_runs():
    runtime = HaloRuntime(environment={}).load(
        loads("agent A [openai/gpt-4o]\npipeline P(x: String):\n  x\n    |> A.a()\n")
    )
    with pytest.raises(HaloError, match="OPENAI_API_KEY"):
        await runtime.run(args={"x": "1"})


async def test_without_live_calls_nothing_that_is_not_mocked_is_called(program):
    result = await HaloRuntime(live=False, environment={}).load(program).run(args={"x": "1"})
    assert result.error is not None
    assert (result.error.code, result.error.stage) == ("CONFIG", "1")


def test_the_pytest_plugin_replays_a_recording_and_refuses_live_calls(pytester, program, tmp_path):
    run_id = str(uuid.uuid4())
    recorder = Recorder(pytester.path / "kept", run_id)
    recorder.start("Note", {"x": "cats"})
    runtime = HaloRuntime(recorder=recorder.record).load(program)
    result = runtime.mock_all({"Files": None, "yield": True}).mock_all({"A": "hello"}).run_sync("Note", {"x": "cats"})
    recorder.finish(status=result.status, output=result.output)
    pytester.makefile(".halo", note=PROGRAM)
    pytester.makepyfile(
        f"""
        import pytest
        from halo_lang import load

        @pytest.mark.halo_replay("kept/{run_id}.jsonl")
        def test_replays(halo_runtime):
            recording = halo_runtime.recording
            program = load("note.halo")
            halo_runtime.load(program).mock_all({{"A": "hello", "Files": None, "yield": True}})
            assert halo_runtime.run_sync(recording.pipeline, recording.args).output == recording.output

        def test_refuses(halo_runtime):
            assert halo_runtime.recording is None
            result = halo_runtime.load(load("note.halo")).run_sync(args={{"x": "1"}})
            assert result.error.code == "CONFIG"
        """
    )
    pytester.runpytest_subprocess("-q", "-p", "no:xdist", "-p", "no:cacheprovider").assert_outcomes(passed=2)
