"""`Http`: a service at one address, as a tool (tools.md §2).

Owns the five methods' way over the wire and the following of redirects, hop by hop. What may be reached stands in
`web/addresses.py` and `web/targets.py`, what becomes of a body in `web/bodies.py`. Uses no proxy, for a proxy would
look names up where nobody judges the address; keeps no cookies; sends nothing twice.
"""

from __future__ import annotations

import os
import re
from io import BytesIO

from ..boundary.host import ConfigError, Given, ToolError
from ..catalog.builtin import PROVIDERS
from ..catalog.describe import READ
from ..language.record import Record, replace
from ..language.values import to_json
from ..version import VERSION
from .arguments import refuse_arguments
from .results import LIMIT, bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from aiohttp import ClientResponse, ClientSession, TraceConfig
    from yarl import URL

    from ..boundary.host import ProviderHost
    from ..catalog.describe import Method
    from ..language.values import Value
    from .web.targets import Target

MAX_REDIRECTS = 10
_MAX_SENT = 16 << 20
_CONNECT_S = 10.0
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_OWN_HEADERS = frozenset(
    [
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
"""Headers that belong to the connection and not to whoever uses the tool."""

_HIDDEN = frozenset(("set-cookie", "set-cookie2"))
"""Headers of an answer that are not handed on: sessions, which nobody keeps."""


class _Request(Record):
    """One request. `headers` are the tool's own, empty once a redirect has led to another host."""

    verb: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    content_type: str


class Http:
    """A started Http tool. Raises `ConfigError` for an address, header or host that cannot be used; looks no name up
    and opens no connection before the first call."""

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        from .web.targets import base_target

        private = settings.get("private", False)
        if not isinstance(private, bool):
            raise ConfigError("`private` of an Http tool must be true or false")
        allow = settings.get("allow") or ()
        if not isinstance(allow, list | tuple):
            raise ConfigError("`allow` of an Http tool must be a list of hosts")
        self._target: Target = base_target(settings.get("address"), allow, private)
        self._headers = _headers(settings.get("headers") or {})
        self._session: ClientSession | None = None
        self._methods = {m.name: m for m in PROVIDERS["Http"].describe(settings) or ()}

    async def call(self, method: str, args: Mapping[str, Value], given: Given | None = None) -> Value:
        """`{status, headers, body}`; a status of 4xx or 5xx is a result. Raises `ToolError` where there is no answer,
        or a redirect that may not be followed; where a request may have been carried out, the error says so."""
        from .web.targets import address_of

        described = self._methods.get(method)
        if described is None:
            raise ToolError(f"Http has no method `{method}`; it has {', '.join(self._methods)}")
        refuse_arguments(described, args)
        query: Any = args.get("query")
        url = address_of(self._target, str(args["path"]), query)
        body, content_type = _sent(args.get("body"))
        return await self._answer(described, _Request(method.upper(), url, self._headers, body, content_type))

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _answer(self, method: Method, request: _Request) -> Value:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._exchange(method, request)
            if not isinstance(answer, _Request):
                return answer
            request = answer
        raise ToolError(f"the answer is one redirect after another, more than {MAX_REDIRECTS}")

    async def _exchange(self, method: Method, request: _Request) -> Value | _Request:
        """One request over the wire: its answer, or the request that it is redirected to."""
        import aiohttp

        from .web.addresses import Forbidden

        host = request.url.host
        try:
            async with self._open().request(
                request.verb,
                request.url,
                headers=_all_headers(request),
                data=None if request.body is None else BytesIO(request.body),
                allow_redirects=False,
                trace_request_ctx=[],
            ) as response:
                if response.status in _REDIRECTS and "Location" in response.headers:
                    return self._redirect(request, response)
                return await _result(response)
        except aiohttp.ClientConnectorCertificateError:
            raise ToolError(f"the certificate of {host} cannot be verified; nothing was sent") from None
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, Forbidden):
                raise ToolError(str(error.os_error)) from None
            number = error.os_error.errno or 0  # negative where no host of that name was found
            reason = os.strerror(number) if number > 0 else error.os_error.strerror or type(error.os_error).__name__
            raise ToolError(f"{host} cannot be reached ({reason}); nothing was sent") from None
        except aiohttp.ConnectionTimeoutError:
            raise ToolError(f"{host} cannot be reached within {_CONNECT_S:g} s; nothing was sent") from None
        except aiohttp.InvalidURL:
            raise ToolError(f"{host} cannot be reached: that is no address") from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ToolError(f"the answer of {host} did not come ({type(error).__name__}){_may_have(method)}") from None

    def _redirect(self, request: _Request, response: ClientResponse) -> _Request:
        """Where a redirect leads, by the rules of browsers: 303, and 301 and 302 after a POST, become a GET."""
        from .web.targets import redirected, same_host

        url = redirected(self._target, request.url, response.headers["Location"])
        becomes_get = response.status == 303 or (response.status in (301, 302) and request.verb == "POST")
        headers = request.headers if same_host(request.url, url) else {}
        if becomes_get:
            return _Request("GET", url, headers, None, "")
        return replace(request, url=url, headers=headers)

    def _open(self) -> ClientSession:
        if self._session is None:
            import aiohttp

            from .web.addresses import connector

            self._session = aiohttp.ClientSession(
                connector=connector(self._target.private),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
                timeout=aiohttp.ClientTimeout(total=120, sock_connect=_CONNECT_S),
                trace_configs=[_sent_once()],
            )
        return self._session


def _sent_once() -> TraceConfig:
    """Holds each request to one connection: aiohttp sends PUT, DELETE and GET again where the first one breaks."""
    from aiohttp import ServerDisconnectedError, TraceConfig

    async def connecting(_: object, context: Any, __: object) -> None:
        connections: list[None] = context.trace_request_ctx
        if connections:
            raise ServerDisconnectedError
        connections.append(None)

    trace = TraceConfig()
    trace.on_connection_create_start.append(connecting)
    return trace


async def _result(response: ClientResponse) -> Value:
    from .web.bodies import read, value_of

    headers: dict[str, Value] = {}
    for name, value in response.headers.items():
        name = name.lower()
        if name not in _HIDDEN:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    made: dict[str, Value] = {"status": response.status, "headers": headers, "body": None}
    room = LIMIT - len(to_json(made).encode("utf-8", "replace"))
    body = await read(response)
    if room < LIMIT // 2:
        raise ToolError(f"the answer's headers have more than {LIMIT // 2:,} bytes")
    made["body"] = value_of(body, response, room)
    return bounded(made)


def _sent(body: Value) -> tuple[bytes | None, str]:
    """A body's bytes and content type: text as it is, null as none, anything else as JSON."""
    if body is None:
        return None, ""
    try:
        data = body.encode() if isinstance(body, str) else to_json(body).encode()
    except (UnicodeEncodeError, ValueError):
        raise ToolError("the argument `body` holds what cannot be sent as UTF-8 or JSON", "TOOL_ARGUMENTS") from None
    if len(data) > _MAX_SENT:
        raise ToolError(f"the argument `body` has more than {_MAX_SENT:,} bytes", "TOOL_ARGUMENTS")
    return data, "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"


def _all_headers(request: _Request) -> dict[str, str]:
    from .web.bodies import ACCEPTED

    made = {
        "Accept": "application/json, text/*;q=0.9, */*;q=0.5",
        "User-Agent": f"halo-lang/{VERSION}",
        "Accept-Encoding": ACCEPTED,
    }
    if request.body is not None:
        made["Content-Type"] = request.content_type
    own = {name.lower() for name in request.headers}
    return {**{name: value for name, value in made.items() if name.lower() not in own}, **_sendable(request)}


def _sendable(request: _Request) -> dict[str, str]:
    """The tool's own headers; a content type goes only with a body."""
    return {n: v for n, v in request.headers.items() if request.body is not None or n.lower() != "content-type"}


def _headers(given: object) -> dict[str, str]:
    """The headers that a tool's settings name. Raises `ConfigError`, which never holds a value."""
    if not isinstance(given, dict):
        raise ConfigError("`headers` of an Http tool must be an object")
    made: dict[str, str] = {}
    for name, value in given.items():
        if not _HEADER_NAME.match(name):
            raise ConfigError(f"`{name[:60]}` cannot be the name of a header")
        if name.lower() in _OWN_HEADERS or name.lower() == "cookie2":
            raise ConfigError(f"the header `{name}` belongs to the connection and cannot be set")
        if name.lower() in {known.lower() for known in made}:
            raise ConfigError(f"the header `{name}` is given twice")
        if not isinstance(value, str):
            raise ConfigError(f"the value of the header `{name}` must be text")
        value = value.strip()
        if not value.isascii() or not value.isprintable():
            raise ConfigError(f"the value of the header `{name}` holds characters that no header has")
        made[name] = value
    return made


def _may_have(method: Method) -> str:
    """What to add where nobody knows whether a request was carried out."""
    if method.effect == READ:
        return ""
    return "; what was asked may have happened or not, so it was not sent again: look before you do"
