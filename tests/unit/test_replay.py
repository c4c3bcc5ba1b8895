"""Replay: the same run with another source of answers, what it notes and refuses, and how it compares (runs.md §4)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from halo_lang.app.replaying import ROW, ROWS, difference
from halo_lang.boundary.call import Answer, Call, ToolUse, failed
from halo_lang.boundary.host import Handlers, Preview
from halo_lang.boundary.recording import encoded, finish_line
from inside import Commands, Said, halo
from kept_runs import Given, Watching, World, begin, end_of, go_on, replayed
from recorded import RUN

__all__ = ["halo"]

AGENT = "agent A [openai/gpt-4o]\n"
FILES = 'tool Files : Workspace("./notes", write: true)\n'


def pipeline(*stages: str, more: str = "") -> str:
    return f"{AGENT}{FILES}{more}pipeline P(x: Any) -> Result:\n  x\n" + "".join(f"    {stage}\n" for stage in stages)


ONE = pipeline('|> A.one("Say {{x}}.") as one', '|> Files.write(path: "a.md", content: "{{one}}")', "|> System.Print()")


@pytest.fixture(autouse=True)
def working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(text: str, world: World | None = None, **how: Any) -> None:
    """Records a run under the id `RUN`."""
    begin(text, world or World(), run_id=RUN, **how)


def kinds(notes: Iterable[Any]) -> list[str]:
    return [note.kind for note in notes]


def seed_form(*lines: dict[str, Any], finish: dict[str, Any] | None = None) -> None:
    """Writes a recording as the first version of the recorder did: no version, no scopes, no questions."""
    folder = Path(".halo/recordings")
    folder.mkdir(parents=True)
    start = {"type": "start", "runId": RUN, "pipeline": "P", "args": {"x": "in"}}
    ended = finish or {"type": "finish", "status": "completed", "output": "done"}
    with open(folder / f"{RUN}.jsonl", "wb") as file:
        for line in (start, *({"type": "call", **line} for line in lines), ended):
            file.write(encoded(line))


# The same end ----------------------------------------------------------------------------------------------------


def test_a_replay_prints_what_the_run_printed_and_asks_nobody() -> None:
    world, first, again = World(), Watching(), Watching()
    begin(ONE, world, run_id=RUN, watcher=first)
    made = list(world.made)
    result, comparison = replayed(ONE, RUN, watcher=again)
    assert (comparison.same, comparison.notes) == (True, ())
    assert first.shown == again.shown == [("printed", "done by Files.write")]
    assert world.made == made
    assert result.run_id == RUN
    assert result.context["meta"] == {"pipeline": "P", "runId": RUN, "halted": None}


def test_a_replay_neither_publishes_nor_waits_and_has_the_recorded_time() -> None:
    text = pipeline("|> System.Wait(2d)", "|> System.Now() as now", "|> System.Publish(now)", '|> System.Log("logged")')
    first, again = Watching(), Watching()
    ended = begin(text, World(), run_id=RUN, watcher=first)
    assert first.shown == [("published", ended.context["data"]["now"]), ("logged", "logged")]  # type: ignore[index]
    result, comparison = replayed(text, RUN, watcher=again)
    assert comparison.same
    assert end_of(result) == end_of(ended)
    assert again.shown == [("logged", "logged")]


@pytest.mark.parametrize(
    ("stages", "status"),
    [
        (('|> A.one("Say.")', '|? (context.current == "no")', "|> A.two()"), "halted"),
        (('|> System.Fail("as it should")',), "failed"),
        (("|> A.fails()", "|> A.two()"), "failed"),
        (('|> Files.read(path: "missing")',), "failed"),
        (('|> A.one("Say.")', '|! yield("Go?")', "|> A.two()"), "paused"),
        (('|* { A.one("Say."), A.fails(), A.three() }',), "failed"),
    ],
)
def test_however_a_run_ended_its_replay_ends_so(stages: tuple[str, ...], status: str) -> None:
    def agent(asked: Call) -> Any:
        return failed("MODEL_ERROR", "out of ideas") if asked.target == "A.fails" else "said"

    def tool(target: str, args: Any) -> Any:
        raise _tool_error("there is no such file")

    text = pipeline(*stages)
    ended = begin(text, World(agent, tool), run_id=RUN)
    assert ended.status == status
    result, comparison = replayed(text, RUN)
    assert (comparison.same, comparison.notes) == (True, ())
    assert end_of(result) == end_of(ended)


def _tool_error(message: str) -> Exception:
    from halo_lang.boundary.host import ToolError

    return ToolError(message)


def test_a_refusal_is_given_again_and_nothing_is_spent_twice() -> None:
    def agent(asked: Call) -> Answer:
        if asked.target == "A.two":
            return failed("SPEND_LIMIT", "the limit of $0.10 (policy Cap) does not leave enough")
        return Answer("x", cost=99_000_000)

    text = pipeline("|> A.one()", "|> A.two()")
    ended = begin(text, World(agent), run_id=RUN)
    result, comparison = replayed(text, RUN)
    assert comparison.same
    assert result.error == ended.error
    assert (result.error and result.error.code, result.account.cost) == ("SPEND_LIMIT", 99_000_000)


def test_a_stopped_run_and_one_without_an_end_are_replayed_as_far_as_they_went(tmp_path: Path) -> None:
    record(ONE)
    path = Path(f".halo/recordings/{RUN}.jsonl")
    whole = path.read_bytes().splitlines(keepends=True)
    for lines, says in (
        (whole[:1], "has no end"),
        (whole[:2], "has no end"),
        ([*whole[:2], encoded(finish_line("cancelled", None, None))], "was cancelled"),
    ):
        path.write_bytes(b"".join(lines))
        result, comparison = replayed(ONE, RUN)
        assert (result.status, comparison.same, kinds(comparison.notes)) == ("cancelled", True, ["ended"])
        assert says in comparison.notes[0].message
    path.write_bytes(b"".join(whole[:-1]))
    result, comparison = replayed(ONE, RUN)
    assert (result.status, comparison.recorded["status"], kinds(comparison.notes)) == (
        "completed",
        "cancelled",
        ["ended"],
    )
    assert comparison.same


def test_a_run_that_was_stopped_at_a_question_is_not_taken_as_approved() -> None:
    text = pipeline("|> A.one()", '|! yield("Go?")', "|> A.two()")
    record(text)
    path = Path(f".halo/recordings/{RUN}.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], encoded(finish_line("cancelled", None, None))]))
    result, comparison = replayed(text, RUN)
    assert (result.status, kinds(comparison.notes), result.calls) == ("cancelled", ["ended"], {"A.one": 1})


def test_a_torn_last_line_is_left_out_with_a_note_wherever_it_was_cut() -> None:
    record(ONE)
    path = Path(f".halo/recordings/{RUN}.jsonl")
    whole = path.read_bytes()
    start_of_last = whole.rfind(b"\n", 0, -1) + 1
    for at in range(start_of_last + 1, len(whole)):
        path.write_bytes(whole[:at])
        result, comparison = replayed(ONE, RUN)
        assert kinds(comparison.notes) == ["torn", "ended"]
        assert (result.output, comparison.same) == ("done by Files.write", True)


# Changed programs ------------------------------------------------------------------------------------------------


def test_another_question_in_the_same_place_is_answered_and_noted_once() -> None:
    record(ONE)
    other = ONE.replace("Say {{x}}.", "Sing {{x}}.").replace("a.md", "b.md")
    _, comparison = replayed(other, RUN)
    assert [(note.kind, note.stage, note.target, note.message) for note in comparison.notes] == [
        ("asked", "1", "A.one", "1 A.one was asked otherwise than recorded"),
        ("asked", "2", "Files.write", "2 Files.write was asked with other arguments than recorded"),
    ]
    assert comparison.same
    _, strict = replayed(other, RUN, strict=True)
    assert not strict.same


def test_a_note_stands_once_for_all_branches() -> None:
    text = pipeline('|* each(i in [1, 2, 3]) => A.say("Say {{i}}.")')
    record(text)
    _, comparison = replayed(text.replace("Say", "Sing"), RUN)
    assert kinds(comparison.notes) == ["asked"]


def test_a_stage_inserted_elsewhere_moves_no_answer() -> None:
    text = pipeline("|> A.one()", '|> A.two("Two.")', "|> A.three()")
    record(text, World(lambda asked: asked.target))
    with_gate = pipeline(
        "|> A.one()", "|? (1 < 2)", '|> A.two("Two.")', '|> System.Print("x")', "|> A.three(context.data.A.two)"
    )
    result, comparison = replayed(with_gate, RUN)
    assert (result.output, comparison.same, comparison.notes) == ("A.three", True, ())


def test_answers_that_are_not_used_are_counted() -> None:
    record(pipeline("|> A.one()", "|> A.two()", "|> A.two()"))
    result, comparison = replayed(pipeline("|> A.one()"), RUN)
    assert result.status == "completed"
    assert [note.message for note in comparison.notes] == ["2 recorded answers were not used: A.two"]


MISMATCHES = {
    "a new stage": (
        ("|> A.one()", '|> A.new("Sing.")'),
        '2|the pipeline or its input changed: stage 2 asks for A.new "Sing.\\n\\nsaid by A.one", and the recording has '
        "no answer to that; it has none left of that kind",
    ),
    "one call more": (
        ("|> A.one()", "|> A.one()"),
        '2|the pipeline or its input changed: stage 2 asks for A.one "Your task: one.\\n\\nsaid by A.one", and the '
        "recording has no answer to that; it has none left of that kind",
    ),
    "another tool": (
        ("|> A.one()", '|> Files.read(path: "b.md")'),
        '2|the pipeline or its input changed: stage 2 asks for Files.read {"path":"b.md"}, and the recording has no '
        "answer to that; what it has left of that kind is for Files.write",
    ),
    "an event": (
        ("|> A.one()", "~> listen(Slack.Reaction)"),
        "2|the pipeline or its input changed: stage 2 asks for the event Slack.Reaction, and the recording has no "
        "answer to that; it has none left of that kind",
    ),
    "a branch elsewhere": (
        ("|> A.one()", '|* { Files.write(path: "c.md", content: "c") }'),
        '2|the pipeline or its input changed: stage 2 asks for Files.write {"path":"c.md","content":"c"}, and the '
        "recording has no answer to that; line 3 has an answer of Files.write to another question",
    ),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_what_the_recording_cannot_answer_is_named_with_the_nearest_it_has(name: str) -> None:
    stages, said = MISMATCHES[name]
    record(pipeline("|> A.one()", '|> Files.write(path: "a.md", content: "x")'))
    result, comparison = replayed(pipeline(*stages), RUN)
    assert (result.status, comparison.same) == ("failed", False)
    assert result.error is not None
    assert result.error.code == "REPLAY_MISMATCH"
    assert f"{result.error.stage}|{result.error.message}" == said


def test_what_is_asked_is_shown_shortly() -> None:
    record(pipeline("|> A.one()"))
    result, _ = replayed(
        pipeline('|> Files.write(path: "a", content: "{{x}}")').replace('"{{x}}"', f'"{"x" * 5000}"'), RUN
    )
    assert result.error is not None
    assert len(result.error.message) < 500


CHOOSES = (
    AGENT.replace("]", ", max_steps: 2]")
    + "  equips Files\n"
    + FILES
    + 'pipeline P(x: Any) -> Result:\n  x\n    |> A.work("Go on with {{x}}.", tools: [Files])\n'
)


def chooser(*uses: tuple[str, dict[str, Any]]) -> World:
    """A model that asks for calls, then says what came of them."""

    def agent(asked: Call) -> Answer:
        assert asked.request is not None
        last = asked.request.messages[-1]
        if last.role == "tool":
            return Answer("".join(part if isinstance(part, str) else part.text for part in last.parts))
        return Answer("", tool_uses=tuple(ToolUse(f"c{at}", name, args) for at, (name, args) in enumerate(uses)))

    return World(agent)


def test_a_call_that_an_agent_chose_gets_the_mismatch_as_a_tool_error(halo: Commands) -> None:
    """With the models live the model chooses otherwise: the mismatch goes back to it, and it goes on."""
    record(CHOOSES, chooser(("Files_read", {"path": "a.md"})))
    halo.write("t.halo", CHOOSES)
    other = chooser(("Files_read", {"path": "b.md"}))
    with other.there():
        said = _with_keys(halo, "replay", "t.halo", RUN, "--live-models", "--json")
    document = said.document
    assert document["status"] == "completed"
    assert document["output"].startswith(
        "error REPLAY_MISMATCH: the pipeline or its input changed: stage 1 asks for Files.read"
    )
    assert document["output"].endswith("line 3 has an answer of Files.read to another question")
    assert said.code == 1
    assert other.targets() == ["A.work", "A.work"]


def _with_keys(halo: Commands, *words: str) -> Said:
    os.environ["OPENAI_API_KEY"] = "sk-not-a-real-key-0123456789"
    try:
        return halo(*words)
    finally:
        del os.environ["OPENAI_API_KEY"]


def test_arguments_that_do_not_fit_any_more_are_a_mismatch(halo: Commands) -> None:
    record(ONE)
    halo.write("t.halo", ONE.replace("x: Any", "x: Number"))
    said = halo("replay", "t.halo", RUN)
    assert said.code == 1
    assert said.err.startswith("error: REPLAY_MISMATCH: the pipeline or its input changed: ")
    halo.write("t.halo", ONE.replace("pipeline P(", "pipeline Q("))
    said = halo("replay", "t.halo", RUN)
    assert said.err == "error: REPLAY_MISMATCH: t.halo has no pipeline P, which was recorded\n"


# Pauses ----------------------------------------------------------------------------------------------------------

ASKS = pipeline("|> A.one()", '|! yield("Go?") as go', "|> A.two()")


def test_a_replay_pauses_only_where_the_run_did() -> None:
    paused = begin(ASKS, World(), run_id=RUN)
    result, comparison = replayed(ASKS, RUN)
    assert (result.status, comparison.same, [wait["id"] for wait in result.waits]) == (
        "paused",
        True,
        [paused.waits[0]["id"]],
    )
    result, comparison = replayed(pipeline("|> A.one()", "~> listen(Some.Event)"), RUN)
    assert result.error is not None
    assert (result.error.code, comparison.same) == ("REPLAY_MISMATCH", False)
    result, comparison = replayed(ASKS.replace("Go?", "Stay?"), RUN)
    assert (result.status, comparison.same) == ("paused", False)  # it waits for something else


def test_a_pause_in_another_branch_is_not_the_recorded_one() -> None:
    text = pipeline("|* { P2(), A.one() }", more='pipeline P2(x: Any) -> Result:\n  x\n    |! yield("Go?")\n')
    begin(text, World(), run_id=RUN)
    moved = text.replace("{ P2(), A.one() }", "{ A.one(), P2() }")
    result, _ = replayed(moved, RUN)
    assert result.error is not None
    assert result.error.code == "REPLAY_MISMATCH"


def test_a_run_that_went_on_after_its_pause_and_has_no_end_does_not_pause_again(tmp_path: Path) -> None:
    world = World()
    begin(ASKS, world, run_id=RUN)
    go_on(ASKS, RUN, world, Given("yes"))
    path = Path(f".halo/recordings/{RUN}.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    result, comparison = replayed(ASKS, RUN)
    assert (result.status, comparison.same, kinds(comparison.notes)) == ("cancelled", True, ["ended"])
    assert result.calls == {"A.one": 1, "A.two": 1}


# Recordings of the seed's form -----------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", ["x", [1], [{}], [{"id": "a", "kind": "?", "target": "t", "stage": "1", "args": {}}]])
def test_waits_that_are_damaged_name_their_line(halo: Commands, waits: Any) -> None:
    text = 'pipeline P(x: Any) -> Result:\n  x\n    |! yield("Go?")\n'
    record(text)
    halo.write("t.halo", text)
    path = Path(f".halo/recordings/{RUN}.jsonl")
    start, finish = path.read_text().splitlines()
    path.write_text(f"{start}\n{json.dumps({**json.loads(finish), 'waits': waits})}\n")
    said = halo("replay", "t.halo", RUN)
    assert (said.code, said.out) == (1, "")
    assert said.err == f"error: RECORDING_INVALID: {path}: line 2 says nothing sensible of what the run waits for\n"


def test_without_scopes_each_target_gets_its_answers_in_order() -> None:
    seed_form(
        {"kind": "agent", "target": "A.say", "value": "one"},
        {"kind": "tool", "target": "Files.write", "value": {"path": "a.md"}},
        {"kind": "agent", "target": "A.say", "value": "done"},
    )
    text = pipeline('|> A.say("First.")', '|> Files.write(path: "a.md", content: "x")', '|> A.say("Second.")')
    result, comparison = replayed(text, RUN)
    assert (result.output, comparison.same, comparison.notes) == ("done", True, ())


def test_without_any_yield_each_is_approved_and_said_once() -> None:
    seed_form({"kind": "agent", "target": "A.say", "value": "done"})
    text = pipeline('|! yield("One?") as one', '|! yield("Two?")', "|? (one.approved == true)", "|> A.say()")
    result, comparison = replayed(text, RUN)
    assert (result.output, comparison.same) == ("done", True)
    assert [note.message for note in comparison.notes] == [
        "the recording keeps no answers to yields: each is taken as approved"
    ]


def test_with_a_yield_none_is_approved_unasked() -> None:
    seed_form({"kind": "yield", "target": "yield", "value": {"approved": True}})
    result, _ = replayed(pipeline('|! yield("One?")', '|! yield("Two?")'), RUN)
    assert result.error is not None
    assert (result.error.code, result.error.stage) == ("REPLAY_MISMATCH", "2")


def test_a_pause_without_its_waits_is_one_all_the_same() -> None:
    seed_form({"kind": "agent", "target": "A.one", "value": "x"}, finish={"type": "finish", "status": "paused"})
    result, _ = replayed(ASKS, RUN)
    assert (result.status, [wait["kind"] for wait in result.waits]) == ("paused", ["yield"])


def test_tool_calls_of_the_seeds_form_find_their_answers() -> None:
    seed_form(
        {
            "kind": "agent",
            "target": "A.work",
            "value": "",
            "toolCalls": [{"target": "Files.read", "args": {"path": "a"}}],
        },
        {"kind": "tool", "target": "Files.read", "value": "alpha"},
        {"kind": "agent", "target": "A.work", "value": "done"},
    )
    result, comparison = replayed(CHOOSES, RUN)
    assert (result.output, comparison.same, result.calls) == ("done", True, {"A.work": 1, "Files.read": 1})


# The command -----------------------------------------------------------------------------------------------------


def test_the_command_says_one_line_and_its_exit_code(halo: Commands) -> None:
    record(ONE)
    halo.write("t.halo", ONE)
    said = halo("replay", "t.halo", RUN)
    assert said == (0, "done by Files.write\n", f"✓ Same output as the recorded run {RUN}\n")
    assert halo("replay", "t.halo", RUN, "-q") == (0, "done by Files.write\n", "")
    halo.write("t.halo", ONE.replace("System.Print()", "System.Print([1, {a: 2}])"))
    said = halo("replay", "t.halo", RUN)
    assert (said.code, said.out) == (1, '[1,{"a":2}]\n')
    assert said.err == (
        f'≠ Different from the recorded run {RUN}: it ended with "done by Files.write"\n'
        '- output: "done by Files.write"\n+ output: [1,{"a":2}]\n'
    )


def test_the_first_place_where_the_two_went_apart_is_named(halo: Commands) -> None:
    record(ONE)
    halo.write(
        "t.halo", ONE.replace("Say {{x}}.", "Sing {{x}}.").replace("|> System.Print()", '|> System.Print("{{one}}!")')
    )
    said = halo("replay", "t.halo", RUN)
    assert said.err == (
        "note: 1 A.one was asked otherwise than recorded\n"
        f'≠ Different from the recorded run {RUN}: it ended with "done by Files.write"\n'
        "the two went apart at stage 1, A.one\n"
        "--- recorded\n+++ now\n@@ -1 +1 @@\n-done by Files.write\n+said by A.one!\n"
    )
    halo.write("t.halo", ONE.replace("|> System.Print()", "|> A.new()"))
    said = halo("replay", "t.halo", RUN)
    assert "the two went apart at stage 3\n" in said.err
    assert "t.halo:7:5: error REPLAY_MISMATCH: " in said.err


def test_objects_are_compared_by_path(halo: Commands) -> None:
    text = pipeline("|> System.Print({a: [1, 2], b: {c: true}})")
    record(text)
    halo.write("t.halo", text.replace("[1, 2]", "[1, 3, 4]").replace("c: true", "d: null"))
    said = halo("replay", "t.halo", RUN)
    assert said.err.splitlines()[-5:] == ["- a[1]: 2", "+ a[1]: 3", "+ a[2]: 4", "- b.c: true", "+ b.d: null"]


def test_a_difference_is_shown_within_bounds_however_much_there_is() -> None:
    def lines(count: int, *more: str) -> str:
        return "\n".join((*(f"line {at}" for at in range(count)), *more))

    assert difference(lines(3, "a"), lines(3, "b"))[-2:] == ["-a", "+b"]
    assert difference(lines(100_000, "a"), lines(100_000, "b")) == [
        "the first 99997 lines are the same",
        *("--- recorded", "+++ now", "@@ -1,4 +1,4 @@"),
        *(f" line {at}" for at in range(99_997, 100_000)),
        *("-a", "+b"),
    ]
    assert difference(lines(100_000), lines(100_001))[-1] == "+line 100000"
    assert len(difference(lines(50_000), lines(50_000).replace("line", "row"))) == ROWS + 1
    assert max(map(len, difference("x" * 10_000_000, "y" * 10_000_000))) == ROW + 1
    assert difference([1] * 1_000_000, [1] * 999_999 + [True]) == ["- [999999]: 1", "+ [999999]: true"]


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), ("1", 1), (0.0, -0.0), (False, 0), (None, "")])
def test_what_is_written_otherwise_is_a_difference(before: Any, after: Any) -> None:
    assert difference({"a": before}, {"a": after}) != []
    assert difference({"a": before}, {"a": before}) == []


def test_strict_makes_a_note_a_difference(halo: Commands) -> None:
    record(ONE)
    halo.write("t.halo", ONE.replace("Say", "Sing"))
    assert halo("replay", "t.halo", RUN).code == 0
    said = halo("replay", "t.halo", RUN, "--strict")
    assert said.code == 1
    assert f"≠ Different from the recorded run {RUN}" in said.err


def test_the_document_holds_the_run_and_the_comparison(halo: Commands) -> None:
    record(ONE)
    halo.write("t.halo", ONE.replace("Say", "Sing"))
    said = halo("replay", "t.halo", RUN, "--json")
    document = said.document
    assert (document["same"], document["output"], document["printed"]) == (
        True,
        "done by Files.write",
        ["done by Files.write"],
    )
    assert document["recorded"] == {"status": "completed", "output": "done by Files.write", "error": None}
    assert document["notes"] == [
        {"kind": "asked", "stage": "1", "target": "A.one", "message": "1 A.one was asked otherwise than recorded"}
    ]
    assert document["calls"] == {"A.one": 1, "Files.write": 1}


def test_all_recordings_of_a_file_are_a_regression_suite(halo: Commands) -> None:
    first = begin(ONE, World()).run_id
    begin(ASKS, World(), {"x": 1}, run_id=RUN)
    Path(f".halo/recordings/{RUN}.jsonl").write_text(
        Path(f".halo/recordings/{RUN}.jsonl").read_text().replace('"file":"t.halo"', '"file":"other.halo"')
    )
    broken = begin(ONE, World()).run_id
    path = Path(f".halo/recordings/{broken}.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"value":', b'"value";'))
    halo.write("t.halo", ONE)
    said = halo("replay", "t.halo", "--all")
    rows = sorted(said.out.splitlines())
    assert said.code == 1
    assert rows[0].startswith(f"≠ {broken}  P  RECORDING_INVALID: ")
    assert rows[1] == f"✓ {first}  P"
    assert len(rows) == 2
    path.unlink()
    said = halo("replay", "t.halo", "--all", "--json")
    assert (said.code, said.document) == (
        0,
        {"replays": [{"runId": first, "pipeline": "P", "same": True, "message": ""}]},
    )
    halo.write("t.halo", ONE.replace("System.Print()", 'System.Print("new")'))
    said = halo("replay", "t.halo", "--all")
    assert (said.code, said.out) == (1, f'≠ {first}  P  it ended with "done by Files.write"\n')
    assert halo("replay", "t.halo", "--all", "--strict").code == 1
    nowhere = begin(ONE, World(), run_id=RUN[:-1] + "0").run_id
    path = Path(f".halo/recordings/{nowhere}.jsonl")
    path.write_text(path.read_text().replace('"file":"t.halo"', '"file":"t.halo\\u0000"'))
    for name in ("none.halo", "elsewhere/t.halo"):
        halo.write(name, ONE)
        assert halo("replay", name, "--all") == (0, "", f"there are no recordings of {name}\n")
    os.rename("t.halo", "elsewhere/t.halo")
    assert halo("replay", "elsewhere/t.halo", "--all").out != ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("t.halo",), 2, "say which run to replay, or --all"),
        (("t.halo", RUN, "--all"), 2, "say which run to replay, or --all"),
        (("t.halo", RUN, "--live-models", "--live-tools"), 2, "together replay nothing: that is `halo run`"),
        (("t.halo", RUN), 1, "there is no recording of the run"),
        (("t.halo", "../x"), 1, "RECORDING_INVALID: `../x` is no run id"),
        (("no.halo", RUN), 1, "no.halo: there is no such file"),
        (("t.halo", RUN, "--model", "B=openai/gpt-4o"), 2, "there is no agent `B`"),
    ],
)
def test_wrong_usage_is_said(halo: Commands, words: tuple[str, ...], code: int, said: str) -> None:
    halo.write("t.halo", ONE)
    found = halo("replay", *words)
    assert (found.code, found.out) == (code, "")
    assert said in found.err


def test_models_alone_are_asked_anew(halo: Commands) -> None:
    record(ONE)
    halo.write("t.halo", ONE.replace("Say {{x}}.", "Sing {{x}}."))
    world = World(lambda asked: "new")
    with world.there():
        said = _with_keys(halo, "replay", "t.halo", RUN, "--live-models", "--model", "A=openai/gpt-4o-mini")
    assert world.made == [("A.one", None)]
    assert (said.code, said.out) == (0, "done by Files.write\n")
    assert said.err.splitlines()[0] == "note: 2 Files.write was asked with other arguments than recorded"
    assert not Path("notes").exists()


def test_no_shadow_is_sent_in_a_replay(halo: Commands) -> None:
    async def slow(asked: Call) -> str:
        await asyncio.sleep(asked.target == "A.one")
        return "said"

    text = pipeline('@shadow(A.other()) |> A.one("Say.")')
    world = World(slow)
    record(text, world)
    assert sorted(world.targets()) == ["A.one", "A.other"]
    halo.write("t.halo", text)
    again = World(lambda asked: "said")
    with again.there():
        said = _with_keys(halo, "replay", "t.halo", RUN, "--live-models")
    assert (said.code, again.targets()) == (0, ["A.one"])


ASKING = "policy Ask : ApproveEffects(write)\n" + FILES + "pipeline P(x: Any) -> Result requires Ask:\n  x\n"
ASKING += '    |> Files.write(path: "{{x}}.md", content: "new")\n'
APPROVED = ASKING + "    |> System.Publish()\n"
TWO_WRITES = ASKING + '    |> Files.write(path: "b.md", content: "{{x}}")\n'


def test_tools_alone_are_called_anew_under_the_recorded_approvals(halo: Commands) -> None:
    halo.write("t.halo", APPROVED)
    run_id, said = halo.begun("t.halo", "x=a", "--yes-to", "Files.write")
    assert said.document["status"] == "completed"
    note = Path("notes/a.md")
    assert note.read_text() == "new"
    note.unlink()
    assert halo("replay", "t.halo", run_id).code == 0
    assert not note.exists()
    said = halo("replay", "t.halo", run_id, "--live-tools")
    assert (said.code, said.out) == (0, '{"path":"a.md"}\n')  # and what was published is not published again
    assert note.read_text() == "new"


def test_an_approval_of_other_arguments_serves_no_live_call(halo: Commands) -> None:
    halo.write("t.halo", APPROVED)
    run_id, _ = halo.begun("t.halo", "x=a", "--yes-to", "Files.write")
    halo.write("t.halo", APPROVED.replace('content: "new"', 'content: "other"'))
    said = halo("replay", "t.halo", run_id, "--live-tools")
    assert said.code == 1
    assert "REPLAY_MISMATCH: the pipeline or its input changed: stage 1 asks for an approval of Files.write" in said.err
    assert Path("notes/a.md").read_text() == "new"
    said = halo("replay", "t.halo", run_id, "--live-tools", "--yes-to", "Files.write")
    assert said.code == 0
    assert Path("notes/a.md").read_text() == "other"


def test_with_models_asked_anew_an_approval_of_the_new_text_is_given_beforehand(halo: Commands) -> None:
    text = ONE.replace("pipeline P(x: Any) -> Result:", "pipeline P(x: Any) -> Result requires Ask:")
    text = "policy Ask : ApproveEffects(write)\n" + text

    async def yes(call: Call, preview: Preview | None) -> bool:
        return True

    record(text, World(lambda asked: "old", handlers=Handlers(on_approval=yes)))
    halo.write("t.halo", text)
    world = World(lambda asked: "new")
    words = ("replay", "t.halo", RUN, "--live-models", "--model", "A=openai/gpt-4o-mini")
    with world.there():
        refused = _with_keys(halo, *words)
        said = _with_keys(halo, *words, "--yes-to", "Files.write", "--json")
    assert (refused.code, "; --yes-to Files.write approves it" in refused.err) == (1, True)
    assert said.code == 0
    assert [note["kind"] for note in said.document["notes"]] == ["approved", "asked", "unused"]
    assert world.made == [("A.one", None)] * 2
    assert not Path("notes").exists()


def test_a_yes_to_all_calls_of_the_recorded_run_is_none_to_a_live_call_that_nobody_saw(halo: Commands) -> None:
    halo.write("t.halo", TWO_WRITES)
    run_id, _ = halo.begun("t.halo", "x=a")
    resumed = halo("resume", run_id, "--answer", '{"approved": true, "all": true}')
    assert resumed.code == 0
    assert halo("replay", "t.halo", run_id).code == 0  # as it was recorded: one approval for both
    halo.write("t.halo", TWO_WRITES.replace('content: "{{x}}"', 'content: "other"'))
    for written in ("notes/a.md", "notes/b.md"):
        Path(written).unlink()
    said = halo("replay", "t.halo", run_id, "--live-tools")
    assert said.code == 1
    assert "REPLAY_MISMATCH: the pipeline or its input changed: stage 2 asks for an approval of Files.write" in said.err
    assert (Path("notes/a.md").read_text(), Path("notes/b.md").exists()) == ("new", False)


ASKED = pipeline(
    '|! yield("Publish {{x}}?") as said', "|? (said.approved == true)", '|> Files.write(path: "a", content: x)'
)


def test_a_yes_to_one_text_lets_no_live_tool_do_another(halo: Commands) -> None:
    halo.write("t.halo", ASKED)
    run_id, _ = halo.begun("t.halo", "x=one")
    assert halo("resume", run_id, "--yes").code == 0
    halo.write("t.halo", ASKED.replace("Publish {{x}}?", "Delete {{x}}?"))
    note = Path("notes/a")
    note.unlink()
    said = halo("replay", "t.halo", run_id)
    assert (said.code, "yield was asked otherwise than recorded" in said.err) == (0, True)
    said = halo("replay", "t.halo", run_id, "--live-tools")
    assert (said.code, note.exists()) == (1, False)
    assert 'stage 1 asks for a person\'s answer to "Delete one?", and the recording has no answer to that' in said.err
    assert "note: 1 recorded answer was not used: yield" in said.err
    halo.write("t.halo", ASKED)
    assert halo("replay", "t.halo", run_id, "--live-tools").code == 0
    assert note.read_text() == "one"


def test_a_recording_without_scopes_gives_no_yes_to_another_text_either(halo: Commands) -> None:
    seed_form({"kind": "yield", "target": "yield", "value": {"approved": True}})
    halo.write("t.halo", ASKED)
    assert halo("replay", "t.halo", RUN, "--live-tools").code == 1
    assert not Path("notes/a").exists()


# Nothing is contacted --------------------------------------------------------------------------------------------

FORBIDS = """
import sys
FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "urllib.")
def forbid(event, args):
    if event.startswith(FORBIDDEN):
        print("FORBIDDEN", event, args, file=sys.stderr, flush=True)
        import os
        os._exit(99)
    if event == "open" and isinstance(args[0], str) and isinstance(args[2], int) and args[2] & 0o3:
        print("FORBIDDEN write", args, file=sys.stderr, flush=True)
        import os
        os._exit(98)
sys.addaudithook(forbid)
sys.argv[0] = "halo"
from halo_lang.cli.main import entry
entry()
"""


def test_a_replay_opens_no_socket_starts_no_process_and_writes_nothing(halo: Commands) -> None:
    text = CHOOSES + '    |> Shell.run(command: "date > out")\n    |> Chat.post(text: "x")\n    |> System.Publish()\n'
    text = text.replace(FILES, FILES + 'tool Shell : Bash()\ntool Chat : Slack(Env.SLACK_BOT_TOKEN, channel: "#x")\n')
    record(text, chooser(("Files_read", {"path": "a.md"}), ("Files_write", {"path": "b.md", "content": "x"})))
    halo.write("t.halo", text)
    before = sorted(str(path) for path in Path().rglob("*"))
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    for words in (("replay", "t.halo", RUN), ("replay", "t.halo", RUN, "--json"), ("replay", "t.halo", "--all")):
        done = subprocess.run(
            [sys.executable, "-c", FORBIDS, *words], capture_output=True, text=True, check=False, env=environment
        )
        assert (done.returncode, "FORBIDDEN" in done.stderr) == (0, False), done.stderr
    assert (
        "✓ Same output"
        in subprocess.run(
            [sys.executable, "-c", FORBIDS, "replay", "t.halo", RUN],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        ).stderr
    )
    assert sorted(str(path) for path in Path().rglob("*")) == before


def test_the_hook_would_have_seen_it(halo: Commands) -> None:
    halo.write("t.halo", 'tool Shell : Bash()\npipeline P(x: Any) -> Result:\n  x\n    |> Shell.run(command: "true")\n')
    words = [sys.executable, "-c", FORBIDS, "run", "t.halo", "x=1", "--no-record"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run(words, capture_output=True, check=False, env=environment).returncode == 99


# Many ------------------------------------------------------------------------------------------------------------


def test_ten_thousand_branches_of_a_changed_program_are_matched_in_linear_time() -> None:
    """Counted in lines of the journal that are looked at, not in seconds."""
    text = pipeline('|* each(i in x, concurrency: 100000) => A.say("Say {{i}}.")')
    count = 1500
    begin(text, World(), {"x": list(range(count))}, run_id=RUN)
    result, comparison = replayed(text.replace("Say", "Sing"), RUN)
    assert (comparison.same, kinds(comparison.notes), len(result.output)) == (True, ["asked"], count)  # type: ignore[arg-type]


def test_the_run_id_that_a_recording_says_is_shown_and_not_obeyed(halo: Commands) -> None:
    record(ONE)
    halo.write("t.halo", ONE)
    path = Path(f".halo/recordings/{RUN}.jsonl")
    path.write_text(path.read_text().replace(f'"runId":"{RUN}"', '"runId":"\\u001b]0;x\\u0007"'))
    assert halo("replay", "t.halo", RUN).err == "✓ Same output as the recorded run \\x1b]0;x\\x07\n"


def test_json_that_was_recorded_is_json(halo: Commands) -> None:
    record(ONE)
    for line in Path(f".halo/recordings/{RUN}.jsonl").read_text().splitlines():
        json.loads(line)
