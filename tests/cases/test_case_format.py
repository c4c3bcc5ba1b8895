"""The format and the runner of cases: a case that could not fail would prove nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from case_format import CaseError, Step, matches, parse, updated
from case_runner import _PLAIN, run_case, run_step

TEXT = """\
# Title

## one

```halo file=a.halo
pipeline P() -> Result:
  1
```

```console
$ halo check a.halo
$ printf 'x\\n'; \\
> exit 3
x
[exit 3]
```

## without a session

```text
nothing
```

## two

```console
$ echo two
[..]o
...
```
"""


def test_a_file_is_read_into_cases() -> None:
    one, two = parse(TEXT)
    assert (one.name, two.name) == ("one", "two")
    assert one.files == {"a.halo": "pipeline P() -> Result:\n  1\n"}
    assert [(s.command, s.expected, s.exit_code) for s in one.steps] == [
        ("halo check a.halo", [], 0),
        ("printf 'x\\n'; \\\nexit 3", ["x"], 3),
    ]
    lines = TEXT.split("\n")
    assert lines[one.steps[1].first : one.steps[1].last] == ["x", "[exit 3]"]
    assert lines[one.steps[0].line] == "$ halo check a.halo"


def test_a_page_is_one_case() -> None:
    (page,) = parse(TEXT, whole="page")
    assert page.name == "page"
    assert len(page.steps) == 3


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("## a\n```console\n$ x\n", "never closed"),
        ("## a\n```console\nx\n```\n", "begins with a command"),
        ("## a\n```console server=x\n$ x\n```\n", "not understood"),
        ("## a\n```console\n$ x\n```\n## a\n", "two cases"),
        ("## a\n```t file=x\n```\n```t file=x\n```\n", "two files"),
        ("```console\n$ x\n```\n", "before the first section"),
    ],
)
def test_what_cannot_be_read_is_an_error(text: str, named: str) -> None:
    with pytest.raises(CaseError, match=named):
        parse(text)


@pytest.mark.parametrize(
    ("expected", "actual", "fits"),
    [
        ([], [], True),
        ([], [""], True),
        (["a", ""], ["a"], True),
        (["a"], ["a", "b"], False),
        (["a", "b"], ["a"], False),
        (["a  "], ["a"], True),
        (["a[..]c"], ["abbc"], True),
        (["a[..]c"], ["abbd"], False),
        (["a.c"], ["abc"], False),
        (["..."], [], True),
        (["...", "z"], ["x", "y", "z"], True),
        (["...", "z"], ["x", "z", "y"], False),
        (["a", "...", "z"], ["a", "z"], True),
        (["...", "a", "..."], ["b", "a", "a"], True),
    ],
)
def test_matching(expected: list[str], actual: list[str], fits: bool) -> None:
    assert matches(expected, actual) is fits


def test_updating_changes_only_the_steps_that_are_given() -> None:
    one, two = parse(TEXT)
    new = updated(TEXT, [(one.steps[0], ["bad", ""], 1), (two.steps[0], ["two"], 0)])
    again = parse(new)
    assert [(s.expected, s.exit_code) for c in again for s in c.steps] == [(["bad"], 1), (["x"], 3), (["two"], 0)]
    assert updated(TEXT, []) == TEXT


def test_updating_leaves_out_what_is_another_on_each_run() -> None:
    line = "12ms · 2 LLM call(s) · run 3996ca04-4284-4ab7-adca-63d1e3ae4d99 at 1.5ms"
    new = updated(TEXT, [(parse(TEXT)[0].steps[0], [line], 0)])
    assert parse(new)[0].steps[0].expected == ["[..]ms · 2 LLM call(s) · run [..] at 1.5ms"]
    assert matches(parse(new)[0].steps[0].expected, [line])


def test_output_that_a_case_cannot_hold_is_refused() -> None:
    with pytest.raises(CaseError, match="cannot hold"):
        updated(TEXT, [(parse(TEXT)[0].steps[0], ["$ x"], 0)])


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("halo run a.halo x=1", " run a.halo x=1"),
        ("halo run a.halo 'docs=[\"a\"]' --mock 2>/dev/null", " run a.halo 'docs=[\"a\"]' --mock"),
        ("halo check a.halo 2>&1", " check a.halo"),
        ("halo", ""),
        ("halo run a.halo x=$HOME", None),
        ("halo run a.halo | head -1", None),
        ("halo run a.halo *", None),
        ('halo run "$x"', None),
        ("halo run a; echo", None),
        ("halorun", None),
        ("echo halo", None),
    ],
)
def test_what_runs_inside(command: str, argv: str | None) -> None:
    found = _PLAIN.match(command)
    assert (found and found[1]) == argv


def speaking(argv: list[str]) -> int:
    print("out", *argv)
    print("err", file=sys.stderr)
    sys.stdout.buffer.write(Path("a.txt").read_bytes())
    if "stop" in argv:
        raise SystemExit(2)
    os.environ["OPENAI_API_KEY"] = "leaked"
    return 1 if sys.stdin.read() == "" else 0


def test_a_step_inside_sees_its_own_folder_environment_and_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    (tmp_path / "a.txt").write_text("file\n", encoding="utf-8")
    before = os.getcwd(), sys.stdout
    assert run_step(Step("halo x 'y z'", 0), tmp_path, speaking) == (["out x y z", "file", ""], 1, "err\n")
    assert run_step(Step("halo x 2>&1", 0), tmp_path, speaking)[0] == ["out x", "err", "file", ""]
    assert run_step(Step("halo x >/dev/null 2>&1", 0), tmp_path, speaking)[0] == [""]
    assert run_step(Step("halo stop", 0), tmp_path, speaking)[1] == 2
    assert (os.getcwd(), sys.stdout) == before
    assert os.environ["OPENAI_API_KEY"] == "mine"


def test_other_commands_run_with_bash_without_the_callers_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "mine")
    assert run_step(Step("echo [$OPENAI_API_KEY]; pwd; exit 4", 0), tmp_path, speaking) == (
        ["[]", str(tmp_path), ""],
        4,
        "",
    )


def test_a_case_that_does_not_fit_says_where(tmp_path: Path) -> None:
    (case,) = parse("## a\n```console\n$ echo b\nc\n$ echo d\nd\n```\n")
    troubles = [trouble for *_, trouble in run_case(case, tmp_path, speaking)]
    assert troubles[1] is None
    assert troubles[0] is not None
    assert troubles[0].startswith("line 3: $ echo b")


def test_a_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    (case,) = parse("## a\n```t file=../x\n```\n```console\n$ true\n```\n")
    with pytest.raises(ValueError, match="outside"):
        list(run_case(case, tmp_path, speaking))
