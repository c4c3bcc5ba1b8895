"""Redact: replaces what policies say must not reach a model or come from one (tools.md §3).

Owns the patterns for `email`, `phone`, `card` and `key`, and the replacing. Expressions run in linear time whatever
the text (RE2), so neither a policy nor a hostile text can stall a run. Pure.
"""

from __future__ import annotations

import re

from ..boundary.call import Answer, Data, Failure, Message, ModelRequest, ToolUse
from ..language.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from ..check.program import Policy
    from ..language.values import Value

    Redaction: TypeAlias = Callable[[str], str]

PATTERNS = {
    "email": r"[A-Za-z0-9._%+'-]+@[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}",
    "phone": r"(?:\+ ?\(?|\()?\d(?:[ ().-]{0,2}\d)+",
    "card": r"\d(?:[ -]?\d){12,}",
    "key": (
        r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
        r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}"
        r"|glpat-[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"
    ),
}
"""Where two could match the same text the one that stands first in a policy does. Phone numbers and cards are looked
for in runs of digits: what in them is one, `_phones` and `_cards` say."""


def redaction(policies: tuple[Policy, ...]) -> Redaction | None:
    """The function that replaces what all Redact rules of some policies match, or None if there is no such rule."""
    kinds = [kind for policy in policies for rule in policy.rules for kind in rule.redactions]
    if not kinds:
        return None
    replacements = [_replacement(kind) for kind in dict.fromkeys(kinds)]

    def redact(text: str) -> str:
        for replaced in replacements:
            text = replaced(text)
        return text

    return redact


def redacted_value(value: Value, redact: Redaction) -> Value:
    """A value with every text in it redacted, the keys of objects too; a number that is matched becomes a text."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value)
        redacted = redact(text)
        return value if redacted == text else redacted
    if isinstance(value, list):
        return [redacted_value(item, redact) for item in value]
    if isinstance(value, dict):
        return {redact(key): redacted_value(inner, redact) for key, inner in value.items()}
    return value


def redacted_answer(answer: Answer, redact: Redaction) -> Answer:
    """An answer that is only shown, redacted."""
    error = answer.error
    return replace(
        answer,
        value=redacted_value(answer.value, redact),
        error=None if error is None else Failure(error.code, redact(error.message)),
        tool_uses=tuple(redacted_use(use, redact) for use in answer.tool_uses),
    )


def redacted_request(request: ModelRequest, redact: Redaction) -> ModelRequest:
    """A request with all that is sent redacted."""
    return replace(
        request,
        system=redact(request.system),
        messages=tuple(_message(message, redact) for message in request.messages),
    )


def redacted_use(use: ToolUse, redact: Redaction) -> ToolUse:
    """A call that a model asks for, its arguments redacted."""
    args = None if use.args is None else redacted_value(use.args, redact)
    return ToolUse(use.id, use.name, args, redact(use.raw))  # type: ignore[arg-type]


def _message(message: Message, redact: Redaction) -> Message:
    parts = tuple(
        Data(redact(part.text), redact(part.label) if part.label else None) if isinstance(part, Data) else redact(part)
        for part in message.parts
    )
    return replace(message, parts=parts, tool_uses=tuple(redacted_use(use, redact) for use in message.tool_uses))


def _replacement(kind: str) -> Redaction:
    import re2

    if kind.startswith("regex:"):
        own = re2.compile(kind[len("regex:") :])
        return lambda text: own.sub("[redacted]", text)
    pattern = re2.compile(PATTERNS[kind])
    mark = f"[{kind}]"
    if kind == "card":
        return lambda text: pattern.sub(lambda run: _cards(run[0], mark), text)
    if kind == "phone":
        return lambda text: pattern.sub(lambda run: _phones(run, mark), text)
    return lambda text: pattern.sub(mark, text)


def _cards(run: str, mark: str) -> str:
    """A run of digits with the cards in it replaced: whole groups of it with 13 to 19 digits together, the last of
    which is the check digit (ISO/IEC 7812)."""
    groups, separators = re.split("[ -]", run), [*re.findall("[ -]", run), ""]
    made, at = [], 0
    while at < len(groups):
        end = _end_of_card(groups, at)
        made.append(mark if end else groups[at])
        at = end or at + 1
        made.append(separators[at - 1])
    return "".join(made)


def _end_of_card(groups: list[str], at: int) -> int | None:
    """Where the longest card that begins with a group ends, or None."""
    digits, end = "", None
    for next_at, group in enumerate(groups[at : at + 19], at + 1):
        digits += group
        if len(digits) > 19:
            break
        if len(digits) >= 13 and _checks(digits):
            end = next_at
    return end


def _checks(digits: str) -> bool:
    doubled = (d * 2 - 9 if d > 4 else d * 2 for d in map(int, digits[-2::-2]))
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def _phones(run: Any, mark: str) -> str:
    """A run of digits, replaced where it is a phone number, or several: it has 7 digits or more, no piece of more than
    15 without a blank, stands between no letters, and is neither a date nor an address of the internet."""
    text: str = run[0]
    whole: str = run.string
    start, end = run.start(), run.end()
    touches = (start > 0 and whole[start - 1].isalnum() and not _ends_escape(whole, start)) or (
        end < len(whole) and whole[end].isalnum()
    )
    pieces = [sum(c.isdigit() for c in piece) for piece in text.split(" ")]
    if touches or sum(pieces) < 7 or max(pieces) > 15 or _NO_PHONE.match(text):
        return text
    return mark


_NO_PHONE = re.compile(r"(?:(?:19|20)\d\d-[01]\d-[0-3]\d(?: [0-2]\d)?|\d{1,3}(?:\.\d{1,3}){3})\Z")


def _ends_escape(text: str, end: int) -> bool:
    """Whether the letter before `end` belongs to an escape of JSON, such as `\\n`."""
    return text[end - 2 : end - 1] == "\\"
