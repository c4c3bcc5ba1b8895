"""Row 12, a peer: the most memory that a process held that only imported a module. Argument: the module."""

from __future__ import annotations

import importlib
import sys

importlib.import_module(sys.argv[1])

with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))

from measuring import report  # noqa: E402

report(peak_mib=peak / 1024)
