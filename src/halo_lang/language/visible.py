"""Text that somebody else wrote, made fit to be shown: nothing in it that a terminal would obey.

Owns the escaping; every message and every page that goes to a terminal passes it. What is data and goes into a pipe or
a file does not.
"""

from __future__ import annotations


def visible(text: str) -> str:
    """Text with control characters, and those that reorder text, written as escapes; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def visible_in_line(text: str) -> str:
    """The same with line breaks and tabs as escapes too: for what stands in a line beside other things, as a name."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")
