"""What a run prints: values to stdout, everything else to stderr (cli.md).

Owns `Output`, the plain and quiet watcher of a run. On a terminal control characters of what models and tools said are
shown and not obeyed; in a pipe data stays as it is. Read `display.py` for the live one.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager

from ..language.values import to_json, to_text
from ..language.visible import visible as visible
from .failing import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from ..boundary.call import Answer, Call, Scope
    from ..doors.spend import Ledger
    from ..language.values import Value

TOO_DEEP = "the result nests too deep to be written as JSON"


class Output:
    """Prints as the run goes. With `as_document` (for `--json`) stdout is kept for the document, and what is printed
    goes to stderr and into `values`. What `System.Log` logs goes to stderr, unless `quiet`.

    Where nobody takes what a live run prints any more, the run is to be stopped and its end written down: `when_lost`
    is called, and `check` raises what went wrong once all that is said. Without `when_lost` it is raised at once."""

    watches = False

    def __init__(self, *, as_document: bool, quiet: bool = False) -> None:
        self.values: list[Value] = []
        self.when_lost: Callable[[], None] | None = None
        self._lost: OSError | None = None
        self._quiet = quiet
        self._to = sys.stderr if as_document else sys.stdout

    def printed(self, value: Value) -> None:
        self.values.append(value)
        self._write(value)

    published = printed

    def logged(self, value: Value) -> None:
        if not self._quiet:
            print(f"log: {visible(to_text(value))}", file=sys.stderr)

    def finished(self, output: Value) -> None:
        """Prints the run's output, unless the last thing printed is that same value. Raises `CommandError` for a value
        that nests too deep to be written."""
        try:
            if not (self.values and _same(self.values[-1], output)):
                self._write(output)
        except RecursionError:
            raise CommandError(TOO_DEEP) from None

    def stage_began(self, number: str, target: str, scope: Scope) -> None: ...

    def stage_ended(self, number: str, target: str, scope: Scope) -> None: ...

    def tokens(self, call: Call, text: str) -> None: ...

    def asked(self, call: Call) -> None: ...

    def answered(self, call: Call, answer: Answer, cost: int) -> None: ...

    def spends(self, ledger: Ledger) -> None: ...

    def close(self) -> None: ...

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """While something else is written to the terminal."""
        yield

    def check(self) -> None:
        """Raises the `OSError` because of which something printed was lost."""
        if self._lost is not None:
            raise self._lost

    def _write(self, value: Value) -> None:
        if value is None or self._lost is not None:
            return
        try:
            write_line(to_text(value), self._to)
        except OSError as trouble:
            if self.when_lost is None:
                raise
            self._lost = trouble
            self.when_lost()


def write_line(text: str, to: TextIO) -> None:
    """Writes a line; on a terminal control characters are made visible."""
    print(visible(text) if to.isatty() else text, file=to, flush=True)


def name_of(text: str) -> str:
    """What a recording says that something is called, for a message: on one line, and short."""
    return visible(" ".join(text[:80].split()))


def write_document(document: Mapping[str, object]) -> None:
    """Writes the document of `--json` to stdout: JSON whatever the encoding there.

    Raises `CommandError` for values that nest too deep to be written.
    """
    from json import dumps

    everything = (sys.stdout.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"
    try:
        text = dumps(document, ensure_ascii=not everything, indent=2)
    except RecursionError:
        raise CommandError(TOO_DEEP) from None
    print(text)


def _same(a: Value, b: Value) -> bool:
    """Equal, and written alike: 1 is printed otherwise than true or 1.0."""
    return a == b and to_json(a) == to_json(b)
