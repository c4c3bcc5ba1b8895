"""From source text to the syntax tree (language.md §2).

Owns the grammar of declarations, and of a file as a whole. Never raises, whatever the text; takes
time linear in it, and no more depth than the nesting that the language allows. Never asks what a name means. Read
`format.py` next for the way back.
"""

from __future__ import annotations

import gc
import re

from .ast import (
    AgentDecl,
    And,
    Arg,
    Compare,
    Equips,
    ExpectStep,
    FailStep,
    ListExpr,
    MockStep,
    Model,
    Name,
    Not,
    ObjectExpr,
    Or,
    Param,
    Path,
    PipelineDecl,
    PolicyDecl,
    Program,
    ReplayTestDecl,
    Requires,
    Rule,
    System,
    TestDecl,
    ToolDecl,
)
from .cursor import DECLARATIONS, FORGET, MAX_PROBLEMS, STAGES, Cursor, Failed, TooMany
from .diagnostics import Diagnostic
from .expressions import argument_value, arguments, expression
from .lexer import END, NAME, STRING, comment_nodes, forbidden_characters, long_names, tokenize
from .literals import path, plain_string
from .source import MAX_BYTES, Source, Span
from .stages import STAGE_READERS, options, read_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .ast import Clause, Declaration, Expr, Stage, TestStep


def parse(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The tree of a source, and what is wrong with it, in the order of places (language.md §1, §2, §8).

    Never raises. Parts with an error are left out of the tree, and every other part is in it. After 1,000 errors one
    more says that the rest was not looked for.
    """
    if len(source.text) > MAX_BYTES:
        message = f"the text is larger than {MAX_BYTES // 1024 // 1024} MiB"
        return Program((), ()), (Diagnostic("FILE_TOO_LARGE", message, Span(0, 0)),)
    # A tree is millions of objects and holds no cycle: the collector would only walk them again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _parse(source)
    finally:
        if collecting:
            gc.enable()


def parse_expression(text: str, *, templates: bool = True) -> tuple[Expr | None, tuple[Diagnostic, ...]]:
    """The expression that a text is, with places in that text, and what is wrong with it; None if it does not parse.

    With `templates`, `{{ path }}` in its strings inserts a value, as in a pipeline. Never raises.
    """
    found: list[Diagnostic] = []
    if len(text) > MAX_BYTES:
        return None, (Diagnostic("FILE_TOO_LARGE", "the text is too large", Span(0, 0)),)
    tokens = tokenize(text)
    c = Cursor(text, tokens, found)
    c.templates = templates
    node: Expr | None = None
    try:
        node = expression(c)
        if c.kinds[c.i] != END:
            c.expected("the end of the expression")
    except (Failed, TooMany):
        node = None
    found += forbidden_characters(tokens, text, MAX_PROBLEMS + 1) + long_names(tokens)
    return node, tuple(sorted(found, key=_place))


def _parse(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    text = source.text
    tokens = tokenize(text)
    found: list[Diagnostic] = []
    c = Cursor(text, tokens, found, damaged=source.damaged)
    declarations: list[Declaration] = []
    more = False
    others = forbidden_characters(tokens, text, MAX_PROBLEMS + 1) + long_names(tokens)
    comments = comment_nodes(tokens, text)
    del tokens  # the cursor lets go of them as they are read
    try:
        while c.kinds[c.i] != END:
            _declaration(c, declarations)
            if c.i > FORGET:
                c.forget()
    except TooMany:
        more = True
        c.lost.update(t for t, k in zip(c.texts, c.kinds, strict=True) if k == NAME)
    found += others
    found.sort(key=_place)
    if more or len(found) > MAX_PROBLEMS:
        del found[MAX_PROBLEMS:]
        end = found[-1].span.end
        message = f"there are more errors: only the first {MAX_PROBLEMS:,} are shown"
        found.append(Diagnostic("SYNTAX", message, Span(end, end)))
    program = Program(tuple(declarations), comments, frozenset(c.lost))
    return program, tuple(found)


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    return diagnostic.span.start, diagnostic.span.end


# Declarations ----------------------------------------------------------------------------------------------------


def _declaration(c: Cursor, made: list[Declaration]) -> None:
    """Adds the declaration that begins here, or goes past what is none."""
    first = c.i
    read = _DECLARATIONS.get(c.texts[first])
    try:
        if read is None:
            read = _misspelt(c)
        made.append(read(c))
    except Failed:
        c.skip(first)
    c.quiet = c.templates = False


def _misspelt(c: Cursor) -> Callable[[Cursor], Declaration]:
    """How to read what follows a word that is nearly one that begins a declaration, in a place that fits one."""
    from .slips import meant_declaration

    i = c.i
    meant = meant_declaration(c.texts[i])
    if meant is None or c.kinds[i + 1] != (STRING if meant == "test" else NAME):
        c.expected("a declaration", here=True)
    c.note_expected("a declaration", here=True, help=f"did you mean `{meant}`?")
    if c.texts[i + 2] != DECLARATIONS[meant]:
        raise Failed
    c.quiet = False
    return _DECLARATIONS[meant]


def _policy(c: Cursor) -> PolicyDecl:
    start = c.starts[c.i]
    c.i += 1
    name = c.name("the policy's name")
    c.take(":", "`:` and the policy's rules")
    rules = [_rule(c)]
    while c.texts[c.i] == "&":
        c.i += 1
        rules.append(_rule(c))
    if c.texts[c.i] in ("&&", ","):
        c.expected("`&` and the next rule", help="the rules of a policy are joined by a single `&`")
    return PolicyDecl(start, c.ends[c.i - 1], name, tuple(rules))


def _rule(c: Cursor) -> Rule:
    name = c.name("a rule, such as `MaxSpend(0.50)`")
    if c.texts[c.i] != "(":
        c.expected("`(` and the rule's arguments")
    c.i += 1
    args = arguments(c)
    return Rule(name.start, c.ends[c.i - 1], name, args)


def _tool(c: Cursor) -> ToolDecl:
    return _provided(c, "tool", "the tool's name")


def _store(c: Cursor) -> ToolDecl:
    return _provided(c, "store", "the store's name")


def _provided(c: Cursor, keyword: str, what: str) -> ToolDecl:
    start = c.starts[c.i]
    c.i += 1
    name = c.name(what)
    c.take(":", "`:` and the provider")
    provider = c.name("the name of a provider")
    called = c.texts[c.i] == "("
    args: tuple[Arg, ...] = ()
    if called:
        c.i += 1
        args = arguments(c)
    return ToolDecl(start, c.ends[c.i - 1], keyword, name, provider, args, called)


def _agent(c: Cursor) -> AgentDecl:
    start = c.starts[c.i]
    c.i += 1
    name = c.name("the agent's name")
    if c.texts[c.i] == "[":
        c.i += 1
    elif _MODEL.match(c.text, c.starts[c.i]):
        c.note_expected("`[` and the agent's model")
    else:
        c.expected("`[` and the agent's model", help="an agent is written `agent Name [provider/model]`")
    model = _model(c)
    settings = options(c, "]")
    if c.texts[c.i] in _CLAUSES:
        c.note_expected("`,` or `]`")
    else:
        c.close("]", "`,` or `]`")
    clauses: list[Clause] = []
    read_parts(c, _CLAUSES, clauses, "`equips`, `requires`, `system` or a declaration")
    return AgentDecl(start, c.ends[c.i - 1], name, model, settings, tuple(clauses))


def _model(c: Cursor) -> Model:
    i = c.i
    start = c.starts[i]
    found = _MODEL.match(c.text, start)
    if found is not None:
        while c.starts[c.i] < found.end():
            c.i += 1
        if c.ends[c.i - 1] == found.end():
            return Model(start, found.end(), found[0], quoted=False, env=False)
        c.i -= 1
        c.expected("`,` or `]`")
    if c.kinds[i] == STRING:
        text = plain_string(c)
        return Model(start, text.end, "".join(map(str, text.parts)), quoted=True, env=False)
    if c.texts[i].split(".")[0] == "Env":
        variable = path(c)
        if len(variable.parts) != 1 or not isinstance(variable.parts[0], str):
            c.fail("expected a variable's name after `Env`", variable.start, variable.end, help="write `Env.NAME`")
        return Model(start, variable.end, variable.parts[0], quoted=False, env=True)
    what = "a model, such as `openai/gpt-4o-mini`"
    if c.kinds[i] == NAME and not c.at_boundary():
        help_ = "a model is written `provider/model`, and one with other characters in quotes"
        named = _WORD.match(c.text, start)
        end = named.end() if named is not None else c.ends[i]
        c.fail(f"expected {what}, found `{c.text[start:end][:40]}`", start, end, code="BAD_MODEL", help=help_)
    c.expected(what)


def _equips(c: Cursor) -> Equips:
    start = c.starts[c.i]
    c.i += 1
    names = _names(c, "the name of a tool or store")
    return Equips(start, c.ends[c.i - 1], names)


def _requires(c: Cursor) -> Requires:
    start = c.starts[c.i]
    c.i += 1
    names = _names(c, "the name of a policy")
    return Requires(start, c.ends[c.i - 1], names)


def _system(c: Cursor) -> System:
    start = c.starts[c.i]
    c.i += 1
    if c.kinds[c.i] != STRING:
        c.expected("the system prompt in quotes")
    text = plain_string(c)
    return System(start, text.end, text)


def _names(c: Cursor, what: str) -> tuple[Name, ...]:
    names = [c.name(what)]
    while c.texts[c.i] == ",":
        c.i += 1
        if c.texts[c.i] in _CLAUSES and c.kinds[c.i + 1] in (NAME, STRING):
            follows = c.texts[c.i + 1]
            # A clause begins here, unless its word is a name in the list, and the next clause or declaration follows.
            if follows not in _CLAUSES and follows not in DECLARATIONS:
                c.expected(what, help="remove the comma before it")
        names.append(c.name(what))
    return tuple(names)


def _pipeline(c: Cursor) -> PipelineDecl:
    first = c.i
    start = c.starts[first]
    stages: list[Stage] = []
    try:
        c.i += 1
        name = c.name("the pipeline's name")
        if c.texts[c.i] != "(":
            c.expected("`(` and the pipeline's parameters", help=_PIPELINE_HELP)
        c.i += 1
        params = _params(c)
        result = None
        if c.texts[c.i] == "->":
            c.i += 1
            result = c.name("the type of the result")
        requires: tuple[Name, ...] = ()
        if c.texts[c.i] == "requires":
            c.i += 1
            requires = _names(c, "the name of a policy")
        _colon(c)
        c.templates = True
        if c.texts[c.i] in STAGES:
            c.expected("the value that the pipeline begins with", help=_SOURCE_HELP)
        source = expression(c)
    except Failed:
        # The stages are read all the same, for what is wrong in them.
        c.skip(first, stages=True)
        c.templates = True
        read_parts(c, STAGE_READERS, stages, _STAGE_OR_DECLARATION, stages=True)
        raise
    read_parts(c, STAGE_READERS, stages, _STAGE_OR_DECLARATION, stages=True)
    c.templates = False
    return PipelineDecl(start, c.ends[c.i - 1], name, params, result, requires, source, tuple(stages))


def _colon(c: Cursor) -> None:
    if c.texts[c.i] == ":":
        c.i += 1
    elif c.first_on_line(c.i) and c.kinds[c.i] != END:
        c.note_expected("`:` after the pipeline's head", help=_PIPELINE_HELP)
    else:
        c.expected("`->`, `requires` or `:`", help=_PIPELINE_HELP)


def _params(c: Cursor) -> tuple[Param, ...]:
    """`param { "," param }`, up to and past the `)`."""
    made: list[Param] = []
    while c.texts[c.i] != ")":
        name = c.name("a parameter, such as `topic: String`")
        if c.texts[c.i] != ":":
            c.expected("`:` and the parameter's type", help=f"a parameter has a type: `{name.text[:40]}: String`")
        c.i += 1
        type_ = c.name("the parameter's type")
        default = None
        if c.texts[c.i] == "=":
            c.i += 1
            default = _literal(c)
        made.append(Param(name.start, c.ends[c.i - 1], name, type_, default))
        if c.texts[c.i] != ",":
            break
        c.i += 1
    c.close(")", "`,` or `)`")
    return tuple(made)


def _literal(c: Cursor) -> Expr:
    """A parameter's default: no path and no operator may be in it."""
    value = argument_value(c)
    waiting: list[Expr] = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ListExpr):
            waiting.extend(node.items)
        elif isinstance(node, ObjectExpr):
            waiting.extend(node.values)
        elif isinstance(node, Path | Not | Compare | And | Or):
            message = "a parameter's default is written down, not computed"
            quoted = f'for a text write `"{node.root[:40]}"`' if isinstance(node, Path) and not node.parts else None
            c.report("NOT_A_LITERAL", message, node.start, node.end, quoted)
            break
    return value


def _test(c: Cursor) -> TestDecl | ReplayTestDecl:
    start = c.starts[c.i]
    c.i += 1
    if c.kinds[c.i] != STRING:
        c.expected("what the test shows in quotes")
    name = plain_string(c)
    c.take(":", "`:` and `run Pipeline(…)`")
    if c.texts[c.i] == "replay":
        c.i += 1
        if c.kinds[c.i] != STRING:
            c.expected("the path of a recording in quotes")
        recording = plain_string(c)
        return ReplayTestDecl(start, recording.end, name, recording)
    c.take("run", "`run` and the pipeline's call, or `replay` and a recording")
    pipeline = c.name("the name of a pipeline")
    c.take("(", "`(` and the pipeline's arguments")
    args = arguments(c)
    steps: list[TestStep] = []
    read_parts(c, _STEPS, steps, "`mock`, `fail`, `expect` or a declaration")
    return TestDecl(start, c.ends[c.i - 1], name, pipeline, args, tuple(steps))


def _mock(c: Cursor) -> MockStep:
    start = c.starts[c.i]
    c.i += 1
    target = _target(c)
    c.take("=>", "`=>` and the answer")
    value = expression(c)
    return MockStep(start, c.ends[c.i - 1], target, value)


def _fail(c: Cursor) -> FailStep:
    start = c.starts[c.i]
    c.i += 1
    target = _target(c)
    c.take("=>", "`=>` and the message")
    if c.kinds[c.i] != STRING:
        c.expected("the message in quotes")
    message = plain_string(c)
    return FailStep(start, message.end, target, message)


def _expect(c: Cursor) -> ExpectStep:
    start = c.starts[c.i]
    c.i += 1
    if c.texts[c.i] != "(":
        c.expected("`(` and a condition", help='a condition stands in parentheses: `expect (status == "halted")`')
    c.i += 1
    c.enter()
    held = expression(c)
    c.close(")", "`)`")
    c.depth -= 1
    return ExpectStep(start, c.ends[c.i - 1], held)


def _target(c: Cursor) -> Path:
    """`NAME { "." NAME }`."""
    i = c.i
    if c.kinds[i] != NAME:
        c.expected("what is mocked, such as `Writer.draft`")
    target = path(c)
    if "[" in c.texts[i : c.i] or not all(isinstance(part, str) for part in target.parts):
        c.fail("a target is made of names", target.start, target.end, help="write `Writer.draft` or `Writer`")
    return target


_DECLARATIONS: dict[str, Callable[[Cursor], Declaration]] = {
    "policy": _policy,
    "tool": _tool,
    "store": _store,
    "agent": _agent,
    "pipeline": _pipeline,
    "test": _test,
}
_CLAUSES: dict[str, Callable[[Cursor], Clause]] = {"equips": _equips, "requires": _requires, "system": _system}
_STEPS: dict[str, Callable[[Cursor], TestStep]] = {"mock": _mock, "fail": _fail, "expect": _expect}

_STAGE_OR_DECLARATION = "a stage or a declaration"
_PIPELINE_HELP = "a pipeline begins `pipeline Name(topic: String) -> Result:`"
_SOURCE_HELP = "a pipeline begins with a value, such as one of its parameters, and its stages follow"

# Read on the text itself, for the tokens of a model's name mean nothing (language.md §2).
_MODEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*+/(?!/)(?:[A-Za-z0-9._:@-]|/(?!/))++")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:@/-]*+")
