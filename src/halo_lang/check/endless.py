"""Pipelines that can only call themselves for ever (language.md §8).

Owns that one warning. What counts as a way on is only what can be read off the file: a gate, a `System.Fail`, an arm
that need not be taken, a list that may be empty.
"""

from __future__ import annotations

from .literals import truth_of
from .program import BranchStage, CallStage, FanOutStage, GateStage, PipelineCall, SystemCall
from .reach import calls_of, stage_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .findings import Findings
    from .program import CheckedPipeline, CheckedStage

    Pipelines = Mapping[str, CheckedPipeline]


def check_endless(pipelines: Pipelines, findings: Findings) -> None:
    """Warns of pipelines that can only call themselves for ever: no run of one ends but by the limit on calls."""
    if not any(isinstance(call, PipelineCall) for pipeline in pipelines.values() for call in calls_of(pipeline)):
        return
    stopping = _stopping(pipelines)
    certain = {name: _certain_calls(pipeline, pipelines, stopping) for name, pipeline in pipelines.items()}
    endless = {name for name, groups in certain.items() if groups}
    if not endless:
        return
    # A pipeline is endless if one of its stages surely leads to an endless one. Begin with all, and take out those of
    # which every stage has a way on.
    callers: dict[str, list[str]] = {}
    for name in endless:
        for group in certain[name]:
            for target in group:
                callers.setdefault(target, []).append(name)
    waiting = [name for name in pipelines if name not in endless]
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller in endless and not any(_surely(group, endless) for group in certain[caller]):
                endless.discard(caller)
                waiting.append(caller)
    leads = {n: next(g[0] for g in certain[n] if _surely(g, endless)) for n in pipelines if n in endless}
    for name in _on_cycles(leads):
        what = f"`{name}` can only call itself for ever"
        help_ = "call it in a branch, or after a gate, so that it can end"
        findings.warning("ENDLESS_CALL", what, pipelines[name].span, help_)


def _surely(group: tuple[str, ...], endless: set[str]) -> bool:
    return all(target in endless for target in group)


def _certain_calls(pipeline: CheckedPipeline, pipelines: Pipelines, stopping: set[str]) -> list[tuple[str, ...]]:
    """The pipelines that its stages surely call, up to where a run may end: of each group one is called."""
    groups: list[tuple[str, ...]] = []
    for stage in pipeline.stages:
        if _may_stop(stage, stopping):
            break
        groups += _surely_called(stage)
    return [group for group in groups if all(target in pipelines for target in group)]


def _surely_called(stage: CheckedStage) -> list[tuple[str, ...]]:
    if isinstance(stage, CallStage) and isinstance(stage.call, PipelineCall):
        return [(stage.call.target,)]
    if isinstance(stage, FanOutStage):
        return [(m.call.target,) for m in stage.members if isinstance(m.call, PipelineCall)]
    if isinstance(stage, BranchStage) and stage.arms:
        last = stage.arms[-1].condition
        targets = tuple(a.call.target for a in stage.arms if isinstance(a.call, PipelineCall))
        if len(targets) == len(stage.arms) and (last is None or truth_of(last) is True):
            return [targets]
    return []


def _may_stop(stage: CheckedStage, stopping: set[str]) -> bool:
    """Whether a run may end at a stage: at a gate, a `System.Fail`, or in a pipeline that has one."""
    if isinstance(stage, GateStage):
        return truth_of(stage.condition) is not True
    return any(
        (isinstance(call, SystemCall) and call.method == "Fail")
        or (isinstance(call, PipelineCall) and call.target in stopping)
        for call in stage_calls(stage)
    )


def _stopping(pipelines: Pipelines) -> set[str]:
    """The pipelines in which a run may end, themselves or in what they call. What stands after a sure call of the
    pipeline itself is never reached, so it counts for nothing."""
    found: set[str] = set()
    callers: dict[str, list[str]] = {}
    for name, pipeline in pipelines.items():
        for stage in pipeline.stages:
            if _may_stop(stage, set()):
                found.add(name)
                break
            for call in stage_calls(stage):
                if isinstance(call, PipelineCall):
                    callers.setdefault(call.target, []).append(name)
            if (name,) in _surely_called(stage):
                break
    waiting = list(found)
    while waiting:
        for caller in callers.get(waiting.pop(), ()):
            if caller not in found:
                found.add(caller)
                waiting.append(caller)
    return found


def _on_cycles(leads: Mapping[str, str]) -> list[str]:
    """The names from which `leads` comes back to them, in its order."""
    state: dict[str, int] = {}
    found: set[str] = set()
    for number, start in enumerate(leads):
        trail: list[str] = []
        name = start
        while name not in state:
            state[name] = number
            trail.append(name)
            name = leads[name]
        if state[name] == number and name in trail:
            found.update(trail[trail.index(name) :])
    return [name for name in leads if name in found]
