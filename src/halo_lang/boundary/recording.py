"""The recording format (runs.md §3): one JSON object a line, in the order in which answers were handed to the run.

Owns how a call and its answer become a line and come back; which question a line answers says `question.py`. Reads and
writes no file: `doors/folder.py` and `doors/keeping.py` do, `doors/journal.py` feeds a run from one.
"""

from __future__ import annotations

from ..language.encoder import new_encoder
from ..language.record import Record
from .call import AGENT, LISTEN, Answer, Call, Failure, ToolUse, Usage, wire_name
from .question import question, question_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from ..language.values import Value
    from .call import Scope, ToolOffer

VERSION = 1
NANO = 1_000_000_000

MOST_NANO = 10**21
"""A trillion dollars: no run has cost more."""

MAX_LINE = 1 << 29
"""Bytes of a line past which a recording is none: what it says would not fit in memory."""

DAMAGE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
"""What goes wrong on reading a line whose fields are not what they should be."""

UNWRITABLE = (RecursionError, TypeError, ValueError)
"""What goes wrong on writing a value that has no form in JSON, or nests too deep."""

_BLANKS = " \t\r\n"


class RecordingError(Exception):
    """A recording that cannot be used (`RECORDING_INVALID`), naming its line where there is one."""

    code = "RECORDING_INVALID"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


# Lines -----------------------------------------------------------------------------------------------------------


def start_line(
    run_id: str, pipeline: str, args: Mapping[str, Value], file: str, sha256: str, started_at: str, **more: Value
) -> dict[str, Any]:
    """The first line. `more` says how the run was started, as far as a resume must do it likewise."""
    return {
        "type": "start",
        "version": VERSION,
        "runId": run_id,
        "pipeline": pipeline,
        "args": dict(args),
        "file": file,
        "sha256": sha256,
        "startedAt": started_at,
        **more,
    }


def call_line(call: Call, answer: Answer, *, late: bool = False) -> dict[str, Any]:
    """The line of an answered call."""
    kind = call.kind
    line: dict[str, Any] = {"type": "call", "kind": kind, "target": call.target, "scope": call.scope}
    if call.id is not None:
        line["call"] = call.id
    if kind == AGENT:
        line["asked"] = question(call)
    elif kind != LISTEN:
        line["args"] = call.args
        if call.effect is not None:
            line["effect"] = call.effect
    if answer.error is None:
        line["value"] = answer.value
    else:
        line["error"] = {"code": answer.error.code, "message": answer.error.message}
    if answer.tool_uses:
        offers = () if call.request is None else call.request.tools
        line["toolCalls"] = [_use_out(use, offers) for use in answer.tool_uses]
    if answer.model:
        line["model"] = answer.model
    usage = answer.usage
    if usage is not None:
        line["usage"] = {"input": usage.input, "output": usage.output, "cached": usage.cached}
        if usage.written:
            line["usage"]["written"] = usage.written
    if answer.cost is not None:
        line["cost"] = answer.cost / NANO
    if answer.unsettled:
        line["unsettled"] = answer.unsettled / NANO
    if answer.digest:
        line["digest"] = answer.digest
    if answer.ms:
        line["ms"] = answer.ms
    if late:
        line["late"] = True
    return line


def finish_line(
    status: str, output: Value, error: Mapping[str, Value] | None, waits: Iterable[Mapping[str, Value]] = ()
) -> dict[str, Any]:
    """The line that says how the run ended, or paused."""
    line: dict[str, Any] = {"type": "finish", "status": status}
    if status in ("completed", "halted"):
        line["output"] = output
    if error is not None:
        line["error"] = dict(error)
    waiting = [dict(wait) for wait in waits]
    if waiting:
        line["waits"] = waiting
    return line


def encoded(line: Mapping[str, Any]) -> bytes:
    """A line's bytes, its line break included. Raises one of `UNWRITABLE` for what is no JSON, or nests too deep."""
    global _encode
    if _encode is None:
        _encode = new_encoder(allow_nan=False)
    return _encode(line).encode("utf-8", "backslashreplace") + b"\n"


def decoded(data: bytes, number: int) -> dict[str, Any]:
    """A line's object. Raises `RecordingError` naming the line's number (from 1)."""
    try:
        text = data.decode().strip(_BLANKS)
        line, end = _scanner()(text, 0)
    except (ValueError, StopIteration, RecursionError):
        raise RecordingError(f"line {number} is no JSON") from None
    if end != len(text):
        raise RecordingError(f"line {number} is no JSON")
    if line.__class__ is not dict:
        raise RecordingError(f"line {number} is no object")
    return line


# Reading ---------------------------------------------------------------------------------------------------------


class Entry(Record):
    """A recorded answer. `scope` is None in recordings that keep none; `asked` is the question it answered. `number`
    is its line's, from 1. `effect` is a tool's."""

    number: int
    kind: str
    target: str
    scope: Scope | None
    asked: str
    answer: Answer
    by_agent: bool
    effect: str | None = None


def entry_of(line: Mapping[str, Any], number: int) -> Entry:
    """The entry of a `call` line. Raises `RecordingError` for one that is damaged."""
    try:
        scope = line.get("scope")
        return Entry(
            number,
            line["kind"] + "",
            line["target"] + "",
            None if scope is None else scope_of(scope),
            question_of(line),
            _answer_in(line),
            "call" in line,
            _text_or_none(line.get("effect")),
        )
    except DAMAGE:
        raise RecordingError(f"line {number} is no recorded call") from None


def scope_of(scope: Any) -> Scope:
    """A scope as it stands in a line. Raises one of `DAMAGE`."""
    if scope.__class__ is not list:
        raise TypeError
    for at in scope:
        if at.__class__ is not int:
            raise TypeError
    return tuple(scope)


def _answer_in(line: Mapping[str, Any]) -> Answer:
    get = line.get
    error, uses, usage, cost, unsettled = get("error"), get("toolCalls"), get("usage"), get("cost"), get("unsettled")
    return Answer(
        get("value"),
        None if error is None else Failure(error["code"] + "", error["message"] + ""),
        tuple([_use_in(use) for use in uses]) if uses else (),
        get("model", "") + "",
        None if usage is None else _usage_in(usage.get),
        None if cost is None else nano_of(cost),
        nano_of(unsettled) if unsettled else 0,
        int(get("ms", 0)),
        _text_or_none(get("digest")),
    )


def nano_of(dollars: Any) -> int:
    """An amount in dollars, as it stands in a line, in nano-dollars: no other type, which a product would repeat; not
    below nothing, which would make room under a limit; and none beyond all reason. Raises one of `DAMAGE`."""
    if dollars.__class__ is not float and dollars.__class__ is not int:
        raise TypeError
    return nano_amount(round(dollars * NANO))


def nano_amount(nano: Any) -> int:
    """An amount that stands in a line as nano-dollars. Raises one of `DAMAGE`."""
    if nano.__class__ is not int:
        raise TypeError
    if not 0 <= nano <= MOST_NANO:
        raise ValueError("an amount is below nothing, or beyond all reason")
    return int(nano)


def _usage_in(get: Callable[[str, int], Any]) -> Usage:
    return Usage(int(get("input", 0)), int(get("output", 0)), int(get("cached", 0)), int(get("written", 0)))


def _text_or_none(value: Any) -> str | None:
    return None if value is None else value + ""


def _use_out(use: ToolUse, offers: tuple[ToolOffer, ...]) -> dict[str, Any]:
    offered = None
    for offer in offers:
        if offer.name == use.name:
            offered = offer.target
            break
    line: dict[str, Any] = {"id": use.id}
    if offered is not None:
        line["target"] = offered
    if offered is None or wire_name(offered) != use.name:
        line["name"] = use.name
    if use.args is None:
        line["raw"] = use.raw
    else:
        line["args"] = use.args
    return line


def _use_in(line: Mapping[str, Any]) -> ToolUse:
    name, args = line["name"] if "name" in line else wire_name(line["target"]), line.get("args")
    if args is not None and args.__class__ is not dict:
        raise TypeError
    return ToolUse(line.get("id", "") + "", name + "", args, line.get("raw", "") + "")


def numbered(lines: Iterable[bytes], first: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a recording's lines with their numbers, from that of the `first`. A last line without its line
    break was torn when the machine died: it is left out. Raises `RecordingError` for any other line that is malformed.
    """
    for number, data in enumerate(lines, first):
        if not data.endswith(b"\n"):
            if len(data) >= MAX_LINE:
                raise RecordingError(f"line {number} is longer than {MAX_LINE >> 20} MiB")
            return
        yield number, decoded(data, number)


class Opening(Record):
    """What a recording's first line says. `more` holds the fields that this version does not name."""

    run_id: str
    pipeline: str
    args: dict[str, Value]
    file: str
    sha256: str
    started_at: str
    more: dict[str, Any]


def opening_of(line: Mapping[str, Any]) -> Opening:
    """What a `start` line says. Raises `RecordingError`; an unknown version is refused by its name."""
    if line.get("type") != "start":
        raise RecordingError("line 1 does not start a recording")
    version = line.get("version", VERSION)  # the first recordings did not say theirs
    if version.__class__ is not int or version != VERSION:
        raise RecordingError(f"line 1: this recording has version {str(version)[:40]}; this Halo reads {VERSION}")
    named = ("runId", "pipeline", "file", "sha256", "startedAt")
    args = line.get("args")
    if not isinstance(args, dict) or not all(isinstance(line.get(name), str) for name in named[:2]):
        raise RecordingError("line 1 says neither which pipeline ran nor with what")
    run_id, pipeline, file, sha256, started_at = (str(line.get(name, "")) for name in named)
    more = {name: value for name, value in line.items() if name not in (*named, "type", "version", "args")}
    return Opening(run_id, pipeline, args, file, sha256, started_at, more)


_encode: Callable[[object], str] | None = None
_scan: Callable[[str, int], tuple[Any, int]] | None = None


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0.0:  # as only infinities are
        raise ValueError("a number is too large")
    return number


def _scanner() -> Callable[[str, int], tuple[Any, int]]:
    global _scan
    if _scan is None:
        from json import JSONDecoder

        decoder: Any = JSONDecoder(parse_constant=_no_number, parse_float=_finite)
        _scan = decoder.scan_once  # what `decode` does, without its search for blanks
    return _scan
