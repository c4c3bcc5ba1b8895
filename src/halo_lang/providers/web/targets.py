"""Where a request goes: the tool's base address, a path below it, and where a redirect leads (tools.md §2, Http).

Owns the reading of addresses. A path is a path: it names no scheme and no host, cannot climb out of the base, and ends
where a query would begin. Pure.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlencode

from yarl import URL

from ...boundary.host import ConfigError, ToolError
from ...language.record import Record
from .addresses import refuse_literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...language.values import Value

_SCHEME = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SAFE = "/:@!$&'()*+,;=-._~%"
_MAX_ADDRESS = 16_384
_PORTS = {"http": 80, "https": 443}


class Target(Record):
    """Where a tool's requests begin. `prefix` is the address up to the path, `path` that of the base without a slash
    at its end; `allowed` are `host:port` of all that may be reached."""

    prefix: str
    path: str
    allowed: frozenset[str]
    private: bool


def base_target(address: object, allow: Sequence[object], private: bool) -> Target:
    """The target that a tool's settings name. Raises `ConfigError`."""
    if not isinstance(address, str) or not _is_plain(address):
        raise ConfigError("an Http tool needs an address, such as `https://api.example.com/v1`")
    url = _parsed(address)
    if url is None or url.scheme not in _PORTS or not url.host:
        raise ConfigError(f"the address of an Http tool must begin with https:// or http://, not `{_short(address)}`")
    if url.user is not None or url.password is not None:
        raise ConfigError("the address of an Http tool holds a user or password; send it as a header, from `Env.NAME`")
    if "?" in address or "#" in address:
        raise ConfigError(f"the address of an Http tool ends before `?` and `#`: `{_short(address)}`")
    if _climbs(url.raw_path):
        raise ConfigError(f"the address of an Http tool has `.` or `..` in its path: `{_short(address)}`")
    try:
        refuse_literal(url.host, private)
    except ValueError as trouble:
        raise ConfigError(str(trouble)) from None
    allowed = {_place(url), *(place for entry in allow for place in _allowed(entry))}
    prefix = f"{url.scheme}://{url.raw_authority}"
    return Target(prefix, url.raw_path.rstrip("/"), frozenset(allowed), private)


def address_of(target: Target, path: str, query: Mapping[str, Value] | None) -> URL:
    """The address of a path below the target. Raises `ToolError` (`TOOL_ARGUMENTS`)."""
    trouble = _path_trouble(path)
    if trouble:
        raise ToolError(f"the argument `path` {trouble}", "TOOL_ARGUMENTS")
    rest = path.removeprefix("/")
    text = f"{target.prefix}{target.path}/{_quoted(rest)}" if rest or path else f"{target.prefix}{target.path or '/'}"
    if query:
        text += f"?{_query(query)}"
    if len(text) > _MAX_ADDRESS:
        raise ToolError(f"the address would have more than {_MAX_ADDRESS:,} characters", "TOOL_ARGUMENTS")
    return URL(text, encoded=True)


def redirected(target: Target, url: URL, location: str) -> URL:
    """Where a redirect leads. Raises `ToolError` where it may not be followed."""
    led = _parsed(location) if _is_plain(location) else None
    if led is not None and led.scheme and not led.host:
        led = None
    try:
        led = None if led is None else url.join(led).with_fragment(None)
    except ValueError:
        led = None
    if led is None or led.scheme not in _PORTS or not led.host:
        raise ToolError(f"the answer is a redirect to `{_short(location)}`, which is no address of http or https")
    host = str(led.host_subcomponent) + ("" if led.port == _PORTS[led.scheme] else f":{led.port}")
    shown = f"{led.scheme}://{host}"
    if led.user is not None or led.password is not None:
        raise ToolError("the answer is a redirect to an address that holds a user, which is not followed")
    if _place(led) not in target.allowed:
        raise ToolError(
            f"the answer is a redirect to {_short(shown)}, which the tool may not reach; "
            f'`allow: ["{_short(host)}"]` would permit it'
        )
    if url.scheme == "https" and led.scheme == "http":
        raise ToolError(f"the answer is a redirect from https to {_short(shown)}, which is not followed")
    try:
        refuse_literal(led.host, target.private)
    except ValueError as trouble:
        raise ToolError(f"the answer is a redirect: {trouble}") from None
    return led


def same_host(url: URL, other: URL) -> bool:
    """Whether two addresses are of one host, so that what was meant for it may go there: by name and port, or from
    http to https at their usual ports."""
    if _place(url) == _place(other):
        return True
    usual = url.port == _PORTS.get(url.scheme) and other.port == _PORTS.get(other.scheme)
    return usual and _name(url) == _name(other)


def _path_trouble(path: str) -> str | None:
    if not _is_plain(path, blanks=True):
        return "holds control characters or is not valid Unicode"
    if path.startswith("//") or "\\" in path:
        return "must be a path: it begins with at most one slash, and holds no backslash"
    if _SCHEME.match(path):
        return "must be a path below the tool's address, and is an address of its own"
    if "?" in path or "#" in path:
        return "must end before `?` and `#`: give what follows `?` as `query`"
    if _climbs(path):
        return "must not hold `.` or `..` as a part, in whatever spelling"
    return None


def _climbs(path: str) -> bool:
    """Whether a part of a path is `.` or `..` to any server: escaped once or more, or with parameters."""
    for _ in range(8):
        parts = path.replace("\\", "/").split("/")
        if any(part.split(";", 1)[0].strip() in (".", "..") for part in parts):
            return True
        plain = unquote(path, errors="replace")
        if plain == path:
            return False
        path = plain
    return True


def _quoted(path: str) -> str:
    """A path with what may not stand in one escaped; what is escaped already stays, a lone `%` becomes `%25`."""
    return quote(_LONE_PERCENT.sub("%25", path), safe=_SAFE)


def _query(query: Mapping[str, Value]) -> str:
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, list | dict):
                raise ToolError(
                    f"`{name}` of the argument `query` must be text, a number, true or false, or a list of these",
                    "TOOL_ARGUMENTS",
                )
            if one is not None:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
    try:
        return urlencode(pairs)
    except UnicodeEncodeError:
        raise ToolError("the argument `query` holds characters that are not valid Unicode", "TOOL_ARGUMENTS") from None


def _allowed(entry: object) -> tuple[str, ...]:
    """The places that an entry of `allow` permits: a host at the usual ports, or `host:port`."""
    if isinstance(entry, str) and entry and _is_plain(entry) and not any(c in entry for c in "/@?#*\\"):
        bare = entry if entry.startswith("[") or entry.count(":") < 2 else f"[{entry}]"
        url = _parsed(f"http://{bare}")
        if url is not None and url.host:
            name = _name(url)
            if url.explicit_port is not None:
                return (f"{name}:{url.explicit_port}",)
            return tuple(f"{name}:{port}" for port in _PORTS.values())
    raise ConfigError('`allow` of an Http tool is a list of hosts, such as ["api.example.com", "localhost:8080"]')


def _place(url: URL) -> str:
    return f"{_name(url)}:{url.port}"


def _name(url: URL) -> str:
    return (url.raw_host or "").rstrip(".").lower()


def _parsed(text: str) -> URL | None:
    try:
        return URL(text)
    except (ValueError, TypeError):
        return None


def _is_plain(text: str, *, blanks: bool = False) -> bool:
    """Whether a text can stand in an address: no control character (nor, without `blanks`, a blank), valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return all(c.isprintable() and (blanks or not c.isspace()) for c in text)


def _short(text: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text[:200])
    return shown if len(text) <= 200 else f"{shown}…"
