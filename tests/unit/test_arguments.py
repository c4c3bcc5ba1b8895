"""Arguments of a run, by a real process where it matters (cli.md)."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from commands import halo, shell
from halo_lang.cli.arguments import chosen_pipeline, given_arguments
from halo_lang.cli.failing import CommandError
from halo_lang.cli.main import COMMANDS
from runs import checked

EVERY = """\
pipeline P(s: String, n: Number, b: Boolean, l: List, o: Object, a: Any, r: Result, d: String = "dry") -> Result:
  s
"""


def given(*words: str, text: str = EVERY, document: str | None = None) -> dict[str, object]:
    return given_arguments(checked(text).pipelines["P"], list(words), document)


def refused(*words: str, text: str = EVERY, document: str | None = None) -> str:
    with pytest.raises(CommandError) as error:
        given(*words, text=text, document=document)
    assert error.value.exit_code == 2
    return str(error.value)


def one(type_: str) -> str:
    return f"pipeline P(v: {type_}) -> Result:\n  v\n"


@pytest.mark.parametrize(
    ("type_", "written", "value"),
    [
        ("String", "12", "12"),
        ("String", "", ""),
        ("String", "a=b", "a=b"),
        ("String", '"quoted"', '"quoted"'),
        ("String", "{{x}}", "{{x}}"),
        ("Number", "12", 12),
        ("Number", "-0.5e1", -5.0),
        ("Number", " 7 ", 7),
        ("Boolean", "true", True),
        ("List", '[1, "a"]', [1, "a"]),
        ("Object", '{"k": null}', {"k": None}),
        ("Any", "12", 12),
        ("Any", "twelve", "twelve"),
        ("Any", "null", None),
        ("Any", '{"k": 1, "k": 2}', '{"k": 1, "k": 2}'),
        ("Result", "[1", "[1"),
        ("Result", "[1]", [1]),
    ],
)
def test_a_value_is_read_by_the_parameters_type(type_: str, written: str, value: object) -> None:
    read = given(f"v={written}", text=one(type_))["v"]
    assert (type(read), read) == (type(value), value)


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("Number", "many"),
        ("Number", '"1"'),
        ("Number", "NaN"),
        ("Number", "1e999"),
        ("Number", "true"),
        ("Number", ""),
        ("Boolean", "yes"),
        ("Boolean", "0"),
        ("List", "{}"),
        ("Object", "[]"),
        ("List", "[" * 100 + "]" * 100),
        ("Object", '{"k": 1, "k": 2}'),
        ("Number", "x" * 10_000),
    ],
)
def test_what_does_not_fit_is_wrong_usage(type_: str, written: str) -> None:
    message = refused(f"v={written}", text=one(type_))
    assert "`v`" in message
    assert type_ in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("s",), "`s` is no argument; arguments are written NAME=VALUE"),
        (("=1",), "no parameter ``"),
        (("t=1",), "no parameter `t`"),
        (("s=1", "s=2"), "`s` is given twice"),
        (("s=-", "d=-"), "only one argument can be read from standard input"),
        (("S=1",), "did you mean `s`?"),
        (("s=@/no/such",), "`s` is to be read from /no/such: No such file or directory; a text that begins with @"),
        (("s=@/",), "Is a directory"),
        (("s=@",), "No such file"),
    ],
)
def test_wrong_words(words: tuple[str, ...], named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"in")))
    assert named in refused(*words)


def test_all_that_is_missing_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert refused("n=1", "r=x") == "pipeline P needs s=… b=… l=… o=… a=…"


def test_a_document_gives_arguments_too(tmp_path: Path) -> None:
    text = 'pipeline P(s: String, n: Number, d: String = "dry") -> Result:\n  s\n'
    assert given("n=2", text=text, document='{"s": "@home"}') == {"s": "@home", "n": 2}
    assert given("n=2", text=text, document='{"s": [1]}')["s"] == "[1]"
    (tmp_path / "a.json").write_text('{"s": "x", "n": 1.5}')
    assert given(text=text, document=f"@{tmp_path}/a.json") == {"s": "x", "n": 1.5}


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ("{", "--args is no JSON"),
        ("[1]", "--args takes an object"),
        ('{"s": 1, "s": 2}', "a key is repeated"),
        ('{"t": 1}', "no parameter `t`"),
        ('{"n": "1"}', "`n` takes a Number"),
        ("@/no/such", "`--args` is to be read from /no/such: No such file or directory"),
    ],
)
def test_a_wrong_document(document: str, named: str) -> None:
    assert named in refused(document=document)


def test_an_argument_may_not_stand_in_both() -> None:
    assert "given twice" in refused("s=1", document='{"s": "2"}')


def test_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_bytes("é\r\nline\n".encode())
    (tmp_path / "l.json").write_text(" [1,\n 2] ")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"k": 1}')))
    read = given(
        f"s=@{tmp_path}/t.txt",
        f"l=@{tmp_path}/l.json",
        "o=-",
        text="pipeline P(s: String, l: List, o: Object) -> Result:\n  s\n",
    )
    assert read == {"s": "é\r\nline\n", "l": [1, 2], "o": {"k": 1}}


def test_files_that_are_not_utf_8_or_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b").write_bytes(b"ab\xff")
    assert "is not UTF-8 (at byte 2)" in refused(f"v=@{tmp_path}/b", text=one("String"))
    monkeypatch.setattr("halo_lang.cli.arguments.MAX_BYTES", 2)
    (tmp_path / "b").write_bytes(b"abc")
    assert "larger than" in refused(f"v=@{tmp_path}/b", text=one("String"))


def test_documents_with_a_byte_order_mark_and_mocks_that_are_too_large(tmp_path: Path) -> None:
    text = (
        'agent A [openai/gpt-4o]\npipeline P(x: String) -> Result:\n  x\n    |> A.go("{{x}}")\n    |> System.Print()\n'
    )
    (tmp_path / "p.halo").write_text(text)
    (tmp_path / "args.json").write_bytes(b'\xef\xbb\xbf{"x": "1"}')
    (tmp_path / "mock.json").write_bytes(b'\xef\xbb\xbf{"A": "said"}')
    ended = halo(tmp_path, "run", "p.halo", "--args", "@args.json", "--mock", "mock.json")
    assert (ended.code, ended.out) == (0, "said\n")
    (tmp_path / "mock.json").write_bytes(b'{"A": "' + b"x" * (16 << 20) + b'"}')
    for command in ("run", "debug"):
        ended = halo(tmp_path, command, "p.halo", "x=1", "--mock", "mock.json")
        assert (ended.code, ended.err.splitlines()[-1]) == (2, "error: mock.json: is larger than 16 MiB")


def test_a_mock_that_nothing_asks_for_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.halo").write_text(
        'tool Files : Workspace(".")\ntool Own : Mcp("x")\nagent Writer [openai/gpt-4o]\n  equips Files, Own\n'
        "pipeline P(x: String) -> Result:\n  x\n    |> Writer.draft(tools: [Files, Own])\n    ~> listen(Chat.Said)\n"
    )
    fine = [
        "Writer",
        "Writer.draft",
        "Files",
        "Files.glob",
        "Own.anything",
        "yield",
        "approval",
        "Chat.Said",
        "System.Now",
    ]
    slips = ["Writter.draft", "Writer.darft", "Files.raed", "Chat.Sad", "P", "System.Print", "\x1b[2J"]
    (tmp_path / "mock.json").write_text(json.dumps(dict.fromkeys([*fine, *slips], "a")))
    for command in ("run", "debug"):
        ended = halo(tmp_path, command, "p.halo", "x=1", "--mock", "mock.json", stdin=b"c\n")
        assert ended.code == 0
        rows = [row for row in ended.err.splitlines() if row.startswith("warning: ")]
        assert len(rows) == len(slips)
        assert rows[0] == "warning: mock.json: nothing asks for `Writter.draft`; did you mean `Writer.draft`?"
        assert rows[-1] == "warning: mock.json: nothing asks for `\\x1b[2J`"
    ended = halo(tmp_path, "run", "p.halo", "x=1", "--mock", "mock.json", "-q")
    assert (ended.code, ended.err) == (0, "")


def test_a_word_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "p.halo").write_text(one("String"))
    ended = shell(tmp_path, "halo run p.halo v=$'\\xff' --mock")
    assert (ended.code, ended.out, ended.err) == (2, "", "error: the argument `v` is not UTF-8\n")


# Which pipeline --------------------------------------------------------------------------------------------------

THREE = "".join(f"pipeline {name}(x: Any) -> Result:\n  x\n" for name in ("A1", "A2", "Other"))


def test_which_pipeline_is_run() -> None:
    assert chosen_pipeline(checked(one("Any")), None).name == "P"
    assert chosen_pipeline(checked(THREE + THREE.replace("A1", "Main").split("pipeline A2")[0]), None).name == "Main"
    assert chosen_pipeline(checked(THREE), "A2").name == "A2"


@pytest.mark.parametrize(
    ("text", "name", "named", "code"),
    [
        (THREE, None, "say which pipeline to run with --pipeline; there are: A1, A2, Other", 2),
        (THREE, "Othre", "there is no pipeline `Othre`; did you mean `Other`?", 2),
        (THREE, "Zzz", "there are: A1, A2, Other", 2),
        ("", None, "has no pipeline to run", 1),
    ],
)
def test_no_pipeline_to_run(text: str, name: str | None, named: str, code: int) -> None:
    with pytest.raises(CommandError) as error:
        chosen_pipeline(checked(text), name)
    assert (named in str(error.value), error.value.exit_code) == (True, code)


# Flags -----------------------------------------------------------------------------------------------------------

AGENT = """\
agent A [openai/gpt-4o]
tool F : Workspace(".", write: true)
pipeline P(x: String) -> Result:
  x
    |> A.go()
    |> F.list()
"""


@pytest.mark.parametrize(
    ("args", "out"),
    [
        (("run", "--mock", "p.halo", "x=1"), "null"),
        (("run", "p.halo", "--mock", "x=1"), "null"),
        (("run", "p.halo", "x=1", "--mock"), "null"),
        (("run", "--mock", "answers.json", "p.halo", "x=1"), '["a"]'),
        (("run", "p.halo", "x=1", "--mock", "answers.json"), '["a"]'),
        (("run", "p.halo", "--mock=answers.json", "x=1"), '["a"]'),
        (("run", "p.halo", "--mock", "a=b.json", "x=1"), '["eq"]'),
        (("run", "-q", "--mock", "p.halo", "--", "x=1"), "null"),
    ],
)
def test_flags_stand_anywhere(tmp_path: Path, args: tuple[str, ...], out: str) -> None:
    (tmp_path / "p.halo").write_text(AGENT)
    (tmp_path / "answers.json").write_text('{"F": ["a"]}')
    (tmp_path / "a=b.json").write_text('{"F.list": ["eq"]}')
    ended = halo(tmp_path, args[0], "--json", *args[1:])
    assert (ended.code, json.dumps(json.loads(ended.out)["output"])) == (0, out)


@pytest.mark.parametrize(
    ("args", "code", "named"),
    [
        (("run",), 2, "FILE"),
        (("run", "gone.halo", "x=1"), 1, "gone.halo: there is no such file"),
        (("run", "."), 1, ".: this is a folder; name a .halo file"),
        (("run", "p.halo", "x=1", "--no-such"), 2, "--no-such"),
        (("run", "p.halo", "x=1", "--moc"), 2, "--moc"),
        (("run", "p.halo", "x=1", "--mock", "gone.json"), 1, "gone.json: there is no such file"),
        (("run", "p.halo", "x=1", "--mock", "bad.json"), 2, "bad.json: is no JSON"),
        (("run", "p.halo", "x=1", "--mock", "list.json"), 2, "list.json: a mock file holds an object"),
        (("run", "p.halo", "x=1", "--mock", "seq.json"), 2, "the sequence of `A`"),
        (("run", "p.halo", "x=1", "--mock", "p.halo"), 2, "is no argument"),
        (("run", "p.halo", "x=1", "--model", "A"), 2, "--model takes AGENT=provider/model"),
        (("run", "p.halo", "x=1", "--model", "A=gpt"), 2, "--model takes AGENT=provider/model"),
        (("run", "p.halo", "x=1", "--model", "Z=openai/gpt-4o", "--mock"), 2, "there is no agent `Z`"),
        (("run", "p.halo", "x=1", "--yes-to", "F.wirte", "--mock"), 2, "did you mean `F.write`?"),
        (("run", "p.halo", "x=1", "--yes-to", "nothing", "--mock"), 2, "--yes-to"),
        (("rnu", "p.halo"), 2, "did you mean `run`?"),
        (("check",), 2, "FILE"),
        (("check", "p.halo", "gone.halo"), 1, "gone.halo"),
        (("explain", "UNKNOWN_NAEM"), 2, "UNKNOWN_NAME"),
    ],
)
def test_wrong_usage_is_one_message(tmp_path: Path, args: tuple[str, ...], code: int, named: str) -> None:
    (tmp_path / "p.halo").write_text(AGENT)
    for name, text in (("bad.json", "{"), ("list.json", "[]"), ("seq.json", '{"A": {"sequence": []}}')):
        (tmp_path / name).write_text(text)
    ended = halo(tmp_path, *args)
    assert (ended.code, ended.out) == (code, "")
    assert named in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(tmp_path: Path, command: str) -> None:
    ended = halo(tmp_path, command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert "For example:" in ended.out
    assert f"halo {command}" in ended.out


def test_the_overview_names_every_command(tmp_path: Path) -> None:
    for args in ((), ("--help",), ("help",)):
        ended = halo(tmp_path, *args)
        assert (ended.code, all(name in ended.out for name in COMMANDS)) == (0, True)
    assert halo(tmp_path, "--version").out.startswith("halo 0.")


def test_yes_to_approves_its_calls_and_no_others(tmp_path: Path) -> None:
    text = 'policy Ask : ApproveEffects(write)\ntool F : Workspace(".", write: true)\n'
    text += 'pipeline P(x: String) -> Result requires Ask:\n  x\n    |> F.write("a", x)\n    |> F.mkdir("b")\n'
    (tmp_path / "p.halo").write_text(text)
    ended = halo(tmp_path, "run", "p.halo", "x=1", "--yes-to", "F.write", "--json")
    assert (ended.code, json.loads(ended.out)["status"]) == (3, "paused")
    assert (tmp_path / "a").read_text() == "1"
    assert not (tmp_path / "b").exists()
    assert halo(tmp_path, "run", "p.halo", "x=2", "--yes-to", "F.*").code == 0
    assert (tmp_path / "b").is_dir()
