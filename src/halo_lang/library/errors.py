"""The one error that the library raises of its own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..language.diagnostics import Diagnostic


class HaloError(Exception):
    """Something that the caller can mend. `code` is one of `halo explain`; `diagnostics` are those of a program that
    has errors. How a run fails is no error of the library: it stands in the run's result."""

    def __init__(self, code: str, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code
        self.message = message
        self.diagnostics = diagnostics
