"""MCP servers for tests: those in `tests/servers`, as tools, and what reached them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from halo_lang.app.above import file_above
from halo_lang.boundary.host import Environment, Given, ProviderHost
from halo_lang.providers.mcp import Mcp

SERVERS = Path(__file__).parents[1] / "servers"
RAW = str(SERVERS / "raw_mcp.py")
SDK = str(SERVERS / "sdk_mcp.py")
ECHO = {"text": "hi"}


def host(folder: Path, process: dict[str, str] | None = None, project: dict[str, str] | None = None) -> ProviderHost:
    """A host with a program in `folder`."""
    environment = Environment(dict(os.environ) if process is None else process, project or {})
    return ProviderHost(folder, folder, (), environment, lambda name: file_above(name, str(folder)))


def raw_settings(mode: str, folder: Path, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "arguments": (RAW, mode, str(folder / "notes")), "timeout": 20.0, **more}


@asynccontextmanager
async def raw(mode: str, folder: Path, **more: Any) -> AsyncIterator[Mcp]:
    """A tool whose server behaves as `mode` says (`servers/raw_mcp.py`)."""
    server = Mcp(raw_settings(mode, folder, **more), host(folder))
    try:
        yield server
    finally:
        await server.close()


async def listed(server: Mcp) -> list[dict[str, Any]]:
    found: Any = await server.call("*", {}, Given())
    return found


async def echoed(server: Mcp, text: str = "hi") -> Any:
    return await server.call("echo", {"text": text}, Given())


def notes(folder: Path) -> list[dict[str, Any]]:
    """What reached a raw server."""
    return [json.loads(line) for line in (folder / "notes").read_text("utf-8").splitlines()]


async def noted(file: Path, word: str) -> None:
    """Waits until a server has noted a word."""
    async with asyncio.timeout(20):
        while not file.exists() or word not in file.read_text("utf-8"):
            await asyncio.sleep(0.02)


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


@contextmanager
def sdk_by_http(file: Path) -> Iterator[str]:
    """The address of the public package's server, by streamable HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, SDK, str(file), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            while server.poll() is None:
                with socket.socket() as trying:
                    if trying.connect_ex(("127.0.0.1", port)) == 0:
                        break
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()
