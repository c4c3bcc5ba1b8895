"""Links between the documents lead somewhere, and what ARCHITECTURE.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text("utf-8"))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    pages = [p.relative_to(ROOT / "docs").as_posix() for p in PAGES if p.is_relative_to(ROOT / "docs")]
    apart = ("errors/", "adr/", "index.md")
    assert [p for p in pages if not p.startswith(apart) and f"({p})" not in index] == []


def test_what_the_map_names_is_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    package = ROOT / "src" / "halo_lang"
    named = re.findall(r"`([\w/.]+/[\w.]+\.(?:py|md))`", text)
    assert named
    assert [n for n in named if not (ROOT / n).is_file() and not (package / n).is_file()] == []
    packages = {d.name for d in package.iterdir() if (d / "__init__.py").is_file()}
    table = text.partition("| package |")[2].partition("\n\n")[0]
    assert {p for row in table.split("\n")[2:] for p in re.findall(r"`(\w+)`", row.split("|")[1])} == packages
