"""Checking never raises, whatever the bytes, and its records hold together (language.md §8)."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from halo_lang.check.check import check, check_bytes
from halo_lang.check.program import AgentCall, CheckedProgram, LoopStage, ToolCall
from halo_lang.check.reach import calls_of, reach
from halo_lang.language.codes import CODES
from halo_lang.language.source import Source

SEED = """
policy Careful : AllowTools("Files.*") & DenyTools("Files.delete") & ApproveEffects(write) & MaxSpend(0.50)
  & DenyArgs("Files.write", path: "*.env") & MaxCalls(5, "Files.write") & Redact(email, "a+")
tool Files : Workspace("./notes", write: true)
tool Chat : Slack(Env.SLACK_BOT_TOKEN, channel: "#notes")
tool Shell : Bash(timeout: 30s, env: [Env.A])
agent Clerk [openai/gpt-4o, max_steps: 8, timeout: 1m]
  equips Files, Chat
  requires Careful
  system "Be brief."
agent Critic [Env.MODEL]
pipeline Tidy(task: String, n: Number = 2) -> Result requires Careful:
  task
    |> Clerk.work("Do {{task}}.", tools: [Files], tone: "dry") as report
    @shadow(Critic.try()) |> Clerk("Again", report)
    |? (report.score >= 70 && !(report == "x") || context.data.report != null) =>
    |? { (n == 1) => Tidy(task, 3), (false) => Files.read(path: "a"), else => System.Wait(30s), } as chosen
    |* { Critic, Clerk.argue_for() as pro, Other } as views
    |* each(view in views, concurrency: 2, limit: n) => Other(view, index)
    |! yield("Well?", channel: Chat, [views, {k: 1}], 1h) as review
    ~> listen(Slack.Reaction) as reaction
    |<> loop(Critic, "context.data.views == \\"\\"", max: 3) as times
    |> Shell.run(command: x)
pipeline Other(v: Any, i: Number = 0): v
test "it": run Tidy(task: "a") mock Clerk.work => {a: [1]} fail Files => "no" expect (calls.Clerk.work == 1)
"""
MARKS = """( ) [ ] { } , . : = == || && ! & |> |? |* |! ~> |<> as => " {{ }} 1 30s #"""
WORDS = sorted({*SEED.split(), *MARKS.split(), '"""', "\\"})


def held(program: CheckedProgram) -> None:
    """What is true of every checked program."""
    places = [d.span.start for d in program.diagnostics]
    assert places == sorted(places)
    assert all(d.code in CODES and d.message for d in program.diagnostics)
    size = len(program.source.text)
    assert all(0 <= d.span.start <= d.span.end <= size for d in program.diagnostics)
    for pipeline in program.pipelines.values():
        reached = reach(program, pipeline.name)
        assert set(reached.pipelines) <= set(program.pipelines)
        assert set(reached.tools) <= set(program.tools)
        for at, stage in enumerate(pipeline.stages):
            if isinstance(stage, LoopStage):
                assert 0 <= stage.extent <= stage.back_to < at
        for call in calls_of(pipeline):
            if isinstance(call, AgentCall):
                assert set(call.tools) <= set(call.agent.equips)
            elif isinstance(call, ToolCall) and call.method is not None:
                assert call.flowing is None or call.flowing in call.method.parameters()


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    held(check_bytes("t.halo", data))


@settings(max_examples=150)
@given(st.lists(st.sampled_from(WORDS), max_size=60))
@example(
    [
        "agent",
        "A",
        "[",
        "openai/gpt-4o",
        "]",
        "pipeline",
        "P",
        "(",
        ")",
        ":",
        "1",
        "|<>",
        "loop",
        "(",
        "A",
        ",",
        '"x"',
        ")",
    ]
)
def test_any_words(words: list[str]) -> None:
    held(check(Source("t.halo", " ".join(words)), priced=lambda _: False))


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SEED)), st.integers(0, 40), st.sampled_from([*WORDS, "", "x", "Files", "context"])
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_damage_to_a_good_program(damage: list[tuple[int, int, str]]) -> None:
    text = SEED
    for at, length, put in damage:
        text = text[:at] + put + text[at + length :]
    held(check(Source("t.halo", text), priced=lambda _: False))


@settings(max_examples=150)
@given(st.lists(st.sampled_from(SEED.split("\n")), max_size=25))
def test_any_order_of_lines(lines: list[str]) -> None:
    held(check(Source("t.halo", "\n".join(lines))))
