"""Random programs without errors, and answers for their calls that depend on nothing but the call itself."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from typing import Any

from hypothesis import strategies as st

from halo_lang.boundary.call import AGENT, APPROVAL, LISTEN, TOOL, YIELD, Answer, Call, Data, ToolUse, failed

HEAD = """\
policy Ask : ApproveEffects(write)
policy Few : MaxCalls(3) & MaxCalls(1, "Files.write")
policy Hide : Redact(email) & DenyTools("Files.delete")
tool Files : Workspace(".", write: true)
agent A [openai/gpt-4o]
agent B [openai/gpt-4o]
agent T [openai/gpt-4o, max_steps: 2]
  equips Files
  requires Hide
agent U [openai/gpt-4o, max_steps: 2]
  equips Files
  requires Ask
agent V [openai/gpt-4o, max_steps: 2]
  equips Files
  requires Ask, Few
"""

VALUES = (
    "x",
    "context.current",
    "context.data",
    "context.data.A",
    "context.meta.pipeline",
    '"t {{context.current}}"',
    "1",
    '[x, "b"]',
    "{k: x}",
)
CONDITIONS = (
    "context.current",
    "!x",
    "context.data.A.one == context.current",
    'context.current != "b"',
    "context.data.B.two.n >= 1 && x",
    "x || context.data.yield.approved",
    "context.data.loop.iteration < 2",
)


KINDS = ("call", "call", "call", "gate", "branch", "fan", "fan", "each", "each", "yield", "listen", "loop")
EACH_OPTIONS = ("", ", concurrency: 1", ", concurrency: 2", ", limit: 2", ", concurrency: 9, limit: 4")


class Callable:
    """What may be called; `counts` adds an agent whose calls are counted over all branches."""

    def __init__(self, counts: bool) -> None:
        self.agents = ("A.one", "A.two", "B.one", "B.two")
        self.choosing = ("T.work", "U.work", *(("V.work",) if counts else ()))


@st.composite
def programs(draw: st.DrawFn, *, counts: bool) -> str:
    """The text of a program; `P0` is the pipeline to run, with the parameter `x`."""
    kinds = Callable(counts)
    count = draw(st.integers(1, 4))
    made = [HEAD]
    for at in range(count):
        later = [f"P{other}" for other in range(at + 1, count)]
        source = draw(st.sampled_from(["x", '"s {{x}}"', "[x, 1]"]))
        governed = draw(st.sampled_from(["", "", "", " requires Hide"]))
        stages = draw(_stages(kinds, later))
        made.append(f"pipeline P{at}(x: Any) -> Result{governed}:\n  {source}\n")
        made += [f"    {stage}\n" for stage in stages]
    return "".join(made)


@st.composite
def _stages(draw: st.DrawFn, kinds: Callable, later: list[str]) -> list[str]:
    made: list[str] = []
    agents: list[str] = []
    names = iter("abcdefghijklmnopqrstu")
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(KINDS))
        if kind == "loop" and not agents:
            kind = "call"
        bind = f" as {next(names)}" if draw(st.booleans()) else ""
        if kind == "call":
            made.append(f"|> {draw(_call(kinds, later, agents))}{bind}")
        elif kind == "gate":
            made.append(f"|? ({draw(st.sampled_from(CONDITIONS))})" if draw(st.integers(0, 2)) == 0 else "|? (1 < 2)")
        elif kind == "branch":
            arms = [
                f"({draw(st.sampled_from(CONDITIONS))}) => {draw(_call(kinds, later, agents))}"
                for _ in range(draw(st.integers(1, 2)))
            ]
            if draw(st.booleans()):
                arms.append(f"else => {draw(_call(kinds, later, agents))}")
            made.append("|? { " + ", ".join(arms) + " }" + bind)
        elif kind == "fan":
            members = []
            for _ in range(draw(st.integers(1, 4))):
                member = draw(st.one_of(_call(kinds, later, agents), st.sampled_from(["A", "B", *later])))
                members.append(member + (f" as {next(names)}" if draw(st.booleans()) else ""))
            made.append("|* { " + ", ".join(members) + " }" + bind)
        elif kind == "each":
            source = draw(st.sampled_from(["[x, 2, [3]]", '["p", "q", "r", "s", "t"]', "context.current", "[]"]))
            options = draw(st.sampled_from(EACH_OPTIONS))
            call = draw(_call(kinds, later, agents, item=True))
            made.append(f"|* each(i in {source}{options}) => {call}{bind}")
        elif kind == "yield":
            made.append(f'|! yield("Go {{{{x}}}}?"){bind}')
        elif kind == "listen":
            made.append(f"~> listen(Chat.Said){bind}")
        else:
            agent, most = draw(st.sampled_from(agents)), draw(st.integers(1, 3))
            made.append(f"|<> loop({agent}, {json.dumps(draw(st.sampled_from(CONDITIONS)))}, max: {most}){bind}")
    return made


@st.composite
def _call(draw: st.DrawFn, kinds: Callable, later: list[str], agents: list[str], *, item: bool = False) -> str:
    value = draw(st.sampled_from((*VALUES, "i", "index") if item else VALUES))
    kind = draw(st.sampled_from(["agent", "agent", "agent", "choosing", "tool", "pipeline", "system"]))
    if kind == "pipeline" and later:
        return f"{draw(st.sampled_from(later))}({draw(st.sampled_from(['', value]))})"
    if kind == "choosing":
        target = draw(st.sampled_from(kinds.choosing))
        agents.append(target[0])
        return f'{target}("Go.", tools: [Files])'
    if kind == "tool":
        read = f'Files.read(path: "{{{{{"i" if item else "x"}}}}}")'
        return draw(st.sampled_from([read, 'Files.write("w", "c")', "Files.list()"]))
    if kind == "system":
        return draw(st.sampled_from([f"System.Print({value})", "System.Now()", f"System.Publish({value})"]))
    target = draw(st.sampled_from(kinds.agents))
    agents.append(target[0])
    return f'{target}("Do {{{{x}}}}.", {value})'


class Answers:
    """Answers each call by what it is: its kind, target, scope, question, and how often that was asked before."""

    def __init__(self, seed: int, *, failing: bool) -> None:
        self.seed = seed
        self.failing = failing
        self._asked: Counter[str] = Counter()

    def __call__(self, call: Call) -> Answer:
        asked = question(call)
        count = self._asked[asked]
        self._asked[asked] += 1
        digest = sha256(f"{self.seed} {count} {asked}".encode()).digest()
        return self._answer(call, digest)

    def _answer(self, call: Call, digest: bytes) -> Answer:
        one, two, three = digest[0], digest[1], digest[2]
        if self.failing and one % 16 == 0 and call.kind in (AGENT, TOOL):
            return failed("MODEL_ERROR" if call.kind == AGENT else "TOOL_ERROR", f"failed {two}")
        if call.kind == AGENT:
            assert call.request is not None
            if call.request.tools and one % 4:
                return Answer("", tool_uses=tuple(_use(at, digest[3 + at]) for at in range(1 + two % 4)))
            return Answer(["b", "", "false", '{"n": 1}', "[1, 2]", "a@b.org", f"text {three}", "{"][two % 8])
        if call.kind == APPROVAL:
            yes = not self.failing or one % 4 > 0
            return Answer({"approved": yes, **({"all": True} if yes and two % 5 == 0 else {})})
        if call.kind == YIELD:
            return Answer([True, "text", {"approved": True}, {"approved": False}][two % 4])
        if call.kind == LISTEN:
            return Answer({"said": two})
        return Answer([None, f"file {two}", ["a", "b"], {"path": "p"}][three % 4])


def _use(at: int, chance: int) -> ToolUse:
    name, args = [
        ("Files_read", {"path": f"r{chance % 3}"}),
        ("Files_list", {}),
        ("Files_write", {"path": "w", "content": f"{chance % 2}"}),
        ("Files_nothing", {}),
    ][chance % 4]
    return ToolUse(f"c{at}", name, args)


def question(call: Call) -> str:
    """What a call asks, with its kind, target and scope, as text."""
    asked: Any = dict(call.args)
    if call.request is not None:
        asked = [
            [m.role, [p.text if isinstance(p, Data) else p for p in m.parts], [u.id for u in m.tool_uses]]
            for m in call.request.messages
        ]
    return json.dumps([call.kind, call.target, call.scope, asked], sort_keys=True)
