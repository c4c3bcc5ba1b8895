"""The environments of the peers: one each under `.venvs`, made by uv the first time, with the versions named here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = {
    "langgraph": ("langgraph==1.2.24", "langchain==1.5.2"),
    "pydantic": ("pydantic-ai-slim==2.68.0", "pydantic-graph==2.68.0"),
    "burr": ("apache-burr==0.43.0",),
    "openai": ("openai==3.57.0", "openai-agents==0.24.0"),
}
"""CrewAI (836 MB), Prefect and DBOS are left out: no goal is a ratio to them."""

FOLDER = Path(__file__).parent / ".venvs"


class NoPeer(Exception):
    """A peer's environment cannot be made; the message says why."""


def python_of(environment: str) -> str:
    """The Python of an environment, made if need be; `halo` is the one that this runs in. Raises `NoPeer`."""
    if environment == "halo":
        return sys.executable
    folder, wanted = FOLDER / environment, "\n".join(VERSIONS[environment])
    python, installed = folder / "bin" / "python", folder / "installed.txt"
    if not (installed.is_file() and installed.read_text() == wanted):
        uv = os.environ.get("UV") or shutil.which("uv")
        if uv is None:
            raise NoPeer("uv is not found; start this with `make bench` or `uv run python benchmarks/run.py`")
        print(f"installing {', '.join(VERSIONS[environment])} …", file=sys.stderr)
        _run(uv, "venv", "--clear", "--python", sys.executable, str(folder))
        _run(uv, "pip", "install", "--python", str(python), *VERSIONS[environment])
        _run(str(python), "-m", "compileall", "-q", str(folder / "lib"), may_fail=True)
        installed.write_text(wanted)
    return str(python)


def _run(*command: str, may_fail: bool = False) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and not may_fail:
        raise NoPeer(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"{command[1]} failed")
