"""Agents as they are declared: model, options, clauses (language.md §2, §6).

Owns the reading of an agent's declaration, and of the options that an agent and its calls share.
"""

from __future__ import annotations

from ..catalog.describe import EnvRef
from ..language.ast import Equips, Path, Requires
from ..language.record import replace
from ..language.source import Span
from .expressions import warn_secret
from .findings import listed
from .literals import AGENT_OPTIONS, is_computed, option_value
from .names import refer
from .program import Agent, AgentOptions
from .secrets import looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..language.ast import AgentDecl, Arg, Model, Name
    from .findings import Findings
    from .names import Declared
    from .program import Policy


def read_agent(declaration: AgentDecl, declared: Declared, findings: Findings) -> Agent:
    """An agent, with errors for what does not hold. The policies that it requires have been read before."""
    name = declaration.name
    changes = _read_options(declaration.options, findings)
    equips: list[str] = []
    required: list[Name] = []
    system: str | None = None
    for clause in declaration.clauses:
        if isinstance(clause, Equips):
            equips += _refer_all(clause.names, declared, findings, ("tool", "store"), "`equips`")
        elif isinstance(clause, Requires):
            required += clause.names
        else:
            if system is not None:
                findings.error("DUPLICATE_NAME", "this agent has a `system` clause already", clause)
            system = "".join(part for part in clause.text.parts if isinstance(part, str))
            if looks_secret(system):
                warn_secret(clause.text, findings)
    return Agent(
        name.text,
        _read_model(declaration.model, findings),
        replace(AgentOptions(), **changes) if changes else _DEFAULTS,
        tuple(dict.fromkeys(equips)),
        read_requires(required, declared, findings),
        system or "",
        Span(name.start, name.end),
    )


_DEFAULTS = AgentOptions()


def read_requires(names: Iterable[Name], declared: Declared, findings: Findings) -> tuple[Policy, ...]:
    """The policies that `requires` names, each once."""
    found = _refer_all(names, declared, findings, ("policy",), "`requires`")
    return tuple(declared.policies[name] for name in dict.fromkeys(found))


def _refer_all(
    names: Iterable[Name], declared: Declared, findings: Findings, kinds: tuple[str, ...], where: str
) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        if name.text in found:
            findings.error("DUPLICATE_NAME", f"{where} names `{name.text}` twice", name)
        elif refer(declared, findings, name, kinds, where) is not None:
            found[name.text] = None
    return list(found)


def _read_model(model: Model, findings: Findings) -> str | EnvRef:
    if model.env:
        return EnvRef(model.text)
    if not _is_model(model.text):
        shown = model.text[:80] or "the empty text"
        help_ = "for example `openai/gpt-4o`, or `Env.NAME` for a variable that names it"
        findings.error("BAD_MODEL", f"`{shown}` is no model: one is named as `provider/model`", model, help_)
    return model.text


def _is_model(text: str) -> bool:
    provider, slash, name = text.partition("/")
    if not slash or not name or name != name.strip() or not name.isprintable():
        return False
    return provider.isascii() and provider.replace("-", "").replace("_", "").replace(".", "").isalnum()


def _read_options(options: Iterable[Arg], findings: Findings) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    seen: set[str] = set()
    for option in options:
        name = option.name
        if name is None:
            findings.error(
                "UNKNOWN_OPTION", "an agent's options have names", option, f"there are {listed(AGENT_OPTIONS)}"
            )
        elif name.text == "system":
            help_ = 'write it after the brackets: `system "…"`'
            findings.error("UNKNOWN_OPTION", "`system` is a clause of the agent, and no option", name, help_)
        elif name.text == "tools":
            help_ = "write `equips` after the brackets, and `tools:` in a call"
            findings.error("UNKNOWN_OPTION", "`tools` is an option of a call", name, help_)
        elif name.text not in AGENT_OPTIONS:
            near = findings.near(name.text, AGENT_OPTIONS, f"there are {listed(AGENT_OPTIONS)}")
            findings.error("UNKNOWN_OPTION", f"an agent has no option `{name.text}`", name, near)
        elif name.text in seen:
            findings.error("REPEATED_ARGUMENT", f"`{name.text}` is given twice", name)
        else:
            seen.add(name.text)
            changes |= read_option(option, findings)
    return changes


def read_option(option: Arg, findings: Findings) -> dict[str, Any]:
    """The field of `AgentOptions` that a named option sets, or nothing after an error."""
    assert option.name is not None
    made = option_value(option.name.text, option.value)
    if isinstance(made, tuple):
        return {made[0]: made[1]}
    if isinstance(option.value, Path) and option.value.root == "Env":
        help_ = "only a model may be a variable, and what tools are given"
        findings.error("ENV_MISPLACED", "`Env` has no place in an option", option.value, help_)
    elif is_computed(option.value):
        findings.error("NOT_A_LITERAL", f"`{option.name.text}` is written down, not computed", option.value, _WHY)
    else:
        findings.error("BAD_OPTION", f"`{option.name.text}` {made}", option.value)
    return {}


_WHY = "a plan must know it before anything runs"
