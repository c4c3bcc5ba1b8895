"""How a run of the library is left: stopped from any thread, and interrupted in code that is not asynchronous.

Owns the way from a thread to a run's event loop. Read `runtime.py` for who uses it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ..app.loop import run_to_end
from ..doors.answering import Stop
from ..doors.live import GRACE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, TypeVar

    from ..app.result import RunResult as Result
    from ..app.running import Host

    T = TypeVar("T")


class Stoppable:
    """One run under way, which can be stopped. It is known before it has begun: `stop_soon` is then False."""

    def __init__(self) -> None:
        self._stop = Stop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._last: asyncio.TimerHandle | None = None
        self._has_cancelled = False

    async def carried_out(self, start: Callable[[Host, Stop], Coroutine[Any, Any, Result]], host: Host) -> Result:
        """Carries out the run in the task that awaits this."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        try:
            return await start(host, self._stop)
        finally:
            task, self._task = self._task, None
            if self._last is not None:
                self._last.cancel()
            if self._has_cancelled and task is not None:
                task.uncancel()  # it was cancelled for the run's sake; whatever the host does in it next is not

    def stop_soon(self, grace_s: float) -> bool:
        """Asks the run to stop, from any thread, and cancels what is under way after some seconds. Gives whether the
        run was under way."""
        loop = self._loop
        if loop is None or self._task is None:
            return False
        if _running_loop() is loop:
            self._ask(grace_s)
            return True
        try:
            loop.call_soon_threadsafe(self._ask, grace_s)
        except RuntimeError:  # it is closed: the run has ended meanwhile
            return False
        return True

    def _ask(self, grace_s: float) -> None:
        if self._task is None or self._loop is None:
            return
        self._stop.ask()
        if self._last is not None:
            self._last.cancel()
        self._last = self._loop.call_later(grace_s, self._cancel)

    def _cancel(self) -> None:
        if self._task is not None and not self._has_cancelled:
            self._has_cancelled = True
            self._task.cancel()


def from_plain_code(run: Coroutine[Any, Any, T]) -> T:
    """The outcome of a run, for code that is not asynchronous. Where an event loop runs in this thread already, the run
    has a thread of its own, with the context variables of whoever calls; an interrupt cancels it first."""
    if _running_loop() is None:
        return run_to_end(run)
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    is_interrupted = False

    async def noted() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        if is_interrupted:
            task.cancel()
        return await run

    with ThreadPoolExecutor(1, "halo run") as pool:
        outcome = pool.submit(copy_context().run, run_to_end, noted())
        try:
            return outcome.result()
        except BaseException:
            is_interrupted = True
            for loop, task in begun:
                with suppress(RuntimeError):  # it is closed: the run has ended meanwhile
                    loop.call_soon_threadsafe(task.cancel)
            raise


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


__all__ = ["GRACE_S", "Stoppable", "from_plain_code"]
