"""Every program under `examples/` is formatted, checks without a warning, is planned, passes its tests, is run for real
against the outside of its scenario, and replays to the same end.

`pytest tests/examples --update` writes the plans beside the programs and the costs in `examples/README.md`.
"""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from case_format import Step
from case_runner import run_step
from scenarios import SCENARIOS, Scenario
from world import World

from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
README = EXAMPLES / "README.md"
PROGRAMS = sorted(EXAMPLES.glob("*/*.halo"))
NAMES = [path.stem for path in PROGRAMS]
_ROW = re.compile(r"^\| \[([\w-]+)\]\(([^)]*)\) \|(.*)\| ([^|]*) \|$", re.MULTILINE)


def program(name: str) -> Path:
    return EXAMPLES / name / f"{name}.halo"


def halo(folder: Path, command: str, *, exits: int | None = 0) -> tuple[str, str]:
    """What a command prints, and says to standard error."""
    out, code, err = run_step(Step(f"halo {command}", 0), folder, main)
    assert exits in (None, code), f"{command} exits {code}\n" + "\n".join(out) + err
    return "\n".join(out), err


def document(folder: Path, command: str, *, exits: int | None = 0) -> Any:
    out, err = halo(folder, f"{command} --json", exits=exits)
    assert out, err
    return json.loads(out)


def stored(path: Path, text: str, *, update: bool) -> None:
    """Holds a file to a text, or writes it."""
    if update:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text, f"read what changed, then pytest {Path(__file__).parent} --update"


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


@pytest.mark.parametrize("name", NAMES)
def test_it_is_formatted_and_checks_strictly(name: str) -> None:
    halo(EXAMPLES / name, f"fmt --check {name}.halo")
    out, err = halo(EXAMPLES / name, f"check --strict {name}.halo")
    assert out + err == ""


def test_the_tests_of_all_examples_pass_at_once_with_nothing_but_halo(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    out, _ = halo(tmp_path / "examples", "test -j 1")
    assert out.endswith(" passed, 0 failed\n")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "quickstart"])
def test_it_says_at_the_top_what_it_does_and_what_its_plan_shows(name: str) -> None:
    head = program(name).read_text("utf-8").split("\n\n")[0]
    lines = head.split("\n")
    assert all(line.startswith("# ") for line in lines)
    assert 1 < len(lines) <= 4
    assert " plan " in f"{head} "


@pytest.mark.parametrize("name", NAMES)
def test_its_plan_is_the_one_beside_it(name: str, update: bool) -> None:
    out, _ = halo(EXAMPLES / name, f"plan {name}.halo")
    stored(EXAMPLES / name / "plan.txt", out, update=update)
    pipelines = [p["name"] for p in document(EXAMPLES / name, f"plan {name}.halo")["pipelines"]]
    assert re.findall(r"^Plan for (\w+)$", out, re.MULTILINE) == pipelines


@pytest.mark.parametrize("name", NAMES)
def test_its_tests_pass_and_run_every_stage_and_arm(name: str) -> None:
    out, _ = halo(EXAMPLES / name, f"test {name}.halo --coverage")
    assert "(100%)" in out, out
    assert int(re.findall(r"^(\d+) passed, 0 failed$", out, re.MULTILINE)[0]) >= 2


def prepared(name: str, folder: Path, world: World) -> Scenario:
    """Copies an example and makes its outside; the program itself changes in nothing but where the web is."""
    scenario = SCENARIOS[name]
    shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".halo", "tidy"))
    if scenario.before is not None:
        scenario.before(folder)
    text = program(name).read_text("utf-8")
    for old, new in scenario.changed.items():
        assert old in text
        text = text.replace(old, new)
    text = re.sub(r'Http\("https://[^/"]+([^"]*)"', rf'Http("{world.address}/web\1", private: true', text)
    (folder / f"{name}.halo").write_text(text, encoding="utf-8")
    variables = {
        "OPENAI_BASE_URL": f"{world.address}/v1",
        "OPENAI_API_KEY": "key-for-tests",
        "ANTHROPIC_BASE_URL": world.address,
        "ANTHROPIC_API_KEY": "key-for-tests-too",
        "SLACK_API_URL": f"{world.address}/slack",
    }
    variables |= {variable: f"token-for-tests-{at}" for at, variable in enumerate(re.findall(r"Env\.([A-Z_]+)", text))}
    variables |= scenario.variables
    (folder / ".env").write_text("".join(f'{k}="{v}"\n' for k, v in variables.items()), encoding="utf-8")
    (folder / "args.json").write_text(json.dumps(scenario.args), encoding="utf-8")
    return scenario


EXITS = {"completed": 0, "halted": 0, "failed": 1}


def ran(name: str, folder: Path, world: World) -> dict[str, Any]:
    """Runs an example to its end, through all that its people say; gives the document of the result."""
    scenario = prepared(name, folder, world)
    yes = "".join(f" --yes-to {target}" for target in scenario.yes)
    result: dict[str, Any] = document(
        folder, f"run {name}.halo --pipeline {scenario.pipeline} --args @args.json{yes}", exits=None
    )
    for flags in scenario.resumes:
        assert result["status"] == "paused", result
        words = " ".join(f"'{flag}'" for flag in flags)
        result = document(folder, f"resume {result['runId']} {words}{yes}", exits=None)
    assert result["status"] == scenario.ends, json.dumps(result, indent=1, ensure_ascii=False)
    return result


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_run_replays_to_the_same_end(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    if ": Mcp(" in program(name).read_text("utf-8") and find_spec("mcp") is None:
        pytest.skip("needs the extra `mcp`")
    with World(scenario.models, scenario.web, scenario.slack) as world:
        result = ran(name, tmp_path, world)
    if scenario.output is not ...:
        assert result["output"] == scenario.output
    for path, text in scenario.wrote.items():
        assert (tmp_path / path).read_text("utf-8") == text
    # The program as it stands in the repository, without any of the outside.
    shutil.copy(program(name), tmp_path / f"{name}.halo")
    (tmp_path / ".env").unlink()
    replayed = document(tmp_path, f"replay {name}.halo {result['runId']}")
    assert replayed["same"] is True
    assert [note for note in replayed["notes"] if note["kind"] != "asked" or not scenario.changed] == []


def test_together_they_use_all_that_the_language_has() -> None:
    text = "\n".join(path.read_text("utf-8") for path in PROGRAMS)
    words = [
        *(f": {provider}(" for provider in PROVIDERS),
        "@shadow(",
        "|* each(",
        "|<> loop(",
        "~> listen(",
        "|! yield(",
    ]
    words += ["AllowTools", "DenyTools", "DenyArgs", "ApproveTools", "ApproveEffects", "MaxSpend", "MaxCalls", "Redact"]
    words += [f"System.{m}(" for m in ("Print", "Log", "Publish", "Wait", "Now", "Fail")]
    words += [" [Env.", "top_p:", "temperature:", "max_steps:", "max_tokens:", "timeout:", "retries:", "concurrency:"]
    words += ["limit:", "mock approval", "mock yield", "fail ", "replay "]
    assert [word for word in words if word not in text] == []


def cost_in_words(summary: dict[str, Any]) -> str:
    """What the table says a run can cost at most."""
    most, stops = summary["maxCost"], summary["stopsAt"]
    if not most and not summary["unbounded"]:
        return "not priced" if summary["unpriced"] else "nothing"
    bound = "no bound" if most is None else f"${most:.4f}"
    return bound if stops is None or (most is not None and most <= stops) else f"{bound}, stops at ${stops:.2f}"


def test_the_table_names_every_example_with_what_it_can_cost(update: bool) -> None:
    text = README.read_text("utf-8")
    costs = {}
    for name in NAMES:
        plans = document(EXAMPLES / name, f"plan {name}.halo --pipeline {SCENARIOS[name].pipeline}")["pipelines"]
        costs[name] = cost_in_words(plans[0]["summary"])
    rows = {row[1]: row[2] for row in _ROW.finditer(text)}
    assert rows == {name: f"{name}/{name}.halo" for name in NAMES}
    stored(README, _ROW.sub(lambda row: f"| [{row[1]}]({row[2]}) |{row[3]}| {costs[row[1]]} |", text), update=update)


def test_there_are_thirty_and_each_has_a_scenario() -> None:
    assert len(NAMES) >= 30
    assert sorted(SCENARIOS) == NAMES
