"""A stranger's words, made fit to be shown: one line, nothing in it that a terminal or a reader would obey."""

from __future__ import annotations


def one_line(text: str, most: int) -> str:
    """The text as one line of at most `most` characters and an ellipsis; what cannot be seen (control characters,
    changes of direction, marks without width) as the escape that the language writes it with."""
    words = " ".join(text[: 4 * most].split())
    line = visible(words[:most])
    return f"{line[:most]}…" if len(words) > most or len(line) > most or len(text) > 4 * most else line


def visible(text: str) -> str:
    """The text with everything that is not printable, but line breaks, as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{{{ord(c):x}}}" for c in text)


def last_lines(text: str, most: int) -> str:
    """The end of a text of at most `most` characters, from the beginning of a line where one is in it."""
    text = text.strip()
    if len(text) > most:
        kept = text[-most:]
        text = kept.partition("\n")[2] or kept
    return visible(text.replace("\r\n", "\n").replace("\t", "    "))
