"""The stages of a pipeline, from tokens to nodes (language.md §2, §7).

Owns the grammar of each operator, and the reading of parts (stages, clauses, test steps) one after the other, so that
an error in one does not hide those in the next. Read `parser.py` next.
"""

from __future__ import annotations

from .ast import Arg, Arm, Branch, Call, Each, FanOut, Gate, Listen, Loop, Member, Name, Pipe, Yield
from .cursor import DECLARATIONS, STAGES, Cursor, Failed
from .expressions import argument_value, arguments, call, condition, expression
from .lexer import NAME, STRING
from .literals import path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from .ast import Expr, Stage

    T = TypeVar("T")


def read_parts(
    c: Cursor, readers: Mapping[str, Callable[[Cursor], T]], made: list[T], what: str, *, stages: bool = False
) -> None:
    """Reads parts as long as there are any, each by the reader of its first token. One with an error is left out."""
    while True:
        c.quiet = False
        first = c.i
        read = readers.get(c.texts[first])
        try:
            if read is not None:
                made.append(read(c))
            elif c.over():
                return
            else:
                c.expected(what, here=True)
        except Failed:
            c.skip(first, readers, stages=stages)


def options(c: Cursor, closing: str) -> tuple[Arg, ...]:
    """`{ "," NAME ":" expr }`, up to the closing bracket."""
    if c.texts[c.i] != ",":
        return ()
    made: list[Arg] = []
    while c.texts[c.i] == ",":
        c.i += 1
        if c.texts[c.i] == closing:
            break
        if c.kinds[c.i] != NAME or c.texts[c.i + 1] != ":":
            c.expected("an option, such as `max: 3`")
        name = c.name("an option")
        c.i += 1
        value = argument_value(c)
        made.append(Arg(name.start, c.ends[c.i - 1], name, value))
    return tuple(made)


def _bind(c: Cursor) -> Name:
    """The name after `as`."""
    c.i += 1
    return c.name("the name that `as` gives")


def _pipe(c: Cursor) -> Pipe:
    start = c.starts[c.i]
    shadow = None
    if c.texts[c.i] == "@":
        shadow = _shadow(c)
        if c.texts[c.i] != "|>":
            c.expected("`|>`", help="`@shadow(…)` stands before a `|>` stage")
    c.i += 1
    word = c.texts[c.i]
    if c.texts[c.i + 1] == "(" and word in _OTHER_STAGES:
        c.fail(f"`{word}` is not called with `|>`", help=f"write `{_OTHER_STAGES[word]}`")
    called = call(c)
    bind = _bind(c) if c.texts[c.i] == "as" else None
    return Pipe(start, c.ends[c.i - 1], called, bind, shadow)


def _shadow(c: Cursor) -> Call:
    c.i += 1
    c.take("shadow", "`shadow(…)`")
    c.take("(", "`(` and the call in the shadow")
    c.enter()
    called = call(c)
    c.close(")", "`)`")
    c.depth -= 1
    return called


def _gate_or_branch(c: Cursor) -> Gate | Branch:
    mark = c.texts[c.i + 1]
    if mark == "(":
        return _gate(c)
    if mark == "{":
        return _branch(c)
    c.i += 1
    c.expected("`(` or `{`", help="a condition stands in parentheses, `|? (cond)`, and arms in braces")


def _gate(c: Cursor) -> Gate:
    start = c.starts[c.i]
    c.i += 1
    held = _condition(c)
    arrow = c.texts[c.i] == "=>"
    c.i += arrow
    return Gate(start, c.ends[c.i - 1], held, arrow)


def _condition(c: Cursor) -> Expr:
    """An expression in parentheses."""
    c.i += 1
    c.enter()
    held = expression(c)
    c.close(")", "`)`")
    c.depth -= 1
    return held


def _branch(c: Cursor) -> Branch:
    start = c.starts[c.i]
    c.i += 2
    c.enter()
    arms = [_arm(c)]
    while c.texts[c.i] == ",":
        c.i += 1
        if c.texts[c.i] == "}":
            break
        arms.append(_arm(c))
    c.close("}", "`,` or `}`")
    c.depth -= 1
    bind = _bind(c) if c.texts[c.i] == "as" else None
    return Branch(start, c.ends[c.i - 1], tuple(arms), bind)


def _arm(c: Cursor) -> Arm:
    start = c.starts[c.i]
    held = None
    if c.texts[c.i] == "(":
        held = _condition(c)
    elif c.texts[c.i] == "else":
        c.i += 1
    else:
        c.expected("an arm", help="an arm is `(cond) => Call()`, and the last may be `else => Call()`")
    c.take("=>", "`=>` and a call")
    called = call(c)
    if c.texts[c.i] == "as":
        c.fail("an arm binds no name", help="put `as` after the closing `}` of the branch")
    _no_further_stage(c, "an arm makes one call")
    return Arm(start, called.end, held, called)


def _no_further_stage(c: Cursor, what: str) -> None:
    """Refuses a stage after a call in braces, unless it is the closing brace that is missing."""
    if c.texts[c.i] not in STAGES:
        return
    mark, depth = c.i, 0
    for i in range(mark, min(mark + _LOOKED_AT, len(c.texts))):
        text = c.texts[i]
        depth += (text == "{") - (text == "}")
        if depth < 0:
            c.i = i
            help_ = "put several stages in a pipeline of their own, and call that"
            c.fail(what, c.starts[mark], c.ends[mark], help=help_)
        if text in DECLARATIONS and c.at_declaration(i):
            return


def _fanout_or_each(c: Cursor) -> FanOut | Each:
    mark = c.texts[c.i + 1]
    if mark == "{":
        return _fanout(c)
    if mark == "each":
        return _each(c)
    c.i += 1
    c.expected("`{` or `each`", help="write `|* { A, B }` or `|* each(item in list) => Call()`")


def _fanout(c: Cursor) -> FanOut:
    start = c.starts[c.i]
    c.i += 2
    c.enter()
    members = [_member(c)]
    while c.texts[c.i] == ",":
        c.i += 1
        if c.texts[c.i] == "}":
            break
        members.append(_member(c))
    c.close("}", "`,` or `}`")
    c.depth -= 1
    bind = _bind(c) if c.texts[c.i] == "as" else None
    return FanOut(start, c.ends[c.i - 1], tuple(members), bind)


def _member(c: Cursor) -> Member:
    follows = c.texts[c.i + 1]
    if follows == "(" or follows == "." or "." in c.texts[c.i]:
        called = call(c)
    else:
        name = c.name("a call, or the name of an agent or pipeline")
        called = Call(name.start, name.end, name, None, (), True)
    bind = _bind(c) if c.texts[c.i] == "as" else None
    _no_further_stage(c, "a member of a fan-out is one call")
    return Member(called.start, c.ends[c.i - 1], called, bind)


def _each(c: Cursor) -> Each:
    start = c.starts[c.i]
    c.i += 2
    c.take("(", "`(` and the item's name")
    c.enter()
    item = c.name("the item's name")
    c.take("in", "`in` and the list")
    source = expression(c)
    settings = options(c, ")")
    c.close(")", "`,` or `)`")
    c.depth -= 1
    c.take("=>", "`=>` and a call")
    called = call(c)
    bind = _bind(c) if c.texts[c.i] == "as" else None
    return Each(start, c.ends[c.i - 1], item, source, settings, called, bind)


def _yield(c: Cursor) -> Yield:
    start = c.starts[c.i]
    c.i += 1
    c.take("yield", "`yield(…)`")
    c.take("(", "`(` and what is asked")
    args = arguments(c)
    bind = _bind(c) if c.texts[c.i] == "as" else None
    return Yield(start, c.ends[c.i - 1], args, bind)


def _listen(c: Cursor) -> Listen:
    start = c.starts[c.i]
    c.i += 1
    c.take("listen", "`listen(…)`")
    c.take("(", "`(` and the event")
    c.enter()
    if c.kinds[c.i] == STRING:
        c.expected("the event", help="an event stands without quotes: `listen(Slack.Reaction)`")
    if c.kinds[c.i] != NAME:
        c.expected("the event, such as `Slack.Reaction`")
    event = path(c)
    c.close(")", "`)`")
    c.depth -= 1
    bind = _bind(c) if c.texts[c.i] == "as" else None
    return Listen(start, c.ends[c.i - 1], event, bind)


def _loop(c: Cursor) -> Loop:
    start = c.starts[c.i]
    c.i += 1
    c.take("loop", "`loop(…)`")
    c.take("(", "`(` and the agent to go back to")
    c.enter()
    agent = c.name("the agent to go back to")
    c.take(",", "`,` and the condition in quotes")
    written, held = condition(c)
    settings = options(c, ")")
    c.close(")", "`,` or `)`")
    c.depth -= 1
    bind = _bind(c) if c.texts[c.i] == "as" else None
    return Loop(start, c.ends[c.i - 1], agent, written, held, settings, bind)


STAGE_READERS: dict[str, Callable[[Cursor], Stage]] = {
    "|>": _pipe,
    "@": _pipe,
    "|?": _gate_or_branch,
    "|*": _fanout_or_each,
    "|!": _yield,
    "~>": _listen,
    "|<>": _loop,
}
_LOOKED_AT = 10_000
"""Tokens after a call in braces that are searched for the closing one."""

_OTHER_STAGES = {"yield": "|! yield(…)", "listen": "~> listen(…)", "loop": "|<> loop(…)"}
