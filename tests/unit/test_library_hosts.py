"""The library towards whoever embeds it: odd values, several threads, runs that are stopped, nothing left or said."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import pytest

from commands import PATIENCE_S
from halo_lang import (
    Answer,
    Answered,
    Asked,
    AttemptFailed,
    FileRunStore,
    HaloError,
    HaloRuntime,
    KeepingError,
    LoopLimitError,
    MemoryRunStore,
    ModelRequest,
    RunConflict,
    RunFailed,
    RunResult,
    StageBegan,
    ToolError,
    ToolUse,
    loads,
    tool,
)
from halo_lang.replay import Recorder, read_recording, replay_mocks

ONE = "agent A [mine/x]\npipeline P(x: Any) -> Result:\n  x\n    |> A.one() as one\n"
ASKS = ONE + '    |! yield("Keep {{one}}?") as kept\n    |> A.two()\n    |> System.Publish("two")\n'
HEARS = ASKS + "    ~> listen(Chat.Said) as said\n"
SAYS = "pipeline P(x: Any) -> Result:\n  x\n"
DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
NO_JSON = [{1, 2}, object(), CIRCLE, DEEP, float("nan"), float("-inf"), "\ud800", {("a",): 1}, b"bytes", [lambda: 1]]
NAMES = ["a set", "an object", "a circle", "depth", "nan", "infinity", "half a pair", "odd keys", "bytes", "a function"]


class Hangs:
    """A model that never answers; `asked` and `gone` say where a request is."""

    def __init__(self) -> None:
        self.asked, self.gone = threading.Event(), threading.Event()

    async def __call__(self, request: ModelRequest) -> str:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.gone.set()
        raise AssertionError


async def under_way(model: Hangs, hangs: HaloRuntime) -> tuple[str, asyncio.Future[RunResult]]:
    """A run whose model has been asked, and its id."""
    run_id = str(uuid.uuid4())
    run = asyncio.ensure_future(hangs.run(args={"x": 1}, run_id=run_id))
    assert await asyncio.to_thread(model.asked.wait, PATIENCE_S)
    return run_id, run


def runtime(text: str, model: Any = None, **given: Any) -> HaloRuntime:
    made = HaloRuntime(environment={}, **given).load(loads(text))
    return made if model is None else made.register_model("mine", model)


# Values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", NO_JSON, ids=NAMES)
async def test_what_is_no_json_is_refused_wherever_it_comes_from(odd: Any) -> None:
    store = MemoryRunStore()
    asks = runtime(ASKS, run_store=store).mock_all({"A": "text"})
    run_id = (await asks.run(args={"x": 1})).run_id

    def given() -> list[Any]:
        return [
            lambda: runtime(SAYS).run_sync(args={"x": odd}),
            lambda: runtime(SAYS).run_sync(args={"x": [odd]}),
            lambda: HaloRuntime().mock_all({"A": [odd]}),
            lambda: runtime(ONE).mock_all({"A": lambda call: [odd]}).run_sync(args={"x": 1}),
            lambda: asks.signal(run_id, "Chat.Said", [odd]),
            lambda: asyncio.run(asks.resume(run_id, [odd])),
        ]

    for refused in given():
        with pytest.raises(HaloError, match="is no JSON") as raised:
            await asyncio.to_thread(refused)
        assert raised.value.code == "ARGUMENT_TYPE"
    result = await runtime(ONE, lambda request: Answer([odd])).run(args={"x": 1})
    assert result.error is not None
    assert (result.error.code, "is no JSON" in result.error.message) == ("MODEL_ERROR", True)
    result = await runtime(ASKS, on_yield=lambda call: [odd]).mock_all({"A": "text"}).run(args={"x": 1})
    assert result.context["data"]["kept"] == {"approved": False}


async def test_values_are_copies_and_tuples_are_lists() -> None:
    items = ["a"]
    result = await runtime(SAYS).run(args={"x": (items, {1: True})})
    items.append("b")
    assert result.output == [["a"], {"1": True}]


@pytest.mark.parametrize(
    "mocks", [{"A": {"sequence": []}}, {"A": {"sequence": "a"}}, {"A": {"error": 3}}, {"yield": {"error": None}}]
)
def test_a_mock_that_means_nothing_is_refused(mocks: dict[str, object]) -> None:
    with pytest.raises(HaloError):
        HaloRuntime().mock_all(mocks)


@pytest.mark.parametrize(
    ("key", "help_"),
    [
        ("AA", "; did you mean `A`?"),
        ("A.onne", "; did you mean `A.one`?"),
        ("yeild", "; did you mean `yield`?"),
        ("Chat.Sad", "; did you mean `Chat.Said`?"),
        ("Nothing", ""),
    ],
)
def test_a_mock_that_nothing_asks_for_is_refused_before_anything_is_called(key: str, help_: str) -> None:
    program = loads(HEARS)
    refused = [
        lambda: HaloRuntime().load(program).mock_all({"A": 1, key: 1}),
        lambda: HaloRuntime().mock_all({"A": 1, key: lambda call: 1}).load(program),
    ]
    for attempt in refused:
        with pytest.raises(HaloError) as raised:
            attempt()
        assert (raised.value.code, raised.value.message) == (
            "CONFIG",
            f"nothing in program.halo asks for the mock `{key}`{help_}",
        )
    fine = {"A": 1, "A.one": 2, "yield": True, "approval": True, "Chat": 1, "Chat.Said": 1, "System.Now": "now"}
    HaloRuntime().mock_all(fine).load(program).mock_all(fine)


async def test_mocks_of_a_recording_may_speak_of_calls_that_a_program_no_longer_has(tmp_path: Path) -> None:
    run_id = str(uuid.uuid4())
    recorder = Recorder(tmp_path, run_id)
    recorder.start("P", {"x": 1})
    await (
        HaloRuntime(recorder=recorder.record, on_yield=lambda call: True, on_listen=lambda call: 1)
        .register_model("mine", lambda request: "a")
        .load(loads(HEARS))
        .run(args={"x": 1})
    )
    recorder.finish(status="completed")
    mocks = replay_mocks(read_recording(tmp_path, run_id))
    assert "A.one" in mocks
    HaloRuntime().mock_all(mocks).load(loads(SAYS)).mock_all(mocks)
    with pytest.raises(HaloError, match="asks for the mock `A`"):
        HaloRuntime().mock_all(mocks).mock_all({"A": 1}).load(loads(SAYS))


async def test_a_mock_may_be_a_function_that_gives_a_value_or_an_answer() -> None:
    for mock in (lambda call: {"n": (1, 2)}, lambda call: Answer('{"n": [1, 2]}')):
        assert (await runtime(ONE).mock_all({"A": mock}).run(args={"x": 1})).output == {"n": [1, 2]}

    def broken(call: object) -> str:
        raise LookupError("of the host's own")

    with pytest.raises(LookupError):
        await runtime(ONE).mock_all({"A": broken}).run(args={"x": 1})


async def test_a_model_of_ones_own_may_give_odd_tool_calls() -> None:
    text = 'tool F : Workspace(".")\nagent A [mine/x]\n  equips F\npipeline P(x: Any) -> Result:\n  x\n'
    text += "    |> A.go(tools: [F])\n"
    told: list[str] = []

    def model(request: ModelRequest) -> Answer | str:
        if len(request.messages) > 1:
            told.append(str(request.messages[-1].parts[0]))
            return "done"
        return Answer(None, tool_uses=(ToolUse("1", "F_read", ["a"]), ToolUse("2", "none", {"a": (1,)})))  # type: ignore[arg-type]

    assert (await runtime(text, model).run(args={"x": 1})).output == "done"
    assert told


async def test_what_a_host_shows_may_raise_anything_and_leaves_nothing() -> None:
    def broken(value: object) -> None:
        raise ValueError("of the host's own")

    for given in ({"on_print": broken}, {"on_event": broken}):
        shows = runtime(ONE + "    |> System.Print()\n", **given).mock_all({"A": "a"})
        with pytest.raises(ValueError, match="of the host's own"):
            await shows.run(args={"x": 1})
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("run_id", ["", "a", "../../a", "6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77\n"])
async def test_a_run_id_is_a_uuid(run_id: str, tmp_path: Path) -> None:
    store = FileRunStore(str(tmp_path / ".halo" / "runs"))
    for refused in (runtime(SAYS, run_store=store).run(args={"x": 1}, run_id=run_id),):
        with pytest.raises(HaloError, match="a run id is a UUID"):
            await refused
    for again in (runtime(SAYS, run_store=store), runtime(SAYS)):
        with pytest.raises(HaloError):
            await again.resume(run_id)
        with pytest.raises(HaloError):
            again.signal(run_id, "A.b", 1)
    assert not (tmp_path / ".halo").exists()


def test_a_runtime_takes_a_program() -> None:
    with pytest.raises(HaloError, match="not its path"):
        HaloRuntime().load("tidy.halo")  # type: ignore[arg-type]


async def test_code_of_the_hosts_own_that_awaits_what_was_cancelled_fails_and_cancels_nothing() -> None:
    async def cancelled(*_: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        return await future

    class Tool:
        async def call(self, x: Any) -> Any:
            return await cancelled()

    branches = "agent A [mine/x]\npipeline P(x: Any) -> Result:\n  x\n    |* { A.one(), A.two() }\n"
    for text in (ONE, branches):
        result = await runtime(text, cancelled).run(args={"x": 1})
        assert result.error is not None
        assert result.error.code == "MODEL_ERROR"
    program_text = "tool T : Own()\npipeline P(x: Any) -> Result:\n  x\n    |> T.call(1)\n"
    program = loads(program_text, providers={"Own": Tool})
    result = await HaloRuntime(environment={}).load(program).run(args={"x": 1})
    assert result.error is not None
    assert result.error.code == "TOOL_ERROR"
    result = await runtime(ASKS, on_yield=cancelled).mock_all({"A": "a"}).run(args={"x": 1})
    assert (result.status, result.context["data"]["kept"]) == ("completed", {"approved": False})
    asked = 'policy Ask : ApproveTools("T.call")\n' + program_text.replace(":\n", " requires Ask:\n")
    program = loads(asked, providers={"Own": Tool})
    result = await HaloRuntime(environment={}, on_approval=cancelled).load(program).run(args={"x": 1})
    assert result.error is not None
    assert result.error.code == "APPROVAL_DENIED"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


# Errors ----------------------------------------------------------------------------------------------------------


async def test_errors_are_one_hierarchy() -> None:
    for kind in (RunFailed, LoopLimitError, ToolError, AttemptFailed, KeepingError):
        assert issubclass(kind, HaloError)
    loops = ONE + '    |<> loop(A, "true", max: 2)\n'
    failed = await runtime(loops).mock_all({"A": "a"}).run(args={"x": 1})
    with pytest.raises(LoopLimitError) as raised:
        failed.or_raise()
    assert (raised.value.code, raised.value.result) == ("LOOP_LIMIT", failed)
    down = await runtime(ONE).mock_all({"A": {"error": "down"}}).run(args={"x": 1})
    with pytest.raises(RunFailed, match="MODEL_ERROR: down") as other:
        down.or_raise()
    assert type(other.value) is RunFailed
    fine = await runtime(ONE).mock_all({"A": "a"}).run(args={"x": 1})
    assert fine.or_raise() is fine


# Stopping --------------------------------------------------------------------------------------------------------


async def test_cancel_ends_what_is_under_way_after_a_grace() -> None:
    model = Hangs()
    hangs = runtime(ONE, model)
    run_id, run = await under_way(model, hangs)
    assert hangs.cancel(run_id, grace_s=0)
    assert (await run).status == "cancelled"
    assert model.gone.is_set()
    assert not hangs.cancel(run_id)
    assert len(asyncio.all_tasks()) == 1


async def test_a_run_that_was_cancelled_leaves_its_task_as_it_was() -> None:
    """The host may run it in a task of its own, under a time-out, and go on."""
    model = Hangs()
    hangs = runtime(ONE, model)
    run_id = str(uuid.uuid4())

    async def host() -> str:
        async with asyncio.timeout(PATIENCE_S):
            result = await hangs.run(args={"x": 1}, run_id=run_id)
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(0)
        return f"{result.status} {task.cancelling()}"

    run = asyncio.ensure_future(host())
    assert await asyncio.to_thread(model.asked.wait, PATIENCE_S)
    hangs.cancel(run_id, grace_s=0)
    assert await run == "cancelled 0"


def test_a_run_is_cancelled_from_another_thread() -> None:
    model = Hangs()
    hangs = runtime(ONE, model)
    run_id = str(uuid.uuid4())
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(hangs.run_sync, args={"x": 1}, run_id=run_id)
        assert model.asked.wait(PATIENCE_S)
        assert hangs.cancel(run_id, grace_s=0)
        assert run.result(PATIENCE_S).status == "cancelled"


async def test_a_run_that_may_end_in_its_grace_does() -> None:
    goes, asked = asyncio.Event(), asyncio.Event()
    requests: list[ModelRequest] = []

    async def slow(request: ModelRequest) -> str:
        requests.append(request)
        asked.set()
        await goes.wait()
        return "late"

    patient = runtime(ONE + "    |> A.two()\n", slow)
    run_id = str(uuid.uuid4())
    run = asyncio.ensure_future(patient.run(args={"x": 1}, run_id=run_id))
    await asked.wait()
    patient.cancel(run_id, grace_s=PATIENCE_S)
    goes.set()
    assert ((await run).status, len(requests)) == ("cancelled", 1)


async def test_one_run_has_an_id_at_a_time() -> None:
    model = Hangs()
    hangs = runtime(ONE, model)
    run_id, run = await under_way(model, hangs)
    with pytest.raises(HaloError, match="RESUME_CONFLICT"):
        await hangs.run(args={"x": 1}, run_id=run_id)
    assert hangs.cancel(run_id, grace_s=0)
    assert (await run).status == "cancelled"


async def test_a_stream_that_nobody_reads_any_more_is_cancelled() -> None:
    model = Hangs()
    events = runtime(ONE, model).stream(args={"x": 1})
    assert isinstance(await anext(events), StageBegan)
    assert isinstance(await anext(events), Asked)
    assert await asyncio.to_thread(model.asked.wait, PATIENCE_S)
    del events
    gc.collect()
    assert await asyncio.to_thread(model.gone.wait, PATIENCE_S)


# Threads ---------------------------------------------------------------------------------------------------------


def test_one_runtime_runs_in_many_threads() -> None:
    async def echo(request: ModelRequest) -> str:
        await asyncio.sleep(0)
        return str(request.messages[-1].parts[-1])

    echoes = runtime(ONE, echo)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: echoes.run_sync(args={"x": f"item {n}"}), range(100)))
    assert all(f"item {n}'" in str(result.output) for n, result in enumerate(results))


def test_of_many_threads_one_resumes() -> None:
    asks = runtime(ASKS).mock_all({"A": "a"})
    for _ in range(20):
        run_id = asks.run_sync(args={"x": 1}).run_id

        def resumed(_: int, run_id: str = run_id) -> str:
            try:
                return asyncio.run(asks.resume(run_id, True)).status
            except HaloError as refused:
                return refused.code

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(resumed, range(4))) == [*["RESUME_CONFLICT"] * 3, "completed"]


def test_a_journal_is_claimed_by_one_thread() -> None:
    store = MemoryRunStore()
    for _ in range(50):
        run_id = str(uuid.uuid4())
        store.create(run_id).release()

        def claimed(_: int, run_id: str = run_id) -> bool:
            try:
                store.claim(run_id)
            except RunConflict:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(claimed, range(4))) == 1


async def test_run_sync_in_a_loop_keeps_the_context_and_its_thread_ends() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("set")
    seen: list[str] = []

    def model(request: ModelRequest) -> str:
        seen.append(variable.get("unset"))
        return "a"

    before = threading.active_count()
    assert runtime(ONE, model).run_sync(args={"x": 1}).output == "a"
    assert (seen, threading.active_count()) == (["set"], before)


INTERRUPTED = """
import asyncio, threading
from halo_lang import HaloRuntime, loads

async def model(request):
    print("asked", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        print("gone", flush=True)

def run():
    HaloRuntime(environment={}).register_model("mine", model).load(loads(%r)).run_sync(args={"x": 1})

async def notebook():
    run()

try:
    %s
except KeyboardInterrupt:
    print("interrupted", threading.active_count(), flush=True)
"""


@pytest.mark.parametrize("how", ["run()", "asyncio.new_event_loop().run_until_complete(notebook())"])
def test_an_interrupt_of_run_sync_cancels_the_run_first(how: str, tmp_path: Path) -> None:
    """In a notebook too, where an event loop runs already: what the run asked for is given up before it returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED % (ONE, how)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    process.send_signal(2)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (0, "gone\ninterrupted 1\n"), err


# Without anything live -------------------------------------------------------------------------------------------


async def test_a_runtime_that_calls_nothing_calls_nothing_when_it_resumes_either() -> None:
    asked: list[str] = []

    def model(request: ModelRequest) -> str:
        asked.append(request.model)
        return "live"

    published: list[object] = []
    offline = runtime(ASKS, model, live=False, on_publish=published.append).mock_all({"A.one": "a"})
    paused = await offline.run(args={"x": 1})
    assert paused.status == "paused"
    ended = await offline.resume(paused.run_id, True)
    assert ended.error is not None
    assert (ended.error.code, ended.error.message.split(",")[0]) == ("CONFIG", "nothing is mocked for A.two")
    assert (asked, published) == ([], [])


class Till:
    """Pays; `made` says what."""

    made: ClassVar[list[int]] = []

    @tool(effect="external")
    async def pay(self, amount: int) -> str:
        """Pays."""
        self.made.append(amount)
        return "paid"


class RenamedTill(Till):
    @tool(effect="external")
    async def pay(self, amount: int) -> str:
        """Pays at once."""
        return await super().pay(amount)


PAYS = "tool Till : Till()\nagent A [mine/x]\n  equips Till\n" + SAYS
PAYS += '    |> A.go(tools: [Till]) as done\n    |! yield("Go on?")\n    |> Till.pay(2)\n'


def pays(request: ModelRequest) -> Answer | str:
    if len(request.messages) > 1:
        return "done"
    written = '{"amount": 1}'
    return Answer(None, tool_uses=(ToolUse("c1", request.tools[0].name, {"amount": 1}, written),))


async def test_what_a_tool_of_ones_own_says_of_itself_is_what_a_paused_run_stands_on() -> None:
    Till.made.clear()
    asked: list[str] = []

    def model(request: ModelRequest) -> Answer | str:
        asked.append(request.tools[0].name)
        return pays(request)

    store = MemoryRunStore()
    host = HaloRuntime(environment={}, run_store=store).register_model("mine", model)
    paused = await host.load(loads(PAYS, providers={"Till": Till})).run("P", {"x": 1})
    assert (paused.status, Till.made, len(asked)) == ("paused", [1], 2)
    host.load(loads(PAYS, providers={"Till": RenamedTill}))
    with pytest.raises(HaloError, match=r"changed since the run began: what tool Till offers; ") as refused:
        await host.resume(paused.run_id, True)
    assert (refused.value.code, Till.made, len(asked)) == ("PROGRAM_CHANGED", [1], 2)
    ended = await host.load(loads(PAYS, providers={"Till": Till})).resume(paused.run_id, {"approved": True})
    assert (ended.status, Till.made, len(asked)) == ("completed", [1, 2], 2)


@pytest.mark.parametrize("in_files", [False, True])
async def test_a_run_id_that_is_kept_already_is_refused_before_anything_is_called(
    in_files: bool, tmp_path: Path
) -> None:
    Till.made.clear()
    store = FileRunStore(str(tmp_path / ".halo" / "runs")) if in_files else MemoryRunStore()
    text = PAYS.replace("|> A.go(tools: [Till]) as done", "|> Till.pay(1)")
    host = HaloRuntime(environment={}, run_store=store).load(loads(text, providers={"Till": Till}))
    paused = await host.run("P", {"x": 1})
    with pytest.raises(HaloError, match=f"a run {paused.run_id} is paused, and kept"):
        await host.run("P", {"x": 2}, run_id=paused.run_id)
    assert Till.made == [1]
    assert (await host.resume(paused.run_id, {"approved": True})).status == "completed"
    assert (await host.run("P", {"x": 2}, run_id=paused.run_id)).status == "paused"


async def test_a_store_that_cannot_be_used_is_found_before_anything_is_called(tmp_path: Path) -> None:
    Till.made.clear()
    (tmp_path / ".halo").mkdir()
    (tmp_path / ".halo" / "runs").touch()
    text = PAYS.replace("|> A.go(tools: [Till]) as done", "|> Till.pay(1)")
    store = FileRunStore(str(tmp_path / ".halo" / "runs"))
    host = HaloRuntime(environment={}, run_store=store).load(loads(text, providers={"Till": Till}))
    with pytest.raises(HaloError, match=r"runs: is no folder of its own"):
        await host.run("P", {"x": 1})
    assert not Till.made


async def test_a_mock_answers_again_while_a_resumed_run_catches_up() -> None:
    """Its answers are in no journal, so what comes after it is no less asked for."""
    Till.made.clear()
    text = PAYS.replace("|> A.go(tools: [Till]) as done", "|> Till.pay(1)\n    |> A.go()\n    |> Till.pay(3) as done")
    host = HaloRuntime(environment={}).mock_all({"A": "mocked"}).load(loads(text, providers={"Till": Till}))
    paused = await host.run("P", {"x": 1})
    assert (paused.status, Till.made) == ("paused", [1, 3])
    ended = await host.resume(paused.run_id, {"approved": True})
    assert (ended.status, Till.made) == ("completed", [1, 3, 2])


async def test_a_runtime_that_calls_nothing_publishes_and_tells_the_time_and_sends_no_shadow() -> None:
    text = "agent A [mine/x]\nagent B [mine/y]\npipeline P(x: Any) -> Result:\n  x\n"
    text += '    |> System.Now() as now\n    |> System.Wait(1h)\n    |> System.Publish("said")\n'
    text += "    @shadow(B.one()) |> A.one()\n"
    asked: list[str] = []
    published: list[object] = []

    def model(request: ModelRequest) -> str:
        asked.append(request.model)
        return "live"

    offline = runtime(text, model, live=False, on_publish=published.append).mock_all({"A": "a"})
    result = await offline.run(args={"x": 1})
    assert (result.status, result.output, published, asked) == ("completed", "a", ["said"], [])


async def test_a_tool_that_nobody_describes_does_not_keep_its_agent_from_being_mocked() -> None:
    text = ONE.replace("agent A [mine/x]", "tool S : Shop()\nagent A [mine/x]\n  equips S")
    program = loads(text.replace("A.one()", "A.one(tools: [S])"), providers=["Shop"])
    result = await HaloRuntime(environment={}, live=False).load(program).mock_all({"A": "a"}).run(args={"x": 1})
    assert (result.status, result.output) == ("completed", "a"), result.error


# What is told ----------------------------------------------------------------------------------------------------


async def test_every_call_is_told_before_its_answer() -> None:
    events = [e async for e in runtime(ASKS, on_yield=lambda call: True).mock_all({"A": "a"}).stream(args={"x": 1})]
    told = [(type(e).__name__, e.call.target) for e in events if isinstance(e, Asked | Answered)]
    targets = ["A.one", "yield", "A.two", "System.Publish"]
    assert told == [(kind, target) for target in targets for kind in ("Asked", "Answered")]


def test_nothing_is_said_of_a_handler_that_fails_where_nobody_takes_the_log(tmp_path: Path) -> None:
    code = f"""
import logging, sys
from halo_lang import HaloRuntime, loads
def broken(call): raise RuntimeError("of the host's own")
runtime = HaloRuntime(on_yield=broken, live=False).load(loads({ASKS!r})).mock_all({{"A": "a"}})
assert runtime.run_sync(args={{"x": 1}}).context["data"]["kept"] == {{"approved": False}}
if "log" in sys.argv:
    logging.basicConfig()
    runtime.run_sync(args={{"x": 1}})
"""
    quiet, logs = (
        subprocess.run([sys.executable, "-c", code, *more], capture_output=True, text=True, cwd=tmp_path, check=True)
        for more in ([], ["log"])
    )
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert "RuntimeError: of the host's own" in logs.stderr


async def test_a_result_in_a_notebook_is_escaped_and_cut_and_says_what_it_waits_for() -> None:
    hostile = "<script>alert(1)</script>&amp;\"'\u202e\x1b[2J\x00" + "x" * 100_000
    shown = (await runtime(SAYS).run(args={"x": hostile}))._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "\\u202e\\x1b[2J\\x00x" in shown
    assert "more characters are not shown" in shown
    assert len(shown) < 30_000
    paused = await runtime(ASKS).mock_all({"A": "<i>"}).run(args={"x": 1})
    assert "waits: yield at stage 2: Keep &lt;i&gt;?" in paused._repr_html_()


async def test_who_is_told_of_events_is_told_of_those_of_a_stream_too() -> None:
    told: list[object] = []
    streamed = [e async for e in runtime(ONE, on_event=told.append).mock_all({"A": "a"}).stream(args={"x": 1})]
    assert streamed == told
    assert told


# pytest ----------------------------------------------------------------------------------------------------------


def test_the_pytest_plugin_works_with_xdist(pytester: pytest.Pytester) -> None:
    pytester.makefile(".halo", a=ONE)
    run_id = str(uuid.uuid4())
    recorder = Recorder(pytester.path / ".halo" / "recordings", run_id)
    recorder.start("P", {"x": 1})
    kept = runtime(ONE, lambda request: "live", recorder=recorder.record).run_sync(args={"x": 1})
    recorder.finish(status=kept.status, output=kept.output)
    pytester.makepyfile(
        """
        import pytest
        from halo_lang import HaloRuntime, load

        @pytest.mark.parametrize("n", range(8))
        def test_runs(halo_runtime: HaloRuntime, n: int) -> None:
            runtime = halo_runtime.load(load("a.halo")).mock_all({"A": f"said {n}"})
            assert runtime.run_sync(args={"x": 1}).output == f"said {n}"

        def test_each_test_has_a_runtime_of_its_own(halo_runtime: HaloRuntime) -> None:
            assert halo_runtime.load(load("a.halo")).run_sync(args={"x": 1}).error.code == "CONFIG"

        @pytest.mark.parametrize("named", [
            pytest.param(1, marks=pytest.mark.halo_replay("KEPT")),
            pytest.param(2, marks=pytest.mark.halo_replay(".halo/recordings/KEPT.jsonl")),
        ])
        def test_a_recording_is_found_by_its_id_and_by_its_path(halo_runtime: HaloRuntime, named: int) -> None:
            recording = halo_runtime.recording
            again = halo_runtime.load(load("a.halo")).run_sync(recording.pipeline, recording.args)
            assert again.output == recording.output == "live"

        @pytest.mark.halo_replay(3)
        def test_a_wrong_mark_fails(halo_runtime: HaloRuntime) -> None: ...

        @pytest.mark.halo_replay("gone.jsonl")
        def test_a_missing_recording_fails(halo_runtime: HaloRuntime) -> None: ...
        """.replace("KEPT", run_id)
    )
    result = pytester.runpytest_subprocess("-q", "-n", "2", "-p", "no:cacheprovider", "--strict-markers")
    result.assert_outcomes(passed=11, errors=2)
    result.stdout.fnmatch_lines_random(["*halo_replay takes one recording*", "*there is no recording gone.jsonl*"])
