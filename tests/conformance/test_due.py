"""The conformance cases that are due (`due.txt`), run against the installed command.

The cases stand beside the project, in a folder that a lone clone has not; then the tests are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent
CASES = HERE.parents[2] / "shared" / "conformance"
RUNNER = CASES / "run.py"
DUE = [
    line
    for line in (HERE / "due.txt").read_text(encoding="utf-8").splitlines()
    if line.strip() and not line.startswith("#")
]


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    if not RUNNER.exists():
        pytest.skip("the conformance cases are not beside this project (../shared/conformance)")
    spec = importlib.util.spec_from_file_location("conformance_run", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # the cases' folder is not ours to write to
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    return module


@pytest.mark.parametrize("label", DUE, ids=DUE)
def test_case(label: str, runner: ModuleType) -> None:
    file, _, name = label.partition(": ")
    found = [case for case in runner.parse(CASES / file) if case.name == name]
    assert found, f"there is no case {label!r}"
    trouble = runner.run_case(found[0], str(Path(sys.executable).parent / "halo"))
    if trouble:
        pytest.fail(f"{label}\n  {trouble}", pytrace=False)


def test_no_case_is_due_twice() -> None:
    assert len(DUE) == len(set(DUE))
