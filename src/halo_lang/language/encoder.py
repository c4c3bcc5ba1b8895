"""Compact JSON, quickly: the function that turns values into text.

Owns the one way in which an encoder is made. What values are turned, and when, say `values.py`, and `recording.py` and
`question.py` of `boundary`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def quoted(text: str) -> str:
    """A text as JSON."""
    global _quote
    if _quote is None:
        from json.encoder import encode_basestring

        _quote = encode_basestring
    return _quote(text)


_quote: Callable[[str], str] | None = None


def new_encoder(*, sort_keys: bool = False, allow_nan: bool = True) -> Callable[[object], str]:
    """A function that gives a value as JSON without blanks, text unescaped where JSON allows it. Made once and kept by
    whoever uses it. It raises `RecursionError` for a value that nests too deep or holds itself and, unless `allow_nan`,
    `ValueError` for NaN and infinities.

    It is `JSONEncoder.encode` in all that it gives (tests/unit/test_encoder.py); but that makes an encoder for each
    value, which takes as long again as a short line of a recording.
    """
    from json import JSONEncoder, encoder

    plain = JSONEncoder(
        ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys, allow_nan=allow_nan, check_circular=False
    )
    parts: Any = encoder
    if parts.c_make_encoder is None:  # a Python without the C part of its library
        return plain.encode
    pieces = parts.c_make_encoder(
        None, plain.default, parts.encode_basestring, None, ":", ",", sort_keys, False, allow_nan
    )
    return lambda value: "".join(pieces(value, 0))
