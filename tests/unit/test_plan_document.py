"""Plans as documents: their schema, and that what is damaged is said to be (plan.md, cli.md)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from halo_lang.catalog.prices import NANO
from halo_lang.cli.main import main
from halo_lang.doors.within import Within
from halo_lang.plan.difference import difference
from halo_lang.plan.document import VERSION, nano, read_document
from plans import AGENT, kept, pipeline, program

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
RICH = (
    "policy Ask : ApproveEffects(external) & MaxSpend(0.25)\n"
    'tool Files : Workspace(".", write: true)\ntool Chat : Slack(Env.T)\ntool Web : Mcp("serve")\n'
    + AGENT
    + "  equips Files, Web\n  requires Ask\nagent B [Env.M]\n"
    + pipeline(
        "@shadow(B.go()) |> A.go(tools: [Files, Web])",
        "|? (x == 1)",
        '|! yield("Go?")',
        "~> listen(Chat.Said)",
        "|* each(i in x) => Q(i)",
        "|? { (x == 1) => Q(x), else => P(x) }",
        "|* { A, Chat.post(text: x), System.Publish(x) }",
        '|<> loop(A, "x == 2")',
    )
    + pipeline("|> A.go()", "|> Nobody.go()", name="Q")
)


def schema(name: str) -> Draft202012Validator:
    content = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


def documents() -> list[dict[str, Any]]:
    return [kept(RICH), kept(AGENT + pipeline("|> A.go()")), kept(pipeline()), kept("agent A [openai/flat]\n")]


@pytest.mark.parametrize("at", range(4))
def test_a_plan_is_as_its_schema_says(at: int) -> None:
    schema("plan").validate(json.loads(json.dumps(documents()[at])))


def test_everything_in_a_plan_is_described() -> None:
    content = json.loads((SCHEMAS / "plan.schema.json").read_text(encoding="utf-8"))
    (made,) = [kept(RICH)]
    assert content["properties"].keys() == made.keys()
    assert content["properties"]["version"]["const"] == VERSION
    stages = [stage for one in made["pipelines"] for stage in one["stages"]]
    for stage in stages:
        assert content["$defs"]["stage"]["properties"].keys() == stage.keys()
    assert {stage["kind"] for stage in stages} == set(content["$defs"]["stage"]["properties"]["kind"]["enum"])
    for one in content["$defs"].values():
        assert one["description"]
        assert set(one["required"]) == one["properties"].keys()


def test_a_schema_that_misses_something_is_noticed() -> None:
    made = kept(RICH)
    made["pipelines"][0]["stages"][0]["more"] = 1
    assert not schema("plan").is_valid(made)
    del made["pipelines"][0]["stages"][0]["more"], made["pipelines"][0]["stages"][0]["times"]
    assert not schema("plan").is_valid(made)


@pytest.mark.parametrize("argv", [["check", "--json"], ["plan", "--json"]])
def test_what_the_commands_print_is_as_their_schemas_say(
    argv: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.halo").write_text(RICH.replace("openai/flat", "openai/gpt-4o"), encoding="utf-8")
    assert main([argv[0], "t.halo", *argv[1:]]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["diagnostics"]
    schema(argv[0]).validate(found)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        (pipeline("|> System.Print(x)", "|> System.Publish(1)"), ["x=1"]),
        (pipeline("|? (x == 2)"), ["x=1"]),
        (pipeline('|> System.Fail("no")'), ["x=1"]),
        ('tool F : Workspace(".")\nagent A [openai/gpt-4o]\n' + pipeline("|> A.go()", "|> F.list()"), ["x=[1]"]),
        (pipeline("|> Nobody.go()"), ["x=1"]),
    ],
)
def test_what_a_run_prints_is_as_its_schema_says(
    text: str,
    args: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.halo").write_text(text, encoding="utf-8")
    main(["run", "t.halo", *args, "--mock", "--json"])
    schema("run").validate(json.loads(capsys.readouterr().out))


def test_a_paused_run_is_as_the_schema_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.halo").write_text(pipeline('|! yield("Go?", ["a"])', "~> listen(Chat.Said)"), encoding="utf-8")
    assert main(["run", "t.halo", "x=1", "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["waits"][0]["kind"] == "yield"
    schema("run").validate(found)


# Amounts ---------------------------------------------------------------------------------------------------------


def test_a_float_of_dollars_gives_back_the_nano_dollars() -> None:
    chance = Random(5)
    for _ in range(20_000):
        amount = chance.randrange(4_000_000 * NANO)
        assert nano(json.loads(json.dumps(amount / NANO))) == amount


def test_a_cost_beyond_any_reason_is_written_all_the_same() -> None:
    made = kept("agent A [openai/flat, max_tokens: 1e300]\n" + pipeline("|> A.go()"))
    schema("plan").validate(json.loads(json.dumps(made)))


# Reading ---------------------------------------------------------------------------------------------------------


def test_a_kept_plan_is_read_as_it_was() -> None:
    made = kept(RICH)
    assert read_document(json.dumps(made).encode()) == json.loads(json.dumps(made))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"1",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"pipelines": []}',
        b'{"version": 1, "pipelines": 1}',
    ],
)
def test_what_is_no_plan(data: bytes) -> None:
    with pytest.raises(ValueError, match="this is no plan"):
        read_document(data)


@pytest.mark.parametrize("version", [0, 2, "1", True, 1.0, None, [1], 10**400])
def test_another_version_is_refused_by_name(version: Any) -> None:
    data = json.dumps({**kept(RICH), "version": version}).encode()
    with pytest.raises(ValueError, match="this plan has version"):
        read_document(data)


ODD: list[Any] = [None, True, -1, 1.5, float("nan"), float("inf"), "text", [], {}, [None], {"a": 1}, 10**400]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, inner in items for place in places(inner, (*path, key))]


def read_or_none(content: Any) -> dict[str, Any] | None:
    try:
        return read_document(json.dumps(content).encode())
    except ValueError as trouble:
        if not str(trouble).startswith("this "):
            raise
        return None


LEAN = (
    "policy Low : MaxSpend(0.25)\ntool Shell : Bash()\nagent B [openai/other]\n"
    + AGENT
    + "  equips Shell\n  requires Low\n"
    + pipeline("|> A.go(tools: [Shell])", "|? (x == 1)", "|* each(i in x) => B.go()")
)


def test_a_plan_that_is_damaged_anywhere_is_refused_or_read_without_failing() -> None:
    """Whatever stands at any one place of a kept plan, reading it, holding a run to it and comparing it never fail in
    any other way than by saying that it is damaged."""
    whole = json.loads(json.dumps(kept(LEAN)))
    fresh = json.loads(json.dumps(kept(AGENT + pipeline("|> A.go()"))))
    refused = 0
    for path in places(whole):
        for odd in ODD:
            damaged = copy.deepcopy(whole)
            at = damaged
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = odd
            found = read_or_none(damaged)
            if found is None:
                refused += 1
                continue
            difference(found, fresh)
            difference(fresh, found)
            for one in found["pipelines"]:
                Within(found, one["name"])
    assert refused > 300


def test_errors_of_the_file_stand_in_the_document() -> None:
    assert not program(RICH).ok
    assert {one["code"] for one in kept(RICH)["diagnostics"]} >= {"UNKNOWN_NAME"}
