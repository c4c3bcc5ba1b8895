"""`HaloRuntime`: runs programs from Python (library.md).

Owns what a host gives once and what each run needs: handlers, mocks, a recorder, a run store. Several runtimes work
side by side, in several threads too; cancelling a run's task leaves nothing behind. Whatever values come from the host
are made values of the language here. Read `leaving.py` for how a run is stopped from outside.
"""

from __future__ import annotations

import asyncio
import os
from inspect import isawaitable
from pathlib import Path

from ..app.clock import new_run_id
from ..app.kept import Kept, check_place, opening_line
from ..app.own import own_model, own_providers
from ..app.resuming import Given, ResumeError, check_program, claim, resume, signal_line
from ..app.running import Host, run_live
from ..app.settings import Settings
from ..app.underway import What
from ..boundary.call import Answer
from ..boundary.host import ConfigError, Environment, Handlers
from ..boundary.recording import RecordingError
from ..check.unasked import unasked
from ..doors.folder import is_run_id
from ..doors.keeping import Keeper
from ..doors.mock import mock_problem
from ..doors.stores import MemoryRunStore, RunUnknown
from ..runtime.arguments import with_defaults
from .errors import HaloError
from .events import Event, EventStream, Watching
from .given import given_arguments, given_value
from .leaving import GRACE_S, Stoppable, from_plain_code
from .program import Program
from .recordings import is_of_a_recording, recorded_call
from .result import RunResult, public_result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
    from typing import Any, Self

    from ..app.own import Own, OwnModel
    from ..app.resuming import Resumed
    from ..boundary.call import Call
    from ..boundary.host import Preview
    from ..doors.answering import Stop
    from ..doors.mask import Mask
    from ..doors.run_store import RunStore
    from ..language.values import Value
    from .recordings import ReadRecording, RecordedCall

    # What a host gives is any object here, and made a value by `plain`: a `list[str]` is no `list[Value]` to a checker.
    Handler = Callable[[Call], object]
    ApprovalHandler = Callable[[Call, Preview | None], object]


class HaloRuntime:
    """Runs the pipelines of one program.

    `recorder` is told of each recorded call. `run_store` keeps paused runs: in memory unless another is given.
    `environment` are the variables for `Env` references and keys: the process's unless others are given; no `.env` is
    read. Handlers may be plain functions or asynchronous ones. `on_yield` and `on_listen` get the call and give the
    answer; `on_approval` gets the call and the preview of a file's change and gives a yes or no, or
    `{"approved": True, "args": …}` with changed arguments. `on_print` and `on_publish` get what a program shows, and
    `on_event` every event; what these three raise ends the run, and comes out of it. A handler that fails approves
    nothing. Without a handler a run pauses where it asks somebody. With `live=False` no model and no tool is ever
    called: a call that is not mocked fails.
    """

    def __init__(
        self,
        *,
        recorder: Callable[[RecordedCall], None] | None = None,
        run_store: RunStore | None = None,
        environment: Mapping[str, str] | None = None,
        on_yield: Handler | None = None,
        on_listen: Handler | None = None,
        on_approval: ApprovalHandler | None = None,
        on_print: Callable[[Value], None] | None = None,
        on_publish: Callable[[Value], None] | None = None,
        on_event: Callable[[Event], None] | None = None,
        live: bool = True,
    ) -> None:
        self._program: Program | None = None
        self._recorder = recorder
        self._store: RunStore = MemoryRunStore() if run_store is None else run_store
        self._environment = environment
        self._handlers = Handlers(_asynchronous(on_yield), _asynchronous(on_approval), _asynchronous(on_listen))
        self._on_print = on_print
        self._on_publish = on_publish
        self._on_event = on_event
        self._live = live
        self.recording: ReadRecording | None = None
        """The recording that the mocks answer from, where the marker `halo_replay` gave one."""
        self._mocks: dict[str, Value | Callable[[Call], Answer]] = {}
        self._mocks_by_hand: set[str] = set()
        self._own: dict[str, Own] = {}
        self._models: dict[str, OwnModel] = {}
        self._under_way: dict[str, Stoppable] = {}

    def load(self, program: Program) -> Self:
        """The program to run, from `halo_lang.load`. Gives the runtime itself. Raises `HaloError` (`CONFIG`) where a
        mock was given that nothing in the program asks for."""
        if not isinstance(program, Program):
            raise HaloError("", "a runtime takes a program, not its path: HaloRuntime().load(load('tidy.halo'))")
        _hold_to(program, sorted(self._mocks_by_hand))
        self._program = program
        return self

    def mock_all(self, mocks: Mapping[str, object]) -> Self:
        """Answers for calls that are then not made for real, by `Agent.method`, `Agent`, `Tool.method`, `Tool`,
        `yield`, an event or `approval`; what none covers is. An answer is a value, `{"sequence": [a, b]}` (one after
        the other in each scope, the last again and again), `{"error": "message"}`, or a function that gets the `Call`
        and gives a value or an `Answer`; what it raises comes out of the run. Gives the runtime itself. Raises
        `HaloError` (`CONFIG`) for what is no JSON, and, here or in `load`, whichever is second, for a key that
        nothing in the program asks for; what `replay_mocks` made may speak of calls that a program no longer has."""
        values = {key: given_value(mock, f"the mock of `{key}`") for key, mock in mocks.items() if not callable(mock)}
        problem = mock_problem(values)
        if problem is not None:
            raise HaloError("CONFIG", problem)
        by_hand = [key for key, mock in mocks.items() if not is_of_a_recording(mock)]
        if self._program is not None:
            _hold_to(self._program, by_hand)
        self._mocks_by_hand.difference_update(mocks)
        self._mocks_by_hand.update(by_hand)
        self._mocks.update(values)
        self._mocks.update({key: _answering(key, mock) for key, mock in mocks.items() if callable(mock)})
        return self

    def register(self, name: str, provider: object) -> Self:
        """A provider of your own, under the name by which programs declare it: a class, a function or a list of
        functions. It is used in place of one that the program was loaded with. Gives the
        runtime itself. Raises `HaloError` for what cannot be described, and for a name of Halo's own providers."""
        try:
            self._own.update(own_providers({name: provider}))
        except ConfigError as trouble:
            raise HaloError("CONFIG", str(trouble)) from None
        return self

    def register_model(self, provider: str, function: OwnModel) -> Self:
        """A function of your own that answers for all models `provider/…`: it gets the `ModelRequest` and gives a text,
        or an `Answer` with tool calls and usage; it may be asynchronous. Gives the runtime itself. Raises `HaloError`
        for a provider that Halo knows."""
        try:
            own_model(provider, function)
        except ConfigError as trouble:
            raise HaloError("CONFIG", str(trouble)) from None
        self._models[provider] = function
        return self

    async def run(
        self, pipeline: str | None = None, args: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> RunResult:
        """Runs a pipeline and gives how it ended: a failure is a result, not an exception. Raises `HaloError` before
        anything runs where something is missing or the arguments do not fit."""
        return await self._run(self._what(pipeline, args, run_id), self._on_event)

    def run_sync(
        self, pipeline: str | None = None, args: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> RunResult:
        """`run` for code that is not asynchronous, also where an event loop runs already (a notebook): the run then has
        a thread of its own. An interrupt (Ctrl-C) cancels the run first."""
        return from_plain_code(self.run(pipeline, args, run_id=run_id))

    async def stream(
        self, pipeline: str | None = None, args: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> AsyncIterator[Event]:
        """Runs a pipeline and gives its events as they come; the last one is `RunEnded`, with the result. `on_event` is
        told of them too. Leaving the iteration early cancels the run."""
        events = EventStream()

        def told(event: Event) -> None:
            if self._on_event is not None:
                self._on_event(event)
            events.put(event)

        run = asyncio.ensure_future(self._run(self._what(pipeline, args, run_id), told))
        try:
            async for event in events.until(run):
                yield event
        finally:
            if not run.done():
                run.cancel()
                await asyncio.wait([run])

    async def resume(self, run_id: str, answer: object = None, *, wait: str | None = None) -> RunResult:
        """Goes on with a paused run, answering what it waits for: the only wait, or the one whose id is given. An
        answer of None answers nothing: the run goes on with what it was sent (`signal`) and its handlers.

        Raises `HaloError` (`RESUME_CONFLICT`) where somebody else resumes it or it has ended.
        """
        program = self._loaded()
        try:
            resumed = claim(self._store, run_id, lambda _: True)
        except (ResumeError, RecordingError) as trouble:
            raise _public(trouble) from None
        try:
            check_program(resumed, program.checked, changed=False)
            given = [] if answer is None else [Given("answer", given_value(answer, "the answer"), wait=wait)]
            return await self._resume(resumed, given)
        except (ResumeError, RecordingError) as trouble:
            raise _public(trouble) from None
        finally:
            resumed.journal.release()

    def signal(self, run_id: str, event: str, payload: object) -> None:
        """Sends an event to a run that is kept, whether it listens for it yet or not; it is delivered once. Raises
        `HaloError` where there is no such run."""
        try:
            self._store.add(run_id, signal_line(event, given_value(payload, "the event's payload")))
        except RunUnknown:
            raise HaloError("RESUME_CONFLICT", f"there is no paused run {run_id}") from None
        except RecordingError as trouble:
            raise _public(trouble) from None

    def cancel(self, run_id: str, *, grace_s: float = GRACE_S) -> bool:
        """Stops a run of this runtime, from any thread; gives whether it was under way. No new call begins; those under
        way get `grace_s` seconds, then they are cancelled. The run's result then says `cancelled`."""
        run = self._under_way.get(run_id)
        return run is not None and run.stop_soon(grace_s)

    async def _run(self, what: What, on_event: Callable[[Event], None] | None) -> RunResult:
        def keep(begun: What, _: Mask) -> Kept:
            check_place(self._store, begun.run_id)
            keeper = Keeper(spools=True, tell=self._tell)
            keeper.write(opening_line(begun))
            return Kept(begun.run_id, keeper, self._store)

        return await self._under(what, lambda host, stop: run_live(what, host, keep=keep, stop=stop), on_event)

    async def _resume(self, resumed: Resumed, given: list[Given]) -> RunResult:
        opening = resumed.opening
        what = What(self._loaded().checked, opening.pipeline, opening.args, resumed.run_id)
        return await self._under(
            what,
            lambda host, stop: resume(what, host, resumed, self._store, given, stop=stop, tell=self._tell),
            self._on_event,
        )

    async def _under(
        self,
        what: What,
        start: Callable[[Host, Stop], Coroutine[Any, Any, Any]],
        on_event: Callable[[Event], None] | None,
    ) -> RunResult:
        program = self._loaded()
        watching = Watching(self._on_print, self._on_publish, on_event)
        variables = os.environ if self._environment is None else self._environment
        settings = Settings(Environment(dict(variables), {}), program.project, ())
        host = Host(
            Path(program.path),
            settings,
            watching,
            self._handlers,
            mocks=dict(self._mocks),
            own={**program.own, **self._own},
            models=dict(self._models),
            is_offline=not self._live,
        )
        run = Stoppable()
        if self._under_way.setdefault(what.run_id, run) is not run:
            raise HaloError("RESUME_CONFLICT", f"the run {what.run_id} is under way already")
        try:
            result = public_result(await run.carried_out(start, host))
        except ConfigError as trouble:
            raise HaloError("CONFIG", str(trouble)) from None
        finally:
            del self._under_way[what.run_id]
        watching.ended(result)
        return result

    def _what(self, pipeline: str | None, args: Mapping[str, object] | None, run_id: str | None) -> What:
        program = self._loaded()
        checked = program.pipeline(pipeline)
        known = {parameter.name for parameter in checked.params}
        for name in args or {}:
            if name not in known:
                raise HaloError("UNKNOWN_ARGUMENT", f"the pipeline {checked.name} has no parameter `{name}`")
        given = given_arguments(args)
        try:
            with_defaults(checked.params, given)
        except ValueError as trouble:
            raise HaloError("ARGUMENT_TYPE", str(trouble)) from None
        if run_id is not None and not is_run_id(run_id):
            raise HaloError("CONFIG", f"a run id is a UUID, such as str(uuid.uuid4()) gives, and not `{run_id[:80]}`")
        return What(program.checked, checked.name, given, run_id or new_run_id())

    def _loaded(self) -> Program:
        if self._program is None:
            raise HaloError("", "load a program first: HaloRuntime().load(load('tidy.halo'))")
        return self._program

    def _tell(self, line: Mapping[str, Any]) -> None:
        if self._recorder is not None:
            self._recorder(recorded_call(line))


def _hold_to(program: Program, keys: Iterable[str]) -> None:
    """Refuses mocks that nothing asks for: what they were meant for would be called for real."""
    for key, near in unasked(keys, program.checked):
        raise HaloError(
            "CONFIG", f"nothing in {program.path} asks for the mock `{key[:80]}`{f'; {near}' if near else ''}"
        )


def _answering(key: str, mock: Callable[[Call], Any]) -> Callable[[Call], Answer]:
    """A function of the host's as a mock."""

    def answer(call: Call) -> Answer:
        given = mock(call)
        return given if isinstance(given, Answer) else Answer(given_value(given, f"what the mock of `{key}` gave"))

    return answer


def _asynchronous(handler: Callable[..., Any] | None) -> Callable[..., Awaitable[Any]] | None:
    """A handler as an asynchronous function, whichever it is."""
    if handler is None:
        return None
    given = handler

    async def asked(*args: Any) -> Any:
        answer = given(*args)
        return given_value(await answer if isawaitable(answer) else answer, "what the handler gave")

    return asked


def _public(trouble: ResumeError | RecordingError) -> HaloError:
    return HaloError(trouble.code, trouble.message)
