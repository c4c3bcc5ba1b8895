"""Each syntax error with its exact place, and how parsing goes on after one (language.md §1, §2, §8).

In a case the text between « and » is what the error covers; without a place, nothing is wrong.
"""

from __future__ import annotations

import pytest

from halo_lang.language.codes import SYNTAX
from halo_lang.language.cursor import MAX_PROBLEMS
from halo_lang.language.diagnostics import Diagnostic, render
from halo_lang.language.parser import parse, parse_expression
from halo_lang.language.source import Source, decode


def found_in(text: str) -> list[Diagnostic]:
    return list(parse(Source("x.halo", text))[1])


def test_what_is_wanted_in_quotes_is_said_with_one_comma() -> None:
    for text in ("pipeline P(x: Any): x |<> loop(A, x < 1)", "agent A [a/b] system x", "test x:", 'test "a": replay x'):
        (found,) = found_in(text)
        assert " in quotes, found `" in found.message


def assert_one(marked: str, code: str, help_: str | None = None, message: str = "") -> None:
    """The marked text has this one error, in the marked place."""
    start = marked.index("«")
    end = marked.index("»") - 1
    text = marked.replace("«", "").replace("»", "")
    found = found_in(text)
    assert [(d.code, d.span.start, d.span.end) for d in found] == [(code, start, end)], found
    assert message in found[0].message
    if help_ is not None:
        assert found[0].help is not None
        assert help_ in found[0].help


PIPELINE = [
    ("|> A.go(«\"unclosed)»", "UNCLOSED_STRING", 'close it with `"`'),
    ("|> A.go(«\"ends in a backslash \\»", "UNCLOSED_STRING", None),
    ('|> A.go(«"""» never closed', "UNCLOSED_STRING", '"""'),
    ('|> A.go("a «\\q» b")', "BAD_ESCAPE", "`\\\\`"),
    ('|> A.go("«\\\'»")', "BAD_ESCAPE", "no backslash"),
    ('|> A.go("«\\x»41")', "BAD_ESCAPE", "\\u{41}"),
    ('|> A.go("«\\u»00e9")', "BAD_ESCAPE", "\\u{00e9}"),
    ('|> A.go("«\\u{110000}»")', "BAD_ESCAPE", None),
    ('|> A.go("«\\u{D800}»")', "BAD_ESCAPE", None),
    ('|> A.go("«\\u{}»")', "BAD_ESCAPE", None),
    ('|> A.go("""\n   x\n   a «\\»\n  b""")', "BAD_ESCAPE", None),
    ("|> A.go(«1_000»)", "BAD_NUMBER", "`1000`"),
    ("|> A.go(«5min»)", "BAD_NUMBER", "15m"),
    ("|> A.go(«1.5h»)", "BAD_NUMBER", "90m"),
    ("|> A.go(«0x1F»)", "BAD_NUMBER", None),
    ("|> A.go(«1e999»)", "BAD_NUMBER", None),
    (f"|> A.go(«{'9' * 4001}»)", "BAD_NUMBER", None),
    (f"|> A.go(«{'9' * 13}d»)", "BAD_NUMBER", None),
    ("|> A.go([«1h»])", "SYNTAX", "only an argument"),
    ("|? (x == «30s»)", "SYNTAX", "only an argument"),
    ("|> A.go(«.»5)", "SYNTAX", "`0.5`"),
    ('|> A.go("a {{ x.«» }} b")', "BAD_TEMPLATE", "{{topic}}"),
    ('|> A.go("a {{«1»}} b")', "BAD_TEMPLATE", None),
    ('|> A.go("{{x «y»}}")', "BAD_TEMPLATE", None),
    ('|> A.go("{{x«|»upper}}")', "BAD_TEMPLATE", None),
    ('|> A.go("a «{{»x}")', "BAD_TEMPLATE", "\\{{"),
    ('|> A.go("\\n{{x[\\"k\\"]«]»}}")', "BAD_TEMPLATE", None),
    ('|> A.go("""\n      a\n      {{ «1» }}\n      """)', "BAD_TEMPLATE", None),
    ('|<> loop(A, "x ==«»")', "BAD_CONDITION", None),
    ('|<> loop(A, "«»")', "BAD_CONDITION", None),
    ('|<> loop(A, "x == \\"a\\" && «=» y")', "BAD_CONDITION", "=="),
    ('|<> loop(A, """\n      x == 1 &&\n        y «=» 2\n      """)', "BAD_CONDITION", "=="),
    ('|<> loop(A, "x == \\"{{ «2» }}\\"")', "BAD_TEMPLATE", None),
    ('|<> loop(A, «x» == 1)', "SYNTAX", "is a string"),
    ("|? (" + "(" * 63 + "«(»x", "TOO_DEEP", None),
    ("|> A.go(" + "[" * 63 + "«[»x", "TOO_DEEP", None),
    ("|? (" + "!" * 63 + "«!»x", "TOO_DEEP", None),
    ("|? { (" + "(" * 62 + "«(»x", "TOO_DEEP", None),
    ("|> A.go(«,»)", "SYNTAX", "remove this comma"),
    ("|> A.go(a, «,»)", "SYNTAX", "remove this comma"),
    ("|> A.go(a «b»)", "SYNTAX", "with a comma"),
    ("|> A.go(a «=» 1)", "SYNTAX", "`:`"),
    ("|> A.go(a.b«:» 1)", "SYNTAX", "plain name"),
    ("|> A.go(f«(»x))", "SYNTAX", "a stage of its own"),
    ("|> A.go(a «+» b)", "SYNTAX", "templates"),
    ("|> A.go(«'text'»)", "SYNTAX", "double quotes"),
    ("|> A.go(«“»text”)", "SYNTAX", "double quotes"),
    ("|> A.go(«$»x)", "SYNTAX", "without `$`"),
    ("|> A.go(x«;»", "SYNTAX", "semicolon"),
    ("|> A.go(x«?».y)", "SYNTAX", "null"),
    ("|> A.go(«\u00a0»x)", "SYNTAX", "no-break space"),
    ("|> A.go«»", "SYNTAX", "`A.go()`"),
    ("|> A.go(x«»", "SYNTAX", None),
    ("|> «(»x)", "SYNTAX", "|? (cond)"),
    ("|> «{» A, B }", "SYNTAX", "|* { A, B }"),
    ('|> «yield»("x")', "SYNTAX", "|! yield"),
    ("|> «listen»(X.Y)", "SYNTAX", "~> listen"),
    ('|> «loop»(A, "x")', "SYNTAX", "|<> loop"),
    ("|? «x» == 1", "SYNTAX", "in parentheses"),
    ("|? (x «=» 1)", "SYNTAX", "`==`"),
    ("|? (x «and» y)", "SYNTAX", "`&&`"),
    ("|? (x «&» y)", "SYNTAX", "`&&`"),
    ("|? (x == «!»y)", "SYNTAX", "parentheses"),
    ("|? (a < b «<» c)", "SYNTAX", "a < b && b < c"),
    ("|? (x == y«]»)", "SYNTAX", None),
    ("|? {«}»", "SYNTAX", "(cond) => Call()"),
    ("|? { «x» => A.b() }", "SYNTAX", "(cond) => Call()"),
    ("|? { (x) «->» A.b() }", "SYNTAX", "write `=>`"),
    ("|? { (x) => A.b() «as» y }", "SYNTAX", "after the closing"),
    ("|? { «default» => A.b() }", "SYNTAX", None),
    ("|? { (x) => A.b() «|>» A.c(), else => A.d() } as y\n    |> A.e()", "SYNTAX", "pipeline of their own"),
    ("|? { (x) => A.b()\n      «|?» { else => A.d() }, else => A.c({a: 1}) }", "SYNTAX", "pipeline of their own"),
    ("|* { A.b() «|>» A.c(), A }\n    |> A.e()", "SYNTAX", "pipeline of their own"),
    ("|? { (x) => A.b()«»\n    |> A.c()\n    |? { else => A.d() }", "SYNTAX", None),
    ("|* «[»A, B]", "SYNTAX", "|* { A, B }"),
    ("|* «A», B", "SYNTAX", "|* { A, B }"),
    ("|* { A «B» }", "SYNTAX", "comma"),
    ("|* { A.b«,» C }", "SYNTAX", "`A.b()`"),
    ("|* each(x «of» y) => A()", "SYNTAX", None),
    ("|* each(x in y, «limit») => A()", "SYNTAX", None),
    ("|* each(x in y) «A»()", "SYNTAX", None),
    ("|* each(x in y) => «{» A() }", "SYNTAX", "pipeline of their own"),
    ("|? { else => «(»A.b()) }", "SYNTAX", "without parentheses"),
    ('|! «ask»("x")', "SYNTAX", None),
    ('~> listen(«"Slack.Reaction"»)', "SYNTAX", "without quotes"),
    ("@shadow(A.b()) «|?» (x)", "SYNTAX", "|>"),
    ("«yield»(\"x\")", "SYNTAX", "|! yield"),
    ("«|» A.b()", "SYNTAX", "|> Call()"),
    ("|? (x) => «A»()", "SYNTAX", "a gate only tests"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "code", "help_"), PIPELINE)
def test_in_a_pipeline(stage: str, code: str, help_: str | None) -> None:
    assert_one(f"pipeline P(x: Any) -> Result:\n  x\n    {stage}\n", code, help_)


FILES = [
    ("agent A «openai»/gpt-4o]\n", "SYNTAX", "`[`", None),
    ("agent A [openai/gpt-4o«»\n  equips B\n", "SYNTAX", "`]`", None),
    ("agent A [openai/gpt-4o«»", "SYNTAX", "`]`", None),
    ("agent A [«gpt-4o»]", "BAD_MODEL", "found `gpt-4o`", "provider/model"),
    ("agent A [«llama3.1:8b», max_steps: 2]", "BAD_MODEL", "found `llama3.1:8b`", "provider/model"),
    ("agent A [openai/x«>»]", "SYNTAX", "`]`", None),
    ("agent A [«Env»]", "SYNTAX", "", "Env.NAME"),
    ("agent A«(»openai/x)", "SYNTAX", "`[`", "agent Name [provider/model]"),
    ("agent A [a/b]\n  equips B,«»\n  requires C\n", "SYNTAX", "", "remove the comma"),
    ("agent A [a/b]\n  «equip» B\n  requires C\n", "SYNTAX", "", "`equips`"),
    ("agent A [a/b]\n  «prompt» \"x\"\n  requires C\n", "SYNTAX", "", "`system`"),
    ("agent A [a/b] system «x»", "SYNTAX", "in quotes", None),
    ("agent A [a/b, «max_steps»]", "SYNTAX", "option", None),
    ("policy P «=» A()", "SYNTAX", "", "write `:`"),
    ("policy P : A() «&&» B()", "SYNTAX", "", "single `&`"),
    ("policy P : A()«,» B()", "SYNTAX", "", "single `&`"),
    ("policy P : A«»\n", "SYNTAX", "`(`", None),
    ("tool T «=» W()", "SYNTAX", "", "write `:`"),
    ("tool «1» : W()", "SYNTAX", "the tool's name", None),
    ("tool «A.b» : W()", "SYNTAX", "the tool's name", None),
    ("«tol» T : W()", "SYNTAX", "", "`tool`"),
    ("«workflow» T(x: Any): x", "SYNTAX", "", "`pipeline`"),
    ("«import» x", "SYNTAX", "a declaration", "policies, tools"),
    ("«|>» A.b()", "SYNTAX", "a declaration", "in a pipeline"),
    ("«'x'»", "SYNTAX", "no place here", None),
    ("«{» }", "SYNTAX", "a declaration", None),
    ("pipeline P(x: String «->» Result:\n  x\n", "SYNTAX", "`)`", None),
    ("pipeline P(x«)»: x", "SYNTAX", "", "`x: String`"),
    ("pipeline P(x: String = «y»): x", "NOT_A_LITERAL", "", '`"y"`'),
    ("pipeline P() -> Result«»\n  x\n    |> A.b()\n", "SYNTAX", "`:`", None),
    ("pipeline P«:» x", "SYNTAX", "", "pipeline Name("),
    ("pipeline P():«»\n    |> A.b()\n", "SYNTAX", "begins with", "its stages follow"),
    ("pipeline P():«»", "SYNTAX", "the end of the file", None),
    ("test «x»: run P()", "SYNTAX", "in quotes", None),
    ('test "x" «run» P()', "SYNTAX", "`:`", None),
    ('test "x": «P»()', "SYNTAX", "`run`", None),
    ('test "x": run P()\n  mock A «:» 1\n  expect (a)\n', "SYNTAX", "`=>`", "write `=>`"),
    ('test "x": run P()\n  mock «A.0» => 1\n', "SYNTAX", "made of names", None),
    ('test "x": run P()\n  fail A => «1»\n', "SYNTAX", "in quotes", None),
    ('test "x": run P()\n  expect «a» == 1\n', "SYNTAX", "", "expect (status"),
    ('test "x": run P()\n  «assert» (a)\n  expect (a)\n', "SYNTAX", "`mock`", None),
    (f"tool «{'a' * 201}» : W", "NAME_TOO_LONG", "201 characters", None),
    (f"pipeline P(): a.«{'b' * 300}».c", "NAME_TOO_LONG", "300 characters", None),
    ("tool T : W(«\0»)", "FORBIDDEN_CHARACTER", "NUL", None),
    ('tool T : W("a«\0»b")', "FORBIDDEN_CHARACTER", "NUL", None),
    ("tool T : W() «\u202e»# x", "FORBIDDEN_CHARACTER", "U+202E", None),
    ("tool T : W() # x «\u2066»", "FORBIDDEN_CHARACTER", "U+2066", None),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "code", "message", "help_"), FILES)
def test_in_a_file(marked: str, code: str, message: str, help_: str | None) -> None:
    assert_one(marked, code, help_, message)


def test_every_syntax_code_is_tested_here_or_with_the_source() -> None:
    tested = {case[1] for case in PIPELINE} | {case[1] for case in FILES}
    elsewhere = {"NOT_UTF8", "FILE_TOO_LARGE", "BIDI_IN_STRING", "NOT_APPLIES_TO_COMPARISON"}
    assert set(SYNTAX) - tested == elsewhere


def test_names_of_200_characters_and_long_texts_are_fine() -> None:
    assert found_in(f'tool {"a" * 200} : W("{"b" * 1000}")\n# {"c" * 1000}') == []
    assert found_in(f"pipeline P(): a.{'.'.join(['b' * 200] * 3)}") == []


def test_a_bidirectional_character_in_a_string_is_a_warning() -> None:
    for quotes in ('"', '"""'):
        text = f"tool T : W({quotes}a\u202eb{quotes})"
        found = found_in(text)
        assert [(d.code, d.severity, text[d.span.start]) for d in found] == [("BIDI_IN_STRING", "warning", "\u202e")]
        assert "\\u{202E}" in (found[0].help or "")


@pytest.mark.parametrize("condition", ["!a == b", "!(a) == b", "!a.b[0] <= 3"])
def test_not_before_a_comparison_is_a_warning(condition: str) -> None:
    text = f"pipeline P(): x |? ({condition})"
    found = found_in(text)
    assert [(d.code, d.severity) for d in found] == [("NOT_APPLIES_TO_COMPARISON", "warning")]
    assert text[found[0].span.start : found[0].span.end] == condition


@pytest.mark.parametrize("condition", ["!(a == b)", "!a && b == c", "(!a) == b", "!!a"])
def test_not_elsewhere_is_none(condition: str) -> None:
    assert found_in(f"pipeline P(): x |? ({condition})") == []


# Going on ---------------------------------------------------------------------------------------------------------


def lines(text: str) -> list[int]:
    source = Source("x.halo", text)
    return [source.position(d.span.start)[0] for d in parse(source)[1]]


def test_syntax_errors_do_not_hide_each_other() -> None:
    text = """agent A openai/gpt-4o]
pipeline P(x: String -> Result:
  x
    |> A.go("unclosed)
pipeline R(x: String) -> Result:
  x
    |> A.go(,)
    |> B.go()
"""
    assert lines(text) == [1, 2, 4, 7]
    program, _ = parse(Source("x.halo", text))
    assert [type(d).__name__ for d in program.declarations] == ["AgentDecl", "PipelineDecl", "PipelineDecl"]


def test_an_error_in_each_part_is_one_error() -> None:
    text = """policy P : A(
policy Q : B() C()
tool T W()
agent A [a/b
  equips 1
  requires 2, 3
  system 4
pipeline P(x String) -> Result:
  x
    |> A.go(1 2
    |? x
    |? { else }
    |* { A.b, C }
    |* each(x y) => A()
    |! yield
    ~> listen()
    |<> loop(A)
    @shadow A
    |> A.go() as 1
pipeline Q(): ]
    |> A.go((
test "t": run
test "u": run P()
  mock 1
  fail A
  expect b
"""
    assert lines(text) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 24, 25, 26]


def test_what_is_lost_is_known_by_name() -> None:
    text = """tool Files W()
pipeline P(x: Any):
  x
    |> A.b(1 2) as kept
    |> A.c()
    |> A.d("never closed) as also
pipeline Q(y):
  y
    |> A.e() as gone
"""
    program, found = parse(Source("x.halo", text))
    assert len(found) == 4
    assert {"Files", "kept", "also", "Q", "y", "gone"} <= program.lost
    assert "c" not in program.lost
    (pipeline,) = program.declarations
    assert [stage.call.method.text for stage in pipeline.stages] == ["c"]  # type: ignore[union-attr]


def test_a_declaration_whose_word_is_misspelt_is_still_read() -> None:
    program, found = parse(Source("x.halo", 'pipline P(): x\n    |> A.b(,)\nstor S : KeyValue("f")\n'))
    assert [type(d).__name__ for d in program.declarations] == ["PipelineDecl", "ToolDecl"]
    assert program.declarations[1].keyword == "store"  # type: ignore[union-attr]
    assert len(found) == 3


def test_bytes_that_are_not_utf_8_are_told_once() -> None:
    source, first = decode("x.halo", b'pipeline P():\n  "caf\xe9"\n  \xe9\n    |> A.b(,)\n')
    again = parse(source)[1]
    assert [d.code for d in first] == ["NOT_UTF8", "NOT_UTF8"]
    assert [source.position(d.span.start)[0] for d in again] == [4]


# Bounds -----------------------------------------------------------------------------------------------------------


def test_errors_are_bounded_and_say_so() -> None:
    found = found_in("pipeline P(): x\n" + "  |> \n" * 5000)
    assert len(found) == MAX_PROBLEMS + 1
    assert "only the first 1,000" in found[-1].message
    assert len(found_in("\u202e" * 5000)) == MAX_PROBLEMS + 1


def test_warnings_are_bounded_and_hide_no_error() -> None:
    found = found_in("pipeline P(): x\n" + "  |? (!a == b)\n" * 5000 + "|> A.go(")
    assert found[0].severity == "warning"
    assert found[-1].severity == "error"


HOSTILE = {
    "quotes": '"' * 100_000,
    "quoted lines": '"\n' * 100_000,
    "holes": 'pipeline P(): "' + "{{ " * 100_000 + '"',
    "braces": 'pipeline P(): "' + "{{" * 100_000 + '"',
    "half closed": 'pipeline P(): "' + "{{} " * 100_000 + '}}"',
    "parentheses": "pipeline P(): " + "(" * 100_000,
    "brackets": "pipeline P(): " + "[" * 100_000 + "]" * 100_000,
    "braces of objects": "pipeline P(): " + "{a:" * 100_000,
    "not": "pipeline P(): " + "!" * 100_000 + "x",
    "stages": "pipeline P(): x" + "|>" * 100_000,
    "backslashes": '"' + "\\" * 100_000,
    "slashes": "/" * 100_000,
    "block": '"""' + '" ' * 100_000,
    "words": "pipeline " * 50_000,
    "tests": 'test "a"' * 50_000,
    "lines": "foo bar(\n" * 50_000,
    "letters": "é" * 100_000,
    "digits": "pipeline P(): a." + "9" * 100_000,
    "loops": "pipeline P(): x " + '|<> loop(A, "((") ' * 20_000,
    "indentation": 'pipeline P(): """\n' + " " * 300 + ("\n" + " " * 300) * 1000 + 'x"""',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_in_an_error(name: str) -> None:
    source = Source("x.halo", HOSTILE[name])
    program, found = parse(source)
    assert len(found) <= MAX_PROBLEMS + 1
    assert found or program.declarations or program.comments
    for diagnostic in found[:3]:
        assert len(render(diagnostic, source)) < 2000
    parse_expression(HOSTILE[name])


def test_a_path_of_many_parts_and_a_chain_of_many_sides_are_fine() -> None:
    assert found_in("pipeline P(): " + "a." * 50_000 + "a") == []
    assert found_in("pipeline P(): " + "a && b || " * 50_000 + "c") == []


# Expressions alone ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        ("", "SYNTAX", 0),
        ("a ==", "SYNTAX", 4),
        ("a b", "SYNTAX", 2),
        ("a 'b'", "SYNTAX", 2),
        ('"', "UNCLOSED_STRING", 0),
        ("\u202ea", "FORBIDDEN_CHARACTER", 0),
        ("1h", "SYNTAX", 0),
        ("a" * 201, "NAME_TOO_LONG", 0),
    ],
)
def test_an_expression_alone(text: str, code: str, at: int) -> None:
    _, found = parse_expression(text)
    assert [(d.code, d.span.start) for d in found] == [(code, at)]
