"""One HTTP attempt against servers that refuse, lie, break, stall and flood (tools.md §4, runs.md §6)."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest
from model_server import CLOSE, asking, client_of, response, serving, sse, stream

from halo_lang.boundary.attempt import AttemptFailed
from halo_lang.boundary.call import Answer
from halo_lang.boundary.host import Environment
from halo_lang.models import transport
from halo_lang.models.client import ModelClient

OK = response({"model": "m", "choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]})
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DELTA = sse({"choices": [{"delta": {"content": "Hel"}}]})


async def attempt(*replies: Any, model: str = "openai/gpt-4o", watch: bool = False) -> Answer:
    async with serving(*replies) as server, client_of(server) as client:
        return await client.attempt(asking(model), (lambda _: None) if watch else None)


async def refused(*replies: Any, watch: bool = False) -> AttemptFailed:
    with pytest.raises(AttemptFailed) as caught:
        await attempt(*replies, watch=watch)
    return caught.value


@pytest.mark.parametrize(
    ("status", "retry", "billed"),
    [
        ("400 Bad Request", False, False),
        ("401 Unauthorized", False, False),
        ("404 Not Found", False, False),
        ("408 Request Timeout", True, False),
        ("409 Conflict", True, False),
        ("422 Unprocessable", False, False),
        ("429 Too Many Requests", True, False),
        ("500 Oops", True, False),
        ("503 Unavailable", True, False),
        ("529 Overloaded", True, False),
        ("504 Gateway Timeout", True, None),
        ("524 A Timeout Occurred", True, None),
        ("201 Created", False, None),
    ],
)
async def test_what_a_status_means(status: str, retry: bool, billed: bool | None) -> None:
    failure = await refused(response({"error": {"message": "so it is"}}, status))
    assert failure.code == "MODEL_ERROR"
    assert (failure.retry, failure.billed) == (retry, billed)
    assert status[:3] in failure.message
    assert "so it is" in failure.message


async def test_an_empty_account_is_not_asked_again() -> None:
    failure = await refused(
        response({"error": {"code": "insufficient_quota", "message": "pay"}}, "429 Too Many Requests")
    )
    assert not failure.retry
    assert failure.billed is False


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error":"plain"}', "plain"),
        (b'{"message":"outer"}', "outer"),
        (b'{"detail":"detailed"}', "detailed"),
        (b'{"detail":[{"msg":"deep"}]}', "deep"),
        (b"<h1>gone</h1>", "<h1>gone</h1>"),
        (b"\x1b[2J\x00\xff x\ny", "[2J"),
        (b"[" * 60_000, "[[["),
        (b"x" * 1_000_000, "xxx"),
    ],
)
async def test_the_text_of_an_error_is_cut_and_harmless(body: bytes, said: str) -> None:
    message = (await refused(response(body, "400 Bad Request"))).message
    assert said in message
    assert message.isprintable()
    assert len(message) < 600


async def test_a_key_that_is_sent_back_is_masked() -> None:
    failure = await refused(response({"error": {"message": "wrong key sk-secret-key!"}}, "401 Unauthorized"))
    assert "sk-secret-key" not in failure.message
    assert "[key]" in failure.message
    assert "OPENAI_API_KEY" in failure.message


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_not_followed(status: str) -> None:
    async with serving(OK) as other:
        failure = await refused(response("", status, f"Location: {other.url}/v1/chat/completions?k=sk-secret-key"))
        assert other.heads == []
    assert not failure.retry
    assert failure.billed is False
    assert "redirect" in failure.message
    assert "sk-secret-key" not in failure.message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (["Retry-After: 7"], 7),
        (["Retry-After: 0.5"], 0.5),
        (["Retry-After: -3"], 0),
        (["Retry-After: 9999999999999"], 1e9),
        (["retry-after-ms: 250", "Retry-After: 7"], 0.25),
        (["Date: Mon, 30 Nov 2026 13:00:00 GMT", "Retry-After: Mon, 30 Nov 2026 13:00:09 GMT"], 9),
        (["Date: Mon, 30 Nov 2026 13:00:00 GMT", "Retry-After: Mon, 30 Nov 2026 12:00:00 GMT"], 0),
        (["Retry-After: nan"], None),
        (["Retry-After: soon"], None),
        (["Date: never", "Retry-After: Mon, 30 Nov 2026 13:00:09 GMT"], None),
        ([], None),
    ],
)
async def test_how_long_a_server_asks_to_wait(headers: list[str], seconds: float | None) -> None:
    assert (await refused(response("", "429 Too Many Requests", *headers))).retry_after_s == seconds


async def test_a_date_without_the_servers_clock_is_taken_against_ours() -> None:
    failure = await refused(response("", "429 Too Many Requests", "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT"))
    assert failure.retry_after_s == 1e9


async def test_no_connection_is_not_billed() -> None:
    async with serving(OK) as server:
        url = server.url
    await asyncio.sleep(0)
    client = ModelClient(Environment({"HALO_LOCAL_URL": url}, {}))
    with pytest.raises(AttemptFailed, match=rf"no connection to {re.escape(url[7:])}: Connection refused$") as caught:
        await client.attempt(asking("local/x"))
    assert caught.value.retry
    assert caught.value.billed is False
    await client.close()


@pytest.mark.parametrize(
    "reply",
    [
        CLOSE,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n" + CLOSE + b'\r\n{"choices"',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + CLOSE + b'\r\n5\r\n{"cho',
    ],
)
async def test_a_connection_that_breaks_may_have_been_billed(reply: bytes) -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(reply if reply != CLOSE else b"")
        await writer.drain()
        raise ConnectionResetError

    failure = await refused(half)
    assert failure.retry
    assert failure.billed is None


async def test_a_server_that_speaks_no_http() -> None:
    failure = await refused(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    assert not failure.retry
    assert failure.billed is None


async def test_a_torn_chunked_stream() -> None:
    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD + b"%x\r\n%s\r\n" % (len(DELTA), DELTA))
        await writer.drain()
        raise ConnectionResetError

    failure = await refused(half, watch=True)
    assert failure.retry
    assert failure.billed is None


async def test_a_compressed_reply_is_not_unpacked() -> None:
    answer = await attempt(response(b"\x1f\x8b", "200 OK", "Content-Encoding: gzip"))
    assert answer.error is not None
    assert "compressed" in answer.error.message


@pytest.mark.parametrize("head", [b"Content-Length: 99999999999\r\n", b""])
async def test_a_flood_is_not_read_to_its_end(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_REPLY_BYTES", 1 << 20)
    sent = 0

    async def flood(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536
            await asyncio.sleep(0)

    async with serving(flood) as server, client_of(server) as client:
        answer = await client.attempt(asking())
        await server.closed.wait()
    assert answer.error is not None
    assert "larger than" in answer.error.message
    assert sent < 64 << 20


@pytest.mark.parametrize("line", [b"data: " + b"x" * 200_000, b"\n" * 4_000_000])
async def test_a_stream_that_floods_is_stopped(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "MAX_LINE_BYTES", 100_000)
    monkeypatch.setattr(transport, "MAX_REPLY_BYTES", 2_000_000)
    answer = await attempt(stream() + line, watch=True)
    assert answer.error is not None
    assert "MiB" in answer.error.message


async def test_headers_without_end_are_refused() -> None:
    failure = await refused(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")
    assert not failure.retry


async def test_one_connection_is_kept_for_one_after_the_other() -> None:
    async with serving(OK) as server, client_of(server) as client:
        for _ in range(5):
            assert (await client.attempt(asking())).value == "Hello."
    assert server.most_open == 1
    assert len(server.heads) == 5


async def test_sixty_four_side_by_side() -> None:
    waiting = 0
    all_here = asyncio.Event()

    async def when_all_are_here(writer: asyncio.StreamWriter) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 64:
            all_here.set()
        await all_here.wait()
        writer.write(OK)

    async with serving(when_all_are_here) as server, client_of(server) as client:
        answers = await asyncio.gather(*(client.attempt(asking()) for _ in range(64)))
    assert [a.value for a in answers] == ["Hello."] * 64
    assert server.most_open == 64


@pytest.mark.parametrize("reply", [[None], [STREAM_HEAD, b"%x\r\n%s\r\n" % (len(DELTA), DELTA), None]])
async def test_a_cancelled_attempt_closes_its_connection(reply: list[bytes | None]) -> None:
    shown = asyncio.Event()
    async with serving(reply) as server, client_of(server) as client:
        running = asyncio.create_task(client.attempt(asking(), lambda _: shown.set()))
        await (shown if len(reply) > 1 else server.asked).wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.wait_for(server.closed.wait(), 5)


async def test_large_prompts_are_sent_whole() -> None:
    text = "語" * 1_000_000
    async with serving(OK) as server, client_of(server) as client:
        request = asking(text=text)
        await client.attempt(request)
        assert client.wire_bytes(request) >= server.sizes[0] > 3_000_000
    assert server.bodies[0]["messages"][0]["content"] == text


async def test_a_proxy_of_the_users_is_used_but_not_for_loopback() -> None:
    async with serving(response("", "418 I'm a Teapot")) as proxy:
        client = ModelClient(Environment({"HALO_LOCAL_URL": "http://models.invalid/v1", "http_proxy": proxy.url}, {}))
        with pytest.raises(AttemptFailed, match="418"):
            await client.attempt(asking("local/x"))
        await client.close()
        assert proxy.heads[0].startswith("POST http://models.invalid/v1/chat/completions ")
        async with serving(OK) as server:
            client = ModelClient(Environment({"HALO_LOCAL_URL": server.url, "http_proxy": proxy.url}, {}))
            assert (await client.attempt(asking("local/x"))).value == "Hello."
            await client.close()
    assert len(proxy.heads) == 1


async def test_cookies_are_not_kept() -> None:
    reply = response(json.loads(OK.split(b"\r\n\r\n")[1]), "200 OK", "Set-Cookie: a=b")
    async with serving(reply) as server, client_of(server) as client:
        await client.attempt(asking())
        await client.attempt(asking())
    assert "cookie" not in server.heads[1].lower()
