"""Words for syntax errors: what stands in a place, and how common slips are mended.

Owns the help lines that need no more than the tokens around the error. Is loaded only where there is an error.
"""

from __future__ import annotations

from .lexer import END, JUNK, MARK, NAME, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .cursor import Cursor


def describe(c: Cursor, i: int) -> str:
    """What a token is, in the words of a message."""
    text = c.texts[i]
    if c.kinds[i] == END:
        return "the end of the file"
    if c.kinds[i] == STRING:
        return "a string"
    if c.kinds[i] == JUNK and not text.isprintable():
        return f"the character U+{ord(text[0]):04X}"
    shown = text if len(text) <= 40 else text[:39] + "…"
    return f"`{shown}`"


def help_for(c: Cursor, i: int, what: str) -> str | None:
    """How to mend what stands at a token where `what` was expected; None where that is not known."""
    text, kind = c.texts[i], c.kinds[i]
    before = c.texts[i - 1] if i > 0 else ""
    if kind == JUNK:
        return _junk(text)
    if "declaration" in what:
        return _part(text, before, what)
    if "`=>`" in what and text in ("->", ":", "="):
        return "write `=>`"
    if text == "=" and "`:`" in what:
        return "write `:`"
    if text == "." and c.texts[i + 1][:1].isdigit():
        return f"write `0.{c.texts[i + 1][:20]}`"
    if text in _MEANT_MARKS:
        return _MEANT_MARKS[text]
    if text in _STAGE_BRACKETS.get(before, ()):
        return _STAGE_BRACKETS[before][text]
    if kind == NAME and text in _MEANT_WORDS:
        return _MEANT_WORDS[text]
    if text == "," and before in (",", "(", "[", "{"):
        return "remove this comma"
    if text == "!" and before in ("==", "!=", "<", "<=", ">", ">="):
        return "put what is negated in parentheses: `a == (!b)`"
    if not what.startswith("`,`"):
        return None
    if text == "(" and i > 0 and c.kinds[i - 1] == NAME:
        return "an expression calls nothing: make the call a stage of its own, and use its result by name"
    if text == ":":
        return "only a plain name can stand before the `:` of an argument"
    if (kind not in (MARK, END) or text in ("[", "{")) and not c.first_on_line(i):
        return "separate them with a comma"
    return None


def meant_declaration(word: str) -> str | None:
    """The word that begins a declaration and was most likely meant, if one was."""
    from .cursor import DECLARATIONS
    from .diagnostics import nearest

    return _MEANT_DECLARATIONS.get(word.lower()) or nearest(word, DECLARATIONS)


def _part(text: str, before: str, what: str) -> str | None:
    """Help for what stands where a stage, clause, step or declaration might."""
    from .cursor import DECLARATIONS, STAGES
    from .diagnostics import did_you_mean

    words = [word for word in what.split("`") if word.isalpha()]
    if "equips" in words and text in _MEANT_CLAUSES:
        return f"did you mean `{_MEANT_CLAUSES[text]}`?"
    if "stage" in what:
        if before == "=>":
            return "a gate only tests; a call for when it holds is an arm: `|? { (cond) => Call() }`"
        if text in _MEANT_STAGES:
            return f"write `{_MEANT_STAGES[text]}`"
    elif text in STAGES:
        return "a stage stands in a pipeline, after its first value"
    if text == "," or text in _MEANT_MARKS:
        return "remove it"
    near = did_you_mean(text, [*words, *DECLARATIONS])
    if near is None and what == "a declaration":
        return "a file holds policies, tools, stores, agents, pipelines and tests"
    return near


def _junk(text: str) -> str | None:
    first = text[0]
    if first in _MEANT_CHARACTERS:
        return _MEANT_CHARACTERS[first]
    if first.isalpha():
        return 'names are made of A to Z, a to z, digits and `_`; text stands in `"quotes"`'
    return None


_QUOTES = 'text stands in straight double quotes: `"text"`'
_ARITHMETIC = 'there is no arithmetic; texts are joined with templates: `"{{first}} {{second}}"`'
_MEANT_CHARACTERS = {
    "'": _QUOTES,
    "`": _QUOTES,
    "\u201c": _QUOTES,
    "\u201d": _QUOTES,
    "\u201e": _QUOTES,
    "\u2018": _QUOTES,
    "\u2019": _QUOTES,
    "\u00ab": _QUOTES,
    "\u00a0": "this is a no-break space: write a plain one",
    "\ufeff": "this is a byte-order mark: remove it",
    "\u200b": "this is a space without width: remove it",
    "\u2192": "write `->` or `=>`",
    "\u2264": "write `<=`",
    "\u2265": "write `>=`",
    "\u2260": "write `!=`",
    "\u2026": "write out what is meant",
    ";": "nothing ends with a semicolon: remove it",
    "+": _ARITHMETIC,
    "*": _ARITHMETIC,
    "%": _ARITHMETIC,
    "$": "a name is written without `$`; in a string it is `{{name}}`",
    "?": "a part that is missing is `null`: write `a.b` for `a?.b`",
    "\\": "a backslash only stands in strings",
}

_MEANT_MARKS = {
    "=": "`==` compares; a value is named with `:` in arguments, and with `as` after a stage",
    "&": "`&&` joins conditions; a single `&` joins the rules of a policy",
    "|": "`||` joins conditions, and `|>` begins a stage",
    "-": _ARITHMETIC,
    "/": _ARITHMETIC,
}

_MEANT_WORDS = {
    "and": "write `&&`",
    "or": "write `||`",
    "not": "write `!`",
    "is": "write `==`",
    "if": "a condition is a gate, `|? (cond)`, or an arm, `(cond) => Call()`",
    "elif": "each arm has a condition of its own: `(cond) => Call()`",
    "default": "the last arm is `else => Call()`",
    "otherwise": "the last arm is `else => Call()`",
}

_STAGE_BRACKETS: dict[str, dict[str, str]] = {
    "|>": {
        "(": "a gate is written `|? (cond)`",
        "{": "calls side by side are written `|* { A, B }`, a branch `|? { (cond) => Call() }`",
    },
    "|?": {"[": "a branch stands in braces: `|? { (cond) => Call() }`"},
    "|*": {
        "(": "calls side by side stand in braces: `|* { A, B }`",
        "[": "calls side by side stand in braces: `|* { A, B }`",
    },
    "=>": {
        "{": "one call stands here: put several stages in a pipeline of their own, and call that",
        "(": "one call stands here, without parentheses around it: `=> Call()`",
    },
}

_MEANT_STAGES = {
    "|": "|> Call()",
    "->": "|> Call()",
    "=>": "|> Call()",
    ">": "|> Call()",
    "||": "|> Call()",
    "yield": "|! yield(…)",
    "listen": "~> listen(…)",
    "loop": "|<> loop(…)",
    "each": "|* each(item in list) => Call()",
    "if": "|? (cond)",
    "parallel": "|* { A, B }",
    "as": "|> Call() as name",
}

_MEANT_CLAUSES = {
    "prompt": "system",
    "instructions": "system",
    "tools": "equips",
    "uses": "equips",
    "policies": "requires",
    "policy": "requires",
}

_MEANT_DECLARATIONS = {
    "def": "pipeline",
    "fn": "pipeline",
    "func": "pipeline",
    "function": "pipeline",
    "workflow": "pipeline",
    "flow": "pipeline",
    "model": "agent",
    "llm": "agent",
    "assistant": "agent",
    "rule": "policy",
    "rules": "policy",
    "guard": "policy",
    "tools": "tool",
    "provider": "tool",
    "database": "store",
    "db": "store",
    "memory": "store",
}
