"""The account of a run: sums, and what went beyond a plan's allowance (runs.md §6, plan.md "Cost")."""

from __future__ import annotations

import pytest

from halo_lang.boundary.call import AGENT, Answer, Call, Data, Message, ModelRequest, Usage
from halo_lang.doors.account import Account
from halo_lang.language.source import Span


def asked(system="", rounds=0, max_tokens=100):
    messages = (Message("user", ("Ten bytes.", Data("inserted, which is no written text" * 100))),)
    messages += (Message("assistant", ("yes",)), Message("tool", (Data("x"),))) * rounds
    request = ModelRequest("openai/gpt-4o", system, messages, max_tokens=max_tokens)
    return Call(AGENT, "A.go", {}, (), "3.1", Span(0, 0), request=request)


@pytest.mark.parametrize(
    ("call", "tokens", "beyond"),
    [
        (asked(), 2_010, []),
        (asked(), 2_011, ["3.1"]),
        (asked(system="é"), 2_012, []),
        (asked(system="é"), 2_013, ["3.1"]),
        (asked(rounds=3), 2_310, []),
        (asked(rounds=3), 2_311, ["3.1"]),
    ],
)
def test_input_beyond_the_allowance_is_told_by_its_stage(call, tokens, beyond):
    account = Account()
    account.add(call, Answer("a", usage=Usage(tokens, 5, 7), cost=11, unsettled=13))
    account.add(call, Answer("a"))
    assert list(account.beyond) == beyond
    assert (account.input, account.output, account.cached) == (tokens, 5, 7)
    assert (account.cost, account.unsettled, account.llm_calls, account.tool_calls) == (11, 13, 2, 0)
