"""A bound on what a PostgreSQL server may send (tools.md §2, `Sql`).

Owns the way between libpq and the server once they are connected. libpq gathers a whole row, and all rows of an answer,
before anybody sees a byte of them, so a single SELECT could fill the memory; it has no bound, and takes no stream in
its socket's place. So its socket becomes one end of a pair, and what stands at the other end passes on what comes and
counts it. It looks at nothing: the bytes may be encrypted. Read `postgres.py` for who uses it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import AsyncIterator

MAX_RECEIVED = 16 << 20
"""Bytes that a server may send on one connection."""

_CHUNK = 64 * 1024


class Received:
    """What a server has sent. Where it is `too_much`, the connection ends, as if the server had closed it."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    @property
    def too_much(self) -> bool:
        return self.size > MAX_RECEIVED


@asynccontextmanager
async def bounded(libpq: int) -> AsyncIterator[Received]:
    """Holds the connection of a socket of libpq's to the bound, for as long as the block lasts; libpq closes its socket
    inside it."""
    ours, theirs = socket.socketpair()
    server = socket.socket(fileno=os.dup(libpq))
    with theirs:
        theirs.setblocking(False)
        os.dup2(theirs.fileno(), libpq, inheritable=False)
    received = Received()
    from_libpq, to_libpq = await asyncio.open_connection(sock=ours)
    from_server, to_server = await asyncio.open_connection(sock=server)
    asking = asyncio.create_task(_pass_on(from_libpq, to_server, Received()))
    answering = asyncio.create_task(_pass_on(from_server, to_libpq, received))
    try:
        yield received
        await asking  # its goodbye
    finally:
        asking.cancel()
        answering.cancel()
        await asyncio.wait((asking, answering))


async def _pass_on(source: StreamReader, target: StreamWriter, seen: Received) -> None:
    """Passes on what comes until it ends or is too much."""
    try:
        while (data := await source.read(_CHUNK)) and not seen.too_much:
            seen.size += len(data)
            target.write(data)
            await target.drain()
    except OSError:
        return  # one of the two has gone, and the other learns it by the end of this
    finally:
        target.close()
