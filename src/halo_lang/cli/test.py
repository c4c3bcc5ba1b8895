"""`halo test [FILE …]`: the tests of files, in parallel (language.md §9)."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentTypeError
from stat import S_ISREG

from ..app.testing import Outcome, run_test
from ..check.program import BranchStage
from ..language.diagnostics import ERROR, render
from ..language.record import Record
from .failing import CommandError
from .output import visible
from .programs import checked_file, has_errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

NO_TESTS = 5
_MOST_JOBS = 64

EXAMPLE = """For example:

  halo test
  halo test review.halo -k weak
  halo test --junit results.xml --coverage
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="*", help="all below this folder where none is named")
    parser.add_argument("-k", metavar="WORD", default="", help="only tests whose name holds this")
    parser.add_argument("--junit", metavar="FILE", help="write the results as JUnit XML")
    parser.add_argument("--coverage", action="store_true", help="name the stages and arms that no test ran")
    parser.add_argument("-j", metavar="N", type=_jobs, default=0, help="so many files at a time")
    parser.epilog = EXAMPLE


def _jobs(word: str) -> int:
    if not (word.isascii() and word.isdigit() and 0 < int(word) <= _MOST_JOBS):
        raise ArgumentTypeError(f"takes a whole number from 1 to {_MOST_JOBS}, and got `{word}`")
    return int(word)


class FileOutcome(Record):
    """The tests of one file. `problem` says why none could run; `stages` are all its stages and arms, by the words in
    which they are named where no test runs them."""

    file: str
    outcomes: tuple[Outcome, ...]
    problem: str | None
    stages: dict[tuple[str, int, int | None], str]


def execute(options: Namespace) -> int:
    began = time.perf_counter()
    files = options.files or sorted(_files_below("."))
    results = list(_run_all(files, options.k, options.j, skip_without_tests=not options.files))
    tests = [outcome for result in results for outcome in result.outcomes]
    failed = [outcome for outcome in tests if outcome.failures]
    for result in results:
        _show(result, options)
    if options.coverage:
        _show_coverage(results)
    if options.junit is not None:
        from .files import replace_file
        from .junit import junit

        replace_file(options.junit, junit(results, time.perf_counter() - began).encode())
    broken = sum(result.problem is not None for result in results)
    if not tests and not broken:
        print("no test was found", file=sys.stderr)
        return NO_TESTS
    problems = f", {broken} file{'s' if broken > 1 else ''} could not be tested" if broken else ""
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed{problems}")
    return 1 if failed or broken else 0


def _files_below(folder: str) -> Iterator[str]:
    """The `.halo` files below a folder; hidden folders and those of environments are left out."""
    for here, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".") and f not in ("node_modules", "__pycache__", "venv")]
        for name in names:
            path = os.path.join(here, name)
            if name.endswith(".halo") and _is_text(path):
                yield os.path.normpath(path)


def _is_text(path: str) -> bool:
    """Whether a name below a folder may be a program: a pipe or a device is none, and reading it might never end. A
    link that leads nowhere may be meant as one, and is said to be missing."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return True
    return S_ISREG(mode)


def _run_all(files: list[str], word: str, jobs: int, *, skip_without_tests: bool) -> Iterator[FileOutcome]:
    work = [(file, word, skip_without_tests) for file in files]
    jobs = min(jobs or os.cpu_count() or 1, len(files))
    if jobs <= 1 or len(files) < 4:
        yield from map(run_file, work)
        return
    yield from _side_by_side(work, jobs)


def _side_by_side(work: list[tuple[str, str, bool]], jobs: int) -> Iterator[FileOutcome]:
    """The tests of files, in so many processes. Whatever ends the command ends them, and they say nothing of it."""
    import signal
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    pool = ProcessPoolExecutor(jobs, get_context("forkserver"))
    try:
        # Ctrl-C reaches every process of a terminal. Only this one takes it up: the others inherit that it is held
        # back.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            results = pool.map(run_file, work, chunksize=max(1, len(work) // (jobs * 4)))
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        yield from results
    except BrokenProcessPool:
        raise CommandError(
            "a process that ran tests was ended from outside, perhaps for want of memory; "
            "`halo test -j 1` runs all of them in one"
        ) from None
    except BaseException:
        for process in active_children():
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def run_file(work: tuple[str, str, bool]) -> FileOutcome:
    """The tests of one file. `work` is the file, the word that names must hold, and whether a file without tests may
    have errors."""
    file, word, skip_without_tests = work
    try:
        program, _ = checked_file(file)
    except CommandError as trouble:
        return FileOutcome(file, (), str(trouble), {})
    if has_errors(program):
        if skip_without_tests and not program.tests:
            return FileOutcome(file, (), None, {})
        errors = [render(d, program.source) for d in program.diagnostics if d.severity == ERROR]
        return FileOutcome(file, (), "\n".join(errors), {})
    chosen = [test for test in program.tests if word.lower() in _name(test.name).lower()]
    outcomes = tuple(run_test(program, test, file) for test in chosen)
    stages: dict[tuple[str, int, int | None], str] = {}
    for pipeline in program.pipelines.values() if chosen or not word else ():
        for stage in pipeline.stages:
            line, _ = program.source.position(stage.span.start)
            stages[(pipeline.name, stage.number, None)] = f"{file}:{line}: stage {stage.number} of {pipeline.name}"
            if isinstance(stage, BranchStage):
                for at, arm in enumerate(stage.arms):
                    line, _ = program.source.position(arm.call.span.start)
                    held = "else" if arm.text is None else f"if {' '.join(arm.text.split())}"
                    words = f"{file}:{line}: the arm `{held}` of stage {stage.number} of {pipeline.name}"
                    stages[(pipeline.name, stage.number, at)] = words
    return FileOutcome(file, outcomes, None, stages)


def _name(text: object) -> str:
    return "".join(part for part in getattr(text, "parts", ()) if isinstance(part, str))


def _show(result: FileOutcome, options: Namespace) -> None:
    if result.problem is not None:
        print(visible(f"FAIL {result.file}: no test could be run\n{result.problem}"))
    for outcome in result.outcomes:
        if outcome.failures:
            print(visible(f"FAIL {outcome.file}:{outcome.line}: {outcome.name}"))
            for failure in outcome.failures:
                print("\n".join(f"  {visible(row)}" for row in failure.split("\n")))
        elif options.verbose:
            print(visible(f"ok   {outcome.file}:{outcome.line}: {outcome.name}"))


def _show_coverage(results: list[FileOutcome]) -> None:
    every = ran = 0
    for result in results:
        covered = {place for outcome in result.outcomes for place in outcome.covered}
        for place, words in result.stages.items():
            every += 1
            if place in covered:
                ran += 1
            else:
                print(visible(f"never ran: {words}"))
    if every:
        print(f"coverage: {ran} of {every} stages and arms ({ran * 100 // every}%)")
