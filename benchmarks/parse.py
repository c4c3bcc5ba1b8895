"""Row 3: parsing to a tree against `ast.parse`, on text of like size. Arguments: rounds, lines small, lines large.

Both parse in turn in one process, timed by the processor's time; the memory that parsing the large text takes at its
peak is measured in a fresh process for each, which is this script with `memory` and the parser's name.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

from measuring import peak_mib, report, resident_mib, sizes
from programs import program

from halo_lang.language.parser import parse
from halo_lang.language.source import Source

PYTHON = '''# The desk of team {n}: sorts what comes in, answers it, keeps notes.
careful{n} = policy(allow_tools("notes{n}.*") & deny_tools("notes{n}.delete") & approve_effects(write) & max_spend(0.5))

notes{n} = workspace("./notes", write=True)
chat{n} = slack(env.SLACK_BOT_TOKEN, channel="#desk")

clerk{n} = agent("openai/gpt-4o", max_steps=8,
  equips=notes{n},
  requires=careful{n})
critic{n} = agent("anthropic/claude-haiku-4-5",
  system="You judge drafts by what they leave out.")

async def desk{n}(ticket: String, kind: String = "bug", pages: List = ()) -> Result:
  value = ticket
  found = await clerk{n}.work(f"Look up what the notes say about {{ticket}}.", tools=[notes{n}])
  review = await critic{n}.score("""Reply with JSON: {{"score": <0-100>}}""", found)
  tries = await loop(clerk{n}, lambda: review.score < 50, max=3)
  await gate(review.score >= 50 and review.score <= 100)
  handled = await branch(value, [
         (kind == "bug", clerk{n}.fix(ticket)),
         (kind == "billing", clerk{n}.refund(ticket, amount=12.5)),
         (True, critic{n}.reply(ticket)),
       ])
  views = await gather(clerk{n}.argue_for(), critic{n}.argue_against(name="against"), critic{n}())
  summaries = await each(pages, lambda page, index: critic{n}.summarize(f"Summarize {{index}}: {{page}}"), parallel=2)
  answer = await ask("Send this answer?", channel="#desk", attach=[handled], timeout=hours(1))
  await gate(answer.approved == True)
  await chat{n}.post(text=f"{{handled}}")

'''


def python(lines: int) -> str:
    """Python text of about so many lines that says much the same as `programs.program`."""
    return "".join(PYTHON.format(n=n) for n in range(max(1, round(lines / PYTHON.count("\n")))))


def halo_parse(text: str) -> object:
    tree, found = parse(Source("desk.halo", text))
    assert not found
    return tree


PARSERS: dict[str, tuple[Callable[[int], str], Callable[[str], object]]] = {
    "halo": (program, halo_parse),
    "ast": (python, ast.parse),
}


def ratio(lines: int, rounds: int) -> float:
    """How many times as many lines in a second Halo's parser reads."""
    texts = {name: make(lines) for name, (make, _) in PARSERS.items()}
    speeds: dict[str, list[float]] = {name: [] for name in PARSERS}
    for at in range(rounds + 1):
        for name, (_, parser) in PARSERS.items():
            began = time.process_time()
            tree = parser(texts[name])
            took = time.process_time() - began
            del tree
            if at:
                speeds[name].append(texts[name].count("\n") / took)
    return median(speeds["halo"]) / median(speeds["ast"])


def memory(name: str, lines: int) -> None:
    """Prints how much more memory this process holds at the most while it parses."""
    make, parser = PARSERS[name]
    text = make(lines)
    parser(make(10))
    before = resident_mib()
    tree = parser(text)
    report(mib=peak_mib() - before)
    del tree


def memory_ratio(lines: int, rounds: int) -> float:
    taken: dict[str, list[float]] = {name: [] for name in PARSERS}
    for _ in range(rounds):
        for name in PARSERS:
            command = [sys.executable, __file__, "memory", name, str(lines)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            taken[name].append(json.loads(done.stdout)["mib"])
    return median(taken["halo"]) / max(median(taken["ast"]), 0.1)


def main() -> None:
    if sys.argv[1:2] == ["memory"]:
        memory(sys.argv[2], int(sys.argv[3]))
        return
    rounds, small, large = sizes(7, 1000, 100_000)
    report(
        small=ratio(small, rounds * 10),
        large=ratio(large, rounds),
        memory=memory_ratio(large, rounds),
    )


main()
