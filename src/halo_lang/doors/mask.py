"""Masking: secrets are replaced before a run, a recording, a log or a display sees them (runs.md §3).

Owns the replacing. Secrets are the values of `Env` references and of keys, of eight characters or more; each becomes
`[Env.NAME]`, also inside longer text.
"""

from __future__ import annotations

import re

from ..boundary.call import Answer, Failure, ToolUse
from ..language.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..language.values import Value

SHORTEST = 8
"""Characters below which a value is no secret: replacing it everywhere would spoil more than it hides."""


_IN_NUMBERS = re.compile(r"[0-9.eE+-]+")
_DATABASES = ("sqlite:///", "postgresql://", "postgres://")
_SCHEMES = ("https://", "http://", *_DATABASES)


class Mask:
    """Replaces the values of some variables. `secrets` are values by variable name."""

    __slots__ = ("_longest", "_names", "_numbers", "_pattern")

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._names: dict[str, str] = {}
        self._numbers: dict[int | float, str] | None = None
        for name, value in secrets.items():
            self._learn(name, value)
        self._compile()

    def add(self, name: str, value: str) -> None:
        """One secret more, for what is masked from now on."""
        self._learn(name, value)
        self._compile()

    def _learn(self, name: str, value: str) -> None:
        for spelling in _spellings(value):
            if len(spelling) >= SHORTEST:
                self._names.setdefault(spelling, name)
                if _IN_NUMBERS.fullmatch(spelling):
                    self._numbers = self._numbers or {}
                    for number in _numbers(spelling):
                        self._numbers.setdefault(number, name)

    def _compile(self) -> None:
        # The longest first, so that a secret that holds another is replaced as a whole.
        values = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, values))) if values else None
        self._longest = len(values[0]) if values else 0

    def text(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"[Env.{self._names[found[0]]}]", text)

    def value(self, value: Value) -> Value:
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(inner) for key, inner in value.items()}
        if self._numbers is not None and isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value, self._numbers)
        return value

    def _number(self, value: int | float, numbers: dict[int | float, str]) -> Value:
        """A number, as text where it is a secret, or where a secret stands in it: JSON has no other place for one."""
        name = numbers.get(value)
        if name is not None:
            return f"[Env.{name}]"
        try:
            text = repr(value)
        except ValueError:  # it is longer than what can be written
            return value
        shown = self.text(text)
        return value if shown == text else shown

    def without_parts(self, text: str) -> str:
        """A message with every part of a secret replaced, down to eight characters: one that shows a setting may cut
        it, or write it otherwise. The scheme of an address is none."""
        hidden: list[tuple[int, int, str]] = []
        for secret, name in self._names.items():
            kept = next((kept for kept in _SCHEMES if secret.startswith(kept)), "")
            rest, at = secret[len(kept) :], 0
            while at <= len(text) - SHORTEST:
                end = at + SHORTEST
                if text[at:end] not in rest:
                    at += 1
                    continue
                while end < len(text) and text[at : end + 1] in rest:
                    end += 1
                hidden.append((at, end, name))
                at = end
        made, done = [], 0
        for at, end, name in sorted(hidden):
            if end > done:
                made.append(text[done:at] if at > done else "")
                made.append(f"[Env.{name}]" if at >= done else "")
                done = end
        return "".join([*made, text[done:]])

    def answer(self, answer: Answer) -> Answer:
        """An answer with every text in it masked."""
        if self._pattern is None:
            return answer
        error = answer.error
        return replace(
            answer,
            value=self.value(answer.value),
            error=None if error is None else _replaced(error, self.text(error.message)),
            tool_uses=tuple(self._use(use) for use in answer.tool_uses),
        )

    def watching(self, watch: Callable[[str], None]) -> Callable[[str], None]:
        """A watcher of tokens that passes them on masked, holding back what may be the beginning of a secret: so the
        end of an answer is never shown by it."""
        pattern = self._pattern
        if pattern is None:
            return watch
        kept = ""

        def masked(text: str) -> None:
            nonlocal kept
            kept += text
            # Before this place it is sure where secrets begin, whatever comes.
            sure = len(kept) - self._longest + 1
            for found in pattern.finditer(kept):
                if found.start() >= sure:
                    break
                sure = max(sure, found.end())
            if sure > 0:
                ready, kept = kept[:sure], kept[sure:]
                watch(self.text(ready))

        return masked

    def _use(self, use: ToolUse) -> ToolUse:
        args = None if use.args is None else self.value(use.args)
        return ToolUse(use.id, self.text(use.name), args, self.text(use.raw))  # type: ignore[arg-type]


def _replaced(error: Failure, message: str) -> Failure:
    return replace(error, message=message)


def _numbers(text: str) -> Iterator[int | float]:
    """The numbers as which a text may come back: a whole one, and what is left of it where it was cut short."""
    for read in (int, float):
        try:
            yield read(text)
        except (OverflowError, ValueError):
            continue


def _spellings(value: str) -> Iterator[str]:
    """The secret as it stands, without blanks around it, and both as JSON may write them inside a string."""
    from json import dumps

    # What stands after the word of a scheme, as in `Bearer …`, is a secret without it too.
    # A database's errors name it without its scheme.
    database = next(
        (value.strip().removeprefix(scheme) for scheme in _DATABASES if value.strip().startswith(scheme)), ""
    )
    for text in (value, value.strip(), value.strip().partition(" ")[2].strip(), database):
        yield text
        yield dumps(text)[1:-1]
        yield dumps(text, ensure_ascii=False)[1:-1]
