"""Row 7, OpenAI Agents: an instant model that asks for eight tool calls. Argument: how many runs."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, ModelResponse, Runner, function_tool, set_tracing_disabled
from agents.models.interface import Model
from agents.testing import assistant_message, function_call
from agents.usage import Usage
from measuring import median_s, report, sizes

STEPS = 8


class Instant(Model):
    async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **options: Any) -> ModelResponse:  # noqa: A002
        items = [] if isinstance(input, str) else input
        taken = sum(item.get("type") == "function_call_output" for item in items)
        if taken == STEPS:
            said = assistant_message("done")
        else:
            said = function_call("read", '{"path": "a.md"}', call_id=f"c{taken}")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **options: Any) -> Any:
        raise NotImplementedError


@function_tool
def read(path: str) -> str:
    """Reads a file."""
    return "a note"


async def main() -> None:
    (runs,) = sizes(20)
    set_tracing_disabled(True)
    agent = Agent(name="Clerk", instructions="Go on.", model=Instant(), tools=[read])

    async def run() -> None:
        assert (await Runner.run(agent, "Go on.", max_turns=STEPS + 2)).final_output == "done"

    report(us_step=await median_s(run, runs) / STEPS * 1e6)


asyncio.run(main())
