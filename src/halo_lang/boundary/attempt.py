"""How one attempt at a model request ends without a usable answer (runs.md §6).

Owns what the models say and the doors act on: whether trying again makes sense, and whether the attempt may have been
billed. Decides nothing itself. `doors/retry.py` retries, the spend door settles.
"""

from __future__ import annotations

from .call import Failure
from .host import HaloError


class AttemptFailed(HaloError):
    """An attempt that brought no answer.

    `code` is `MODEL_ERROR` or `MODEL_TIMEOUT`. `retry`: another attempt may succeed. `billed` is False where the
    attempt surely was not billed (no connection, 429, 5xx) and None where nobody can know (a time-out, a torn
    stream): what it could have cost at most then counts as `unsettled`, and towards a spend limit. `retry_after_s` is
    how long the server asks to wait; one that asks for more than a minute is not asked again. A reply that came and
    cannot be used is no failed attempt: it was billed, and is an `Answer` with `error` and `usage`.
    """

    __module__ = "halo_lang"

    def __init__(
        self,
        code: str,
        message: str,
        retry: bool = False,
        billed: bool | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(code, message)
        self.retry = retry
        self.billed = billed
        self.retry_after_s = retry_after_s


class Cut(Failure):
    """The failure of a reply that ended at its `max_tokens`. Where a spend limit had lowered them it is the limit's
    failure, not the model's (runs.md §6), so it must be told from the others without reading its message."""
