"""A server that is started by a command and spoken with over its standard streams (tools.md §2).

Owns the process and the bounds on what it may say. The package's own transport gathers a line of any length, and hands
the server's standard error to the terminal; so this takes its place. Nothing of Halo's own is on the server's streams:
it writes to pipes that only this reads. Read `connection.py` for who speaks with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from ...boundary.host import ToolError
from ..processes import end_session, kill_session, session_members
from .lines import message_of
from .text import last_lines, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

    from .config import Server

MAX_MESSAGE_BYTES = 16 << 20
"""Bytes of one message; a picture comes as text in one."""
MAX_UNASKED_BYTES = 64 << 20
"""Bytes that a server may say of its own accord between two requests."""
MAX_NOISE_BYTES = 1 << 20
"""Bytes of lines that are no message, such as a banner, between two requests."""
MAX_REQUESTS = 10_000
"""Requests that a server may make between two of ours."""
END_GRACE_S = 2.0
"""How long a server may take to end once its input has ended."""

_KEPT = 8 * 1024
_POLL_S = 0.02
_SETTLE_S = 1.0
_log = logging.getLogger("halo.mcp")


class ServerProcess:
    """A server under way. `trouble` says why it was stopped, where its own doing was why. To be made where an event
    loop runs; raises `ToolError` where it cannot be started."""

    def __init__(self, server: Server) -> None:
        self.trouble: str | None = None
        self._code: int | None = None
        try:
            self._popen = subprocess.Popen(
                server.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=server.cwd,
                env=dict(server.variables),
                start_new_session=True,
            )
        except (OSError, ValueError) as trouble:
            reason = getattr(trouble, "strerror", None) or str(trouble)
            raise ToolError(f"the server cannot be started: {reason}") from None
        self._stderr = _Tail()
        self._open: list[asyncio.BaseTransport] = []

    @property
    def pid(self) -> int:
        return self._popen.pid

    def why_gone(self) -> str:
        """What to say of a server that answers no more."""
        if self.trouble is not None:
            what = f"the server was stopped: {self.trouble}"
        elif self.has_ended():
            what = f"the server has ended{'' if self._code is None else f' (exit code {self._code})'}"
        else:
            what = "the server has closed its output"
        return what + self.last_words()

    def last_words(self) -> str:
        """The last lines of what it wrote to its standard error, to be added to a message."""
        said = last_lines(bytes(self._stderr.data).decode("utf-8", "replace"), 1_000)
        return f"; the last that it said:\n{said}" if said else ""

    async def settle(self) -> None:
        """Waits a little, for a server that has closed its output, until it has ended and has said why."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                while not (self.has_ended() and self._stderr.closed):
                    await asyncio.sleep(_POLL_S)

    def has_ended(self) -> bool:
        """Whether the program has ended. Its exit code is looked at and not taken: its number stays its own until all
        of its session has been ended."""
        if self._code is None and self._popen.returncode is None:
            try:
                ended = os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except (AttributeError, ChildProcessError):
                self._code = self._popen.poll()
            else:
                if ended is not None:
                    normally = ended.si_code == os.CLD_EXITED
                    self._code = ended.si_status if normally else 128 + ended.si_status
        return self._code is not None

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """The transport by which the package speaks with the server; the process has ended when this has."""
        import anyio

        to_us, ours = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        theirs, to_server = anyio.create_memory_object_stream["SessionMessage"](0)
        try:
            reader, writer = await self._connect()
            async with anyio.create_task_group() as tasks:
                unasked = _Unasked()
                tasks.start_soon(self._read, reader, to_us, unasked)
                tasks.start_soon(self._write, to_server, writer, to_us, unasked)
                try:
                    yield ours, theirs
                finally:
                    with anyio.CancelScope(shield=True):
                        await self.stop()
                    tasks.cancel_scope.cancel()
        finally:
            self.kill()
            for stream in (to_us, ours, theirs, to_server):
                stream.close()

    async def stop(self) -> None:
        """Closes the server's input, and ends it, and what it started, where they do not end by that."""
        if self._popen.stdin is not None:
            for transport in self._open:
                if isinstance(transport, asyncio.WriteTransport) and not transport.is_closing():
                    transport.abort()
            with suppress(OSError):
                self._popen.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_GRACE_S):
                while not self.has_ended():
                    await asyncio.sleep(_POLL_S)
        if session_members(self._popen):
            await end_session(self._popen)

    def kill(self) -> None:
        """The last step: kills what is left at once, takes the exit code, closes the pipes."""
        if self._popen.returncode is None:
            self.has_ended()
            kill_session(self._popen)
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(END_GRACE_S)
        for transport in self._open:
            transport.close()
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=MAX_MESSAGE_BYTES, loop=loop)
        incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._popen.stdout)
        self._open.append(incoming)
        errors, _ = await loop.connect_read_pipe(lambda: self._stderr, self._popen.stderr)
        self._open.append(errors)
        outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, self._popen.stdin)
        self._open.append(outgoing)
        return reader, asyncio.StreamWriter(outgoing, protocol, None, loop)

    async def _read(
        self,
        reader: asyncio.StreamReader,
        to_us: MemoryObjectSendStream[SessionMessage | Exception],
        unasked: _Unasked,
    ) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

        async with to_us:
            while self.trouble is None:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    self.trouble = f"it sent a message of more than {MAX_MESSAGE_BYTES >> 20} MiB"
                    break
                except (asyncio.IncompleteReadError, OSError):
                    return
                message = message_of(line)
                if message is None:
                    _log.debug("no message: %s", one_line(line[:400].decode("utf-8", "replace"), 200))
                    self.trouble = unasked.noise(len(line))
                    continue
                if not isinstance(message, JSONRPCResponse | JSONRPCError):
                    self.trouble = unasked.message(len(line), isinstance(message, JSONRPCRequest))
                try:
                    await to_us.send(SessionMessage(message))
                except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                    return
            kill_session(self._popen)

    async def _write(
        self,
        to_server: MemoryObjectReceiveStream[SessionMessage],
        writer: asyncio.StreamWriter,
        to_us: MemoryObjectSendStream[SessionMessage | Exception],
        unasked: _Unasked,
    ) -> None:
        from mcp_types import JSONRPCRequest

        async with to_server:
            async for message in to_server:
                if isinstance(message.message, JSONRPCRequest):
                    unasked.clear()
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    writer.write(text.encode() + b"\n")
                    await writer.drain()
                except OSError:
                    to_us.close()  # it reads no more, so nothing that is asked would be answered
                    return


class _Unasked:
    """What a server has said since it was last asked anything. Each gives what it then has too much of, or None."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._bytes = self._noise = self._requests = 0

    def noise(self, size: int) -> str | None:
        self._noise += size
        return "what it writes to its output is no MCP" if self._noise > MAX_NOISE_BYTES else None

    def message(self, size: int, is_request: bool) -> str | None:
        self._bytes += size
        self._requests += is_request
        if self._bytes > MAX_UNASKED_BYTES:
            return f"it sent more than {MAX_UNASKED_BYTES >> 20} MiB that nobody asked for"
        return f"it made more than {MAX_REQUESTS:,} requests" if self._requests > MAX_REQUESTS else None


class _Tail(asyncio.Protocol):
    """The end of a stream."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.closed = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    def data_received(self, data: bytes) -> None:
        self.data += data[-_KEPT:]
        if len(self.data) > _KEPT:
            del self.data[:-_KEPT]
