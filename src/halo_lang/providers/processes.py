"""A program that is run for a call: started in a session of its own, listened to, ended as a whole.

Owns its file descriptors, its output (bounded while it is read, and read to the end, so that the program never waits
for a reader) and its end. Everything that the program starts ends with it, as far as it stays in its process group;
when it is stopped, as far as it stays in its session. Knows nothing of what is run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STOP_GRACE_S = 2.0
"""How long a program that was asked to stop may take before it is killed."""

HARMLESS = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL")
"""Variables that every program which Halo starts may have; and `LC_*`."""

KEPT = 256 * 1024
"""Bytes of a stream that are kept: the first half and the last."""

_POLL_S = 0.02
_KILL_POLL_S = 0.001
_REAP_S = 2.0


class Output(asyncio.Protocol):
    """What a program wrote to one stream: its beginning and its end, and how much there was.

    Where something is left out, `secrets` (values by variable) are replaced first: half of one at the cut would no
    longer be known as a secret, and so not be masked later.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        named = {value.encode(): f"[Env.{name}]".encode() for name, value in (secrets or {}).items() if value}
        self._secrets = sorted(named.items(), key=lambda item: len(item[0]), reverse=True)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.total += len(data)
        room = KEPT // 2 - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            self.tail += data
            if len(self.tail) > KEPT:
                del self.tail[: -KEPT // 2]

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()

    def text(self, keep: int) -> str:
        """The text, bytes that are not UTF-8 replaced. Of more than `keep` bytes the middle is left out, by whole lines
        where there are any, and said to be."""
        whole = len(self.head) + len(self.tail) == self.total
        if whole and self.total <= keep:
            return (self.head + self.tail).decode("utf-8", "replace")
        half = min(keep, KEPT) // 2
        if whole:
            first = last = self._masked(bytes(self.head + self.tail))
        else:  # a secret that the buffers end or begin in is not whole in either: what it can reach is left out too
            reach = max((len(secret) - 1 for secret, _ in self._secrets), default=0)
            first = self._masked(bytes(self.head))
            first, last = first[: len(first) - reach], self._masked(bytes(self.tail))[reach:]
        head, tail = _start(first[:half]), _end(last[max(0, len(last) - half) :])
        note = f"[left out here: {self.total - len(head) - len(tail):,} bytes]"
        return f"{head.decode('utf-8', 'replace')}\n{note}\n{tail.decode('utf-8', 'replace')}"

    def _masked(self, data: bytes) -> bytes:
        for secret, mark in self._secrets:
            data = data.replace(secret, mark)
        return data


class Process:
    """A program under way.

    `arguments` makes its arguments from the number of the descriptor that `data` can be read from (None where there is
    none). It has no terminal; without `stdin` it reads nothing. `secrets` are replaced where output is cut. Raises
    `OSError` where it cannot be started.
    """

    def __init__(
        self,
        program: str,
        arguments: Callable[[int | None], list[str]],
        data: bytes | None,
        stdin: bytes | None,
        cwd: str,
        variables: Mapping[str, str],
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        opened: list[int] = []
        try:
            extra = None if data is None else _holding(data, opened)
            self._popen = subprocess.Popen(
                [_raw(word) for word in (program, *arguments(extra))],
                stdin=subprocess.DEVNULL if stdin is None else _holding(stdin, opened),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env={_raw(name): _raw(value) for name, value in variables.items()},
                pass_fds=() if extra is None else (extra,),
                start_new_session=True,
            )
        finally:
            for fd in opened:
                os.close(fd)
        self.stdout, self.stderr = Output(secrets), Output(secrets)
        self._transports: list[asyncio.ReadTransport] = []

    async def finish(self, timeout_s: float, linger_s: float) -> tuple[Output, Output, int]:
        """What it wrote and its exit code (128 and the number of the signal that ended it), when it has ended.

        Raises `TimeoutError` after `timeout_s`. However this ends, the program and what it started have ended before;
        what still holds its pipes then gets `linger_s` to let go of them.
        """
        loop = asyncio.get_running_loop()
        try:
            for pipe, output in ((self._popen.stdout, self.stdout), (self._popen.stderr, self.stderr)):
                transport, _ = await loop.connect_read_pipe(lambda output=output: output, pipe)  # type: ignore[misc]
                self._transports.append(transport)
            async with asyncio.timeout(timeout_s):
                await self._ended()
                await self._silence(linger_s)
        except (TimeoutError, asyncio.CancelledError):
            await self.stop()
            raise
        finally:
            self._reap()
        code = self._popen.returncode
        return self.stdout, self.stderr, 128 - code if code < 0 else code

    async def stop(self) -> None:
        """Asks all of it to end, and kills what has not after `STOP_GRACE_S`; at once where this is cancelled."""
        await end_session(self._popen)
        await self._silence(_POLL_S)

    async def _silence(self, most_s: float) -> None:
        """Waits until both streams have been closed, or so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await self.stdout.closed.wait()
                await self.stderr.closed.wait()

    async def _ended(self) -> None:
        """Waits until the program has ended, without taking its exit code: so its number stays its own, and a signal
        to its group reaches no other."""
        try:
            fd = os.pidfd_open(self._popen.pid)
        except (AttributeError, OSError):
            while self._popen.poll() is None:
                await asyncio.sleep(_POLL_S)
            return
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        try:
            loop.add_reader(fd, ended.set)
            await ended.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    def _reap(self) -> None:
        """The last step: kills what is left of the group, takes the exit code, closes the pipes."""
        signal_session(self._popen, signal.SIGKILL)
        try:
            self._popen.wait(_REAP_S)
        except subprocess.TimeoutExpired:
            self._popen.returncode = -signal.SIGKILL
        for transport in self._transports:
            transport.close()
        for pipe in (self._popen.stdout, self._popen.stderr)[len(self._transports) :]:
            if pipe is not None:
                pipe.close()


async def end_session(popen: subprocess.Popen[bytes]) -> None:
    """Asks a program that leads a session, and all that is in it, to end, and kills what has not after `STOP_GRACE_S`;
    at once where this is cancelled. Its exit code must not have been taken yet."""
    try:
        signal_session(popen, signal.SIGTERM, session_members(popen))
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_GRACE_S):
                while session_members(popen):
                    await asyncio.sleep(_POLL_S)
    finally:
        kill_session(popen)


def kill_session(popen: subprocess.Popen[bytes]) -> None:
    """Kills a program that leads a session, and all that is in it, and waits until none of it runs, at most `_REAP_S`:
    a process still runs for a moment after the signal was sent, and may have started another just before. Its exit code
    must not have been taken yet."""
    until = time.monotonic() + _REAP_S
    left = session_members(popen)
    signal_session(popen, signal.SIGKILL, left)
    while left and time.monotonic() < until:
        time.sleep(_KILL_POLL_S)
        left = session_members(popen)
        if left:
            signal_session(popen, signal.SIGKILL, left)


def signal_session(popen: subprocess.Popen[bytes], number: int, others: tuple[int, ...] = ()) -> None:
    """Sends a signal to the process group of a program that leads one, and to `others`."""
    for kill, target in ((os.killpg, popen.pid), *((os.kill, pid) for pid in others)):
        with suppress(ProcessLookupError, PermissionError):
            kill(target, number)


def session_members(popen: subprocess.Popen[bytes]) -> tuple[int, ...]:
    """The processes of a program's session that have not ended, where the system shows them; else the program."""
    try:
        numbers = [int(n) for n in os.listdir("/proc") if n.isdigit()]
    except OSError:
        return (popen.pid,) if popen.poll() is None else ()
    return tuple(n for n in numbers if _is_member(n, popen.pid))


def harmless_variables(process: Mapping[str, str]) -> dict[str, str]:
    """The variables of Halo's own environment that every program which it starts may have. Never others: the
    environment holds keys."""
    return {n: v for n, v in process.items() if n in HARMLESS or n.startswith("LC_")}


def _is_member(number: int, session: int) -> bool:
    try:
        with open(f"/proc/{number}/stat", "rb") as file:
            state, _, group, its_session = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return False
    return state not in (b"Z", b"X") and session in (int(group), int(its_session))


def _raw(word: str) -> bytes:
    """A word for a process, in UTF-8 whatever the locale: what came from the system goes back as it was."""
    return word.encode("utf-8", "surrogateescape")


def _holding(data: bytes, opened: list[int]) -> int:
    """A descriptor from which `data` can be read, in no folder; noted in `opened`."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("halo", 0)
    else:
        from tempfile import TemporaryFile

        with TemporaryFile(buffering=0) as file:
            fd = os.dup(file.fileno())
    opened.append(fd)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _start(data: bytes) -> bytes:
    """Without a last line, or a last character, that is not whole."""
    newline = data.rfind(b"\n")
    if newline >= 0:
        return data[:newline]
    end = len(data)
    while end > 0 and len(data) - end < 4 and data[end - 1] & 0xC0 == 0x80:
        end -= 1
    return data[: end - 1] if end and data[end - 1] >= 0xC0 else data


def _end(data: bytes) -> bytes:
    """Without a first line, or a first character, that is not whole."""
    newline = data.find(b"\n", 0, len(data) - 1)
    if newline >= 0:
        return data[newline + 1 :]
    start = 0
    while start < min(4, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
