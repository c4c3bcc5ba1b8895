"""What models cost (tools.md §4, plan.md "Cost", runs.md §6).

Owns the reading of the bundled price table `prices.txt` (made by `scripts/make_prices.py`) and of `[prices]` in
`halo.toml`, and the arithmetic on prices. Pure but for reading that one file: the day is passed in, nothing is ever
fetched. The table is one text that is searched, not parsed, so that a plan pays for the models it names alone.

Prices are whole nano-dollars for a million tokens, amounts whole nano-dollars, rounded up: what is said of a bound
never errs downward.
"""

from __future__ import annotations

import re

from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Protocol

    class Tokens(Protocol):
        """Tokens of an answered request. `input` counts all that was sent; `cached` is the part of it that was read
        from a cache, `written` the part that was written to one."""

        @property
        def input(self) -> int: ...
        @property
        def output(self) -> int: ...
        @property
        def cached(self) -> int: ...
        @property
        def written(self) -> int: ...


NANO = 1_000_000_000
"""Nano-dollars in a dollar."""

_MILLION = 1_000_000
_MAX_DOLLARS = 1_000_000


class Step(Record):
    """What the tokens of a request cost whose prompt has more than `above` tokens, in nano-dollars a million."""

    above: int
    input: int
    output: int
    cached: int
    written: int


class Price(Record):
    """A model's price. `steps` stand in the order of `above`, the first at 0; the last one that a prompt passes holds
    for all the tokens of its request."""

    steps: tuple[Step, ...]

    @property
    def input(self) -> int:
        """The base price of input, in nano-dollars a million tokens."""
        return self.steps[0].input

    @property
    def output(self) -> int:
        """The base price of output, in nano-dollars a million tokens."""
        return self.steps[0].output


FREE = Price((Step(0, 0, 0, 0, 0),))


def lookup(model: str, on: str, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The price that bounds what requests to `provider/model` cost from the day `on` (`2026-11-30`), or None.

    The dearest of today's price and all that are announced, of all snapshots where the name stands for several, at
    any hour of the day (plan.md "Cost"). `overrides` are those of `halo.toml`, by `provider/model`; one of a snapshot
    counts too, for it may be the one that answers.
    """
    own = [price for name, price in overrides.items() if _may_answer(name, model)] if overrides else []
    if overrides and model in overrides:
        return own[0] if len(own) == 1 else _dearest(own)
    periods = _periods(model)
    if periods is None:
        return None
    held = [p for at, (_, p) in enumerate(periods) if at + 1 == len(periods) or periods[at + 1][0] > on] + own
    return held[0] if len(held) == 1 else _dearest(held)


def _may_answer(name: str, model: str) -> bool:
    """Whether a name is the model's or that of a dated snapshot of it."""
    return name == model or (
        name.startswith(f"{model}-") and re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", name[len(model) + 1 :]) is not None
    )


def price_of_answer(model: str, answered: str, on: str, overrides: Mapping[str, Price] | None = None) -> Price | None:
    """The price of an answer on the day `on`, for a run's own account (runs.md §6), or None.

    `model` is the `provider/model` that was asked, `answered` the name that the answer gives, the snapshot as a rule.
    A name that the table does not know is priced as what was asked. An override of either comes first. One that is no
    snapshot of what was asked never makes it cheaper: a server could name any.
    """
    provider, _, _ = model.partition("/")
    snapshot = f"{provider}/{answered}" if answered else model
    if not _may_answer(snapshot, model):
        named, asked = (price_of_answer(name, "", on, overrides) for name in (snapshot, model))
        both = [price for price in (named, asked) if price is not None]
        return _dearest(both) if len(both) == 2 else next(iter(both), None)
    if overrides:
        for name in (snapshot, model):
            if name in overrides:
                return overrides[name]
    periods = _periods(snapshot) or _periods(model)
    if periods is None:
        return None
    return next((price for start, price in reversed(periods) if start <= on), periods[0][1])


def bound(price: Price, input_tokens: int, output_tokens: int) -> int:
    """The most that a request can cost, in nano-dollars: its tokens at the dearest step that a prompt of at most
    `input_tokens` can reach, with nothing saved by a cache (plan.md "Cost")."""
    reached = [s for s in price.steps if s.above < input_tokens] or [price.steps[0]]
    into = max(max(s.input, s.cached, s.written) for s in reached)
    out = max(s.output for s in reached)
    return _up(into * input_tokens + out * output_tokens)


def cost(price: Price, usage: Tokens) -> int:
    """What an answered request cost, in nano-dollars: by its prompt's length, cached tokens at their own price."""
    step = next((s for s in reversed(price.steps) if s.above < usage.input), price.steps[0])
    cached = min(usage.cached, usage.input)
    written = min(usage.written, usage.input - cached)
    plain = usage.input - cached - written
    amount = step.input * plain + step.cached * cached + step.written * written + step.output * usage.output
    return _up(amount)


def prices_date() -> str:
    """The day of the bundled table, as `2026-11-10`."""
    return _head("date ")


def prices_source() -> str:
    """What the bundled table was made from, and its version."""
    return _head("source ")


def table_digest() -> str:
    """The SHA-256 of the bundled table: two that differ price differently."""
    from hashlib import sha256

    return sha256(_table().encode()).hexdigest()


def read_overrides(section: object) -> tuple[dict[str, Price], list[str]]:
    """The prices in the section `[prices]` of `halo.toml`, and what is wrong with it, each naming its key.

    A key is `provider/model`, its value `{input = 2.5, output = 10, cached = 1.25}` in US dollars a million tokens;
    `cached` may be left out (as input). What has an error is left out.
    """
    made: dict[str, Price] = {}
    problems: list[str] = []
    if not isinstance(section, dict):
        return made, ["[prices] must be a table"]
    for model, entry in section.items():
        key = f'[prices] "{model}"'
        provider, slash, name = str(model).partition("/")
        if not (provider and slash and name):
            problems.append(f'{key}: the name of a model is wanted, as "provider/model"')
        elif not isinstance(entry, dict):
            problems.append(f"{key}: must be {_WANTED}")
        else:
            found = [_rate_problem(entry, name) for name in ("input", "output", "cached")]
            found += [f"has an unknown key `{n}`" for n in entry if n not in ("input", "output", "cached")]
            wrong = [f"{key}: {p}; wanted is {_WANTED}" for p in found if p]
            problems += wrong
            if not wrong:
                into, out = _nano(entry["input"]), _nano(entry["output"])
                cached = _nano(entry["cached"]) if "cached" in entry else into
                made[str(model)] = Price((Step(0, into, out, cached, into),))
    return made, problems


_WANTED = "{input = 2.5, output = 10} and, if there is one, cached = 1.25, in US dollars a million tokens"


def _rate_problem(entry: dict[str, object], name: str) -> str | None:
    if name not in entry:
        return None if name == "cached" else f"`{name}` is missing"
    value = entry[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"`{name}` must be a number"
    return None if 0 <= value <= _MAX_DOLLARS else f"`{name}` must be between 0 and {_MAX_DOLLARS}"


def _nano(dollars: int | float) -> int:
    """Dollars as nano-dollars. A float is taken as the number that it is written as, rounded up."""
    if isinstance(dollars, int):
        return dollars * NANO
    near = int(f"{dollars:.9f}".replace(".", ""))
    return near if near / NANO >= dollars else near + 1


def _up(nano_millions: int) -> int:
    return -(-nano_millions // _MILLION)


# The table ---------------------------------------------------------------------------------------------------------

_text: str | None = None
_NO_PRICE = "-"
_PERIODS: dict[str, tuple[tuple[str, Price], ...] | None] = {}
_MAX_KEPT = 1000


def _table() -> str:
    """The table, with a line end before its first line."""
    global _text
    if _text is None:
        with open(__file__.removesuffix("prices.py") + "prices.txt", "rb") as file:
            _text = "\n" + file.read().decode("ascii")
    return _text


def _head(name: str) -> str:
    return _after(f"\n{name}") or ""


def _after(key: str) -> str | None:
    """The rest of the first line that begins so."""
    table = _table()
    at = table.find(key)
    if at < 0:
        return None
    at += len(key)
    return table[at : table.index("\n", at)]


def _periods(model: str) -> tuple[tuple[str, Price], ...] | None:
    """The prices of a model by the day from which each holds, the first `""`."""
    if model not in _PERIODS:
        if len(_PERIODS) >= _MAX_KEPT:
            _PERIODS.clear()
        _PERIODS[model] = _find(model)
    return _PERIODS[model]


def _find(model: str) -> tuple[tuple[str, Price], ...] | None:
    provider, _, name = model.partition("/")
    if provider == "embedded":
        return (("", FREE),)
    if not provider.isalnum() or not name or not name.isprintable() or " " in name:
        return None
    name = name.lower()
    for offering in (provider, *(_after(f"\n{provider} > ") or "").split()):
        found = _after(f"\n{offering}/{name} ") or _matching(offering, name)
        if found:
            return None if found == _NO_PRICE else _read(found)
    return None


def _matching(provider: str, name: str) -> str | None:
    """The price of the first pattern of a provider that a name fits."""
    table, key = _table(), f"\n{provider} =~ "
    at = table.find(key)
    while at >= 0:
        end = table.index("\n", at + 1)
        pattern, _, price = table[at + len(key) : end].partition(" ")
        if _fits(name, pattern):
            return price
        at = end if table.startswith(key, end) else -1
    return None


def _fits(name: str, pattern: str) -> bool:
    """Whether a name fits `x*`, `*x`, `*x*` or `x^r`, r being a regular expression for what comes after x."""
    start, caret, rest = pattern.partition("^")
    if caret:
        return name.startswith(start) and re.match(rest, name[len(start) :]) is not None
    if pattern[0] != "*":
        return name.startswith(pattern[:-1])
    return pattern[1:-1] in name if pattern[-1] == "*" else name.endswith(pattern[1:])


def _read(text: str) -> tuple[tuple[str, Price], ...]:
    """A price as the table writes it: `2 10 0.1 >272000 4 15 0.2 @2027-01-01 …`."""
    periods: list[tuple[str, list[tuple[int, list[str]]]]] = [("", [(0, [])])]
    for word in text.split(" "):
        if word[0] == "@":
            periods.append((word[1:], [(0, [])]))
        elif word[0] == ">":
            periods[-1][1].append((int(word[1:]), []))
        else:
            periods[-1][1][-1][1].append(word)
    return tuple((day, Price(tuple(_step(above, words) for above, words in steps))) for day, steps in periods)


def _step(above: int, words: list[str]) -> Step:
    into, out = _amount(words[0]), _amount(words[1])
    cached = _amount(words[2]) if len(words) > 2 and words[2] != _NO_PRICE else into
    written = _amount(words[3]) if len(words) > 3 else into
    return Step(above, into, out, cached, written)


def _amount(text: str) -> int:
    whole, _, part = text.partition(".")
    return int(whole) * NANO + int(part.ljust(9, "0")) if part else int(whole) * NANO


def _dearest(prices: list[Price]) -> Price:
    starts = sorted({s.above for p in prices for s in p.steps})
    return Price(tuple(_highest(above, [_step_at(p, above) for p in prices]) for above in starts))


def _step_at(price: Price, above: int) -> Step:
    return next(s for s in reversed(price.steps) if s.above <= above)


def _highest(above: int, steps: list[Step]) -> Step:
    return Step(
        above,
        max(s.input for s in steps),
        max(s.output for s in steps),
        max(s.cached for s in steps),
        max(s.written for s in steps),
    )
