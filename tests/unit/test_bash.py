"""The Bash tool, against the real bash."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from halo_lang.boundary.host import ConfigError, Environment, Given, ProviderHost, ToolError
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.providers.bash import Bash
from halo_lang.providers.results import LIMIT

PATH = os.environ.get("PATH", os.defpath)


def started(base: Path, settings: dict[str, Any] | None = None, **variables: str) -> Bash:
    host = ProviderHost(base, base, (), Environment({"PATH": PATH, **variables}, {}))
    return Bash(settings or {}, host)


async def run(tool: Bash, command: str, **args: Any) -> dict[str, Any]:
    value = await tool.call("run", {"command": command, **args}, Given())
    assert isinstance(value, dict)
    return value


async def refusal(tool: Bash, command: str, **args: Any) -> ToolError:
    try:
        value = await tool.call("run", {"command": command, **args}, Given())
    except ToolError as error:
        return error
    raise AssertionError(f"{command!r} gave {value!r}")


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def at_work_in(folder: Path) -> list[str]:
    """The processes whose working folder is this one."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{number}/cwd") == str(folder) and is_running(int(number)):
                found.append(number)
        except OSError:
            continue
    return found


async def appears(file: Path, lines: int = 1) -> list[int]:
    """The numbers in a file, once it has so many lines."""
    while not file.exists() or file.read_text().count("\n") < lines:
        await asyncio.sleep(0.01)
    return [int(n) for n in file.read_text().split()]


async def gone(*pids: int) -> bool:
    for _ in range(500):
        if not any(is_running(pid) for pid in pids):
            return True
        await asyncio.sleep(0.01)
    return False


# Results ------------------------------------------------------------------------------------------------------------


async def test_gives_both_streams_and_the_exit_code(tmp_path: Path) -> None:
    value = await run(started(tmp_path), "echo out; echo err >&2; exit 3")
    assert value == {"stdout": "out\n", "stderr": "err\n", "exitCode": 3}


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("", 0), ("# nothing", 0), ("exit 255", 255), ("kill -9 $$", 137), ("kill $$", 143), ("nope", 127)],
)
async def test_exit_codes(tmp_path: Path, command: str, code: int) -> None:
    assert (await run(started(tmp_path), command))["exitCode"] == code


async def test_a_syntax_error_is_a_result_with_bashs_own_words(tmp_path: Path) -> None:
    value = await run(started(tmp_path), "echo (")
    assert value["exitCode"] == 2
    assert "bash: -c: line 1: syntax error" in value["stderr"]


async def test_runs_in_its_folder_relative_to_the_programs(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert (await run(started(tmp_path, {"cwd": "sub"}), "pwd -P"))["stdout"] == f"{(tmp_path / 'sub').resolve()}\n"
    assert (await run(started(tmp_path), "pwd -P"))["stdout"] == f"{tmp_path.resolve()}\n"


async def test_many_at_once(tmp_path: Path) -> None:
    tool = started(tmp_path)
    values = await asyncio.gather(*(run(tool, f"echo {n}", values={"V": str(n)}) for n in range(30)))
    assert [v["stdout"] for v in values] == [f"{n}\n" for n in range(30)]


async def test_leaves_no_descriptors_behind(tmp_path: Path) -> None:
    tool = started(tmp_path)
    await run(tool, "true", stdin="x", values={"V": "x"})
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await run(tool, "true", stdin="x", values={"V": "x"})
    assert len(os.listdir("/proc/self/fd")) == before


# Stdin and values -----------------------------------------------------------------------------------------------------


async def test_without_stdin_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert (await run(started(tmp_path), "cat; read x; echo $?"))["stdout"] == "1\n"


@pytest.mark.parametrize("text", ["", "a", "a\n", "ä\0b\n\n", "x" * 1_000_000])
async def test_stdin_arrives_as_it_is(tmp_path: Path, text: str) -> None:
    await run(started(tmp_path), "cat > got", stdin=text)
    assert (tmp_path / "got").read_bytes().decode() == text


async def test_a_command_need_not_read_its_stdin(tmp_path: Path) -> None:
    assert (await run(started(tmp_path), "echo done", stdin="x" * 5_000_000))["stdout"] == "done\n"


VALUES = [
    "",
    "plain",
    "\n",
    "a\n\n",
    " a\t b ",
    "'\"`$(touch made)`${x}\\",
    "-n",
    "~",
    "*",
    "é ünï 🎈",
    "\x01\x02\x7f\x1b\r",
    "\\n\\\n",
    "x" * 2_000_000 + "\n",
]


@pytest.mark.parametrize("inherited", [{}, {"LANG": "C"}, {"LANG": "C.UTF-8"}])
async def test_values_arrive_byte_for_byte_and_are_not_handed_on(tmp_path: Path, inherited: dict[str, str]) -> None:
    tool = started(tmp_path, **inherited)
    values = {f"V{i}": v for i, v in enumerate(VALUES)}
    each = "; ".join(f"printf '%s' \"$V{i}\" > v{i}" for i in range(len(VALUES)))
    value = await run(tool, f"{each}; env; cat", values=values, stdin="own stdin")
    assert [(tmp_path / f"v{i}").read_bytes() for i in range(len(VALUES))] == [v.encode() for v in VALUES]
    assert value["stdout"].endswith("own stdin")
    assert "V1=" not in value["stdout"]
    assert not (tmp_path / "made").exists()


async def test_values_are_in_no_ones_arguments_and_behind_no_descriptor(tmp_path: Path) -> None:
    command = "tr '\\0' ' ' < /proc/$$/cmdline; ls /proc/self/fd | wc -l; echo \"$V\" > f"
    value = await run(started(tmp_path), command, values={"V": "open-sesame"})
    assert "open-sesame" not in value["stdout"]
    assert value["stdout"].split()[-1] == "4"  # its three streams, and the folder that `ls` reads


async def test_line_numbers_are_the_commands_own_with_values(tmp_path: Path) -> None:
    value = await run(started(tmp_path), "nope1\n\nnope3", values={"V": "a\nb\n"})
    assert [line.split(":")[1].strip() for line in value["stderr"].splitlines()] == ["line 1", "line 3"]


async def test_a_command_longer_than_an_argument_may_be(tmp_path: Path) -> None:
    command = f"x='{'y' * 3_000_000}'; echo ${{#x}} \"$V\"; declare -p HALO_COMMAND; exit 4"
    value = await run(started(tmp_path), command, values={"V": "v"})
    assert value["stdout"] == "3000000 v\n"
    assert value["exitCode"] == 4
    assert "HALO_COMMAND" in value["stderr"]
    assert "not found" in value["stderr"]


@pytest.mark.parametrize(
    "args",
    [
        {"command": "a\0b"},
        {"command": "echo \ud800"},
        {"command": "x", "values": {"V": "a\0"}},
        {"command": "x", "values": {"V": "\udfff"}},
        {"command": "x", "values": {"V; touch made": "a"}},
        {"command": "x", "values": {"V": 1}},
        {"command": "x", "other": "y"},
        {"command": 1},
        {},
    ],
)
async def test_what_bash_cannot_be_given_is_refused(tmp_path: Path, args: dict[str, Any]) -> None:
    with pytest.raises(ToolError) as refused:
        await started(tmp_path).call("run", args, Given())
    assert refused.value.code == "TOOL_ARGUMENTS"


# The environment ------------------------------------------------------------------------------------------------------


async def test_no_variable_reaches_a_command_but_a_harmless_few(tmp_path: Path) -> None:
    keys = {
        "OPENAI_API_KEY": "k1",
        "AWS_SECRET_ACCESS_KEY": "k2",
        "HALO_LOCAL_API_KEY": "k3",
        "BASH_ENV": str(tmp_path / "rc"),
        "SHELLOPTS": "xtrace",
        "BASH_FUNC_ls%%": "() { touch made; }",
        "LD_PRELOAD": "/nope.so",
        "SSH_AUTH_SOCK": "/s",
    }
    (tmp_path / "rc").write_text("touch made")
    tool = started(
        tmp_path, {"env": {"MINE": "given", "LANG": "C"}}, **keys, LC_TIME="C", HOME="/h", LANG="de", TERM="x"
    )
    value = await run(tool, "ls; env")
    names = {line.partition("=")[0] for line in value["stdout"].splitlines() if "=" in line}
    assert names == {"PATH", "HOME", "LANG", "LC_TIME", "TERM", "MINE", "PWD", "SHLVL", "_"}
    assert {"MINE=given", "LANG=C", "TERM=dumb"} <= set(value["stdout"].splitlines())
    assert not (tmp_path / "made").exists()


async def test_nothing_of_this_process_reaches_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_PROVIDERS_KEY", "xyzzy-31337")
    assert "xyzzy-31337" not in (await run(started(tmp_path), "env; cat /proc/self/environ"))["stdout"]


def test_settings_that_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`cwd` .*`nowhere`"):
        started(tmp_path, {"cwd": "nowhere"})
    with pytest.raises(ConfigError, match="`timeout`"):
        started(tmp_path, {"timeout": -1.0})
    with pytest.raises(ConfigError, match="no bash on the PATH"):
        started(tmp_path, PATH=str(tmp_path))


async def test_a_folder_that_went_away(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    tool = started(tmp_path, {"cwd": "sub"})
    (tmp_path / "sub").rmdir()
    error = await refusal(tool, "true")
    assert (error.code, "`sub`" in error.message) == ("TOOL_ERROR", True)


def test_it_has_what_its_description_says() -> None:
    described = PROVIDERS["Bash"]
    assert {s.name for s in described.settings} == {"cwd", "timeout", "env"}
    assert [m.name for m in described.describe({}) or ()] == ["run"]


# Output -----------------------------------------------------------------------------------------------------------


async def test_large_output_is_bounded_and_the_command_is_not_held_up(tmp_path: Path) -> None:
    value = await run(started(tmp_path), "seq 1 2000000; echo err >&2; echo done > end")
    assert (tmp_path / "end").exists()
    out = value["stdout"]
    assert LIMIT * 0.75 < len(out) < LIMIT
    lines = out.splitlines()
    note = next(i for i, line in enumerate(lines) if line.startswith("[left out here: "))
    assert lines[:note] == [str(n) for n in range(1, note + 1)]
    after = lines[note + 1 :]
    assert after == [str(n) for n in range(2_000_000 - len(after) + 1, 2_000_001)]
    whole = sum(len(str(n)) + 1 for n in range(1, 2_000_001))
    said = int(lines[note].split(":")[1].split()[0].replace(",", ""))
    assert abs(said - (whole - len(out) + len(lines[note]))) <= 3
    assert value["stderr"] == "err\n"


async def test_both_streams_fit_into_a_result(tmp_path: Path) -> None:
    value = await run(started(tmp_path), r"head -c 700000 /dev/zero; head -c 700000 /dev/zero | tr '\0' x >&2; exit 5")
    assert value["exitCode"] == 5
    assert "left out here" in value["stdout"]
    assert "left out here" in value["stderr"]


async def test_output_that_is_not_utf8(tmp_path: Path) -> None:
    value = await run(started(tmp_path), r"printf 'a\xffb\0c'; head -c 400000 /dev/urandom >&2")
    assert value["stdout"] == "a\ufffdb\0c"
    assert len(value["stderr"].encode()) < LIMIT


async def test_a_cut_never_splits_a_character(tmp_path: Path) -> None:
    value = await run(started(tmp_path), "for i in {1..100000}; do printf 'é🎈'; done")
    assert "\ufffd" not in value["stdout"]
    assert "left out here" in value["stdout"]


# The end ----------------------------------------------------------------------------------------------------------


async def test_the_timeout_ends_the_whole_family(tmp_path: Path) -> None:
    tool = started(tmp_path, {"timeout": 2.0})
    command = "echo begun; sleep 300 & echo $! >> pids; (sleep 301 & echo $! >> pids; wait) & echo $$ >> pids; wait"
    error = await refusal(tool, command)
    assert error.code == "TOOL_TIMEOUT"
    assert "2s" in error.message
    assert "`timeout`" in error.message
    assert "begun" in error.message
    assert await gone(*await appears(tmp_path / "pids", 3))


async def test_what_ignores_being_asked_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halo_lang.providers.processes.STOP_GRACE_S", 0.2)
    tool = started(tmp_path, {"timeout": 2.0})
    error = await refusal(tool, "trap '' TERM; echo $$ >> pids; while :; do sleep 300 & echo $! >> pids; wait; done")
    assert error.code == "TOOL_TIMEOUT"
    assert await gone(*await appears(tmp_path / "pids", 2))


async def test_jobs_with_a_group_of_their_own_end_too(tmp_path: Path) -> None:
    tool = started(tmp_path, {"timeout": 2.0})
    assert (await refusal(tool, "set -m; sleep 300 & echo $! >> pids; wait")).code == "TOOL_TIMEOUT"
    assert await gone(*await appears(tmp_path / "pids"))


async def test_cancelling_leaves_nothing_behind(tmp_path: Path) -> None:
    tool = started(tmp_path)
    command = "sleep 300 & echo $! >> pids; sleep 301 | cat & echo $! >> pids; echo $$ >> pids; wait"
    call = asyncio.create_task(tool.call("run", {"command": command}, Given()))
    pids = await appears(tmp_path / "pids", 3)
    assert all(is_running(pid) for pid in pids)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert not any(is_running(pid) for pid in pids)


async def test_cancelled_twice_it_still_ends(tmp_path: Path) -> None:
    tool = started(tmp_path)
    call = asyncio.create_task(
        tool.call("run", {"command": "trap '' TERM; echo $$ >> pids; while :; do sleep 0.1; done"}, Given())
    )
    (pid,) = await appears(tmp_path / "pids")
    call.cancel()
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await gone(pid)


async def test_cancelled_before_it_began(tmp_path: Path) -> None:
    call = asyncio.create_task(started(tmp_path).call("run", {"command": "sleep 300; touch made"}, Given()))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert at_work_in(tmp_path) == []


async def test_a_child_that_holds_the_pipes_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halo_lang.providers.bash.LINGER_S", 0.1)
    async with asyncio.timeout(30):
        value = await run(started(tmp_path), "sleep 300 & echo $! > pids; echo begun")
    assert value == {"stdout": "begun\n", "stderr": "", "exitCode": 0}
    assert await gone(*await appears(tmp_path / "pids"))


async def test_output_that_comes_just_after_the_end_is_kept(tmp_path: Path) -> None:
    value = await run(started(tmp_path), "echo said > >(sleep 0.1; cat)")
    assert value["stdout"] == "said\n"


async def test_closing_ends_what_runs(tmp_path: Path) -> None:
    tool = started(tmp_path)
    call = asyncio.create_task(tool.call("run", {"command": "echo $$ > pids; sleep 300"}, Given()))
    (pid,) = await appears(tmp_path / "pids")
    await tool.close()
    value = await call
    assert isinstance(value, dict)
    assert value["exitCode"] == 143
    assert not is_running(pid)
