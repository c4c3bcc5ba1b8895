"""Conditions against a model of language.md §5 that shares no code with the implementation."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from halo_lang.check.check import check
from halo_lang.language.source import Source
from halo_lang.runtime.evaluate import Names, condition
from halo_lang.runtime.state import Frame, Run

# The model: straight from the page, slow and plain. -------------------------------------------------------------


def number(value: Any) -> float | int | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        text = value.strip(" \t\r\n\f\v")
        if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
            return int(text) if re.fullmatch("-?[0-9]+", text) else float(text)
    return None


def text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def truth(value: Any) -> bool:
    return not (value is False or value is None or value in ("", "false") or value == [] or is_zero(value))


def is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def compare(operator: str, left: Any, right: Any) -> bool:
    a, b = number(left), number(right)
    numbers = a is not None and b is not None
    if operator in ("==", "!="):
        same = a == b if numbers else text(left) == text(right)
        return same == (operator == "==")
    return numbers and {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[operator]


def holds(tree: Any, values: dict[str, Any]) -> Any:
    """The value of a tree: a tuple is an operation, anything else a name of `values`."""
    if isinstance(tree, str):
        return values[tree]
    match tree:
        case ("!", inner):
            return not truth(holds(inner, values))
        case ("&&", *items):
            return all(truth(holds(item, values)) for item in items)
        case ("||", *items):
            return any(truth(holds(item, values)) for item in items)
        case (operator, left, right):
            return compare(operator, holds(left, values), holds(right, values))


def written(tree: Any) -> str:
    if isinstance(tree, str):
        return tree
    match tree:
        case ("!", inner):
            return f"!({written(inner)})"
        case ("&&" | "||" as operator, *items):
            return "(" + f" {operator} ".join(written(item) for item in items) + ")"
        case (operator, left, right):
            return f"({written(left)}) {operator} ({written(right)})"
    raise AssertionError(tree)


# Values and trees ------------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c")
LOOSE = st.sampled_from(
    [None, True, False, 0, 1, -1, 1.0, 1.5, 1e3, "", "0", "1", "1.0", "01", " 1 ", "-1", "1e3", "+1", ".5", "1.", "0x1",
     "true", "false", "null", "[]", "{}", "[1]", "a", "A", " ", [], [0], [1], {}, {"a": 1}, "١", "1_0", "\u00a01"]
)  # fmt: skip
VALUES = st.one_of(
    LOOSE,
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
        max_leaves=4,
    ),
)
TREES = st.recursive(
    st.sampled_from(NAMES),
    lambda inner: st.one_of(
        st.tuples(st.just("!"), inner),
        st.tuples(st.sampled_from(["&&", "||"]), inner, inner),
        st.tuples(st.sampled_from(["&&", "||"]), inner, inner, inner),
        st.tuples(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner),
    ),
    max_leaves=8,
)


PARTS = ("a", "b", "c", "!a", "!b", "a == b", "b != c", "a < c")


def evaluated(source: str, values: dict[str, Any]) -> bool:
    params = ", ".join(f"{name}: Any" for name in values)
    program = check(Source("t.halo", f"pipeline P({params}) -> Result:\n  a\n    |? ({source})\n"))
    assert program.ok, program.diagnostics
    (gate,) = program.pipelines["P"].stages
    frame = Frame(Run("r", None), "P", values, (), "", (), 0)  # type: ignore[arg-type]
    found = condition(gate.condition, Names(frozenset()))(frame)  # type: ignore[union-attr]
    assert found is True or found is False
    return found


@settings(max_examples=200)
@given(TREES, st.fixed_dictionaries(dict.fromkeys(NAMES, VALUES)))
@example(("==", "a", "b"), {"a": 2**63, "b": str(2**63) + ".0", "c": None})
@example(("==", "a", "b"), {"a": 10**400, "b": "1" + "0" * 400, "c": None})
@example(("<", "a", "b"), {"a": 10**400, "b": 1.5, "c": None})
@example(("==", "a", "b"), {"a": "9" * 5000, "b": "9" * 5000, "c": None})
@example(("<", "a", "b"), {"a": "1e999", "b": "2e999", "c": None})
@example(("==", "a", "b"), {"a": {"k": [None, True, "é"]}, "b": '{"k":[null,true,"é"]}', "c": None})
@example(("==", "a", "b"), {"a": 1.0, "b": [1.0], "c": None})
def test_a_condition_is_what_the_page_says(tree: Any, values: dict[str, Any]) -> None:
    try:
        expected = truth(holds(tree, values))
    except ValueError:  # the model's int() refuses what Python takes for too long
        return
    assert evaluated(written(tree), values) is expected


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), st.data())
def test_not_binds_before_comparison_before_and_before_or(parts: list[str], data: st.DataObject) -> None:
    """`!a` here stands alone, so that it means the same whatever it binds."""
    values = {name: data.draw(LOOSE) for name in NAMES}
    between = [data.draw(st.sampled_from(["&&", "||"])) for _ in parts[1:]]
    source = parts[0] + "".join(f" {o} {p}" for o, p in zip(between, parts[1:], strict=True))
    groups: list[list[str]] = [[parts[0]]]
    for operator, part in zip(between, parts[1:], strict=True):
        if operator == "||":
            groups.append([part])
        else:
            groups[-1].append(part)
    assert evaluated(source, values) is any(all(evaluated(p, values) for p in group) for group in groups)
