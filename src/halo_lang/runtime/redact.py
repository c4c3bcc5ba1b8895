"""Redact: replaces what policies say must not reach a model or come from one (tools.md §3).

Owns the patterns for `email`, `phone`, `card` and `key`, and the replacing. Expressions run in linear time whatever
the text (RE2), so neither a policy nor a hostile text can stall a run. Pure.
"""

from __future__ import annotations

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
    "phone": r"(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,5}\)|\d{2,5})(?:[ .-]?\d{2,5}){1,4}",
    "card": r"\d(?:[ -]?\d){12,18}",
    "key": (
        r"(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
        r"|xox[abeprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}|A(?:KIA|SIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{35}"
        r"|glpat-[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"
    ),
}
"""Where two could match the same text the one that stands first in a policy does; a number is a card only if its check
digit is right, a phone number only if it has 7 to 15 digits."""


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
    """A value with every text in it redacted, the keys of objects too."""
    if isinstance(value, str):
        return redact(value)
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
        return lambda text: pattern.sub(lambda m: mark if _is_card(m[0]) else m[0], text)
    if kind == "phone":
        return lambda text: pattern.sub(lambda m: mark if _is_phone(m) else m[0], text)
    return lambda text: pattern.sub(mark, text)


def _is_card(text: str) -> bool:
    """Whether the check digit (ISO/IEC 7812) is right."""
    digits = [int(c) for c in text if c.isdigit()]
    doubled = (d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_phone(found: Any) -> bool:
    text: str = found[0]
    whole: str = found.string
    if any(0 <= at < len(whole) and whole[at].isalnum() for at in (found.start() - 1, found.end())):
        return False
    digits = sum(c.isdigit() for c in text)
    return 7 <= digits <= 15
