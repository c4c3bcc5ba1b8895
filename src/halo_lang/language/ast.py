"""The syntax tree of a `.halo` file (language.md §2), as the parser makes it and the formatter prints it.

Owns the node types. Says nothing about what names mean: that is `check`'s. Every node knows where it stands
(`start`, `end`: offsets into `Source.text`). Chains of `&&` and `||` are flat, so no tree is deeper than the nesting
that the language allows. Read `parser.py` next.
"""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias


class Node(Record):
    start: int
    end: int


class Name(Node):
    """A name where one is declared or referred to."""

    text: str


# Expressions -----------------------------------------------------------------------------------------------------


class Number(Node):
    """`text` is the number as written (`0.50`)."""

    value: int | float
    text: str


class Constant(Node):
    """`true`, `false` or `null`."""

    value: bool | None


class Duration(Node):
    """`text` is the duration as written (`90s`)."""

    milliseconds: int
    text: str


class Path(Node):
    """`context.data.x[0]`, `task`, `Env.TOKEN`, or a bare word in a rule. `parts` are names and indexes."""

    root: str
    parts: tuple[str | int, ...]


class Text(Node):
    """A string literal: text with escapes taken out, and the paths inserted in it. `block` is a `\"\"\"` string.

    No two strings stand side by side in `parts`, and no part is empty; the empty string has no parts. Only literals
    of a pipeline's expressions have insertions; elsewhere (`system`, rules, providers) `{{` is text as it stands.
    """

    parts: tuple[str | Path, ...]
    block: bool


class ListExpr(Node):
    items: tuple[Expr, ...]


class ObjectExpr(Node):
    """`keys` are names or the text of string keys, side by side with `values`."""

    keys: tuple[str, ...]
    values: tuple[Expr, ...]


class Not(Node):
    operand: Expr


class Compare(Node):
    """`operator` is one of `== != < <= > >=`."""

    operator: str
    left: Expr
    right: Expr


class And(Node):
    items: tuple[Expr, ...]


class Or(Node):
    items: tuple[Expr, ...]


Expr: TypeAlias = "Number | Constant | Duration | Path | Text | ListExpr | ObjectExpr | Not | Compare | And | Or"


# Calls and stages ------------------------------------------------------------------------------------------------


class Arg(Node):
    """`name` is None for a positional argument."""

    name: Name | None
    value: Expr


class Call(Node):
    """`target.method(args)`. `method` is None in `Writer("…")`; `bare` is a fan-out's member that is only a name."""

    target: Name
    method: Name | None
    args: tuple[Arg, ...]
    bare: bool = False


class Pipe(Node):
    call: Call
    bind: Name | None
    shadow: Call | None


class Gate(Node):
    """`arrow`: the allowed trailing `=>` was written."""

    condition: Expr
    arrow: bool


class Arm(Node):
    """`condition` is None for `else`."""

    condition: Expr | None
    call: Call


class Branch(Node):
    arms: tuple[Arm, ...]
    bind: Name | None


class Member(Node):
    call: Call
    bind: Name | None


class FanOut(Node):
    members: tuple[Member, ...]
    bind: Name | None


class Each(Node):
    item: Name
    source: Expr
    options: tuple[Arg, ...]
    call: Call
    bind: Name | None


class Yield(Node):
    args: tuple[Arg, ...]
    bind: Name | None


class Listen(Node):
    event: Path
    bind: Name | None


class Loop(Node):
    """`written` is the string; `condition` what it holds, parsed, with places inside the string."""

    agent: Name
    written: Text
    condition: Expr
    options: tuple[Arg, ...]
    bind: Name | None


Stage: TypeAlias = "Pipe | Gate | Branch | FanOut | Each | Yield | Listen | Loop"


# Declarations ----------------------------------------------------------------------------------------------------


class Rule(Node):
    name: Name
    args: tuple[Arg, ...]


class PolicyDecl(Node):
    name: Name
    rules: tuple[Rule, ...]


class ToolDecl(Node):
    """`keyword` is `tool` or `store`. `called`: the provider has an argument list, be it empty."""

    keyword: str
    name: Name
    provider: Name
    args: tuple[Arg, ...]
    called: bool


class Model(Node):
    """`provider/model`, as an id or a string (`quoted`), or the variable that names it (`env`)."""

    text: str
    quoted: bool
    env: bool


class Equips(Node):
    names: tuple[Name, ...]


class Requires(Node):
    names: tuple[Name, ...]


class System(Node):
    text: Text


Clause: TypeAlias = "Equips | Requires | System"


class AgentDecl(Node):
    name: Name
    model: Model
    options: tuple[Arg, ...]
    clauses: tuple[Clause, ...]


class Param(Node):
    name: Name
    type: Name
    default: Expr | None


class PipelineDecl(Node):
    name: Name
    params: tuple[Param, ...]
    result: Name | None
    requires: tuple[Name, ...]
    source: Expr
    stages: tuple[Stage, ...]


class MockStep(Node):
    target: Path
    value: Expr


class FailStep(Node):
    target: Path
    message: Text


class ExpectStep(Node):
    condition: Expr


TestStep: TypeAlias = "MockStep | FailStep | ExpectStep"


class TestDecl(Node):
    name: Text
    pipeline: Name
    args: tuple[Arg, ...]
    steps: tuple[TestStep, ...]


class ReplayTestDecl(Node):
    """A test that replays a kept recording and expects the same end. `recording` is a path, from the file's folder."""

    name: Text
    recording: Text


Declaration: TypeAlias = "PolicyDecl | ToolDecl | AgentDecl | PipelineDecl | TestDecl | ReplayTestDecl"


class Comment(Node):
    """`text` is what stands after `#` or `//`, up to the end of the line. `trailing`: something stands before it."""

    text: str
    trailing: bool


class Program(Record):
    """A file. Of a part with a syntax error nothing is here: the declaration, or within one the stage, clause or test
    step, is left out. `lost` holds every name that such a part has, so that nobody calls it unknown elsewhere; and a
    declaration whose name is in `lost` may be incomplete."""

    declarations: tuple[Declaration, ...]
    comments: tuple[Comment, ...]
    lost: frozenset[str] = frozenset()
