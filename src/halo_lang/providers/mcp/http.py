"""A server that is reached at an address, by streamable HTTP (tools.md §2).

Owns the bounds on what it may send, which the package does not have: bodies are counted while they are read, and come
as they are, since a small compressed one can be huge. The package follows a redirect only where scheme, host and port
stay the same, so no header travels to another. Nothing is taken from the environment: no proxy, no `.netrc`. Read
`connection.py` for who speaks with it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

from .lines import MAX_PARTS, most_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from httpx2 import AsyncBaseTransport
    from mcp.client._transport import TransportStreams

    from .config import Server

MAX_BODY_BYTES = 16 << 20
"""Bytes of an answer, and of one event of a stream."""
MAX_STREAM_BYTES = 64 << 20
"""Bytes of all the events of one stream."""
CONNECT_S = 10.0


class HttpServer:
    """A server at an address. `trouble` is what last went wrong on the way, where the package does not say it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.trouble: str | None = None

    def why_gone(self) -> str:
        """What to say of a server that answers no more."""
        return f"the connection with the server is lost{f': {self.trouble}' if self.trouble else ''}"

    def last_words(self) -> str:
        return ""

    async def settle(self) -> None:
        return

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """The transport by which the package speaks with the server."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        client = httpx2.AsyncClient(
            headers={**self._server.headers, "Accept-Encoding": "identity"},
            timeout=httpx2.Timeout(self._server.timeout_s, connect=min(CONNECT_S, self._server.timeout_s)),
            transport=self._bounded(httpx2.AsyncHTTPTransport(trust_env=False)),
            trust_env=False,
            follow_redirects=False,
        )
        address = str(self._server.url)
        async with (
            client,
            streamable_http_client(address, http_client=client, max_sse_event_size=MAX_BODY_BYTES) as streams,
        ):
            yield streams

    def _bounded(self, inner: AsyncBaseTransport) -> AsyncBaseTransport:
        from typing import cast

        import httpx2

        server = self

        class Counted(httpx2.AsyncByteStream):
            def __init__(self, stream: httpx2.AsyncByteStream, *, has_events: bool) -> None:
                self._stream, self._has_events = stream, has_events
                self._most = MAX_STREAM_BYTES if has_events else MAX_BODY_BYTES

            async def __aiter__(self) -> AsyncIterator[bytes]:
                left, parts = self._most, 0
                async for chunk in self._stream:
                    left -= len(chunk)
                    parts += most_parts(chunk)
                    if left < 0 or parts > MAX_PARTS:
                        most = f"{MAX_PARTS:,} parts" if left >= 0 else f"{self._most >> 20} MiB"
                        server.trouble = f"it sent an answer of more than {most}"
                        raise httpx2.StreamError(server.trouble)
                    if self._has_events and (b"\n\n" in chunk or b"\r\n\r\n" in chunk):
                        parts = 0
                    yield chunk

            async def aclose(self) -> None:
                await self._stream.aclose()

        class Bounded(httpx2.AsyncBaseTransport):
            async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
                server.trouble = None
                try:
                    response = await inner.handle_async_request(request)
                except httpx2.HTTPError as trouble:
                    server.trouble = f"{request.url.host} cannot be reached: {trouble or type(trouble).__name__}"
                    raise
                kind = response.headers.get("content-type", "").lower()
                coding = response.headers.get("content-encoding", "identity").strip().lower()
                if coding not in ("", "identity"):
                    await response.aclose()
                    server.trouble = "it sends its answers compressed, which Halo does not ask for"
                    raise httpx2.ReadError(server.trouble, request=request)
                if response.status_code >= 400:
                    server.trouble = f"HTTP status {response.status_code}"
                stream = cast(httpx2.AsyncByteStream, response.stream)
                return httpx2.Response(
                    response.status_code,
                    headers=response.headers,
                    stream=Counted(stream, has_events=kind.startswith("text/event-stream")),
                    extensions=response.extensions,
                )

            async def aclose(self) -> None:
                await inner.aclose()

        return Bounded()
