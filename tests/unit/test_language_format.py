"""The one layout: what `halo fmt` makes of a file (cli.md), and a tree printed without one."""

from __future__ import annotations

import pytest

from halo_lang.language.diagnostics import ERROR
from halo_lang.language.format import format_source, print_program
from halo_lang.language.parser import parse
from halo_lang.language.source import Source


def formatted(text: str) -> str:
    source = Source("x.halo", text)
    program, found = parse(source)
    assert [d for d in found if d.severity == ERROR] == []
    return format_source(source, program)


def assert_settles_as(text: str, expected: str) -> None:
    assert formatted(text) == expected
    assert formatted(expected) == expected


TIDY = """\
policy Careful : AllowTools("Files.*") & DenyTools("Files.delete") & ApproveEffects(write) & MaxSpend(0.50)

tool Files : Workspace("./notes", write: true)
tool Chat : Slack(Env.SLACK_BOT_TOKEN, channel: "#notes")

agent Clerk [openai/gpt-4o, max_steps: 8]
  equips Files
  requires Careful

agent Scorer [Env.MODEL]

# Handles one ticket.
pipeline Tidy(task: String, kind: String = "bug") -> Result requires Careful:
  task
    |> Clerk.work("Tidy {{task}}.", tools: [Files]) as report
    |> Scorer.score(\"\"\"Reply with JSON: {"score": <0-100>}\"\"\") as review
    |? (context.data.review.score >= 70 && !(report == "x")) =>
    |? {
         (kind == "bug") => Clerk.fix(task),
         else => Scorer.reply(task),
       } as handled
    |* { Clerk.argue_for(), Scorer.argue_against() as against, Clerk } as views
    |* each(doc in [1, 2], concurrency: 2) => Scorer.summarize("Summarize {{index}}: {{doc}}") as summaries
    |! yield("Publish?", channel: "#editors", [context.data.draft[0]], 1h) as ok
    ~> listen(Slack.Reaction) as reaction
    @shadow(Scorer.draft())
    |> Clerk.draft({a: {}, "b c": [-5]})
    |<> loop(Clerk, "context.data.tests.exitCode != 0", max: 3) as attempts

test "it works":
  run Tidy(task: "a")
  mock Clerk.work => {report: "x"}
  fail Chat => "down"
  expect (status == "failed")
"""


def test_this_is_how_a_file_looks() -> None:
    assert formatted(TIDY) == TIDY
    bare = TIDY.replace("# Handles one ticket.\n", "")
    assert formatted(" ".join(bare.split())) == bare.replace("\n\ntool Files", "\ntool Files")


def test_blanks_between_tokens_mean_nothing() -> None:
    text = 'agent   A [ openai/gpt-4o ,n:10 ]\npipeline P( x:String )->Result :\n x |> A . go( "a" ,tools:[ ],) as y'
    assert_settles_as(
        text,
        'agent A [openai/gpt-4o, n: 10]\n\npipeline P(x: String) -> Result:\n  x\n    |> A.go("a", tools: []) as y\n',
    )


def test_comments_stay_where_they_stand() -> None:
    assert_settles_as(
        """// about A
agent A [ a/b ] // trails
   # about B
agent B [a/b]
  # before a clause
  equips T ,  #why
    U
#!odd
## heading

   #   indented
pipeline P():
  x  # first
    # before a stage

    |> A.go( # opens
       1, # one
       # own
       2 # two
       # last
    ) # closed
    |? (a && # and
        b)
    # at the end
# after
""",
        """# about A
agent A [a/b]  # trails

# about B
agent B [a/b]
  # before a clause
  equips T,  # why
    U

#!odd
## heading

#   indented
pipeline P():
  x  # first
    # before a stage

    |> A.go(  # opens
         1,  # one
         # own
         2,  # two
         # last
       )  # closed
    |? (a &&  # and
         b)
    # at the end
# after
""",
    )


def test_one_line_declarations_stay_together_and_others_stand_apart() -> None:
    assert_settles_as(
        "tool A : W\ntool B : W\n\n\n\nagent C [a/b]\nagent D [a/b] equips A\nagent E [a/b]\n",
        "tool A : W\ntool B : W\n\nagent C [a/b]\n\nagent D [a/b]\n  equips A\n\nagent E [a/b]\n",
    )


def test_declarations_of_a_line_each_stay_below_each_other_where_one_was_moved() -> None:
    assert_settles_as(
        'tool Files : W("a")\ntool Chat  : S()   # why\n\n'
        "agent Optimist    [a/b]\nagent Me[a/b]\nagent B [a/b] equips A\n",
        'tool Files : W("a")\ntool Chat  : S()  # why\n\nagent Optimist [a/b]\nagent Me       [a/b]\n\n'
        "agent B [a/b]\n  equips A\n",
    )
    others = ("\ntool Bcd : W\n", "# c\ntool Bcd : W\n", "store B : W\n")
    for apart in [f"tool A   : W\n{other}" for other in others]:
        assert_settles_as(apart, apart.replace("A   :", "A :"))
    long = f"tool {'B' * 100} : W\n"
    assert_settles_as(f"tool A  : W({'1, ' * 10}1)\n{long}", f"tool A : W({'1, ' * 10}1)\n{long}")


def test_at_most_one_blank_line_is_kept_between_stages() -> None:
    assert_settles_as(
        "pipeline P():\n\n\n  x\n\n\n\n    |> A.b()\n    |> A.c()\n\n\n\n",
        "pipeline P():\n  x\n\n    |> A.b()\n    |> A.c()\n",
    )


def test_a_fan_out_takes_one_line_as_long_as_it_fits() -> None:
    fits = f"    |* {{ {'a' * 40}.b(), {'c' * 34}.d() }} as e\n"
    assert len(fits.rstrip()) == 100
    assert_settles_as(f"pipeline P():\n  x\n{fits}", f"pipeline P():\n  x\n{fits}")
    assert_settles_as(
        f"pipeline P():\n  x\n    |* {{ {'a' * 40}.b(), {'c' * 35}.d() }} as e\n",
        f"pipeline P():\n  x\n    |* {{\n         {'a' * 40}.b(),\n         {'c' * 35}.d(),\n       }} as e\n",
    )
    assert_settles_as(
        "pipeline P():\n  x\n    |* { A, # one\n B }\n",
        "pipeline P():\n  x\n    |* {\n         A,  # one\n         B,\n       }\n",
    )


def test_long_lines_break_at_brackets() -> None:
    long = "a" * 60
    assert_settles_as(
        f'pipeline P():\n  x\n    |> A.b("{long}", k: ["{long}", "{long}"], c: d) as e\n',
        f'pipeline P():\n  x\n    |> A.b(\n         "{long}",\n         k: [\n           "{long}",\n           '
        f'"{long}",\n         ],\n         c: d,\n       ) as e\n',
    )
    assert_settles_as(f"policy P : {long}(1) & {long}(2) & B(3)\n", f"policy P : {long}(1)\n  & {long}(2)\n  & B(3)\n")
    assert_settles_as(f"agent A [a/b, {long}: 1, {long}: 2]\n", f"agent A [\n  a/b,\n  {long}: 1,\n  {long}: 2,\n]\n")
    condition = f"{long} == {long} && {long} == {long}"
    assert_settles_as(f"pipeline P():\n  x\n    |? ({condition})\n", f"pipeline P():\n  x\n    |? ({condition})\n")


def test_a_string_of_several_lines_moves_with_its_line() -> None:
    assert_settles_as(
        'pipeline P():\n x\n |> A.b("""\n      one\n\n        two\n   """)\n',
        'pipeline P():\n  x\n    |> A.b("""\n         one\n\n           two\n      """)\n',
    )
    assert_settles_as('agent A [a/b]\nsystem """one\n  two"""\n', 'agent A [a/b]\n  system """one\n    two"""\n')


@pytest.mark.parametrize(
    "string",
    [
        '"""\n\ta\n\t  b\n"""',
        '"""\na\n  b\n"""',
        '"""a\nb   \n  """',
        '"""\n   a\\n\n      \\u{20}b \n   """',
        '"""\n  say ""\\"x""\\" """',
        '"""   \n   a"""',
        '"""\r\n  a\r\n   b\r\r\n  """',
        '"""\n     {{x}}\n     { {\n     \\{{y}}"""',
    ],
)
def test_what_a_string_says_is_kept(string: str) -> None:
    text = f"pipeline P():\n\t x\n      |> A.b({string}) |> A.c( 1,{string} )\n"
    once = formatted(text)
    before = parse(Source("", text))[0].declarations[0]
    after = parse(Source("", once))[0].declarations[0]
    said = [
        [[part if isinstance(part, str) else part.root for part in arg.value.parts] for arg in stage.call.args[-1:]]  # type: ignore[union-attr]
        for pipeline in (before, after)
        for stage in pipeline.stages  # type: ignore[union-attr]
    ]
    assert said[:2] == said[2:]
    assert formatted(once) == once


def test_line_ends_are_kept() -> None:
    assert formatted("tool A:W\r\ntool B:W # x\r\n") == "tool A : W\r\ntool B : W  # x\r\n"
    assert formatted("tool A:W\ntool B:W\r\n") == "tool A : W\ntool B : W\n"


def test_a_string_of_several_lines_may_come_first() -> None:
    assert_settles_as('pipeline P():\n"""\n a\n"""\n', 'pipeline P():\n  """\n   a\n  """\n')
    assert formatted('pipeline P():\r\n"""\n a"""') == 'pipeline P():\r\n  """\r\n   a"""\r\n'


def test_files_without_declarations() -> None:
    assert formatted("") == ""
    assert formatted(" \n\n") == ""
    assert_settles_as("\n\n//x\n\n\n# y", "# x\n\n# y\n")


def test_a_tree_is_printed_without_a_text() -> None:
    text = TIDY.replace("# Handles one ticket.\n", "")
    assert print_program(parse(Source("", text))[0]) == text
    assert print_program(parse(Source("", "pipeline P(): (((!a == b)))"))[0]) == "pipeline P():\n  !(a == b)\n"


def test_a_tree_as_deep_as_allowed_is_printed() -> None:
    text = f"pipeline P(): x |? ({'!' * 63}a == b)"
    program, found = parse(Source("", text))
    assert {d.severity for d in found} == {"warning"}
    again = parse(Source("", print_program(program)))
    assert {d.severity for d in again[1]} == {"warning"}
