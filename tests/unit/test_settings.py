"""Settings: where variables and models come from, which wins, and what is wrong with the files (cli.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands import halo
from halo_lang.app.settings import read_settings
from halo_lang.boundary.host import ConfigError
from servers.scripted import ModelServer

ASK = "agent A [local/scripted]\npipeline P(x: String) -> Result:\n  x\n    |> A.go()\n"


def project(folder: Path, env: str | bytes = "", toml: str | bytes = "", text: str = ASK) -> Path:
    (folder / "p.halo").write_text(text)
    for name, content in ((".env", env), ("halo.toml", toml)):
        if content:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / "p.halo"


def test_the_process_wins_over_env_and_an_empty_variable_is_none(tmp_path: Path) -> None:
    file = project(tmp_path, "A=project\nB='quo ted'\nexport C=\"x\\ny\"\n# D=4\nE=\nF=${A}\n")
    environment = read_settings(file, {"A": "process", "B": "", "G": "g"}).environment
    assert [environment.get(name) for name in "ABCDEFG"] == ["process", "quo ted", "x\ny", None, None, "${A}", "g"]
    assert [environment.is_projects(name) for name in "ABG"] == [False, True, False]


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    toml = b"\xef\xbb\xbf[recordings]\nkeep = 1\n"
    settings = read_settings(project(tmp_path, b"\xef\xbb\xbfA=1\n", toml), {})
    assert (settings.environment.get("A"), settings.project.keep) == ("1", 1)


def test_halo_toml_is_found_beside_the_file_or_above_it_the_nearest_alone(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    project(tmp_path, toml="[recordings]\nkeep = 1\n")
    file = project(inner)
    assert read_settings(file, {}).project.keep == 1
    (tmp_path / "a" / "halo.toml").write_text("[recordings]\nkeep = 2\n")
    assert read_settings(file, {}).project.keep == 2
    assert read_settings(file, {}).found == (str(tmp_path / "a" / "halo.toml"),)


def test_a_linked_program_has_the_settings_of_where_it_really_is(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    project(real, "A=real\n")
    (tmp_path / "link.halo").symlink_to(real / "p.halo")
    assert read_settings(tmp_path / "link.halo", {}).environment.get("A") == "real"


@pytest.mark.parametrize(
    ("env", "toml", "named"),
    [
        (b"A=\xff\n", "", ".env: cannot be read: it is not UTF-8"),
        ("A=1\nB='hush\n", "", ".env:2: this is no NAME=VALUE"),
        ("", "[models", "halo.toml: cannot be read"),
        ("", b"a = '\xff'", "halo.toml: cannot be read: it is not UTF-8"),
        ("", "[modles]\n", "there is no section [modles]; did you mean `models`?"),
        ("", "[models]\nmine = 1\n", "[models.NAME] must be tables"),
        ("", "[recordings]\nkeep = -1\n", "recordings.keep must be"),
        ("", "[recordings]\nkepe = 1\n", "[recordings] takes `keep`"),
        ("", "[prices]\nx = 1\n", "halo.toml"),
        ("", "a = " + "[" * 5000, "halo.toml: cannot be read"),
        ("", "a" + ".a" * 100_000 + " = 1\n", "halo.toml: cannot be read: line 1 has more than 100 dots"),
        ("", "\n[a" + ".'.'" * 100_000 + "]\n", "halo.toml: cannot be read: line 2 has more than 100 dots"),
        ("", "a = " + "9" * 100_000, "halo.toml: cannot be read"),
        ("", "#" * 2_000_000, "halo.toml: cannot be read: it is larger than 1 MiB"),
        ("#" * 300_000, "", ".env: cannot be read: it is larger than 256 KiB"),
        ("", "[recordings]\nkeep = true\n", "recordings.keep must be"),
        ("", "recordings = 1\n", "[recordings] takes `keep`"),
    ],
)
def test_what_is_wrong_names_its_file(tmp_path: Path, env: str | bytes, toml: str | bytes, named: str) -> None:
    file = project(tmp_path, env, toml)
    with pytest.raises(ConfigError) as trouble:
        read_settings(file, {})
    assert named in str(trouble.value)
    assert str(tmp_path) in str(trouble.value)
    assert "hush" not in str(trouble.value)
    ended = halo(tmp_path, "run", "p.halo", "x=1")
    assert (ended.code, ended.out) == (1, "")
    assert named in ended.err


def test_a_folder_in_the_place_of_a_settings_file_is_none(tmp_path: Path) -> None:
    file = project(tmp_path)
    (tmp_path / ".env").mkdir()
    (tmp_path / "halo.toml").mkdir()
    assert read_settings(file, {}).found == ()


# With a real process ---------------------------------------------------------------------------------------------


def test_env_reaches_the_run_and_flags_win_over_the_file(tmp_path: Path) -> None:
    with ModelServer("said") as server:
        url = server.environment["HALO_LOCAL_URL"]
        file = project(tmp_path, f"HALO_LOCAL_URL={url}\n")
        assert halo(tmp_path, "run", "p.halo", "x=1", "--no-record").out == "said\n"
        (tmp_path / "halo.toml").write_text(f'[models.mine]\nurl = "{url}"\n')
        assert halo(tmp_path, "run", "p.halo", "x=1", "--no-record", "--model", "A=mine/other").out == "said\n"
        assert [body["model"] for body in server.bodies] == ["scripted", "other"]
    assert file.read_text() == ASK


def test_verbose_says_where_settings_come_from_and_never_a_secret(tmp_path: Path) -> None:
    with ModelServer("said") as server:
        project(tmp_path, "HALO_LOCAL_API_KEY=key-of-the-project\nMINE=value-of-mine\n")
        env = {"HALO_LOCAL_URL": server.environment["HALO_LOCAL_URL"], "MINE": "value-of-process"}
        ended = halo(tmp_path, "run", "p.halo", "x=1", "--no-record", "-v", env=env)
    assert (ended.code, ended.out) == (0, "said\n")
    assert str(tmp_path / ".env") in ended.err
    assert "settings: HALO_LOCAL_API_KEY from .env" in ended.err
    assert "settings: MINE set in the environment, .env is not used" in ended.err
    assert "key-of" not in ended.err + ended.out
    assert "value-of" not in ended.err + ended.out


def test_variables_win_over_the_file_and_flags_over_both(tmp_path: Path) -> None:
    with ModelServer("variable's") as variables, ModelServer("file's") as files:
        address = {name: server.environment["HALO_LOCAL_URL"] for name, server in (("v", variables), ("f", files))}
        toml = f'[models.local]\nurl = "{address["f"]}"\n[models.my-own]\nurl = "{address["f"]}"\n'
        file = project(tmp_path, toml=toml + "[recordings]\nkeep = 1\n")
        run = ["run", "p.halo", "x=1"]
        own = [*run, "--model", "A=my-own/other"]
        assert halo(tmp_path, *run).out == "file's\n"
        assert halo(tmp_path, *run, env={"HALO_LOCAL_URL": address["v"]}).out == "variable's\n"
        assert halo(tmp_path, *own).out == "file's\n"
        ended = halo(tmp_path, *own, "-v", env={"HALO_MY_OWN_URL": address["v"], "HALO_RECORDINGS_KEEP": "3"})
    assert ended.out == "variable's\n"
    assert "settings: [models.my-own] from halo.toml" in ended.err
    assert "settings: HALO_MY_OWN_URL from the environment" in ended.err
    assert address["v"] not in ended.err
    assert read_settings(file, {}).project.keep == 1
    assert read_settings(file, {"HALO_RECORDINGS_KEEP": "3"}).project.keep == 3
    project(tmp_path, env="HALO_RECORDINGS_KEEP=4\n")
    assert read_settings(file, {}).project.keep == 4
    assert read_settings(file, {"HALO_RECORDINGS_KEEP": "3"}).project.keep == 3
    assert len(list((tmp_path / ".halo" / "recordings").iterdir())) == 2


@pytest.mark.parametrize("said", ["-1", "many", "1.5", "9" * 30, "\u0663"])
def test_a_variable_that_is_no_number_of_recordings_is_named(tmp_path: Path, said: str) -> None:
    ended = halo(
        project(tmp_path, text="pipeline P() -> Result:\n  1\n").parent,
        "run",
        "p.halo",
        env={"HALO_RECORDINGS_KEEP": said},
    )
    assert (ended.code, ended.out) == (1, "")
    assert "HALO_RECORDINGS_KEEP must be a whole number" in ended.err


def test_a_key_of_ones_own_is_not_sent_to_an_address_from_the_projects_env(tmp_path: Path) -> None:
    with ModelServer("said") as server:
        address = server.environment["HALO_LOCAL_URL"]
        toml = f'[models.mine]\nurl = "{address}"\nkey = "MINE_KEY"\n'
        project(tmp_path, toml=toml)
        run = ["run", "p.halo", "x=1", "--no-record", "--model", "A=mine/other"]
        key = {"MINE_KEY": "my-own-key"}
        assert halo(tmp_path, *run, env=key).code == 1
        assert halo(tmp_path, *run, env={**key, "HALO_MINE_URL": address}).out == "said\n"
        project(tmp_path, env=f"HALO_MINE_URL={address}\n")
        ended = halo(tmp_path, *run, env=key)
        assert ended.code == 1
        assert "`HALO_MINE_URL` in the project's .env" in ended.err
        assert len(server.bodies) == 1


def test_verbose_names_each_variable_of_the_environment_that_is_used(tmp_path: Path) -> None:
    with ModelServer("said") as server:
        project(tmp_path, text=ASK.replace("local/scripted", "Env.THE_MODEL"))
        env = {**server.environment, "THE_MODEL": "local/scripted", "HALO_LOCAL_API_KEY": "hush-key", "UNUSED": "x"}
        ended = halo(tmp_path, "run", "p.halo", "x=1", "--no-record", "-v", env=env)
    assert ended.out == "said\n"
    for name in ("THE_MODEL", "HALO_LOCAL_URL", "HALO_LOCAL_API_KEY"):
        assert ended.err.count(f"settings: {name} from the environment\n") == 1
    assert "UNUSED" not in ended.err
    assert "hush" not in ended.err


TOOLS = """\
tool Chat : Slack(Env.CHAT_TOKEN, channel: "#a")
agent A [openai/gpt-4o]
agent B [Env.OTHER_MODEL]
pipeline P(x: String) -> Result:
  x
    |> System.Print("begun")
    |> A.go()
    |> B.go()
    |> Chat.post()
pipeline Q(x: String) -> Result:
  x
"""


def test_everything_that_is_missing_is_named_before_anything_runs(tmp_path: Path) -> None:
    project(tmp_path, text=TOOLS)
    ended = halo(tmp_path, "run", "p.halo", "--pipeline", "P", "x=1")
    assert (ended.code, ended.out) == (1, "")
    for name in ("CHAT_TOKEN", "OPENAI_API_KEY", "OTHER_MODEL"):
        assert name in ended.err
    assert not (tmp_path / ".halo").exists()


def test_only_what_the_started_pipeline_can_reach_is_wanted(tmp_path: Path) -> None:
    project(tmp_path, text=TOOLS)
    assert halo(tmp_path, "run", "p.halo", "--pipeline", "Q", "x=1").out == "1\n"
    assert halo(tmp_path, "run", "p.halo", "--pipeline", "P", "x=1", "--mock").code == 0
    assert halo(tmp_path, "check", "p.halo").code == 0


def test_a_variable_that_holds_no_model_is_named_and_not_shown(tmp_path: Path) -> None:
    project(tmp_path, text=TOOLS)
    env = {"CHAT_TOKEN": "xoxb-1", "OPENAI_API_KEY": "sk-1", "OTHER_MODEL": "sk-a-key-by-mistake"}
    ended = halo(tmp_path, "run", "p.halo", "--pipeline", "P", "x=1", env=env)
    assert (ended.code, "OTHER_MODEL" in ended.err) == (1, True)
    assert "sk-a-key" not in ended.err


def test_a_missing_folder_of_a_tool_is_named_before_anything_runs(tmp_path: Path) -> None:
    project(
        tmp_path,
        text='tool F : Workspace("./gone")\n'
        + ASK.replace("|> A.go()", '|> System.Print("begun")\n    |> F.list()').replace(
            "agent A [local/scripted]\n", ""
        ),
    )
    ended = halo(tmp_path, "run", "p.halo", "x=1")
    assert (ended.code, ended.out) == (1, "")
    assert "tool F: " in ended.err
    assert "gone" in ended.err
