"""The live doors of one run: models, tools, the system and people, wired together.

Owns what stands between a call and whoever answers it: retries, prices, time-outs, bounds on results, masking. Says
nothing of when a call is made; that is the loop's (`doors/answering.py`).
"""

from __future__ import annotations

import asyncio

from ..boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Call, failed
from ..boundary.host import Given, Preview, ToolError
from ..catalog.prices import cost, price_of_answer
from ..doors.retry import with_retries
from ..language.record import replace
from ..providers.people import People
from ..providers.results import bounded
from .clock import now, today

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..boundary.host import Handlers, ProviderInstance
    from ..catalog.prices import Price
    from ..check.program import Tool
    from ..doors.live import Door
    from ..doors.mask import Mask
    from ..language.values import Value
    from ..models.client import ModelClient

    Tokens = Callable[[Call, str], None]


def live_doors(
    client: ModelClient,
    models: Mapping[str, str],
    tools: Mapping[str, tuple[Tool, ProviderInstance]],
    handlers: Handlers,
    *,
    prices: Mapping[str, Price],
    mask: Mask,
    publish: Callable[[Value], None],
    tokens: Tokens,
) -> dict[str, Door]:
    """A door for each kind of call that can be answered, by kind; every answer is masked.

    `models` are `provider/model` by the name in a request; `tokens` gets an agent's text as it comes.
    """

    async def preview(call: Call) -> Preview | None:
        _, instance = tools[call.target.partition(".")[0]]
        shown = getattr(instance, "preview", None)
        return None if shown is None else await shown(call.target.partition(".")[2], call.args)

    people = People(handlers, preview)
    doors: dict[str, Door] = {
        AGENT: _models(client, models, prices, mask, tokens),
        TOOL: _tools(tools, publish),
    }
    if handlers.on_yield is not None:
        doors[YIELD] = people.answer_yield
    if handlers.on_approval is not None:
        doors[APPROVAL] = people.answer_approval
    if handlers.on_listen is not None:
        doors[LISTEN] = people.answer_listen
    return {kind: _masked(door, mask) for kind, door in doors.items()}


def _masked(door: Door, mask: Mask) -> Door:
    async def masked(call: Call) -> Answer:
        return mask.answer(await door(call))

    return masked


def _models(
    client: ModelClient, models: Mapping[str, str], prices: Mapping[str, Price], mask: Mask, tokens: Tokens
) -> Door:
    async def ask(call: Call) -> Answer:
        assert call.request is not None
        request = replace(call.request, model=models[call.request.model])
        watch = mask.watching(lambda text: tokens(call, text)) if request.stream else None
        answer = await with_retries(
            lambda: client.attempt(request, watch),
            request.retries,
            request.timeout_s,
            place=lambda: client.place(request.model),
        )
        if answer.usage is None:
            return answer
        price = price_of_answer(request.model, answer.model.partition("/")[2], today(), prices)
        return answer if price is None else replace(answer, cost=cost(price, answer.usage))

    return ask


def _tools(tools: Mapping[str, tuple[Tool, ProviderInstance]], publish: Callable[[Value], None]) -> Door:
    async def use(call: Call) -> Answer:
        name, _, method = call.target.partition(".")
        if name == "System":
            return await _system(method, call.args, publish)
        tool, instance = tools[name]
        described = tool.method(method)
        limit_s = described.timeout_s if described is not None else None
        given = Given(call.digest, call.denied_paths)
        try:
            async with asyncio.timeout(limit_s):
                return Answer(bounded(await instance.call(method, call.args, given)))
        except ToolError as trouble:
            return failed(trouble.code, trouble.message)
        except TimeoutError:
            return failed("TOOL_TIMEOUT", f"`{call.target}` took longer than {limit_s:g} s")

    return use


async def _system(method: str, args: Mapping[str, Value], publish: Callable[[Value], None]) -> Answer:
    if method == "Now":
        return Answer(now())
    if method == "Wait":
        await asyncio.sleep(float(args["seconds"]))  # type: ignore[arg-type]
        return Answer(None)
    publish(args["value"])
    return Answer(None)
