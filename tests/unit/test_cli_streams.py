"""Standard streams of a real process: what goes where, and what becomes of closed and full ones (cli.md)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from commands import Ended, halo, shell

PRINTS = """\
agent A [openai/gpt-4o-mini]
pipeline P(x: String) -> Result:
  x
    |> System.Print("printed {{x}}")
    |> System.Log("logged {{x}}")
    |> A.go()
"""
MANY = """\
pipeline Main(x: String) -> Result:
  x
    |> System.Print()
    |* each(i in [1, 2, 3, 4, 5, 6, 7, 8]) => Eight(x)
pipeline Eight(x: String) -> Result:
  x
    |* each(i in [1, 2, 3, 4, 5, 6, 7, 8]) => Print(x)
pipeline Print(x: String) -> Result:
  x
    |> System.Print()
"""


def program(folder: Path, text: str = PRINTS) -> Path:
    (folder / "p.halo").write_text(text)
    return folder


def plain(ended: Ended) -> Ended:
    assert "Traceback" not in ended.err
    assert "Exception ignored" not in ended.err
    assert "halo itself failed" not in ended.err
    return ended


def test_data_goes_to_stdout_and_everything_else_to_stderr(tmp_path: Path) -> None:
    ended = plain(halo(program(tmp_path), "run", "p.halo", "x=1", "--mock"))
    assert (ended.code, ended.out) == (0, "printed 1\n[mock A.go]\n")
    assert ended.err.startswith("log: logged 1\n")
    assert "1 LLM call(s)" in ended.err


def test_quiet_says_nothing_but_errors(tmp_path: Path) -> None:
    ended = plain(halo(program(tmp_path), "run", "p.halo", "x=1", "--mock", "-q"))
    assert (ended.out, ended.err) == ("printed 1\n[mock A.go]\n", "")
    program(tmp_path, PRINTS.replace("A.go()", 'System.Fail("bad")'))
    assert "error PIPELINE_FAILED: bad" in halo(tmp_path, "run", "p.halo", "x=1", "--mock", "-q").err
    program(tmp_path, "pipeline P(x: String) -> Result:\n  x\n    |? (!x)\n")
    assert halo(tmp_path, "run", "p.halo", "x=1", "--mock", "-q").err == ""


def test_json_is_one_document_on_stdout_and_nothing_else(tmp_path: Path) -> None:
    ended = plain(halo(program(tmp_path), "run", "p.halo", "x=1", "--mock", "--json"))
    document = json.loads(ended.out)
    assert document["printed"] == ["printed 1"]
    assert document["output"] == "[mock A.go]"
    assert "printed 1\n" in ended.err


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    ended = plain(
        shell(
            program(tmp_path, MANY), "halo run p.halo x=$(printf %070000d 1) --mock | head -c1; echo ${PIPESTATUS[0]}"
        )
    )
    assert (ended.out, ended.err) == ("0141\n", "")


@pytest.mark.parametrize("command", ["explain CONFIG", "--help", "plan p.halo --json", "run p.halo x=1 --mock --json"])
def test_whatever_the_command(tmp_path: Path, command: str) -> None:
    # The reader ends before the command has begun to write.
    ended = plain(shell(program(tmp_path), f"{{ sleep 0.2; halo {command} 2> err; echo $? > code; }} | true; cat code"))
    assert (ended.out, (tmp_path / "err").read_text().count("rror")) == ("141\n", 0)


LIVE = """\
tool Files : Workspace("./notes", write: true)
pipeline Main(x: Any) -> Result:
  x
    |* each(i in [1, 2, 3], concurrency: 1) => One(i, x)
    |> Files.write(path: "end", content: "x")
pipeline One(i: Number, x: Any) -> Result:
  i
    |> Files.write(path: "{{i}}", content: "x")
    |> System.Print("{{x}}")
    |> System.Now()
"""


@pytest.mark.parametrize("how", ["", "--checkpoint"])
@pytest.mark.parametrize(
    ("where", "code"), [("| head -c1 > /dev/null; echo ${PIPESTATUS[0]}", 141), ("> /dev/full; echo $?", 1)]
)
def test_a_run_whose_output_nobody_takes_is_stopped_and_kept(tmp_path: Path, how: str, where: str, code: int) -> None:
    ended = plain(shell(program(tmp_path, LIVE), f"halo run p.halo x=$(printf %070000d 1) {how} {where}"))
    assert ended.out == f"{code}\n"
    assert [line for line in ended.err.splitlines() if "rror" in line] == ["error: No space left on device"] * (
        code == 1
    )
    assert "cancelled\n" in ended.err
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["1"]
    folder = "runs" if how else "recordings"
    (kept,) = (tmp_path / ".halo" / folder).iterdir()
    assert json.loads(kept.read_text().splitlines()[-1]) == {"type": "finish", "status": "cancelled"}
    if how:
        ended = halo(tmp_path, "resume", kept.stem, "-q")
        assert (ended.code, sorted(path.name for path in (tmp_path / "notes").iterdir())) == (0, ["1", "2", "3", "end"])


@pytest.mark.parametrize(
    "command", ["run p.halo x=1 --mock", "run p.halo x=1 --mock --json", "check p.halo --json", "explain"]
)
def test_a_full_disk_is_one_message(tmp_path: Path, command: str) -> None:
    ended = plain(shell(program(tmp_path), f"halo {command} > /dev/full"))
    assert ended.code == 1
    assert [line for line in ended.err.split("\n") if "error:" in line] == ["error: No space left on device"]


@pytest.mark.parametrize("where", ["2>&-", "2> /dev/full", "2> >(exec true)"])
def test_what_is_said_may_be_lost_and_harms_nothing(tmp_path: Path, where: str) -> None:
    ended = plain(shell(program(tmp_path), f"halo run p.halo x=1 --mock {where}"))
    assert (ended.code, ended.out) == (0, "printed 1\n[mock A.go]\n")


def test_a_closed_standard_output_gets_nothing_and_lends_its_number_to_nobody(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("kept")
    text = 'tool F : Workspace(".", write: true)\n' + PRINTS.replace("A.go()", 'F.write("b.md", "b")').replace(
        "agent A [openai/gpt-4o-mini]\n", ""
    )
    ended = plain(shell(program(tmp_path, text), "halo run p.halo x=1 --no-record >&- <&-; echo $? >&2"))
    assert ended.err.splitlines()[-1] == "0", ended
    assert (tmp_path / "b.md").read_text() == "b"
    assert "printed" not in ended.err


def test_a_closed_standard_input_is_an_empty_one(tmp_path: Path) -> None:
    ended = plain(shell(program(tmp_path), "halo run p.halo --mock <&-"))
    assert (ended.code, ended.err) == (2, "error: pipeline P needs x=…\n")
    ended = plain(shell(tmp_path, "halo run p.halo x=- --mock <&-"))
    assert (ended.code, ended.out) == (0, "printed \n[mock A.go]\n")


def test_json_is_json_in_every_encoding(tmp_path: Path) -> None:
    for encoding in ("ascii", "latin-1", "utf-8"):
        ended = halo(
            program(tmp_path), "run", "p.halo", "x=é🎈", "--mock", "--json", env={"PYTHONIOENCODING": encoding}
        )
        assert json.loads(ended.out)["printed"] == ["printed é🎈"]
    ended = plain(halo(tmp_path, "run", "p.halo", "x=é🎈", "--mock", env={"PYTHONIOENCODING": "ascii"}))
    assert (ended.code, ended.out.splitlines()[0]) == (0, "printed \\xe9\\U0001f388")


def test_in_a_pipe_data_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text(json.dumps({"A.go": "\x1b[1mbold\x1b[0m\ttab\r\n"}))
    assert halo(program(tmp_path), "run", "p.halo", "x=1", "--mock", "answers.json").out.endswith(
        "\x1b[1mbold\x1b[0m\ttab\r\n\n"
    )


@pytest.mark.parametrize("message", ["\x1b[2Jgone", "a\rb", "\u202eabc"])
def test_errors_are_made_visible_everywhere(tmp_path: Path, message: str) -> None:
    (tmp_path / "answers.json").write_text(json.dumps({"A.go": {"error": message}}))
    ended = halo(program(tmp_path), "run", "p.halo", "x=1", "--mock", "answers.json")
    assert ended.code == 1
    assert message not in ended.err
    assert message.encode("unicode_escape").decode() in ended.err


EVIL = "\x1b[2J\x1b]0;owned\x07\u202e"
SHOWN = EVIL.encode("unicode_escape").decode()


def test_what_is_waited_for_is_made_visible_in_errors(tmp_path: Path) -> None:
    """Two yields at once, whose text came from a file: the refusal to answer both lists them."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "n.txt").write_text(EVIL)
    (tmp_path / "w.halo").write_text(
        'tool F : Workspace("./notes")\npipeline Ask(n: Any) -> Result:\n  n\n    |! yield("keep {{n}}?") as y\n'
        'pipeline Main() -> Result:\n  "n.txt"\n    |> F.read(path: "n.txt") as n\n    |* { Ask(n), Ask(n) }\n'
    )
    run_id = json.loads(halo(tmp_path, "run", "w.halo", "--json").out)["runId"]
    for answer in (("--yes",), ()):
        ended = halo(tmp_path, "resume", run_id, *answer)
        assert (ended.code, EVIL[0] in ended.err, "\u202e" in ended.err) == (2, False, False)
        assert ended.err.count(f"keep {SHOWN}?") == 2
        assert len(ended.err.splitlines()) == 3


@pytest.mark.parametrize(
    "words",
    [
        (f"no{EVIL}",),
        ("check", f"{EVIL}.halo"),
        ("plan", f"{EVIL}.halo"),
        ("explain", EVIL),
        ("tools", EVIL),
        ("run", "p.halo", f"--{EVIL}"),
        ("run", "p.halo", f"{EVIL}=1"),
        ("resume", EVIL),
        ("runs", "rm", EVIL),
        ("replay", "p.halo", EVIL),
        ("recordings", "show", EVIL),
        ("signal", EVIL, "A.b", "1"),
        ("fmt", "--check", f"odd{EVIL}.halo"),
        ("run", f"bad{EVIL}.halo"),
    ],
)
def test_no_name_that_is_given_moves_the_cursor(tmp_path: Path, words: tuple[str, ...]) -> None:
    program(tmp_path)
    (tmp_path / f"bad{EVIL}.halo").write_text(f'tool F : Nope("{EVIL}")\n')
    (tmp_path / f"odd{EVIL}.halo").write_text('pipeline   P() -> Result:\n  "x"\n')
    ended = halo(tmp_path, *words)
    assert ended.code in (1, 2)
    assert SHOWN in ended.err
    assert not any(c in ended.out + ended.err for c in EVIL if not c.isprintable())


def test_what_is_logged_is_made_visible(tmp_path: Path) -> None:
    assert "log: logged \\x1b[2J\n" in halo(program(tmp_path), "run", "p.halo", "x=\x1b[2J", "--mock").err


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('"a\\nb"', "a\nb\n"),
        ("[1, null]", "[1,null]\n"),
        ("null", ""),
        ("false", "false\n"),
        ("1.0", "1.0\n"),
        ('""', "\n"),
    ],
)
def test_how_values_are_printed(tmp_path: Path, value: str, shown: str) -> None:
    program(tmp_path, "pipeline P(x: Any) -> Result:\n  x\n")
    assert halo(tmp_path, "run", "p.halo", f"x={value}", "--mock").out == shown


@pytest.mark.parametrize(
    ("printed", "output", "out"),
    [
        ("x", "x", "1\n"),
        ("[x]", "[x]", "[1]\n"),
        ("[true]", "[1]", "[true]\n[1]\n"),
        ("1.0", "1", "1.0\n1\n"),
        ("true", "1", "true\n1\n"),
        ("null", "null", ""),
        ("2", "x", "2\n1\n"),
    ],
)
def test_the_output_is_not_printed_twice(tmp_path: Path, printed: str, output: str, out: str) -> None:
    text = f"pipeline Main(x: Number) -> Result:\n  {printed}\n    |> System.Print()\n    |> Q({output})\n"
    program(tmp_path, text + "pipeline Q(y: Any) -> Result:\n  y\n")
    assert halo(tmp_path, "run", "p.halo", "x=1", "--mock").out == out


def test_a_huge_value_passes(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("é" * 3_000_000)
    program(tmp_path, "pipeline P(x: String) -> Result:\n  x\n")
    ended = halo(tmp_path, "run", "p.halo", "x=@big.txt", "--mock", "--json")
    assert len(json.loads(ended.out)["output"]) == 3_000_000


def test_a_result_that_nests_too_deep_is_one_message(tmp_path: Path) -> None:
    text = "agent A [openai/gpt-4o]\npipeline W(v: Any) -> Result:\n  [v]\npipeline Main(x: Any) -> Result:\n  x\n"
    text += '    |> A.go()\n    |> W(context.data.W)\n    |<> loop(A, "context.data.loop.iteration != 900", max: 901)\n'
    program(tmp_path, text)
    for flags in ((), ("--json",)):
        ended = plain(halo(tmp_path, "run", "p.halo", "x=1", "--mock", *flags))
        assert (ended.code == 0) is ("nest" not in ended.err)  # how deep can be written is the interpreter's affair


def test_commands_never_wait_for_a_terminal_that_is_not_there(tmp_path: Path) -> None:
    program(tmp_path, 'pipeline P(x: String) -> Result:\n  x\n    |! yield("Go?")\n')
    ended = plain(halo(tmp_path, "run", "p.halo", "x=1"))
    assert ended.code == 3
    assert "halo resume" in ended.err


def test_a_working_folder_that_is_gone_is_one_message(tmp_path: Path) -> None:
    program(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    ended = plain(shell(tmp_path, f"cd {gone}; rmdir {gone}; halo run {tmp_path}/p.halo x=1 2>&1; echo $?"))
    assert ended.out.splitlines()[-1] == "1"
    assert os.path.exists(tmp_path / "p.halo")


@pytest.mark.parametrize("command", ["plan p.halo --out", "test p.halo --junit"])
def test_what_is_no_file_is_written_into_and_not_replaced(tmp_path: Path, command: str) -> None:
    tested = PRINTS + 'test "it runs":\n  run P(x: "1")\n  mock A => "said"\n'
    os.mkfifo(tmp_path / "pipe")
    ended = plain(shell(program(tmp_path, tested), f"cat pipe > got & halo {command} pipe; wait"))
    assert ended.code == 0, ended
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "got").stat().st_size > 0
    refused = plain(halo(tmp_path, *command.split(), "."))
    assert (refused.code, "error: .: cannot be written: Is a directory" in refused.err) == (1, True), refused
