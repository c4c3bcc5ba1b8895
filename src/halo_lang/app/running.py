"""Runs: on mocks, from a recording, and for real (runs.md §2, §4).

Owns the wiring of a run to whoever answers it. Everything that a run could lack is found before it begins. Read
`underway.py` for the run itself, `preparing.py` and `doors.py` for the live parts, `kept.py` for what is written down.
"""

from __future__ import annotations

from ..boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, failed
from ..doors.answering import answered, without_waiting
from ..doors.folder import KeepingError
from ..doors.mock import Mock
from ..language.record import Record, replace
from ..runtime.arguments import with_defaults
from .clock import now, today
from .result import RunError, Shadow
from .underway import UnderWay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from ..boundary.call import Call
    from ..boundary.host import Handlers
    from ..doors.answering import Ending, Stop, Stuck
    from ..doors.mask import Mask
    from ..doors.within import Within
    from ..language.values import Value
    from ..models.client import ModelClient
    from ..models.own import OwnModel
    from ..providers.own.describing import Own
    from ..runtime.driver import Request
    from .feeds import ReplayFeed
    from .kept import Kept
    from .result import RunResult
    from .settings import Settings
    from .underway import Debugger, Watcher, What

EVERYTHING = frozenset((AGENT, TOOL, APPROVAL, YIELD, LISTEN))
PEOPLE = frozenset((APPROVAL, YIELD, LISTEN))


class Host(Record):
    """What a live run is given: the program's file, settings, who is shown the run and who is asked, the kept plan that
    it is held to, if any, `mocks` for calls that are not made for real (`doors/mock.py`), who steps through it, and
    what was registered in code: providers in `own`, providers of `models`, by name. Where it `is_offline` no model and
    no tool is called: what is not mocked fails."""

    file: Path
    settings: Settings
    watcher: Watcher
    handlers: Handlers
    within: Within | None = None
    mocks: Mapping[str, Value | Callable[[Call], Answer]] = {}
    stepper: Debugger | None = None
    own: Mapping[str, Own] = {}
    models: Mapping[str, OwnModel] = {}
    is_offline: bool = False


class Recorded(Record):
    """What a live run takes answers from a recording by, and the kinds of calls for which it asks the world all the
    same."""

    feed: ReplayFeed
    live: frozenset[str]


def run_mocked(what: What, answers: Mapping[str, Value], watcher: Watcher, within: Within | None = None) -> RunResult:
    """Runs a pipeline on mock answers alone: needs no key and no event loop, and touches nothing (cli.md `--mock`)."""
    run = UnderWay(what, watcher)
    mock = Mock(answers, now=now, publish=watcher.published, refusal=None if within is None else within.refusal)
    return run.result(without_waiting(answered(run.driver, run.account, mock=mock, answering=run.answering)))


def run_replayed(
    what: What, feed: ReplayFeed, watcher: Watcher, covered: set[tuple[str, int, int | None]] | None = None
) -> RunResult:
    """Runs a pipeline on a recording alone: nothing is contacted, nothing needs an event loop (runs.md §4). `covered`
    is given the stages and arms that ran, where the run is watched."""
    run = UnderWay(what, watcher)
    ending = without_waiting(answered(run.driver, run.account, feed=feed, stuck=feed.stuck, answering=run.answering))
    if covered is not None:
        covered |= run.covered
    return _replayed(run, feed, ending)


async def debug_mocked(
    what: What,
    answers: Mapping[str, Value],
    watcher: Watcher,
    within: Within | None,
    stepper: Debugger,
    stop: Stop,
) -> RunResult:
    """Runs a pipeline on mock answers, stepped through."""
    run = UnderWay(what, watcher, stepper)
    mock = Mock(answers, now=now, publish=watcher.published, refusal=None if within is None else within.refusal)
    ending = await answered(run.driver, run.account, mock=mock, answering=run.answering, stop=stop, stepper=stepper)
    return run.result(ending)


async def debug_replayed(what: What, feed: ReplayFeed, watcher: Watcher, stepper: Debugger, stop: Stop) -> RunResult:
    """Runs a pipeline on a recording, stepped through."""
    run = UnderWay(what, watcher, stepper)
    ending = await answered(
        run.driver, run.account, feed=feed, stuck=feed.stuck, answering=run.answering, stop=stop, stepper=stepper
    )
    return _replayed(run, feed, ending)


def _replayed(run: UnderWay, feed: ReplayFeed, ending: Ending) -> RunResult:
    for entry in feed.late():
        run.account.add(entry, entry.answer)
    ended = feed.ended_as(ending)
    return run.result(ended, (), feed.waits(ended.waits))


async def run_live(
    what: What,
    host: Host,
    *,
    keep: Callable[[What, Mask], Kept] | None = None,
    recorded: Recorded | None = None,
    begins: bool = True,
    stop: Stop | None = None,
) -> RunResult:
    """Runs a pipeline for real. Raises `ConfigError` before anything runs where something is missing, and `ValueError`
    for arguments that do not fit.

    `keep` is called when nothing is missing, with the run as it begins, and gives what writes it down, and what answers
    it from its journal. With `recorded` the run takes answers from a recording. One that does not begin now (`begins`)
    has the very arguments that it began with.
    """
    from ..doors.live import Live
    from ..doors.mask import Mask
    from ..doors.spend import Ledger
    from ..models.client import ModelClient
    from .doors import live_doors, previews
    from .model_door import ModelDoor
    from .preparing import outside, start_tools

    with_defaults(what.program.pipelines[what.pipeline].params, what.args)  # raises for arguments that do not fit
    kinds = recorded.live if recorded is not None else PEOPLE if host.is_offline else EVERYTHING
    watcher, within, settings = host.watcher, host.within, host.settings
    client = ModelClient(settings.environment, settings.project.models, host.file.resolve().parent, host.models)
    day = today()
    found = outside(
        what,
        settings.environment,
        client,
        lambda model: settings.project.price(model, day) is not None,
        kinds=kinds,
        mocked=lambda target: target in host.mocks or target.partition(".")[0] in host.mocks,
    )
    tools = start_tools(
        what.program,
        host.file,
        found.settings,
        settings.environment,
        host.own,
        secrets=found.secrets,
        kept_plan="" if within is None else within.file,
    )
    kept: Kept | None = None
    try:
        mask, ledger = Mask(found.secrets), Ledger(None if within is None else within.limit)
        if begins and recorded is None:  # else they were masked by then, and what was asked stands on them as they are
            what = replace(what, args=mask.value(dict(what.args)))  # a secret given as an argument is one all the same
        kept = None if keep is None else keep(what, mask)
        keeper = None if kept is None else kept.keeper
        feed = recorded.feed if recorded is not None else None if kept is None else kept.feed
        stuck: Stuck | None = None if feed is None else feed.stuck
        if host.is_offline:
            stuck = _offline(stuck, watcher)
        if kept is not None and kept.journaled is not None:
            ledger.spent, ledger.unsettled = kept.journaled.spent, kept.journaled.unsettled
        watcher.spends(ledger)
        instances = {name: (what.program.tools[name], instance) for name, instance in tools.items()}
        preview = previews(instances)
        model_door = ModelDoor(client, found.models, settings.project.prices, ledger, mask, watcher.tokens, keeper)
        doors = live_doors(
            model_door.answer,
            instances,
            host.handlers,
            preview,
            mask=mask,
            publish=watcher.published,
            refusal=None if within is None else within.refusal,
            keeper=keeper,
        )
        live = Live(
            {kind: door for kind, door in doors.items() if kind in kinds},
            lambda call: host.handlers.can_answer(call) and not (kept is not None and kept.is_uncertain(call)),
            shadows=recorded is None and not host.is_offline,
        )
        if host.stepper is not None:
            changed = None if keeper is None else keeper.changed
            host.stepper.begins(changed, lambda model: _prepare(client, mask, model), mask)
        run = UnderWay(what, watcher, host.stepper)
        if kept is not None and kept.journaled is not None:
            run.account.cost = kept.journaled.shadows  # which no answer says again
        ending = await answered(
            run.driver,
            run.account,
            feed=feed,
            mock=Mock(host.mocks, now=now, publish=watcher.published, defaults=False)
            if host.mocks or host.is_offline
            else None,
            live=live,
            keeper=keeper,
            stuck=stuck,
            stop=stop,
            asking=watcher.asked if watcher.watches else None,
            answering=run.answering,
            stepper=host.stepper,
        )
        run.account.unsettled = ledger.unsettled
        shadows = tuple(_shadow(call, answer) for call, answer in live.shadowed)
        waits = () if kept is None else await kept.waits(ending.waits, preview, run.answered)
        result = run.result(ending, shadows, waits)
        if kept is not None:
            result, kept = _finished(kept, result, model_door.shadows_unsettled), None
        return result
    finally:
        if kept is not None:
            kept.abandon()
        await client.close()
        for tool in tools.values():
            await tool.close()


def _prepare(client: ModelClient, mask: Mask, model: str) -> None:
    """Gets a model ready of which the run did not know when it began. Raises `ConfigError`."""
    endpoint = client.prepare(model)
    if endpoint.key:
        mask.add(endpoint.key_name, endpoint.key)


def _offline(stuck: Stuck | None, watcher: Watcher) -> Stuck:
    """What decides where neither a mock nor a recording can answer, and nothing may be called; what people are asked
    may pause the run."""

    def decides(waiting: Collection[Request]) -> tuple[Request, Answer] | None:
        found = None if stuck is None else stuck(waiting)
        if found is not None:
            return found
        for request in waiting:
            call = request.call
            if call.target == "System.Publish":  # is no tool: it goes to whoever runs the pipeline
                watcher.published(call.args["value"])
                return request, Answer(None)
            if call.target.endswith(".*"):  # a tool is asked for its methods, for an agent that is not asked for real
                return request, Answer(None)
            if call.kind not in PEOPLE:
                return request, failed("CONFIG", f"nothing is mocked for {call.target}, and nothing is called for real")
        return None

    return decides


def _finished(kept: Kept, result: RunResult, shadows_unsettled: int) -> RunResult:
    """The result once the run's end is written down; a failure where that cannot be done."""
    if kept.keeper.is_broken and kept.keeper.journal is not None and result.error is not None:
        message = f"{result.error.message}; what was kept of it can be resumed"
        result = replace(result, error=replace(result.error, message=message))
    try:
        kept.finish(result, shadows_unsettled)
    except KeepingError as trouble:
        error = RunError("CONFIG", f"how the run ended cannot be kept: {trouble.message}", None, None)
        return replace(result, status="failed", error=error)
    return result


def _shadow(call: Call, answer: Answer) -> Shadow:
    error = None if answer.error is None else answer.error.message
    return Shadow(call.target, call.stage, answer.value, error, answer.cost or 0, answer.ms)
