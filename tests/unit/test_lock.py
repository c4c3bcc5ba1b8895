"""`halo.lock` and `halo lock`: what MCP servers said of their tools is known to checks, plans and runs, and holds."""

from __future__ import annotations

import json
import os
import string
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_servers import RAW, notes

from halo_lang import HaloError, load
from halo_lang.app.lock import lock_text, read_lock, server_key, with_lock
from halo_lang.boundary.call import Answer, Call, failed
from halo_lang.boundary.host import ConfigError
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.catalog.claims import about_of, words_of
from halo_lang.catalog.describe import EnvRef, Method
from halo_lang.cli.main import main
from halo_lang.language.record import replace
from runs import AGENT, checked, pipeline, run, uses

OPEN = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


ECHO = Method("echo", about_of("Gives the text back."), OPEN, "read", True, claimed=True)


def program(mode: str, call: str = "Web.echo()", more: str = "") -> str:
    command = f'Mcp({json.dumps(sys.executable)}, {json.dumps(RAW)}, "{mode}", "notes"{more})'
    return (
        f'policy Careful : DenyTools("Web.push") & ApproveEffects(external)\ntool Web : {command}\n'
        "agent A [openai/gpt-4o]\n  equips Web\n  requires Careful\n"
        f"pipeline P(x: String) -> Result:\n  x\n    |> {call}\n"
        "pipeline Q(x: String) -> Result:\n  x\n    |> A.work(tools: [Web])\n"
    )


class Folder:
    """A folder with a program, in which commands are run."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str], mode: str = "plain") -> None:
        self.path, self._capsys = path, capsys
        self.write(program(mode))

    def write(self, text: str) -> None:
        (self.path / "t.halo").write_text(text, "utf-8")

    def halo(self, *words: str) -> tuple[int, str, str]:
        code = main(list(words))
        out, err = self._capsys.readouterr()
        return code, out, err

    def lock(self) -> tuple[int, str, str]:
        return self.halo("lock", "t.halo", "--yes")


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: SIM115
    return Folder(tmp_path, capsys)


# The command -----------------------------------------------------------------------------------------------------


def test_nothing_is_started_unless_somebody_says_yes(folder: Folder) -> None:
    code, out, err = folder.halo("lock", "t.halo")
    assert (code, out) == (2, "")
    assert f"  Web: {sys.executable} {RAW} plain notes\n" in err
    assert not (folder.path / "notes").exists()
    assert not (folder.path / "halo.lock").exists()


def test_a_lock_is_written_and_stays_the_same(folder: Folder) -> None:
    assert folder.lock()[:2] == (0, "Web.echo: read (server's claim)\n")
    before = (folder.path / "halo.lock").read_bytes()
    code, _, err = folder.lock()
    assert (code, err) == (0, "Web: as it was locked before\n")
    assert (folder.path / "halo.lock").read_bytes() == before
    assert json.loads(before)["servers"][0]["tools"] == [
        {
            "name": "echo",
            "effect": "read",
            "idempotent": True,
            "description": "Gives the text back.",
            "schema": {**OPEN, "additionalProperties": False},
        }
    ]


def test_programs_beside_each_other_share_a_lock(folder: Folder) -> None:
    folder.lock()
    (folder.path / "u.halo").write_text(program("alike"), "utf-8")
    assert folder.halo("lock", "u.halo", "--yes")[0] == 0
    assert len(json.loads((folder.path / "halo.lock").read_bytes())["servers"]) == 2
    assert "may call Web.echo: read" in folder.halo("plan", "t.halo")[1]
    assert "may call Web.a_b_2: external" in folder.halo("plan", "u.halo")[1]


def test_a_new_lock_says_what_changed(folder: Folder) -> None:
    folder.lock()
    text = (folder.path / "halo.lock").read_text("utf-8")
    (folder.path / "halo.lock").write_text(text.replace("Gives the text back", "Gives it back"), "utf-8")
    code, _, err = folder.lock()
    assert (code, err) == (0, "Web: changed since it was locked: echo (its description)\n")
    assert (folder.path / "halo.lock").read_text("utf-8") == text


def test_a_file_without_servers_has_nothing_to_lock(folder: Folder) -> None:
    folder.write("pipeline P() -> Result:\n  1\n    |> System.Print()\n")
    code, out, err = folder.lock()
    assert (code, out, "nothing to lock" in err) == (0, "", True)
    assert not (folder.path / "halo.lock").exists()


def test_a_file_with_errors_starts_nothing(folder: Folder) -> None:
    folder.write(program("plain") + "pipeline R() -> Result:\n  nope\n")
    code, _, err = folder.lock()
    assert (code, "no server of it is started" in err) == (1, True)
    assert not (folder.path / "notes").exists()


def test_a_server_that_fails_is_named_and_nothing_is_written(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOKEN", "token-abc-12345678")
    folder.write(program("stillborn", more=", env: [Env.MCP_TOKEN]"))
    code, _, err = folder.lock()
    assert code == 1
    assert err.startswith("error: tool Web: the server has ended (exit code 7)")
    assert "no licence for [Env.MCP_TOKEN]" in err
    assert not (folder.path / "halo.lock").exists()


# What it is good for ---------------------------------------------------------------------------------------------


def test_a_plan_and_a_check_know_the_methods(folder: Folder) -> None:
    plan = folder.halo("plan", "t.halo", "--pipeline", "P")[1]
    assert "calls Web.echo: not described" in plan
    folder.lock()
    plan = folder.halo("plan", "t.halo", "--pipeline", "P")[1]
    assert "         calls Web.echo: read (server's claim)\n" in plan
    assert "Acts on nothing outside." in plan
    calls = json.loads(folder.halo("plan", "t.halo", "--json")[1])["pipelines"][0]["stages"][0]["calls"]
    assert calls == [{"target": "Web.echo", "effect": "read", "claimed": True, "by": "pipeline", "approval": []}]
    folder.write(program("plain", "Web.ecko()"))
    assert "did you mean `echo`?" in folder.halo("check", "t.halo")[2]
    folder.write(program("plain", "Web.echo(txt: x)"))
    assert "UNKNOWN_ARGUMENT" in folder.halo("check", "t.halo")[2]
    assert "`Web.push` matches no method" in folder.halo("check", "t.halo")[2]


def test_a_plan_starts_no_server_and_reads_no_mcp_json(folder: Folder) -> None:
    (folder.path / ".mcp.json").write_text("{", "utf-8")
    folder.write('tool Web : Mcp("mine")\npipeline P(x: String) -> Result:\n  x\n    |> Web.echo()\n')
    assert folder.halo("plan", "t.halo")[0] == 0
    assert folder.halo("check", "t.halo")[0] == 0


def test_a_run_with_a_lock_calls_the_server(folder: Folder) -> None:
    folder.lock()
    assert folder.halo("run", "t.halo", "--pipeline", "P", "x=hi", "--no-record")[:2] == (0, "hi\n")


def test_a_run_refuses_a_server_that_says_something_else(folder: Folder) -> None:
    folder.lock()
    text = (folder.path / "halo.lock").read_text("utf-8")
    (folder.path / "halo.lock").write_text(text.replace("Gives the text back", "Gives it back"), "utf-8")
    code, out, err = folder.halo("run", "t.halo", "--pipeline", "P", "x=hi", "--no-record")
    assert (code, out) == (1, "")
    assert "error LOCK_MISMATCH: the server's tools are not those that halo.lock keeps: echo (its description)." in err
    assert not [note for note in notes(folder.path) if note.get("method") == "tools/call"]


def test_a_secret_is_in_no_result_and_no_recording(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TOKEN", "token-abc-12345678")
    entry = {"command": sys.executable, "args": [RAW, "leaks"], "env": {"MCP_TOKEN": "${MCP_TOKEN}"}}
    (folder.path / ".mcp.json").write_text(json.dumps({"mcpServers": {"mine": entry}}), "utf-8")
    folder.write('tool Web : Mcp("mine")\npipeline P(x: String) -> Result:\n  x\n    |> Web.echo()\n')
    assert folder.halo("run", "t.halo", "x=hi")[:2] == (0, "token is [Env.MCP_TOKEN]\n")
    kept = "".join(file.read_text("utf-8") for file in (folder.path / ".halo").rglob("*.jsonl"))
    assert "[Env.MCP_TOKEN]" in kept
    assert "token-abc" not in kept


def test_a_recorded_run_is_replayed_without_the_server(folder: Folder) -> None:
    assert folder.halo("run", "t.halo", "--pipeline", "P", "x=hi")[0] == 0
    (recording,) = (folder.path / ".halo" / "recordings").glob("*.jsonl")
    (folder.path / "notes").unlink()
    code, _, err = folder.halo("replay", "t.halo", recording.stem)
    assert (code, "Same output" in err) == (0, True)
    assert not (folder.path / "notes").exists()


def test_the_library_reads_the_lock(folder: Folder) -> None:
    folder.lock()
    assert "read (server's claim)" in str(load(folder.path / "t.halo").plan("P"))
    (folder.path / "halo.lock").write_text("{}", "utf-8")
    with pytest.raises(HaloError, match="it is damaged"):
        load(folder.path / "t.halo")


def test_an_agents_call_of_a_server_that_says_something_else_fails_the_run() -> None:
    text = 'tool Web : Mcp("x")\nagent A [openai/gpt-4o]\n  equips Web\n' + pipeline("|> A.work(tools: [Web])")
    known = {**PROVIDERS, "Mcp": replace(PROVIDERS["Mcp"], describe=lambda _: (ECHO,))}
    told: list[Method | None] = []

    def reply(call: Call) -> Answer:
        if call.kind == AGENT:
            assert call.request is not None
            assert [offer.about for offer in call.request.tools] == [ECHO.about]
            return uses(("Web_echo", {"text": "hi"}))
        told.append(call.described)
        return failed("LOCK_MISMATCH", "not those")

    ended = run(checked(text, agents=False, providers=known), reply)
    assert (ended.code, ended.message) == ("LOCK_MISMATCH", "not those")
    assert told == [ECHO]


# The file --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"version": 1', '"version": 2', "it has version 2"),
        ('"version": 1', '"version": "x"', "it is damaged"),
        ('"effect": "read"', '"effect": "write"', "it is damaged"),
        ('"name": "echo"', '"name": "echo\\nWeb.push"', "it is damaged"),
        ('"name": "echo"', '"name": "a.b"', "it is damaged"),
        ("Gives the text back.", "Gives\\u001b[2J", "it is damaged"),
        ('"required": [', '"required": [1, ', "it is damaged"),
        ('"idempotent": true', '"idempotent": 1', "it is damaged"),
        ("{", "", "it is damaged"),
    ],
)
def test_a_lock_that_halo_has_not_written_is_refused(folder: Folder, old: str, new: str, message: str) -> None:
    text = lock_text({'{"command":["x"]}': (ECHO,)})
    assert old in text
    (folder.path / "halo.lock").write_text(text.replace(old, new, 1), "utf-8")
    code, out, err = folder.halo("plan", "t.halo")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {folder.path / 'halo.lock'}: {message}")


@pytest.mark.parametrize("data", [b"", b"\xff", b"null", b"[" * 100_000])
def test_what_is_no_lock_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "halo.lock").write_bytes(data)
    with pytest.raises(ConfigError, match="it is damaged"):
        read_lock(str(tmp_path / "halo.lock"))


def test_a_lock_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "halo.lock").write_bytes(b" " * ((16 << 20) + 1))
    with pytest.raises(ConfigError, match="cannot be read: it is larger than 16 MiB; remove it and make it anew"):
        read_lock(str(tmp_path / "halo.lock"))


@pytest.mark.parametrize("name", ["halo.lock", ".env", "halo.toml"])
def test_a_pipe_beside_the_program_is_not_waited_for(folder: Folder, name: str) -> None:
    folder.write(program("plain"))
    os.mkfifo(folder.path / name)
    for words in (("check", "t.halo"), ("plan", "t.halo"), ("run", "t.halo", "x=1"), ("lock", "t.halo")):
        code, _, err = folder.halo(*words, "--pipeline", "P") if words[0] in ("plan", "run") else folder.halo(*words)
        if name == "halo.lock":
            assert code == 1
            assert f"{folder.path / name}: cannot be read: it is no regular file" in err


def test_a_damaged_lock_concerns_only_programs_with_a_server(tmp_path: Path) -> None:
    (tmp_path / "halo.lock").write_text("{", "utf-8")
    (tmp_path / "t.halo").write_text("pipeline P() -> Result:\n  1\n    |> System.Print()\n", "utf-8")
    assert main(["check", str(tmp_path / "t.halo")]) == 0


def test_a_server_is_known_by_how_it_is_declared() -> None:
    one = {"command": "a", "arguments": ("b", EnvRef("C"))}
    assert server_key(one) == '{"command":["a","b",{"env":"C"}]}'
    assert server_key({**one, "env": (EnvRef("X"),), "timeout": 3.0}) == server_key(one)
    assert server_key({"command": "a", "arguments": ("b", "Env.C")}) != server_key(one)
    assert server_key({"url": "http://h/"}) == '{"url":"http://h/"}'


def test_a_server_that_is_not_in_it_is_not_described(tmp_path: Path) -> None:
    describe = with_lock(str(tmp_path / "t.halo"))["Mcp"].describe
    assert describe({"command": "a"}) is None


@settings(max_examples=50)
@given(
    st.dictionaries(
        st.sampled_from(['{"command":["a"]}', '{"command":["b","c"]}', '{"url":"http://h/"}']),
        st.lists(
            st.builds(
                Method,
                st.text("aZ_09", min_size=1, max_size=6).map("m{}".format),
                st.text(string.printable[:95] + 'é\\"', max_size=20).map(about_of),
                st.just(OPEN),
                st.sampled_from(["read", "external"]),
                st.booleans(),
                claimed=st.just(True),
            ),
            unique_by=lambda method: method.name,
            max_size=4,
        ).map(tuple),
    )
)
def test_a_lock_gives_back_what_was_locked(locked: dict[str, tuple[Method, ...]]) -> None:
    with NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(lock_text(locked))
        file.flush()
        again = read_lock(file.name)
    assert again == {key: tuple(sorted(methods, key=lambda m: m.name)) for key, methods in locked.items()}
    assert lock_text(again) == lock_text(dict(reversed(locked.items())))


@given(st.text())
def test_a_servers_words_cannot_end_their_quotation(words: str) -> None:
    about = about_of(words)
    assert words_of(about) == words
    if words:
        quoted = about.partition(': "')[2].removesuffix('"')
        assert '"' not in quoted.replace("\\\\", "").replace('\\"', "")
