"""What a checked program holds: how calls, stages, policies and settings have been read (check/program.py)."""

from __future__ import annotations

import pytest

from halo_lang.catalog.builtin import PROVIDERS
from halo_lang.catalog.describe import READ, EnvRef, Method, Provider, Setting
from halo_lang.check.calls import as_words
from halo_lang.check.check import check
from halo_lang.check.literals import nano_of
from halo_lang.check.names import root_of
from halo_lang.check.program import (
    AgentCall,
    AgentOptions,
    BranchStage,
    BrokenCall,
    CallStage,
    CheckedProgram,
    EachStage,
    FanOutStage,
    GateStage,
    ListenStage,
    LoopStage,
    PipelineCall,
    SystemCall,
    ToolCall,
    YieldStage,
)
from halo_lang.check.reach import Reach, reach
from halo_lang.language.ast import Duration, ListExpr, Number, Path, Text
from halo_lang.language.source import Source

SERVER = Provider(
    "Server",
    "tool",
    "Not described.",
    (
        Setting("command", "String", "The command.", True, True),
        Setting("args", "List", "Its arguments.", positional=True, rest=True),
        Setting("headers", "Object", "Headers."),
    ),
    lambda _: None,
)
KNOWN = {**PROVIDERS, "Server": SERVER}


def read(text: str, *, ok: bool = True) -> CheckedProgram:
    program = check(Source("t.halo", text), providers=KNOWN)
    assert program.ok is ok, program.diagnostics
    return program


def stages(*written: str, params: str = "x: Any", before: str = "agent A [openai/gpt-4o]\n", ok: bool = True) -> tuple:  # type: ignore[type-arg]
    text = before + f"pipeline P({params}) -> Result:\n  x\n" + "".join(f"    {stage}\n" for stage in written)
    return read(text, ok=ok).pipelines["P"].stages


def call(written: str, before: str = "agent A [openai/gpt-4o]\n") -> object:
    (stage,) = stages(f"|> {written}", before=before)
    return stage.call


# Agents ----------------------------------------------------------------------------------------------------------


def test_an_agents_arguments_are_instructions_inputs_and_options() -> None:
    made = call('A.draft("Write about {{x}}.", x, tone: "dry", max_tokens: 10, timeout: 1m)')
    assert isinstance(made, AgentCall)
    assert (made.target, made.method, made.task, made.tools) == ("A.draft", "draft", None, ())
    assert [t.parts[0] for t in made.instructions] == ["Write about "]
    assert [i.name for i in made.inputs] == [None, "tone"]
    assert isinstance(made.inputs[0].value, Path)
    assert made.options == AgentOptions(max_tokens=10, timeout_s=60.0)


def test_without_instructions_the_methods_name_is_the_task() -> None:
    made = call("A.argue_for()")
    assert isinstance(made, AgentCall)
    assert (made.task, made.instructions, made.inputs) == ("argue for", (), ())


@pytest.mark.parametrize(
    ("method", "words"),
    [("argue_for", "argue for"), ("argueFor", "argue for"), ("go", "go"), ("_", "_"), ("JSON", "JSON")],
)
def test_method_names_read_as_words(method: str, words: str) -> None:
    assert as_words(method) == words


@pytest.mark.parametrize("written", ['A("Well?")', 'A.prompt("Well?")', "A.prompt()"])
def test_the_method_prompt_makes_no_task(written: str) -> None:
    made = call(written)
    assert isinstance(made, AgentCall)
    assert (made.target, made.method, made.task) == ("A.prompt", "prompt", None)


def test_a_calls_options_are_laid_over_the_agents() -> None:
    agent = "agent A [openai/gpt-4o, max_steps: 8, temperature: 1, retries: 0, timeout: 5, top_p: 0.5]\n"
    made = call("A.a(max_steps: 2, temperature: 0)", agent)
    assert isinstance(made, AgentCall)
    assert made.agent.options == AgentOptions(4096, 8, 1.0, 0.5, 5.0, 0)
    assert made.options == AgentOptions(4096, 2, 0.0, 0.5, 5.0, 0)


def test_an_agent_with_all_its_clauses() -> None:
    program = read(
        "policy N : MaxCalls(3)\ntool T : Bash()\nagent A [Env.MODEL]\n  equips T\n"
        '  system "Be {{kind}}."\n  requires N\n'
        "pipeline P(x: Any): x |> A.a(tools: [T]) |> A.b(tools: [])\n"
    )
    agent = program.agents["A"]
    assert agent.model == EnvRef("MODEL")
    assert (agent.equips, agent.system) == (("T",), "Be {{kind}}.")
    assert agent.policies == (program.policies["N"],)
    first, second = program.pipelines["P"].stages
    assert (first.call.tools, second.call.tools) == (("T",), ())  # type: ignore[union-attr]


def test_a_shadow_has_no_tools() -> None:
    before = "tool T : Bash()\nagent A [openai/gpt-4o]\n  equips T\n"
    (stage,) = stages("@shadow(A.a(tools: [T])) |> A.b() as y", before=before)
    assert isinstance(stage, CallStage)
    assert (stage.shadow.target, stage.shadow.tools, stage.bind) == ("A.a", (), "y")


# Tools, pipelines, System ----------------------------------------------------------------------------------------

FILES = 'tool Files : Workspace("./notes", write: true)\n'


@pytest.mark.parametrize(
    ("written", "names", "flowing"),
    [
        ("Files.read()", [], "path"),
        ('Files.read("a")', ["path"], None),
        ('Files.read(path: "a")', ["path"], None),
        ("Files.read(lines: 3)", ["lines"], "path"),
        ('Files.write(content: "b")', ["content"], "path"),
        ('Files.write("a", "b")', ["path", "content"], None),
        ("Files.list()", [], "path"),
    ],
)
def test_a_tools_arguments_and_the_flowing_value(written: str, names: list[str], flowing: str | None) -> None:
    made = call(written, FILES)
    assert isinstance(made, ToolCall)
    assert ([b.name for b in made.args], made.flowing) == (names, flowing)
    assert made.method is not None
    assert made.target == f"Files.{made.method.name}"


def test_a_method_without_arguments_takes_no_flowing_value() -> None:
    empty = Method("now", "Now.", {"type": "object", "properties": {}}, READ)
    clock = Provider("Clock", "tool", "A clock.", (), lambda _: (empty,))
    source = Source("t.halo", "tool C : Clock\npipeline P(x: Any): x |> C.now()\n")
    (stage,) = check(source, providers={"Clock": clock}).pipelines["P"].stages
    assert stage.call.flowing is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "names", "flowing"),
    [("T.go()", [], ""), ("T.go(x)", [""], None), ("T.go(a: 1)", ["a"], ""), ("T.go(x, a: 1)", ["", "a"], None)],
)
def test_the_first_argument_of_a_method_that_is_not_described(
    written: str, names: list[str], flowing: str | None
) -> None:
    made = call(written, 'tool T : Server("c")\n')
    assert isinstance(made, ToolCall)
    assert (made.method, [b.name for b in made.args], made.flowing) == (None, names, flowing)


@pytest.mark.parametrize(
    ("written", "names", "flowing"),
    [
        ("Q()", [], "a"),
        ("Q(1)", ["a"], None),
        ("Q(a: 1)", ["a"], None),
        ("Q(b: 1)", ["b"], "a"),
        ("Q(1, 2)", ["a", "b"], None),
    ],
)
def test_a_pipelines_arguments_and_the_flowing_value(written: str, names: list[str], flowing: str | None) -> None:
    made = call(written, "pipeline Q(a: Any, b: Number = 2): a\n")
    assert isinstance(made, PipelineCall)
    assert (made.target, [b.name for b in made.args], made.flowing) == ("Q", names, flowing)


def test_a_pipeline_without_parameters_takes_nothing() -> None:
    made = call("Q()", "pipeline Q(): 1\n")
    assert isinstance(made, PipelineCall)
    assert (made.args, made.flowing) == ((), None)


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("System.Print()", type(None)),
        ("System.Print(x)", Path),
        ('System.Fail(message: "no")', Text),
        ("System.Wait(30s)", Duration),
        ("System.Wait(x)", Path),
        ("System.Wait(1.5)", Number),
        ("System.Wait(0)", Number),
        ("System.Now()", type(None)),
        ("System.Publish(value: x)", Path),
        ("System.Log([x])", ListExpr),
    ],
)
def test_what_system_is_given(written: str, kind: type) -> None:
    made = call(written)
    assert isinstance(made, SystemCall)
    assert made.target == f"System.{made.method}"
    assert type(made.value) is kind


def test_a_call_with_an_error_is_broken_and_the_others_stay() -> None:
    first, second, third = stages("|> A.a(y)", "|> Nobody.go(x)", "|> A.b()", ok=False)
    assert isinstance(first.call, BrokenCall)
    assert (second.call.target, type(second.call)) == ("Nobody.go", BrokenCall)
    assert (third.number, type(third.call)) == (3, AgentCall)


def test_settings_as_values() -> None:
    program = read(
        'tool S : Bash(cwd: "w", timeout: 90s, env: [Env.A, Env.B])\ntool C : Slack(Env.TOKEN)\n'
        'tool M : Server("run", "--a", Env.B, headers: {k: [Env.C]})\ntool N : Server("run", args: ["x"])\n'
        "tool E : Bash()\n"
    )
    assert program.tools["S"].settings == {"cwd": "w", "timeout": 90.0, "env": (EnvRef("A"), EnvRef("B"))}
    assert program.tools["C"].settings == {"token": EnvRef("TOKEN")}
    assert program.tools["M"].settings == {
        "command": "run",
        "args": ("--a", EnvRef("B")),
        "headers": {"k": (EnvRef("C"),)},
    }
    assert program.tools["N"].settings == {"command": "run", "args": ("x",)}
    assert program.tools["E"].settings == {"cwd": ".", "timeout": 60.0, "env": ()}
    assert program.tools["M"].methods is None


def test_a_workspace_that_does_not_write_has_no_writing_methods() -> None:
    program = read('tool R : Workspace("a")\ntool W : Workspace("a", write: true)\n')
    assert {m.effect for m in program.tools["R"].methods or ()} == {READ}
    assert program.tools["W"].method("delete") is not None


# Policies --------------------------------------------------------------------------------------------------------


def test_rules_as_they_are_read() -> None:
    (policy,) = read(
        'policy P : AllowTools("A.*", "B.c") & DenyArgs("F.w", path: "*.env", n: 3, b: true) & ApproveEffects(write)'
        ' & MaxSpend(0.50) & MaxCalls(5, "F.*") & MaxCalls(20) & Redact(email, key, "a+")\n'
    ).policies.values()
    allow, deny, approve, spend, some, every, redact = policy.rules
    assert (allow.kind, allow.policy, allow.patterns) == ("AllowTools", "P", ("A.*", "B.c"))
    assert (deny.patterns, deny.args) == (("F.w",), (("path", "*.env"), ("n", "3"), ("b", "true")))
    assert approve.effects == ("write",)
    assert (spend.limit, spend.limit_text) == (500_000_000, "0.50")
    assert (some.limit, some.patterns, every.limit, every.patterns) == (5, ("F.*",), 20, ())
    assert redact.redactions == ("email", "key", "regex:a+")


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0.50", 500_000_000), ("2", 2_000_000_000), ("0.1", 100_000_000), ("0.29", 290_000_000), ("00.5", 500_000_000),
        ("0.0000000019", 1), ("1.9999999999", 1_999_999_999), ("0.0000000001", 0), ("15e-10", 1), ("1e-10", 0),
        ("1e-3", 1_000_000), ("1E2", 100_000_000_000), ("12.5e-1", 1_250_000_000), ("-1", -1_000_000_000),
        ("0" * 4000 + "1", 1_000_000_000), ("0." + "0" * 4000 + "1", 0), ("1e-99999", 0), ("0e99999", 0), ("0", 0),
        ("1" + "0" * 20 + "e-20", 1_000_000_000),
    ],
)  # fmt: skip
def test_dollars_are_read_exactly_and_cut_below_a_nano_dollar(text: str, nano: int) -> None:
    assert nano_of(text) == nano


# Pipelines and stages --------------------------------------------------------------------------------------------


def test_parameters() -> None:
    program = read(
        'pipeline P(a: Result, b: Number = 2, c: String = 3, d: List = [1, {k: null}], e: String = "x"): a\n'
    )
    shown = [(p.name, p.type, p.required, p.default) for p in program.pipelines["P"].params]
    assert shown == [
        ("a", "Any", True, None),
        ("b", "Number", False, 2),
        ("c", "String", False, "3"),
        ("d", "List", False, [1, {"k": None}]),
        ("e", "String", False, "x"),
    ]


def test_gates_and_arms_know_their_conditions_as_written() -> None:
    gate, branch = stages('|? (x.a  >= 70 && x != "") =>', '|? { (x == "b") => A.a(), else => A.b() } as y')
    assert isinstance(gate, GateStage)
    assert (gate.number, gate.text) == (1, 'x.a  >= 70 && x != ""')
    assert isinstance(branch, BranchStage)
    assert [(arm.text, arm.call.target) for arm in branch.arms] == [('x == "b"', "A.a"), (None, "A.b")]
    assert (branch.number, branch.bind, branch.arms[1].condition) == (2, "y", None)


def test_bare_members_of_a_fan_out() -> None:
    (stage,) = stages("|* { A, Q, A.b() as c } as d", before="agent A [openai/gpt-4o]\npipeline Q(a: Any): a\n")
    assert isinstance(stage, FanOutStage)
    assert [(m.call.target, m.bind) for m in stage.members] == [("A.prompt", None), ("Q", None), ("A.b", "c")]
    assert isinstance(stage.members[1].call, PipelineCall)
    assert (stage.members[1].call.flowing, stage.bind) == ("a", "d")


def test_each_with_its_options() -> None:
    first, second = stages("|* each(i in x, concurrency: 2, limit: x.n) => A.a(i, index)", "|* each(i in x) => A.a()")
    assert isinstance(first, EachStage)
    assert (first.item, type(first.concurrency), type(first.limit)) == ("i", Number, Path)
    assert (second.concurrency, second.limit) == (None, None)


@pytest.mark.parametrize(
    ("written", "message", "channel", "attachments", "timeout_s"),
    [
        ('yield("Well?", channel: "#e", [x], 1h)', "Well?", "#e", 1, 3600.0),
        ('yield(msg: "Well?", queue: Chat, timeout: 30)', "Well?", "Chat", 0, 30.0),
        ('yield(Chat, message: "Well?", [x], [x], more: [x], attachments: x)', "Well?", "Chat", 4, None),
        ("yield(x)", "x", None, 0, None),
        ('yield(x, "Well?")', "Well?", None, 1, None),
        ("yield()", None, None, 0, None),
    ],
)
def test_the_parts_of_a_yield(
    written: str, message: str | None, channel: str | None, attachments: int, timeout_s: float | None
) -> None:
    (stage,) = stages(f"|! {written} as y", before="tool Chat : Slack(Env.T)\n")
    assert isinstance(stage, YieldStage)

    def shown(expr: object) -> object:
        return expr.root if isinstance(expr, Path) else expr.parts[0] if isinstance(expr, Text) else expr

    assert (shown(stage.message), shown(stage.channel)) == (message, channel)
    assert (len(stage.attachments), stage.timeout_s, stage.bind) == (attachments, timeout_s, "y")


def test_a_parameter_as_a_channel_is_no_tool() -> None:
    text = 'tool Chat : Slack(Env.T)\npipeline P(Chat: String): Chat |! yield("a", channel: Chat)\n'
    (stage,) = read(text).pipelines["P"].stages
    assert isinstance(stage.channel, Path)  # type: ignore[union-attr]


def test_events() -> None:
    named, computed = stages("~> listen(Slack.Reaction) as r", "~> listen(context.data.r.event)")
    assert isinstance(named, ListenStage)
    assert (named.event, named.bind) == ("Slack.Reaction", "r")
    assert isinstance(computed.event, Path)


def loops(*written: str) -> list[tuple[int, int, int, int]]:
    before = "agent A [openai/gpt-4o]\nagent B [openai/gpt-4o]\n"
    made = stages(*written, before=before)
    return [(s.number, s.max, s.back_to, s.extent) for s in made if isinstance(s, LoopStage)]


def test_a_loop_goes_back_to_the_latest_stage_that_calls_its_agent() -> None:
    again = '|<> loop(A, "x == 1", max: 5)'
    assert loops("|> A.a()", "|> B.a()", "|> A.b()", "|> B.b()", again) == [(5, 5, 2, 2)]
    assert loops("|* { B.a(), A }", "|> B.a()", '|<> loop(A, "x == 1")') == [(3, 3, 0, 0)]
    assert loops("|* each(i in x) => A.a()", "|? { (x) => B.a() }", again) == [(3, 5, 0, 0)]
    assert loops("|? { (x) => B.a(), else => A.a() }", again) == [(2, 5, 0, 0)]


def test_a_loops_extent_reaches_back_as_far_as_the_loops_in_it() -> None:
    a, b = '|<> loop(A, "x == 1")', '|<> loop(B, "x == 1")'
    assert loops("|> A.a()", "|> B.a()", b, a) == [(3, 3, 1, 1), (4, 3, 0, 0)]
    assert loops("|> A.a()", "|> B.a()", a, b) == [(3, 3, 0, 0), (4, 3, 1, 0)]
    assert loops("|> A.a()", a, "|> B.a()", b) == [(2, 3, 0, 0), (4, 3, 2, 2)]
    assert loops("|> A.a()", a, a, "|> B.a()", b, a) == [(2, 3, 0, 0), (3, 3, 0, 0), (5, 3, 3, 3), (6, 3, 0, 0)]


def test_a_loop_knows_its_condition_as_written() -> None:
    stage = stages("|> A.a()", '|<> loop(A, "context.current  != \\"x\\"") as n')[1]
    assert (stage.agent, stage.text, stage.bind) == ("A", 'context.current  != "x"', "n")


def test_numbers_stay_and_places_close_up_where_a_loop_is_left_out() -> None:
    made = stages('|<> loop(A, "x == 1")', "|> A.a()", '|<> loop(A, "x == 1")', ok=False)
    assert [s.number for s in made] == [2, 3]
    assert (made[1].back_to, made[1].extent) == (0, 0)


def test_bindings_are_all_names_that_are_bound() -> None:
    text = "agent A [openai/gpt-4o]\npipeline P(x: Any): x |* { A as a, A.b() } as c |! yield() as d\n"
    assert read(text).pipelines["P"].bindings == {"a", "c", "d"}


@pytest.mark.parametrize(
    ("name", "item", "expected"),
    [
        ("context", None, "context"),
        ("i", "i", "item"),
        ("b", "b", "item"),
        ("index", "i", "index"),
        ("index", None, "param"),
        ("b", None, "data"),
        ("b", "i", "data"),
        ("p", "i", "param"),
    ],
)
def test_what_a_bare_name_stands_for(name: str, item: str | None, expected: str) -> None:
    assert root_of(name, item=item, bindings={"b"}) == expected


def test_the_first_of_two_declarations_counts() -> None:
    program = read("agent A [openai/gpt-4o]\nagent A [openai/o3]\npipeline P(): 1\npipeline P(x: Any): x\n", ok=False)
    assert program.agents["A"].model == "openai/gpt-4o"
    assert program.pipelines["P"].params == ()


# Reach -----------------------------------------------------------------------------------------------------------


def test_what_a_pipeline_can_reach() -> None:
    program = read(
        "tool T : Bash(env: [Env.A])\ntool C : Slack(Env.B)\ntool U : Slack(Env.NO)\n"
        'policy N : DenyTools("T.*")\n'
        "agent M [Env.MODEL]\n  equips T, U\n  requires N\nagent S [openai/gpt-4o]\nagent O [Env.NO]\n"
        "pipeline Main(x: Any): x |* each(i in x) => Inner(i) @shadow(S.try()) |> Main(x)\n"
        "pipeline Inner(x: Any): x |? { (x) => M.go(tools: [T]), else => Leaf() } |! yield(U)\n"
        "pipeline Leaf(x: Any): x |* { C.post(), Inner }\n"
        "pipeline Other(x: Any): x |> O.go()\n"
    )
    assert reach(program, "Main") == Reach(("Main", "Inner", "Leaf"), ("M", "S"), ("T", "C"), ("MODEL", "A", "B"))
    assert reach(program, "Leaf").pipelines == ("Leaf", "Inner")
    assert reach(program, "Other") == Reach(("Other",), ("O",), (), ("NO",))


def test_a_long_chain_of_calls_is_followed_to_its_end() -> None:
    chain = "".join(f"pipeline P{n}(x: Any): x |> P{n + 1}()\n" for n in range(5_000))
    program = read(chain + "tool T : Slack(Env.X)\npipeline P5000(x: Any): x |> T.post()\n")
    assert len(reach(program, "P0").pipelines) == 5_001
    assert reach(program, "P0").env == ("X",)
