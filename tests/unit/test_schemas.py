"""Arguments against schemas that Halo did not write: all of JSON Schema, and nothing in one runs away."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.catalog.describe import Method, arguments_error
from halo_lang.catalog.schemas import MAX_DEPTH, nests_deeper, schema_trouble


def trouble(schema: dict[str, Any], **args: Any) -> str | None:
    return arguments_error(Method("m", "", {"type": "object", "additionalProperties": False, **schema}, None), args)


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("property_", "good", "bad", "said"),
    [
        ({"type": "string", "maxLength": 3}, "abc", "abcd", "the argument `a` "),
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc", "A", "the argument `a` "),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, 1, "the argument `a` "),
        ({"const": 1}, 1, 2, "the argument `a` "),
        (
            {"type": "array", "items": {"type": "object", "required": ["b"]}},
            [{"b": 1}],
            [{}],
            "the argument `a` at [0] ",
        ),
        ({"type": "object", "properties": {"b": {"type": "integer"}}}, {"b": 1}, {"b": "x"}, "the argument `a` at .b "),
        ({"type": "string", "minLength": 1}, "x", 5, "the argument `a` must be string"),
        ({"not": {}}, None, 1, "the argument `a` "),
    ],
)
def test_what_a_schema_says_holds(property_: dict[str, Any], good: Any, bad: Any, said: str) -> None:
    schema = {"properties": {"a": property_}}
    if good is not None or "anyOf" in property_:
        assert trouble(schema, a=good) is None
    found = trouble(schema, a=bad)
    assert found is not None
    assert found.startswith(said)


def test_what_the_arguments_are_together_holds() -> None:
    schema = {"properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert trouble(schema, a=1) is None
    assert (trouble(schema, a=1, b=2) or "").startswith("the arguments: ")


def test_true_and_false_are_schemas() -> None:
    schema = {"properties": {"a": True, "b": False, "c": {"type": "array", "items": True}}}
    assert trouble(schema, a=1, c=[1]) is None
    assert "`b`" in (trouble(schema, b=1) or "")


def test_a_schema_that_nothing_can_be_checked_by_refuses_nothing() -> None:
    assert trouble({"properties": {"a": {"pattern": "("}}}, a="x") is None
    assert trouble({"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, a="x") is None


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "strin"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
        {"properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"properties": {"a": {"$ref": "#/none"}}},
        {"items": nested(MAX_DEPTH + 1)},
    ],
)
def test_such_a_schema_is_known(schema: dict[str, Any]) -> None:
    assert schema_trouble(schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"properties": {"a": {"type": "string", "pattern": "^(a|a)*$"}}},
        {
            "properties": {"a": {"$ref": "#/$defs/d0"}},
            "$defs": {f"d{n}": {"oneOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)} | {"d60": False},
        },
        {
            "properties": {"a": {"$ref": "#/$defs/d0"}},
            "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(900)} | {"d900": False},
        },
        {
            "properties": {"a": {"$ref": "#0"}},
            "$defs": {
                **{f"d{n}": {"$anchor": str(n), "oneOf": [{"$ref": f"#{n + 1}"}] * 2} for n in range(60)},
                "d60": {"$anchor": "60"},
            },
        },
    ],
)
def test_no_schema_runs_away(schema: dict[str, Any]) -> None:
    trouble({"additionalProperties": True, **schema}, a="a" * 10_000 + "!")


def test_alternatives_that_come_back_to_themselves_do_not_double_for_ever() -> None:
    one = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    schema = {"anyOf": [one, {**one, "required": ["b"]}], "properties": {"a": {"$ref": "#"}}, "minProperties": 1}
    assert trouble(schema) is not None
    assert trouble(schema, a={"a": {"a": {}}}) is not None
    value: Any = {}
    for _ in range(50):
        value = {"a": value}
    assert trouble(schema, a=value) is None, "left to whoever is called"


def test_a_tree_is_checked_to_its_leaves() -> None:
    node = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "inner": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
    }
    schema = {"properties": {"t": {"$ref": "#/$defs/t"}}, "$defs": {"t": node}}
    good: Any = {"n": 1}
    bad: Any = {"n": "x"}
    for _ in range(20):
        good, bad = {"inner": [good]}, {"inner": [bad]}
    assert trouble(schema, t=good) is None
    assert "`t`" in (trouble(schema, t=bad) or "")


def test_values_that_nest_too_deep_are_refused() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/l"}}, "$defs": {"l": {"items": {"$ref": "#/$defs/l"}}}}
    assert trouble(schema, a=nested(MAX_DEPTH - 1)) is None
    assert "nest more than" in (trouble(schema, a=nested(100_000)) or "")
    assert nests_deeper(nested(3), 2)
    assert not nests_deeper(nested(3), 3)


def test_halos_own_schemas_need_no_validator() -> None:
    script = (
        "import sys\nfrom halo_lang.catalog.builtin import PROVIDERS\n"
        "from halo_lang.catalog.describe import arguments_error\n"
        "for p in PROVIDERS.values():\n"
        "    for m in p.describe({'write': True}) or ():\n"
        "        arguments_error(m, dict.fromkeys(m.required(), 'x'))\n"
        "print('jsonschema_rs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert PROVIDERS
