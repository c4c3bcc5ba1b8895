"""Every diagnostic of the checker: what gives it, its place, and that nothing else is said (language.md §8).

The cases stand in `check_cases.md`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.catalog.describe import READ, Method, Provider, Setting
from halo_lang.check.check import check, check_bytes
from halo_lang.language.codes import CHECK
from halo_lang.language.source import Source

ANYTHING = {"type": "object", "properties": {}}
KNOWN = {
    **PROVIDERS,
    "Keys": Provider(
        "Keys", "store", "Keys.", (Setting("file", "String", "The file.", True, True),),
        lambda _: (Method("get", "Gets.", {**ANYTHING, "properties": {"key": {"type": "string"}}}, READ),),
    ),
    "Server": Provider(
        "Server", "tool", "Not described.",
        (
            Setting("command", "String", "The command.", True, True),
            Setting("args", "List", "Its arguments.", positional=True, rest=True),
            Setting("headers", "Object", "Headers."),
        ),
        lambda _: None,
    ),
    "Odd": Provider(
        "Odd", "tool", "Odd names.", (),
        lambda _: (Method("c", "C.", ANYTHING, READ), Method("b_c", "B, C.", ANYTHING, READ)),
    ),
    "Broken": Provider("Broken", "tool", "", (), lambda _: None, open=True, broken="`Broken` cannot be used."),
    "Open": Provider("Open", "tool", "Nothing is known of it.", (), lambda _: None, open=True),
}  # fmt: skip

AGENT = "agent A [openai/gpt-4o]\n"
FILES = 'tool Files : Workspace("./notes", write: true)\n'


def pipe(*stages: str, head: str = "P(x: String)", source: str = "x") -> str:
    return "\n".join([f"pipeline {head} -> Result:", f"  {source}", *(f"    {stage}" for stage in stages), ""])


def equipped(policy: str) -> str:
    """A program in which only the policy, in the first line, may be wrong."""
    return f"policy P : {policy}\n{FILES}agent A [openai/gpt-4o]\n  equips Files\n  requires P\n" + pipe(
        "|> A.a(tools: [Files])", head="Q(x: String)"
    )


def said(text: str) -> list[str]:
    """What is said of a text, as `LINE:COLUMN CODE`, with `warning` before the code where it is one."""
    source = Source("t.halo", text)
    shown = []
    for found in check(source, providers=KNOWN).diagnostics:
        line, column = source.position(found.span.start)
        shown.append(f"{line}:{column} {'warning ' if found.severity == 'warning' else ''}{found.code}")
    return shown


def read_cases() -> list[tuple[str, str, list[str]]]:
    """Name, program and what is said of it, for each section."""
    cases = []
    group = ""
    text = (Path(__file__).parent / "check_cases.md").read_text(encoding="utf-8")
    for part in re.split(r"^(?=##? )", text, flags=re.MULTILINE):
        title, _, body = part.partition("\n")
        if title.startswith("# "):
            group = title[2:]
        elif title.startswith("## "):
            program, *expected = re.findall(r"^```\w*\n(.*?)^```$", body, flags=re.MULTILINE | re.DOTALL)
            cases.append((f"{group}: {title[3:]}", program, expected[0].splitlines() if expected else []))
    return cases


CASES = read_cases()


@pytest.mark.parametrize(("program", "expected"), [pytest.param(p, e, id=name) for name, p, e in CASES])
def test_what_is_said(program: str, expected: list[str]) -> None:
    assert said(program) == expected


def test_every_code_of_the_checker_has_a_case() -> None:
    seen = {line.split()[-1] for _, _, expected in CASES for line in expected}
    assert seen >= set(CHECK) - {"NO_PRICE"}


def helps(text: str) -> list[str | None]:
    return [found.help for found in check(Source("t.halo", text), providers=KNOWN).diagnostics]


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        (equipped('AllowTool("Files.*")'), "did you mean `AllowTools`?"),
        (pipe("|> System.Print(topc)", head="P(topic: String)", source="topic"), "did you mean `topic`?"),
        (AGENT + pipe("|> B.a()", "|> A.a()"), "declare it: `agent B [provider/model]`, a tool or a pipeline"),
        ("agent Writer [openai/gpt-4o]\n" + pipe("|> Writr.a()", "|> Writer.a()"), "did you mean `Writer`?"),
        ('tool T : Workspace("a")\n' + pipe('|> T.write(path: "a", content: "b")'), "it has it with `write: true`"),
        (FILES + AGENT + pipe("|> A.a(tools: [Files])", '|> Files.read("a")'), "add it to the agent: `equips Files`"),
        ("pipeline P(x: Strin): x\n", "did you mean `String`?"),
        (equipped('DenyTools("Files.remov")'), None),
        (equipped('DenyTools("Files.write")').replace(", write: true", ""), "`Files` has it only with `write: true`"),
    ],
)
def test_the_help_says_how_to_mend_it(text: str, help_: str | None) -> None:
    given = helps(text)
    assert given == [help_] if help_ else len(given) == 1 and given[0]


@pytest.mark.parametrize("declaration", ["tool T : Weather()", "store T : Zzzz()"])
def test_an_unknown_provider_may_be_one_that_is_not_installed(declaration: str) -> None:
    text = declaration + "\n" + pipe("|> T.a()")
    (found,) = check(Source("t.halo", text)).diagnostics
    assert found.code == "UNKNOWN_PROVIDER"
    assert found.help is not None
    assert found.help.startswith("there are `")
    assert found.help.endswith(
        "; a provider of another package must be installed beside Halo: "
        "`halo tools` lists all that are there, for tools and for stores"
    )


def test_models_without_a_price_are_errors_under_a_limit() -> None:
    text = (
        "policy Low : MaxSpend(1)\npolicy Other : MaxCalls(1)\n"
        "agent A [openai/gpt-4o]\n  requires Low\nagent B [my/own]\n  requires Low\n"
        "agent C [my/own]\n  requires Other\n"
        "agent D [Env.M]\n  requires Low\nagent E [my/other]\nagent F [my/own]\n"
        "pipeline P(x: String) requires Low: x |> Q(x)\n"
        "pipeline Q(x: String): x @shadow(E.a()) |> A.a() |> B.a() |> C.a()\n"
        "pipeline R(x: String): x |> D.a() |> F.a()\n"
    )
    source = Source("t.halo", text)
    found = check(source, priced=lambda model: model == "openai/gpt-4o").diagnostics
    assert [(d.code, source.position(d.span.start)) for d in found] == [
        ("NO_PRICE", (5, 10)), ("NO_PRICE", (7, 10)), ("NO_PRICE", (11, 10)),
    ]  # fmt: skip
    assert check(source).diagnostics == ()


def test_decoding_and_checking_are_reported_together() -> None:
    program = check_bytes("t.halo", b'agent A [openai/gpt-4o]\npipeline P():\n  "caf\xe9" |> A.a() |> B.a()\n')
    assert [d.code for d in program.diagnostics] == ["NOT_UTF8", "UNKNOWN_NAME"]
    assert not program.ok


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"# nothing\r\n", b"\n\n"])
def test_an_empty_file_is_quiet(data: bytes) -> None:
    assert check_bytes("t.halo", data).diagnostics == ()
