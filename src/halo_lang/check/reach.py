"""What a started pipeline can reach: through the calls it makes, and the calls of the pipelines that it calls.

Owns the walk over calls that everything uses which must know more than one pipeline. A plan's numbers and bounds are
not made here.
"""

from __future__ import annotations

from ..catalog.describe import EnvRef
from ..language.record import Record
from .program import AgentCall, BranchStage, CallStage, EachStage, FanOutStage, PipelineCall, ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .program import CheckedCall, CheckedPipeline, CheckedProgram, CheckedStage


class Reach(Record):
    """Names in the order of first use. `pipelines` begins with the started one. `tools` are those that are called, and
    those that a call of an agent offers. `env` are the variables of these tools' settings and of the agents' models.
    """

    pipelines: tuple[str, ...]
    agents: tuple[str, ...]
    tools: tuple[str, ...]
    env: tuple[str, ...]


def reach(program: CheckedProgram, pipeline: str) -> Reach:
    """What the pipeline can reach. Raises `KeyError` for a name that is none."""
    pipelines: dict[str, None] = {pipeline: None}
    agents: dict[str, None] = {}
    tools: dict[str, None] = {}
    env: dict[str, None] = {}
    # A stack of what remains to be looked at, not recursion: calls may chain through a whole file.
    under_way = [calls_of(program.pipelines[pipeline])]
    while under_way:
        call = next(under_way[-1], None)
        if call is None:
            under_way.pop()
        elif isinstance(call, AgentCall):
            agents[call.agent.name] = None
            if isinstance(call.agent.model, EnvRef):
                env[call.agent.model.name] = None
            for name in call.tools:
                tools[name] = None
                env.update((ref, None) for ref in env_names(program.tools[name].settings))
        elif isinstance(call, ToolCall):
            tools[call.tool.name] = None
            env.update((ref, None) for ref in env_names(call.tool.settings))
        elif isinstance(call, PipelineCall) and call.target not in pipelines and call.target in program.pipelines:
            pipelines[call.target] = None
            under_way.append(calls_of(program.pipelines[call.target]))
    return Reach(tuple(pipelines), tuple(agents), tuple(tools), tuple(env))


def calls_of(pipeline: CheckedPipeline) -> Iterator[CheckedCall]:
    """All calls that a pipeline's stages make, shadows included, in the order written."""
    for stage in pipeline.stages:
        yield from stage_calls(stage)


def stage_calls(stage: CheckedStage) -> Iterator[CheckedCall]:
    """The calls that a stage makes; a shadow comes before the call that it stands beside."""
    if isinstance(stage, CallStage):
        if stage.shadow is not None:
            yield stage.shadow
        yield stage.call
    elif isinstance(stage, EachStage):
        yield stage.call
    elif isinstance(stage, BranchStage):
        for arm in stage.arms:
            yield arm.call
    elif isinstance(stage, FanOutStage):
        for member in stage.members:
            yield member.call


def env_names(value: object) -> Iterator[str]:
    """The names of the variables in settings, in the order written."""
    if isinstance(value, EnvRef):
        yield value.name
    elif isinstance(value, dict):
        for item in value.values():
            yield from env_names(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from env_names(item)
