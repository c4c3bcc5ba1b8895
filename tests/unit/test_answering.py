"""The loop around a run and its live doors: one answer at a time, first failure, stopping, bounds (runs.md §1, §5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from halo_lang.app.underway import UnderWay, What
from halo_lang.boundary.call import Usage
from halo_lang.doors import live as live_module
from halo_lang.doors.account import Account
from halo_lang.doors.answering import BREATH, Ending, Stop, answered, without_waiting
from halo_lang.doors.folder import KeepingError
from halo_lang.doors.keeping import Keeper
from halo_lang.doors.live import Live
from halo_lang.doors.mock import Mock
from halo_lang.language.record import replace
from runs import AGENT, TOOL, YIELD, Answer, Call, Shown, checked, failed, pipeline

FAN = pipeline("|* { A.one(), B.two(), C.three() }", "|> A.after()")


class Watching(Shown):
    watches = False

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str] = []

    published = Shown.printed

    def tokens(self, call: Call, text: str) -> None: ...

    def answered(self, call: Call, answer: Answer, cost: int) -> None:
        self.answers.append(call.target)

    def spends(self, ledger: Any) -> None: ...


def under_way(text: str, x: object = "in") -> tuple[UnderWay, Watching]:
    watcher = Watching()
    return UnderWay(What(checked(text), "P", {"x": x}, "run-1"), watcher), watcher


class World:
    """A door that is held by the test: each call waits until it is let go, or answers at once where `at_once`."""

    def __init__(self, *at_once: str) -> None:
        self.at_once = at_once
        self.began: list[str] = []
        self.cancelled: list[str] = []
        self.under_way = self.most = 0
        self._gates: dict[str, asyncio.Future[Answer]] = {}
        self._arrivals = asyncio.Event()

    async def __call__(self, call: Call) -> Answer:
        self.began.append(call.target)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        gate = self._gates[call.target] = asyncio.get_running_loop().create_future()
        self._arrivals.set()
        try:
            return Answer(call.target) if call.target in self.at_once else await gate
        except asyncio.CancelledError:
            self.cancelled.append(call.target)
            raise
        finally:
            self.under_way -= 1

    async def begun(self, *targets: str) -> None:
        while not set(targets) <= set(self.began):
            self._arrivals.clear()
            await self._arrivals.wait()

    def give(self, target: str, answer: Answer | str) -> None:
        self._gates[target].set_result(answer if isinstance(answer, Answer) else Answer(answer))


def doors(world: Callable[[Call], Awaitable[Answer]], *kinds: str) -> Live:
    return Live(dict.fromkeys(kinds or (AGENT, TOOL), world))


def start(
    text: str, live: Live, stop: Stop | None = None, **more: Any
) -> tuple[asyncio.Task[Ending], UnderWay, Watching]:
    run, watcher = under_way(text)
    loop = answered(run.driver, run.account, live=live, stop=stop, answering=run.answering, **more)
    return asyncio.ensure_future(loop), run, watcher


# One at a time ---------------------------------------------------------------------------------------------------


async def test_answers_are_handed_in_as_they_arrive_one_by_one() -> None:
    world = World("A.after")
    task, run, watcher = start(FAN, doors(world))
    await world.begun("A.one", "B.two", "C.three")
    for target in ("C.three", "A.one", "B.two"):
        world.give(target, target.lower())
        await asyncio.sleep(0)
    ending = await task
    assert (ending.status, ending.output) == ("completed", "A.after")
    assert watcher.answers == ["C.three", "A.one", "B.two", "A.after"]
    assert run.result(ending).context["data"]["A"] == {"one": "a.one", "after": "A.after"}  # type: ignore[index, call-overload]


async def test_of_answers_that_arrive_together_the_first_is_handed_in_first() -> None:
    world = World("A.after")
    task, _, watcher = start(FAN, doors(world))
    await world.begun("A.one", "B.two", "C.three")
    for target in ("B.two", "C.three", "A.one"):
        world.give(target, "x")
    await task
    assert watcher.answers[:3] == ["B.two", "C.three", "A.one"]


async def test_a_mock_answers_what_is_new_before_what_has_arrived_with_the_first() -> None:
    inner = pipeline("|> A.one()", "|> B.mocked()", name="In")
    world = World("B.after")
    mock = Mock({"B.mocked": "m"}, now=str, publish=print, defaults=False)
    task, _, watcher = start(inner + pipeline("|* { In, C.three() }", "|> B.after()"), doors(world), mock=mock)
    await world.begun("A.one", "C.three")
    for target in ("A.one", "C.three"):
        world.give(target, "x")
    await task
    assert watcher.answers == ["A.one", "B.mocked", "C.three", "B.after"]


@pytest.mark.parametrize("durable", [False, True])
async def test_what_cannot_be_kept_and_what_arrived_with_it_counts(durable: bool) -> None:
    class Full(Keeper):
        def write(self, line: Any) -> None:
            raise KeepingError("the disk is full")

    world, keeper = World(), Full()
    keeper.durable = durable
    task, run, watcher = start(FAN, doors(world), keeper=keeper)
    await world.begun("A.one", "B.two", "C.three")
    for target in ("A.one", "B.two", "C.three"):
        world.give(target, Answer("x", cost=1))
    ending = await task
    assert (ending.status, ending.code, watcher.answers) == ("failed", "CONFIG", [])
    assert run.account.cost == 3


async def test_calls_are_under_way_side_by_side_and_a_lone_one_has_no_task() -> None:
    world = World("A.one", "B.two", "C.three")
    before = len(asyncio.all_tasks())

    async def counting(call: Call) -> Answer:
        if call.target == "A.after":
            assert len(asyncio.all_tasks()) == before + 1  # the run's own
        return await world(call)

    world.at_once += ("A.after",)
    task, _, _ = start(FAN, doors(counting))
    assert (await task).status == "completed"


# Failures --------------------------------------------------------------------------------------------------------


async def test_the_first_failure_stops_the_others_and_waits_for_them() -> None:
    world = World()
    task, run, watcher = start(FAN, doors(world))
    await world.begun("A.one", "B.two", "C.three")
    world.give("B.two", failed("MODEL_ERROR", "no"))
    ending = await task
    assert (ending.status, ending.code, ending.stage) == ("failed", "MODEL_ERROR", "1")
    assert (sorted(world.cancelled), world.under_way) == (["A.one", "C.three"], 0)
    assert watcher.answers == ["B.two"]
    assert run.result(ending).calls == {"A.one": 1, "B.two": 1, "C.three": 1}
    assert sorted(call.target for call in ending.unanswered) == ["A.one", "C.three"]


async def test_no_answer_is_taken_after_the_first_failure_but_what_came_counts() -> None:
    world = World()
    task, run, watcher = start(FAN, doors(world))
    await world.begun("A.one", "B.two", "C.three")
    world.give("A.one", failed("MODEL_ERROR", "first"))
    world.give("C.three", Answer("late", cost=7))
    ending = await task
    assert ending.message == "first"
    assert watcher.answers == ["A.one"]
    assert run.account.cost == 7
    assert [call.target for call in ending.unanswered] == ["B.two"]


async def test_a_halt_in_a_branch_stops_the_others() -> None:
    inner = pipeline("|> A.think()", '|? (context.current == "go")', name="In")
    world = World()
    task, _, _ = start(inner + pipeline("|* { In, B.two() }"), doors(world))
    await world.begun("A.think", "B.two")
    world.give("A.think", "stop")
    ending = await task
    assert (ending.status, ending.stage, world.cancelled) == ("halted", "1.2", ["B.two"])


async def test_a_branch_that_does_not_stop_is_left_behind_after_a_while(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(live_module, "GRACE_S", 0.05)
    end = asyncio.Event()

    async def stubborn(call: Call) -> Answer:
        if call.target == "B.two":
            return failed("MODEL_ERROR", "no")
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return Answer("x")

    task, _, _ = start(FAN, doors(stubborn))
    with caplog.at_level(logging.WARNING, "halo"):
        assert (await task).status == "failed"
    assert "has not stopped" in caplog.text
    end.set()


@pytest.mark.parametrize(
    ("text", "code"),
    [(pipeline("|> A.go()"), "MODEL_ERROR"), ('tool F : Workspace(".")\n' + pipeline("|> F.list()"), "TOOL_ERROR")],
)
async def test_a_door_that_raises_fails_the_call_and_shows_no_secret(
    text: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(call: Call) -> Answer:
        raise KeyError("secret-value")

    with caplog.at_level(logging.CRITICAL, "halo"):
        task, _, _ = start(text, doors(broken))
        ending = await task
    assert (ending.status, ending.code) == ("failed", code)
    assert "KeyError" in ending.message
    assert "secret-value" not in ending.message


# Who is asked ----------------------------------------------------------------------------------------------------


async def test_where_nobody_answers_a_person_the_other_branches_go_on_first() -> None:
    inner = pipeline('|! yield("Go?")', name="In")
    world = World("A.one", "A.more")
    more = pipeline("|> A.one()", "|> A.more()", name="More")
    task, _, watcher = start(inner + more + pipeline("|* { In, More }"), doors(world))
    ending = await task
    assert watcher.answers == ["A.one", "A.more"]
    assert ending.status == "paused"
    assert [call.kind for call in ending.waits] == [YIELD]


async def test_a_person_is_asked_beside_other_calls() -> None:
    world = World("yield", "A.one")
    inner = pipeline('|! yield("Go?")', name="In")
    task, _, _ = start(inner + pipeline("|* { In, A.one() }"), doors(world, AGENT, YIELD))
    assert (await task).status == "completed"


def test_without_a_live_door_no_event_loop_is_needed() -> None:
    run, _ = under_way(FAN)
    mock = Mock({}, now=str, publish=print)
    assert without_waiting(answered(run.driver, run.account, mock=mock)).status == "completed"


def test_what_would_wait_is_refused_without_an_event_loop() -> None:
    async def waits() -> None:
        await World()

    class Never:
        def __await__(self) -> Iterator[None]:
            yield

    async def run() -> None:
        await Never()

    with pytest.raises(RuntimeError):
        without_waiting(run())


# Stopping --------------------------------------------------------------------------------------------------------


async def test_stopping_begins_no_call_and_lets_those_under_way_end() -> None:
    stop = Stop()
    world = World()
    task, run, _ = start(FAN, doors(world), stop)
    await world.begun("A.one", "B.two", "C.three")
    stop.ask()
    world.give("A.one", Answer("x", cost=3))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    world.give("B.two", "x")
    world.give("C.three", "x")
    ending = await task
    assert (ending.status, ending.unanswered, world.cancelled) == ("cancelled", (), [])
    assert "A.after" not in world.began
    assert run.account.cost == 3


async def test_stopping_takes_questions_to_people_back_at_once() -> None:
    stop = Stop()
    world = World()
    task, _, _ = start(pipeline('|! yield("Go?")'), doors(world, YIELD), stop)
    await world.begun("yield")
    stop.ask()
    ending = await task
    assert (ending.status, world.cancelled, world.under_way) == ("cancelled", ["yield"], 0)


async def test_cancelling_after_stopping_cancels_what_is_under_way_and_names_it() -> None:
    stop = Stop()
    world = World()
    text = 'tool F : Workspace(".", write: true)\n' + pipeline('|> F.write("a", "b")')
    task, _, _ = start(text, doors(world), stop)
    await world.begun("F.write")
    stop.ask()
    await asyncio.sleep(0)
    task.cancel()
    ending = await task
    assert (ending.status, [c.target for c in ending.unanswered]) == ("cancelled", ["F.write"])
    assert ending.unanswered[0].effect == "write"


async def test_cancelling_without_stopping_is_never_swallowed() -> None:
    world = World()
    task, _, _ = start(FAN, doors(world))
    await world.begun("A.one", "B.two", "C.three")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (sorted(world.cancelled), world.under_way) == (["A.one", "B.two", "C.three"], 0)


async def test_cancelling_a_lone_call_is_never_swallowed() -> None:
    world = World()
    task, _, _ = start(pipeline("|> A.go()"), doors(world))
    await world.begun("A.go")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.cancelled == ["A.go"]


async def stubborn_under_way(stop: Stop) -> tuple[asyncio.Task[Ending], asyncio.Event]:
    """A run whose calls do not stop when they are cancelled, until an event is set."""
    end, began = asyncio.Event(), asyncio.Event()

    async def stubborn(call: Call) -> Answer:
        began.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return Answer("x")

    task, _, _ = start(FAN, doors(stubborn), stop)
    await began.wait()
    return task, end


async def test_whoever_cancels_once_more_does_not_wait_for_what_will_not_stop() -> None:
    stop = Stop()
    task, end = await stubborn_under_way(stop)
    stop.ask()
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()
    ending = await task
    assert (ending.status, len(ending.unanswered)) == ("cancelled", 3)
    end.set()


async def test_cancelling_twice_without_stopping_is_not_swallowed_either() -> None:
    task, end = await stubborn_under_way(Stop())
    for _ in range(2):
        await asyncio.sleep(0)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    end.set()


async def test_a_cancel_while_a_failed_run_waits_for_its_branches_is_not_swallowed() -> None:
    failing, stopping, end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def door(call: Call) -> Answer:
        if call.target == "B.two":
            await failing.wait()
            return failed("MODEL_ERROR", "no")
        try:
            await end.wait()
        except asyncio.CancelledError:
            stopping.set()
            await end.wait()
        return Answer("x")

    task, _, _ = start(FAN, doors(door))
    await asyncio.sleep(0)
    failing.set()
    await stopping.wait()
    task.cancel()
    await asyncio.sleep(0)
    end.set()
    with pytest.raises(asyncio.CancelledError):
        await task


# Bounds ----------------------------------------------------------------------------------------------------------


async def test_no_more_calls_are_under_way_than_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    assert live_module.MAX_UNDER_WAY == 10_000
    monkeypatch.setattr(live_module, "MAX_UNDER_WAY", 7)
    world = World()
    count = 0

    async def slow(call: Call) -> Answer:
        nonlocal count
        world.under_way += 1
        world.most = max(world.most, world.under_way)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        world.under_way -= 1
        count += 1
        return Answer(count)

    run, _ = under_way(pipeline("|* each(i in x, concurrency: 50) => A.go(i)"), list(range(60)))
    ending = await answered(run.driver, run.account, live=doors(slow))
    assert (ending.status, world.most, count) == ("completed", 7, 60)


async def test_what_waits_for_a_place_does_not_begin_once_the_run_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "MAX_UNDER_WAY", 2)
    stop, world = Stop(), World()
    task, _, _ = start(FAN, doors(world), stop)
    await world.begun("A.one", "B.two")
    stop.ask()
    world.give("A.one", "x")
    world.give("B.two", "x")
    assert (await task).status == "cancelled"
    assert world.began == ["A.one", "B.two"]


async def test_the_loop_gives_way_so_that_others_get_their_turn() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def instant(call: Call) -> Answer:
        return Answer("no")

    beside = asyncio.ensure_future(other())
    text = pipeline("|> A.go()", '|<> loop(A, "context.current != \\"ok\\"", max: 1000)')
    task, _, _ = start(text, doors(instant))
    assert (await task).code == "LOOP_LIMIT"
    beside.cancel()
    assert turns >= 10


async def test_it_does_so_however_many_have_arrived() -> None:
    text = pipeline("|* each(n in x, concurrency: 5000) => A.go()")
    run, _ = under_way(text, list(range(5000)))
    gate = asyncio.get_running_loop().create_future()
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(run.account.llm_calls)
            await asyncio.sleep(0)

    async def held(call: Call) -> Answer:
        await gate
        return Answer("x")

    task = asyncio.ensure_future(answered(run.driver, run.account, live=doors(held)))
    while not run.driver.waiting:
        await asyncio.sleep(0)
    gate.set_result(None)
    beside = asyncio.ensure_future(other())
    assert (await task).status == "completed"
    beside.cancel()
    assert max(after - before for before, after in pairwise(turns)) <= 2 * BREATH


# Shadows ---------------------------------------------------------------------------------------------------------


async def test_a_shadow_is_noted_and_harms_nothing() -> None:
    async def door(call: Call) -> Answer:
        if call.target == "B.draft":
            return failed("MODEL_ERROR", "shadow failed")
        await asyncio.sleep(0.01)
        return Answer("real", cost=5)

    live = doors(door)
    task, _, _ = start(pipeline("@shadow(B.draft()) |> A.draft()"), live)
    assert (await task).output == "real"
    ((call, answer),) = live.shadowed
    assert (call.target, answer.error.message) == ("B.draft", "shadow failed")  # type: ignore[union-attr]


async def test_a_shadow_is_cancelled_when_the_run_ends_and_its_cost_counts() -> None:
    world = World()
    live = doors(world)
    task, _, _ = start(pipeline("@shadow(B.draft()) |> A.draft()"), live)
    await world.begun("A.draft", "B.draft")
    world.give("A.draft", "x")
    assert (await task).status == "completed"
    assert world.cancelled == ["B.draft"]
    ((_, answer),) = live.shadowed
    assert "no answer yet" in answer.error.message  # type: ignore[union-attr]

    async def door(call: Call) -> Answer:
        if call.target == "A.draft":
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return Answer("x", cost=5)

    task, run, _ = start(pipeline("@shadow(B.draft()) |> A.draft()"), doors(door))
    await task
    assert (run.account.cost, run.account.llm_calls) == (10, 2)


def test_an_account_counts_requests_and_tool_calls_not_the_systems() -> None:
    account = Account()
    for kind, target in ((AGENT, "A.b"), (TOOL, "F.read"), (TOOL, "System.Now"), (YIELD, "yield")):
        account.add(Call(kind, target, {}, (), "1", None), Answer(None))  # type: ignore[arg-type]
    assert (account.llm_calls, account.tool_calls) == (1, 1)


def test_what_a_limit_refused_is_no_call() -> None:
    def counted(kind: str, answer: Answer) -> int:
        account = Account()
        account.add(Call(kind, "A.b", {}, (), "1", None), answer)  # type: ignore[arg-type]
        return account.llm_calls + account.tool_calls

    for code in ("SPEND_LIMIT", "BEYOND_PLAN"):
        assert counted(AGENT, failed(code, "refused")) == 0
        assert counted(AGENT, replace(failed(code, "cut"), usage=Usage(1, 2))) == 1
        assert counted(AGENT, replace(failed(code, "an attempt before had no answer"), unsettled=5)) == 1
    assert counted(TOOL, failed("BEYOND_PLAN", "refused")) == 0
    assert counted(AGENT, failed("MODEL_ERROR", "broken")) == counted(TOOL, failed("TOOL_ERROR", "broken")) == 1
