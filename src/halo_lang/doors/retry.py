"""Attempts at one model request: how often, how long, with which pauses (tools.md §4, runs.md §6).

Owns the retrying, for every client of models alike. Never retries an attempt that brought an answer, also a cut, empty
or refused one: it was billed. Settles no money: the spend door wraps each attempt and listens to `settled`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

from ..boundary.attempt import AttemptFailed
from ..boundary.call import Answer, failed
from ..boundary.host import ConfigError

FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 20.0
MAX_RETRY_AFTER_S = 60.0
"""The longest `Retry-After` that is honoured. A server that asks for more gets no further attempt: the failure says
so, which is better than a run that seems to hang, or than asking again too early."""


async def with_retries(
    attempt: Callable[[], Awaitable[Answer]],
    retries: int,
    timeout_s: float,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    jitter: Callable[[], float] = random.random,
    settled: Callable[[AttemptFailed], None] | None = None,
    place: Callable[[], AbstractAsyncContextManager[object]] | None = None,
) -> Answer:
    """The answer of the first attempt that brings one, of at most 1 + `retries`; else the last failure as an answer.

    Each attempt has `timeout_s` of its own, from its sending: `place` (a limit on what is under way) is entered before
    its time begins. Pauses grow from half a second to 20 s, half of each by `jitter` (0 to 1), and are at least what
    the server asks for. `settled` is told of every failed attempt, with whether it may have been billed; of one that
    is cancelled too, as `billed=None`. Raises nothing but `CancelledError`.
    """
    tried = 0
    while True:
        tried += 1
        failure = await _try(attempt, timeout_s, place, settled)
        if isinstance(failure, Answer):
            return failure
        if settled is not None:
            settled(failure)
        wait = failure.retry_after_s
        if not failure.retry or tried > retries or (wait is not None and wait > MAX_RETRY_AFTER_S):
            return failed(failure.code, _message(failure, tried, retries))
        pause = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(tried - 1, 10)) * (0.5 + jitter() / 2)
        if wait is not None:
            pause = max(pause, wait + jitter() * FIRST_PAUSE_S)
        await sleep(pause)


async def _try(
    attempt: Callable[[], Awaitable[Answer]],
    timeout_s: float,
    place: Callable[[], AbstractAsyncContextManager[object]] | None,
    settled: Callable[[AttemptFailed], None] | None,
) -> Answer | AttemptFailed:
    if place is not None:
        async with place():
            return await _try(attempt, timeout_s, None, settled)
    try:
        async with asyncio.timeout(timeout_s):
            return await attempt()
    except TimeoutError:
        return AttemptFailed("MODEL_TIMEOUT", f"no answer within {timeout_s:g} s", retry=True)
    except AttemptFailed as failure:
        return failure
    except ConfigError as error:
        return AttemptFailed("CONFIG", str(error), billed=False)
    except asyncio.CancelledError:
        if settled is not None:
            settled(AttemptFailed("MODEL_ERROR", "the attempt was cancelled"))
        raise
    except Exception as error:
        return AttemptFailed("MODEL_ERROR", f"the client of the model failed: {type(error).__name__}")


def _message(failure: AttemptFailed, tried: int, retries: int) -> str:
    wait = failure.retry_after_s
    if failure.retry and tried <= retries and wait is not None:
        return f"{failure.message} (it asks to wait {wait:g} s, more than the {MAX_RETRY_AFTER_S:g} s that Halo waits)"
    return f"{failure.message} ({tried} attempts)" if tried > 1 else failure.message
