"""Matching: which recorded answer a waiting request gets (runs.md §4)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang.boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Call
from halo_lang.boundary.question import question
from halo_lang.boundary.recording import Entry
from halo_lang.doors.journal import Hit, Journal
from halo_lang.language.source import Span
from halo_lang.runtime.driver import Request

AT = Span(0, 0)


def call(target: str = "T.m", asks: Any = "a", scope: tuple[int, ...] = (), kind: str = TOOL, **more: Any) -> Call:
    return Call(kind, target, {"a": asks}, scope, "1", AT, **more)


def entry(number: int, asked: Call, *, scoped: bool = True) -> Entry:
    return Entry(
        number,
        asked.kind,
        asked.target,
        asked.scope if scoped else None,
        question(asked),
        Answer(number),
        asked.id is not None,
    )


def entries(*asked: Call, scoped: bool = True) -> Iterator[Entry]:
    return iter([entry(number, one, scoped=scoped) for number, one in enumerate(asked, 2)])


def journal(*recorded: Call, rules: int = 3, scoped: bool = True, **more: Any) -> Journal:
    return Journal(entries(*recorded, scoped=scoped), rules=rules, **more)


def waiting(made: Journal, *calls: Call) -> dict[Request, str]:
    """Adds requests; gives their names, `r0` and on."""
    requests = {Request(one, None): f"r{at}" for at, one in enumerate(calls)}  # type: ignore[arg-type]
    for request in requests:
        made.add(request)
    return requests


def taken(made: Journal, names: dict[Request, str]) -> list[tuple[str, int, int]]:
    """All hits in order: the request, the line and the rule."""
    found = []
    while (hit := made.take()) is not None:
        found.append((names[hit.request], hit.entry.number, hit.rule))
    return found


def outcome(recorded: Iterable[Call], calls: Iterable[Call], **more: Any) -> list[tuple[str, int, int]]:
    made = journal(*recorded, **more)
    return taken(made, waiting(made, *calls))


# The rules -------------------------------------------------------------------------------------------------------


def test_the_same_question_in_the_same_place() -> None:
    assert outcome([call(scope=(1,)), call(scope=(0,))], [call(scope=(0,)), call(scope=(1,))]) == [
        ("r1", 2, 1),
        ("r0", 3, 1),
    ]


def test_then_the_same_question_anywhere_the_earliest_line_first() -> None:
    assert outcome([call(scope=(7,)), call(scope=(8,))], [call(scope=(0,))]) == [("r0", 2, 2)]


def test_then_another_question_in_the_same_place() -> None:
    assert outcome([call(asks="x")], [call(asks="y")]) == [("r0", 2, 3)]


def test_each_rule_is_tried_for_all_that_wait_before_the_next() -> None:
    """The first request could have the first line by its place; but that is the other one's own."""
    recorded = [call(asks="mine", scope=(0,)), call(asks="other", scope=(9,))]
    assert outcome(recorded, [call(asks="new", scope=(0,)), call(asks="mine", scope=(5,))]) == [
        ("r1", 2, 2),
    ]
    recorded = [call(asks="b", scope=(3,)), call(asks="a", scope=(3,))]
    assert outcome(recorded, [call(asks="a", scope=(4,)), call(asks="b", scope=(3,))]) == [("r1", 2, 1), ("r0", 3, 2)]


def test_within_a_rule_the_earliest_line_wins_then_the_first_request() -> None:
    made = journal(call(asks="b"), call(asks="a"), call(asks="a", target="T.n"))
    names = waiting(made, call(asks="a"), call(asks="b"), call(asks="a", target="T.n"))
    assert taken(made, names) == [("r1", 2, 1), ("r0", 3, 1), ("r2", 4, 1)]


def test_kind_and_target_must_be_the_same_under_every_rule() -> None:
    assert outcome([call(kind=YIELD)], [call()]) == []
    assert outcome([call(target="T.n")], [call()]) == []


def test_the_third_rule_is_not_for_calls_that_an_agent_chose() -> None:
    chosen = {"by": "Clerk", "id": "c1"}
    assert outcome([call(asks="x", **chosen)], [call(asks="y", **chosen)]) == []
    assert outcome([call(asks="x")], [call(asks="y", **chosen)]) == []
    assert outcome([call(asks="x", **chosen)], [call(asks="y")]) == []
    assert outcome([call(asks="x", scope=(1,), **chosen)], [call(asks="x", **chosen)]) == [("r0", 2, 2)]


def test_the_third_rule_is_not_for_approvals() -> None:
    assert outcome([call(asks="x", kind=APPROVAL)], [call(asks="y", kind=APPROVAL)]) == []
    assert outcome([call(asks="x", kind=APPROVAL, scope=(1,))], [call(asks="x", kind=APPROVAL)]) == [("r0", 2, 2)]


def test_the_third_rule_is_for_agents_yields_and_events() -> None:
    for kind in (AGENT, YIELD):
        assert outcome([call(asks="x", kind=kind)], [call(asks="y", kind=kind)]) == [("r0", 2, 3)]
    assert outcome([call(kind=LISTEN)], [call(kind=LISTEN, asks="anything")]) == [("r0", 2, 1)]


def test_a_resume_stops_at_its_last_rule() -> None:
    assert outcome([call(scope=(1,))], [call()], rules=1) == []
    assert outcome([call(asks="x")], [call(asks="y")], rules=2) == []


def test_an_answer_is_used_once() -> None:
    assert outcome([call()], [call(), call()]) == [("r0", 2, 1)]


def test_without_scopes_a_line_matches_by_its_target_in_recorded_order() -> None:
    recorded = [call(asks="x", by="C", id="c"), call(asks="y"), call(target="T.n")]
    calls = [call(target="T.n", scope=(4,)), call(asks="1", scope=(0,)), call(asks="2", scope=(1,), by="C", id="c")]
    assert outcome(recorded, calls, scoped=False) == [("r1", 2, 1), ("r2", 3, 1), ("r0", 4, 1)]
    assert outcome([call(kind=YIELD)], [call()], scoped=False) == []


# Over time -------------------------------------------------------------------------------------------------------


def test_a_request_that_comes_later_can_have_a_line_that_was_passed_over() -> None:
    made = journal(call(asks="late"), call(asks="now"))
    assert taken(made, waiting(made, call(asks="now"))) == [("r0", 3, 1)]
    assert taken(made, waiting(made, call(asks="late"))) == [("r0", 2, 1)]
    assert taken(made, waiting(made, call(asks="more"))) == []


def test_a_request_that_was_withdrawn_gets_nothing() -> None:
    made = journal(call(), call())
    first, second = waiting(made, call(), call())
    made.withdraw(first)
    hit = made.take()
    assert hit is not None
    assert hit.request is second


def test_kinds_that_are_not_the_journals_are_left_alone() -> None:
    made = journal(call(), answers=lambda one: one.kind == AGENT)
    made.add(Request(call(), None))  # type: ignore[arg-type]
    assert made.take() is None


def test_what_was_not_used_and_what_is_nearest() -> None:
    made = journal(call(asks="a"), call(asks="b"), call(target="T.n"))
    taken(made, waiting(made, call(asks="b")))
    assert [one.number for one in made.unused()] == [2, 4]
    near = made.unused_of(TOOL, "T.m")
    assert near is not None
    assert near.number == 2
    assert made.unused_of(TOOL, "T.x") is None
    assert made.unused_of(AGENT, "T.m") is None
    taken(made, waiting(made, call(asks="other")))
    assert made.unused_of(TOOL, "T.m") is None


def test_looking_at_what_is_left_reads_to_the_end_but_takes_nothing_away() -> None:
    made = journal(call(asks="a"), call(asks="b"))
    names = waiting(made, call(asks="b"), call(asks="c"))
    assert len(made.unused()) == 2
    assert taken(made, names) == [("r0", 3, 1), ("r1", 2, 3)]
    assert list(made.unused()) == []


def test_an_empty_recording_answers_nothing() -> None:
    made = journal()
    assert taken(made, waiting(made, call())) == []
    assert list(made.unused()) == []


# Against the rules written plainly -------------------------------------------------------------------------------

SCOPES = st.sampled_from([(), (0,), (1,), (0, 1)])
CALLS = st.builds(
    lambda kind, target, asks, scope, chosen: call(
        target, asks, scope, kind, **({"by": "A", "id": "c"} if chosen and kind == TOOL else {})
    ),
    st.sampled_from([TOOL, TOOL, APPROVAL, YIELD]),
    st.sampled_from(["T.m", "T.n"]),
    st.sampled_from(["a", "b"]),
    SCOPES,
    st.booleans(),
)


def plainly(lines: list[Entry], requests: list[Request], rules: int) -> Hit | None:
    """One answer, by trying everything."""
    same = (
        lambda e, c: e.scope == c.scope and e.asked == question(c),
        lambda e, c: e.asked == question(c),
        lambda e, c: (
            e.scope == c.scope and c.kind != APPROVAL and not (c.kind == TOOL and (c.by is not None or e.by_agent))
        ),
    )
    for number, fits in enumerate(same[:rules], 1):
        for line in lines:
            for request in requests:
                asked = request.call
                if line.kind == asked.kind and line.target == asked.target and fits(line, asked):
                    return Hit(request, line, number)
    return None


@settings(max_examples=400)
@given(st.lists(CALLS, max_size=8), st.lists(st.tuples(CALLS, st.booleans()), max_size=10), st.integers(1, 3))
def test_every_answer_is_the_one_that_the_rules_name(
    recorded: list[Call], asked: list[tuple[Call, bool]], rules: int
) -> None:
    """Requests come one by one or several at once; after each group all answers that can be had are taken."""
    made = journal(*recorded, rules=rules)
    lines, open_requests = list(entries(*recorded)), []
    for one, goes_on in asked:
        request = Request(one, None)  # type: ignore[arg-type]
        made.add(request)
        open_requests.append(request)
        if goes_on:
            continue
        while (wanted := plainly(lines, open_requests, rules)) is not None:
            hit = made.take()
            assert hit is not None
            assert (hit.request, hit.entry, hit.rule) == (wanted.request, wanted.entry, wanted.rule)
            lines.remove(hit.entry)
            open_requests.remove(hit.request)
        assert made.take() is None
    assert sorted(one.number for one in made.unused()) == sorted(one.number for one in lines)


# Size ------------------------------------------------------------------------------------------------------------


def test_memory_stays_flat_however_long_the_recording_of_an_unchanged_program() -> None:
    count = 20_000
    read = 0

    def recorded() -> Iterator[Entry]:
        nonlocal read
        for at in range(count):
            read = at
            yield entry(at + 2, call(asks="x" * 100, scope=(at,)))

    made = Journal(recorded(), rules=3)
    tracemalloc.start()
    try:
        for at in range(count):
            made.add(Request(call(asks="x" * 100, scope=(at,)), None))  # type: ignore[arg-type]
            hit = made.take()
            assert hit is not None
            assert hit.rule == 1
            assert read <= at + 1
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 200_000


def test_memory_stays_flat_where_a_resumed_run_goes_on_live() -> None:
    made = journal(call(), rules=1)
    taken(made, waiting(made, call()))
    tracemalloc.start()
    try:
        for at in range(20_000):
            request = Request(call(scope=(at,)), None)  # type: ignore[arg-type]
            made.add(request)
            assert made.take() is None
            made.withdraw(request)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 100_000


class Counted(str):
    """A target that counts how often two are compared or hashed: what matching costs, whatever the machine's speed."""

    looks = 0

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return str.__eq__(self, other)  # type: ignore[arg-type]

    def __hash__(self) -> int:
        Counted.looks += 1
        return str.__hash__(self)


def looks(count: int) -> int:
    """How often a journal looks at targets where nothing is in its place any more and `count` requests wait."""
    target = Counted("T.m")
    Counted.looks = 0
    made = journal(*(call(target, f"new {at}", (at,)) for at in range(count)))
    waiting(made, *(call(target, f"old {at}", (count - at,)) for at in range(count)))
    found = 0
    while made.take() is not None:
        found += 1
    assert found == count - 1
    return Counted.looks


def test_a_changed_program_is_matched_in_linear_time() -> None:
    few, many = looks(1_000), looks(10_000)
    assert many < 11 * few
