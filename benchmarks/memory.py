"""Row 12: the most memory that one command of `halo` held. Arguments: the command line after `halo`.

Read within the process that did it, for a parent's view of its child counts the parent's own memory in; and before
anything else is imported.
"""

from __future__ import annotations

import sys

from halo_lang.cli.main import main

code = main(sys.argv[1:])
assert code == 0, code

with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))

from measuring import report  # noqa: E402

report(peak_mib=peak / 1024)
