"""The driver: steps a run's coroutines until every branch waits, in the order in which they are written.

Owns the two things that the runtime's coroutines may await, `Ask` and `Fork` (and `Aside`, which nobody waits for, and
`Hold`, where a debugged run can be looked at), and the order in which branches move (runs.md §1, architecture.md "One
door"). Knows no event loop, no clock and no world: whoever holds the driver takes the calls that were asked, finds
their answers and hands them in, one at a time. Read `doors/answering.py` for that loop, `stages.py` for what is
stepped.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from typing import Any, TypeAlias

    from ..boundary.call import Answer, Call
    from .stages import CompiledPipeline
    from .state import Frame
    from .stepping import Go

    Steps: TypeAlias = Coroutine[Any, Any, Any]


class Ask:
    """Awaited: asks the outside, gives its `Answer`."""

    __slots__ = ("call",)

    def __init__(self, call: Call) -> None:
        self.call = call

    def __await__(self) -> Generator[Ask, Answer, Answer]:
        return (yield self)


class Aside:
    """Awaited: sends a call that answers nobody; gives None at once (a shadow, language.md §7). `shown` makes of its
    answer what may be shown."""

    __slots__ = ("call", "shown")

    def __init__(self, call: Call, shown: Callable[[Answer], Answer] | None = None) -> None:
        self.call = call
        self.shown = shown

    def __await__(self) -> Generator[Aside, None, None]:
        yield self


class Fork:
    """Awaited: runs `make(0)` to `make(count - 1)` side by side, at most `concurrency` at a time, begun in that order;
    gives the list of their results. A branch that raises ends the run."""

    __slots__ = ("concurrency", "count", "make")

    def __init__(self, count: int, make: Callable[[int], Steps], concurrency: int) -> None:
        self.count = count
        self.make = make
        self.concurrency = concurrency

    def __await__(self) -> Generator[Fork, list[Any], list[Any]]:
        return (yield self)


class Hold:
    """Awaited, in a run that is debugged, before each stage of a pipeline's call and at its end (`at` is the stage's
    index, or how many there are), and where a stage has ended the run (`failure`): holds the run there, in the middle
    of a move, until it is let go on; gives what was said then (docs/adr/0006)."""

    __slots__ = ("at", "failure", "frame", "pipeline")

    def __init__(self, pipeline: CompiledPipeline, frame: Frame, at: int, failure: Exception | None = None) -> None:
        self.pipeline = pipeline
        self.frame = frame
        self.at = at
        self.failure = failure

    def __await__(self) -> Generator[Hold, Go, Go]:
        return (yield self)


class Request:
    """A call that waits for its answer. `Driver.hand_in` takes the two together, once."""

    __slots__ = ("_branch", "call")

    def __init__(self, call: Call, branch: _Branch) -> None:
        self.call = call
        self._branch = branch


class Driver:
    """One run's branches.

    `asked` holds the requests made since it was last emptied by the holder, in the order in which they were made;
    `asides` those that answer nobody, likewise. When the run has ended `ended` is true, and `failure` holds the
    exception that ended it, or None and `result` the value. Where `held` is not None a debugged run is held there:
    nothing may be handed in before it went on.
    """

    __slots__ = ("_interrupted", "asides", "asked", "ended", "failure", "held", "result", "waiting")

    def __init__(self, steps: Steps) -> None:
        self.asked: list[Request] = []
        self.asides: list[Aside] = []
        self.waiting = 0
        self.ended = False
        self.result: Any = None
        self.failure: Exception | None = None
        self.held: Hold | None = None
        self._interrupted: tuple[_Branch, list[_Group]] | None = None
        self._move(_Branch(steps, None, 0), None, [])

    def hand_in(self, request: Request, answer: Answer) -> None:
        """Gives a waiting request its answer and moves every branch that can move, until all wait or the run ends."""
        self.waiting -= 1
        self._move(request._branch, answer, [])

    def go_on(self, said: Go) -> None:
        """Lets a run that is held go on with the very move that was interrupted."""
        assert self._interrupted is not None
        branch, ready = self._interrupted
        self.held = self._interrupted = None
        self._move(branch, said, ready)

    def _move(self, branch: _Branch, sent: Any, ready: list[_Group]) -> None:
        """Moves a branch, then those of the groups that are `ready`, innermost last."""
        while True:
            try:
                wish = branch.steps.send(sent)
            except StopIteration as done:
                group = branch.group
                if group is None:
                    self.ended, self.result = True, done.value
                    return
                group.results[branch.position] = done.value
                group.running -= 1
                if not group.is_ready:
                    group.is_ready = True
                    ready.append(group)
            except Exception as failure:
                self.ended, self.failure = True, failure
                return
            else:
                kind = type(wish)
                if kind is Ask:
                    self.waiting += 1
                    self.asked.append(Request(wish.call, branch))
                elif kind is Fork:
                    ready.append(_Group(branch, wish))
                elif kind is Aside:
                    self.asides.append(wish)
                    sent = None
                    continue
                elif kind is Hold:
                    self.held, self._interrupted = wish, (branch, ready)
                    return
                else:  # a coroutine that awaits anything else would make a run depend on more than its answers
                    raise TypeError(f"a run may await only the door and its branches, not {wish!r}")
            # The innermost group that can move goes first: its branches stand before those of the groups around it.
            while ready:
                group = ready[-1]
                if group.begun < group.fork.count and group.running < group.fork.concurrency:
                    position = group.begun
                    group.begun += 1
                    group.running += 1
                    branch, sent = _Branch(group.fork.make(position), group, position), None
                    break
                ready.pop()
                group.is_ready = False
                if group.running == 0:
                    branch, sent = group.parent, group.results
                    break
            else:
                return


class _Branch:
    __slots__ = ("group", "position", "steps")

    def __init__(self, steps: Steps, group: _Group | None, position: int) -> None:
        self.steps = steps
        self.group = group
        self.position = position


class _Group:
    """The branches of one fork that is under way."""

    __slots__ = ("begun", "fork", "is_ready", "parent", "results", "running")

    def __init__(self, parent: _Branch, fork: Fork) -> None:
        self.parent = parent
        self.fork = fork
        self.results: list[Any] = [None] * fork.count
        self.begun = 0
        self.running = 0
        self.is_ready = True
