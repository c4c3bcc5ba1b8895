"""The door for agents' requests (runs.md §6): every attempt is reserved for, and settled by what became of it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import pytest

from halo_lang.app.model_door import ModelDoor
from halo_lang.boundary.attempt import AttemptFailed, Cut
from halo_lang.boundary.call import AGENT, Answer, Call, Failure, Limit, ModelRequest, Usage
from halo_lang.boundary.host import ConfigError
from halo_lang.catalog.prices import Price, Step
from halo_lang.doors import retry
from halo_lang.doors.mask import Mask
from halo_lang.doors.spend import BEYOND_PLAN, FRAMING_TOKENS, Ledger, Need
from halo_lang.language.record import replace
from halo_lang.language.source import Span

PRICES = {"openai/m": Price((Step(0, 1_000_000, 1_000_000, 1_000_000, 1_000_000),))}
"""One nano-dollar a token."""

BYTES = 500
SENT = BYTES + FRAMING_TOKENS
"""What the input of each request is reserved for."""


class Client:
    """Answers attempt by attempt from a list: an answer, an exception, or None for one that never comes."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)
        self.sent: list[ModelRequest] = []
        self.reserved: list[int] = []
        self.ledger: Ledger | None = None

    @asynccontextmanager
    async def place(self, model: str) -> Any:
        yield

    def wire_bytes(self, request: ModelRequest) -> int:
        return BYTES

    async def attempt(self, request: ModelRequest, watch: Any = None) -> Answer:
        self.sent.append(request)
        assert self.ledger is not None
        self.reserved.append(self.ledger.reserved)
        end = self.ends.pop(0)
        if end is None:
            await asyncio.Event().wait()
        if isinstance(end, Exception):
            raise end
        return end  # type: ignore[no-any-return]


def call(limit: int | None = None, *, model: str = "openai/m", shadow: bool = False, **more: Any) -> Call:
    request = replace(ModelRequest(model, "", (), (), 1_000, None, None, 5.0, 2), **more)
    own = None if limit is None else Limit(limit, "0.01", "Low")
    return Call(AGENT, "A.go", {}, (), "1", Span(0, 1), request=request, limit=own, shadow=shadow)


def door(client: Client, kept: Limit | None = None, **models: str) -> tuple[ModelDoor, Ledger]:
    ledger = client.ledger = Ledger(kept)
    names = {"openai/m": "openai/m", "openai/unknown": "openai/unknown", **models}
    made = ModelDoor(client, names, PRICES, ledger, Mask({}), lambda call, text: None)  # type: ignore[arg-type]
    return made, ledger


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(retry.with_retries, "__kwdefaults__", {**retry.with_retries.__kwdefaults__, "sleep": at_once})


def answered(into: int = 100, out: int = 10, **more: Any) -> Answer:
    return Answer("text", usage=Usage(into, out), model="openai/m", **more)


BILLED, UNBILLED = (AttemptFailed("MODEL_ERROR", "torn", True, None), AttemptFailed("MODEL_ERROR", "busy", True, False))


async def test_an_answer_costs_what_it_says() -> None:
    client = Client(answered())
    made, ledger = door(client)
    assert (await made.answer(call())).cost == 110
    assert client.reserved == [SENT + 1_000]
    assert (ledger.spent, ledger.reserved, ledger.unsettled) == (110, 0, 0)


async def test_an_attempt_that_was_surely_not_billed_gives_its_reservation_back() -> None:
    client = Client(UNBILLED, UNBILLED, answered())
    made, ledger = door(client)
    answer = await made.answer(call())
    assert (answer.cost, answer.unsettled) == (110, 0)
    assert client.reserved == [SENT + 1_000] * 3
    assert (ledger.spent, ledger.unsettled) == (110, 0)


async def test_an_attempt_that_nobody_knows_of_keeps_it_and_the_next_reserves_for_itself() -> None:
    client = Client(BILLED, answered())
    made, ledger = door(client)
    answer = await made.answer(call(2 * (SENT + 1_000)))
    assert (answer.cost, answer.unsettled) == (110, SENT + 1_000)
    assert (ledger.spent, ledger.unsettled, ledger.reserved) == (110, SENT + 1_000, 0)


async def test_the_next_attempt_has_less_room() -> None:
    client = Client(BILLED, answered())
    made, _ = door(client)
    await made.answer(call(2 * (SENT + 1_000) - 300))
    assert [request.max_tokens for request in client.sent] == [1_000, 700]


async def test_the_next_attempt_may_not_fit_any_more() -> None:
    client = Client(BILLED)
    made, ledger = door(client)
    answer = await made.answer(call(SENT + 1_500))
    assert answer.error is not None
    assert answer.error.code == "SPEND_LIMIT"
    assert answer.unsettled == ledger.unsettled == SENT + 1_000
    assert len(client.sent) == 1


async def test_an_attempt_that_hangs_is_unsettled() -> None:
    client = Client(None)
    made, ledger = door(client)
    answer = await made.answer(call(retries=0, timeout_s=0.001))
    assert answer.error is not None
    assert (answer.error.code, ledger.unsettled) == ("MODEL_TIMEOUT", SENT + 1_000)


async def test_an_attempt_that_is_cancelled_is_unsettled() -> None:
    client = Client(None)
    made, ledger = door(client)
    task = asyncio.create_task(made.answer(call()))
    while not client.sent:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (ledger.reserved, ledger.unsettled) == (0, SENT + 1_000)


async def test_a_client_that_breaks_is_unsettled_and_one_that_was_never_ready_is_not() -> None:
    made, ledger = door(Client(OSError("broken")))
    await made.answer(call(retries=0))
    assert ledger.unsettled == SENT + 1_000
    made, ledger = door(Client(ConfigError("no key")))
    answer = await made.answer(call())
    assert answer.error is not None
    assert (answer.error.code, ledger.unsettled, ledger.reserved) == ("CONFIG", 0, 0)


async def test_an_answer_that_does_not_say_what_it_used_is_unsettled() -> None:
    made, ledger = door(Client(Answer("text", model="openai/m")))
    answer = await made.answer(call())
    assert (answer.value, answer.cost, answer.unsettled) == ("text", None, SENT + 1_000)
    assert ledger.unsettled == SENT + 1_000


async def test_a_refused_or_cut_reply_is_paid_for_and_not_tried_again() -> None:
    for error in (Cut("MODEL_ERROR", "cut"), Failure("MODEL_ERROR", "refused")):
        client = Client(answered(error=error))
        made, ledger = door(client)
        answer = await made.answer(call(100_000))
        assert (answer.error, answer.cost, ledger.spent) == (error, 110, 110)


async def test_a_reply_that_the_limit_has_cut_is_the_limits_failure() -> None:
    client = Client(answered(error=Cut("MODEL_ERROR", "cut")))
    made, _ = door(client)
    answer = await made.answer(call(SENT + 400))
    assert client.sent[0].max_tokens == 400
    assert answer.error == Failure(
        "SPEND_LIMIT", "the limit of $0.01 (policy Low) left 400 tokens for this reply, and it was cut there"
    )
    assert answer.cost == 110


async def test_a_lowered_reply_that_ends_by_itself_is_an_answer() -> None:
    made, _ = door(Client(answered()))
    assert (await made.answer(call(SENT + 400))).error is None


async def test_a_request_that_does_not_fit_is_never_sent() -> None:
    client = Client()
    made, _ = door(client)
    answer = await made.answer(call(SENT + 255))
    assert answer.error is not None
    assert answer.error.code == "SPEND_LIMIT"
    assert client.sent == []


async def test_a_model_without_a_price_under_a_limit_is_never_sent() -> None:
    client = Client()
    made, _ = door(client)
    answer = await made.answer(call(100_000, model="openai/unknown"))
    assert answer.error == Failure(
        "SPEND_LIMIT", "the model openai/unknown has no price, so the limit of $0.01 (policy Low) cannot be kept"
    )
    assert client.sent == []


async def test_a_model_without_a_price_and_without_a_limit_costs_nothing_that_is_known() -> None:
    made, ledger = door(Client(Answer("text", usage=Usage(1, 1), model="openai/unknown")))
    assert (await made.answer(call(model="openai/unknown"))).cost is None
    assert ledger.spent == 0


async def test_a_shadow_that_does_not_fit_is_skipped() -> None:
    client = Client()
    made, ledger = door(client)
    answer = await made.answer(call(SENT + 999, shadow=True))
    assert answer.error is not None
    assert answer.error.code == "SPEND_LIMIT"
    assert (client.sent, ledger.reserved) == ([], 0)


async def test_waiting_for_room_is_no_part_of_an_attempts_time() -> None:
    client = Client(answered())
    made, ledger = door(client)
    limit = SENT + 1_000
    before = ledger.fits(Need((), 0, lambda tokens: limit))
    assert before is not None
    task = asyncio.create_task(made.answer(call(limit, timeout_s=0.02, retries=0)))
    await asyncio.sleep(0.1)
    assert client.sent == []
    before.give_back()
    assert (await task).cost == 110


# A kept plan -----------------------------------------------------------------------------------------------------


async def test_a_cost_beyond_a_kept_plan_is_never_spent() -> None:
    kept = Limit(SENT + 1_100, "0.0000", BEYOND_PLAN)
    client = Client(answered(500, 500))
    made, _ = door(client, kept)
    assert (await made.answer(call())).cost == 1_000
    answer = await made.answer(call())
    assert answer.error is not None
    assert answer.error.code == "BEYOND_PLAN"
    assert len(client.sent) == 1


async def test_a_reply_that_a_kept_plan_has_cut() -> None:
    client = Client(answered(error=Cut("MODEL_ERROR", "cut")))
    made, _ = door(client, Limit(SENT + 300, "0.0000", BEYOND_PLAN))
    answer = await made.answer(call(100_000))
    assert answer.error == Failure("BEYOND_PLAN", "the kept plan left 300 tokens for this reply, and it was cut there")


async def test_a_model_that_a_variable_names_is_not_in_the_kept_plans_cost() -> None:
    client = Client(answered(5_000, 500), answered())
    made, ledger = door(client, Limit(SENT + 1_000, "0.0000", BEYOND_PLAN), **{"Env.M": "openai/m"})
    assert (await made.answer(call(model="Env.M"))).cost == 5_500
    assert (await made.answer(call())).cost == 110
    assert ledger.spent == 5_610
