"""Every code has a page that `halo explain` finds (language.md §8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from halo_lang.language.codes import CODES
from halo_lang.language.explain import explain_page

PAGES = Path(__file__).parents[2] / "docs" / "errors"


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert {p.stem for p in PAGES.glob("*.md")} == set(CODES)
    assert [p.name for p in PAGES.iterdir() if p.suffix != ".md"] == []


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_is_titled_short_and_says_how_to_go_on(code: str) -> None:
    page = explain_page(code)
    assert page is not None
    lines = page.split("\n")
    assert lines[0] == f"# {code}"
    assert lines[1] == ""
    assert 8 <= len(lines) <= 32
    assert max(map(len, lines)) <= 120
    assert "```" in page, "a page has an example"


def test_case_and_blanks_do_not_matter() -> None:
    assert explain_page(" unknown_name\n") == explain_page("UNKNOWN_NAME")


@pytest.mark.parametrize(
    "code", ["", "NO_SUCH_CODE", "../../README", "../adr/0001-record-decisions", "SYNTAX.md", "\0", "a" * 9999]
)
def test_what_is_no_code_has_no_page(code: str) -> None:
    assert explain_page(code) is None


def test_an_installed_package_has_its_pages_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from halo_lang.language import explain

    (tmp_path / "docs/errors").mkdir(parents=True)
    (tmp_path / "docs/errors/SYNTAX.md").write_text("# SYNTAX\n", encoding="utf-8")
    monkeypatch.setattr(explain, "_HERE", f"{tmp_path}/")
    assert explain_page("SYNTAX") == "# SYNTAX\n"
    assert explain_page("UNUSED") is None
