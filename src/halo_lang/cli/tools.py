"""`halo tools [NAME]`: the providers of tools and stores, their settings, methods, effects and schemas (cli.md).

Owns the two forms of the listing and its JSON. What is listed is what the checker and the plan read; a provider of an
installed package is listed beside Halo's own.
"""

from __future__ import annotations

import sys

from ..app.own import all_installed, installed_provider
from ..catalog.builtin import PROVIDERS
from ..catalog.overview import all_methods, argument_about, choices, other_effects, signature, switch_of
from ..language.diagnostics import did_you_mean
from .failing import CommandError
from .output import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from ..catalog.describe import Method, Provider, Setting

EXAMPLE = """For example:

  halo tools
  halo tools Workspace
  halo tools --json
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="one provider, with its arguments in full")
    parser.add_argument("--json", action="store_true", help="one JSON document, with the schemas")
    parser.epilog = EXAMPLE


def execute(options: Namespace) -> int:
    providers = _all() if options.name is None else [_named(options.name)]
    usable = [provider for provider in providers if not provider.broken]
    for provider in providers:
        if provider.broken:
            print(f"error: {visible(provider.broken)}", file=sys.stderr)
    if options.json:
        from json import dumps

        print(dumps({"providers": [_document(p) for p in providers]}, ensure_ascii=False, indent=2))
    else:
        show = _listing if options.name is None else _page
        print(visible("\n\n".join(show(provider) for provider in usable)))
    return 0 if options.name is None or usable else 1


def _all() -> list[Provider]:
    return [*PROVIDERS.values(), *(own.provider for own in all_installed())]


def _named(name: str) -> Provider:
    if name in PROVIDERS:
        return PROVIDERS[name]
    own = installed_provider(name)
    if own is None:
        near = did_you_mean(name, [*PROVIDERS, *(own.provider.name for own in all_installed())])
        raise CommandError(f"there is no provider `{name}`; {near or '`halo tools` lists them'}", 2)
    return own.provider


# As text ----------------------------------------------------------------------------------------------------------


def _listing(provider: Provider) -> str:
    """A provider with its methods, a line each."""
    lines = [_heading(provider), f"  {_declaration(provider)}"]
    methods = all_methods(provider)
    if methods is None:
        lines.append("  its methods are known once it is started; effect not described")
    width = max((len(signature(m)) for m in methods or ()), default=0)
    lines += [f"  {signature(m):<{width}}  {_can(provider, m)}" for m in methods or ()]
    return "\n".join(lines)


def _page(provider: Provider) -> str:
    """A provider in full: what each setting and argument is."""
    lines = [_heading(provider), "", f"  {_declaration(provider)}"]
    lines += [f"    {s.name}: {_kind(s)}{_default(s)}. {s.about}".rstrip() for s in provider.settings]
    methods = all_methods(provider)
    if methods is None:
        lines += ["", "  Its methods are known once it is started; their effect is not described."]
    for method in methods or ():
        lines += ["", f"  {signature(method)}: {_can(provider, method)}"]
        lines.append(f"    {method.about}")
        again = "twice is the same as once" if method.idempotent else ""
        limit = f"at most {method.timeout_s:g} s" if method.timeout_s is not None else ""
        if again or limit:
            lines.append(f"    {'; '.join(part for part in (limit, again) if part).capitalize()}.")
        lines += [f"      {name}: {argument_about(method, name)}" for name in method.parameters()]
    return "\n".join(lines)


def _heading(provider: Provider) -> str:
    origin = f" (package {provider.origin})" if provider.origin else ""
    return f"{provider.name}{origin}: {provider.about}" if provider.about else f"{provider.name}{origin}"


def _declaration(provider: Provider) -> str:
    """How a file declares it, with the settings that it takes: `tool NAME : Workspace(folder, write: false)`."""
    parts = []
    for setting in provider.settings:
        name = f"{setting.name}…" if setting.rest else setting.name
        if setting.positional:
            parts.append(name if setting.required else f"{name}?")
        else:
            parts.append(f"{name}:" if setting.required else f"{name}:{_default(setting).removeprefix(' =') or ' …'}")
    return f"{provider.keyword} NAME : {provider.name}({', '.join(parts)})"


def _kind(setting: Setting) -> str:
    return choices(setting.schema) if "enum" in setting.schema else setting.type


def _default(setting: Setting) -> str:
    if setting.required or setting.default is None or setting.default == ():
        return ""
    if setting.type == "Duration":
        return f" = {setting.default:g}s"
    from ..language.values import to_json

    return f" = {to_json(setting.default)}"


def _can(provider: Provider, method: Method) -> str:
    """A method's effect, where it is another one, and the switch that the method needs."""
    parts = [method.effect or "effect not described"]
    parts += [f"{effect or 'not described'} {when}" for when, effect in other_effects(provider, method)]
    switch = switch_of(provider, method)
    return "; ".join(parts) + (f", with `{switch}: true`" if switch else "")


# As JSON ----------------------------------------------------------------------------------------------------------


def _document(provider: Provider) -> dict[str, Any]:
    methods = None if provider.broken else all_methods(provider)
    return {
        "name": provider.name,
        "keyword": provider.keyword,
        "about": provider.about,
        "package": provider.origin or None,
        "error": provider.broken or None,
        "settings": [_setting_document(setting) for setting in provider.settings],
        "methods": None if methods is None else [_method_document(provider, method) for method in methods],
    }


def _setting_document(setting: Setting) -> dict[str, Any]:
    return {
        "name": setting.name,
        "type": setting.type,
        "about": setting.about,
        "required": setting.required,
        "positional": setting.positional,
        "schema": setting.schema,
        "default": list(setting.default) if isinstance(setting.default, tuple) else setting.default,
    }


def _method_document(provider: Provider, method: Method) -> dict[str, Any]:
    return {
        "name": method.name,
        "about": method.about,
        "effect": method.effect,
        "idempotent": method.idempotent,
        "timeout": method.timeout_s,
        "cases": [{"when": when, "effect": effect} for when, effect in other_effects(provider, method)],
        "needs": switch_of(provider, method),
        "schema": method.offered_schema(),
    }
