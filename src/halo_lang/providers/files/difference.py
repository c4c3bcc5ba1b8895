"""The difference that an approval of a file's change shows (tools.md §3).

Owns its text: a unified difference, bounded in size and in the time it takes to make. Pure.
"""

from __future__ import annotations

from ..results import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 64 * 1024
"""How large a difference is shown."""

_COMPARED = 1_000
_CONTEXT = 3
_NO_BREAK = "\\ No newline at end of file"


def difference(path: str, old: str | None, new: str) -> str:
    """The unified difference between two texts of a file; `old` is None for a file that does not exist yet.

    A line ends with LF, all else is part of it. Where more lines differ than can be compared in bounded time, they
    are shown as taken out and put in as a whole. What is over 64 KiB is left out, and a last line says so.
    """
    if old == new:
        return f"{path}: nothing changes\n"
    before, after = _split(old or ""), _split(new)
    head = f"--- {'/dev/null' if old is None else path}\n+++ {path}\n"
    text = head + "".join(_hunks(before, after))
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_BYTES:
        return text
    kept = cut(data, MAX_BYTES)
    left = data.count(b"\n", len(kept))
    return (
        kept.decode() + ("" if kept.endswith(b"\n") else "\n") + f"[{left:,} more lines of the difference left out]\n"
    )


def _split(text: str) -> list[str]:
    """The lines, each with its line break; the last one may have none."""
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    lead = max(0, start - _CONTEXT)
    old = before[lead : len(before) - max(0, end - _CONTEXT)]
    new = after[lead : len(after) - max(0, end - _CONTEXT)]
    if max(len(old), len(new)) > _COMPARED:
        yield from _whole(old, new, lead, start - lead, min(end, _CONTEXT))
        return
    from difflib import SequenceMatcher

    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT):
        _, i1, _, j1, _ = group[0]
        _, _, i2, _, j2 = group[-1]
        yield _range(lead + i1, i2 - i1, lead + j1, j2 - j1)
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from _marked(" ", old[a:b])
                continue
            yield from _marked("-", old[a:b])
            yield from _marked("+", new[c:d])


def _whole(old: list[str], new: list[str], lead: int, head: int, tail: int) -> Iterator[str]:
    """One hunk that takes out all between the equal lines and puts in the new ones."""
    yield _range(lead, len(old), lead, len(new))
    yield from _marked(" ", old[:head])
    yield from _marked("-", old[head : len(old) - tail])
    yield from _marked("+", new[head : len(new) - tail])
    yield from _marked(" ", new[len(new) - tail :])


def _range(old: int, old_count: int, new: int, new_count: int) -> str:
    return f"@@ -{_span(old, old_count)} +{_span(new, new_count)} @@\n"


def _span(start: int, count: int) -> str:
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n{_NO_BREAK}\n"
