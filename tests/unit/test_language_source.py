"""Bytes become a source, or errors that name their place (language.md §1)."""

from __future__ import annotations

import pytest

from halo_lang.language.diagnostics import render
from halo_lang.language.source import MAX_BYTES, Source, Span, decode


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    source, found = decode("x.halo", b"\xef\xbb\xbfagent")
    assert source.text == "agent"
    assert found == ()


def test_bytes_that_are_not_utf_8_are_each_named_with_their_place() -> None:
    source, found = decode("x.halo", b"ok \xc3\xa9\n  caf\xe9\xff x \xf0\x9f\n")
    assert [(d.code, source.position(d.span.start)) for d in found] == [("NOT_UTF8", (2, 6)), ("NOT_UTF8", (2, 11))]
    assert "0xE9 0xFF" in found[0].message
    assert source.text == "ok é\n  caf\ufffd\ufffd x \ufffd\ufffd\n"
    assert source.damaged


@pytest.mark.parametrize("data", [b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\x80"])
def test_what_only_looks_like_utf_8_is_refused(data: bytes) -> None:
    assert [d.code for d in decode("x.halo", data)[1]] == ["NOT_UTF8"]


def test_a_replacement_character_of_the_file_itself_is_text() -> None:
    source, found = decode("x.halo", "\ufffd".encode())
    assert found == ()
    assert not source.damaged


def test_utf_16_is_one_error() -> None:
    source, found = decode("x.halo", "agent A [a/b]".encode("utf-16"))
    assert [d.code for d in found] == ["NOT_UTF8"]
    assert "UTF-16" in found[0].message
    assert source.text == ""


def test_errors_are_bounded() -> None:
    assert len(decode("x.halo", b"\xff " * 10_000)[1]) == 100


def test_a_file_may_have_16_mib() -> None:
    assert decode("x.halo", b" " * MAX_BYTES)[1] == ()
    source, found = decode("x.halo", b" " * (MAX_BYTES + 1))
    assert [(d.code, d.span) for d in found] == [("FILE_TOO_LARGE", Span(0, 0))]
    assert source.text == ""


def test_places() -> None:
    source = Source("x.halo", "ab\r\n\ncd")
    assert [source.position(at) for at in (0, 2, 4, 5, 7, 99)] == [(1, 1), (1, 3), (2, 1), (3, 1), (3, 3), (3, 3)]
    assert [source.line(n) for n in (1, 2, 3)] == ["ab", "", "cd"]
    assert source.slice(Span(5, 6)) == "c"


def test_an_error_at_the_end_of_a_line_and_of_the_file_is_shown() -> None:
    _, found = decode("x.halo", b"\xe9")
    assert render(found[0], Source("x.halo", "\ufffd")).splitlines()[0].startswith("x.halo:1:1: error NOT_UTF8")
