"""Redact: what the named patterns find, and what they leave (tools.md §3)."""

from __future__ import annotations

import pytest

from halo_lang.boundary.call import Data, Message, ModelRequest, ToolUse
from halo_lang.check.check import check
from halo_lang.language.source import Source
from halo_lang.runtime.redact import redacted_request, redacted_use, redacted_value, redaction


def redacting(*rules: str):
    text = "".join(f"policy P{at} : Redact({rule})\n" for at, rule in enumerate(rules))
    program = check(Source("t.halo", text))
    assert program.ok, program.diagnostics
    made = redaction(tuple(program.policies.values()))
    assert made is not None
    return made


def test_without_a_rule_there_is_none() -> None:
    assert redaction(()) is None
    assert redaction(tuple(check(Source("t.halo", "policy P : MaxCalls(1)\n")).policies.values())) is None


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("to a.b+c@sub.example.co.uk.", "to [email]."),
        ("<o'neil@example.org>,x@y.de", "<[email]>,[email]"),
        ("a@b", "a@b"),
        ("@name and 3 @ 4.50", "@name and 3 @ 4.50"),
        ("mailto:x%40y@example.com?s=1", "mailto:[email]?s=1"),
        ('{"to":"x@y.org"}', '{"to":"[email]"}'),
        ("x@y.org" * 2, "[email]@y.org"),
    ],
)
def test_email(text: str, redacted: str) -> None:
    assert redacting("email")(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111111111111111",
        "378282246310005",
        "3782 822463 10005",
        "6304000000000000",
        "4222222222222",
        "6799990100000000019",
    ],
)
def test_a_card_is_found_whatever_numbers_stand_beside_it(text: str) -> None:
    redact = redacting("card")
    assert redact(text) == "[card]"
    assert redact(f"pay {text}, now") == "pay [card], now"
    assert redact(f"{text} 7") == "[card] 7"
    assert redact(f"No. 12 {text}") == "No. 12 [card]"
    assert redact(f"{text} 12/28 {text}") == "[card] 12/28 [card]"
    assert redact(f"{text} {text}") == "[card] [card]"
    assert redact(f"x{text}y") == "x[card]y"


@pytest.mark.parametrize(
    "text", ["4111 1111 1111 1112", "1234567890123", "411111111111", "0" * 9 + "1" * 40, "2026-11-30 13:00:00.000000"]
)
def test_what_is_no_card(text: str) -> None:
    assert redacting("card")(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "555-123-4567",
        "(555) 123-4567",
        "+1 555 123 4567",
        "+49 30 1234567",
        "+49 (0)30 1234567",
        "+33 6 12 34 56 78",
        "1-800-555-0199",
        "555.123.4567",
        "0301234567",
    ],
)
def test_a_phone_number_is_found_whole(text: str) -> None:
    redact = redacting("phone")
    assert redact(f"call {text}, now") == "call [phone], now"
    assert redact(f'{{"tel":"{text}"}}') == '{"tel":"[phone]"}'
    assert redact(f'"line\\n{text}"') == '"line\\n[phone]"'
    assert not any(c.isdigit() for c in redact(f"{text} {text} {text}"))


@pytest.mark.parametrize(
    "text",
    ["2026-11-30", "2026-11-30 13:05", "2026-11-30T13:05:00Z", "10.0.1.255", "12 34", "a1234567", "1234567b", "1" * 16],
)
def test_what_is_no_phone_number(text: str) -> None:
    assert redacting("phone")(f"at {text}.") == f"at {text}."


@pytest.mark.parametrize(
    "text",
    [
        "sk-proj-" + "a1" * 12,
        "ghp_" + "A1" * 18,
        "github_pat_" + "A1" * 20,
        "xoxb-123456789012-abc",
        "AKIA" + "A1" * 8,
        "AIza" + "x" * 35,
        "glpat-" + "x" * 20,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nabc",
    ],
)
def test_key(text: str) -> None:
    assert redacting("key")(f"it is {text}") == "it is [key]"


@pytest.mark.parametrize("text", ["sk-short", "a risk-free-walk", "the key is under the mat"])
def test_what_is_no_key(text: str) -> None:
    assert redacting("key")(text) == text


def test_an_expression_of_the_file() -> None:
    assert redacting(r'"P-\\d+"')("see P-123 and P-x") == "see [redacted] and P-x"


def test_several_rules_and_policies_all_hold() -> None:
    redact = redacting('email, "secret"', "card", "email")
    assert redact("a@b.org has secret 4111111111111111") == "[email] has [redacted] [card]"


def test_of_phone_and_card_nothing_of_either_is_left() -> None:
    for rules in (("phone, card",), ("card, phone",)):
        assert not any(c.isdigit() for c in redacting(*rules)("4111 1111 1111 1111 and +49 30 1234567"))


def test_every_text_of_a_value_is_redacted() -> None:
    redact = redacting("email, card")
    value = {"a@b.org": [1, True, None, "c@d.org", {"k": "x"}], "n": 4111111111111111, "f": 1.5}
    assert redacted_value(value, redact) == {"[email]": [1, True, None, "[email]", {"k": "x"}], "n": "[card]", "f": 1.5}


def test_every_text_of_a_request_is_redacted() -> None:
    messages = (
        Message("user", ("Ask a@b.org.", Data("c@d.org", "e@f.org"))),
        Message("assistant", ("g@h.org",), (ToolUse("1", "T_m", {"p": ["i@j.org"]}, '{"p":["i@j.org"]}'),)),
        Message("tool", (Data("k@l.org"),), (), "1", True),
    )
    request = ModelRequest("local/m", "m@n.org", messages)
    assert "@" not in repr(redacted_request(request, redacting("email")))


def test_a_use_without_json_keeps_none() -> None:
    assert redacted_use(ToolUse("1", "n", None, "a@b.org"), redacting("email")) == ToolUse("1", "n", None, "[email]")


@pytest.mark.parametrize("text", ["1" * 200_000, "1 " * 100_000, "a@" * 100_000, "-----BEGIN PRIVATE KEY-----" * 5_000])
def test_a_hostile_text_takes_no_long_time(text: str) -> None:
    redacting("email, phone, card, key", r'"(a+)+$"')(text)  # would not end, did it take more than linear time
