"""A person at the terminal: answers yields, approvals and listens (language.md §7, tools.md §3).

Owns the prompts and what the typed answers mean. Whatever models and tools said is shown with control characters made
visible. End of input, an empty or an unclear answer approves nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from ..language.values import read_json, to_text
from ..language.visible import visible_in_line
from ..runtime.permit import UNUSABLE
from .output import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..boundary.call import Call
    from ..boundary.host import Preview
    from ..language.values import Value
    from .output import Output


class Terminal:
    """Asks on stderr and reads lines from stdin, one question at a time."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._typed = b""

    async def answer_yield(self, call: Call) -> Value:
        """`yes`, `no`, a JSON object, or text."""
        first, *more = visible(to_text(call.args.get("message"))).split("\n")
        rows = [f"{_place(call)} asks: {first}", *(f"    {line}" for line in more)]
        if call.args.get("channel"):
            rows.append(f"  channel: {visible(to_text(call.args['channel']))}")
        attachments = call.args.get("attachments")
        for attached in attachments if isinstance(attachments, list) else []:
            rows.append(_indented(visible(to_text(attached))))
        if call.args.get("timeout"):
            rows.append(f"  within {call.args['timeout']:g} s, else it counts as no")
        line = await self._ask("\n".join(rows), "yes, no, a text, or a JSON object")
        answer = (line or "").strip()
        if answer.lower() in ("y", "yes"):
            return {"approved": True}
        if answer.lower() in ("", "n", "no"):
            return {"approved": False}
        if answer.startswith("{"):
            try:
                return read_json(answer)
            except ValueError:
                pass
        return answer

    async def receive(self, call: Call) -> Value:
        """An event's payload, as JSON; asks again while it is none. Raises `EOFError` when input ends."""
        question = f"{_place(call)} waits for the event {call.target}"
        while True:
            line = await self._ask(question, "the event's JSON")
            if line is None:
                raise EOFError
            try:
                return read_json(line.strip())
            except ValueError as trouble:
                question = f"that is no JSON: {trouble}"

    async def approve(self, call: Call, preview: Preview | None) -> Value:
        """Yes, no with a reason, yes with some arguments changed, or yes to all calls of the method in this run."""
        line = await self._ask(
            _approval(call, preview),
            f'y yes, n [reason] no, c {{"NAME": JSON}} yes with these arguments changed, '
            f"a yes to all {call.target} in this run",
        )
        word, _, rest = (line or "").strip().partition(" ")
        match word.lower():
            case "y" | "yes" if not rest.strip():
                return {"approved": True}
            case "a" | "all" if not rest.strip():
                return {"approved": True, "all": True}
            case "n" | "no":
                return {"approved": False, "reason": rest.strip()}
            case "c" | "change":
                try:
                    changed = read_json(rest.strip())
                except ValueError:
                    changed = None
                if isinstance(changed, dict):
                    return {"approved": True, "args": {**call.args, **changed}}
                return {"approved": False, "reason": UNUSABLE}
        return {"approved": False, "reason": "the answer was unclear" if word else ""}

    async def _ask(self, question: str, hint: str) -> str | None:
        """The typed line, or None at the end of input. Lines typed before the question was shown do not count."""
        with self._output.interrupted():
            _discard_typed_ahead()
            self._typed = b""
            print(f"\n{question}\n[{hint}] ", end="", file=sys.stderr, flush=True)
            line = None
            try:
                line = await self._line()
            finally:
                if line is None:  # nobody has ended the prompt's own line
                    print(file=sys.stderr, flush=True)
            return line

    async def _line(self) -> str | None:
        loop = asyncio.get_running_loop()
        handle = sys.stdin.fileno()
        ready: asyncio.Future[None] = loop.create_future()
        ended = False

        def on_input() -> None:
            nonlocal ended
            try:
                data = os.read(handle, 65536)
            except OSError:
                data = b""
            self._typed += data
            ended = not data
            if (ended or b"\n" in self._typed) and not ready.done():
                ready.set_result(None)

        loop.add_reader(handle, on_input)
        try:
            await ready
        finally:
            loop.remove_reader(handle)
        line, newline, self._typed = self._typed.partition(b"\n")
        if ended and not newline and not line:
            return None
        return line.decode("utf-8", "replace")


def _place(call: Call) -> str:
    return f"stage {call.stage}"


def _approval(call: Call, preview: Preview | None) -> str:
    who = f"agent {call.by}" if call.by else "the pipeline"
    policies = ", ".join(call.policies)
    rows = [
        f"{_place(call)}: {who} wants to call {call.target} ({call.effect or 'effect not described'})",
        f"  approval is required by the policy {policies}",
    ]
    for name, value in call.args.items():
        name = visible_in_line(name)
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        shown = visible(shown)
        rows.append(f"  {name}:\n{_indented(shown)}" if "\n" in shown else f"  {name}: {shown}")
    if preview is not None:
        rows.append(f"  the change:\n{_indented(visible(preview.difference))}")
    return "\n".join(rows)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _discard_typed_ahead() -> None:
    """Forgets what was typed before the question: nobody can have meant it as the answer."""
    try:
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    except (ImportError, OSError, ValueError):
        return
    except Exception:  # termios.error is no OSError
        return
