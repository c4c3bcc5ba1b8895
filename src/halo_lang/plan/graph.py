"""A plan as a picture: Mermaid text or an SVG of its own (plan.md).

Owns the drawing. Both show the blocks of the report in order, called pipelines set in, coloured by what they may do.
Everything that came from a file is escaped.
"""

from __future__ import annotations

from .report import call_line, dollars, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .plan import Plan, PlannedStage

_COLOURS = {
    "external": ("#fde2e1", "#b3261e"),
    "write": ("#fff3d6", "#9a6700"),
    "read": ("#e6f4ea", "#1e7f43"),
    "plain": ("#eef1f5", "#57606a"),
}
"""Fill and line by the gravest effect of a block; a call that is not described counts as external."""


def mermaid(plans: Iterable[Plan]) -> str:
    """Plans as one Mermaid flowchart, without a line break at its end."""
    rows = ["flowchart TD"]
    for at, plan in enumerate(plans):
        rows.append(f'  subgraph p{at}["{_mermaid_text(plan.pipeline)}"]')
        rows += [
            f'    s{at}_{n}["{"<br>".join(_mermaid_text(line) for line in _lines(stage))}"]:::{_tone(stage)}'
            for n, stage in enumerate(plan.stages)
        ]
        rows += [f"    s{at}_{n} --> s{at}_{n + 1}" for n in range(len(plan.stages) - 1)]
        rows.append("  end")
    rows += [f"  classDef {tone} fill:{fill},stroke:{line},color:#1f2328" for tone, (fill, line) in _COLOURS.items()]
    return "\n".join(rows)


def svg(plans: Iterable[Plan]) -> str:
    """Plans as one SVG document, without a line break at its end."""
    shapes: list[str] = []
    y, widest = 16, 0
    for plan in plans:
        shapes.append(f'<text x="16" y="{y + 16}" class="h">Plan for {_xml(plan.pipeline)}</text>')
        y += 32
        above: tuple[int, int] | None = None
        for stage in plan.stages:
            lines = _lines(stage)
            x = 16 + 24 * stage.number.count(".")
            width, height = 24 + max(len(line) for line in lines) * _CHARACTER, 12 + len(lines) * _LINE
            if above is not None:
                shapes.append(f'<path d="M{above[0] + 12} {above[1]}V{y - 6}" class="a"/>')
            shapes += _box(x, y, width, height, lines, _tone(stage))
            above, widest = (x, y + height), max(widest, x + width)
            y += height + 18
        y += 8
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest + 16}" height="{y}" '
        f'viewBox="0 0 {widest + 16} {y}" role="img">\n<style>{_STYLE}</style>\n{body}\n</svg>'
    )


_CHARACTER = 8
_LINE = 18
_STYLE = (
    "text{font:13px ui-monospace,monospace;fill:#1f2328}.h{font-weight:bold;font-size:15px}.d{fill:#57606a}"
    ".a{stroke:#8c959f;fill:none}"
)


def _box(x: int, y: int, width: int, height: int, lines: list[str], tone: str) -> list[str]:
    fill, line = _COLOURS[tone]
    shapes = [f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" stroke="{line}"/>']
    for at, text in enumerate(lines):
        kind = ' class="d"' if at else ""
        shapes.append(f'<text x="{x + 12}" y="{y + 18 + at * _LINE}"{kind}>{_xml(text)}</text>')
    return shapes


def _lines(stage: PlannedStage) -> list[str]:
    head = f"{stage.number}  {stage.target}"
    if stage.model is not None:
        head += f" [{stage.model}]"
    found = [" · ".join((head, *marks(stage)))]
    if stage.cost is not None:
        found.append(f"≤ {dollars(stage.cost)}")
    return found + [call_line(call) for call in stage.calls]


def _tone(stage: PlannedStage) -> str:
    effects = {call.effect or "external" for call in stage.calls}
    return next((effect for effect in ("external", "write", "read") if effect in effects), "plain")


def _xml(text: str) -> str:
    shown = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _mermaid_text(text: str) -> str:
    """Everything that Mermaid could read as markup, as its entity."""
    return "".join(c if c.isalnum() or c in " .,:-_/·×≤$()=!" else f"#{ord(c)};" for c in text if c.isprintable())
