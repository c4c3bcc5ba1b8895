"""Whatever the real bash runs of a line, `simple_commands` has found, or it has said that it cannot.

Lines are made at random of the pieces that make shells hard to read. Their commands are none that exist: bash hands
each to a function that writes it down.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from pathlib import Path as Folder

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang.boundary.host import Environment, Given, ProviderHost
from halo_lang.check.shell import simple_commands
from halo_lang.providers.bash import Bash

WRITE_DOWN = """command_not_found_handle() {
  local words
  printf -v words '%s\\001' "$@"
  printf '%s\\002' "$words" >> "$LOG"
  return 0
}
export -f command_not_found_handle
"""

COMMANDS = [
    "cA x",
    "cB y",
    "cC",
    "cD 'a b'",
    'cE "q r"',
    "c\\F z",
    "'cG' w",
    '"cH"',
    "cI$'\\x41'",
    "$'cJ'",
]
PIECES = [
    *(" ", ";", "\n", " && ", " || ", "|", " & ", "|&", "(", ")", "{ ", "; }", "'", '"', "\\", "\\\n", "`", "$("),
    *("${x:-", "${x#", "}", "$((", "))", "((", "#", " #", "<<E\n", "\nE\n", "<<'E'\n", "<<-E\n", "\n\tE\n", "<<\\E\n"),
    *("<<< ", ">f1 ", "<f1 ", "2>&1 ", "&>f2 ", "<(", ">(", "$'", '$"', "$", "$x", "x=", "x+=", "a=(", "a[0]=", "]"),
    *("a[$(", "[[ ", " ]] ", " =~ ", " == ", "if ", "; then ", "; else ", "; fi", "for i in ", "; do ", "; done"),
    *("for ((i=0;i<1;i++))", "case x in ", "x) ", ";;", " esac", ";&", "function f ", "f() ", "!", "! ", "time "),
    *("eval ", "eval '", 'eval "', "bash -c '", 'bash -c "', "trap '", "' EXIT", "command ", "exec ", "builtin "),
    *("env ", "env A=1 ", "xargs ", "echo cK l|", "find . -maxdepth 0 -exec ", "{} \\;", "timeout 5 ", "nohup "),
    *("bash <<E\n", "source /dev/stdin <<E\n", "{", "~", "*", "?", "[", "{a,b}", "\t", "\r", "coproc ", "in ", "fi"),
    *("then ", "do ", "done", "\\'", '\\"', "\\`", "\\$", "1>", "-", "alias q=cL\n", "declare ", "set -- ", '"$@"'),
    *('"${x}"', "1", "==", "+", "let "),
]
FRAMES = [
    *(
        "cA $({})",
        "cA `{}`",
        "eval '{}'",
        "{{ {}\n}}",
        "( {} )",
        "if {}\nthen cB\nfi",
        'cA "$({})"',
        "cat <<E\n{}\nE\n",
    ),
    *("f() {{ {}\n}}; f", "case x in x) {} ;; esac", "[[ x == {} ]] && cB", "cA ${{x:-{}}}", 'cA "${{x:-{}}}"'),
    *("bash -c '{}'", "x={} cA", "a=({})", "cA <({})", "cA {} # cB", "for i in {}; do cA $i; done", "cA > {}"),
]
LINES = 25


def made(chance: random.Random, depth: int = 0) -> str:
    kind = chance.random()
    if depth < 3 and kind < 0.4:
        return chance.choice(FRAMES).format(made(chance, depth + 1))
    if kind < 0.85 or depth > 3:
        return "".join(
            chance.choice(COMMANDS if chance.random() < 0.45 else PIECES) for _ in range(chance.randint(1, 8))
        )
    return chance.choice(COMMANDS) + chance.choice([";", "\n", " && ", "|", " "]) + made(chance, depth + 1)


def tools(folder: Folder) -> str:
    """A PATH on which there is little but bash."""
    path = folder / "bin"
    path.mkdir()
    for name in ("bash", "env", "xargs", "find", "timeout", "nohup", "cat"):
        found = shutil.which(name)
        if found:
            (path / name).symlink_to(os.path.realpath(found))
    return str(path)


def is_accounted_for(ran: list[str], found: tuple[str, ...]) -> bool:
    """Whether a command that ran is among those found: as it is, or with what bash worked out as it was written."""
    text = " ".join(ran)
    name = ran[0].partition(" ")[0] if ran else ""
    return text in found or any(f.split(" ")[0] == name and any(c in f for c in "$`{*?~[<>") for f in found)


@given(st.integers(0, 1 << 48))
@settings(max_examples=8)
def test_what_bash_runs_has_been_found(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("lines")
    chance = random.Random(seed)
    lines = [made(chance) for _ in range(LINES)]
    for i, line in enumerate(lines):
        (folder / f"line{i}").write_text(line)
        (folder / f"in{i}").mkdir()
    whole = WRITE_DOWN + "".join(
        f'(cd in{i}; LOG={folder}/log{i} timeout 3 bash --norc --noprofile -c "$(cat ../line{i})" < /dev/null)\n'
        for i in range(LINES)
    )
    tool = Bash(
        {"env": {"PATH": tools(folder)}, "timeout": 120.0},
        ProviderHost(folder, folder, (), Environment({}, {})),
    )
    asyncio.run(tool.call("run", {"command": whole}, Given()))
    for i, line in enumerate(lines):
        found = simple_commands(line.rstrip("\n"))
        log = folder / f"log{i}"
        if found is None or not log.exists():
            continue
        for event in log.read_bytes().decode(errors="replace").split("\2")[:-1]:
            assert is_accounted_for(event.split("\1")[:-1], found), line
