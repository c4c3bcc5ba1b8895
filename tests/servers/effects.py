"""A tool server on 127.0.0.1, outside of every run: it has effects, counts them by path, and takes its time to say so.

A client that goes away in between has had its effect all the same.
"""

from __future__ import annotations

import json
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
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, takes_s))
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> EffectServer:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def count(self, kind: Counter[str], path: str) -> None:
        with self._lock:
            kind[path.strip("/")] += 1


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
