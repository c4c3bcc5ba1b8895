"""No answer of at most so many tokens costs more than its bound (plan.md "Cost")."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from halo_lang.boundary.call import Usage
from halo_lang.catalog.prices import Price, Step, bound, cost, lookup, price_of_answer

RATE = st.integers(0, 10**11)


@st.composite
def steps(draw: st.DrawFn) -> Price:
    starts = [0, *sorted(draw(st.sets(st.integers(1, 10_000), max_size=3)))]
    made = []
    for above in starts:
        made.append(Step(above, draw(RATE), draw(RATE), draw(RATE), draw(RATE)))
    return Price(tuple(made))


@given(steps(), st.data())
def test_a_cost_is_within_its_bound(price: Price, data: st.DataObject) -> None:
    into, out = data.draw(st.integers(0, 20_000)), data.draw(st.integers(0, 20_000))
    used = data.draw(st.integers(0, into))
    usage = Usage(
        used, data.draw(st.integers(0, out)), data.draw(st.integers(0, used)), data.draw(st.integers(0, used))
    )
    assert 0 <= cost(price, usage) <= bound(price, into, out)


@given(
    st.sampled_from(
        ["openai/gpt-4o", "openai/gpt-6-sol", "google/gemini-4-argon", "xai/grok-4.7", "deepseek/deepseek-chat"]
    ),
    st.sampled_from(["2020-01-01", "2026-11-30", "2026-12-01", "2030-01-01"]),
    st.integers(0, 400_000),
)
def test_an_answer_by_the_asked_name_is_within_the_plan(model: str, on: str, tokens: int) -> None:
    plan, account = lookup(model, on), price_of_answer(model, "", on)
    assert plan is not None
    assert account is not None
    assert cost(account, Usage(tokens, 100, 0, tokens)) <= bound(plan, tokens, 100)


@given(st.text())
def test_any_text_has_a_price_or_none(model: str) -> None:
    price = lookup(model, "2026-11-30")
    assert price is None or price.steps
