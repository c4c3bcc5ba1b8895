"""Pausing and resuming: what a run waits for, how that is answered, what is refused (runs.md §5, language.md §7)."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from halo_lang.app.kept import Journaled, read_journal, signals_of
from halo_lang.app.preparing import with_models
from halo_lang.app.resuming import ResumeError, signal_line
from halo_lang.app.waits import listed, public_wait
from halo_lang.boundary.call import Answer, Call, ToolUse
from halo_lang.boundary.host import ConfigError, Handlers
from halo_lang.boundary.recording import RecordingError, encoded
from halo_lang.check.program import CheckedProgram
from halo_lang.cli.keep import run_store
from halo_lang.doors.answering import Stop
from halo_lang.doors.keeping import Keeper
from inside import Commands, halo
from kept_runs import Given, Watching, World, begin, checked, end_of, go_on, replayed, yes
from recorded import RUN

__all__ = ["halo"]

AGENT = "agent A [openai/gpt-4o]\n"
FILES = 'tool Files : Workspace("./notes", write: true)\n'
ASK = "policy Ask : ApproveEffects(write)\n"


def pipeline(*stages: str, more: str = "", requires: str = "") -> str:
    head = f"{AGENT}{FILES}{more}pipeline P(x: Any) -> Result{requires}:\n  x\n"
    return head + "".join(f"    {stage}\n" for stage in stages)


YIELDS = pipeline(
    "|> A.draft() as draft",
    '|> System.Print("drafted")',
    '|! yield("Publish {{draft}}?", channel: "#editors", [draft], 1h) as review',
    "|? (review.approved == true)",
    "|> A.polish()",
    "|> System.Publish()",
)
PARALLEL = pipeline(
    "|* each(i in [1, 2, 3], concurrency: 3) => Ask(i)",
    more='pipeline Ask(i: Number) -> Result:\n  i\n    |> A.draft("Draft {{i}}.") as draft\n'
    '    |! yield("Keep {{i}}?") as kept\n    |> A.polish(kept)\n',
)
APPROVES = ASK + pipeline(
    '|* each(i in [1, 2, 3], concurrency: 3) => Files.write(path: "{{i}}.md", content: "note {{i}}")',
    requires=" requires Ask",
)
LISTENS = pipeline(
    "|> A.draft()",
    "~> listen(Slack.Reaction) as first",
    "~> listen(Slack.Reaction) as second",
    "|> A.last([first, second])",
)


@pytest.fixture(autouse=True)
def working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def lines(run_id: str = RUN, folder: str = "recordings") -> list[dict[str, Any]]:
    text = Path(".halo", folder, f"{run_id}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def journaled() -> Journaled:
    """What the journal of the run says."""
    return read_journal(run_store().peek(RUN))


def refusal(*given: Given, text: CheckedProgram | str, world: World | None = None, **how: Any) -> ResumeError:
    with pytest.raises(ResumeError) as refused:
        go_on(text, RUN, world or World(), *given, **how)
    return refused.value


# What a run waits for --------------------------------------------------------------------------------------------


def test_a_pause_names_its_wait_and_costs_nothing_twice() -> None:
    world = World(lambda asked: Answer(f"by {asked.target}", cost=3))
    shown = Watching()
    paused = begin(YIELDS, world, run_id=RUN, watcher=shown)
    (wait,) = paused.waits
    assert (paused.status, wait["kind"], wait["target"], wait["stage"]) == ("paused", "yield", "yield", "3")
    assert (wait["message"], wait["channel"], wait["attachments"]) == (
        "Publish by A.draft?",
        "#editors",
        ["by A.draft"],
    )
    ended = go_on(YIELDS, RUN, world, yes(), watcher=shown)
    assert (ended.status, ended.output, ended.account.cost) == ("completed", "by A.polish", 6)
    assert world.targets() == ["A.draft", "A.polish"]
    assert shown.shown == [("printed", "drafted"), ("published", "by A.polish")]  # nothing twice
    result, comparison = replayed(YIELDS, RUN)
    assert comparison.same
    assert end_of(result) == end_of(ended)
    assert [line["type"] for line in lines()].count("start") == 1
    assert [line["status"] for line in lines() if line["type"] == "finish"] == ["paused", "completed"]


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        (Given("yes"), {"approved": True}),
        (Given("no", ""), {"approved": False}),
        (Given("no", "not on a Friday"), {"approved": False, "reason": "not on a Friday"}),
        (Given("answer", True), {"approved": True}),
        (Given("answer", "later"), {"text": "later"}),
        (Given("answer", {"approved": True, "by": "me"}), {"approved": True, "by": "me"}),
        (Given("answer", [1, None]), {"value": [1, None]}),
    ],
)
def test_a_yield_is_answered_by(given: Given, becomes: dict[str, Any]) -> None:
    begin(YIELDS, World(), run_id=RUN)
    ended = go_on(YIELDS, RUN, World(), given)
    assert ended.context["data"]["review"] == becomes  # type: ignore[index]
    assert ended.status == ("completed" if becomes.get("approved") is True else "halted")


APPROVED = ASK + pipeline('|> Files.write(path: "a.md", content: "new") as made', requires=" requires Ask")


@pytest.mark.parametrize(
    ("given", "status", "made"),
    [
        (Given("yes"), "completed", [{"path": "a.md", "content": "new"}]),
        (Given("no", "no"), "failed", []),
        (Given("answer", True), "completed", [{"path": "a.md", "content": "new"}]),
        (Given("answer", "yes"), "failed", []),
        (
            Given("answer", {"approved": True, "args": {"path": "b.md", "content": "x"}}),
            "completed",
            [{"path": "b.md", "content": "x"}],
        ),
    ],
)
def test_an_approval_is_answered_by(given: Given, status: str, made: list[dict[str, str]]) -> None:
    world = World()
    (wait,) = begin(APPROVED, world, run_id=RUN).waits
    assert (wait["kind"], wait["target"], wait["args"], wait["effect"], wait["policies"], wait["by"]) == (
        *("approval", "Files.write", {"path": "a.md", "content": "new"}, "write", ["Ask"], None),
    )
    ended = go_on(APPROVED, RUN, world, given)
    assert ended.status == status
    assert [args for _, args in world.made] == made
    assert (ended.error and ended.error.code) == ("APPROVAL_DENIED" if status == "failed" else None)


def test_an_approval_of_what_an_agent_chose_goes_back_to_it() -> None:
    text = (
        ASK
        + FILES
        + AGENT
        + "  equips Files\n  requires Ask\npipeline P(x: Any) -> Result:\n  x\n    |> A.work(tools: [Files])\n"
    )

    def agent(asked: Call) -> Answer:
        assert asked.request is not None
        last = asked.request.messages[-1]
        if last.role == "tool":
            return Answer("".join(part if isinstance(part, str) else part.text for part in last.parts))
        return Answer("", tool_uses=(ToolUse("c0", "Files_write", {"path": "a.md", "content": "x"}),))

    world = World(agent)
    (wait,) = begin(text, world, run_id=RUN).waits
    assert (wait["kind"], wait["by"]) == ("approval", "A")
    ended = go_on(text, RUN, world, Given("no", "not now"))
    assert ended.output == "error APPROVAL_DENIED: a person refused this call of `Files.write`: not now"
    assert world.targets() == ["A.work", "A.work"]
    assert replayed(text, RUN)[1].same


# Several at once -------------------------------------------------------------------------------------------------


def test_parallel_waits_are_answered_one_by_one_and_keep_their_ids() -> None:
    world = World(lambda asked: f"{asked.target} {asked.scope}")
    paused = begin(PARALLEL, world, run_id=RUN)
    ids = [wait["id"] for wait in paused.waits]
    assert [wait["message"] for wait in paused.waits] == ["Keep 1?", "Keep 2?", "Keep 3?"]
    assert len(set(ids)) == 3
    for given in (yes(), Given("no", ""), Given("answer", 1)):
        refused = refusal(given, text=PARALLEL)
        assert refused.usage
        assert refused.message.startswith("the run waits for several answers: say which with --wait\n  ")
        assert all(identity in refused.message for identity in ids)
    second = go_on(PARALLEL, RUN, world, yes(ids[1]))
    assert [wait["id"] for wait in second.waits] == [ids[0], ids[2]]
    assert [wait["since"] for wait in second.waits] == [paused.waits[0]["since"], paused.waits[2]["since"]]
    assert refusal(yes(ids[1]), text=PARALLEL).message.startswith(
        f"the run does not wait for an answer with the id {ids[1]}"
    )
    third = go_on(PARALLEL, RUN, world, Given("no", "", wait=ids[0]))
    assert [wait["id"] for wait in third.waits] == [ids[2]]
    ended = go_on(PARALLEL, RUN, world, yes())
    assert ended.status == "completed"
    assert ended.output == ["A.polish (0,)", "A.polish (1,)", "A.polish (2,)"]
    assert sorted(world.targets()) == ["A.draft"] * 3 + ["A.polish"] * 3
    result, comparison = replayed(PARALLEL, RUN)
    assert (comparison.same, end_of(result) == end_of(ended)) == (True, True)


def test_several_answers_at_once() -> None:
    world = World()
    ids = [wait["id"] for wait in begin(PARALLEL, world, run_id=RUN).waits]
    refused = refusal(yes(ids[0]), yes(ids[0]), text=PARALLEL)
    assert "does not wait for an answer with the id" in refused.message
    assert go_on(PARALLEL, RUN, world, *(yes(identity) for identity in ids)).status == "completed"


def test_a_question_that_is_asked_again_in_a_loop_has_another_id() -> None:
    text = pipeline(
        "|> A.draft()", '|! yield("Good?") as good', '|<> loop(A, "context.data.good.approved != true", max: 5)'
    )
    world = World()
    ids = [begin(text, world, run_id=RUN).waits[0]["id"]]
    for _ in range(3):
        ids.append(go_on(text, RUN, world, Given("no", "")).waits[0]["id"])
        assert go_on(text, RUN, world).waits[0]["id"] == ids[-1]  # and the same one until it is answered
    assert len(set(ids)) == 4
    assert go_on(text, RUN, world, yes(ids[-1])).status == "completed"


def test_ids_are_the_same_whether_an_event_came_before_or_while_the_run_went() -> None:
    """A wait's id goes by how often its place was answered, in whatever process that was."""
    world = World()
    begin(LISTENS, world, run_id=RUN)
    run_store().add(RUN, signal_line("Slack.Reaction", 1))
    second = go_on(LISTENS, RUN, world).waits[0]["id"]
    assert go_on(LISTENS, RUN, world).waits[0]["id"] == second


def test_yes_to_all_answers_those_that_wait_each_bound_to_what_was_shown() -> None:
    world = World()
    paused = begin(APPROVES, world, run_id=RUN)
    assert len(paused.waits) == 3
    ended = go_on(APPROVES, RUN, world, Given("answer", {"approved": True, "all": True}, wait=paused.waits[1]["id"]))
    assert ended.status == "completed"
    assert world.targets() == ["Files.write"] * 3
    assert replayed(APPROVES, RUN)[1].same


def test_one_branch_pauses_while_another_goes_on_to_its_end() -> None:
    text = pipeline(
        "|* { Ask(), A.one() }", "|> A.last()", more='pipeline Ask(x: Any) -> Result:\n  x\n    |! yield("Go?")\n'
    )

    async def slow(asked: Call) -> str:
        await asyncio.sleep(10)
        return asked.target

    world = World(slow)
    paused = begin(text, world, run_id=RUN)
    assert (len(paused.waits), world.targets()) == (1, ["A.one"])
    assert go_on(text, RUN, world, yes()).output == "A.last"
    assert world.targets() == ["A.one", "A.last"]


def test_branches_that_have_not_begun_are_no_waits() -> None:
    text = PARALLEL.replace("concurrency: 3", "concurrency: 1")
    world = World()
    paused = begin(text, world, run_id=RUN)
    assert [wait["message"] for wait in paused.waits] == ["Keep 1?"]
    assert [wait["message"] for wait in go_on(text, RUN, world, yes()).waits] == ["Keep 2?"]


def test_a_failure_in_another_branch_ends_the_run_and_its_waits() -> None:
    text = pipeline(
        '|* { Ask(), System.Fail("no") }', more='pipeline Ask(x: Any) -> Result:\n  x\n    |! yield("Go?")\n'
    )
    failed = begin(text, World(), run_id=RUN)
    assert (failed.status, failed.waits) == ("failed", ())
    assert run_store().ids() == []


def test_who_can_be_asked_is_asked_and_only_the_others_wait() -> None:
    async def approve(asked: Call, preview: Any) -> bool:
        return True

    world = World(handlers=Handlers(on_approval=approve))
    text = ASK + pipeline('|> Files.write(path: "a.md", content: "x")', '|! yield("Go?")', requires=" requires Ask")
    paused = begin(text, world, run_id=RUN)
    assert [wait["kind"] for wait in paused.waits] == ["yield"]


def test_a_yields_time_limit_holds_only_where_somebody_is_asked() -> None:
    async def never(asked: Call) -> Any:
        await asyncio.sleep(10**6)

    text = pipeline('|! yield("Go?", 1h) as go')
    asked = begin(text, World(handlers=Handlers(on_yield=never)))
    assert asked.context["data"]["go"] == {"approved": False, "timedOut": True}  # type: ignore[index]
    assert begin(text, World()).status == "paused"


# Events ----------------------------------------------------------------------------------------------------------


def test_an_event_answers_the_wait_for_it() -> None:
    world = World()
    (wait,) = begin(LISTENS, world, run_id=RUN).waits
    assert (wait["kind"], wait["target"], wait["message"], wait["args"]) == ("listen", "Slack.Reaction", None, {})
    again = go_on(LISTENS, RUN, world, Given("event", {"n": 1}, "Slack.Reaction"))
    assert again.status == "paused"
    ended = go_on(LISTENS, RUN, world, Given("answer", {"n": 2}))
    assert (ended.context["data"]["first"], ended.context["data"]["second"]) == ({"n": 1}, {"n": 2})  # type: ignore[index]
    assert ended.context["data"]["Slack"] == {"Reaction": {"n": 2}}  # type: ignore[index]
    assert replayed(LISTENS, RUN)[1].same


def test_events_that_came_before_their_listen_are_delivered_in_order_once_each() -> None:
    text = pipeline(
        '|! yield("Go?")',
        "~> listen(E.A) as one",
        "~> listen(E.B) as two",
        "~> listen(E.A) as three",
        "~> listen(E.A) as four",
    )
    world = World()
    begin(text, world, run_id=RUN)
    for event, payload in (("E.A", 1), ("E.B", 2), ("E.A", 3), ("Other", 9)):
        run_store().add(RUN, signal_line(event, payload))
    paused = go_on(text, RUN, world, yes())
    assert [paused.context["data"].get(name) for name in ("one", "two", "three", "four")] == [1, 2, 3, None]  # type: ignore[union-attr]
    assert [wait["target"] for wait in paused.waits] == ["E.A"]
    assert go_on(text, RUN, world).status == "paused"  # none is delivered twice
    ended = go_on(text, RUN, world, Given("event", 4, "E.A"))
    assert ended.status == "completed"
    result, comparison = replayed(text, RUN)
    assert (comparison.same, end_of(result) == end_of(ended)) == (True, True)


def test_an_event_that_the_run_does_not_listen_for_yet_is_kept() -> None:
    text = pipeline('|! yield("Go?")', "~> listen(E.A) as one")
    begin(text, World(), run_id=RUN)
    ended = go_on(text, RUN, World(), yes(), Given("event", 5, "E.A"))
    assert (ended.status, ended.context["data"]["one"]) == ("completed", 5)  # type: ignore[index]


def test_two_branches_that_listen_for_one_event_get_one_each_in_order() -> None:
    text = pipeline(
        "|* { L(), L() }",
        more="pipeline L(x: Any) -> Result:\n  x\n    ~> listen(E.A) as got\n    |> System.Print(got)\n",
    )
    paused = begin(text, World(), run_id=RUN)
    assert len(paused.waits) == 2
    assert "say which with --wait" in refusal(Given("event", 1, "E.A"), text=text).message
    second = go_on(text, RUN, World(), Given("event", 1, "E.A", paused.waits[1]["id"]))
    assert [wait["id"] for wait in second.waits] == [paused.waits[0]["id"]]
    assert go_on(text, RUN, World(), Given("event", 2, "E.A")).output == [2, 1]


def test_an_event_that_is_sent_while_a_run_goes_is_not_lost() -> None:
    text = pipeline("|> A.slow()", "~> listen(E.A) as one")

    def agent(asked: Call) -> str:
        run_store().add(RUN, signal_line("E.A", "meanwhile"))
        return "said"

    ended = begin(text, World(agent), run_id=RUN, checkpoint=True)
    assert (ended.status, ended.context["data"]["one"]) == ("completed", "meanwhile")  # type: ignore[index]


def test_an_answer_is_taken_although_events_are_sent_just_as_the_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pipeline('|! yield("Go?") as go', "~> listen(Some.Event) as got", '|! yield("Sure?") as sure')
    goes_on = Keeper.goes_on

    def after_events(keeper: Keeper, *given: Any) -> None:
        for n in (1, 2):
            run_store().add(RUN, signal_line("Some.Event", n))
        goes_on(keeper, *given)

    monkeypatch.setattr(Keeper, "goes_on", after_events)
    begin(text, World(), run_id=RUN)
    first = go_on(text, RUN, World(), Given("answer", {"n": 1}))
    assert (first.status, [wait["message"] for wait in first.waits]) == ("paused", ["Sure?"])
    second = go_on(text, RUN, World(), Given("answer", {"n": 2}))
    assert second.status == "completed"
    data = second.context["data"]
    assert isinstance(data, dict)
    assert [data[name] for name in ("go", "got", "sure")] == [{"n": 1}, 1, {"n": 2}]
    again, comparison = replayed(text, RUN)
    assert (end_of(again), comparison.same, comparison.notes) == (end_of(second), True, ())


def test_an_event_that_is_sent_while_a_resumed_run_goes_is_not_lost() -> None:
    text = pipeline('|! yield("Go?")', "|> A.slow()", "~> listen(E.A) as one", "|> A.last()")

    def agent(asked: Call) -> str:
        if asked.target == "A.slow":
            run_store().add(RUN, signal_line("E.A", "meanwhile"))
        return "said"

    begin(text, World(), run_id=RUN)
    ended = go_on(text, RUN, World(agent), yes())
    assert (ended.status, ended.context["data"]["one"]) == ("completed", "meanwhile")  # type: ignore[index]
    assert replayed(text, RUN)[1].same


# What is refused -------------------------------------------------------------------------------------------------


def test_a_run_that_has_ended_is_not_resumed() -> None:
    begin(YIELDS, World(), run_id=RUN)
    go_on(YIELDS, RUN, World(), yes())
    refused = refusal(yes(), text=YIELDS)
    assert (refused.code, refused.message) == ("RESUME_CONFLICT", f"the run {RUN} is not kept any more: it has ended")


def test_a_run_that_nobody_knows_is_not_resumed() -> None:
    with pytest.raises(RecordingError, match="there is no paused run"):
        go_on(YIELDS, RUN, World())
    with pytest.raises(RecordingError, match="is no run id"):
        go_on(YIELDS, "../x", World())


def test_one_resume_at_a_time() -> None:
    begin(YIELDS, World(), run_id=RUN)
    inner: list[ResumeError] = []
    world = World(lambda asked: inner.append(refusal(yes(), text=YIELDS)) or "x" if asked.target == "A.polish" else "x")
    assert go_on(YIELDS, RUN, world, yes()).status == "completed"
    assert [(one.code, one.message) for one in inner] == [
        ("RESUME_CONFLICT", f"the run {RUN} is being resumed, or is still running")
    ]


def test_of_resumes_at_once_one_wins() -> None:
    text = pipeline('|! yield("Go?")', '|> Files.write(path: "a.md", content: "x")')
    world, outcomes = World(), []
    begin(text, world, run_id=RUN)
    gate = threading.Barrier(6)

    def race() -> None:
        gate.wait()
        try:
            outcomes.append(go_on(text, RUN, world, yes(), virtually=asyncio.run).status)
        except (ResumeError, RecordingError) as refused:
            outcomes.append(refused.code)

    with world.there():
        threads = [threading.Thread(target=race) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(outcomes) == ["RESUME_CONFLICT"] * 5 + ["completed"]
    assert world.targets() == ["Files.write"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Given("event", 1, "E.A", "deadbeef"), "the run does not wait for an answer with the id deadbeef"),
        (Given("again"), "--again answers nothing that the run waits for"),
        (Given("done", 1), "--done answers nothing that the run waits for"),
        (Given("skip"), "--skip answers nothing that the run waits for"),
        (yes("nonsense"), "the run does not wait for an answer with the id nonsense"),
    ],
)
def test_an_answer_that_fits_no_wait_is_refused_and_changes_nothing(given: Given, says: str) -> None:
    world = World()
    begin(YIELDS, world, run_id=RUN)
    before = lines(folder="runs")
    refused = refusal(given, text=YIELDS)
    assert (refused.code, refused.usage) == ("CONFIG", True)
    assert says in refused.message
    assert "Publish" in refused.message
    assert lines(folder="runs") == before


def test_a_yes_is_no_event() -> None:
    begin(LISTENS, World(), run_id=RUN)
    assert "--yes answers nothing that the run waits for" in refusal(yes(), text=LISTENS).message
    identity = json.loads(Path(f".halo/runs/{RUN}.jsonl").read_text().splitlines()[-1])["waits"][0]["id"]
    assert f"--yes does not answer {identity}  listen" in refusal(yes(identity), text=LISTENS).message


def test_what_is_missing_is_said_before_the_answer_is_taken() -> None:
    begin(YIELDS, World(), run_id=RUN)
    before = (lines(), lines(folder="runs"))
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        go_on(YIELDS, RUN, World(keys={}), yes())
    assert (lines(), lines(folder="runs")) == before
    assert go_on(YIELDS, RUN, World(), yes()).status == "completed"


# Changed programs ------------------------------------------------------------------------------------------------


def test_a_program_that_changed_is_refused_naming_what() -> None:
    begin(YIELDS, World(), run_id=RUN)
    for text, says in (
        (YIELDS.replace("|> A.polish()", "|> A.polish(1)"), "t.halo has changed since the run began: pipeline P; "),
        (YIELDS.replace("openai/gpt-4o", "openai/gpt-4o-mini"), "t.halo has changed since the run began: agent A; "),
        (YIELDS + "agent B [openai/gpt-4o]\n", "t.halo has changed since the run began: agent B (new); "),
        (YIELDS.replace(FILES, ""), "t.halo has changed since the run began: tool Files (gone); "),
        ("# a note\n" + YIELDS, "t.halo has changed since the run began (comments or blanks alone); "),
    ):
        refused = refusal(yes(), text=text)
        assert refused.code == "PROGRAM_CHANGED"
        assert refused.message == says + "bring it back, or go on with --changed"
    assert go_on(YIELDS, RUN, World(), yes()).status == "completed"


def test_a_changed_program_goes_on_with_what_it_asks_alike() -> None:
    world = World()
    begin(YIELDS, world, run_id=RUN)
    changed = YIELDS.replace("|> A.polish()", '|> A.shorten("Shorter.")')
    ended = go_on(changed, RUN, world, yes(), changed=True)
    assert (ended.status, ended.output) == ("completed", "said by A.shorten")
    assert world.targets() == ["A.draft", "A.shorten"]


def test_a_question_that_changed_is_asked_again() -> None:
    world = World()
    begin(YIELDS, world, run_id=RUN)
    changed = YIELDS.replace("|> A.draft() as draft", '|> A.draft("Another draft.") as draft')
    again = go_on(changed, RUN, world, changed=True)
    assert (again.status, world.targets()) == ("paused", ["A.draft", "A.draft"])


EFFECT = pipeline(
    '|> Files.write(path: "a.md", content: "x")', '|> Files.list(path: ".")', '|! yield("Go?")', "|> A.last()"
)


def test_an_effect_that_the_changed_program_leaves_out_stops_it() -> None:
    world = World()
    begin(EFFECT, world, run_id=RUN)
    before = lines(folder="runs")
    for changed in (
        pipeline('|> Files.list(path: ".")', '|! yield("Go?")', "|> A.last()"),
        EFFECT.replace("a.md", "b.md"),
    ):
        refused = refusal(text=changed, changed=True, world=world)
        assert refused.code == "PROGRAM_CHANGED"
        assert "the run has called Files.write, and the changed program goes on without that" in refused.message
        assert world.targets() == ["Files.write", "Files.list"]
        assert [wait["kind"] for wait in _waits()] == ["yield"]  # and the run is as it was
    moved = EFFECT.replace(
        '|> Files.write(path: "a.md", content: "x")', '|* { Files.write(path: "a.md", content: "x") }'
    )
    without_read = EFFECT.replace('    |> Files.list(path: ".")\n', "")
    for changed in (moved, without_read):
        assert go_on(changed, RUN, world, changed=True).status == "paused"
    assert go_on(EFFECT, RUN, world, yes()).status == "completed"
    assert world.targets() == ["Files.write", "Files.list", "A.last"]
    assert before[0] == lines()[0]


def _waits() -> list[dict[str, Any]]:
    return journaled().waits


def test_what_was_published_is_an_effect_too() -> None:
    text = pipeline("|> System.Publish()", '|! yield("Go?")')
    begin(text, World(), run_id=RUN)
    assert "System.Publish" in refusal(text=pipeline('|! yield("Go?")'), changed=True).message


def test_an_effect_that_was_refused_was_not_made() -> None:
    text = ASK + pipeline('|! yield("Go?")', requires=" requires Ask")
    with_write = ASK + pipeline(
        '|> Files.write(path: "../a", content: "x")', '|! yield("Go?")', requires=" requires Ask"
    )
    world = World()
    (wait,) = begin(with_write, world, run_id=RUN).waits
    assert wait["kind"] == "approval"
    assert go_on(text, RUN, world, changed=True).status == "paused"


# Surroundings that changed ---------------------------------------------------------------------------------------


def otherwise(text: str) -> CheckedProgram:
    """The same program, in surroundings in which it asks its agent otherwise."""
    return with_models(checked(text), {"A": "openai/gpt-4o-mini"})


ASKS_FIRST = EFFECT.replace("  x\n    |> Files", "  x\n    |> A.first()\n    |> Files")


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_run_that_is_not_asked_for_what_it_has_stops_before_anything_is_called(checkpoint: bool) -> None:
    world = World()
    begin(ASKS_FIRST, world, run_id=RUN, checkpoint=checkpoint)
    journal = Path(f".halo/runs/{RUN}.jsonl")
    before = journal.read_bytes()
    refused = refusal(yes(), text=otherwise(ASKS_FIRST), world=world)
    assert refused.code == "PROGRAM_CHANGED"
    assert "t.halo is as it was, and yet the run does not ask again for what it has: A.first, Files." in refused.message
    assert "halo.lock" in refused.message
    by_force = refusal(yes(), text=otherwise(ASKS_FIRST), world=world, changed=True)
    assert "the run has called Files.write, and the changed program goes on without that" in by_force.message
    assert world.targets() == ["A.first", "Files.write", "Files.list"]
    assert journal.read_bytes() == before  # it waits as it did, and takes the same answer
    ended = go_on(ASKS_FIRST, RUN, world, yes())
    assert (ended.status, world.targets()) == ("completed", ["A.first", "Files.write", "Files.list", "A.last"])
    if not checkpoint:
        assert replayed(ASKS_FIRST, RUN)[1].same


def test_a_run_without_effects_goes_on_in_other_surroundings_if_that_is_wanted_and_back_again() -> None:
    world = World()
    begin(YIELDS, world, run_id=RUN)
    assert "does not ask again for what it has: A.draft." in refusal(yes(), text=otherwise(YIELDS)).message
    assert go_on(otherwise(YIELDS), RUN, world, changed=True).status == "paused"
    assert world.targets() == ["A.draft", "A.draft"]
    ended = go_on(YIELDS, RUN, world, yes())  # what the other program asked is in the journal, and no longer asked
    assert (ended.status, world.targets()) == ("completed", ["A.draft", "A.draft", "A.polish"])


def test_a_call_that_had_begun_and_is_not_asked_for_any_more_stops_the_run() -> None:
    world = World()
    begin(EFFECT, world, run_id=RUN, checkpoint=True)
    with Path(f".halo/runs/{RUN}.jsonl").open("ab") as journal:
        journal.write(encoded({"type": "begun", "target": "Files.delete", "scope": [], "args": {"path": "b.md"}}))
    for changed in (False, True):
        assert "Files.delete" in refusal(yes(), text=EFFECT, world=world, changed=changed).message
    assert world.targets() == ["Files.write", "Files.list"]


def test_what_became_a_secret_since_is_asked_for_as_it_was() -> None:
    text = pipeline('|> Files.write(path: "a.md", content: "{{x}}")', '|! yield("Keep {{x}}?")', "|> A.last()")
    world = World()
    begin(text, world, {"x": "said openly once"}, run_id=RUN)
    world.keys["OPENAI_API_KEY"] = "openly once"
    assert go_on(text, RUN, world, yes()).status == "completed"
    assert world.targets() == ["Files.write", "A.last"]


KEEPS = """tool Here : Workspace(".", write: true)
pipeline P(x: Any) -> Result:
  x
    |> Here.write(path: "a.md", content: "x")
    |! yield("Go?")
    |> Here.write(path: "PATH", content: "{}")
"""


@pytest.mark.parametrize("how", [(), ("--checkpoint",), ("--no-record",)])
def test_a_place_where_no_pause_can_be_kept_is_found_before_anything_is_called(
    how: tuple[str, ...], halo: Commands
) -> None:
    Path("t.halo").write_text(KEEPS, "utf-8")
    Path(".halo").mkdir()
    Path(".halo/runs").touch()
    ended = halo("run", "t.halo", "x=1", *how)
    assert ended.code == 1
    assert "nothing was run" in ended.err
    assert "runs: is no folder of its own" in ended.err
    assert not Path("a.md").exists()
    assert not list(Path(".halo").glob("recordings/*"))


@pytest.mark.parametrize("path", ["plan.json", "PLAN.json", "link.json", "hard.json"])
def test_the_plan_that_a_run_is_held_to_is_never_written_by_it(path: str, halo: Commands) -> None:
    Path("t.halo").write_text(KEEPS.replace("PATH", path), "utf-8")
    assert halo("plan", "t.halo", "--out", "plan.json").code == 0
    before = Path("plan.json").read_bytes()
    Path("link.json").symlink_to("plan.json")
    Path("hard.json").hardlink_to("plan.json")
    assert halo("run", "t.halo", "x=1", "--within", "plan.json").code == 3
    (run_id,) = run_store().ids()
    ended = halo("resume", run_id, "--yes")
    assert (ended.code, "is never written" in ended.err) == (1, True)
    assert Path("plan.json").read_bytes() == before


@pytest.mark.parametrize("changed", [(), ("--changed",)])
def test_a_run_goes_on_only_with_the_very_plan_that_it_began_with(changed: tuple[str, ...], halo: Commands) -> None:
    Path("t.halo").write_text(KEEPS.replace("PATH", "b.md"), "utf-8")
    assert halo("plan", "t.halo", "--out", "plan.json").code == 0
    assert halo("run", "t.halo", "x=1", "--within", "plan.json").code == 3
    (run_id,) = run_store().ids()
    before = Path("plan.json").read_bytes()
    Path("plan.json").write_bytes(before + b"\n")
    refused = halo("resume", run_id, "--yes", *changed)
    assert refused.code == 1
    assert "PROGRAM_CHANGED: plan.json, which the run is held to, has changed since it began" in refused.err
    assert not Path("b.md").exists()
    Path("plan.json").write_bytes(before)
    assert halo("resume", run_id, "--yes").code == 0
    assert Path("b.md").exists()


# What was spent --------------------------------------------------------------------------------------------------

CAPPED = (
    "policy Cap : MaxSpend(0.10)\nagent A [openai/gpt-4o, max_tokens: 2000]\n  requires Cap\n"
    "pipeline P(x: Any) -> Result:\n  x\n"
    '    |> A.one("Say.")\n    |! yield("Go on?")\n    |> A.two("Say more.")\n'
)


ANSWERED = {
    "type": "call",
    "kind": "agent",
    "target": "A.two",
    "scope": [],
    "asked": "",
    "value": "x",
    "cost": 1e-9,
}
"""The line of an answer to the second request."""


def test_what_was_spent_before_counts_on() -> None:
    """By the ledger: with what the first leg spent the second request does not fit any more."""
    world = World(lambda asked: Answer("x", cost=99_000_000, unsettled=1_000))
    begin(CAPPED, world, run_id=RUN)
    found = journaled()
    assert (found.spent, found.unsettled) == (99_000_000, 1_000)
    ended = go_on(CAPPED, RUN, world, yes())
    assert ended.account.cost == 198_000_000
    assert ended.account.unsettled >= 1_000


def test_what_was_reserved_without_an_answer_counts_on() -> None:
    begin(CAPPED, World(lambda asked: Answer("x", cost=7)), run_id=RUN)
    reserved: list[dict[str, Any]] = [
        {"type": "reserved", "target": "A.two", "scope": [], "amount": 50},
        {"type": "reserved", "target": "A.two", "scope": [], "amount": 60},
        {"type": "reserved", "target": "A.two", "scope": [], "amount": 5, "shadow": True},
        {"type": "reserved", "target": "A.two", "scope": [1], "amount": 40},
    ]
    path = Path(f".halo/runs/{RUN}.jsonl")
    path.write_bytes(path.read_bytes() + b"".join(encoded(line) for line in reserved))
    assert journaled().unsettled == 60 + 5 + 40
    path.write_bytes(path.read_bytes() + encoded(ANSWERED))
    found = journaled()
    assert (found.spent, found.unsettled) == (8, 5 + 40)


def test_each_shadow_has_a_reservation_of_its_own_until_the_end_of_its_leg() -> None:
    begin(CAPPED, World(lambda asked: Answer("x", cost=7)), run_id=RUN)
    path = Path(f".halo/runs/{RUN}.jsonl")
    reserved = {"type": "reserved", "target": "A.one", "scope": [], "amount": 50}
    lines = [encoded({**reserved, "shadow": at}) for at in (1, 2, 2, 3)]
    path.write_bytes(path.read_bytes() + b"".join([encoded(reserved), *lines]))
    found = journaled()
    assert (found.spent, found.shadows, found.unsettled) == (7, 0, 200)
    path.write_bytes(path.read_bytes() + encoded({"type": "shadows", "cost": 60, "unsettled": 5}))
    found = journaled()
    assert (found.spent, found.shadows, found.unsettled) == (67, 60, 55)


def test_what_was_reserved_counts_on_over_each_crash_and_pause() -> None:
    """A resumed run asks the same again, and reserves for it again: neither that nor its answer settles what came
    before."""
    begin(CAPPED, World(lambda asked: Answer("x", cost=7)), run_id=RUN)
    path = Path(f".halo/runs/{RUN}.jsonl")
    began = path.read_bytes()
    reserved = encoded({"type": "reserved", "target": "A.two", "scope": [], "amount": 50})
    resumed = encoded({"type": "resume", "at": "2026-11-30T12:00:00Z"})
    for lines, unsettled in (
        ([reserved, resumed], 50),
        ([reserved, resumed, reserved], 100),
        ([reserved, resumed, reserved, resumed, reserved, encoded(ANSWERED)], 100),
        ([reserved, resumed, reserved, encoded(ANSWERED), resumed, resumed], 50),
    ):
        path.write_bytes(began + b"".join(lines))
        assert journaled().unsettled == unsettled


# Damage ----------------------------------------------------------------------------------------------------------

WRONG: tuple[Any, ...] = (None, True, 0, 1.5, float("inf"), "x", [], [1], {}, {"a": 1}, [{}], [None])


@pytest.mark.parametrize(
    "kind", ["call", "signal", "begun", "again", "reserved", "finish", "resume", "start", "weather"]
)
def test_a_journal_of_wrong_types_is_refused_or_harmless(kind: str) -> None:
    begin(YIELDS, World(), run_id=RUN)
    path = Path(f".halo/runs/{RUN}.jsonl")
    whole = path.read_bytes()
    last = whole.count(b"\n")
    full: dict[str, Any] = {
        "id": "i",
        "event": "E.A",
        "payload": 1,
        "target": "T.m",
        "scope": [],
        "args": {},
        "amount": 1,
    }
    full |= {"kind": "tool", "value": 1, "status": "paused", "signal": "s", "asked": "", "at": "now"}
    full["waits"] = [{"id": "w", "kind": "yield", "target": "yield", "stage": "1", "scope": [], "args": {}}]
    tries = [{**full, field: wrong} for field in full for wrong in WRONG]
    tries += [{**full, "waits": [{**full["waits"][0], field: wrong}]} for field in full["waits"][0] for wrong in WRONG]
    for line in tries:
        path.write_text(f"{whole.decode()}{json.dumps({**line, 'type': kind})}\n")
        try:
            kept = journaled()
            signals_of(_peeking())
        except RecordingError as refused:
            found = refused.message
        else:
            found = ""
        assert found == "" or found.startswith((f"line {last + 1} ", f"line {last + 1}:"))
        if found:
            continue
        listed(kept.waits)
        json.dumps([public_wait(wait) for wait in kept.waits])
    path.write_bytes(whole[:-20] + b"\n")
    with pytest.raises(RecordingError, match=f"line {last} is no JSON"):
        go_on(YIELDS, RUN, World(), yes())


def _peeking() -> Any:
    class Peeking:
        def lines(self) -> Any:
            return run_store().peek(RUN)

    return Peeking()


def test_a_journal_cut_anywhere_in_its_last_line_goes_on_from_the_one_before() -> None:
    text = pipeline("|> A.one()", '|> A.two("Two.")', '|! yield("Go?")')
    world = World()
    begin(text, world, run_id=RUN)
    path = Path(f".halo/runs/{RUN}.jsonl")
    whole = path.read_bytes()
    for cut in range(1, len(whole) - whole.rfind(b"\n", 0, -1)):
        path.write_bytes(whole[:-cut])
        assert go_on(text, RUN, world).status == "paused"
        assert path.read_bytes().startswith(whole[: whole.rfind(b"\n", 0, -1)])
    assert world.targets() == ["A.one", "A.two"]


@pytest.mark.parametrize("part", range(4))
def test_a_recording_cut_anywhere_is_whole_again_once_the_run_has_gone_on(part: int) -> None:
    text = pipeline(
        "|> A.one()", '|* { A.two(), Files.write(path: "p", content: "c") }', '|! yield("Go?")', "|> A.three()"
    )
    begin(text, World(), run_id=RUN)
    recording, journal = Path(f".halo/recordings/{RUN}.jsonl"), Path(f".halo/runs/{RUN}.jsonl")
    kept = recording.read_bytes(), journal.read_bytes()
    for cut in range(part, len(kept[0]) + 1, 4):
        recording.write_bytes(kept[0][:cut])
        journal.write_bytes(kept[1])
        world = World()
        assert go_on(text, RUN, world, Given("yes")).status == "completed"
        assert world.targets() == ["A.three"]
        again, comparison = replayed(text, RUN)
        assert (again.status, comparison.same, comparison.notes) == ("completed", True, ())


# Stopped and interrupted -----------------------------------------------------------------------------------------


def test_a_checkpointed_run_that_was_stopped_goes_on() -> None:
    text = pipeline("|> A.one()", "|> A.two()", "|> A.three()")
    stop = Stop()

    def agent(asked: Call) -> str:
        if asked.target == "A.two" and not stop.asked:
            stop.ask()
        return asked.target

    world = World(agent)
    stopped = begin(text, world, run_id=RUN, checkpoint=True, stop=stop)
    assert stopped.status == "cancelled"
    assert [line["type"] for line in lines(folder="runs")][-1] == "finish"
    ended = go_on(text, RUN, world)
    assert (ended.status, ended.output) == ("completed", "A.three")
    assert world.targets() == ["A.one", "A.two", "A.three"]  # the answer that came too late is used


def test_a_resumed_run_that_was_stopped_goes_on_and_is_replayed_whole() -> None:
    text = pipeline('|! yield("Go?")', "|* { A.one(), A.two() }", "|> A.three()")
    stop = Stop()

    async def agent(asked: Call) -> str:
        if asked.target == "A.two":
            await asyncio.sleep(1)
        elif asked.target == "A.one":
            stop.ask()
        return asked.target

    world = World(agent)
    begin(text, world, run_id=RUN)
    stopped = go_on(text, RUN, world, yes(), stop=stop)
    assert stopped.status == "cancelled"
    result, comparison = replayed(text, RUN)
    assert (result.status, comparison.same) == ("cancelled", True)
    ended = go_on(text, RUN, world)
    assert (ended.status, sorted(world.targets())) == ("completed", ["A.one", "A.three", "A.two"])
    result, comparison = replayed(text, RUN)
    assert (comparison.same, comparison.notes, end_of(result) == end_of(ended)) == (True, (), True)


# The commands ----------------------------------------------------------------------------------------------------

QUIET = (
    'pipeline P(x: Any) -> Result:\n  x\n    |! yield("Go {{x}}?") as go\n'
    '    |? (go.approved == true)\n    |> System.Print("went")\n'
)
TWO = (
    "pipeline P(x: Any) -> Result:\n  x\n    |* { Y(), L() }\n"
    'pipeline Y(x: Any) -> Result:\n  x\n    |! yield("Go?") as go\n    |> System.Print("yielded")\n'
    "pipeline L(x: Any) -> Result:\n  x\n    ~> listen(Slack.Reaction) as got\n    |> System.Print(got)\n"
)


def test_a_paused_run_can_be_given_up(halo: Commands) -> None:
    halo.write("t.halo", QUIET)
    run_id, _ = halo.begun("t.halo", "x=on")
    gone = halo("runs", "rm", run_id)
    assert (gone.code, gone.out, gone.err) == (0, "", "")
    assert halo("runs", "--json").document["runs"] == []
    assert f"{run_id}  cancelled  P (t.halo)" in halo("recordings").out
    assert halo("resume", run_id, "--yes").err.startswith("error: RESUME_CONFLICT")
    assert halo("replay", "t.halo", run_id).code == 0
    again = halo("runs", "rm", run_id)
    assert (again.code, again.err) == (1, f"error: there is no paused run {run_id}; `halo runs` lists them\n")


def test_a_damaged_run_can_be_given_up_and_one_under_way_cannot(halo: Commands) -> None:
    halo.write("t.halo", QUIET)
    run_id, _ = halo.begun("t.halo", "x=on")
    journal = run_store().claim(run_id)
    held = halo("runs", "rm", run_id)
    assert (held.code, held.err.split(":")[1].strip()) == (1, "RESUME_CONFLICT")
    journal.append(b"no line\n")
    journal.release()
    assert halo("runs", "--json").document["runs"][0]["status"] == "damaged"
    assert halo("runs", "rm", run_id).code == 0
    assert halo("runs", "--json").document["runs"] == []


@pytest.mark.parametrize("words", [("rm",), ("list", RUN), ("rm", "../x"), ("rm", RUN)])
def test_runs_that_cannot_be_given_up(words: tuple[str, ...], halo: Commands) -> None:
    said = halo("runs", *words)
    assert (said.out, said.err.startswith("error: "), said.err.count("\n")) == ("", True, 1)
    assert said.code == (2 if words in (("rm",), ("list", RUN)) else 1)


def test_waits_of_one_stage_are_told_apart_by_their_scope_and_attachments(halo: Commands) -> None:
    asks = 'pipeline A(x: Any) -> Result:\n  x\n    |! yield("Send?", [x])\n'
    halo.write("t.halo", asks + "pipeline P(x: List) -> Result:\n  x\n    |* each(y in x) => A(y)\n")
    sent = ["one\ntwo", {"a": 1}, "\x1b" + "z" * 1_000]
    run_id, said = halo.begun("t.halo", "--pipeline", "P", f"x={json.dumps(sent)}")
    shown = ["[0]: Send? · one two", '[1]: Send? · {"a":1}', "[2]: Send? · \\x1b" + "z" * 199 + "…"]
    ids = [wait["id"] for wait in sorted(said.document["waits"], key=lambda wait: wait["scope"])]
    rows = [f"{each}  yield at stage 1.1 {what}" for each, what in zip(ids, shown, strict=True)]
    for out in (said.err, halo("runs").out, halo("resume", run_id).err):
        assert [row for row in rows if row not in out] == []


def test_the_command_pauses_lists_and_goes_on(halo: Commands) -> None:
    halo.write("t.halo", QUIET)
    run_id, said = halo.begun("t.halo", "x=on")
    assert (said.code, said.document["status"]) == (3, "paused")
    (wait,) = said.document["waits"]
    fields = "id kind target message channel attachments args stage scope since by effect policies"
    assert set(wait) == set(fields.split())
    assert f"waits: {wait['id']}  yield at stage 1: Go on?\n" in said.err
    ways = "--yes | --no [REASON] | --answer JSON"
    kept = "paused, and kept in .halo/runs until it ends; go on with: halo resume"
    assert said.err.endswith(f"{kept} {run_id} {ways}\n")
    listed = halo("runs", "--json").document["runs"]
    assert [(run["runId"], run["status"], run["pipeline"], run["file"]) for run in listed] == [
        (run_id, "paused", "P", "t.halo")
    ]
    assert listed[0]["waits"] == [wait]
    plain = halo("runs").out
    assert plain.startswith(f"{run_id}  paused  P (t.halo)  ")
    assert f"{wait['id']}  yield at stage 1: Go on?" in plain
    refused = halo("resume", run_id)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"error: the run waits for an answer: give it with {ways}\n  ")
    went = halo("resume", run_id, "--yes")
    assert (went.code, went.out) == (0, "went\n")
    assert f"(halo replay t.halo {run_id})" in went.err
    assert halo("runs") == (0, "", "there are no paused runs\n")
    again = halo("resume", run_id, "--yes")
    assert (again.code, again.err) == (
        1,
        f"error: RESUME_CONFLICT: the run {run_id} is not kept any more: it has ended\n",
    )
    assert halo("replay", "t.halo", run_id).code == 0


@pytest.mark.parametrize("how", [(), ("--no-record",), ("--checkpoint",)])
def test_whatever_is_recorded_a_pause_is_kept_and_nothing_stays_behind(halo: Commands, how: tuple[str, ...]) -> None:
    halo.write("t.halo", QUIET)
    run_id, said = halo.begun("t.halo", "x=1", *how)
    assert "kept in .halo/runs until it ends" in said.err
    assert halo.kept() == [".gitignore", *([] if how else ["recordings/ID.jsonl"]), "runs/ID.jsonl"]
    assert halo("resume", run_id, "--no", "later").code == 0
    assert halo.kept() == [".gitignore", *([] if how else ["recordings/ID.jsonl"])]


def test_the_commands_answers(halo: Commands) -> None:
    halo.write("t.halo", TWO)
    run_id, said = halo.begun("t.halo", "x=1", "--pipeline", "P")
    ids = {wait["kind"]: wait["id"] for wait in said.document["waits"]}
    several = halo("resume", run_id, "--yes")
    assert several.code == 2
    assert "the run waits for several answers: say which with --wait" in several.err
    assert all(identity in several.err for identity in ids.values())
    for words, code, says in (
        (("--yes", "--no"), 2, "give one answer at a time"),
        (("--wait", ids["yield"]), 2, "--wait goes with one answer"),
        (("--event", "Slack.Reaction"), 2, "--event takes NAME=JSON"),
        (("--event", "Slack.Reaction={"), 2, "--event takes JSON, and got `{`"),
        (("--answer", "yes"), 2, "--answer takes JSON, and got `yes`"),
        (("--done", "["), 2, "--done takes JSON"),
        (("--yes", "--wait", ids["listen"]), 2, "--yes does not answer"),
        (("--again",), 2, "--again answers nothing"),
    ):
        refused = halo("resume", run_id, *words)
        assert (refused.code, refused.out) == (code, "")
        assert says in refused.err
    first = halo("resume", run_id, "--event", 'Slack.Reaction={"n": 1}')
    assert (first.code, first.out) == (3, '{"n":1}\n')
    assert [wait["id"] for wait in halo("runs", "--json").document["runs"][0]["waits"]] == [ids["yield"]]
    last = halo("resume", run_id, "--answer", '{"approved": true}', "--wait", ids["yield"], "--json")
    assert (last.code, last.document["output"], last.document["printed"]) == (0, ["yielded", {"n": 1}], ["yielded"])
    assert halo("replay", "t.halo", run_id).code == 0


def test_a_signal_is_kept_and_delivered_once(halo: Commands) -> None:
    halo.write("t.halo", TWO)
    run_id, _ = halo.begun("t.halo", "x=1", "--pipeline", "P")
    sent = halo("signal", run_id, "Slack.Reaction", "1")
    assert sent == (0, "", f"kept for the run; go on with: halo resume {run_id}\n")
    assert halo("signal", run_id, "Slack.Reaction", "2", "-q") == (0, "", "")
    went = halo("resume", run_id)  # needs no answer: an event that it waits for is there
    assert (went.code, went.out) == (3, "1\n")
    again = halo("resume", run_id)
    assert again.code == 2
    assert halo("resume", run_id, "--yes").code == 0
    late = halo("signal", run_id, "Slack.Reaction", "3")
    assert (late.code, late.err) == (1, f"error: RESUME_CONFLICT: the run {run_id} has ended, or has not paused yet\n")
    assert halo("replay", "t.halo", run_id).code == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ((RUN, "E.A", "1"), 1, "there is no paused run"),
        (("../x", "E.A", "1"), 1, "`../x` is no run id"),
        ((RUN, "E..A", "1"), 2, "an event's name is written like Slack.Reaction"),
        ((RUN, "", "1"), 2, "an event's name is written like Slack.Reaction"),
        ((RUN, "E.A", "{"), 2, "JSON takes JSON, and got `{`"),
    ],
)
def test_a_signal_that_cannot_be_sent_is_an_error(halo: Commands, words: tuple[str, ...], code: int, says: str) -> None:
    refused = halo("signal", *words)
    assert (refused.code, refused.out) == (code, "")
    assert says in refused.err


def test_a_resume_uses_what_the_run_was_started_with(halo: Commands) -> None:
    halo.write(
        "t.halo",
        ASK + FILES + 'pipeline P(x: Any) -> Result requires Ask:\n  x\n    |! yield("Go?")\n'
        '    |> Files.write(path: "a.md", content: "x")\n',
    )
    run_id, _ = halo.begun("t.halo", "x=1", "--yes-to", "Files.write")
    assert halo("resume", run_id, "--yes").code == 0
    assert Path("notes/a.md").read_text() == "x"


def test_a_file_that_changed_since_its_change_was_shown_is_asked_about_again(halo: Commands) -> None:
    """Days later: what is approved is what was shown, not what the file has become."""
    halo.write(
        "t.halo",
        ASK
        + FILES
        + 'pipeline P(x: Any) -> Result requires Ask:\n  x\n    |> Files.write(path: "a.md", content: "new\\n")\n',
    )
    note = halo.write("notes/a.md", "old\n")
    run_id, said = halo.begun("t.halo", "x=1")
    (wait,) = said.document["waits"]
    assert "-old" in wait["difference"]
    assert "+new" in wait["difference"]
    assert "digest" not in wait
    note.write_text("changed meanwhile\n")
    again = halo("resume", run_id, "--yes", "--json")
    assert (again.code, note.read_text()) == (3, "changed meanwhile\n")
    (wait,) = again.document["waits"]
    assert "-changed meanwhile" in wait["difference"]
    assert halo("resume", run_id, "--yes").code == 0
    assert note.read_text() == "new\n"
    assert halo("replay", "t.halo", run_id).code == 0


def test_a_file_with_errors_or_without_the_pipeline_does_not_go_on(halo: Commands) -> None:
    halo.write("t.halo", QUIET)
    run_id, _ = halo.begun("t.halo", "x=1")
    halo.write("t.halo", QUIET.replace("x\n", "y\n", 1))
    assert "t.halo has errors, so the run does not go on" in halo("resume", run_id, "--yes", "--changed").err
    halo.write("t.halo", QUIET.replace("pipeline P", "pipeline Q"))
    assert "PROGRAM_CHANGED: t.halo has no pipeline P any more" in halo("resume", run_id, "--yes", "--changed").err
    halo.write("t.halo", QUIET.replace("x: Any", "x: Any, z: Any"))
    assert (
        "PROGRAM_CHANGED: the run's arguments do not fit the pipeline any more"
        in halo("resume", run_id, "--yes", "--changed").err
    )
    Path("t.halo").unlink()
    assert "t.halo: there is no such file" in halo("resume", run_id, "--yes").err
    halo.write("t.halo", QUIET)
    assert halo("resume", run_id, "--yes").code == 0


def test_a_damaged_journal_is_listed_and_refused(halo: Commands) -> None:
    halo.write("t.halo", QUIET)
    run_id, _ = halo.begun("t.halo", "x=1")
    path = Path(f".halo/runs/{run_id}.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"type":"call","kind":"listen","target":"E","scope":[],"signal":5,"value":1}\n')
    assert "is damaged" in halo("resume", run_id, "--yes").err
    path.write_bytes(b"\x00\xff\n" + whole)
    assert [run["status"] for run in halo("runs", "--json").document["runs"]] == ["damaged"]
    way_out = f"line 1 is no JSON; give it up with: halo runs rm {run_id}"
    assert halo("runs").out == f"{run_id}  damaged\n  {way_out}\n"
    refused = halo("resume", run_id, "--yes")
    assert (refused.code, refused.err) == (1, "error: RECORDING_INVALID: line 1 is no JSON\n")
    path.write_bytes(b"")
    assert "the journal is empty" in halo("resume", run_id, "--yes").err


def test_a_link_in_the_place_of_a_journal_is_none(halo: Commands) -> None:
    halo.write("t.halo", QUIET)
    run_id, _ = halo.begun("t.halo", "x=1")
    os.rename(f".halo/runs/{run_id}.jsonl", "elsewhere")
    os.symlink(Path("elsewhere").absolute(), f".halo/runs/{run_id}.jsonl")
    assert halo("runs", "--json").document == {"runs": []}
    assert halo("resume", run_id, "--yes").code == 1


def test_terminal_escapes_in_what_is_asked_are_shown_and_not_obeyed(halo: Commands) -> None:
    halo.write("t.halo", QUIET)
    run_id, said = halo.begun("t.halo", "x=\x1b[2Jboo")
    assert "\x1b" not in said.err
    assert "\x1b" not in halo("runs").out
    assert "\x1b" not in halo("resume", run_id).err
