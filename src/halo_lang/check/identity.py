"""By what a program is known again: a kept plan and a paused run belong to one source (plan.md, runs.md §5).

Owns the digests. Pure.
"""

from __future__ import annotations

from ..catalog.builtin import PROVIDERS
from ..language.values import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..language.source import Source
    from ..language.values import Value
    from .program import CheckedProgram

MAX_PARTS = 1_000
"""Declarations past which no digests of parts are made: they would weigh more than they tell."""


def source_key(source: Source) -> str:
    """The SHA-256 of a source's text."""
    return _digest(source.text)


def part_keys(program: CheckedProgram) -> dict[str, str]:
    """A short digest of each declaration's text, by kind and name (`pipeline Tidy`), by which it can be said what
    changed; and of what each tool offers that says so itself, and may say something else tomorrow: an MCP server as
    `halo.lock` has it, a provider of somebody's own (`what tool Bank offers`). Empty for a huge program."""
    declarations = program.syntax.declarations
    if len(declarations) > MAX_PARTS:
        return {}
    found: dict[str, str] = {}
    for declaration in declarations:
        kind = type(declaration).__name__.removesuffix("Decl").lower()
        name = getattr(declaration.name, "text", None)
        if name is not None:
            found[f"{kind} {name}"] = _digest(program.source.text[declaration.start : declaration.end])[:16]
    for tool in program.tools.values():
        if tool.methods is not None and (tool.provider not in PROVIDERS or tool.provider == "Mcp"):
            offered: list[Value] = [[m.name, m.about, m.schema, m.effect] for m in tool.methods]
            found[f"what {tool.keyword} {tool.name} offers"] = _digest(to_json(offered))[:16]
    return found


def changed_parts(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The declarations that differ, in words: `pipeline Tidy`, `agent Clerk (new)`, `tool Chat (gone)`."""
    changed = [name for name in after if name in before and before[name] != after[name]]
    new = [f"{name} (new)" for name in after if name not in before]
    return [*changed, *new, *(f"{name} (gone)" for name in before if name not in after)]


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
