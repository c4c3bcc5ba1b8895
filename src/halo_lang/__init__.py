"""Halo: a small language and its runtime for pipelines of LLM agents.

From here the library's names are imported, late, so that the command starts at once.
"""

from __future__ import annotations

from .version import VERSION as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .app.result import RunError, Shadow
    from .boundary.attempt import AttemptFailed
    from .boundary.call import (
        Answer,
        Call,
        Data,
        Failure,
        Message,
        ModelRequest,
        ToolOffer,
        ToolUse,
        Usage,
    )
    from .boundary.host import HaloError, Preview, ToolError
    from .catalog.marks import tool
    from .doors.folder import KeepingError
    from .doors.run_store import RunJournal, RunStore
    from .doors.stores import FileRunStore, MemoryRunStore, RunConflict, RunUnknown
    from .language.diagnostics import Diagnostic
    from .library.errors import LoopLimitError, RunFailed
    from .library.events import (
        Answered,
        Asked,
        Event,
        Logged,
        Printed,
        Published,
        RunEnded,
        StageBegan,
        StageEnded,
        Tokens,
    )
    from .library.program import PlanDifference, Program, ProgramPlan, load, loads
    from .library.result import RunResult, RunUsage
    from .library.runtime import HaloRuntime

__all__ = [
    "Answer",
    "Answered",
    "Asked",
    "AttemptFailed",
    "Call",
    "Data",
    "Diagnostic",
    "Event",
    "Failure",
    "FileRunStore",
    "HaloError",
    "HaloRuntime",
    "KeepingError",
    "Logged",
    "LoopLimitError",
    "MemoryRunStore",
    "Message",
    "ModelRequest",
    "PlanDifference",
    "Preview",
    "Printed",
    "Program",
    "ProgramPlan",
    "Published",
    "RunConflict",
    "RunEnded",
    "RunError",
    "RunFailed",
    "RunJournal",
    "RunResult",
    "RunStore",
    "RunUnknown",
    "RunUsage",
    "Shadow",
    "StageBegan",
    "StageEnded",
    "Tokens",
    "ToolError",
    "ToolOffer",
    "ToolUse",
    "Usage",
    "__version__",
    "load",
    "loads",
    "tool",
]

_HOMES = {
    "boundary.call": ("Answer", "Call", "Data", "Failure", "Message", "ModelRequest", "ToolOffer", "ToolUse", "Usage"),
    "boundary.attempt": ("AttemptFailed",),
    "boundary.host": ("HaloError", "Preview", "ToolError"),
    "catalog.marks": ("tool",),
    "language.diagnostics": ("Diagnostic",),
    "app.result": ("RunError", "Shadow"),
    "doors.folder": ("KeepingError",),
    "doors.run_store": ("RunJournal", "RunStore"),
    "doors.stores": ("FileRunStore", "MemoryRunStore", "RunConflict", "RunUnknown"),
    "library.errors": ("LoopLimitError", "RunFailed"),
    "library.events": (
        "Answered",
        "Asked",
        "Event",
        "Logged",
        "Printed",
        "Published",
        "RunEnded",
        "StageBegan",
        "StageEnded",
        "Tokens",
    ),
    "library.program": ("PlanDifference", "Program", "ProgramPlan", "load", "loads"),
    "library.result": ("RunResult", "RunUsage"),
    "library.runtime": ("HaloRuntime",),
}


def __dir__() -> list[str]:
    return list(__all__)


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(f".{home}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
