"""Exactness, at length: `python tests/soak/replay_exact.py N [--seed S]` runs N random programs, each recorded, paused
and resumed as chance has it, and replayed ten times under other schedules after each of these (runs.md §1, §4).

Prints what it has seen, and for the first program that is not exact all that is needed to see it again.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "property")]

from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from kept_scenarios import WIDE, scenario  # noqa: E402
from programs_that_run import programs  # noqa: E402
from test_replay_exact import INPUTS, SEEDS  # noqa: E402

EVERY = 500
"""Programs after which it says how far it is."""


def main() -> int:
    parser = ArgumentParser("tests/soak/replay_exact.py", description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="another one gives other programs")
    options = parser.parse_args()
    seen: Counter[str] = Counter()
    began = time.monotonic()

    @seed(options.seed)
    @settings(
        max_examples=options.count,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(programs(counts=True), INPUTS, st.integers(0, 64), SEEDS)
    def run(text: str, x: object, width: int, chance: int) -> None:
        if chance % 8:
            happened = scenario(text, "P0", x, chance)
        else:
            happened = scenario(text + WIDE.format(1 + chance % 64), "Wide", list(range(width)), chance)
        seen.update(happened)
        seen["programs"] += 1
        if seen["programs"] % EVERY == 0:
            print(f"{seen['programs']} programs, {time.monotonic() - began:.0f} s", flush=True)

    try:
        run()
    finally:
        print(", ".join(f"{count:,} {what}" for what, count in sorted(seen.items())))
    print(f"all exact, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
