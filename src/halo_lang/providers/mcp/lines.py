"""One line of a server's output, read as a message (tools.md §2).

Owns what becomes of a line that the package cannot read. Servers cut texts through the middle of a character, which
leaves halves that are no text: these become `?`, as in every result. A line that is a message's all the same, and
cannot be read, is an answer that says so, for whoever waits for it would otherwise wait until the time is up. So is one
of very many parts, each of which takes a hundred times its length. Read `stdio.py` for where the lines come from.
"""

from __future__ import annotations

import re

from ...language.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

MAX_PARTS = 200_000
"""Lists and objects that a message may hold. A result that has structure is far smaller."""

UNREADABLE = "what it sent cannot be read as a message"

_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')
_ENDS = 200
"""Bytes at each end of a line in which its number is looked for."""


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message that a line holds, or None for a line that is none, such as a banner."""
    from mcp_types import jsonrpc_message_adapter

    if most_parts(line) > MAX_PARTS:
        return _unread(line, f"what it sent has more than {MAX_PARTS:,} parts")
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        return jsonrpc_message_adapter.validate_json(_mended(line), by_name=False)
    except (ValueError, RecursionError):
        return _unread(line, UNREADABLE)


def most_parts(data: bytes) -> int:
    """How many lists and objects JSON could hold at most; those that only stand in its texts are counted too."""
    return data.count(b"{") + data.count(b"[")


def _unread(line: bytes, why: str) -> JSONRPCMessage | None:
    """An answer to the request that a line seems to be the answer to, or None."""
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    number = _ID.search(line[:_ENDS]) or _ID.search(line[-_ENDS:])
    if number is None or b'"jsonrpc"' not in line:
        return None
    return JSONRPCError(jsonrpc="2.0", id=int(number[1]), error=ErrorData(code=PARSE_ERROR, message=why))


def _mended(line: bytes) -> bytes:
    """The line without what is no text. Raises `ValueError` or `RecursionError` for what is no JSON."""
    from json import loads

    return to_json(loads(line.decode("utf-8", "replace"))).encode("utf-8", "replace")
