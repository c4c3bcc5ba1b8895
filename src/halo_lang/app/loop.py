"""The event loop of a run that is asked for by code that is not asynchronous: its beginning and its end.

Owns what `asyncio.run` does not promise: an end. That waits for whatever is left in the loop, and code of somebody's
own (a tool, a model, a handler) may refuse to be cancelled. So what has not stopped after some seconds is left behind.
"""

from __future__ import annotations

import asyncio

from ..doors.live import GRACE_S

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    T = TypeVar("T")


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """The outcome of a coroutine in a loop of its own; otherwise as `asyncio.run`."""
    runner = asyncio.Runner()
    try:
        return runner.run(work)
    finally:
        if _stopped(runner.get_loop()):
            runner.close()


def _stopped(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancels what is left in a loop, and gives whether all of it has stopped in time."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=GRACE_S))
    still = asyncio.all_tasks(loop)
    for task in still:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is known, and said by the call's error
    return not still
