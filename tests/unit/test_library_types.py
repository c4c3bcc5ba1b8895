"""The public interface is all used by a sample, which type checkers accept as strictly as they can, and which runs."""

from __future__ import annotations

import ast
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
import user_code

import halo_lang
import halo_lang.pytest
import halo_lang.replay
from halo_lang import HaloRuntime, Program, ProgramPlan, RunResult, loads
from halo_lang.language.record import Record
from halo_lang.replay import ReadRecording, RecordedCall, Recorder

SAMPLE = Path(user_code.__file__)
TEXT = SAMPLE.read_text(encoding="utf-8")

PLUGIN = """
import pytest
from halo_lang import HaloRuntime, load

@pytest.mark.halo_replay("recordings/a.jsonl")
async def test_it(halo_runtime: HaloRuntime) -> None:
    recording = halo_runtime.recording
    assert recording is not None
    result = await halo_runtime.load(load("a.halo")).run(recording.pipeline, recording.args)
    assert result.output == recording.output
"""


def test_the_sample_uses_every_public_name() -> None:
    imported: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(TEXT)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            imported.setdefault(node.module, set()).update(alias.name for alias in node.names)
    assert imported["halo_lang"] == set(halo_lang.__all__)
    assert imported["halo_lang.replay"] == set(halo_lang.replay.__all__)
    for name in (*halo_lang.__all__, *halo_lang.replay.__all__):
        assert len(re.findall(rf"\b{name}\b", TEXT)) > 1, f"{name} is imported and not used"


@pytest.mark.parametrize("kind", [HaloRuntime, Program, ProgramPlan, RunResult, ReadRecording, RecordedCall, Recorder])
def test_the_sample_uses_every_public_member(kind: type) -> None:
    members = [*vars(kind), *getattr(kind, "__slots__", ()), *getattr(kind, "__annotations__", ())]
    public = {name for name in members if not name.startswith("_")}
    unused = {name for name in public if not re.search(rf"\.{name}\b", TEXT)}
    assert unused - {"project", "own", "recording", "line"} == set()


def test_what_is_public_stands_in_the_reference() -> None:
    page = (SAMPLE.parents[2] / "docs" / "reference" / "library.md").read_text(encoding="utf-8")
    missing = [
        name
        for name in (*halo_lang.__all__, *halo_lang.replay.__all__)
        if name != "__version__" and not re.search(rf"\b{name}\b", page)
    ]
    assert missing == []


PUBLIC = [(name, getattr(module, name)) for module in (halo_lang, halo_lang.replay) for name in module.__all__]
RECORDS = [(name, kind) for name, kind in PUBLIC if isinstance(kind, type) and issubclass(kind, Record)]


def test_the_reference_lists_the_fields_of_records() -> None:
    page = (SAMPLE.parents[2] / "docs" / "reference" / "library.md").read_text(encoding="utf-8")
    table = page[page.index("## Fields") :].split("\n## ")[0]
    listed = {
        row[1]: tuple(re.findall(r"`(\w+)`", row[2])) for row in re.finditer(r"^\| `(\w+)` \| (.*?) \| ", table, re.M)
    }
    apart = {"RecordedCall", *(name for name, kind in RECORDS if issubclass(kind, halo_lang.Event))}
    assert listed == {name: kind._fields for name, kind in RECORDS if name not in apart}


@pytest.mark.parametrize(("name", "kind"), RECORDS)
def test_the_signature_of_a_record_is_its_fields(name: str, kind: type[Record]) -> None:
    shown = inspect.signature(kind)
    assert tuple(shown.parameters) == kind._fields
    for field, parameter in shown.parameters.items():
        assert parameter.annotation != inspect.Parameter.empty
        assert parameter.default == kind._defaults.get(field, inspect.Parameter.empty)
    assert not hasattr(object.__new__(kind), "__signature__")


def test_dir_lists_the_public_names() -> None:
    assert dir(halo_lang) == sorted(halo_lang.__all__)


def test_public_docstrings_send_nobody_to_a_page_that_is_not_there() -> None:
    said = []
    for name, one in PUBLIC:
        if not isinstance(one, str):
            said.append((name, one.__doc__))
            said += [(f"{name}.{part}", getattr(member, "__doc__", None)) for part, member in vars(one).items()]
    sends = re.compile(r"§|\b\w+\.(md|py)\b|seed page|\bspec\b|docs/")
    assert [where for where, text in said if isinstance(text, str) and sends.search(text)] == []


ERRORS = [(name, kind) for name, kind in PUBLIC if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize(("name", "kind"), ERRORS)
def test_an_error_is_named_as_it_is_imported(name: str, kind: type[Exception]) -> None:
    assert f"{kind.__module__}.{kind.__qualname__}" == f"halo_lang.{name}"


@pytest.mark.parametrize(
    "error",
    [
        halo_lang.HaloError("CONFIG", "wrong"),
        halo_lang.ToolError("broken", "DENIED"),
        halo_lang.AttemptFailed("MODEL_TIMEOUT", "late", retry=True, billed=False, retry_after_s=2.0),
        halo_lang.KeepingError("full"),
        halo_lang.RunUnknown("a"),
        halo_lang.RunConflict("b"),
        halo_lang.LoopLimitError("LOOP_LIMIT", "again", HaloRuntime().load(loads("pipeline P():\n  1\n")).run_sync()),
    ],
)
def test_an_error_can_go_to_another_process(error: Exception) -> None:
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), vars(there)) == (type(error), str(error), vars(error))


def test_user_code_type_checks_strictly(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(TEXT)
    (tmp_path / "test_user.py").write_text(PLUGIN)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "user.py", "test_user.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize(
    "wrong",
    [
        "HaloRuntime().load('a.halo')",
        "HaloRuntime(on_print=lambda: None)",
        "HaloRuntime().run_sync(run_id=3)",
        "load(3)",
        "HaloRuntime(on_approval=lambda call: True)",
    ],
)
def test_wrong_code_does_not(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "user.py").write_text(f"from halo_lang import HaloRuntime, load\n{wrong}\n")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path.parent / "cache"), "user.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert checked.returncode == 1, checked.stdout + checked.stderr


async def test_the_sample_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    show: list[str] = []
    result = await user_code.main(str(tmp_path), show)
    assert result.output == 'ordered: {"item":"pear","count":1,"by":"Ada"}'
    assert "True completed None None" in show
    assert any(line.startswith("agent Clerk.order ()") for line in show)
    assert capfd.readouterr() == ("", "")


def test_its_plain_part_runs() -> None:
    program = loads(user_code.TEXT, providers={"Shop": user_code.Shop})
    assert user_code.plain(program) == "Clerk.order"
