"""Values, and how the language reads them: as text, as numbers, as true or false (language.md §4, §5).

Owns the rules of loose comparison, of text made from values and of values made from an agent's answer. Pure, and never
fails on any JSON value. Values are treated as immutable by everything that holds one.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

Value: TypeAlias = "None | bool | int | float | str | list[Value] | dict[str, Value]"

MAX_DEPTH = 64
"""Levels of lists and objects in an answer that is read as JSON (language.md §4)."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?\Z")
_FENCE = re.compile(r"```[^\n`]*\n(.*)\n[ \t]*```\Z", re.DOTALL)
_BLANKS = " \t\r\n\f\v"


def as_number(value: Value) -> int | float | None:
    """The number that a value is, or that its whole text is, else None (language.md §5)."""
    if value is True or value is False or value is None:
        return None
    if isinstance(value, str):
        text = value.strip(_BLANKS)
        found = _NUMBER.match(text)
        if found is None:
            return None
        if found[1] is None and found[2] is None:
            return int(text) if len(text) <= _MAX_DIGITS else _huge(text)
        return float(text)
    return value if isinstance(value, int | float) else None


def is_true(value: Value) -> bool:
    """Whether a value on its own is true: all but false, null, 0, "", "false" and []."""
    if isinstance(value, str):
        return value != "" and value != "false"
    if isinstance(value, dict):
        return True
    return bool(value)


def equal(left: Value, right: Value) -> bool:
    """`==`: two numbers as numbers, everything else as text."""
    a = as_number(left)
    if a is not None:
        b = as_number(right)
        if b is not None:
            return a == b
    return _comparable(left) == _comparable(right)


def ordered(operator: str, left: Value, right: Value) -> bool:
    """`<`, `<=`, `>`, `>=`: false unless both sides are numbers."""
    a, b = as_number(left), as_number(right)
    if a is None or b is None:
        return False
    if operator == "<":
        return a < b
    if operator == "<=":
        return a <= b
    if operator == ">":
        return a > b
    return a >= b


def to_text(value: Value) -> str:
    """What a template inserts: text as it is, null as nothing, everything else as compact JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return to_json(value)


def to_json(value: Value) -> str:
    """Compact JSON, in the order of the keys, with text unescaped where JSON allows it."""
    try:
        return _encoder()(value)
    except RecursionError:
        return _deep_json(value)


def read_answer(text: str) -> Value:
    """An agent's answer as a value: a JSON object or array that is the whole trimmed text, bare or inside one code
    fence, becomes that value; any other answer stays text, also JSON with repeated keys, NaN or over 64 levels
    (language.md §4)."""
    inner = text.strip()
    if inner.startswith("```"):
        fenced = _FENCE.match(inner)
        if fenced is None:
            return text
        inner = fenced[1].strip()
    if not inner or inner[0] not in "{[":
        return text
    try:
        return read_json(inner)
    except ValueError:
        return text


def read_json(text: str) -> Value:
    """Strict JSON: raises `ValueError` for repeated keys, NaN and infinities, numbers beyond a float, lone halves of
    surrogate pairs, and more than 64 levels."""
    if _depth(text) > MAX_DEPTH:
        raise ValueError(f"more than {MAX_DEPTH} levels")
    try:
        value: Value = _decoder()(text)
    except RecursionError:
        raise ValueError(f"more than {MAX_DEPTH} levels") from None
    if "\\u" in text:
        try:
            to_json(value).encode()
        except UnicodeEncodeError:
            raise ValueError("a text holds half of a surrogate pair") from None
    return value


def plain(value: object, *, mends: bool = False) -> Value:
    """A value that somebody's own code gave, as a value of the language: a copy, in which tuples are lists and keys are
    texts. Raises `ValueError` for what is no JSON, and where `read_json` does; where it `mends`, halves of surrogate
    pairs become `?` instead."""
    if value is None or isinstance(value, bool):
        return value
    from json import dumps

    try:
        text = dumps(value, allow_nan=False, ensure_ascii=not mends)
    except RecursionError:
        raise ValueError(f"more than {MAX_DEPTH} levels") from None
    except TypeError as trouble:
        raise ValueError(str(trouble)) from None
    return read_json(text.encode("utf-8", "replace").decode() if mends else text)


def depth(value: Value) -> int:
    """Levels of lists and objects in a value; never recurses."""
    deepest, level = 0, [value]
    while True:
        nested = [v for v in level if isinstance(v, list | dict)]
        if not nested:
            return deepest
        deepest += 1
        level = [inner for v in nested for inner in (v.values() if isinstance(v, dict) else v)]


_MAX_DIGITS = 4000
_encode: Callable[[Value], str] | None = None
_decode: Callable[[str], Value] | None = None


def _huge(text: str) -> float:
    """A whole number of more digits than Python turns into an int: as a float, which orders it rightly."""
    return float(text)


def _comparable(value: Value) -> str:
    if isinstance(value, str):
        return value
    return "null" if value is None else to_json(value)


def _encoder() -> Callable[[Value], str]:
    global _encode
    if _encode is None:
        from .encoder import new_encoder

        _encode = new_encoder(allow_nan=False)
    return _encode


def _deep_json(value: Value) -> str:
    """The same without recursion, for values that nest deeper than Python's stack allows. Raises `ValueError` for one
    that holds itself: it would never end."""
    encode = _encoder()
    made: list[str] = []
    open_ones: set[int] = set()
    # What is still to be written: text as it is (True), values (False), and the ends of lists and objects (None).
    waiting: list[tuple[bool | None, Value]] = [(False, value)]
    while waiting:
        written, one = waiting.pop()
        if written:
            made.append(str(one))
        elif written is None:
            open_ones.discard(id(one))
        elif isinstance(one, list | dict):
            if id(one) in open_ones:
                raise ValueError("a value holds itself")
            open_ones.add(id(one))
            waiting += [*_opened(one, encode), (None, one)][::-1]
        else:
            made.append(encode(one))
    return "".join(made)


def _opened(one: list[Value] | dict[str, Value], encode: Callable[[Value], str]) -> list[tuple[bool | None, Value]]:
    """A list or an object as the pieces that it is written in."""
    pieces: list[tuple[bool | None, Value]] = []
    if isinstance(one, list):
        for item in one:
            pieces += [(True, ","), (False, item)]
        return [(True, "["), *pieces[1:], (True, "]")]
    for key, item in one.items():
        pieces += [(True, ","), (True, encode(key) + ":"), (False, item)]
    return [(True, "{"), *pieces[1:], (True, "}")]


def _decoder() -> Callable[[str], Value]:
    global _decode
    if _decode is None:
        from json import JSONDecoder

        _decode = JSONDecoder(
            object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole
        ).decode
    return _decode


def _unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is repeated")
    return made


def _no_constant(name: str) -> Value:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


def _whole(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError("a number is too large")
    return int(text)


def _depth(text: str) -> int:
    """How deep brackets nest in JSON text, strings left out."""
    deepest = now = 0
    for found in _BRACKETS.finditer(text):
        mark = found[0]
        if mark in "[{":
            now += 1
            if now > deepest:
                deepest = now
        elif mark in "]}":
            now -= 1
    return deepest


_BRACKETS = re.compile(r'[\[\]{}]|"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
