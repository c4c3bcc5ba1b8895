"""What the debugger shows: plain lines, each of which can be read alone; nothing is drawn over.

Owns the words. Whatever models and tools said is shown with control characters made visible. Read `debugger.py` for
the commands that show these.
"""

from __future__ import annotations

from json import dumps

from ..app.debugging import ended_by
from ..boundary.call import AGENT
from ..boundary.prompt import frame_key, framed_system, framed_text
from ..check.program import LoopStage
from ..language.values import to_json, to_text
from .output import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..app.debugging import Answered, Open, Session
    from ..boundary.call import Answer, Call, Scope
    from ..language.source import Span
    from ..language.values import Value

AROUND = 5
"""Lines of the source that `list` shows before a stage and after it."""

MOST = 200
"""Characters of a value that stand in one line."""


def place(session: Session) -> str:
    """Where the run is held, and with what."""
    if session.call is not None:
        return _call_place(session)
    hold, here, number = session.hold, session.here, session.stage
    assert hold is not None
    name = here.pipeline.checked.name
    rows: list[str] = []
    if hold.failure is not None:
        code, words = ended_by(hold)
        said = f"failed: {code}: {words}" if code else f"halts the run, for this is not so: {words}"
        rows.append(f"stage {number} of {name} {said}")
        if not session.replays:
            rows.append("the run ends here; `again` runs the stage again")
    elif here.at >= len(here.pipeline.checked.stages):
        rows.append(f"end of {name}{_branch(here.frame.scope)}")
    else:
        stage = here.pipeline.checked.stages[here.at]
        source = here.pipeline.program.source
        line, _ = source.position(stage.span.start)
        label = here.pipeline.label(here.at)
        rows.append(f"stage {number} of {name}{_branch(here.frame.scope)}{_tries(here)}: {label}, {source.name}:{line}")
        rows += [f"    {row}" for row in _written(here, stage.span)]
    rows.append(f"current: {short(here.frame.current)}")
    return visible("\n".join(rows))


def _call_place(session: Session) -> str:
    call = session.call
    assert call is not None
    who = f", chosen by {call.by}" if call.by else ""
    rows = [f"call of {call.target} in stage {call.stage}{_branch(call.scope)}{_tries(session.here)}{who}"]
    if call.request is not None:
        rows.append(f"model: {call.request.model}; `messages` shows what it is sent")
    rows += [f"{name}: {short(value)}" for name, value in call.args.items()]
    return visible("\n".join(rows))


def _branch(scope: Scope) -> str:
    return f", branch {list(scope)}" if scope else ""


def _tries(here: Open) -> str:
    """Which try of a loop a stage runs in again: of the loop that went back last, of those that it stands in."""
    stages = here.pipeline.checked.stages
    for number in reversed(here.frame.loops):
        loop = stages[number - 1]
        if isinstance(loop, LoopStage) and loop.back_to <= here.at < number:
            return f", try {int(here.frame.loops[number]['iteration']) + 1} of {loop.max}"  # type: ignore[arg-type]
    return ""


def _written(here: Open, span: Span) -> list[str]:
    """The lines of a stage, without what they are indented by."""
    source = here.pipeline.program.source
    first, last = source.position(span.start)[0], source.position(max(span.start, span.end - 1))[0]
    lines = [source.line(number) for number in range(first, min(last, first + 11) + 1)]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]


def listing(session: Session) -> str:
    """The source around the stage; its own lines are marked."""
    here = session.here
    stages, source = here.pipeline.checked.stages, here.pipeline.program.source
    if not stages:
        span = here.pipeline.checked.span
    else:
        span = stages[min(here.at, len(stages) - 1)].span
    first, last = source.position(span.start)[0], source.position(max(span.start, span.end - 1))[0]
    count = source.position(len(source.text))[0]
    marked = range(first, last + 1) if here.at < len(stages) else range(0)
    shown = range(max(1, first - AROUND), min(count, last + AROUND) + 1)
    width = len(str(shown[-1]))
    rows = [f"  {n:>{width}} {'>' if n in marked else ' '} {source.line(n)}".rstrip() for n in shown]
    while len(rows) > 1 and rows[-1].split()[1:] == []:
        rows.pop()
    return visible("\n".join(rows))


def stack(session: Session) -> str:
    """The calls of pipelines around the place, the run's own first, then those of other branches."""
    rows = [_level(one, "in") for one in session.around()]
    rows += [_level(one, "beside it, in") for one in session.beside()]
    for call in session.under_way.values():
        if call is not session.call:
            rows.append(f"under way: {call.target} in stage {call.stage}{_branch(call.scope)}")
    return visible("\n".join(rows))


def _level(one: Open, word: str) -> str:
    checked = one.pipeline.checked
    if one.at >= len(checked.stages):
        return f"{word} {checked.name}{_branch(one.frame.scope)}, at its end"
    number, _ = one.pipeline.place(one.frame, one.at)
    return f"{word} {checked.name}{_branch(one.frame.scope)}, stage {number}{_tries(one)}: {one.pipeline.label(one.at)}"


def calls(session: Session) -> str:
    """What was asked and answered, and what it cost."""
    rows = [_asked(one) for one in session.calls]
    left_out = session.answered_count - len(session.calls)
    if left_out:
        rows.insert(0, f"the first {left_out} are not kept")
    rows.append(
        f"{session.answered_count} answered, ${session.cost / 1e9:.4f}" if rows else "nothing has been asked yet"
    )
    return visible("\n".join(rows))


def _asked(one: Answered) -> str:
    call, answer = one.call, one.answer
    parts = [f"{one.number}. stage {call.stage}{_branch(call.scope)}, {call.kind} {call.target}"]
    parts.append(_outcome(answer))
    facts = [answer.model, _tokens(answer), "" if answer.cost is None else f"${answer.cost / 1e9:.4f}"]
    facts += ["by hand" if one.by_hand else "", f"{answer.ms}ms" if answer.ms else ""]
    told = ", ".join(fact for fact in facts if fact)
    return ": ".join(parts) + (f" ({told})" if told else "")


def _outcome(answer: Answer) -> str:
    if answer.error is not None:
        return f"failed: {answer.error.code}: {answer.error.message}"
    if answer.tool_uses:
        return "asks for " + ", ".join(use.name for use in answer.tool_uses)
    return short(answer.value)


def _tokens(answer: Answer) -> str:
    usage = answer.usage
    return "" if usage is None else f"{usage.input} tokens in, {usage.output} out"


def messages(call: Call) -> str:
    """All that an agent is sent, in full; of another call its arguments."""
    request = call.request
    if call.kind != AGENT or request is None:
        return visible("\n".join(f"{name}: {full(value)}" for name, value in call.args.items()) or "no arguments")
    key = frame_key(request)
    rows = [f"{call.target} in stage {call.stage}, model {request.model}"]
    system = framed_system(request, key)
    if system:
        rows += ["system:", _indented(system)]
    for message in request.messages:
        rows += [f"{message.role}:", _indented(framed_text(message, key))]
        rows += [f"    asks for {use.name} {to_json(use.args)}" for use in message.tool_uses]
    if request.tools:
        rows.append("offered: " + ", ".join(offer.target for offer in request.tools))
    return visible("\n".join(rows))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def full(value: Value) -> str:
    """A value as it is looked at: text as it stands (set off where it has lines, so that none is taken for the
    debugger's), anything else as JSON over lines."""
    if isinstance(value, str):
        return visible(_indented(value) if "\n" in value else value or '""')
    try:
        return visible(dumps(value, ensure_ascii=False, indent=2))
    except (ValueError, RecursionError):
        return "a value that nests too deep to be shown"


def short(value: Value) -> str:
    """A value in one line."""
    if value is None:
        return "null"
    text = " ".join(to_text(value).split()) or '""'
    return text if len(text) <= MOST else f"{text[:MOST]}…"
