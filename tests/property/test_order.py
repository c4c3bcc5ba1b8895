"""Order: that of hand-in decides everything that hangs on order, and nothing else does (runs.md §1)."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from programs_that_run import Answers, programs, question

from halo_lang.boundary.call import Answer, Call
from halo_lang.runtime.driver import Request
from runs import Ended, checked, run

QUICK = settings(max_examples=100)
SEEDS = st.integers(0, 2**32)
INPUTS = st.sampled_from(["b", None, [1, "b"], {"k": 1}, ""])


def end_of(ended: Ended) -> dict[str, Any]:
    """All that is seen of how a run ended."""
    return {
        "status": ended.status,
        "output": ended.output,
        "error": (ended.code, ended.message, ended.stage, ended.span),
        "halted": ended.condition,
        "data": ended.data,
        "current": ended.current,
        "calls": ended.calls,
        "printed": ended.shown.printed_values,
        "asked": [question(call) for call in ended.asked],
        "waiting": [question(call) for call in ended.waiting],
    }


@QUICK
@given(programs(counts=True), INPUTS, SEEDS, SEEDS)
def test_the_same_order_of_hand_in_gives_the_same_end(text: str, x: object, answers: int, order: int) -> None:
    """The second run is given the first one's answers as a recording would: in their order, each to the waiting call
    that asks the same. It must find one every time, and end alike."""
    program = checked(text, agents=False)
    chance = Random(order)
    lines: list[tuple[str, Answer]] = []
    reply = Answers(answers, failing=True)

    def recorded(call: Call) -> Answer:
        answer = reply(call)
        lines.append((question(call), answer))
        return answer

    first = run(program, recorded, "P0", {"x": x}, pick=lambda waiting: chance.randrange(len(waiting)))
    left = list(lines)

    def next_line(waiting: list[Request]) -> int:
        asked = [question(request.call) for request in waiting]
        assert left, f"one call more than was recorded: {asked}"
        return asked.index(left[0][0])

    again = run(program, lambda call: left.pop(0)[1], "P0", {"x": x}, pick=next_line)
    assert left == []
    assert end_of(again) == end_of(first)


@QUICK
@given(programs(counts=False), INPUTS, SEEDS, st.lists(SEEDS, min_size=1, max_size=4))
def test_where_nothing_fails_or_halts_every_order_gives_the_same_end(
    text: str, x: object, answers: int, orders: list[int]
) -> None:
    program = checked(text, agents=False)
    first = run(program, Answers(answers, failing=False), "P0", {"x": x})
    if first.status != "completed":
        return
    wanted = end_of(first)
    for order in orders:
        chance = Random(order)
        reply = Answers(answers, failing=False)
        found = end_of(run(program, reply, "P0", {"x": x}, pick=lambda waiting, c=chance: c.randrange(len(waiting))))
        for part in ("status", "output", "data", "current", "calls"):
            assert found[part] == wanted[part]
        if "approval" not in {call.kind for call in first.asked}:  # a yes to all answers others, in what order it comes
            assert sorted(found["asked"]) == sorted(wanted["asked"])


@QUICK
@given(programs(counts=True), INPUTS, SEEDS, SEEDS)
def test_no_call_is_answered_twice_and_branches_never_share_an_identity(
    text: str, x: object, answers: int, order: int
) -> None:
    """Of the calls that wait at one time no two have the same kind, target and scope."""
    chance = Random(order)

    def watching(waiting: list[Request]) -> int:
        identities = [(r.call.kind, r.call.target, r.call.scope) for r in waiting]
        assert len(set(identities)) == len(identities)
        return chance.randrange(len(waiting))

    run(checked(text, agents=False), Answers(answers, failing=True), "P0", {"x": x}, pick=watching)
