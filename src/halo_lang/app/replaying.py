"""Replaying: the same run with another source of answers, and how it compares (runs.md §4).

Owns what counts as the same end, and the telling of where two runs went apart.
"""

from __future__ import annotations

from itertools import chain, islice

from ..boundary.call import AGENT, TOOL
from ..language.record import Record
from ..language.values import to_json
from .feeds import MISMATCH, YES_OR_NO, Note, ReplayFeed
from .result import error_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..doors.recordings import Recording
    from ..language.values import Value
    from .result import RunResult

ROWS = 200
"""Rows of a difference that are shown."""

ROW = 500
"""Characters of a row that are shown."""

LINES = 10_000
"""Lines from the first difference of two texts on in which what they have in common is looked for: it takes ever longer
for each line more."""


class Comparison(Record):
    """How a replay compares with the recorded run. `recorded` holds `status`, `output` and `error` of that."""

    same: bool
    recorded: dict[str, Value]
    notes: tuple[Note, ...]


def live_kinds(*, models: bool, tools: bool) -> frozenset[str]:
    """The kinds of calls that a replay makes for real. With tools, an approval or a yield that the recording has no
    exact match for is asked anew."""
    kinds = {AGENT} if models else set()
    return frozenset(kinds | ({TOOL, *YES_OR_NO} if tools else set()))


def compared(result: RunResult, recording: Recording, feed: ReplayFeed, *, strict: bool) -> Comparison:
    """Compares a replay's end with the recorded one. With `strict` every note makes them differ."""
    feed.finish_notes()
    finish = recording.finish or {"status": "cancelled"}
    recorded = {name: finish.get(name) for name in ("status", "output", "error")}
    same = result.status == recorded["status"]
    if recording.finish is None:
        same = result.error is None or result.error.code != MISMATCH  # as far as it went it is known to be the same
    elif result.status in ("completed", "halted"):
        same = same and to_json(result.output) == to_json(recorded["output"])
    elif result.status == "failed":
        same = same and _failure(error_json(result.error)) == _failure(recorded["error"])
    elif result.status == "paused":
        same = same and _waits(list(result.waits)) == _waits(finish.get("waits", []))
    notes = tuple(feed.notes)
    return Comparison(same and not (strict and notes), recorded, notes)


def ended_with(recorded: dict[str, Value]) -> str:
    """What a recorded run ended with, in words."""
    error = recorded.get("error")
    if isinstance(error, dict):
        return f"{error.get('code')}: {error.get('message')}"
    status = recorded["status"]
    if status in ("completed", "halted"):
        shown = _shown(recorded.get("output"))
        return shown if status == "completed" else f"a halt with {shown}"
    return f"the status {status}"


def difference(before: Value, after: Value) -> list[str]:
    """The difference of two outputs: line by line for text, by path for JSON."""
    if isinstance(before, str) and isinstance(after, str):
        return _bounded(_lines(before.splitlines(), after.splitlines()))
    return _bounded(_paths("", before, after))


def _lines(before: list[str], after: list[str]) -> Iterator[str]:
    from difflib import unified_diff

    if len(before) <= LINES and len(after) <= LINES:
        return unified_diff(before, after, "recorded", "now", lineterm="")
    same = next(
        (at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    first = max(same - 3, 0)
    rows = unified_diff(before[first : first + LINES], after[first : first + LINES], "recorded", "now", lineterm="")
    return chain((f"the first {first} lines are the same",), rows) if first else rows


def _paths(path: str, before: Value, after: Value) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{path}.{key}" if path else key
            if key not in after:
                yield f"- {inner}: {_shown(before[key])}"
            elif key not in before:
                yield f"+ {inner}: {_shown(after[key])}"
            else:
                yield from _paths(inner, before[key], after[key])
    elif isinstance(before, list) and isinstance(after, list):
        for at in range(max(len(before), len(after))):
            inner = f"{path}[{at}]"
            if at >= len(after):
                yield f"- {inner}: {_shown(before[at])}"
            elif at >= len(before):
                yield f"+ {inner}: {_shown(after[at])}"
            else:
                yield from _paths(inner, before[at], after[at])
    elif not _is_same(before, after):
        yield f"- {path or 'output'}: {_shown(before)}"
        yield f"+ {path or 'output'}: {_shown(after)}"


def _is_same(before: Value, after: Value) -> bool:
    """Whether two values are written alike. Long lists are mostly the same: for these one look is enough."""
    if before.__class__ is after.__class__ and isinstance(before, str | int):
        return before == after
    return to_json(before) == to_json(after)


def _bounded(rows: Iterator[str]) -> list[str]:
    shown = [row if len(row) <= ROW else f"{row[:ROW]}…" for row in islice(rows, ROWS + 1)]
    return shown if len(shown) <= ROWS else [*shown[:ROWS], "…"]


def _shown(value: Value) -> str:
    text = to_json(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _failure(error: Any) -> tuple[object, object] | None:
    return (error.get("code"), error.get("message")) if isinstance(error, dict) else None


def _waits(waits: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return sorted((w.get("kind"), w.get("target"), str(w.get("scope")), to_json(w.get("args"))) for w in waits)
