"""The cases beside this file. `pytest tests/cases --update` rewrites what they expect; read the difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from case_format import Case, Step, parse, updated
from case_runner import run_case

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*.md"))
CASES = [(path, case) for path in FILES for case in parse(path.read_text(encoding="utf-8"))]

_changes: dict[Path, list[tuple[Step, list[str], int]]] = {}


@pytest.fixture(scope="module")
def update(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether to rewrite; what was gathered is written once all cases have run."""
    wanted = bool(request.config.getoption("--update"))
    if wanted and hasattr(request.config, "workerinput"):
        pytest.exit("--update writes the case files, so it runs in one process: leave out -n", returncode=4)
    yield wanted
    for path, outputs in _changes.items():
        path.write_text(updated(path.read_text(encoding="utf-8"), outputs), encoding="utf-8")
    _changes.clear()


@pytest.mark.parametrize(("path", "case"), CASES, ids=[f"{p.name}: {c.name}" for p, c in CASES])
def test_case(path: Path, case: Case, tmp_path: Path, update: bool) -> None:
    from halo_lang.cli.main import main

    for step, out, code, trouble in run_case(case, tmp_path, main):
        if trouble and not update:
            pytest.fail(f"{path.name}, {trouble}", pytrace=False)
        if trouble:
            placeless = [line.replace(str(tmp_path), "[..]") for line in out]
            _changes.setdefault(path, []).append((step, placeless, code))
