"""Crashes, at length: `python tests/soak/crashes.py N [--seed S]` lets a process die at every write, sync and effect of
a run, in three ways each, then N runs at random moments, several times each, with and without the loss of what was not
synced; then kills N/10 real processes with SIGKILL, and lets N resumes race (runs.md §5).

Prints what it did, and each run that did not survive with what is needed to see it again. Exit 1 where one did not.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "property")]

from crash_runs import Crash, operations_of_legs, survives  # noqa: E402
from killed_runs import killed, killed_while_served, raced  # noqa: E402
from test_crashes import HOWS, NEVER  # noqa: E402

failures = 0


def tried(what: str, run: object, *given: object, **more: object) -> int:
    global failures
    try:
        return int(run(*given, **more) or 0)  # type: ignore[operator]
    except Exception as trouble:
        failures += 1
        print(f"FAILED {what}: {type(trouble).__name__}: {str(trouble)[:300]}", flush=True)
        return 0


def main() -> int:
    parser = ArgumentParser("tests/soak/crashes.py", description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.monotonic()
    for checkpoint in (True, False):
        points = died = 0
        legs = operations_of_legs(checkpoint=checkpoint)
        for leg, count in enumerate(legs if checkpoint else legs[1:]):
            for at in range(1, count + 1):
                for how in HOWS:
                    crashes = [*[NEVER] * leg, Crash(at, how)]
                    points += 1
                    died += tried(f"{checkpoint=} {crashes}", survives, crashes, checkpoint=checkpoint)
        kind = "checkpointed" if checkpoint else "resumed"
        print(f"{points} moments of a {kind} run, {died} deaths, {time.monotonic() - began:.0f} s", flush=True)
    died = 0
    for seed in range(options.seed, options.seed + options.count):
        chance = Random(seed)
        checkpoint = chance.random() < 0.7
        crashes = [
            Crash(
                chance.randint(1, 45),
                chance.choice(HOWS),
                power=checkpoint and chance.random() < 0.5,
                chance=chance.randrange(2**32),
            )
            for _ in range(chance.randint(1, 6))
        ]
        died += tried(f"{seed=} {checkpoint=} {crashes}", survives, crashes, checkpoint=checkpoint, seed=seed)
    print(f"{options.count} runs at random, {died} deaths, {time.monotonic() - began:.0f} s", flush=True)
    kills = sum(tried(f"kill {at}", killed, Random(options.seed + at)) for at in range(options.count // 20))
    kills += sum(
        tried(f"kill {at}, served", killed_while_served, Random(options.seed + at)) for at in range(options.count // 20)
    )
    print(f"{options.count // 10} runs of real processes, {kills} killed, {time.monotonic() - began:.0f} s", flush=True)
    for at in range(options.count):
        tried(f"race {at}", raced, 2 + at % 3)
    print(f"{options.count} races, {time.monotonic() - began:.0f} s; {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
