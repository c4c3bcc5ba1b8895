"""Which addresses of the network may be reached (tools.md §2, Http).

Owns the list of what is not public and the connector that holds connections to it: a name is looked up once for a
connection, each address is judged, and one of those judged is the one that is used. It is judged again when its socket
is made, so that nothing on the way, a name that resolves to something else at the second look least of all, comes past.
"""

from __future__ import annotations

import asyncio
import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from aiohttp import TCPConnector
from aiohttp.abc import AbstractResolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from aiohttp.abc import ResolveResult

_NOT_PUBLIC_4 = tuple(
    ip_network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
"""IPv4 that is not public: this host, private, shared (CGNAT), loopback, link-local, tests, multicast, reserved."""

_PUBLIC_6 = ip_network("2000::/3")
"""All public IPv6 lies in here; so the forms that hold an IPv4 address (mapped, compatible, NAT64) do not."""

_NOT_PUBLIC_6 = tuple(ip_network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))
"""IPv6 inside it that is not public: Teredo and other tunnels, 6to4, documentation."""

_NUMBERS = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+)){0,3}\Z")


class Forbidden(OSError):
    """An address that may not be reached, in words for a model."""


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet. Text that is none is not."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return not any(found in block for block in _NOT_PUBLIC_4)
    assert isinstance(found, IPv6Address)
    return found.scope_id is None and found in _PUBLIC_6 and not any(found in block for block in _NOT_PUBLIC_6)


def literal(host: str) -> str | None:
    """The IP address that a host is written as, or None for a name. Raises `ValueError` for an IPv4 address spelled
    so that programs read it in different ways: decimal, octal, hexadecimal, with parts left out."""
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    if _NUMBERS.match(host.rstrip(".")):
        try:
            meant = socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
        except OSError:
            raise ValueError(f"`{host}` is no address") from None
        raise ValueError(f"`{host}` is an odd spelling of {meant}; write that")
    return None


def refuse_literal(host: str, private: bool) -> None:
    """Raises `ValueError` for a host that is written as an IP address which may not be reached."""
    address = literal(host)
    if address is not None and not private and not is_public(address):
        raise ValueError(_refusal(host, [address]))


async def lookup(host: str, port: int) -> list[str]:
    """All addresses of a name, as the system knows them. Raises `OSError` where it knows none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def connector(private: bool) -> TCPConnector:
    """Connections to public addresses, with `private` to any. Each request has a connection of its own: one kept open
    may be found closed only after a request was written to it, and then nobody knows whether it arrived."""
    return TCPConnector(
        resolver=_Judging(private),
        use_dns_cache=False,
        force_close=True,
        socket_factory=None if private else _judged_socket,
    )


class _Judging(AbstractResolver):
    """Gives those addresses of a name that may be reached."""

    def __init__(self, private: bool) -> None:
        self._private = private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await lookup(host, port)
        kept = found if self._private else [address for address in found if is_public(address)]
        if not kept:
            raise Forbidden(_refusal(host, found))
        return [
            {
                "hostname": host,
                "host": address,
                "port": port,
                "family": socket.AF_INET6 if ":" in address else socket.AF_INET,
                "proto": socket.IPPROTO_TCP,
                "flags": socket.AI_NUMERICHOST,
            }
            for address in kept
        ]

    async def close(self) -> None:
        """Nothing is held."""


def _judged_socket(info: Any) -> socket.socket:
    family, kind, protocol, _, address = info
    if not is_public(address[0]):
        raise Forbidden(_refusal(address[0], [address[0]]))
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    return made


def _refusal(host: str, addresses: list[str]) -> str:
    where = "is" if addresses == [host] else f"is at {', '.join(addresses[:4]) or 'no address'}, which is"
    return f"`{host}` {where} not a public address; the tool reaches such only with `private: true`"
