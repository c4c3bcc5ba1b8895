"""Row 10: reading a recording of many lines for a replay, against streaming `json.loads`. Argument: how many lines."""

from __future__ import annotations

import json
import time
from tempfile import TemporaryDirectory

from measuring import peak_mib, report, resident_mib, sizes
from recording import pairs

from halo_lang.boundary.recording import call_line, encoded, finish_line, start_line
from halo_lang.doors.recordings import read_recording_file


def write(path: str, count: int) -> None:
    with open(path, "wb") as file:
        start = start_line("6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77", "Main", {}, "p.halo", "", "2026-11-30T13:00:00Z")
        file.write(encoded(start))
        for at in range(count):
            ((call, answer),) = pairs(at, at + 1)
            file.write(encoded(call_line(call, answer)))
        file.write(encoded(finish_line("completed", "x", None)))


def plainly(path: str) -> float:
    began = time.process_time()
    with open(path, "rb") as file:
        for line in file:
            json.loads(line)
    return time.process_time() - began


def read(path: str) -> float:
    began = time.process_time()
    for _ in read_recording_file(path).entries():
        pass
    return time.process_time() - began


def main() -> None:
    (count,) = sizes(100_000)
    with TemporaryDirectory() as folder:
        path = f"{folder}/recording.jsonl"
        write(path, count)
        before = resident_mib()
        ours, theirs = min(read(path) for _ in range(3)), min(plainly(path) for _ in range(3))
        report(
            ratio=ours / theirs,
            us_line=ours / count * 1e6,
            json_us_line=theirs / count * 1e6,
            mib_more=peak_mib() - before,
        )


if __name__ == "__main__":
    main()
