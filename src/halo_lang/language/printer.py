"""A syntax tree as text: the way back from the parser, without regard to layout.

Owns what must be written so that parsing gives the same tree again: parentheses, quotes, escapes. Where lines break,
and how far they are indented, is `format.py`'s.
"""

from __future__ import annotations

import re

from .ast import (
    AgentDecl,
    And,
    Arg,
    Branch,
    Call,
    Compare,
    Constant,
    Duration,
    Each,
    Equips,
    FailStep,
    FanOut,
    Gate,
    Listen,
    ListExpr,
    Loop,
    MockStep,
    Name,
    Not,
    Number,
    ObjectExpr,
    Or,
    Path,
    Pipe,
    PipelineDecl,
    PolicyDecl,
    ReplayTestDecl,
    Requires,
    TestDecl,
    Text,
    ToolDecl,
    Yield,
)
from .cursor import MAX_DEPTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ast import Clause, Declaration, Expr, Stage, TestStep


def declaration_text(node: Declaration) -> str:
    """A declaration, each of its parts on a line."""
    if isinstance(node, PolicyDecl):
        rules = [f"{rule.name.text}({_args(rule.args)})" for rule in node.rules]
        return f"policy {node.name.text} : {' & '.join(rules)}"
    if isinstance(node, ToolDecl):
        args = f"({_args(node.args)})" if node.called else ""
        return f"{node.keyword} {node.name.text} : {node.provider.text}{args}"
    if isinstance(node, AgentDecl):
        model = f"Env.{node.model.text}" if node.model.env else node.model.text
        if node.model.quoted:
            model = _quoted(node.model.text)
        options = _args(node.options)
        head = f"agent {node.name.text} [{model}{', ' if options else ''}{options}]"
        return "\n".join([head, *map(_clause, node.clauses)])
    if isinstance(node, PipelineDecl):
        return "\n".join([_head(node), expression_text(node.source, templates=True), *map(stage_text, node.stages)])
    return _replay_test(node) if isinstance(node, ReplayTestDecl) else _test(node)


def stage_text(node: Stage) -> str:
    """A stage of a pipeline."""
    if isinstance(node, Gate):
        return f"|? ({expression_text(node.condition, templates=True, depth=1)}){' =>' if node.arrow else ''}"
    if isinstance(node, Pipe):
        shadow = f"@shadow({_call(node.shadow)}) " if node.shadow else ""
        text = f"{shadow}|> {_call(node.call)}"
    elif isinstance(node, Branch):
        arms = []
        for arm in node.arms:
            held = "else"
            if arm.condition is not None:
                held = f"({expression_text(arm.condition, templates=True, depth=2)})"
            arms.append(f"{held} => {_call(arm.call)}")
        text = f"|? {{ {', '.join(arms)} }}"
    elif isinstance(node, FanOut):
        members = [_call(member.call) + _as(member.bind) for member in node.members]
        text = f"|* {{ {', '.join(members)} }}"
    elif isinstance(node, Each):
        source = expression_text(node.source, templates=True, depth=1)
        head = ", ".join([f"{node.item.text} in {source}", *_each_arg(node.options, templates=True)])
        text = f"|* each({head}) => {_call(node.call)}"
    elif isinstance(node, Yield):
        text = f"|! yield({_args(node.args, templates=True)})"
    elif isinstance(node, Listen):
        text = f"~> listen({_path(node.event)})"
    else:
        text = _loop(node)
    return text + _as(node.bind)


def expression_text(node: Expr, *, templates: bool, depth: int = 0) -> str:
    """An expression. `templates`: `{{` in its strings opens a hole. `depth`: brackets that stand around it."""
    if isinstance(node, Number | Duration):
        return node.text
    if isinstance(node, Constant):
        return _CONSTANTS[node.value]
    if isinstance(node, Path):
        return _path(node)
    if isinstance(node, Text):
        return _text(node, templates)
    inside = depth + 1
    if isinstance(node, ListExpr):
        return f"[{', '.join([expression_text(item, templates=templates, depth=inside) for item in node.items])}]"
    if isinstance(node, ObjectExpr):
        values = [expression_text(value, templates=templates, depth=inside) for value in node.values]
        pairs = [f"{_key(key)}: {value}" for key, value in zip(node.keys, values, strict=True)]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(node, Compare):
        left = _within(node.left, (Not, Compare, And, Or), templates, depth)
        return f"{left} {node.operator} {_within(node.right, (Not, Compare, And, Or), templates, depth)}"
    if isinstance(node, Not):
        # `!a == b` means the same as `!(a == b)`, and nests less deep.
        loose: tuple[type, ...] = (Compare, And, Or) if inside < MAX_DEPTH else (And, Or)
        return f"!{_within(node.operand, loose, templates, inside)}"
    joint = " && " if isinstance(node, And) else " || "
    loose = (And, Or) if isinstance(node, And) else (Or,)
    return joint.join([_within(item, loose, templates, depth) for item in node.items])


def _within(node: Expr, loose: tuple[type, ...], templates: bool, depth: int) -> str:
    """An operand, in parentheses if it is of a kind that binds too loosely to stand there without."""
    if isinstance(node, loose):
        return f"({expression_text(node, templates=templates, depth=depth + 1)})"
    return expression_text(node, templates=templates, depth=depth)


def _head(node: PipelineDecl) -> str:
    params = []
    for param in node.params:
        default = f" = {expression_text(param.default, templates=False)}" if param.default is not None else ""
        params.append(f"{param.name.text}: {param.type.text}{default}")
    result = f" -> {node.result.text}" if node.result else ""
    requires = f" requires {_names(node.requires)}" if node.requires else ""
    return f"pipeline {node.name.text}({', '.join(params)}){result}{requires}:"


def _clause(node: Clause) -> str:
    if isinstance(node, Equips):
        return f"equips {_names(node.names)}"
    if isinstance(node, Requires):
        return f"requires {_names(node.names)}"
    return f"system {_text(node.text, False)}"


def _replay_test(node: ReplayTestDecl) -> str:
    return f"test {_text(node.name, False)}:\nreplay {_text(node.recording, False)}"


def _test(node: TestDecl) -> str:
    head = f"test {_text(node.name, False)}:\nrun {node.pipeline.text}({_args(node.args)})"
    return "\n".join([head, *map(_step, node.steps)])


def _step(node: TestStep) -> str:
    if isinstance(node, MockStep):
        return f"mock {_path(node.target)} => {expression_text(node.value, templates=False)}"
    if isinstance(node, FailStep):
        return f"fail {_path(node.target)} => {_text(node.message, False)}"
    return f"expect ({expression_text(node.condition, templates=False, depth=1)})"


def _loop(node: Loop) -> str:
    parts = [node.agent.text, _text(node.written, False), *_each_arg(node.options, templates=True)]
    return f"|<> loop({', '.join(parts)})"


def _call(node: Call) -> str:
    if node.bare:
        return node.target.text
    method = f".{node.method.text}" if node.method else ""
    return f"{node.target.text}{method}({_args(node.args, templates=True)})"


def _args(args: tuple[Arg, ...], *, templates: bool = False) -> str:
    return ", ".join(_each_arg(args, templates=templates))


def _each_arg(args: tuple[Arg, ...], *, templates: bool) -> list[str]:
    # No deeper bracket than a branch's, a condition's and a call's stands around an argument.
    values = [expression_text(arg.value, templates=templates, depth=3) for arg in args]
    return [f"{arg.name.text}: {value}" if arg.name else value for arg, value in zip(args, values, strict=True)]


def _as(bind: Name | None) -> str:
    return f" as {bind.text}" if bind else ""


def _names(names: tuple[Name, ...]) -> str:
    return ", ".join([name.text for name in names])


def _path(node: Path) -> str:
    made = node.root
    for part in node.parts:
        if isinstance(part, int):
            made += f"[{part}]"
        else:
            made += f".{part}" if _NAME.fullmatch(part) else f'["{_escaped(part, _IN_HOLE)}"]'
    return made


def _key(key: str) -> str:
    return key if _NAME.fullmatch(key) else _quoted(key)


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _text(node: Text, templates: bool) -> str:
    written = []
    for part in node.parts:
        if isinstance(part, Path):
            written.append(f"{{{{{_escaped(_path(part))}}}}}")
        else:
            lines = [_escaped(line) for line in part.split("\n")] if node.block else [_escaped(part)]
            literal = "\n".join(lines)
            written.append(literal.replace("{{", "\\{{") if templates else literal)
    text = "".join(written)
    return _block(text) if node.block else f'"{text}"'


def _block(text: str) -> str:
    """A `\"\"\"` string around a text whose escapes are written, but for the ends of its lines (`templates.py` says
    what such a string loses)."""
    text = text.replace('\\"', '"')
    text = _CLOSING_QUOTES.sub(lambda run: '\\"' * len(run[0]), text)
    if "\n" not in text:
        return f'"""{text}"""'
    lines = [_BLANK + line[1:] if line.isspace() else line for line in text.split("\n")]
    full = [k for k, line in enumerate(lines) if line]
    if full and all(lines[k].startswith(" ") for k in full):
        lines[full[0]] = _BLANK + lines[full[0]][1:]
    made = "\n".join([f"{_MARGIN}{line}" if line else "" for line in lines])
    closing = "" if lines[-1] else _MARGIN[2:]
    return f'"""\n{made}{closing}"""'


def _escaped(text: str, more: dict[str, str] | None = None) -> str:
    escapes = _ESCAPES if more is None else _ESCAPES | more
    return "".join([escapes.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):X}}}") for c in text])


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_CLOSING_QUOTES = re.compile(r'"{3,}|"+\Z')
_CONSTANTS = {True: "true", False: "false", None: "null"}
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_BLANK = "\\u{20}"
# What would end the hole of a template that a path stands in, or its quotes.
_IN_HOLE = {"}": "\\u{7D}", '"': "\\u{22}"}
_MARGIN = " " * 5
