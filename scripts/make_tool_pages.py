"""Writes the reference part of each page in `docs/tools` from what the providers say of themselves.

The part stands between two marks; all else on a page is written by hand. Run it after a change of
`src/halo_lang/catalog/builtin.py`: `python scripts/make_tool_pages.py`. A test holds the pages to be current.
"""

from __future__ import annotations

from pathlib import Path

from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.catalog.describe import Method, Provider
from halo_lang.catalog.overview import all_methods, argument_about, other_effects, signature

FOLDER = Path(__file__).parents[1] / "docs" / "tools"
BEGIN = "<!-- from here to the end mark: made by scripts/make_tool_pages.py -->"
END = "<!-- end -->"


def reference(provider: Provider) -> str:
    """The settings of a provider and the methods that it has where all of its switches are on, as Markdown."""
    methods = all_methods(provider)
    lines = ["## Arguments", ""]
    for setting in provider.settings:
        kind = "required" if setting.required else f"default {_shown(setting.default, setting.type)}"
        place = ", by position or by name" if setting.positional else ""
        lines.append(f"* `{setting.name}` ({setting.type}, {kind}{place}): {setting.about}")
    lines += ["", "## Methods", ""]
    if methods is None:
        return "\n".join(
            [*lines, "They are known once the tool is started; until then their effect is not described.", ""]
        )
    lines += ["| method | effect | repeatable | time | what it does |", "|---|---|---|---|---|"]
    lines += [_row(provider, method) for method in methods]
    lines += ["", "`name?` may be left out. Repeatable: twice is the same as once.", ""]
    for method in methods:
        if not method.parameters():
            continue
        lines += [f"**`{signature(method)}`**", ""]
        lines += [f"* `{name}`: {argument_about(method, name)}" for name in method.parameters()]
        lines.append("")
    return "\n".join(lines)


def page(text: str, provider: Provider) -> str:
    """A page with its reference part made anew. Raises `ValueError` for one without the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page of {provider.name} has no place for its reference: {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{reference(provider)}\n{END}{after}"


def pages() -> dict[Path, Provider]:
    """The pages that there are, each with its provider."""
    return {file: p for p in PROVIDERS.values() if (file := FOLDER / f"{p.name.lower()}.md").is_file()}


def _row(provider: Provider, method: Method) -> str:
    effect = "; ".join([str(method.effect), *(f"{effect} {when}" for when, effect in other_effects(provider, method))])
    time = "`timeout`" if method.timeout_s is None else f"{method.timeout_s:g} s"
    again = "yes" if method.idempotent else "no"
    return f"| `{signature(method)}` | {effect} | {again} | {time} | {method.about} |"


def _shown(value: object, kind: str) -> str:
    if value is None or value == ():
        return "none"
    if kind == "Duration":
        return f"`{value:g}s`"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def main() -> None:
    for file, provider in pages().items():
        file.write_text(page(file.read_text(encoding="utf-8"), provider), encoding="utf-8")


if __name__ == "__main__":
    main()
