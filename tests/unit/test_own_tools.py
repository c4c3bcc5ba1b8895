"""Functions and classes as providers: what they are described as, how they are called, and what is refused."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import reduce
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest

from halo_lang import Answer, HaloError, HaloRuntime, ModelRequest, ToolError, ToolUse, Usage, load, loads, tool
from halo_lang.boundary.attempt import AttemptFailed
from halo_lang.boundary.host import ConfigError
from halo_lang.catalog.describe import Provider
from halo_lang.providers.own.describing import described


class Weather:
    """The weather. As it is and as it was."""

    closed: list[str] = []  # noqa: RUF012

    def __init__(self, key: str, units: str = "celsius", *, days: int = 3, more: dict[str, Any] | None = None) -> None:
        self.key, self.units, self.days, self.more = key, units, days, more

    @tool(effect="read", idempotent=True)
    async def today(self, city: str, at: Annotated[int, "The hour. From 0."] = 12) -> dict[str, Any]:
        """Gives today's weather in a city. It is
        quite right.

        And more of this.
        """
        return {"city": city, "at": at, "units": self.units, "days": self.days, "more": self.more}

    @tool(effect="write", timeout_s=5)
    def note(self, texts: list[str], kind: Literal["good", "bad"] | None = None) -> list[Any]:
        return [threading.current_thread() is not threading.main_thread(), texts, kind]

    @tool
    async def undescribed(self) -> None:
        """Says nothing of its effect"""

    @tool(effect="external")
    @staticmethod
    def shout(text: str) -> str:
        return text.upper()

    @classmethod
    @tool(effect="external")
    def named(cls, times: int) -> str:
        return cls.__name__ * times

    def hidden(self) -> str:
        return self.key

    def close(self) -> None:
        self.closed.append(self.key)


class Plain:
    def __init__(self, start: Any = 0) -> None:
        self.at = start

    def add(self, number: int, when: datetime | None = None) -> Any:
        self.at += number
        return self.at

    async def undone(self, anything):  # type: ignore[no-untyped-def]
        return anything

    def _private(self) -> None: ...


def provider(given: Any, name: str = "W") -> Provider:
    return described(name, given).provider


def methods(given: Any) -> dict[str, Any]:
    return {m.name: m for m in provider(given).describe({}) or ()}


def started(given: Any, **settings: Any) -> Any:
    made = described("W", given).start(settings)

    async def call(method: str, **args: Any) -> Any:
        return await made.call(method, args)

    return call


async def refusal(call: Awaitable[Any]) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await call
    assert "\n" not in raised.value.message
    assert "Traceback" not in raised.value.message
    return raised.value


# Descriptions -----------------------------------------------------------------------------------------------------


def test_a_class_becomes_a_provider() -> None:
    made = provider(Weather)
    assert (made.name, made.keyword, made.about) == ("W", "tool", "The weather.")
    assert [(s.name, s.type, s.required, s.positional, s.secret, s.default) for s in made.settings] == [
        ("key", "String", True, True, True, None),
        ("units", "String", False, True, False, "celsius"),
        ("days", "Number", False, False, False, 3),
        ("more", "Object", False, False, False, None),
    ]
    found = methods(Weather)
    assert [(m.name, m.effect, m.idempotent, m.timeout_s) for m in found.values()] == [
        ("today", "read", True, 60.0),
        ("note", "write", False, 5.0),
        ("undescribed", None, False, 60.0),
        ("shout", "external", False, 60.0),
        ("named", "external", False, 60.0),
    ]
    assert found["today"].about == "Gives today's weather in a city."
    assert found["note"].about == "Note."
    assert found["undescribed"].about == "Says nothing of its effect"
    assert found["today"].schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "at": {"type": "integer", "description": "The hour. From 0.", "default": 12},
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert found["named"].schema["properties"] == {"times": {"type": "integer"}}


def test_a_class_without_marks_has_its_public_methods_and_no_effects() -> None:
    found = methods(Plain)
    assert [(m.name, m.effect) for m in found.values()] == [("add", None), ("undone", None)]
    assert found["add"].schema["properties"] == {"number": {"type": "integer"}, "when": {}}
    assert found["undone"].schema["properties"] == {"anything": {}}


def test_a_subclass_has_what_it_inherits_and_replaces() -> None:
    class Sub(Weather):
        @tool(effect="read")
        async def shout(self, loud: bool) -> str:  # type: ignore[override]
            return str(loud)

    assert list(methods(Sub)) == ["today", "note", "undescribed", "shout", "named"]
    assert methods(Sub)["shout"].schema["properties"] == {"loud": {"type": "boolean"}}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}), (int, {"type": "integer"}), (float, {"type": "number"}), (bool, {"type": "boolean"}),
        (None, {"type": "null"}), (Any, {}), (object, {}), (list, {"type": "array"}), (dict, {"type": "object"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list[list[str]], {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        (dict[str, Any], {"type": "object"}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (int | None, {"type": ["integer", "null"]}), (Optional[str], {"type": ["string", "null"]}),  # noqa: UP045
        (Union[str, int], {"type": ["string", "integer"]}), (str | int | None, {"type": ["string", "integer", "null"]}),  # noqa: UP007
        (list[str] | None, {"type": ["array", "null"], "items": {"type": "string"}}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"type": ["string", "integer"], "enum": ["a", 1]}),
        (Literal["a"] | None, {"type": ["string", "null"], "enum": ["a", None]}),
        (Annotated[str, "What it is."], {"type": "string", "description": "What it is."}),
        (Annotated[list[int], 7], {"type": "array", "items": {"type": "integer"}}), (Any | None, {}),
    ],
)  # fmt: skip
def test_what_types_become(annotation: Any, schema: dict[str, Any]) -> None:
    def function(it: Any) -> None: ...

    function.__annotations__["it"] = annotation
    assert methods([tool(function)])["function"].schema["properties"]["it"] == schema


class Shape(TypedDict):
    a: int


@pytest.mark.parametrize(
    "annotation",
    [datetime, Path, bytes, set[str], tuple[int, int], dict[int, str], Shape, Callable[[], int], list[str] | dict,
     Literal[b"x"], list[datetime], "Nowhere", "1 +", type, complex],
)  # fmt: skip
def test_a_type_without_a_form_in_json_is_refused_when_it_is_registered(annotation: Any) -> None:
    @tool(effect="read")
    def function(it: Any) -> None: ...

    function.__annotations__["it"] = annotation
    with pytest.raises(ConfigError, match=r"`W\.function`"):
        described("W", function)
    with pytest.raises(HaloError, match="function") as raised:
        HaloRuntime().register("W", function)
    assert raised.value.code == "CONFIG"


def mark_wrongly(**named: Any) -> None:
    tool(**named)(lambda: None)


def test_marks_that_cannot_be_are_refused_where_they_stand() -> None:
    with pytest.raises(ValueError, match="external"):
        mark_wrongly(effect="delete")
    for wrong in (0, -1, float("nan"), float("inf"), "5", True):
        with pytest.raises(ValueError, match="timeout_s"):
            mark_wrongly(timeout_s=wrong)
    for thing in (Weather, 5, "f"):
        with pytest.raises(TypeError, match="functions and methods"):
            tool(thing)  # type: ignore[type-var]


@tool
def bare(x): ...  # type: ignore[no-untyped-def]


@tool
def starred(*x: int) -> None: ...


@tool
def named_starred(**x: int) -> None: ...


@tool
def by_place(x: int, /) -> None: ...


class Empty:
    pass


class Odd:
    def __init__(self, *args: int) -> None: ...

    def go(self) -> None: ...


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (bare, "has no type"), (starred, "no `\\*`"), (named_starred, "no `\\*`"), (by_place, "no `\\*`"),
        (lambda: 1, "cannot be a method's name"), (Empty, "has no methods"), (Odd, "no `\\*`"), (int, "has no methods"),
        (5, "must be a class"), ("f", "must be a class"), ([], "must be a class"), ([bare, 1], "must be a class"),
        (Weather("k"), "must be a class"), ({}, "must be a class"),
        ([lambda: 1, lambda: 2], "two functions of one name"),
    ],
)  # fmt: skip
def test_what_cannot_be_described_is_refused(given: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        described("W", given)


@pytest.mark.parametrize(
    "name", ["", "a b", "a.b", "1a", "é", "a-b", "x" * 101, "Workspace", "KeyValue", "Mcp", 5, None]
)
def test_names_that_a_provider_cannot_have_are_refused(name: Any) -> None:
    with pytest.raises(HaloError):
        HaloRuntime().register(name, Weather)
    with pytest.raises(HaloError):
        loads("pipeline P(x: Any) -> Result:\n  x\n", providers={name: Weather})


# Calls ------------------------------------------------------------------------------------------------------------


async def test_methods_are_called_with_settings_and_arguments() -> None:
    call = started(Weather, key="k", days=5, more={"a": 1})
    assert await call("today", city="Oslo", at=3.0) == {
        "city": "Oslo", "at": 3, "units": "celsius", "days": 5, "more": {"a": 1},
    }  # fmt: skip
    assert await call("note", texts=["a"], kind="good") == [True, ["a"], "good"], "it runs in a thread"
    assert await call("shout", text="a") == "A"
    assert await call("named", times=2) == "WeatherWeather"
    assert await call("undescribed") is None


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("today", {}), ("today", {"city": 1}), ("today", {"city": "a", "at": 1.5}), ("today", {"city": "a", "x": 1}),
        ("note", {"texts": "a"}), ("note", {"texts": [1]}), ("note", {"texts": [], "kind": "ugly"}),
        ("today", {"city": "\ud800"}), ("today", {"city": "a", "at": True}),
    ],
)  # fmt: skip
async def test_arguments_are_held_to_their_types(method: str, args: dict[str, Any]) -> None:
    assert (await refusal(started(Weather, key="k")(method, **args))).code == "TOOL_ARGUMENTS"


async def test_an_unknown_method_names_those_there_are() -> None:
    assert "today, note" in (await refusal(started(Weather, key="k")("hidden"))).message


async def test_nested_values_are_held_to_their_types_too() -> None:
    @tool
    def total(prices: dict[str, list[int]]) -> int:
        return sum(sum(one) for one in prices.values())

    call = started(total)
    assert await call("total", prices={"a": [1.0, 2], "b": []}) == 3
    for wrong in ({"a": ["1"]}, {"a": 1}, {"a": [1.5]}):
        assert (await refusal(call("total", prices=wrong))).code == "TOOL_ARGUMENTS"


def raising(error: BaseException) -> Any:
    def sync_one() -> None:
        raise error

    async def async_one() -> None:
        raise error

    return started([sync_one, async_one])


class Rude(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ToolError("try a city", "DENIED"), "try a city"),
        (ValueError("bad\ncity\x1b[0m"), "ValueError: bad city?[0m"),
        (KeyError("x"), "KeyError: 'x'"), (RuntimeError(), "RuntimeError"),
        (TimeoutError("mine"), "TimeoutError: mine"),
        (SystemExit(3), "SystemExit: 3"), (StopIteration("a"), "StopIteration"),
        (BaseException("x"), "BaseException: x"), (GeneratorExit(), "GeneratorExit"),
        (BaseExceptionGroup("g", [SystemExit(1)]), "BaseExceptionGroup: g"),
        (StopAsyncIteration(), "StopAsyncIteration"),
        (Rude(), "Rude"), (ValueError("x" * 5000), "xxx"), (RecursionError("deep"), "RecursionError: deep"),
    ],
)  # fmt: skip
async def test_whatever_the_code_raises_is_one_line_for_a_model(error: BaseException, said: str) -> None:
    call = raising(error)
    for method in ("sync_one", "async_one"):
        refused = await refusal(call(method))
        assert said in refused.message
        assert len(refused.message) < 1200
        assert refused.code == ("DENIED" if isinstance(error, ToolError) else "TOOL_ERROR")


class Mood(StrEnum):
    GOOD = "good"


class Size(IntEnum):
    BIG = 3


@pytest.mark.parametrize(
    ("gives", "value"),
    [
        ((1, ("a", None)), [1, ["a", None]]), ({1: True}, {"1": True}), ("x", "x"), (None, None), (1.5, 1.5),
        (Mood.GOOD, "good"), (Size.BIG, 3), ("a\ud800", "a?"), (["\udc80"], ["?"]),
    ],
)  # fmt: skip
async def test_what_the_code_gives_is_made_json(gives: Any, value: Any) -> None:
    def give() -> Any:
        return gives

    got = await started(give)("give")
    assert got == value
    assert type(got) is type(value)


@pytest.mark.parametrize(
    "gives",
    [
        object(), {"a": datetime.min}, float("nan"), [float("inf")], {1, 2}, b"x", ["x" * 300_000],
        {1: "a", "1": "b"}, [reduce(lambda inner, _: [inner], range(65), 1)],
    ],
)  # fmt: skip
async def test_what_is_no_json_or_too_large_is_an_error(gives: Any) -> None:
    def give() -> Any:
        return gives

    assert (await refusal(started(give)("give"))).code == "TOOL_ERROR"


async def test_a_coroutine_that_a_plain_function_gives_is_awaited() -> None:
    async def later() -> str:
        return "later"

    def give() -> Any:
        return later()

    assert await started(give)("give") == "later"


async def test_a_call_that_takes_too_long_fails() -> None:
    @tool(timeout_s=0.01)
    async def hang() -> None:
        await asyncio.Event().wait()

    refused = await refusal(started(hang)("hang"))
    assert refused.code == "TOOL_TIMEOUT"


HANGS = """
import asyncio
import threading
from halo_lang.app import loop
from halo_lang import HaloRuntime, loads, tool
from halo_lang.providers import blocking

blocking.GRACE_S = loop.GRACE_S = 0.1

class T:
    @tool(effect="read", timeout_s=0.1)
    def hang(self, x: str) -> str:
        threading.Event().wait()

    @tool(effect="read", timeout_s=0.1)
    async def refuse(self, x: str) -> str:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    @tool(effect="read")
    def go(self, x: str) -> str:
        return x

program = loads('''
tool W : T()
pipeline Hang(x: String) -> Result:
  x
    |> W.hang()
pipeline Refuse(x: String) -> Result:
  x
    |> W.refuse()
pipeline Go(x: String) -> Result:
  x
    |> W.go()
''', providers={"T": T})
runtime = HaloRuntime().load(program)
for _ in range(blocking.MAX_THREADS + 1):
    error = runtime.run_sync("Hang", {"x": "a"}).error
refused = runtime.run_sync("Refuse", {"x": "a"}).error
print(error.code, refused.code, runtime.run_sync("Go", {"x": "a"}).output)
"""


def test_what_hangs_or_refuses_to_stop_keeps_neither_a_run_nor_a_process_from_ending() -> None:
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    assert (done.stdout, done.returncode) == ("TOOL_TIMEOUT TOOL_TIMEOUT a\n", 0), done.stderr


async def test_a_cancelled_call_leaves_nothing_running() -> None:
    ended: list[bool] = []
    begun = asyncio.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    doing = asyncio.ensure_future(started(hang)("hang"))
    await begun.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert ended == [True]


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, "key"), ({"key": "k", "colour": 1}, "colour"), ({"0": "k", "1": "c", "2": 3}, "without a name")],
)
def test_settings_that_the_class_refuses_are_an_error_before_anything_runs(settings: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        described("W", Weather).start(settings)


class Fussy:
    def __init__(self, units: Literal["c", "f"] = "c", days: int = 1, names: list[str] | None = None) -> None:
        self.given = [units, days, names or []]

    def go(self) -> list[Any]:
        return self.given


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('units: "k"', "`units` must be one of c, f"),
        ('"k"', "`units` must be one of c, f"),
        ("days: 2.5", "`days` must be integer"),
        ('names: ["a", 1]', "`names` at 1 must be string"),
    ],
)
def test_settings_are_held_to_their_types(settings: str, said: str) -> None:
    program = f'tool W : Fussy({settings})\npipeline P() -> Result:\n  "x"\n    |> W.go()\n'
    with pytest.raises(HaloError) as raised:
        loads(program, providers={"Fussy": Fussy})
    assert said in str(raised.value)


async def test_a_setting_from_a_variable_is_held_to_its_type_when_the_tool_is_started() -> None:
    with pytest.raises(ConfigError, match="`units` must be one of c, f") as raised:
        described("W", Fussy).start({"units": "secret"})
    assert "secret" not in str(raised.value)
    made = described("W", Fussy).start({"0": "f", "days": 3.0, "names": ["a"]})
    assert await made.call("go", {}) == ["f", 3, ["a"]]
    assert isinstance((await made.call("go", {}))[1], int)


class Failing:
    def __init__(self) -> None:
        raise OSError("the device is off")

    def go(self) -> None: ...


class FailsToClose:
    def go(self) -> int:
        return 1

    async def aclose(self) -> None:
        raise OSError("never mind")


# In programs ------------------------------------------------------------------------------------------------------

PROGRAM = """
tool W : Weather("secret", days: 2)
pipeline Main(city: String) -> Result:
  city
    |> W.today()
"""


async def test_a_program_is_loaded_planned_and_run_with_a_class() -> None:
    Weather.closed.clear()
    program = loads(PROGRAM, providers={"Weather": Weather})
    assert "calls W.today: read" in str(program.plan())
    result = await HaloRuntime().load(program).run("Main", {"city": "Oslo"})
    assert result.output == {"city": "Oslo", "at": 12, "units": "celsius", "days": 2, "more": None}
    assert Weather.closed == ["secret"]


@pytest.mark.parametrize("providers", [["Weather"], {"Weather": None}, ("Weather",)])
async def test_a_program_of_which_only_the_name_is_known_is_planned_and_run(providers: Any) -> None:
    program = loads(PROGRAM, providers=providers)
    assert "Effect not described: W.today" in str(program.plan())
    with pytest.raises(HaloError, match="register"):
        await HaloRuntime().load(program).run("Main", {"city": "Oslo"})
    runtime = HaloRuntime().register("Weather", Weather).load(program)
    result = await runtime.run("Main", {"city": "Oslo"})
    assert result.output["city"] == "Oslo"  # type: ignore[index,call-overload]
    assert result.output["days"] == 2  # type: ignore[index,call-overload]


async def test_what_is_registered_takes_the_place_of_what_the_program_was_loaded_with() -> None:
    class Other:
        def __init__(self, key: str, units: str, days: int) -> None: ...

        @tool(effect="read")
        def today(self, city: str) -> str:
            return f"other {city}"

    program = loads(PROGRAM, providers={"Weather": Weather})
    result = await HaloRuntime().register("Weather", Other).load(program).run("Main", {"city": "Oslo"})
    assert result.output == "other Oslo"


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ('"prod"', "prod"),
        ('["a", Env.MINE]', ["a", "its value"]),
        ('{on: {hosts: ["a", Env.MINE]}}', {"on": {"hosts": ["a", "its value"]}}),
    ],
)
async def test_a_class_may_call_its_arguments_as_it_likes_and_nest_them(
    monkeypatch: pytest.MonkeyPatch, written: str, given: Any
) -> None:
    class Told:
        def __init__(self, env: Any) -> None:
            told.append(env)

        def go(self) -> None: ...

    told: list[Any] = []
    monkeypatch.setenv("MINE", "its value")
    text = f"tool W : Told(env: {written})\npipeline Main(x: Any) -> Result:\n  x\n    |> W.go()\n"
    result = await HaloRuntime().load(loads(text, providers={"Told": Told})).run("Main", {"x": 1})
    assert (result.status, told) == ("completed", [given])


def test_a_program_is_held_to_what_the_class_takes() -> None:
    for text, code in (
        (PROGRAM.replace("days: 2", "dayz: 2"), "UNKNOWN_ARGUMENT"),
        (PROGRAM.replace("days: 2", 'days: "2"'), "ARGUMENT_TYPE"),
        (PROGRAM.replace('"secret", ', ""), "MISSING_ARGUMENT"),
        (PROGRAM.replace("W.today()", "W.tomorrow()"), "UNKNOWN_METHOD"),
        (PROGRAM.replace("W.today()", "W.today(city, at: true)"), "ARGUMENT_TYPE"),
        (PROGRAM, "UNKNOWN_PROVIDER"),
    ):
        with pytest.raises(HaloError) as raised:
            loads(text, providers={} if code == "UNKNOWN_PROVIDER" else {"Weather": Weather})
        assert raised.value.code == code, text


async def test_functions_are_tools_of_agents_and_effects_count(tmp_path: Path) -> None:
    """An agent with a model of one's own calls a function of one's own; the policy asks by the effect."""
    asked: list[ModelRequest] = []
    told: list[str] = []

    @tool(effect="external")
    def tell(text: str) -> str:
        """Tells somebody."""
        told.append(text)
        return f"told {text}"

    async def model(request: ModelRequest) -> str | Answer:
        asked.append(request)
        if len(asked) == 1:
            return Answer("", tool_uses=(ToolUse("c1", "Bell_tell", {"text": "hello"}),), usage=Usage(10, 5))
        return "done"

    file = tmp_path / "p.halo"
    file.write_text("""
policy Asks : ApproveEffects(external)
tool Bell : Bells()
agent A [mine/small]
  equips Bell
  requires Asks
pipeline P(x: String) -> Result:
  x
    |> A.go(tools: [Bell])
""")
    program = load(file, providers={"Bells": [tell]})
    assert "may call Bell.tell: external · needs approval (Asks)" in str(program.plan())
    approvals: list[str] = []
    runtime = HaloRuntime(on_approval=lambda call, _: approvals.append(call.target) or True)  # type: ignore[func-returns-value]
    result = await runtime.register_model("mine", model).load(program).run("P", {"x": "y"})
    assert (result.status, result.output, approvals, told) == ("completed", "done", ["Bell.tell"], ["hello"])
    assert asked[0].model == "mine/small"
    assert [offer.name for offer in asked[0].tools] == ["Bell_tell"]
    assert asked[0].tools[0].schema["properties"] == {"text": {"type": "string"}}
    assert result.usage.input == 10


AGENT = """
agent A [mine/small, retries: 1]
pipeline P(x: String) -> Result:
  x
    |> A.go()
"""


@pytest.mark.parametrize(
    ("gives", "status", "value"),
    [
        (lambda _: "text", "completed", "text"), (lambda _: '{"a": 1}', "completed", {"a": 1}),
        (lambda _: "", "failed", "empty"), (lambda _: 5, "failed", "gave a int"),
        (lambda _: None, "failed", "NoneType"),
        (lambda _: Answer("x"), "completed", "x"),
    ],
)  # fmt: skip
async def test_what_a_model_of_ones_own_gives(gives: Any, status: str, value: Any) -> None:
    result = await HaloRuntime().register_model("mine", gives).load(loads(AGENT)).run("P", {"x": "y"})
    assert result.status == status
    if status == "completed":
        assert result.output == value
    else:
        assert result.error is not None
        assert result.error.code == "MODEL_ERROR"
        assert value in result.error.message


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ValueError("it\nbroke"), 1),
        (AttemptFailed("MODEL_ERROR", "busy", retry=True, retry_after_s=0.001), 2),
        (SystemExit(), 1),
        (BaseException("x"), 1),
        (GeneratorExit(), 1),
    ],
)
async def test_a_model_of_ones_own_that_fails(error: BaseException, tries: int) -> None:
    tried: list[str] = []

    def model(request: ModelRequest) -> str:
        tried.append(request.model)
        raise error

    result = await HaloRuntime().register_model("mine", model).load(loads(AGENT)).run("P", {"x": "y"})
    assert result.error is not None
    assert result.error.code == "MODEL_ERROR"
    assert len(tried) == tries


@pytest.mark.parametrize("name", ["openai", "anthropic", "embedded", "a/b", "", "a b"])
def test_models_that_halo_knows_are_not_replaced(name: str) -> None:
    with pytest.raises(HaloError):
        HaloRuntime().register_model(name, lambda request: "x")
    with pytest.raises(HaloError):
        HaloRuntime().register_model("mine", "no function")  # type: ignore[arg-type]


async def test_a_class_that_cannot_be_made_is_said_before_anything_runs() -> None:
    text = 'tool F : F()\npipeline P(x: Any) -> Result:\n  x\n    |> System.Print("begun")\n    |> F.go()\n'
    shown: list[Any] = []
    runtime = HaloRuntime(on_print=shown.append).load(loads(text, providers={"F": Failing}))
    with pytest.raises(HaloError, match=r"tool F: .*the device is off"):
        await runtime.run("P", {"x": 1})
    assert shown == []


class Door:
    closed: list[str] = []  # noqa: RUF012

    @tool(effect="external")
    def close(self, why: str = "at the end") -> int:
        self.closed.append(why)
        return 1


async def test_a_close_that_is_marked_as_a_method_is_called_by_programs_alone() -> None:
    text = "tool D : Door()\npipeline P(x: Any) -> Result:\n  x\n    |> D.close()\n"
    result = await HaloRuntime().load(loads(text, providers={"Door": Door})).run("P", {"x": "asked"})
    assert (result.output, Door.closed) == (1, ["asked"])


async def test_a_failure_to_close_harms_no_run() -> None:
    text = "tool F : F()\npipeline P(x: Any) -> Result:\n  x\n    |> F.go()\n"
    result = await HaloRuntime().load(loads(text, providers={"F": FailsToClose})).run("P", {"x": 1})
    assert (result.status, result.output) == ("completed", 1)
