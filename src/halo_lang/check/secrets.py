"""Whether a text in a file looks like a secret that belongs into the environment (language.md §8).

Owns the guess. It is a guess: it is only ever a warning.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

_MARKS = (
    *("sk-", "sk_live_", "rk_live_", "xox", "xapp-", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-"),
    *("AKIA", "ASIA", "AIza", "hf_", "npm_", "pypi-", "SG.", "eyJ", "-----BEGIN", "Bearer ", "Basic ", "://"),
)
_LONG = 32
_found: re.Pattern[str] | None = None


def looks_secret(text: str) -> bool:
    """Whether the text holds a key, a token, an address with a password, or a long run of random letters."""
    if len(text) < 12:
        return False
    if any(mark in text for mark in _MARKS) and _pattern().search(text) is not None:
        return True
    return len(text) >= _LONG and any(len(w) >= _LONG and _is_random(w) for w in text.split())


def _pattern() -> re.Pattern[str]:
    """Known keys by their prefixes. Made only when a text holds one of the marks, for making it takes time."""
    global _found
    if _found is None:
        import re

        _found = re.compile(
            r"(?<![A-Za-z0-9])(?:"
            r"sk-[A-Za-z0-9_-]{16,}|[sr]k_live_[A-Za-z0-9]{10,}|xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{10,}"
            r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
            r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|AIza[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}"
            r"|pypi-[A-Za-z0-9_-]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
            r"|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
            r"|(?:Bearer|Basic) [A-Za-z0-9._~+/=-]{16,}"
            r")|-----BEGIN [A-Z ]*PRIVATE KEY-----|://[^\s/:@]{1,100}:[^\s/:@]{3,200}@"
        )
    return _found


def _is_random(word: str) -> bool:
    """Whether a long word is of letters of both cases and digits that change kind too often to have been meant."""
    word = word.strip("\"'`.,;:()[]{}<>")[:200]
    if len(word) < _LONG or not all(c.isascii() and (c.isalnum() or c in "+/_-=") for c in word):
        return False
    if word.count("/") > 2 or len(set(word)) < 14:
        return False
    kinds = ["d" if c.isdigit() else "u" if c.isupper() else "l" if c.islower() else "o" for c in word]
    changes = sum(kinds[at] != kinds[at - 1] for at in range(1, len(kinds)))
    return all(kinds.count(kind) >= 3 for kind in "dul") and changes >= len(word) * 0.45
