"""A value arrives byte for byte from every place in a shell command, and changes nothing else, in the real bash.

Commands are made at random, values are hostile. The oracle is bash itself: what a command runs with a hostile value
must be what it runs with a plain word, with the one in the place of the other.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from pathlib import Path as Folder

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang.boundary.host import Environment, Given, ProviderHost
from halo_lang.check.shell import place_values, render
from halo_lang.language.ast import Path, Text
from halo_lang.providers.bash import Bash

PLAIN = "w0v"


def text(written: str) -> Text:
    parts: list[str | Path] = []
    at = 0
    for found in re.finditer(r"\{\{(\w+)\}\}", written):
        if found.start() > at:
            parts.append(written[at : found.start()])
        parts.append(Path(found.start(), found.end(), found[1], ()))
        at = found.end()
    if at < len(written):
        parts.append(written[at:])
    return Text(0, len(written), tuple(parts), False)


def shell(folder: Folder) -> Bash:
    variables = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    return Bash({"cwd": str(folder), "timeout": 60.0}, ProviderHost(folder, folder, (), Environment(variables, {})))


# `show` writes each of its arguments and a NUL, then \x1e.
SHOW = "show() { printf '%s\\0' \"$@\"; printf '\\036'; }\n"

PLACES = [
    ("show {{v}}", "{v}\0\x1e"),
    ('show "{{v}}"', "{v}\0\x1e"),
    ("show '{{v}}'", "{v}\0\x1e"),
    ("show $'{{v}}'", "{v}\0\x1e"),
    ("show a{{v}}b\"c{{v}}d\"'e{{v}}f'$'g\\t{{v}}h'", "a{v}bc{v}de{v}fg\t{v}h\0\x1e"),
    ("show {{v}}{{v}} {{v}}", "{v}{v}\0{v}\0\x1e"),
    ("show -- {{v}} \\\n  {{v}}", "--\0{v}\0{v}\0\x1e"),
    ("show =~{{v}}", "=~{v}\0\x1e"),
    ('x=$(printf %s. {{v}}); show "${x%.}"', "{v}\0\x1e"),
    ('show "$(printf %s. "{{v}}")"', "{v}.\0\x1e"),
    ("show \"$(printf %s. 'a{{v}}')\"", "a{v}.\0\x1e"),
    ("cat <<E\n{{v}}\nE", "{v}\n"),
    (
        'cat <<E\n a \'{{v}}\' "{{v}}" \\\\{{v}} $(printf %s. {{v}}) $(printf %s. "{{v}}")\nE',
        " a '{v}' \"{v}\" \\{v} {v}. {v}.\n",
    ),
    ("cat <<-E\n\t\t{{v}}\tx\n\tE", "{v}\tx\n"),
    ("cat <<A - <<B\nA\n{{v}}\nB", "{v}\n"),
    ("cat <<<{{v}}", "{v}\n"),
    ('cat <<< "a{{v}}"', "a{v}\n"),
    ('x={{v}}; show "$x"', "{v}\0\x1e"),
    ('x=a\'{{v}}\'"{{v}}" y={{v}}; show "$x" "$y"', "a{v}{v}\0{v}\0\x1e"),
    ('x=(1 {{v}}); show "${x[@]}"', "1\0{v}\0\x1e"),
    ('export x={{v}}; show "$x"', "{v}\0\x1e"),
    ("for x in {{v}} '{{v}}'; do show \"$x\"; done", "{v}\0\x1e{v}\0\x1e"),
    ('set -- {{v}} "{{v}}"; show "$@"', "{v}\0{v}\0\x1e"),
    ('f() { show "$1"; }; f {{v}}', "{v}\0\x1e"),
    ('case {{v}} in "{{v}}") show {{v}};; *) show no;; esac', "{v}\0\x1e"),
    ("case a{{v}} in a{{v}}) show y;; esac", "y\0\x1e"),
    ("[[ {{v}} == {{v}} && x{{v}} =~ ^x'{{v}}'$ && -n y{{v}} ]] && show y", "y\0\x1e"),
    ("[ x{{v}} = x'{{v}}' ] && show y", "y\0\x1e"),
    ("[ {{v}} = \"{{v}}\" ] && test ! {{v}} '!=' {{v}} && show y", "y\0\x1e"),
    ("if show {{v}}; then show '{{v}}'; fi", "{v}\0\x1e{v}\0\x1e"),
    ("( show {{v}} ) | cat", "{v}\0\x1e"),
    ("{ show {{v}}; } && ! show '{{v}}'", "{v}\0\x1e{v}\0\x1e"),
    ("printf '%s' {{v}} | cat", "{v}"),
    ("printf '%s' {{v}} > 'f'; cat f", "{v}"),
    ("cat <(printf '%s' {{v}})", "{v}"),
    ("x={{v}} bash -c 'printf %s \"$x\"'", "{v}"),
    ("env x={{v}} bash -c 'printf %s \"$x\"'", "{v}"),
    ("bash -c 'printf %s \"$1\"' bash {{v}}", "{v}"),
    ("show {{v}} # {a} ' \" ` $(", "{v}\0\x1e"),
    ("show $((1 + 1)) {{v}}", "2\0{v}\0\x1e"),
    ("timeout 60 printf '%s' {{v}}", "{v}"),
]

HOSTILE = [
    "",
    " ",
    "\n",
    "a\n\n",
    "$(touch PWN)",
    "`touch PWN`",
    "; touch PWN #",
    "' ; touch PWN ; '",
    '" ; touch PWN ; "',
    "a b  c\n*",
    "-n",
    "--",
    "~",
    "a[$(touch PWN)]",
    "x[$(touch PWN)]=1",
    "\\",
    "\\\\",
    "\\'",
    "\x01\x7f\x1bé\x1e",
    "E",
    "\nE\n",
    "E\ntouch PWN\n",
    "{a,b}",
    "$x${x}$HALO_V1",
    "|&;()<>",
    "}",
    "!",
    "#",
    "# x",
    "*",
    "[a-z]",
    "%s%n",
    "]]",
    "-va[$(touch PWN)]",
    "=",
    "(",
    "-eq",
    "🎈" * 3,
    "\r\n",
    "\t",
    "$'\\x41'",
    "${IFS}",
    "<<E",
    "w0v",
]

values = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from([*HOSTILE, "'", '"', "$", "`", "\\", "a"]), max_size=5).map("".join),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
)


def script(places: list[int]) -> str:
    return "".join(f"{{ {PLACES[i][0]}\n}} > out{i}\n" for i in places)


def groups() -> list[list[int]]:
    """The places, in as few scripts as are accepted: what feeds a value does not stand beside what reads a program."""
    found: list[list[int]] = []
    for i in range(len(PLACES)):
        group = next((g for g in found if not place_values(text(script([*g, i])))[1]), None)
        if group is None:
            found.append([i])
        else:
            group.append(i)
    return found


GROUPS = groups()


@given(values)
@settings(max_examples=40)
def test_a_value_arrives_byte_for_byte_from_every_place(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    """Places in few scripts, so that bash is seldom started for each value."""
    folder = tmp_path_factory.mktemp("values")
    for places in GROUPS:
        command, diagnostics = place_values(text(script(places)))
        assert diagnostics == ()
        assert command is not None
        args = render(command, (value,) * len(command.names))
        args["command"] = SHOW + str(args["command"])
        result = asyncio.run(shell(folder).call("run", args, Given()))
        assert isinstance(result, dict)
    for i, (place, wanted) in enumerate(PLACES):
        if wanted is not None:
            got = (folder / f"out{i}").read_bytes()
            assert got == wanted.replace("{v}", value).encode(), place
    assert not (folder / "PWN").exists()


@pytest.mark.parametrize("size", [1 << 20, 3 << 20])
def test_a_large_value_arrives_byte_for_byte(tmp_path: Folder, size: int) -> None:
    unit = 'it\'s "$(touch PWN)" `x` \\ é\n'
    value = (unit * (size // len(unit) + 1))[:size]
    written = (
        "printf %s {{v}} > bare; printf %s \"{{v}}\" > double; printf %s '{{v}}' > single\ncat > doc <<E\n{{v}}\nE"
    )
    command, _ = place_values(text(written))
    assert command is not None
    asyncio.run(shell(tmp_path).call("run", render(command, (value,) * 4), Given()))
    assert {(tmp_path / n).read_text() == value for n in ("bare", "double", "single")} == {True}
    assert (tmp_path / "doc").read_text() == value + "\n"
    assert not (tmp_path / "PWN").exists()


# Commands at random -----------------------------------------------------------------------------------------------

ATOMS = [
    "show {{v}}",
    'show "{{v}}"',
    "show '{{v}}'",
    "show a{{v}}b",
    "show $'{{v}}\\n'",
    "show x",
    "show 'a b'",
    'show "c d"',
    "{{v}}",
    '"{{v}}"',
    "'{{v}}'",
    "x={{v}}",
    'show "$x"',
    "cat <<E\na {{v}}\nE\n",
    "cat <<<{{v}}",
    "[ {{v}} ]",
    "true",
    "$x",
]
GLUE = [
    " ",
    " ",
    ";",
    "\n",
    " && ",
    " || ",
    "|",
    " | cat ",
    "(",
    ")",
    "{ ",
    "; }",
    "'",
    '"',
    "\\",
    "\\\n",
    "`",
    "$(",
    "${x:-",
    "}",
    "$((",
    "))",
    "#",
    " #",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "<<< ",
    ">f ",
    "2>&1 ",
    "<(",
    "$'",
    '$"',
    "$",
    "x=",
    "a=(",
    "[[ ",
    " ]]",
    " == ",
    " =~ ",
    "if ",
    "; then ",
    "; fi",
    "for i in ",
    "; do ",
    "; done",
    "case x in ",
    "x) ",
    ";;",
    " esac",
    "f() ",
    "! ",
    "eval ",
    "eval '",
    "bash -c '",
    'bash -c "',
    "trap '",
    "' EXIT",
    "command ",
    "env A=1 ",
    "printf ",
    "export ",
    "set -- ",
    "{",
    "~",
    "*",
    "[",
    "{a,b}",
    "\t",
    "\r",
    "=",
    "+",
    "let ",
    "echo ",
    "test ",
    "-v ",
    "declare ",
]
FRAMES = [
    "show $({})",
    'show "$({})"',
    "eval '{}'",
    "{{ {}\n}}",
    "( {} )",
    "if {}\nthen show y\nfi",
    "cat <<E\n{}\nE\n",
    "f() {{ {}\n}}; f",
    "case x in x) {} ;; esac",
    "[[ x == {} ]] && show y",
    "show ${{x:-{}}}",
    "bash -c '{}'",
    "x={} show",
    "a=({})",
    "cat <({})",
    'for i in {}; do show "$i"; done',
    "{} | cat",
    "show \\\n{}",
    "cat <<E\n$({})\nE\n",
    'cat <<<"$({})"',
    'show "{}"',
    "show '{}'",
    "show {} # x",
]


def made(chance: random.Random, depth: int = 0) -> str:
    kind = chance.random()
    if depth < 3 and kind < 0.5:
        return chance.choice(FRAMES).format(made(chance, depth + 1))
    if kind < 0.85 or depth > 3:
        return "".join(chance.choice(ATOMS if chance.random() < 0.6 else GLUE) for _ in range(chance.randint(1, 4)))
    return chance.choice(ATOMS) + chance.choice([";", "\n", " && ", "|"]) + made(chance, depth + 1)


@given(st.integers(0, 1 << 48), st.sampled_from(["$(touch PWN)", "' ; touch PWN ; '", '";touch PWN;"', "`touch PWN`"]))
@settings(max_examples=12)
def test_no_value_runs_anything_in_any_command(tmp_path_factory: pytest.TempPathFactory, seed: int, value: str) -> None:
    """Twenty commands made at random, one after the other, with one value: nothing of the value is ever run."""
    folder = tmp_path_factory.mktemp("soup")
    chance = random.Random(seed)
    found = []
    while len(found) < 20:
        command, _ = place_values(text(made(chance)))
        if command is not None and command.names:
            found.append(command.command)
    whole = "".join(
        f'bash --norc --noprofile -c \'IFS= read -r -d "" HALO_V1 < value; eval "$(cat c{i})"\' bash </dev/null\n'
        for i in range(len(found))
    )
    for i, command_text in enumerate(found):
        (folder / f"c{i}").write_text(SHOW + command_text)
    (folder / "value").write_text(value + "\0")
    asyncio.run(shell(folder).call("run", {"command": whole}, Given()))
    assert not (folder / "PWN").exists(), found
