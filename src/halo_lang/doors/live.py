"""Live doors: the calls that are under way in the world, and their answers as they arrive.

Owns the tasks. Each finished call puts itself in a queue, so that waiting never costs with the number of calls; at
most 10,000 are under way at once and the others wait for a place. What answers a kind of call is given by whoever
wires the run together (`app`). Of this package only this module and `retry` need an event loop.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque

from ..boundary.call import AGENT, TOOL, Answer, failed
from ..language.record import replace
from .folder import KeepingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from typing import TypeAlias

    from ..boundary.call import Call
    from ..runtime.driver import Aside, Request

    Door: TypeAlias = Callable[[Call], Awaitable[Answer]]

MAX_UNDER_WAY = 10_000
GRACE_S = 5.0
"""How long cancelled calls may take to stop, and how long those under way get when a person stops the run."""

log = logging.getLogger("halo")


class Live:
    """The calls of one run that are under way.

    `doors` answer calls by their kind; a kind that has none cannot be answered here. A door gives an `Answer` for
    every end but its own cancelling; anything else that it raises becomes a failed answer. Without `shadows` none are
    sent.
    """

    __slots__ = (
        "_arrived",
        "_beside",
        "_can_answer",
        "_doors",
        "_queued",
        "_sends_shadows",
        "_under_way",
        "_wake",
        "shadowed",
    )

    def __init__(
        self,
        doors: Mapping[str, Door],
        can_answer: Callable[[Call], bool] | None = None,
        *,
        shadows: bool = True,
    ) -> None:
        self._doors = doors
        self._can_answer = can_answer
        self._sends_shadows = shadows
        self._under_way: dict[Request, asyncio.Task[None] | None] = {}
        self._queued: deque[Request] = deque()
        self._arrived: deque[tuple[Request, Answer]] = deque()
        self._beside: set[asyncio.Task[None]] = set()
        self._wake: asyncio.Future[None] | None = None
        self.shadowed: list[tuple[Call, Answer]] = []

    def can_answer(self, call: Call) -> bool:
        return call.kind in self._doors and (self._can_answer is None or self._can_answer(call))

    def can_ask(self, call: Call) -> bool:
        """Whether `ask` may be used for a call that can be answered: nothing else is under way, and it is no question
        to a person."""
        return not (self._under_way or self._arrived) and call.kind in (AGENT, TOOL)

    def send(self, request: Request) -> None:
        """Begins a call; its answer comes from `next`."""
        if len(self._under_way) >= MAX_UNDER_WAY:
            self._queued.append(request)
        else:
            self._under_way[request] = asyncio.get_running_loop().create_task(self._carry(request))

    def send_shadow(self, aside: Aside) -> None:
        """Begins a call that answers nobody; what became of it is added to `shadowed`."""
        if not self._sends_shadows:
            return
        task = asyncio.get_running_loop().create_task(self._carry_shadow(aside))
        self._put_beside(task)

    async def ask(self, request: Request) -> tuple[Request, Answer]:
        """Makes one call without a task of its own: the shorter way where it is the only one."""
        self._under_way[request] = None
        answer = await self._answer(request.call)
        del self._under_way[request]
        return request, answer

    async def next(self) -> tuple[Request, Answer] | None:
        """The next answer that has arrived, in the order of arrival; None where none can come any more."""
        while not self._arrived:
            if not self._under_way:
                return None
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        return self._arrived.popleft()

    @property
    def has_more(self) -> bool:
        """Whether an answer has arrived that was not taken."""
        return bool(self._arrived)

    def arrived(self, most: int = MAX_UNDER_WAY) -> Iterator[tuple[Request, Answer]]:
        """The answers that have arrived, at most so many, in the order of arrival, each taken when it is its turn."""
        while self._arrived and most:
            most -= 1
            yield self._arrived.popleft()

    def begin_no_more(self) -> None:
        """Begins no call any more, and takes back the questions to people: nobody has acted on them."""
        self._queued.clear()
        for request, task in list(self._under_way.items()):
            if request.call.kind not in (AGENT, TOOL) and task is not None:
                task.cancel()
                self._put_beside(task)
                del self._under_way[request]
        self._rouse()

    def under_way(self) -> tuple[Call, ...]:
        """The calls that have begun and have no answer."""
        return tuple(request.call for request in self._under_way)

    async def stop(self) -> tuple[Call, ...]:
        """Cancels what is under way and waits until it has stopped; gives the calls that got no answer."""
        self._queued.clear()
        stopped = self.under_way()
        tasks = [*(task for task in self._under_way.values() if task is not None), *self._beside]
        for task in tasks:
            task.cancel()
        if tasks:
            _, still = await asyncio.wait(tasks, timeout=GRACE_S)
            for _ in still:
                log.warning("a cancelled call has not stopped within %g s", GRACE_S)
        self._under_way.clear()
        return stopped

    def _put_beside(self, task: asyncio.Task[None]) -> None:
        """A task that answers nobody, to be waited for at the end."""
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _carry(self, request: Request) -> None:
        answer = await self._answer(request.call)
        del self._under_way[request]
        self._arrived.append((request, answer))
        self._rouse()
        if self._queued:
            self.send(self._queued.popleft())

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def _carry_shadow(self, aside: Aside) -> None:
        try:
            answer = await self._answer(aside.call)
        except asyncio.CancelledError:
            self.shadowed.append((aside.call, failed("MODEL_ERROR", "it had no answer yet when the run ended")))
            raise
        self.shadowed.append((aside.call, answer if aside.shown is None else aside.shown(answer)))

    async def _answer(self, call: Call) -> Answer:
        began = time.perf_counter()
        try:
            answer = await self._doors[call.kind](call)
        except KeepingError as trouble:
            answer = failed("CONFIG", trouble.message)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as fault:
            task = asyncio.current_task()
            if isinstance(fault, asyncio.CancelledError) and (task is None or task.cancelling()):
                raise  # else nobody cancelled the call: somebody's own code has awaited something that was
            log.exception("%s failed in an unforeseen way", call.target)
            code = "MODEL_ERROR" if call.kind == AGENT else "TOOL_ERROR"
            answer = failed(code, f"`{call.target}` failed in an unforeseen way ({type(fault).__name__})")
        ms = round((time.perf_counter() - began) * 1000)
        return answer if ms == answer.ms else replace(answer, ms=ms)
