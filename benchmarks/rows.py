"""The rows of the table of goals: what is run for each, and what is read from the figures.

Owns the goals. A row's cases are scripts of this folder, each run in fresh processes; `lines` makes the row's lines
from the medians, and a figure that is missing makes its line "not measured". Read `run.py` for how they are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from programs import program

DESK = Path(gettempdir()) / "halo-benchmark-desk.halo"


class Case(NamedTuple):
    """A script with its arguments, and those for `--quick` where they differ, in a peer's environment or Halo's own.

    A script that is `whole` measures the peer too, in an environment that it `needs`, and repeats by itself.
    """

    script: str
    arguments: tuple[object, ...] = ()
    quick: tuple[object, ...] | None = None
    environment: str = "halo"
    whole: bool = False
    needs: str = "halo"


class Line(NamedTuple):
    """One line of the table. `met` is whether the goal is, `beside` what peers did."""

    what: str
    figure: str
    goal: str
    met: bool
    beside: str = ""


Figures = Callable[[str, str], float]
"""The median of a figure of a case; raises `NotMeasured`."""


class NotMeasured(Exception):
    """Why there is no figure."""


class Row(NamedTuple):
    number: str
    about: str
    cases: dict[str, Case]
    lines: Callable[[Figures], Iterator[Line]]


def _beside(figures: Figures, unit: str, names: dict[str, tuple[str, str]], digits: int = 0) -> str:
    """What peers did, by the name to show: the case and its figure."""
    shown = []
    for name, (case, figure) in names.items():
        try:
            shown.append(f"{name} {figures(case, figure):,.{digits}f}{unit}")
        except NotMeasured:
            shown.append(f"{name} not measured")
    return ", ".join(shown)


# 1: start-up -----------------------------------------------------------------------------------------------------


def _startup(figures: Figures) -> Iterator[Line]:
    ratio, ms = figures("startup", "ratio"), figures("startup", "check_ms")
    python = figures("startup", "python_ms")
    yield Line(
        "halo check, 100 lines",
        f"{ratio:.2f}x ({ms:.0f} ms)",
        "<= 4x of python -c pass",
        ratio <= 4,
        f"{python:.0f} ms",
    )


# 3: parsing ------------------------------------------------------------------------------------------------------


def _parsing(figures: Figures) -> Iterator[Line]:
    small, large, memory = (figures("parse", name) for name in ("small", "large", "memory"))
    yield Line("lines a second, 1,000 lines", f"{small:.2f}x", ">= 1.5x of ast.parse", small >= 1.5)
    yield Line("lines a second, 100,000 lines", f"{large:.2f}x", ">= 3x of ast.parse", large >= 3)
    yield Line("memory, 100,000 lines", f"{memory:.2f}x", "<= 0.25x of ast.parse", memory <= 0.25)


# 2: short runs ---------------------------------------------------------------------------------------------------


def _short(figures: Figures) -> Iterator[Line]:
    plan = f"halo plan {figures('replaying', 'plan_ms'):.0f} ms"
    for command, what in (("run", "halo run --mock, ten stages"), ("replay", "halo replay, ten stages")):
        ratio, ms = figures("replaying", command), figures("replaying", f"{command}_ms")
        yield Line(what, f"{ratio:.2f}x ({ms:.0f} ms)", "<= 1.3x of halo plan", ratio <= 1.3, plan)
    us = figures("replaying", "us_stage")
    yield Line("a replayed stage, of 100, from its file", f"{us:.1f} us", "<= 8 us (row 4)", us <= 8)


# 4: stages -------------------------------------------------------------------------------------------------------


def _stages(figures: Figures) -> Iterator[Line]:
    for count in (10, 100, 1000):
        us, plain = figures(f"recorded {count}", "us_stage"), figures(f"halo {count}", "us_stage")
        beside = {"LangGraph": (f"langgraph {count}", "us_stage")}
        if count == 100:
            beside |= {
                "pydantic-graph": ("pydantic-graph", "us_stage"),
                "pydantic-ai": ("pydantic-ai", "us_stage"),
                "Burr": ("burr", "us_stage"),
            }
        yield Line(
            f"a stage, of {count}",
            f"{us:.1f} us ({plain:.1f} unrecorded)",
            "<= 12 us",
            us <= 12,
            _beside(figures, " us", beside),
        )
    ratio = figures("langgraph 100", "us_stage") / figures("recorded 100", "us_stage")
    yield Line("a stage against LangGraph's, of 100", f"1/{ratio:.0f}", "<= 1/25", ratio >= 25)


# 5: pipeline calls -----------------------------------------------------------------------------------------------


def _calls(figures: Figures) -> Iterator[Line]:
    """The goal is that of pipeline calls alone: one line of a recording each would take longer than it by row 9's."""
    wall, mib = figures("recorded", "wall_s"), figures("recorded", "mib_more")
    yield Line("100,000 pipeline calls", f"{wall:.2f} s", "<= 0.8 s", wall <= 0.8)
    yield Line("their memory", f"{mib:.1f} MiB more", "<= 64 MiB", mib <= 64)
    wall, mib = figures("asking recorded", "wall_s"), figures("asking recorded", "mib_more")
    shown = f"{wall:.2f} s ({figures('asking', 'wall_s'):.2f} unrecorded)"
    langgraph = _beside(figures, " us a call", {"LangGraph": ("langgraph", "us_call")})
    yield Line("the same, an agent in each", shown, "<= 2 s (0.8 and row 4)", wall <= 2, langgraph)
    yield Line("their memory", f"{mib:.1f} MiB more", "<= 64 MiB", mib <= 64)


# 6: branches -----------------------------------------------------------------------------------------------------


def _branches(figures: Figures) -> Iterator[Line]:
    times, mib = figures("halo", "times_ideal"), figures("halo", "mib_more")
    ideal = {"asyncio, a task each": ("plain", "times_ideal"), "LangGraph, of 1,000": ("langgraph", "times_ideal")}
    more = {"asyncio, a task each": ("plain", "mib_more"), "LangGraph, of 1,000": ("langgraph", "mib_more")}
    shown = f"{times:.2f}x ({figures('recorded', 'times_ideal'):.2f} recorded)"
    yield Line(
        "100,000 branches of 10 ms, 1,000 at a time",
        shown,
        "<= 1.6x the ideal",
        times <= 1.6,
        _beside(figures, "x", ideal, 1),
    )
    yield Line("their memory", f"{mib:.1f} MiB more", "<= 32 MiB", mib <= 32, _beside(figures, " MiB", more))


# 7: tool steps ---------------------------------------------------------------------------------------------------


def _tool_steps(figures: Figures) -> Iterator[Line]:
    us, plain = figures("recorded", "us_step"), figures("halo", "us_step")
    peers = {name: (name, "us_step") for name in ("pydantic-ai", "LangChain", "OpenAI Agents")}
    yield Line(
        "a tool step of an agent",
        f"{us:.1f} us ({plain:.1f} unrecorded)",
        "<= 30 us",
        us <= 30,
        _beside(figures, " us", peers),
    )


# 8: model calls --------------------------------------------------------------------------------------------------


def _model_calls(figures: Figures) -> Iterator[Line]:
    for in_flight, goal in (1, 7), (64, 8):
        ratio, ours, theirs = (
            figures("both", f"in_flight.{in_flight}.{name}") for name in ("ratio", "halo_per_s", "openai_per_s")
        )
        yield Line(
            f"model calls over loopback HTTP, {in_flight} in flight",
            f"{ratio:.1f}x ({ours:,.0f} a second)",
            f">= {goal}x openai's",
            ratio >= goal,
            f"openai {theirs:,.0f} a second",
        )


# 9, 10: recordings -----------------------------------------------------------------------------------------------


def _recording(figures: Figures) -> Iterator[Line]:
    ours, plain = figures("recording", "lines_s"), figures("recording", "json_lines_s")
    yield Line(
        "lines recorded, flushed each", f"{ours:,.0f} a second", ">= 100,000", ours >= 100_000, f"json {plain:,.0f}"
    )
    ratio, shared, alone = (figures("recording", name) for name in ("ratio", "shared_s", "synced_s"))
    yield Line(
        "lines synced, 64 branches waiting",
        f"{ratio:.0f}x ({shared:,.0f} a second)",
        ">= 20x one sync a line",
        ratio >= 20,
        f"one sync a line {alone:,.0f} a second",
    )


def _reading(figures: Figures) -> Iterator[Line]:
    ratio, us = figures("reading", "ratio"), figures("reading", "us_line")
    beside = f"json.loads {figures('reading', 'json_us_line'):.1f} us a line"
    yield Line("100,000 lines read for a replay", f"{ratio:.2f}x ({us:.1f} us a line)", "<= 1.5x", ratio <= 1.5, beside)
    mib = figures("reading", "mib_more")
    yield Line("their memory", f"{mib:.1f} MiB more", "flat (<= 2 MiB)", mib <= 2)


# 12: memory ------------------------------------------------------------------------------------------------------


def _memory(figures: Figures) -> Iterator[Line]:
    peers = {"Python": ("python", "peak_mib"), "importing LangGraph": ("langgraph", "peak_mib")}
    check, run = figures("check", "peak_mib"), figures("run", "peak_mib")
    yield Line("after halo check", f"{check:.1f} MiB", "<= 14 MiB", check <= 14)
    beside = _beside(figures, " MiB", peers, 1)
    yield Line("after halo run --mock", f"{run:.1f} MiB", "<= 26 MiB", run <= 26, beside)


# 13: growth ------------------------------------------------------------------------------------------------------


def _growth(figures: Figures) -> Iterator[Line]:
    few, many = figures("stages 10", "us_stage"), figures("stages 1000", "us_stage")
    yield Line(
        "us a stage, at 1,000 against at 10", f"{many / few:.2f}x ({many:.1f}, {few:.1f})", "<= 1.2x", many / few <= 1.2
    )
    few, many = figures("branches 1000", "us_branch"), figures("branches 100000", "us_branch")
    try:
        grows = figures("langgraph 5000", "us_branch") / figures("langgraph 1000", "us_branch")
        beside = f"LangGraph's Send {grows:.1f}x from 1,000 to 5,000"
    except NotMeasured:
        beside = "LangGraph not measured"
    yield Line(
        "us a branch, at 100,000 against at 1,000",
        f"{many / few:.2f}x ({many:.1f}, {few:.1f})",
        "<= 1.5x",
        many / few <= 1.5,
        beside,
    )


def _cases(
    script: str, name: str, counts: tuple[int, ...], environment: str = "halo", more: tuple[int, ...] = ()
) -> dict[str, Case]:
    return {f"{name} {count}": Case(script, (count, *more), (min(count, 20), *more), environment) for count in counts}


ROWS = (
    Row("1", "start-up", {"startup": Case("startup.py", (9,), (1,))}, _startup),
    Row("2", "short runs and replays", {"replaying": Case("replaying.py", (9, 300), (1, 2))}, _short),
    Row("3", "parsing", {"parse": Case("parse.py", (7,), (1, 20, 40), whole=True)}, _parsing),
    Row(
        "4",
        "stage",
        {
            **_cases("stages.py", "halo", (10, 100, 1000)),
            **_cases("stages.py", "recorded", (10, 100, 1000), more=(1,)),
            **_cases("stages_langgraph.py", "langgraph", (10, 100, 1000), "langgraph"),
            "pydantic-graph": Case("stages_pydantic_graph.py", (100,), (5,), "pydantic"),
            "pydantic-ai": Case("stages_pydantic_ai.py", (20,), (2,), "pydantic"),
            "burr": Case("stages_burr.py", (100,), (5,), "burr"),
        },
        _stages,
    ),
    Row(
        "5",
        "pipeline calls",
        {
            "recorded": Case("calls.py", (100_000, 0, 1), (500, 0, 1)),
            "asking": Case("calls.py", (100_000, 1), (500, 1)),
            "asking recorded": Case("calls.py", (100_000, 1, 1), (500, 1, 1)),
            "langgraph": Case("calls_langgraph.py", (1000,), (10,), "langgraph"),
        },
        _calls,
    ),
    Row(
        "6",
        "branches",
        {
            "halo": Case("branches.py", (100_000, 1000, 10), (500, 100, 1)),
            "recorded": Case("branches.py", (100_000, 1000, 10, 1), (500, 100, 1, 1)),
            "plain": Case("branches_plain.py", (100_000, 1000, 10), (500, 100, 1)),
            "langgraph": Case("branches_langgraph.py", (1000, 1000, 10), (20, 10, 1), "langgraph"),
        },
        _branches,
    ),
    Row(
        "7",
        "tool step",
        {
            "halo": Case("tool_steps.py", (300,), (3,)),
            "recorded": Case("tool_steps.py", (300, 1), (3, 1)),
            "pydantic-ai": Case("tool_steps_pydantic_ai.py", (20,), (1,), "pydantic"),
            "LangChain": Case("tool_steps_langchain.py", (20,), (1,), "langgraph"),
            "OpenAI Agents": Case("tool_steps_openai_agents.py", (20,), (1,), "openai"),
        },
        _tool_steps,
    ),
    Row(
        "8",
        "model calls",
        {
            "both": Case(
                "model_calls.py",
                ("--rounds", 7),
                ("--rounds", 1, "--requests", 64),
                whole=True,
                needs="openai",
            )
        },
        _model_calls,
    ),
    Row("9", "recording", {"recording": Case("recording.py", (50_000, 64, 30), (200, 8, 2))}, _recording),
    Row("10", "reading recordings", {"reading": Case("reading.py", (100_000,), (400,))}, _reading),
    Row(
        "12",
        "memory",
        {
            "check": Case("memory.py", ("check", DESK)),
            "run": Case("memory.py", ("run", DESK, "--pipeline", "Desk0", "ticket=x", "--mock")),
            "python": Case("memory_import.py", ("sys",)),
            "langgraph": Case("memory_import.py", ("langgraph.graph",), None, "langgraph"),
        },
        _memory,
    ),
    Row(
        "13",
        "growth",
        {
            **_cases("stages.py", "stages", (10, 1000)),
            "branches 1000": Case("branches.py", (1000, 1000, 0), (100, 10, 0)),
            "branches 100000": Case("branches.py", (100_000, 1000, 0), (200, 10, 0)),
            "langgraph 1000": Case("branches_langgraph.py", (1000, 1000, 0), (10, 10, 0), "langgraph"),
            "langgraph 5000": Case("branches_langgraph.py", (5000, 1000, 0), (20, 10, 0), "langgraph"),
        },
        _growth,
    ),
)


def write_desk() -> None:
    """Writes the program that the rows on memory read."""
    DESK.write_text(program(100))
