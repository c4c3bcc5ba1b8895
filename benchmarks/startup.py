"""Row 1: `halo check` of 100 lines against `python -c pass`, started in turn. Arguments: rounds, lines.

The compiled files are there, as in any installation: an environment variable that forbids writing them is taken away.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from measuring import report, sizes
from programs import program


def main() -> None:
    rounds, lines = sizes(9, 100)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "desk.halo"
        file.write_text(program(lines))
        halo = str(Path(sys.executable).with_name("halo"))
        commands = {"python": [sys.executable, "-c", "pass"], "check": [halo, "check", str(file)]}
        figures = in_turn(commands, rounds)
    report(**figures, ratio=figures["check_ms"] / figures["python_ms"])


def in_turn(commands: dict[str, list[str]], rounds: int) -> dict[str, float]:
    """The median duration of each command, as `NAME_ms`; the first round is left out as a warm-up."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for at in range(rounds + 1):
        for name, command in commands.items():
            duration = _started_s(command)
            if at:
                taken[name].append(duration)
    return {f"{name}_ms": median(durations) * 1000 for name, durations in taken.items()}


def _started_s(command: list[str]) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    duration = time.perf_counter() - began
    assert done.returncode == 0, done.stderr
    return duration


if __name__ == "__main__":
    main()
