"""What a run keeps while it goes: the context of each pipeline call, and what the whole run counts.

Owns `Places` (what stages stored, language.md §4), `Frame` (one call of a pipeline, or one branch's view of it) and
`Run`. Changed only by the runtime's coroutines, which the driver steps one at a time.
"""

from __future__ import annotations

from ..language.record import Record
from .failure import RunFailure
from .sizes import Sizes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeAlias

    from ..boundary.call import Scope
    from ..catalog.describe import Method
    from ..check.program import Policy
    from ..language.values import Value

    class Sink(Protocol):
        """Where what a run shows goes, at once and in order."""

        def printed(self, value: Value) -> None: ...

        def logged(self, value: Value) -> None: ...

        def stage_began(self, number: str, target: str, scope: Scope) -> None: ...

        def stage_ended(self, number: str, target: str, scope: Scope) -> None: ...


MAX_DEPTH = 16
"""Nested pipeline calls, the run's own pipeline not counted (language.md §6)."""

MAX_CALLS = 100_000
"""Pipeline calls of one run."""


class Places(dict):  # type: ignore[type-arg]
    """An object of the context that stages store into: `context.data` and the objects below it that hold results at
    their usual places. Whatever else stands in the context is a value, and never changed."""

    __slots__ = ()

    def put(self, path: tuple[str, ...], value: Value) -> None:
        """Stores a value at a path, replacing whatever stands in its way (language.md §4)."""
        at = self
        for name in path[:-1]:
            inner = at.get(name)
            if type(inner) is not Places:
                inner = at[name] = Places(inner) if type(inner) is dict else Places()
            at = inner
        at[path[-1]] = value

    def copy(self) -> Places:
        """Another one that holds the same, to be stored into without changing this one."""
        return Places({k: v.copy() if type(v) is Places else v for k, v in self.items()})

    def copy_out(self) -> dict[str, Value]:
        """The value that it is now."""
        return {k: v.copy_out() if type(v) is Places else v for k, v in self.items()}


class Governor:
    """Whose policies govern a call: an agent's own (`owner` is its name) or a pipeline's (`pipeline NAME`).

    Compared by identity, for it stands in keys: an agent or a pipeline has one.
    """

    __slots__ = ("owner", "policies")

    def __init__(self, owner: str, policies: tuple[Policy, ...]) -> None:
        self.owner = owner
        self.policies = policies


class Run:
    """What is counted and remembered over a whole run.

    `calls` counts stages and tool calls by target. `used` counts calls under each MaxCalls rule, `denials` the refusals
    of each method with its arguments. `standing` holds the methods that a person approved for all of this run,
    `described` what tools said of their methods when they were asked. `covered` are the stages that ran, by pipeline
    and number, and the arms that were taken; it is filled where the run is `watched`. `sizes` bounds the values made.
    """

    __slots__ = (
        "calls",
        "covered",
        "denials",
        "described",
        "governed",
        "pipeline_calls",
        "run_id",
        "sink",
        "sizes",
        "standing",
        "stepped",
        "used",
        "watched",
    )

    def __init__(self, run_id: str, sink: Sink, *, watched: bool = False, stepped: bool = False) -> None:
        self.run_id = run_id
        self.sink = sink
        self.watched = watched
        self.stepped = stepped
        self.calls: dict[str, int] = {}
        self.covered: set[tuple[str, int, int | None]] = set()
        self.pipeline_calls = 0
        self.used: dict[tuple[str, int], int] = {}
        self.denials: dict[tuple[str, str], int] = {}
        self.standing: set[str] = set()
        self.described: dict[str, tuple[Method, ...]] = {}
        self.governed: dict[object, Any] = {}
        self.sizes = Sizes()

    def count(self, target: str) -> None:
        """Counts a stage or a tool call that is made."""
        self.calls[target] = self.calls.get(target, 0) + 1

    def uncount(self, target: str) -> None:
        """Takes one back: the call turned out not to be made."""
        self.calls[target] -= 1
        if not self.calls[target]:
            del self.calls[target]

    def enter_pipeline(self, name: str, depth: int) -> None:
        """Counts a pipeline call. Raises `RunFailure` past the limits of language.md §6."""
        if depth > MAX_DEPTH:
            raise RunFailure("CALL_DEPTH", f"`{name}` would be pipeline call number {depth} one inside the other; "
                             f"{MAX_DEPTH} are allowed")  # fmt: skip
        self.pipeline_calls += 1
        if self.pipeline_calls > MAX_CALLS:
            raise RunFailure("CALL_LIMIT", f"the run made {MAX_CALLS:,} pipeline calls, which is all that one may make")


class Retry(Record):
    """What a loop shows the agent that it goes back to: the value that the check saw and the condition that held."""

    agent: str
    value: Value
    condition: str


_NOTHING: dict[Any, Any] = {}


class Frame:
    """One call of a pipeline; `branch` gives the view of one of its parallel branches.

    `prefix` stands before the numbers of its stages (`"3."` inside a pipeline that stage 3 calls). `governors` are the
    pipelines around it that require policies, outermost first. `place` says where in a stage that a loop goes back to
    this is (the stage's number and the branch's position), and is None elsewhere; `answers` keeps what agents answered
    in such places; `retry` is set while such a stage runs again. `loops` are the loops that have gone back, by number.
    """

    __slots__ = (
        "answers",
        "current",
        "data",
        "depth",
        "governors",
        "halted",
        "index",
        "item",
        "loops",
        "name",
        "params",
        "place",
        "prefix",
        "retry",
        "run",
        "scope",
    )

    def __init__(
        self,
        run: Run,
        name: str,
        params: dict[str, Value],
        scope: Scope,
        prefix: str,
        governors: tuple[Governor, ...],
        depth: int,
    ) -> None:
        self.run = run
        self.name = name
        self.params = params
        self.data = Places()
        self.current: Value = None
        self.scope = scope
        self.prefix = prefix
        self.governors = governors
        self.depth = depth
        self.item: Value = None
        self.index = 0
        self.place: tuple[int, int] | None = None
        self.retry: Retry | None = None
        self.answers: dict[tuple[tuple[int, int], str], str] = _NOTHING
        self.loops: dict[int, dict[str, Value]] = _NOTHING
        self.halted: Value = None

    def branch(self, position: int, current: Value) -> Frame:
        """The view of the branch at a position: it reads what is stored, and stores nothing itself."""
        made = Frame.__new__(Frame)
        made.run = self.run
        made.name = self.name
        made.params = self.params
        made.data = self.data
        made.current = current
        made.scope = (*self.scope, position)
        made.prefix = self.prefix
        made.governors = self.governors
        made.depth = self.depth
        made.item = self.item
        made.index = self.index
        made.place = None if self.place is None else (self.place[0], position)
        made.retry = self.retry
        made.answers = self.answers
        made.loops = self.loops
        made.halted = None
        return made

    def meta(self) -> dict[str, Value]:
        return {"pipeline": self.name, "runId": self.run.run_id, "halted": self.halted}

    def context(self) -> dict[str, Value]:
        """The context as a value, as of now."""
        current = self.current
        return {"current": current, "data": self.data.copy_out(), "meta": self.meta()}


Evaluate: TypeAlias = "Callable[[Frame], Value]"
