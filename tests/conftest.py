"""Options of the whole test run."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester"]

# Nothing depends on how fast the machine is; where a build is judged, every run tries the same values.
settings.register_profile(
    "halo",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("halo")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite what the cases in tests/cases/*.md expect; read the difference"
    )
