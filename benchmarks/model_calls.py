"""Model calls over loopback HTTP: Halo's client against the `openai` library (performance.md, row 8).

Both ask the same server, a process of its own, at 1 and at 64 requests under way, interleaved; the median of the
ratios of each round counts. Prints one JSON line. The library is installed into `benchmarks/.venvs/openai` by the
first run. `--rounds N` and `--requests N` make it longer or shorter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
PEER = HERE / ".venvs" / "openai"
GOALS = {1: 7.0, 64: 8.0}
PROMPT = "Say something short, please."
REPLY = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "gpt-4o-mini",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "A short answer of some forty characters."},
            "finish_reason": "stop",
            "logprobs": None,
        }
    ],
    "usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30},
}


class Answering(asyncio.Protocol):
    """Answers every POST at once, with the least work that HTTP allows."""

    body = json.dumps(REPLY).encode()
    response = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.got = b""

    def data_received(self, data: bytes) -> None:
        self.got += data
        while (end := self.got.find(b"\r\n\r\n")) >= 0:
            head = self.got[:end].lower()
            at = head.index(b"content-length:") + 15
            length = int(head[at:].split(b"\r\n", 1)[0])
            if len(self.got) < end + 4 + length:
                return
            self.got = self.got[end + 4 + length :]
            self.transport.write(self.response)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def halo(url: str) -> Callable[[], Awaitable[object]]:
    from halo_lang.boundary.call import Message, ModelRequest
    from halo_lang.boundary.host import Environment
    from halo_lang.models.client import ModelClient

    client = ModelClient(Environment({"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}, {}))
    request = ModelRequest("openai/gpt-4o-mini", "", (Message("user", (PROMPT,)),))

    async def one() -> object:
        return (await client.attempt(request)).value

    return one


def openai(url: str) -> Callable[[], Awaitable[object]]:
    from openai import AsyncOpenAI  # type: ignore[import-not-found]

    client = AsyncOpenAI(base_url=url, api_key="k", max_retries=0)

    async def one() -> object:
        reply = await client.chat.completions.create(
            model="gpt-4o-mini", messages=[{"role": "user", "content": PROMPT}], max_completion_tokens=4096
        )
        return reply.choices[0].message.content

    return one


async def work(make: Callable[[str], Callable[[], Awaitable[object]]], url: str) -> None:
    """Measures at each line of standard input, `IN-FLIGHT REQUESTS`; prints requests a second."""
    one = make(url)
    assert await one() == REPLY["choices"][0]["message"]["content"]  # type: ignore[index]
    for line in sys.stdin:
        in_flight, requests = map(int, line.split())
        await asyncio.gather(*(one() for _ in range(in_flight)))
        left = iter(range(requests))

        async def worker(left: object = left) -> None:
            for _ in left:  # type: ignore[attr-defined]
                await one()

        begun = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(in_flight)))
        print(requests / (time.perf_counter() - begun), flush=True)


def peer_python() -> Path:
    python = PEER / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "-q", "--python", sys.executable, PEER], check=True)
        subprocess.run(["uv", "pip", "install", "-q", "--python", python, "openai"], check=True)
    return python


def measure(rounds: int, requests: int) -> dict[str, object]:
    started: list[subprocess.Popen[str]] = []

    def start(python: Path | str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(python), __file__, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    def ask(process: subprocess.Popen[str], line: str) -> float:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    try:
        server = start(sys.executable, "--serve")
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        ours, theirs = start(sys.executable, "--work", "halo", url), start(peer_python(), "--work", "openai", url)
        figures: dict[str, object] = {}
        for in_flight, goal in GOALS.items():
            pairs = [
                (ask(ours, f"{in_flight} {requests}"), ask(theirs, f"{in_flight} {max(in_flight, requests // 8)}"))
                for _ in range(rounds)
            ]
            figures[str(in_flight)] = {
                "halo_per_s": round(median(a for a, _ in pairs)),
                "openai_per_s": round(median(b for _, b in pairs)),
                "ratio": round(median(a / b for a, b in pairs), 2),
                "goal": goal,
            }
        return {"benchmark": "model_calls", "in_flight": figures}
    finally:
        for process in started:
            process.kill()
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="Model calls over loopback HTTP against the openai library")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=1600)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
    elif given.work:
        asyncio.run(work({"halo": halo, "openai": openai}[given.work[0]], given.work[1]))
    else:
        print(json.dumps(measure(given.rounds, given.requests)))


if __name__ == "__main__":
    main()
