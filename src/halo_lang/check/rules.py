"""Policies as they are declared: each rule read from its arguments (tools.md §3).

Owns what arguments each rule takes, and the making of `PolicyRule`s. What the rules then mean stands in `policies.py`;
whether their patterns match anything in `governing.py`, which knows who requires them.
"""

from __future__ import annotations

from ..catalog.describe import EFFECTS
from ..language.ast import Arg, Constant, Number, Path, Text
from ..language.source import Span
from ..language.values import to_text
from .findings import listed
from .literals import UNKNOWN, dollars_text, nano_of, value_of, whole_of
from .program import Policy, PolicyRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..language.ast import Node, PolicyDecl, Rule
    from .findings import Findings

REDACTIONS = ("email", "phone", "card", "key")


def read_policy(declaration: PolicyDecl, findings: Findings) -> Policy:
    """A policy with those of its rules that can be read, with an error for each of the others."""
    name = declaration.name
    rules = [made for rule in declaration.rules if (made := _read_rule(name.text, rule, findings)) is not None]
    return Policy(name.text, tuple(rules), Span(name.start, name.end))


def _read_rule(policy: str, rule: Rule, findings: Findings) -> PolicyRule | None:
    reader = _READERS.get(rule.name.text)
    if reader is None:
        known = f"the rules are {listed(_READERS)}"
        near = findings.near(rule.name.text, _READERS, known)
        findings.error("UNKNOWN_RULE", f"there is no rule `{rule.name.text}`", rule.name, near)
        return None
    before = findings.errors
    if rule.name.text != "DenyArgs":
        for arg in rule.args:
            if arg.name is not None:
                findings.error("UNKNOWN_ARGUMENT", f"{rule.name.text} takes no named argument", arg.name)
    if findings.errors > before:
        return None
    made = reader(policy, rule, findings)
    return made if findings.errors == before else None


def _patterns(args: Iterable[Arg], rule: Rule, findings: Findings) -> tuple[str, ...]:
    return tuple(p for arg in args if (p := _pattern(arg, rule, findings)) is not None)


def _pattern(arg: Arg, rule: Rule, findings: Findings) -> str | None:
    value = value_of(arg.value)
    if not isinstance(value, str):
        shown = f'write it as a string: `"{_dotted(arg.value)}"`' if isinstance(arg.value, Path) else None
        _refuse(findings, rule, 'takes patterns, which are strings like `"Files.*"`', arg, shown)
        return None
    tool, dot, method = value.partition(".")
    if not dot or not tool or not method or value != value.strip():
        example = f'`"{tool}.*"`' if tool and not dot else '`"Files.*"`'
        _refuse(findings, rule, "takes patterns of the form `Tool.method`", arg, f"write {example} for all methods")
        return None
    return value


def _read_patterns(policy: str, rule: Rule, findings: Findings) -> PolicyRule:
    if not rule.args:
        _refuse(findings, rule, "takes at least one pattern", rule, 'for example `"Files.*"`')
    return PolicyRule(policy, rule.name.text, _span(rule), patterns=_patterns(rule.args, rule, findings))


def _read_deny_args(policy: str, rule: Rule, findings: Findings) -> PolicyRule:
    positional = [arg for arg in rule.args if arg.name is None]
    named = [arg for arg in rule.args if arg.name is not None]
    if len(positional) != 1:
        at = positional[1] if positional else rule
        _refuse(findings, rule, "takes one pattern, then the arguments to deny by name", at, _DENY_ARGS)
    if not named:
        _refuse(findings, rule, "names no argument", rule, f"{_DENY_ARGS}; DenyTools denies a method as a whole")
    wanted: dict[str, str] = {}
    for arg in named:
        assert arg.name is not None
        if arg.name.text in wanted:
            findings.error("REPEATED_ARGUMENT", f"`{arg.name.text}` is given twice", arg.name)
        if isinstance(arg.value, Text | Number | Constant) and value_of(arg.value) is not UNKNOWN:
            wanted[arg.name.text] = to_text(value_of(arg.value))
        else:
            _refuse(findings, rule, "compares with strings, numbers, true or false", arg.value, None)
    return PolicyRule(
        policy,
        "DenyArgs",
        _span(rule),
        patterns=_patterns(positional[:1], rule, findings),
        args=tuple(wanted.items()),
    )


def _read_effects(policy: str, rule: Rule, findings: Findings) -> PolicyRule:
    if not rule.args:
        _refuse(findings, rule, f"takes at least one of {listed(EFFECTS)}", rule, None)
    for arg in rule.args:
        if _word(arg) not in EFFECTS:
            near = findings.near(_shown(arg), EFFECTS)
            _refuse(findings, rule, f"takes the words {listed(EFFECTS)}", arg, near)
    return PolicyRule(policy, "ApproveEffects", _span(rule), effects=tuple(_word(a) or "" for a in rule.args))


def _read_spend(policy: str, rule: Rule, findings: Findings) -> PolicyRule:
    value = rule.args[0].value if len(rule.args) == 1 else None
    if not isinstance(value, Number):
        _refuse(findings, rule, "takes one number of US dollars", rule.args[0] if rule.args else rule, _MAX_SPEND)
        return PolicyRule(policy, "MaxSpend", _span(rule))
    limit = nano_of(value.text)
    if limit <= 0:
        _refuse(findings, rule, "takes an amount above 0", value, _MAX_SPEND)
    return PolicyRule(policy, "MaxSpend", _span(rule), limit=limit, limit_text=dollars_text(value.text))


def _read_calls(policy: str, rule: Rule, findings: Findings) -> PolicyRule:
    limit = whole_of(rule.args[0].value, 0) if rule.args else None
    if limit is None:
        at = rule.args[0] if rule.args else rule
        _refuse(findings, rule, "takes a whole number of calls first", at, 'for example `MaxCalls(5, "Files.write")`')
    patterns = _patterns(rule.args[1:], rule, findings)
    text = rule.args[0].value.text if rule.args and isinstance(rule.args[0].value, Number) else ""
    return PolicyRule(policy, "MaxCalls", _span(rule), patterns=patterns, limit=limit or 0, limit_text=text)


def _read_redact(policy: str, rule: Rule, findings: Findings) -> PolicyRule:
    if not rule.args:
        _refuse(findings, rule, f"takes at least one of {listed(REDACTIONS)}, or a regular expression", rule, None)
    made: list[str] = []
    for arg in rule.args:
        value = value_of(arg.value)
        if isinstance(value, str):
            trouble = _regex_error(value)
            if trouble:
                _refuse(findings, rule, trouble, arg, None)
            made.append(f"regex:{value}")
        elif (word := _word(arg)) in REDACTIONS:
            made.append(word or "")
        else:
            near = findings.near(_shown(arg), REDACTIONS)
            _refuse(findings, rule, f"takes the words {listed(REDACTIONS)}, and regular expressions", arg, near)
    return PolicyRule(policy, "Redact", _span(rule), redactions=tuple(made))


def _regex_error(pattern: str) -> str | None:
    """What is wrong with a regular expression; tried with the engine that will run it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return f"cannot read this regular expression: {said}"
    if compiled.search("") is not None:
        return "would replace the empty text, which this regular expression matches"
    return None


_DENY_ARGS = 'for example `DenyArgs("Files.write", path: "*.env")`'
_MAX_SPEND = "for example `MaxSpend(0.50)`"
_READERS: dict[str, Callable[[str, Rule, Findings], PolicyRule]] = {
    "AllowTools": _read_patterns,
    "DenyTools": _read_patterns,
    "DenyArgs": _read_deny_args,
    "ApproveTools": _read_patterns,
    "ApproveEffects": _read_effects,
    "MaxSpend": _read_spend,
    "MaxCalls": _read_calls,
    "Redact": _read_redact,
}


def _refuse(findings: Findings, rule: Rule, what: str, at: Node, help: str | None) -> None:  # noqa: A002
    where = at.value if isinstance(at, Arg) else at
    if isinstance(where, Path) and where.root == "Env":
        findings.error("ENV_MISPLACED", "`Env` has no place in a policy", where, "write the value down")
    else:
        findings.error("BAD_RULE", f"{rule.name.text} {what}", where, help)


def _word(arg: Arg) -> str | None:
    value = arg.value
    return value.root if isinstance(value, Path) and not value.parts else None


def _shown(arg: Arg) -> str:
    value = value_of(arg.value)
    return value if isinstance(value, str) else _word(arg) or ""


def _dotted(path: Path) -> str:
    return ".".join(str(part) for part in (path.root, *path.parts))


def _span(rule: Rule) -> Span:
    return Span(rule.start, rule.end)
