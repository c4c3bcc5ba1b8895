"""Names: what is declared in a file, and what a bare name inside a pipeline means (language.md §3).

Owns the rule by which a bare name is found (`root_of`, which the runtime asks too), the reserved names, the table of
declarations and the names of one pipeline with the stages that bind them. Read `expressions.py` next.
"""

from __future__ import annotations

from ..language.ast import AgentDecl, Branch, Each, FanOut, Gate, Loop, Pipe, PipelineDecl, PolicyDecl, ToolDecl
from ..language.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from ..language.ast import Call, Declaration, Name, Program
    from .findings import Findings
    from .program import Agent, Policy, Tool

RESERVED = frozenset(("System", "Env", "context", "yield", "listen", "loop", "approval", "index"))
"""Names that no declaration and no `as` may take."""

UNREADABLE = frozenset(("Env", "context"))
"""Names that no parameter and no item may take, for nothing could read it."""


def root_of(name: str, *, item: str | None, bindings: Container[str]) -> str:
    """What a path's first name stands for in a pipeline: `"context"`, `"item"`, `"index"`, `"data"` or `"param"`.

    `item` is the item's name where the path stands in the call of an `each`, else None; `bindings` are all the names
    that an `as` of the pipeline binds. The order is that of language.md §3.
    """
    if name == "context":
        return "context"
    if item is not None:
        if name == item:
            return "item"
        if name == "index":
            return "index"
    return "data" if name in bindings else "param"


class Params(Record):
    """A pipeline's parameters, as a call must know them: `types` by name, as written."""

    names: tuple[str, ...]
    required: tuple[str, ...]
    types: dict[str, str]


class Declared:
    """Everything that a file declares, by name. The first of several declarations of a name counts.

    `kinds` knows every name (`"policy"`, `"tool"`, `"store"`, `"agent"`, `"pipeline"`), `pipelines` the declarations;
    the other tables are filled as the parts are resolved. `used` collects the names that something refers to. `lost`
    are the names in parts that could not be parsed: nothing is said of them for which such a part may be the reason.
    """

    __slots__ = ("_params", "agents", "kinds", "lost", "pipelines", "policies", "tools", "used")

    def __init__(self, lost: frozenset[str]) -> None:
        self.lost = lost
        self.kinds: dict[str, str] = {}
        self.pipelines: dict[str, PipelineDecl] = {}
        self.policies: dict[str, Policy] = {}
        self.tools: dict[str, Tool] = {}
        self.agents: dict[str, Agent] = {}
        self.used: set[str] = set()
        self._params: dict[str, Params] = {}

    def params_of(self, pipeline: PipelineDecl) -> Params:
        """The parameters of a pipeline; put together once."""
        known = self._params.get(pipeline.name.text)
        if known is None:
            types: dict[str, str] = {}
            for param in pipeline.params:
                types.setdefault(param.name.text, param.type.text)
            required = tuple(dict.fromkeys(p.name.text for p in pipeline.params if p.default is None))
            known = self._params[pipeline.name.text] = Params(tuple(types), required, types)
        return known

    def of_kind(self, *kinds: str) -> Iterator[str]:
        return (name for name, kind in self.kinds.items() if kind in kinds)

    def callable(self) -> Iterator[str]:
        """The names that a call may begin with."""
        yield "System"
        yield from self.of_kind("agent", "tool", "store", "pipeline")


def declare(program: Program, findings: Findings) -> Declared:
    """The table of a file's declarations, with errors for names that are taken or reserved."""
    declared = Declared(program.lost)
    kinds = declared.kinds
    for declaration in program.declarations:
        kind = _kind(declaration)
        if kind is None:
            continue
        name: Name = declaration.name  # type: ignore[assignment]  # a test's name is a text, and has no kind
        if name.text in RESERVED:
            findings.error("RESERVED_NAME", f"`{name.text}` belongs to the language", name, "choose another name")
        elif name.text in kinds:
            findings.error(
                "DUPLICATE_NAME", f"`{name.text}` is declared above already, as {_ARTICLE[kinds[name.text]]}", name
            )
        else:
            kinds[name.text] = kind
            if isinstance(declaration, PipelineDecl):
                declared.pipelines[name.text] = declaration
    return declared


_ARTICLE = {
    "policy": "a policy",
    "tool": "a tool",
    "store": "a store",
    "agent": "an agent",
    "pipeline": "a pipeline",
}


def with_article(kind: str) -> str:
    """`an agent`, `a tool` and so on."""
    return _ARTICLE[kind]


def _kind(declaration: Declaration) -> str | None:
    kind = type(declaration)
    if kind is PipelineDecl:
        return "pipeline"
    if kind is AgentDecl:
        return "agent"
    if kind is PolicyDecl:
        return "policy"
    return declaration.keyword if isinstance(declaration, ToolDecl) else None


def refer(declared: Declared, findings: Findings, name: Name, wanted: tuple[str, ...], where: str) -> str | None:
    """The name of a declaration of one of the kinds `wanted`, else None with an error. `where` says what takes it."""
    kind = declared.kinds.get(name.text)
    if kind in wanted:
        declared.used.add(name.text)
        return name.text
    plural = _PLURALS[wanted[0]]
    if kind is not None:
        declared.used.add(name.text)
        findings.error("WRONG_KIND", f"`{name.text}` is {_ARTICLE[kind]}; {where} takes {plural}", name)
    elif name.text not in declared.lost:
        near = findings.near(name.text, declared.of_kind(*wanted), f"declare it, or name one of the file's {plural}")
        findings.error("UNKNOWN_NAME", f"there is no {wanted[0]} `{name.text}`", name, near)
    return None


_PLURALS = {"policy": "policies", "tool": "tools and stores", "agent": "agents", "pipeline": "pipelines"}


def check_unused(program: Program, declared: Declared, findings: Findings) -> None:
    """Warns of policies, tools, stores and agents that nothing refers to. A pipeline is there to be started."""
    referred = declared.used | declared.lost
    for declaration in program.declarations:
        if not isinstance(declaration, PolicyDecl | ToolDecl | AgentDecl):
            continue
        name = declaration.name
        if name.text in declared.kinds and name.text not in referred:
            help_ = _TO_USE[declared.kinds[name.text]]
            what = f"the {declared.kinds[name.text]} `{name.text}` is never used"
            findings.warning("UNUSED", what, name, help_)
            referred.add(name.text)


_TO_USE = {
    "policy": "an agent or a pipeline requires it by `requires`, else it restricts nothing",
    "tool": "call it in a pipeline, or let an agent have it by `equips`",
    "store": "call it in a pipeline, or let an agent have it by `equips`",
    "agent": "call it in a pipeline",
}


def calls_in(stage: object) -> Iterator[Call]:
    """The calls that a stage of the tree makes, a shadow's left out, in the order written."""
    kind = type(stage)
    if kind is Pipe or kind is Each:
        yield stage.call  # type: ignore[attr-defined]
    elif kind is Branch:
        for arm in stage.arms:  # type: ignore[attr-defined]
            yield arm.call
    elif kind is FanOut:
        for member in stage.members:  # type: ignore[attr-defined]
            yield member.call


class Scope:
    """The names of one pipeline: its parameters, and which stage (from 0) first binds a name with `as`.

    `back_to` and `extents` say, for a loop's stage, where it jumps to and the first stage that lies in it (language.md
    §7). While expressions are checked, `stage` is the one they stand in (-1: the source) and `item` the name of the
    `each` item around them.
    """

    __slots__ = ("back_to", "extents", "first", "horizon", "item", "params", "stage")

    def __init__(self, pipeline: PipelineDecl) -> None:
        self.params = {p.name.text: None for p in pipeline.params}
        self.first: dict[str, int] = {}
        self.back_to: dict[int, int] = {}
        self.extents: dict[int, int] = {}
        self.horizon: list[int] = []
        self.item: str | None = None
        self.stage = -1
        self._bind(pipeline)
        self._loop(pipeline)

    def available(self, name: str) -> bool:
        """Whether an `as` binds the name before the current stage, or in a loop that leads back to it."""
        first = self.first.get(name)
        if first is None:
            return False
        return first < self.stage or (self.stage >= 0 and first < self.horizon[self.stage])

    def names(self) -> Iterator[str]:
        """The names that can be read in the current place."""
        if self.item is not None:
            yield from (self.item, "index")
        yield from self.params
        yield from (name for name in self.first if self.available(name))
        yield "context"

    def _bind(self, pipeline: PipelineDecl) -> None:
        for at, stage in enumerate(pipeline.stages):
            if isinstance(stage, FanOut):
                for member in stage.members:
                    if member.bind is not None:
                        self.first.setdefault(member.bind.text, at)
            if not isinstance(stage, Gate) and stage.bind is not None:
                self.first.setdefault(stage.bind.text, at)

    def _loop(self, pipeline: PipelineDecl) -> None:
        latest: dict[str, int] = {}
        inner: list[int] = []
        farthest: dict[int, int] = {}
        for at, stage in enumerate(pipeline.stages):
            if not isinstance(stage, Loop):
                for call in calls_in(stage):
                    latest[call.target.text] = at
                continue
            back_to = latest.get(stage.agent.text)
            if back_to is None:
                continue
            extent = back_to
            # What an inner loop reaches back to is in its own extent already, so one look at each is enough.
            while inner and inner[-1] >= extent:
                extent = min(extent, self.extents[inner.pop()])
            self.back_to[at], self.extents[at] = back_to, extent
            inner.append(at)
            farthest[extent] = at
        reached = -1
        for at in range(len(pipeline.stages)):
            reached = max(reached, farthest.get(at, -1))
            self.horizon.append(reached)
