"""The soundness of plans over many random programs (see `tests/property/test_plan_sound.py`).

    python tests/soak/plan_sound.py 100000
    python tests/soak/plan_sound.py --seed 739        # one program, with its text and plan

Prints each seed that fails, and how many programs there were. Exit 1 where one failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

sys.path[:0] = [str(Path(__file__).parents[1] / "property")]

import plan_programs  # noqa: E402
from plan_checks import problems_of  # noqa: E402
from plan_runs import checked, price  # noqa: E402

from halo_lang.plan.making import make_plan  # noqa: E402
from halo_lang.plan.report import report  # noqa: E402

EVERY = 10_000


def judged(seed: int) -> list[str] | None:
    try:
        return problems_of(seed)
    except Exception as trouble:
        return [f"{type(trouble).__name__}: {trouble}"]


def one(seed: int) -> int:
    text = plan_programs.made_program(Random(seed)).text
    print(text)
    program = checked(text)
    if not program.ok:
        print("\n".join(f"{d.code}: {d.message}" for d in program.diagnostics))
        return 0
    print(report(make_plan(program, "P0", price)))
    found = problems_of(seed)
    print("\n".join(found or ["sound"]))
    return 1 if found else 0


def many(count: int, first: int) -> int:
    began, failed, refused = time.monotonic(), 0, 0
    for seed in range(first, first + count):
        found = judged(seed)
        refused += found is None
        if found:
            failed += 1
            print(f"seed {seed}: {'; '.join(found)}", flush=True)
        if (seed - first + 1) % EVERY == 0:
            print(f"{seed - first + 1} programs, {time.monotonic() - began:.0f} s, {failed} failed", flush=True)
    print(f"{count - refused} programs, {refused} refused by the checker, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, help="this program alone")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    return one(options.seed) if options.seed is not None else many(options.count, options.first)


if __name__ == "__main__":
    sys.exit(main())
