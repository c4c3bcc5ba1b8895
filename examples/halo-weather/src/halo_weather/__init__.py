"""The weather of some cities, as a provider of tools for Halo.

Everything that Halo says of it (the plan, the list that a model gets, the approval prompt, `halo tools Weather`) is
derived from the types, the marks and the first sentences below.
"""

from __future__ import annotations

from typing import Annotated, Literal

from halo_lang import ToolError, tool

_CELSIUS = {"helsinki": [3, 4, 1], "lisbon": [16, 17, 17], "oslo": [-2, -4, 0]}


class Weather:
    """The weather, today and in the next days."""

    def __init__(
        self, units: Annotated[Literal["celsius", "fahrenheit"], "How degrees are given."] = "celsius"
    ) -> None:
        self._fahrenheit = units == "fahrenheit"
        self._alarms: list[str] = []

    @tool(effect="read", idempotent=True)
    async def today(self, city: Annotated[str, "The city's name."]) -> dict[str, object]:
        """Gives today's temperature in a city."""
        return {"city": city, "degrees": self._degrees(city)[0]}

    @tool(effect="read", idempotent=True)
    def forecast(self, city: Annotated[str, "The city's name."], days: int = 3) -> list[float]:
        """Gives the temperatures of the next days. Three are known."""
        return self._degrees(city)[:days]

    @tool(effect="external", timeout_s=10)
    async def alarm(self, city: str, message: str) -> dict[str, object]:
        """Warns everybody in a city."""
        self._alarms.append(f"{city}: {message}")
        return {"warned": len(self._alarms)}

    def _degrees(self, city: str) -> list[float]:
        known = _CELSIUS.get(city.lower())
        if known is None:
            # What a model is told, so that it can go on.
            raise ToolError(f"there is no weather for {city!r}; there is for {', '.join(_CELSIUS)}")
        return [c * 9 / 5 + 32 for c in known] if self._fahrenheit else [float(c) for c in known]
