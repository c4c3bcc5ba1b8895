"""What a plan says (plan.md): its records, which the report, the JSON document, the graph and the checks render.

Owns the records only. Amounts are nano-dollars. Read `making.py` for how a plan is made.
"""

from __future__ import annotations

from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..language.source import Span


class PlannedCall(Record):
    """A tool's method that a stage calls (`by` is `pipeline`) or that an agent may call (`by` is `agent`).

    `target` is `Files.read`, or `Web.*` where the provider does not describe itself. `effect` is None where it is not
    described. `approval` names the policies that want a person's approval. `claimed`: the effect is what an MCP server
    says of itself.
    """

    target: str
    effect: str | None
    by: str
    approval: tuple[str, ...]
    claimed: bool = False


class PlannedStage(Record):
    """One block of a plan.

    `kind` is `agent`, `tool`, `system`, `pipeline`, `gate`, `yield`, `listen` or `loop`. `target` is what is called, or
    the words for a stage that calls nothing. `cost` bounds all the times that the stage can run; inside an `each`
    without a limit one item's. It is None where there is no price or no model. `times` is None inside such an `each`,
    `loops` then the product of the loops and limited `each`es alone. `conditions` are those of the branch arms around
    it, `else` among them. `steps` are an agent's rounds of tool calls. `provider` stands behind a tool. `again` says
    why a called pipeline's stages are not listed here.
    """

    number: str
    kind: str
    target: str
    span: Span
    model: str | None = None
    cost: int | None = None
    times: int | None = 1
    loops: int = 1
    conditions: tuple[str, ...] = ()
    shadow: bool = False
    calls: tuple[PlannedCall, ...] = ()
    requests: int | None = None
    max_tokens: int | None = None
    steps: int | None = None
    provider: str | None = None
    again: str | None = None


class SpendLimit(Record):
    """An agent's model calls stop before the run passes `limit`; `text` is the limit as it is shown (`0.50`)."""

    agent: str
    limit: int
    text: str
    policy: str


class Summary(Record):
    """What a whole plan comes to. `cost` is None where it is unbounded, for the reasons in `unbounded`, or where no
    model has a price (`has_cost` is then false). Lists are in the order of first use."""

    has_cost: bool
    cost: int | None
    unbounded: tuple[str, ...]
    unpriced: tuple[str, ...]
    external: tuple[str, ...]
    writes: tuple[str, ...]
    approvals: tuple[str, ...]
    not_described: tuple[str, ...]
    limits: tuple[SpendLimit, ...]
    stops_at: SpendLimit | None


class Plan(Record):
    """The plan of one pipeline."""

    pipeline: str
    stages: tuple[PlannedStage, ...]
    summary: Summary
