"""`halo plan` reads the program, `halo.toml` and `halo.lock`, and does nothing else: no runtime, no model, no event
loop, no socket, no process, no other file (architecture.md, invariant 2). Seen by an audit hook in its process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WATCHED = """
import os, sys
mode, folder, *argv = sys.argv[1:]
opened, forbidden = [], []

def hook(event, args):
    if event == "open" and isinstance(args[0], (str, bytes)):
        opened.append((os.fsdecode(args[0]), args[2] or 0))
    elif event.startswith(("socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system")):
        forbidden.append(event)
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.chmod", "shutil.rmtree"):
        forbidden.append(event)

os.environ.pop("SLACK_BOT_TOKEN", None)
from halo_lang.cli.main import main
sys.addaudithook(hook)
if mode == "break":
    open(os.path.join(folder, "other.txt"), "w").close()
    __import__("socket").socket().close()
code = main(argv)
loaded = sorted(sys.modules)
library = [p for p in (sys.prefix, sys.base_prefix, os.path.dirname(os.path.dirname(__import__("halo_lang").__file__)))]
outside = [(n, f) for n, f in opened if not any(os.path.realpath(n).startswith(os.path.realpath(p)) for p in library)]
print("CODE", code, file=sys.stderr)
print("FORBIDDEN", sorted(set(forbidden)), file=sys.stderr)
print("OPENED", sorted({os.path.relpath(n, folder) for n, _ in outside}), file=sys.stderr)
print("WRITTEN", sorted({os.path.relpath(n, folder) for n, f in opened if f & (os.O_WRONLY | os.O_RDWR)
                         and not n.endswith((".pyc",)) and ".pyc." not in n}), file=sys.stderr)
print("LOADED", " ".join(loaded), file=sys.stderr)
"""

PROGRAM = """\
policy Careful : ApproveEffects(write) & MaxSpend(0.50) & DenyArgs("Files.write", path: "*.env")
tool Files : Workspace("./notes", write: true)
tool Chat  : Slack(Env.SLACK_BOT_TOKEN, channel: "#notes")
tool Web   : Mcp("a-server-that-is-never-started")
tool Shell : Bash()
agent Clerk [openai/gpt-4o, max_steps: 8]
  equips Files, Web
  requires Careful
agent Small [embedded/smollm2]
pipeline Tidy(task: String) -> Result:
  task
    |> Clerk.work(tools: [Files, Web]) as report
    |> Small.shorten()
    |> Shell.run(command: "echo {{report}}")
    |> Chat.post(text: "{{report}}")
"""
PRICES = '[prices]\n"openai/gpt-4o" = {input = 1, output = 2}\n'

NEVER = (
    *("asyncio", "socket", "ssl", "subprocess", "aiohttp", "threading", "multiprocessing", "http", "urllib.request"),
    *("halo_lang.runtime", "halo_lang.models", "halo_lang.providers", "halo_lang.doors"),
    *("rich", "dotenv", "xllamacpp", "pydantic_ai"),
)


def watched(folder: Path, *argv: str, mode: str = "watch") -> dict[str, str]:
    (folder / "tidy.halo").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, mode, str(folder), *argv],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    rows = [row.partition(" ") for row in done.stderr.split("\n")]
    found = {name: rest for name, _, rest in rows if name.isupper()}
    assert "CODE" in found, done.stderr
    return found


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ((), "0"),
        (("--json",), "0"),
        (("--pipeline", "Tidy", "--input-tokens", "10"), "0"),
        (("--max-cost", "0.01", "--deny", "external"), "3"),
        (("--graph", "svg"), "0"),
        (("--graph", "mermaid"), "0"),
        (("--diff", "tidy.halo"), "0"),
    ],
)
def test_a_plan_reads_the_program_and_nothing_else(argv: tuple[str, ...], code: str, tmp_path: Path) -> None:
    found = watched(tmp_path, "plan", "tidy.halo", *argv)
    assert found["CODE"] == code
    assert found["FORBIDDEN"] == "[]"
    assert found["OPENED"] == "['halo.lock', 'tidy.halo']"  # looked for, since the program has a server
    assert found["WRITTEN"] == "[]"
    loaded = found["LOADED"].split(" ")
    assert [name for name in loaded if any(name == never or name.startswith(f"{never}.") for never in NEVER)] == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tidy.halo"]


def test_a_projects_prices_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "halo.toml").write_text(PRICES, encoding="utf-8")
    (tmp_path / ".env").write_text("SLACK_BOT_TOKEN=x", encoding="utf-8")
    found = watched(tmp_path, "plan", "tidy.halo")
    assert found["OPENED"] == "['halo.lock', 'halo.toml', 'tidy.halo']"
    assert found["FORBIDDEN"] == "[]"


def test_a_kept_plan_is_the_one_file_that_is_written(tmp_path: Path) -> None:
    found = watched(tmp_path, "plan", "tidy.halo", "--out", "plan.json")
    assert found["CODE"] == "0"
    assert "socket" not in found["FORBIDDEN"]
    assert "subprocess" not in found["FORBIDDEN"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plan.json", "tidy.halo"]


def test_the_hook_sees_what_it_is_to_see(tmp_path: Path) -> None:
    found = watched(tmp_path, "plan", "tidy.halo", mode="break")
    assert "socket" in found["FORBIDDEN"]
    assert "other.txt" in found["OPENED"]
    assert "other.txt" in found["WRITTEN"]
