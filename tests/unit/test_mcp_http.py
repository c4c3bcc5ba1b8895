"""MCP servers at an address: the public package's own, and such as mean no good."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from mcp_servers import ECHO, echoed, host, listed, noted, sdk_by_http

from halo_lang.boundary.host import ConfigError, Given, ToolError
from halo_lang.providers.mcp import Mcp
from halo_lang.providers.mcp.lines import UNREADABLE

TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}
Answer = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse | None]]


def result(asked: dict[str, Any], value: Any) -> web.Response:
    return web.json_response({"jsonrpc": "2.0", "id": asked.get("id"), "result": value})


@asynccontextmanager
async def serving(on_call: Answer, seen: list[web.Request] | None = None) -> AsyncIterator[str]:
    """The address of a server that answers calls of its tool by `on_call`, and all else as it should."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if seen is not None:
            seen.append(request)
        asked = await request.json() if request.method == "POST" else {}
        method = asked.get("method")
        if method == "tools/call":
            return await on_call(request, asked) or result(asked, {"content": [{"type": "text", "text": "hi"}]})
        if method == "initialize":
            info = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            return result(asked, info | {"serverInfo": {"name": "s", "version": "1"}})
        if method == "tools/list":
            return result(asked, {"tools": [TOOL]})
        return web.Response(status=202 if "id" not in asked else 404)

    app = web.Application()
    app.router.add_route("*", "/mcp", answer)
    app.router.add_route("*", "/other", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def at(url: str, folder: Path, **more: Any) -> AsyncIterator[Mcp]:
    server = Mcp({"url": url, "timeout": 20.0, **more}, host(folder))
    try:
        yield server
    finally:
        await server.close()


async def as_written(_: web.Request, __: dict[str, Any]) -> None:
    return None


async def failure(server: Mcp) -> str:
    with pytest.raises(ToolError) as caught:
        await server.call("echo", ECHO, Given())
    return caught.value.message


async def test_the_public_packages_server_by_http(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    with sdk_by_http(file) as url:
        async with at(url, tmp_path, timeout=60.0) as server:
            assert [entry["name"] for entry in await listed(server)] == ["add_up", "store", "slow", "fail"]
            assert await server.call("add_up", {"numbers": [1, 2]}, Given()) == {"total": 3, "parts": [1, 2]}
            slow = asyncio.create_task(server.call("slow", {}, Given()))
            await noted(file, "slow began")
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            await noted(file, "slow was told to stop")
            assert server.pid is None
    async with at(url, tmp_path) as server:
        assert (await failure(server)).startswith("the connection with the server is lost: 127.0.0.1 cannot be reached")


async def test_headers_go_to_the_server(tmp_path: Path) -> None:
    seen: list[web.Request] = []
    async with serving(as_written, seen) as url, at(url, tmp_path, headers={"X-Key": "k1"}) as server:
        assert await echoed(server) == "hi"
    assert seen
    assert {request.headers.get("X-Key") for request in seen} == {"k1"}
    assert {request.headers.get("Accept-Encoding") for request in seen} == {"identity"}


async def test_no_redirect_to_another_host_is_followed(tmp_path: Path) -> None:
    elsewhere: list[web.Request] = []
    async with serving(as_written, elsewhere) as other:

        async def redirect(_: web.Request, __: dict[str, Any]) -> web.Response:
            return web.Response(status=307, headers={"Location": other})

        async with serving(redirect) as url, at(url, tmp_path, headers={"X-Key": "k1"}) as server:
            assert "not followed" in await failure(server)
    assert elsewhere == []


async def test_a_redirect_to_the_same_server_is_followed(tmp_path: Path) -> None:
    async def redirect(request: web.Request, _: dict[str, Any]) -> web.Response | None:
        return web.Response(status=308, headers={"Location": "/other"}) if request.path == "/mcp" else None

    async with serving(redirect) as url, at(url, tmp_path) as server:
        assert await echoed(server) == "hi"


async def test_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    sent = 0

    async def flood(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % asked["id"])
        for _ in range(1024):
            await response.write(b"x" * (1 << 20))
            sent += 1
        return response

    async with serving(flood) as url, at(url, tmp_path) as server:
        assert "it sent an answer of more than 16 MiB" in await failure(server)
    assert sent < 100


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_of_too_many_parts_is_not_read(tmp_path: Path, kind: str) -> None:
    async def crowd(_: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
        between = b"\n\n" if kind == "application/json" else b""
        many = (b"{}," * 1000 + between) * 300 + b"{}"
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"a":[%s]}}}' % (asked["id"], many)
        if kind == "text/event-stream":
            body = b"event: message\ndata: " + body + b"\n\n"
        return web.Response(body=body, content_type=kind)

    async with serving(crowd) as url, at(url, tmp_path) as server:
        assert "it sent an answer of more than 200,000 parts" in await failure(server)


async def test_an_endless_stream_of_events_is_not_read(tmp_path: Path) -> None:
    sent = 0

    async def flood(request: web.Request, _: dict[str, Any]) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        notice = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}' % (
            b"z" * 200_000
        )
        while True:
            await response.write(b"event: message\ndata: " + notice + b"\n\n")
            sent += 1

    async with serving(flood) as url, at(url, tmp_path) as server:
        assert "more than 64 MiB" in await failure(server)
    assert sent < 600


async def test_a_compressed_answer_is_refused(tmp_path: Path) -> None:
    async def bomb(_: web.Request, __: dict[str, Any]) -> web.Response:
        body = gzip.compress(b" " * (64 << 20))
        return web.Response(body=body, headers={"Content-Type": "application/json", "Content-Encoding": "gzip"})

    async with serving(bomb) as url, at(url, tmp_path) as server:
        assert "compressed" in await failure(server)


async def test_a_lost_connection_is_made_again(tmp_path: Path) -> None:
    calls = 0

    async def once(request: web.Request, _: dict[str, Any]) -> web.Response | None:
        nonlocal calls
        calls += 1
        if calls == 1:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return None

    async with serving(once) as url, at(url, tmp_path) as server:
        assert (await failure(server)).startswith("the connection with the server is lost")
        assert await echoed(server) == "hi"


@pytest.mark.parametrize("status", [401, 500])
async def test_a_refusal_names_its_status(tmp_path: Path, status: int) -> None:
    async def refuse(_: web.Request, __: dict[str, Any]) -> web.Response:
        return web.Response(status=status, text="<html>secret page</html>")

    async with serving(refuse) as url, at(url, tmp_path) as server:
        message = await failure(server)
        assert f"HTTP status {status}" in message
        assert "html" not in message


@pytest.mark.parametrize("body", [b"not json", b"[]", b'{"jsonrpc":"2.0","id":1}', b"\xff\xfe"])
async def test_an_answer_that_is_no_message_is_an_error(tmp_path: Path, body: bytes) -> None:
    async def nonsense(_: web.Request, __: dict[str, Any]) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async with serving(nonsense) as url, at(url, tmp_path) as server:
        message = await failure(server)
        assert UNREADABLE in message
        assert "\n" not in message


@pytest.mark.parametrize(
    "url",
    ["ftp://h/mcp", "file:///etc/passwd", "http://", "http://u:p@h/mcp", "http://h\n/mcp", "http://h:99999/", "mcp"],
)
def test_an_address_that_cannot_be_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="the address of an MCP server"):
        Mcp({"url": url}, host(tmp_path))


@pytest.mark.parametrize("headers", [{"X\r\nY": "v"}, {"X": "v\r\nY: w"}, {"X": "ü"}, {"": "v"}])
def test_headers_that_cannot_be_sent_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="cannot be sent"):
        Mcp({"url": "http://127.0.0.1/mcp", "headers": headers}, host(tmp_path))
