"""Bounds: how often a stage can run and what its model requests can cost (plan.md "Cost").

Owns the arithmetic. Errs upward everywhere: a bound that is too high costs patience, one that is too low is a lie.
Prices are looked up by a function that is given; amounts are nano-dollars.
"""

from __future__ import annotations

from ..catalog.describe import EnvRef
from ..catalog.prices import bound
from ..check.program import EachStage, LoopStage
from ..language.ast import Number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..catalog.prices import Price
    from ..check.program import AgentCall, CheckedPipeline, CheckedStage

    Prices: TypeAlias = Callable[[str], Price | None]

INPUT_TOKENS = 2_000
"""The allowance for inputs that a plan cannot know."""

MAX_TIMES = 10**15
"""No run does anything more often: at a million times a second that takes thirty years. A bound goes no higher, so that
numbers in a file, however large, make none that cannot be shown."""

MAX_COST = 10**50
"""Nano-dollars past which a bound says nothing more."""

SUMMED_ONE_BY_ONE = 1_000
"""Requests of one call that are summed one by one; of more the sum is bounded at once."""


def model_name(call: AgentCall) -> str:
    """The model as a plan shows it: `provider/model`, or `Env.NAME` where a variable holds it."""
    model = call.agent.model
    return f"Env.{model.name}" if isinstance(model, EnvRef) else model


def requests(call: AgentCall, *, shadow: bool = False) -> int:
    """The most model requests that one run of the call makes: one, or with tools one a round and the last."""
    return call.options.max_steps + 1 if call.tools and not shadow else 1


def call_cost(call: AgentCall, prices: Prices, input_tokens: int, *, shadow: bool = False) -> int | None:
    """The most that one run of the call can cost, or None where its model has no price.

    A request sends the written instructions and the system prompt, a token a byte at most, and the allowance; one
    after a round of tool calls also the replies before it, each a full one.
    """
    if isinstance(call.agent.model, EnvRef):
        return None
    price = prices(call.agent.model)
    if price is None:
        return None
    first = _written_bytes(call) + input_tokens
    output, count = call.options.max_tokens, requests(call, shadow=shadow)
    if count <= SUMMED_ONE_BY_ONE:
        cost = sum(bound(price, first + at * output, output) for at in range(count))
    else:  # all their tokens as one request's, at no lower price, and the nano-dollar by which each may be rounded up
        cost = bound(price, first * count + output * (count * (count - 1) // 2), output * count) + count
    return min(cost, MAX_COST)


def _written_bytes(call: AgentCall) -> int:
    written = sum(_bytes(part) for text in call.instructions for part in text.parts if isinstance(part, str))
    return written + _bytes(call.agent.system)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def loops_around(pipeline: CheckedPipeline) -> tuple[int, ...]:
    """For each stage the most times that the pipeline's own loops let it run: the product of the `max` of every loop
    in whose extent it lies (language.md §7). A loop's own line is not multiplied by itself."""
    times = [1] * len(pipeline.stages)
    # From the last stage back: the loops in whose extent we are, innermost last, each with the product so far. One
    # that lies inside another begins no earlier, so it is left first.
    around: list[tuple[int, int]] = []
    for at in range(len(pipeline.stages) - 1, -1, -1):
        while around and around[-1][0] > at:
            around.pop()
        times[at] = around[-1][1] if around else 1
        stage = pipeline.stages[at]
        if isinstance(stage, LoopStage):
            around.append((stage.extent, min(times[at] * stage.max, MAX_TIMES)))
    return tuple(times)


def each_limit(stage: CheckedStage) -> int | None:
    """How many items a stage's call runs for: 1 outside an `each`, None in one without a written limit."""
    if not isinstance(stage, EachStage):
        return 1
    limit = stage.limit
    return min(int(limit.value), MAX_TIMES) if isinstance(limit, Number) else None
