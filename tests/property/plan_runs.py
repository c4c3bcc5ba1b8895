"""Runs of random programs against a hostile world, through the real runtime, doors and ledger, in virtual time.

The models of this world ask for any tool with any arguments, offered or not, and for several at once; they answer
within what they were allowed, fail, are lost after they were billed, hang, and name other snapshots. Tools and people
answer by chance. What really happened is written down here, apart from what Halo thinks happened.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random
from typing import Any

import plan_programs as world
from virtual_time import run_virtually

from halo_lang.app.doors import live_doors, previews
from halo_lang.app.model_door import ModelDoor
from halo_lang.app.underway import UnderWay, What
from halo_lang.boundary.attempt import AttemptFailed, Cut
from halo_lang.boundary.call import AGENT, APPROVAL, TOOL, Answer, Call, Failure, ModelRequest, ToolUse, Usage
from halo_lang.boundary.host import Handlers, Preview, ToolError
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.catalog.describe import Provider
from halo_lang.catalog.prices import bound, cost, lookup, price_of_answer
from halo_lang.check.check import check
from halo_lang.check.program import CheckedProgram
from halo_lang.doors.answering import Ending, Stop, answered
from halo_lang.doors.live import Live
from halo_lang.doors.mask import Mask
from halo_lang.doors.spend import FRAMING_TOKENS, Grant, Ledger, Need
from halo_lang.language.record import replace
from halo_lang.language.source import Source

DAY = "2026-11-30"
MAX_CALLS = 250
"""Answers after which the world only fails, so that a run with recursion ends."""

CURRENT: ContextVar[Call] = ContextVar("current")
logging.getLogger("halo").setLevel(logging.CRITICAL)


def price(model: str) -> Any:
    return lookup(model, DAY, world.PRICES)


def checked(text: str, providers: Mapping[str, Provider] = PROVIDERS) -> CheckedProgram:
    return check(Source("t.halo", text), providers=providers, priced=lambda model: price(model) is not None)


def as_run(program: CheckedProgram) -> CheckedProgram:
    """The program as a run has it: servers have told what methods they have."""
    if not any(tool.methods is None for tool in program.tools.values()):
        return program
    return checked(program.source.text, {**PROVIDERS, "Mcp": world.SERVER})


@dataclass
class Event:
    """A call that reached the world. `round` is which request of its agent's call this is, from 0. `cost` is what an
    answered request cost, None where it was not answered, `within` whether its input was within the allowance."""

    call: Call
    round: int = 0
    cost: int | None = None
    within: bool = True
    approved: bool = False


@dataclass
class History:
    """What happened in a run. `problems` are breaches of the spend limits that the world itself has seen."""

    events: list[Event] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ending: Ending | None = None
    ledger: Ledger | None = None
    billed: int = 0
    refused: list[Call] = field(default_factory=list)
    cost: int = 0


class WatchedLedger(Ledger):
    """The real ledger, and a look at who is let through: nobody before one that came earlier and still waits."""

    __slots__ = ("problems",)

    def _grant(self, need: Need, max_tokens: int, lowered_by: Any = None) -> Grant:
        first = next((waiting for waiting, turn in self._waiting if not turn.cancelled()), need)
        if need.limits and first is not need:
            self.problems.append("a request was let through before one that came earlier")
        return super()._grant(need, max_tokens, lowered_by)


class Models:
    """In place of the client of the models: counts what is really spent, and answers by chance."""

    def __init__(
        self, chance: Random, made: world.Made, history: History, allowance: int, stops_at: int | None
    ) -> None:
        self.chance = chance
        self.made = made
        self.history = history
        self.allowance = allowance
        self.stops_at = stops_at
        self.under_way = 0
        self.calls = 0
        self.within = chance.random() < 0.7
        self.calm = chance.random() < 0.7
        self.eager = chance.random() < 0.5
        self.delays = (0, 0, 0.1, 1, 3) if self.calm else (0, 1, 3, 8, 20)
        self.bytes_more = chance.choice((0, 0, 3_000))

    @asynccontextmanager
    async def place(self, model: str) -> Any:
        yield

    def wire_bytes(self, request: ModelRequest) -> int:
        said = sum(_bytes(p if isinstance(p, str) else p.text) for m in request.messages for p in m.parts)
        asked = sum(len(json.dumps(use.args)) for m in request.messages for use in m.tool_uses)
        return (
            len(request.system.encode())
            + said
            + asked
            + 60 * (len(request.messages) + len(request.tools))
            + self.bytes_more
        )

    async def attempt(self, request: ModelRequest, watch: Any = None) -> Answer:
        from asyncio import sleep

        call = CURRENT.get()
        worst = self._worst(request)
        self.under_way += worst
        self._look(call, request)
        try:
            if self.chance.random() < 0.8:
                await sleep(self.chance.choice(self.delays))
            self.calls += 1
            return self._answer(call, request, worst)
        except BaseException as end:
            # Nobody knows what a lost attempt cost but the provider: anything up to all of it.
            if not (isinstance(end, AttemptFailed) and end.billed is False):
                self.history.billed += self.chance.choice((0, worst, worst))
            raise
        finally:
            self.under_way -= worst
            if self.stops_at is not None and self.history.billed > self.stops_at:
                self.history.problems.append(f"spent {self.history.billed}, and the plan stops at {self.stops_at}")

    def _worst(self, request: ModelRequest) -> int:
        dear = price(request.model)
        return 0 if dear is None else bound(dear, self.wire_bytes(request) + FRAMING_TOKENS, request.max_tokens)

    def _look(self, call: Call, request: ModelRequest) -> None:
        """Whether the limit of a request holds in the moment in which it is sent."""
        if call.limit is not None:
            if self.history.billed + self.under_way > call.limit.amount:
                self.history.problems.append(
                    f"{call.target}: {self.history.billed} spent, {self.under_way} under way, limit {call.limit.amount}"
                )
            if price(request.model) is None:
                self.history.problems.append(f"{call.target}: sent under a limit, and its model has no price")
        if call.request is not None and request.max_tokens > call.request.max_tokens:
            self.history.problems.append(f"{call.target}: sent with more tokens than it asked for")

    def _answer(self, call: Call, request: ModelRequest, worst: int) -> Answer:
        chance = self.chance
        if self.calls > MAX_CALLS:
            raise AttemptFailed("MODEL_ERROR", "the world has had enough", billed=False)
        if chance.random() < (0.01 if self.calm else 0.15):
            raise chance.choice(
                (
                    AttemptFailed(
                        "MODEL_ERROR", "busy", retry=True, billed=False, retry_after_s=chance.choice((None, 1.0))
                    ),
                    AttemptFailed("MODEL_ERROR", "torn", retry=True, billed=None),
                    AttemptFailed("MODEL_ERROR", "no", retry=False, billed=None),
                    OSError("a client that breaks"),
                )
            )
        usage, event = self._usage(call, request)
        model = chance.choice(world.SNAPSHOTS.get(request.model, ("",)))
        answer_price = price_of_answer(request.model, model, DAY, world.PRICES)
        amount = 0 if answer_price is None else cost(answer_price, usage)
        if chance.random() < 0.02:  # billed, and the answer does not say how much
            self.history.billed += chance.choice((amount, worst))
            return Answer("yes", model=f"x/{model}")
        self.history.billed += amount
        event.cost = amount
        self.history.events.append(event)
        if chance.random() < 0.03 and not self.calm:
            error = chance.choice((Cut("MODEL_ERROR", "cut"), Failure("MODEL_ERROR", "refused")))
            return Answer(error=error, usage=usage, model=f"x/{model}")
        return Answer(self._said(), tool_uses=self._uses(request), usage=usage, model=f"x/{model}")

    def _usage(self, call: Call, request: ModelRequest) -> tuple[Usage, Event]:
        """As many tokens as the request may have, as a rule: a bound is passed at its edge if anywhere."""
        chance, site = self.chance, self.made.sites[call.target]
        at = sum(message.role == "assistant" for message in request.messages)
        allowed = site.written + self.allowance + at * site.max_tokens
        could = self.wire_bytes(request) + FRAMING_TOKENS
        most = min(allowed, could) if self.within else could
        into = most if chance.random() < 0.7 else int(most * chance.random())
        out = request.max_tokens if chance.random() < 0.7 else int(request.max_tokens * chance.random())
        cached, written = chance.choice(((0, 0), (0, 0), (into, 0), (0, into), (into // 3, into // 2)))
        return Usage(into, out, cached, written), Event(call, at, within=into <= allowed)

    def _said(self) -> str:
        return self.chance.choice(("yes", "", "false", '["a", "b"]', '{"n": 1}', "a@b.org", "1", "no"))

    def _uses(self, request: ModelRequest) -> tuple[ToolUse, ...]:
        chance = self.chance
        share = (0.9 if self.eager else 0.4) if request.tools else 0.01
        if chance.random() > share:
            return ()
        names = [offer.name for offer in request.tools] * 8
        names += [f"{tool}_{method}" for tool, methods in world.METHODS.items() for method in methods] + ["nothing", ""]
        chosen = [chance.choice(names) for _ in range(chance.choice((1, 1, 2, 4)))]
        return tuple(
            ToolUse(f"c{at}", name, _fitting(request, name) if chance.random() < 0.7 else _arguments(chance))
            for at, name in enumerate(chosen)
        )


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _fitting(request: ModelRequest, name: str) -> dict[str, Any]:
    """Arguments that a method takes."""
    schema = next((offer.schema for offer in request.tools if offer.name == name), {})
    return dict.fromkeys(schema.get("required", ()), "b.md")


def _arguments(chance: Random) -> dict[str, Any] | None:
    return chance.choice(
        (
            {"path": "a.md"},
            {"path": "b.md", "content": "c"},
            {"path": "x.env", "content": "c"},
            {"path": "a.md", "old": "a", "new": "b"},
            {},
            {"pattern": "*"},
            {"query": "q"},
            {"command": "echo"},
            {"text": "hi"},
            {"path": 7},
            {"command": "echo", "values": {"a": "b"}},
            None,
        )
    )


class Tool:
    """In place of a provider's instance."""

    def __init__(self, chance: Random, name: str) -> None:
        self.chance = chance
        self.name = name

    async def call(self, method: str, args: Any, given: Any) -> Any:
        from asyncio import sleep

        chance = self.chance
        if chance.random() < 0.3:
            await sleep(chance.choice((0, 1, 100 if chance.random() < 0.05 else 2)))
        if chance.random() < 0.04:
            raise ToolError("it failed", "CHANGED" if chance.random() < 0.5 else "TOOL_ERROR")
        return chance.choice((None, "text", ["a", "b"], {"exitCode": 0}, "yes"))

    async def preview(self, method: str, args: Any) -> Preview | None:
        if self.chance.random() < 0.05:
            raise ToolError("cannot be shown")
        return None if self.chance.random() < 0.5 else Preview("+ line", "digest")

    async def close(self) -> None: ...


YESES = (True, {"approved": True}, {"approved": True, "args": {}})
SAID = (
    *(
        True,
        False,
        None,
        "yes",
        OSError("nobody"),
        {"approved": True},
        {"approved": 1},
        {"approved": False, "all": True},
    ),
    *({"approved": True, "args": {}}, {"approved": True, "all": True}, {"approved": True, "all": True, "args": {}}),
)
"""What people say to an approval; where it has arguments they are changed ones."""


class People:
    """Who answers yields, events and approvals; what they approved is kept in `granted`, by the call."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.granted: dict[Any, Any] = {}
        self.standing: set[str] = set()
        self.calm = chance.random() < 0.5

    async def on_yield(self, call: Call) -> Any:
        return self.chance.choice((True, False, "text", {"approved": True}))

    async def on_listen(self, call: Call) -> Any:
        return self.chance.choice(({"said": 1}, "yes"))

    async def on_approval(self, call: Call, preview: Preview | None) -> Any:
        said = self.chance.choice(YESES if self.calm else SAID)
        if isinstance(said, dict) and "args" in said:
            said = {**said, "args": _arguments(self.chance)}
        if isinstance(said, OSError):
            raise said
        if said is True or (isinstance(said, dict) and said.get("approved") is True):
            answer = said if isinstance(said, dict) else {}
            args = answer.get("args")
            self.granted[_key(call)] = dict(call.args) if not isinstance(args, dict) else args
            if answer.get("all"):
                self.standing.add(call.target)
        return said


def _key(call: Call) -> Any:
    return call.target, call.scope, call.stage, call.id


class Watcher:
    watches = False

    def printed(self, value: Any) -> None: ...
    def logged(self, value: Any) -> None: ...
    def published(self, value: Any) -> None: ...
    def stage_began(self, number: str, target: str, scope: Any) -> None: ...
    def stage_ended(self, number: str, target: str, scope: Any) -> None: ...
    def tokens(self, call: Call, text: str) -> None: ...
    def asked(self, call: Call) -> None: ...
    def answered(self, call: Call, answer: Answer, cost: int) -> None: ...
    def spends(self, ledger: Ledger) -> None: ...


def run(
    program: CheckedProgram,
    made: world.Made,
    chance: Random,
    *,
    allowance: int,
    stops_at: int | None,
    within: Any = None,
) -> History:
    """Runs `P0` and tells what happened. Raises what no run may raise."""
    history = History()
    program = as_run(program)
    env_model = chance.choice(("openai/gpt-4o", "ollama/mine"))
    models = Models(chance, made, history, allowance, stops_at)
    people = People(chance)
    ledger = WatchedLedger(None if within is None else within.limit)
    ledger.problems = history.problems
    history.ledger = ledger
    door = ModelDoor(models, _Names(env_model), world.PRICES, ledger, Mask({}), lambda call, text: None)  # type: ignore[arg-type]
    tools = {name: (tool, Tool(chance, name)) for name, tool in program.tools.items()}

    async def ask(call: Call) -> Answer:
        CURRENT.set(call)
        return await door.answer(call)

    def refusal(call: Call) -> Answer | None:
        refused = None if within is None else within.refusal(call)
        if refused is not None:
            history.refused.append(call)
        return refused

    doors = live_doors(
        ask,
        tools,  # type: ignore[arg-type]
        Handlers(people.on_yield, people.on_approval, people.on_listen),
        previews(tools),  # type: ignore[arg-type]
        mask=Mask({}),
        publish=lambda value: None,
        refusal=refusal,
    )
    real_tools = doors[TOOL]

    async def use(call: Call) -> Answer:
        history.events.append(Event(call, approved=_was_approved(people, call)))
        if len(history.events) > MAX_CALLS:
            return Answer(error=Failure("TOOL_ERROR", "the world has had enough"))
        return await real_tools(call)

    doors[TOOL] = use
    stop = Stop()

    def answering(call: Call, answer: Answer) -> None:
        if chance.random() < 0.001:
            stop.ask()

    async def whole() -> Ending:
        under_way = UnderWay(What(program, "P0", {"x": chance.choice(("b", ["p", "q", "r"], None))}, "run"), Watcher())
        live = Live(doors)
        ending = await answered(under_way.driver, under_way.account, live=live, stop=stop, answering=answering)
        history.cost = under_way.account.cost
        return ending

    history.ending = run_virtually(whole())
    return history


def _was_approved(people: People, call: Call) -> bool:
    """Whether a person has approved exactly this call, once, or all calls of its method."""
    granted = people.granted.pop(_key(call), None)
    return call.target in people.standing or (granted is not None and granted == dict(call.args))


class _Names(dict[str, str]):
    """`provider/model` by the name in a request."""

    def __init__(self, env_model: str) -> None:
        super().__init__()
        self._env_model = env_model

    def __missing__(self, name: str) -> str:
        return self._env_model if name.startswith("Env.") else name


__all__ = ["AGENT", "APPROVAL", "TOOL", "Event", "History", "checked", "price", "replace", "run"]
