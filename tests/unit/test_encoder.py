"""The quick encoder of JSON gives what the standard library's gives, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.language.encoder import new_encoder

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_it_gives_what_the_library_gives(value: Any, sort_keys: bool) -> None:
    plain = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)
    assert new_encoder(sort_keys=sort_keys)(value) == plain


@given(VALUES, st.booleans())
def test_it_does_so_without_the_librarys_c_part(value: Any, sort_keys: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json.encoder, "c_make_encoder", None)
        made = new_encoder(sort_keys=sort_keys)
        text = made(value)
    assert text == new_encoder(sort_keys=sort_keys)(value)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": float("-inf")}])
def test_what_is_no_json_is_refused_where_it_may_not_be(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        new_encoder(allow_nan=False)(value)


def test_a_value_that_holds_itself_ends_in_an_error() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(RecursionError):
        new_encoder()(value)


def test_what_cannot_be_json_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        new_encoder()(object())
