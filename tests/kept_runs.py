"""Runs that are kept: recorded, journaled, replayed and resumed through the real wiring, in a world that a test makes.

The world stands where models and tools do; all else is Halo's own, the files in `.halo` of the working folder too. Time
is made up (`virtual_time`), so nothing waits and everything happens in an order that is always the same.
"""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from halo_lang.app import doors as app_doors
from halo_lang.app import preparing, running
from halo_lang.app.clock import new_run_id
from halo_lang.app.feeds import ReplayFeed
from halo_lang.app.project import Project
from halo_lang.app.replaying import Comparison, compared
from halo_lang.app.result import RunResult, public_wait
from halo_lang.app.resuming import Given, check_program, claim, resume
from halo_lang.app.running import Host, run_live, run_replayed
from halo_lang.app.settings import Settings
from halo_lang.app.underway import UnderWay, What
from halo_lang.boundary.call import APPROVAL, YIELD, Answer, Call
from halo_lang.boundary.host import Environment, Handlers
from halo_lang.check.check import check
from halo_lang.check.program import CheckedProgram
from halo_lang.cli.keep import redaction_of, run_store, start_keeping
from halo_lang.cli.recorded import RECORDINGS
from halo_lang.doors.answering import Stop
from halo_lang.doors.folder import file_of, is_file
from halo_lang.doors.recordings import Recording, read_recording_file, reopened_recording
from halo_lang.language.source import Source
from halo_lang.language.values import to_json

sys.path.append(str(Path(__file__).parent / "property"))
from virtual_time import run_virtually

PROJECT = Project(None, {}, {})
KEYS = {"OPENAI_API_KEY": "sk-not-a-real-key-0123456789", "SLACK_BOT_TOKEN": "xoxb-not-a-real-token-0123456789"}


class World:
    """What a run meets: `agent` answers an agent's request, `tool` a tool's call by its target and arguments. Both give
    a value or an `Answer`, at once or awaited. `made` lists what reached the world, in order."""

    def __init__(
        self,
        agent: Callable[[Call], Any] = lambda call: f"said by {call.target}",
        tool: Callable[[str, Mapping[str, Any]], Any] = lambda target, args: f"done by {target}",
        *,
        handlers: Handlers | None = None,
        keys: Mapping[str, str] | None = None,
        project: Project = PROJECT,
    ) -> None:
        self._agent = agent
        self._tool = tool
        self.handlers = handlers or Handlers()
        self.keys = dict(KEYS if keys is None else keys)
        self.project = project
        self.made: list[tuple[str, Any]] = []

    async def answer(self, call: Call) -> Answer:
        self.made.append((call.target, None))
        given = self._agent(call)
        given = await given if isinstance(given, Awaitable) else given
        return given if isinstance(given, Answer) else Answer(given)

    async def use(self, target: str, args: Mapping[str, Any]) -> Any:
        self.made.append((target, dict(args)))
        given = self._tool(target, args)
        return await given if isinstance(given, Awaitable) else given

    def targets(self) -> list[str]:
        return [target for target, _ in self.made]

    @contextmanager
    def there(self) -> Iterator[None]:
        """While the world is where models and tools are."""
        live_doors = app_doors.live_doors

        def doors(_: Any, *given: Any, **more: Any) -> Any:
            return live_doors(self.answer, *given, **more)

        def tools(_program: Any, _file: Any, settings: Mapping[str, Any], *_: Any, **_more: Any) -> dict[str, Any]:
            return {name: _Tool(self, name) for name in settings}

        async def inline(done: Callable[..., Any], *given: Any) -> Any:
            await asyncio.sleep(0)
            return done(*given)

        with (
            patch.object(app_doors, "live_doors", doors),
            patch.object(preparing, "start_tools", tools),
            patch.object(asyncio, "to_thread", inline),
        ):
            yield


class _Tool:
    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    async def call(self, method: str, args: Mapping[str, Any], given: Any) -> Any:
        return await self._world.use(f"{self._name}.{method}", args)

    async def close(self) -> None: ...


class Watching:
    """Who is shown a run."""

    watches = False

    def __init__(self) -> None:
        self.shown: list[Any] = []

    def printed(self, value: Any) -> None:
        self.shown.append(("printed", value))

    def published(self, value: Any) -> None:
        self.shown.append(("published", value))

    def logged(self, value: Any) -> None:
        self.shown.append(("logged", value))

    def stage_began(self, *_: Any) -> None: ...

    def stage_ended(self, *_: Any) -> None: ...

    def tokens(self, *_: Any) -> None: ...

    def asked(self, *_: Any) -> None: ...

    def answered(self, *_: Any) -> None: ...

    def spends(self, _: Any) -> None: ...


def checked(text: str) -> CheckedProgram:
    program = check(Source("t.halo", text))
    assert program.ok, [(d.code, d.message) for d in program.diagnostics]
    return program


def host_of(world: World, watcher: Watching) -> Host:
    settings = Settings(Environment(world.keys, {}), world.project, ())
    return Host(Path("t.halo"), settings, watcher, world.handlers)


def options(**more: Any) -> Namespace:
    given = {"model": [], "yes_to": [], "within": None, "checkpoint": False, "no_record": False}
    return Namespace(**{**given, "redact_recording": False, **more})


def begin(
    program: CheckedProgram | str,
    world: World,
    args: Mapping[str, Any] | None = None,
    *,
    pipeline: str = "P",
    watcher: Watching | None = None,
    stop: Stop | None = None,
    virtually: Callable[[Any], Any] = run_virtually,
    **how: Any,
) -> RunResult:
    """Begins a run, as `halo run` does, in the working folder; `how` are the command's options."""
    program = checked(program) if isinstance(program, str) else program
    what = What(program, pipeline, {"x": "in"} if args is None else args, how.pop("run_id", None) or new_run_id())
    host = host_of(world, watcher or Watching())
    chosen = options(**how)
    with world.there():
        result: RunResult = virtually(
            run_live(
                what,
                host,
                keep=lambda begun, mask: start_keeping(begun, chosen, host.settings.project, mask),
                stop=stop,
            )
        )
    return result


def go_on(
    program: CheckedProgram | str,
    run_id: str,
    world: World,
    *given: Given,
    changed: bool = False,
    watcher: Watching | None = None,
    stop: Stop | None = None,
    virtually: Callable[[Any], Any] = run_virtually,
) -> RunResult:
    """Resumes a run, as `halo resume` does, with answers. Raises what that refuses by."""
    program = checked(program) if isinstance(program, str) else program
    resumed = claim(run_store(), run_id, lambda run: is_file(file_of(RECORDINGS, run)))
    try:
        is_changed = check_program(resumed, program, changed=changed)
        recording = reopened_recording(RECORDINGS, run_id)
        opening = resumed.opening
        what = What(program, opening.pipeline, opening.args, run_id)
        with world.there():
            result: RunResult = virtually(
                resume(
                    what,
                    host_of(world, watcher or Watching()),
                    resumed,
                    run_store(),
                    given,
                    changed=is_changed,
                    recording=recording,
                    redact=redaction_of(program) if opening.more.get("redact") else None,
                    stop=stop,
                )
            )
        return result
    finally:
        resumed.journal.release()


def recording_of(run_id: str) -> Recording:
    return read_recording_file(file_of(RECORDINGS, run_id))


def replayed(
    program: CheckedProgram | str,
    run_id: str,
    *,
    watcher: Watching | None = None,
    underway: type[UnderWay] = UnderWay,
    strict: bool = False,
) -> tuple[RunResult, Comparison]:
    """Replays a run, as `halo replay` does."""
    program = checked(program) if isinstance(program, str) else program
    recording = recording_of(run_id)
    opening = recording.opening
    feed = ReplayFeed(recording, frozenset())
    with patch.object(running, "UnderWay", underway):
        result = run_replayed(What(program, opening.pipeline, opening.args, run_id), feed, watcher or Watching())
    return result, compared(result, recording, feed, strict=strict)


def end_of(result: RunResult) -> dict[str, Any]:
    """All of how a run ended that a replay must give again."""
    account, error = result.account, result.error
    return {
        "run": result.run_id,
        "status": result.status,
        "output": to_json(result.output),
        "context": to_json(result.context),
        "error": error and (error.code, error.message, error.stage, error.at),
        "calls": result.calls,
        "cost": account.cost,
        "tokens": (account.input, account.output, account.cached),
        "made": (account.llm_calls, account.tool_calls),
        "waits": [{k: v for k, v in public_wait(wait).items() if k != "difference"} for wait in result.waits],
    }


def yes(wait: str | None = None) -> Given:
    return Given("yes", wait=wait)


def answer_for(wait: Mapping[str, Any], value: Any = None) -> Given:
    """A fitting answer to a wait: yes for a person's, the value else."""
    kind = wait["kind"]
    if kind in (YIELD, APPROVAL):
        return Given("yes" if value is None else "answer", value, wait=wait["id"])
    if kind == "outcome":
        return Given("done", value, wait=wait["id"])
    return Given("answer", value, wait=wait["id"])
