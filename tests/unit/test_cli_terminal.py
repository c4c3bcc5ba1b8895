"""A person at the terminal, by a real pseudo-terminal: prompts, answers, the live display (cli.md, tools.md §3)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from commands import OnTerminal, screen_of
from servers.scripted import ModelServer, Reply

YIELD = """\
pipeline P(x: String) -> Result:
  x
    |! yield("Publish {{x}}?", channel: "#editors", [x, {k: x}], 1h) as review
    |> System.Print(context.data.review)
"""
LISTEN = """\
pipeline P(x: String) -> Result:
  x
    ~> listen(Slack.Reaction) as got
    |> System.Print(context.data.got)
"""
APPROVE = """\
policy Careful : ApproveEffects(write)
tool Files : Workspace("./notes", write: true)
agent A [local/scripted, max_steps: 3]
  equips Files
  requires Careful
pipeline P(x: String) -> Result:
  x
    |> A.work("Go.", tools: [Files])
"""


def write(path: str, content: str = "new\n") -> tuple[str, dict[str, str]]:
    return "Files_write", {"path": path, "content": content}


def program(folder: Path, text: str) -> Path:
    (folder / "p.halo").write_text(text)
    return folder


# Yields ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("yes\n", '{"approved":true}'),
        ("Y\n", '{"approved":true}'),
        ("no\n", '{"approved":false}'),
        ("\n", '{"approved":false}'),
        ("\x04", '{"approved":false}'),
        ("yes, but later\n", '{"text":"yes, but later"}'),
        ('{"approved": true, "note": "fine"}\n', '{"approved":true,"note":"fine"}'),
        ('{"approved": tru\n', '{"text":"{\\"approved\\": tru"}'),
        ("  äöü  \n", '{"text":"äöü"}'),
    ],
)
def test_a_yield_is_answered_by_a_line(tmp_path: Path, typed: str, answer: str) -> None:
    with OnTerminal(program(tmp_path, YIELD), "run", "p.halo", "x=it", "--no-record") as terminal:
        terminal.expect("stage 1 asks: Publish it?")
        shown = terminal.expect("a JSON object] ")
        terminal.type(typed)
        assert terminal.end() == 0
    for part in ("channel: #editors", "    it\r\n", '{"k":"it"}', "within 3600 s"):
        assert part in shown
    assert answer in terminal.text


def test_what_was_typed_before_a_question_is_no_answer_to_it(tmp_path: Path) -> None:
    text = YIELD.replace("  x\n    |!", '  x\n    |! yield("First?")\n    |!')
    with OnTerminal(program(tmp_path, text), "run", "p.halo", "x=it", "--no-record") as terminal:
        terminal.expect("First?")
        terminal.expect("object] ")
        terminal.type("yes\nyes\n")
        terminal.expect("Publish it?")
        terminal.expect("object] ")
        terminal.type("no\n")
        assert terminal.end() == 0
    assert '{"approved":false}' in terminal.text


def test_control_characters_of_a_model_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    text = "agent A [local/scripted]\n" + YIELD.replace("  x\n", "  x\n    |> A.go() as said\n").replace(
        "{{x}}", "{{said}}"
    )
    evil = "\x1b[2J\x1b]0;owned\x07\r\u202eabc\n[yes, no] \x9b31m"
    with (
        ModelServer(evil) as server,
        OnTerminal(program(tmp_path, text), "run", "p.halo", "x=1", "--no-record", env=server.environment) as terminal,
    ):
        terminal.expect("object] ")
        terminal.type("no\n")
        assert terminal.end() == 0
    assert "\\x1b[2J\\x1b]0;owned\\x07\\r\\u202eabc\n" in terminal.text
    assert "\n    [yes, no] \\x9b31m" in terminal.text  # lines of the message are set off from the prompt's own
    for forbidden in ("\x1b[2J", "\x1b]", "\x07", "\u202e", "\x9b"):
        assert forbidden not in terminal.text


@pytest.mark.parametrize("text", [YIELD, LISTEN])
def test_ctrl_c_at_a_question_stops_at_once(tmp_path: Path, text: str) -> None:
    with OnTerminal(program(tmp_path, text), "run", "p.halo", "x=it", "--no-record") as terminal:
        terminal.expect("] ")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert "cancelled" in terminal.text


# Events ----------------------------------------------------------------------------------------------------------


def test_an_event_is_a_line_of_json_and_asked_for_again(tmp_path: Path) -> None:
    with OnTerminal(program(tmp_path, LISTEN), "run", "p.halo", "x=it", "--no-record") as terminal:
        terminal.expect("waits for the event Slack.Reaction")
        terminal.expect("JSON] ")
        terminal.type("approve\n")
        terminal.expect("that is no JSON")
        terminal.expect("JSON] ")
        terminal.type('{"reaction": "ok"}\n')
        assert terminal.end() == 0
    assert '{"reaction":"ok"}' in terminal.text


def test_an_event_that_cannot_come_fails_the_run(tmp_path: Path) -> None:
    with OnTerminal(program(tmp_path, LISTEN), "run", "p.halo", "x=it", "--no-record") as terminal:
        terminal.expect("JSON] ")
        terminal.type("\x04")
        assert terminal.end() == 1
    assert "CONFIG: the run waits for the event Slack.Reaction, and input has ended" in terminal.text
    assert [line for line in terminal.screen() if line.startswith("p.halo:3:5: error")]


# Approvals -------------------------------------------------------------------------------------------------------


def approving(folder: Path, replies: list[Reply | str], *typed: str) -> tuple[OnTerminal, ModelServer, int]:
    program(folder, APPROVE)
    (folder / "notes").mkdir()
    (folder / "notes" / "a.md").write_text("old\n")
    with (
        ModelServer(*replies) as server,
        OnTerminal(folder, "run", "p.halo", "x=1", "--no-record", env=server.environment) as terminal,
    ):
        for line in typed:
            terminal.expect("Files.write in this run] ")
            terminal.type(line)
        code = terminal.end()
    return terminal, server, code


def told(server: ModelServer, at: int = 1) -> str:
    return "".join(str(m["content"]) for m in server.bodies[at]["messages"] if m["role"] == "tool")


def test_an_approval_shows_the_call_in_full(tmp_path: Path) -> None:
    terminal, _, code = approving(tmp_path, [Reply(call=[write("a.md", "new\x1b[2Jline\n")]), "done"], "y\n")
    assert code == 0
    for part in (
        "stage 1: agent A wants to call Files.write (write)",
        "required by the policy Careful",
        "path: a.md",
        "new\\x1b[2Jline",
        "-old",
        "+new\\x1b[2Jline",
    ):
        assert part in terminal.text
    assert "\x1b[2J" not in terminal.text


@pytest.mark.parametrize("typed", ["y\n", "yes\n", " Y \n"])
def test_yes(tmp_path: Path, typed: str) -> None:
    _, server, code = approving(tmp_path, [Reply(call=[write("a.md")]), "done"], typed)
    assert (code, (tmp_path / "notes" / "a.md").read_text()) == (0, "new\n")
    assert "error" not in told(server)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("n\n", ""),
        ("no not that file\n", ": not that file"),
        ("\n", ""),
        ("\x04", ""),
        ("maybe\n", ": the answer was unclear"),
        ("y please not\n", ": the answer was unclear"),
        ("yes but only once\n", ": the answer was unclear"),
        ("all of them\n", ": the answer was unclear"),
        ("c {\n", ": the changed arguments were no JSON object"),
        ("c [1]\n", ": the changed arguments were no JSON object"),
        ("yy\n", ": the answer was unclear"),
    ],
)
def test_everything_else_is_a_no(tmp_path: Path, typed: str, reason: str) -> None:
    _, server, code = approving(tmp_path, [Reply(call=[write("a.md")]), "done"], typed)
    assert (code, (tmp_path / "notes" / "a.md").read_text()) == (0, "old\n")
    assert told(server) == f"error APPROVAL_DENIED: a person refused this call of `Files.write`{reason}"


def test_yes_with_changed_arguments(tmp_path: Path) -> None:
    changed = 'c {"path": "b.md", "content": "mine"}\n'
    terminal, _, code = approving(tmp_path, [Reply(call=[write("a.md")]), "done"], changed, "y\n")
    assert (code, (tmp_path / "notes" / "b.md").read_text()) == (0, "mine")
    assert (tmp_path / "notes" / "a.md").read_text() == "old\n"
    assert "path: b.md" in terminal.text  # asked again: nobody has seen what would become of this file
    assert "+mine" in terminal.text


def test_changed_content_of_the_same_file_is_asked_about_once(tmp_path: Path) -> None:
    changed = 'c {"path": "a.md", "content": "mine"}\n'
    _, _, code = approving(tmp_path, [Reply(call=[write("a.md")]), "done"], changed)
    assert (code, (tmp_path / "notes" / "a.md").read_text()) == (0, "mine")


def test_arguments_that_are_not_changed_stay_as_they_were_shown(tmp_path: Path) -> None:
    terminal, _, code = approving(tmp_path, [Reply(call=[write("a.md")]), "done"], 'c {"content": "Mine."}\n')
    assert (code, (tmp_path / "notes" / "a.md").read_text()) == (0, "Mine.")
    assert 'c {"NAME": JSON} yes with these arguments changed' in terminal.text


def test_changed_arguments_pass_the_rules_again(tmp_path: Path) -> None:
    _, server, _ = approving(tmp_path, [Reply(call=[write("a.md")]), "done"], 'c {"kontent": "Mine."}\n')
    assert told(server).startswith("error TOOL_ARGUMENTS: ")
    assert (tmp_path / "notes" / "a.md").read_text() == "old\n"


def test_yes_to_all_asks_once(tmp_path: Path) -> None:
    replies: list[Reply | str] = [Reply(call=[write("a.md"), write("b.md")]), Reply(call=[write("c.md")]), "done"]
    terminal, _, code = approving(tmp_path, replies, "a\n")
    assert code == 0
    assert sorted(p.name for p in (tmp_path / "notes").iterdir()) == ["a.md", "b.md", "c.md"]
    assert terminal.text.count("wants to call") == 1


def test_each_call_is_asked_about(tmp_path: Path) -> None:
    terminal, _, code = approving(tmp_path, [Reply(call=[write("a.md"), write("b.md")]), "done"], "y\n", "n\n")
    assert (code, terminal.text.count("wants to call")) == (0, 2)
    assert not (tmp_path / "notes" / "b.md").exists()


def test_ctrl_c_at_an_approval_stops_at_once_and_changes_nothing(tmp_path: Path) -> None:
    terminal, server, code = approving(tmp_path, [Reply(call=[write("a.md")]), "done"], "\x03")
    assert (code, (tmp_path / "notes" / "a.md").read_text()) == (130, "old\n")
    assert len(server.bodies) == 1
    assert "Traceback" not in terminal.text


# Missing arguments -----------------------------------------------------------------------------------------------


def test_missing_arguments_are_asked_for(tmp_path: Path) -> None:
    text = 'pipeline P(a: String, n: Number, b: String = "b") -> Result:\n  [a, n, b]\n'
    with OnTerminal(program(tmp_path, text), "run", "p.halo", "--mock") as terminal:
        terminal.expect("a (String): ")
        terminal.type("one two\n")
        terminal.expect("n (Number): ")
        terminal.type("3\n")
        assert terminal.end() == 0
    assert '["one two",3,"b"]' in terminal.text


def test_what_is_no_argument_is_asked_for_again_until_input_ends(tmp_path: Path) -> None:
    text = "pipeline P(n: Number, b: Boolean) -> Result:\n  [n, b]\n"
    with OnTerminal(program(tmp_path, text), "run", "p.halo", "--mock") as terminal:
        for asked, typed in (
            ("n (Number): ", "many\n"),
            ("the argument `n` takes a Number, as JSON, and got `many`\r\nn (Number): ", '"5"\n'),
            ("n (Number): ", "5\n"),
            ("b (Boolean): ", "1\n"),
            ("b (Boolean): ", "\x04"),
        ):
            terminal.expect(asked)
            terminal.type(typed)
        assert terminal.end() == 2
    assert "input has ended, and pipeline P needs b=" in terminal.text
    assert terminal.text.count("n (Number): ") == 3


# The live display ------------------------------------------------------------------------------------------------

TALK = """\
agent A [local/scripted]
agent B [local/scripted]
pipeline P(x: String) -> Result:
  x
    |* { A.tell(), B.tell() }
    |> System.Print("between")
    |> A.end()
"""
SLOW = Reply("word " * 30, held=True)


def shown(
    folder: Path, *args: str, env: dict[str, str] | None = None, text: str = TALK, drawn: bool = True, **more: int
) -> OnTerminal:
    """A terminal on which a run has ended. Where it is `drawn`, tokens were seen before there was an answer."""
    with (
        ModelServer(SLOW) as server,
        OnTerminal(
            program(folder, text),
            "run",
            "p.halo",
            "x=1",
            "--no-record",
            *args,
            env={**server.environment, **(env or {})},
            **more,  # type: ignore[arg-type]
        ) as terminal,
    ):
        if drawn:
            terminal.expect("word word")
        server.let_go()
        assert terminal.end() == 0
    return terminal


def test_the_display_shows_branches_tokens_and_cost_and_disappears(tmp_path: Path) -> None:
    terminal = shown(tmp_path)
    frames = terminal.text[: terminal.text.index("between")]
    for part in (r"1 +fan-out", r"1 +A\.tell \[0\] .*word word", r"1 +B\.tell \[1\] ", r"\$0\.0000 spent"):
        assert re.search(part, frames)
    screen = [line.rstrip() for line in terminal.screen()]
    summary = screen.index(next(line for line in screen if " LLM call(s)" in line))
    assert screen[:summary] == ["between", ("word " * 30).strip()[:100].rstrip(), ("word " * 30).strip()[100:]]
    assert screen[summary + 1 :] == [""]


def test_it_is_drawn_at_most_ten_times_a_second(tmp_path: Path) -> None:
    many = TALK.replace('    |> System.Print("between")\n', '    |> System.Print("between")\n' * 300)
    terminal = shown(tmp_path, text=many)
    ms = int(re.search(r"(\d+)ms ·", terminal.text)[1])  # type: ignore[index]
    assert terminal.text.count("\x1b[?7l") <= ms / 100 + 1
    assert terminal.screen().count("between") == 300


def test_it_fits_on_a_small_terminal(tmp_path: Path) -> None:
    text = TALK.replace("A.tell(), B.tell()", ", ".join(f"{'AB'[at % 2]}.tell{at}()" for at in range(20)))
    terminal = shown(tmp_path, text=text, rows=6)
    assert "… and" in terminal.text
    frames = re.findall(r"\x1b\[\?7l(.*?)\x1b\[\?7h", terminal.text, re.DOTALL)
    assert 0 < max(frame.count("\n") for frame in frames) < 6


def test_output_that_goes_elsewhere_is_data_alone(tmp_path: Path) -> None:
    terminal = shown(tmp_path, stdout=False)
    assert terminal.stdout_text == "between\n" + "word " * 30 + "\n"
    assert "\x1b[?7l" in terminal.text


def test_no_color_has_no_colours(tmp_path: Path) -> None:
    terminal = shown(tmp_path, env={"NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[0-9;]*m", terminal.text)


@pytest.mark.parametrize(("args", "env"), [(("-q",), {}), ((), {"TERM": "dumb"})])
def test_nothing_is_drawn_where_nobody_wants_it(tmp_path: Path, args: tuple[str, ...], env: dict[str, str]) -> None:
    terminal = shown(tmp_path, *args, env=env, drawn=False)
    assert "\x1b" not in terminal.text
    assert ("LLM call(s)" in terminal.text) is (not args)


def test_it_makes_room_for_a_question_and_does_not_draw_over_it(tmp_path: Path) -> None:
    text = TALK.replace('|> System.Print("between")', '|! yield("Sure?")')
    with (
        ModelServer(SLOW) as server,
        OnTerminal(program(tmp_path, text), "run", "p.halo", "x=1", "--no-record", env=server.environment) as terminal,
    ):
        server.let_go()
        terminal.expect("object] ")
        before = len(terminal.seen)
        terminal.type("ye")
        terminal.expect("ye")
        terminal.type("s\n")
        terminal.expect("s\r\n")
        assert b"\x1b[?7l" not in terminal.seen[before : terminal._at]
        assert terminal.end() == 0
    assert "stage 2 asks: Sure?" in terminal.screen()


def test_errors_are_coloured_on_a_terminal_only_where_wanted(tmp_path: Path) -> None:
    program(tmp_path, "pipeline P() -> Result:\n  y\n")
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        with OnTerminal(tmp_path, "check", "p.halo", env=env) as terminal:
            assert terminal.end() == 1
        assert ("\x1b[1;31m" in terminal.text) is coloured


def test_the_terminal_of_these_tests_knows_what_it_shows() -> None:
    text = "one\r\ntwo\x1b[K\r\nthree\r\x1b[1A\x1b[Jnew\r\n"
    assert screen_of(text, 80) == ["one", "new", ""]
    assert screen_of("\x1b[?7labcdef\x1b[?7h", 3) == ["abc"]
    assert screen_of("abcdef", 3) == ["abc", "def"]
