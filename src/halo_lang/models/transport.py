"""Bytes to a model server and back (tools.md §4).

Owns one HTTP attempt: what it sends, how much it reads, and what its failures mean for a retry and for the bill. Never
follows a redirect (a key would travel), takes no compressed reply (a small one can be huge), keeps no cookie. Knows
nothing of what the bytes say, but for errors. Read the wires `openai.py` and `anthropic.py` next.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from io import BytesIO

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from ..boundary.attempt import AttemptFailed
from .providers import Endpoint
from .reply import Malformed, clean, decode

MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 8 * 1024 * 1024
"""Bytes of one line of a stream."""
MAX_ERROR_BYTES = 64 * 1024
CONNECT_S = 30.0
"""Seconds until a connection must stand. An attempt that got none surely was not billed."""

_RETRIED = (408, 409, 425, 429)
_MAYBE_BILLED = (504, 524)
_EXHAUSTED = ("insufficient_quota", "billing_hard_limit_reached", "billing_error")
_LARGE = 1024 * 1024


def session(limit: int) -> aiohttp.ClientSession:
    """The connections of one run: kept alive, `limit` of them at most. To be closed by whoever asked for it.

    Proxies come with the endpoint (`providers.py`), not from aiohttp's own look into the environment, which would also
    send what stands in a .netrc.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=limit, ttl_dns_cache=60),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        auto_decompress=False,
        trust_env=False,
        raise_for_status=False,
    )


class Target:
    """An endpoint made ready to be sent to: what is the same for every request is made once."""

    __slots__ = ("endpoint", "headers", "url")

    def __init__(self, endpoint: Endpoint, user_agent: str) -> None:
        self.endpoint = endpoint
        self.url = URL(endpoint.url)
        self.headers = CIMultiDict(
            {
                "Content-Type": "application/json",
                "Accept": "*/*",
                "Accept-Encoding": "identity",
                "User-Agent": user_agent,
                **endpoint.headers,
            }
        )


async def post(connections: aiohttp.ClientSession, target: Target, body: bytes) -> aiohttp.ClientResponse:
    """The response to one POST, its status 200 and its body still to be read. The caller releases it.

    Raises `AttemptFailed` for every other status and for a connection that fails.
    """
    try:
        response = await connections.post(
            target.url,
            data=body if len(body) < _LARGE else BytesIO(body),
            headers=target.headers,
            allow_redirects=False,
            proxy=target.endpoint.proxy,
        )
    except (aiohttp.ClientError, OSError) as error:
        raise _broken(error, target) from None
    if response.status == 200:
        return response
    try:
        raise await _refused(response, target)
    finally:
        response.close()


async def whole(response: aiohttp.ClientResponse, target: Target) -> bytes:
    """The whole body, at most `MAX_REPLY_BYTES` of it. Raises `Malformed` for more, `AttemptFailed` for less than was
    announced."""
    _uncompressed(response)
    length = response.content_length
    try:
        if length is not None and length <= MAX_REPLY_BYTES:
            return await response.read()
        if length is None:
            return await _bounded(response, MAX_REPLY_BYTES)
    except (aiohttp.ClientError, OSError) as error:
        raise _broken(error, target) from None
    raise Malformed(_TOO_LARGE)


async def events(response: aiohttp.ClientResponse, target: Target) -> AsyncIterator[bytes]:
    """The data of a stream's events, as the bytes come, wherever they are split. Lines end in LF or CRLF. The names
    of events are not read: their data says the same."""
    _uncompressed(response)
    data = b""
    total = 0
    rest = bytearray()
    try:
        async for piece in response.content.iter_any():
            total += len(piece)
            if total > MAX_REPLY_BYTES:
                raise Malformed(_TOO_LARGE)
            if b"\n" not in piece:
                rest += piece
                if len(rest) > MAX_LINE_BYTES:
                    raise Malformed(f"the stream holds a line of more than {MAX_LINE_BYTES >> 20} MiB")
                continue
            lines = (bytes(rest) + piece).split(b"\n")
            rest = bytearray(lines.pop())
            for line in lines:
                line = line.removesuffix(b"\r")
                if not line:
                    if data:
                        yield data
                    data = b""
                elif line.startswith(b"data:"):
                    part = line[5:].removeprefix(b" ")
                    data = data + b"\n" + part if data else part
    except (aiohttp.ClientError, OSError) as error:
        raise _broken(error, target) from None
    if data and not rest:
        yield data


def is_stream(response: aiohttp.ClientResponse) -> bool:
    """Whether a server that was asked for a stream gives one."""
    return response.content_type == "text/event-stream"


_TOO_LARGE = f"the reply is larger than {MAX_REPLY_BYTES >> 20} MiB"


def _uncompressed(response: aiohttp.ClientResponse) -> None:
    if response.headers.get("Content-Encoding", "identity").lower() not in ("identity", ""):
        raise Malformed("the reply is compressed, which was not asked for")


async def _bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    pieces: list[bytes] = []
    total = 0
    async for piece in response.content.iter_any():
        total += len(piece)
        if total > limit:
            raise Malformed(_TOO_LARGE)
        pieces.append(piece)
    return b"".join(pieces)


async def _refused(response: aiohttp.ClientResponse, target: Target) -> AttemptFailed:
    """What a status other than 200 means."""
    endpoint, status = target.endpoint, response.status
    try:
        phrase = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        phrase = str(status)
    if 300 <= status < 400:
        where = clean(response.headers.get("Location", ""), endpoint.key)
        return AttemptFailed(
            "MODEL_ERROR",
            f"{endpoint.model}: the server redirects ({phrase}) to {where or 'nowhere'}. A redirect is not followed, "
            f"for the key would go there; if that is the right address, set it",
            billed=False,
        )
    said, exhausted = await _error_text(response, endpoint)
    message = f"{endpoint.model}: the server answered {phrase}" + (f": {said}" if said else "")
    if status in (401, 403) and endpoint.key_name:
        message += f" (the key is from {endpoint.key_name})"
    return AttemptFailed(
        "MODEL_ERROR",
        message,
        retry=(status in _RETRIED or status >= 500) and not exhausted,
        billed=None if status in _MAYBE_BILLED or 200 <= status < 300 else False,
        retry_after_s=_retry_after(response.headers),
    )


async def _error_text(response: aiohttp.ClientResponse, endpoint: Endpoint) -> tuple[str, bool]:
    """The message of an error's body, whatever shape that has, and whether it says that the account is empty."""
    raw = b""
    try:
        async with asyncio.timeout(CONNECT_S):
            async for piece in response.content.iter_any():
                raw += piece
                if len(raw) > MAX_ERROR_BYTES:
                    break
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass
    text = raw[:MAX_ERROR_BYTES].decode("utf-8", "replace")
    try:
        said = decode(text)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        return clean(text, endpoint.key), False
    error = said.get("error")
    inner = error if isinstance(error, dict) else {}
    messages = (inner.get("message"), error, said.get("message"), said.get("detail"))
    text = next((m for m in messages if isinstance(m, str) and m), text)
    return clean(text, endpoint.key), any(inner.get(f) in _EXHAUSTED for f in ("code", "type"))


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait. A date is taken against the server's own clock where it tells that."""
    try:
        if "retry-after-ms" in headers:
            return _seconds(float(headers["retry-after-ms"]) / 1000)
        raw = headers.get("Retry-After")
        if raw is None:
            return None
        try:
            return _seconds(float(raw))
        except ValueError:
            pass
        from datetime import UTC, datetime
        from email.utils import parsedate_to_datetime

        until = parsedate_to_datetime(raw)
        now = parsedate_to_datetime(headers["Date"]) if "Date" in headers else datetime.now(UTC)
        return _seconds((until - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _seconds(number: float) -> float | None:
    return max(0.0, min(number, 1e9)) if number == number else None


def _broken(error: Exception, target: Target) -> AttemptFailed:
    """What a failing connection means: one that never stood was not billed, one that broke may have been."""
    endpoint, host = target.endpoint, target.url.host
    reason = str(error)
    if isinstance(error, aiohttp.ClientConnectorError) and (number := error.os_error.errno) and number > 0:
        reason = os.strerror(number)  # instead of aiohttp's words, which speak of "ssl:default" for http too
    elif isinstance(error, aiohttp.ClientConnectorDNSError):
        reason = error.os_error.strerror or ""
    shown = clean(reason or type(error).__name__, endpoint.key)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return AttemptFailed("MODEL_ERROR", f"{endpoint.model}: {host} is not trusted: {shown}", billed=False)
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.ClientHttpProxyError):
        return AttemptFailed(
            "MODEL_ERROR",
            f"{endpoint.model}: no connection to {host}:{target.url.port}: {shown}",
            retry=True,
            billed=False,
        )
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.InvalidURL):
        return AttemptFailed("MODEL_ERROR", f"{endpoint.model}: {host} does not speak HTTP: {shown}")
    return AttemptFailed("MODEL_ERROR", f"{endpoint.model}: the connection to {host} broke: {shown}", retry=True)
