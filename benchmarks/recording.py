"""Row 9: lines of a recording, each written and flushed; and with checkpoints, where many branches share a sync.

Arguments: how many lines; how many branches; how many lines each of these waits for.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from tempfile import TemporaryDirectory

from measuring import report, sizes

from halo_lang.boundary.call import AGENT, TOOL, Answer, Call, Data, Message, ModelRequest, Usage
from halo_lang.boundary.recording import call_line, encoded
from halo_lang.doors.folder import AppendFile
from halo_lang.doors.keeping import Keeper
from halo_lang.doors.stores import FileRunStore
from halo_lang.language.source import Span

RUN = "6f9696ef-1c2b-4c47-9a1e-3f0c2d1b9a77"
ASKS = ModelRequest("openai/gpt-4o", "", (Message("user", ("Summarize the note.", "\n\n", Data("a note"))),))
SAID = Answer("an answer of some words " * 5, model="gpt-4o-2024-08-06", usage=Usage(812, 40), cost=2_500_000, ms=812)


def pairs(first: int, end: int) -> list[tuple[Call, Answer]]:
    """The calls of some branches with their answers, three of an agent's to one of a tool's."""
    made = []
    for at in range(first, end):
        if at % 4 == 3:
            call = Call(TOOL, "Notes.read", {"path": f"{at}.md"}, (at,), "1", Span(0, 0), "Clerk", "c1", effect="read")
            made.append((call, Answer("a note of some words " * 5, ms=2)))
        else:
            made.append((Call(AGENT, "Clerk.work", {}, (at,), "1", Span(0, 0), request=ASKS), SAID))
    return made


def flushed(count: int, folder: str) -> float:
    """Lines a second, each made from a call and its answer, written and flushed before the next."""
    keeper, given = Keeper(AppendFile(f"{folder}/recording.jsonl")), pairs(0, count)
    began = time.perf_counter()
    for call, answer in given:
        keeper.answered(call, answer)
    taken = time.perf_counter() - began
    keeper.close()
    return count / taken


def plainly(count: int, folder: str) -> float:
    """The same with the standard library, the lines' objects ready made."""
    lines = [json.loads(encoded(call_line(call, answer))) for call, answer in pairs(0, count)]
    with open(f"{folder}/plain.jsonl", "w") as file:
        began = time.perf_counter()
        for line in lines:
            file.write(json.dumps(line) + "\n")
            file.flush()
        return count / (time.perf_counter() - began)


async def together(branches: int, each: int, folder: str) -> float:
    """Lines a second on the disk, where so many branches wait at a time for their own to be there."""
    store = FileRunStore(f"{folder}/.halo/runs")
    keeper, given = Keeper(None, store.create(RUN), durable=True), pairs(0, branches)

    async def branch(call: Call, answer: Answer) -> None:
        for _ in range(each):
            keeper.answered(call, answer)
            await keeper.sync()

    began = time.perf_counter()
    await asyncio.gather(*(branch(*one) for one in given))
    return branches * each / (time.perf_counter() - began)


def one_by_one(count: int, folder: str) -> float:
    """Lines a second on the disk, with a sync for each."""
    file, given = AppendFile(f"{folder}/synced.jsonl"), pairs(0, count)
    began = time.perf_counter()
    for call, answer in given:
        file.append(encoded(call_line(call, answer)))
        os.fsync(file.fileno())
    return count / (time.perf_counter() - began)


def main() -> None:
    lines, branches, each = sizes(50_000, 64, 30)
    with TemporaryDirectory(dir=os.getcwd()) as folder:  # on a disk: what is in memory needs no sync
        alone = one_by_one(branches * 3, folder)
        shared = asyncio.run(together(branches, each, folder))
        report(
            lines_s=flushed(lines, folder),
            json_lines_s=plainly(lines, folder),
            synced_s=alone,
            shared_s=shared,
            ratio=shared / alone,
        )


if __name__ == "__main__":
    main()
