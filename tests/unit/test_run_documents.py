"""The documents of runs, resumes, replays and of the list of paused runs are as their schemas say (cli.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from inside import Commands, halo

__all__ = ["halo"]

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
TEXT = """\
tool Files : Workspace("./notes", write: true)
pipeline P(x: Any) -> Result:
  x
    |> Files.write(path: "a.md", content: "{{x}}")
    |> System.Print()
    |* { Ask, Wait }
pipeline Ask(x: Any) -> Result:
  x
    |! yield("Keep {{x}}?", [x], 1h) as answer
pipeline Wait(x: Any) -> Result:
  x
    ~> listen(Some.Event)
"""
NOBODY = "00000000-0000-0000-0000-000000000000"


def schema(name: str) -> Draft202012Validator:
    contents = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.glob("*.json")}
    registry: Registry[Any] = Registry().with_resources(
        (file, Resource.from_contents(content)) for file, content in contents.items()
    )
    Draft202012Validator.check_schema(contents[f"{name}.schema.json"])
    return Draft202012Validator(contents[f"{name}.schema.json"], registry=registry)


def paused(halo: Commands) -> tuple[str, dict[str, Any]]:
    halo.write("t.halo", TEXT)
    run_id, said = halo.begun("t.halo", "--pipeline", "P", "x=1")
    return run_id, said.document


def test_a_run_that_pauses_is_listed_resumed_and_replayed(halo: Commands) -> None:
    run_id, document = paused(halo)
    schema("run").validate(document)
    assert [wait["kind"] for wait in document["waits"]] == ["yield", "listen"]
    listed = halo("runs", "--json").document
    schema("runs").validate(listed)
    assert listed["runs"][0]["waits"] == document["waits"]
    schema("replay").validate(halo("replay", "t.halo", run_id, "--json").document)
    halo("resume", run_id, "--yes", "--wait", document["waits"][0]["id"])
    resumed = halo("resume", run_id, "--event", "Some.Event=1", "--json").document
    schema("run").validate(resumed)
    assert resumed["status"] == "completed"
    halo.write("t.halo", TEXT.replace('content: "{{x}}"', 'content: "x"').replace("Some.Event", "Other.Event"))
    said = halo("replay", "t.halo", run_id, "--json")
    schema("replay").validate(said.document)
    assert (said.code, said.document["same"], said.document["error"]["code"]) == (1, False, "REPLAY_MISMATCH")
    assert {note["kind"] for note in said.document["notes"]} == {"asked", "unused"}


def test_a_resume_that_is_refused_has_a_document_that_says_why(halo: Commands) -> None:
    run_id, _ = paused(halo)

    def code_of(*words: str) -> str:
        said = halo("resume", *words, "--json")
        assert said.code == 1
        schema("run").validate(said.document)
        assert (said.document["status"], said.document["runId"]) == ("failed", None)
        assert said.err.startswith("error: ")
        return str(said.document["error"]["code"])

    assert code_of(NOBODY, "--yes") == "RECORDING_INVALID"
    assert code_of("no-id", "--yes") == "RECORDING_INVALID"
    halo.write("t.halo", TEXT.replace("Keep", "Really keep"))
    assert code_of(run_id, "--event", "Some.Event=1") == "PROGRAM_CHANGED"
    halo.write("t.halo", TEXT)
    halo("resume", run_id, "--event", "Some.Event=1")
    halo("resume", run_id, "--yes")
    assert code_of(run_id, "--yes") == "RESUME_CONFLICT"
    assert halo("resume", run_id, "--yes", "--no", "--json").out == ""  # wrong usage is no end of a run


@pytest.mark.parametrize(
    ("change", "code"),
    [(lambda text: text.replace("pipeline P", "pipeline Q"), "REPLAY_MISMATCH"), (lambda text: "tool", None)],
)
def test_a_replay_that_is_refused_has_a_document_that_says_why(halo: Commands, change: Any, code: str | None) -> None:
    run_id, _ = paused(halo)
    halo.write("t.halo", change(TEXT))
    said = halo("replay", "t.halo", run_id, "--json")
    schema("replay").validate(said.document)
    assert (said.code, said.document["same"], said.document["recorded"]) == (1, False, None)
    assert (said.document["error"] or {}).get("code") == code


def test_a_recording_that_cannot_be_read_is_in_the_documents(halo: Commands) -> None:
    run_id, _ = paused(halo)
    for folder in ("recordings", "runs"):
        path = halo.folder / ".halo" / folder / f"{run_id}.jsonl"
        path.write_bytes(b"damaged\n")
    said = halo("replay", "t.halo", run_id, "--json")
    schema("replay").validate(said.document)
    assert said.document["error"]["code"] == "RECORDING_INVALID"
    said = halo("runs", "--json")
    schema("runs").validate(said.document)
    assert said.document["runs"][0]["status"] == "damaged"
