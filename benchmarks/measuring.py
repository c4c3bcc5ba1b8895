"""What the scripts here share: timing, memory, and the one line of JSON that each prints.

Only the standard library, and little of it: it is imported by the peers' scripts too, in environments of their own,
and by those that measure memory.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median


def sizes(*defaults: int) -> list[int]:
    """The numbers given on the command line, the defaults for those that are not."""
    given = [int(word) for word in sys.argv[1:]]
    return given + list(defaults[len(given) :])


def repeats(size: int) -> int:
    """How often to repeat something of so many steps within one process."""
    return max(3, min(100, 10_000 // max(size, 1)))


async def median_s(run: Callable[[], Awaitable[object]], times: int) -> float:
    """The median duration of an awaited run that never waits, the first one left out as a warm-up.

    It is the processor's time, which is the clock's where nothing else runs, and hardly changes where something does.
    """
    await run()
    gc.collect()
    durations = []
    for _ in range(times):
        began = time.process_time()
        await run()
        durations.append(time.process_time() - began)
    return median(durations)


def resident_mib() -> float:
    """The memory that this process holds now."""
    return _status("VmRSS:")


def peak_mib() -> float:
    """The most memory that this process has held."""
    return _status("VmHWM:")


def _status(field: str) -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


def report(**figures: float) -> None:
    """Prints the figures as the last line of the script."""
    print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
