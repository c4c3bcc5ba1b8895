"""The examples are run as the cases are: in this process, by `tests/cases/case_runner.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "cases"))
