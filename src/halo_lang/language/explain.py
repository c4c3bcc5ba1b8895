"""The page that explains an error code, as `halo explain CODE` prints it (language.md §8).

Owns where the pages are: beside the package where it is installed, in `docs/errors` in a checkout. Reads one file and
nothing else. The codes stand in `codes.py`.
"""

from __future__ import annotations

from .codes import CODES

_HERE = __file__.removesuffix("language/explain.py").removesuffix("language\\explain.py")


def explain_page(code: str) -> str | None:
    """The Markdown page of a code, in whatever case it is written; None for what is no code."""
    name = code.strip().upper()
    if name not in CODES:
        return None
    for folder in (f"{_HERE}docs/errors/", f"{_HERE}../../docs/errors/"):
        try:
            with open(f"{folder}{name}.md", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            continue
    return None
