"""The tests that a file holds: what they run, mock and expect (language.md §9).

Owns their checks only; they are run elsewhere.
"""

from __future__ import annotations

from ..language.ast import ExpectStep, FailStep, MockStep, ReplayTestDecl
from .calls import Context, bind_pipeline
from .expressions import CONTEXT, check_expr, paths_in
from .findings import listed
from .names import refer, with_article
from .program import AgentCall, ListenStage, SystemCall, ToolCall
from .reach import calls_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..catalog.describe import Provider
    from ..language.ast import Path, TestDecl
    from .findings import Findings
    from .names import Declared
    from .program import CheckedPipeline

EXPECTED = ("status", "output", "error", "context", "cost", "calls")
"""The names that stand in `expect`."""

_ERROR_PARTS = ("code", "message")
_DOORS = ("Publish", "Now", "Wait")


class Asked:
    """What the file's pipelines ask for: the agents' methods, and the events. `any_event`: one is computed."""

    __slots__ = ("any_event", "by_agent", "events", "methods")

    def __init__(self, pipelines: Mapping[str, CheckedPipeline]) -> None:
        self.events: set[str] = set()
        self.methods: set[str] = set()
        self.by_agent: dict[str, dict[str, None]] = {}
        self.any_event = False
        for pipeline in pipelines.values():
            for stage in pipeline.stages:
                if isinstance(stage, ListenStage):
                    if isinstance(stage.event, str):
                        self.events.add(stage.event)
                    else:
                        self.any_event = True
            for call in calls_of(pipeline):
                if isinstance(call, AgentCall | ToolCall | SystemCall):
                    self.methods.add(call.target)
                if isinstance(call, AgentCall):
                    self.by_agent.setdefault(call.agent.name, {})[call.method] = None

    def targets(self, declared: Declared) -> Iterator[str]:
        """All that can be mocked."""
        yield from ("yield", "approval")
        yield from self.events
        yield from declared.of_kind("agent", "tool", "store")
        yield from self.methods


def check_tests(
    tests: tuple[TestDecl | ReplayTestDecl, ...],
    declared: Declared,
    providers: Mapping[str, Provider],
    pipelines: Mapping[str, CheckedPipeline],
    findings: Findings,
) -> None:
    """Reports what is wrong with the tests of a file."""
    asked = Asked(pipelines)
    context = Context(declared, providers, findings, None)
    for test in tests:
        if isinstance(test, ReplayTestDecl):
            if not test.recording.parts:
                findings.error("MISSING_ARGUMENT", "`replay` takes the path of a recording", test.recording)
            continue
        used = test.pipeline.text in declared.used
        name = refer(declared, findings, test.pipeline, ("pipeline",), "`run`")
        if not used:
            declared.used.discard(test.pipeline.text)
        if name is not None:
            bind_pipeline(test.args, declared.pipelines[name], context, test.pipeline, flows=False)
        for step in test.steps:
            if isinstance(step, MockStep | FailStep):
                _check_target(step.target, declared, asked, findings)
            if isinstance(step, MockStep):
                check_expr(step.value, None, declared, findings)
            elif isinstance(step, ExpectStep):
                for path in paths_in(step.condition):
                    _check_expected(path, declared, asked, findings)


def _check_target(target: Path, declared: Declared, asked: Asked, findings: Findings) -> None:
    root, parts = target.root, target.parts
    written = ".".join(str(part) for part in (root, *parts))
    kind = declared.kinds.get(root)
    if written in asked.events or written in asked.methods or root in declared.lost:
        return
    if (root == "yield" or root == "approval") and not parts:
        return
    if kind == "agent" or kind == "tool" or kind == "store":
        _check_method(target, written, kind, declared, asked, findings)
    elif root == "System" and len(parts) == 1 and parts[0] in _DOORS:
        return
    elif kind is not None or root == "System":
        what = "the language's own" if kind is None else with_article(kind)
        help_ = "mock the agents and tools that it calls" if kind == "pipeline" else None
        findings.error("WRONG_KIND", f"`{root}` is {what}, and gives no answer of its own", target, help_)
    elif not asked.any_event:
        near = findings.near(written, asked.targets(declared))
        findings.error("UNKNOWN_NAME", f"nothing asks for `{written}`", target, near)


def _check_method(target: Path, written: str, kind: str, declared: Declared, asked: Asked, findings: Findings) -> None:
    root, parts = target.root, target.parts
    if not parts or declared.lost:
        return
    if kind == "agent":
        # An agent's methods need no declaration, but one that no stage calls can only be a slip.
        methods = asked.by_agent.get(root, {})
        near = findings.near(str(parts[0]), methods, f"it is called as {listed(methods)}")
        findings.warning("UNKNOWN_METHOD", f"no stage calls `{written}`", target, near)
        return
    tool = declared.tools[root]
    if tool.methods is not None and (len(parts) > 1 or tool.method(str(parts[0])) is None):
        names = [m.name for m in tool.methods]
        near = findings.near(str(parts[0]), names, f"its methods are {listed(names)}")
        findings.error("UNKNOWN_METHOD", f"`{root}` has no method `{parts[0]}`", target, near)


def _check_expected(path: Path, declared: Declared, asked: Asked, findings: Findings) -> None:
    root, parts = path.root, path.parts
    if root not in EXPECTED:
        near = findings.near(root, EXPECTED, f"there are {listed(EXPECTED)}")
        findings.error("UNKNOWN_NAME", f"there is no name `{root}` in an `expect`", path, near)
    elif root == "error" and parts and parts[0] not in _ERROR_PARTS:
        findings.error("UNKNOWN_NAME", f"an error has no part `{parts[0]}`", path, f"it has {listed(_ERROR_PARTS)}")
    elif root == "context" and parts and parts[0] not in CONTEXT:
        help_ = f"it has {listed(CONTEXT)}"
        findings.error("UNKNOWN_NAME", f"`context` has no part `{parts[0]}`", path, help_)
    elif root == "calls" and parts:
        _check_counted(path, declared, asked, findings)


def _check_counted(path: Path, declared: Declared, asked: Asked, findings: Findings) -> None:
    target = str(path.parts[0])
    kind = declared.kinds.get(target)
    if target in declared.lost:
        return
    if kind == "pipeline" or target == "System":
        findings.error("WRONG_KIND", f"calls of `{target}` are not counted", path, "those of agents and tools are")
    elif kind is None or kind == "policy":
        near = findings.near(target, declared.of_kind("agent", "tool", "store"))
        findings.error("UNKNOWN_NAME", f"nothing is called `{target}`", path, near)
    elif len(path.parts) == 1:
        methods = _methods(target, kind, declared, asked)
        help_ = f"such as `calls.{target}.{methods[0]}`" if methods else None
        findings.error("UNKNOWN_METHOD", f"calls are counted by method, and `calls.{target}` names none", path, help_)
    else:
        _check_counted_method(path, target, kind, declared, asked, findings)


def _check_counted_method(
    path: Path, target: str, kind: str, declared: Declared, asked: Asked, findings: Findings
) -> None:
    method = str(path.parts[1])
    methods = _methods(target, kind, declared, asked)
    if methods is None or method in methods or (kind == "agent" and declared.lost):
        return
    if kind == "agent":
        near = findings.near(method, methods, f"it is called as {listed(methods)}" if methods else None)
        findings.warning("UNKNOWN_METHOD", f"no stage calls `{target}.{method}`", path, near)
        return
    near = findings.near(method, methods, f"its methods are {listed(methods)}")
    findings.error("UNKNOWN_METHOD", f"`{target}` has no method `{method}`", path, near)


def _methods(target: str, kind: str, declared: Declared, asked: Asked) -> list[str] | None:
    """The methods that an agent is called by, or that a tool has; None where nobody knows."""
    if kind == "agent":
        return list(asked.by_agent.get(target, {}))
    methods = declared.tools[target].methods
    return None if methods is None else [method.name for method in methods]
