"""What the documents show is true: their sessions run as printed, their programs check, each error page's example gives
the error that it explains."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from case_format import Step, parse
from case_runner import run_case, run_step

from halo_lang.language.codes import CHECK, CODES, SYNTAX
from halo_lang.language.format import format_source
from halo_lang.language.parser import parse as parse_program
from halo_lang.language.source import Source

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ERROR_PAGES = ROOT / "docs" / "errors"

_BLOCK = re.compile(r"^```halo\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANY_BLOCK = re.compile(r"^```halo[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^For example:\n\n```halo\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Codes that no program of built-in providers alone gives; their pages show the message.
WITHOUT_PROGRAM = {"TOOL_NAMES_CLASH", "PROVIDER_BROKEN"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def findings(program: str, folder: Path) -> list[tuple[str, str]]:
    """The code and severity of all that `halo check` finds."""
    from halo_lang.cli.main import main

    (folder / "example.halo").write_text(program, encoding="utf-8")
    out, _, err = run_step(Step("halo check example.halo --json", 0), folder, main)
    try:
        return [(d["code"], d["severity"]) for d in json.loads("\n".join(out))["diagnostics"]]
    except ValueError:
        pytest.fail(f"halo check gave no JSON:\n{err}", pytrace=False)


def expected_errors(page: Path) -> list[tuple[str, set[str]]]:
    """Each unnamed program of a page with the codes that its errors may have."""
    text = page.read_text(encoding="utf-8")
    failing = set(_EXAMPLE.findall(text)) if page.parent == ERROR_PAGES else set()
    return [(program, {page.stem} if program in failing else set()) for program in _BLOCK.findall(text)]


PROGRAMS = [
    pytest.param(program, codes, id=f"{name_of(page)} {number}")
    for page in PAGES
    for number, (program, codes) in enumerate(expected_errors(page), 1)
]
SESSIONS = [
    pytest.param(page, id=name_of(page)) for page in PAGES if parse(page.read_text(encoding="utf-8"), whole="page")
]


@pytest.mark.parametrize(("program", "codes"), PROGRAMS)
def test_a_program_in_the_documents_is_right_or_has_the_error_it_shows(
    program: str, codes: set[str], tmp_path: Path
) -> None:
    found = findings(program, tmp_path)
    assert codes <= {code for code, _ in found}
    assert {code for code, severity in found if severity == "error"} <= codes


@pytest.mark.parametrize("page", [pytest.param(page, id=name_of(page)) for page in PAGES])
def test_the_programs_of_a_page_are_in_the_layout_of_fmt(page: Path) -> None:
    """But for comments at the end of lines, which may stand below each other where a page explains by them."""
    for text in _ANY_BLOCK.findall(page.read_text(encoding="utf-8")):
        source = Source("example.halo", text)
        program, found = parse_program(source)
        if not found:
            assert format_source(source, program) == re.sub(r" {2,}# ", "  # ", text)


@pytest.mark.parametrize("page", SESSIONS)
def test_the_sessions_of_a_page(page: Path, tmp_path: Path) -> None:
    from halo_lang.cli.main import main

    (case,) = parse(page.read_text(encoding="utf-8"), whole=name_of(page))
    for _, _, _, trouble in run_case(case, tmp_path, main):
        if trouble:
            pytest.fail(f"{name_of(page)}, {trouble}", pytrace=False)


@pytest.mark.parametrize("code", sorted({**SYNTAX, **CHECK}))
def test_the_page_of_an_error_of_a_file_shows_a_file_that_has_it(code: str) -> None:
    text = (ERROR_PAGES / f"{code}.md").read_text(encoding="utf-8")
    shown = {line for case in parse(text, whole=code) for step in case.steps for line in step.expected}
    assert (bool(_EXAMPLE.search(text)) or code in shown) is (code not in WITHOUT_PROGRAM)


@pytest.mark.parametrize("code", sorted(CODES))
def test_a_page_with_named_files_uses_them(code: str) -> None:
    text = (ERROR_PAGES / f"{code}.md").read_text(encoding="utf-8")
    named = set(re.findall(r"file=(\S+)", text))
    commands = " ".join(step.command for case in parse(text, whole=code) for step in case.steps)
    assert {n for n in named if n not in commands} == set()
