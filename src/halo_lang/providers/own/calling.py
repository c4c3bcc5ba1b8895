"""Calls of functions and of an object's methods, as of any provider.

Owns what stands between a call and the author's own code: arguments are held to their schema first, what the code gives
is made JSON, and whatever it raises becomes one line for a model. A function that is not asynchronous runs in a thread,
which nothing can stop: a cancelled call leaves it behind after some seconds.
"""

from __future__ import annotations

import asyncio
import inspect

from ...boundary.call import DESCRIBE
from ...boundary.host import ConfigError, Given, ToolError
from ...catalog.describe import value_error
from ...language.values import plain
from ..arguments import refuse_arguments
from ..blocking import held, in_thread
from ..results import bounded
from .types import fitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from ...catalog.describe import Method, Provider, Setting
    from ...language.values import Value

CLOSING = ("aclose", "close")
"""The methods of a class that end its use: the first that it has and that is no method of the tool."""

_MAX_SAID = 1_000


class Started:
    """A started provider. `functions` carry out the methods; `closing` ends the use of what they belong to."""

    def __init__(
        self,
        name: str,
        methods: Sequence[Method],
        functions: Mapping[str, Callable[..., Any]],
        closing: Callable[[], Any] | None = None,
    ) -> None:
        self._name = name
        self._methods = {method.name: method for method in methods}
        self._functions = functions
        self._closing = closing

    async def call(self, method: str, args: Mapping[str, Value], given: Given | None = None) -> Value:
        """What the function gives, as JSON. Raises `ToolError` for whatever it raises."""
        if method == DESCRIBE:
            return [_entry(one) for one in self._methods.values()]
        described = self._methods.get(method)
        if described is None:
            raise ToolError(f"`{self._name}` has no method `{method}`; it has {', '.join(self._methods)}")
        refuse_arguments(described, args)
        schemas = described.schema["properties"]
        named = {name: fitted(schemas[name], value) for name, value in args.items()}
        try:
            async with asyncio.timeout(described.timeout_s) as limit:
                value = await _value_of(self._functions[method], named)
        except ToolError:
            raise
        except TimeoutError as error:
            if limit.expired():
                raise ToolError(f"it took longer than {described.timeout_s:g} s", "TOOL_TIMEOUT") from None
            raise ToolError(said(error)) from None
        except Exception as error:
            raise ToolError(said(error)) from None
        try:
            return bounded(plain(value, mends=True))
        except ValueError as trouble:
            raise ToolError(f"what it gave is no JSON: {str(trouble)[:200]}") from None

    async def close(self) -> None:
        """Ends the use of the author's object; a failure of that is nobody's any more."""
        closing, self._closing = self._closing, None
        if closing is None:
            return
        try:
            done = closing()
            if inspect.isawaitable(done):
                await done
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException:
            import logging

            logging.getLogger("halo").debug("closing %s", self._name, exc_info=True)


def started(
    provider: Provider, cls: Callable[..., Any], methods: Sequence[Method], given: Mapping[str, Any]
) -> Started:
    """An object of a class, made with settings: by name, or, where they were read without a description, also by
    place (`"0"`, `"1"`). Raises `ConfigError` for one that does not fit, and for whatever its making raises."""
    name = provider.name
    positional = [s for s in provider.settings if s.positional]
    by_place = [given[str(at)] for at in range(len(given)) if str(at) in given]
    by_name = {key: value for key, value in given.items() if not key.isdigit()}
    if len(by_place) > len(positional):
        raise ConfigError(f"`{name}` takes {len(positional)} arguments without a name, and gets {len(by_place)}")
    by_place = [_setting(setting, value) for setting, value in zip(positional, by_place, strict=False)]
    by_name |= {s.name: _setting(s, by_name[s.name]) for s in provider.settings if s.name in by_name}
    try:
        made = cls(*by_place, **by_name)
    except (ConfigError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ConfigError(f"`{name}` cannot be started: {said(error)}") from None
    functions = {method.name: getattr(made, method.name) for method in methods}
    found = (getattr(made, ending, None) for ending in CLOSING if ending not in functions)
    return Started(name, methods, functions, next(filter(callable, found), None))


def _setting(setting: Setting, value: Any) -> Any:
    """A setting's value as the class expects it. A variable's is only known now. Raises `ConfigError`, which does not
    hold the value: it may be a secret."""
    trouble = value_error(setting.schema, value)
    if trouble is not None:
        raise ConfigError(f"`{setting.name}` {trouble}")
    return fitted(setting.schema, value)


def said(error: BaseException) -> str:
    """What an exception says, on one line: its kind and its message, without a stack trace."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    kind = type(error).__name__
    text = "".join(c if c.isprintable() else "?" for c in text[:_MAX_SAID])
    return f"{kind}: {text}" if text else kind


async def _value_of(function: Callable[..., Any], named: Mapping[str, Any]) -> Any:
    value: Any
    if inspect.iscoroutinefunction(function):
        value, error = function(**named), None
    else:
        value, error = await in_thread(lambda _: _outcome(function, named))
    if error is None and inspect.isawaitable(value):
        value, error = await held(_awaited(value))
    if error is None:
        return value
    if isinstance(error, Exception | KeyboardInterrupt | asyncio.CancelledError):
        raise error
    raise ToolError(said(error))  # such as SystemExit, which would end more than the call


async def _awaited(value: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """What a coroutine gives, or raises: some exceptions would leave its task for the event loop."""
    try:
        return await value, None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:
        return None, error


def _outcome(function: Callable[..., Any], named: Mapping[str, Any]) -> tuple[Any, BaseException | None]:
    """What a function gives, or raises: some exceptions cannot leave a thread."""
    try:
        return function(**named), None
    except StopIteration as error:
        return None, RuntimeError(said(error))
    except BaseException as error:
        return None, error


def _entry(method: Method) -> Value:
    return {
        "name": method.name,
        "about": method.about,
        "schema": method.schema,
        "effect": method.effect,
        "idempotent": method.idempotent,
        "timeout": method.timeout_s,
    }
