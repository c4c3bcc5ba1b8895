"""People: what answers become, one question at a time, and nothing but a yes is one (language.md §7, tools.md §3)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from halo_lang.boundary.call import APPROVAL, LISTEN, YIELD, Answer, Call
from halo_lang.boundary.host import Handlers, Preview, ToolError
from halo_lang.language.source import Span
from halo_lang.providers.people import People


def call(kind: str, target: str = "Files.write", timeout: float | None = None, **args: Any) -> Call:
    if kind == YIELD:
        args = {"message": "Go?", "channel": None, "attachments": [], "timeout": timeout, **args}
    return Call(kind, target, args, (), "1", Span(0, 0))


async def no_preview(call: Call) -> Preview | None:
    return None


def answering(value: Any) -> Any:
    async def handler(call: Call, preview: Preview | None = None) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return handler


# Yields and events -----------------------------------------------------------------------------------------------


async def test_a_yield_is_answered_by_the_handler() -> None:
    people = People(Handlers(on_yield=answering({"approved": True})), no_preview)
    assert await people.answer_yield(call(YIELD)) == Answer({"approved": True})


async def test_a_handler_that_takes_too_long_is_a_no() -> None:
    async def slow(call: Call) -> Any:
        await asyncio.Event().wait()

    people = People(Handlers(on_yield=slow), no_preview)
    assert await people.answer_yield(call(YIELD, timeout=0.01)) == Answer({"approved": False, "timedOut": True})


async def test_the_time_runs_from_when_the_question_is_shown() -> None:
    first_asked = asyncio.Event()
    go = asyncio.Event()

    async def handler(asked: Call) -> Any:
        if asked.args["message"] == "first":
            first_asked.set()
            await go.wait()
        return True

    people = People(Handlers(on_yield=handler), no_preview)
    first = asyncio.create_task(people.answer_yield(call(YIELD, message="first")))
    await first_asked.wait()
    second = asyncio.create_task(people.answer_yield(call(YIELD, timeout=0.05)))
    await asyncio.sleep(0.1)
    go.set()
    assert (await first, await second) == (Answer(True), Answer(True))


async def test_a_handler_that_fails_approves_nothing(caplog: pytest.LogCaptureFixture) -> None:
    people = People(Handlers(on_yield=answering(ValueError("x")), on_approval=answering(KeyError("y"))), no_preview)
    with caplog.at_level(logging.CRITICAL + 1, "halo"):
        assert await people.answer_yield(call(YIELD)) == Answer({"approved": False})
        assert await people.answer_approval(call(APPROVAL)) == Answer({"approved": False})


async def test_an_event_is_the_handlers_payload_and_the_end_of_input_a_failure() -> None:
    assert await People(Handlers(on_listen=answering([1])), no_preview).answer_listen(call(LISTEN, "A.B")) == Answer(
        [1]
    )
    ended = await People(Handlers(on_listen=answering(EOFError())), no_preview).answer_listen(call(LISTEN, "A.B"))
    assert ended.error is not None
    assert (ended.error.code, "A.B" in ended.error.message) == ("CONFIG", True)


async def test_one_question_is_asked_at_a_time() -> None:
    at_once = most = 0

    async def handler(call: Call, preview: Preview | None = None) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return True

    people = People(Handlers(handler, handler, handler), no_preview)
    await asyncio.gather(
        *(people.answer_yield(call(YIELD)) for _ in range(3)),
        *(people.answer_approval(call(APPROVAL)) for _ in range(3)),
        *(people.answer_listen(call(LISTEN)) for _ in range(3)),
    )
    assert most == 1


# Approvals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (True, {"approved": True}),
        (False, {"approved": False}),
        (None, {"approved": False}),
        ("yes", {"approved": False}),
        (1, {"approved": False}),
        ([], {"approved": False}),
        ({"approved": True, "args": {"a": 1}}, {"approved": True, "args": {"a": 1}}),
        ({"approved": False, "reason": "no"}, {"approved": False, "reason": "no"}),
    ],
)
async def test_only_a_yes_is_one(said: object, answer: object) -> None:
    people = People(Handlers(on_approval=answering(said)), no_preview)
    assert (await people.answer_approval(call(APPROVAL))).value == answer


async def test_the_preview_is_shown_and_its_digest_goes_along() -> None:
    seen: list[Preview | None] = []

    async def preview(call: Call) -> Preview:
        return Preview("-a\n+b", "digest-1")

    async def handler(call: Call, shown: Preview | None) -> bool:
        seen.append(shown)
        return True

    answer = await People(Handlers(on_approval=handler), preview).answer_approval(call(APPROVAL))
    assert (answer.digest, seen) == ("digest-1", [Preview("-a\n+b", "digest-1")])


async def test_nobody_is_asked_about_a_call_that_could_not_be_made() -> None:
    async def preview(call: Call) -> Preview:
        raise ToolError("`old` is not in the file")

    people = People(Handlers(on_approval=answering(AssertionError("asked"))), preview)
    answer = await people.answer_approval(call(APPROVAL))
    assert answer.error is not None
    assert (answer.error.code, answer.error.message) == ("TOOL_ERROR", "`old` is not in the file")


async def test_yes_to_all_answers_those_that_wait_and_no_others() -> None:
    asked: list[str] = []
    go = asyncio.Event()

    async def handler(call: Call, preview: Preview | None) -> Any:
        asked.append(f"{call.target} {call.args['n']}")
        await go.wait()
        return {"approved": True, "all": True} if call.args["n"] == 0 else {"approved": False}

    people = People(Handlers(on_approval=handler), no_preview)
    waiting = [asyncio.create_task(people.answer_approval(call(APPROVAL, "Files.write", n=n))) for n in range(3)]
    waiting.append(asyncio.create_task(people.answer_approval(call(APPROVAL, "Files.edit", n=3))))
    await asyncio.sleep(0)
    go.set()
    answers = [(await task).value["approved"] for task in waiting]  # type: ignore[index, call-overload]
    assert answers == [True, True, True, False]
    assert asked == ["Files.write 0", "Files.edit 3"]
    # The run remembers a yes to all itself; where it asks again (a file has changed) it means it.
    again = await people.answer_approval(call(APPROVAL, "Files.write", n=4))
    assert again.value == {"approved": False}
    assert asked[-1] == "Files.write 4"


async def test_a_yes_to_all_with_arguments_that_are_none_answers_nothing_else() -> None:
    said = {"approved": True, "all": True, "args": "path: b"}
    people = People(Handlers(on_approval=answering(said)), no_preview)
    answers = await asyncio.gather(*(people.answer_approval(call(APPROVAL)) for _ in range(2)))
    assert [a.value for a in answers] == [said, said]


async def test_no_to_all_answers_nothing_else() -> None:
    people = People(Handlers(on_approval=answering({"approved": False, "all": True})), no_preview)
    answers = await asyncio.gather(*(people.answer_approval(call(APPROVAL)) for _ in range(2)))
    assert [a.value["approved"] for a in answers] == [False, False]  # type: ignore[index, call-overload]


async def test_a_cancelled_question_lets_the_next_one_be_asked() -> None:
    async def handler(call: Call, preview: Preview | None) -> bool:
        if call.args["n"] == 0:
            await asyncio.Event().wait()
        return True

    people = People(Handlers(on_approval=handler), no_preview)
    first = asyncio.create_task(people.answer_approval(call(APPROVAL, n=0)))
    second = asyncio.create_task(people.answer_approval(call(APPROVAL, n=1)))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).value == {"approved": True}
    with pytest.raises(asyncio.CancelledError):
        await first


def test_who_can_be_asked() -> None:
    some = Handlers(on_approval=answering(True), approves=lambda call: call.target == "Files.write")
    assert some.can_answer(call(APPROVAL, "Files.write"))
    assert not some.can_answer(call(APPROVAL, "Files.edit"))
    assert not Handlers().can_answer(call(APPROVAL))
