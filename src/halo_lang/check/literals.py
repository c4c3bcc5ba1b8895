"""Literals: what is written down, as values, and whether it fits where it stands (language.md §2, §6).

Owns the turning of literal expressions into values, the types of the language, the options of agents and of calls, and
times in seconds. Knows no names. Read `names.py` next.
"""

from __future__ import annotations

from ..language.ast import And, Compare, Constant, Duration, ListExpr, Not, Number, ObjectExpr, Or, Path, Text
from ..language.values import equal, is_true, ordered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..language.ast import Expr
    from ..language.values import Value

TYPES = ("String", "Number", "Boolean", "List", "Object", "Any", "Result")

AGENT_OPTIONS = ("max_tokens", "max_steps", "temperature", "top_p", "timeout", "retries")
"""The options that stand in an agent's brackets, or in a call of one (language.md §6)."""

UNKNOWN: Any = object()
"""Stands for the value of what is not wholly a literal."""


def value_of(expr: Expr) -> Any:
    """The value of a literal, or `UNKNOWN` where any part of it is computed. A duration is no value."""
    kind = type(expr)
    if kind is Text:
        parts: tuple[Any, ...] = expr.parts  # type: ignore[union-attr]
        if not parts:
            return ""
        return parts[0] if len(parts) == 1 and type(parts[0]) is str else UNKNOWN
    if kind is Number or kind is Constant:
        return expr.value  # type: ignore[union-attr]
    if kind is ListExpr:
        items = [value_of(item) for item in expr.items]  # type: ignore[union-attr]
        return UNKNOWN if any(item is UNKNOWN for item in items) else items
    if kind is ObjectExpr:
        values = [value_of(value) for value in expr.values]  # type: ignore[union-attr]
        if any(value is UNKNOWN for value in values):
            return UNKNOWN
        return dict(zip(expr.keys, values, strict=True))  # type: ignore[union-attr]
    return UNKNOWN


def sample_of(expr: Expr) -> Any:
    """A value of the kind that a partly computed expression has, or `UNKNOWN` where that cannot be known."""
    kind = type(expr)
    if kind is ListExpr:
        return []
    if kind is ObjectExpr:
        return {}
    if kind is Not or kind is Compare or kind is And or kind is Or:
        return True
    return UNKNOWN


def truth_of(condition: Expr) -> bool | None:
    """What a condition made of literals alone always is, else None."""
    kind = type(condition)
    if kind is Path:
        return None
    if isinstance(condition, Not):
        inner = truth_of(condition.operand)
        return None if inner is None else not inner
    if isinstance(condition, And | Or):
        decides = kind is Or
        truths = [truth_of(item) for item in condition.items]
        if decides in truths:
            return decides
        return None if None in truths else not decides
    if isinstance(condition, Compare):
        if type(condition.left) is Path or type(condition.right) is Path:
            return None
        left, right = value_of(condition.left), value_of(condition.right)
        if left is UNKNOWN or right is UNKNOWN:
            return None
        if condition.operator in ("==", "!="):
            return equal(left, right) is (condition.operator == "==")
        return ordered(condition.operator, left, right)
    value = value_of(condition)
    return None if value is UNKNOWN else is_true(value)


def fits(type_name: str, value: Value) -> bool:
    """Whether a value fits a type of the language. A String takes any value, as its text (language.md §4)."""
    if type_name == "Number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if type_name == "Boolean":
        return isinstance(value, bool)
    if type_name == "List":
        return isinstance(value, list)
    if type_name == "Object":
        return isinstance(value, dict)
    return True


def whole_of(expr: Expr, least: int, most: int | None = None) -> int | None:
    """The whole number that a literal is, if it is within the bounds, else None."""
    if not isinstance(expr, Number) or expr.value != expr.value // 1:
        return None
    if expr.value < least or (most is not None and expr.value > most):
        return None
    return int(expr.value)


def seconds_of(expr: Expr) -> float | None:
    """The seconds of a duration or a number above 0, else None."""
    if isinstance(expr, Duration):
        return expr.milliseconds / 1000 if expr.milliseconds > 0 else None
    if isinstance(expr, Number) and 0 < expr.value < float("inf"):
        return float(expr.value)
    return None


def option_value(name: str, expr: Expr) -> tuple[str, Any] | str:
    """An agent's option as the field of `AgentOptions` that it sets and its value, or what is wrong with it."""
    if name == "timeout":
        seconds = seconds_of(expr)
        return ("timeout_s", seconds) if seconds else "must be a duration, or seconds above 0"
    if name == "temperature" or name == "top_p":
        most = 2 if name == "temperature" else 1
        if isinstance(expr, Number) and 0 <= expr.value <= most:
            return name, float(expr.value)
        return f"must be a number from 0 to {most}"
    least, upper = (0, 100) if name == "retries" else (1, None)
    whole = whole_of(expr, least, upper)
    if whole is not None:
        return name, whole
    return "must be a whole number " + (f"from {least} to {upper}" if upper else f"of at least {least}")


def is_computed(expr: Expr) -> bool:
    """Whether an expression is no literal at all: a duration is one."""
    return type(expr) is not Duration and value_of(expr) is UNKNOWN


def nano_of(text: str) -> int:
    """A number of dollars as written (`0.50`, `1e-3`), in nano-dollars, exactly; what is smaller is cut off."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, part = mantissa.lstrip("+-").partition(".")
    shift = 9 + (int(exponent) if exponent else 0)
    kept = part[: max(0, shift)]
    digits = (whole + kept).lstrip("0")
    shift -= len(kept)
    if shift < 0:
        digits, shift = digits[:shift], 0
    nano = int(digits) * 10**shift if digits else 0
    return -nano if mantissa.startswith("-") else nano


def dollars_text(text: str) -> str:
    """A number of dollars as it is shown: with two decimals, or as many as it is written with (plan.md)."""
    whole, _, decimals = text.partition(".")
    if "e" in text.lower():
        dollars, nano = divmod(nano_of(text), 10**9)
        whole, decimals = str(dollars), f"{nano:09}".rstrip("0")
    return f"{whole}.{decimals:0<2}"
