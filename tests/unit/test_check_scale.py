"""Checking large and hostile programs: it ends, within what is linear in their size (language.md §8).

Nothing here measures time: what is not linear would not come to an end.
"""

from __future__ import annotations

import pytest

from halo_lang.check.check import check
from halo_lang.language.source import Source

MANY = 4_000


def codes(text: str) -> set[str]:
    return {d.code for d in check(Source("t.halo", text), priced=lambda _: False).diagnostics}


def test_thousands_of_unknown_names_each_among_thousands() -> None:
    pipelines = "".join(
        f"pipeline P{n}(value{n}: Any): valu{n} |> Agnt{n}.go() |> System.Print(valeu)\n" for n in range(MANY)
    )
    agents = "".join(f"agent Agent{n} [openai/gpt-4o]\n" for n in range(MANY))
    program = check(Source("t.halo", pipelines + agents))
    assert len(program.diagnostics) == 4 * MANY
    assert program.diagnostics[0].help == "did you mean `value0`?"


def test_a_chain_of_pipelines_under_policies() -> None:
    policies = 'policy S : MaxSpend(1)\npolicy D : DenyTools("T.run")\ntool T : Bash()\nagent A [my/own]\n'
    chain = "".join(f"pipeline P{n}(x: Any) requires S, D: x |> P{n + 1}() |> A.go()\n" for n in range(MANY))
    assert codes(policies + chain + f'pipeline P{MANY}(x: Any): x |> T.run(command: "a")\n') == {
        "EXCLUDED_CALL", "NO_PRICE",
    }  # fmt: skip


def test_a_ring_of_pipelines() -> None:
    ring = "".join(f"pipeline P{n}(x: Any): x |> P{(n + 1) % MANY}()\n" for n in range(MANY))
    assert codes(ring) == {"ENDLESS_CALL"}


def test_a_chain_into_a_ring() -> None:
    chain = "".join(f"pipeline P{n}(x: Any): x |> P{n + 1}()\n" for n in range(MANY))
    program = check(Source("t.halo", chain + f"pipeline P{MANY}(x: Any): x |> P{MANY}()\n"))
    assert [d.code for d in program.diagnostics] == ["ENDLESS_CALL"]


def test_thousands_of_loops_in_one_pipeline() -> None:
    stages = '|> A.a() |> B.b() |<> loop(B, "x == 1") |<> loop(A, "x == 1") as n\n' * MANY
    text = f"agent A [openai/gpt-4o]\nagent B [openai/gpt-4o]\npipeline P(x: Any): x\n{stages}"
    assert codes(text) == set()


def test_thousands_of_loops_around_the_first_stage() -> None:
    text = "agent A [openai/gpt-4o]\npipeline P(x: Any): x |> A.a()\n" + '|<> loop(A, "x == 1")\n' * MANY
    program = check(Source("t.halo", text))
    assert program.diagnostics == ()
    assert {s.extent for s in program.pipelines["P"].stages[1:]} == {0}  # type: ignore[union-attr]


def test_one_policy_of_thousands_of_agents() -> None:
    text = 'policy N : DenyTools("T.*")\ntool T : Slack(Env.X)\n'
    text += "".join(f"agent A{n} [openai/gpt-4o]\n  equips T\n  requires N\n" for n in range(MANY))
    text += "pipeline P(x: Any): x\n" + "".join(f"|> A{n}.go(tools: [T])\n" for n in range(MANY))
    assert codes(text) == set()


@pytest.mark.parametrize(
    "expression",
    ["[" * 60 + "x" + "]" * 60, "!" * 60 + "x", "(" * 60 + "x" + ")" * 60, "{a: " * 60 + "x" + "}" * 60],
    ids=["lists", "nots", "parentheses", "objects"],
)
def test_what_nests_as_deep_as_it_may(expression: str) -> None:
    assert codes(f"pipeline P(x: Any): x |? ({expression})\n") == set()


def test_long_chains_in_a_condition() -> None:
    assert codes("pipeline P(x: Any): x |? (" + " && ".join(["x == 1", "true"] * MANY) + ")\n") == set()
