"""An event loop whose time is made up: a wait costs nothing, and all happens in an order that is always the same.

Where nothing is ready it moves its clock to the next timer. Where there is no timer either, nothing can ever happen
again: that is a `Stuck`, so no test that uses it can hang.
"""

from __future__ import annotations

import asyncio
from asyncio.base_events import BaseEventLoop
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(Exception):
    """Everything waits for something else."""


class _Nothing:
    """What the loop asks for input and output: there is none, so waiting only moves the clock."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck
        self.now += max(0.0, timeout)
        return []

    def close(self) -> None:
        pass


class VirtualLoop(BaseEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._selector = _Nothing()

    def time(self) -> float:
        return self._selector.now

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def run_virtually(steps: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end. Raises `Stuck`."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(steps)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
