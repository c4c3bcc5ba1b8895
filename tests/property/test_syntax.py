"""Parsing never raises and always ends; printing and formatting keep what a program means (language.md §1, §8)."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from programs import expressions, shape, trees

from halo_lang.language.ast import Node, Program
from halo_lang.language.codes import CODES
from halo_lang.language.diagnostics import ERROR
from halo_lang.language.format import format_source, print_program
from halo_lang.language.lexer import tokenize
from halo_lang.language.parser import parse, parse_expression
from halo_lang.language.printer import expression_text
from halo_lang.language.record import fields
from halo_lang.language.source import Source, decode

SOUP = [
    *("policy", "tool", "store", "agent", "pipeline", "test", "equips", "requires", "system", "as", "in", "each"),
    *(
        "loop",
        "yield",
        "listen",
        "else",
        "run",
        "mock",
        "fail",
        "expect",
        "x",
        "A",
        "true",
        "Env",
        "@shadow",
        "//",
        "#",
    ),
    *("(", ")", "[", "]", "{", "}", ",", ".", ":", "=", "&", "&&", "||", "!", "==", "<", "->", "=>", "|", "-", "/"),
    *(
        "|>",
        "|?",
        "|*",
        "|!",
        "~>",
        "|<>",
        '"a"',
        '"{{x}}"',
        '"',
        '"""',
        "{{",
        "}}",
        "\\",
        "1",
        "2.5",
        "30s",
        "openai/x",
    ),
    *(
        "\n",
        "\r\n",
        "\ufeff",
        "\0",
        "\u202e",
        "\u00a0",
        "é",
        "'",
        ";",
        '"x == 1"',
        '"x =="',
        '"""\n a\n  {{ b. }}\n"""',
    ),
]
# How long an example takes says nothing about it.
timeless = settings(max_examples=100)
soup = st.lists(st.sampled_from(SOUP), max_size=60)


def nodes(node: object) -> list[Node]:
    found: list[Node] = []
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, tuple):
            waiting.extend(one)
        elif isinstance(one, Program | Node):
            if isinstance(one, Node):
                found.append(one)
            waiting.extend(getattr(one, field) for field in fields(one))
    return found


def held(source: Source) -> None:
    """What is true of the parse of any text."""
    program, found = parse(source)
    size = len(source.text)
    assert all(d.code in CODES and d.message for d in found)
    assert all(0 <= d.span.start <= d.span.end <= size for d in found)
    assert [d.span.start for d in found] == sorted(d.span.start for d in found)
    assert all(0 <= node.start <= node.end <= size for node in nodes(program))
    ends = [node.end for node in program.declarations]
    assert all(a <= node.start for a, node in zip(ends, program.declarations[1:], strict=False))


@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbfagent A [a/b]")
@example(b"\xff\xfea\0")
@example(b'pipeline P(): "\xe9" \xe9')
@example(b'"""\\')
@example(b'"\\')
@timeless
def test_any_bytes(data: bytes) -> None:
    held(decode("x.halo", data)[0])


@given(st.text(max_size=100))
@timeless
def test_any_text(text: str) -> None:
    held(Source("x.halo", text))
    held(Source("x.halo", f'pipeline P(x: Any):\n x |> A.go("{text}") |<> loop(A, """{text}""")\n'))
    parse_expression(text)


@given(soup, st.sampled_from(["", " ", "\n"]))
@timeless
def test_any_tokens(parts: list[str], between: str) -> None:
    held(Source("x.halo", between.join(parts)))


@given(trees(), st.data())
@timeless
def test_any_damage(tree: Program, data: st.DataObject) -> None:
    text = print_program(tree)
    at = data.draw(st.integers(0, len(text)))
    until = data.draw(st.integers(at, min(len(text), at + 8)))
    held(Source("x.halo", text[:at] + data.draw(st.sampled_from(["", *SOUP])) + text[until:]))


@given(st.text(st.sampled_from(list('ab \t\n\r\\"{}u41')), max_size=40))
@timeless
def test_places_in_strings_lie_in_the_string(text: str) -> None:
    written = f'pipeline P(a: Any):\n  a\n    |<> loop(A, """{text}""")'
    source = Source("x.halo", written)
    start = written.index('"""')
    end = written.rindex('"""') + 3
    found = [d for d in parse(source)[1] if d.code in ("BAD_CONDITION", "BAD_TEMPLATE", "BAD_ESCAPE")]
    assert all(start <= d.span.start <= d.span.end <= end for d in found)


def parsed(text: str) -> Program:
    program, found = parse(Source("x.halo", text))
    assert [d for d in found if d.severity == ERROR] == [], text
    return program


def formatted(text: str) -> str:
    source = Source("x.halo", text)
    return format_source(source, parsed(text))


@given(trees())
@timeless
def test_printing_and_parsing_give_the_same_tree(tree: Program) -> None:
    text = print_program(tree)
    assert shape(parsed(text).declarations) == shape(tree.declarations)
    assert formatted(text) == text


@given(expressions())
@timeless
def test_an_expression_alone(tree: object) -> None:
    text = expression_text(tree, templates=True)  # type: ignore[arg-type]
    again, found = parse_expression(text)
    assert not [d for d in found if d.severity == ERROR]
    assert shape(again) == shape(tree)


@given(trees(), st.data())
@timeless
def test_formatting_keeps_the_tree_and_the_comments_and_is_settled_after_once(
    tree: Program, data: st.DataObject
) -> None:
    text = print_program(tree)
    tokens = tokenize(text)
    models = [(node.start, node.end) for node in nodes(parsed(text)) if type(node).__name__ == "Model"]
    blanks = st.sampled_from(
        [" ", " ", "\n", "\n\n", "\r\n", "\t", " # one\n", "\n  // two\n", "\n#three\n\n", "\n\n#!é\n"]
    )
    made = ""
    for i, token in enumerate(tokens.texts):
        inside = any(start < tokens.starts[i] < end for start, end in models)
        if token and not inside and tokens.starts[i] == tokens.ends[i - 1]:
            made += data.draw(st.sampled_from(["", "", "", " ", "\n", "# four\n"]))
        elif token and not inside:
            made += data.draw(blanks)
        made += token
    made += data.draw(blanks)
    before = parsed(made)
    assert shape(before.declarations) == shape(tree.declarations)
    once = formatted(made)
    after = parsed(once)
    assert shape(after.declarations) == shape(tree.declarations)
    assert [c.text.strip() for c in after.comments] == [c.text.strip() for c in before.comments]
    assert formatted(once) == once
