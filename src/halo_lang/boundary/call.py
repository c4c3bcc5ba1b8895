"""What crosses the one door between a run and the world: calls and their answers (runs.md §1).

Owns the records. Knows nothing of who asks or who answers. Read `doors` for what answers, `runtime` for what asks.
"""

from __future__ import annotations

import re

from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    from ..catalog.describe import Method
    from ..language.source import Span
    from ..language.values import Value
    from .recording import Entry

    Scope: TypeAlias = tuple[int, ...]
    """The branch positions on the way to a call: () outside every fan-out, (2, 0) nested (runs.md §1)."""

AGENT, TOOL, APPROVAL, YIELD, LISTEN = "agent", "tool", "approval", "yield", "listen"

DESCRIBE = "*"
"""The method's name in the call that asks a tool for its methods: `Web.*`. Its answer is a list of objects with `name`,
`about`, `schema` and, where they are described, `effect`, `idempotent` and `timeout` (seconds)."""


class Data(Record):
    """A part of a prompt that came from outside: data, never instructions. `label` is its name."""

    text: str
    label: str | None = None


class ToolUse(Record):
    """A call that a model asks for. `name` is as the model wrote it; `args` is None where what it wrote is no JSON
    object, which then stands in `raw`."""

    id: str
    name: str
    args: dict[str, Value] | None
    raw: str = ""


class Message(Record):
    """One message of a conversation. `role` is `user`, `assistant` or `tool`.

    A user's message has `parts`: instructions (`str`) and `Data`. An assistant's has its text as its only part, if
    any, and its `tool_uses`. A tool's has its result as one `Data`, the `tool_use_id` that it answers, and `failed`.
    """

    role: str
    parts: tuple[str | Data, ...]
    tool_uses: tuple[ToolUse, ...] = ()
    tool_use_id: str = ""
    failed: bool = False
    _canonical: str | None = None  # what it is as canonical JSON: `question.py`


MAX_WIRE_NAME = 64
"""Characters of a function's name that the providers allow."""

_NOT_ON_THE_WIRE = re.compile("[^A-Za-z0-9_-]")


def wire_name(target: str) -> str:
    """The name of a method on the wire, where no dot may stand: `Files_read` for `Files.read`."""
    return _NOT_ON_THE_WIRE.sub("_", target)[:MAX_WIRE_NAME]


class ToolOffer(Record):
    """A method that a model may call. `name` is its name on the wire (`Files_read`), `target` its name in Halo."""

    name: str
    target: str
    about: str
    schema: dict[str, Any]


class ModelRequest(Record):
    """One request to a model. Times in seconds; `max_tokens` is always sent.

    `model` is `provider/model`. `system` is the author's own text. `stream` is no part of what is asked; nor are
    `timeout_s` and `retries`.
    """

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolOffer, ...] = ()
    max_tokens: int = 4096
    temperature: float | None = None
    top_p: float | None = None
    timeout_s: float = 120.0
    retries: int = 2
    stream: bool = False


class Limit(Record):
    """A spend limit that holds for a request: `amount` in nano-dollars, `text` as it is written, and its policy."""

    amount: int
    text: str
    policy: str


class Call(Record):
    """A request of the run to the outside.

    `kind` is `agent`, `tool`, `approval`, `yield` or `listen`; `target` is `Clerk.work`, `Files.read`, for an
    approval the method to approve, `yield`, or the event. `args` are a tool's arguments, those to approve, or a
    yield's `message`, `channel`, `attachments` and `timeout` (seconds or null). `request` is an agent's. `by` is the
    agent that chose a tool call and `id` its name for it. `effect` and `policies` (the names of those that want a
    person) are for an approval's prompt, and for a kept plan; `digest` binds an approved call to a file's content, and
    `denied_paths` are the patterns of DenyArgs to try on the path that a tool really opens. `limit` is
    the spend limit of an agent's request, the lowest of all that hold; a `shadow` answers nobody, and is
    skipped where it does not fit. `described` is a tool's method as whoever calls it was told of it. `stage` is the
    number in a plan, `span` the place in the file.
    """

    kind: str
    target: str
    args: Mapping[str, Value]
    scope: Scope
    stage: str
    span: Span
    by: str | None = None
    id: str | None = None
    request: ModelRequest | None = None
    effect: str | None = None
    policies: tuple[str, ...] = ()
    digest: str | None = None
    denied_paths: tuple[str, ...] = ()
    limit: Limit | None = None
    shadow: bool = False
    described: Method | None = None


class Usage(Record):
    """Tokens of an answered model request. `input` counts all that was sent, `cached` the part of it that was
    read from a cache, `written` the part that was written to one where the provider says so (and bills it apart)."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0


class Failure(Record):
    """Why there is no value. `code` is one that `halo explain` knows; `message` is for a person and for a model, and
    holds neither a secret nor a stack trace."""

    code: str
    message: str


class Answer(Record):
    """What a call got. Exactly one of `value` and `error` counts: `error` where it is not None.

    An agent's `value` is the text of the answer (a mock may give any value), `tool_uses` the calls it asks for.
    `model` is the snapshot that answered. `cost` is in nano-dollars, None where there is no price; `unsettled` what
    attempts without an answer may have cost. An approval's value is
    `{"approved": bool, "reason"?, "args"?, "all"?: bool}`; `approves` and `approves_all` read it.
    """

    value: Value = None
    error: Failure | None = None
    tool_uses: tuple[ToolUse, ...] = ()
    model: str = ""
    usage: Usage | None = None
    cost: int | None = None
    unsettled: int = 0
    ms: int = 0
    digest: str | None = None


UNTOUCHING = ("System.Now", "System.Wait")
"""Calls that touch nothing outside."""


def has_effect(call: Call | Entry) -> bool:
    """Whether a tool call may change anything: all but those that only read or touch nothing."""
    return call.effect != "read" and call.target not in UNTOUCHING


def approves(said: Value) -> bool:
    """Whether an approval's value lets the call be made. One that changes the arguments into what is no object is no
    yes to those that were asked about."""
    return isinstance(said, dict) and said.get("approved") is True and isinstance(said.get("args", {}), dict)


def approves_all(said: Value) -> bool:
    """Whether an approval's value lets all calls of the method be made."""
    return approves(said) and isinstance(said, dict) and said.get("all") is True


def failed(code: str, message: str) -> Answer:
    """An answer that is a failure."""
    return Answer(None, Failure(code, message))
