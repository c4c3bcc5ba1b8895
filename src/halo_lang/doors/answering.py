"""The loop around a run: takes the calls that it asks, finds their answers, and hands them in one at a time.

Owns the order of hand-in, on which everything hangs that hangs on order (runs.md §1). Where no live door is needed it
never waits, so that `without_waiting` can run it with no event loop at all.
"""

from __future__ import annotations

from collections import deque

from ..language.record import Record
from ..runtime.failure import Halt, RunFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from ..boundary.call import Answer, Call
    from ..language.source import Span
    from ..language.values import Value
    from ..runtime.driver import Driver, Request
    from .account import Account
    from .live import Live
    from .mock import Mock

    T = TypeVar("T")

BREATH = 100
"""Hand-ins after which the loop gives way to the event loop."""


class Stop:
    """Asks a run to stop: no new call begins, those under way may end, then the run is `cancelled`."""

    __slots__ = ("_live", "asked")

    def __init__(self) -> None:
        self.asked = False
        self._live: Live | None = None

    def ask(self) -> None:
        """Stops the run. Questions to people are taken back at once: nobody has acted on them."""
        self.asked = True
        if self._live is not None:
            self._live.leave_people()

    def reaches(self, live: Live | None) -> None:
        self._live = live


class Ending(Record):
    """How a run ended (runs.md §2). `status` is `completed`, `halted`, `failed` or `cancelled`; `output` the flowing
    value, or that at the gate. `code`, `message`, `stage` and `span` tell of a failure, `condition` of a halt.
    `unanswered` are calls that were under way when the run ended."""

    status: str
    output: Value = None
    code: str = ""
    message: str = ""
    stage: str | None = None
    span: Span | None = None
    condition: str = ""
    unanswered: tuple[Call, ...] = ()


async def answered(
    driver: Driver,
    account: Account,
    *,
    mock: Mock | None = None,
    live: Live | None = None,
    stop: Stop | None = None,
    answering: Callable[[Call, Answer], None] | None = None,
) -> Ending:
    """Answers all that a run asks until it ends.

    `mock` answers before `live` does; a call that neither can answer is a failure `CONFIG`. `answering` is told of
    every answer right before it is handed in.
    """
    if stop is not None:
        stop.reaches(live)
    try:
        unanswerable = await _hand_in(driver, account, mock, live, stop, answering)
        if stop is not None and stop.asked and live is not None:
            while (arrived := await live.next()) is not None:
                account.add(arrived[0].call, arrived[1])
    except BaseException as interruption:
        if live is None or not _is_cancelling(interruption):
            raise
        unanswered = await _stopped(account, live)
        if stop is None or not stop.asked:
            raise
        return _ending(driver, unanswered)
    unanswered = await _stopped(account, live)
    if unanswerable is not None:
        return _nobody_to_ask(unanswerable.call, unanswered)
    return _ending(driver, unanswered)


async def _hand_in(
    driver: Driver,
    account: Account,
    mock: Mock | None,
    live: Live | None,
    stop: Stop | None,
    answering: Callable[[Call, Answer], None] | None,
) -> Request | None:
    """Hands in answers until the run has ended or is asked to stop; gives the request that nobody can answer, if that
    is why no more can come."""
    waiting: deque[Request] = deque()
    handed_in = 0
    while not driver.ended:
        waiting.extend(driver.asked)
        driver.asked.clear()
        if mock is not None:
            driver.asides.clear()
            request = waiting.popleft()
            answer = mock.answer(request.call)
        else:
            if live is None:
                return waiting[0]
            if stop is not None and stop.asked:
                return None
            taken = await _next_live(driver, waiting, live)
            if taken is None:
                return waiting[0] if stop is None or not stop.asked else None
            request, answer = taken
            handed_in += 1
            if handed_in % BREATH == 0:
                await _breathe()
        account.add(request.call, answer)
        if answering is not None:
            answering(request.call, answer)
        driver.hand_in(request, answer)
    return None


def without_waiting(run: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never waits, with no event loop. Raises `RuntimeError` if it would wait."""
    try:
        run.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    run.close()
    raise RuntimeError("the run waits for something although no live door is open")


async def _next_live(driver: Driver, waiting: deque[Request], live: Live) -> tuple[Request, Answer] | None:
    """Sends what is new and gives the next answer, or None where none can come any more."""
    if driver.asides:
        for aside in driver.asides:
            live.send_shadow(aside)
        driver.asides.clear()
    if len(waiting) == 1 and live.can_ask(waiting[0].call):
        request = waiting.popleft()
        return request, await live.ask(request)
    for _ in range(len(waiting)):
        request = waiting.popleft()
        if live.can_answer(request.call):
            live.send(request)
        else:
            waiting.append(request)
    return await live.next()


def _nobody_to_ask(call: Call, unanswered: tuple[Call, ...]) -> Ending:
    what = {
        "yield": "the run asks a person",
        "approval": f"the call of `{call.target}` needs a person's approval",
        "listen": f"the run waits for the event {call.target}",
    }.get(call.kind, f"`{call.target}` is called")
    message = f"{what}, and nobody is there to answer: run it on a terminal, or give answers with --mock"
    return Ending("failed", None, "CONFIG", message, call.stage, call.span, unanswered=unanswered)


def _is_cancelling(interruption: BaseException) -> bool:
    from asyncio import CancelledError

    return isinstance(interruption, CancelledError)


async def _stopped(account: Account, live: Live | None) -> tuple[Call, ...]:
    """Cancels what is under way; answers that had arrived and were not handed in still count."""
    if live is None:
        return ()
    unanswered = await live.stop()
    for request, answer in live.arrived():
        account.add(request.call, answer)
    for call, answer in live.shadowed:
        account.add(call, answer)
    return unanswered


async def _breathe() -> None:
    import asyncio

    await asyncio.sleep(0)


def _ending(driver: Driver, unanswered: tuple[Call, ...]) -> Ending:
    if not driver.ended:
        return Ending("cancelled", unanswered=unanswered)
    failure = driver.failure
    if failure is None:
        return Ending("completed", driver.result, unanswered=unanswered)
    if isinstance(failure, Halt):
        return Ending("halted", failure.value, stage=failure.stage, condition=failure.condition, unanswered=unanswered)
    if isinstance(failure, RunFailure):
        return Ending(
            "failed",
            None,
            failure.code,
            failure.message,
            failure.stage,
            failure.span,
            unanswered=unanswered,
        )
    raise failure
