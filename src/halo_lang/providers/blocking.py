"""Work that blocks, done in a thread, which a cancelled call stops; and coroutines that may refuse to stop.

Owns the way from a provider's coroutine to a thread and back. The work is given a `Stop` and looks at it wherever it
may stop; a cancelled call waits until the work has stopped, so that nothing of it goes on behind the run's back.
Never interrupts a system call: work that hangs in one is left behind after `GRACE_S`, and nothing waits for it again.
"""

from __future__ import annotations

from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

MAX_THREADS = 32
GRACE_S = 5.0
"""How long a cancelled call waits for its work to stop."""


class Stopped(Exception):
    """The call that the work was done for has been cancelled."""


class Stop:
    """Whether work should stop. Set from the event loop, looked at from the thread."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked = False

    def ask(self) -> None:
        self._asked = True

    @property
    def asked(self) -> bool:
        """Whether stopping has been asked for."""
        return self._asked

    def check(self) -> None:
        """Raises `Stopped` once stopping has been asked for."""
        if self._asked:
            raise Stopped


async def in_thread(work: Callable[[Stop], T]) -> T:
    """What `work` gives, or raises. Where the caller is cancelled, the work is asked to stop and waited for."""
    import asyncio
    from contextvars import copy_context

    stop, loop, context = Stop(), asyncio.get_running_loop(), copy_context()
    doing: Future[T] = loop.create_future()

    def do() -> None:
        value, error = None, None
        try:
            value = context.run(_begin, work, stop)
        except BaseException as trouble:
            error = trouble
        with suppress(RuntimeError):  # the loop has been closed, and nobody waits any more
            loop.call_soon_threadsafe(_settle, doing, value, error)

    _threads().do(do)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        stop.ask()
        await _ended(doing)
        if not doing.done():
            _threads().replace_one(doing)
        raise


async def held(work: Awaitable[T]) -> T:
    """What somebody's own coroutine gives, or raises. Where the caller is cancelled so is the coroutine, and one that
    does not let itself be cancelled is left behind after `GRACE_S`."""
    import asyncio

    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        doing.cancel()
        await _ended(doing)
        raise


class _Threads:
    """Threads for work, started as they are needed, at most `MAX_THREADS` that are not left behind.

    Not asyncio's own: those are waited for at the end of the loop and of the process, so that work which hangs, such as
    a request of somebody's own tool without a time-out, would keep a run that has ended from ending.
    """

    def __init__(self) -> None:
        from queue import SimpleQueue
        from threading import Lock, Semaphore

        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._idle = Semaphore(0)
        self._lock = Lock()
        self._begun = 0
        self._most = MAX_THREADS

    def do(self, work: Callable[[], None]) -> None:
        """Has the work done as soon as there is a thread. It must not raise."""
        self._work.put(work)
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._begun < self._most:
                self._start()
                self._begun += 1

    def replace_one(self, doing: Future[T]) -> None:
        """Lets another thread be started in the place of one that was left behind, until that is done."""
        with self._lock:
            self._most += 1

        def back(_: object) -> None:
            with self._lock:
                self._most -= 1

        doing.add_done_callback(back)

    def _start(self) -> None:
        from threading import Thread

        Thread(target=self._go_on, name="halo work", daemon=True).start()

    def _go_on(self) -> None:
        while True:
            self._work.get()()
            self._idle.release()


_shared: list[_Threads] = []


def _threads() -> _Threads:
    if not _shared:
        _shared.append(_Threads())
    return _shared[0]


def _begin(work: Callable[[Stop], T], stop: Stop) -> T:
    stop.check()
    return work(stop)


def _settle(doing: Future[Any], value: Any, error: BaseException | None) -> None:
    if doing.cancelled():
        return
    if error is None:
        doing.set_result(value)
    else:
        doing.set_exception(error)


async def _ended(doing: Future[T]) -> None:
    """Waits for the end of the work, however often it is cancelled itself meanwhile, but no longer than `GRACE_S`."""
    import asyncio

    loop = asyncio.get_running_loop()
    until = loop.time() + GRACE_S
    while not doing.done() and (left := until - loop.time()) > 0:
        try:
            await asyncio.wait({doing}, timeout=left)
        except asyncio.CancelledError:
            continue
    doing.add_done_callback(_noted)


def _noted(doing: Future[T]) -> None:
    """Takes the outcome that nobody waits for, so that the event loop does not report it as forgotten."""
    if not doing.cancelled():
        doing.exception()
