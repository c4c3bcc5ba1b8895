"""The benchmarks still run: each of Halo's scripts with tiny sizes, and the table from what they print. No test here
looks at how long anything took."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=BENCHMARKS, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    ("command", "figures"),
    [
        ("stages.py 3", {"us_stage"}),
        ("stages.py 3 1", {"us_stage"}),
        ("calls.py 20 1", {"wall_s", "cpu_s", "us_call", "mib_more"}),
        ("calls.py 20 0", {"wall_s", "cpu_s", "us_call", "mib_more"}),
        ("branches.py 20 4 1", {"wall_s", "cpu_s", "times_ideal", "mib_more"}),
        ("branches.py 20 4 0", {"us_branch"}),
        ("tool_steps.py 2", {"us_step"}),
        ("parse.py 1 20 40", {"small", "large", "memory"}),
        ("startup.py 1 30", {"python_ms", "check_ms", "ratio"}),
        ("replaying.py 1 2", {"plan_ms", "run_ms", "replay_ms", "run", "replay", "us_stage"}),
        ("recording.py 40 4 2", {"lines_s", "json_lines_s", "synced_s", "shared_s", "ratio"}),
        ("reading.py 40", {"ratio", "us_line", "json_us_line", "mib_more"}),
    ],
)
def test_a_script_prints_its_figures(command: str, figures: set[str]) -> None:
    done = run(*command.split())
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout.splitlines()[-1])) == figures


def test_the_table_has_a_line_for_each_goal_of_a_row() -> None:
    done = run("run.py", "--quick", "--no-peers", "-k", "12")
    assert done.returncode == 0, done.stderr
    header, *lines = done.stdout.splitlines()
    assert header.split() == ["row", "what", "figure", "goal", "verdict", "beside", "it"]
    assert [line.split()[0] for line in lines] == ["12", "12"]
    assert all("MiB" in line and "tried" in line for line in lines)


def test_a_row_that_is_not_there_is_an_error_that_names_the_rows() -> None:
    done = run("run.py", "-k", "nowhere")
    assert done.returncode == 2
    assert "nowhere" in done.stderr
    assert "start-up" in done.stderr
