"""Expressions, compiled once to functions of a frame (language.md §3 to §5).

Owns evaluation: `compiled(expr, names)` gives a function that never changes what it reads, and fails only for a value
that would grow past all use. What loose comparison and text mean stands in `language.values`; what a bare name means in
`check.names`.
"""

from __future__ import annotations

from ..check.names import root_of
from ..language.ast import And, Compare, Constant, Duration, ListExpr, Not, Number, ObjectExpr, Or, Path, Text
from ..language.record import Record
from ..language.values import equal, is_true, ordered, to_text
from .failure import RunFailure
from .sizes import MAX_TEXT
from .state import Places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..language.ast import Expr
    from ..language.values import Value
    from .state import Evaluate, Frame


class Names(Record):
    """What bare names can stand for in a place: the `each` item around it, if any, and the pipeline's bindings."""

    bindings: frozenset[str]
    item: str | None = None


def compiled(expr: Expr, names: Names) -> Evaluate:
    """The function that gives an expression's value."""
    return _COMPILERS[type(expr)](expr, names)


def condition(expr: Expr, names: Names) -> Callable[[Frame], bool]:
    """The function that says whether an expression's value is true."""
    if type(expr) in (Not, Compare, And, Or):
        return compiled(expr, names)  # type: ignore[return-value]  # these give true or false themselves
    value = compiled(expr, names)
    return lambda frame: is_true(value(frame))


def text_parts(text: Text, names: Names) -> tuple[str | Callable[[Frame], str], ...]:
    """A string literal's parts: text, and functions that give the text of what is inserted."""
    return tuple(part if isinstance(part, str) else _inserted(part, names) for part in text.parts)


def _inserted(path: Path, names: Names) -> Callable[[Frame], str]:
    value = _path(path, names)
    return lambda frame: to_text(value(frame))


def _number(expr: Number, names: Names) -> Evaluate:
    value = expr.value
    return lambda frame: value


def _constant(expr: Constant, names: Names) -> Evaluate:
    value = expr.value
    return lambda frame: value


def _duration(expr: Duration, names: Names) -> Evaluate:
    text = expr.text
    return lambda frame: text


def _text(expr: Text, names: Names) -> Evaluate:
    parts = text_parts(expr, names)
    if all(isinstance(part, str) for part in parts):
        value = "".join(part for part in parts if isinstance(part, str))
        return lambda frame: value

    def inserted(frame: Frame) -> Value:
        made = [part if isinstance(part, str) else part(frame) for part in parts]
        # Said before it is made: a pipeline that calls itself can double it 16 times.
        if sum(map(len, made)) > MAX_TEXT:
            raise RunFailure("ARGUMENT_TYPE", f"a text would have more than {MAX_TEXT:,} characters")
        return "".join(made)

    return inserted


def _list(expr: ListExpr, names: Names) -> Evaluate:
    items = [compiled(item, names) for item in expr.items]
    return lambda frame: frame.run.sizes.checked([item(frame) for item in items])


def _object(expr: ObjectExpr, names: Names) -> Evaluate:
    entries = [(key, compiled(value, names)) for key, value in zip(expr.keys, expr.values, strict=True)]
    return lambda frame: frame.run.sizes.checked({key: value(frame) for key, value in entries})


def _not(expr: Not, names: Names) -> Evaluate:
    operand = condition(expr.operand, names)
    return lambda frame: not operand(frame)


def _compare(expr: Compare, names: Names) -> Evaluate:
    left, right, operator = compiled(expr.left, names), compiled(expr.right, names), expr.operator
    if operator == "==":
        return lambda frame: equal(left(frame), right(frame))
    if operator == "!=":
        return lambda frame: not equal(left(frame), right(frame))
    return lambda frame: ordered(operator, left(frame), right(frame))


def _and(expr: And, names: Names) -> Evaluate:
    items = [condition(item, names) for item in expr.items]
    return lambda frame: all(item(frame) for item in items)


def _or(expr: Or, names: Names) -> Evaluate:
    items = [condition(item, names) for item in expr.items]
    return lambda frame: any(item(frame) for item in items)


def _path(expr: Path, names: Names) -> Evaluate:
    root, parts = _root(expr, names)
    if not parts:
        return lambda frame: _as_value(root(frame), frame)
    if len(parts) == 1:
        only = parts[0]
        return lambda frame: _as_value(_part(root(frame), only), frame)

    def follow(frame: Frame) -> Value:
        value = root(frame)
        for part in parts:
            value = _part(value, part)
        return _as_value(value, frame)

    return follow


def _root(expr: Path, names: Names) -> tuple[Evaluate, tuple[str | int, ...]]:
    """The function that gives a path's first value, and the parts that remain."""
    name, parts = expr.root, expr.parts
    if name == "context":
        if not parts:
            return lambda frame: frame.run.sizes.checked(frame.context()), ()
        match parts[0]:
            case "current":
                return lambda frame: frame.current, parts[1:]
            case "data":
                return lambda frame: frame.data, parts[1:]
            case "meta":
                return lambda frame: frame.meta(), parts[1:]
        return lambda frame: None, ()
    match root_of(name, item=names.item, bindings=names.bindings):
        case "item":
            return lambda frame: frame.item, parts
        case "index":
            return lambda frame: frame.index, parts
        case "data":
            return lambda frame: frame.data.get(name), parts
    return lambda frame: frame.params.get(name), parts


def _part(value: Value, part: str | int) -> Value:
    """A part of a value; what is missing is null."""
    if isinstance(part, str):
        return value.get(part) if isinstance(value, dict) else None
    if isinstance(value, list):
        return value[part] if part < len(value) else None
    return value.get(str(part)) if isinstance(value, dict) else None


def _as_value(value: Value, frame: Frame) -> Value:
    return frame.run.sizes.checked(value.copy_out()) if type(value) is Places else value


_COMPILERS: dict[type, Callable[..., Evaluate]] = {
    Number: _number,
    Constant: _constant,
    Duration: _duration,
    Text: _text,
    ListExpr: _list,
    ObjectExpr: _object,
    Not: _not,
    Compare: _compare,
    And: _and,
    Or: _or,
    Path: _path,
}
