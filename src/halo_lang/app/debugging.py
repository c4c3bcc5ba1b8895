"""Debugging: where a run is held, and what can be done with it there (cli.md `halo debug`, docs/adr/0006).

Owns `Session`: breakpoints, stepping, what was asked and answered, changes of the context, stages that run again and
answers by hand. Reads and prints nothing itself: a `Desk` is asked what to do, and does it by the session's methods.
Read `runtime/stepping.py` for how a run is held, `cli/debugger.py` for the desk.
"""

from __future__ import annotations

from collections import deque

from ..boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer
from ..boundary.host import ConfigError
from ..check.program import EachStage, FanOutStage, PipelineCall
from ..doors.folder import KeepingError
from ..doors.mask import Mask
from ..language.ast import Path
from ..language.diagnostics import did_you_mean
from ..language.parser import parse_expression
from ..language.record import Record, replace
from ..language.values import is_true
from ..runtime.failure import Halt, RunFailure
from ..runtime.stepping import Again, Go, Snapshot, put, restore, snapshot, value_of
from .breakpoints import (
    Breakpoint,
    Trouble,
    calls_of,
    fits,
    names_in,
    parsed,
    read_breakpoint,
    targets_of,
    unknown_name,
)
from .by_hand import by_hand, varied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol, TypeAlias

    from ..boundary.call import Call, Scope
    from ..language.ast import Expr
    from ..language.values import Value
    from ..runtime.driver import Hold
    from ..runtime.stages import CompiledPipeline
    from ..runtime.state import Frame

    Key: TypeAlias = tuple[str, Scope]

    class Desk(Protocol):
        """Who is asked what to do where a run is held. `stop` gives what was said: `Go`, an `Answer` by hand, or
        None to make the call. Raises `Left`."""

        async def stop(self, session: Session) -> Go | Answer | None: ...


STEP, OVER, OUT, CONTINUE = "step", "over", "out", "continue"
SILENT = ("System.Print", "System.Log", "System.Fail")
"""What is called without asking anything of the outside."""

KEPT_CALLS = 10_000
"""How many answered calls can be looked at again."""


class Open(Record):
    """A call of a pipeline that is under way, at a stage. `before` is how it was before the stage that ran last, at
    `ran`."""

    pipeline: CompiledPipeline
    frame: Frame
    at: int
    ran: int | None = None
    before: Snapshot | None = None


class Answered(Record):
    """A call that was answered, by its number from 1."""

    number: int
    call: Call
    answer: Answer
    by_hand: bool


class _ByHand(Record):
    """An answer that is given to the call of a stage when it is made."""

    stage: str
    scope: Scope
    targets: tuple[str, ...]
    text: str
    fails: bool


class Session:
    """One debugged run: decides where it is held, and does there what the desk wants.

    With `replays` it is a recorded run: nothing is called, and it is held at its end too. `goal` is the hold, counted
    from 0, up to which it goes without being held.
    """

    def __init__(self, desk: Desk, *, replays: bool = False) -> None:
        self._desk = desk
        self.replays = replays
        self.breakpoints: list[Breakpoint] = []
        self._count = 0
        self.start_over(0)

    def start_over(self, goal: int) -> None:
        """The run begins, or begins anew, and goes to a hold."""
        self.goal = goal
        self.mode = STEP
        self._anchor: Key = ("", ())
        self.hold: Hold | None = None
        self.call: Call | None = None
        self.change: str | None = None
        self.calls: deque[Answered] = deque(maxlen=KEPT_CALLS)
        self.answered_count = 0
        self.cost = 0
        """What the answers have cost, in nano-dollars; those that are not kept too."""
        self.under_way: dict[int, Call] = {}
        self._open: dict[Key, Open] = {}
        self._holds: list[bool] = []
        self._told: BaseException | None = None
        self._held_there: dict[tuple[int, Key], bool] = {}
        self._by_hand: list[_ByHand] = []
        self._hands: set[int] = set()
        self.hands_used = False
        self._changes: Callable[[str, str], None] | None = None
        self._prepares: Callable[[str], None] | None = None
        self._mask = Mask({})

    def begins(
        self, changes: Callable[[str, str], None] | None, prepares: Callable[[str], None] | None, mask: Mask
    ) -> None:
        self._changes, self._prepares, self._mask = changes, prepares, mask

    @property
    def is_recorded(self) -> bool:
        """Whether the run is written down."""
        return self._changes is not None

    @property
    def is_seeking(self) -> bool:
        """Whether a replay is on its way to where it is wanted."""
        return len(self._holds) <= self.goal

    # What the run asks ---------------------------------------------------------------------------------------------

    async def held(self, hold: Hold) -> Go:
        """How a run goes on that is held (`doors.answering.Stepper`)."""
        key = _key(hold.frame)
        known = self._open.get(key)
        if known is not None and known.frame is hold.frame:
            self._open[key] = replace(known, at=hold.at)
        else:
            self._open[key] = Open(hold.pipeline, hold.frame, hold.at)
        self._holds.append(hold.failure is None and not _at_end(hold))
        self._by_hand = [one for one in self._by_hand if one.scope[: len(hold.frame.scope)] != hold.frame.scope]
        said: Go | Answer | None = None
        if self._stops_at(hold, key):
            self.hold, self.call = hold, None
            said = await self._desk.stop(self)
        go = said if isinstance(said, Go) else Go()
        if go.again is None and hold.failure is None:
            if _at_end(hold):
                self._open.pop(key, None)
            else:
                self._open[key] = replace(self._open[key], ran=hold.at, before=snapshot(hold.frame))
        return go

    async def asked(self, call: Call) -> Answer | None:
        """The answer to a call where a person gives it (`doors.answering.Stepper`)."""
        self.under_way[id(call)] = call
        for one in self._by_hand:
            if call.stage == one.stage and call.scope == one.scope and _is_of(call, one.targets) and call.by is None:
                self._by_hand.remove(one)
                self._hands.add(id(call))
                return self._mask.answer(by_hand(call, one.text, fails=one.fails))
        if self.is_seeking or not self._stops_at_call(call):
            return None
        self.call = call
        said = await self._desk.stop(self)
        self.call = None
        if isinstance(said, Answer):
            self._hands.add(id(call))
            return said
        return None

    def answered(self, call: Call, answer: Answer) -> None:
        """Notes an answer."""
        self.hands_used = self.hands_used or id(call) in self._hands
        self.under_way.pop(id(call), None)
        self.answered_count += 1
        self.cost += answer.cost or 0
        self.calls.append(Answered(self.answered_count, call, answer, id(call) in self._hands))
        self._hands.discard(id(call))

    def _stops_at(self, hold: Hold, key: Key) -> bool:
        at = len(self._holds) - 1
        if at < self.goal:
            return False
        if at == self.goal and at:
            return True
        if hold.failure is not None:
            if hold.failure is self._told:  # it was looked at where it happened
                return False
            self._told = hold.failure
            return True
        met = [one for one in self.breakpoints if self._meets(one, hold, key)]
        if self.mode == STEP or met:
            return True
        if _at_end(hold) and not hold.frame.depth and (self.replays or self.mode == OVER):
            return True
        if self.mode == OVER:
            return self._is_around(key, itself=True)
        return self.mode == OUT and self._is_around(key, itself=False)

    def _is_around(self, key: Key, *, itself: bool) -> bool:
        """Whether a pipeline's call is the one that a step began in, or one around it."""
        prefix, scope = self._anchor
        if key == self._anchor:
            return itself
        return len(key[0]) < len(prefix) and prefix.startswith(key[0]) and scope[: len(key[1])] == key[1]

    def _meets(self, one: Breakpoint, hold: Hold, key: Key) -> bool:
        if one.stage is not None or one.target is not None:
            if _at_end(hold):
                return False
            stage = hold.pipeline.checked.stages[hold.at]
            if one.stage is not None and one.stage != f"{hold.frame.prefix}{stage.number}":
                return False
            if one.target is not None and not any(fits(one.target, target) for target in targets_of(stage)):
                return False
        if one.condition is None:
            return True
        holds = not unknown_name(one.condition, hold.pipeline) and is_true(
            value_of(one.condition, hold.pipeline, hold.frame)
        )
        if one.stage is not None or one.target is not None:
            return holds
        before, self._held_there[(one.number, key)] = self._held_there.get((one.number, key), False), holds
        return holds and not before

    def _stops_at_call(self, call: Call) -> bool:
        if call.kind == APPROVAL or call.target.endswith(".*"):
            return False
        if call.by is not None and any(one.target and fits(one.target, call.target) for one in self.breakpoints):
            return True
        # A step stops at the calls of a stage that makes several; the only one of a stage was held at there.
        return self.mode == STEP and (call.by is not None or (_prefix(call.stage), call.scope) not in self._open)

    # Where the run is ----------------------------------------------------------------------------------------------

    @property
    def here(self) -> Open:
        """The call of a pipeline in which the run is held."""
        if self.call is not None:
            found = self._around_call(self.call)
            if found is not None:
                return found
        assert self.hold is not None
        return self._open.get(_key(self.hold.frame)) or Open(self.hold.pipeline, self.hold.frame, self.hold.at)

    @property
    def stage(self) -> str:
        """The number of the stage where the run is held."""
        if self.call is not None:
            return self.call.stage
        here = self.here
        stages = here.pipeline.checked.stages
        return here.pipeline.place(here.frame, here.at)[0] if here.at < len(stages) else f"{here.frame.prefix}end"

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to run: at the run's end, or where it has failed or halted."""
        hold = self.hold
        if self.call is not None or hold is None:
            return False
        return hold.failure is not None or (_at_end(hold) and not hold.frame.depth)

    def around(self) -> list[Open]:
        """The calls of pipelines around the place where the run is held, that one last."""
        prefix, scope = _key(self.here.frame)
        found = [
            one
            for (p, s), one in self._open.items()
            if len(p) < len(prefix) and prefix.startswith(p) and scope[: len(s)] == s
        ]
        return [*sorted(found, key=lambda one: one.frame.depth), self.here]

    def beside(self) -> list[Open]:
        """The calls of pipelines in other branches."""
        stack = {id(one.frame) for one in self.around()}
        return [one for one in self._open.values() if id(one.frame) not in stack]

    def _around_call(self, call: Call) -> Open | None:
        prefix = _prefix(call.stage)
        for length in range(len(call.scope), -1, -1):
            found = self._open.get((prefix, call.scope[:length]))
            if found is not None:
                return found
        return None

    # What can be done ----------------------------------------------------------------------------------------------

    def go(self, mode: str) -> Go:
        """Goes on until the next place of a kind."""
        self.mode = OVER if mode == OUT and self.call is not None else mode
        self._anchor = _key(self.here.frame)
        return Go()

    def evaluate(self, text: str) -> Value:
        """The value of an expression where the run is held. Raises `Trouble`."""
        here = self.here
        return value_of(self._expression(text), here.pipeline, here.frame)

    def set(self, text: str) -> str:
        """Does `PATH = EXPR`; gives the path. The recording says so. Raises `Trouble`,
        and `KeepingError` where that cannot be written."""
        path, value = self._assignment(text)
        path = tuple(self._mask.text(part) if isinstance(part, str) else part for part in path)
        value = self._mask.value(value)
        written, frame = _written(path), self.here.frame
        before = snapshot(frame)
        try:
            put(frame, path, value)
        except ValueError as trouble:
            raise Trouble(str(trouble)) from None
        try:
            self._change(f"set {written}")
        except KeepingError:
            restore(frame, before)
            raise
        return written

    def again(self, instruction: str | None, model: str | None) -> Go:
        """Runs the stage that ran last in this pipeline's call once more, with the context as it was before, perhaps
        with another instruction (as a string is written) or another model. Raises `Trouble`."""
        if self.replays:
            raise Trouble("a replay calls nothing: `back` goes back, `answer` gives an answer by hand")
        here = self.here
        if self.call is not None:
            raise Trouble("a call is waiting to be made; `out` ends the stage, then `again` runs it again")
        if here.ran is None or here.before is None:
            raise Trouble("no stage of this pipeline has run yet")
        stage = here.pipeline.checked.stages[here.ran]
        number, _ = here.pipeline.place(here.frame, here.ran)
        step = None
        if instruction is not None or model is not None:
            text = None if instruction is None else self._expression(self._mask.text(instruction))
            other_stage = varied(stage, number, text, model)
            if model is not None:
                self._prepare(model)
            step = here.pipeline.variant(here.ran, other_stage)
        words = [w for w, given in (("instruction", instruction), ("model", model)) if given is not None]
        other = f" with another {' and '.join(words)}" if words else ""
        self._change(f"running stage {number} again{other}")
        self._told = None
        self.go(OVER)
        return Go(Again(here.ran, here.before, step))

    def answer(self, text: str, *, fails: bool = False) -> Go | Answer:
        """Answers the call by hand that is to be made, or lets it fail. Raises `Trouble`."""
        if not text.strip():
            raise Trouble("say what the answer is: `answer TEXT`, `answer JSON`, or `fail MESSAGE`")
        if self.call is not None:
            return self._mask.answer(by_hand(self.call, text, fails=fails))
        here, number = self.here, self.stage
        stages = here.pipeline.checked.stages
        if self.is_over or here.at >= len(stages):
            raise Trouble("no call is to be made here")
        stage = stages[here.at]
        targets = targets_of(stage)
        if isinstance(stage, FanOutStage | EachStage):
            raise Trouble(f"stage {number} makes several calls; `step` stops before each, and it can be answered there")
        if any(isinstance(call, PipelineCall) for call in calls_of(stage)):
            raise Trouble(
                f"stage {number} may call a pipeline; `step` goes into it, and its calls can be answered there"
            )
        answerable = tuple(t for t in targets if t not in SILENT)
        if not answerable:
            raise Trouble(f"stage {number} makes no call")
        self.go(OVER)
        self._by_hand.append(_ByHand(number, here.frame.scope, answerable, text, fails))
        return Go()

    def back(self) -> int:
        """The hold before the one where a replay is now. Raises `Trouble`."""
        if not self.replays:
            raise Trouble(
                "only a recorded run goes back: halo debug FILE --replay RUN; here `again` runs a stage again"
            )
        now = len(self._holds) if self.call is not None else len(self._holds) - 1
        before = next((at for at in range(now - 1, -1, -1) if self._holds[at]), None)
        if before is None:
            raise Trouble("this is the beginning")
        return before

    def add_breakpoint(self, text: str) -> Breakpoint:
        """Adds a breakpoint: `STAGE`, `TARGET`, `if CONDITION`, or one of the first two with a condition. Raises
        `Trouble`."""
        made = read_breakpoint(self._count + 1, text)
        self._check_place(made.stage, made.target)
        self._count += 1
        self.breakpoints.append(made)
        return made

    def delete(self, text: str) -> None:
        """Deletes a breakpoint by its number, or all of them. Raises `Trouble`."""
        if not text:
            self.breakpoints.clear()
            return
        found = next((one for one in self.breakpoints if str(one.number) == text), None)
        if found is None:
            raise Trouble(f"there is no breakpoint {text}; `break` lists them")
        self.breakpoints.remove(found)

    def found(self, text: str) -> Call:
        """A call by its number, or the one that is to be made. Raises `Trouble`."""
        if not text:
            if self.call is not None:
                return self.call
            last = next((one.call for one in reversed(self.calls) if one.call.kind == AGENT), None)
            if last is None:
                raise Trouble("no agent has been asked yet")
            return last
        one = next((one for one in self.calls if str(one.number) == text), None)
        if one is None:
            raise Trouble(f"there is no call {text}; `calls` lists them")
        return one.call

    def _change(self, what: str) -> None:
        stage = self.stage
        if self._changes is not None:
            self._changes(stage, what)
        if self.change is None:
            self.change = f"at stage {stage}, by {what}"

    def _expression(self, text: str) -> Expr:
        expr = parsed(text)
        unknown = unknown_name(expr, self.here.pipeline)
        if unknown is not None:
            names = names_in(self.here.pipeline)
            near = did_you_mean(unknown, names) or f"there are: {', '.join(names)}"
            raise Trouble(f"there is no name `{unknown}` here; {near}")
        return expr

    def _assignment(self, text: str) -> tuple[tuple[str | int, ...], Value]:
        where: Expr | None = None
        at = text.find("=")
        while at >= 0:
            where, _ = parse_expression(text[:at])
            if isinstance(where, Path):
                break
            at = text.find("=", at + 1)
        if not isinstance(where, Path):
            raise Trouble('say what and to which value: `set context.data.topic = "cats"`')
        value = value_of(self._expression(text[at + 1 :]), self.here.pipeline, self.here.frame)
        parts = where.parts
        if where.root == "context" and parts[:1] == ("current",):
            return parts, value
        if where.root == "context" and parts[:1] == ("data",) and len(parts) > 1:
            return parts, value
        if where.root in self.here.pipeline.checked.bindings:
            return ("data", where.root, *parts), value
        raise Trouble("only context.current, what is below context.data, and names bound by `as` can be set")

    def _prepare(self, model: str) -> None:
        provider, slash, name = model.partition("/")
        if not (provider and slash and name):
            raise Trouble(f"a model is written provider/model, and this is `{model}`")
        if self._prepares is not None:
            try:
                self._prepares(model)
            except ConfigError as trouble:
                raise Trouble(str(trouble)) from None

    def _check_place(self, stage: str | None, target: str | None) -> None:
        """Refuses a stage that the pipeline of the run does not have, and a target that nothing in the file has."""
        top = next((one for one in self._open.values() if not one.frame.depth), self.here)
        if stage is not None:
            first, count = int(stage.split(".")[0]), len(top.pipeline.checked.stages)
            if not 1 <= first <= count:
                raise Trouble(f"{top.pipeline.checked.name} has no stage {first}; it has {count}")
        if target is not None and "*" not in target:
            owner = target.partition(".")[0]
            program = top.pipeline.program
            known = [*program.agents, *program.tools, *program.pipelines, "System", "yield", "listen"]
            if owner not in known:
                near = did_you_mean(owner, known)
                raise Trouble(f"nothing is called `{owner}`{f'; {near}' if near else ''}")


def _is_of(call: Call, targets: tuple[str, ...]) -> bool:
    if call.kind == LISTEN:
        return "listen" in targets
    return call.kind in (AGENT, TOOL, YIELD) and call.target in targets


def _written(path: tuple[str | int, ...]) -> str:
    return "context" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _key(frame: Frame) -> Key:
    return frame.prefix, frame.scope


def _prefix(stage: str) -> str:
    return stage[: stage.rfind(".") + 1]


def _at_end(hold: Hold) -> bool:
    return hold.at >= len(hold.pipeline.checked.stages)


def ended_by(hold: Hold) -> tuple[str, str]:
    """The code and words of what has ended a run where it is held."""
    failure = hold.failure
    if isinstance(failure, RunFailure):
        return failure.code, failure.message
    assert isinstance(failure, Halt)
    return "", failure.condition
