"""Makes Halo's price table from the data of the package genai-prices (tools.md §4, plan.md "Cost").

    uv run --group prices python scripts/make_prices.py [--check]

Writes `src/halo_lang/catalog/prices.txt`; with `--check` it only says whether that file is what it would write. Uses
the data inside the installed package, never the network; the same version gives the same bytes. The table's date is
the day on which that version was published, as the lock file has it. What a line means is said in the table's head
and in `src/halo_lang/catalog/prices.py`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import ROUND_CEILING, Decimal
from importlib.metadata import version
from pathlib import Path

from genai_prices import data_snapshot, types

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/halo_lang/catalog/prices.txt"

# Halo's names of providers, by the data's. The last is in the table only for what `azure` offers of it.
PROVIDERS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "azure": "azure",
    "aws": "bedrock",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "google": "google",
    "groq": "groq",
    "mistral": "mistral",
    "openrouter": "openrouter",
    "together": "together",
    "x-ai": "xai",
    "moonshotai": "moonshotai",
}

# Models whose steps by prompt length are history: the data keeps them for old bills, and says so in a comment. Longer
# prompts are refused since 2026-04-30.
WITHOUT_STEPS = {("anthropic", "claude-sonnet-4-5")}

# Names that stand for several snapshots: `NAME` and `NAME-latest` for each `NAME-DATE`.
DATED = re.compile(r"(?P<name>.+?)[-@](?:20\d\d-?[01]\d-?[0-3]\d|[01]\d-20\d\d|\d{4})\Z")
LATEST = "-latest"

HEAD = """\
# The prices of models, made by scripts/make_prices.py. Do not edit: halo.toml may add or override.
# A line is a name and a price: US dollars a million tokens of input, output, input read from a cache (`-`: as input)
# and, where the provider does it unasked, input written to one. `>N` begins the prices of prompts longer than N
# tokens, `@DATE` those that hold from a day on; `-` for a price is none. `PROVIDER =~ ...` gives a pattern for names
# that have no line of their own, tried in this order: `x*`, `*x`, `*x*`, or `x^r` where the regular expression r
# matches what comes after x. `PROVIDER > ...` names the providers whose models it offers too.
"""

Rates = tuple[Decimal, Decimal, Decimal | None, Decimal | None]
"""Input, output, cached, written."""


def main() -> int:
    made = table()
    if "--check" in sys.argv[1:]:
        same = TABLE.exists() and TABLE.read_text(encoding="utf-8") == made
        print(f"{TABLE.name} is {'up to date' if same else 'not what this script makes'}")
        return 0 if same else 1
    TABLE.write_text(made, encoding="utf-8")
    print(f"{TABLE.name}: {made.count(chr(10)) - HEAD.count(chr(10))} lines, {len(made)} bytes")
    return 0


def table() -> str:
    release, published = version("genai-prices"), published_on()
    snapshot = data_snapshot.get_snapshot()
    by_id = {p.id: p for p in snapshot.providers}
    lines = [f"date {published.isoformat()}", f"source genai-prices {release}"]
    for theirs, ours in PROVIDERS.items():
        also = [PROVIDERS[p] for p in by_id[theirs].fallback_model_providers or () if p in PROVIDERS]
        if also:
            lines.append(f"{ours} > {' '.join(also)}")
    for theirs, ours in PROVIDERS.items():
        lines += provider_lines(by_id[theirs], ours, published)
    return HEAD + "\n".join(lines) + "\n"


def published_on() -> date:
    """The day on which the locked version of genai-prices was published."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
    package = next(p for p in lock["package"] if p["name"] == "genai-prices")
    if package["version"] != version("genai-prices"):
        sys.exit(f"installed is genai-prices {version('genai-prices')}, locked is {package['version']}")
    stamp: object = package["sdist"]["upload-time"]
    return date.fromisoformat(str(stamp)[:10])


def provider_lines(provider: types.Provider, ours: str, published: date) -> Iterator[str]:
    for name, models in sorted(names(provider).items()):
        price = dearest([p for m in models if (p := price_of(provider.id, m, published)) is not None])
        yield f"{ours}/{name} {price_text(price) if price else '-'}"
    for model in provider.models:
        price = price_of(provider.id, model, published)
        for clause in leaves(model.match):
            if not isinstance(clause, types.ClauseEquals):
                yield f"{ours} =~ {pattern(clause)} {price_text(price) if price else '-'}"


def names(provider: types.Provider) -> dict[str, list[types.ModelInfo]]:
    """Every name that the data spells out, in small letters, and the models that may answer to it: all snapshots of a
    name without a date."""
    spelled = {name for m in provider.models for c in leaves(m.match) if (name := spelled_name(c)) is not None}
    snapshots: dict[str, set[str]] = {}
    for name in spelled:
        found = DATED.match(name)
        if found:
            snapshots.setdefault(found["name"], set()).add(name)
    made: dict[str, list[types.ModelInfo]] = {}
    for name in spelled | snapshots.keys():
        base = name.removesuffix(LATEST)
        candidates = {name, base, base + LATEST} & spelled | snapshots.get(base, set()) | {name}
        if DATED.match(name):
            candidates = {name}
        found_models = [provider.find_model(candidate) for candidate in sorted(candidates)]
        made[name] = [m for m in found_models if m is not None]
    return made


def spelled_name(clause: types.MatchLogic) -> str | None:
    """The name that a clause spells out, or the shortest that it fits, which as a rule is a name too."""
    if isinstance(clause, types.ClauseEquals):
        return clause.equals.lower()
    if isinstance(clause, types.ClauseStartsWith):
        return clause.starts_with.lower()
    return clause.contains.lower() if isinstance(clause, types.ClauseContains) else None


def leaves(clause: types.MatchLogic) -> Iterator[types.MatchLogic]:
    if isinstance(clause, types.ClauseOr):
        for inner in clause.or_:
            yield from leaves(inner)
    else:
        yield clause


def pattern(clause: types.MatchLogic) -> str:
    if isinstance(clause, types.ClauseStartsWith):
        return f"{clause.starts_with.lower()}*"
    if isinstance(clause, types.ClauseContains):
        return f"*{clause.contains.lower()}*"
    if isinstance(clause, types.ClauseEndsWith):
        return f"*{clause.ends_with.lower()}"
    if isinstance(clause, types.ClauseRegex):
        anchored = re.fullmatch(r"\^((?:[a-z0-9/:_-]|\\\.)*)(.*)", clause.regex)
        if anchored and "|" not in clause.regex:
            return f"{anchored[1].replace(chr(92), '')}^{anchored[2]}"
    if isinstance(clause, types.ClauseAnd) and len(clause.and_) == 2:
        start, other = clause.and_
        if isinstance(start, types.ClauseStartsWith) and isinstance(other, types.ClauseRegex):
            return f"{start.starts_with.lower()}^{other.regex.removeprefix('^')}"
    sys.exit(f"a clause that this script does not know: {clause}")


class ModelPrices:
    """The rates of a model by the day from which they hold and the prompt's length above which they do."""

    def __init__(self, from_day: dict[date, dict[int, Rates]]) -> None:
        self.from_day = from_day

    def at(self, day: date, tokens: int) -> Rates:
        """The rates on a day for a prompt of more than so many tokens."""
        steps = self.from_day[max(d for d in self.from_day if d <= day)]
        return steps[max(s for s in steps if s <= tokens)]


def price_of(provider_id: str, model: types.ModelInfo, published: date) -> ModelPrices | None:
    """None for what is not priced by tokens of text in and out."""
    conditional = (
        [types.ConditionalPrice(prices=model.prices)] if isinstance(model.prices, types.ModelPrice) else (model.prices)
    )
    starts = {c.constraint.start_date for c in conditional if isinstance(c.constraint, types.StartDateConstraint)}
    days = [date.min, *sorted(s for s in starts if s > published)]
    made: dict[date, dict[int, Rates]] = {}
    for day in days:
        holding = in_force(conditional, max(day, published))
        if any(not (p.input_mtok or p.output_mtok) for p in holding) and model.id.endswith(":free"):
            made[day] = {0: (Decimal(0), Decimal(0), None, None)}
            continue
        if any(p.input_mtok is None or p.output_mtok is None for p in holding):
            return None
        flat = (provider_id, model.id) in WITHOUT_STEPS
        above = {0} if flat else {0, *(s for p in holding for s in step_starts(p))}
        writes = "claude" not in model.id  # Claude's caches are written only where a request asks for it; ours never do
        made[day] = {s: highest([rates(p, s, writes) for p in holding]) for s in sorted(above)}
    return ModelPrices(made)


def in_force(conditional: list[types.ConditionalPrice], day: date) -> list[types.ModelPrice]:
    """The prices that hold at some hour of a day. As in the data's own rule the last one that holds wins."""
    holding = []
    for entry in reversed(conditional):
        if isinstance(entry.constraint, types.TimeOfDateConstraint):
            holding.append(entry.prices)
        elif entry.constraint is None or entry.constraint.start_date <= day:
            return [*holding, entry.prices]
    return [*holding, conditional[0].prices]


def step_starts(price: types.ModelPrice) -> Iterator[int]:
    for value in (price.input_mtok, price.output_mtok, price.cache_read_mtok, price.cache_write_mtok):
        if isinstance(value, types.TieredPrices):
            yield from (tier.start for tier in value.tiers)


def rates(price: types.ModelPrice, above: int, writes: bool) -> Rates:
    def at(value: Decimal | types.TieredPrices | None) -> Decimal | None:
        if isinstance(value, types.TieredPrices):
            return next((t.price for t in reversed(value.tiers) if t.start <= above), value.base)
        return value

    into, out = at(price.input_mtok), at(price.output_mtok)
    assert into is not None
    assert out is not None
    reasoning = at(price.output_reasoning_mtok)
    written = at(price.cache_write_mtok) if writes else None
    return into, max(out, reasoning or out), at(price.cache_read_mtok), written


def dearest(prices: Iterable[ModelPrices]) -> ModelPrices | None:
    """On each day and for each length the highest of each rate."""
    every = list(prices)
    if not every:
        return None
    days = sorted({day for p in every for day in p.from_day})
    steps = sorted({s for p in every for by_length in p.from_day.values() for s in by_length})
    return ModelPrices({day: {s: highest([p.at(day, s) for p in every]) for s in steps} for day in days})


def highest(every: list[Rates]) -> Rates:
    into = max(r[0] for r in every)
    cached = None if any(r[2] is None for r in every) else max(r[2] for r in every if r[2] is not None)
    written = max((r[3] for r in every if r[3] is not None and r[3] > into), default=None)
    return into, max(r[1] for r in every), cached, written


def price_text(price: ModelPrices) -> str:
    parts: list[str] = []
    for day, steps in price.from_day.items():
        if day != date.min:
            parts.append(f"@{day.isoformat()}")
        before: Rates | None = None
        for above, rate in steps.items():
            if rate != before:
                parts += [f">{above}"] if above else []
                parts.append(rates_text(rate))
            before = rate
    return " ".join(parts)


def rates_text(rate: Rates) -> str:
    into, out, cached, written = rate
    shown = [amount(into), amount(out)]
    if cached is not None or written is not None:
        shown.append("-" if cached is None else amount(cached))
    if written is not None:
        shown.append(amount(written))
    return " ".join(shown)


def amount(dollars: Decimal) -> str:
    """With at most nine decimals, rounded up."""
    exact = dollars.quantize(Decimal("1e-9"), rounding=ROUND_CEILING)
    return f"{exact:f}".rstrip("0").rstrip(".") or "0"


if __name__ == "__main__":
    sys.exit(main())
