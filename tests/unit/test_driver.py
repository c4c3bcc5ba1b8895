"""The driver: order of moves, forks, failures (runs.md §1, architecture.md "One door")."""

from __future__ import annotations

import pytest

from halo_lang.boundary.call import Answer, Call
from halo_lang.language.source import Span
from halo_lang.runtime.driver import Aside, Ask, Driver, Fork


def call(target):
    return Call("tool", target, {}, (), "1", Span(0, 0))


async def ask(target):
    return (await Ask(call(target))).value


def asked(driver):
    names = [request.call.target for request in driver.asked]
    return names


def test_a_run_without_calls_ends_at_once():
    async def steps():
        return 7

    driver = Driver(steps())
    assert (driver.ended, driver.result, driver.failure) == (True, 7, None)


def test_an_answer_moves_the_branch_that_asked():
    async def steps():
        return [await ask("a"), await ask("b")]

    driver = Driver(steps())
    for value in (1, 2):
        assert not driver.ended
        (request,) = driver.asked
        driver.asked.clear()
        driver.hand_in(request, Answer(value))
    assert driver.result == [1, 2]


def test_branches_begin_in_written_order_and_results_keep_it():
    order = []

    async def branch(at):
        order.append(at)
        return await ask(f"b{at}")

    async def steps():
        return await Fork(3, branch, 3)

    driver = Driver(steps())
    assert order == [0, 1, 2]
    requests = list(driver.asked)
    for request in reversed(requests):
        driver.hand_in(request, Answer(request.call.target))
    assert driver.result == ["b0", "b1", "b2"]


def test_branches_that_ask_nothing_run_one_after_the_other():
    order = []

    async def branch(at):
        order.append(at)
        return at

    async def steps():
        return await Fork(10, branch, 4)

    driver = Driver(steps())
    assert order == list(range(10))
    assert driver.result == list(range(10))


def test_no_more_branches_are_under_way_than_the_concurrency():
    async def steps():
        return await Fork(5, lambda at: ask(f"b{at}"), 2)

    driver = Driver(steps())
    assert asked(driver) == ["b0", "b1"]
    request = driver.asked.pop(1)
    driver.asked.clear()
    driver.hand_in(request, Answer(None))
    assert asked(driver) == ["b2"]


def test_forks_nest_and_the_inner_one_moves_first():
    async def inner(at):
        return await Fork(2, lambda k: ask(f"{at}.{k}"), 2)

    async def steps():
        return await Fork(2, inner, 2)

    driver = Driver(steps())
    assert asked(driver) == ["0.0", "0.1", "1.0", "1.1"]
    while not driver.ended:
        driver.hand_in(driver.asked.pop(), Answer("x"))
    assert driver.result == [["x", "x"], ["x", "x"]]


def test_a_fork_of_nothing_gives_an_empty_list():
    async def steps():
        return await Fork(0, ask, 4)

    assert Driver(steps()).result == []


def test_the_first_failure_ends_the_run_and_nothing_moves_after_it():
    began = []

    async def branch(at):
        began.append(at)
        await ask(f"b{at}")
        raise ValueError(at)

    async def steps():
        return await Fork(3, branch, 2)

    driver = Driver(steps())
    driver.hand_in(driver.asked[1], Answer(None))
    assert driver.ended
    assert str(driver.failure) == "1"
    assert began == [0, 1]


def test_a_failing_branch_ends_the_run_before_the_next_one_begins():
    began = []

    async def branch(at):
        began.append(at)
        raise ValueError(at)

    async def steps():
        return await Fork(3, branch, 3)

    driver = Driver(steps())
    assert driver.ended
    assert began == [0]


def test_an_aside_answers_nobody():
    async def steps():
        await Aside(call("shadow"))
        return await ask("a")

    driver = Driver(steps())
    assert [aside.call.target for aside in driver.asides] == ["shadow"]
    assert asked(driver) == ["a"]


def test_awaiting_anything_else_is_refused():
    class Other:
        def __await__(self):
            yield "something else"

    async def steps():
        await Other()

    with pytest.raises(TypeError):
        Driver(steps())


def test_a_hundred_thousand_branches_need_no_deep_stack():
    async def branch(at):
        return await Fork(1, lambda k: ask("x"), 1)

    async def steps():
        return len(await Fork(100_000, branch, 1000))

    driver = Driver(steps())
    while not driver.ended:
        driver.hand_in(driver.asked.pop(), Answer(1))
    assert driver.result == 100_000
