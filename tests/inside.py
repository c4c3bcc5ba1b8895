"""Commands in tests: `halo …` inside this process, in the working folder, with nothing of whoever runs the tests."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from halo_lang.cli.main import main

_CALLERS_OWN = re.compile(r"(HALO|XDG_|FORCE_COLOR|.*(_API_KEY|_BASE_URL|_TOKEN)\Z)")


class Said(NamedTuple):
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The document that it wrote to standard output."""
        return json.loads(self.out)


class Commands:
    """Runs commands; `files` are written into the working folder."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture

    def __call__(self, *words: str) -> Said:
        self._capture.readouterr()
        code = main(list(words))
        said = self._capture.readouterr()
        return Said(code, said.out, said.err)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def begun(self, *words: str) -> tuple[str, Said]:
        """Runs `halo run … --json`; gives the run's id too."""
        said = self("run", *words, "--json")
        return said.document["runId"], said

    def lines(self, run_id: str, folder: str = "recordings") -> list[dict[str, Any]]:
        """The lines of a run's recording, or of its journal in `runs`."""
        path = self.folder / ".halo" / folder / f"{run_id}.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def kept(self) -> list[str]:
        """The files in `.halo`, without their ids."""
        found = sorted(p.relative_to(self.folder / ".halo") for p in (self.folder / ".halo").rglob("*") if p.is_file())
        return [re.sub(r"[0-9a-f-]{36}", "ID", path.as_posix()) for path in found]


@pytest.fixture
def halo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if _CALLERS_OWN.match(name):
            monkeypatch.delenv(name)
    surroundings: Mapping[str, str] = {"NO_COLOR": "1", "TERM": "dumb", "HALO_LOCAL_URL": "http://127.0.0.1:9/v1"}
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    return Commands(folder, capsys)
