"""What a run is given by whoever hosts it: the environment's variables, a place for what is shown, failures of tools.

Owns these records and protocols; reads and prints nothing itself.
"""

from __future__ import annotations

from ..language.record import Record
from .call import APPROVAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path
    from typing import Protocol

    from ..catalog.describe import Method
    from ..language.diagnostics import Diagnostic
    from ..language.values import Value
    from .call import Call

    class ProviderInstance(Protocol):
        """A started tool or store. `call` raises `ToolError`; it may be cancelled at any await and then leaves
        nothing running. `close` is called once, also after a failure."""

        async def call(self, method: str, args: Mapping[str, Value], given: Given) -> Value: ...

        async def close(self) -> None: ...


class Environment(Record):
    """Variables by name. `process` is what the process was started with, `project` what stands in the project's `.env`
    and never overrides it (cli.md)."""

    process: Mapping[str, str]
    project: Mapping[str, str]

    def get(self, name: str) -> str | None:
        """The value, or None where it is not set or empty."""
        return self.process.get(name) or self.project.get(name) or None

    def is_projects(self, name: str) -> bool:
        """Whether the value comes from the project's `.env` and not from the user's own environment."""
        return not self.process.get(name) and bool(self.project.get(name))


class ProviderHost(Record):
    """What a provider is started with besides its settings (in which every `Env.NAME` has been replaced by its value).

    `base` is the folder of the `.halo` file, `working` the working folder (where `.halo/` stands), `program_files` the
    files of the program and of the plan that it is held to, `environment` all variables (for a harmless few that a
    command needs; never hand them on).
    `project_file` gives the nearest file of a name beside the program or above it, or None; it may raise `ConfigError`.
    """

    base: Path
    working: Path
    program_files: tuple[Path, ...]
    environment: Environment
    project_file: Callable[[str], str | None] | None = None


class Given(Record):
    """What goes with a tool call besides its arguments: the digest that an approval was bound to, the patterns of
    DenyArgs for paths, to be tried on the path that is really opened (tools.md §3), and the method as whoever calls it
    was told of it (None where nobody was)."""

    digest: str | None = None
    denied_paths: tuple[str, ...] = ()
    described: Method | None = None


class Preview(Record):
    """What an approval of a file write shows: the difference as text, and the digest of what the file holds now."""

    difference: str
    digest: str


class Handlers(Record):
    """Who answers. Each gets the call, an approval's also the preview of a file's change; what is None is not asked.

    `on_yield` and `on_listen` give the answer or the event's payload. `on_approval` gives a yes or no, or
    `{"approved": bool, "reason"?: text, "args"?: changed arguments, "all"?: true for all calls of the method}`.
    """

    on_yield: Callable[[Call], Awaitable[Value]] | None = None
    on_approval: Callable[[Call, Preview | None], Awaitable[Value]] | None = None
    on_listen: Callable[[Call], Awaitable[Value]] | None = None
    approves: Callable[[Call], bool] | None = None
    """Which calls `on_approval` can be asked about; None: all."""

    def can_answer(self, call: Call) -> bool:
        """Whether somebody is there for a call of these kinds."""
        if call.kind == APPROVAL:
            return self.on_approval is not None and (self.approves is None or self.approves(call))
        return True


class HaloError(Exception):
    """What all errors are that Halo raises at whoever hosts it, and that its tools raise: something that the caller can
    mend. `code` is one of `halo explain`; `diagnostics` are those of a program that has errors."""

    __module__ = "halo_lang"  # by which a traceback names it; the others of the library say so too

    def __init__(self, code: str, message: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(f"{code}: {message}" if code else message)
        self.code = code
        self.message = message
        self.diagnostics = diagnostics

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (type(self), self.args), self.__dict__


def _unpickled(kind: type[HaloError], args: tuple[object, ...]) -> HaloError:
    """An error without its `__init__`, which takes other arguments than the message that an exception keeps."""
    return kind.__new__(kind, *args)


class ToolError(HaloError):
    """A tool's failure, in words that a model can act on; never a secret, never a stack trace."""

    __module__ = "halo_lang"

    def __init__(self, message: str, code: str = "TOOL_ERROR") -> None:
        super().__init__("", message)
        self.code = code


class ConfigError(Exception):
    """Something is missing or wrong in the settings: a key, a variable, a folder. Ends a run before it begins."""
