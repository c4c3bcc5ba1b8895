"""Expressions: what they give, and that they change nothing (language.md §3 to §5)."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.language.values import to_json
from halo_lang.runtime.failure import RunFailure
from halo_lang.runtime.sizes import Sizes
from runs import checked, pipeline, run

VALUE = {
    "o": {"k": [1, "x", None]},
    "n": None,
    "t": 'a "b" {{x.f}} \\{{',
    "f": False,
    "z": 1.5,
    "l": ["first", "second"],
    "e": "",
}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("{{x.o}}", '{"k":[1,"x",null]}'),
        ("[{{ x.n }}]", "[]"),
        ("[{{x.gone.on}}]", "[]"),
        ("{{x.t}}", 'a "b" {{x.f}} \\{{'),
        ("{{x.f}}{{x.z}}", "false1.5"),
        ("{{x.l[1]}} {{x.l.0}} [{{x.l[2]}}]", "second first []"),
        ("\\\\{{x.t}}", "{{x.t}}"),
        ("{{x.e}}", ""),
        ("{{context.current.z}}", "1.5"),
        ("{ {x.z} }", "{ {x.z} }"),
    ],
)
def test_templates(written: str, text: str) -> None:
    show = pipeline(params="v: Any", source="v", name="Show")
    ended = run(show + pipeline(f'|> Show("{written}")'.replace("\\\\{{", "\\{{")), args={"x": VALUE})
    assert ended.output == text


def test_a_key_of_any_text_is_read_by_brackets() -> None:
    ended = run(pipeline(source='[x["a b"], x["0"], x.list["0"]]'), args={"x": {"a b": 1, "0": 2, "list": [3]}})
    assert ended.output == [1, 2, None]


def test_and_and_or_give_true_or_false_and_stop_at_the_side_that_decides() -> None:
    source = "[x.t && x.z, x.n || x.e, x.n && x.gone.on, !x.n, !(x.t == 1), x.z > 1 && x.z < 2]"
    assert run(pipeline(source=source), args={"x": VALUE}).output == [True, False, False, True, True, True]


def test_nothing_that_is_read_is_changed() -> None:
    value, before = copy.deepcopy(VALUE), copy.deepcopy(VALUE)
    text = pipeline(params="v: Any", source="[v, v.l, {k: v}]", name="In")
    text += pipeline("|> In(x) as x1", "|* each(i in x.l) => In(i)", "~> listen(x1.k)", "|> In(context)")
    run(text, args={"x": value})
    assert value == before


def test_a_value_that_is_given_on_is_not_changed_by_what_is_stored_later() -> None:
    first = {"a": 1}
    ended = run(pipeline("~> listen(E)", "|> A.go(context.data.E)", "~> listen(E.a)"), {"E": first, "E.a": 2})
    assert (first, ended.data["E"]) == ({"a": 1}, {"a": 2})


def test_the_order_of_names() -> None:
    """The item of the `each`, then what an `as` bound, then a parameter."""
    text = pipeline("|> A.go() as y", "|* each(y in [1]) => Show(y)", "|> Show(y)", "|> Show(x)")
    ended = run(pipeline(params="v: Any", source="v", name="Show") + text)
    assert [ended.data["Show"], ended.output, ended.data["y"]] == ["in", "in", "A.go"]


def test_a_name_of_a_later_stage_in_a_loop_is_null_at_first() -> None:
    text = pipeline("|> A.go(later)", "|> B.go() as later", '|<> loop(A, "context.data.loop.iteration != 1", max: 2)')
    ended = run(checked(text))
    assert [text in ended.said(at) for at, text in ((0, "B.go"), (2, "B.go"))] == [False, True]


def test_a_text_that_grows_past_all_use_fails_before_it_is_made():
    grows = checked(pipeline("|> P()", source='"{{x}}{{x}}{{x}}{{x}}"'))
    ended = run(grows, args={"x": "a" * 1024})
    assert (ended.status, ended.code) == ("failed", "ARGUMENT_TYPE")


@pytest.mark.parametrize(
    "stages",
    [
        ["|> P([x, x, x, x])"],
        ["|> P({a: x, b: {c: x, d: [x]}, e: x})"],
        ["|* { I(x), I(x), I(x), I(x) }", "|> P()"],
        ["|* each(i in [1, 2, 3, 4]) => I(x)", "|> P()"],
        ["|> I(x) as a", "|> I(x) as b", "|> I(x) as c", "|> P(context.data)"],
        ["|> P([context, context, context])"],
    ],
)
def test_a_value_that_would_be_too_long_as_json_fails_before_it_is_made(stages):
    text = pipeline(params="v: Any", source="v", name="I") + pipeline(*stages)
    ended = run(checked(text), args={"x": "a" * 1024})
    assert (ended.status, ended.code) == ("failed", "ARGUMENT_TYPE")


def test_a_long_value_may_stand_in_many_others_and_is_counted_once():
    long = ["a" * 100] * 10_000
    text = pipeline("|* each(i in x) => Pair(i, x)", source="x") + pipeline(
        "|> System.Log()", params="i: Any, all: Any", source="[i, all[0]]", name="Pair"
    )
    ended = run(checked(text, agents=False), args={"x": long})
    assert (ended.status, len(ended.output)) == ("completed", 10_000)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_what_is_counted_is_about_what_is_written(value):
    holder = [value, value]
    sizes, written = Sizes(), len(to_json(holder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("halo_lang.runtime.sizes.MAX_TEXT", written * 2 + 20)
        assert sizes.checked(holder) is holder
        patch.setattr("halo_lang.runtime.sizes.MAX_TEXT", written // 7 - 1)
        with pytest.raises(RunFailure):
            sizes.checked(holder)
