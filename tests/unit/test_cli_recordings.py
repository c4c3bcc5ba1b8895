"""`halo recordings`: lists, shows, exports and removes recordings (runs.md §3)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from halo_lang.boundary.call import Answer, Call, ToolUse, Usage
from halo_lang.boundary.recording import encoded
from halo_lang.cli.recorded import RECORDINGS
from halo_lang.doors.folder import AppendFile, file_of
from inside import Commands, halo
from kept_runs import World, begin
from recorded import RUN

__all__ = ["halo"]

TEXT = """\
policy Hide : Redact(email)
tool Files : Workspace("./notes", write: true)
agent A [openai/gpt-4o]
  equips Files
  requires Hide
pipeline P(x: Any) -> Result:
  x
    |* each(i in [1]) => A.work("Write to {{x}}.", tools: [Files])
    |> System.Print("sent")
"""


def agent(asked: Call) -> Answer:
    assert asked.request is not None
    if asked.request.messages[-1].role == "tool":
        return Answer("for a@b.org", usage=Usage(10, 2), cost=12_300_000)
    uses = (
        ToolUse("c0", "Files_read", {"path": "a.md"}),
        ToolUse("c1", "Files_nothing", {}),
        ToolUse("c2", "Files_read", None, "{"),
    )
    return Answer("", tool_uses=uses, cost=1)


def kept(halo: Commands, text: str = TEXT, **how: Any) -> None:
    """A recording of the id `RUN`."""
    halo.write("t.halo", text)
    begin(text, World(agent), {"x": "c@d.org"}, run_id=RUN, **how)


def damage(run_id: str = RUN) -> Path:
    path = Path(file_of(RECORDINGS, run_id))
    path.write_bytes(path.read_bytes() + b"damaged\n")
    return path


def test_they_are_listed_with_how_their_runs_ended(halo: Commands) -> None:
    assert halo("recordings") == (0, "", "there are no recordings here\n")
    assert halo("recordings", "-q") == (0, "", "")
    assert halo("recordings", "--json").document == {"recordings": []}
    kept(halo)
    other = begin('pipeline P(x: Any) -> Result:\n  x\n    |! yield("Go?")\n', World()).run_id
    rows = halo("recordings").out.splitlines()
    assert sorted(row.split()[:4] for row in rows) == sorted(
        [[RUN, "completed", "P", "(t.halo)"], [other, "paused", "P", "(t.halo)"]]
    )
    found = halo("recordings", "list", "--json").document["recordings"]
    assert {(one["runId"], one["status"], one["pipeline"], one["file"]) for one in found} == {
        (RUN, "completed", "P", "t.halo"),
        (other, "paused", "P", "t.halo"),
    }


def test_one_that_is_written_cut_off_or_damaged_is_listed_as_such(halo: Commands) -> None:
    kept(halo)
    path = Path(file_of(RECORDINGS, RUN))
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert halo("recordings", "--json").document["recordings"][0]["status"] == "cut off"
    writing = AppendFile(str(path), old=True)
    writing.lock()
    assert halo("recordings", "--json").document["recordings"][0]["status"] == "running"
    refused = halo("recordings", "rm", RUN)
    assert (refused.code, refused.err) == (1, f"error: the run {RUN} is still under way\n")
    writing.close()
    damage()
    (listed,) = halo("recordings", "--json").document["recordings"]
    assert listed == {"runId": RUN, "status": "damaged", "message": f"{path}: line 5 is no JSON"}
    path.write_bytes(b"")
    assert "is empty" in halo("recordings").out
    os.unlink(path)
    os.mkfifo(path)
    assert halo("recordings") == (0, "", "there are no recordings here\n")


def test_one_is_shown_call_by_call(halo: Commands) -> None:
    kept(halo)
    said = halo("recordings", "show", RUN)
    rows = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert rows[0].startswith("P (t.halo)  20")
    assert rows[1:] == [
        'arguments: {"x":"c@d.org"}',
        '  agent    A.work [0] → ""  ($0.0000)',
        '           asks for Files.read {"path":"a.md"}',
        "           asks for Files_nothing {}",
        '           asks for Files.read "{"',
        '  tool     Files.read [0, 0] {"path":"a.md"} → "done by Files.read"',
        '  agent    A.work [0] → "for a@b.org"  ($0.0123)',
        'completed: "sent"',
    ]
    document = halo("recordings", "show", RUN, "--json").document
    assert document["lines"] == [json.loads(line) for line in Path(file_of(RECORDINGS, RUN)).read_text().splitlines()]


def test_what_was_said_is_shown_and_not_obeyed(halo: Commands) -> None:
    halo.write("t.halo", "pipeline P(x: Any) -> Result:\n  x\n    |> System.Publish()\n")
    begin("pipeline P(x: Any) -> Result:\n  x\n    |> System.Publish()\n", World(), {"x": "\x1b[2J"}, run_id=RUN)
    assert "\x1b" not in halo("recordings", "show", RUN).out


def test_an_export_is_the_recording_and_redacted_holds_nothing_that_the_rules_match(halo: Commands) -> None:
    kept(halo)
    whole = Path(file_of(RECORDINGS, RUN)).read_text()
    assert "c@d.org" in whole
    assert halo("recordings", "export", RUN) == (0, whole, "")
    redacted = halo("recordings", "export", RUN, "--redact")
    assert redacted.code == 0
    assert "@" not in redacted.out
    assert [json.loads(line)["type"] for line in redacted.out.splitlines()] == ["start", *["call"] * 3, "finish"]
    assert json.loads(redacted.out.splitlines()[0])["args"] == {"x": "[email]"}
    halo.write("t.halo", TEXT.replace("policy Hide : Redact(email)\n", "").replace("  requires Hide\n", ""))
    refused = halo("recordings", "export", RUN, "--redact")
    assert (refused.code, refused.out, refused.err) == (1, "", "error: t.halo has no Redact rule to redact by\n")
    os.unlink("t.halo")
    assert "t.halo: there is no such file" in halo("recordings", "export", RUN, "--redact").err


def test_an_export_is_utf8_and_whole_whatever_is_in_it(halo: Commands) -> None:
    kept(halo)
    path = Path(file_of(RECORDINGS, RUN))
    odd = {"type": "note", "text": "é\u2028\ud800\U0001f600"}
    path.write_bytes(path.read_bytes() + encoded(odd) + b'{"torn')
    said = halo("recordings", "export", RUN)
    assert json.loads(said.out.splitlines()[-1] if "\u2028" not in said.out else said.out.split("\n")[-2]) == odd
    assert "torn" not in said.out


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("runId", "../../../outside"),
        ("pipeline", 'P"\n\npipeline Evil(x: Any) -> Result:\n  x'),
        ("file", "../elsewhere.halo"),
        ("file", "t.halo\x00"),
        ("status", 'completed"\npipeline'),
        ("status", ["completed"]),
    ],
)
def test_a_test_is_made_of_nothing_that_a_stranger_wrote(halo: Commands, field: str, said: Any) -> None:
    kept(halo)
    path = Path(file_of(RECORDINGS, RUN))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (lines[-1] if field == "status" else lines[0])[field] = said
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    before = sorted(halo.folder.parent.rglob("*"))
    made = halo("recordings", "export", RUN, "--test")
    if field == "runId":
        assert made.out == f'\ntest "P as recorded, completed":\n  replay "recordings/{RUN}.jsonl"\n'
        assert set(halo.folder.parent.rglob("*")) - set(before) == {
            halo.folder / "recordings",
            halo.folder / "recordings" / f"{RUN}.jsonl",
        }
    else:
        assert (made.code, made.out, sorted(halo.folder.parent.rglob("*"))) == (1, "", before)
        assert made.err.startswith("error: ")
        assert (made.err.count("\n"), "itself failed" in made.err) == (1, False)


def test_one_is_removed_unless_its_run_is_paused(halo: Commands) -> None:
    kept(halo)
    assert halo("recordings", "rm", RUN) == (0, "", "")
    assert not Path(file_of(RECORDINGS, RUN)).exists()
    begin('pipeline P(x: Any) -> Result:\n  x\n    |! yield("Go?")\n', World(), run_id=RUN)
    refused = halo("recordings", "rm", RUN)
    way_out = "end it with `halo resume`, or give it up with `halo runs rm`"
    assert (refused.code, refused.err) == (1, f"error: the run {RUN} is paused: {way_out}\n")
    assert Path(file_of(RECORDINGS, RUN)).exists()


@pytest.mark.parametrize("part", [".halo", ".halo/recordings"])
def test_nothing_is_read_or_removed_behind_a_link(halo: Commands, part: str) -> None:
    kept(halo)
    begin('pipeline P(x: Any) -> Result:\n  x\n    |! yield("Go?")\n', World(), run_id=RUN[:-1] + "0")
    os.rename(part, "elsewhere")
    Path(part).symlink_to("elsewhere")
    before = sorted(Path("elsewhere").rglob("*.jsonl"))
    commands = [["recordings"], ["replay", "t.halo", RUN], ["replay", "t.halo", "--all"]]
    commands += [["recordings", action, RUN] for action in ("show", "export", "rm")]
    if part == ".halo":
        commands += [["runs"], ["resume", RUN, "--yes"], ["signal", RUN, "Some.Event", "1"]]
    for command in commands:
        said = halo(*command)
        assert (said.code, said.out) == (1, "")
        link = halo.folder / part
        assert said.err == f"error: {link}: is no folder of its own (a link?), so nothing is kept there\n"
    assert sorted(Path("elsewhere").rglob("*.jsonl")) == before


@pytest.mark.parametrize("action", ["show", "export", "rm"])
def test_what_is_no_recording_is_an_error(halo: Commands, action: str) -> None:
    missing = halo("recordings", action, RUN)
    assert (missing.code, missing.out) == (1, "")
    assert f"there is no recording of the run {RUN}; `halo recordings` lists them" in missing.err
    for path in ("../../t", "/etc/passwd", f"../recordings/{RUN}"):
        refused = halo("recordings", action, path)
        assert (refused.code, refused.out) == (1, "")
        assert f"RECORDING_INVALID: `{path}` is no run id" in refused.err
    assert halo("recordings", action).code == 2


@pytest.mark.parametrize("action", ["show", "export"])
def test_a_damaged_one_names_its_line(halo: Commands, action: str) -> None:
    kept(halo)
    path = Path(file_of(RECORDINGS, RUN))
    lines = path.read_bytes().splitlines(keepends=True)
    for broken in (b"[1]\n", b"\x00\n"):
        path.write_bytes(b"".join([*lines[:2], broken, *lines[3:]]))
        said = halo("recordings", action, RUN)
        assert said.code == 1
        assert "RECORDING_INVALID: " in said.err
        assert "line 3 " in said.err
    deep = b'{"type":"call","kind":"tool","target":"T.m","scope":[],"value":' + b"[" * 900 + b"]" * 900 + b"}\n"
    path.write_bytes(b"".join([*lines[:2], deep, *lines[3:]]))
    said = halo("recordings", action, RUN)
    # As deep as may just not be read: that hangs on how deep the reader itself stands.
    assert said.code == 0 or "RECORDING_INVALID: " in said.err


def test_wrong_usage_is_said(halo: Commands) -> None:
    assert halo("recordings", "list", RUN).code == 2
    assert halo("recordings", "burn").code == 2
