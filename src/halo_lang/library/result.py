"""What a run came to, for the library (library.md)."""

from __future__ import annotations

from ..language.record import Record
from ..language.values import to_text
from .errors import LoopLimitError, RunFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..app.result import RunError, Shadow
    from ..app.result import RunResult as Result
    from ..language.values import Value


class RunUsage(Record):
    """Tokens of all answered requests."""

    input: int
    output: int
    cached: int


class RunResult(Record):
    """How a run ended, and what it did.

    `status` is `completed`, `halted`, `paused`, `failed` or `cancelled`. `cost` and `unsettled` are US dollars,
    `duration` seconds. `calls` counts stages and tool calls by target. `waits` are what a paused run waits for.
    """

    status: str
    output: Value
    context: dict[str, Value]
    error: RunError | None
    cost: float
    unsettled: float
    usage: RunUsage
    calls: dict[str, int]
    waits: tuple[dict[str, Any], ...]
    shadows: tuple[Shadow, ...]
    run_id: str
    duration: float

    @property
    def ok(self) -> bool:
        """Whether the run came to its end without a failure: completed, or halted by a gate."""
        return self.status in ("completed", "halted")

    def or_raise(self) -> RunResult:
        """The result itself, unless the run failed: raises `RunFailed` then, for a loop's limit `LoopLimitError`."""
        if self.error is None:
            return self
        failed = LoopLimitError if self.error.code == "LOOP_LIMIT" else RunFailed
        raise failed(self.error.code, self.error.message, self)

    def _repr_html_(self) -> str:
        from .program import preformatted

        code = f" {self.error.code}" if self.error is not None else ""
        rows = [f"{self.status}{code} · {self.duration:.1f} s · ${self.cost:.4f} · run {self.run_id}", ""]
        rows += [f"waits: {wait['kind']} at stage {wait['stage']}: {wait['message']}" for wait in self.waits]
        rows.append(self.error.message if self.error is not None else to_text(self.output))
        return preformatted("\n".join(rows))


def public_result(result: Result) -> RunResult:
    """The library's form of a result."""
    account = result.account
    return RunResult(
        result.status,
        result.output,
        result.context,
        result.error,
        account.cost / 1_000_000_000,
        account.unsettled / 1_000_000_000,
        RunUsage(account.input, account.output, account.cached),
        result.calls,
        result.waits,
        result.shadows,
        result.run_id,
        result.ms / 1000,
    )
