"""Providers of other packages: found by their entry point, installed as a user would, and harmless where broken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from halo_lang import HaloError, HaloRuntime, loads
from halo_lang.app import own
from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.cli.main import main

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "examples" / "halo-weather"
PROGRAM = """
tool Sky : Weather(units: "celsius")
pipeline Pack(city: String) -> Result:
  city
    |> Sky.today()
"""


class Distribution:
    def __init__(self, name: str) -> None:
        self.name, self.version = name, "2.1"


def installed(monkeypatch: pytest.MonkeyPatch, *entries: tuple[str, str, Any]) -> list[str]:
    """Makes packages installed: each with its name, the provider's name, and what its entry point gives (an exception
    is raised, a function without a mark called). Gives the list of what was loaded."""
    loaded: list[str] = []

    class Known:
        def __init__(self, package: str, name: str, gives: Any) -> None:
            self.dist, self.name, self.gives = Distribution(package), name, gives

        def load(self) -> Any:
            loaded.append(self.name)
            if isinstance(self.gives, BaseException):
                raise self.gives
            return self.gives() if isinstance(self.gives, Loading) else self.gives

    known = [Known(*entry) for entry in entries]
    monkeypatch.setattr(own, "_entry_points", lambda name=None: [e for e in known if name in (None, e.name)])
    monkeypatch.setattr(own, "_found", {})
    return loaded


class Loading:
    """What is done while an entry point is loaded."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __call__(self) -> Any:
        return self.work()


class Weather:
    def __init__(self, units: str = "celsius") -> None:
        self.units = units

    def today(self, city: str) -> str:
        return f"{city} in {self.units}"


async def test_a_provider_is_found_where_a_program_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = installed(monkeypatch, ("halo-weather", "Weather", Weather), ("other", "Other", Weather))
    program = loads(PROGRAM)
    assert loaded == ["Weather"], "only what is named is imported"
    assert "Effect not described: Sky.today" in str(program.plan())
    result = await HaloRuntime().load(program).run("Pack", {"city": "Oslo"})
    assert result.output == "Oslo in celsius"
    loads(PROGRAM)
    assert loaded == ["Weather"], "and once"


def test_nothing_is_looked_for_while_a_program_names_halos_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(name: str | None = None) -> Any:
        raise AssertionError("looked for entry points")

    monkeypatch.setattr(own, "_entry_points", looked)
    loads('tool F : Workspace(".")\npipeline P(x: String) -> Result:\n  x\n    |> F.read(path: x)\n')


def test_halos_own_are_never_replaced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = installed(monkeypatch, ("evil", "Workspace", Weather), ("evil", "Bash", Weather))
    program = loads('tool F : Workspace(".")\npipeline P(x: String) -> Result:\n  x\n    |> F.read(path: x)\n')
    assert [c.effect for c in program.plan().calls] == ["read"]
    assert main(["tools"]) == 0
    assert main(["tools", "Bash"]) == 0
    assert "evil" not in "".join(capsys.readouterr())
    assert loaded == []


def never_ends() -> None:
    threading.Event().wait()


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([("halo-weather", "Weather", ImportError("no suncalc"))],
         "halo-weather 2.1 cannot be used: importing it failed: ImportError: no suncalc"),
        ([("halo-weather", "Weather", SystemExit(1))], "importing it failed: SystemExit"),
        ([("halo-weather", "Weather", KeyboardInterrupt())], "importing it failed: KeyboardInterrupt"),
        ([("halo-weather", "Weather", Loading(never_ends))], "cannot be used: importing it took longer"),
        ([("halo-weather", "Weather", 5)], "halo-weather 2.1 cannot be used: the provider `Weather` must be a class"),
        ([("halo-weather", "Weather", object)], "halo-weather 2.1 cannot be used: the class object has no methods"),
        ([("a", "Weather", Weather), ("b", "Weather", Weather)], "the packages a 2.1 and b 2.1 both bring"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_error_that_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    entries: list[tuple[str, str, Any]],
    said: str,
) -> None:
    monkeypatch.setattr(own, "IMPORT_S", 0.2 if "longer" in said else 10.0)
    installed(monkeypatch, *entries)
    with pytest.raises(HaloError, match="PROVIDER_BROKEN") as raised:
        loads(PROGRAM)
    assert [d.code for d in raised.value.diagnostics] == ["PROVIDER_BROKEN"]
    assert said in raised.value.message
    file = tmp_path / "p.halo"
    file.write_text(PROGRAM)
    capsys.readouterr()
    assert main(["check", str(file)]) == 1
    out, err = capsys.readouterr()
    assert said in err.replace("\n", " ")
    assert "p.halo:2:12" in err
    assert "Traceback" not in out + err
    assert main(["tools"]) == 0
    out, err = capsys.readouterr()
    assert said in err
    assert "Workspace" in out
    assert main(["tools", "Weather"]) == 1
    assert said in capsys.readouterr().err


def test_what_a_package_prints_while_it_is_imported_stays_out_of_documents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def chatty() -> Any:
        print("hello from the package")
        return Weather

    installed(monkeypatch, ("halo-weather", "Weather", Loading(chatty)))
    file = tmp_path / "p.halo"
    file.write_text(PROGRAM)
    assert main(["check", str(file), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["diagnostics"] == []
    assert "hello from the package" in err


def test_a_provider_that_is_near_is_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(monkeypatch, ("halo-weather", "Weather", Weather))
    assert main(["tools", "Wether"]) == 2
    assert "did you mean `Weather`" in capsys.readouterr().err


# halo tools -------------------------------------------------------------------------------------------------------


def test_tools_lists_every_provider_with_its_methods_and_effects(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(monkeypatch, ("halo-weather", "Weather", Weather))
    assert main(["tools"]) == 0
    out = capsys.readouterr().out
    for name, provider in PROVIDERS.items():
        assert f"\n{name}: {provider.about}\n" in f"\n{out}"
        switches = {s.name: True for s in provider.settings if s.type == "Boolean"}
        for method in provider.describe(switches) or ():
            block = f"\n{out}".split(f"\n{name}: ")[-1].split("\n\n")[0]
            (line,) = [one for one in block.split("\n") if one.startswith(f"  {method.name}(")]
            assert str(method.effect) in line
    assert "Weather (package halo-weather 2.1)" in out
    assert "today(city)  effect not described" in out
    assert "write(path, content)          write, with `write: true`" in out


def test_tools_as_json_holds_the_schemas(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    installed(monkeypatch, ("halo-weather", "Weather", Weather), ("bad", "Bad", ValueError("x")))
    assert main(["tools", "--json"]) == 0
    found = {p["name"]: p for p in json.loads(capsys.readouterr().out)["providers"]}
    assert list(found) == [*PROVIDERS, "Bad", "Weather"]
    assert found["Weather"]["package"] == "halo-weather 2.1"
    assert found["Weather"]["methods"][0]["schema"]["properties"] == {"city": {"type": "string"}}
    assert found["Weather"]["methods"][0]["effect"] is None
    assert "ValueError: x" in found["Bad"]["error"]
    assert found["Mcp"]["methods"] is None
    (run,) = found["Bash"]["methods"]
    assert "values" not in run["schema"]["properties"], "what Halo itself gives is nobody's argument"
    assert [m["needs"] for m in found["Sql"]["methods"]] == [None, "write", None]
    schema = json.loads((ROOT / "docs" / "schemas" / "tools.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate({"providers": list(found.values())})
    for described, made in (
        (schema, {"providers": []}),
        (schema["$defs"]["provider"], found["Sql"]),
        (schema["$defs"]["setting"], found["Sql"]["settings"][0]),
        (schema["$defs"]["method"], run),
        (schema["$defs"]["case"], found["Sql"]["methods"][1]["cases"][0]),
    ):
        assert described["description"]
        assert set(described["required"]) == described["properties"].keys() == made.keys()


def test_tools_says_where_an_effect_is_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "Sql", "--json"]) == 0
    (sql,) = json.loads(capsys.readouterr().out)["providers"]
    query, execute, _ = sql["methods"]
    assert (query["effect"], query["cases"]) == ("read", [])
    (case,) = execute["cases"]
    assert (execute["effect"], case["effect"]) == ("external", "write")
    assert main(["tools"]) == 0
    line = f"  execute(sql, params?)  external; write {case['when']}, with `write: true`\n"
    assert line in capsys.readouterr().out


def test_tools_of_one_name_shows_each_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "Sql"]) == 0
    out = capsys.readouterr().out
    assert "tool NAME : Sql(address, write: false)" in out
    assert "      sql: string. One statement" in out
    assert main(["tools", "Nothing"]) == 2


# A real package ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, installed into a folder of its own. It is built by what stands beside it already, so that
    nothing is downloaded."""
    uv = os.environ.get("UV") or shutil.which("uv") or str(ROOT / ".venv-tools" / "bin" / "uv")
    source = tmp_path_factory.mktemp("source") / "halo-weather"
    shutil.copytree(PACKAGE, source)
    folder = tmp_path_factory.mktemp("target")
    subprocess.run(
        [uv, "pip", "install", "--quiet", "--offline", "--python", sys.executable, "--no-deps", "--no-build-isolation",
         "--target", str(folder), str(source)],
        check=True,
    )  # fmt: skip
    return folder


def halo(target: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(target), str(ROOT / "src")))
    return subprocess.run(
        [sys.executable, "-c", "from halo_lang.cli.main import entry; entry()", *words],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"},
    )  # fmt: skip


def test_the_example_package_is_installed_and_used(target: Path, tmp_path: Path) -> None:
    (tmp_path / "p.halo").write_text(PROGRAM)
    shown = halo(target, tmp_path, "tools", "Weather")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("Weather (package halo-weather 1.0.0): The weather, today and in the next days.\n")
    assert "today(city): read" in shown.stdout
    assert "alarm(city, message): external" in shown.stdout
    planned = halo(target, tmp_path, "plan", "p.halo")
    assert "calls Sky.today: read" in planned.stdout
    ran = halo(target, tmp_path, "run", "p.halo", "city=Oslo")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"city": "Oslo", "degrees": -2.0}
    again = halo(target, tmp_path, "run", "p.halo", "city=Atlantis")
    assert again.returncode == 1
    assert "there is for helsinki, lisbon, oslo" in again.stderr
    (tmp_path / "p.halo").write_text(PROGRAM.replace("celsius", "kelvin").replace("units", "unit"))
    assert "UNKNOWN_ARGUMENT" in halo(target, tmp_path, "check", "p.halo").stderr


def test_the_example_of_the_example_package_is_as_it_should_be(target: Path, tmp_path: Path) -> None:
    shutil.copy(PACKAGE / "example" / "trip.halo", tmp_path)
    for words in (["check", "--strict", "trip.halo"], ["fmt", "--check", "trip.halo"]):
        done = halo(target, tmp_path, *words)
        assert done.returncode == 0, done.stderr
    assert "Needs a person's approval: Weather.alarm" in halo(target, tmp_path, "plan", "trip.halo").stdout
    (tmp_path / "trip.halo").write_text((tmp_path / "trip.halo").read_text().replace("celsius", "kelvin"))
    assert "`units` must be one of celsius, fahrenheit" in halo(target, tmp_path, "check", "trip.halo").stderr
    assert 'units: "celsius" or "fahrenheit" = "celsius". How' in halo(target, tmp_path, "tools", "Weather").stdout


def test_the_tests_of_the_example_package_pass(target: Path, tmp_path: Path) -> None:
    """In the package's own folder, as whoever copies it runs them."""
    shutil.copy(PACKAGE / "pyproject.toml", tmp_path)
    for folder in ("tests", "example"):
        shutil.copytree(PACKAGE / folder, tmp_path / folder)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(target), str(ROOT / "src")))},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_without_the_package_its_program_is_an_error_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "p.halo").write_text(PROGRAM)
    assert "UNKNOWN_PROVIDER" in halo(tmp_path, tmp_path, "check", "p.halo").stderr
