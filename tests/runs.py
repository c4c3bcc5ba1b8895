"""Runs in tests: a program's text, a function that answers its calls, and what became of it. No clock, no event loop.

`run` steps the runtime's own driver and hands in answers one at a time, in an order that the test may choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from halo_lang.boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Call, Data, Message, ToolUse, failed
from halo_lang.check.check import check
from halo_lang.check.program import CheckedProgram
from halo_lang.language.source import Source
from halo_lang.runtime.driver import Aside, Driver, Hold, Request
from halo_lang.runtime.failure import Halt, RunFailure
from halo_lang.runtime.stages import compiled_program
from halo_lang.runtime.state import Frame, Run
from halo_lang.runtime.stepping import Go

AGENTS = "agent A [openai/gpt-4o]\nagent B [openai/gpt-4o]\nagent C [openai/gpt-4o]\n"
"""Agents that tests may use without declaring them."""

Reply = Callable[[Call], Any]
Pick = Callable[[list[Request]], int]


class Shown:
    """What a run showed while it went."""

    def __init__(self) -> None:
        self.printed_values: list[Any] = []
        self.logged_values: list[Any] = []
        self.stages: list[tuple[str, str, str, tuple[int, ...]]] = []

    def printed(self, value: Any) -> None:
        self.printed_values.append(value)

    def logged(self, value: Any) -> None:
        self.logged_values.append(value)

    def stage_began(self, number: str, target: str, scope: tuple[int, ...]) -> None:
        self.stages.append(("began", number, target, scope))

    def stage_ended(self, number: str, target: str, scope: tuple[int, ...]) -> None:
        self.stages.append(("ended", number, target, scope))


class Ended:
    """How a run ended. `asked` are all its calls in order; `waiting` those that had no answer when it ended."""

    def __init__(self, driver: Driver, frame: Frame, shown: Shown, asked: list[Call], waiting: list[Call]) -> None:
        self.shown, self.asked, self.waiting = shown, asked, waiting
        self.asides: list[Call] = []
        self.aside_shows: list[Any] = []
        self.calls = dict(frame.run.calls)
        self.code = self.message = self.stage = self.condition = None
        self.span: Any = None
        self.output: Any = None
        failure = driver.failure
        if failure is None:
            self.status, self.output = "completed", driver.result
        elif isinstance(failure, Halt):
            self.status, self.output = "halted", failure.value
            self.stage, self.condition = failure.stage, failure.condition
        elif isinstance(failure, RunFailure):
            self.status, self.code, self.message = "failed", failure.code, failure.message
            self.stage, self.span = failure.stage, failure.span
        else:
            raise failure
        self.data: dict[str, Any] = frame.data.copy_out()
        self.current = frame.current

    def targets(self, kind: str | None = None) -> list[str]:
        return [call.target for call in self.asked if kind is None or call.kind == kind]

    def request(self, at: int) -> Any:
        """The model request at a place among those of agents."""
        return [call.request for call in self.asked if call.kind == AGENT][at]

    def said(self, at: int) -> str:
        """All text of the messages of a model request."""
        return "\n".join(text_of(message) for message in self.request(at).messages)


def text_of(message: Message) -> str:
    return "".join(part.text if isinstance(part, Data) else part for part in message.parts)


def checked(text: str, *, agents: bool = True, **more: Any) -> CheckedProgram:
    """The program of a text, which must have no errors."""
    program = check(Source("t.halo", (AGENTS if agents else "") + text), **more)
    assert program.ok, [(d.code, d.message) for d in program.diagnostics]
    return program


def pipeline(*stages: str, params: str = "x: Any", source: str = "x", name: str = "P") -> str:
    """The text of a pipeline."""
    return f"pipeline {name}({params}) -> Result:\n  {source}\n" + "".join(f"    {stage}\n" for stage in stages)


def first(waiting: list[Request]) -> int:
    return 0


def last(waiting: list[Request]) -> int:
    return len(waiting) - 1


def echo(call: Call) -> Any:
    """The answer where a test gives none: the target of an agent's or tool's call, yes for a person's."""
    return {"approved": True} if call.kind in (YIELD, APPROVAL) else call.target


def run(
    program: CheckedProgram | str,
    answer: Reply | Mapping[str, Any] = echo,
    name: str = "P",
    args: Mapping[str, Any] | None = None,
    *,
    pick: Pick = first,
    watched: bool = False,
    step: Callable[[Hold], Go] | None = None,
) -> Ended:
    """Runs a pipeline. `answer` gives each call's value or `Answer`; a mapping gives it by target, a list there one
    after the other. With `step` the run is held wherever a debugged one is, and `step` says how it goes on."""
    if isinstance(program, str):
        program = checked(program)
    reply = _by_target(answer) if isinstance(answer, Mapping) else answer
    shown = Shown()
    frame = _frame(program, name, {"x": "in"} if args is None else args, shown, watched)
    frame.run.stepped = step is not None
    compiled = compiled_program(program)[name]
    frame.governors = compiled.governed_by(())
    driver = Driver(compiled.run(frame))
    asked: list[Call] = []
    asides: list[Aside] = []
    waiting: list[Request] = []
    while not driver.ended:
        if driver.held is not None:
            assert step is not None
            driver.go_on(step(driver.held))
            continue
        asides += driver.asides
        driver.asides.clear()
        asked += [request.call for request in driver.asked]
        waiting += driver.asked
        driver.asked.clear()
        assert waiting, "the run waits for nothing"
        request = waiting.pop(pick(waiting))
        given = reply(request.call)
        driver.hand_in(request, given if isinstance(given, Answer) else Answer(given))
    asked += [request.call for request in driver.asked]
    ended = Ended(driver, frame, shown, asked, [r.call for r in [*waiting, *driver.asked]])
    asides += driver.asides
    ended.asides = [aside.call for aside in asides]
    ended.aside_shows = [aside.shown for aside in asides]
    return ended


def _frame(program: CheckedProgram, name: str, args: Mapping[str, Any], shown: Shown, watched: bool) -> Frame:
    params = {p.name: args.get(p.name, p.default) for p in program.pipelines[name].params}
    return Frame(Run("run-1", shown, watched=watched), name, params, (), "", (), 0)


def _by_target(answers: Mapping[str, Any]) -> Reply:
    left = {target: list(value) for target, value in answers.items() if isinstance(value, list)}

    def reply(call: Call) -> Any:
        if call.target not in answers:
            return echo(call)
        if call.target in left:
            return left[call.target].pop(0)
        return answers[call.target]

    return reply


def uses(*calls: tuple[str, dict[str, Any] | None], said: str = "") -> Answer:
    """An answer of a model that asks for tool calls: wire names and arguments (None: no JSON)."""
    return Answer(said, tool_uses=tuple(ToolUse(f"c{at}", name, args) for at, (name, args) in enumerate(calls)))


__all__ = [
    "AGENT",
    "APPROVAL",
    "LISTEN",
    "TOOL",
    "YIELD",
    "Answer",
    "Call",
    "Ended",
    "Shown",
    "checked",
    "echo",
    "failed",
    "first",
    "last",
    "pipeline",
    "run",
    "text_of",
    "uses",
]
