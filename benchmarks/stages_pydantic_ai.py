"""Row 4, pydantic-ai: an agent with an instant model, run again and again. Argument: how often."""

from __future__ import annotations

import asyncio

from measuring import median_s, report, sizes
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("x")])


async def main() -> None:
    (count,) = sizes(100)
    agent = Agent(FunctionModel(model))

    async def chain() -> None:
        value = "x"
        for _ in range(count):
            value = (await agent.run(value)).output

    report(us_stage=await median_s(chain, 3) / count * 1e6)


asyncio.run(main())
