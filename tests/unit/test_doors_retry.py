"""Attempts, pauses and time limits (tools.md §4, runs.md §6)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from halo_lang.boundary.attempt import AttemptFailed
from halo_lang.boundary.call import Answer, failed
from halo_lang.boundary.host import ConfigError
from halo_lang.doors.retry import MAX_PAUSE_S, MAX_RETRY_AFTER_S, with_retries

HELLO = Answer("Hello.")
BUSY = AttemptFailed("MODEL_ERROR", "busy", retry=True, billed=False)


class Script:
    """Attempts that end as told, one after the other; and what was slept and settled."""

    def __init__(self, *ends: Answer | BaseException | None) -> None:
        self.ends = list(ends)
        self.tried = 0
        self.slept: list[float] = []
        self.settled: list[bool | None] = []

    async def attempt(self) -> Answer:
        self.tried += 1
        end = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if end is None:
            await asyncio.Event().wait()
        if isinstance(end, BaseException):
            raise end
        assert isinstance(end, Answer)
        return end

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def run(self, retries: int = 2, timeout_s: float = 60.0, jitter: float = 1.0) -> Answer:
        return await with_retries(
            self.attempt,
            retries,
            timeout_s,
            sleep=self.sleep,
            jitter=lambda: jitter,
            settled=lambda failure: self.settled.append(failure.billed),
        )


async def test_an_answer_is_not_asked_for_twice() -> None:
    for answer in (HELLO, failed("MODEL_ERROR", "cut")):
        script = Script(answer)
        assert await script.run() is answer
        assert (script.tried, script.slept, script.settled) == (1, [], [])


async def test_passing_failures_are_tried_again() -> None:
    script = Script(BUSY, BUSY, HELLO)
    assert await script.run() == HELLO
    assert script.tried == 3
    assert script.settled == [False, False]


async def test_the_last_failure_is_the_answer() -> None:
    script = Script(BUSY)
    assert await script.run(retries=3) == failed("MODEL_ERROR", "busy (4 attempts)")
    assert script.slept == [0.5, 1.0, 2.0]


async def test_without_retries_there_is_one_attempt() -> None:
    script = Script(BUSY)
    assert await script.run(retries=0) == failed("MODEL_ERROR", "busy")
    assert script.tried == 1


async def test_pauses_are_bounded_and_half_of_them_chance() -> None:
    script = Script(BUSY)
    await script.run(retries=2000, jitter=0.0)
    assert script.slept[:3] == [0.25, 0.5, 1.0]
    assert max(script.slept) == MAX_PAUSE_S / 2


async def test_other_failures_are_not() -> None:
    script = Script(AttemptFailed("MODEL_ERROR", "no such model", billed=False))
    assert await script.run() == failed("MODEL_ERROR", "no such model")
    assert script.tried == 1


@pytest.mark.parametrize(("asked", "slept"), [(0.0, 0.5), (7.0, 7.5), (MAX_RETRY_AFTER_S, MAX_RETRY_AFTER_S + 0.5)])
async def test_what_a_server_asks_for_is_kept(asked: float, slept: float) -> None:
    script = Script(AttemptFailed("MODEL_ERROR", "busy", True, False, asked), HELLO)
    assert await script.run() == HELLO
    assert script.slept == [slept]


async def test_a_server_that_asks_for_too_much_gets_no_further_attempt() -> None:
    script = Script(AttemptFailed("MODEL_ERROR", "busy", True, False, 3600.0))
    answer = await script.run()
    assert answer.error is not None
    assert "asks to wait 3600 s" in answer.error.message
    assert (script.tried, script.slept) == (1, [])


async def test_each_attempt_has_its_own_time() -> None:
    script = Script(None, None, HELLO)
    assert await script.run(timeout_s=0.01) == HELLO
    assert script.settled == [None, None]
    script = Script(None)
    assert await script.run(timeout_s=0.01) == failed("MODEL_TIMEOUT", "no answer within 0.01 s (3 attempts)")


async def test_waiting_for_a_place_is_no_part_of_the_time() -> None:
    place = asyncio.Semaphore(1)
    held = asyncio.Event()

    async def slow() -> Answer:
        held.set()
        await asyncio.sleep(0.05)
        return HELLO

    first = asyncio.create_task(with_retries(slow, 0, 5.0, place=lambda: place))
    await held.wait()
    second = with_retries(Script(HELLO).attempt, 0, 0.02, place=lambda: place)
    assert await second == HELLO
    assert await first == HELLO


async def test_a_missing_setting_is_a_failure_of_the_settings() -> None:
    assert await Script(ConfigError("OPENAI_API_KEY is missing")).run() == failed("CONFIG", "OPENAI_API_KEY is missing")


async def test_a_client_that_breaks_shows_no_more_than_its_kind() -> None:
    script = Script(KeyError("sk-secret"))
    answer = await script.run()
    assert answer.error is not None
    assert "KeyError" in answer.error.message
    assert "sk-secret" not in answer.error.message
    assert script.settled == [None]


@pytest.mark.parametrize("sleeping", [False, True])
async def test_cancelling_is_never_swallowed(sleeping: bool) -> None:
    script = Script(BUSY if sleeping else None)
    begun = asyncio.Event()

    async def forever(_: float) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def attempt() -> Answer:
        if not sleeping:
            begun.set()
        return await script.attempt()

    settled: list[bool | None] = []
    sleep: Callable[[float], Awaitable[object]] = forever
    running = asyncio.create_task(
        with_retries(attempt, 2, 60.0, sleep=sleep, settled=lambda failure: settled.append(failure.billed))
    )
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert settled == [False if sleeping else None]
