"""What a run tells while it goes, for the library (library.md): typed events, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque

from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ..boundary.call import Answer, Call, Scope
    from ..doors.spend import Ledger
    from ..language.values import Value
    from .result import RunResult

MAX_WAITING = 10_000
"""Events that may wait to be read; past that tokens are dropped, nothing else."""


class Event(Record):
    """Something that happened in a run: one of the kinds below."""


class StageBegan(Event):
    stage: str
    target: str
    scope: Scope


class StageEnded(Event):
    stage: str
    target: str
    scope: Scope


class Tokens(Event):
    """Text of an agent's answer, as it comes."""

    stage: str
    target: str
    scope: Scope
    text: str


class Asked(Event):
    """A call goes out: a request to a model, a call of a tool, or a question to a person (`call.kind`)."""

    call: Call


class Answered(Event):
    """A call has its answer. `cost` is what the run has cost so far, in US dollars."""

    call: Call
    answer: Answer
    cost: float


class Printed(Event):
    value: Value


class Logged(Event):
    value: Value


class Published(Event):
    value: Value


class RunEnded(Event):
    """The run has ended, or paused: `result.waits` says for what."""

    result: RunResult


class Watching:
    """The watcher of a run: turns what it is shown into events and calls."""

    def __init__(
        self,
        on_print: Callable[[Value], None] | None,
        on_publish: Callable[[Value], None] | None,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        self._on_print = on_print
        self._on_publish = on_publish
        self._on_event = on_event
        self.watches = on_event is not None

    def printed(self, value: Value) -> None:
        if self._on_print is not None:
            self._on_print(value)
        self._tell(Printed(value))

    def published(self, value: Value) -> None:
        if self._on_publish is not None:
            self._on_publish(value)
        self._tell(Published(value))

    def logged(self, value: Value) -> None:
        self._tell(Logged(value))

    def stage_began(self, number: str, target: str, scope: Scope) -> None:
        self._tell(StageBegan(number, target, scope))

    def stage_ended(self, number: str, target: str, scope: Scope) -> None:
        self._tell(StageEnded(number, target, scope))

    def tokens(self, call: Call, text: str) -> None:
        self._tell(Tokens(call.stage, call.target, call.scope, text))

    def asked(self, call: Call) -> None:
        self._tell(Asked(call))

    def answered(self, call: Call, answer: Answer, cost: int) -> None:
        self._tell(Answered(call, answer, cost / 1_000_000_000))

    def spends(self, ledger: Ledger) -> None: ...

    def ended(self, result: RunResult) -> None:
        self._tell(RunEnded(result))

    def _tell(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)


class EventStream:
    """Events between a run and whoever reads them."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()
        self._wake = asyncio.Event()

    def put(self, event: Event) -> None:
        if len(self._waiting) < MAX_WAITING or not isinstance(event, Tokens):
            self._waiting.append(event)
            self._wake.set()

    async def until(self, run: asyncio.Future[RunResult]) -> AsyncIterator[Event]:
        """The events until the run is done; raises what the run raised."""
        run.add_done_callback(lambda _: self._wake.set())
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if run.done():
                run.result()
                return
            self._wake.clear()
            await self._wake.wait()
