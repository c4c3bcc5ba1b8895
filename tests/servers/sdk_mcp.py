"""An MCP server made with the public package: over standard streams, or by streamable HTTP where a port is given.

`sdk_mcp.py NOTES [PORT]`: what happens to it is noted in the file NOTES, a word a line.
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel

NOTES = Path(sys.argv[1])
server = MCPServer("sdk")


def note(word: str) -> None:
    with NOTES.open("a", encoding="utf-8") as file:
        file.write(f"{word}\n")


class Sum(BaseModel):
    total: int
    parts: list[int]


@server.tool(name="add-up", annotations=ToolAnnotations(read_only_hint=True))
def add_up(numbers: list[int]) -> Sum:
    """Adds whole numbers up."""
    note("add-up")
    return Sum(total=sum(numbers), parts=numbers)


@server.tool(annotations=ToolAnnotations(destructive_hint=True, idempotent_hint=True))
def store(key: str, value: str = "none") -> str:
    """Stores a value."""
    note(f"store {key}={value}")
    return f"stored {key}"


@server.tool()
async def slow(context: Context, seconds: float = 60) -> str:
    """Takes its time, and says how far it is."""
    note("slow began")
    try:
        for step in range(int(seconds * 20)):
            await context.report_progress(step, seconds * 20, "on the way")
            await anyio.sleep(0.05)
    except anyio.get_cancelled_exc_class():
        note("slow was told to stop")
        raise
    return "done"


@server.tool()
def fail(reason: str) -> str:
    """Fails."""
    raise ToolError(reason)


if len(sys.argv) > 2:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
else:
    server.run("stdio")
