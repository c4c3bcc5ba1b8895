"""Http, Sql and the stores inside programs: what plans say of them, what runs do, and what nobody gets to see."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from halo_lang import HaloRuntime, load

SECRET = "sesame-sesame-1234"
PROGRAM = """
policy Asks : ApproveEffects(write, external)
policy Guarded : DenyArgs("Api.get", path: "admin*")
tool Api : Http(Env.API, headers: {{"Authorization": Env.API_KEY}}, private: true)
tool Base : Sql("sqlite:///base.db", write: true)
tool Elsewhere : Sql(Env.ELSEWHERE, write: true)
store Seen : KeyValue("memory.db")
store Library : Documents("memory.db")

{pipeline}
"""


def program(folder: Path, pipeline: str) -> Any:
    with sqlite3.connect(folder / "base.db") as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()
    (folder / "p.halo").write_text(PROGRAM.format(pipeline=pipeline))
    return load(folder / "p.halo")


def test_a_plan_says_what_each_would_do(tmp_path: Path) -> None:
    plan = program(tmp_path, """
pipeline P(x: String) -> Result requires Asks:
  x
    |> Api.get(path: x)
    |> Api.delete(path: x)
    |> Base.query(sql: "SELECT 1")
    |> Base.execute(sql: "DELETE FROM people")
    |> Elsewhere.execute(sql: "DELETE FROM people")
    |> Seen.set(key: x, value: 1)
    |> Library.search(query: x)
""").plan("P")  # fmt: skip
    assert [(c.target, c.effect, c.approval) for c in plan.calls] == [
        ("Api.get", "read", ()),
        ("Api.delete", "external", ("Asks",)),
        ("Base.query", "read", ()),
        ("Base.execute", "write", ("Asks",)),
        ("Elsewhere.execute", "external", ("Asks",)),
        ("Seen.set", "write", ("Asks",)),
        ("Library.search", "read", ()),
    ]


async def test_a_run_uses_them_all_and_the_next_one_remembers(tmp_path: Path) -> None:
    loaded = program(tmp_path, """
pipeline P(name: String) -> Result:
  name
    |> Seen.get() as before
    |> Base.execute(sql: "INSERT INTO people VALUES (:name)", params: {"name": name})
    |> Library.add(text: "Met {{name}} today", id: name)
    |> Seen.set(key: name, value: {"met": true})
    |> Base.query(sql: "SELECT count(*) AS n FROM people") as people
    |> Library.search(query: "who was met", limit: 3) as met
    |> System.Print("{{before}} {{people}} {{met}}")
""")  # fmt: skip
    first = await HaloRuntime().load(loaded).run("P", {"name": "Ada'); DROP TABLE people; --"})
    assert first.ok, first.error
    again = await HaloRuntime().load(loaded).run("P", {"name": "Ada'); DROP TABLE people; --"})
    data: Any = again.context["data"]
    assert data["before"] == {"met": True}
    assert data["people"] == [{"n": 2}]
    assert len(data["met"]) == 1


async def test_a_secret_that_a_server_sends_back_is_masked(tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.json_response({"you sent": dict(request.headers), "at": request.path})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", echo)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    loaded = program(tmp_path, """
pipeline P(x: String) -> Result requires Guarded:
  x
    |> Api.get(path: x)
""")  # fmt: skip
    variables = {"API": f"http://127.0.0.1:{runner.addresses[0][1]}/v1", "API_KEY": SECRET}
    try:
        runtime = HaloRuntime(environment=variables).load(loaded)
        result = await runtime.run("P", {"x": "me"})
        output: Any = result.output
        assert output["body"]["you sent"]["Authorization"] == "[Env.API_KEY]"
        assert output["body"]["at"] == "/v1/me"
        assert SECRET not in json.dumps(result.context)
        for path in ("admin/x", "./admin/x", "ADMIN"):
            denied = await runtime.run("P", {"x": path})
            assert denied.error is not None
            assert denied.error.code == "DENIED", path
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("address", ["postgresql://u:p4ss@w0rd@h/d", "mysql://u:p4ss@w0rd@h/d"])
async def test_a_wrong_address_ends_a_run_before_it_begins_and_stays_secret(tmp_path: Path, address: str) -> None:
    from halo_lang import HaloError

    loaded = program(tmp_path, """
pipeline P(x: String) -> Result:
  x
    |> System.Print("begun")
    |> Elsewhere.query(sql: "SELECT 1")
""")  # fmt: skip
    shown: list[Any] = []
    with pytest.raises(HaloError) as raised:
        await HaloRuntime(environment={"ELSEWHERE": address}, on_print=shown.append).load(loaded).run("P", {"x": "y"})
    assert "tool Elsewhere" in raised.value.message
    assert "w0rd" not in raised.value.message
    assert shown == []
