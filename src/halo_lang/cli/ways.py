"""How a paused run is answered: the flags of `halo resume` that each kind of wait takes (runs.md §5).

Owns these words, wherever a wait is shown. What the flags do says `resume.py`; what a wait is, `app/waits.py`.
"""

from __future__ import annotations

from ..app.waits import OUTCOME
from ..boundary.call import APPROVAL, LISTEN, YIELD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import Any

_WAYS = {
    APPROVAL: "--yes | --no [REASON]",
    LISTEN: "--event {event}=JSON",
    OUTCOME: "--again | --done JSON | --skip",
    YIELD: "--yes | --no [REASON] | --answer JSON",
}


def ways(waits: Collection[Mapping[str, Any]]) -> dict[str, str]:
    """The flags that answer some waits, by the kind of these; with `--wait ID` where it must be said which."""
    found: dict[str, str] = {}
    for kind in dict.fromkeys(wait["kind"] for wait in waits):
        targets = [wait["target"] for wait in waits if wait["kind"] == kind]
        events = set(targets)
        if kind == LISTEN:  # an event says itself whom it is for
            of_several = len(targets) > len(events)
            event = targets[0] if len(events) == 1 and _is_word(targets[0]) else "NAME"
        else:
            of_several, event = len(waits) > 1, ""
        found[kind] = ("--wait ID " if of_several else "") + _WAYS[kind].format(event=event)
    return found


def going_on(run_id: str, waits: Collection[Mapping[str, Any]], sent: Collection[str] = ()) -> str:
    """How a run goes on, in a line, or in a line for each kind of waits. `sent` are events that wait for the run."""
    command = f"halo resume {run_id}"
    found = {} if has_come(waits, sent) else ways(waits)
    if len(found) > 1:
        rows = (f"\n  {command} {flags}   ({kind})" for kind, flags in found.items())
        return "go on with:" + "".join(rows)
    return " ".join(("go on with:", command, *found.values()))


def has_come(waits: Iterable[Mapping[str, Any]], sent: Collection[str]) -> bool:
    """Whether an event that is waited for was sent: then the run goes on without an answer."""
    return any(wait["kind"] == LISTEN and wait["target"] in sent for wait in waits)


def _is_word(event: str) -> bool:
    """Whether an event's name, which may come from a value, can be typed as it is."""
    return event.isascii() and event.replace(".", "").replace("_", "").isalnum()
