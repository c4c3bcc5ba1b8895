"""Work that blocks, done in a thread, which a cancelled call stops.

Owns the way from a provider's coroutine to a thread and back. The work is given a `Stop` and looks at it wherever it
may stop; a cancelled call waits until the work has stopped, so that nothing of it goes on behind the run's back.
Never interrupts a system call: work that hangs in one is left behind after `GRACE_S`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

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

    stop = Stop()
    doing = asyncio.ensure_future(asyncio.to_thread(_begin, work, stop))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        stop.ask()
        await _ended(doing)
        raise


def _begin(work: Callable[[Stop], T], stop: Stop) -> T:
    stop.check()
    return work(stop)


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
