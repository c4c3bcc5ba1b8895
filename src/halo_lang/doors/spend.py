"""The spend limit: what a request may cost is reserved before it is sent (runs.md §6).

Owns the one ledger of a run, in whole nano-dollars. A request that stands under a limit is let through only if what was
spent, what requests under way have reserved and its own worst case fit below the limit together; so no run passes its
limit, in parallel branches too, as far as the provider keeps to `max_tokens` and its prices. Sends nothing itself.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ..boundary.call import Limit
from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_TOKENS = 256
"""What `max_tokens` may be lowered to, where no request under way can make room."""

FRAMING_TOKENS = 1_000
"""The allowance, on top of the bytes that are sent, for what a provider adds on its own: the marks between messages,
and what it tells the model about tools."""

BEYOND_PLAN = "the kept plan"
"""The policy's name in a `Limit` that a kept plan sets."""


class Need(Record):
    """What a request could cost: `cost(max_tokens)` bounds it, `max_tokens` is what it asks for. `limits` are those
    that hold for it; none: it is counted and never held up."""

    limits: tuple[Limit, ...]
    max_tokens: int
    cost: Callable[[int], int]


class Refused(Exception):
    """A request does not fit below a limit, and nothing under way can make room."""

    def __init__(self, limit: Limit, message: str) -> None:
        super().__init__(message)
        self.limit = limit
        self.message = message


class Grant:
    """A request that was let through with `max_tokens`, which the limit `lowered_by` has lowered where that is not
    None; `amount` is reserved for it. Exactly one of `settle`, `give_back` and `keep` is called when its attempt has
    ended."""

    __slots__ = ("_is_beside", "_ledger", "amount", "lowered_by", "max_tokens")

    def __init__(
        self, ledger: Ledger, max_tokens: int, amount: int, lowered_by: Limit | None = None, *, is_beside: bool = False
    ) -> None:
        self._ledger = ledger
        self._is_beside = is_beside
        self.amount = amount
        self.max_tokens = max_tokens
        self.lowered_by = lowered_by

    def settle(self, cost: int) -> None:
        """The request was answered, and cost so much."""
        self._end(spent=cost)

    def give_back(self) -> None:
        """The request was surely not billed."""
        self._end()

    def keep(self) -> int:
        """Nobody can know whether the request was billed: it counts in full. Gives the amount."""
        amount = self.amount
        self._end(unsettled=amount)
        return amount

    def _end(self, spent: int = 0, unsettled: int = 0) -> None:
        amount, self.amount = self.amount, 0
        self._ledger._release(amount, spent, unsettled, is_beside=self._is_beside)


class Ledger:
    """What one run has spent, and what requests under way have reserved.

    `spent` is what answered requests cost, `unsettled` what requests without an answer may have cost, `reserved` the
    worst case of those under way. The three together never pass the limit of a request that is let through. Toward the
    limit that a kept plan sets only requests under it count: what the plan could not price it does not bound.
    """

    __slots__ = ("_beside", "_waiting", "kept_limit", "most", "reserved", "spent", "unsettled")

    def __init__(self, kept_limit: Limit | None = None) -> None:
        self.kept_limit = kept_limit
        self.spent = 0
        self.unsettled = 0
        self.reserved = 0
        self.most = 0
        self._beside = 0
        self._waiting: deque[tuple[Need, asyncio.Future[Grant]]] = deque()

    async def admit(self, need: Need) -> Grant:
        """Lets a request through, when it fits: first come, first served. Raises `Refused`."""
        if not need.limits:
            return self._grant(need, need.max_tokens)
        if not self._waiting:
            granted = self._try(need)
            if granted is not None:
                return granted
        turn: asyncio.Future[Grant] = asyncio.get_running_loop().create_future()
        entry = (need, turn)
        self._waiting.append(entry)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                turn.result().give_back()  # let through and cancelled in the same moment: it was never sent
            elif entry in self._waiting:
                self._waiting.remove(entry)
                self._serve()
            raise

    def fits(self, need: Need) -> Grant | None:
        """Lets a request through if it fits as it is and nobody waits, else gives None (a shadow's)."""
        if need.limits and (self._waiting or self._lowest_room(need)[0] < need.cost(need.max_tokens)):
            return None
        return self._grant(need, need.max_tokens)

    def _try(self, need: Need) -> Grant | None:
        """The grant, or None where it must wait for requests under way. Raises `Refused`."""
        room, limit = self._lowest_room(need)
        if need.cost(need.max_tokens) <= room:
            return self._grant(need, need.max_tokens)
        if self.reserved:
            return None
        lowered = _most_tokens(need, room)
        if lowered < LEAST_TOKENS:
            raise Refused(limit, self._refusal(need, limit))
        return self._grant(need, lowered, limit)

    def _lowest_room(self, need: Need) -> tuple[int, Limit]:
        """What the limits of a request leave, and the one that leaves least."""
        limit = min(need.limits, key=self._room)
        return self._room(limit), limit

    def _room(self, limit: Limit) -> int:
        counted = self.spent + self.unsettled + self.reserved
        return limit.amount - (counted - self._beside if limit is self.kept_limit else counted)

    def _grant(self, need: Need, max_tokens: int, lowered_by: Limit | None = None) -> Grant:
        amount = need.cost(max_tokens)
        is_beside = self.kept_limit is not None and self.kept_limit not in need.limits
        self.reserved += amount
        if is_beside:
            self._beside += amount
        self.most = max(self.most, self.spent + self.unsettled + self.reserved)
        return Grant(self, max_tokens, amount, lowered_by, is_beside=is_beside)

    def _release(self, amount: int, spent: int, unsettled: int, *, is_beside: bool) -> None:
        self.reserved -= amount
        self.spent += spent
        self.unsettled += unsettled
        if is_beside:
            self._beside += spent + unsettled - amount
        self._serve()

    def _serve(self) -> None:
        """Lets through those that wait, in order, as far as they fit."""
        while self._waiting:
            need, turn = self._waiting[0]
            if turn.cancelled():
                self._waiting.popleft()
                continue
            try:
                granted = self._try(need)
            except Refused as refusal:
                self._waiting.popleft()
                turn.set_exception(refusal)
                continue
            if granted is None:
                return
            self._waiting.popleft()
            turn.set_result(granted)

    def _refusal(self, need: Need, limit: Limit) -> str:
        what = f"the limit of ${limit.text} (policy {limit.policy})"
        if limit.policy == BEYOND_PLAN:
            what = f"the ${limit.text} that the kept plan allows"
        unsettled = f", ${_dollars(self.unsettled)} more may have been spent" if self.unsettled else ""
        return (
            f"{what} does not leave enough: ${_dollars(self.spent)} is spent{unsettled}, "
            f"and this request could cost ${_dollars(need.cost(need.max_tokens))}"
        )


def _most_tokens(need: Need, room: int) -> int:
    """The most `max_tokens` whose cost fits in the room; below the least there need be no exact answer."""
    low, high = 0, need.max_tokens
    while low < high:
        middle = (low + high + 1) // 2
        if need.cost(middle) <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _dollars(nano: int) -> str:
    return f"{nano / 1_000_000_000:.4f}"
