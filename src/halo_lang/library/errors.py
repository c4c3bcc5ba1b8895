"""The errors of the library, one hierarchy below `HaloError`.

`HaloError` itself is raised where a run cannot begin. A run that failed is no exception unless somebody asks for one
(`RunResult.or_raise`). The others are raised by what somebody writes for Halo: tools, models, run stores.
"""

from __future__ import annotations

from ..boundary.host import HaloError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .result import RunResult


class RunFailed(HaloError):
    """A run that failed; `result` is all of it."""

    __module__ = "halo_lang"

    def __init__(self, code: str, message: str, result: RunResult) -> None:
        super().__init__(code, message)
        self.result = result


class LoopLimitError(RunFailed):
    """A run that failed because a loop's condition still held after its last try (`LOOP_LIMIT`)."""

    __module__ = "halo_lang"


__all__ = ["HaloError", "LoopLimitError", "RunFailed"]
