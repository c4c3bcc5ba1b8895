"""The debugger at the terminal: its commands (docs/reference/debug.md).

Owns the reading of lines and what they mean. Commands come from standard input, whether that is a terminal or not; all
that is said goes to standard error, in plain lines. No error in a command ends the session; the end of input leaves it.
Read `app/debugging.py` for what the commands do, `debug_views.py` for what they show.
"""

from __future__ import annotations

import asyncio
import os
import sys

from ..app.breakpoints import Trouble
from ..app.debugging import CONTINUE, OUT, OVER, STEP, Session
from ..boundary.call import Answer
from ..boundary.host import Handlers
from ..doors.answering import Left
from ..doors.folder import KeepingError
from ..language.diagnostics import did_you_mean
from ..runtime.stepping import Go
from . import debug_views as views
from .output import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeAlias

    Said: TypeAlias = Go | Answer | None

HELP = """step (s)               go on to the next stage, into pipelines, branches and the calls that an agent chooses
next (n)               go on to the next stage of this pipeline
out (o)                go on to the end of this pipeline's call, to the stage after it
continue (c)           go on to the next breakpoint, a failure, or the end
back                   in a recorded run: go back to the stage before
break WHERE            hold at a stage (`break 3.1`), where something is called (`break Writer.draft`),
                       or where a condition begins to hold (`break if context.data.score < 5`); without WHERE: list
delete [N]             delete a breakpoint, or all
print [EXPR] (p)       the value of an expression, or the whole context
set PATH = EXPR        change the context; the recording then says that it cannot be replayed
list (l)               the source around the stage
where (w)              the pipelines and branches around it
calls                  what was asked and answered, and what it cost
messages [N] (m)       all that call N sends, or the call that is to be made, or the last
again [with "TEXT"] [model PROVIDER/MODEL]
                       run the stage before again, with the context as it was, another instruction or another model
answer TEXT|JSON       answer the call of this stage instead of making it
fail MESSAGE           let it fail
quit (q)               stop the run
help (h)               this"""

ALIASES = {
    "s": "step",
    "n": "next",
    "over": "next",
    "o": "out",
    "c": "continue",
    "b": "break",
    "d": "delete",
    "p": "print",
    "l": "list",
    "w": "where",
    "m": "messages",
    "q": "quit",
    "exit": "quit",
    "h": "help",
    "?": "help",
}
MODES = {"step": STEP, "next": OVER, "out": OUT, "continue": CONTINUE}
PROMPT = "(debug) "
MAX_ECHO = 1000
"""Characters of a command that are shown where it is not typed."""
MAX_LINE = 1024 * 1024
"""Bytes of a command."""


class Debugger:
    """A person, or a script, at the commands. `leave` is called when the run is to stop."""

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._lines = _Lines()
        self._turn = asyncio.Lock()
        self._at_prompt = False
        self._asks = 0
        self._was_interrupted = False
        self.goal: int | None = None
        self.session: Session | None = None

    async def stop(self, session: Session) -> Said:
        """Shows where the run is held, and takes commands until one lets it go on (`app.debugging.Desk`)."""
        self._was_interrupted = False
        async with self._turn:  # another branch may be asking the person something
            _say(views.place(session))
            while True:
                line = await self._line()
                if line is None or line.split()[:1] in (["quit"], ["q"], ["exit"]):
                    return self._left(session)
                try:
                    done, said = self._do(session, line.strip())
                except (Trouble, KeepingError) as trouble:
                    _say(f"error: {visible(str(getattr(trouble, 'message', trouble)))}")
                except RecursionError:
                    _say("error: a value nests too deep for that")
                else:
                    if done:
                        return said

    def interrupted(self) -> bool:
        """Takes the first Ctrl-C while the run goes: it is held at the next place. At a prompt, and the second time, it
        is not taken: then the run stops."""
        if self._at_prompt or self._asks or self._was_interrupted or self.session is None:
            return False
        self._was_interrupted = True
        self.session.mode = STEP
        _say("holding at the next stage; Ctrl-C again stops the run")
        return True

    def wake(self) -> None:
        """The run is asked to stop: nobody is waited for any more."""
        self._lines.interrupt()

    def in_turn(self, handlers: Handlers) -> Handlers:
        """The handlers, so that never two ask at a time."""

        def after(handler: Callable[..., Awaitable[Any]] | None) -> Any:
            if handler is None:
                return None

            async def asked(*given: Any) -> Any:
                async with self._turn:
                    self._asks += 1
                    try:
                        return await handler(*given)
                    finally:
                        self._asks -= 1

            return asked

        return Handlers(
            after(handlers.on_yield), after(handlers.on_approval), after(handlers.on_listen), handlers.approves
        )

    async def _line(self) -> str | None:
        if self._lines.are_typed:
            print(PROMPT, end="", file=sys.stderr, flush=True)
        self._at_prompt = True
        try:
            line = await self._lines.next()
        finally:
            self._at_prompt = False
        if self._lines.are_typed and line is None:
            print(file=sys.stderr)
        elif not self._lines.are_typed and line and not line.isspace():
            _say(f"{PROMPT}{visible(line[:MAX_ECHO])}".rstrip() + ("…" if len(line) > MAX_ECHO else ""))
        return line

    def _left(self, session: Session) -> Said:
        """Leaves the run; where nothing is left to run it ends as it would."""
        if session.is_over:
            return session.go(CONTINUE)
        self._leave()
        raise Left

    def _do(self, session: Session, line: str) -> tuple[bool, Said]:
        """Does a command; says whether the run goes on, and how."""
        word, _, rest = line.partition(" ")
        word, rest = ALIASES.get(word, word), rest.strip()
        if not word or word.startswith("#"):
            return False, None
        if word in MODES:
            go = session.go(MODES[word])
            return True, None if session.call is not None else go
        if word == "answer" or word == "fail":
            return True, session.answer(rest, fails=word == "fail")
        if word == "again":
            return True, session.again(*_other(rest))
        if word == "back":
            self.goal = session.back()
            if session.change is not None:
                _say("what was changed is undone")
            raise Left
        show = _SHOWN.get(word)
        if show is None:
            near = did_you_mean(word, [*_SHOWN, *MODES, "answer", "fail", "again", "back", "quit"])
            raise Trouble(f"there is no command `{word[:40]}`; {near or '`help` lists them'}")
        _say(show(session, rest))
        return False, None


def _break(session: Session, rest: str) -> str:
    if rest:
        made = session.add_breakpoint(rest)
        return f"breakpoint {made.number}: {visible(made.text)}"
    rows = [f"breakpoint {one.number}: {one.text}" for one in session.breakpoints]
    return visible("\n".join(rows)) or "there are no breakpoints"


def _delete(session: Session, rest: str) -> str:
    session.delete(rest)
    return "deleted"


def _print(session: Session, rest: str) -> str:
    return views.full(session.evaluate(rest or "context"))


def _set(session: Session, rest: str) -> str:
    path = session.set(rest)
    return f"{visible(path)} is set{'; the run cannot be replayed' if session.is_recorded else ''}"


_SHOWN: dict[str, Callable[[Session, str], str]] = {
    "break": _break,
    "delete": _delete,
    "print": _print,
    "set": _set,
    "list": lambda session, rest: views.listing(session),
    "where": lambda session, rest: views.stack(session),
    "calls": lambda session, rest: views.calls(session),
    "messages": lambda session, rest: views.messages(session.found(rest)),
    "help": lambda session, rest: HELP,
}


def _other(rest: str) -> tuple[str | None, str | None]:
    """The instruction and the model of `again`."""
    instruction = model = None
    if rest.startswith("with "):
        rest = rest.removeprefix("with ").strip()
        end = _end_of_string(rest)
        instruction, rest = rest[:end], rest[end:].strip()
    if rest.startswith("model "):
        model, rest = rest.removeprefix("model ").strip(), ""
    if rest or model == "" or instruction == "":
        raise Trouble(
            'again is written so: again with "Be brief." model openai/gpt-4o (each of the two may be left out)'
        )
    return instruction, model


def _end_of_string(text: str) -> int:
    """Where the string ends with which a text begins; 0 where it begins with none."""
    if not text.startswith('"'):
        return 0
    at = 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return min(at + 1, len(text))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Lines:
    """The lines of standard input, as they come. `are_typed`: it is a terminal."""

    def __init__(self) -> None:
        self._data = b""
        self._ended = False
        self._ready: asyncio.Future[bytes] | None = None
        self.are_typed = sys.stdin.isatty()

    async def next(self) -> str | None:
        """The next line, None at the end of input. Raises `Left` when it is interrupted."""
        while b"\n" not in self._data and len(self._data) <= MAX_LINE and not self._ended:
            more = await self._more()
            self._ended = not more
            self._data += more
        line, newline, self._data = self._data.partition(b"\n")
        if len(line) > MAX_LINE:
            self._ended, self._data = True, b""
            _say(f"error: a command has more than {MAX_LINE >> 20} MiB; no more commands are read")
            return None
        return line.decode("utf-8", "replace") if newline or line else None

    def interrupt(self) -> None:
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(Left())

    async def _more(self) -> bytes:
        try:
            handle = sys.stdin.fileno()
        except (OSError, ValueError):  # no file, but something that is read like one
            whole: bytes = sys.stdin.buffer.read()
            return whole
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[bytes] = loop.create_future()
        self._ready = ready

        def on_input() -> None:
            if not ready.done():
                ready.set_result(_read(handle))

        try:
            loop.add_reader(handle, on_input)
        except OSError:  # a file on a disk: it never makes anybody wait
            return _read(handle)
        try:
            return await ready
        finally:
            self._ready = None
            loop.remove_reader(handle)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:
        return b""
