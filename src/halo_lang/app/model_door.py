"""The door for agents' requests: attempts, retries, prices and the spend limit around the client of the models.

Owns the order of these for one request: a place among the requests under way, the reservation, the attempt, the
settlement; then, where no billable answer came, the next attempt with a reservation of its own (runs.md §6).
"""

from __future__ import annotations

from contextlib import asynccontextmanager

from ..boundary.attempt import AttemptFailed, Cut
from ..boundary.call import Answer, Failure, failed
from ..boundary.host import ConfigError
from ..catalog.prices import bound, cost, lookup, price_of_answer
from ..doors.retry import with_retries
from ..doors.spend import BEYOND_PLAN, FRAMING_TOKENS, Need, Refused
from ..language.record import replace
from .clock import today

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from ..boundary.call import Call, Limit, ModelRequest
    from ..catalog.prices import Price
    from ..doors.keeping import Keeper
    from ..doors.mask import Mask
    from ..doors.spend import Grant, Ledger
    from ..models.client import ModelClient


class ModelDoor:
    """Answers agents' requests. `models` are `provider/model` by the name in a request (a variable's may differ);
    `tokens` is given an agent's text as it comes; `keeper` notes what is reserved, where the run can be resumed.
    `shadows_unsettled` is what shadows that got no answer may have cost."""

    def __init__(
        self,
        client: ModelClient,
        models: Mapping[str, str],
        prices: Mapping[str, Price],
        ledger: Ledger,
        mask: Mask,
        tokens: Callable[[Call, str], None],
        keeper: Keeper | None = None,
    ) -> None:
        self._client = client
        self._models = models
        self._prices = prices
        self._ledger = ledger
        self._mask = mask
        self._tokens = tokens
        self._keeper = keeper
        self._shadows = 0
        self.shadows_unsettled = 0

    def next_shadow(self) -> int:
        """The number of one more shadow."""
        self._shadows += 1
        return self._shadows

    async def answer(self, call: Call) -> Answer:
        """The answer to one request, with its cost and what attempts without an answer may have cost."""
        assert call.request is not None
        asked = call.request.model
        # A model that somebody chose while the run was held is none of those that were known before.
        request = replace(call.request, model=self._models.get(asked, asked))
        try:
            attempts = _Attempts(self, call, request)
        except Refused as refusal:
            return failed("SPEND_LIMIT", refusal.message)
        try:
            answer = await with_retries(attempts.make, request.retries, request.timeout_s, place=attempts.place)
        except Refused as refusal:
            code = "BEYOND_PLAN" if refusal.limit.policy == BEYOND_PLAN else "SPEND_LIMIT"
            answer = failed(code, refusal.message)
        return replace(answer, unsettled=attempts.unsettled) if attempts.unsettled else answer


class _Attempts:
    """The attempts at one request."""

    def __init__(self, door: ModelDoor, call: Call, request: ModelRequest) -> None:
        self._door = door
        self._call = call
        self._request = request
        self._is_shadow = call.shadow
        self._number = door.next_shadow() if call.shadow else 0
        self._need = _need(door, call, request)
        self._grant: Grant | None = None
        self._watch = None
        if request.stream:
            self._watch = door._mask.watching(lambda text: door._tokens(call, text))
        self.unsettled = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place among the requests under way and a reservation: waiting for them is no part of an attempt's time."""
        door = self._door
        async with door._client.place(self._request.model):
            if self._is_shadow:
                self._grant = door._ledger.fits(self._need)
            else:
                self._grant = await door._ledger.admit(self._need)
            try:
                await self._note_reserved()
                yield
            finally:
                if self._grant is not None:  # the attempt ended without saying how: nobody can know
                    self._keep(self._grant)

    async def make(self) -> Answer:
        grant = self._grant
        if grant is None:
            return failed("SPEND_LIMIT", "skipped: it does not fit below the spend limit")
        sent = replace(self._request, max_tokens=grant.max_tokens)
        try:
            answer = await self._door._client.attempt(sent, self._watch)
        except AttemptFailed as failure:
            if failure.billed is False:
                self._grant = None
                grant.give_back()
            raise
        except ConfigError:  # found before anything was sent
            self._grant = None
            grant.give_back()
            raise
        return self._settled(grant, answer)

    def _settled(self, grant: Grant, answer: Answer) -> Answer:
        request = self._request
        if answer.usage is None:
            return answer  # billed, and nobody says how much: what is reserved stays so
        price = price_of_answer(request.model, answer.model.partition("/")[2], today(), self._door._prices)
        amount = 0 if price is None else cost(price, answer.usage)
        self._grant = None
        grant.settle(amount)
        if price is not None:
            answer = replace(answer, cost=amount)
        if isinstance(answer.error, Cut) and grant.lowered_by is not None:
            answer = replace(answer, error=_cut_by(grant.lowered_by, grant.max_tokens))
        return answer

    async def _note_reserved(self) -> None:
        """Writes down what is reserved for this request, and what its attempts before may have cost, so that a resume
        after a crash counts it; where the run cannot be resumed nobody needs to know."""
        keeper, grant, call = self._door._keeper, self._grant, self._call
        if keeper is not None and keeper.journal is not None and grant is not None:
            amount = self.unsettled + grant.amount
            line = {"type": "reserved", "target": call.target, "scope": call.scope, "amount": amount}
            # Nothing ever says that a shadow was answered: each has its own reservation.
            keeper.note({**line, "shadow": self._number} if call.shadow else line)
            await keeper.sync()

    def _keep(self, grant: Grant) -> None:
        self._grant = None
        amount = grant.keep()
        self.unsettled += amount
        if self._is_shadow:
            self._door.shadows_unsettled += amount


def _need(door: ModelDoor, call: Call, request: ModelRequest) -> Need:
    """What a request could cost, and the limits for it. Raises `Refused` for one under a limit that has no price."""
    price = lookup(request.model, today(), door._prices)
    if price is None:
        if call.limit is not None:
            limit = f"the limit of ${call.limit.text} (policy {call.limit.policy})"
            raise Refused(call.limit, f"the model {request.model} has no price, so {limit} cannot be kept")
        return Need((), request.max_tokens, lambda tokens: 0)
    limits = () if call.limit is None else (call.limit,)
    # A plan cannot price a model that a variable names.
    if door._ledger.kept_limit is not None and call.request is not None and call.request.model == request.model:
        limits = (*limits, door._ledger.kept_limit)
    tokens_sent = door._client.wire_bytes(request) + FRAMING_TOKENS
    priced = price
    return Need(limits, request.max_tokens, lambda tokens: bound(priced, tokens_sent, tokens))


def _cut_by(limit: Limit, max_tokens: int) -> Failure:
    if limit.policy == BEYOND_PLAN:
        return Failure("BEYOND_PLAN", f"the kept plan left {max_tokens} tokens for this reply, and it was cut there")
    return Failure(
        "SPEND_LIMIT",
        f"the limit of ${limit.text} (policy {limit.policy}) left {max_tokens} tokens for this reply, "
        "and it was cut there",
    )
