"""Syntax trees made at random: any that can be written, with names that mean nothing and places that are all 0.

`shape` is a tree without its places, to compare. Programs that also check, and run, are `programs_that_run.py`'s.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from halo_lang.language import ast
from halo_lang.language.printer import expression_text
from halo_lang.language.record import Record, fields

KEYWORDS = [
    *("policy", "tool", "store", "agent", "pipeline", "test", "equips", "requires", "system", "as", "in", "each"),
    *("loop", "yield", "listen", "else", "shadow", "run", "mock", "fail", "expect", "Env", "context"),
]
CONSTANTS = {"true": True, "false": False, "null": None}


def shape(node: Any) -> Any:
    """A tree as nested tuples, without places."""
    if isinstance(node, Record):
        kept = [shape(getattr(node, field)) for field in fields(node) if field not in ("start", "end")]
        return (type(node).__name__, *kept)
    if isinstance(node, tuple):
        return tuple(shape(item) for item in node)
    return (type(node).__name__, node)


# Leaves -----------------------------------------------------------------------------------------------------------

words = st.one_of(
    st.sampled_from(["a", "b", "Writer", "draft", "x_1", "_", "Zz9"]),
    st.sampled_from(KEYWORDS),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,7}", fullmatch=True),
).filter(lambda word: word not in CONSTANTS)
names = st.builds(ast.Name, st.just(0), st.just(0), words)
characters = st.one_of(
    st.sampled_from(list(' \t\n\r"\\{}[]#/abc01.\u202e\u00a0\ufeff\U0001f600')),
    st.characters(exclude_categories=["Cs"]),
)
plain_texts = st.one_of(
    st.text(characters, max_size=20),
    st.sampled_from(['"""', "{{", "}}", "{{x}}", "\\{{", "{{{", "\n  a\n b\n", "  ", "\n", " \n ", '{"k": {"n": 1}}']),
)
paths = st.builds(
    ast.Path,
    st.just(0),
    st.just(0),
    words,
    st.lists(st.one_of(words, st.integers(0, 99), plain_texts), max_size=3).map(tuple),
)


def _joined(parts: list[str | ast.Path]) -> tuple[str | ast.Path, ...]:
    made: list[str | ast.Path] = []
    for part in parts:
        if isinstance(part, str) and made and isinstance(made[-1], str):
            made[-1] += part
        elif part != "":
            made.append(part)
    return tuple(made)


plain = st.builds(lambda text, block: ast.Text(0, 0, (text,) if text else (), block), plain_texts, st.booleans())
templates = st.builds(
    lambda parts, block: ast.Text(0, 0, _joined(parts), block),
    st.lists(st.one_of(plain_texts, paths), max_size=4),
    st.booleans(),
)


def _number(text: str) -> ast.Number:
    return ast.Number(0, 0, float(text) if set(text) & set(".eE") else int(text), text)


numbers = st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?", fullmatch=True).map(_number)
constants = st.sampled_from([ast.Constant(0, 0, value) for value in (True, False, None)])
MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
durations = st.builds(
    lambda amount, unit: ast.Duration(0, 0, amount * MILLISECONDS[unit], f"{amount}{unit}"),
    st.integers(0, 9999),
    st.sampled_from(list(MILLISECONDS)),
)


# Expressions ------------------------------------------------------------------------------------------------------


def _composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(ast.ListExpr, st.just(0), st.just(0), st.lists(inner, max_size=3).map(tuple)),
        st.dictionaries(st.one_of(words, plain_texts), inner, max_size=3).map(
            lambda made: ast.ObjectExpr(0, 0, tuple(made), tuple(made.values()))
        ),
        st.builds(ast.Not, st.just(0), st.just(0), inner),
        st.builds(
            ast.Compare, st.just(0), st.just(0), st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), inner, inner
        ),
        st.builds(ast.And, st.just(0), st.just(0), several),
        st.builds(ast.Or, st.just(0), st.just(0), several),
    )


def expressions(strings: st.SearchStrategy[Any] = templates) -> st.SearchStrategy[Any]:
    """Any expression; `strings` says whether its strings may have holes."""
    return st.recursive(st.one_of(numbers, constants, paths, strings), _composed, max_leaves=6)


def _literals() -> st.SearchStrategy[Any]:
    def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.builds(ast.ListExpr, st.just(0), st.just(0), st.lists(inner, max_size=3).map(tuple)),
            st.dictionaries(words, inner, max_size=2).map(
                lambda made: ast.ObjectExpr(0, 0, tuple(made), tuple(made.values()))
            ),
        )

    return st.recursive(st.one_of(numbers, constants, plain), composed, max_leaves=4)


def arguments(strings: st.SearchStrategy[Any] = templates, *, named: bool = False) -> st.SearchStrategy[Any]:
    """Arguments of a call; only named ones, as options are, with `named`."""
    value = st.one_of(durations, expressions(strings))
    arg = st.builds(ast.Arg, st.just(0), st.just(0), names if named else st.none() | names, value)
    return st.lists(arg, max_size=3).map(tuple)


# Stages -----------------------------------------------------------------------------------------------------------

calls = st.builds(ast.Call, st.just(0), st.just(0), names, st.none() | names, arguments())
piped = calls.filter(lambda call: call.method is not None or call.target.text not in ("yield", "listen", "loop"))
bare = st.builds(lambda name: ast.Call(0, 0, name, None, (), True), names)
binds = st.none() | names


def _loop(agent: Any, held: Any, options: Any, bind: Any, block: bool) -> ast.Loop:
    written = ast.Text(0, 0, (expression_text(held, templates=True),), block)
    return ast.Loop(0, 0, agent, written, held, options, bind)


stages = st.one_of(
    st.builds(ast.Pipe, st.just(0), st.just(0), piped, binds, st.none() | calls),
    st.builds(ast.Gate, st.just(0), st.just(0), expressions(), st.booleans()),
    st.builds(
        ast.Branch,
        st.just(0),
        st.just(0),
        st.lists(
            st.builds(ast.Arm, st.just(0), st.just(0), st.none() | expressions(), calls), min_size=1, max_size=3
        ).map(tuple),
        binds,
    ),
    st.builds(
        ast.FanOut,
        st.just(0),
        st.just(0),
        st.lists(st.builds(ast.Member, st.just(0), st.just(0), calls | bare, binds), min_size=1, max_size=3).map(tuple),
        binds,
    ),
    st.builds(ast.Each, st.just(0), st.just(0), names, expressions(), arguments(named=True), calls, binds),
    st.builds(ast.Yield, st.just(0), st.just(0), arguments(), binds),
    st.builds(ast.Listen, st.just(0), st.just(0), paths, binds),
    st.builds(_loop, names, expressions(), arguments(named=True), binds, st.booleans()),
)


# Declarations -----------------------------------------------------------------------------------------------------

models = st.one_of(
    st.builds(lambda text: ast.Model(0, 0, text, True, False), plain_texts),
    st.builds(lambda word: ast.Model(0, 0, word, False, True), words),
    st.builds(
        lambda text: ast.Model(0, 0, text, False, False),
        st.from_regex(r"[a-z]{1,5}/[A-Za-z0-9._:@-]{1,6}(/[a-z]{1,3})?", fullmatch=True),
    ),
)
several_names = st.lists(names, min_size=1, max_size=3).map(tuple)
clauses = st.one_of(
    st.builds(ast.Equips, st.just(0), st.just(0), several_names),
    st.builds(ast.Requires, st.just(0), st.just(0), several_names),
    st.builds(ast.System, st.just(0), st.just(0), plain),
)
rules = st.builds(ast.Rule, st.just(0), st.just(0), names, arguments(plain))
params = st.builds(ast.Param, st.just(0), st.just(0), names, names, st.none() | _literals())
targets = st.builds(ast.Path, st.just(0), st.just(0), words, st.lists(words, max_size=2).map(tuple))
steps = st.one_of(
    st.builds(ast.MockStep, st.just(0), st.just(0), targets, expressions(plain)),
    st.builds(ast.FailStep, st.just(0), st.just(0), targets, plain),
    st.builds(ast.ExpectStep, st.just(0), st.just(0), expressions(plain)),
)


def _tool(keyword: str, name: Any, provider: Any, args: Any, called: bool) -> ast.ToolDecl:
    return ast.ToolDecl(0, 0, keyword, name, provider, args if called else (), called)


def _up_to(strategy: st.SearchStrategy[Any], most: int, least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


declarations = st.one_of(
    st.builds(ast.PolicyDecl, st.just(0), st.just(0), names, _up_to(rules, 3, 1)),
    st.builds(_tool, st.sampled_from(["tool", "store"]), names, names, arguments(plain), st.booleans()),
    st.builds(ast.AgentDecl, st.just(0), st.just(0), names, models, arguments(plain, named=True), _up_to(clauses, 3)),
    st.builds(
        ast.PipelineDecl,
        st.just(0),
        st.just(0),
        names,
        _up_to(params, 3),
        st.none() | names,
        _up_to(names, 2),
        expressions(),
        _up_to(stages, 4),
    ),
    st.builds(ast.TestDecl, st.just(0), st.just(0), plain, names, arguments(plain), _up_to(steps, 3)),
)


def trees() -> st.SearchStrategy[ast.Program]:
    """Any program that can be written."""
    return st.builds(lambda made: ast.Program(made, ()), _up_to(declarations, 4))
