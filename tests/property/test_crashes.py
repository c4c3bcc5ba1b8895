"""Crashes: whatever moment a process dies at, nothing that was recorded is asked for again, and no effect happens twice
without a person's word or is lost (runs.md §5). The long run is `tests/soak/crashes.py`."""

from __future__ import annotations

from random import Random

import pytest
from crash_runs import EFFECTS, Crash, operations_of_legs, survives
from killed_runs import killed, killed_while_served, raced

HOWS = ("before", "half", "after")
NEVER = Crash(-1, "before")


@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_run_that_does_not_die_is_as_any_other(checkpoint: bool) -> None:
    assert survives([], checkpoint=checkpoint) == 0
    counts = operations_of_legs(checkpoint=checkpoint)
    assert len(counts) == 3
    assert min(counts) > len(EFFECTS), "writes and syncs count too, so that the tests below die at each of them"


@pytest.mark.parametrize("part", range(6))
def test_a_checkpointed_run_goes_on_from_wherever_it_died(part: int) -> None:
    """Every write, sync and effect of all legs; how it dies in each goes round."""
    points = [(leg, at) for leg, count in enumerate(operations_of_legs()) for at in range(1, count + 1)]
    for number, (leg, at) in enumerate(points):
        if number % 6 == part:
            assert survives([NEVER] * leg + [Crash(at, HOWS[(number // 6) % 3])]) == 1


@pytest.mark.parametrize("part", range(3))
def test_a_resumed_run_goes_on_from_wherever_it_died(part: int) -> None:
    """One without checkpoints: it has a journal since it paused, and a recording, which in the end is whole."""
    points = [
        (leg, at) for leg, count in enumerate(operations_of_legs(checkpoint=False)[1:]) for at in range(1, count + 1)
    ]
    for number, (leg, at) in enumerate(points):
        if number % 3 == part:
            assert survives([NEVER] * leg + [Crash(at, HOWS[(number // 3) % 3])], checkpoint=False) == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_run_may_die_again_and_again_and_its_machine_too(seed: int) -> None:
    chance = Random(seed)
    crashes = [
        Crash(chance.randint(1, 40), chance.choice(HOWS), power=seed % 2 == 0, chance=chance.randrange(2**32))
        for _ in range(chance.randint(2, 5))
    ]
    survives(crashes, seed=seed)


@pytest.mark.parametrize("seed", range(3))
def test_a_process_that_is_killed_goes_on(seed: int) -> None:
    killed(Random(seed))


@pytest.mark.parametrize("seed", range(3))
def test_a_process_that_is_killed_goes_on_against_servers_outside(seed: int) -> None:
    killed_while_served(Random(seed))


@pytest.mark.parametrize("processes", [2, 3, 4, 5, 8])
def test_of_resumes_at_once_one_wins(processes: int) -> None:
    raced(processes)
