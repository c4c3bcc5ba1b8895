"""Slack against a real server that speaks the four methods: what is sent, what is answered, and what is never sent."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from halo_lang.boundary.host import ConfigError, Environment, Given, ProviderHost, ToolError
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.providers.slack import MEANINGS, REQUESTS, Slack

TOKEN = "xoxb-1234-secret"
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


class Server:
    """A Web API. `answers` are given first, one a request: a response, or what makes one of the request."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.answers: list[Any] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        kind = request.content_type
        params = dict(await request.post()) if kind == FORM else json.loads(body)
        method = request.path.removeprefix("/api/")
        self.seen.append({"method": method, "kind": kind, "params": params, "headers": dict(request.headers)})
        if self.answers:
            answer = self.answers.pop(0)
            response = answer(request) if callable(answer) else answer
            return await response if asyncio.iscoroutine(response) else response
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        wanted = FORM if method == "conversations.history" else JSON
        if kind != wanted:
            return web.json_response({"ok": False, "error": "invalid_post_type"})
        return web.json_response(self.done(method, params))

    def done(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "chat.postMessage" | "chat.update":
                return {"ok": True, "channel": params["channel"], "ts": "1.2", "message": {"text": params["text"]}}
            case "reactions.add":
                return {"ok": True}
            case "conversations.history":
                return {"ok": True, "messages": [{"text": "hello", "ts": "1.1"}], "has_more": False}
        return {"ok": False, "error": "unknown_method"}


@asynccontextmanager
async def serving(handler: Callable[..., Any]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"http://127.0.0.1:{port}/api"
    finally:
        await runner.cleanup()


def host(process: dict[str, str] | None = None, project: dict[str, str] | None = None) -> ProviderHost:
    return ProviderHost(Path(), Path(), (), Environment(process or {}, project or {}))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    served = Server()
    async with serving(served.handle) as address:
        served.address = address  # type: ignore[attr-defined]
        yield served


@pytest.fixture
async def slack(server: Server) -> AsyncIterator[Slack]:
    made = Slack({"token": TOKEN, "channel": "#notes"}, host({"SLACK_API_URL": server.address}))  # type: ignore[attr-defined]
    yield made
    await made.close()


async def refusal(slack: Slack, method: str, **args: Any) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await slack.call(method, args, Given())
    assert TOKEN not in raised.value.message
    return raised.value


def test_the_methods_are_those_of_the_catalog() -> None:
    described = PROVIDERS["Slack"].describe({})
    assert described is not None
    assert list(REQUESTS) == [m.name for m in described]


async def test_each_method_asks_the_web_api(server: Server, slack: Slack) -> None:
    posted = await slack.call("post", {"text": "é {{x}}", "thread": "1.0"}, Given())
    assert posted == {"ok": True, "channel": "#notes", "ts": "1.2", "message": {"text": "é {{x}}"}}
    await slack.call("post", {"text": "x", "channel": "C1"}, Given())
    await slack.call("update", {"ts": "1.2", "text": "y"}, Given())
    await slack.call("react", {"ts": "1.2", "name": ":thumbsup:"}, Given())
    history = await slack.call("history", {}, Given())
    assert history == {"ok": True, "messages": [{"text": "hello", "ts": "1.1"}], "has_more": False}
    await slack.call("history", {"limit": 5.0, "channel": "C2"}, Given())
    assert [(s["method"], s["kind"], s["params"]) for s in server.seen] == [
        ("chat.postMessage", JSON, {"channel": "#notes", "text": "é {{x}}", "thread_ts": "1.0"}),
        ("chat.postMessage", JSON, {"channel": "C1", "text": "x"}),
        ("chat.update", JSON, {"channel": "#notes", "ts": "1.2", "text": "y"}),
        ("reactions.add", JSON, {"channel": "#notes", "timestamp": "1.2", "name": "thumbsup"}),
        ("conversations.history", FORM, {"channel": "#notes", "limit": "100"}),
        ("conversations.history", FORM, {"channel": "C2", "limit": "5"}),
    ]
    for seen in server.seen:
        assert seen["headers"].pop("Authorization") == f"Bearer {TOKEN}"
        assert TOKEN not in str(seen)


async def test_arguments_and_channel(server: Server, slack: Slack) -> None:
    for method, args in (
        ("post", {}),
        ("post", {"text": 3}),
        ("post", {"text": "\ud800"}),
        ("history", {"limit": 0}),
        ("history", {"limit": 1000}),
    ):
        assert (await refusal(slack, method, **args)).code == "TOOL_ARGUMENTS"
    assert "no method `send`" in (await refusal(slack, "send")).message
    bare = Slack({"token": TOKEN, "channel": ""}, host())
    for args in ({"text": "x"}, {"text": "x", "channel": ""}):
        error = await refusal(bare, "post", **args)
        assert error.code == "TOOL_ARGUMENTS"
        assert "`channel` to `post`, or to the tool" in error.message
    assert server.seen == []


async def test_slacks_refusals_come_with_their_word_and_meaning(server: Server, slack: Slack) -> None:
    for word, meaning in (*MEANINGS.items(), ("brand_new_error", "")):
        if word in ("ratelimited", "already_reacted"):
            continue
        server.answers.append(web.json_response({"ok": False, "error": word}))
        message = (await refusal(slack, "post", text="x")).message
        assert message == f"Slack answers `{word}`" + (f": {meaning}" if meaning else "")
    server.answers.append(web.json_response({"ok": False, "error": "missing_scope", "needed": "chat:write"}))
    assert "(it needs `chat:write`)" in (await refusal(slack, "post", text="x")).message
    server.answers.append(web.json_response({"ok": False, "error": f"x\n{TOKEN}"}))
    assert "Slack answers `x?[token]`" in (await refusal(slack, "post", text="x")).message


async def test_a_reaction_that_is_there_already_is_as_good(server: Server, slack: Slack) -> None:
    answer = {"ok": False, "error": "already_reacted"}
    server.answers.append(web.json_response(answer))
    assert await slack.call("react", {"ts": "1", "name": "eyes"}, Given()) == answer
    server.answers.append(web.json_response(answer))
    await refusal(slack, "post", text="x")


async def test_a_rate_limit_is_waited_for_a_few_times(server: Server, slack: Slack) -> None:
    def limited(after: str) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": after})

    server.answers += [limited("0"), web.json_response({"ok": False, "error": "ratelimited"}), limited("0")]
    server.answers[1].headers["Retry-After"] = "0"
    assert (await slack.call("post", {"text": "x"}, Given()))["ok"] is True  # type: ignore[index,call-overload]
    assert len(server.seen) == 4
    server.answers += [limited("0") for _ in range(4)]
    assert "nothing was done" in (await refusal(slack, "post", text="x")).message
    assert len(server.seen) == 8
    server.answers += [limited("3600")]
    assert "try again in 3600 s" in (await refusal(slack, "post", text="x")).message
    assert len(server.seen) == 9


async def torn(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def torn_halfway(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    await response.write(b'{"ok": tr')
    assert request.transport is not None
    request.transport.close()
    return response


@pytest.mark.parametrize(
    "answer",
    [
        torn,
        torn_halfway,
        lambda _: web.Response(text="<html>", status=502),
        lambda _: web.Response(text="not JSON"),
        lambda _: web.Response(body=b"\xff"),
        lambda _: web.Response(text="[" * 100_000),
        lambda _: web.Response(text='"text"'),
        lambda _: web.Response(text='{"ok": "yes"}'),
        lambda _: web.Response(text='{"ok": true, "x": "' + "y" * (5 << 20) + '"}'),
    ],
)
async def test_what_may_have_happened_is_never_sent_again(server: Server, slack: Slack, answer: Any) -> None:
    server.answers.append(answer)
    assert "may have happened or not" in (await refusal(slack, "post", text="x")).message
    server.answers.append(answer)
    assert "may have happened" not in (await refusal(slack, "history")).message
    assert len(server.seen) == 2


async def test_redirects_are_not_followed(server: Server, slack: Slack) -> None:
    reached: list[web.Request] = []

    async def elsewhere(request: web.Request) -> web.Response:
        reached.append(request)
        return web.json_response({"ok": True})

    async with serving(elsewhere) as address:
        for status in (301, 302, 307, 308):
            server.answers.append(web.Response(status=status, headers={"Location": address}))
            assert "redirect" in (await refusal(slack, "post", text="x")).message
    assert reached == []


async def test_a_server_that_is_not_there(slack: Slack) -> None:
    gone = Slack({"token": TOKEN, "channel": "c"}, host({"SLACK_API_URL": "http://127.0.0.1:9"}))
    assert (await refusal(gone, "post", text="x")).message == "Slack cannot be reached; nothing was sent"
    await gone.close()
    await gone.close()


async def test_the_token_does_not_come_back(server: Server, slack: Slack) -> None:
    server.answers.append(web.json_response({"ok": True, "echo": f"Bearer {TOKEN}", TOKEN: [TOKEN]}))
    answer = await slack.call("post", {"text": "x"}, Given())
    assert answer == {"ok": True, "echo": "Bearer [token]", "[token]": ["[token]"]}


async def test_more_history_than_a_result_holds_says_how_to_ask_for_less(server: Server, slack: Slack) -> None:
    server.answers.append(web.json_response({"ok": True, "messages": ["x" * 1000] * 300}))
    assert "give a smaller `limit`" in (await refusal(slack, "history")).message


def packed(body: bytes, coding: str) -> web.Response:
    return web.Response(body=body, headers={"Content-Encoding": coding}, content_type="application/json")


async def test_a_packed_answer_is_unpacked_and_no_further_than_the_bound(server: Server, slack: Slack) -> None:
    server.answers.append(packed(gzip.compress(b'{"ok": true, "ts": "1"}'), "gzip"))
    assert await slack.call("post", {"text": "x"}, Given()) == {"ok": True, "ts": "1"}
    assert server.seen[-1]["headers"]["Accept-Encoding"] == "gzip, deflate"
    bomb = gzip.compress(b"[" + b" " * 100_000_000)
    server.answers.append(packed(bomb, "gzip"))
    assert "has more than 4,194,304 bytes" in (await refusal(slack, "history")).message
    for coding in ("br", "zstd"):
        server.answers.append(packed(bomb, coding))
        message = (await refusal(slack, "post", text="x")).message
        assert f"packed as `{coding}`, which was not asked for" in message
        assert "may have happened or not" in message


async def test_a_cancelled_call_ends(server: Server, slack: Slack) -> None:
    arrived = asyncio.Event()

    async def never(_: web.Request) -> web.Response:
        arrived.set()
        await asyncio.sleep(3600)
        return web.Response()

    server.answers.append(never)
    task = asyncio.create_task(slack.call("post", {"text": "x"}, Given()))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_settings_that_cannot_be_used() -> None:
    for settings in (
        {},
        {"token": ""},
        {"token": "xoxb-a\r\nX-Evil: 1"},
        {"token": "xoxb a"},
        {"token": "xoxb-é"},
        {"token": TOKEN, "channel": 3},
    ):
        with pytest.raises(ConfigError) as raised:
            Slack(settings, host())
        assert "xoxb-" not in str(raised.value).replace("SLACK_BOT_TOKEN", "")
    for address in (
        "ftp://x",
        "slack.com",
        "http://",
        "https://u:p@x",
        "https://x/?a=1",
        "https://x:99999",
        "https://[",
    ):
        with pytest.raises(ConfigError, match="SLACK_API_URL"):
            Slack({"token": TOKEN}, host({"SLACK_API_URL": address}))


def test_an_address_of_the_project_gets_only_a_token_of_the_project() -> None:
    address = {"SLACK_API_URL": "https://evil.example"}
    with pytest.raises(ConfigError, match="only a token that stands there too"):
        Slack({"token": TOKEN}, host({"SLACK_BOT_TOKEN": TOKEN}, address))
    Slack({"token": TOKEN}, host({}, {**address, "SLACK_BOT_TOKEN": TOKEN}))
    Slack({"token": TOKEN}, host({**address, "SLACK_BOT_TOKEN": TOKEN}, address))
