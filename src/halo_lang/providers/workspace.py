"""`Workspace`: the files below one folder, as a tool (tools.md §2).

Owns the tool's settings and its methods' way into a thread; the work itself, and all that keeps a path inside, stands
in `files`. Read `files/beneath.py` next.
"""

from __future__ import annotations

import os

from ..boundary.host import ConfigError, Given, Preview, ToolError
from ..catalog.builtin import PROVIDERS
from .arguments import refuse_arguments
from .blocking import in_thread
from .files import finding, reading, writing
from .files.beneath import Folder
from .files.guard import Guard, folded, is_secret
from .files.paths import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from ..boundary.host import ProviderHost
    from ..language.values import Value
    from .blocking import Stop

    Args: TypeAlias = Mapping[str, Any]
    Work: TypeAlias = Callable[[Folder, writing.Turns, Args, Given, Stop], Value]

_NOTHING = Given()


class Workspace:
    """A started Workspace.

    Raises `ConfigError` where its folder is none, is missing and may not be made, or is what a run stands on. Makes
    nothing: with `write: true` a missing folder is made by the first change.
    """

    def __init__(self, settings: Mapping[str, Any], host: ProviderHost) -> None:
        named = settings.get("folder")
        if not isinstance(named, str) or not named or "\0" in named:
            raise ConfigError("a Workspace needs a folder, as text")
        writes = settings.get("write", False)
        if not isinstance(writes, bool):
            raise ConfigError(f"`write` of the Workspace {shown(named)} must be true or false")
        base = os.path.abspath(host.base)
        path = os.path.normpath(os.path.join(base, named))
        _check_folder(path, named, writes)
        _check_ground(path, named, writes, (base, os.path.abspath(host.working)))
        grounds = dict.fromkeys((base, os.path.abspath(host.working)))
        secret = tuple(os.path.join(g, ".env") for g in grounds)
        settled = tuple(os.path.join(g, n) for g in grounds for n in ("halo.toml", "halo.lock"))
        program = tuple(os.path.abspath(p) for p in host.program_files)
        self._folder = Folder(path, named, Guard(secret, program, settled))
        self._methods = {m.name: m for m in PROVIDERS["Workspace"].describe({"folder": named, "write": writes}) or ()}
        self._turns = writing.Turns()

    async def call(self, method: str, args: Mapping[str, Value], given: Given = _NOTHING) -> Value:
        """A method's result (tools.md §2). Raises `ToolError`; with the code `CHANGED` where a file no longer holds
        what `given.digest` was made of, `DENIED` where one of `given.denied_paths` matches the path that is opened."""
        self._check(method, args)
        work = WORK[method]
        return await in_thread(lambda stop: work(self._folder, self._turns, args, given, stop))

    async def preview(self, method: str, args: Mapping[str, Value]) -> Preview:
        """What a change would do, for its approval: the difference, and the digest of what the file holds now.

        Both are empty for a method that changes no file's content. Raises `ToolError` where the call would be refused;
        changes nothing.
        """
        self._check(method, args)
        return await in_thread(lambda stop: _preview(self._folder, method, args, stop))

    async def close(self) -> None:
        """Nothing is held between calls."""

    def _check(self, method: str, args: Mapping[str, Value]) -> None:
        described = self._methods.get(method)
        if described is None:
            there = ", ".join(self._methods)
            raise ToolError(f"a Workspace has no method `{method}` here; it has {there}")
        refuse_arguments(described, args)


def _check_folder(path: str, named: str, writes: bool) -> None:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        if not writes:
            raise ConfigError(
                f"the folder {shown(named)} of a Workspace does not exist ({path}); make it, or give the tool "
                "`write: true`, and its first change makes it"
            ) from None
        return
    except OSError as error:
        raise ConfigError(f"the folder {shown(named)} of a Workspace cannot be used: {error.strerror}") from None
    import stat

    if not stat.S_ISDIR(there.st_mode):
        raise ConfigError(f"{shown(named)} of a Workspace is no folder ({path})")


def _check_ground(path: str, named: str, writes: bool, grounds: tuple[str, ...]) -> None:
    """Refuses a folder that itself lies in what no path may reach, such as `.halo/recordings`."""
    names: set[str] = set()
    for seen, there in ((path, grounds), (os.path.realpath(path), tuple(os.path.realpath(g) for g in grounds))):
        below = [parts for ground in there if (parts := os.path.relpath(seen, ground).split("/"))[0] != ".."]
        names.update(*(below or ((os.path.basename(seen),),)))
    for name in names:
        if is_secret(name) or (writes and folded(name) == ".git"):
            raise ConfigError(f"the folder {shown(named)} cannot be a Workspace's: `{name}` is kept from every tool")


def _preview(folder: Folder, method: str, args: Args, stop: Stop) -> Preview:
    if method == "write":
        return writing.preview_write(folder, args["path"], args["content"].encode(), stop)
    if method == "edit":
        return writing.preview_edit(folder, args["path"], args["old"].encode(), args["new"].encode(), stop)
    if method == "delete":
        return writing.preview_delete(folder, args["path"], stop)
    return Preview("", "")


def _read(folder: Folder, _: writing.Turns, args: Args, given: Given, stop: Stop) -> Value:
    lines = args.get("lines")
    first = int(args.get("from", 1))
    return reading.read(folder, args["path"], first, lines and int(lines), given.denied_paths, stop)


def _write(folder: Folder, turns: writing.Turns, args: Args, given: Given, stop: Stop) -> Value:
    return writing.write(folder, turns, args["path"], args["content"].encode(), given, stop)


def _edit(folder: Folder, turns: writing.Turns, args: Args, given: Given, stop: Stop) -> Value:
    return writing.edit(folder, turns, args["path"], args["old"].encode(), args["new"].encode(), given, stop)


def _list(folder: Folder, _: writing.Turns, args: Args, given: Given, stop: Stop) -> Value:
    return finding.list_folder(folder, args.get("path", "."), given.denied_paths, stop)


def _glob(folder: Folder, _: writing.Turns, args: Args, __: Given, stop: Stop) -> Value:
    return finding.glob(folder, args["pattern"], stop)


def _search(folder: Folder, _: writing.Turns, args: Args, given: Given, stop: Stop) -> Value:
    regex = args.get("regex", False)
    return finding.search(folder, args["query"], args.get("path", "."), regex, given.denied_paths, stop)


def _mkdir(folder: Folder, _: writing.Turns, args: Args, given: Given, stop: Stop) -> Value:
    return writing.mkdir(folder, args["path"], given, stop)


def _delete(folder: Folder, turns: writing.Turns, args: Args, given: Given, stop: Stop) -> Value:
    return writing.delete(folder, turns, args["path"], given, stop)


WORK: dict[str, Work] = {
    "read": _read,
    "write": _write,
    "edit": _edit,
    "list": _list,
    "glob": _glob,
    "search": _search,
    "mkdir": _mkdir,
    "delete": _delete,
}
"""What carries out each method that the catalog describes."""
