"""Test results as JUnit XML, as build servers read them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .test import FileOutcome


def junit(results: list[FileOutcome], seconds: float) -> str:
    """One document: a suite a file, a case a test. Characters that XML cannot hold become `\ufffd`."""
    suites = []
    for result in results:
        cases = [_case(result.file, o.name, o.seconds, o.failures) for o in result.outcomes]
        if result.problem is not None:
            cases.append(_case(result.file, "the file has no errors", 0.0, (result.problem,)))
        if cases:
            failed = sum(bool(o.failures) for o in result.outcomes) + (result.problem is not None)
            head = f'  <testsuite name="{_attribute(result.file)}" tests="{len(cases)}" failures="{failed}">'
            suites += [head, *cases, "  </testsuite>"]
    body = "\n".join(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites time="{seconds:.3f}">\n{body}\n</testsuites>\n'


def _case(file: str, name: str, seconds: float, failures: tuple[str, ...]) -> str:
    head = f'    <testcase classname="{_attribute(file)}" name="{_attribute(name)}" time="{seconds:.3f}"'
    if not failures:
        return f"{head}/>"
    text = "\n".join(failures)
    first = _attribute(text.split("\n")[0])
    return f'{head}>\n      <failure message="{first}">{_xml(text)}</failure>\n    </testcase>'


def _attribute(text: str) -> str:
    """Text in an attribute, whose line breaks and tabs a reader would else take for blanks."""
    return _xml(text).replace("\n", "&#10;").replace("\t", "&#9;")


def _xml(text: str) -> str:
    kept = "".join(c if _is_allowed(c) else "\ufffd" for c in text)
    return kept.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _is_allowed(character: str) -> bool:
    """Whether XML 1.0 can hold the character."""
    code = ord(character)
    return character in "\t\n" or (code >= 0x20 and not 0xD800 <= code < 0xE000 and code not in (0xFFFE, 0xFFFF))
