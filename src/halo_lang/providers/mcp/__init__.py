"""`Mcp`: the tools of an MCP server, as methods (tools.md §2). Read `tool.py` first."""

from .tool import Mcp

__all__ = ["Mcp"]
