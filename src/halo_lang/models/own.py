"""Models that are a function of somebody's own: `runtime.register_model("provider", function)` (library.md).

Owns what such a function may give, and what its failures mean. It is asked once for each attempt, and told of nothing
but the request. Its answer costs what the price list says, if it says how many tokens it used.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Awaitable, Callable

from ..boundary.attempt import AttemptFailed
from ..boundary.call import Answer, ModelRequest
from ..boundary.host import ConfigError
from ..language.record import replace
from ..language.values import Value, plain
from .providers import EMBEDDED, PROVIDERS
from .reply import STOPPED, answer, clean, mended

OwnModel = Callable[[ModelRequest], Awaitable[str | Answer] | str | Answer]
"""Answers a request with a text, or with an `Answer` for tool calls and usage."""


def refuse_provider(name: object) -> None:
    """Raises `ConfigError` for what cannot be the name of a provider of one's own."""
    if not isinstance(name, str) or not name or "/" in name or not name.isprintable() or " " in name:
        raise ConfigError(f"a model's provider is what stands before the slash of `provider/model`, not {name!r}")
    if name in PROVIDERS or name == EMBEDDED:
        raise ConfigError(f"`{name}` is a provider of models that Halo knows; choose another name")


async def attempt(function: OwnModel, request: ModelRequest, watch: Callable[[str], None] | None) -> Answer:
    """As `ModelClient.attempt`. Whatever the function raises is a failed attempt; `AttemptFailed` says more about it,
    such as that another one may succeed."""
    try:
        given = function(request)
        if inspect.isawaitable(given):
            given = await given
    except (AttemptFailed, KeyboardInterrupt, CancelledError):
        raise
    except BaseException as error:
        raise AttemptFailed("MODEL_ERROR", f"{request.model}: {type(error).__name__}: {clean(str(error))}") from None
    if isinstance(given, str):
        made = answer(request, None, given, (), None, STOPPED)
    elif isinstance(given, Answer):
        try:
            uses = tuple(replace(use, args=_object(use.args)) for use in given.tool_uses)
            made = replace(given, value=plain(given.value), tool_uses=uses, model=given.model or request.model)
        except ValueError as trouble:
            raise AttemptFailed("MODEL_ERROR", f"{request.model} gave what is no JSON: {trouble}") from None
    else:
        kind = type(given).__name__
        raise AttemptFailed("MODEL_ERROR", f"{request.model} gave a {kind}; a model gives a text or an `Answer`")
    if watch is not None and isinstance(made.value, str) and made.value:
        watch(mended(made.value))
    return made


def _object(args: object) -> dict[str, Value] | None:
    """The arguments of a tool call, None where they are no object."""
    made = plain(args)
    return made if isinstance(made, dict) else None
