"""The mock door: answers every call from what it was given, and touches nothing (cli.md `--mock`).

Owns the reading of mock answers and what is answered where none is given. Needs no event loop.
"""

from __future__ import annotations

from ..boundary.call import AGENT, APPROVAL, DESCRIBE, LISTEN, TOOL, UNTOUCHING, YIELD, Answer, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..boundary.call import Call, Scope
    from ..language.values import Value


class Mock:
    """Answers by target: the method's own entry (`Writer.draft`) before the agent's or tool's (`Writer`), before the
    default. An entry is an answer, `{"sequence": [a, b]}` (one after the other in each scope, the last again and
    again), `{"error": "message"}`, or a function of the call that gives an `Answer`. Without `defaults` it covers only
    the calls that have an entry.

    `now` gives the time for `System.Now`; `publish` is called with what `System.Publish` hands over; `refusal` answers
    calls that are not to be made at all.
    """

    __slots__ = ("_answers", "_defaults", "_now", "_publish", "_refusal", "_used")

    def __init__(
        self,
        answers: Mapping[str, Value | Callable[[Call], Answer]],
        *,
        now: Callable[[], str],
        publish: Callable[[Value], None],
        refusal: Callable[[Call], Answer | None] | None = None,
        defaults: bool = True,
    ) -> None:
        self._answers = answers
        self._defaults = defaults
        self._now = now
        self._publish = publish
        self._refusal = refusal
        self._used: dict[tuple[str, Scope], int] = {}

    def covers(self, call: Call) -> bool:
        """Whether the call is the mock's to answer."""
        return self._defaults or self._entry(call) is not None or call.target in UNTOUCHING

    def answer(self, call: Call) -> Answer:
        """The answer to a call that it covers."""
        refused = None if self._refusal is None else self._refusal(call)
        if refused is not None:
            return refused
        key = self._entry(call)
        if key is None:
            return self._default(call)
        entry: Any = self._answers[key]
        if callable(entry):
            made: Answer = entry(call)
            return made
        if isinstance(entry, dict) and entry.keys() == {"sequence"}:
            sequence = entry["sequence"]
            used = self._used.get((key, call.scope), 0)
            self._used[(key, call.scope)] = used + 1
            entry = sequence[min(used, len(sequence) - 1)]
        if isinstance(entry, dict) and entry.keys() == {"error"}:
            return failed("MODEL_ERROR" if call.kind == AGENT else "TOOL_ERROR", str(entry["error"]))
        if call.kind == APPROVAL and not isinstance(entry, dict):
            return Answer({"approved": entry is True})
        return Answer(entry)

    def _entry(self, call: Call) -> str | None:
        if call.kind == APPROVAL:
            return "approval" if "approval" in self._answers else None
        if call.target in self._answers:
            return call.target
        owner, _, method = call.target.partition(".")
        if method == DESCRIBE:  # what a mock says of a tool's calls is no answer to that
            return None
        return owner if owner in self._answers and call.kind in (AGENT, TOOL, LISTEN) else None

    def _default(self, call: Call) -> Answer:
        if call.kind == AGENT:
            return Answer(f"[mock {call.target}]")
        if call.kind in (YIELD, APPROVAL):
            return Answer({"approved": True})
        if call.target == "System.Now":
            return Answer(self._now())
        if call.target == "System.Publish":
            self._publish(call.args["value"])
        return Answer(None)


def mock_problem(answers: Value) -> str | None:
    """What is wrong with the contents of a mock file, or None."""
    if not isinstance(answers, dict):
        return 'a mock file holds an object such as {"Writer.draft": "text", "Files": {"error": "message"}}'
    for key, entry in answers.items():
        match entry:
            case {"sequence": sequence, **more} if not more and not (isinstance(sequence, list) and sequence):
                return f"the sequence of `{key}` must be a list of at least one answer"
            case {"error": message, **more} if not more and not isinstance(message, str):
                return f"the error of `{key}` must be a text"
    return None
