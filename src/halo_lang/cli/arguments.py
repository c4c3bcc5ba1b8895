"""The arguments that a run is started with: `NAME=VALUE`, `--args JSON`, and what a terminal is asked for (cli.md).

Owns the reading of values by the parameter's type. Every error is wrong usage and names the parameter.
"""

from __future__ import annotations

import sys

from ..language.diagnostics import did_you_mean
from ..language.values import read_json
from .failing import CommandError
from .output import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..check.program import CheckedPipeline, CheckedProgram, Parameter
    from ..language.values import Value

USAGE = 2
MAX_BYTES = 256 * 1024 * 1024
"""The most that one argument may hold."""


def chosen_pipeline(program: CheckedProgram, name: str | None) -> CheckedPipeline:
    """The pipeline to run: the one named, the only one, or `Main`."""
    pipelines = program.pipelines
    if name is not None:
        if name not in pipelines:
            near = did_you_mean(name, pipelines)
            raise CommandError(
                f"{program.source.name}: there is no pipeline `{name}`; {near or _listed(pipelines)}", USAGE
            )
        return pipelines[name]
    if not pipelines:
        raise CommandError(f"{program.source.name}: the file has no pipeline to run")
    if len(pipelines) == 1:
        return next(iter(pipelines.values()))
    if "Main" in pipelines:
        return pipelines["Main"]
    raise CommandError(f"{program.source.name}: say which pipeline to run with --pipeline; {_listed(pipelines)}", USAGE)


def given_arguments(pipeline: CheckedPipeline, words: list[str], document: str | None) -> dict[str, Value]:
    """The arguments of a run, by parameter. `words` are `NAME=VALUE`, `document` is what `--args` holds.

    What is missing is asked for on a terminal; elsewhere all that is missing is one error.
    """
    given: dict[str, Value] = {}
    if document is not None:
        given |= _from_document(pipeline, document)
    stdin: str | None = None
    for word in words:
        name, equals, text = word.partition("=")
        if not word.isascii() and any("\udc80" <= c <= "\udcff" for c in word):
            raise CommandError(f"the argument `{name}` is not UTF-8", USAGE)
        if not equals:
            raise CommandError(f"`{word}` is no argument; arguments are written NAME=VALUE", USAGE)
        parameter = _parameter(pipeline, name)
        if name in given:
            raise CommandError(f"the argument `{name}` is given twice", USAGE)
        if text == "-":
            if stdin is not None:
                raise CommandError("only one argument can be read from standard input", USAGE)
            text = stdin = _read(sys.stdin.buffer, "standard input")
        elif text.startswith("@"):
            text = _read_file(text[1:], name)
        given[name] = _value(parameter, text)
    missing = [p for p in pipeline.params if p.required and p.name not in given]
    if missing and sys.stdin.isatty() and sys.stderr.isatty() and stdin is None:
        for parameter in missing:
            given[parameter.name] = _asked(parameter, pipeline.name)
    elif missing:
        wanted = " ".join(f"{p.name}=…" for p in missing)
        raise CommandError(f"pipeline {pipeline.name} needs {wanted}", USAGE)
    return given


def _asked(parameter: Parameter, pipeline: str) -> Value:
    """An argument that a person types; asks again while it does not fit. Raises `CommandError` when input ends."""
    while True:
        print(f"{parameter.name} ({parameter.type}): ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)  # nobody has ended the prompt's own line
            raise CommandError(f"input has ended, and pipeline {pipeline} needs {parameter.name}=…", USAGE)
        try:
            return _value(parameter, line.removesuffix("\n"))
        except CommandError as trouble:
            print(visible(str(trouble)), file=sys.stderr)


def _from_document(pipeline: CheckedPipeline, document: str) -> dict[str, Value]:
    text = _read_file(document[1:], "--args") if document.startswith("@") else document
    try:
        values = read_json(text.removeprefix("\ufeff"))
    except ValueError as trouble:
        raise CommandError(f"--args is no JSON: {trouble}", USAGE) from None
    if not isinstance(values, dict):
        raise CommandError('--args takes an object, such as {"topic": "cats"}', USAGE)
    return {name: _fitted(_parameter(pipeline, name), value) for name, value in values.items()}


def _parameter(pipeline: CheckedPipeline, name: str) -> Parameter:
    for parameter in pipeline.params:
        if parameter.name == name:
            return parameter
    names = [p.name for p in pipeline.params]
    near = did_you_mean(name, names)
    raise CommandError(
        f"pipeline {pipeline.name} has no parameter `{name}`; {near or 'it has: ' + (', '.join(names) or 'none')}",
        USAGE,
    )


def _value(parameter: Parameter, text: str) -> Value:
    """A value as text: a String takes it as it is; Any takes JSON where it is JSON; all others read JSON."""
    if parameter.type == "String":
        return text
    try:
        value = read_json(text)
    except ValueError:
        if parameter.type == "Any":
            return text
        raise CommandError(
            f"the argument `{parameter.name}` takes a {parameter.type}, as JSON, and got `{text[:80]}`", USAGE
        ) from None
    return _fitted(parameter, value)


def _fitted(parameter: Parameter, value: Value) -> Value:
    from ..runtime.arguments import fitted  # late: a plan names its pipeline too, and needs no runtime

    try:
        return fitted(parameter, value)
    except ValueError as trouble:
        raise CommandError(str(trouble), USAGE) from None


def _read_file(name: str, whose: str) -> str:
    try:
        with open(name, "rb") as file:
            return _read(file, name)
    except OSError as trouble:
        way_out = "" if whose == "--args" else "; a text that begins with @ can be given by --args"
        raise CommandError(f"`{whose}` is to be read from {name}: {trouble.strerror}{way_out}", USAGE) from None


def _read(file: object, name: str) -> str:
    data: bytes = file.read(MAX_BYTES + 1)  # type: ignore[attr-defined]
    if len(data) > MAX_BYTES:
        raise CommandError(f"{name} is larger than {MAX_BYTES >> 20} MiB", USAGE)
    try:
        return data.decode()
    except UnicodeDecodeError as trouble:
        raise CommandError(f"{name} is not UTF-8 (at byte {trouble.start})", USAGE) from None


def _listed(pipelines: Iterable[str]) -> str:
    return "there are: " + (", ".join(pipelines) or "none")
