"""Random programs for the soundness of plans, as source text: every operator, pipelines that call each other and
themselves, policies of every rule, described and undescribed tools.

Made from a `random.Random`, not by hypothesis, so that a hundred thousand are made in minutes and one seed gives one
program. Every agent's call has a method of its own, so that a run's requests can be told apart by their targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.catalog.describe import Method, Provider
from halo_lang.catalog.prices import NANO, Price, Step

ENV_MODEL = "CHOSEN_MODEL"

PRICES = {
    "openai/steps": Price(
        (Step(0, 2 * NANO, 8 * NANO, NANO, 3 * NANO), Step(2_500, 5 * NANO, 30 * NANO, NANO, 9 * NANO))
    ),
    "openai/odd": Price((Step(0, 333_333_333, 777_777_777, 0, 444_444_444),)),
    "openai/free": Price((Step(0, 0, 0, 0, 0),)),
}
"""Prices that stand beside the bundled ones, as if in `halo.toml`."""

SERVER = Provider(
    "Mcp",
    "tool",
    "A server, as a run finds it.",
    PROVIDERS["Mcp"].settings,
    lambda _: tuple(
        Method(name, "", {"type": "object", "additionalProperties": True}, None) for name in METHODS["Web"]
    ),
)
"""What no plan knows of a server, and its agents may call all the same."""

SNAPSHOTS = {"openai/gpt-4o": ("gpt-4o", "gpt-4o-2024-05-13", "gpt-4o-2024-08-06")}
"""Models that a name may stand for, as answers name them."""

MODELS = (
    "openai/gpt-4o",
    "openai/gpt-4o",
    "openai/steps",
    "openai/odd",
    "openai/free",
    "ollama/mine",
    f"Env.{ENV_MODEL}",
)

METHODS = {
    "Files": ("read", "write", "edit", "list", "glob", "search", "mkdir", "delete"),
    "Notes": ("read", "list", "glob", "search"),
    "Shell": ("run",),
    "Chat": ("post", "update", "react", "history"),
    "Web": ("search", "fetch", "site.map"),
}
TOOLS = """\
tool Files : Workspace("./files", write: true)
tool Notes : Workspace("./notes")
tool Shell : Bash()
tool Chat : Slack(Env.TOKEN, channel: "#x")
tool Web : Mcp("serve")
"""
TOOL_CALLS = {
    "Files": (
        'read(path: "a.md")',
        'write(path: "b.md", content: "c")',
        "list()",
        'delete(path: "{{x}}")',
        'mkdir("d")',
    ),
    "Notes": ('read(path: "a.md")', "list()"),
    "Shell": ('run(command: "echo {{x}}")',),
    "Chat": ('post(text: "{{x}}")', "history()", 'react(ts: "1", name: "eyes")'),
    "Web": ("search(query: x)", "fetch()"),
}
RULES = (
    *("AllowTools", "DenyTools", "DenyArgs", "MaxCalls", "Redact"),
    *("ApproveTools", "ApproveTools", "ApproveEffects", "ApproveEffects"),
    *("MaxSpend", "MaxSpend", "MaxSpend", "MaxSpend"),
)
VALUES = ("x", "context.current", "context.data", '"t é"', "1", '[x, "b"]', "{k: x}")
SOURCES = ("x", '"t é"', "1", '[x, "b"]', "{k: x}")
CONDITIONS = (
    "context.current",
    "!context.current",
    "context.data.yield.approved",
    "context.current == 1",
    "!(context.data.loop.iteration >= 1)",
    "!(context.data.loop.iteration >= 2)",
    "x || context.current",
)
MANY = f"[{', '.join(map(str, range(64)))}]"
LISTS = ('["a", "b", "c"]', '["a", "b", "c"]', "[x, 1]", "[]", "context.current", '["a", "b", "c", "d", "e", "f", "g"]')
WORDS = ("Do it.", "ä" * 7, "Write about {{x}}, please.", "", "A longer instruction, as people write them. " * 3)


@dataclass(frozen=True)
class Site:
    """What the text says of one call of an agent: the bytes of its instructions and system prompt, and its options."""

    written: int
    max_tokens: int
    max_steps: int
    tools: tuple[str, ...]


@dataclass
class Made:
    """A program. `sites` are its agents' calls by target; `rooms` the pipelines, the first of which is run."""

    text: str = ""
    sites: dict[str, Site] = field(default_factory=dict)


@dataclass(frozen=True)
class _Agent:
    name: str
    equips: tuple[str, ...]
    system: str
    max_tokens: int
    max_steps: int


class _Maker:
    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.made = Made()
        self.policies: list[str] = []
        self.agents: list[_Agent] = []
        self.names: list[str] = []
        self.recursions = 0
        self.methods = 0

    def pick(self, options):  # type: ignore[no-untyped-def]
        return options[int(self.chance.random() * len(options))]

    def maybe(self, share: float) -> bool:
        return self.chance.random() < share

    def some(self, options, most: int):  # type: ignore[no-untyped-def]
        count = min(len(options), int(self.chance.random() * (most + 1)))
        return tuple(self.chance.sample(list(options), count))

    # Declarations --------------------------------------------------------------------------------------------------

    def program(self) -> Made:
        rows = [TOOLS]
        for at in range(self.pick((0, 1, 2, 3, 4))):
            self.policies.append(f"Q{at}")
            rules = " & ".join(self.rule() for _ in range(self.pick((1, 1, 2, 3))))
            rows.append(f"policy Q{at} : {rules}\n")
        for at in range(self.pick((1, 2, 3))):
            rows.append(self.agent(f"A{at}"))
        self.names = [f"P{at}" for at in range(self.pick((1, 1, 2, 3, 4)))]
        rows += [self.pipeline(at) for at in range(len(self.names))]
        self.made.text = "".join(rows)
        return self.made

    def rule(self) -> str:
        kind = self.pick(RULES)
        match kind:
            case "AllowTools":
                return 'AllowTools("*.*")' if self.maybe(0.3) else f"AllowTools({self.patterns(3)})"
            case "DenyArgs":
                return 'DenyArgs("Files.write", path: "*.env")'
            case "ApproveEffects":
                return f"ApproveEffects({self.pick(('write', 'external', 'write, external', 'read, external'))})"
            case "MaxSpend":
                return f"MaxSpend({self.pick(('0.01', '0.05', '0.0123', '0.5', '3', '0.000000001'))})"
            case "MaxCalls":
                return self.pick(("MaxCalls(0)", "MaxCalls(1)", "MaxCalls(3)", 'MaxCalls(2, "Files.*")'))
            case "Redact":
                return "Redact(email)"
        return f"{kind}({self.patterns(2)})"

    def patterns(self, most: int) -> str:
        return ", ".join(f'"{self.pattern()}"' for _ in range(1 + int(self.chance.random() * most)))

    def pattern(self) -> str:
        tool = self.pick(tuple(METHODS))
        return self.pick(
            (f"{tool}.*", f"{tool}.{self.pick(METHODS[tool])}", f"{tool}.**", "*.write", "*.r*", f"{tool}.*a*")
        )

    def requires(self) -> tuple[str, ...]:
        return self.some(self.policies, 2) if self.maybe(0.7) else ()

    def agent(self, name: str) -> str:
        equips = self.some(tuple(METHODS), 3) or (self.pick(tuple(METHODS)),)
        equips = equips if self.maybe(0.9) else ()
        system = self.pick(("", "", "You are kind.", "ß" * 40))
        one = _Agent(name, equips, system, self.pick((300, 500, 4_096)), self.pick((1, 2, 3)))
        self.agents.append(one)
        # A cap on retries and time keeps runs short; what they do is the same.
        options = (
            f", max_tokens: {one.max_tokens}, max_steps: {one.max_steps}, retries: {self.pick((0, 1, 2))}, timeout: 9s"
        )
        rows = [f"agent {name} [{self.pick(MODELS)}{options}]"]
        if equips:
            rows.append(f"  equips {', '.join(equips)}")
        required = self.requires()
        if required:
            rows.append(f"  requires {', '.join(required)}")
        if system:
            rows.append(f'  system "{system}"')
        return "\n".join(rows) + "\n"

    # Pipelines -----------------------------------------------------------------------------------------------------

    def pipeline(self, at: int) -> str:
        required = self.requires() if self.maybe(0.4) else ()
        clause = f" requires {', '.join(required)}" if required else ""
        head = f"pipeline P{at}(x: Any) -> Result{clause}:\n  {self.pick(SOURCES)}\n"
        called: list[str] = []
        stages = [
            self.stage(at, called) for _ in range(self.pick((2, 3, 4, 5)) if at == 0 else self.pick((1, 2, 2, 3, 3, 4)))
        ]
        if at == 0 and len(self.names) > 1 and self.policies and self.maybe(0.15):  # two ways to one pipeline
            last = self.names[-1]
            ways = (("W0", f" requires {self.pick(self.policies)}"), ("W1", ""))
            head = (
                "".join(f"pipeline {way}(x: Any) -> Result{own}:\n  x\n    |> {last}(x)\n" for way, own in ways) + head
            )
            stages = ["|> W0(x)", "|> W1(x)", *stages]
        if self.maybe(0.1):  # loops that overlap
            first, second = self.agent_call(called), self.agent_call(called)
            back, over = (f'|<> loop({name}, "{self.pick(CONDITIONS[:2])}", max: 2)' for name in called[-2:])
            stages += [f"|> {first}", f"|> {second}", back, over]
        return head + "".join(f"    {stage}\n" for stage in stages)

    def stage(self, at: int, called: list[str]) -> str:
        kind = self.pick(
            ("pipe",) * 6
            + ("gate", "branch", "branch", "fan", "fan", "each", "each", "each")
            + ("yield", "listen")
            + ("loop",) * 4
        )
        if kind == "loop" and not called:
            kind = "pipe"
        match kind:
            case "gate":
                condition = self.pick(CONDITIONS) if self.maybe(0.4) else "1 < 2"
                return f"|? ({condition})"
            case "branch":
                arms = [f"({self.pick(CONDITIONS)}) => {self.call(at, called)}" for _ in range(self.pick((1, 1, 2)))]
                if self.maybe(0.5):
                    arms.append(f"else => {self.call(at, called)}")
                return f"|? {{ {', '.join(arms)} }}"
            case "fan":
                members = [self.call(at, called) for _ in range(self.pick((1, 2, 2, 3, 8 if self.maybe(0.1) else 2)))]
                return f"|* {{ {', '.join(members)} }}"
            case "each":
                options = self.pick(
                    ("", "", ", limit: 2", ", limit: 3", ", limit: 2, concurrency: 1", ", concurrency: 64")
                )
                items = self.pick(LISTS)
                if self.maybe(0.08):
                    items, options = MANY, self.pick((", concurrency: 64", ", limit: 50, concurrency: 20"))
                elif self.maybe(0.03):
                    options = ", limit: x"
                return f"|* each(i in {items}{options}) => {self.call(at, called)}"
            case "yield":
                return '|! yield("Go?")'
            case "listen":
                return "~> listen(Chat.Said)"
            case "loop":
                most = self.pick(("", ", max: 1", ", max: 2", ", max: 2", ", max: 4"))
                return f'|<> loop({self.pick(called)}, "{self.pick(CONDITIONS)}"{most})'
        shadow = ""
        if self.maybe(0.1):
            shadow = f"@shadow({self.agent_call([], plain=True)}) "
        return f"{shadow}|> {self.call(at, called)}"

    def call(self, at: int, called: list[str]) -> str:
        kind = self.pick(("agent",) * 6 + ("tool", "tool", "system", "pipeline", "pipeline", "pipeline"))
        if kind == "pipeline":
            later = self.names[at + 1 :]
            if self.recursions < 2 and self.maybe(0.12):
                self.recursions += 1
                later = self.names[: at + 1]
            if later:
                return f"{self.pick(later)}({self.pick(VALUES) if self.maybe(0.5) else ''})"
        if kind == "tool":
            tool = self.pick(tuple(METHODS))
            return f"{tool}.{self.pick(TOOL_CALLS[tool])}"
        if kind == "system":
            return self.pick(
                ("System.Print(x)", "System.Publish(x)", "System.Now()", "System.Wait(2s)", "System.Log(1)")
            )
        return self.agent_call(called)

    def agent_call(self, called: list[str], *, plain: bool = False) -> str:
        one = self.pick(self.agents)
        called.append(one.name)
        self.methods += 1
        target = f"{one.name}.m{self.methods}"
        words = self.pick(WORDS)
        given = [f'"{words}"'] if words else []
        if self.maybe(0.3):
            given.append(self.pick(VALUES[:3]))
        max_tokens, max_steps, tools = one.max_tokens, one.max_steps, ()
        if self.maybe(0.2):
            max_tokens = self.pick((1, 300, 700))
            given.append(f"max_tokens: {max_tokens}")
        if one.equips and not plain and self.maybe(0.7):
            tools = self.some(one.equips, 3) or one.equips
            given.append(f"tools: [{', '.join(tools)}]")
            if tools and self.maybe(0.3):
                max_steps = self.pick((1, 2, 4))
                given.append(f"max_steps: {max_steps}")
        written = len(words.replace("{{x}}", "").encode()) + len(one.system.encode())
        self.made.sites[target] = Site(written, max_tokens, max_steps, tools)
        return f"{target}({', '.join(given)})"


def made_program(chance: Random) -> Made:
    """A program's text, which may have an error of the file: not every policy goes with every model and call."""
    return _Maker(chance).program()
