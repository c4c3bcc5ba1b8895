"""Expressions of a pipeline: every name in them, and what has no place in them (language.md §3 to §5).

Owns the walk over an expression. Says nothing about types: see `literals.py`. Read `calls.py` next.
"""

from __future__ import annotations

from ..language.ast import And, Compare, Duration, ListExpr, Not, ObjectExpr, Or, Path, Text
from .findings import listed
from .names import with_article
from .secrets import looks_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..language.ast import Expr
    from .findings import Findings
    from .names import Declared, Scope

CONTEXT = ("current", "data", "meta")
"""What `context` holds."""

_SECRET_HELP = "keep it in a variable of the environment, and name it as `Env.NAME` in a tool's arguments"  # noqa: S105


def check_expr(expr: Expr, scope: Scope | None, declared: Declared, findings: Findings) -> None:
    """Reports what is wrong with an expression. With `scope` None no name can be read in it (tests' arguments)."""
    kind = type(expr)
    if kind is Path:
        check_path(expr, scope, declared, findings)  # type: ignore[arg-type]
    elif kind is Text:
        check_text(expr, scope, declared, findings)  # type: ignore[arg-type]
    elif kind is Compare:
        check_expr(expr.left, scope, declared, findings)  # type: ignore[union-attr]
        check_expr(expr.right, scope, declared, findings)  # type: ignore[union-attr]
    elif kind is And or kind is Or or kind is ListExpr:
        for item in expr.items:  # type: ignore[union-attr]
            check_expr(item, scope, declared, findings)
    elif kind is Not:
        check_expr(expr.operand, scope, declared, findings)  # type: ignore[union-attr]
    elif isinstance(expr, ObjectExpr):
        check_keys(expr, findings)
        for value in expr.values:
            check_expr(value, scope, declared, findings)
    elif kind is Duration:
        where = "a timeout of a call or a yield, in `System.Wait`, and where a tool's argument is one"
        findings.error("ARGUMENT_TYPE", "a duration is no value", expr, f"durations stand as {where}")


def check_keys(expr: ObjectExpr, findings: Findings) -> None:
    """Reports a key that an object has twice."""
    if len(set(expr.keys)) != len(expr.keys):
        seen: set[str] = set()
        for key, value in zip(expr.keys, expr.values, strict=True):
            if key in seen:
                findings.error("DUPLICATE_NAME", f"the key `{key[:80]}` stands twice in this object", value)
            seen.add(key)


def check_text(text: Text, scope: Scope | None, declared: Declared, findings: Findings) -> None:
    """Reports what is wrong with the paths inserted in a string, and a secret that stands in it."""
    for part in text.parts:
        if type(part) is Path:
            check_path(part, scope, declared, findings)
        elif len(part) > 11 and looks_secret(part):  # type: ignore[arg-type]
            warn_secret(text, findings)


def warn_secret(at: Expr, findings: Findings) -> None:
    findings.warning("SECRET_IN_SOURCE", "this looks like a secret, and stands in the file", at, _SECRET_HELP)


def check_path(path: Path, scope: Scope | None, declared: Declared, findings: Findings) -> None:
    """Reports a path whose first name nothing can give."""
    root = path.root
    if scope is not None and (root in scope.params or scope.available(root)):
        return
    if root == "context" and scope is not None:
        if path.parts and path.parts[0] not in CONTEXT:
            part = str(path.parts[0])
            near = findings.near(part, CONTEXT, "it holds `context.current`, `context.data` and `context.meta`")
            findings.error("UNKNOWN_NAME", f"`context` has no part `{part}`", path, near)
    elif root == "Env":
        help_ = "give it to a tool, where it is resolved when the tool starts: `tool T : Slack(Env.NAME)`"
        findings.error("ENV_MISPLACED", "`Env` is no value of the program", path, help_)
    elif scope is None:
        findings.error("UNKNOWN_NAME", f"no name can be read here, so `{root}` neither", path, "write the value down")
    elif not (scope.item is not None and root in (scope.item, "index")) and root not in declared.lost:
        _unknown(path, scope, declared, findings)


def _unknown(path: Path, scope: Scope, declared: Declared, findings: Findings) -> None:
    root = path.root
    first = scope.first.get(root)
    if first is not None:
        help_ = "it can be read after that stage, or before it in a loop"
        findings.error("UNKNOWN_NAME", f"`{root}` is not bound before stage {first + 1}", path, help_)
    elif root == "index":
        findings.error("UNKNOWN_NAME", "`index` is only there in the call of an `each`", path)
    elif root in declared.kinds:
        kind = declared.kinds[root]
        declared.used.add(root)
        findings.error("WRONG_KIND", f"`{root}` is {with_article(kind)}, and no value", path, _TO_CALL.get(kind))
    else:
        near = findings.near(root, scope.names(), f"there are {listed(scope.names())}")
        findings.error("UNKNOWN_NAME", f"there is no name `{root}` here", path, near)


_TO_CALL = {
    "agent": "call it in a stage, and read its result by the name that `as` gives it",
    "tool": "call one of its methods in a stage, and read the result by the name that `as` gives it",
    "store": "call one of its methods in a stage, and read the result by the name that `as` gives it",
    "pipeline": "call it in a stage, and read its result by the name that `as` gives it",
}


def paths_in(expr: Expr) -> list[Path]:
    """All paths of an expression, those inserted in its strings too, in the order written."""
    found: list[Path] = []
    waiting: list[object] = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Path):
            found.append(node)
        elif isinstance(node, Text):
            waiting += reversed(node.parts)
        elif isinstance(node, Compare):
            waiting += (node.right, node.left)
        elif isinstance(node, And | Or | ListExpr):
            waiting += reversed(node.items)
        elif isinstance(node, Not):
            waiting.append(node.operand)
        elif isinstance(node, ObjectExpr):
            waiting += reversed(node.values)
    return found
