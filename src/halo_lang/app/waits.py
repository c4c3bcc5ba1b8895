"""Waits: what a paused run waits for, in the form that documents and `finish` lines have (runs.md §5, cli.md).

Owns that form: how a wait is made from a call, the id by which it is answered, how it is read back and put into words.
Read `resuming.py` for how waits are answered.
"""

from __future__ import annotations

from ..boundary.call import APPROVAL, LISTEN, TOOL, YIELD
from ..boundary.question import canonical, question
from ..boundary.recording import RecordingError, scope_of
from ..language.values import to_json, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeAlias

    from ..boundary.call import Call, Scope
    from ..boundary.host import Preview

    Place: TypeAlias = tuple[str, str, Scope]
    """The kind, target and scope of a call: no two that wait at one time share one."""

OUTCOME = "outcome"
"""The kind of a wait for a person to say what became of a call that was under way when the process died."""

PRIVATE = ("call", "digest")
"""Fields that only a resume needs."""


def place_of(call: Call) -> Place:
    return call.kind, call.target, call.scope


def wait_id(call: Call, kind: str, seen: int) -> str:
    """A wait's id: the same each time that the run comes to it. `seen` tells apart the times that a run asks the same
    in one place (in a loop): how many answers it has had there, for an outcome the number of the line that says that
    the call began."""
    from hashlib import sha256

    text = canonical([kind, call.target, call.scope, call.stage, question(call), seen])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def wait_of(call: Call, kind: str, identity: str, since: str, shown: Preview | None = None) -> dict[str, Any]:
    """A call that waits, as a wait. `shown` is what an approval's file change would do."""
    asks = call.args if call.kind == YIELD else {}
    wait: dict[str, Any] = {
        "id": identity,
        "kind": kind,
        "target": call.target,
        "message": asks.get("message"),
        "channel": asks.get("channel"),
        "attachments": asks.get("attachments", []),
        "args": dict(call.args),
        "stage": call.stage,
        "since": since,
        "by": call.by,
        "effect": call.effect,
        "policies": list(call.policies),
        "scope": list(call.scope),
    }
    if kind == OUTCOME:
        wait["code"] = "UNKNOWN_OUTCOME"
    if call.id is not None:
        wait["call"] = call.id
    if shown is not None and shown.digest:
        wait["difference"], wait["digest"] = shown.difference, shown.digest
    return wait


def public_wait(wait: Mapping[str, Any]) -> dict[str, Any]:
    """A wait without what only a resume needs."""
    return {name: value for name, value in wait.items() if name not in PRIVATE}


def waits_in(finish: Mapping[str, Any], number: Callable[[], int]) -> list[dict[str, Any]]:
    """The waits of a `finish` line. Raises `RecordingError` for what are none, with the line's number."""
    waits = finish.get("waits", [])
    if not isinstance(waits, list) or not all(_is_wait(wait) for wait in waits):
        raise RecordingError(f"line {number()} says nothing sensible of what the run waits for")
    return waits


def _is_wait(wait: Any) -> bool:
    return (
        isinstance(wait, dict)
        and all(isinstance(wait.get(name), str) for name in ("id", "kind", "target", "stage"))
        and wait["kind"] in _WHAT
        and isinstance(wait.get("args"), dict)
        and _is_scope(wait.get("scope"))
    )


def _is_scope(scope: Any) -> bool:
    try:
        scope_of(scope)
    except TypeError:
        return False
    return True


def place_of_wait(wait: Mapping[str, Any]) -> Place:
    """The place of the call that a wait stands for."""
    return TOOL if wait["kind"] == OUTCOME else wait["kind"], wait["target"], tuple(wait["scope"])


_WHAT = {
    YIELD: "{message}",
    APPROVAL: "approval of {target}",
    LISTEN: "the event {target}",
    OUTCOME: "whether {target} happened is unknown (UNKNOWN_OUTCOME)",
}


def described(wait: Mapping[str, Any]) -> str:
    """A wait in a line, with its scope where it has one, and the beginning of what is attached:
    `a1b2c3d4  yield at stage 2 [0]: Publish this draft? · Cats are small`."""
    message = wait.get("message") or "a person's answer"
    what = _WHAT[wait["kind"]].format(message=message, target=wait["target"])
    scope = f" {to_json(list(wait['scope']))}" if wait.get("scope") else ""
    line = f"{wait['id']}  {wait['kind']} at stage {wait['stage']}{scope}: {_in_line(what)}"
    attached = wait.get("attachments")
    if not isinstance(attached, list) or not attached:
        return line
    return f"{line} · {_in_line(', '.join(map(to_text, attached)))}"


_MOST = 200
"""Characters of a text in a line."""


def _in_line(text: str) -> str:
    line = " ".join(text[: 4 * _MOST].split())
    return line if len(line) <= _MOST else f"{line[:_MOST]}…"


def listed(waits: Iterable[Mapping[str, Any]]) -> str:
    """Waits as lines below a message."""
    return "".join(f"\n  {described(wait)}" for wait in waits)
