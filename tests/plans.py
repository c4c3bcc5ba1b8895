"""Plans in tests: of a program's text, with prices that never change."""

from __future__ import annotations

from typing import Any

from halo_lang.catalog.prices import NANO, Price, Step
from halo_lang.check.check import check
from halo_lang.check.program import CheckedProgram
from halo_lang.language.source import Source
from halo_lang.plan.document import document
from halo_lang.plan.making import make_plan
from halo_lang.plan.plan import Plan
from halo_lang.plan.report import report

PRICES = {
    "openai/flat": Price((Step(0, 5 * NANO, 15 * NANO, 5 * NANO, 5 * NANO),)),
    "openai/steps": Price((Step(0, NANO, 2 * NANO, NANO, NANO), Step(3_000, 10 * NANO, 20 * NANO, NANO, 15 * NANO))),
    "openai/free": Price((Step(0, 0, 0, 0, 0),)),
}
"""US dollars a million tokens, as nano-dollars."""

AGENT = "agent A [openai/flat, max_tokens: 1000]\n"
ONCE = 2_000 * 5_000 + 1_000 * 15_000
"""What one request of `AGENT` without instructions can cost, in nano-dollars."""


def program(text: str) -> CheckedProgram:
    """The program of a text, which may have errors."""
    return check(Source("t.halo", text), priced=lambda model: model in PRICES)


def plan(text: str | CheckedProgram, pipeline: str = "P", input_tokens: int = 2_000) -> Plan:
    """The plan of a pipeline of a program without errors."""
    made = program(text) if isinstance(text, str) else text
    assert made.ok, [(d.code, d.message) for d in made.diagnostics]
    return make_plan(made, pipeline, PRICES.get, input_tokens)


def text_of(text: str, pipeline: str = "P") -> str:
    return report(plan(text, pipeline))


def blocks(text: str, pipeline: str = "P") -> list[tuple[str, str]]:
    """The number and target of each block."""
    return [(stage.number, stage.target) for stage in plan(text, pipeline).stages]


def kept(text: str, *pipelines: str, prices_key: str = "0" * 64, input_tokens: int = 2_000) -> dict[str, Any]:
    """The document of the plans of some pipelines, or all."""
    made = program(text)
    plans = [make_plan(made, name, PRICES.get, input_tokens) for name in pipelines or made.pipelines]
    return document(made, plans, input_tokens=input_tokens, prices="2026-11-10", prices_key=prices_key)


def pipeline(*stages: str, name: str = "P", params: str = "x: Any", requires: str = "") -> str:
    clause = f" requires {requires}" if requires else ""
    return f"pipeline {name}({params}) -> Result{clause}:\n  x\n" + "".join(f"    {stage}\n" for stage in stages)
