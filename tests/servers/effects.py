"""A tool server on 127.0.0.1, outside of every run: it has effects, counts them by path, and takes its time to say so.

A client that goes away in between has had its effect all the same.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class EffectServer:
    """A server as a context. A POST to a path is an effect, a GET a look; `effects` and `looks` count them."""

    def __init__(self, takes_s: float = 0.05) -> None:
        self.effects: Counter[str] = Counter()
        self.looks: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._server = _Counting(("127.0.0.1", 0), _handler(self, takes_s))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> EffectServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def settle(self) -> None:
        """Waits until all that it was asked for before is done, by clients that have died too."""
        with socket.create_connection(("127.0.0.1", self._server.server_port)) as last:
            last.shutdown(socket.SHUT_WR)
            last.recv(1)  # it is closed: those that came before have been taken up
        with self._server.changed:
            assert self._server.changed.wait_for(lambda: not self._server.under_way, 60)

    def count(self, kind: Counter[str], path: str) -> None:
        with self._lock:
            kind[path.strip("/")] += 1


class _Counting(ThreadingHTTPServer):
    """Counts the connections that it has taken up and not ended."""

    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        self.under_way = 0
        self.changed = threading.Condition()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.changed:
            self.under_way += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.changed:
                self.under_way -= 1
                self.changed.notify_all()


def _handler(server: EffectServer, takes_s: float) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(server.effects)

        def do_GET(self) -> None:
            self._answer(server.looks)

        def _answer(self, kind: Counter[str]) -> None:
            time.sleep(takes_s / 2)
            server.count(kind, self.path)
            time.sleep(takes_s / 2)
            data = json.dumps({"path": self.path}).encode()
            try:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # whoever asked has died

    return Handler
