"""Values: as numbers, as true or false, compared, as text, and read from answers (language.md §4, §5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from halo_lang.language.values import (
    as_number,
    depth,
    equal,
    is_true,
    ordered,
    read_answer,
    read_json,
    to_json,
    to_text,
)

TABLE = """
1 1.0 eq ge T
1 "1" eq ge T
"1.0" 1 eq ge T
"01" "1" eq ge T
"a" "a" eq ge T
"a" "b" ne ge T
null null eq ge F
true "true" eq ge T
false "false" eq ge F
0 false ne ge F
[] [] eq ge F
[1] "[1]" eq ge T
"10" "9" ne ge T
2 10 ne lt T
"x" 3 ne ge T
null 1 ne ge F
"" 0 ne ge F
"false" 1 ne ge F
[] 1 ne ge F
"0" 1 ne lt T
" 7 " 7 eq ge T
{} 1 ne ge T
[0] 1 ne ge T
null "null" eq ge F
{"a":[1,"b"]} "{\\"a\\":[1,\\"b\\"]}" eq ge T
"1e2" 100 eq ge T
"-0" 0 eq ge T
"+1" 1 ne ge T
".5" 0.5 ne ge T
"5." 5 ne ge T
"١" 1 ne ge T
"1\\n" 1 eq ge T
"1_0" 10 ne ge T
true 1 ne ge T
0.0 -0.0 eq ge F
9007199254740993 9007199254740992.0 ne ge T
"""


def row(line: str) -> tuple[Any, Any, str, str, str]:
    decoder = json.JSONDecoder()
    left, at = decoder.raw_decode(line)
    right, end = decoder.raw_decode(line[at + 1 :])
    eq, lt, truth = line[at + 1 + end :].split()
    return left, right, eq, lt, truth


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_comparisons(line: str) -> None:
    left, right, eq, lt, truth = row(line)
    assert ("eq" if equal(left, right) else "ne") == eq
    assert equal(left, right) == equal(right, left)
    assert ("lt" if ordered("<", left, right) else "ge") == lt
    assert ("T" if is_true(left) else "F") == truth


def test_order_is_false_unless_both_sides_are_numbers() -> None:
    for operator in ("<", "<=", ">", ">="):
        for left, right in [("a", 1), (1, None), (True, 0), ([], 1), ("", 0), ({}, {})]:
            assert not ordered(operator, left, right)
    assert ordered("<=", "2", 2)
    assert ordered(">=", 2, " 2 ")
    assert ordered(">", "10", 9)
    assert not ordered(">", 9, "10")


def test_a_number_of_many_digits_is_one() -> None:
    assert as_number("9" * 4000) == int("9" * 4000)
    assert ordered(">", "9" * 5000, "9" * 4000)
    assert as_number("1e999") == float("inf")
    assert as_number(" \t\r\n\f\v1\u00a0") is None


def test_text_of_values() -> None:
    assert to_text("a{{b}}") == "a{{b}}"
    assert to_text(None) == ""
    assert to_text(True) == "true"
    assert to_text(1.5) == "1.5"
    assert to_text({"k": [1, "é", None], "a": "\u2028"}) == '{"k":[1,"é",null],"a":"\u2028"}'


def test_values_of_any_depth_have_a_text() -> None:
    value: Any = "x"
    for _ in range(5000):
        value = {"a": [value, 1], "b": []}
    text = to_json(value)
    assert text.startswith('{"a":[{"a":[')
    assert text.endswith('"b":[]}')
    assert len(text) == 5000 * len('{"a":[,1],"b":[]}') + 3
    assert depth(value) == 10_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' {"k": 1}\n', {"k": 1}),
        ("```json\n[1, 2]\n```\n", [1, 2]),
        ("```\n{}\n```", {}),
        ("```any tag at all\r\n[]\r\n  ```", []),
        ('["\\ud83d\\ude00"]', ["\U0001f600"]),
    ],
)
def test_an_answer_that_is_json_as_a_whole_becomes_a_value(text: str, value: Any) -> None:
    assert read_answer(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *(
            "42",
            "true",
            '"x"',
            "null",
            "",
            " \n",
            "So: {}",
            "{} and more",
            "{k: 1}",
            "```json\n{}\n``` done",
            "```json\n1\n```",
        ),
        *(
            '{"a": 1, "a": 2}',
            "[NaN]",
            "[Infinity]",
            "[-Infinity]",
            "[1e999]",
            '["\\ud800"]',
            "[1",
            "{",
            "```\n{}",
            "````\n{}\n````",
        ),
        "[" + "9" * 5000 + "]",
        "[" * 65 + "]" * 65,
        "[" * 100_000,
        '{"a":' * 100_000,
    ],
)
def test_any_other_answer_stays_the_text_it_is(text: str) -> None:
    assert read_answer(text) == text


def test_64_levels_are_read() -> None:
    text = "[" * 64 + "]" * 64
    assert depth(read_answer(text)) == 64
    quoted = json.dumps(["[" * 100])
    assert read_answer(quoted) == ["[" * 100]


def test_strict_json_says_why_not() -> None:
    with pytest.raises(ValueError, match="repeated"):
        read_json('{"a": 1, "a": 1}')
    with pytest.raises(ValueError, match="64 levels"):
        read_json("[" * 65 + "]" * 65)
