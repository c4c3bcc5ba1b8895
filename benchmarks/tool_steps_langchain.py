"""Row 7, LangChain: an instant model that asks for eight tool calls. Argument: how many runs."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from measuring import median_s, report, sizes

STEPS = 8


class Instant(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "instant"

    def bind_tools(self, tools: Any, **options: Any) -> Instant:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> ChatResult:
        taken = sum(isinstance(message, ToolMessage) for message in messages)
        if taken == STEPS:
            said = AIMessage("done")
        else:
            said = AIMessage("", tool_calls=[{"name": "read", "args": {"path": "a.md"}, "id": f"c{taken}"}])
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _agenerate(self, messages: list[BaseMessage], *rest: Any, **options: Any) -> ChatResult:
        return self._generate(messages)


def read(path: str) -> str:
    """Reads a file."""
    return "a note"


async def main() -> None:
    (runs,) = sizes(20)
    agent = create_agent(Instant(), [read])

    async def run() -> None:
        done = await agent.ainvoke({"messages": [("user", "Go on.")]}, {"recursion_limit": 50})
        assert done["messages"][-1].content == "done"

    report(us_step=await median_s(run, runs) / STEPS * 1e6)


asyncio.run(main())
