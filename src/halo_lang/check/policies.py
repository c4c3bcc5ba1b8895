"""What policies say of a call: pure functions that the plan, the checker and the runtime's permit ask alike.

Owns the meaning of patterns and of the rules on tools (tools.md §3). Never asks a person, counts nothing, makes no
call. Every match takes time linear in pattern and text, whatever they are. Nothing here reads the syntax tree; the
rules themselves are made by `rules.py`.
"""

from __future__ import annotations

from ..catalog.describe import EXTERNAL
from ..language.record import Record
from ..language.values import to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..language.values import Value
    from .program import Policy, PolicyRule, Tool

    Shell = Callable[[str], tuple[str, ...] | None]


class Decision(Record):
    """What some policies together say of one method.

    `hidden_by` names the policy because of which the method does not exist (None where `allowed`); `approval` the
    policies that want a person, each once. `deny_args` and `max_calls` are the rules to apply to the call itself.
    """

    allowed: bool
    hidden_by: str | None
    approval: tuple[str, ...]
    deny_args: tuple[PolicyRule, ...]
    max_calls: tuple[PolicyRule, ...]


def decide(policies: tuple[Policy, ...], target: str, effect: str | None) -> Decision:
    """What `policies` say of the method `target` (`Files.read`) with an effect; None counts as external.

    All rules hold together: every AllowTools must match, no DenyTools may.
    """
    hidden_by: str | None = None
    approval: dict[str, None] = {}
    deny_args: list[PolicyRule] = []
    max_calls: list[PolicyRule] = []
    for policy in policies:
        for rule in policy.rules:
            kind = rule.kind
            if kind == "ApproveEffects":
                if (effect or EXTERNAL) in rule.effects:
                    approval[policy.name] = None
                continue
            matched = any(matches(pattern, target) for pattern in rule.patterns)
            if kind == "AllowTools" or kind == "DenyTools":
                if hidden_by is None and matched is (kind == "DenyTools"):
                    hidden_by = policy.name
            elif kind == "ApproveTools" and matched:
                approval[policy.name] = None
            elif kind == "DenyArgs" and matched:
                deny_args.append(rule)
            elif kind == "MaxCalls" and (matched or not rule.patterns):
                max_calls.append(rule)
    return Decision(hidden_by is None, hidden_by, tuple(approval), tuple(deny_args), tuple(max_calls))


def may_allow(policies: tuple[Policy, ...], tool: str) -> bool:
    """Whether some method of a tool that does not describe its methods may be left by `policies`.

    False only where none can be: an AllowTools has no pattern for the tool, or a DenyTools has all of its methods.
    """
    for policy in policies:
        for rule in policy.rules:
            of_tool = [m for t, _, m in (p.partition(".") for p in rule.patterns) if _glob(t, tool)]
            if (rule.kind == "AllowTools" and not of_tool) or (
                rule.kind == "DenyTools" and not all(method.strip("*") for method in of_tool)
            ):
                return False
    return True


def matches(pattern: str, target: str) -> bool:
    """Whether a pattern `Tool.method` matches a method, by case: `*` is any run of characters but the dot.

    A method's name may itself hold dots where a server chose it: `*` alone for the method (or `**`, which is the same)
    is any name.
    """
    tool, dot, method = pattern.partition(".")
    target_tool, target_dot, target_method = target.partition(".")
    if dot != target_dot or not _glob(tool, target_tool):
        return False
    if not method.strip("*"):
        return True
    wanted, found = method.split("."), target_method.split(".")
    return len(wanted) == len(found) and all(map(_glob, wanted, found))


def denied_by(
    rules: tuple[PolicyRule, ...], tool: Tool, args: Mapping[str, Value], shell: Shell | None = None
) -> PolicyRule | None:
    """The first DenyArgs rule that refuses a call of `tool` with `args`, or None. Only pass rules that concern it.

    A value is compared as text and as a path made plain, without case; of a list or an object every text in it too.
    The `command` of a Bash tool is tried as a line and as each simple command that `shell` finds in it (None: it
    cannot be taken apart, and counts as matching); `shell` is `check.shell.simple_commands` unless given.
    """
    for rule in rules:
        if rule.args and all(_refuses(name, pattern, tool, args, shell) for name, pattern in rule.args):
            return rule
    return None


def paths_to_deny(rules: tuple[PolicyRule, ...], args: Mapping[str, Value]) -> tuple[str, ...]:
    """The patterns for `path` that a tool is to try on the path that it really opens, links followed.

    They are those of the rules whose other arguments match `args` already. Match them by `denies_path`.
    """
    found: dict[str, None] = {}
    for rule in rules:
        others = [(name, pattern) for name, pattern in rule.args if name != "path"]
        if all(name in args and denies_value(pattern, args[name]) for name, pattern in others):
            found.update((pattern, None) for name, pattern in rule.args if name == "path")
    return tuple(found)


def denies_path(patterns: tuple[str, ...], path: str) -> bool:
    """Whether one of the patterns matches a path."""
    return any(denies_value(pattern, path) for pattern in patterns)


def denies_value(pattern: str, value: Value) -> bool:
    """Whether a value pattern of DenyArgs matches a value: `*` is any run of characters."""
    wanted = _spellings(pattern)
    return any(_glob(p, text) for found in _texts(value) for text in _spellings(found) for p in wanted)


def plain_path(path: str) -> str:
    """A path made plain as text: without `.`, doubled slashes, a slash at the end, and `..` where a name precedes."""
    made: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if made and made[-1] != "..":
                made.pop()
            elif not path.startswith("/"):
                made.append(part)
        elif part and part != ".":
            made.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(made)


def _refuses(name: str, pattern: str, tool: Tool, args: Mapping[str, Value], shell: Shell | None) -> bool:
    if name not in args:
        return False
    value = args[name]
    if name != "command" or tool.provider != "Bash" or not isinstance(value, str):
        return denies_value(pattern, value)
    if shell is None:
        from .shell import simple_commands

        shell = simple_commands
    lines = [value]
    inserted = args.get("values")
    if isinstance(inserted, dict) and inserted:
        lines.append(_filled(value, inserted))
    for line in lines:
        commands = shell(line)
        if commands is None:
            return True
        for command in (line, *commands):
            if denies_value(pattern, command) or denies_value(pattern, _plain_words(command)):
                return True
    return False


def _filled(line: str, values: Mapping[str, Value]) -> str:
    """A command with its values in the places of the variables that stand for them (`check.shell.ShellCommand`), so
    that a pattern meets what bash will run. A variable always stands in double quotes, or in a here-document."""
    import re

    names = "|".join(re.escape(name) for name in values)

    def text_of(found: re.Match[str]) -> str:
        return re.sub(r'[\\"$`]', r"\\\g<0>", to_text(values[found[1] or found[2]]))

    return re.sub(rf"\$(?:\{{({names})\}}|({names})(?![A-Za-z0-9_]))", text_of, line)


def _plain_words(command: str) -> str:
    return " ".join(plain_path(word) or word for word in command.split())


def _texts(value: Value) -> Iterator[str]:
    """A value's text, and every text and number inside it."""
    yield to_text(value)
    level = [value]
    while level:
        inner = level.pop()
        if isinstance(inner, list | dict):
            for item in inner.values() if isinstance(inner, dict) else inner:
                if isinstance(item, list | dict):
                    level.append(item)
                else:
                    yield to_text(item)


def _spellings(text: str) -> tuple[str, ...]:
    """A text without case, as it is and as plain paths, backslashes read as slashes too."""
    if not text.isascii():
        from unicodedata import normalize

        text = normalize("NFC", text)
    text = text.casefold()
    plain = plain_path(text)
    found = {text: None, plain: None}
    if "\\" in text:
        found[plain_path(text.replace("\\", "/"))] = None
    return tuple(found)


def _glob(pattern: str, text: str) -> bool:
    """Whether `pattern`, in which `*` is any run of characters, matches all of `text`.

    The pieces between the stars are looked for from left to right, each where it first stands: that is enough, for
    whatever comes after an earlier place comes after a later one no sooner.
    """
    if "*" not in pattern:
        return pattern == text
    first, *pieces, last = pattern.split("*")
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in pieces:
        if piece:
            at = text.find(piece, at, end)
            if at < 0:
                return False
            at += len(piece)
    return True
