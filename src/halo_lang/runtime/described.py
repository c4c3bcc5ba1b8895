"""Methods of tools that do not describe themselves beforehand, such as an MCP server's (tools.md §2).

Owns their asking: once a run, through the door, so that what a server said is recorded and a replay offers the same.
Read `providers/mcp/tool.py` and `providers/own/calling.py` for who answers.
"""

from __future__ import annotations

from ..boundary.call import DESCRIBE, TOOL, Call
from ..catalog.describe import EFFECTS, READ, Method
from .driver import Ask
from .failure import RunFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..check.program import Tool
    from ..language.source import Span
    from ..language.values import Value
    from .state import Frame

MAX_METHODS = 1_000


async def methods_of(frame: Frame, tool: Tool, stage: str, span: Span) -> tuple[Method, ...]:
    """The methods of a tool, asked for where its provider does not describe itself."""
    if tool.methods is not None:
        return tool.methods
    known = frame.run.described.get(tool.name)
    if known is None:
        call = Call(TOOL, f"{tool.name}.{DESCRIBE}", {}, frame.scope, stage, span, effect=READ)
        answer = await Ask(call)
        if answer.error is not None:
            raise RunFailure(answer.error.code, answer.error.message)
        known = frame.run.described.setdefault(tool.name, read_methods(answer.value))
    return known


def read_methods(value: Value) -> tuple[Method, ...]:
    """Methods from the answer to a describing call; what is none is left out (a mock answers null: none)."""
    found: dict[str, Method] = {}
    for entry in value[:MAX_METHODS] if isinstance(value, list) else ():
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(entry, dict) and isinstance(name, str) and name not in found:
            found[name] = _method(name, entry)
    return tuple(found.values())


def _method(name: str, entry: dict[str, Any]) -> Method:
    schema, effect, timeout = entry.get("schema"), entry.get("effect"), entry.get("timeout")
    return Method(
        name,
        str(entry.get("about") or ""),
        schema if isinstance(schema, dict) else {"type": "object"},
        effect if effect in EFFECTS else None,
        entry.get("idempotent") is True,
        float(timeout) if isinstance(timeout, int | float) else None,
    )
