"""What a run came to, as a record and as JSON (runs.md §2, cli.md).

Owns the records. Amounts are nano-dollars, in JSON US dollars.
"""

from __future__ import annotations

from ..doors.account import Account, dollars
from ..language.record import Record
from .waits import public_wait

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..boundary.call import Call
    from ..language.values import Value


class RunError(Record):
    """Why a run failed. `stage` is the number in a plan, `at` the place as `FILE:LINE:COLUMN`."""

    code: str
    message: str
    stage: str | None
    at: str | None


class Shadow(Record):
    """What became of a `@shadow` call: its answer or error, cost in nano-dollars and duration."""

    target: str
    stage: str
    value: Value
    error: str | None
    cost: int
    ms: int


class RunResult(Record):
    """How a run ended, and what it did. `waits` are what a paused one waits for, in the form of cli.md; `unanswered`
    the calls that were under way when it ended. Amounts in nano-dollars."""

    run_id: str
    status: str
    output: Value
    context: dict[str, Value]
    error: RunError | None
    calls: dict[str, int]
    account: Account
    shadows: tuple[Shadow, ...]
    unanswered: tuple[Call, ...]
    ms: int
    waits: tuple[dict[str, Any], ...] = ()


def error_json(error: RunError | None) -> dict[str, Value] | None:
    """An error as documents and recordings hold it."""
    if error is None:
        return None
    return {"code": error.code, "message": error.message, "stage": error.stage, "at": error.at}


def result_json(result: RunResult, printed: list[Value]) -> dict[str, Value]:
    """The result as `--json` gives it."""
    account = result.account
    return {
        "runId": result.run_id,
        "status": result.status,
        "output": result.output,
        "context": result.context,
        "calls": dict(result.calls),
        "cost": dollars(account.cost),
        "unsettled": dollars(account.unsettled),
        "usage": {"input": account.input, "output": account.output, "cached": account.cached},
        "beyondAllowance": list(account.beyond),
        "shadows": [_shadow_json(shadow) for shadow in result.shadows],
        "waits": [public_wait(wait) for wait in result.waits],
        "error": error_json(result.error),
        "printed": list(printed),
        "diagnostics": [],
    }


def _shadow_json(shadow: Shadow) -> dict[str, Value]:
    return {
        "target": shadow.target,
        "stage": shadow.stage,
        "value": shadow.value,
        "error": shadow.error,
        "cost": dollars(shadow.cost),
        "ms": shadow.ms,
    }
