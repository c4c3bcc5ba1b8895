"""Tools and stores as they are declared: their providers and the settings of these (tools.md §2, language.md §3).

Owns the matching of a provider's arguments with its settings, and the one place where `Env.NAME` may stand. Starts
no provider and resolves no variable.
"""

from __future__ import annotations

from ..catalog.describe import EnvRef, value_error
from ..language.ast import Constant, Duration, ListExpr, Number, ObjectExpr, Path, Text
from ..language.source import Span
from .expressions import check_keys, warn_secret
from .findings import a, listed
from .literals import UNKNOWN, fits, seconds_of
from .program import Tool
from .secrets import looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..catalog.describe import Method, Provider, Setting
    from ..language.ast import Arg, Expr, ToolDecl
    from .findings import Findings


def read_tool(declaration: ToolDecl, providers: Mapping[str, Provider], findings: Findings) -> Tool:
    """A tool or store, with errors for what its provider does not take."""
    name = declaration.name
    provider = providers.get(declaration.provider.text)
    settings: dict[str, Any] = {}
    methods: tuple[Method, ...] | None = None
    if provider is None:
        _unknown_provider(declaration, providers, findings)
        for arg in declaration.args:
            _setting_value(arg.value, findings)
    else:
        if provider.keyword != declaration.keyword:
            help_ = f"declare it as `{provider.keyword} {name.text} : {provider.name}`"
            what = f"`{provider.name}` is a provider of {provider.keyword}s"
            findings.error("WRONG_KIND", what, declaration.provider, help_)
        if provider.broken:
            findings.error("PROVIDER_BROKEN", provider.broken, declaration.provider)
        before = findings.errors
        read = _read_open_settings if provider.open else _read_settings
        settings = read(declaration, provider, findings)
        broken = findings.errors > before
        # What a wrong setting would have switched on is not said to be missing too.
        methods = provider.describe({**settings, **_all_on(provider)} if broken else settings)
    span = Span(name.start, name.end)
    return Tool(name.text, declaration.keyword, declaration.provider.text, settings, methods, span)


def switch_for(tool: Tool, method: str, providers: Mapping[str, Provider]) -> str | None:
    """The setting that would have to be true for the tool to have the method, or None."""
    provider = providers.get(tool.provider)
    for name in _all_on(provider) if provider is not None else ():
        methods = provider.describe({**tool.settings, name: True})  # type: ignore[union-attr]
        if any(m.name == method for m in methods or ()):
            return name
    return None


def _all_on(provider: Provider) -> dict[str, bool]:
    return {s.name: True for s in provider.settings if s.type == "Boolean"}


def _unknown_provider(declaration: ToolDecl, providers: Mapping[str, Provider], findings: Findings) -> None:
    fitting = [p.name for p in providers.values() if p.keyword == declaration.keyword]
    known = (
        f"there are {listed(fitting)}; a provider of another package must be installed beside Halo: "
        "`halo tools` lists all that are there, for tools and for stores"
    )
    near = findings.near(declaration.provider.text, providers, known)
    findings.error(
        "UNKNOWN_PROVIDER", f"there is no provider `{declaration.provider.text}`", declaration.provider, near
    )


def _read_settings(declaration: ToolDecl, provider: Provider, findings: Findings) -> dict[str, Any]:
    by_name = {s.name: s for s in provider.settings}
    positional = [s for s in provider.settings if s.positional]
    settings: dict[str, Any] = {}
    rest: list[Any] = []
    at = 0
    for arg in declaration.args:
        if arg.name is not None:
            setting = by_name.get(arg.name.text)
        else:
            setting = positional[at] if at < len(positional) else None
            at += setting is not None and not setting.rest
        if setting is None:
            _unknown_setting(arg, provider, findings)
            _setting_value(arg.value, findings)
            continue
        if setting.name in settings and not (setting.rest and arg.name is None):
            findings.error("REPEATED_ARGUMENT", f"`{setting.name}` is given twice", arg.name or arg.value)
        value = _read_setting(setting, arg, findings)
        if setting.rest and arg.name is None:
            rest.append(value)
            value = tuple(rest)
        settings[setting.name] = None if value is UNKNOWN else value
    for setting in provider.settings:
        if setting.name in settings:
            continue
        if setting.required:
            what = f"{setting.about[:1].lower()}{setting.about[1:].rstrip('.')}"
            at_ = declaration.provider
            findings.error("MISSING_ARGUMENT", f"`{provider.name}` needs `{setting.name}`: {what}", at_)
        elif setting.default is not None:
            settings[setting.name] = setting.default
    return settings


def _read_open_settings(declaration: ToolDecl, _: Provider, findings: Findings) -> dict[str, Any]:
    """The settings of a provider that says nothing of them, as they are given."""
    settings: dict[str, Any] = {}
    positional = 0
    for arg in declaration.args:
        name = str(positional) if arg.name is None else arg.name.text
        positional += arg.name is None
        if name in settings:
            findings.error("REPEATED_ARGUMENT", f"`{name}` is given twice", arg.name or arg.value)
        value = _setting_value(arg.value, findings)
        settings[name] = None if value is UNKNOWN else value
    return settings


def _unknown_setting(arg: Arg, provider: Provider, findings: Findings) -> None:
    names = [s.name for s in provider.settings]
    known = f"it takes {listed(names, 'no arguments')}"
    if arg.name is None:
        findings.error(
            "EXTRA_ARGUMENT", f"`{provider.name}` takes no further argument without a name", arg.value, known
        )
    else:
        near = findings.near(arg.name.text, names, known)
        findings.error("UNKNOWN_ARGUMENT", f"`{provider.name}` has no argument `{arg.name.text}`", arg.name, near)


def _read_setting(setting: Setting, arg: Arg, findings: Findings) -> Any:
    """The value of a setting, or `UNKNOWN` after an error."""
    expr = arg.value
    if setting.type == "Duration" and isinstance(expr, Duration | Number):
        seconds = seconds_of(expr)
        if seconds is None:
            findings.error("BAD_OPTION", f"`{setting.name}` must be above 0", expr)
        return UNKNOWN if seconds is None else seconds
    before = findings.errors
    value = _setting_value(expr, findings)
    if findings.errors > before or value is UNKNOWN:
        return UNKNOWN
    wanted = "String" if setting.rest and arg.name is None else "List" if setting.rest else setting.type
    if not _suits(wanted, value):
        said = {"Env": "a list of `Env.NAME`", "Duration": "a duration like `30s`", "Boolean": "true or false"}
        findings.error("ARGUMENT_TYPE", f"`{setting.name}` must be {said.get(wanted, a(wanted))}", expr)
        return UNKNOWN
    if not _holds_variable(value) and (trouble := value_error(setting.schema, _plain(value))):
        findings.error("ARGUMENT_TYPE", f"`{setting.name}` {trouble}", expr)
        return UNKNOWN
    if setting.secret and isinstance(value, str) and value and not looks_secret(value):
        warn_secret(expr, findings)
    return value


def _holds_variable(value: Any) -> bool:
    """Whether a variable's value, which nobody knows yet, is in it."""
    if isinstance(value, dict):
        return any(map(_holds_variable, value.values()))
    return isinstance(value, EnvRef) or (isinstance(value, tuple) and any(map(_holds_variable, value)))


def _plain(value: Any) -> Any:
    """The value as JSON has it, with its tuples as lists."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


def _suits(wanted: str, value: Any) -> bool:
    if isinstance(value, EnvRef):
        return wanted in ("String", "Any")
    if wanted == "Env":
        return isinstance(value, tuple) and all(isinstance(item, EnvRef) for item in value)
    if wanted == "Duration":
        return False
    if wanted == "String":
        return isinstance(value, str)
    return fits(wanted, list(value) if isinstance(value, tuple) else value)


def _setting_value(expr: Expr, findings: Findings) -> Any:
    """A provider's argument as a value, in which `Env.NAME` is an `EnvRef` and a list a tuple."""
    if isinstance(expr, Path):
        return _env(expr, findings)
    if isinstance(expr, Text):
        text = "".join(part for part in expr.parts if isinstance(part, str))
        if looks_secret(text):
            warn_secret(expr, findings)
        return text
    if isinstance(expr, Number | Constant):
        return expr.value
    if isinstance(expr, ListExpr):
        return tuple(_setting_value(item, findings) for item in expr.items)
    if isinstance(expr, ObjectExpr):
        check_keys(expr, findings)
        return {k: _setting_value(v, findings) for k, v in zip(expr.keys, expr.values, strict=True)}
    if isinstance(expr, Duration):
        findings.error("ARGUMENT_TYPE", "a duration does not fit here", expr)
    else:
        findings.error("NOT_A_LITERAL", "an argument of a provider is written down, not computed", expr)
    return UNKNOWN


def _env(path: Path, findings: Findings) -> Any:
    if path.root != "Env":
        help_ = f"write it as a string, or as `Env.{path.root}` if it is a variable of the environment"
        findings.error("UNKNOWN_NAME", f"there is no name `{path.root}` here", path, help_)
    elif len(path.parts) == 1 and isinstance(path.parts[0], str):
        return EnvRef(path.parts[0])
    else:
        findings.error("ENV_MISPLACED", "a variable is named as `Env.NAME`", path)
    return UNKNOWN
