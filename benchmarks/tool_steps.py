"""Row 7: one step of an agent (a model's answer and the tool call it asks for), checked by a policy.

Arguments: how many runs of eight steps; 1 to record.
"""

from __future__ import annotations

import asyncio

from halo_runs import runnable
from measuring import median_s, report, sizes

from halo_lang.boundary.call import Answer, Call, ToolUse

STEPS = 8

PROGRAM = """
policy Careful : AllowTools("Notes.*") & DenyTools("Notes.delete") & MaxCalls(100)

tool Notes : Workspace("./notes")

agent Clerk [openai/gpt-4o-mini]
  equips Notes
  requires Careful

pipeline Main(task: String) -> Result:
  task
    |> Clerk.work("Go on.", tools: [Notes])
"""


async def model(call: Call) -> Answer:
    """Asks for one tool call after the other, eight times, then answers."""
    taken = len(call.request.messages) // 2
    if taken == STEPS:
        return Answer("done")
    return Answer("", tool_uses=(ToolUse(f"c{taken}", "Notes_read", {"path": "a.md"}),))


async def tool(call: Call) -> Answer:
    return Answer("a note")


async def main() -> None:
    runs, recorded = sizes(300, 0)
    run = runnable(PROGRAM, model, tool, recorded=bool(recorded))
    taken = await median_s(lambda: run(task="x"), runs)
    report(us_step=taken / STEPS * 1e6)


asyncio.run(main())
