"""A program of somebody who uses all of the library, for type checkers (`test_library_types.py`); also run there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from halo_lang import (
    Answer,
    Answered,
    Asked,
    AttemptFailed,
    Call,
    Data,
    Diagnostic,
    Event,
    Failure,
    FileRunStore,
    HaloError,
    HaloRuntime,
    KeepingError,
    Logged,
    LoopLimitError,
    MemoryRunStore,
    Message,
    ModelRequest,
    PlanDifference,
    Preview,
    Printed,
    Program,
    ProgramPlan,
    Published,
    RunConflict,
    RunEnded,
    RunError,
    RunFailed,
    RunJournal,
    RunResult,
    RunStore,
    RunUnknown,
    RunUsage,
    Shadow,
    StageBegan,
    StageEnded,
    Tokens,
    ToolError,
    ToolOffer,
    ToolUse,
    Usage,
    __version__,
    load,
    loads,
    tool,
)
from halo_lang.replay import ReadRecording, RecordedCall, Recorder, read_recording, read_recording_at, replay_mocks

TEXT = """\
tool Store : Shop("Ada")
agent Clerk [mine/one]
  equips Store
pipeline Order(item: String) -> Result:
  item
    |> Clerk.order("Order it.", tools: [Store]) as said
    |! yield("Thank the customer?") as answer
    |> System.Log(said)
    |> System.Print(said)
    |> System.Publish(said)
"""


class Shop:
    def __init__(self, owner: str) -> None:
        self.owner = owner

    @tool(effect="external", idempotent=False, timeout_s=5)
    def order(self, item: str, count: int = 1) -> dict[str, object]:
        """Orders something."""
        if count < 1:
            raise ToolError("order at least one")
        return {"item": item, "count": count, "by": self.owner}


@tool
def now() -> str:
    """The time."""
    return "12:00"


def model(request: ModelRequest) -> Answer | str:
    """A model of one's own: asks for a tool once, then answers."""
    last: Message = request.messages[-1]
    said = "".join(part.text if isinstance(part, Data) else part for part in last.parts)
    if last.role == "user":
        offers: tuple[ToolOffer, ...] = request.tools
        if not offers:
            raise AttemptFailed("MODEL_ERROR", "no tool is offered", retry=False)
        use = ToolUse("1", offers[0].name, {"item": "pear"})
        return Answer(None, tool_uses=(use,), usage=Usage(input=10, output=2))
    return f"ordered: {said}"


async def approve(call: Call, preview: Preview | None) -> dict[str, object] | bool:
    return {"approved": True, "args": dict(call.args)} if preview is None else preview.difference == ""


def answer(call: Call) -> bool:
    return call.kind == "yield"


def one_line(event: Event) -> str:
    match event:
        case StageBegan(stage=stage, target=target) | StageEnded(stage=stage, target=target):
            return f"{stage} {target}"
        case Tokens(text=text):
            return text
        case Asked(call=call):
            return f"{call.kind} {call.target} {call.scope}"
        case Answered(call=call, answer=given, cost=cost):
            failure: Failure | None = given.error
            return f"{call.target} {given.value} {failure} {cost}"
        case Printed(value=value) | Logged(value=value) | Published(value=value):
            return str(value)
        case RunEnded(result=result):
            return result.status
    return ""


class Journal:
    """Of a run store of one's own: the part of it that one has claimed."""

    def __init__(self, inner: RunJournal) -> None:
        self._inner = inner

    def lines(self) -> Iterator[bytes]:
        return self._inner.lines()

    def append(self, data: bytes) -> None:
        if len(data) > 1_000_000:
            raise KeepingError("that is too much")
        self._inner.append(data)

    def sync(self) -> None:
        self._inner.sync()

    def release(self) -> None:
        self._inner.release()

    def delete(self) -> None:
        self._inner.delete()


class OwnStore:
    def __init__(self) -> None:
        self._inner = MemoryRunStore()

    def create(self, run_id: str, lines: Iterable[bytes] = ()) -> RunJournal:
        return Journal(self._inner.create(run_id, lines))

    def claim(self, run_id: str) -> RunJournal:
        try:
            return Journal(self._inner.claim(run_id))
        except (RunConflict, RunUnknown):
            raise

    def add(self, run_id: str, line: Mapping[str, Any]) -> None:
        self._inner.add(run_id, line)

    def ids(self) -> list[str]:
        return self._inner.ids()

    def peek(self, run_id: str) -> Iterator[bytes]:
        return self._inner.peek(run_id)


def planned(program: Program) -> list[str]:
    plan: ProgramPlan = program.plan("Order", input_tokens=500)
    change: PlanDifference = plan.difference(program.plan())
    warnings: tuple[Diagnostic, ...] = program.warnings
    cost: float | None = plan.max_cost
    document: dict[str, Any] = plan.to_json()
    return [
        *(f"{call.target}: {call.effect}" for call in plan.calls),
        *(stage.number for stage in plan.stages),
        *(diagnostic.code for diagnostic in warnings),
        *(change.text for change in change.changes),
        f"{plan.pipeline} {cost} {document['name']} {change.widened} {bool(change)} {plan.summary.unpriced} {plan}",
        f"{[p.name for p in program.pipelines]} {[a.name for a in program.agents]} {program.path}",
        f"{[t.name for t in (*program.tools, *program.stores)]} {program.checked.ok} {program.pipeline(None).name}",
    ]


def told(result: RunResult) -> str:
    error: RunError | None = result.error
    usage: RunUsage = result.usage
    shadows: tuple[Shadow, ...] = result.shadows
    why = "" if error is None else f"{error.code} {error.message} {error.stage} {error.at}"
    numbers = f"{result.cost + result.unsettled} {usage.input} {usage.output} {usage.cached} {result.duration}"
    return (
        f"{result.status} {result.ok} {result.output} {result.context['data']} {result.calls} {why} {numbers} {shadows}"
    )


async def main(folder: str, show: list[str]) -> RunResult:
    try:
        load(f"{folder}/there is none.halo", providers=["Shop"])
    except HaloError as trouble:
        show.append(f"{trouble.code} {trouble.message} {trouble.diagnostics}")
    program = loads(TEXT, path=f"{folder}/order.halo", providers={"Shop": Shop, "Clock": [now]})
    show += planned(program)
    run_id = str(uuid.uuid4())
    recorder = Recorder(f"{folder}/recordings", run_id)
    store: RunStore = OwnStore()

    def record(call: RecordedCall) -> None:
        show.append(f"{call.kind} {call.target} {call.scope} {call.value} {call.error} {call.tool_calls}")
        recorder.record(call)

    runtime = HaloRuntime(
        recorder=record,
        run_store=store,
        environment={},
        on_approval=approve,
        on_print=lambda value: show.append(str(value)),
        on_publish=lambda value: show.append(str(value)),
        on_event=lambda event: show.append(one_line(event)),
    )
    runtime.load(program).register("Shop", Shop).register_model("mine", model)
    recorder.start("Order", {"item": "pear"}, file="order.halo", sha256="")
    paused = await runtime.run("Order", {"item": "pear"}, run_id=run_id)
    show += [f"{wait['kind']} {wait['id']}" for wait in paused.waits]
    runtime.signal(run_id, "Shop.Closed", {"at": 18})
    show.append(str(runtime.cancel(run_id, grace_s=1.0)))
    result = await runtime.resume(run_id, True, wait=None)
    recorder.finish(status=result.status, output=result.output, error=result.error, waits=result.waits)
    show.append(told(result))

    recording: ReadRecording = read_recording(f"{folder}/recordings", run_id)
    same = read_recording_at(f"{folder}/recordings/{recording.run_id}.jsonl")
    mocks = replay_mocks(recording, live_models=False, live_tools=False, tools=["Store"])
    again = HaloRuntime(live=False, on_yield=answer, on_listen=answer, run_store=FileRunStore(f"{folder}/.halo/runs"))
    again.load(program).mock_all({"Clerk": {"sequence": ["a", "b"]}}).mock_all(mocks)
    async for event in again.stream(same.pipeline, same.args):
        if isinstance(event, RunEnded):
            show.append(f"{event.result.output == same.output} {same.status} {same.error} {again.recording}")
    return result.or_raise()


def plain(program: Program) -> str:
    runtime = HaloRuntime(live=False).load(program).mock_all({"Clerk": lambda call: call.target, "yield": True})
    try:
        return str(runtime.run_sync("Order", {"item": "pear"}).or_raise().output)
    except LoopLimitError as limit:
        return limit.result.status
    except RunFailed as failed:
        return f"{failed.code} {failed.result.run_id}"


if __name__ == "__main__":
    asyncio.run(main(".", []))
    print(__version__)
