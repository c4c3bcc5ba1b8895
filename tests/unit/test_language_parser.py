"""Each construct of the grammar as a tree, with its places (language.md §1, §2)."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from halo_lang.language import ast
from halo_lang.language.diagnostics import ERROR
from halo_lang.language.parser import parse, parse_expression
from halo_lang.language.record import Record, fields
from halo_lang.language.source import Source


def short(node: Any) -> Any:
    """A node in few words: paths and calls as text, the rest as its type's name and its fields."""
    if isinstance(node, ast.Name):
        return node.text
    if isinstance(node, ast.Path):
        return ".".join([node.root, *map(str, node.parts)])
    if isinstance(node, ast.Number):
        return node.value
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Duration):
        return f"{node.milliseconds}ms"
    if isinstance(node, ast.Text):
        return [part if isinstance(part, str) else (short(part),) for part in node.parts]
    if isinstance(node, ast.Arg):
        return short(node.value) if node.name is None else {node.name.text: short(node.value)}
    if isinstance(node, Record):
        return (type(node).__name__, *[short(getattr(node, f)) for f in fields(node) if f not in ("start", "end")])
    if isinstance(node, tuple):
        return [short(item) for item in node]
    return node


def declared(text: str) -> list[Any]:
    program, found = parse(Source("x.halo", text))
    assert [d for d in found if d.severity == ERROR] == []
    assert program.lost == frozenset()
    return [short(node) for node in program.declarations]


def staged(stage: str) -> Any:
    return declared(f"pipeline P():\n  x\n  {stage}\n")[0][6][0]


def expressed(text: str) -> Any:
    node, found = parse_expression(text)
    assert [d for d in found if d.severity == ERROR] == []
    return short(node)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ('policy P : A("x", n: 1) & B()', ("PolicyDecl", "P", [("Rule", "A", [["x"], {"n": 1}]), ("Rule", "B", [])])),
        ('tool T : W("./n", write: true,)', ("ToolDecl", "tool", "T", "W", [["./n"], {"write": True}], True)),
        ("store S : KeyValue", ("ToolDecl", "store", "S", "KeyValue", [], False)),
        ("tool T : W()", ("ToolDecl", "tool", "T", "W", [], True)),
        ("agent A [openai/gpt-4o]", ("AgentDecl", "A", ("Model", "openai/gpt-4o", False, False), [], [])),
        (
            'agent A ["x/y z", max_steps: 8, timeout: 30s,] equips B, C requires D system "hi {{x}}"',
            (
                "AgentDecl",
                "A",
                ("Model", "x/y z", True, False),
                [{"max_steps": 8}, {"timeout": "30000ms"}],
                [("Equips", ["B", "C"]), ("Requires", ["D"]), ("System", ["hi {{x}}"])],
            ),
        ),
        ("agent A [Env.MODEL]", ("AgentDecl", "A", ("Model", "MODEL", False, True), [], [])),
        ("agent A [Env . MODEL]", ("AgentDecl", "A", ("Model", "MODEL", False, True), [], [])),
        (
            'pipeline P(a: String = "{{x}}", b: List = [1, {c: "d"}],) -> Result requires Q, R: a',
            (
                "PipelineDecl",
                "P",
                [
                    ("Param", "a", "String", ["{{x}}"]),
                    ("Param", "b", "List", ("ListExpr", [1, ("ObjectExpr", ["c"], [["d"]])])),
                ],
                "Result",
                ["Q", "R"],
                "a",
                [],
            ),
        ),
        ("pipeline P(): 1", ("PipelineDecl", "P", [], None, [], 1, [])),
        (
            'test "it {{x}}": run P(a: "{{x}}") mock A.b => {c: []} fail T => "no" expect (status == "x")',
            (
                "TestDecl",
                ["it {{x}}"],
                "P",
                [{"a": ["{{x}}"]}],
                [
                    ("MockStep", "A.b", ("ObjectExpr", ["c"], [("ListExpr", [])])),
                    ("FailStep", "T", ["no"]),
                    ("ExpectStep", ("Compare", "==", "status", ["x"])),
                ],
            ),
        ),
    ],
)
def test_declarations(text: str, tree: Any) -> None:
    assert declared(text) == [tree]


@pytest.mark.parametrize(
    "model",
    [
        *(
            "ollama/llama3.1:8b",
            "openrouter/meta-llama/llama-3.3-70b-instruct",
            "a/1e5",
            "a/b@c",
            "a/-1.5e3.x",
            "a/b_-.:",
        ),
        *("embedded/smollm2", "a/0", "p9_/x"),
    ],
)
def test_models_are_written_bare(model: str) -> None:
    assert declared(f"agent A [{model}]")[0][2] == ("Model", model, False, False)
    assert declared(f"agent A[{model},n:1]")[0][2:4] == (("Model", model, False, False), [{"n": 1}])


def test_a_model_ends_where_a_comment_begins() -> None:
    program, _ = parse(Source("x.halo", "agent A [a/b//c]\n]"))
    assert short(program.declarations[0])[2] == ("Model", "a/b", False, False)
    assert [c.text for c in program.comments] == ["c]"]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            '|> W.draft("a {{x}}", b.c, t: 1, d: 2h) as y',
            ("Pipe", ("Call", "W", "draft", [["a ", ("x",)], "b.c", {"t": 1}, {"d": "7200000ms"}], False), "y", None),
        ),
        ("|> W()", ("Pipe", ("Call", "W", None, [], False), None, None)),
        ("|> W . draft ( )", ("Pipe", ("Call", "W", "draft", [], False), None, None)),
        ("@shadow(C.d(1)) |> W.e()", ("Pipe", ("Call", "W", "e", [], False), None, ("Call", "C", "d", [1], False))),
        ("|? (a == 1)", ("Gate", ("Compare", "==", "a", 1), False)),
        ("|? (a) =>", ("Gate", "a", True)),
        (
            "|? { (a) => B.c(), else => D(), } as e",
            (
                "Branch",
                [("Arm", "a", ("Call", "B", "c", [], False)), ("Arm", None, ("Call", "D", None, [], False))],
                "e",
            ),
        ),
        (
            "|* { A, B.c() as d, E as f, G(), } as h",
            (
                "FanOut",
                [
                    ("Member", ("Call", "A", None, [], True), None),
                    ("Member", ("Call", "B", "c", [], False), "d"),
                    ("Member", ("Call", "E", None, [], True), "f"),
                    ("Member", ("Call", "G", None, [], False), None),
                ],
                "h",
            ),
        ),
        (
            "|* each(d in [1], concurrency: 2, limit: n,) => A.b(d) as c",
            (
                "Each",
                "d",
                ("ListExpr", [1]),
                [{"concurrency": 2}, {"limit": "n"}],
                ("Call", "A", "b", ["d"], False),
                "c",
            ),
        ),
        (
            '|! yield("Well?", channel: "#e", [a.b], 1h) as r',
            ("Yield", [["Well?"], {"channel": ["#e"]}, ("ListExpr", ["a.b"]), "3600000ms"], "r"),
        ),
        ("~> listen(Slack.Reaction) as r", ("Listen", "Slack.Reaction", "r")),
        ("~> listen(context.data.x[0])", ("Listen", "context.data.x.0", None)),
        (
            '|<> loop(A, "a.b != 0", max: 3) as n',
            ("Loop", "A", ["a.b != 0"], ("Compare", "!=", "a.b", 0), [{"max": 3}], "n"),
        ),
    ],
)
def test_stages(text: str, tree: Any) -> None:
    assert staged(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("12", 12), ("-0.5", -0.5), ("1e3", 1000.0), ("007", 7), ("-3", -3), ("true", True), ("null", None),
        ("a", "a"), ("a.b.c", "a.b.c"), ("a.0.1", "a.0.1"), ("a . 0 . b", "a.0.b"), ("a[0].1.x[2]", "a.0.1.x.2"),
        ('a["b c"]', "a.b c"), ("a\n.b", "a.b"), ("true.x", "true.x"),
        ("[]", ("ListExpr", [])), ("[1, [2],]", ("ListExpr", [1, ("ListExpr", [2])])),
        ("{}", ("ObjectExpr", [], [])),
        ('{a: 1, "b c": {},}', ("ObjectExpr", ["a", "b c"], [1, ("ObjectExpr", [], [])])),
        ("a == 1", ("Compare", "==", "a", 1)), ("a<=b", ("Compare", "<=", "a", "b")),
        ("(a) > (b)", ("Compare", ">", "a", "b")),
        ("!a", ("Not", "a")), ("!!a", ("Not", ("Not", "a"))), ("!(a == b)", ("Not", ("Compare", "==", "a", "b"))),
        ("!a == b", ("Not", ("Compare", "==", "a", "b"))), ("!(a) == b", ("Not", ("Compare", "==", "a", "b"))),
        ("a && b && c", ("And", ["a", "b", "c"])), ("a || b || c", ("Or", ["a", "b", "c"])),
        ("a || b && !c == d || e", ("Or", ["a", ("And", ["b", ("Not", ("Compare", "==", "c", "d"))]), "e"])),
        ("a && (b || c)", ("And", ["a", ("Or", ["b", "c"])])), ("(a && b) && c", ("And", [("And", ["a", "b"]), "c"])),
        ("((a))", "a"), ("(a == b) == c", ("Compare", "==", ("Compare", "==", "a", "b"), "c")),
        ("list == test", ("Compare", "==", "list", "test")),
    ],
)  # fmt: skip
def test_expressions(text: str, tree: Any) -> None:
    assert expressed(text) == tree


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (r'""', []),
        (r'"a\n\t\r\"\\\u{1F600}\u{41}"', ['a\n\t\r"\\\U0001f600A']),
        (r'"{{a}}"', [("a",)]),
        (r'"x {{ a.b }} y{{c}}"', ["x ", ("a.b",), " y", ("c",)]),
        (r'"{{v.l[1]}}{{v.l.0}}{{v[\"k k\"]}}"', [("v.l.1",), ("v.l.0",), ("v.k k",)]),
        (r'"\{{a}} {b} }}"', ["{{a}} {b} }}"]),
        (r'"{\"k\": {{a}}}"', ['{"k": ', ("a",), "}"]),
        (r'"{{{a}}}"', ["{", ("a",), "}"]),
        (r'"\{{{{a}}"', ["{{", ("a",)]),
        (r'"\\{{a}}"', ["\\", ("a",)]),
        ('"""Reply with JSON: {"score": <0-100>}"""', ['Reply with JSON: {"score": <0-100>}']),
        ('"""{"k": {{a}}}"""', ['{"k": ', ("a",), "}"]),
        ('"""say "hi""""', ['say "hi"']),
        ('""""""', []),
        ('"""\n  a\n    b\n\n  c\n  """', ["a\n  b\n\nc\n"]),
        ('"""\r\n\ta\r\n\tb"""', ["a\nb"]),
        ('"""a\n  b\n   c"""', ["a\nb\n c"]),
        ('"""\n  {{a}}\n   {{ b\n  .c }}"""', [("a",), "\n ", ("b.c",)]),
        ('"""\n  a\\n  b\n   \n  \\u{20}c"""', ["a\n  b\n\n c"]),
        ('"""  """', ["  "]),
        ('"""\n"""', []),
        ('"""\n\n"""', ["\n"]),
        ('"#no comment // here"', ["#no comment // here"]),
        ('"{{v[\\"}}\\"]}}"', [("v.}}",)]),
    ],
)
def test_strings(text: str, parts: list[Any]) -> None:
    assert expressed(text) == parts


def test_templates_are_only_read_in_pipelines() -> None:
    text = """
    policy P : A("{{x}}")
    tool T : W("{{x}}")
    agent A [a/b, n: "{{x}}"] system "{{x}}"
    pipeline P(a: String = "{{x}}"): "{{x}}"
      |<> loop(A, "a == \\"{{x}}\\"")
    test "{{x}}": run P("{{x}}") mock A => "{{x}}" expect (a == "{{x}}")
    """
    assert str(declared(text)).count("('x',)") == 2
    assert short(parse_expression('"{{x}}"', templates=False)[0]) == ["{{x}}"]


def test_keywords_are_names_where_names_stand() -> None:
    words = [
        "policy",
        "tool",
        "store",
        "agent",
        "pipeline",
        "test",
        "list",
        "each",
        "loop",
        "equips",
        "system",
        "run",
        "as",
    ]
    for word in words:
        assert staged(f"|> A.{word}({word}: {word}.{word}) as {word}")[1][1:3] == ("A", word)
        assert staged(f"|* {{ {word}, {word} as {word} }}")[1][1] == ("Member", ("Call", word, None, [], True), word)
        assert declared(f"pipeline {word}({word}: {word} = 1) -> {word}: {word}")[0][1] == word
        assert staged(f"|* each({word} in (x)) => A()")[1] == word
        assert declared(f'test "t": run {word}() mock A => {word} expect ({word})')[0][3] == []
        assert declared(f"tool {word} : {word}\ntool {word} : {word}()")[1][3] == word


def covers(text: str, kind: type) -> list[str]:
    """What the nodes of a kind cover in a text, in order."""
    program, _ = parse(Source("x.halo", text))
    found: list[ast.Node] = []

    def visit(node: Any) -> None:
        if isinstance(node, kind):
            found.append(node)
        for value in [getattr(node, f) for f in fields(node)] if isinstance(node, Record) else node:
            if isinstance(value, Record | tuple):
                visit(value)

    visit(program.declarations)
    return [text[node.start : node.end] for node in sorted(found, key=lambda node: (node.start, -node.end))]


def test_nodes_know_where_they_stand() -> None:
    text = """agent A [ a/b , n : (1) ]
  equips B , C
pipeline P ( x : String = "d" ) :
  (x)
    @shadow( A.b() ) |> A . c ( "y {{ x . z }}" , k : ( x ) ) as v
    |? { ( x == 1 ) => A.d() , else => A.e ( ) } as w
    |? ( (x || y) && !z ) =>
    |* { A , A.f() as g }
    |<> loop ( A , "x.q == \\"r\\" && s" , max : 3 ) as n
test "t" : run P ( ) mock A . b => { c : 1 } expect ( x )
"""
    assert covers(text, ast.Model) == ["a/b"]
    assert covers(text, ast.Equips) == ["equips B , C"]
    assert covers(text, ast.Param) == ['x : String = "d"']
    assert covers(text, ast.Pipe) == ['@shadow( A.b() ) |> A . c ( "y {{ x . z }}" , k : ( x ) ) as v']
    assert covers(text, ast.Call) == [
        "A.b()",
        'A . c ( "y {{ x . z }}" , k : ( x ) )',
        "A.d()",
        "A.e ( )",
        "A",
        "A.f()",
    ]
    assert covers(text, ast.Arg) == ["n : (1)", '"y {{ x . z }}"', "k : ( x )", "max : 3"]
    assert covers(text, ast.Arm) == ["( x == 1 ) => A.d()", "else => A.e ( )"]
    assert covers(text, ast.Gate) == ["|? ( (x || y) && !z ) =>"]
    assert covers(text, ast.And) == ["(x || y) && !z", 'x.q == \\"r\\" && s']
    assert covers(text, ast.Compare) == ["x == 1", 'x.q == \\"r\\"']
    assert covers(text, ast.Member) == ["A", "A.f() as g"]
    assert covers(text, ast.Loop) == ['|<> loop ( A , "x.q == \\"r\\" && s" , max : 3 ) as n']
    assert "x . z" in covers(text, ast.Path)
    assert "x.q" in covers(text, ast.Path)
    assert '\\"r\\"' in covers(text, ast.Text)
    assert covers(text, ast.MockStep) == ["mock A . b => { c : 1 }"]
    assert covers(text, ast.ExpectStep) == ["expect ( x )"]
    assert [one.split(" ")[0] for one in covers(text, ast.AgentDecl)] == ["agent"]
    assert covers(text, ast.PipelineDecl)[0].endswith("as n")


def test_places_in_a_string_that_lost_its_indentation() -> None:
    text = 'pipeline P():\n  x\n    |<> loop(A, """\n        one == 1 &&\n          two != "{{ three }}"\n        """)'
    assert covers(text, ast.Path) == ["x", "one", "two", "three"]
    assert covers(text, ast.Compare) == ["one == 1", 'two != "{{ three }}"']


def test_comments() -> None:
    text = "#one\nagent A [a/b] // two  \r\n  # three\n#"
    program, _ = parse(Source("x.halo", text))
    assert [(c.text, c.trailing, text[c.start : c.end]) for c in program.comments] == [
        ("one", False, "#one"),
        (" two", True, "// two"),
        (" three", False, "# three"),
        ("", False, "#"),
    ]


def test_crlf_and_a_file_without_declarations() -> None:
    assert declared("") == declared(" \r\n\t") == declared("# only") == []
    assert declared("pipeline P():\r\n  x\r\n    |> A.b()\r\n")[0][5] == "x"


def test_the_collector_is_left_as_it_was() -> None:
    parse(Source("x.halo", "agent"))
    assert gc.isenabled()
    gc.disable()
    try:
        parse(Source("x.halo", "agent A [a/b]"))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_64_levels_of_nesting_are_allowed() -> None:
    for opening, closing in [("(", ")"), ("[", "]"), ("!", "")]:
        assert parse_expression(opening * 64 + "x" + closing * 64)[1] == ()
        assert [d.code for d in parse_expression(opening * 65 + "x" + closing * 65)[1]] == ["TOO_DEEP"]


EVERYWHERE = {
    "an expectation": 'test "t":\n  run P()\n' + '  expect (a == "b")\n' * 70,
    "a mock": 'test "t":\n  run P(x: (a))\n' + '  mock A.b => ({c: [1, "d"]})\n' * 70,
    "a replayed test": 'test "t":\n  replay "r.jsonl"\n' * 70,
    "a failure": 'test "t":\n  run P()\n' + '  fail A.b => "no"\n' * 70,
    "a policy": "".join(f'policy P{n} : MaxSpend(1) & DenyArgs("A.b", ["c"])\n' for n in range(70)),
    "a tool": "".join(f'tool T{n} : Bash(timeout: 3s, x: [1, {{a: "b"}}])\n' for n in range(70)),
    "an agent": "".join(f"agent A{n} [openai/gpt-4o, temperature: (0)]\n" for n in range(70)),
    "a pipeline": "".join(f'pipeline P{n}(x: List = [1, {{a: "b"}}]):\n  ((x))\n' for n in range(70)),
    **{
        stage: "pipeline P():\n  x\n" + f"    {stage}\n" * 70
        for stage in (
            '|> A.b("c {{d}}", (e), [f], {g: (h)}, i: !(j == k))',
            "@shadow(A.b()) |> A.c((d))",
            "|? (!a && (b || !c)) =>",
            "|? { (!a) => B.c((d)), else => E() }",
            "|* { A, B.c([d]) as e }",
            "|* each(a in (b), limit: (3)) => C.d((a))",
            '|! yield("a", [b], {c: (d)})',
            "~> listen(A.b)",
            '|<> loop(A, "!(b == (c))", max: 3)',
        )
    },
}


@pytest.mark.parametrize("text", EVERYWHERE.values(), ids=EVERYWHERE)
def test_what_nests_no_deeper_may_stand_as_often_as_it_likes(text: str) -> None:
    assert [d for d in parse(Source("x.halo", text))[1] if d.severity == ERROR] == []
