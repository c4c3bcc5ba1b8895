"""Finding files: `list`, `glob`, `search` (tools.md §2).

Owns the walk below a folder. It goes into real folders only, never through a link, so it neither leads out nor round;
it leaves out what no path reaches (`.halo`, `.env*`) and names that are not UTF-8, and for `glob` and `search` also
`.git` and what `.gitignore` files skip. It is bounded in time, in the number of files and in what it gives.
"""

from __future__ import annotations

import codecs
import os
import time

from ...boundary.host import ToolError
from ...language.record import Record
from ..results import LIMIT
from .beneath import Root, find, open_file, open_folder, opened, reached, refuse_unless_file
from .guard import folded, is_denied, is_secret
from .paths import MAX_DEPTH, asked, is_readable, readable, shown, text_of
from .patterns import compiled, is_ignored, read_glob, read_ignore
from .writing import TEMPORARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...language.values import Value
    from ..blocking import Stop
    from .beneath import Folder
    from .patterns import Ignored

DEADLINE_S = 20.0
"""How long a `glob` or a `search` may take."""

MAX_SEEN = 200_000
"""How many files and folders a `glob` or a `search` may look at."""

_IGNORE = ".gitignore"
_MAX_IGNORE = 1 << 20
_CHUNK = 1 << 18
_LONGEST_LINE = 1 << 16
_SHOWN_LINE = 500
_MAX_QUERY = 1_000


class Found(Record):
    """Something in a folder. `kind` is `file`, `folder`, `link` or `other`; `at` is the folder, open."""

    at: int
    name: str
    kind: str


def list_folder(folder: Folder, path: str, denied: Sequence[str], stop: Stop) -> Value:
    """The paths of what is in a folder, sorted; a folder's ends in `/`, a link's too where it leads to a folder here.

    A name that is not UTF-8 is shown with its bytes as `\\xNN`, with a remark that it cannot be opened.
    """
    with reached(folder, path, denied, stop) as place, opened(folder) as root:
        fd = open_folder(place)
        try:
            prefix = "" if place.plain == "." else place.plain + "/"
            gathered = _Gathered("list a folder inside it, or use `glob` with a pattern")
            for found in _entries(fd, stop):
                if is_readable(found.name):
                    gathered.add(prefix + found.name + _ending(found, root, place.names, stop))
                else:
                    gathered.add(f"{prefix}{readable(found.name)} (its name is not UTF-8: it cannot be opened)")
        finally:
            os.close(fd)
        return gathered.sorted()


def glob(folder: Folder, pattern: str, stop: Stop) -> Value:
    """The paths of the files and folders that match a pattern, sorted; a folder's ends in `/`."""
    wanted = read_glob(pattern)
    gathered = _Gathered("give a narrower pattern")
    bounds = Bounds(stop, "give a pattern that begins with a folder's name")
    with opened(folder) as root:
        for names, found in _below(root, wanted.start, wanted.may_match_in, bounds):
            path = text_of((*names, found.name))
            if found.kind == "link":
                path += _ending(found, root, names, stop)
            elif found.kind == "folder":
                path += "/"
            if wanted.matches(path):
                gathered.add(path)
    return gathered.sorted()


def search(folder: Folder, query: str, path: str, regex: bool, denied: Sequence[str], stop: Stop) -> Value:
    """The lines that hold a text, or match an expression, below a path: a list of `{path, line, text}`, by path and
    line. Files that are not UTF-8 text are left out; a long line is shown around the place."""
    spotter = _spotter(query, regex)
    bounds = Bounds(stop, "give a `path` to search in")
    hits = _Hits()
    with reached(folder, path, denied, stop) as place, opened(folder) as root:
        if place.is_folder:
            for names, found in _below(root, place.names, _everywhere, bounds, named=True):
                real = text_of((*names, found.name))
                if found.kind == "file" and not is_denied(denied, real):
                    hits.add(real, _search_entry(found, spotter, bounds))
        else:
            refuse_unless_file(place)
            fd = open_file(place)
            try:
                hits.add(text_of(place.names), _search_file(fd, spotter, bounds))
            finally:
                os.close(fd)
    return hits.sorted()


class Bounds:
    """How long a walk may take and how much it may see. `narrower` says how to ask for less."""

    __slots__ = ("_narrower", "_seen", "_stop", "_until")

    def __init__(self, stop: Stop, narrower: str) -> None:
        self._stop = stop
        self._until = time.monotonic() + DEADLINE_S
        self._seen = 0
        self._narrower = narrower

    def check(self) -> None:
        """Raises where the call was cancelled or has taken too long."""
        self._stop.check()
        if time.monotonic() > self._until:
            raise ToolError(f"that took longer than {DEADLINE_S:g} s; {self._narrower}")

    def see(self) -> None:
        """Counts something seen, and checks."""
        self._seen += 1
        if self._seen > MAX_SEEN:
            raise ToolError(f"there are more than {MAX_SEEN:,} files and folders to look at; {self._narrower}")
        self.check()

    @property
    def stop(self) -> Stop:
        return self._stop


class _Gathered:
    """Paths that are found, as many as a result may hold."""

    __slots__ = ("_less", "_paths", "_room")

    def __init__(self, less: str) -> None:
        self._paths: list[Value] = []
        self._room = LIMIT - 2
        self._less = less

    def add(self, path: str) -> None:
        self._room -= len(path.encode()) + 3
        if self._room < 0:
            raise ToolError(f"there are more paths than a result may hold ({len(self._paths):,} fit); {self._less}")
        self._paths.append(path)

    def sorted(self) -> Value:
        self._paths.sort(key=str)
        return self._paths


class _Hits:
    """Lines that are found, as many as a result may hold."""

    __slots__ = ("_hits", "_room")

    def __init__(self) -> None:
        self._hits: list[tuple[str, int, str]] = []
        self._room = LIMIT - 2

    def add(self, path: str, lines: Iterator[tuple[int, str]]) -> None:
        """Takes the lines of one file, all of them or, where it turns out to be no text, none."""
        before = len(self._hits), self._room
        try:
            for number, text in lines:
                self._room -= len(path.encode()) + len(text.encode()) + 40
                if self._room < 0:
                    for _ in lines:
                        continue  # it may still turn out to be no text
                    raise ToolError(
                        f"more lines match than a result may hold ({len(self._hits):,} fit); "
                        "give a longer query, or a `path` to search in"
                    )
                self._hits.append((path, number, text))
        except UnicodeDecodeError:
            del self._hits[before[0] :]
            self._room = before[1]

    def sorted(self) -> Value:
        return [{"path": path, "line": line, "text": text} for path, line, text in sorted(self._hits)]


def _everywhere(_: Sequence[str]) -> bool:
    return True


def _below(
    root: Root,
    start: tuple[str, ...],
    enters: Callable[[Sequence[str]], bool],
    bounds: Bounds,
    *,
    named: bool = False,
) -> Iterator[tuple[tuple[str, ...], Found]]:
    """What lies below a folder, each with the names of the folder that it is in; what git skips is left out.

    `enters` says whether to look into a folder of some path. Where the start is `named` by the caller and skipped
    itself, that is a `ToolError`; else there is nothing below it.
    """
    stack = _ignores_above(root, start, bounds)
    if stack is None:
        if named:
            raise ToolError(
                f"{shown(text_of(start))} is skipped by a `.gitignore` or is git's own; read its files by name"
            )
        return
    pending: list[tuple[tuple[str, ...], list[tuple[int, Ignored]]]] = [(start, stack)]
    while pending:
        names, above = pending.pop()
        bounds.check()
        fd = _open_real(root, names)
        if fd is None:
            continue
        try:
            prefix = "".join(n + "/" for n in names)
            own = _ignore_file(fd)
            stack = [*above, (len(prefix), own)] if own else above
            deeper = []
            for found in sorted(_entries(fd, bounds.stop), key=lambda f: f.name):
                bounds.see()
                path = prefix + found.name + ("/" if found.kind == "folder" else "")
                if not is_readable(path) or folded(found.name) == ".git" or is_ignored(stack, path):
                    continue
                yield names, found
                inner = (*names, found.name)
                if found.kind == "folder" and len(inner) < MAX_DEPTH and enters(inner):
                    deeper.append((inner, stack))
            pending.extend(reversed(deeper))
        finally:
            os.close(fd)


def _ignores_above(root: Root, start: tuple[str, ...], bounds: Bounds) -> list[tuple[int, Ignored]] | None:
    """The `.gitignore` files above a folder, or None where the folder itself is skipped."""
    stack: list[tuple[int, Ignored]] = []
    for at in range(len(start)):
        bounds.check()
        if is_secret(start[at]) or folded(start[at]) == ".git":
            return None
        fd = _open_real(root, start[:at])
        if fd is None:
            return None
        try:
            prefix = "".join(n + "/" for n in start[:at])
            own = _ignore_file(fd)
        finally:
            os.close(fd)
        if own:
            stack.append((len(prefix), own))
        if is_ignored(stack, prefix + start[at] + "/"):
            return None
    return stack


def _ignore_file(at: int) -> Ignored | None:
    """A folder's `.gitignore`, where it has one: no more than a MiB of it, and never through a link."""
    try:
        fd = os.open(_IGNORE, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=at)
    except OSError:
        return None
    try:
        text = os.read(fd, _MAX_IGNORE).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)
    return read_ignore(text)


def _open_real(root: Root, names: Sequence[str]) -> int | None:
    """Opens a folder by the names of real folders, or gives None: it may have gone since it was seen, or be closed
    to us."""
    at = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root.fd)
    for name in names:
        try:
            deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        except OSError:
            return None
        finally:
            os.close(at)
        at = deeper
    return at


def _entries(fd: int, stop: Stop) -> Iterator[Found]:
    """What is in an open folder, without what no path reaches."""
    with os.scandir(fd) as entries:
        for entry in entries:
            stop.check()
            if is_secret(entry.name) or entry.name.startswith(TEMPORARY):
                continue
            try:
                kind = (
                    "link"
                    if entry.is_symlink()
                    else "folder"
                    if entry.is_dir(follow_symlinks=False)
                    else "file"
                    if entry.is_file(follow_symlinks=False)
                    else "other"
                )
            except OSError:
                continue
            yield Found(fd, entry.name, kind)


def _ending(found: Found, root: Root, names: Sequence[str], stop: Stop) -> str:
    """The slash of a folder, and of a link that leads to a folder here."""
    if found.kind != "link":
        return "/" if found.kind == "folder" else ""
    try:
        place = find(root, asked(text_of((*names, found.name))), stop)
    except (ToolError, OSError):
        return ""
    os.close(place.here)
    return "/" if place.is_folder else ""


class Spotter(Record):
    """What finds a query. `spot` gives its place in a line, or -1; `literal` says that it can be looked for in many
    lines at once."""

    spot: Callable[[str], int]
    literal: bool


def _spotter(query: str, regex: bool) -> Spotter:
    if not query:
        raise ToolError("the query is empty")
    if len(query) > _MAX_QUERY:
        raise ToolError(f"a query is at most {_MAX_QUERY:,} characters")
    if not regex:
        if "\n" in query:
            raise ToolError("a search looks at one line at a time, so its query holds no line break")
        return Spotter(lambda text: text.find(query), True)
    expression = compiled(query, f"expression {shown(query)}")

    def spot(line: str) -> int:
        found = expression.search(line)
        return -1 if found is None else int(found.start())

    return Spotter(spot, False)


def _search_entry(found: Found, spotter: Spotter, bounds: Bounds) -> Iterator[tuple[int, str]]:
    """The lines of a file that was seen in a folder. It may be none any more, or be closed to us: then none."""
    import stat

    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = os.open(found.name, flags, dir_fd=found.at)
    except OSError:
        return
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            yield from _search_file(fd, spotter, bounds)
    finally:
        os.close(fd)


def _search_file(fd: int, spotter: Spotter, bounds: Bounds) -> Iterator[tuple[int, str]]:
    """The numbers and texts of the lines where the query is found. Raises `UnicodeDecodeError` where the file turns out
    not to be UTF-8; a file with a NUL in its beginning has no lines. A very long line is searched in pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    number, hit, rest = 1, 0, ""
    chunk = os.read(fd, _CHUNK)
    if b"\0" in chunk[:8192]:
        return
    while True:
        bounds.check()
        text = rest + decoder.decode(chunk, final=not chunk)
        ends = text.rfind("\n") + 1
        if not chunk or len(text) - ends > _LONGEST_LINE:
            ends = len(text)
        text, rest = text[:ends], text[ends:]
        if spotter.literal and spotter.spot(text) < 0:
            number += text.count("\n")
        else:
            lines = text.split("\n")
            for at, line in enumerate(lines):
                bounds.check()
                line = line.removesuffix("\r")
                if hit != number and (place := _place(line, spotter.spot)) >= 0:
                    hit = number
                    yield number, _around(line, place)
                number += at < len(lines) - 1
        if not chunk:
            return
        chunk = os.read(fd, _CHUNK)


def _place(line: str, spot: Callable[[str], int]) -> int:
    """Where the query is in a line, looked for in pieces where the line is very long; -1 where it is not."""
    if len(line) <= _LONGEST_LINE:
        return spot(line)
    for start in range(0, len(line), _LONGEST_LINE):
        found = spot(line[start : start + _LONGEST_LINE])
        if found >= 0:
            return start + found
    return -1


def _around(line: str, place: int) -> str:
    """A line as it is shown: a long one around the place."""
    if len(line) <= _SHOWN_LINE:
        return line
    start = max(0, min(place - _SHOWN_LINE // 4, len(line) - _SHOWN_LINE))
    end = start + _SHOWN_LINE
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
