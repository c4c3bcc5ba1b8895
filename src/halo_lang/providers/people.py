"""People: yields, approvals and events that somebody is there to answer (language.md §7, tools.md §3).

Owns what a person's answer becomes, and that one question is asked at a time. How somebody is asked (a terminal, a
function of the host's) is given; an exception or a time-out there is never a yes.
"""

from __future__ import annotations

import asyncio
import logging

from ..boundary.call import Answer, approves_all, failed
from ..boundary.host import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..boundary.call import Call
    from ..boundary.host import Handlers, Preview
    from ..language.values import Value

log = logging.getLogger("halo")


class People:
    """Answers the yields, approvals and listens of one run. `preview` gives what a file's change would do, for the
    calls of tools that can tell."""

    def __init__(self, handlers: Handlers, preview: Callable[[Call], Awaitable[Preview | None]]) -> None:
        self._handlers = handlers
        self._preview = preview
        self._turn = asyncio.Lock()
        self._asked = 0
        self._for_all: dict[str, int] = {}

    async def answer_yield(self, call: Call) -> Answer:
        assert self._handlers.on_yield is not None
        async with self._turn:
            timeout = call.args.get("timeout")
            try:
                # The time runs from when the question is shown.
                async with asyncio.timeout(float(timeout) if isinstance(timeout, int | float) else None):
                    return Answer(await self._handlers.on_yield(call))
            except TimeoutError:
                return Answer({"approved": False, "timedOut": True})
            except (Exception, asyncio.CancelledError) as fault:
                if _is_the_runs(fault):
                    raise
                log.exception("asking a person failed")
                return Answer({"approved": False})

    async def answer_listen(self, call: Call) -> Answer:
        assert self._handlers.on_listen is not None
        async with self._turn:
            try:
                return Answer(await self._handlers.on_listen(call))
            except EOFError:
                return failed("CONFIG", f"the run waits for the event {call.target}, and input has ended")

    async def answer_approval(self, call: Call) -> Answer:
        """One approval; where a person has said yes to all calls of the method, those that waited are approved too."""
        assert self._handlers.on_approval is not None
        self._asked += 1
        number = self._asked
        async with self._turn:
            # Only what waited when it was said: what is asked later, the run has a reason to ask.
            if number <= self._for_all.get(call.target, 0):
                return Answer({"approved": True, "all": True})
            try:
                preview = await self._preview(call)
            except ToolError as trouble:  # the call could not be made anyway: nobody need be asked
                return failed(trouble.code, trouble.message)
            try:
                said = await self._handlers.on_approval(call, preview)
            except (Exception, asyncio.CancelledError) as fault:
                if _is_the_runs(fault):
                    raise
                log.exception("asking a person failed")
                return Answer({"approved": False})
            answer: dict[str, Value] = said if isinstance(said, dict) else {"approved": said is True}
            if approves_all(answer):
                self._for_all[call.target] = self._asked
            return Answer(answer, digest=None if preview is None else preview.digest)


def _is_the_runs(fault: BaseException) -> bool:
    """Whether the question is cancelled; else a cancellation is what the host's own code came to, as any exception."""
    task = asyncio.current_task()
    return isinstance(fault, asyncio.CancelledError) and (task is None or task.cancelling() > 0)
