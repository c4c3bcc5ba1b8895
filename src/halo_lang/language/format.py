"""The one layout of a file: `halo fmt`.

Owns where lines break, how far they are indented, and where blanks stand. Works on the tokens, in their order, and
changes nothing but the blanks between them, commas before closing brackets, and the indentation of `\"\"\"` strings
that does not count; so what a program means cannot change, and no comment is lost. The tree says which tokens begin a
line. Read `printer.py` for a tree that has no text yet.

A line is a declaration's head, a clause, a pipeline's first value, a stage, or a test's step. A branch stands over
several lines; a fan-out, and any other brackets with commas, only if they hold a comment or do not fit. Declarations
of one kind that follow each other, a line each, have their `:` or `[` below each other where one was moved there.
"""

from __future__ import annotations

from itertools import pairwise

from .ast import (
    AgentDecl,
    Comment,
    Each,
    ExpectStep,
    Pipe,
    PipelineDecl,
    PolicyDecl,
    Program,
    ReplayTestDecl,
    TestDecl,
    ToolDecl,
)
from .lexer import NAME, NUMBER, STRING, tokenize
from .parser import parse
from .printer import declaration_text
from .source import Source
from .templates import common_indent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    _Head: TypeAlias = tuple[int, str, int, int, bool]
    """Of a declaration of one line: its row, its keyword, the column where its name ends, its width, and whether the
    mark after its name was moved to the right."""

MAX_COLUMNS = 120
"""Of a line, where brackets with commas in it can be broken."""

MAX_FANOUT = 100
"""Of a line with a fan-out."""


def format_source(source: Source, program: Program) -> str:
    """The text of a source in the one layout (cli.md). `program` is the source parsed, without syntax errors.

    Keeps every comment, and the kind of line ends that the first line has. Formatting a second time changes nothing.
    """
    text = _Layout(source.text, program).lay_out()
    first_break = source.text.find("\n")
    if first_break > 0 and source.text[first_break - 1] == "\r":
        text = text.replace("\n", "\r\n")
    return text


def print_program(program: Program) -> str:
    """The text of a tree alone, in the one layout: it parses to the same tree, but for places. Comments and which
    parentheses were not needed are not in a tree."""
    written = ""
    before = ""
    for node in program.declarations:
        text = declaration_text(node)
        alike = "\n" not in before and "\n" not in text and before.split(" ")[0] == text.split(" ")[0]
        written += f"{text}\n" if alike or not before else f"\n{text}\n"
        before = text
    source = Source("", written)
    return format_source(source, parse(source)[0])


class _Piece:
    """A token, or the several tokens of a model's name.

    `before`: comments between the piece before and this. `indent`: how far the line is indented that this begins,
    None if it begins none. `heads`: it begins a declaration, or is the end. `apart`: a blank stands before it in any
    case. `braces`: it is a `{` or `}` of a branch or a fan-out. `match`: the index of the closing bracket.
    """

    __slots__ = ("apart", "before", "braces", "end", "heads", "indent", "kind", "match", "start", "text")

    def __init__(self, text: str, kind: str, start: int, end: int) -> None:
        self.text = text
        self.kind = kind
        self.start = start
        self.end = end
        self.before: list[Comment] = []
        self.indent: int | None = None
        self.heads = False
        self.apart = False
        self.braces = False
        self.match = 0


class _Layout:
    """The pieces of a file, and the lines laid out so far. `line` is the one being written."""

    def __init__(self, text: str, program: Program) -> None:
        self.text = text
        self.pieces = _pieces(text, program)
        self.lines: list[str] = []
        self.line = ""
        self.heads: list[_Head] = []
        _mark(self.pieces, program)
        _match(self.pieces)
        self.widths, self.gaps, self.comments = _measure(self.pieces)

    # Lines

    def lay_out(self) -> str:
        """The whole text."""
        pieces = self.pieces
        heads = [k for k, piece in enumerate(pieces) if piece.heads]
        rows = [k for k, piece in enumerate(pieces) if piece.indent is not None]
        one_line_before = False
        last_indent = at = 0
        for _, end in pairwise([*heads, len(pieces)]):
            own = at
            while at < len(rows) and rows[at] < end:
                at += 1
            one_line_before = self._declaration(rows[own:at], end, one_line_before, last_indent)
            last_indent = pieces[rows[at - 1]].indent or 0
        self._align()
        return "\n".join(self.lines) + "\n" if self.lines else ""

    def _declaration(self, rows: list[int], end: int, one_line_before: bool, last_indent: int) -> bool:
        """Lays out the declaration whose lines begin at `rows`; gives whether it takes one line."""
        pieces = self.pieces
        first = pieces[rows[0]]
        own = self._trailing(first.before)
        while own and last_indent and self._column(own[0]) > 1:
            self._blank_line(own[0].start)
            self.lines.append(" " * last_indent + _comment(own.pop(0)))
        at = len(self.lines)
        for comment in own:
            if len(self.lines) > at:
                self._blank_line(comment.start)
            self.lines.append(_comment(comment))
        if own and first.text:
            self._blank_line(first.start)
        code_at = len(self.lines)
        for row, until in zip(rows, [*rows[1:], end], strict=True):
            piece = pieces[row]
            indent = piece.indent or 0
            if row != rows[0]:
                for comment in self._trailing(piece.before):
                    self._blank_line(comment.start, unless=row == rows[1])
                    self.lines.append(" " * indent + _comment(comment))
                self._blank_line(piece.start, unless=row == rows[1])
            self._line(row, until, indent)
        if not first.text:
            self.lines.pop()
        one_line = len(self.lines) == code_at + 1
        if at > 0 and at < len(self.lines):
            begins = own[0].start if own else first.start
            if self._blank_before(begins) or (first.text and not (one_line and one_line_before)):
                self.lines.insert(at, "")
        if one_line and first.text:
            self._note_head(rows[0])
        return one_line

    def _note_head(self, first: int) -> None:
        """Keeps where a declaration of one line was put, with what stands after its name (`:` or `[`)."""
        keyword, name, mark = self.pieces[first : first + 3]
        if mark.apart:
            blanks = self.text[name.end : mark.start]
            moved = len(blanks) > 1 and "\n" not in blanks
            column = len(keyword.text) + 1 + len(name.text)
            self.heads.append((len(self.lines) - 1, keyword.text, column, len(self.lines[-1]), moved))

    def _align(self) -> None:
        """Moves the marks after the names of declarations that follow each other, of one kind and a line each, below
        each other, if one of them was moved and no line gets too long by it."""
        at = 0
        while at < len(self.heads):
            end = at + 1
            while end < len(self.heads) and self.heads[end][:2] == (self.heads[end - 1][0] + 1, self.heads[at][1]):
                end += 1
            group = self.heads[at:end]
            at = end
            to = max(column for _, _, column, _, _ in group)
            fits = all(width + to - column <= MAX_COLUMNS for _, _, column, width, _ in group)
            if fits and len(group) > 1 and any(moved for *_, moved in group):
                for row, _, column, _, _ in group:
                    self.lines[row] = self.lines[row][:column] + " " * (to - column) + self.lines[row][column:]

    def _trailing(self, comments: list[Comment]) -> list[Comment]:
        """Puts the comments that stand after something on its line there; gives the others."""
        rest = list(comments)
        if rest and rest[0].trailing and self.lines:
            self.lines[-1] += "  " + _comment(rest.pop(0))
        return rest

    def _column(self, comment: Comment) -> int:
        return comment.start - (self.text.rfind("\n", 0, comment.start) + 1) + 1

    def _blank_before(self, start: int) -> bool:
        """Whether a blank line stands before a place."""
        above = self.text[:start] if start < 4096 else self.text[start - 4096 : start]
        return above[len(above.rstrip(" \t\r\n")) :].count("\n") > 1

    def _blank_line(self, start: int, *, unless: bool = False) -> None:
        if not unless and self.lines and self._blank_before(start):
            self.lines.append("")

    def _line(self, first: int, end: int, indent: int) -> None:
        """Lays out the pieces of one line, over several if need be."""
        self.line = " " * indent
        base = indent + 3 if indent == _STAGE_INDENT else indent
        self._text(self.pieces[first])
        self._write(first + 1, end, base, first)
        self.lines.extend(self.line.split("\n"))

    # Within a line

    def _write(self, at: int, end: int, base: int, before: int) -> None:
        """Writes pieces after the piece `before`. What is broken is indented from `base`."""
        pieces = self.pieces
        while at < end:
            piece = pieces[at]
            if piece.before or (piece.text == "&" and self._breaks_rules(before, end)):
                self._break(at, base + 2)
            elif self.gaps[at]:
                self.line += " "
            self._text(piece)
            if piece.match > at and self._is_list(at) and self._breaks(at, end):
                self._items(at, base)
                at = piece.match
            at += 1

    def _items(self, opened: int, base: int) -> None:
        """Writes what stands in brackets, an item a line, and the closing bracket."""
        pieces = self.pieces
        closed = pieces[opened].match
        at = opened + 1
        while at < closed:
            end = at
            while end < closed and pieces[end].text != ",":
                end = pieces[end].match + 1 if pieces[end].match > end else end + 1
            self._break(at, base + 2)
            self._text(pieces[at])
            nested = at
            if pieces[at].match > at and self._is_list(at) and self._breaks(at, end):
                self._items(at, base + 2)
                nested = pieces[at].match
            self._write(nested + 1, end, base + 2, at)
            self.line += ","
            at = end + 1
        self._break(closed, base)
        self.line += pieces[closed].text

    def _break(self, at: int, indent: int) -> None:
        """Ends the line being written, and begins one for a piece, with the comments before it."""
        rest = list(self.pieces[at].before)
        if rest and rest[0].trailing and self.line.strip():
            self.line += "  " + _comment(rest.pop(0))
        own = " " * (indent + 2 if self.pieces[at].text in _CLOSING else indent)
        for comment in rest:
            self.line += f"\n{own}{_comment(comment)}"
        self.line += "\n" + " " * indent

    def _text(self, piece: _Piece) -> None:
        if piece.kind == STRING and "\n" in piece.text:
            self.line += self._shifted(piece)
        else:
            self.line += piece.text

    def _shifted(self, piece: _Piece) -> str:
        """A string of several lines, moved with the line that it begins on."""
        begins = self.text.rfind("\n", 0, piece.start) + 1
        line = self.text[begins : piece.start]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        written = self.line[self.line.rfind("\n") + 1 :]
        by = 0 if "\t" in indent else len(written) - len(written.lstrip(" ")) - len(indent)
        head, *lines = piece.text.replace("\r\n", "\n").replace("\r", "\\r").split("\n")
        last = lines[-1].removesuffix('"""')
        margin = common_indent([*lines[:-1], last])
        if "\t" in margin or not margin:
            by = 0
        made = [" " * max(0, len(margin) + by) + row[len(margin) :] if row.strip(" \t") else "" for row in lines[:-1]]
        if last.strip(" \t"):
            made.append(" " * max(0, len(margin) + by) + lines[-1][len(margin) :])
        else:
            made.append((" " * max(0, len(last) + by) if by else last) + '"""')
        return "\n".join([head.rstrip(" \t") if head.strip(" \t") == '"""' else head, *made])

    def _is_list(self, at: int) -> bool:
        """Whether a bracket holds items with commas: not one that only groups, and not an index."""
        piece = self.pieces[at]
        if piece.text == "{":
            return True
        before = self.pieces[at - 1]
        if piece.text == "(":
            return before.kind == NAME and not piece.apart and self.pieces[at - 2].text not in ("@", "~>")
        return not (before.kind in (NAME, NUMBER) or before.text == "]") or piece.apart

    def _breaks(self, opened: int, end: int) -> bool:
        """Whether what stands in brackets is written an item a line. `end`: where the line or item ends."""
        piece = self.pieces[opened]
        closed = piece.match
        if self.comments[closed + 1] > self.comments[opened + 1]:
            return True
        if closed == opened + 1:
            return False
        if piece.braces and self.pieces[opened - 1].text == "|?":
            return True
        limit = MAX_FANOUT if piece.braces else MAX_COLUMNS
        column = len(self.line) - (self.line.rfind("\n") + 1)
        inside = self._flat(opened + 1, closed + 1)
        if column + inside > limit:
            return True
        after = self._flat(closed + 1, end)
        return column + inside + after > limit and not self._breaks_later(closed + 1, end)

    def _breaks_later(self, at: int, end: int) -> bool:
        """Whether brackets that can be broken follow in the line."""
        while at < end:
            match = self.pieces[at].match
            if match > at + 1 and self._is_list(at):
                return True
            at = max(at, match) + 1
        return False

    def _breaks_rules(self, before: int, end: int) -> bool:
        """Whether each further rule of a policy is written on a line of its own."""
        return self._flat(before, end) > MAX_COLUMNS

    def _flat(self, first: int, end: int) -> int:
        """The columns that pieces take on one line; strings of several lines count up to the end of their first."""
        return self.widths[end] - self.widths[first] if end > first else 0


def _pieces(text: str, program: Program) -> list[_Piece]:
    """The pieces of a text, each with the comments before it; the last is empty and stands at the end."""
    tokens = tokenize(text)
    models = {node.model.start: node.model for node in program.declarations if isinstance(node, AgentDecl)}
    made: list[_Piece] = []
    i = 0
    comments = list(reversed(program.comments))
    waiting: list[Comment] = []
    while tokens.texts[i]:
        start, end = tokens.starts[i], tokens.ends[i]
        if start in models:
            end = models[start].end
        piece = _Piece(text[start:end], tokens.kinds[i], start, end)
        while comments and comments[-1].start < start:
            waiting.append(comments.pop())
        while tokens.ends[i] < end:
            i += 1
        i += 1
        if piece.text == "," and tokens.texts[i] in _CLOSING:
            continue  # a last comma: it comes back where an item stands on each line
        if piece.text != ",":
            piece.before, waiting = waiting, []
        made.append(piece)
    last = _Piece("", "", len(text), len(text))
    last.before = waiting + comments[::-1]
    last.indent = 0
    last.heads = True
    made.append(last)
    return made


def _mark(pieces: list[_Piece], program: Program) -> None:
    """Says of pieces where lines begin and where a blank stands."""
    at = {piece.start: k for k, piece in enumerate(pieces)}
    for node in program.declarations:
        first = at[node.start]
        pieces[first].indent = 0
        pieces[first].heads = True
        if isinstance(node, PolicyDecl | ToolDecl):
            pieces[first + 2].apart = True
        elif isinstance(node, AgentDecl):
            pieces[first + 2].apart = True
            for clause in node.clauses:
                pieces[at[clause.start]].indent = 2
        elif isinstance(node, ReplayTestDecl):
            pieces[first + 3].indent = 2
        elif isinstance(node, TestDecl):
            pieces[first + 3].indent = 2
            for step in node.steps:
                pieces[at[step.start]].indent = 2
                if isinstance(step, ExpectStep):
                    pieces[at[step.start] + 1].apart = True
        else:
            _mark_pipeline(pieces, at, node)


def _mark_pipeline(pieces: list[_Piece], at: dict[int, int], node: PipelineDecl) -> None:
    depth, k = 0, at[node.start] + 2
    while depth or pieces[k].text != ":":
        depth += (pieces[k].text in _OPENING) - (pieces[k].text in _CLOSING)
        k += 1
    pieces[k + 1].indent = 2
    for stage in node.stages:
        first = at[stage.start]
        pieces[first].indent = _STAGE_INDENT
        if isinstance(stage, Pipe) and stage.shadow:
            pieces[at[stage.call.start] - 1].indent = _STAGE_INDENT
        elif isinstance(stage, Each):
            pieces[at[stage.item.start] + 2].apart = True


def _match(pieces: list[_Piece]) -> None:
    """Finds the closing bracket of each opening one."""
    opened: list[int] = []
    for k, piece in enumerate(pieces):
        if piece.text in _OPENING and piece.text:
            piece.braces = piece.text == "{" and pieces[k - 1].text in ("|?", "|*")
            opened.append(k)
        elif piece.text in _CLOSING and piece.text:
            pieces[opened[-1]].match = k
            piece.braces = pieces[opened.pop()].braces


def _measure(pieces: list[_Piece]) -> tuple[list[int], list[bool], list[int]]:
    """Sums, over the pieces before each: their columns on one line, whether a blank stands before each, and how many
    comments there are."""
    widths, gaps, comments = [0], [False], [0]
    for k, piece in enumerate(pieces):
        if k:
            gaps.append(_is_apart(pieces[k - 1], piece, pieces[k - 2] if k > 1 else None))
        widths.append(widths[-1] + gaps[k] + len(piece.text.split("\n", 1)[0]))
        comments.append(comments[-1] + len(piece.before))
    return widths, gaps, comments


def _is_apart(before: _Piece, piece: _Piece, earlier: _Piece | None) -> bool:
    """Whether a blank stands between two pieces on one line."""
    if piece.apart:
        return True
    text = piece.text
    if text in (",", ")", "]", ".", ":") or before.text in ("(", "[", ".", "@", "!"):
        return False
    if text == "}" or before.text == "{":
        return piece.braces or before.braces
    if text == "(":
        return before.kind != NAME
    if text == "[":
        return not (before.kind == NAME or before.text == "]" or (before.kind == NUMBER and earlier is not None))
    return True


def _comment(node: Comment) -> str:
    """A comment as it is written: with `#`, and a blank before its first word."""
    content = node.text.rstrip()
    return f"# {content}" if content[:1].isalnum() else f"#{content}"


_STAGE_INDENT = 4
_OPENING = ("(", "[", "{")
_CLOSING = (")", "]", "}")
