"""A plan is sound: whatever the models, tools and people answer, a run does nothing that its plan has not, and no run
passes its spend limit (plan.md, runs.md §6). A longer run of the same: `tests/soak/plan_sound.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from plan_checks import problems_of

sys.path.append(str(Path(__file__).parents[1] / "soak"))

from mutate_plan import FAULTS, broken, caught

PROGRAMS = 400
SHARES = 4


@pytest.mark.parametrize("share", range(SHARES))
def test_no_run_goes_beyond_its_plan_or_its_limit(share: int) -> None:
    judged = 0
    for seed in range(share, PROGRAMS, SHARES):
        found = problems_of(seed)
        assert not found, f"seed {seed}: {found}"
        judged += found is not None
    assert judged > PROGRAMS // SHARES // 2


QUICK = [
    "an agent's last method is not listed",
    "loops do not multiply",
    "only the first arm of a branch is planned",
    "the last request of an agent with tools is not counted",
    "shadows are forgotten",
    "an each with a limit is counted once",
    "an each without a limit is taken to have one item",
    "what a called pipeline does is not listed",
    "an effect that is not described is taken as read",
    "a pipeline's policies do not govern the run",
    "what is reserved is forgotten",
    "what was spent is forgotten",
    "a lost attempt gives its reservation back",
    "a request that does not fit is sent as it is",
    "the provider's framing is not reserved for",
]


@pytest.mark.parametrize("fault", QUICK)
def test_a_planner_or_ledger_that_is_broken_on_purpose_is_noticed(fault: str) -> None:
    assert caught(fault, 300) is not None


def test_every_fault_is_taken_back() -> None:
    for fault in FAULTS:
        with broken(fault):
            pass
    assert problems_of(0) == []
