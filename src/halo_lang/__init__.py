"""Halo: a small language and its runtime for pipelines of LLM agents.

From here the library's names are imported, late, so that the command starts at once.
"""

from __future__ import annotations

from .version import VERSION as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .boundary.call import Answer, Call, ModelRequest, ToolUse, Usage
    from .boundary.host import ToolError
    from .catalog.marks import tool
    from .doors.stores import FileRunStore, MemoryRunStore
    from .doors.stores import RunStore as RunStore  # a protocol, for type checkers alone
    from .library.errors import HaloError
    from .library.events import (
        Answered,
        Event,
        Logged,
        Printed,
        Published,
        RunEnded,
        StageBegan,
        StageEnded,
        Tokens,
    )
    from .library.program import Program, ProgramPlan, load, loads
    from .library.result import RunResult, RunUsage
    from .library.runtime import HaloRuntime

__all__ = [
    "Answer",
    "Answered",
    "Call",
    "Event",
    "FileRunStore",
    "HaloError",
    "HaloRuntime",
    "Logged",
    "MemoryRunStore",
    "ModelRequest",
    "Printed",
    "Program",
    "ProgramPlan",
    "Published",
    "RunEnded",
    "RunResult",
    "RunUsage",
    "StageBegan",
    "StageEnded",
    "Tokens",
    "ToolError",
    "ToolUse",
    "Usage",
    "__version__",
    "load",
    "loads",
    "tool",
]

_HOMES = {
    "boundary.call": ("Answer", "Call", "ModelRequest", "ToolUse", "Usage"),
    "boundary.host": ("ToolError",),
    "catalog.marks": ("tool",),
    "doors.stores": ("FileRunStore", "MemoryRunStore"),
    "library.errors": ("HaloError",),
    "library.events": (
        "Answered",
        "Event",
        "Logged",
        "Printed",
        "Published",
        "RunEnded",
        "StageBegan",
        "StageEnded",
        "Tokens",
    ),
    "library.program": ("Program", "ProgramPlan", "load", "loads"),
    "library.result": ("RunResult", "RunUsage"),
    "library.runtime": ("HaloRuntime",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f".{home}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
