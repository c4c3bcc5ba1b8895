"""Http against real servers on this machine: what is sent, what comes back, and where no request ever goes."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from yarl import URL

from halo_lang.boundary.host import ConfigError, Environment, ProviderHost, ToolError
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.providers.http import MAX_REDIRECTS, Http
from halo_lang.providers.results import LIMIT
from halo_lang.providers.web import addresses
from halo_lang.providers.web.addresses import is_public
from halo_lang.providers.web.bodies import MAX_BODY
from halo_lang.providers.web.targets import base_target, redirected

KEY = "sesame-sesame-1234"
HOST = ProviderHost(Path(), Path(), (), Environment({}, {}))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """What a server saw, and what it answers: by path, else an echo."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}
        self.port = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append({
            "method": request.method, "path": request.raw_path, "headers": dict(request.headers), "body": body,
        })  # fmt: skip
        answer = self.answers.get(request.path)
        if answer is None:
            return web.json_response({"path": request.raw_path})
        response = answer(request) if callable(answer) else answer
        return await response if asyncio.iscoroutine(response) else response


@asynccontextmanager
async def serving(*, host: str = "127.0.0.1") -> AsyncIterator[Server]:
    served = Server()
    app = web.Application(client_max_size=64 << 20)
    app.router.add_route("*", "/{path:.*}", served.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, 0).start()
    served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        await runner.cleanup()


@asynccontextmanager
async def tool(address: str, **settings: Any) -> AsyncIterator[Http]:
    made = Http({"address": address, "private": True, **settings}, HOST)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as served:
        yield served


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Http]:
    async with tool(f"http://127.0.0.1:{server.port}/v1", headers={"Authorization": KEY}) as made:
        yield made


async def refusal(made: Http, method: str = "get", **args: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await made.call(method, args)
    assert KEY not in raised.value.message
    assert "\n" not in raised.value.message
    return raised.value


def redirect(to: str, status: int = 302) -> Callable[[web.Request], web.Response]:
    return lambda _: web.Response(status=status, headers={"Location": to})


def named(monkeypatch: pytest.MonkeyPatch, *answers: dict[str, list[str]]) -> list[str]:
    """Makes names resolve as given, one table a look, the last again and again; gives the list of what was asked."""
    asked: list[str] = []

    async def lookup(host: str, port: int) -> list[str]:
        table = answers[min(len(asked), len(answers) - 1)]
        asked.append(host)
        if host not in table:
            raise OSError(-2, "Name or service not known")
        return table[host]

    monkeypatch.setattr(addresses, "lookup", lookup)
    return asked


# What is sent -----------------------------------------------------------------------------------------------------


def test_the_methods_are_those_of_the_catalog() -> None:
    described = PROVIDERS["Http"].describe({}) or ()
    assert [(m.name, m.effect) for m in described] == [
        ("get", "read"), ("post", "external"), ("put", "external"), ("patch", "external"), ("delete", "external"),
    ]  # fmt: skip


async def test_get_gives_status_headers_and_the_decoded_body(server: Server, api: Http) -> None:
    got: Any = await api.call(
        "get", {"path": "/users/1", "query": {"q": "a b&c", "n": [1, 2], "yes": True, "no": None}}
    )
    assert got["status"] == 200
    assert got["headers"]["content-type"].startswith("application/json")
    assert got["body"] == {"path": "/v1/users/1?q=a+b%26c&n=1&n=2&yes=true"}
    (seen,) = server.seen
    assert seen["method"] == "GET"
    assert seen["headers"]["Authorization"] == KEY
    assert seen["headers"]["User-Agent"].startswith("halo-lang/")
    assert "Cookie" not in seen["headers"]


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
async def test_bodies_are_json_or_text(server: Server, api: Http, method: str) -> None:
    await api.call(method, {"path": "a", "body": {"é": [1, None]}})
    await api.call(method, {"path": "a", "body": "plain é"})
    await api.call(method, {"path": "a"})
    first, second, third = server.seen
    assert first["method"] == method.upper()
    assert (first["headers"]["Content-Type"], json.loads(first["body"])) == ("application/json", {"é": [1, None]})
    assert (second["headers"]["Content-Type"], second["body"]) == ("text/plain; charset=utf-8", "plain é".encode())
    assert third["body"] == b""


async def test_a_large_body_is_sent_whole_and_a_huge_one_is_refused(server: Server, api: Http) -> None:
    await api.call("post", {"path": "a", "body": "x" * (3 << 20)})
    assert len(server.seen[0]["body"]) == 3 << 20
    assert (await refusal(api, "post", path="a", body="x" * (17 << 20))).code == "TOOL_ARGUMENTS"
    assert len(server.seen) == 1


async def test_headers_of_the_tool_win_over_those_that_halo_sends(server: Server) -> None:
    own = {"content-type": "application/xml", "User-Agent": "me/1"}
    async with tool(f"http://127.0.0.1:{server.port}", headers=own) as made:
        await made.call("post", {"path": "/", "body": "<a/>"})
        await made.call("get", {"path": "/"})
    posted, read = (seen["headers"] for seen in server.seen)
    assert (posted["Content-Type"], posted["User-Agent"]) == ("application/xml", "me/1")
    assert "Content-Type" not in read


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("", "/v1"), ("/", "/v1/"), ("a/b", "/v1/a/b"), ("/a/b/", "/v1/a/b/"), ("a b/é", "/v1/a%20b/%C3%A9"),
        ("a%2Fb", "/v1/a%2Fb"), ("50%", "/v1/50%25"), ("x:batch", "/v1/x:batch"), ("u/@me", "/v1/u/@me"),
        ("...", "/v1/..."), ("a..b/.c", "/v1/a..b/.c"),
    ],
)  # fmt: skip
async def test_a_path_is_below_the_base(server: Server, api: Http, path: str, sent: str) -> None:
    await api.call("get", {"path": path})
    assert server.seen[0]["path"] == sent


@pytest.mark.parametrize(
    "path",
    [
        "http://127.0.0.1/x", "https://evil.example", "//evil.example/x", "///x", "ftp://x", " http://x", "\\\\evil\\x",
        "a\\..\\b", "..", "../x", "a/../../x", "/./x", "%2e%2e/x", "%2E./x", ".%2e/x", "a/%252e%252e/x", "a%2f..%2fx",
        "a/..;v=1/x", "a?b", "a#b", "a\r\nHost: evil", "a\nb", "a\0b", "a\tb", "\ud800",
        "a/%2525252525252525252525252e",
    ],
)  # fmt: skip
async def test_what_is_no_path_is_refused_and_nothing_is_sent(server: Server, api: Http, path: str) -> None:
    assert (await refusal(api, path=path)).code == "TOOL_ARGUMENTS"
    assert (await refusal(api, "post", path=path, body="x")).code == "TOOL_ARGUMENTS"
    assert server.seen == []


@pytest.mark.parametrize(
    "args",
    [
        {"path": 1}, {}, {"path": "a", "query": "b=c"}, {"path": "a", "query": {"b": {"c": 1}}},
        {"path": "a", "query": {"b": [[1]]}}, {"path": "a", "query": {"b": "\ud800"}}, {"path": "a", "url": "b"},
        {"path": "x" * 20_000},
    ],
)  # fmt: skip
async def test_arguments_that_do_not_fit_are_refused(server: Server, api: Http, args: dict[str, Any]) -> None:
    assert (await refusal(api, **args)).code == "TOOL_ARGUMENTS"
    assert server.seen == []


async def test_an_unknown_method_is_refused(api: Http) -> None:
    assert "get, post, put" in (await refusal(api, "head", path="a")).message


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"address": None}, "needs an address"),
        ({"address": ""}, "begin with https"),
        ({"address": "ftp://a.example"}, "begin with https"),
        ({"address": "file:///etc/passwd"}, "begin with https"),
        ({"address": "a.example"}, "begin with https"),
        ({"address": "https://"}, "begin with https"),
        ({"address": "https://u:p4ssw0rd@a.example"}, "user or password"),
        ({"address": "https://a.example/?k=1"}, "ends before"),
        ({"address": "https://a.example/#k"}, "ends before"),
        ({"address": "https://a.example/%252e%252e/x"}, r"\.\."),
        ({"address": "https://a.example\r\nX: y"}, "needs an address"),
        ({"address": "https://a.example:99999"}, "begin with https"),
        ({"address": "http://127.0.0.1"}, "not a public address"),
        ({"address": "http://[::1]:8080"}, "not a public address"),
        ({"address": "http://169.254.169.254/latest"}, "not a public address"),
        ({"address": "http://2130706433"}, "odd spelling of 127.0.0.1"),
        ({"address": "http://0x7f.1"}, "odd spelling of 127.0.0.1"),
        ({"address": "http://0177.0.0.1"}, "odd spelling of 127.0.0.1"),
        ({"address": "http://127.1"}, "odd spelling of 127.0.0.1"),
        ({"headers": {"X-A": "a\r\nX-B: c"}}, "holds characters"),
        ({"headers": {"X-A": "é"}}, "holds characters"),
        ({"headers": {"X A": "a"}}, "cannot be the name"),
        ({"headers": {"": "a"}}, "cannot be the name"),
        ({"headers": {"Host": "evil.example"}}, "belongs to the connection"),
        ({"headers": {"transfer-encoding": "chunked"}}, "belongs to the connection"),
        ({"headers": {"A": "1", "a": "2"}}, "given twice"),
        ({"headers": {"A": 1}}, "must be text"),
        ({"headers": "A: b"}, "must be an object"),
        ({"allow": "a.example"}, "list of hosts"),
        ({"allow": ["https://a.example"]}, "list of hosts"),
        ({"allow": [1]}, "list of hosts"),
        ({"allow": ["u@a.example"]}, "list of hosts"),
        ({"private": "no"}, "true or false"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_refused_before_anything_runs(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        Http({"address": "https://a.example", **settings}, HOST)
    assert "p4ssw0rd" not in str(raised.value)


# What comes back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [201, 400, 401, 404, 429, 500, 503])
async def test_a_status_is_a_result_and_nothing_is_tried_again(server: Server, api: Http, status: int) -> None:
    server.answers["/v1/x"] = lambda _: web.json_response({"error": "no"}, status=status, headers={"Retry-After": "0"})
    for method in ("get", "put"):
        got: Any = await api.call(method, {"path": "x"})
        assert (got["status"], got["body"], got["headers"]["retry-after"]) == (status, {"error": "no"}, "0")
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("body", "kind", "value"),
    [
        (b"", "application/json", None),
        (b'{"a": 1}', "application/json", {"a": 1}),
        (b'{"a": 1}', "application/problem+json; charset=utf-8", {"a": 1}),
        (b'\xef\xbb\xbf[1]', "application/json", [1]),
        (b'{"a": 1, "a": 2}', "application/json", '{"a": 1, "a": 2}'),
        (b'{"a": NaN}', "application/json", '{"a": NaN}'),
        (b"[" * 100 + b"]" * 100, "application/json", "[" * 100 + "]" * 100),
        (b"[" * 100_000, "application/json", "[" * 100_000),
        (b'{"a": 1}', "text/plain", '{"a": 1}'),
        ("né".encode(), "text/html", "né"),
        (b"n\xe9", "text/html; charset=iso-8859-1", "né"),
        (b"n\xe9", "text/html; charset=nonsense", "[text/html, 2 bytes, not text]"),
        (b"n\xe9", "text/html", "[text/html, 2 bytes, not text]"),
        (b"a\0b", "text/plain", "[text/plain, 3 bytes, not text]"),
        (b"\x89PNG\r\n\x1a\n", "image/png", "[image/png, 8 bytes, not text]"),
        (b"<svg/>", "image/svg+xml", "<svg/>"),
    ],
)  # fmt: skip
async def test_a_body_is_json_by_its_type_else_text(
    server: Server, api: Http, body: bytes, kind: str, value: Any
) -> None:
    server.answers["/v1/x"] = lambda _: web.Response(body=body, headers={"Content-Type": kind})
    got: Any = await api.call("get", {"path": "x"})
    assert got["body"] == value


async def test_a_long_text_is_cut_at_a_line_and_says_so(server: Server, api: Http) -> None:
    server.answers["/v1/x"] = lambda _: web.Response(text='say "hello"\n' * 40_000)
    got: Any = await api.call("get", {"path": "x"})
    lines = got["body"].split("\n")
    assert set(lines[:-1]) == {'say "hello"'}
    assert lines[-1].startswith("[cut here: ")
    assert LIMIT - 1024 < len(json.dumps(got, ensure_ascii=False, separators=(",", ":"))) <= LIMIT


async def test_json_that_is_too_large_says_how_to_ask_for_less(server: Server, api: Http) -> None:
    server.answers["/v1/x"] = lambda _: web.json_response(["x" * 1000] * 300)
    server.answers["/v1/y"] = lambda _: web.json_response(["x" * 1000] * 3000)
    for path in ("x", "y"):
        assert "ask for less" in (await refusal(api, path=path)).message


async def test_a_server_that_floods_is_read_no_further_than_the_bound(server: Server, api: Http) -> None:
    sent: list[int] = []

    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        total = 0
        try:
            while total < 1 << 30:
                await response.write(b"line\n" * 20_000)
                total += 100_000
        finally:
            sent.append(total)
        return response

    server.answers["/v1/x"] = flood
    got: Any = await api.call("get", {"path": "x"})
    assert got["body"].endswith(" left out]")
    while not sent:
        await asyncio.sleep(0.01)
    assert sent[0] < 64 << 20


def bomb(coding: str) -> bytes:
    """A body that unpacks to 10 GiB: a block that unpacks to 1 MiB, again and again."""
    zeros = b"\0" * (1 << 20)
    if coding == "gzip":
        return gzip.compress(zeros, mtime=0) * 10_240
    packer = zlib.compressobj(9)
    first = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(zeros) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + again * 10_239


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_unpacks_to_gigabytes_is_not_unpacked(server: Server, api: Http, coding: str) -> None:
    import tracemalloc

    body = bomb(coding)
    server.answers["/v1/x"] = lambda _: web.Response(
        body=body, headers={"Content-Encoding": coding, "Content-Type": "text/plain"}
    )
    server.answers["/v1/y"] = lambda _: web.Response(
        body=body, headers={"Content-Encoding": coding, "Content-Type": "application/json"}
    )
    tracemalloc.start()
    got: Any = await api.call("get", {"path": "x"})
    assert "ask for less" in (await refusal(api, path="y")).message
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert got["body"] == f"[text/plain, more than {MAX_BODY:,} bytes, not text]"
    assert peak < 64 << 20


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress),
        ("x-gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data)[2:-4]),
        ("gzip", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])),
        ("identity", lambda data: data),
    ],
)
async def test_packed_bodies_are_unpacked(server: Server, api: Http, coding: str, pack: Any) -> None:
    server.answers["/v1/x"] = lambda _: web.Response(
        body=pack(b'{"a": "%s"}' % (b"x" * 5000)),
        headers={"Content-Encoding": coding, "Content-Type": "application/json"},
    )
    got: Any = await api.call("get", {"path": "x"})
    assert got["body"] == {"a": "x" * 5000}


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"not packed"), ("gzip", gzip.compress(b"x" * 999, mtime=0)[:-9]), ("deflate", b"\xff\xff\xff"),
        ("br", b"x"), ("gzip, gzip", gzip.compress(b"x", mtime=0)), ("aes128gcm", b"x"),
    ],
)  # fmt: skip
async def test_bodies_that_cannot_be_unpacked_are_errors(server: Server, api: Http, coding: str, body: bytes) -> None:
    server.answers["/v1/x"] = lambda _: web.Response(body=body, headers={"Content-Encoding": coding})
    assert (await refusal(api, path="x")).code == "TOOL_ERROR"


async def test_no_cookie_is_kept_sent_or_shown(server: Server, api: Http) -> None:
    server.answers["/v1/x"] = lambda _: web.Response(headers={"Set-Cookie": "session=abc", "X-A": "1"})
    got: Any = await api.call("get", {"path": "x"})
    await api.call("get", {"path": "x"})
    assert "set-cookie" not in got["headers"]
    assert got["headers"]["x-a"] == "1"
    assert all("Cookie" not in seen["headers"] for seen in server.seen)


async def test_no_proxy_is_used(server: Server, api: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    await api.call("get", {"path": "x"})
    assert len(server.seen) == 1


async def cut_off(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_a_write_without_an_answer_is_sent_once_and_says_that_it_may_have_happened(
    server: Server, api: Http
) -> None:
    server.answers["/v1/x"] = cut_off
    for method in ("post", "put", "patch", "delete"):
        assert "may have happened or not" in (await refusal(api, method, path="x", body="b")).message
    assert "may have happened" not in (await refusal(api, "get", path="x")).message
    assert len(server.seen) == 5


async def test_a_body_that_ends_too_early_is_an_error(server: Server, api: Http) -> None:
    async def short(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100", "Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(b"only this")
        assert request.transport is not None
        request.transport.close()
        return response

    server.answers["/v1/x"] = short
    assert "did not come" in (await refusal(api, path="x")).message


async def test_nobody_there_is_said_and_that_nothing_was_sent() -> None:
    async with serving() as gone:
        port = gone.port
    async with tool(f"http://127.0.0.1:{port}") as made:
        said = (await refusal(made, "post", path="x")).message
        assert "cannot be reached (Connection refused); nothing was sent" in said


async def test_what_is_no_http_is_an_error() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"SSH-2.0-OpenSSH_9\r\n" * 3)
        writer.close()

    listening = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with listening, tool(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}") as made:
        assert "did not come" in (await refusal(made, path="x")).message


async def test_endless_headers_are_an_error() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"HTTP/1.1 200 OK\r\n")
        try:
            while True:
                writer.write(b"X-A: " + b"y" * 1000 + b"\r\n")
                await writer.drain()
        except ConnectionError:
            writer.close()

    listening = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with listening, tool(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}") as made:
        assert "did not come" in (await refusal(made, path="x")).message


async def test_cancelling_closes_the_connection(server: Server, api: Http) -> None:
    arrived, closed = asyncio.Event(), asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        arrived.set()
        while request.transport is not None and not request.transport.is_closing():
            await asyncio.sleep(0.01)
        closed.set()
        return web.Response()

    server.answers["/v1/x"] = hang
    doing = asyncio.ensure_future(api.call("get", {"path": "x"}))
    await arrived.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    await asyncio.wait_for(closed.wait(), 10)


# Where requests go ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
        "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255",
        "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1",
        "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1", "3fff::1",
        "5f00::1", "fc00::1", "fd12::1", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1",
        "", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1",
    ],
)  # fmt: skip
def test_what_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700:4700::1111", "2a00:1450::8"]
)
def test_what_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "found",
    [
        ["127.0.0.1"], ["169.254.169.254"], ["::1"], ["::ffff:127.0.0.1"], ["64:ff9b::7f00:1"], ["fe80::1%lo"],
        ["10.0.0.1", "127.0.0.1"], ["0.0.0.0"],
    ],
)  # fmt: skip
async def test_a_name_at_an_address_that_is_not_public_is_not_reached(
    server: Server, monkeypatch: pytest.MonkeyPatch, found: list[str]
) -> None:
    asked = named(monkeypatch, {"api.example": found})
    async with tool(f"http://api.example:{server.port}", private=False) as made:
        error = await refusal(made, "post", path="x", body="secret")
    assert "not a public address" in error.message
    assert "private: true" in error.message
    assert asked == ["api.example"]
    assert server.seen == []


async def test_a_name_that_resolves_to_another_address_at_the_second_look_is_looked_up_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look gives a public address, which is used; whoever looked again would be led home."""
    asked = named(monkeypatch, {"api.example": ["192.0.1.1"]}, {"api.example": ["127.0.0.1"]})
    used: list[Any] = []
    judged = addresses._judged_socket

    def no_network(info: Any) -> Any:
        judged(info).close()
        used.append(info[4])
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(addresses, "_judged_socket", no_network)
    async with tool(f"http://api.example:{server.port}", private=False) as made:
        assert "nothing was sent" in (await refusal(made, path="x")).message
        assert asked == ["api.example"]
        assert used == [("192.0.1.1", server.port)]
        assert "not a public address" in (await refusal(made, path="x")).message
    assert server.seen == []


async def test_the_address_is_judged_again_when_the_socket_is_made(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even a resolver that lets a private address through does not lead to it."""
    named(monkeypatch, {"api.example": ["127.0.0.1"]})
    resolve = addresses._Judging.resolve

    async def lax(self: Any, host: str, port: int = 0, family: Any = 0) -> Any:
        self._private = True
        return await resolve(self, host, port, family)

    monkeypatch.setattr(addresses._Judging, "resolve", lax)
    async with tool(f"http://api.example:{server.port}", private=False) as made:
        assert "not a public address" in (await refusal(made, path="x")).message
    assert server.seen == []


async def test_of_several_addresses_only_public_ones_are_tried(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, {"api.example": ["127.0.0.1", "192.0.1.1", "::1"]})
    tried: list[str] = []

    def note(info: Any) -> Any:
        tried.append(info[4][0])
        raise OSError(101, "Network is unreachable")

    monkeypatch.setattr(addresses, "_judged_socket", note)
    async with tool(f"http://api.example:{server.port}", private=False) as made:
        await refusal(made, path="x")
    assert tried == ["192.0.1.1"]


async def test_an_unknown_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, {})
    async with tool("http://none.example", private=False) as made:
        assert "none.example cannot be reached" in (await refusal(made, path="x")).message


async def test_private_addresses_are_reached_where_that_is_meant(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(monkeypatch, {"intern.example": ["127.0.0.1"]})
    async with tool(f"http://intern.example:{server.port}") as made:
        got: Any = await made.call("get", {"path": "x"})
    assert got["status"] == 200
    assert server.seen[0]["headers"]["Host"] == f"intern.example:{server.port}"


# Redirects --------------------------------------------------------------------------------------------------------


async def test_a_redirect_on_the_same_host_is_followed_with_the_headers(server: Server, api: Http) -> None:
    server.answers["/v1/a"] = redirect("/v2/b?c=1#d")
    got: Any = await api.call("get", {"path": "a"})
    assert got["body"] == {"path": "/v2/b?c=1"}
    assert [seen["headers"].get("Authorization") for seen in server.seen] == [KEY, KEY]


@pytest.mark.parametrize(
    ("method", "status", "becomes", "keeps"),
    [
        ("post", 301, "GET", False), ("post", 302, "GET", False), ("post", 303, "GET", False),
        ("put", 303, "GET", False), ("put", 302, "PUT", True), ("post", 307, "POST", True), ("post", 308, "POST", True),
        ("delete", 308, "DELETE", True),
    ],
)  # fmt: skip
async def test_what_a_redirected_write_becomes(
    server: Server, api: Http, method: str, status: int, becomes: str, keeps: bool
) -> None:
    server.answers["/v1/a"] = redirect("/v1/b", status)
    await api.call(method, {"path": "a", "body": {"x": 1}})
    assert server.seen[1]["method"] == becomes
    assert bool(server.seen[1]["body"]) is keeps


async def test_another_host_is_followed_only_if_allowed_and_without_the_headers(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(monkeypatch, {"a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"]})
    async with serving() as other:
        server.answers["/a"] = redirect(f"http://b.example:{other.port}/b")
        other.answers["/b"] = redirect(f"http://a.example:{server.port}/c")
        base, headers = f"http://a.example:{server.port}", {"Authorization": KEY, "X-Key": KEY}
        async with tool(base, headers=headers) as made:
            error = await refusal(made, path="a")
        assert "b.example" in error.message
        assert "allow" in error.message
        assert other.seen == []
        async with tool(base, headers=headers, allow=[f"B.example.:{other.port}"]) as made:
            got: Any = await made.call("get", {"path": "a"})
        assert got["body"] == {"path": "/c"}
        assert not {"Authorization", "X-Key"} & set(other.seen[0]["headers"])
        assert not {"Authorization", "X-Key"} & set(server.seen[-1]["headers"]), "what was lost does not come back"


@pytest.mark.parametrize(
    "to",
    [
        "http://127.0.0.1:{port}/x", "http://localhost:{port}/x", "http://[::1]:{port}/x", "http://0.0.0.0:{port}/x",
        "http://2130706433:{port}/x", "http://0x7f000001:{port}/x", "http://0177.0.0.1:{port}/x", "http://127.1:{port}/x",
        "http://[::ffff:127.0.0.1]:{port}/x", "http://[::ffff:7f00:1]:{port}/x", "http://[64:ff9b::7f00:1]:{port}/x",
        "//127.0.0.1:{port}/x", "http://user@api.example:{port}/x", "http://api.example@127.0.0.1:{port}/x",
        "ftp://api.example/x", "file:///etc/passwd", "gopher://127.0.0.1:{port}/x", "javascript:alert(1)", "data:,x",
        "http://", "http://api.example:99999/", "http://[::1", "http://other.example:{port}/x", "http://api.example:1/x",
        "http://①②⑦.⓪.⓪.①:{port}/x", "http://api.example\\@127.0.0.1:{port}/x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("allowed", [False, True])
async def test_redirects_to_what_may_not_be_reached_are_not_followed(
    server: Server, monkeypatch: pytest.MonkeyPatch, to: str, allowed: bool
) -> None:
    """Whether or not the private hosts stand in `allow`: `allow` permits a host, not a private address."""
    public = "192.0.1.1"
    named(monkeypatch, {"api.example": [public], "localhost": ["127.0.0.1"]})
    here = [
        *(f"{host}:{server.port}" for host in ("127.0.0.1", "localhost", "0.0.0.0", "2130706433", "0x7f000001")),
        *(f"{host}:{server.port}" for host in ("[::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "127.1")),
    ]
    judged = addresses._judged_socket
    tried: list[str] = []

    def led_to_the_server(info: Any) -> Any:
        """The public address stands for the server, as if that were on the internet; all else is judged."""
        tried.append(info[4][0])
        if info[4][0] != public:
            return judged(info)
        made = socket.socket()
        made.setblocking(False)
        return made

    monkeypatch.setattr(addresses, "_judged_socket", led_to_the_server)
    loop = asyncio.get_running_loop()
    original = loop.sock_connect

    async def rerouted(sock: Any, address: Any) -> None:
        await original(sock, ("127.0.0.1", address[1]) if address[0] == public else address)

    monkeypatch.setattr(loop, "sock_connect", rerouted, raising=False)
    server.answers["/a"] = redirect(to.format(port=server.port))
    async with tool(f"http://api.example:{server.port}", private=False, allow=here if allowed else []) as made:
        error = await refusal(made, path="a")
    assert [seen["path"] for seen in server.seen] == ["/a"], "the first hop must have been answered"
    assert "redirect" in error.message or "not a public address" in error.message


@pytest.mark.parametrize(
    ("to", "permits"),
    [
        ("http://other.example/x", "other.example"),
        ("https://other.example:443/x", "other.example"),
        ("http://other.example:8080/x", "other.example:8080"),
        ("http://[2a00::1]:81/x", "[2a00::1]:81"),
        ("http://[2a00::1]/x", "[2a00::1]"),
    ],
)
async def test_a_redirect_that_is_not_followed_says_what_would_permit_it(
    server: Server, api: Http, to: str, permits: str
) -> None:
    server.answers["/v1/a"] = redirect(to)
    message = (await refusal(api, path="a")).message
    assert f'`allow: ["{permits}"]` would permit it' in message
    target = base_target("http://api.example", [permits], private=False)
    assert redirected(target, URL("http://api.example"), to).host


async def test_redirects_that_never_end_are_an_error(server: Server, api: Http) -> None:
    server.answers["/v1/a"] = redirect("/v1/a")
    assert "redirect after another" in (await refusal(api, path="a")).message
    assert len(server.seen) == MAX_REDIRECTS + 1


async def test_a_redirect_without_a_place_is_a_result(server: Server, api: Http) -> None:
    server.answers["/v1/a"] = lambda _: web.Response(status=304)
    got: Any = await api.call("get", {"path": "a"})
    assert got["status"] == 304


def test_https_never_becomes_http() -> None:
    from yarl import URL

    from halo_lang.providers.web.targets import base_target, redirected, same_host

    target = base_target("https://a.example", ["a.example"], False)
    with pytest.raises(ToolError, match="from https to"):
        redirected(target, URL("https://a.example/x"), "http://a.example/y")
    plain = base_target("http://a.example", ["a.example"], False)
    up = redirected(plain, URL("http://a.example/x"), "https://a.example/y")
    assert same_host(URL("http://a.example/x"), up)
    assert not same_host(URL("http://a.example/x"), URL("https://a.example:8443/y"))
    assert not same_host(URL("http://a.example:8080/x"), URL("http://a.example/y"))
