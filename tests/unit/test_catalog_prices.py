"""Prices against what the providers publish, and the arithmetic on them (plan.md "Cost", tools.md §4)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from halo_lang.boundary.call import Usage
from halo_lang.catalog import prices
from halo_lang.catalog.prices import FREE, NANO, Price, Step, bound, cost, lookup, price_of_answer, read_overrides

TODAY = "2026-11-30"


def dollars(model: str, on: str = TODAY) -> tuple[float, float] | None:
    price = lookup(model, on)
    return None if price is None else (price.input / NANO, price.output / NANO)


@pytest.mark.parametrize(
    ("model", "published"),
    [
        ("openai/gpt-4o", (5, 15)),  # its dearest snapshot, of 2024-05-13
        ("openai/gpt-4o-2024-08-06", (2.5, 10)),
        ("openai/gpt-4o-2024-05-13", (5, 15)),
        ("openai/gpt-4o-mini", (0.15, 0.60)),
        ("openai/o3", (2, 8)),
        ("anthropic/claude-sonnet-4-5", (3, 15)),
        ("anthropic/claude-sonnet-4-5-20250929", (3, 15)),
        ("anthropic/claude-haiku-4-5", (1, 5)),
        ("azure/gpt-4o-mini", (0.15, 0.60)),
        ("google/claude-sonnet-4-6", (3, 15)),
        ("bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0", (3, 15)),
        ("deepseek/deepseek-chat", (0.27, 1.10)),  # in the dear hours of the day
        ("OPENAI/gpt-4o", None),
        ("openai/GPT-4o-Mini", (0.15, 0.60)),
    ],
)
def test_published_prices(model: str, published: tuple[float, float] | None) -> None:
    assert dollars(model) == published


@pytest.mark.parametrize(
    "model",
    [
        "ollama/some-model-of-mine",
        "local/scripted",
        "openai/text-embedding-3-small",
        "openai/gpt-4o ",
        "openai/",
        "openai",
        "",
        "openai/gpt-4o\nopenai/x",
        "# The/prices",
        "date/2026",
        "openai =~/x",
        "azure >/openai",
    ],
)
def test_what_has_no_price(model: str) -> None:
    assert lookup(model, TODAY) is None


def test_embedded_models_cost_nothing() -> None:
    assert lookup("embedded/smollm2", TODAY) == FREE
    assert bound(FREE, 10**9, 10**9) == 0


def test_the_seeds_example_costs_what_the_seed_says() -> None:
    price = lookup("openai/gpt-4o", TODAY)
    assert price is not None
    # 8 + 1 requests, each resending the conversation grown by a full reply, with the allowance of 2,000 tokens.
    total = sum(bound(price, 2000 + at * 4096, 4096) for at in range(9))
    assert total == 1_380_240_000


def test_a_price_to_come_counts_and_a_past_one_does_not() -> None:
    assert dollars("google/gemini-4-argon", "2026-11-30") == (4, 20)
    assert dollars("google/gemini-4-argon", "2027-06-01") == (4, 20)
    today = price_of_answer("google/gemini-4-argon", "gemini-4-argon", "2026-11-30")
    later = price_of_answer("google/gemini-4-argon", "gemini-4-argon", "2026-12-01")
    assert today is not None
    assert later is not None
    assert (today.input, later.input) == (2 * NANO, 4 * NANO)


def test_a_step_counts_from_the_prompt_that_can_reach_it() -> None:
    price = lookup("xai/grok-4.7", TODAY)
    assert price is not None
    assert bound(price, 199_999, 0) == 199_999 * 2_000
    assert bound(price, 200_000, 0) == 200_000 * 4_000


def test_no_step_of_claude_sonnet_4_5_is_left() -> None:
    price = lookup("anthropic/claude-sonnet-4-5", TODAY)
    assert price is not None
    assert len(price.steps) == 1


def test_a_provider_that_writes_its_cache_unasked_is_bound_at_that_price() -> None:
    price = lookup("openai/gpt-6-sol", TODAY)
    assert price is not None
    assert price.input == 2 * NANO
    assert bound(price, 1_000_000 // 10, 0) == 250_000_000
    assert cost(price, Usage(input=1000, written=1000)) == 2_500_000
    assert cost(price, Usage(input=1000)) == 2_000_000


def test_the_account_uses_the_snapshot_that_answered() -> None:
    price = price_of_answer("openai/gpt-4o", "gpt-4o-2024-08-06", TODAY)
    assert price is not None
    assert (price.input, price.output) == (2_500_000_000, 10_000_000_000)
    assert cost(price, Usage(input=1000, output=20, cached=400)) == 600 * 2500 + 400 * 1250 + 20 * 10_000


def test_an_answer_with_an_unknown_name_is_priced_as_what_was_asked() -> None:
    assert price_of_answer("openai/gpt-4o-mini", "no-such-name", TODAY) == lookup("openai/gpt-4o-mini", TODAY)
    assert price_of_answer("openai/gpt-4o-mini", "", TODAY) == lookup("openai/gpt-4o-mini", TODAY)
    assert price_of_answer("local/scripted", "gpt-4o", TODAY) is None


def test_amounts_are_rounded_up() -> None:
    price = Price((Step(0, 1, 1, 1, 1),))
    assert bound(price, 1, 0) == 1
    assert cost(price, Usage(input=1)) == 1
    assert cost(price, Usage()) == 0


def test_an_impossible_usage_is_not_paid_back() -> None:
    price = Price((Step(0, 10_000_000, 0, 1_000_000, 20_000_000),))
    assert cost(price, Usage(input=5, cached=9, written=9)) == 5


def test_overrides_are_read_and_win() -> None:
    section = tomllib.loads(
        '"openai/gpt-4o" = {input = 2.5, output = 10, cached = 1.25}\n"local/mine" = {input = 0.1, output = 0.2}'
    )
    made, problems = read_overrides(section)
    assert problems == []
    assert made["openai/gpt-4o"] == Price((Step(0, 2_500_000_000, 10 * NANO, 1_250_000_000, 2_500_000_000),))
    assert made["local/mine"].input == 100_000_000
    assert lookup("openai/gpt-4o", TODAY, made) is made["openai/gpt-4o"]
    assert lookup("local/mine", TODAY, made) is made["local/mine"]
    assert price_of_answer("openai/gpt-4o", "gpt-4o-2024-05-13", TODAY, made) is made["openai/gpt-4o"]
    assert lookup("openai/gpt-4o-mini", TODAY, made) == lookup("openai/gpt-4o-mini", TODAY)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('"gpt-4o" = {input = 1, output = 2}', '"gpt-4o"'),
        ('"openai/" = {input = 1, output = 2}', '"openai/"'),
        ('"openai/x" = 2.5', '"openai/x"'),
        ('"openai/x" = {input = 1}', "`output`"),
        ('"openai/x" = {input = "1", output = 2}', "`input`"),
        ('"openai/x" = {input = true, output = 2}', "`input`"),
        ('"openai/x" = {input = -1, output = 2}', "`input`"),
        ('"openai/x" = {input = nan, output = 2}', "`input`"),
        ('"openai/x" = {input = inf, output = 2}', "`input`"),
        ('"openai/x" = {input = 1, output = 2, cache = 1}', "`cache`"),
    ],
)
def test_an_override_with_an_error_names_its_key_and_the_form(text: str, named: str) -> None:
    made, problems = read_overrides(tomllib.loads(text))
    assert made == {}
    assert len(problems) == 1
    assert named in problems[0]
    assert "[prices]" in problems[0]


def test_a_section_that_is_no_table() -> None:
    assert read_overrides([1])[1] == ["[prices] must be a table"]


def test_the_table_says_when_and_what_it_was_made_from() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", prices.prices_date())
    lock = (Path(__file__).parents[2] / "uv.lock").read_text(encoding="utf-8")
    locked = next(p for p in tomllib.loads(lock)["package"] if p["name"] == "genai-prices")
    assert prices.prices_source() == f"genai-prices {locked['version']}"


def test_every_line_of_the_table_can_be_read() -> None:
    names = set()
    for line in prices._table().split("\n"):
        if not line or line[0] == "#" or line.startswith(("date ", "source ")) or " > " in line:
            continue
        head, pattern, rest = line.partition(" =~ ")
        name, _, price = (rest if pattern else line).partition(" ")
        assert name
        assert pattern or name not in names, f"{name} stands twice"
        names.add(head if pattern else name)
        if price != "-":
            read = prices._read(price)
            for _, one in read:
                starts = [s.above for s in one.steps]
                assert starts[0] == 0
                assert starts == sorted(set(starts))
                assert all(
                    0 <= rate <= 1000 * NANO for s in one.steps for rate in (s.input, s.output, s.cached, s.written)
                )
    assert len(names) > 1000


def test_a_price_of_ones_own_for_a_snapshot_bounds_the_name_that_stands_for_it() -> None:
    """An answer may name the snapshot and is then priced by it, so that what was reserved must reach that far."""
    dear, cheap = Price((Step(0, 90, 900, 90, 90),)), Price((Step(0, 1, 1, 1, 1),))
    for dated in ("gpt-4o-2024-11-20", "gpt-4o-20241120"):
        own = {f"openai/{dated}": Price((Step(0, 90 * NANO, 900 * NANO, 90 * NANO, 90 * NANO),))}
        asked, answered = lookup("openai/gpt-4o", "2026-11-30", own), price_of_answer("openai/gpt-4o", dated, "x", own)
        assert asked is not None
        assert answered is not None
        assert bound(asked, 100, 100) >= bound(answered, 100, 100)
    both = {"openai/gpt-4o": cheap, "openai/gpt-4o-2024-11-20": dear, "openai/gpt-4o-mini": dear}
    assert lookup("openai/gpt-4o", "2026-11-30", both) == dear
    assert lookup("openai/gpt-4o-2024-11-20", "2026-11-30", both) == dear
    assert lookup("openai/gpt-4", "2026-11-30", {"openai/gpt-4-mini": dear}) == lookup("openai/gpt-4", "2026-11-30")
