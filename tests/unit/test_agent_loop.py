"""The agent loop: what a model is asked and offered, and what becomes of its answers (language.md §6, tools.md §3)."""

from __future__ import annotations

import pytest

from halo_lang.boundary.call import Data
from runs import AGENT, TOOL, Answer, Call, Ended, checked, failed, first, last, pipeline, run, text_of, uses

HEAD = """\
policy ReadOnly : AllowTools("*.read", "*.list")
policy NoList : DenyTools("Files.list")
policy Private : Redact(email)
policy Careful : ApproveEffects(write)
tool Files : Workspace(".", write: true)
tool Notes : Workspace("n")
"""


def with_tools(
    answers: list[object],
    options: str = "",
    *,
    requires: str = "",
    around: str = "",
    tools: str = "[Files]",
    reply: object = None,
    pick=first,
) -> Ended:
    """A run of one stage in which an agent has tools. `answers` are the model's, in order."""
    text = (
        HEAD
        + f"agent T [openai/gpt-4o{options}]\n  equips Files, Notes\n"
        + (f"  requires {requires}\n" if requires else "")
    )
    stage = f'    |> T.work("Go.", tools: {tools})\n'
    text += f"pipeline P(x: Any) -> Result{' requires ' + around if around else ''}:\n  x\n{stage}"
    left = list(answers)

    def answer(call: Call) -> object:
        if call.kind == AGENT:
            return left.pop(0)
        if callable(reply):
            return reply(call)
        return {"approved": True} if call.kind == "approval" else f"result of {call.target}"

    return run(checked(text), answer, pick=pick)


def results(ended: Ended, at: int) -> list[tuple[str, bool, str]]:
    """The tool results in the messages of a request: the call's id, whether it failed, the text."""
    return [(m.tool_use_id, m.failed, text_of(m)) for m in ended.request(at).messages if m.role == "tool"]


# One request -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", ['A.go("Do.")', 'A.go("Do.", tools: [])'])
def test_without_tools_a_call_is_one_request_that_offers_none(written: str) -> None:
    ended = run(pipeline(f"|> {written}"))
    assert len(ended.asked) == 1
    assert ended.request(0).tools == ()


def test_a_tool_call_where_none_was_offered_is_a_model_error() -> None:
    ended = run(pipeline("|> A.go()"), {"A.go": uses(("Files_read", {"path": "a"}))})
    assert (ended.status, ended.code, ended.stage) == ("failed", "MODEL_ERROR", "1")


def test_what_is_sent_of_the_options() -> None:
    text = (
        'agent D [openai/gpt-4o, max_tokens: 9, temperature: 0.5, timeout: 3s, retries: 0]\n  system "Be {{brief}}."\n'
    )
    ended = run(text + pipeline("|> D.go(max_tokens: 7, top_p: 0.1)"))
    request = ended.request(0)
    assert (request.model, request.system) == ("openai/gpt-4o", "Be {{brief}}.")
    assert (request.max_tokens, request.temperature, request.top_p) == (7, 0.5, 0.1)
    assert (request.timeout_s, request.retries, request.stream) == (3.0, 0, False)


def test_defaults_of_the_options() -> None:
    request = run(pipeline("|> A.go()")).request(0)
    assert (request.max_tokens, request.temperature, request.top_p) == (4096, None, None)
    assert (request.timeout_s, request.retries) == (120.0, 2)


def test_it_streams_where_somebody_watches() -> None:
    assert run(pipeline("|> A.go()"), watched=True).request(0).stream is True


@pytest.mark.parametrize(
    ("written", "instructions", "data"),
    [
        ("A.argue_for()", "Your task: argue for.", [(None, "in")]),
        ('A("Say it.")', "Say it.", [(None, "in")]),
        ('A.go("One.", "Two {{x}}.")', "One.\n\nTwo in.", [(None, "in"), (None, "in")]),
        ("A.sum_up(x, [1, x])", "Your task: sum up.", [(None, "in"), (None, '[1,"in"]')]),
        ('A.go("Do.", tone: "dry", about: x)', "Do.", [("tone", "dry"), ("about", "in")]),
        ('A.go("Do.", given: null)', "Do.", [("given", "")]),
    ],
)
def test_what_is_sent(written: str, instructions: str, data: list[tuple[str | None, str]]) -> None:
    (message,) = run(pipeline(f"|> {written}")).request(0).messages
    assert message.role == "user"
    assert text_of(message).startswith(instructions)
    assert [(p.label, p.text) for p in message.parts if isinstance(p, Data)] == data


def test_a_bare_agent_gets_its_input_and_no_task() -> None:
    ended = run(pipeline("|* { A, B }"))
    assert ended.said(0) == "in"
    assert ended.targets() == ["A.prompt", "B.prompt"]


def test_what_is_inserted_is_data_and_what_is_written_is_not() -> None:
    (message,) = run(pipeline('|> A.go("Do {{x}} now.")'), args={"x": "evil"}).request(0).messages
    assert [p if isinstance(p, str) else ("data", p.text) for p in message.parts] == [
        "Do ",
        ("data", "evil"),
        " now.",
        "\n\n",
        ("data", "evil"),
    ]


def test_inserted_text_is_not_read_as_a_template() -> None:
    assert "{{x}}" in run(pipeline('|> A.go("Do {{x}}.")'), args={"x": "{{x}}"}).said(0)


@pytest.mark.parametrize("code", ["MODEL_ERROR", "MODEL_TIMEOUT"])
def test_a_failed_request_fails_the_run(code: str) -> None:
    ended = run(pipeline("|> A.go()", "|> B.never()"), {"A.go": failed(code, "the reply was cut")})
    assert (ended.status, ended.code, ended.message, ended.stage) == ("failed", code, "the reply was cut", "1")
    assert ended.calls == {"A.go": 1}


# Rounds ----------------------------------------------------------------------------------------------------------

READ = uses(("Files_read", {"path": "a"}))


def test_the_result_of_a_tool_goes_back_to_the_model() -> None:
    ended = with_tools([uses(("Files_read", {"path": "a"}), said="I look."), "done"])
    assert (ended.status, ended.output) == ("completed", "done")
    assert ended.calls == {"T.work": 1, "Files.read": 1}
    assert ended.data == {"T": {"work": "done"}}
    roles = [(m.role, text_of(m)) for m in ended.request(1).messages[1:]]
    assert roles == [("assistant", "I look."), ("tool", "result of Files.read")]
    assert results(ended, 1) == [("c0", False, "result of Files.read")]
    asked = ended.asked[1]
    assert (asked.kind, asked.target, asked.by, asked.id, asked.scope) == (TOOL, "Files.read", "T", "c0", (0,))


def test_no_more_rounds_than_max_steps_and_the_last_request_offers_nothing() -> None:
    ended = with_tools([READ, READ, "enough"], ", max_steps: 2")
    assert ended.output == "enough"
    assert [len(ended.request(at).tools) for at in range(3)] == [8, 8, 0]


def test_a_tool_call_in_the_last_answer_is_a_model_error() -> None:
    ended = with_tools([READ, READ, READ], ", max_steps: 2")
    assert (ended.code, ended.stage, ended.calls) == ("MODEL_ERROR", "1", {"T.work": 1, "Files.read": 2})


def test_ten_rounds_where_nothing_is_said() -> None:
    ended = with_tools([READ] * 10 + ["end"])
    assert (ended.output, ended.calls["Files.read"]) == ("end", 10)


def test_every_request_resends_the_conversation() -> None:
    ended = with_tools([READ, READ, "end"])
    assert [len(ended.request(at).messages) for at in range(3)] == [1, 3, 5]
    assert ended.request(2).messages[:3] == ended.request(1).messages


def test_the_offer_is_the_methods_own_description() -> None:
    offer = with_tools(["end"]).request(0).tools[0]
    assert (offer.name, offer.target) == ("Files_read", "Files.read")
    assert offer.schema["required"] == ["path"]


def test_several_tools_are_offered_in_the_order_named() -> None:
    ended = with_tools(["end"], tools="[Notes, Files]")
    assert [o.name for o in ended.request(0).tools][:5] == [
        "Notes_read",
        "Notes_list",
        "Notes_glob",
        "Notes_search",
        "Files_read",
    ]


# What goes back to the model -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (("Files_reed", {"path": "a"}), "there is no tool `Files_reed`"),
        (("Files.read", {"path": "a"}), "there is no tool"),
        (("Notes_read", {"path": "a"}), "there is no tool"),
        (("", {}), "there is no tool"),
        (("x" * 5000, {}), "there is no tool"),
        (("Files_read", None), "no JSON object"),
        (("Files_read", {}), "`path` is missing"),
        (("Files_read", {"path": 3}), "must be string"),
        (("Files_read", {"pth": "a", "path": "a"}), "no argument `pth`"),
        (("Files_write", {"path": "a", "content": "c", "digest": "x"}), "no argument `digest`"),
    ],
)
def test_what_cannot_be_called_is_an_error_for_the_model_and_counts_nowhere(
    use: tuple[str, dict[str, object] | None], words: str
) -> None:
    ended = with_tools([uses(use), "sorry"])
    ((id_, is_error, text),) = results(ended, 1)
    assert (id_, is_error, ended.output) == ("c0", True, "sorry")
    assert text.startswith("error TOOL_ARGUMENTS: ")
    assert words in text
    assert len(text) < 600
    assert ended.calls == {"T.work": 1}


@pytest.mark.parametrize("code", ["TOOL_ERROR", "TOOL_TIMEOUT", "DENIED"])
def test_a_tools_failure_goes_back_to_the_model(code: str) -> None:
    ended = with_tools([READ, "sorry"], reply=lambda call: failed(code, "no such file"))
    assert results(ended, 1) == [("c0", True, f"error {code}: no such file")]
    assert ended.status == "completed"


@pytest.mark.parametrize(("value", "text"), [({"a": [1]}, '{"a":[1]}'), (None, ""), ("t", "t"), ([], "[]")])
def test_a_result_is_shown_as_text(value: object, text: str) -> None:
    assert results(with_tools([READ, "end"], reply=lambda call: Answer(value)), 1) == [("c0", False, text)]


# Several calls in one answer -------------------------------------------------------------------------------------


def under_way(*calls: str, requires: str = "", pick=first) -> tuple[list[list[str]], Ended]:
    """What waits together while the calls of one answer are made, and the run. `r` reads, `w` writes."""
    names = {
        "r": ("Files_read", {"path": "a"}),
        "w": ("Files_write", {"path": "a", "content": "c"}),
        "?": ("No_such", {}),
    }
    seen: list[list[str]] = []

    def picking(waiting):
        seen.append([f"{r.call.kind[0]}{r.call.scope[-1]}" for r in waiting if r.call.kind != AGENT])
        return pick(waiting)

    ended = with_tools([uses(*(names[c] for c in calls)), "end"], requires=requires, pick=picking)
    return [together for together in seen if together], ended


@pytest.mark.parametrize("pick", [first, last])
def test_calls_that_only_read_are_under_way_together(pick) -> None:
    together, ended = under_way("r", "r", "r", pick=pick)
    assert together[0] == ["t0", "t1", "t2"]
    assert [id_ for id_, _, _ in results(ended, 1)] == ["c0", "c1", "c2"]


@pytest.mark.parametrize("pick", [first, last])
def test_a_call_that_does_more_waits_for_those_before_and_holds_those_after(pick) -> None:
    together, ended = under_way("r", "r", "w", "w", "r", "r", pick=pick)
    assert [sorted(t) for t in together] == [["t0", "t1"], together[1], ["t2"], ["t3"], ["t4", "t5"], together[5]]
    assert [len(t) for t in together] == [2, 1, 1, 1, 2, 1]
    assert [id_ for id_, _, _ in results(ended, 1)] == [f"c{at}" for at in range(6)]


def test_others_are_held_while_one_waits_for_a_person() -> None:
    together, _ = under_way("r", "w", "r", requires="Careful")
    assert together == [["t0"], ["a1"], ["t1"], ["t2"]]


def test_a_call_that_does_not_exist_holds_nothing() -> None:
    together, ended = under_way("r", "?", "r")
    assert together[0] == ["t0", "t2"]
    assert [failed_ for _, failed_, _ in results(ended, 1)] == [False, True, False]


def test_the_place_of_a_call_in_the_answer_is_in_its_scope() -> None:
    text = HEAD + "agent T [openai/gpt-4o]\n  equips Files\n"
    read = ("Files_read", {"path": "a"})
    answers = [uses(read, read), uses(read, read), "end", "end"]
    ended = run(
        text + pipeline('|* each(d in [1, 2]) => T.work("Go.", tools: [Files])'),
        lambda call: answers.pop(0) if call.kind == AGENT else "r",
    )
    assert [c.scope for c in ended.asked if c.kind == TOOL] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_failure_that_ends_the_run_names_the_agents_stage() -> None:
    read = ("Files_read", {"path": "a"})
    denied = {"approved": False}
    write = ("Files_write", {"path": "a", "content": "c"})
    ended = with_tools(
        [uses(read, read), uses(write, write, write), "never"], requires="Careful", reply=lambda c: denied
    )
    assert (ended.status, ended.code, ended.stage) == ("failed", "APPROVAL_DENIED", "1")


# Policies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requires", "around", "offered"),
    [
        ("ReadOnly", "", ["Files_read", "Files_list"]),
        ("ReadOnly, NoList", "", ["Files_read"]),
        ("", "ReadOnly", ["Files_read", "Files_list"]),
        ("NoList", "ReadOnly", ["Files_read"]),
        ("ReadOnly", "NoList", ["Files_read"]),
    ],
)
def test_the_tools_are_those_that_all_policies_leave(requires: str, around: str, offered: list[str]) -> None:
    ended = with_tools([uses(("Files_write", {"path": "a", "content": "c"})), "end"], requires=requires, around=around)
    assert [o.name for o in ended.request(0).tools] == offered
    ((_, is_error, text),) = results(ended, 1)
    assert is_error
    assert "there is no tool `Files_write`" in text


def test_a_hidden_tool_is_hidden_by_a_pipeline_far_around() -> None:
    text = HEAD + "agent T [openai/gpt-4o]\n  equips Files\n"
    inner = pipeline("|> T.work(tools: [Files])", name="In")
    middle = pipeline("|* each(d in [1]) => In(d)", name="Middle")
    outer = "pipeline P(x: Any) -> Result requires ReadOnly:\n  x\n    |> Middle()\n"
    ended = run(text + inner + middle + outer)
    assert [o.name for o in ended.request(0).tools] == ["Files_read", "Files_list"]
    ended = run(text + inner + middle + outer, name="Middle")
    assert len(ended.request(0).tools) == 8


# Redact ----------------------------------------------------------------------------------------------------------


def test_redact_governs_what_is_sent_and_what_is_answered() -> None:
    ask = uses(("Files_write", {"path": "x@a.org", "content": "mail y@b.org"}), said="I ask z@c.org.")
    ended = with_tools([ask, "It is w@d.org."], requires="Private", reply=lambda call: "found v@e.org")
    assert ended.output == "It is [email]."
    assert ended.data == {"T": {"work": "It is [email]."}}
    assert dict(ended.asked[1].args) == {"path": "[email]", "content": "mail [email]"}
    sent = ended.said(1)
    assert "@" not in sent
    assert "I ask [email]." in sent
    assert "found [email]" in sent


def test_redact_of_a_pipeline_governs_the_agents_in_it_and_input_and_system() -> None:
    text = HEAD + 'agent D [openai/gpt-4o]\n  system "Write to s@a.org."\n'
    body = '  x\n    |> D.go("Ask i@a.org about {{x}}.", to: x)\n'
    ended = run(text + f"pipeline P(x: Any) -> Result requires Private:\n{body}", args={"x": {"m@a.org": ["n@a.org"]}})
    assert "@" not in ended.request(0).system + ended.said(0)
    assert ended.said(0).count("[email]") == 5


def test_an_agent_with_redact_does_not_stream() -> None:
    text = HEAD + "agent D [openai/gpt-4o]\n  requires Private\n"
    assert run(text + pipeline("|> D.go()"), watched=True).request(0).stream is False


def test_an_address_that_json_hides_behind_an_escape_is_redacted_too() -> None:
    text = HEAD + "agent D [openai/gpt-4o]\n  requires Private\n"
    ended = run(text + pipeline("|> D.go() as got"), {"D.go": '{"to": "a\\u0040b.org", "c\\u0040d.org": 1}'})
    assert ended.data["got"] == {"to": "[email]", "[email]": 1}


def test_what_a_loop_shows_is_redacted() -> None:
    text = HEAD + "agent D [openai/gpt-4o]\n  requires Private\n"
    loop = '|<> loop(D, "context.current != \\"ok\\"")'
    ended = run(text + pipeline("|> D.go()", "|> B.test()", loop), {"D.go": "a@b.org", "B.test": ["c@d.org", "ok"]})
    assert "@" not in "".join(ended.said(at) for at in (0, 2))


def test_a_shadow_is_redacted() -> None:
    text = HEAD + "agent D [openai/gpt-4o]\n  requires Private\n"
    ended = run(text + pipeline("@shadow(D.go()) |> A.go()"), args={"x": "a@b.org"})
    assert "[email]" in text_of(ended.asides[0].request.messages[0])
    (shown,) = ended.aside_shows
    assert shown(Answer("c@d.org")) == Answer("[email]")
    assert shown(failed("MODEL_ERROR", "no c@d.org")).error.message == "no [email]"


def test_an_agent_of_a_variable_names_it() -> None:
    ended = run("agent D [Env.MODEL]\n" + pipeline("|> D.go()"))
    assert ended.request(0).model == "Env.MODEL"


def test_no_server_takes_the_name_of_a_method_that_the_file_knows() -> None:
    text = (
        'tool Files : Mcp("server")\ntool Files_in : Workspace(".")\n'
        "agent T [openai/gpt-4o]\n  equips Files, Files_in\n"
        'pipeline P(x: Any) -> Result:\n  x\n    |> T.work("Go.", tools: [Files, Files_in])\n'
    )
    replies = [uses(("Files_in_read", {"path": "a"})), "done"]

    def answer(call: Call) -> object:
        if call.kind == AGENT:
            return replies.pop(0)
        return [{"name": "in_read", "about": "", "schema": {}}] if call.target == "Files.*" else "text"

    ended = run(checked(text), answer)
    assert ended.targets(TOOL) == ["Files.*", "Files_in.read"]
    assert [offer.target for offer in ended.request(0).tools if offer.name == "Files_in_read_2"] == ["Files.in_read"]
