"""Row 7, pydantic-ai: an instant model that asks for eight tool calls. Argument: how many runs."""

from __future__ import annotations

import asyncio

from measuring import median_s, report, sizes
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

STEPS = 8


async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    taken = len(messages) // 2
    if taken == STEPS:
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart("read", {"path": "a.md"}, tool_call_id=f"c{taken}")])


async def main() -> None:
    (runs,) = sizes(20)
    agent = Agent(FunctionModel(model))

    @agent.tool_plain
    def read(path: str) -> str:
        """Reads a file."""
        return "a note"

    async def run() -> None:
        assert (await agent.run("Go on.")).output == "done"

    report(us_step=await median_s(run, runs) / STEPS * 1e6)


asyncio.run(main())
