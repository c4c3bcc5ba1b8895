"""A server on 127.0.0.1 that answers with exactly the bytes it is told to, for the tests of the models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from halo_lang.boundary.call import Message, ModelRequest
from halo_lang.boundary.host import Environment
from halo_lang.models.client import ModelClient

Reply = bytes | Sequence[bytes | None] | Callable[[asyncio.StreamWriter], Awaitable[None]]
"""What is sent to one request: bytes; pieces, sent apart, where None waits for ever; or a function."""


class Server:
    """What a server was asked, in order: the head of each request and its body."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.heads: list[str] = []
        self.bodies: list[Any] = []
        self.sizes: list[int] = []
        self.open = 0
        self.most_open = 0
        self.closed = asyncio.Event()
        self.asked = asyncio.Event()
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lengths = [h[15:] for h in head.split("\r\n") if h.lower().startswith("content-length:")]
                body = await reader.readexactly(int(lengths[0]))
                self.heads.append(head)
                self.bodies.append(json.loads(body))
                self.sizes.append(len(body))
                self.asked.set()
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                await self._send(reply, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            self.closed.set()
            writer.close()

    async def _send(self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if callable(reply):
            await reply(writer)
            return
        for piece in [reply] if isinstance(reply, bytes) else reply:
            if piece is None:
                await reader.readuntil(b"\r\n\r\n")
                continue
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if CLOSE in (reply if isinstance(reply, bytes) else b"".join(p or b"" for p in reply)):
            raise ConnectionResetError


CLOSE = b"Connection: close\r\n"


@asynccontextmanager
async def serving(*replies: Reply) -> AsyncIterator[Server]:
    """A server that gives the replies in order, the last one again and again."""
    server = Server()
    server.replies = list(replies)
    listening = await asyncio.start_server(server.handle, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()


def response(body: bytes | str | dict[str, Any], status: str = "200 OK", *headers: str) -> bytes:
    """A whole response."""
    if isinstance(body, dict):
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def stream(*events: str | dict[str, Any], kind: str = "text/event-stream") -> bytes:
    """A whole streamed response, which ends with its connection."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n".encode() + CLOSE + b"\r\n"
    return head + b"".join(sse(e) for e in events)


def sse(event: str | dict[str, Any]) -> bytes:
    """One event: the name of an Anthropic event is its type."""
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    data = json.dumps(event, ensure_ascii=False)
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {data}\n\n".encode()


@asynccontextmanager
async def client_of(server: Server, provider: str = "openai") -> AsyncIterator[ModelClient]:
    """A client whose providers are all at the server, with the key `sk-secret-key`."""
    environment = {
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": "sk-secret-key",
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-secret-key",
        "MISTRAL_BASE_URL": f"{server.url}/v1",
        "MISTRAL_API_KEY": "sk-secret-key",
        "HALO_LOCAL_URL": f"{server.url}/v1",
    }
    client = ModelClient(Environment(environment, {}))
    try:
        yield client
    finally:
        await client.close()


def asking(model: str = "openai/gpt-4o", text: str = "Say something.", **more: Any) -> ModelRequest:
    return ModelRequest(model, more.pop("system", ""), more.pop("messages", (Message("user", (text,)),)), **more)
