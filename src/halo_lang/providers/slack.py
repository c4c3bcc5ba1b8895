"""`Slack`: messages by Slack's Web API, as a tool (tools.md §2).

Owns the four methods' way over the wire, and what Slack's refusals mean. The token goes into one header and nowhere
else: not into an error, a result, or to an address that a project chose and its user did not. A request that may have
been carried out is never sent again; only one that Slack refused for its rate limit is, a few times.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ..boundary.host import ConfigError, Given, ToolError
from ..catalog.builtin import PROVIDERS
from ..catalog.describe import READ
from ..language.record import Record
from ..language.values import read_json, to_json
from .arguments import refuse_arguments
from .results import bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from aiohttp import ClientResponse, ClientSession

    from ..boundary.host import ProviderHost
    from ..catalog.describe import Method
    from ..language.values import Value

ADDRESS = "https://slack.com/api"

_ADDRESS_VARIABLE = "SLACK_API_URL"
_MAX_BODY = 4 << 20
_MAX_WAITS = 3
_MAX_WAIT_S = 20.0
_CONNECT_S = 10.0
_DONE_ALREADY = {"react": "already_reacted"}
_MAX_LIMIT = 999

MEANINGS = {
    "account_inactive": "the token's user or workspace is gone",
    "already_reacted": "the reaction is there already",
    "cant_update_message": "only the bot's own messages can be changed",
    "channel_is_archived": "the channel is archived",
    "channel_not_found": "there is no such channel, or the bot cannot see it; all methods but `post` need the "
    "channel's id, which the answer to `post` holds",
    "edit_window_closed": "the message is too old to be changed",
    "internal_error": "Slack failed; what was asked may have happened or not",
    "fatal_error": "Slack failed; what was asked may have happened or not",
    "invalid_auth": "the token is not valid",
    "invalid_name": "there is no such emoji; give its name without colons",
    "is_archived": "the channel is archived",
    "message_not_found": "there is no message with that `ts` in the channel",
    "missing_scope": "the token lacks a permission",
    "msg_too_long": "the message is too long",
    "no_permission": "the token lacks a permission",
    "no_text": "the message is empty",
    "not_authed": "no token reached Slack",
    "not_in_channel": "the bot is not in the channel; invite it",
    "org_login_required": "the workspace is being moved",
    "ratelimited": "too many requests; wait before the next",
    "restricted_action": "the workspace's settings do not permit that",
    "thread_not_found": "there is no message with that `thread`",
    "token_expired": "the token has expired",
    "token_revoked": "the token has been revoked",
    "too_many_reactions": "the message has as many reactions as it can have",
}
"""What the refusals mean that are met most."""


class _Request(Record):
    """One call of the Web API. `form` says that its parameters go as a form, which the reading methods want."""

    method: str
    params: dict[str, Any]
    form: bool = False


class Slack:
    """A started Slack tool. Raises `ConfigError` for a token, a channel or an address that cannot be used; opens no
    connection before the first call."""

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        token = settings.get("token")
        if not isinstance(token, str) or not token:
            raise ConfigError("a Slack tool needs a token, as in `Slack(Env.SLACK_BOT_TOKEN)`")
        if not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError("the token of a Slack tool holds characters that no token has")
        channel = settings.get("channel")
        if channel is not None and not isinstance(channel, str):
            raise ConfigError("`channel` of a Slack tool must be text")
        self._token = token
        self._channel = channel or None
        self._address = _address(token, host)
        self._session: ClientSession | None = None
        self._methods = {m.name: m for m in PROVIDERS["Slack"].describe(settings) or ()}

    async def call(self, method: str, args: Mapping[str, Value], given: Given | None = None) -> Value:
        """What the Web API answers, without the token (tools.md §2). Raises `ToolError` for a refusal, with Slack's
        word for it; where a message may have been sent although no answer came, the error says so."""
        described = self._methods.get(method)
        if described is None:
            raise ToolError(f"Slack has no method `{method}`; it has {', '.join(self._methods)}")
        refuse_arguments(described, args)
        channel = args.get("channel") or self._channel
        if not channel:
            raise ToolError(
                f'no channel: give `channel` to `{method}`, or to the tool, as in `Slack(…, channel: "#notes")`',
                "TOOL_ARGUMENTS",
            )
        answer = await self._sent(described, REQUESTS[method](str(channel), args))
        return bounded(answer, "give a smaller `limit`" if method == "history" else "ask for less")

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _sent(self, method: Method, request: _Request) -> dict[str, Value]:
        """Sends a request until it is not refused for the rate limit, a few times; what was answered."""
        import asyncio

        waited_s = 0.0
        for attempt in range(_MAX_WAITS + 1):
            status, retry_after, body = await self._exchange(method, request)
            answer = self._read(method, status, body)
            if answer is not None:
                return answer
            pause_s = _pause_s(retry_after)
            waited_s += pause_s
            if attempt == _MAX_WAITS or waited_s > _MAX_WAIT_S:
                break
            await asyncio.sleep(pause_s)
        raise ToolError(f"Slack's rate limit: nothing was done; try again in {pause_s:g} s")

    async def _exchange(self, method: Method, request: _Request) -> tuple[int, str, bytes]:
        """One request over the wire: the answer's status, its `Retry-After` and its body."""
        import aiohttp

        from .web.bodies import ACCEPTED

        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "Accept-Encoding": ACCEPTED,
        }
        sent: dict[str, Any] = {"data": request.params}
        if not request.form:
            headers["Content-Type"] = "application/json; charset=utf-8"
            sent = {"data": to_json(request.params).encode()}
        url = f"{self._address}/{request.method}"
        try:
            async with self._open().post(url, headers=headers, allow_redirects=False, **sent) as response:
                return response.status, response.headers.get("Retry-After", ""), await self._body(method, response)
        except aiohttp.ClientConnectorCertificateError:
            raise ToolError("Slack's certificate cannot be verified; nothing was sent") from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise ToolError("Slack cannot be reached; nothing was sent") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ToolError(f"Slack's answer did not come ({type(error).__name__}){_may_have(method)}") from None

    async def _body(self, method: Method, response: ClientResponse) -> bytes:
        from .web.bodies import read

        try:
            body = await read(response, _MAX_BODY)
        except ToolError as trouble:
            raise ToolError(f"Slack's answer cannot be used: {trouble.message}{_may_have(method)}") from None
        if not body.whole:
            raise ToolError(f"Slack's answer has more than {_MAX_BODY:,} bytes{_may_have(method)}")
        return body.data

    def _open(self) -> ClientSession:
        """The session. Each request has a connection of its own: one kept open may be found closed only after a
        message was written to it, and then nobody knows whether it arrived."""
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=120, sock_connect=_CONNECT_S),
            )
        return self._session

    def _read(self, method: Method, status: int, body: bytes) -> dict[str, Value] | None:
        """An answer, or None for one that refuses for the rate limit. Raises `ToolError` for any other failure."""
        if status == 429:
            return None
        if 300 <= status < 400:
            raise ToolError(f"Slack's address answers with a redirect (HTTP {status}), which is not followed")
        try:
            answer = read_json(body.decode())
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
            raise ToolError(f"Slack's answer (HTTP {status}) is not what its Web API gives{_may_have(method)}")
        answer = self._without_token(answer)
        if answer["ok"] is True:
            return answer
        word = str(answer.get("error") or "unknown_error")[:100]
        if word == "ratelimited":
            return None
        if word == _DONE_ALREADY.get(method.name):
            return answer
        raise ToolError(_refusal(word, answer))

    def _without_token(self, answer: dict[str, Value]) -> dict[str, Value]:
        """An answer in which the token does not stand, should whoever answers send it back."""
        from json import loads

        text = to_json(answer)
        token = to_json(self._token)[1:-1]
        if token not in text:
            return answer
        cleaned: dict[str, Value] = loads(text.replace(token, "[token]"))
        return cleaned


def _address(token: str, host: ProviderHost) -> str:
    """Where the Web API is. Raises `ConfigError` for an address of the project's `.env` that would be sent a token from
    elsewhere (tools.md §4)."""
    address = host.environment.get(_ADDRESS_VARIABLE)
    if address is None:
        return ADDRESS
    try:
        parts = urlsplit(address)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        port_is_valid = False
    if not port_is_valid or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"the variable {_ADDRESS_VARIABLE} must hold an address that begins with https://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(f"the variable {_ADDRESS_VARIABLE} must hold a plain address, without user, `?` or `#`")
    if host.environment.is_projects(_ADDRESS_VARIABLE) and token not in host.environment.project.values():
        raise ConfigError(
            f"{_ADDRESS_VARIABLE} stands in the project's `.env`, so only a token that stands there too is sent to it; "
            "set the variable in your own environment to send yours"
        )
    return address.rstrip("/")


def _post(channel: str, args: Mapping[str, Value]) -> _Request:
    params = {"channel": channel, "text": args["text"]}
    if args.get("thread"):
        params["thread_ts"] = args["thread"]
    return _Request("chat.postMessage", params)


def _update(channel: str, args: Mapping[str, Value]) -> _Request:
    return _Request("chat.update", {"channel": channel, "ts": args["ts"], "text": args["text"]})


def _react(channel: str, args: Mapping[str, Value]) -> _Request:
    name = str(args["name"]).strip(":")
    return _Request("reactions.add", {"channel": channel, "timestamp": args["ts"], "name": name})


def _history(channel: str, args: Mapping[str, Value]) -> _Request:
    limit = int(args.get("limit", 100))  # type: ignore[arg-type]
    if limit > _MAX_LIMIT:
        raise ToolError(f"the argument `limit` must be at most {_MAX_LIMIT}", "TOOL_ARGUMENTS")
    return _Request("conversations.history", {"channel": channel, "limit": str(limit)}, form=True)


REQUESTS: dict[str, Callable[[str, Mapping[str, Value]], _Request]] = {
    "post": _post,
    "update": _update,
    "react": _react,
    "history": _history,
}
"""What each method that the catalog describes asks of the Web API."""


def _refusal(word: str, answer: dict[str, Value]) -> str:
    said = "".join(c if c.isprintable() else "?" for c in word)
    meaning = MEANINGS.get(word)
    text = f"Slack answers `{said}`" + (f": {meaning}" if meaning else "")
    needed = answer.get("needed")
    if word == "missing_scope" and isinstance(needed, str) and needed.isprintable():
        text += f" (it needs `{needed[:100]}`)"
    return text


def _pause_s(retry_after: str) -> float:
    """How long to wait, by the header; a second where it says nothing that can be read."""
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 9 else 1.0


def _may_have(method: Method) -> str:
    """What to add where nobody knows whether a request was carried out."""
    if method.effect == READ:
        return ""
    return "; what was asked may have happened or not, so it was not sent again: look before you do"
