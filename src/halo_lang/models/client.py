"""One attempt at a model request, whatever the provider (tools.md §4).

Owns the connections of a run and the way from a model's name to the wire that speaks to it. Makes exactly one attempt;
`doors/retry.py` makes several, with their time limits. Read `providers.py` and `transport.py` next.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType

from ..boundary.call import Answer, ModelRequest
from ..boundary.host import Environment
from ..version import VERSION
from . import adapter, anthropic, embedded, openai, own
from .providers import ADAPTER, ANTHROPIC, EMBEDDED, OWN, Endpoint, endpoint, key_names
from .reply import Malformed, decoded, mended, unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import aiohttp

    from .transport import Target

MAX_IN_FLIGHT = 10_000
"""Requests under way at once, all servers together (architecture.md); fewer where the process may open fewer files."""


class ModelClient:
    """The models of one run. Everything is opened late, and in the event loop that first needs it."""

    def __init__(
        self,
        environment: Environment,
        configured: Mapping[str, Mapping[str, str]] | None = None,
        base: Path | None = None,
        functions: Mapping[str, own.OwnModel] | None = None,
    ) -> None:
        """`configured` are halo.toml's `[models.NAME]`; `base` is the folder that `embedded/PATH.gguf` starts from
        (the working folder where it is not given); `functions` answer for providers that somebody registered."""
        self._environment = environment
        self._configured = configured or {}
        self._base = base or Path.cwd()
        self._functions = functions or {}
        self._endpoints: dict[str, Endpoint] = {}
        self._targets: dict[str, Target] = {}
        self._adapted: dict[str, adapter.Adapted] = {}
        self._places: dict[str, asyncio.Semaphore] = {}
        self._session: aiohttp.ClientSession | None = None

    def prepare(self, model: str) -> Endpoint:
        """The endpoint of a model, and everything about it that can be known before a run begins: that its key is
        there, its package installed, its file readable. Raises `ConfigError`. Sends nothing."""
        found = self._endpoints.get(model)
        if found is None:
            provider, _, name = model.partition("/")
            if provider in self._functions and name:
                found = Endpoint(model, provider, name, OWN)
            else:
                found = endpoint(model, self._environment, self._configured)
            if found.wire == EMBEDDED:
                embedded.check(found, self._base)
            elif found.wire == ADAPTER:
                self._adapted[model] = adapter.adapted(found, self._environment, self._configured)
            self._endpoints[model] = found
        return found

    def key_names(self) -> list[str]:
        """The variables in which providers' keys are looked for, used or not."""
        return key_names(self._configured)

    def place(self, model: str) -> AbstractAsyncContextManager[object]:
        """A place among the requests under way, to be held during an attempt; waiting for it is no part of the
        attempt's time. An embedded model answers one request at a time."""
        inside = self.prepare(model).wire == EMBEDDED
        key = model if inside else ""
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = asyncio.Semaphore(1 if inside else _in_flight())
        return place

    def wire_bytes(self, request: ModelRequest) -> int:
        """The UTF-8 bytes of the body that is sent, streamed or not: at most a few dozen more than that. For a
        provider of the extra, whose body is not ours, the bytes of a like one."""
        found = self.prepare(request.model)
        return len(_wire(found).body(request, found, True))

    async def attempt(self, request: ModelRequest, watch: Callable[[str], None] | None = None) -> Answer:
        """One attempt, without a time limit. With `watch` the reply is streamed, and its text handed on as it comes.

        A reply that cannot be used (cut, refused, empty, malformed) is an answer with `error` and its `usage`; no
        reply is `AttemptFailed`. Cancelling it closes its connection, so that the server stops too. `cost` is left
        to the doors.
        """
        found = self.prepare(request.model)
        if found.wire == ADAPTER:
            return await self._adapted[request.model].attempt(request, watch)
        if found.wire == OWN:
            return await own.attempt(self._functions[found.provider], request, watch)
        from .transport import Target, events, is_stream, post, session, whole  # not before there is something to send

        target = self._targets.get(request.model)
        if target is None:
            if found.wire == EMBEDDED:
                found = await embedded.start(found, self._base)
            target = self._targets[request.model] = Target(found, f"halo-lang/{VERSION}")
        if self._session is None:
            self._session = session(_in_flight())
        wire = _wire(found)
        response = await post(self._session, target, wire.body(request, target.endpoint, watch is not None))
        try:
            async with response:
                if watch is not None and is_stream(response):
                    return await _gather(wire.Stream(request, target.endpoint), events(response, target), watch)
                answer: Answer = wire.read(decoded(await whole(response, target)), request, target.endpoint)
        except Malformed as trouble:
            return unusable(request, trouble)
        if watch is not None and isinstance(answer.value, str):
            watch(answer.value)
        return answer

    async def close(self) -> None:
        """Closes the connections. An embedded model stays loaded for the process's next run."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        for adapted in self._adapted.values():
            await adapted.close()


async def _gather(
    stream: openai.Stream | anthropic.Stream, datas: AsyncIterator[bytes], watch: Callable[[str], None]
) -> Answer:
    try:
        async for data in datas:
            text = stream.take(data)
            if text:
                watch(mended(text))
            if stream.done:
                break
        return stream.answer()
    except Malformed as trouble:
        trouble.usage = trouble.usage or stream.usage
        raise


def _wire(found: Endpoint) -> ModuleType:
    return anthropic if found.wire == ANTHROPIC else openai


def _in_flight() -> int:
    """As many as the open files of the process allow, with room for what else it opens."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
    except ImportError:
        return MAX_IN_FLIGHT
    soft, _ = getrlimit(RLIMIT_NOFILE)
    return MAX_IN_FLIGHT if soft == RLIM_INFINITY else max(16, min(MAX_IN_FLIGHT, soft - 128))
