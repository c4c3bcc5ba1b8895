"""The command `halo` as a process of its own, with or without a terminal, in surroundings that hold nothing else."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

HALO = [sys.executable, "-c", "import sys; sys.argv[0] = 'halo'; from halo_lang.cli.main import entry; entry()"]
PATIENCE_S = 30
"""How long a test waits for what must come; no test is quicker or slower by it when all is well."""


def surroundings(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables for a process: a path, an own home, nothing of whoever runs the tests but where the code is."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(folder), "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "120"} | dict(more or {})


def wait_until(holds: Callable[[], object]) -> None:
    """Waits until something holds. Raises `AssertionError` where it never does."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, "it never came to hold"
        time.sleep(0.01)


class Ended:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    def __repr__(self) -> str:
        return f"exit {self.code}\n-- stdout\n{self.out}\n-- stderr\n{self.err}"


def halo(
    folder: Path, *args: str, env: Mapping[str, str] | None = None, stdin: bytes | None = None, **more: Any
) -> Ended:
    """Runs a command to its end without a terminal."""
    done = subprocess.run(
        [*HALO, *args],
        cwd=folder,
        env=surroundings(folder, env),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
        **more,
    )
    return Ended(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def shell(folder: Path, command: str, env: Mapping[str, str] | None = None) -> Ended:
    """Runs a line of bash in which `halo` is the command."""
    quoted = " ".join("'" + part.replace("'", "'\\''") + "'" for part in HALO)
    done = subprocess.run(
        ["bash", "-c", f'halo() {{ {quoted} "$@"; }}\n{command}'],
        cwd=folder,
        env=surroundings(folder, env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


class Started:
    """A process under way without a terminal, as a context; killed at the end of it if it still runs."""

    def __init__(
        self, folder: Path, *args: str, env: Mapping[str, str] | None = None, ignore_sighup: bool = False
    ) -> None:
        self.process = subprocess.Popen(
            [*HALO, *args],
            cwd=folder,
            env=surroundings(folder, env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN if ignore_sighup else signal.SIG_DFL),
        )

    def __enter__(self) -> Started:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> Ended:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return Ended(self.process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


class OnTerminal:
    """A process on a terminal of its own, as a context. `stdout` and `stderr` say whether these are the terminal too;
    where stdout is not, it goes to a file that `stdout_text` reads."""

    def __init__(
        self, folder: Path, *args: str, env: Mapping[str, str] | None = None, stdout: bool = True, rows: int = 24
    ) -> None:
        self.seen = b""
        self._at = 0
        self._stdout_file = folder / "stdout.txt"
        self._ours, theirs = pty.openpty()
        _set_size(theirs, rows, 100)
        out: Any = theirs if stdout else open(self._stdout_file, "wb")  # noqa: SIM115
        self.process = subprocess.Popen(
            [*HALO, *args],
            cwd=folder,
            env=surroundings(folder, env),
            stdin=theirs,
            stdout=out,
            stderr=theirs,
            preexec_fn=lambda: _control(theirs),
        )
        os.close(theirs)
        if not stdout:
            out.close()

    def __enter__(self) -> OnTerminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def expect(self, words: str) -> str:
        """Waits until the words are shown, after what was expected before; gives what came up to their end."""
        wanted = words.encode()
        until = time.monotonic() + PATIENCE_S
        while (found := self.seen.find(wanted, self._at)) < 0:
            assert self._read(until), (
                f"{words!r} never came; after {self.seen[: self._at]!r} came {self.seen[self._at :]!r}"
            )
        came = self.seen[self._at : found + len(wanted)]
        self._at = found + len(wanted)
        return came.decode("utf-8", "replace")

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def end(self) -> int:
        """Waits for the end; `text` then holds all that was shown."""
        until = time.monotonic() + PATIENCE_S
        while self._read(until):
            pass
        return self.process.wait(timeout=PATIENCE_S)

    @property
    def text(self) -> str:
        return self.seen.decode("utf-8", "replace").replace("\r\n", "\n")

    @property
    def stdout_text(self) -> str:
        return self._stdout_file.read_text()

    def screen(self, columns: int = 100) -> list[str]:
        """What stands on the terminal in the end, line by line: enough of a terminal for what Halo writes."""
        return screen_of(self.text.replace("\n", "\r\n"), columns)

    def _read(self, until: float) -> bool:
        left = until - time.monotonic()
        if left <= 0 or not select.select([self._ours], [], [], left)[0]:
            return False
        try:
            data = os.read(self._ours, 65536)
        except OSError:  # the other side is closed
            return False
        self.seen += data
        return bool(data)


_CONTROL = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


def screen_of(text: str, columns: int) -> list[str]:
    """The lines of a terminal that was sent a text. Raises `AssertionError` for a control sequence it does not know."""
    lines, row, column, wraps, at = [""], 0, 0, True, 0
    while at < len(text):
        c = text[at]
        found = _CONTROL.match(text, at)
        if found:
            at = found.end()
            args, kind = found.groups()
            if kind == "A":
                row = max(0, row - int(args or 1))
            elif kind == "K":
                lines[row] = lines[row][:column]
            elif kind == "J":
                lines[row] = lines[row][:column]
                del lines[row + 1 :]
            elif kind in "hl" and args == "?7":
                wraps = kind == "h"
            else:
                assert kind == "m", f"an unknown control sequence {found[0]!r}"
            continue
        at += 1
        if c == "\r":
            column = 0
        elif c == "\n":
            row += 1
            if row == len(lines):
                lines.append("")
        else:
            assert c.isprintable() or c in "\t\x07", f"an unknown control character {c!r}"
            if column >= columns and wraps:
                row, column = row + 1, 0
                if row == len(lines):
                    lines.append("")
            if column < columns:
                lines[row] = lines[row].ljust(column)[:column] + c + lines[row][column + 1 :]
                column += 1
    return lines


def _set_size(handle: int, rows: int, columns: int) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _control(handle: int) -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(handle, termios.TIOCSCTTY, 0)


SIGHUP, SIGINT, SIGKILL, SIGTERM = signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM
