"""The arguments of a call, held to what a method's description says of them (tools.md §1).

Owns the last look before a provider uses them: whoever calls, a method may rely on their types. Pure.
"""

from __future__ import annotations

from ..boundary.host import ToolError
from ..catalog.describe import arguments_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..catalog.describe import Method
    from ..language.values import Value


def refuse_arguments(method: Method, args: Mapping[str, Value]) -> None:
    """Raises `ToolError` with the code `TOOL_ARGUMENTS` for arguments that do not fit, or are no valid Unicode."""
    trouble = arguments_error(method, args)
    if trouble:
        raise ToolError(trouble, "TOOL_ARGUMENTS")
    for name, value in args.items():
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ToolError(
                    f"the argument `{name}` holds characters that are not valid Unicode", "TOOL_ARGUMENTS"
                ) from None
