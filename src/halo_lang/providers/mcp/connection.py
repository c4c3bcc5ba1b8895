"""A connection with a server: opened, spoken through, closed (tools.md §2).

Owns the package `mcp`: all that is asked of a server goes through here, and every failure comes out as a `ToolError`.
The package holds a connection open in one task, and calls come from many; so a connection has a task of its own. What
it checks by a server's own schemas is left out: it would do so with regular expressions that can run away. Read
`stdio.py` and `http.py` for the two ways there.
"""

from __future__ import annotations

import asyncio
import logging
import time

from ...boundary.host import ToolError
from .http import HttpServer
from .lines import UNREADABLE
from .listing import MAX_TOOLS
from .stdio import ServerProcess
from .text import last_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from typing import Any, TypeVar

    from mcp import Client, ClientSession
    from mcp_types import ListToolsResult, PaginatedRequestParams

    from ...language.values import Value
    from .config import Server

    T = TypeVar("T")

MAX_PAGES = 100
PROGRESS_S = 1.0
"""How long is waited between two words about how far a call is."""

CLOSE_S = 5.0
"""How long a connection may take to close before its task is cancelled."""

_UNREAD = ("Failed to parse JSON response", "Failed to parse SSE message")
"""How the package begins its word for an answer by HTTP that it could not read; what follows is about its insides."""

_log = logging.getLogger("halo.mcp")


class Connection:
    """A connection with one server. Opened once; what it asks may be asked from any task, and cancelled."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._timeout_s = server.timeout_s
        self._way: ServerProcess | HttpServer | None = None
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self._is_broken = False
        self.changed = False
        """Whether the server has said that its tools have changed."""

    @property
    def pid(self) -> int | None:
        """The number of the server's process, where it was started by a command."""
        return self._way.pid if isinstance(self._way, ServerProcess) else None

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._is_broken or self._task is None or self._task.done()

    async def open(self) -> None:
        """Starts or reaches the server and agrees with it on how to speak. Raises `ToolError`; then, as where it is
        cancelled, nothing is left of it."""
        way = self._way = HttpServer(self._server) if self._server.url is not None else ServerProcess(self._server)
        try:
            client_of = await asyncio.to_thread(_package)  # takes a second, in which the server starts, too
        except BaseException:
            if isinstance(way, ServerProcess):
                way.kill()
            raise
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ready.add_done_callback(lambda one: one.cancelled() or one.exception())  # nobody may wait for it any more
        self._task = asyncio.create_task(self._hold_open(client_of(way.streams(), self._noticed), ready))
        try:
            async with asyncio.timeout(self._timeout_s):
                await asyncio.shield(ready)
        except TimeoutError:
            await self.close()
            said = "" if self._way is None else self._way.last_words()
            what = f"the server did not answer within {self._timeout_s:g}s of its start, the tool's `timeout`{said}"
            raise ToolError(what, "TOOL_TIMEOUT") from None
        except BaseException:
            await self.close()
            raise

    async def tools(self) -> list[dict[str, Any]]:
        """All tools of the server, as on the wire, page by page. Raises `ToolError`."""
        from mcp_types import PaginatedRequestParams as Params

        self.changed = False
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params = None if cursor is None else Params(cursor=cursor)
            page: ListToolsResult = await self._asked(_listing(params), "the list of its tools")
            wanted = {"name", "title", "description", "input_schema", "annotations"}
            found += [
                tool.model_dump(by_alias=True, mode="json", include=wanted, exclude_none=True) for tool in page.tools
            ]
            cursor = page.next_cursor
            if cursor is None or len(found) > MAX_TOOLS:
                return found
        raise ToolError(f"the server lists its tools on more than {MAX_PAGES} pages")

    async def call(self, name: str, args: Mapping[str, Value]) -> dict[str, Any]:
        """The result of a tool, as on the wire. A call that takes too long or is cancelled is taken back from the
        server. Raises `ToolError`."""
        from typing import Any

        from mcp_types import CallToolRequest, CallToolRequestParams
        from pydantic import TypeAdapter

        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=dict(args)))
        adapter: Any = TypeAdapter(dict[str, Any])

        told_at = -PROGRESS_S

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            nonlocal told_at
            if time.monotonic() - told_at >= PROGRESS_S:
                told_at = time.monotonic()
                # In no words of the server's, which could hold what is a secret.
                _log.info("%s: %s", one_line(name, 100), f"{100 * progress / total:.0f} %" if total else "under way")

        async def ask(session: ClientSession) -> dict[str, Any]:
            answer: dict[str, Any] = await session.send_request(request, adapter, progress_callback=progress)
            return answer

        return await self._asked(ask, f"the call of `{one_line(name, 100)}`")

    async def close(self) -> None:
        """Ends the connection, and the server where it was started for it; at once where this is cancelled."""
        self._closing.set()
        task, way = self._task, self._way
        if task is None or task.done():
            return
        if self._client is None:  # it is still being opened, and waits for the server
            task.cancel()
        try:
            done, _ = await asyncio.wait((task,), timeout=CLOSE_S)
            if not done:
                task.cancel()
                await asyncio.wait((task,), timeout=CLOSE_S)
        finally:
            task.cancel()
            if isinstance(way, ServerProcess):
                way.kill()  # the task does so itself, if it ever began and is let end

    async def _hold_open(self, opening: AbstractAsyncContextManager[Client], ready: asyncio.Future[None]) -> None:
        """The connection's task: from the first question to the server's end."""
        try:
            async with opening as client:
                self._client = client
                ready.set_result(None)
                await self._closing.wait()
        except asyncio.CancelledError:
            ready.cancel()
            raise
        except Exception as trouble:
            _log.debug("the connection ended: %r", trouble)
            if not ready.done():
                ready.set_exception(await self._failure(trouble, "the first question"))
        finally:
            self._client = None

    async def _noticed(self, message: object) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self.changed = True

    async def _asked(self, ask: Callable[[ClientSession], Awaitable[T]], what: str) -> T:
        client = self._client
        if client is None:
            raise ToolError(self._why_gone())
        try:
            async with asyncio.timeout(self._timeout_s):
                return await ask(client.session)
        except TimeoutError:
            said = f"{what} took longer than {self._timeout_s:g}s, the tool's `timeout`, and was taken back"
            raise ToolError(said, "TOOL_TIMEOUT") from None
        except ToolError:
            raise
        except Exception as trouble:
            raise await self._failure(trouble, what) from None

    async def _failure(self, trouble: BaseException, what: str) -> ToolError:
        from mcp_types import CONNECTION_CLOSED

        while isinstance(trouble, BaseExceptionGroup):
            trouble = trouble.exceptions[0]
        if isinstance(trouble, ToolError):
            return trouble
        way, error = self._way, getattr(trouble, "error", None)
        code, message = getattr(error, "code", None), last_lines(str(getattr(error, "message", "")), 2_000)
        if message.startswith(_UNREAD):
            message = UNREADABLE
        is_lost = code == CONNECTION_CLOSED or (isinstance(way, ServerProcess) and way.trouble is not None)
        if way is not None and is_lost:
            self._is_broken = True
            await way.settle()
            return ToolError(self._why_gone())
        if error is not None:
            why = f"{code}; {way.trouble}" if way is not None and way.trouble else str(code)
            return ToolError(f"the server answers {what} with an error: {message} ({why})")
        if type(trouble).__name__ == "ValidationError":
            return ToolError(f"the server's answer to {what} does not follow the protocol")
        if isinstance(trouble, UnicodeError):
            return ToolError("the arguments hold characters that are not valid Unicode", "TOOL_ARGUMENTS")
        _log.debug("unforeseen", exc_info=trouble)
        return ToolError(f"{self._why_gone()} ({one_line(str(trouble), 200) or type(trouble).__name__})")

    def _why_gone(self) -> str:
        return "the server has not been started" if self._way is None else self._way.why_gone()


def _listing(params: PaginatedRequestParams | None) -> Callable[[ClientSession], Awaitable[ListToolsResult]]:
    return lambda session: session.list_tools(params=params)


def _package() -> Callable[[Any, Any], Any]:
    """The package's client, which takes seconds to import; it is done beside what else runs. What it logs holds a
    server's words, and as many as that likes: it goes to whoever listens to its log itself, and to no terminal."""
    from mcp import Client
    from mcp_types import Implementation

    from ...version import VERSION

    for name in ("mcp", "httpx2", "httpcore2"):
        logging.getLogger(name).propagate = False
        logging.getLogger(name).addHandler(logging.NullHandler())
    logging.getLogger("client").addFilter(_is_not_the_packages)  # a part of the package logs under this name
    us = Implementation(name="halo", version=VERSION)
    return lambda transport, notice: Client(transport, message_handler=notice, client_info=us, cache=None)


def _is_not_the_packages(record: logging.LogRecord) -> bool:
    return "/mcp/client/" not in record.pathname.replace("\\", "/")
