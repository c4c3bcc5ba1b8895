"""Masks: secrets are in nothing that a run, a log or a display sees (runs.md §3)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halo_lang.boundary.call import Answer, Failure, ToolUse, Usage
from halo_lang.doors.mask import Mask
from halo_lang.language.values import Value

TOKEN = "xoxb-1234567890"
MASK = Mask({"TOKEN": TOKEN, "PASS": 'pa"ss\\wörd\n', "LONG": TOKEN + "-and-more", "SHORT": "short"})


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (TOKEN, "[Env.TOKEN]"),
        (f"a{TOKEN}b{TOKEN}", "a[Env.TOKEN]b[Env.TOKEN]"),
        (f"see {TOKEN}-and-more.", "see [Env.LONG]."),
        (f"see {TOKEN}-and", "see [Env.TOKEN]-and"),
        ('pa"ss\\wörd', "[Env.PASS]"),
        ('is pa"ss\\wörd\n.', "is [Env.PASS]."),
        ("short and xoxb-123456789", "short and xoxb-123456789"),
        ("", ""),
    ],
)
def test_a_secret_is_replaced_inside_longer_text(text: str, masked: str) -> None:
    assert MASK.text(text) == masked


@pytest.mark.parametrize("ascii_", [True, False])
@pytest.mark.parametrize("secret", ['pa"ss\\wörd\n', 'pa"ss\\wörd', TOKEN])
def test_a_secret_is_replaced_where_json_writes_it(ascii_: bool, secret: str) -> None:
    text = json.dumps({"header": f"Bearer {secret}!"}, ensure_ascii=ascii_)
    shown = MASK.text(text)
    assert "rd" not in shown.replace("Bearer", "")
    assert "[Env." in shown
    assert json.loads(shown)["header"].startswith("Bearer [Env.")


def test_values_shorter_than_eight_characters_are_no_secrets() -> None:
    assert Mask({"A": "1234567", "B": "", "C": " 12345 "}).text("1234567 12345") == "1234567 12345"
    assert Mask({"A": "12345678"}).text("012345678") == "0[Env.A]"


def test_a_secret_of_two_variables_has_the_first_ones_name() -> None:
    assert Mask({"A": TOKEN, "B": TOKEN}).text(TOKEN) == "[Env.A]"


def test_everything_of_an_answer_is_masked() -> None:
    use = ToolUse("c1", f"n{TOKEN}", {TOKEN: [TOKEN, 1, None]}, f'{{"a":"{TOKEN}"}}')
    answer = Answer(
        {TOKEN: [f"x{TOKEN}", {"k": TOKEN}]}, Failure("TOOL_ERROR", f"no {TOKEN}"), (use,), "m", Usage(1, 2)
    )
    masked = MASK.answer(answer)
    assert TOKEN not in repr(masked)
    assert masked.value == {"[Env.TOKEN]": ["x[Env.TOKEN]", {"k": "[Env.TOKEN]"}]}
    assert (masked.error.code, masked.error.message) == ("TOOL_ERROR", "no [Env.TOKEN]")
    assert (masked.model, masked.usage) == ("m", Usage(1, 2))


PIN = Mask({"PIN": "12345678", "PHONE": "+4912345678901", "LONG": "98765432109876543210", "SUM": "12345678.50"})


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (12345678, "[Env.PIN]"),
        (12345678.0, "[Env.PIN]"),
        ({"n": [12345678], "12345678": True}, {"n": ["[Env.PIN]"], "[Env.PIN]": True}),
        (9912345678, "99[Env.PIN]"),
        (0.12345678, "0.[Env.PIN]"),
        (-12345678, "-[Env.PIN]"),
        (4912345678901, "[Env.PHONE]"),
        (98765432109876543210, "[Env.LONG]"),
        (float("98765432109876543210"), "[Env.LONG]"),
        (12345678.5, "[Env.SUM]"),
        (1234567, 1234567),
        (True, True),
        pytest.param(10**5000, 10**5000, id="long"),
    ],
)
def test_a_secret_of_digits_does_not_come_back_as_a_number(value: Value, masked: Value) -> None:
    assert PIN.value(value) == masked
    assert type(PIN.value(value)) is type(masked)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("not `http://127.0.0.1:notaport-top`", "not `http://[Env.URL]`"),
        ("begins with https:// or http://", "begins with https:// or http://"),
        ("no folder (/work/http:/127.0.0.1:nota…-topsecret)", "no folder (/work/http:/[Env.URL]…[Env.URL])"),
        ("/127.0.0. and 127.0.0", "/[Env.URL] and 127.0.0"),
        ("", ""),
    ],
)
def test_no_part_of_a_secret_is_in_a_message_about_settings(text: str, masked: str) -> None:
    shown = Mask({"URL": "http://127.0.0.1:notaport-topsecret", "SHORT": "folder"}).without_parts(text)
    assert shown == masked


def test_without_secrets_nothing_is_touched() -> None:
    answer = Answer([TOKEN])
    assert Mask({}).answer(answer) is answer
    assert Mask({"A": "short"}).text("short") == "short"


def streamed(mask: Mask, pieces: list[str]) -> str:
    shown: list[str] = []
    watch = mask.watching(shown.append)
    for piece in pieces:
        watch(piece)
    return "".join(shown)


def test_a_secret_split_over_tokens_is_masked() -> None:
    text = f"before {TOKEN} after" + "." * 40
    for at in range(len(text)):
        shown = streamed(MASK, [text[:at], text[at:]])
        assert shown.startswith("before [Env.TOKEN] after")
    assert streamed(MASK, list(text)).startswith("before [Env.TOKEN] after")


def test_a_longer_secret_is_not_shown_in_part_by_the_shorter_one_in_it() -> None:
    text = f"{TOKEN}-and-more" + "." * 40
    for size in (1, 2, 7, 15, 16):
        shown = streamed(MASK, [text[at : at + size] for at in range(0, len(text), size)])
        assert shown.startswith("[Env.LONG]...")


def test_without_secrets_tokens_go_straight_on() -> None:
    shown: list[str] = []
    Mask({}).watching(shown.append)("a")
    assert shown == ["a"]


SECRETS = st.lists(st.text("ab", min_size=8, max_size=12), min_size=1, max_size=3)


@given(SECRETS, st.text("ab", max_size=60), st.data())
def test_however_it_is_split_what_is_shown_is_the_beginning_of_the_masked_text(
    secrets: list[str], text: str, data: st.DataObject
) -> None:
    mask = Mask({f"S{at}": secret for at, secret in enumerate(secrets)})
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert mask.text(text).startswith(streamed(mask, pieces))
    assert not any(secret in mask.text(text) for secret in secrets)
