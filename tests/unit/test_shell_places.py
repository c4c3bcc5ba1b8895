"""Where values may be inserted in shell commands, and where they may not."""

from __future__ import annotations

import re

import pytest

from halo_lang.check.shell import ShellCommand, place_values, render
from halo_lang.language.ast import Path, Text
from halo_lang.language.source import Span


def text(written: str) -> Text:
    """A literal with `{{a.b}}` as insertions, as the parser makes it."""
    parts: list[str | Path] = []
    at = 0
    for found in re.finditer(r"\{\{(\w+)((?:\.\w+)*)\}\}", written):
        if found.start() > at:
            parts.append(written[at : found.start()])
        below = tuple(p for p in found[2].split(".") if p)
        parts.append(Path(found.start(), found.end(), found[1], below))
        at = found.end()
    if at < len(written):
        parts.append(written[at:])
    return Text(0, len(written), tuple(parts), False)


def placed(written: str) -> str:
    command, diagnostics = place_values(text(written))
    assert diagnostics == ()
    assert command is not None
    return command.command


PLACED = [
    ("echo {{v}}", 'echo "$HALO_V1"'),
    ("echo a{{v}}b{{v}}", 'echo a"$HALO_V1"b"$HALO_V1"'),
    ('echo "{{v}}" "a {{v}}b"', 'echo "${HALO_V1}" "a ${HALO_V1}b"'),
    ("echo '{{v}}' 'a {{v}} b'", "echo ''\"$HALO_V1\"'' 'a '\"$HALO_V1\"' b'"),
    ("echo $'\\t{{v}}\\n'", "echo $'\\t'\"$HALO_V1\"$'\\n'"),
    ('echo $(cat {{v}}) "$(cat "{{v}}")"', 'echo $(cat "$HALO_V1") "$(cat "${HALO_V1}")"'),
    ("cat <(echo {{v}})", 'cat <(echo "$HALO_V1")'),
    (
        "cat <<E\n{{v}} '{{v}}' \"{{v}}\" $(echo {{v}})\nE",
        'cat <<E\n${HALO_V1} \'${HALO_V1}\' "${HALO_V1}" $(echo "$HALO_V1")\nE',
    ),
    ("cat <<-E\n\t{{v}}\n\tE\n", "cat <<-E\n\t${HALO_V1}\n\tE\n"),
    ("cat <<< {{v}}", 'cat <<< "$HALO_V1"'),
    ("cat < {{v}} >> {{w}} 2>&1", 'cat < "$HALO_V1" >> "$HALO_V2" 2>&1'),
    ("ls {{v}}/x", 'ls "$HALO_V1"/x'),
    ("echo \\\n  {{v}} \\\n  x", 'echo \\\n  "$HALO_V1" \\\n  x'),
    ("echo ~{{v}} *{{v}}* a={{v}}", 'echo ~"$HALO_V1" *"$HALO_V1"* a="$HALO_V1"'),
    ('for x in {{v}} b; do echo "$x"; done', 'for x in "$HALO_V1" b; do echo "$x"; done'),
    ("case {{v}} in {{w}}*) echo;; esac", 'case "$HALO_V1" in "$HALO_V2"*) echo;; esac'),
    ("x={{v}} y=a{{v}} cmd", 'x="$HALO_V1" y=a"$HALO_V1" cmd'),
    ("x=(a {{v}}); export y={{v}}", 'x=(a "$HALO_V1"); export y="$HALO_V1"'),
    (
        "[ -n {{v}} ] && [ {{v}} = a ] && [ ! {{v}} -gt 3 ]",
        '[ -n "$HALO_V1" ] && [ "$HALO_V1" = a ] && [ ! "$HALO_V1" -gt 3 ]',
    ),
    (
        "[[ {{v}} == a* && ( -f {{v}} || b =~ {{v}} ) ]]",
        '[[ "$HALO_V1" == a* && ( -f "$HALO_V1" || b =~ "$HALO_V1" ) ]]',
    ),
    ('f() { echo "$1"; }; f {{v}}', 'f() { echo "$1"; }; f "$HALO_V1"'),
    ('set -- {{v}}; echo "$1"', 'set -- "$HALO_V1"; echo "$1"'),
    ("printf '%s' {{v}}; printf 'a {{v}}'", "printf '%s' \"$HALO_V1\"; printf 'a '\"$HALO_V1\"''"),
    ("sh -c 'echo \"$1\"' sh {{v}}", 'sh -c \'echo "$1"\' sh "$HALO_V1"'),
    ("env A={{v}} timeout 5 grep {{v}} f", 'env A="$HALO_V1" timeout 5 grep "$HALO_V1" f'),
    ("echo {{v}} | xargs -n1 grep {{w}}", 'echo "$HALO_V1" | xargs -n1 grep "$HALO_V2"'),
    ("find {{v}} -name {{w}} -exec grep {{v}} {} +", 'find "$HALO_V1" -name "$HALO_V2" -exec grep "$HALO_V1" {} +'),
    (
        "python3 -c 'import sys' {{v}}; awk '{print}' {{v}}",
        "python3 -c 'import sys' \"$HALO_V1\"; awk '{print}' \"$HALO_V1\"",
    ),
    (
        "if true; then ( cd {{v}}; ls ) & fi; ! { ls {{v}}; }",
        'if true; then ( cd "$HALO_V1"; ls ) & fi; ! { ls "$HALO_V1"; }',
    ),
    ("echo {{v}} # a comment, and $(( 1 + 1 ))", 'echo "$HALO_V1" # a comment, and $(( 1 + 1 ))'),
    ("echo $((1 + 2)) {{v}} ${x:-a} `date`", 'echo $((1 + 2)) "$HALO_V1" ${x:-a} `date`'),
    ("expr {{n}} + 1", 'expr "$HALO_V1" + 1'),
]


@pytest.mark.parametrize(("written", "command"), PLACED)
def test_a_value_has_a_place(written: str, command: str) -> None:
    assert placed(written) == command


REFUSED = [
    ("cat <<'E'\n{{v}}\nE", "quoted"),
    ("cat <<\\E\n{{v}}\nE", "quoted"),
    ("echo # {{v}}", "comment"),
    ("echo \\{{v}}", "backslash"),
    ('echo "\\{{v}}"', "backslash"),
    ("echo $'\\{{v}}'", "backslash"),
    ("cat <<E\n\\{{v}}\nE", "backslash"),
    ("echo ${{v}}", "right after a `$`"),
    ('echo "${{v}}"', "right after a `$`"),
    ("cat <<E\n${{v}}\nE", "right after a `$`"),
    ("echo $(({{v}}))", "arithmetic"),
    ("(({{v}}))", "arithmetic"),
    ("echo $((1 + $(echo {{v}})))", "arithmetic"),
    ("for ((i = {{v}}; i < 3; i++)); do :; done", "arithmetic"),
    ("echo `echo {{v}}`", "backquotes"),
    ("echo ${x:-{{v}}}", "`${…}`"),
    ('echo "${x:-$(echo {{v}})}"', "`${…}`"),
    ("a[{{v}}]=1", "index"),
    ("{{v}} x", "which command"),
    ("./{{v}}", "which command"),
    ("sudo {{v}}", "may run it"),
    ("env A=1 x{{v}}", "which command"),
    ("$(echo {{v}}) x", "which command"),
    ("$x {{v}}", "computed"),
    ("eval {{v}}", "shell code"),
    ("eval \"echo '{{v}}'\"", "shell code"),
    ("command eval {{v}}", "shell code"),
    ("sh -c {{v}}", "shell code"),
    ("bash -lc 'echo {{v}}'", "shell code"),
    ("nohup sh -c 'echo {{v}}' &", "shell code"),
    ("ssh host echo {{v}}", "shell code"),
    ("su -c 'echo {{v}}'", "shell code"),
    ("trap 'echo {{v}}' EXIT", "shell code"),
    ("find . -exec sh -c 'echo {{v}}' \\;", "shell code"),
    ("find {{v}} -exec sh -c 'echo {}' \\;", "shell code"),
    ("env -S {{v}} x", "may run it"),
    ("zsh -c {{v}}", "may run it"),
    ("source {{v}}", "may run it"),
    ("timeout {{v}} make", "may run it"),
    ("alias x={{v}}", "may run it"),
    ("sh <<E\necho {{v}}\nE", "reach a shell"),
    ("bash <<< {{v}}", "reach a shell"),
    ("echo {{v}} | sh", "reach a shell"),
    ("echo {{v}} | tee f | sudo bash -s", "reach a shell"),
    ("{ echo {{v}}; } | { cat; sh; }", "reach a shell"),
    ("echo {{v}} | xargs sh -c", "reach a shell"),
    ("echo {{v}} | xargs $x", "reach a shell"),
    ("echo {{v}} | xargs -I% sh -c 'echo %'", "reach a shell"),
    ("python3 -c 'print({{v}})'", "interpreter"),
    ("perl -ne 'print {{v}}'", "interpreter"),
    ('node -e "{{v}}"', "interpreter"),
    ("python3 - <<E\n{{v}}\nE", "interpreter"),
    ("awk '/{{v}}/'", "interpreter"),
    ("sed -i -e s/a/{{v}}/ f", "interpreter"),
    ("sed 's/a/{{v}}/' f", "interpreter"),
    ("make X={{v}}", "interpreter"),
    ("let x={{v}}", "builtin"),
    ("read {{v}}", "builtin"),
    ("unset {{v}}", "builtin"),
    ("declare x={{v}}", "builtin"),
    ("local x={{v}}", "builtin"),
    ("export {{v}}", "builtin"),
    ("export -n x={{v}}", "builtin"),
    ("wait {{v}}", "builtin"),
    ("set {{v}}", "builtin"),
    ("PATH={{v}} ls", "variable that changes"),
    ("LD_PRELOAD={{v}} ls", "variable that changes"),
    ("RANDOM={{v}}", "variable that changes"),
    ("for OPTIND in {{v}}; do :; done", "variable that changes"),
    ("x={{v}}; echo $((x))", "evaluates variables"),
    ("x={{v}}; eval echo $x", "evaluates variables"),
    ("x={{v}}; [[ $x -gt 3 ]]", "evaluates variables"),
    ("x={{v}}; [ $x ]", "evaluates variables"),
    ('for x in {{v}}; do sh -c "$x"; done', "evaluates variables"),
    ('f() { eval "$1"; }; f {{v}}', "evaluates variables"),
    ("set -- {{v}}; (($1))", "evaluates variables"),
    ("read x <<< {{v}}; echo $((x))", "evaluates variables"),
    ("sh -c 'eval \"$1\"' sh {{v}}", "evaluates variables"),
    ("declare -i x; x={{v}}", "evaluates variables"),
    ("echo {a,{{v}}}", "`{`"),
    ("echo [{{v}}]", "brackets"),
    ("echo x 2>&{{v}}", "open file"),
    ("[ -v {{v}} ]", "test"),
    ("[ {{v}} x ]", "test"),
    ("[ {{v}} = a -o {{w}} = b ]", "test"),
    ("[ $x = {{v}} ]", "test"),
    ("[[ {{v}} -eq 1 ]]", "test"),
    ("[[ -v {{v}} ]]", "test"),
    ("printf {{v}}", "printf"),
    ("printf -v {{v}} x", "printf"),
    ("echo 'a {{v}}", "cannot be surely read"),
    ("echo ( {{v}}", "cannot be surely read"),
    ("cat <<{{v}}\nE", "cannot be surely read"),
    ("for {{v}} in a; do :; done", "cannot be surely read"),
    ("{{v}}() { :; }", "cannot be surely read"),
    ("coproc cat {{v}}", "cannot be surely read"),
    ("echo @({{v}})", "cannot be surely read"),
]


@pytest.mark.parametrize(("written", "why"), REFUSED)
def test_a_value_has_no_place(written: str, why: str) -> None:
    command, diagnostics = place_values(text(written))
    assert command is None
    assert why in diagnostics[0].message
    for diagnostic in diagnostics:
        assert diagnostic.code == "SHELL_PLACE"
        assert diagnostic.severity == "error"
        assert diagnostic.help
        assert written[diagnostic.span.start : diagnostic.span.end].startswith("{{")


EVALUATED_LATER = [
    "echo {{v}} > f; read x < f; echo $((x))",
    "c={{v}}; a=([c]=1)",
    "c={{v}}; a+=([c]=1)",
    "c={{v}}; a=([$c]=1)",
    'c={{v}}; a=(["$c"]=1)',
    "c={{v}}; declare a=([c]=1)",
    "c={{v}}; readonly a=([c]=1)",
    "set -- {{v}}; a=([$1]=1)",
    "f() { a=([$1]=1); }; f {{v}}",
    "for x in {{v}}; do a=([x]=1); done",
    "read x <<< {{v}}; a=([x]=1)",
    'export x={{v}}; bash -c "a=([x]=1)"',
    "c={{v}}; read a[c] <<< 1",
    "c={{v}}; a=(1); unset a[c]",
    'c={{v}}; unset "a[c]"',
    "c={{v}}; declare a[c]=1",
    'c={{v}}; wait -n -p "a[c]"',
    "c={{v}}; ls {a[c]}>/dev/null",
    "echo {{v}} > >(bash)",
    "cat > >(bash) <<< {{v}}",
    "tee >(bash) <<< {{v}}",
    "f() { bash; }; f <<< {{v}}",
    "c={{v}}; PS4=$c; set -x; :",
    "sed -f - f <<< {{v}}",
    "awk -f - f <<< {{v}}",
    "awk -f- f <<< {{v}}",
    "sed -nf /dev/stdin f <<< {{v}}",
    "sed --file=- f <<< {{v}}",
    "echo {{v}} | sed -f - f",
    'c={{v}}; printf -v "a[c]" x',
    "c={{v}}; printf -va[c] x",
    'c={{v}}; test -v "a[c]"',
    'c={{v}}; [ -v "a[c]" ]',
    'c={{v}}; [[ -v "a[c]" ]]',
    'c={{v}}; mapfile "a[c]" < f',
    'c={{v}}; export "a[c]=1"',
    "c={{v}}; local a[c]=1",
    "c={{v}}; typeset a[c]=1",
    'c={{v}}; x=a[c]; read "$x" <<< 1',
    "c={{v}}; PROMPT_COMMAND=$c",
    "export PS4={{v}}; bash -x f",
    "c={{v}}; set -o xtrace; :",
    'c={{v}}; export PS4="$c"; bash -xc :',
    'c={{v}}; read PS4 <<< "$c"; set -x; :',
    'c={{v}}; getopts a "a[c]"',
    "f() { python3; }; f <<< {{v}}",
    "f() { echo {{v}}; }; f | bash",
    "f() { bash; }; echo {{v}} | f",
    "f() { echo {{v}}; }; { f; } | sudo sh",
    "{ bash; } <<< {{v}}",
    "if true; then sh; fi <<< {{v}}",
    "echo {{v}} >&3 3> >(cat)",
    "exec 3<<< {{v}}; bash <&3",
    "exec <<< {{v}}; bash",
    "bash <(echo {{v}})",
    "source <(echo {{v}})",
    "python3 <(echo {{v}})",
    "while read x; do $x; done <<< {{v}}",
    'x={{v}}; bash <<< "$x"',
    'x={{v}}; echo "$x" | bash',
]
"""Commands that would evaluate or run, in a second step, what they were given as data."""


@pytest.mark.parametrize("written", EVALUATED_LATER)
def test_a_value_has_no_place_where_it_is_evaluated_later(written: str) -> None:
    command, diagnostics = place_values(text(written))
    assert command is None
    assert {d.code for d in diagnostics} == {"SHELL_PLACE"}


ORDINARY = [
    "printf '%s' {{v}} > sum.ts && bun test sum.test.ts",
    "printf '%s' {{v}} > sum.py && python3 -m unittest",
    "python3 run.py <<< {{v}} > out.txt",
    "cat <<E | sort > f\n{{v}}\nE",
    "bash run.sh {{v}} 2>&1 | tee log",
    "a=(1 2); echo ${a[0]} {{v}}",
    "ls [a-z]* | grep {{v}} | head -3 > f",
    "x={{v}}; sed -n 's/a/b/p' f; echo \"$x\"",
    "git commit -m {{v}} && tar -czf {{w}} .",
    "grep -e {{v}} f | awk '{print $1}' | sed 's/a/b/'",
    'echo "$(cat {{v}})" > {{w}}',
]


@pytest.mark.parametrize("written", ORDINARY)
def test_ordinary_commands_keep_their_places(written: str) -> None:
    assert "HALO_V1" in placed(written)


def test_each_value_without_a_place_is_named_and_no_other() -> None:
    written = "echo {{a}} $(({{b.c}})) {{d}} # {{e}}"
    _, diagnostics = place_values(text(written))
    assert [d.span for d in diagnostics] == [Span(14, 21), Span(32, 37)]
    assert diagnostics[0].message.startswith("`{{b.c}}` stands in arithmetic")


def test_a_command_without_values_is_not_looked_at() -> None:
    assert place_values(text("echo ( '")) == (ShellCommand("echo ( '", ()), ())
    assert place_values(text("")) == (ShellCommand("", ()), ())


def test_names_follow_the_parts_and_a_repeated_path_has_one() -> None:
    command, _ = place_values(text("x {{a}} {{a.b}} {{a}}"))
    assert command == ShellCommand('x "$HALO_V1" "$HALO_V2" "$HALO_V1"', ("HALO_V1", "HALO_V2", "HALO_V1"))


def test_names_are_none_that_the_command_has() -> None:
    command, _ = place_values(text('x {{a}} "$HALO_V1" $HALO_VV'))
    assert command is not None
    assert command.names == ("HALO_VVV1",)


def test_a_command_with_a_nul_is_refused() -> None:
    command, diagnostics = place_values(Text(0, 9, ("a\0b ", Path(4, 9, "v", ())), False))
    assert command is None
    assert [d.code for d in diagnostics] == ["SHELL_PLACE"]


def test_what_the_door_is_given() -> None:
    command, _ = place_values(text("x {{a}} {{b}} {{a}}"))
    assert command is not None
    assert render(command, ("1", "", "1")) == {
        "command": 'x "$HALO_V1" "$HALO_V2" "$HALO_V1"',
        "values": {"HALO_V1": "1", "HALO_V2": ""},
    }
    assert render(ShellCommand("ls", ()), ()) == {"command": "ls"}


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_a_value_that_no_command_can_be_given(value: str) -> None:
    with pytest.raises(ValueError, match="a value inserted"):
        render(ShellCommand("x", ("HALO_V1",)), (value,))
