"""What policies govern: calls that they exclude, patterns that match nothing, models without a price (tools.md §3).

Owns the checks for which it must be known who requires a policy, and what the pipelines that require it call in turn.
"""

from __future__ import annotations

from ..language.ast import AgentDecl, PolicyDecl
from .findings import listed
from .literals import value_of
from .policies import decide, matches
from .program import AgentCall, PipelineCall, ToolCall
from .reach import calls_of
from .settings import switch_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..catalog.describe import Provider
    from ..language.ast import Arg, Program, Rule
    from .findings import Findings
    from .names import Declared
    from .program import CheckedPipeline, Policy, Tool

    Pipelines = Mapping[str, CheckedPipeline]

_STEPS = 2_000_000
"""Steps for one file: policies that govern calls multiply, and a hostile file must not hang. What is not looked at past
them the run refuses all the same."""


_DESCRIBING = 1_000
"""Steps for asking a provider what it would have under other settings."""


class Steps:
    """The steps that are left."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = _STEPS

    def take(self, number: int) -> bool:
        """Whether so many steps are still allowed; takes them."""
        self.left -= number
        return self.left >= 0


def check_policies(
    program: Program,
    declared: Declared,
    pipelines: Pipelines,
    providers: Mapping[str, Provider],
    findings: Findings,
    priced: Callable[[str], bool] | None,
) -> None:
    """All checks of this module."""
    if not declared.policies:
        return
    steps = Steps()
    governed = _governed(pipelines, steps)
    for name, origins in governed.items():
        _check_excluded(declared.policies[name], origins, pipelines, findings, steps)
    if not declared.lost:
        tools = _governed_tools(declared, pipelines, governed, steps)
        _check_patterns(program, declared, tools, providers, findings, steps)
    if priced is not None:
        _check_prices(program, declared, pipelines, governed, findings, priced)


def _governed(pipelines: Pipelines, steps: Steps) -> dict[str, dict[str, str]]:
    """By policy: the pipelines that it governs, each with the one that requires it."""
    governed: dict[str, dict[str, str]] = {}
    for pipeline in pipelines.values():
        for policy in pipeline.policies:
            governed.setdefault(policy.name, {})[pipeline.name] = pipeline.name
    calls = {name: list(calls_of(pipeline)) for name, pipeline in pipelines.items()} if governed else {}
    for origins in governed.values():
        waiting = list(origins)
        while waiting:
            name = waiting.pop()
            if not steps.take(len(calls[name]) + 1):
                break
            for call in calls[name]:
                if isinstance(call, PipelineCall) and call.target in pipelines and call.target not in origins:
                    origins[call.target] = origins[name]
                    waiting.append(call.target)
    return governed


def _check_excluded(
    policy: Policy, origins: Mapping[str, str], pipelines: Pipelines, findings: Findings, steps: Steps
) -> None:
    """Reports calls that a pipeline makes although its policy, or that of one that calls it, excludes them."""
    patterns = sum(len(rule.patterns) for rule in policy.rules)
    if not any(rule.kind in ("AllowTools", "DenyTools") for rule in policy.rules):
        return
    for name, origin in origins.items():
        for call in calls_of(pipelines[name]):
            if not isinstance(call, ToolCall):
                continue
            if not steps.take(patterns):
                return
            effect = call.method.effect if call.method is not None else None
            if not decide((policy,), call.target, effect).allowed:
                by = f"`{origin}` requires" if origin == name else f"`{origin}`, which leads here, requires"
                what = f"`{call.target}` is excluded by the policy `{policy.name}`, which {by}"
                findings.error("EXCLUDED_CALL", what, call.span, "change the policy, or call something else")


# Patterns --------------------------------------------------------------------------------------------------------


def _governed_tools(
    declared: Declared, pipelines: Pipelines, governed: Mapping[str, Mapping[str, str]], steps: Steps
) -> dict[str, dict[str, Tool]]:
    """By policy: the tools that an agent with it is equipped with, or that are called or offered under it."""
    names: dict[str, dict[str, None]] = {}
    for agent in declared.agents.values():
        for policy in agent.policies:
            if steps.take(len(agent.equips)):
                names.setdefault(policy.name, {}).update(dict.fromkeys(agent.equips))
    for policy_name, origins in governed.items():
        found = names.setdefault(policy_name, {})
        for name in origins:
            for call in calls_of(pipelines[name]):
                if isinstance(call, ToolCall) and steps.take(1):
                    found[call.tool.name] = None
                elif isinstance(call, AgentCall) and steps.take(len(call.agent.equips)):
                    found.update(dict.fromkeys(call.agent.equips))
    return {policy: {name: declared.tools[name] for name in found} for policy, found in names.items()}


def _check_patterns(
    program: Program,
    declared: Declared,
    tools: Mapping[str, Mapping[str, Tool]],
    providers: Mapping[str, Provider],
    findings: Findings,
    steps: Steps,
) -> None:
    """Warns of patterns that match nothing a policy governs; an argument that no such method has is an error."""
    seen: set[str] = set()
    for declaration in program.declarations:
        name = declaration.name.text if isinstance(declaration, PolicyDecl) else None
        if not isinstance(declaration, PolicyDecl) or name is None or name in seen or name not in tools:
            continue
        seen.add(name)
        good = {rule.span.start for rule in declared.policies[name].rules if rule.patterns}
        for rule in declaration.rules:
            if rule.start in good:
                for arg in rule.args:
                    if arg.name is None and isinstance(pattern := value_of(arg.value), str):
                        _check_pattern(pattern, arg, rule, tools[name], providers, findings, steps)


def _check_pattern(
    pattern: str,
    arg: Arg,
    rule: Rule,
    tools: Mapping[str, Tool],
    providers: Mapping[str, Provider],
    findings: Findings,
    steps: Steps,
) -> None:
    # A pattern that names its tool is tried on that tool's methods alone.
    named = tools.get(pattern.partition(".")[0])
    candidates = tools.values() if "*" in pattern.partition(".")[0] else [named] if named is not None else []
    if not steps.take(1 + 8 * len(candidates)):
        return
    arguments: set[str] = set()
    matched = False
    for tool in candidates:
        if tool.methods is None and matches(pattern.partition(".")[0] + ".*", f"{tool.name}.any"):
            return  # its methods are not known, so this one may be among them
        for method in tool.methods or ():
            if matches(pattern, f"{tool.name}.{method.name}"):
                matched = True
                arguments.update(method.parameters())
    if not matched:
        known = f"there are {listed(_targets(tools))}"
        what = f"`{pattern}` matches no method of the tools that this policy governs"
        wanted = pattern.partition(".")[2]
        switch = switch_for(named, wanted, providers) if named is not None and steps.take(_DESCRIBING) else None
        # Of a method that is only not there yet nothing else is meant, least of all one to deny.
        lacks = f"`{named.name}` has it only with `{switch}: true`" if named is not None and switch else None
        near = lacks or findings.near(pattern, _targets(tools), known)
        findings.warning("PATTERN_MATCHES_NOTHING", what, arg.value, near)
    elif rule.name.text == "DenyArgs":
        for named_arg in rule.args:
            if named_arg.name is not None and named_arg.name.text not in arguments:
                takes = f"they take {listed(sorted(arguments), 'no arguments')}"
                near = findings.near(named_arg.name.text, arguments, takes)
                what = f"no method that `{pattern}` matches has an argument `{named_arg.name.text}`"
                findings.error("UNKNOWN_ARGUMENT", what, named_arg.name, near)


def _targets(tools: Mapping[str, Tool]) -> Iterator[str]:
    return (f"{tool.name}.{method.name}" for tool in tools.values() for method in tool.methods or ())


# Prices ----------------------------------------------------------------------------------------------------------


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
