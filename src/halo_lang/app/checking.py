"""The one way in which a file is checked, so that a command, the library and an editor read it alike.

Owns what a program may name besides what it holds itself: providers given in code, those of installed packages, and
the MCP servers that `halo.lock` knows. Nobody else calls `check.check` (a contract in `pyproject.toml`): whoever did
would forget one of them.
"""

from __future__ import annotations

from ..check.check import check_bytes
from .lock import with_lock
from .own import with_installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..check.program import CheckedProgram
    from .own import Own


def checked(
    name: str,
    data: bytes,
    *,
    own: Mapping[str, Own] | None = None,
    priced: Callable[[str], bool] | None = None,
    locked: bool = True,
) -> CheckedProgram:
    """The program that a file's bytes are, checked; `name` is its path, which says where its lock is.

    `own` are providers given in code. `priced` as for `check`. Without `locked` MCP servers are not described, whatever
    the lock holds. Raises `ConfigError` for a `halo.lock` that has an error, where the program asks for it.
    """
    known = with_installed(with_lock(name), own) if locked else with_installed(own=own)
    return check_bytes(name, data, providers=known, priced=priced)
