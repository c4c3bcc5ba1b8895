"""The pages of the tools say what the providers say of themselves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from halo_lang.app.preparing import CLASSES
from halo_lang.catalog.builtin import PROVIDERS

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import make_tool_pages  # noqa: E402


@pytest.mark.parametrize("file", make_tool_pages.pages(), ids=lambda file: file.name)
def test_a_page_is_current(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert make_tool_pages.page(text, make_tool_pages.pages()[file]) == text, "run scripts/make_tool_pages.py"


@pytest.mark.parametrize("name", CLASSES)
def test_each_provider_that_runs_has_a_page_that_the_index_names(name: str) -> None:
    assert PROVIDERS[name] in make_tool_pages.pages().values()
    assert f"tools/{name.lower()}.md" in (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="Workspace has no place"):
        make_tool_pages.page("# Workspace\n", PROVIDERS["Workspace"])
