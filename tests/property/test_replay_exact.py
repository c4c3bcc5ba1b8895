"""Exactness: a recorded run replays to the same end, whatever happened in it and in whatever order it is asked again;
and so does one that paused and was resumed (runs.md §1, §4, §5). The long run is `tests/soak/replay_exact.py`."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from kept_scenarios import WIDE, scenario
from programs_that_run import programs

QUICK = settings(max_examples=40)
SEEDS = st.integers(0, 2**32)
INPUTS = st.sampled_from(["b", None, [1, "b"], {"k": 1}, ""])


@QUICK
@given(programs(counts=True), INPUTS, SEEDS)
def test_a_run_replays_and_resumes_to_the_same_end(text: str, x: Any, seed: int) -> None:
    scenario(text, "P0", x, seed)


@settings(QUICK, max_examples=10)
@given(programs(counts=True), st.integers(1, 64), st.sampled_from([4, 64]), SEEDS)
def test_so_does_one_with_many_branches(text: str, width: int, concurrency: int, seed: int) -> None:
    scenario(text + WIDE.format(concurrency), "Wide", list(range(width)), seed, replays=4)
