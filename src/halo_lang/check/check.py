"""From source text to a checked program, with everything that is wrong with it (language.md §8).

Owns the order: parse, declare, read policies, tools, agents and pipelines, then what takes all of them to see, then the
tests of the file. Never raises and reads nothing but what it is given. Read `names.py`, then `stages.py`.
"""

from __future__ import annotations

import gc

from ..catalog.builtin import PROVIDERS
from ..language.ast import AgentDecl, PipelineDecl, PolicyDecl, ReplayTestDecl, TestDecl, ToolDecl
from ..language.parser import parse
from .agents import read_agent
from .endless import check_endless
from .findings import Findings
from .governing import check_policies
from .names import check_unused, declare
from .program import CheckedProgram
from .rules import read_policy
from .settings import read_tool
from .stages import read_pipeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..catalog.describe import Provider
    from ..language.ast import Program
    from ..language.diagnostics import Diagnostic
    from ..language.source import Source
    from .names import Declared
    from .program import CheckedPipeline


def check(
    source: Source,
    *,
    providers: Mapping[str, Provider] = PROVIDERS,
    found: tuple[Diagnostic, ...] = (),
    priced: Callable[[str], bool] | None = None,
) -> CheckedProgram:
    """Parses and checks a source. Never raises; what is wrong stands in `diagnostics`, sorted by place.

    `found` are the diagnostics of decoding, which are taken over. `priced` says whether a model has a price; without it
    nothing is said about models under a spend limit, and what it raises is not caught. Takes time linear in the size of
    the source.
    """
    # What is made here is kept and holds no cycles: the collector would only walk it again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _check(source, providers, found, priced)
    finally:
        if collecting:
            gc.enable()


def _check(
    source: Source,
    providers: Mapping[str, Provider],
    found: tuple[Diagnostic, ...],
    priced: Callable[[str], bool] | None,
) -> CheckedProgram:
    program, syntax = parse(source)
    findings = Findings()
    declared = declare(program, findings)
    _read_parts(program, declared, providers, findings)
    pipelines = _read_pipelines(program, source, declared, providers, findings)
    check_policies(program, declared, pipelines, providers, findings, priced)
    if not declared.lost:
        check_endless(pipelines, findings)  # what could not be read may end anything
    check_unused(program, declared, findings)
    tests = tuple(d for d in program.declarations if isinstance(d, TestDecl | ReplayTestDecl))
    if tests:
        from .file_tests import check_tests

        check_tests(tests, declared, providers, pipelines, findings)
    return CheckedProgram(
        source,
        program,
        _merged((*found, *syntax), findings),
        declared.policies,
        declared.tools,
        declared.agents,
        pipelines,
        tests,
    )


def check_bytes(
    name: str,
    data: bytes,
    *,
    providers: Mapping[str, Provider] = PROVIDERS,
    priced: Callable[[str], bool] | None = None,
) -> CheckedProgram:
    """Decodes and checks the bytes of a file called `name`. Never raises."""
    from ..language.source import decode

    source, found = decode(name, data)
    return check(source, providers=providers, found=tuple(found), priced=priced)


def _read_parts(program: Program, declared: Declared, providers: Mapping[str, Provider], findings: Findings) -> None:
    """Policies, then tools and stores, then agents, which name the others."""
    for declaration in program.declarations:
        if isinstance(declaration, PolicyDecl):
            declared.policies.setdefault(declaration.name.text, read_policy(declaration, findings))
        elif isinstance(declaration, ToolDecl):
            declared.tools.setdefault(declaration.name.text, read_tool(declaration, providers, findings))
    for declaration in program.declarations:
        if isinstance(declaration, AgentDecl):
            declared.agents.setdefault(declaration.name.text, read_agent(declaration, declared, findings))


def _read_pipelines(
    program: Program, source: Source, declared: Declared, providers: Mapping[str, Provider], findings: Findings
) -> dict[str, CheckedPipeline]:
    made: dict[str, CheckedPipeline] = {}
    for declaration in program.declarations:
        if isinstance(declaration, PipelineDecl):
            pipeline = read_pipeline(declaration, source, declared, providers, findings)
            made.setdefault(pipeline.name, pipeline)
    return made


def _merged(syntax: tuple[Diagnostic, ...], findings: Findings) -> tuple[Diagnostic, ...]:
    """Everything that was found, by place. Of two with one code and place the parser's counts."""
    known = {(d.code, d.span.start) for d in syntax}
    own = [d for d in findings.items if (d.code, d.span.start) not in known]
    return tuple(sorted([*syntax, *own], key=_place))


def _place(diagnostic: Diagnostic) -> tuple[int, int, str]:
    return diagnostic.span.start, diagnostic.span.end, diagnostic.code
