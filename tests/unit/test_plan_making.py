"""Listings: what stands in a plan, in which order, and that no program makes one that is wrong or without end."""

from __future__ import annotations

import pytest

from halo_lang.check.policies import decide, matches, may_allow
from halo_lang.language.record import replace
from halo_lang.plan import making
from halo_lang.plan.making import MAX_LINES
from halo_lang.plan.plan import Plan, PlannedCall
from halo_lang.plan.report import report
from plans import AGENT, ONCE, blocks, pipeline, plan, program, text_of

TOOLS = 'tool Files : Workspace(".", write: true)\ntool Chat : Slack(Env.T)\ntool Web : Mcp("serve")\n'


def calls(made: Plan) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    """The calls of each block by its number and target."""
    return {f"{s.number} {s.target}": [(c.target, c.approval) for c in s.calls] for s in made.stages if s.calls}


# Depth and recursion ---------------------------------------------------------------------------------------------


def chain(length: int) -> str:
    inner = "".join(pipeline(f"|> P{at + 1}(x)", name=f"P{at}") for at in range(length))
    return AGENT + inner + pipeline("|> A.go()", name=f"P{length}")


def test_sixteen_calls_deep_is_listed_and_no_more() -> None:
    assert blocks(chain(16), "P0")[-1] == ("1" + ".1" * 16, "A.go")
    made = plan(chain(17), "P0")
    assert made.stages[-1].again == "would be more than 16 deep, and fails"
    assert made.stages[-1].target == "P17"
    assert made.summary.cost == ONCE  # what cannot be reached counts all the same


def test_a_recursive_call_is_listed_once() -> None:
    made = plan(AGENT + pipeline("|> A.go()", "|? { (x == 1) => P(x) }", "|? { (x == 2) => P(x) }"))
    assert [(s.number, s.target, s.again) for s in made.stages] == [
        ("1", "A.go", None),
        ("2", "P", "calls itself, up to 16 deep"),
        ("3", "P", "calls itself, up to 16 deep"),
    ]
    assert made.summary.cost is None
    assert made.summary.unbounded[0] == "stage 2 calls P"


def test_recursion_that_costs_nothing_is_bounded() -> None:
    text = "agent A [openai/free]\n" + pipeline("|> A.go()", "|? { (x == 1) => P(x) }")
    assert plan(text).summary.cost == 0
    assert not plan(text).summary.unbounded


def test_a_cycle_is_unbounded_where_anything_on_it_costs() -> None:
    text = (
        AGENT
        + pipeline("|? { (x == 1) => Q(x) }")
        + pipeline("|? { (x == 1) => P(x) }", "|> R(x)", name="Q")
        + pipeline("|> A.go()", name="R")
    )
    assert plan(text).summary.unbounded
    assert plan(text, "Q").summary.unbounded
    assert plan(text, "R").summary.cost == ONCE


def test_reasons_without_a_bound_are_named_by_their_stage() -> None:
    text = (
        AGENT
        + pipeline("|> System.Print(x)", "|> Q(x)")
        + pipeline("|* each(i in x) => R(i)", name="Q")
        + pipeline("|> A.go()", "|* each(i in x) => A.go()", name="R")
    )
    assert plan(text).summary.unbounded == (
        "stage 2.1.2 runs for each item of a list",
        "stage 2.1 runs for each item of a list",
    )


# Programs whose listing would be huge ----------------------------------------------------------------------------


def doubling(levels: int) -> str:
    inner = [pipeline(f"|> P{at + 1}(x)", f"|> P{at + 1}(x)", name=f"P{at}") for at in range(levels)]
    return AGENT + "".join(inner) + pipeline("|> A.go()", "|> System.Publish(x)", name=f"P{levels}")


def test_calls_that_double_at_each_of_forty_levels() -> None:
    made = plan(doubling(40), "P0")
    assert len(made.stages) <= MAX_LINES + 200
    assert made.summary.cost == ONCE * 2**40
    assert made.summary.external == ("System.Publish",)


def test_what_was_listed_before_is_referred_to() -> None:
    made = plan(doubling(15), "P0")
    referred = [stage for stage in made.stages if stage.again]
    assert len(made.stages) <= MAX_LINES + 200
    assert referred
    numbers = {stage.number: stage for stage in made.stages}
    for stage in referred:
        assert stage.again is not None
        listed = numbers[stage.again.removeprefix("as listed at ")]
        assert (listed.target, listed.again) == (stage.target, None)


def test_policies_that_differ_on_every_way_to_a_pipeline() -> None:
    rows = [AGENT, *(f'policy Q{at} : ApproveTools("Zz.x{at}") & MaxSpend({at + 1})\n' for at in range(64))]
    for layer in range(12):
        below = [f"|> L{layer + 1}_{to}(x)" for to in range(5)] if layer < 11 else ["|> A.go()"]
        rows += [pipeline(*below, name=f"L{layer}_{at}", requires=f"Q{(layer * 5 + at) % 64}") for at in range(5)]
    made = plan("".join(rows), "L0_0")
    assert len(made.stages) < MAX_LINES + 20 * len(program("".join(rows)).pipelines)
    assert made.summary.cost == ONCE * 5**11


def test_a_plan_that_is_crowded_forgets_no_call_for_the_policies_of_another() -> None:
    """`R` is listed first where its agent may not delete; past the lines it must be listed again where it may."""
    text = (
        TOOLS
        + 'policy Keep : DenyTools("Files.delete") & ApproveTools("Files.write")\n'
        + "agent A [openai/flat]\n  equips Files\n"
        + pipeline("|> S(x)", "|> T(x)")
        + pipeline("|> R(x)", name="S", requires="Keep")
        + pipeline("|> R(x)", name="T")
        + pipeline("|> A.go(tools: [Files])", name="R")
    )
    roomy = plan(text)
    for most in range(4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(making, "MAX_LINES", most)
            crowded = plan(text)
        free = [call for stage in crowded.stages for call in stage.calls if not call.approval]
        assert {"Files.delete", "Files.write"} <= {call.target for call in free}
        assert crowded.summary == roomy.summary


def test_a_plan_that_is_crowded_lists_again_what_stood_too_deep_before() -> None:
    """`End` is first met 17 deep, where it is not listed, by way of `P15`; then `P15` itself is called near the top."""
    text = (
        AGENT
        + pipeline("|> P1(x)", "|> P15(x)", name="P0")
        + "".join(pipeline(f"|> P{at + 1}(x)", name=f"P{at}") for at in range(1, 15))
        + pipeline("|> P16(x)", name="P15")
        + pipeline("|> End(x)", name="P16")
        + pipeline("|> A.go()", "|> System.Publish(x)", name="End")
    )
    for most in (MAX_LINES, 0, 5, 16):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(making, "MAX_LINES", most)
            made = plan(text, "P0")
        assert "System.Publish" in [call.target for stage in made.stages for call in stage.calls], most


def test_long_conditions_are_cut_where_they_are_repeated() -> None:
    long = " || ".join(["x == 1"] * 2_000)
    made = plan(AGENT + pipeline("|> A.go()", name="Q") + pipeline(f"|? {{ ({long}) => Q(x) }}"))
    assert all(len(mark) < 1_100 for stage in made.stages for mark in stage.conditions)


def test_a_thousand_policies_at_once() -> None:
    names = [f"Q{at}" for at in range(1_000)]
    text = AGENT + "".join(f"policy {name} : ApproveEffects(external)\n" for name in names)
    made = plan(text + pipeline("|> R(x)", requires=", ".join(names)) + pipeline("|> A.go()", name="R"))
    assert len(made.stages) == 2


# What policies say -----------------------------------------------------------------------------------------------


def test_several_policies_are_joined_in_the_order_in_which_they_govern() -> None:
    text = (
        TOOLS
        + 'policy One : ApproveEffects(write)\npolicy Two : ApproveTools("Files.write", "Files.w*")\n'
        + 'policy Three : ApproveTools("*.write")\n'
        + "agent A [openai/flat]\n  equips Files\n  requires Two, One\n"
        + pipeline("|> A.go(tools: [Files])", requires="Three")
    )
    assert "         may call Files.write: write · needs approval (Three, Two, One)" in text_of(text).split("\n")


def test_a_policy_that_governs_twice_is_named_once() -> None:
    text = (
        TOOLS
        + "policy One : ApproveEffects(write)\nagent A [openai/flat]\n  equips Files\n  requires One\n"
        + pipeline("|> Q(x)", requires="One")
        + pipeline("|> A.go(tools: [Files])", name="Q", requires="One")
    )
    assert "may call Files.write: write · needs approval (One)\n" in text_of(text)


def test_an_agents_policies_do_not_govern_the_pipelines_own_calls() -> None:
    text = (
        TOOLS
        + "policy One : ApproveEffects(write)\nagent A [openai/flat]\n  equips Files\n  requires One\n"
        + pipeline("|> A.go(tools: [Files])", '|> Files.mkdir("d")')
    )
    assert ("Files.mkdir", ()) in calls(plan(text))["2 Files.mkdir"]


@pytest.mark.parametrize(
    ("rule", "approved"),
    [
        ("ApproveEffects(external)", True),
        ("ApproveEffects(write)", False),
        ('ApproveTools("Web.*")', True),
        ('ApproveTools("Web.**")', True),
        ('ApproveTools("*.*")', True),
        ('ApproveTools("W*.*")', True),
        ('ApproveTools("Web.search")', False),
        ('ApproveTools("Web.*s")', False),
        ('ApproveTools("Web.*.*")', False),
    ],
)
def test_approval_is_promised_for_a_server_only_where_it_covers_every_method(rule: str, approved: bool) -> None:
    text = TOOLS + f"policy One : {rule}\nagent A [openai/flat]\n  equips Web\n  requires One\n"
    made = program(text + pipeline("|> A.go(tools: [Web])"))
    (call,) = plan(made).stages[0].calls
    assert (call.target, bool(call.approval)) == ("Web.*", approved)
    if approved:  # and it is so for any name that a server may choose
        for method in ("search", "site.map", "a.b.c", "*"):
            assert decide((made.policies["One"],), f"Web.{method}", None).approval == ("One",)


@pytest.mark.parametrize(
    ("rule", "listed"),
    [
        ('DenyTools("Web.*")', False),
        ('DenyTools("Web.**")', False),
        ('DenyTools("Web.search")', True),
        ('DenyTools("Web.*.*")', True),
        ('AllowTools("Web.search")', True),
        ('AllowTools("Files.*")', False),
    ],
)
def test_a_server_is_left_out_only_where_none_of_its_methods_can_be_left(rule: str, listed: bool) -> None:
    text = TOOLS + f"policy One : {rule}\nagent A [openai/flat]\n  equips Web, Files\n  requires One\n"
    made = program(text + pipeline("|> A.go(tools: [Web])"))
    assert bool(plan(made).stages[0].calls) is listed
    if not listed:
        for method in ("search", "site.map", "a.b.c"):
            assert not decide((made.policies["One"],), f"Web.{method}", None).allowed


def test_two_stars_are_one() -> None:
    assert matches("Web.**", "Web.a.b")
    assert matches("Web.*", "Web.a.b")
    assert not matches("Web.*.*", "Web.a")
    assert may_allow((), "Web")


# Words -----------------------------------------------------------------------------------------------------------


def test_what_a_terminal_would_obey_is_shown() -> None:
    shown = text_of(
        pipeline(
            '|! yield("a\\u{1b}[2K\\u{7f}\\u{0}b\\n\\tc \\u{202E}d")',
            '|? (x == "\x1b[1A\x9b")',
            '|? { (x == "\x08") => System.Print(x) }',
        )
    )
    assert shown.replace("\n", "").isprintable()
    assert '  1      asks a person: "a\\u{1b}[2K\\u{7f}\\u{0}b c \\u{202e}d"' in shown


def test_a_name_that_a_server_chose_hides_nothing() -> None:
    made = plan(TOOLS + pipeline("|> Chat.post(text: x)"))
    stage = replace(made.stages[0], calls=(PlannedCall("Web.a\x1b[2K\nb", None, "agent", ()),))
    summary = replace(made.summary, not_described=("Web.a\x1b[2K\nb",))
    shown = report(replace(made, stages=(stage,), summary=summary))
    assert shown.replace("\n", "").isprintable()
    assert "may call Web.a\\u{1b}[2K b: not described" in shown
    assert "Effect not described: Web.a\\u{1b}[2K b" in shown


def test_a_message_of_any_length_is_one_line() -> None:
    shown = text_of(pipeline('|! yield("""\n' + "word\n" * 5_000 + '""")'))
    (line,) = [row for row in shown.split("\n") if row.startswith("  1 ")]
    assert len(line) < 1_100
    assert line.endswith('…"')


def test_numbers_wider_than_their_column() -> None:
    assert "  1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1.1 A.go [" in text_of(chain(16), "P0")


def test_stages_with_an_error_are_left_out_and_the_numbers_stay() -> None:
    made = program(AGENT + pipeline("|> Nobody.go()", "|> A.go()"))
    assert not made.ok
    stages = making.make_plan(made, "P", lambda model: None).stages
    assert [(s.number, s.target) for s in stages] == [("2", "A.go")]
