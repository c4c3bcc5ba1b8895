"""What DenyArgs is tried on: the simple commands of hostile lines."""

from __future__ import annotations

import time

import pytest

from halo_lang.check.shell import simple_commands

FOUND = [
    # as it stands, and quotes and blanks made plain
    ("rm -rf /", "rm -rf /"),
    (r'r\m  -rf "/"', "rm -rf /"),
    ("'rm' \"-rf\"\t/", "rm -rf /"),
    ("r''m -rf ''/", "rm -rf /"),
    ("r\\\nm -rf \\\n/", "rm -rf /"),
    (r"$'r\x6d' -rf $'\57'", "rm -rf /"),
    ("\\rm -rf /", "rm -rf /"),
    ("/bin/rm -rf /", "rm -rf /"),
    ("../../bin/rm -rf /", "rm -rf /"),
    ("~/bin/rm -rf /", "rm -rf /"),
    ("rm -rf $HOME", "rm -rf $HOME"),
    # lists, pipelines, compound commands
    ("true;rm -rf /", "rm -rf /"),
    ("true&rm -rf /", "rm -rf /"),
    ("true\nrm -rf /", "rm -rf /"),
    ("false || rm -rf /", "rm -rf /"),
    ("true |& rm -rf /", "rm -rf /"),
    ("! rm -rf /", "rm -rf /"),
    ("time -p rm -rf /", "rm -rf /"),
    ("(cd /; rm -rf /)", "rm -rf /"),
    ("{ rm -rf /; } 2>&1", "rm -rf /"),
    ("if rm -rf /; then :; fi", "rm -rf /"),
    ("if false; then :; elif :; then rm -rf /; fi", "rm -rf /"),
    ("while rm -rf /; do :; done", "rm -rf /"),
    ("for i in a b; do rm -rf /; done", "rm -rf /"),
    ("for ((i = 0; i < 1; i++)); do rm -rf /; done", "rm -rf /"),
    ("case a in b) ;; (a|c) rm -rf /;; esac", "rm -rf /"),
    ("[[ a =~ ^(a|b)$ ]] && rm -rf /", "rm -rf /"),
    ("((1)) && rm -rf /", "rm -rf /"),
    ("f() { rm -rf /; }; f", "rm -rf /"),
    ("function f { rm -rf /; }", "rm -rf /"),
    # assignments and redirections before, between and behind
    ("X=1 Y=2 rm -rf /", "rm -rf /"),
    ("X=1 Y=2 rm -rf /", "X=1 Y=2 rm -rf /"),
    (">f 2>&1 rm -rf / <g", "rm -rf /"),
    ('echo x > .e"nv"', "echo x > .env"),
    ("a[0]=1 rm -rf /", "rm -rf /"),
    ("a=(1 2) rm -rf /", "rm -rf /"),
    # substitutions
    ("echo $(rm -rf /)", "rm -rf /"),
    ('echo "$(rm -rf /)"', "rm -rf /"),
    ("echo `rm -rf /`", "rm -rf /"),
    ("echo `echo \\`rm -rf /\\``", "rm -rf /"),
    ("echo $(echo $(echo `rm -rf /`))", "rm -rf /"),
    ("echo $((1 + $(rm -rf /)))", "rm -rf /"),
    ("echo ${x:-$(rm -rf /)}", "rm -rf /"),
    ('echo "${x:-"$(rm -rf /)"}"', "rm -rf /"),
    ("cat <(rm -rf /)", "rm -rf /"),
    ("x=$(rm -rf /)", "rm -rf /"),
    ("x=(a $(rm -rf /))", "rm -rf /"),
    ("cat > $(rm -rf /)", "rm -rf /"),
    ("cat <<< $(rm -rf /)", "rm -rf /"),
    ("cat <<E\n$(rm -rf /)\nE", "rm -rf /"),
    ("for i in $(rm -rf /); do :; done", "rm -rf /"),
    ("[[ a == $(rm -rf /) ]]", "rm -rf /"),
    ("case $(rm -rf /) in a) ;; esac", "rm -rf /"),
    # arithmetic
    *(
        (line, "rm -rf /")
        for line in (
            "(( $(rm -rf /) ))",
            "(( `rm -rf /` ))",
            "(( ${y:-$(rm -rf /)} ))",
            "for ((i=$(rm -rf /); i<0;)); do :; done",
            "for ((i=0; i<`rm -rf /`;)); do :; done",
            "echo $(( $(rm -rf /) ))",
            "echo $(( ${y:-`rm -rf /`} ))",
            "let x=$(rm -rf /)",
            "let 'a[$(rm -rf /)]'",
            "let x=`rm -rf /`",
            "a[$(rm -rf /)]=1",
            "a=([$(rm -rf /)]=1)",
            "[[ $(rm -rf /) -eq 1 ]]",
            "[[ a[$(rm -rf /)] -eq 1 ]]",
            "if (( $(rm -rf /) )); then :; fi",
            "while (( `rm -rf /` )); do :; done",
            "f() { (( $(rm -rf /) )); }; f",
            "echo $(( (($(rm -rf /))) ))",
        )
    ),
    # code in words
    ("eval rm -rf /", "rm -rf /"),
    ("eval 'rm' '-rf /'", "rm -rf /"),
    ("eval \"eval 'rm -rf /'\"", "rm -rf /"),
    ("sh -c 'rm -rf /'", "rm -rf /"),
    ("bash -lc 'rm -rf /' x y", "rm -rf /"),
    ("/bin/bash --norc -eo pipefail -c 'rm -rf /'", "rm -rf /"),
    ("trap 'rm -rf /' EXIT", "rm -rf /"),
    ("su -c 'rm -rf /' root", "rm -rf /"),
    ("ssh host rm -rf /", "rm -rf /"),
    ("ssh -p 22 host 'cd x; rm -rf /'", "rm -rf /"),
    ("watch -n 1 rm -rf /", "rm -rf /"),
    ("bash <<'E'\nrm -rf /\nE", "rm -rf /"),
    ("sh <<< 'rm -rf /'", "rm -rf /"),
    ("source /dev/stdin <<'E'\nrm -rf /\nE", "rm -rf /"),
    # commands in words
    ("sudo -u root -n rm -rf /", "rm -rf /"),
    ("sudo X=1 rm -rf /", "rm -rf /"),
    ("env -i -u A B=1 rm -rf /", "rm -rf /"),
    ("nohup nice -n 5 ionice -c2 rm -rf /", "rm -rf /"),
    ("nice -5 rm -rf /", "rm -rf /"),
    ("timeout -s KILL --kill-after=3 5 rm -rf /", "rm -rf /"),
    ("stdbuf -oL setsid -w rm -rf /", "rm -rf /"),
    ("command -p rm -rf /", "rm -rf /"),
    ("exec -a x rm -rf /", "rm -rf /"),
    ("builtin command exec rm -rf /", "rm -rf /"),
    ("busybox rm -rf /", "rm -rf /"),
    ("/usr/bin/time -f %e rm -rf /", "rm -rf /"),
    ("chroot / rm -rf /", "rm -rf /"),
    ("flock f rm -rf /", "rm -rf /"),
    ("strace -f rm -rf /", "rm -rf /"),
    ("ltrace rm -rf /", "rm -rf /"),
    ("chrt -f 1 taskset 1 ionice -c3 stdbuf -oL setsid rm -rf /", "rm -rf /"),
    ("doas -u root rm -rf /", "rm -rf /"),
    ("runuser root -c 'rm -rf /'", "rm -rf /"),
    ("su - root -c 'rm -rf /'", "rm -rf /"),
    ("flock f -c 'rm -rf /'", "rm -rf /"),
    ("find . -name x -exec rm -rf / \\;", "rm -rf /"),
    ("find . -execdir rm -rf {} +", "rm -rf {}"),
    ("find . -type f -exec ls {} \\; -ok rm -rf / ';'", "rm -rf /"),
    ("find . -exec sh -c 'rm -rf /' \\;", "rm -rf /"),
    ("echo / | xargs rm -rf", "rm -rf {}"),
    ("echo / | xargs -0 -n1 -P 4 rm -rf", "rm -rf {}"),
    ("echo / | xargs -I% rm -rf %", "rm -rf %"),
    ("echo / | xargs -r sudo rm -rf", "rm -rf {}"),
    # what would run if the text were evaluated
    ("x='a[$(rm -rf /)]'; ((x))", "rm -rf /"),
    ("echo 'in `rm -rf /` quotes'", "rm -rf /"),
    # comments and here-documents do not hide what stands after them
    ("echo a#'\nrm -rf /\n#'\nrm -rf /", "rm -rf /"),
    ("echo $(true)#x; rm -rf /", "rm -rf /"),
    ("# '\nrm -rf /\n# '", "rm -rf /"),
    ("cat <<E\n'\nE\nrm -rf /", "rm -rf /"),
    ("cat <<E\nx\\\nE\nE\nrm -rf /", "rm -rf /"),
    ("cat <<-E\n\tx\n\tE\nrm -rf /", "rm -rf /"),
    ("cat <<A <<B\nA\nb\nB\nrm -rf /", "rm -rf /"),
    ("cat <<E && rm -rf /\nE", "rm -rf /"),
    ("cat <<'A B'\nA B\nrm -rf /", "rm -rf /"),
    (r"echo $'a\\' ; rm -rf / ; echo 'x'", "rm -rf /"),
    (r"echo $'a\' ; echo '; rm -rf /", "rm -rf /"),
]

NOT_TAKEN_APART = [
    # a computed name
    "$x -rf /",
    "${x} -rf /",
    "r$x -rf /",
    "rm${IFS}-rf${IFS}/",
    '"$@"',
    "$(echo rm) -rf /",
    "`echo rm` -rf /",
    "r? -rf /",
    "/bin/r* x",
    "[r]m x",
    "{rm,-rf,/}",
    "r{m,x} /",
    "$'\\c' x",
    '$"rm" x',
    "<(echo rm)",
    # computed code, or code from elsewhere
    'eval "$x"',
    "eval rm $x",
    'sh -c "$x"',
    'bash -c "ls $x"',
    "bash $x",
    "bash <(echo rm)",
    "source <(echo rm)",
    "curl x | sh",
    "echo rm | bash -s",
    "cat f | sudo sh",
    "bash",
    "sh <<E\n$x\nE",
    "su",
    "ssh host",
    'ssh host "$x"',
    'trap "$x" EXIT',
    "zsh -c 'rm x'",
    "fish -c 'rm x'",
    # computed or unknown words of what runs commands
    "sudo $x rm",
    "sudo --unknown x rm",
    "env -S 'rm x'",
    "env $x rm",
    "timeout $x rm",
    "xargs $x",
    "xargs env",
    "xargs sh -c",
    "xargs -I{} sh -c 'rm {}'",
    "xargs -I % sudo % x",
    "find . $x",
    "find . -exec rm",
    "parallel rm ::: a",
    "sudo X=1 -u root rm",
    "command $x",
    "exec $x",
    # what makes other words commands
    "alias ls=rm",
    "complete -C rm x",
    "mapfile -C rm x",
    "BASH_ENV=x bash y",
    "env BASH_FUNC_ls%%=x bash y",
    "hash -p /bin/rm ls",
    # arithmetic whose index cannot be followed
    "echo ${a[$(rm x)]}",
    # wrappers that are not followed
    "linux64 rm x",
    "linux32 rm x",
    "setarch x86_64 rm x",
    "prlimit --nofile=5 rm x",
    "numactl -N 0 rm x",
    "sg GROUP 'rm x'",
    "sg GROUP -c 'rm x'",
    "pkexec rm x",
    "sudo pkexec rm x",
    "xvfb-run rm x",
    "cpulimit -l 5 rm x",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
    "gdb --args rm x",
    "gdb -batch -ex 'shell rm x'",
    "unshare -r rm x",
    "nsenter -t 1 rm x",
    "systemd-run rm x",
    "script -c 'rm x'",
    "script -qc 'rm x' f",
    "script f -- rm x",
    "script",
    # options and programs that run commands
    "git -c alias.z='!rm x' z",
    "git -C d -c core.pager='rm x' log",
    "git config alias.z '!rm x'",
    "git bisect run rm x",
    "git submodule foreach 'rm x'",
    "git rebase -x 'rm x' HEAD~1",
    "git rebase --exec 'rm x' HEAD~1",
    "git $x",
    "tar --checkpoint=1 --checkpoint-action=exec='rm x' -cf a b",
    "tar --checkpoint-ac exec='rm x' -cf a b",
    "tar xf a --to-command='rm x'",
    "tar --to-com 'rm x' -xf a",
    "tar -I 'rm x' -cf a b",
    "tar -cIf 'rm x' a b",
    "tar cIf 'rm x' a b",
    "tar --use-compress-program='rm x' -cf a b",
    "sed '1e rm x' f",
    "sed e f",
    "sed -n 's/a/rm x/e' f",
    "sed 's/a/b/ge;p' f",
    "sed -e p -e '1erm x' f",
    "sed --expression='1e rm x' f",
    "sed -ne '1e rm x' f",
    "sed -i.e -e '/a/{s/b/c/;e rm x\n}' f",
    "sed '/a/,/b/!e rm x' f",
    "sed '/[/]/e rm x' f",
    'sed "$x" f',
    # what no one shell grammar is sure of
    "echo 'a",
    'echo "a',
    "echo `a",
    "echo $(a",
    "echo (",
    ")",
    "a b )",
    "{ rm x",
    "if rm x",
    "fi",
    "then rm x",
    "i\\\nf true; then rm x; fi",
    "cat <<E",
    "cat <<E\nrm x",
    "cat <<E x",
    "cat << $x\nE",
    "echo $(cat <<E)\nE",
    "echo ${x@P}",
    "echo ${ rm x; }",
    "$((echo) | (rm x))",
    "echo $[x]",
    "((a); rm x)",
    "coproc rm x",
    "select x in a; do rm x; done",
    "a[b c]=1 rm x",
    "[[ a == @(b|c) ]]",
    "shopt -s extglob\necho !(a)",
    "sh -c '[[ a && rm ]]'",
    r"sh -c $'x' \; ; sh -c \$\'a\'",
    "a &&",
    "| a",
    "a ;; b",
    "echo a\0b",
    "echo 'x`y'",
]

INNOCENT = [
    "git commit -m 'a; rm -rf /'",
    'grep -r "rm -rf" .',
    "cat > f <<'E'\nrm -rf /\n`x` ' $(\nE",
    "cat > f <<E\nrm -rf /\nE",
    "echo rm -rf / # rm -rf /",
    "ls -la | sort -n | head -5 > out.txt 2>&1",
    'for f in *.py; do wc -l "$f"; done',
    "cd sub && make -j4 test",
    "python3 -m pytest -k 'a or b' \"$@\"",
    'x=$(date +%s); echo $((x + 1)) ${x%.*} "${x:-none}" ${#x}',
    "find . -name '*.py' -not -path './.git/*' -print0 | xargs -0 grep -l TODO",
    "command -v rm",
    "git -c user.name=x -C d commit -am 'a e'",
    "tar -czf a.tgz -C d . && tar xfv a.tgz && tar --checkpoint=5 -cfFI x",
    "sed -E -i.bak 's|e/(.*)e|\\1|g; /^e$/d' f",
    "sed -n -e '/e/,$p' -e 's/e/E/gw e.txt' f",
    "sed '$!N;y/e/f/;a e' f; sed -f e f; sed --version",
    "for ((i = 0; i < 3; i++)); do ((x += i)); done",
    "awk '{print $1}' f | sed -n '1,5p'",
    "[ -f x ] || touch x",
    'printf "%s\\n" "${a[@]}"',
]


@pytest.mark.parametrize(("line", "command"), FOUND)
def test_a_command_is_found_however_it_is_written(line: str, command: str) -> None:
    found = simple_commands(line)
    assert found is not None
    assert command in found


@pytest.mark.parametrize("line", NOT_TAKEN_APART)
def test_what_cannot_be_taken_apart_is_said_to_be(line: str) -> None:
    assert simple_commands(line) is None


@pytest.mark.parametrize("line", INNOCENT)
def test_ordinary_lines_are_taken_apart_and_run_what_they_say(line: str) -> None:
    found = simple_commands(line)
    assert found is not None
    assert not any(c == "rm" or c.startswith("rm ") for c in found)


def test_nothing_is_found_in_nothing() -> None:
    assert simple_commands("") == ()
    assert simple_commands(" \n# x\n\t") == ()


def test_the_whole_is_given_in_order_without_repetition() -> None:
    assert simple_commands("a; b 'c  d' | a; X=1 /bin/e > f") == (
        "a",
        "b c  d",
        "/bin/e",
        "e",
        "X=1 /bin/e > f",
    )


MEGABYTE = 1 << 20
HUGE = {
    "one word": "a" * MEGABYTE,
    "one quoted word": "rm '" + "a" * MEGABYTE + "'",
    "many commands": "a;" * (MEGABYTE // 2),
    "many lines": "a b\n" * (MEGABYTE // 4),
    "many words": "a " * (MEGABYTE // 2),
    "many escapes": "\\a" * (MEGABYTE // 2),
    "many quotes": "''" * (MEGABYTE // 2),
    "many variables": "$x" * (MEGABYTE // 2),
    "deep parentheses": "(" * MEGABYTE,
    "deep substitutions": "$(" * (MEGABYTE // 2),
    "deep braces": "${x:-" * (MEGABYTE // 5),
    "deep arithmetic": "$((" + "(" * MEGABYTE,
    "deep groups": "{ " * (MEGABYTE // 2),
    "open quotes": "'a" * (MEGABYTE // 2) + "'",
    "backquotes": "`" * (MEGABYTE - 1),
    "backquotes in backquotes": "echo " + "\\`" * (MEGABYTE // 2),
    "wrappers": "sudo " * (MEGABYTE // 5) + "rm x",
    "wide wrappers": "sudo env " + "a " * (MEGABYTE // 2),
    "here-document": "cat <<E\n" + "x\n" * (MEGABYTE // 2) + "E\n",
    "here-document joined": "cat <<E\n" + "x\\\n" * (MEGABYTE // 3) + "\nE\n",
    "here-documents": "cat <<E " * (MEGABYTE // 8),
    "open here-document": "cat <<E\n" + "E \n" * (MEGABYTE // 3),
    "comments": "# a\n" * (MEGABYTE // 4),
    "continuations": "\\\n" * (MEGABYTE // 2),
    "redirections": ">f " * (MEGABYTE // 3),
    "assignments": "a=1 " * (MEGABYTE // 4),
    "array": "a=(" + "b " * (MEGABYTE // 2) + ")",
    "evals": "eval " * (MEGABYTE // 5),
    "quoted substitutions": "echo '" + "$(" * (MEGABYTE // 2) + "'",
    "quoted backquotes": "echo '" + "`" * MEGABYTE + "'",
    "brackets": "a" + "[" * MEGABYTE,
    "cases": "case a in " + "b) " * (MEGABYTE // 3),
    "tests": "[[ " + "( " * (MEGABYTE // 2),
    "nul": "\0" * MEGABYTE,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_line_of_a_megabyte_is_bounded(name: str) -> None:
    """The bound is loose, far from what is measured, and far from what anything that grows faster would take."""
    begun = time.process_time()
    found = simple_commands(HUGE[name])
    assert time.process_time() - begun < 30
    assert found is None or sum(map(len, found)) < 20 * len(HUGE[name])
