"""The provider by itself, and inside a program that calls no model."""

from __future__ import annotations

from pathlib import Path

import pytest
from halo_weather import Weather

from halo_lang import HaloRuntime, ToolError, load, loads

TRIP = Path(__file__).parents[1] / "example" / "trip.halo"

PROGRAM = """
tool Weather : Weather(units: "fahrenheit")

pipeline Dress(city: String) -> Result:
  city
    |> Weather.today()
    |? (context.current.degrees < 50)
"""


async def test_a_city_has_a_temperature() -> None:
    assert await Weather().today("Oslo") == {"city": "Oslo", "degrees": -2.0}
    with pytest.raises(ToolError, match="helsinki"):
        await Weather().today("Atlantis")


async def test_a_program_uses_it() -> None:
    """No `providers=`: the package is installed, so Halo finds it."""
    program = loads(PROGRAM)
    assert [call.effect for call in program.plan().calls] == ["read"]
    result = await HaloRuntime().load(program).run("Dress", {"city": "Oslo"})
    assert result.output == {"city": "Oslo", "degrees": 28.4}


async def test_the_example_asks_before_it_raises_an_alarm() -> None:
    program = load(TRIP)
    assert program.plan().summary.approvals == ("Weather.alarm",)
    result = (
        await HaloRuntime(live=False).load(program).mock_all({"Guide": "A warm coat."}).run("Pack", {"city": "Oslo"})
    )
    assert result.output == "A warm coat."
