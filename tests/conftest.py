"""Options of the whole test run."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite what the cases in tests/cases/*.md expect; read the difference"
    )
