"""Measures Halo against its goals, peers beside it: `make bench`, or `uv run python benchmarks/run.py [-k WORD]`.

Owns the running and the table. Each case is run in fresh processes, in turn with the others of its row, and the median
of seven counts. `-k` takes the rows whose number or words it matches, `--no-peers` leaves the peers out, `--quick` runs
everything once and small, which shows that it works and says nothing of speed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from statistics import median

from peers import NoPeer, python_of
from rows import ROWS, Case, Line, NotMeasured, Row, write_desk

HERE = Path(__file__).parent
ROUNDS = 7
TIMEOUT_S = 600

WIDTHS = (5, 48, 34, 29, 14)


def main() -> int:
    parser = ArgumentParser("benchmarks/run.py", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "-k", metavar="WORD", default="", help="only rows with this number, or with this in their words"
    )
    parser.add_argument("--quick", action="store_true", help="once and small: shows that it works, not how fast it is")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out")
    options = parser.parse_args()
    rows = [row for row in ROWS if not options.k or options.k == row.number or _has_word(row, options.k)]
    if not rows:
        parser.error(
            f"no row matches {options.k!r}; the rows are " + ", ".join(f"{r.number} ({r.about})" for r in ROWS)
        )
    write_desk()
    _warn_of_load()
    _print("row", "what", "figure", "goal", "verdict", "beside it")
    unmeasured = 0
    for row in rows:
        unmeasured += _measure(row, quick=options.quick, peers=not options.no_peers)
    return 1 if unmeasured else 0


def _has_word(row: Row, word: str) -> bool:
    return not word.isdigit() and word in row.about


def _measure(row: Row, *, quick: bool, peers: bool) -> int:
    """Runs a row's cases and prints its lines; gives how many could not be measured."""
    cases = {name: case for name, case in row.cases.items() if peers or case.environment == case.needs == "halo"}
    found: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    failed: dict[str, str] = {}
    for at in range(1 if quick else ROUNDS):
        for name, case in cases.items():
            if name not in failed and not (at and case.whole):
                try:
                    found[name].append(_run(case, quick=quick))
                except (NotMeasured, NoPeer) as trouble:
                    failed[name] = str(trouble)

    def figures(case: str, figure: str) -> float:
        if case not in cases:
            raise NotMeasured("peers were left out")
        if case in failed:
            raise NotMeasured(failed[case])
        return median(one[figure] for one in found[case])

    lines = row.lines(figures)
    try:
        for line in lines:
            _print_line(row, line, quick=quick)
    except NotMeasured as reason:
        _print(row.number, row.about, "", "", "not measured", str(reason))
        return 1 if peers else 0
    return 0


def _run(case: Case, *, quick: bool) -> dict[str, float]:
    """Runs a case once, in a process of its own. Raises `NotMeasured` with the reason."""
    arguments = case.quick if quick and case.quick is not None else case.arguments
    python_of(case.needs)
    command = [python_of(case.environment), str(HERE / case.script), *map(str, arguments)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=environment, cwd=HERE
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"{case.script} did not end within {TIMEOUT_S} s") from None
    if done.returncode or not done.stdout.strip():
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        raise NotMeasured(f"{case.script} ended with {done.returncode}: {said[-1]}")
    return _flat(json.loads(done.stdout.strip().splitlines()[-1]))


def _flat(found: dict[str, object], prefix: str = "") -> dict[str, float]:
    """The numbers of a document, an inner one's under `outer.inner`."""
    flat: dict[str, float] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            flat[prefix + name] = value
    return flat


def _print_line(row: Row, line: Line, *, quick: bool) -> None:
    verdict = "tried" if quick else "met" if line.met else "MISSED"
    _print(row.number, line.what, line.figure, line.goal, verdict, line.beside)


def _print(*cells: str) -> None:
    fixed = "".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS, strict=False))
    print(f"{fixed}{cells[-1]}".rstrip(), flush=True)


def _warn_of_load() -> None:
    load, processors = os.getloadavg()[0], os.cpu_count() or 1
    if load > processors / 2:
        print(
            f"the machine is busy (load {load:.1f} on {processors} processors): figures by the clock come out too high",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main())
