"""From language to runtime nothing is imported that costs a command its start (performance.md, ARCHITECTURE.md)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "halo_lang"
PURE = ("language", "catalog", "boundary", "check", "plan", "runtime")

COSTLY = {
    "argparse",
    "asyncio",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "inspect",
    "json",
    "logging",
    "pathlib",
    "socket",
    "subprocess",
    "tomllib",
    "typing",
    "unicodedata",
}

SCRIPT = """
import sys
before = set(sys.modules)
for name in sys.argv[1:]:
    __import__(name)
print(" ".join(sorted(set(sys.modules) - before)))
"""


def modules() -> list[str]:
    found = (p for package in PURE for p in (SOURCE / package).rglob("*.py"))
    return sorted(".".join(p.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__") for p in found)


@pytest.mark.parametrize("package", PURE)
def test_a_pure_package_imports_nothing_that_costs(package: str) -> None:
    names = [m for m in modules() if m.split(".")[1] == package]
    if not names:
        pytest.skip(f"there is no package {package} yet")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) & COSTLY == set()


def test_the_test_sees_a_costly_import() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, "json"], capture_output=True, text=True, check=True)
    assert "json" in done.stdout.split()


COMMAND = """
import sys
from halo_lang.cli.main import main
code = main(sys.argv[1:])
print(" ".join(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""

TOOLS_ALONE = 'tool F : Workspace(".")\npipeline P(x: String) -> Result:\n  x\n    |> F.list(path: x)\n'


@pytest.mark.parametrize(
    ("flags", "without"),
    [
        (["check", "p.halo"], {"asyncio", "logging", "aiohttp"}),
        (["run", "p.halo", "x=.", "--mock"], {"asyncio", "logging", "aiohttp"}),
        (["run", "p.halo", "x=.", "--no-record"], {"aiohttp"}),
    ],
)
def test_a_command_imports_only_what_it_needs(flags: list[str], without: set[str], tmp_path: Path) -> None:
    (tmp_path / "p.halo").write_text(TOOLS_ALONE)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *flags, "-q"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert set(done.stderr.split()) & without == set()
