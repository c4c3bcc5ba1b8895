"""The program that start-up and memory are measured on: of the length asked for, with something of everything."""

from __future__ import annotations

BLOCK = '''# The desk of team {n}: sorts what comes in, answers it, keeps notes.
policy Careful{n} : AllowTools("Notes{n}.*") & DenyTools("Notes{n}.delete") & ApproveEffects(write) & MaxSpend(0.50)

tool Notes{n} : Workspace("./notes", write: true)
tool Chat{n} : Slack(Env.SLACK_BOT_TOKEN, channel: "#desk")

agent Clerk{n} [openai/gpt-4o, max_steps: 8]
  equips Notes{n}
  requires Careful{n}
agent Critic{n} [anthropic/claude-haiku-4-5]
  system "You judge drafts by what they leave out."

pipeline Desk{n}(ticket: String, kind: String = "bug", pages: List = []) -> Result:
  ticket
    |> Clerk{n}.work("Look up what the notes say about {{{{ticket}}}}.", tools: [Notes{n}]) as found
    |> Critic{n}.score("""Reply with JSON: {{"score": <0-100>}}""", found) as review
    |<> loop(Clerk{n}, "review.score < 50", max: 3) as tries
    |? (review.score >= 50 && review.score <= 100)
    |? {{
         (kind == "bug") => Clerk{n}.fix(ticket),
         (kind == "billing") => Clerk{n}.refund(ticket, amount: 12.5),
         else => Critic{n}.reply(ticket),
       }} as handled
    |* {{ Clerk{n}.argue_for(), Critic{n}.argue_against() as against, Critic{n} }} as views
    |* each(page in pages, concurrency: 2) => Critic{n}.summarize("Summarize {{{{index}}}}: {{{{page}}}}") as summaries
    |! yield("Send this answer?", channel: "#desk", [handled], 1h) as answer
    |? (answer.approved == true)
    |> Chat{n}.post(text: "{{{{handled}}}}")

'''


def program(lines: int) -> str:
    """A correct program of about so many lines."""
    blocks = max(1, round(lines / BLOCK.count("\n")))
    return "".join(BLOCK.format(n=n) for n in range(blocks))


def stages(count: int) -> str:
    """A pipeline of so many calls of one agent, one after the other."""
    return (
        "agent Writer [openai/gpt-4o-mini]\n\npipeline Main(topic: String) -> Result:\n  topic\n"
        + '    |> Writer.draft("Go on.")\n' * count
    )
