"""The clock and the run ids: what a run's host adds that no program could compute.

Owns them so that neither a check nor a mock run imports anything heavier, such as `datetime`.
"""

from __future__ import annotations

import os
import time


def now() -> str:
    """The time as ISO 8601 text in UTC."""
    seconds, ms = divmod(time.time_ns() // 1_000_000, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03}Z"


def today() -> str:
    """The day in UTC, `2026-11-30`."""
    return now()[:10]


def new_run_id() -> str:
    """A random UUID (version 4) as text; made here, since importing `uuid` takes as long as starting Python."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
