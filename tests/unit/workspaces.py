"""A Workspace in a folder of its own, for the tests of its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from halo_lang.boundary.host import Environment, Given, ProviderHost, ToolError
from halo_lang.providers.workspace import Workspace


class Tree:
    """A folder `project` with a program and a Workspace on its folder `work` (or another one)."""

    def __init__(self, tmp_path: Path, folder: str = "work", *, write: bool = True, make: bool = True) -> None:
        self.project = tmp_path / "project"
        self.project.mkdir(exist_ok=True)
        self.program = self.project / "main.halo"
        if not self.program.exists():
            self.program.write_text("# the program\n")
        self.root = self.project / folder
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        host = ProviderHost(self.project, self.project, (self.program,), Environment({}, {}))
        self.tool = Workspace({"folder": folder, "write": write}, host)

    async def call(self, method: str, given: Given | None = None, /, **args: Any) -> Any:
        return await self.tool.call(method, args, given or Given())

    async def refusal(self, method: str, given: Given | None = None, /, **args: Any) -> ToolError:
        """The failure of a call that must fail."""
        try:
            value = await self.tool.call(method, args, given or Given())
        except ToolError as error:
            return error
        raise AssertionError(f"{method} {args} gave {value!r}")


def everything(folder: Path) -> dict[str, bytes | None]:
    """All that is below a folder: the content of files, None for the rest."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() and not p.is_symlink() else None
        for p in sorted(folder.rglob("*"))
    }
