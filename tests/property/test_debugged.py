"""Debugging: a run that is held and looked at is the same run (docs/adr/0006)."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from programs_that_run import Answers, programs
from test_order import INPUTS, SEEDS, end_of

from halo_lang.runtime.driver import Hold
from halo_lang.runtime.stepping import Again, Go, restore, snapshot
from runs import checked, run

QUICK = settings(max_examples=150)


@QUICK
@given(programs(counts=True), INPUTS, SEEDS, SEEDS)
def test_a_run_that_is_held_before_every_stage_ends_exactly_as_one_that_is_not(
    text: str, x: object, answers: int, order: int
) -> None:
    """The same calls in the same order, the same prints, the same end: whatever fails, halts or hangs on order."""
    program = checked(text, agents=False)
    chance, again = Random(order), Random(order)
    holds: list[Hold] = []

    def looked_at(hold: Hold) -> Go:
        holds.append(hold)
        hold.frame.context()
        return Go()

    plain = run(
        program, Answers(answers, failing=True), "P0", {"x": x}, pick=lambda waiting: chance.randrange(len(waiting))
    )
    debugged = run(
        program,
        Answers(answers, failing=True),
        "P0",
        {"x": x},
        pick=lambda waiting: again.randrange(len(waiting)),
        step=looked_at,
    )
    assert end_of(debugged) == end_of(plain)
    assert len(holds) >= 1


@QUICK
@given(programs(counts=False), INPUTS, SEEDS, st.integers(0, 30))
def test_a_stage_that_runs_again_leaves_the_context_as_if_it_had_run_once(
    text: str, x: object, answers: int, which: int
) -> None:
    """With answers that hang on the call alone: what a stage stored is as before, wherever it ran again."""
    program = checked(text, agents=False)

    def reply(call: object) -> object:
        return Answers(answers, failing=False)(call)  # type: ignore[arg-type]

    plain = run(program, reply, "P0", {"x": x})
    if plain.status != "completed" or "approval" in {call.kind for call in plain.asked}:
        return
    seen = 0
    befores: dict[int, Go] = {}

    def step(hold: Hold) -> Go:
        nonlocal seen
        seen += 1
        frame = hold.frame
        ready = befores.get(id(frame))
        if seen - 1 == which and ready is not None:
            return ready
        if hold.at < len(hold.pipeline.checked.stages):
            befores[id(frame)] = Go(Again(hold.at, snapshot(frame)))
        return Go()

    frames: list[object] = []  # kept, so that no two have the same identity

    def keeping(hold: Hold) -> Go:
        frames.append(hold.frame)
        return step(hold)

    again = run(program, reply, "P0", {"x": x}, step=keeping)
    assert (again.status, again.output, again.data) == (plain.status, plain.output, plain.data)


@QUICK
@given(programs(counts=False), INPUTS, SEEDS)
def test_a_context_that_was_put_back_is_the_one_it_was(text: str, x: object, answers: int) -> None:
    program = checked(text, agents=False)

    def step(hold: Hold) -> Go:
        frame = hold.frame
        before, kept = frame.context(), snapshot(frame)
        frame.current = "other"
        frame.data["other"] = 1
        frame.data.put(("A", "one"), "other")
        restore(frame, kept)
        assert frame.context() == before
        return Go()

    plain = run(program, Answers(answers, failing=True), "P0", {"x": x})
    assert end_of(run(program, Answers(answers, failing=True), "P0", {"x": x}, step=step)) == end_of(plain)
