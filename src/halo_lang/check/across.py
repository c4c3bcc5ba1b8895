"""What takes several declarations to see: policies and what they govern, pipelines that never end, what is unused.

Owns the checks that run when everything has been resolved. Each looks at a call once for every policy at most, so a
file is checked in time linear in its size.
"""

from __future__ import annotations

from ..language.ast import AgentDecl, PolicyDecl, ToolDecl
from .findings import listed
from .literals import truth_of
from .policies import decide, matches
from .program import AgentCall, BranchStage, CallStage, FanOutStage, GateStage, PipelineCall, SystemCall, ToolCall
from .reach import calls_of, stage_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..language.ast import Program, Rule
    from .findings import Findings
    from .names import Declared
    from .program import CheckedPipeline, CheckedStage, Policy, Tool

    Pipelines = Mapping[str, CheckedPipeline]


def check_across(
    program: Program,
    declared: Declared,
    pipelines: Pipelines,
    findings: Findings,
    priced: Callable[[str], bool] | None,
) -> None:
    """All checks of this module."""
    governed = {name: _governed(name, pipelines) for name in _requiring(pipelines)}
    for name, origins in governed.items():
        _check_excluded(declared.policies[name], origins, pipelines, findings)
    if declared.policies:
        _check_patterns(program, declared, pipelines, governed, findings)
        if priced is not None:
            _check_prices(program, declared, pipelines, governed, findings, priced)
    if not declared.lost:
        # What could not be read may end anything.
        _check_endless(pipelines, findings)
    _check_unused(program, declared, findings)


def _requiring(pipelines: Pipelines) -> dict[str, list[str]]:
    """The pipelines that require a policy, by its name."""
    found: dict[str, list[str]] = {}
    for pipeline in pipelines.values():
        for policy in pipeline.policies:
            found.setdefault(policy.name, []).append(pipeline.name)
    return found


def _governed(policy: str, pipelines: Pipelines) -> dict[str, str]:
    """The pipelines that a policy governs, each with the one that requires it."""
    origins = {name: name for name in _requiring(pipelines)[policy]}
    waiting = list(origins)
    while waiting:
        name = waiting.pop()
        for call in calls_of(pipelines[name]):
            if isinstance(call, PipelineCall) and call.target in pipelines and call.target not in origins:
                origins[call.target] = origins[name]
                waiting.append(call.target)
    return origins


def _check_excluded(policy: Policy, origins: Mapping[str, str], pipelines: Pipelines, findings: Findings) -> None:
    """Reports calls that a pipeline makes although its policy, or that of one that calls it, excludes them."""
    if not any(rule.kind in ("AllowTools", "DenyTools") for rule in policy.rules):
        return
    for name, origin in origins.items():
        for call in calls_of(pipelines[name]):
            if isinstance(call, ToolCall):
                effect = call.method.effect if call.method is not None else None
                if not decide((policy,), call.target, effect).allowed:
                    by = f"`{origin}` requires" if origin == name else f"`{origin}`, which leads here, requires"
                    what = f"`{call.target}` is excluded by the policy `{policy.name}`, which {by}"
                    findings.error("EXCLUDED_CALL", what, call.span, "change the policy, or call something else")


def _check_patterns(
    program: Program,
    declared: Declared,
    pipelines: Pipelines,
    governed: Mapping[str, Mapping[str, str]],
    findings: Findings,
) -> None:
    """Warns of patterns that match nothing a policy governs; an argument that no such method has is an error."""
    if declared.lost:
        return
    tools: dict[str, dict[str, None]] = {}
    for agent in declared.agents.values():
        for policy in agent.policies:
            tools.setdefault(policy.name, {}).update((name, None) for name in agent.equips)
    for policy_name, origins in governed.items():
        found = tools.setdefault(policy_name, {})
        for name in origins:
            for call in calls_of(pipelines[name]):
                if isinstance(call, ToolCall):
                    found[call.tool.name] = None
                elif isinstance(call, AgentCall):
                    found.update((tool, None) for tool in call.agent.equips)
    seen: set[str] = set()
    for declaration in program.declarations:
        if isinstance(declaration, PolicyDecl) and declaration.name.text not in seen:
            seen.add(declaration.name.text)
            subject = tools.get(declaration.name.text)
            if subject is not None:
                made = {rule.span.start: rule for rule in declared.policies[declaration.name.text].rules}
                for rule in declaration.rules:
                    if rule.start in made and made[rule.start].patterns:
                        _check_rule(rule, [declared.tools[n] for n in subject], findings)


def _check_rule(rule: Rule, tools: list[Tool], findings: Findings) -> None:
    from .literals import value_of

    for arg in rule.args:
        pattern = value_of(arg.value) if arg.name is None else None
        if not isinstance(pattern, str):
            continue
        methods = [(t, m) for t in tools for m in t.methods or () if matches(pattern, f"{t.name}.{m.name}")]
        undescribed = [t for t in tools if t.methods is None and _may_match(pattern, t.name)]
        if not methods and not undescribed:
            offered = [f"{t.name}.{m.name}" for t in tools for m in t.methods or ()]
            known = f"they have {listed(offered)}" if offered else "they have none"
            near = findings.near(pattern, offered, known)
            what = f"`{pattern}` matches no method of the tools that this policy governs"
            findings.warning("PATTERN_MATCHES_NOTHING", what, arg.value, near)
        elif rule.name.text == "DenyArgs" and not undescribed:
            known_args = {p for _, m in methods for p in m.parameters()}
            for named in rule.args:
                if named.name is not None and named.name.text not in known_args:
                    takes = f"`{pattern}` takes {listed(sorted(known_args), 'none')}"
                    near = findings.near(named.name.text, known_args, takes)
                    what = f"no method that `{pattern}` matches has an argument `{named.name.text}`"
                    findings.error("UNKNOWN_ARGUMENT", what, named.name, near)


def _may_match(pattern: str, tool: str) -> bool:
    """Whether a pattern may match a method of a tool whose methods are not known."""
    return matches(pattern.partition(".")[0] + ".*", f"{tool}.method")


def _check_prices(
    program: Program,
    declared: Declared,
    pipelines: Pipelines,
    governed: Mapping[str, Mapping[str, str]],
    findings: Findings,
    priced: Callable[[str], bool],
) -> None:
    """Reports models without a price under a spend limit (runs.md §6)."""
    limiting = {p.name for p in declared.policies.values() if any(rule.kind == "MaxSpend" for rule in p.rules)}
    limited = {a.name: p.name for a in declared.agents.values() for p in a.policies if p.name in limiting}
    for policy in limiting:
        for name in governed.get(policy, ()):
            for call in calls_of(pipelines[name]):
                if isinstance(call, AgentCall):
                    limited.setdefault(call.agent.name, policy)
    seen: set[str] = set()
    for declaration in program.declarations:
        if not isinstance(declaration, AgentDecl) or declaration.name.text in seen:
            continue
        name = declaration.name.text
        seen.add(name)
        model = declaration.model
        if (
            name in limited
            and name in declared.agents
            and not model.env
            and "/" in model.text
            and not priced(model.text)
        ):
            what = f"`{model.text}` has no price, so the limit of the policy `{limited[name]}` cannot be kept"
            help_ = "give it one under `[prices]` in `halo.toml`, or take the limit away"
            findings.error("NO_PRICE", what, model, help_)


def _check_endless(pipelines: Pipelines, findings: Findings) -> None:
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


def _check_unused(program: Program, declared: Declared, findings: Findings) -> None:
    referred = declared.used | declared.lost
    for declaration in program.declarations:
        if not isinstance(declaration, PolicyDecl | ToolDecl | AgentDecl):
            continue
        name = declaration.name
        if name.text in declared.kinds and name.text not in referred:
            help_ = _TO_USE[declared.kinds[name.text]]
            what = f"the {declared.kinds[name.text]} `{name.text}` is never used"
            findings.warning("UNUSED", what, name, help_)
            referred.add(name.text)


_TO_USE = {
    "policy": "an agent or a pipeline requires it by `requires`, else it restricts nothing",
    "tool": "call it in a pipeline, or let an agent have it by `equips`",
    "store": "call it in a pipeline, or let an agent have it by `equips`",
    "agent": "call it in a pipeline",
}
