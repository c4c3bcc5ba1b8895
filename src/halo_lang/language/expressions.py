"""Expressions, arguments and calls, from tokens to nodes (language.md §2).

Owns the precedence of operators, durations, and a loop's condition in its string. Functions take a cursor, move it
past what they have read, and give the node; they raise `Failed` where the text is wrong. Read `stages.py` next.
"""

from __future__ import annotations

from .ast import And, Arg, Call, Compare, Constant, Duration, ListExpr, Name, Node, Not, ObjectExpr, Or, Path, Text
from .cursor import DECLARATIONS, Cursor, Failed
from .diagnostics import WARNING, Diagnostic
from .lexer import END, MARK, NAME, NUMBER, STRING
from .literals import DURATION, add_inner, inside, moved, number, path, plain_string, string
from .source import Span
from .templates import content, nested

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ast import Expr


def expression(c: Cursor) -> Expr:
    """`expr`: comparisons joined by `&&`, which binds closer, and `||`."""
    first = c.i
    node = _operand(c)
    mark = c.texts[c.i]
    if mark != "&&" and mark != "||":
        return node
    start = c.starts[first]
    sides: list[Expr] = []
    while True:
        if c.texts[c.i] == "&&":
            items = [node]
            while c.texts[c.i] == "&&":
                c.i += 1
                items.append(_operand(c))
            node = And(start, c.end(), tuple(items))
        sides.append(node)
        if c.texts[c.i] != "||":
            return sides[0] if len(sides) == 1 else Or(c.starts[first], c.end(), tuple(sides))
        c.i += 1
        start = c.starts[c.i]
        node = _operand(c)


def _operand(c: Cursor) -> Expr:
    """`not`: a comparison or a single value, perhaps after `!`."""
    first = c.i
    kind = c.kinds[first]
    if kind == NAME:
        left: Expr = _path_or_constant(c)
    elif kind == STRING:
        left = string(c)
    elif c.texts[first] == "!":
        return _not(c)
    else:
        left = primary(c)
    operator = c.texts[c.i]
    if operator not in _COMPARISONS:
        return left
    c.i += 1
    right = primary(c)
    if c.texts[c.i] in _COMPARISONS:
        c.fail("comparisons cannot be chained", help=f"join two with `&&`: `a {operator} b && b {c.texts[c.i]} c`")
    return Compare(c.starts[first], c.ends[c.i - 1], operator, left, right)


def _not(c: Cursor) -> Expr:
    start = c.starts[c.i]
    c.i += 1
    c.enter()
    first = c.i
    operand = _operand(c)
    c.depth -= 1
    end = c.end()
    if isinstance(operand, Compare) and operand.start == c.starts[first]:
        message = "`!` applies to the whole comparison"
        help_ = f"write `!({_shown(c, operand)})`, or turn the comparison round"
        c.add(Diagnostic("NOT_APPLIES_TO_COMPARISON", message, Span(start, end), WARNING, help_))
    return Not(start, end, operand)


def primary(c: Cursor) -> Expr:
    """A value, a path, or an expression in parentheses."""
    i = c.i
    kind = c.kinds[i]
    if kind == NAME:
        return _path_or_constant(c)
    if kind == STRING:
        return string(c)
    if kind == NUMBER:
        return number(c)
    mark = c.texts[i]
    if mark == "(":
        c.i = i + 1
        c.enter()
        inner = expression(c)
        c.close(")", "`)`")
        c.depth -= 1
        return inner
    if mark == "[":
        return _list(c)
    if mark == "{":
        return _object(c)
    if kind == MARK and len(mark) > 1 and mark[0] == "-" and mark[1].isdigit():
        return number(c)
    c.expected("a value")


def _path_or_constant(c: Cursor) -> Path | Constant:
    i = c.i
    word, follows = c.texts[i], c.texts[i + 1]
    if follows == "." or follows == "[":
        return path(c)
    if word in _WORDS:
        if word in DECLARATIONS and c.at_declaration(i):
            c.expected("a value")
        if word in _CONSTANTS:
            c.i = i + 1
            return Constant(c.starts[i], c.ends[i], _CONSTANTS[word])
    c.i = i + 1
    if "." not in word:
        return Path(c.starts[i], c.ends[i], word, ())
    root, *parts = word.split(".")
    return Path(c.starts[i], c.ends[i], root, tuple(parts))


def condition(c: Cursor) -> tuple[Text, Expr]:
    """A loop's condition: the string that stands here, and the expression in it. Gives up if that does not parse."""
    i = c.i
    if c.kinds[i] != STRING:
        c.expected("the condition in quotes", help='a loop\'s condition is a string: `loop(Agent, "context.x != 0")`')
    written = plain_string(c)
    text = nested(content(c.texts[i], c.starts[i]), [])
    inner = inside(c, text)
    node: Expr | None = None
    try:
        node = expression(inner)
        if inner.kinds[inner.i] != END:
            inner.expected("the end of the condition")
    except Failed:
        node = None
    add_inner(c, inner, text, written.start, written.end, "BAD_CONDITION")
    if node is None:
        c.quiet = True
        raise Failed
    return written, moved(node, text) if inner.text is not c.text else node


def argument_value(c: Cursor) -> Expr:
    """An expression, or a duration, which is only allowed as an argument."""
    i = c.i
    token = c.texts[i]
    if c.kinds[i] != NUMBER or token[-1] not in "smhd" or (found := DURATION.fullmatch(token)) is None:
        return expression(c)
    c.i = i + 1
    amount, unit = found.groups()
    if len(amount) > _MAX_DURATION_DIGITS:
        c.report("BAD_NUMBER", "this duration is too long", c.starts[i], c.ends[i])
        amount, token = "0", f"0{unit}"
    return Duration(c.starts[i], c.ends[i], int(amount) * _MILLISECONDS[unit], token)


def arguments(c: Cursor) -> tuple[Arg, ...]:
    """`[ args ] ")"`, where an argument is `[ NAME ":" ] expr` or a duration; the `(` has been read."""
    texts, kinds, starts, ends = c.texts, c.kinds, c.starts, c.ends
    i = c.i
    if texts[i] == ")":
        c.i = i + 1
        return ()
    c.depth += 1
    args = []
    while True:
        start = starts[i]
        follows = texts[i + 1]
        name = None
        if follows == ":" and kinds[i] == NAME and "." not in texts[i]:
            name = Name(start, ends[i], texts[i])
            i += 2
            follows = texts[i + 1]
        c.i = i
        kind = kinds[i]
        value: Expr
        if kind == NUMBER:
            value = argument_value(c)
        elif follows != ")" and follows != ",":
            value = expression(c)
        elif kind == STRING:  # from here on arguments of one token, as most are
            value = string(c)
        elif kind == NAME:
            value = _path_or_constant(c)
        else:
            value = expression(c)
        i = c.i
        args.append(Arg(start, ends[i - 1], name, value))
        if texts[i] != ",":
            break
        c.i = i = i + 1
        if texts[i] == ")":
            break
    c.depth -= 1
    if texts[i] == ")":
        c.i = i + 1
    else:
        c.close(")", "`,` or `)`")
    return tuple(args)


def call(c: Cursor) -> Call:
    """`NAME [ "." NAME ] "(" [ args ] ")"`."""
    i = c.i
    start = c.starts[i]
    first, dot, second = c.texts[i].partition(".")
    method: Name | None = None
    if dot and c.kinds[i] == NAME and "." not in second:
        middle = start + len(first)
        target = Name(start, middle, first)
        method = Name(middle + 1, c.ends[i], second)
        c.i = i + 1
    else:
        target = c.name("the name of an agent, tool or pipeline")
        if c.texts[c.i] == ".":
            c.i += 1
            method = c.name("the name of a method")
    if c.texts[c.i] != "(":
        shown = f"{target.text}.{method.text}" if method else target.text
        c.expected("`(`", help=f"a call has parentheses: `{shown[:80]}()`")
    c.i += 1
    args = arguments(c)
    return Call(start, c.ends[c.i - 1], target, method, args)


def _list(c: Cursor) -> ListExpr:
    start = c.starts[c.i]
    c.i += 1
    c.enter()
    items: list[Expr] = []
    while c.texts[c.i] != "]":
        items.append(expression(c))
        if c.texts[c.i] != ",":
            break
        c.i += 1
    c.close("]", "`,` or `]`")
    c.depth -= 1
    return ListExpr(start, c.end(), tuple(items))


def _object(c: Cursor) -> ObjectExpr:
    start = c.starts[c.i]
    c.i += 1
    c.enter()
    keys: list[str] = []
    values: list[Expr] = []
    while c.texts[c.i] != "}":
        if c.kinds[c.i] == STRING:
            parts = plain_string(c).parts
            keys.append(parts[0] if parts else "")  # type: ignore[arg-type]
        else:
            keys.append(c.name("a key (a name, or text in quotes)").text)
        c.take(":", "`:` after the key")
        values.append(expression(c))
        if c.texts[c.i] != ",":
            break
        c.i += 1
    c.close("}", "`,` or `}`")
    c.depth -= 1
    return ObjectExpr(start, c.end(), tuple(keys), tuple(values))


def _shown(c: Cursor, node: Node) -> str:
    text = " ".join(c.text[node.start : node.end].split())
    return text if len(text) <= 60 else "…"


_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_CONSTANTS = {"true": True, "false": False, "null": None}
_WORDS = frozenset({*_CONSTANTS, *DECLARATIONS})
_MAX_DURATION_DIGITS = 12
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
