"""The live doors of one run: models, tools, the system and people, wired together.

Owns what stands between a call and whoever answers it: time-outs, bounds on results, masking. Says nothing of when a
call is made; that is the loop's (`doors/answering.py`). Read `model_door.py` for models.
"""

from __future__ import annotations

import asyncio

from ..boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Call, failed, has_effect
from ..boundary.host import Given, ToolError
from ..providers.people import People
from ..providers.results import bounded
from .clock import now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ..boundary.host import Handlers, Preview, ProviderInstance
    from ..check.program import Tool
    from ..doors.keeping import Keeper
    from ..doors.live import Door
    from ..doors.mask import Mask
    from ..language.values import Value


def live_doors(
    models: Door,
    tools: Mapping[str, tuple[Tool, ProviderInstance]],
    handlers: Handlers,
    preview: Callable[[Call], Awaitable[Preview | None]],
    *,
    mask: Mask,
    publish: Callable[[Value], None],
    refusal: Callable[[Call], Answer | None] | None = None,
    keeper: Keeper | None = None,
) -> dict[str, Door]:
    """A door for each kind of call that can be answered, by kind; every answer is masked.

    `models` answers agents' requests (`model_door.py`); `preview` shows what a call to approve would change (see
    `previews`). `refusal` answers calls that are not to be made at all. `keeper` notes that a call with an effect
    begins, where the run can be resumed.
    """
    for _, instance in tools.values():
        for name, value in getattr(instance, "secrets", {}).items():
            mask.add(name, value)  # variables that a provider's own configuration refers to
    people = People(handlers, preview)
    doors: dict[str, Door] = {
        AGENT: models,
        TOOL: _tools(tools, mask, publish, keeper),
    }
    if handlers.on_yield is not None:
        doors[YIELD] = people.answer_yield
    if handlers.on_approval is not None:
        doors[APPROVAL] = people.answer_approval
    if handlers.on_listen is not None:
        doors[LISTEN] = people.answer_listen
    return {kind: _masked(door, mask, refusal) for kind, door in doors.items()}


def previews(
    tools: Mapping[str, tuple[Tool, ProviderInstance]],
) -> Callable[[Call], Awaitable[Preview | None]]:
    """The function that shows what a call to approve would change, for tools that can tell. It raises `ToolError`."""

    async def preview(call: Call) -> Preview | None:
        name, _, method = call.target.partition(".")
        shown = getattr(tools[name][1], "preview", None) if name in tools else None
        return None if shown is None else await shown(method, call.args)

    return preview


def _masked(door: Door, mask: Mask, refusal: Callable[[Call], Answer | None] | None) -> Door:
    async def masked(call: Call) -> Answer:
        refused = None if refusal is None else refusal(call)
        return mask.answer(await door(call)) if refused is None else refused

    return masked


def _tools(
    tools: Mapping[str, tuple[Tool, ProviderInstance]],
    mask: Mask,
    publish: Callable[[Value], None],
    keeper: Keeper | None,
) -> Door:
    async def use(call: Call) -> Answer:
        if keeper is not None and keeper.journal is not None and has_effect(call):
            keeper.note({"type": "begun", "target": call.target, "scope": call.scope, "args": call.args})
            await keeper.sync()
        name, _, method = call.target.partition(".")
        if name == "System":
            return await _system(method, call.args, publish)
        tool, instance = tools[name]
        described = tool.method(method)
        limit_s = described.timeout_s if described is not None else None
        given = Given(call.digest, call.denied_paths, call.described)
        try:
            async with asyncio.timeout(limit_s):
                value = await instance.call(method, call.args, given)
                # Masked first: a secret that is cut in two would no longer be known as one.
                return Answer(bounded(mask.value(value)))
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
