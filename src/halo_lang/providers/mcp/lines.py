"""One line of a server's output, read as a message (tools.md §2).

Owns what becomes of a line that the package cannot read. Servers cut texts through the middle of a character, which
leaves halves that are no text: these become `?`, as in every result. A line that is a message's all the same, and
cannot be read, is an answer that says so, for whoever waits for it would otherwise wait until the time is up. Read
`stdio.py` for where the lines come from.
"""

from __future__ import annotations

import re

from ...language.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\s*[,}]')
_ENDS = 200
"""Bytes at each end of a line in which its number is looked for."""


def message_of(line: bytes) -> JSONRPCMessage | None:
    """The message that a line holds, or None for a line that is none, such as a banner."""
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        return jsonrpc_message_adapter.validate_json(_mended(line), by_name=False)
    except (ValueError, RecursionError):
        number = _ID.search(line[:_ENDS]) or _ID.search(line[-_ENDS:])
        if number is None or b'"jsonrpc"' not in line:
            return None
        error = ErrorData(code=PARSE_ERROR, message="what it sent cannot be read as JSON")
        return JSONRPCError(jsonrpc="2.0", id=int(number[1]), error=error)


def _mended(line: bytes) -> bytes:
    """The line without what is no text. Raises `ValueError` or `RecursionError` for what is no JSON."""
    from json import loads

    return to_json(loads(line.decode("utf-8", "replace"))).encode("utf-8", "replace")
