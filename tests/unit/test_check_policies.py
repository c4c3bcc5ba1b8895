"""What policies say of a call (tools.md §3)."""

from __future__ import annotations

import pytest

from halo_lang.catalog.describe import EXTERNAL, READ, WRITE
from halo_lang.check.policies import (
    decide,
    denied_by,
    denies_path,
    denies_value,
    matches,
    paths_to_deny,
    plain_path,
)
from halo_lang.check.program import Policy, PolicyRule, Tool
from halo_lang.language.source import Span

AT = Span(0, 0)


def rule(kind: str, *patterns: str, **more: object) -> PolicyRule:
    return PolicyRule("P", kind, AT, patterns=patterns, **more)  # type: ignore[arg-type]


def policy(name: str, *rules: PolicyRule) -> Policy:
    return Policy(name, rules, AT)


FILES = Tool("Files", "tool", "Workspace", {}, None, AT)
SHELL = Tool("Shell", "tool", "Bash", {}, None, AT)


@pytest.mark.parametrize(
    ("pattern", "target", "expected"),
    [
        ("Files.read", "Files.read", True),
        ("Files.*", "Files.read", True),
        ("*.read", "Files.read", True),
        ("Files.r*d", "Files.read", True),
        ("Files.w*", "Files.read", False),
        ("files.read", "Files.read", False),
        ("Files.rea", "Files.read", False),
        ("Files.read*", "Files.read", True),
        ("File*", "Files.read", False),
        ("*", "Files.read", False),
        ("*.*", "Files.read", True),
        ("Web.get*", "Web.get.all", False),
        ("Web.*", "Web.get.all", True),
        ("Web.*.all", "Web.get.all", True),
        ("Files.re?d", "Files.read", False),
        ("Files.[r]ead", "Files.read", False),
        ("Files.a*a", "Files.a", False),
    ],
)
def test_a_star_in_a_pattern_stops_at_the_dot(pattern: str, target: str, expected: bool) -> None:
    assert matches(pattern, target) is expected


def test_without_policies_everything_is_allowed_and_nobody_is_asked() -> None:
    decision = decide((), "Files.write", WRITE)
    assert decision.allowed
    assert (decision.hidden_by, decision.approval, decision.deny_args, decision.max_calls) == (None, (), (), ())


def test_every_allow_tools_must_allow() -> None:
    both = (policy("A", rule("AllowTools", "Files.*")), policy("B", rule("AllowTools", "Files.read", "Files.list")))
    assert decide(both, "Files.read", READ).allowed
    hidden = decide(both, "Files.write", WRITE)
    assert (hidden.allowed, hidden.hidden_by) == (False, "B")
    assert decide(both, "Chat.post", EXTERNAL).hidden_by == "A"


def test_two_allow_tools_of_one_policy_must_both_allow() -> None:
    one = (policy("A", rule("AllowTools", "Files.*"), rule("AllowTools", "*.read")),)
    assert decide(one, "Files.read", READ).allowed
    assert not decide(one, "Files.write", WRITE).allowed


def test_deny_tools_wins_over_whatever_is_allowed() -> None:
    policies = (policy("A", rule("DenyTools", "*.delete")), policy("B", rule("AllowTools", "Files.*")))
    assert decide(policies, "Files.delete", WRITE).hidden_by == "A"
    assert decide(policies, "Files.read", READ).allowed


def test_an_effect_that_is_not_described_counts_as_external() -> None:
    policies = (policy("A", rule("ApproveEffects", effects=("external",))),)
    assert decide(policies, "Web.get", None).approval == ("A",)
    assert decide(policies, "Web.get", READ).approval == ()
    assert decide((policy("A", rule("ApproveEffects", effects=("write",))),), "Web.get", None).approval == ()


def test_each_policy_that_wants_a_person_is_named_once() -> None:
    policies = (
        policy("A", rule("ApproveTools", "Files.write"), rule("ApproveEffects", effects=("write",))),
        policy("B", rule("ApproveTools", "Files.w*")),
    )
    assert decide(policies, "Files.write", WRITE).approval == ("A", "B")


def test_rules_that_concern_the_call_are_handed_out() -> None:
    deny = rule("DenyArgs", "Files.write", args=(("path", "*.env"),))
    every, some, other = (
        rule("MaxCalls", limit=3),
        rule("MaxCalls", "Files.*", limit=2),
        rule("MaxCalls", "Chat.*", limit=1),
    )
    decision = decide((policy("A", deny, every, some, other),), "Files.write", WRITE)
    assert decision.deny_args == (deny,)
    assert decision.max_calls == (every, some)
    assert decide((policy("A", deny, every, some, other),), "Files.read", READ).deny_args == ()


def denied(args: dict[str, object], *patterns: tuple[str, str]) -> bool:
    return denied_by((rule("DenyArgs", "Files.write", args=patterns),), FILES, args) is not None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "path",
    [
        "prod.env", "a/b/prod.env", "./prod.env", "x/../prod.env", "PROD.ENV", "prod.env/", "prod.env/.", "a//prod.env",
        "..\\prod.env", "a\\..\\prod.env", ".env",
    ],
)  # fmt: skip
def test_a_path_is_denied_in_whatever_spelling(path: str) -> None:
    assert denied({"path": path}, ("path", "*.env"))


@pytest.mark.parametrize("path", ["secrets/a", "./secrets/a", "x/../secrets/a", "Secrets//a", "secrets/./b/../a"])
def test_a_pattern_with_a_folder_too(path: str) -> None:
    assert denied({"path": path}, ("path", "./secrets/*"))


@pytest.mark.parametrize("path", ["prod.envs", "env", "prod.env.md", ""])
def test_other_paths_are_not_denied(path: str) -> None:
    assert not denied({"path": path}, ("path", "*.env"))


def test_accents_are_compared_however_they_are_composed() -> None:
    assert denied({"path": "cafe\u0301.env"}, ("path", "caf\u00e9*"))


def test_all_arguments_of_a_rule_must_match() -> None:
    both = (("path", "*.md"), ("content", "*secret*"))
    assert denied({"path": "a.md", "content": "a\nSecret\nb"}, *both)
    assert not denied({"path": "a.md", "content": "fine"}, *both)
    assert not denied({"path": "a.md"}, *both)
    assert not denied({}, *both)


def test_a_rule_without_arguments_denies_nothing() -> None:
    assert not denied({"path": "a"})


@pytest.mark.parametrize(
    ("value", "pattern"),
    [(5, "5"), (True, "true"), (None, ""), ([1, "a.env"], "*.env"), ({"k": {"p": ["x/./b.env"]}}, "x/b.env")],
)  # fmt: skip
def test_values_are_compared_as_text_and_texts_inside_them_too(value: object, pattern: str) -> None:
    assert denies_value(pattern, value)  # type: ignore[arg-type]


def shell(line: str) -> tuple[str, ...] | None:
    return {"broken '": None, "cd x && cat './.env'": ("cd x", "cat ./.env")}.get(line, (line,))


@pytest.mark.parametrize(
    ("command", "pattern", "expected"),
    [
        ("rm -rf x", "rm *", True),
        ("ls", "rm *", False),
        ("broken '", "never", True),
        ("cd x && cat './.env'", "cat .env", True),
        ("cd x && cat './.env'", "cd *", True),
        ("cd x && cat './.env'", "rm *", False),
    ],
)
def test_a_shell_command_is_tried_as_a_line_and_in_its_parts(command: str, pattern: str, expected: bool) -> None:
    rules = (rule("DenyArgs", "Shell.run", args=(("command", pattern),)),)
    assert (denied_by(rules, SHELL, {"command": command}, shell) is not None) is expected


@pytest.mark.parametrize(
    ("command", "values", "pattern", "expected"),
    [
        ('cat "$HALO_V1"', {"HALO_V1": "prod.env"}, "cat *.env", True),
        ('cat "$HALO_V1"', {"HALO_V1": "a.md"}, "cat *.env", False),
        ('cat "x/${HALO_V1}.env"', {"HALO_V1": "prod"}, "cat x/prod.env", True),
        ("cat 'x/'\"$HALO_V1\"'.env'", {"HALO_V1": "prod"}, "cat x/prod.env", True),
        (
            'echo ok && cat "$HALO_V1" "$HALO_V2"',
            {"HALO_V1": "it's `a` $b \\", "HALO_V2": "prod.env"},
            "cat *.env",
            True,
        ),
        ('echo "$HALO_V1"', {"HALO_V1": '"; rm x'}, "rm *", False),
        ('"$HALO_V1" -c "rm x"', {"HALO_V1": "sh"}, "rm *", True),
        ('cat "$HALO_V1"', {"HALO_V1": "${HALO_V2}", "HALO_V2": "prod.env"}, "cat prod.env", False),
        ('cat "$HALO_V10"', {"HALO_V1": "a", "HALO_V10": "prod.env"}, "cat *.env", True),
    ],
)
def test_inserted_values_are_seen_in_their_places(
    command: str, values: dict[str, str], pattern: str, expected: bool
) -> None:
    rules = (rule("DenyArgs", "Shell.run", args=(("command", pattern),)),)
    assert (denied_by(rules, SHELL, {"command": command, "values": values}) is not None) is expected  # type: ignore[dict-item]


def test_the_command_of_another_tool_is_no_shell_command() -> None:
    rules = (rule("DenyArgs", "Files.write", args=(("command", "never"),)),)
    assert denied_by(rules, FILES, {"command": "broken '"}, shell) is None


def test_paths_to_try_on_what_is_really_opened() -> None:
    rules = (
        rule("DenyArgs", "Files.write", args=(("path", "*.env"),)),
        rule("DenyArgs", "Files.write", args=(("path", "a/*"), ("content", "x*"))),
        rule("DenyArgs", "Files.write", args=(("path", "b/*"), ("content", "y*"))),
    )
    patterns = paths_to_deny(rules, {"path": "link", "content": "xx"})
    assert patterns == ("*.env", "a/*")
    assert denies_path(patterns, "real/prod.env")
    assert not denies_path(patterns, "b/c")


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("a/b", "a/b"), ("./a//b/", "a/b"), ("a/../b", "b"), ("../a", "../a"), ("a/../../b", "../b"), ("/../a", "/a"),
        ("/", "/"), (".", ""), ("", ""), ("a/./b/..", "a"),
    ],
)  # fmt: skip
def test_paths_made_plain(path: str, plain: str) -> None:
    assert plain_path(path) == plain


def test_hostile_patterns_and_values_end() -> None:
    assert not denies_value("*a" * 20_000 + "b", "a" * 100_000)
    assert not matches("F." + "*a" * 20_000 + "b", "F." + "a" * 100_000)
    assert denies_value("*" * 100_000, "x")
