"""What may happen to a kept run, by chance: it ends, fails, halts, is stopped, or pauses and is resumed with some of
the answers that it waits for; and after each of these it is replayed, under other schedules, and must end just so."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from programs_that_run import Answers

from halo_lang.app.result import RunResult
from halo_lang.app.underway import UnderWay, What
from halo_lang.boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Call, Usage
from halo_lang.boundary.host import Handlers, ToolError
from halo_lang.doors.answering import Stop
from halo_lang.doors.recordings import Recording
from halo_lang.language.record import replace
from halo_lang.runtime.driver import Request
from kept_runs import (
    Given,
    Watching,
    World,
    begin,
    checked,
    end_of,
    go_on,
    recording_of,
    replayed,
)

logging.getLogger("halo").setLevel(logging.CRITICAL)

WIDE = "pipeline Wide(x: Any) -> Result:\n  x\n    |* each(i in x, concurrency: {}) => P0(i)\n"
"""A pipeline that runs `P0` in many branches."""

MAX_LEGS = 5
DELAYS = (0, 0, 0, 0.001, 0.1, 0.1, 1)


class Chances(World):
    """A world that answers by chance, after a chance delay. `calm` ones never fail."""

    def __init__(self, chance: Random, *, calm: bool) -> None:
        self.chance = chance
        self._answers = Answers(0, failing=not calm)
        handlers = Handlers(
            self._person if chance.random() < 0.3 else None,
            self._approver if chance.random() < 0.3 else None,
            self._person if chance.random() < 0.3 else None,
        )
        super().__init__(self._model, self._method, handlers=handlers)

    async def _wait(self) -> None:
        delay = self.chance.choice(DELAYS)
        if delay:
            await asyncio.sleep(delay)

    def _said(self, call: Call) -> Answer:
        return self._answers._answer(call, self.chance.randbytes(32))

    async def _model(self, call: Call) -> Answer:
        await self._wait()
        usage = Usage(self.chance.randrange(5000), self.chance.randrange(500), self.chance.randrange(100))
        paid = replace(self._said(call), usage=usage, cost=self.chance.randrange(10**7), model="m")
        return replace(paid, unsettled=self.chance.choice((0, 0, 0, 12_345)))

    async def _method(self, target: str, args: Mapping[str, Any]) -> Any:
        await self._wait()
        answer = self._said(Call(TOOL, target, args, (), "", None))  # type: ignore[arg-type]
        if answer.error is not None:
            raise ToolError(answer.error.message, self.chance.choice(("TOOL_ERROR", "TOOL_ERROR", "CHANGED")))
        return answer.value

    async def _person(self, call: Call) -> Any:
        await self._wait()
        return self._said(call).value

    async def _approver(self, call: Call, _: Any) -> Any:
        return await self._person(call)


class Shuffled(list[Any]):
    """Requests that are found in an order of chance."""

    chance = Random(0)

    def __iter__(self) -> Iterator[Any]:
        order = list(super().__iter__())
        self.chance.shuffle(order)
        return iter(order)


class OtherOrder(UnderWay):
    """A run whose requests reach the journal in another order than they were made in."""

    def __init__(self, what: What, watcher: Any, stepper: Any = None) -> None:
        super().__init__(what, watcher, stepper)
        self.driver.asked = Shuffled(self.driver.asked)


def scenario(text: str, name: str, x: Any, seed: int, *, replays: int = 10) -> Counter[str]:
    """Runs a program once, with all that follows; gives what happened. Raises `AssertionError`."""
    chance, program = Random(seed), checked(text)
    seen: Counter[str] = Counter()
    world = Chances(chance, calm=chance.random() < 0.4)
    shown: list[Any] = []
    with TemporaryDirectory() as folder:
        before = os.getcwd()
        os.chdir(folder)
        try:
            watcher = Watching()
            stop = Stopping(chance)
            result = begin(program, world, {"x": x}, pipeline=name, watcher=watcher, stop=stop, virtually=stop.run)
            shown += watcher.shown
            for leg in range(MAX_LEGS):
                seen[result.status] += 1
                _is_replayed(program, result, shown, chance, replays, seen)
                _made_once(world, result)
                if result.status != "paused":
                    break
                seen["legs"] += 1
                result = _resumed(program, result, world, chance, shown, last=leg == MAX_LEGS - 2)
        finally:
            os.chdir(before)
    return seen


class Stopping(Stop):
    """A stop that now and then is asked for, at some moment of the run."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._after = chance.choice((0.0005, 0.05, 0.5)) if chance.random() < 0.1 else None

    def run(self, steps: Any) -> Any:
        from virtual_time import run_virtually

        async def stopped() -> Any:
            if self._after is not None:
                asyncio.get_running_loop().call_later(self._after, self.ask)
            return await steps

        return run_virtually(stopped())


def _resumed(
    program: Any, paused: RunResult, world: Chances, chance: Random, shown: list[Any], *, last: bool
) -> RunResult:
    """The run goes on, with answers to some of its waits: to all of them where it is the last time."""
    waits = list(paused.waits)
    chosen = waits if last else chance.sample(waits, chance.randint(1, len(waits)))
    given = [_given(wait, chance) for wait in chosen]
    given, chosen = _without_what_all_answers(given, chosen)
    watcher, stop = Watching(), Stopping(chance)
    went_on = go_on(program, paused.run_id, world, *given, watcher=watcher, stop=stop, virtually=stop.run)
    shown += watcher.shown
    if went_on.status == "paused":
        for_all = {wait["target"] for wait, one in zip(chosen, given, strict=True) if _is_for_all(wait, one)}
        left = {
            wait["id"]
            for wait in waits
            if wait not in chosen
            and not (wait["kind"] == APPROVAL and wait["target"] in for_all)
            and not _is_answered(world, wait)
        }
        ids = [wait["id"] for wait in went_on.waits]
        assert left <= set(ids), (left, ids)
        assert len(ids) == len(set(ids)), ids
    return went_on


def _without_what_all_answers(
    given: list[Given], waits: list[dict[str, Any]]
) -> tuple[list[Given], list[dict[str, Any]]]:
    """A yes to all answers the other approvals of its method: nobody answers those too."""
    kept: list[tuple[Given, dict[str, Any]]] = []
    for_all: set[str] = set()
    for one, wait in zip(given, waits, strict=True):
        if wait["kind"] == APPROVAL and wait["target"] in for_all:
            continue
        kept.append((one, wait))
        if _is_for_all(wait, one):
            for_all.add(wait["target"])
    return [one for one, _ in kept], [wait for _, wait in kept]


def _is_answered(world: Chances, wait: Mapping[str, Any]) -> bool:
    """Whether a handler answers this kind anyway."""
    handlers = world.handlers
    return {YIELD: handlers.on_yield, APPROVAL: handlers.on_approval, LISTEN: handlers.on_listen}[
        wait["kind"]
    ] is not None


def _given(wait: Mapping[str, Any], chance: Random) -> Given:
    if wait["kind"] == LISTEN:
        return Given("event", {"said": chance.randrange(3)}, wait["target"], wait["id"])
    if wait["kind"] == APPROVAL and chance.random() < 0.3:
        return Given("answer", {"approved": True, "all": True}, wait=wait["id"])
    choices = [Given("yes", wait=wait["id"]), Given("no", "why", wait=wait["id"])]
    if wait["kind"] == YIELD:
        choices += [Given("answer", value, wait=wait["id"]) for value in ("text", 7, None, {"approved": True, "n": 1})]
    return chance.choice(choices)


def _is_for_all(wait: Mapping[str, Any], given: Given) -> bool:
    return wait["kind"] == APPROVAL and isinstance(given.value, dict) and bool(given.value.get("all"))


def _is_replayed(
    program: Any, result: RunResult, shown: list[Any], chance: Random, times: int, seen: Counter[str]
) -> None:
    """Replays a run so often, under other schedules, and holds each replay to it."""
    wanted = _in_any_order(end_of(result))
    printed = [one for one in shown if one[0] != "published"]
    for at in range(times):
        Shuffled.chance = Random(chance.random())
        watcher = Watching()
        again, comparison = replayed(program, result.run_id, watcher=watcher, underway=OtherOrder if at else UnderWay)
        assert _in_any_order(end_of(again)) == wanted
        assert comparison.same
        assert {note.kind for note in comparison.notes} <= ({"ended"} if result.status == "cancelled" else set())
        assert watcher.shown == printed
        seen["replays"] += 1


def _in_any_order(end: dict[str, Any]) -> dict[str, Any]:
    """The end of a run whose requests may have been made in another order: its waits are in that order too."""
    return {**end, "waits": sorted(end["waits"], key=lambda wait: wait["id"])}


def _made_once(world: Chances, result: RunResult) -> None:
    """What was recorded was asked for once: the world was asked no more often than answers were written down, but for
    calls that got none because the run ended before."""
    recording = recording_of(result.run_id)
    late: list[Any] = []
    kept = [*recording.entries(late.append), *late]
    made = Counter(
        entry.target for entry in kept if entry.kind in (AGENT, TOOL) and not entry.target.startswith("System.")
    )
    asked = Counter(world.targets())
    assert all(asked[target] >= count for target, count in made.items())
    unanswered = sum((asked - made).values())
    if result.status in ("completed", "paused"):
        assert asked == made
    else:
        seen_unanswered = Counter(c.target for c in result.unanswered if c.kind in (AGENT, TOOL))
        assert unanswered <= sum(seen_unanswered.values())


__all__ = ["WIDE", "Recording", "Request", "scenario"]
