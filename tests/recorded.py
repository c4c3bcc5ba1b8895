"""Lines of recordings for tests."""

from __future__ import annotations

from typing import Any

from halo_lang.boundary.call import AGENT, Call, Data, Message, ModelRequest, ToolOffer
from halo_lang.boundary.recording import start_line
from halo_lang.language.source import Span

RUN = "6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77"
READ = ToolOffer("Files_read", "Files.read", "Reads a file.", {"type": "object", "properties": {"path": {}}})
ASKS = ModelRequest("openai/gpt-4o", "Be short.", (Message("user", ("Tidy.", Data("notes"))),), (READ,))


def call(kind: str = AGENT, target: str = "Clerk.work", args: Any = None, **more: Any) -> Call:
    """A call of the run, an agent's unless another kind is given."""
    request = ASKS if kind == AGENT else None
    return Call(kind, target, args or {}, more.pop("scope", ()), "1", Span(0, 0), request=request, **more)


def start() -> dict[str, Any]:
    """A first line."""
    return start_line(RUN, "Tidy", {"task": "go"}, "tidy.halo", "0" * 64, "2026-11-30T13:00:00Z")
