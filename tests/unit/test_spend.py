"""The ledger of a run's spending (runs.md §6): no limit is passed, whoever comes when, and nobody is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from random import Random

import pytest

from halo_lang.boundary.call import Limit
from halo_lang.doors.spend import BEYOND_PLAN, LEAST_TOKENS, Grant, Ledger, Need, Refused

TEN = Limit(10_000, "0.00001", "Low")


def need(fixed: int, tokens: int = 0, *limits: Limit, rate: int = 1) -> Need:
    """A request that costs `fixed` and `rate` for each token of its reply."""
    return Need(limits or (TEN,), tokens, lambda n: fixed + rate * n)


def free(cost: int) -> Need:
    return Need((), 0, lambda _: cost)


async def waiting(ledger: Ledger, wanted: Need) -> asyncio.Task[Grant]:
    """A request that has come to the ledger and was not let through."""
    task = asyncio.create_task(ledger.admit(wanted))
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_request_that_fits_to_the_last_is_let_through_and_one_more_is_not() -> None:
    ledger = Ledger()
    grant = await ledger.admit(need(4_000, 6_000))
    assert (grant.max_tokens, grant.amount, grant.lowered_by) == (6_000, 10_000, None)
    assert (ledger.reserved, ledger.most) == (10_000, 10_000)
    later = await waiting(ledger, need(1))
    grant.settle(9_999)
    assert (await later).amount == 1
    assert (ledger.spent, ledger.reserved, ledger.unsettled) == (9_999, 1, 0)


async def test_one_that_cannot_fit_and_nothing_is_under_way_is_refused_and_says_why() -> None:
    ledger = Ledger()
    (await ledger.admit(need(3_000_000, 0, Limit(5_000_000, "0.005", "Low")))).settle(2_000_000)
    (await ledger.admit(need(1_000_000, 0, Limit(5_000_000, "0.005", "Low")))).keep()
    with pytest.raises(Refused) as refusal:
        await ledger.admit(need(1_999_999, 500, Limit(5_000_000, "0.005", "Low"), rate=1_000))
    assert refusal.value.message == (
        "the limit of $0.005 (policy Low) does not leave enough: $0.0020 is spent, $0.0010 more may have been spent, "
        "and this request could cost $0.0025"
    )
    assert ledger.reserved == 0


async def test_tokens_are_lowered_to_what_fits_where_nothing_is_under_way() -> None:
    ledger = Ledger()
    grant = await ledger.admit(need(2_000, 9_000))
    assert (grant.max_tokens, grant.amount, grant.lowered_by) == (8_000, 10_000, TEN)


@pytest.mark.parametrize(("room", "let_through"), [(LEAST_TOKENS, True), (LEAST_TOKENS - 1, False)])
async def test_tokens_are_lowered_to_two_hundred_and_fifty_six_and_no_further(room: int, let_through: bool) -> None:
    ledger = Ledger()
    if let_through:
        assert (await ledger.admit(need(10_000 - room, 4_096))).max_tokens == LEAST_TOKENS
    else:
        with pytest.raises(Refused):
            await ledger.admit(need(10_000 - room, 4_096))


async def test_a_request_for_few_tokens_is_let_through_whole_or_not_at_all() -> None:
    assert (await Ledger().admit(need(9_900, 100))).max_tokens == 100
    with pytest.raises(Refused):
        await Ledger().admit(need(9_901, 100))


async def test_nothing_is_lowered_while_others_are_under_way() -> None:
    ledger = Ledger()
    first = await ledger.admit(need(5_000))
    second = await waiting(ledger, need(4_000, 4_000))
    first.settle(1_000)
    assert (await second).max_tokens == 4_000


async def test_first_come_first_served() -> None:
    ledger = Ledger()
    first = await ledger.admit(need(6_000))
    large = await waiting(ledger, need(8_000))
    small = await waiting(ledger, need(10))
    first.give_back()
    assert (await large).amount == 8_000
    await asyncio.sleep(0)
    assert (await small).amount == 10


async def test_one_that_waits_and_can_never_fit_is_refused_and_holds_up_nobody() -> None:
    ledger = Ledger()
    first = await ledger.admit(need(6_000))
    huge = await waiting(ledger, need(20_000))
    small = await waiting(ledger, need(10))
    first.settle(6_000)
    with pytest.raises(Refused):
        await huge
    assert (await small).amount == 10


async def test_without_a_limit_a_request_is_counted_and_never_held_up() -> None:
    ledger = Ledger()
    grant = await ledger.admit(free(50_000))
    assert ledger.reserved == 50_000
    limited = await waiting(ledger, need(1))
    assert (await ledger.admit(free(1))).amount == 1
    grant.settle(9_998)
    assert (await limited).amount == 1
    assert ledger.spent == 9_998


async def test_of_several_limits_the_one_that_leaves_least_holds() -> None:
    low, high = Limit(5_000, "l", "Low"), Limit(9_000, "h", "High")
    for limits in ((low, high), (high, low)):
        grant = await Ledger().admit(need(0, 8_000, *limits))
        assert (grant.max_tokens, grant.lowered_by) == (5_000, low)


async def test_what_has_no_answer_counts_in_full() -> None:
    ledger = Ledger()
    assert (await ledger.admit(need(9_000))).keep() == 9_000
    assert (ledger.spent, ledger.unsettled, ledger.reserved) == (0, 9_000, 0)
    with pytest.raises(Refused):
        await ledger.admit(need(1_001))


async def test_a_grant_ends_once() -> None:
    ledger = Ledger()
    grant = await ledger.admit(need(9_000))
    grant.give_back()
    grant.give_back()
    assert grant.keep() == 0
    assert (ledger.spent, ledger.unsettled, ledger.reserved) == (0, 0, 0)


# Cancelling ------------------------------------------------------------------------------------------------------


async def test_one_that_is_cancelled_while_it_waits_makes_way() -> None:
    ledger = Ledger()
    first = await ledger.admit(need(6_000))
    large = await waiting(ledger, need(9_000))
    small = await waiting(ledger, need(4_000))
    large.cancel()
    assert (await small).amount == 4_000
    first.settle(1)
    with pytest.raises(asyncio.CancelledError):
        await large


async def test_one_that_is_cancelled_when_it_was_just_let_through_was_never_sent() -> None:
    ledger = Ledger()
    first = await ledger.admit(need(6_000))
    second = await waiting(ledger, need(9_000))
    first.give_back()  # lets the second through, which has not moved yet
    assert ledger.reserved == 9_000
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert (ledger.reserved, ledger.spent, ledger.unsettled) == (0, 0, 0)


async def test_one_that_is_cancelled_when_it_was_just_refused() -> None:
    ledger = Ledger()
    first = await ledger.admit(need(6_000))
    second = await waiting(ledger, need(20_000))
    first.settle(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert ledger.reserved == 0


# Shadows ---------------------------------------------------------------------------------------------------------


async def test_a_shadow_is_sent_only_where_it_fits_at_once_as_it_is() -> None:
    ledger = Ledger()
    assert ledger.fits(need(5_000, 5_001)) is None
    first = ledger.fits(need(6_000))
    assert first is not None
    second = await waiting(ledger, need(9_000))
    assert ledger.fits(need(1)) is None  # somebody waits
    assert ledger.fits(free(1)) is not None
    second.cancel()
    await asyncio.sleep(0)
    assert ledger.fits(need(1)) is not None


# Kept plans ------------------------------------------------------------------------------------------------------


async def test_a_kept_plan_bounds_what_it_has_priced_alone() -> None:
    kept = Limit(10_000, "0.00001", BEYOND_PLAN)
    ledger = Ledger(kept)
    beside = await ledger.admit(free(7_000))
    first = await ledger.admit(need(6_000, 0, kept))
    beside.settle(7_000)
    first.settle(6_000)
    (await ledger.admit(need(4_000, 0, kept))).settle(4_000)
    with pytest.raises(Refused, match="that the kept plan allows does not leave enough"):
        await ledger.admit(need(1, 0, kept))


async def test_a_policys_limit_counts_what_the_kept_plan_does_not() -> None:
    kept = Limit(10_000, "0.00001", BEYOND_PLAN)
    ledger = Ledger(kept)
    (await ledger.admit(free(7_000))).keep()
    grant = await ledger.admit(need(0, 9_000, kept, TEN))
    assert (grant.max_tokens, grant.lowered_by) == (3_000, TEN)


# Any order -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
async def test_sixty_four_branches_never_pass_a_limit(seed: int) -> None:
    """Requests come, are answered, lost, given back and cancelled in any order; at no instant does what was spent, lost
    and is reserved pass the limit of one that is let through, and in the end nobody is left waiting."""
    chance = Random(seed)
    limit = Limit(chance.choice((300, 10_000, 100_000)), "l", "Low")
    ledger = Ledger()
    tokens = chance.choice((0, 100, 3_000))
    unlimited = chance.random() < 0.3
    passed = []

    def end(grant: Grant) -> None:
        match chance.randrange(4):
            case 0:
                grant.settle(chance.randrange(grant.amount + 1))
            case 1:
                grant.settle(grant.amount)
            case 2:
                grant.give_back()
            case 3:
                grant.keep()

    async def branch() -> None:
        for _ in range(chance.randrange(1, 4)):
            own = (limit,) if not unlimited or chance.random() < 0.8 else ()
            fixed = chance.randrange(1, 3_000)
            wanted = Need(own, tokens, lambda n, fixed=fixed: fixed + n)  # type: ignore[misc]
            try:
                grant = await ledger.admit(wanted)
            except Refused:
                return
            if own and ledger.spent + ledger.unsettled + ledger.reserved > limit.amount:
                passed.append(ledger.spent + ledger.unsettled + ledger.reserved)
            assert grant.max_tokens == tokens or grant.max_tokens >= LEAST_TOKENS
            try:
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
            except asyncio.CancelledError:
                grant.keep()
                raise
            end(grant)

    tasks = [asyncio.create_task(branch()) for _ in range(64)]
    for _ in range(10):
        await asyncio.sleep(0)
        if chance.random() < 0.5:
            chance.choice(tasks).cancel()
    done: Awaitable[object] = asyncio.gather(*tasks, return_exceptions=True)
    for result in await asyncio.wait_for(done, 20):  # type: ignore[attr-defined]
        assert result is None or isinstance(result, asyncio.CancelledError)
    assert passed == []
    assert ledger.reserved == 0
    if not unlimited:
        assert ledger.spent + ledger.unsettled <= limit.amount
        assert ledger.most <= limit.amount
