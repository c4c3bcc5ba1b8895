"""The journal: answers a run from what was recorded (runs.md §4, §5).

Owns the three rules of matching, each tried for all waiting requests before the next; within a rule the earliest line
wins. Reads ahead no further than it must: in an unchanged program the next line always is the one, so memory stays
flat however long the recording is. A replay and a resume differ in which lines they are given and what is allowed.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from itertools import chain

from ..boundary.call import APPROVAL, TOOL
from ..boundary.question import question
from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import TypeAlias

    from ..boundary.call import Call
    from ..boundary.recording import Entry
    from ..runtime.driver import Request

    Key: TypeAlias = tuple[object, ...]

ASKED_OTHERWISE = 3
"""The rule by which a line answers another question than it was recorded for."""


class Hit(Record):
    """A recorded answer for a request, and the rule by which it was found."""

    request: Request
    entry: Entry
    rule: int


class Journal:
    """Recorded entries that wait to be asked for.

    `entries` are read as they are needed. `rules` says how far matching goes: 1 or 2, or 3 for a replay. `answers`
    says which calls are the journal's at all; it is never asked about others. Of the kinds in `exact` a line answers
    the same question alone, whatever the rule.
    """

    def __init__(
        self,
        entries: Iterator[Entry],
        *,
        rules: int,
        answers: Callable[[Call], bool] | None = None,
        exact: frozenset[str] = frozenset(),
    ) -> None:
        first = next(entries, None)
        self._entries = entries if first is None else chain((first,), entries)
        self._exhausted = first is None
        self._unused: dict[int, Entry] = {}
        self._unused_by_target: dict[tuple[str, str], dict[int, Entry]] | None = None
        scoped = first is None or first.scope is not None
        self._rules = [_RULES[rule](rule, scoped, exact) for rule in range(1, rules + 1)]
        self._answers = answers
        self._waiting: dict[Request, None] = {}

    def add(self, request: Request) -> None:
        """Takes up a new request, unless it is not the journal's."""
        if self._answers is not None and not self._answers(request.call):
            return
        if self._exhausted and not self._unused:
            return  # there is nothing left to find, for however many more
        self._waiting[request] = None
        for rule in self._rules if self._exhausted else self._rules[:1]:
            rule.add_request(request)

    def take(self) -> Hit | None:
        """The next recorded answer for a request that waits; the two are used up."""
        first = self._rules[0]
        while not self._exhausted:
            found = first.earliest(self._unused, self._waiting)
            if found is not None:
                return self._use(*found, 1)
            entry = next(self._entries, None)
            if entry is None:
                self._read_to_the_end()
                break
            request = first.request_for(entry, self._waiting)
            if request is not None:  # no line before it has one that waits, so this is the earliest
                del self._waiting[request]
                return Hit(request, entry, 1)
            self._unused[entry.number] = entry
            first.add_entry(entry)
        for rule in self._rules:
            found = rule.earliest(self._unused, self._waiting)
            if found is not None:
                return self._use(*found, rule.number)
        return None

    def withdraw(self, request: Request) -> None:
        """The request is answered by somebody else."""
        self._waiting.pop(request, None)

    def unused(self) -> Collection[Entry]:
        """The entries that are not used."""
        if not self._exhausted:
            for entry in self._entries:
                self._unused[entry.number] = entry
                self._rules[0].add_entry(entry)
            self._read_to_the_end()
        return self._unused.values()

    def unused_of(self, kind: str, target: str) -> Entry | None:
        """The first entry of a kind and target that is not used."""
        if self._unused_by_target is None:
            self._unused_by_target = {}
            for entry in self.unused():
                self._unused_by_target.setdefault((entry.kind, entry.target), {})[entry.number] = entry
        return next(iter(self._unused_by_target.get((kind, target), {}).values()), None)

    def _use(self, request: Request, entry: Entry, rule: int) -> Hit:
        del self._unused[entry.number]
        del self._waiting[request]
        if self._unused_by_target is not None:
            del self._unused_by_target[(entry.kind, entry.target)][entry.number]
        return Hit(request, entry, rule)

    def _read_to_the_end(self) -> None:
        """Only now do the other rules count: while lines were left, one of them could have matched by the first."""
        self._exhausted = True
        for rule in self._rules[1:]:
            for entry in self._unused.values():
                rule.add_entry(entry)
            for request in self._waiting:
                rule.add_request(request)


class _Rule:
    """Entries and requests by what must be the same, and the entries that some waiting request could have now."""

    def __init__(self, number: int, scoped: bool, exact: frozenset[str]) -> None:
        self.number = number
        self.scoped = scoped
        self.exact = exact
        self._entries: dict[Key, deque[Entry]] = {}
        self._requests: dict[Key, deque[Request]] = {}
        self._ready: list[tuple[int, Key]] = []

    def key_of_call(self, call: Call) -> Key | None:
        raise NotImplementedError

    def key_of_entry(self, entry: Entry) -> Key:
        raise NotImplementedError

    def add_entry(self, entry: Entry) -> None:
        key = self.key_of_entry(entry)
        self._entries.setdefault(key, deque()).append(entry)
        if key in self._requests:
            heappush(self._ready, (entry.number, key))

    def add_request(self, request: Request) -> None:
        key = self.key_of_call(request.call)
        if key is None:
            return
        self._requests.setdefault(key, deque()).append(request)
        entries = self._entries.get(key)
        if entries:
            heappush(self._ready, (entries[0].number, key))

    def request_for(self, entry: Entry, waiting: dict[Request, None]) -> Request | None:
        """The first waiting request that could have an entry; it is taken."""
        key = self.key_of_entry(entry)
        requests = self._requests.get(key)
        found = None
        while requests and found is None:
            request = requests.popleft()
            found = request if request in waiting else None
        if requests is not None and not requests:
            del self._requests[key]
        return found

    def earliest(self, unused: dict[int, Entry], waiting: dict[Request, None]) -> tuple[Request, Entry] | None:
        """The earliest entry that a waiting request can have, with the first such request."""
        while self._ready:
            number, key = self._ready[0]
            entries, requests = self._entries.get(key), self._requests.get(key)
            while entries and entries[0].number not in unused:
                entries.popleft()
            while requests and requests[0] not in waiting:
                requests.popleft()
            if not requests:
                self._requests.pop(key, None)
            if not entries:
                self._entries.pop(key, None)
            if not entries or not requests:
                heappop(self._ready)
            elif entries[0].number != number:
                heappop(self._ready)
                heappush(self._ready, (entries[0].number, key))
            else:
                return requests[0], entries[0]
        return None


class _SameInPlace(_Rule):
    """Same kind, target, scope and question. In a recording without scopes the target alone must be the same."""

    def key_of_call(self, call: Call) -> Key:
        if self.scoped:
            return call.kind, call.target, call.scope, question(call)
        return (call.kind, call.target, question(call)) if call.kind in self.exact else (call.kind, call.target)

    def key_of_entry(self, entry: Entry) -> Key:
        if self.scoped:
            return entry.kind, entry.target, entry.scope, entry.asked
        return (entry.kind, entry.target, entry.asked) if entry.kind in self.exact else (entry.kind, entry.target)


class _SameAnywhere(_Rule):
    """Same kind, target and question, wherever it was asked."""

    def key_of_call(self, call: Call) -> Key:
        return call.kind, call.target, question(call)

    def key_of_entry(self, entry: Entry) -> Key:
        return entry.kind, entry.target, entry.asked


class _OtherQuestion(_Rule):
    """Same kind, target and scope. Not for a tool call that an agent chose, nor for an approval."""

    def key_of_call(self, call: Call) -> Key | None:
        if call.kind == APPROVAL or call.kind in self.exact or (call.kind == TOOL and call.by is not None):
            return None
        return call.kind, call.target, call.scope

    def key_of_entry(self, entry: Entry) -> Key:
        if entry.by_agent and entry.kind == TOOL:
            return ("an agent's",)
        return entry.kind, entry.target, entry.scope


_RULES: dict[int, type[_Rule]] = {1: _SameInPlace, 2: _SameAnywhere, 3: _OtherQuestion}
