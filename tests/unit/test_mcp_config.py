"""Which server a tool means: its settings, and what a `.mcp.json` says of a name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_servers import RAW, echoed, host, notes

from halo_lang.app import above
from halo_lang.app.project import read_project
from halo_lang.boundary.host import ConfigError
from halo_lang.providers.mcp import Mcp
from halo_lang.providers.mcp.config import read_server


def write(folder: Path, servers: Any) -> Path:
    file = folder / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return file


async def test_a_name_of_mcp_json_above_the_program(tmp_path: Path) -> None:
    program = tmp_path / "flows" / "one"
    program.mkdir(parents=True)
    entry = {"command": sys.executable, "args": [RAW, "plain", "notes"], "env": {"A": "${TOKEN}", "B": "${NONE:-b}"}}
    write(tmp_path, {"mine": entry})
    server = Mcp({"command": "mine", "env": {"C": "c"}}, host(program, {"TOKEN": "t-12345678", "OTHER": "x"}))
    try:
        assert server.secrets == {"TOKEN": "t-12345678"}
        assert server.shown().endswith(" with A, B, C")
        assert await echoed(server) == "hi"
    finally:
        await server.close()
    begun = notes(tmp_path)[0]
    assert begun["cwd"] == str(tmp_path.resolve())
    assert {"A", "B", "C"} <= set(begun["variables"])
    assert "OTHER" not in begun["variables"]


def test_a_file_above_that_somebody_else_put_there_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may write to a folder above could otherwise have commands started, and prices changed."""
    program = tmp_path / "flow"
    program.mkdir()
    planted = [write(tmp_path, {"mine": {"command": sys.executable}}), tmp_path / "halo.toml"]
    planted[1].write_text('[prices]\n"openai/gpt-4o" = {input = 0, output = 0}\n', "utf-8")
    real = above._owner
    monkeypatch.setattr(above, "_owner", lambda path: 4242 if Path(path) in planted else real(path))
    with pytest.raises(ConfigError, match="belongs to another user"):
        read_server({"command": "mine"}, host(program))
    with pytest.raises(ConfigError, match="belongs to another user"):
        read_project(str(program / "p.halo"))
    assert read_server({"command": "mine"}, host(tmp_path)).command == (sys.executable,), "beside it is as the program"
    monkeypatch.setattr(above, "_owner", lambda path: 4242)
    assert read_server({"command": "mine"}, host(program)).command == (sys.executable,), "it is the program's owner's"


def test_a_variable_in_it_that_is_missing_is_named(tmp_path: Path) -> None:
    file = write(tmp_path, {"mine": {"url": "https://${HOST}/mcp", "headers": {"X": "${ONE} ${HOST}"}}})
    with pytest.raises(ConfigError) as caught:
        read_server({"command": "mine"}, host(tmp_path, {}))
    assert str(caught.value).splitlines() == [
        f"the variable HOST is not set, and the server `mine` in {file} needs it",
        f"the variable ONE is not set, and the server `mine` in {file} needs it",
    ]


def test_an_address_in_it_with_variables_of_the_projects_own(tmp_path: Path) -> None:
    write(tmp_path, {"mine": {"type": "http", "url": "https://${HOST}/mcp", "headers": {"X": "Bearer ${KEY}"}}})
    server = read_server({"command": "mine"}, host(tmp_path, {"HOST": "h"}, {"KEY": "k-12345678"}))
    assert (server.url, server.headers) == ("https://h/mcp", {"X": "Bearer k-12345678"})
    assert server.secrets == {"HOST": "h", "KEY": "k-12345678"}


def test_a_command_with_arguments_is_no_name(tmp_path: Path) -> None:
    write(tmp_path, {"sh": {"url": "https://h/mcp"}})
    assert read_server({"command": "sh", "arguments": ["-c", "true"]}, host(tmp_path)).url is None
    assert read_server({"command": "sh"}, host(tmp_path)).url == "https://h/mcp"


def test_a_name_that_it_does_not_know_gets_the_nearest(tmp_path: Path) -> None:
    file = write(tmp_path, {"clock": {"command": "sh"}})
    with pytest.raises(ConfigError) as caught:
        read_server({"command": "clok"}, host(tmp_path))
    assert f"{file} knows no server of that name; did you mean `clock`?" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", "mcpServers"),
        ('{"mcpServers": []}', "mcpServers"),
        ('{"mcpServers": {"mine": 1}}', "must be an object"),
        ('{"mcpServers": {"mine": {}}}', "either `command` or `url`"),
        ('{"mcpServers": {"mine": {"command": "a", "url": "b"}}}', "either `command` or `url`"),
        ('{"mcpServers": {"mine": {"type": "sse", "url": "http://h"}}}', "has the type `sse`"),
        ('{"mcpServers": {"mine": {"command": "sh", "args": "x"}}}', "`args` must be a list of texts"),
        ('{"mcpServers": {"mine": {"command": "sh", "env": {"A": 1}}}}', "`env` must be an object of texts"),
        ('{"mcpServers": {"mine": {"command": "sh", "cwd": "none"}}}', "there is no such folder"),
        (" " * (1 << 20) + "{}", "more than 1 MiB"),
    ],
)
def test_a_file_with_an_error_is_an_error_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / ".mcp.json").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as caught:
        read_server({"command": "mine"}, host(tmp_path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "either a command"),
        ({"command": "sh", "url": "http://h/"}, "either a command"),
        ({"url": "http://h/", "arguments": ["x"]}, "no command and no arguments"),
        ({"url": "http://h/", "env": {"A": "b"}}, "`env:` of Mcp goes with a command"),
        ({"command": "sh", "headers": {"A": "b"}}, "go with `url:`"),
        ({"command": "./none"}, "there is no command `./none`"),
        ({"command": "/"}, "there is no command `/`"),
        ({"command": "sh", "arguments": ["a\0b"]}, "without NUL"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_server(settings, host(tmp_path))
    assert message in str(caught.value)


def test_a_command_beside_the_program(tmp_path: Path) -> None:
    program = tmp_path / "serve.sh"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    assert read_server({"command": "./serve.sh"}, host(tmp_path)).command == (str(program),)
