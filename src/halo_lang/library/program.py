"""Programs for the library: loaded, checked, planned (library.md)."""

from __future__ import annotations

import os

from ..app.checking import checked
from ..app.clock import today
from ..app.own import own_providers
from ..app.project import Project, read_project
from ..boundary.host import ConfigError
from ..language.diagnostics import ERROR, render
from ..language.source import MAX_BYTES
from ..language.visible import visible
from ..plan.bounds import INPUT_TOKENS
from ..plan.difference import difference
from ..plan.document import plan_json
from ..plan.making import make_plan
from ..plan.report import report
from .errors import HaloError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..app.own import Own
    from ..check.program import Agent, CheckedPipeline, CheckedProgram, Tool
    from ..language.diagnostics import Diagnostic
    from ..plan.difference import Change
    from ..plan.plan import Plan, PlannedCall, PlannedStage, Summary


class Program:
    """A program without errors. `checked` is its resolved form, for tools that look deeper."""

    def __init__(
        self, checked: CheckedProgram, path: str, project: Project, own: Mapping[str, Own] | None = None
    ) -> None:
        self.checked = checked
        self.path = path
        self.project = project
        self.own = own or {}
        """The providers that it was loaded with, described."""

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        return self.checked.diagnostics

    @property
    def pipelines(self) -> tuple[CheckedPipeline, ...]:
        return tuple(self.checked.pipelines.values())

    @property
    def agents(self) -> tuple[Agent, ...]:
        return tuple(self.checked.agents.values())

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The declared tools, without the stores."""
        return tuple(tool for tool in self.checked.tools.values() if tool.keyword == "tool")

    @property
    def stores(self) -> tuple[Tool, ...]:
        return tuple(tool for tool in self.checked.tools.values() if tool.keyword == "store")

    def pipeline(self, name: str | None) -> CheckedPipeline:
        """The pipeline of that name; without one the only one, or `Main`. Raises `HaloError`."""
        pipelines = self.checked.pipelines
        if name is None:
            name = next(iter(pipelines)) if len(pipelines) == 1 else "Main"
        if not isinstance(name, str) or name not in pipelines:  # the arguments in its place, say
            known = ", ".join(pipelines) or "none"
            raise HaloError("UNKNOWN_NAME", f"{self.path}: there is no pipeline `{name}`; there are: {known}")
        return pipelines[name]

    def plan(self, pipeline: str | None = None, *, input_tokens: int = INPUT_TOKENS) -> ProgramPlan:
        """What a run of the pipeline could do and cost. Raises `HaloError` for an unknown pipeline."""
        day = today()
        name = self.pipeline(pipeline).name
        plan = make_plan(self.checked, name, lambda m: self.project.price(m, day), input_tokens)
        return ProgramPlan(plan, self.checked)


class ProgramPlan:
    """A plan. `str(plan)` is what `halo plan` prints; a notebook shows it so."""

    def __init__(self, plan: Plan, program: CheckedProgram) -> None:
        self._plan = plan
        self._program = program

    def __str__(self) -> str:
        return report(self._plan)

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def to_json(self) -> dict[str, Any]:
        """The plan as `halo plan --json` holds it among its `pipelines`."""
        return plan_json(self._plan, self._program)

    def difference(self, before: ProgramPlan) -> PlanDifference:
        """What changed since another plan of this pipeline."""
        name = self.pipeline
        earlier = {**before.to_json(), "name": name}
        return PlanDifference(difference({"pipelines": [earlier]}, {"pipelines": [self.to_json()]}))

    @property
    def pipeline(self) -> str:
        return self._plan.pipeline

    @property
    def stages(self) -> tuple[PlannedStage, ...]:
        return self._plan.stages

    @property
    def summary(self) -> Summary:
        return self._plan.summary

    @property
    def max_cost(self) -> float | None:
        """The worst-case model cost in US dollars; None where it is unbounded or no model has a price."""
        cost = self._plan.summary.cost
        return None if cost is None else cost / 1_000_000_000

    @property
    def calls(self) -> tuple[PlannedCall, ...]:
        """Every tool call of the plan, each once, in the order of first use."""
        return tuple(dict.fromkeys(call for stage in self._plan.stages for call in stage.calls))


class PlanDifference:
    """The changes from one plan to another. `widened`: something more is allowed, or can cost more."""

    def __init__(self, changes: list[Change]) -> None:
        self.changes = tuple(changes)

    @property
    def widened(self) -> bool:
        return any(change.widens for change in self.changes)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def __str__(self) -> str:
        rows = [f"{change.sign} {change.text}{' (wider)' if change.widens else ''}" for change in self.changes]
        return "\n".join(rows) or "the plans are the same"

    def _repr_html_(self) -> str:
        return preformatted(str(self))


MOST_SHOWN = 20_000
"""Characters of a text that a notebook is given."""


def preformatted(text: str) -> str:
    """Text as HTML, every mark of HTML in it escaped, control characters made visible; of a long one the beginning."""
    from html import escape

    if len(text) > MOST_SHOWN:
        text = f"{text[:MOST_SHOWN]}…\n\n{len(text) - MOST_SHOWN:,} more characters are not shown"
    return f'<pre style="white-space: pre-wrap">{escape(visible(text))}</pre>'


def load(path: str | os.PathLike[str], *, providers: Mapping[str, object] | Iterable[str] = ()) -> Program:
    """Reads and checks a `.halo` file. `providers` are your own, by the name under which the file declares them: a
    class, a function or a list of functions. One of which only the name is given (or None) may have any arguments,
    methods and effects; plans then say `effect not described`, and the runtime must be given it (`register`).

    Raises `HaloError` with `diagnostics` where the file has errors, and one naming it where it cannot be read.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as trouble:
        reason = getattr(trouble, "strerror", None) or str(trouble)
        raise HaloError("", f"{name}: cannot be read: {reason}") from None
    return loads(data, path=name, providers=providers)


def loads(
    text: str | bytes, *, path: str = "program.halo", providers: Mapping[str, object] | Iterable[str] = ()
) -> Program:
    """A program from its text. `path` names it in messages, and says where its tools' folders and its `halo.toml` are.
    `providers` as for `load`, which also says what is raised."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        project = read_project(path)
    except ConfigError as trouble:
        raise HaloError("CONFIG", str(trouble)) from None
    day = today()
    try:
        own = own_providers(providers)
        program = checked(path, data, own=own, priced=lambda model: project.price(model, day) is not None)
    except ConfigError as trouble:
        raise HaloError("CONFIG", str(trouble)) from None
    errors = tuple(d for d in program.diagnostics if d.severity == ERROR)
    if errors:
        shown = "\n\n".join(render(d, program.source) for d in errors[:10])
        raise HaloError(errors[0].code, f"{path} has {len(errors)} error(s)\n\n{shown}", errors)
    return Program(program, path, project, own)
