"""A model server on 127.0.0.1 that speaks OpenAI's chat completions and answers as a test says.

Runs in threads of the test's own process, so that a real `halo` process can be its client.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


class Reply:
    """An answer: text and tool calls (names on the wire, with arguments), or only a status. `hang` never answers. With
    `held` it is kept back until the test calls `let_go`; of a stream only the second half."""

    def __init__(
        self,
        say: str = "",
        call: list[tuple[str, Any]] | None = None,
        *,
        status: int = 200,
        hang: bool = False,
        held: bool = False,
        finish: str | None = None,
    ) -> None:
        self.say, self.call, self.status, self.hang, self.held = say, call or [], status, hang, held
        self.finish = finish or ("tool_calls" if call else "stop")


Script = Callable[[dict[str, Any]], "Reply | str"]


class ModelServer:
    """A server as a context. `replies` are given in order, the last again and again; a function gives one for the
    body of each request. `bodies` are the requests so far, in order of arrival."""

    def __init__(self, *replies: Reply | str | Script, usage: tuple[int, int] = (100, 20)) -> None:
        self.replies = list(replies)
        self.usage = usage
        self.bodies: list[dict[str, Any]] = []
        self.asked = threading.Semaphore(0)
        self.gone = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HALO_LOCAL_URL": f"http://127.0.0.1:{self._server.server_port}/v1",
            "HALO_LOCAL_API_KEY": "test-key",
            "NO_PROXY": "*",
        }

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        self._server.shutdown()
        self._server.server_close()

    def wait_for_request(self) -> None:
        """Until one request more has come."""
        assert self.asked.acquire(timeout=20), "no request came"

    def wait_for_leaver(self) -> None:
        """Until a client whose answer hangs has gone away."""
        assert self.gone.acquire(timeout=20), "no client went away"

    def take(self, body: dict[str, Any]) -> Reply:
        with self._lock:
            self.bodies.append(body)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        self.asked.release()
        if callable(reply):
            self.replies = [reply] if not self.replies else self.replies
            reply = reply(body)
        return Reply(reply) if isinstance(reply, str) else reply

    def let_go(self) -> None:
        """Gives the answers that are held, and holds none any more."""
        self._released.set()

    def hold(self, reply: Reply) -> None:
        while reply.held and not self._released.is_set() and not self._ends.is_set():
            self._released.wait(0.02)

    def hang(self, connection: Any) -> None:
        """Waits until the client goes away or the server ends."""
        connection.settimeout(0.02)
        while not self._ends.is_set():
            try:
                if not connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.gone.release()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what some tests are about."""


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = server.take(body)
            if reply.hang:
                server.hang(self.connection)
                self.close_connection = True
            elif reply.status != 200:
                self._send(reply.status, {"error": {"message": reply.say or "scripted", "type": "scripted"}})
            elif body.get("stream"):
                self._stream(body, reply)
            else:
                server.hold(reply)
                self._send(200, self._whole(body, reply))

        def _whole(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
            message: dict[str, Any] = {"role": "assistant", "content": reply.say or None}
            if reply.call:
                message["tool_calls"] = _calls(reply)
            return {
                "id": "r",
                "object": "chat.completion",
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
                "usage": self._usage(),
            }

        def _usage(self) -> dict[str, int]:
            given, made = server.usage
            return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}

        def _stream(self, body: dict[str, Any], reply: Reply) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

            def event(choices: list[dict[str, Any]], **more: Any) -> None:
                data = {
                    "id": "r",
                    "object": "chat.completion.chunk",
                    "model": body["model"],
                    "choices": choices,
                    **more,
                }
                self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
                self.wfile.flush()

            for at in range(0, len(reply.say), 5):
                if at >= len(reply.say) // 2:
                    server.hold(reply)
                event([{"index": 0, "delta": {"content": reply.say[at : at + 5]}, "finish_reason": None}])
            for at, call in enumerate(_calls(reply)):
                event([{"index": 0, "delta": {"tool_calls": [{**call, "index": at}]}, "finish_reason": None}])
            event([{"index": 0, "delta": {}, "finish_reason": reply.finish}])
            event([], usage=self._usage())
            self.wfile.write(b"data: [DONE]\n\n")

        def _send(self, status: int, document: dict[str, Any]) -> None:
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {"id": f"call{at}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
        for at, (name, args) in enumerate(reply.call)
    ]
