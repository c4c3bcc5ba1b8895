"""The outside of an example, on 127.0.0.1: models of both wires, Slack and web services, as a scenario has them.

Owns one server in threads of the test's process. What a scenario does not foresee is refused with a message that names
it, so that the run fails and says why.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from scenarios import Uses


class World:
    """A server as a context. `models` gives replies by a text that stands in the request: one, or a tuple that is
    taken one after the other, the last again and again. `web` gives a status and a body by `VERB path`, and `slack`
    answers by method."""

    def __init__(self, models: Mapping[str, Any], web: Mapping[str, tuple[int, Any]], slack: Mapping[str, Any]) -> None:
        self._models, self._web, self._slack = models, web, slack
        self._given: dict[str, int] = {}
        self._lock = threading.Lock()
        self.asked: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> World:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, verb: str, path: str, body: bytes) -> tuple[int, Any]:
        """The status and the body of an answer."""
        if path.endswith(("/chat/completions", "/messages")):
            return self._model(json.loads(body), openai=path.endswith("/chat/completions"))
        with self._lock:
            self.asked.append(f"{verb} {path}")
        if path.startswith("/slack/"):
            method = path.removeprefix("/slack/").partition("?")[0]
            if method in self._slack:
                return 200, {"ok": True, **self._slack[method]}
            return 200, {"ok": False, "error": f"no_answer_for_{method}"}
        wanted = f"{verb} {path.removeprefix('/web')}"
        return self._web.get(wanted, (599, f"the scenario has no answer to {wanted}"))

    def _model(self, request: dict[str, Any], *, openai: bool) -> tuple[int, Any]:
        text = json.dumps(request, ensure_ascii=False)
        found = [
            (words, reply)
            for words, reply in self._models.items()
            if json.dumps(words, ensure_ascii=False)[1:-1] in text
        ]
        if len(found) != 1:
            problem = f"{len(found)} replies of the scenario fit this request: {text[:2000]}"
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": problem}}
        words, reply = found[0]
        with self._lock:
            at = self._given[words] = self._given.get(words, -1) + 1
        if isinstance(reply, tuple):
            reply = reply[min(at, len(reply) - 1)]
        return 200, (_openai if openai else _anthropic)(request["model"], reply)


def _written(words: str) -> str:
    """A text as it stands inside a text of JSON."""
    return json.dumps(words, ensure_ascii=False)[1:-1]


def _text(reply: Any) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply)


def _openai(model: str, reply: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None if isinstance(reply, Uses) else _text(reply)}
    if isinstance(reply, Uses):
        message["tool_calls"] = [
            {"id": f"call{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
            for at, (name, args) in enumerate(reply.calls)
        ]
    ending = "tool_calls" if isinstance(reply, Uses) else "stop"
    return {
        "id": "r",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": ending}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def _anthropic(model: str, reply: Any) -> dict[str, Any]:
    content: list[dict[str, Any]] = (
        [{"type": "tool_use", "id": f"call{at}", "name": n, "input": args} for at, (n, args) in enumerate(reply.calls)]
        if isinstance(reply, Uses)
        else [{"type": "text", "text": _text(reply)}]
    )
    return {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if isinstance(reply, Uses) else "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }


def _handler(world: World) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def version_string(self) -> str:
            return "example"

        def log_message(self, *_: Any) -> None:
            pass

        def _any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = world.answer(self.command, self.path, body)
            is_text = isinstance(answer, str)
            data = answer.encode() if is_text else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8" if is_text else "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any

    return Handler
