"""Everything a run needs from outside, found and checked before anything runs.

Owns the resolving of `Env` references (only those that the started pipeline can reach, language.md §3), of model names
and their endpoints, and the starting of tools. Raises `ConfigError` that names what is missing, all of it at once.
Read `running.py` next.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from ..boundary.call import AGENT, TOOL
from ..boundary.host import ConfigError, ProviderHost
from ..catalog.builtin import PROVIDERS
from ..catalog.describe import EnvRef
from ..check.program import AgentCall, ToolCall
from ..check.reach import calls_of, reach
from ..doors.mask import Mask
from ..language.record import Record, replace
from ..plan.totals import limited_agents
from .above import file_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..boundary.host import Environment, ProviderInstance
    from ..check.program import Agent, CheckedProgram, Tool
    from ..models.client import ModelClient
    from ..providers.own.describing import Own
    from .underway import What

CLASSES = {
    "Workspace": ("workspace", "Workspace"),
    "Bash": ("bash", "Bash"),
    "Slack": ("slack", "Slack"),
    "Http": ("http", "Http"),
    "Sql": ("sql", "Sql"),
    "Mcp": ("mcp", "Mcp"),
    "KeyValue": ("keyvalue", "KeyValue"),
    "Documents": ("documents", "Documents"),
}
"""Where in `providers` each provider's class is; imported when a tool of it is started."""


class Outside(Record):
    """What a run of one pipeline has to do with: `provider/model` by the model as requests name it (they differ where
    a variable holds it), tools' settings with their variables resolved, and the secrets to be masked, by variable:
    those among all these, and what else is known to be one, for a call may come upon it all the same.
    """

    models: dict[str, str]
    settings: dict[str, dict[str, Any]]
    secrets: dict[str, str]


def outside(
    what: What,
    environment: Environment,
    client: ModelClient,
    priced: Callable[[str], bool],
    *,
    kinds: frozenset[str],
    mocked: Callable[[str], bool],
) -> Outside:
    """Resolves what the pipeline can reach, as far as calls of `kinds` are made for real and their targets are not
    `mocked`. Raises `ConfigError` naming every variable that is missing.

    A model without a price under a spend limit is refused here too: the checker cannot know what a variable holds.
    """
    program = what.program
    agents, used = _needed(what, kinds, mocked)
    missing: list[str] = []
    secrets: dict[str, str] = {}
    resolved: dict[str, dict[str, Any]] = {}
    for name in used:
        resolved[name] = _resolved(program.tools[name], environment, secrets, missing)
    models: dict[str, str] = {}
    limits = limited_agents(program, what.pipeline)
    for name in agents:
        asked, model = _model(program.agents[name], environment, missing)
        if model is None:
            continue
        if name in limits and not priced(model):
            missing.append(
                f"the model `{model}` of agent {name} has no price, so the limit of the policy {limits[name].policy} "
                "cannot be kept; give it one under [prices] in halo.toml"
            )
        if asked in models:
            continue
        models[asked] = model
        try:
            endpoint = client.prepare(model)
        except ConfigError as trouble:
            missing.append(str(trouble))
            continue
        if endpoint.key:
            secrets[endpoint.key_name] = endpoint.key
    if missing:
        raise ConfigError("\n".join(dict.fromkeys(missing)))
    return Outside(models, resolved, {**_known_secrets(program, environment, client), **secrets})


def _known_secrets(program: CheckedProgram, environment: Environment, client: ModelClient) -> dict[str, str]:
    """The values of variables that the program's tools refer to, used in this run or not, and of providers' keys."""
    known = {name: value for name in client.key_names() if (value := environment.get(name))}
    for tool in program.tools.values():
        _resolved(tool, environment, known, [])
    return known


def resolved_settings(
    program: CheckedProgram, tools: Iterable[str], environment: Environment
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """The settings of some tools with their variables resolved, and these variables' values, by name. Raises
    `ConfigError` naming every variable that is missing."""
    missing: list[str] = []
    secrets: dict[str, str] = {}
    settings = {name: _resolved(program.tools[name], environment, secrets, missing) for name in tools}
    if missing:
        raise ConfigError("\n".join(dict.fromkeys(missing)))
    return settings, secrets


def _needed(what: What, kinds: frozenset[str], mocked: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """The agents that are asked for real and the tools that are called so, in the order of first use."""
    program = what.program
    agents: dict[str, None] = {}
    tools: dict[str, None] = {}
    for name in reach(program, what.pipeline).pipelines:
        for call in calls_of(program.pipelines[name]):
            if isinstance(call, ToolCall) and not mocked(call.target):
                tools[call.tool.name] = None
            elif isinstance(call, AgentCall) and not mocked(call.target):
                agents[call.agent.name] = None
                tools.update((tool, None) for tool in call.tools if not _is_mocked(program.tools[tool], mocked))
    return list(agents) if AGENT in kinds else [], list(tools) if TOOL in kinds else []


def _is_mocked(tool: Tool, mocked: Callable[[str], bool]) -> bool:
    return bool(tool.methods) and all(mocked(f"{tool.name}.{method.name}") for method in tool.methods or ())


def _resolved(tool: Tool, environment: Environment, secrets: dict[str, str], missing: list[str]) -> dict[str, Any]:
    def value_of(given: Any) -> Any:
        if isinstance(given, dict):
            return {key: value_of(one) for key, one in given.items()}
        if isinstance(given, list | tuple):
            return [value_of(one) for one in given]
        if not isinstance(given, EnvRef):
            return given
        value = environment.get(given.name)
        if value is None:
            missing.append(f"the variable {given.name} is not set, and {tool.keyword} {tool.name} needs it")
            return ""
        secrets[given.name] = value
        return value

    provider = PROVIDERS.get(tool.provider)
    by_name = {one.name for one in provider.settings if one.type == "Env"} if provider is not None else set()
    made: dict[str, Any] = {}
    for name, given in tool.settings.items():
        made[name] = {ref.name: value_of(ref) for ref in given} if name in by_name else value_of(given)
    return made


def _model(agent: Agent, environment: Environment, missing: list[str]) -> tuple[str, str | None]:
    """The model as requests name it (`Env.NAME` where a variable holds it), and the `provider/model` that it is."""
    if not isinstance(agent.model, EnvRef):
        return agent.model, agent.model
    asked = f"Env.{agent.model.name}"
    value = environment.get(agent.model.name)
    if value is None:
        missing.append(f"the variable {agent.model.name} is not set, and agent {agent.name} takes its model from it")
    elif "/" not in value.strip("/"):
        # What it holds is not shown: it may be a key that was put there by mistake.
        missing.append(
            f"the variable {agent.model.name} must hold `provider/model` for agent {agent.name}, and does not"
        )
        value = None
    return asked, value


def start_tools(
    program: CheckedProgram,
    file: Path,
    settings: Mapping[str, dict[str, Any]],
    environment: Environment,
    own: Mapping[str, Own] = {},
    *,
    secrets: Mapping[str, str],
    kept_plan: str = "",
) -> dict[str, ProviderInstance]:
    """Starts the tools named by `settings`; `own` are providers that were registered in code. Raises `ConfigError` with
    the tool's name, whatever goes wrong, and without any part of the `secrets` (values by variable): what the settings
    hold may be shown by what is wrong with them. The file of the `kept_plan` that the run is held to, if any, is kept
    from writing like the program's own."""
    folder = file.resolve().parent
    stands_on = (file, Path(kept_plan)) if kept_plan else (file,)
    host = ProviderHost(
        folder,
        Path.cwd(),
        tuple(path for one in stands_on for path in (one.absolute(), one.resolve())),
        environment,
        lambda name: file_above(name, str(folder)),
    )
    started: dict[str, ProviderInstance] = {}
    for name, given in settings.items():
        tool = program.tools[name]
        try:
            started[name] = _started(tool.provider, given, host, own)
        except ConfigError as trouble:
            raise ConfigError(f"{tool.keyword} {name}: {Mask(secrets).without_parts(str(trouble))}") from None
        except Exception as fault:
            raise ConfigError(
                f"{tool.keyword} {name}: it cannot be started, in an unforeseen way ({type(fault).__name__})"
            ) from None
        hold_to = getattr(started[name], "hold_to", None)
        if hold_to is not None and tool.methods is not None:
            hold_to(tool.methods)  # what the file was checked with comes from halo.lock
    return started


def _started(provider: str, given: dict[str, Any], host: ProviderHost, own: Mapping[str, Own]) -> ProviderInstance:
    if provider in CLASSES:
        module, cls = CLASSES[provider]
        instance: ProviderInstance = getattr(importlib.import_module(f"..providers.{module}", __package__), cls)(
            given, host
        )
        return instance
    from .own import installed_provider

    found = own.get(provider) or installed_provider(provider)
    if found is None:
        raise ConfigError(f"there is no provider `{provider}`; the package that brought it may have gone")
    return found.start(given)


def with_models(program: CheckedProgram, models: Mapping[str, str]) -> CheckedProgram:
    """The program with other models for some agents (`--model AGENT=provider/model`).

    Raises `ConfigError` for an agent that is not declared.
    """
    for name in models:
        if name not in program.agents:
            raise ConfigError(f"there is no agent `{name}`; there are: {', '.join(program.agents) or 'none'}")

    def changed(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(changed(one) for one in part)
        kind = type(part).__name__
        if kind == "Agent" and part.name in models:
            return replace(part, model=models[part.name])
        if kind in _HOLDING_AGENTS:
            return replace(part, **{f: changed(getattr(part, f)) for f in _HOLDING_AGENTS[kind]})
        return part

    return replace(
        program,
        agents={name: changed(agent) for name, agent in program.agents.items()},
        pipelines={name: changed(pipeline) for name, pipeline in program.pipelines.items()},
    )


_HOLDING_AGENTS = {
    "CheckedPipeline": ("stages",),
    "AgentCall": ("agent",),
    "CallStage": ("call", "shadow"),
    "BranchStage": ("arms",),
    "CheckedArm": ("call",),
    "FanOutStage": ("members",),
    "CheckedMember": ("call",),
    "EachStage": ("call",),
}
"""The fields of a checked program's records in which an agent can stand."""
