"""The loop around a run: takes the calls that it asks, finds their answers, and hands them in one at a time.

Owns the order of hand-in, on which everything hangs that hangs on order (runs.md §1). Where no live door is needed it
never waits, so that `without_waiting` can run it with no event loop at all.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import chain

from ..language.record import Record
from ..runtime.failure import Halt, RunFailure
from .folder import KeepingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable
    from typing import Any, Protocol, TypeAlias, TypeVar

    from ..boundary.call import Answer, Call
    from ..language.source import Span
    from ..language.values import Value
    from ..runtime.driver import Driver, Hold, Request
    from ..runtime.stepping import Go
    from .account import Account
    from .keeping import Keeper
    from .live import Live
    from .mock import Mock

    T = TypeVar("T")
    Stuck: TypeAlias = Callable[[Collection["Request"]], "tuple[Request, Answer] | None"]

    class Feed(Protocol):
        """Answers that come from what was recorded. `add` takes up a request that may be the feed's; `take`
        gives the next answer that it has for one of them; `withdraw` forgets one that somebody else answers."""

        def add(self, request: Request) -> None: ...

        def take(self) -> tuple[Request, Answer] | None: ...

        def withdraw(self, request: Request) -> None: ...

    class Stepper(Protocol):
        """Who steps through a debugged run. `held` says how it goes on, `asked` may answer a call by hand; each takes
        its time, in which nothing new is begun, and may raise `Left`."""

        async def held(self, hold: Hold) -> Go: ...

        async def asked(self, call: Call) -> Answer | None: ...


BREATH = 100
"""Hand-ins after which the loop gives way to the event loop."""


class Left(Exception):
    """A debugged run is left where it is held."""


class Stop:
    """Asks a run to stop: no new call begins, those under way may end, then the run is `cancelled`. `told` is called
    when it is asked."""

    __slots__ = ("_live", "asked", "told")

    def __init__(self) -> None:
        self.asked = False
        self.told: Callable[[], None] | None = None
        self._live: Live | None = None

    def ask(self) -> None:
        """Stops the run. Questions to people are taken back at once."""
        self.asked = True
        if self.told is not None:
            self.told()
        if self._live is not None:
            self._live.begin_no_more()

    def reaches(self, live: Live | None) -> None:
        self._live = live


class Ending(Record):
    """How a run ended (runs.md §2), or paused. `status` is `completed`, `halted`, `paused`, `failed` or `cancelled`;
    `output` the flowing value, or that at the gate. `code`, `message`, `stage` and `span` tell of a failure,
    `condition` of a halt. `unanswered` are calls that were under way when the run ended, `waits` those that a paused
    run waits for.
    """

    status: str
    output: Value = None
    code: str = ""
    message: str = ""
    stage: str | None = None
    span: Span | None = None
    condition: str = ""
    unanswered: tuple[Call, ...] = ()
    waits: tuple[Call, ...] = ()


class Doors(Record):
    """Who answers a run; see `answered`."""

    feed: Feed | None
    mock: Mock | None
    live: Live | None
    keeper: Keeper | None
    stuck: Stuck | None
    asking: Callable[[Call], None] | None
    answering: Callable[[Call, Answer], None] | None
    stepper: Stepper | None


async def answered(
    driver: Driver,
    account: Account,
    *,
    feed: Feed | None = None,
    mock: Mock | None = None,
    live: Live | None = None,
    keeper: Keeper | None = None,
    stuck: Stuck | None = None,
    stop: Stop | None = None,
    asking: Callable[[Call], None] | None = None,
    answering: Callable[[Call, Answer], None] | None = None,
    stepper: Stepper | None = None,
) -> Ending:
    """Answers all that a run asks until it ends, or pauses because nobody is there for what it still asks.

    `feed` answers from what was recorded, then `mock` what it covers, then `live` in the world. Where none of them can
    answer any more, `stuck` may give an answer to one of the requests that wait; else the run pauses.
    `keeper` writes down what comes from the world, before the run gets it; `asking` is told of every call, `answering`
    of every answer. A debugged run is held for `stepper`.
    """
    doors = Doors(feed, mock, live, keeper, stuck, asking, answering, stepper)
    if stop is not None:
        stop.reaches(live)
    waits: tuple[Call, ...] = ()
    unanswered: tuple[Call, ...] = ()
    problem = ""
    try:
        waits = await _hand_in(driver, account, doors, stop)
        if stop is not None and stop.asked and live is not None:
            while (arrived := await live.next()) is not None:
                _add_late(account, doors, *arrived)
        unanswered = await _stopped(account, doors)
    except KeepingError as trouble:
        problem = trouble.message
        unanswered = await _stopped(account, doors)
    except BaseException as interruption:
        if live is None:
            raise
        waits, unanswered = (), await _stopped_impatiently(account, doors, live)
        if stop is None or not stop.asked or not _is_cancelling(interruption):
            raise
    if problem:
        return Ending("failed", None, "CONFIG", f"the run cannot go on: {problem}", unanswered=unanswered)
    if waits:
        return Ending("paused", waits=waits, unanswered=unanswered)
    return _ending(driver, unanswered)


async def _hand_in(driver: Driver, account: Account, doors: Doors, stop: Stop | None) -> tuple[Call, ...]:
    """Hands in answers until the run has ended or is asked to stop; gives the calls that it waits for if it pauses."""
    feed, mock, live, keeper = doors.feed, doors.mock, doors.live, doors.keeper
    waiting: dict[Request, None] = {}
    for_mock: deque[Request] = deque()
    unsent: list[Request] = []
    by_hand: dict[Request, Answer] = {}
    only_world = feed is None and mock is None and doors.stepper is None
    handed_in = 0
    while not driver.ended:
        if doors.stepper is not None:
            try:
                await _step(driver, doors.stepper, by_hand)
            except Left:
                return ()
            if driver.ended:
                break
        for request in driver.asked:
            waiting[request] = None
            if doors.asking is not None:
                doors.asking(request.call)
            if request in by_hand:
                continue
            if feed is not None:
                feed.add(request)
            if mock is not None and mock.covers(request.call):
                for_mock.append(request)
            elif live is not None:
                unsent.append(request)
        driver.asked.clear()
        arrived: Iterable[tuple[Request, Answer]] | None = None
        is_kept = True
        if by_hand:
            answered_first = next(iter(by_hand))
            arrived = [(answered_first, by_hand.pop(answered_first))]
            is_kept = live is None
        elif feed is not None and (hit := feed.take()) is not None:
            driver.asides.clear()  # nobody is asked on the side about what was recorded
            arrived = [hit]
        elif mock is not None and (mocked := _next_waiting(for_mock, waiting)) is not None:
            driver.asides.clear()
            if feed is not None:
                feed.withdraw(mocked)
            arrived = [(mocked, mock.answer(mocked.call))]
        elif live is not None:
            if handed_in >= BREATH:
                handed_in = 0
                await _breathe()
            if stop is not None and stop.asked:
                return ()
            alone = _sent(driver, unsent, waiting, live, feed)
            first = await (live.next() if alone is None else live.ask(alone))
            if first is not None:
                arrived, is_kept = (first,), False
                if only_world and live.has_more:
                    # Where nobody else answers, what has arrived is handed in before new calls are sent.
                    arrived = chain(arrived, live.arrived(BREATH))
        if arrived is None:
            if stop is not None and stop.asked:
                return ()
            found = None if doors.stuck is None else doors.stuck(waiting)
            if found is None:
                return tuple(request.call for request in waiting)
            if keeper is not None:
                await keeper.sync()
            arrived = [found]
            if feed is not None:
                feed.withdraw(found[0])
        if keeper is not None and keeper.durable and live is not None and not is_kept:
            arrived = await _kept_together(arrived, keeper, live, account)
            is_kept = True
        for request, answer in arrived:
            if driver.ended:
                _add_late(account, doors, request, answer, is_kept=is_kept)
                continue
            account.add(request.call, answer)
            if keeper is not None and not is_kept:
                keeper.answered(request.call, answer)
            handed_in += 1
            waiting.pop(request, None)
            if doors.answering is not None:
                doors.answering(request.call, answer)
            driver.hand_in(request, answer)
    return ()


async def _step(driver: Driver, stepper: Stepper, by_hand: dict[Request, Answer]) -> None:
    """Holds the run wherever it wants to be held, until every branch waits; then has calls answered by hand, if any."""
    while driver.held is not None:
        driver.go_on(await stepper.held(driver.held))
    for request in driver.asked:
        answer = await stepper.asked(request.call)
        if answer is not None:
            by_hand[request] = answer


def _next_waiting(requests: deque[Request], waiting: dict[Request, None]) -> Request | None:
    """The first of some requests that still waits; takes it."""
    while requests:
        request = requests.popleft()
        if request in waiting:
            return request
    return None


def _sent(
    driver: Driver, unsent: list[Request], waiting: dict[Request, None], live: Live, feed: Feed | None
) -> Request | None:
    """Sends what was not sent yet, still waits and can be answered; but one that is alone it gives, to be asked."""
    if driver.asides:
        for aside in driver.asides:
            live.send_shadow(aside)
        driver.asides.clear()
    sendable = []
    for request in unsent:
        if request in waiting and live.can_answer(request.call):
            sendable.append(request)
            del waiting[request]
            if feed is not None:
                feed.withdraw(request)
    unsent.clear()
    if len(sendable) == 1 and live.can_ask(sendable[0].call):
        return sendable[0]
    for request in sendable:
        live.send(request)
    return None


async def _kept_together(
    arrived: Iterable[tuple[Request, Answer]], keeper: Keeper, live: Live, account: Account
) -> list[tuple[Request, Answer]]:
    """Answers and all others that have arrived, written down and on the disk: they share one sync."""
    together = [*arrived, *live.arrived()]
    try:
        for request, answer in together:
            keeper.answered(request.call, answer)
        await keeper.sync()
    except BaseException:
        for request, answer in together:  # the run does not get them, and has paid for them
            account.add(request.call, answer)
        raise
    return together


def _add_late(account: Account, doors: Doors, request: Request, answer: Answer, *, is_kept: bool = False) -> None:
    """An answer that came when the run had ended: it counts, and shows what happened."""
    account.add(request.call, answer)
    if doors.keeper is not None and not is_kept:
        doors.keeper.answered(request.call, answer, late=True)


def without_waiting(run: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never waits, with no event loop. Raises `RuntimeError` if it would wait."""
    try:
        run.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    run.close()
    raise RuntimeError("the run waits for something although no live door is open")


def _is_cancelling(interruption: BaseException) -> bool:
    from asyncio import CancelledError

    return isinstance(interruption, CancelledError)


async def _stopped(account: Account, doors: Doors) -> tuple[Call, ...]:
    """Cancels what is under way; answers that had arrived and were not handed in still count."""
    live = doors.live
    if live is None:
        return ()
    unanswered = await live.stop()
    for request, answer in live.arrived():
        with suppress(KeepingError):  # the run has its end already
            _add_late(account, doors, request, answer)
    for call, answer in live.shadowed:
        account.add(call, answer)
    return unanswered


async def _stopped_impatiently(account: Account, doors: Doors, live: Live) -> tuple[Call, ...]:
    """The same for a run that is being cancelled; whoever cancels it once more waits for nothing that is left."""
    left = live.under_way()
    try:
        return await _stopped(account, doors)
    except BaseException as impatience:
        if not _is_cancelling(impatience):
            raise
        return left


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
