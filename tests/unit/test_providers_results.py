"""The bound on a tool's result, and the difference that an approval shows."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from halo_lang.boundary.host import ToolError
from halo_lang.providers.files.difference import MAX_BYTES, difference
from halo_lang.providers.results import LIMIT, bounded


@pytest.mark.parametrize("value", [None, True, 0, 1.5, "", "x" * LIMIT, "é" * (LIMIT // 2), [], {"a": ["é"]}, 10**30])
def test_what_fits_stays_as_it_is(value: Any) -> None:
    assert bounded(value) is value


def test_a_larger_text_is_cut_at_a_line_and_says_so() -> None:
    text = "".join(f"line {n}\n" for n in range(100_000))
    cut = bounded(text)
    assert isinstance(cut, str)
    assert len(cut) <= LIMIT
    body, _, note = cut.rpartition("\n")
    assert text.startswith(body + "\n")
    lines = 100_000 - body.count("\n") - 1
    assert note == f"[cut here: {lines:,} more lines, {len(text) - len(body) - 1:,} bytes, left out]"
    assert bounded(cut) is cut


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=40), min_size=1, max_size=30))
@settings(max_examples=40)
def test_a_cut_text_is_a_start_of_the_text(pieces: list[str]) -> None:
    unit = "".join(pieces)
    text = unit * (LIMIT // len(unit.encode()) + 2)
    cut = bounded(text)
    assert isinstance(cut, str)
    assert len(cut.encode()) <= LIMIT
    body = cut[: cut.rindex("[cut here")]
    assert text.startswith((body, body.removesuffix("\n")))
    assert len(body) > 0


def test_a_larger_structure_says_how_to_ask_for_less() -> None:
    with pytest.raises(ToolError, match=r"bytes of JSON.*give a smaller `limit`") as raised:
        bounded(["x" * 1000] * 300, "give a smaller `limit`")
    assert raised.value.code == "TOOL_ERROR"
    with pytest.raises(ToolError):
        bounded(["é" * 1000] * 140)
    assert bounded(["é" * 1000] * 100)


def test_what_is_no_json_is_a_failure() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (float("nan"), float("inf"), {"a": float("nan")}, {1, 2}, b"x", endless):
        with pytest.raises(ToolError, match="not a JSON value"):
            bounded(value)  # type: ignore[arg-type]


def test_halves_of_surrogate_pairs_are_mended() -> None:
    assert bounded("a\ud800b") == "a?b"
    assert bounded({"a\udfff": ["\ud800", 1]}) == {"a?": ["?", 1]}


def applied(folder: Path, old: str | None, new: str) -> str:
    """What `patch` makes of the old text by the difference."""
    (folder / "f").write_bytes((old or "").encode())
    text = difference("f", old, new)
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=folder, input=text.encode(), check=True)
    return (folder / "f").read_bytes().decode()


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d\r", "é"]), max_size=12)


@given(LINES, LINES, st.booleans(), st.booleans())
@settings(max_examples=40)
def test_a_difference_is_one_that_can_be_applied(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], first: bool, second: bool
) -> None:
    before = "".join(line + "\n" for line in old) + ("end" if first else "")
    after = "".join(line + "\n" for line in new) + ("end" if second else "")
    if before == after:
        assert difference("f", before, after) == "f: nothing changes\n"
    elif before:
        assert applied(tmp_path_factory.mktemp("d"), before, after) == after


def test_a_difference_of_many_lines_is_made_at_once_and_bounded() -> None:
    old = "".join(f"{n % 7}\n" for n in range(200_000))
    new = "".join(f"{n % 11}\n" for n in range(200_000))
    text = difference("f", old, new)
    assert len(text.encode()) < MAX_BYTES + 100
    assert text.endswith("more lines of the difference left out]\n")
    one = old.replace("3\n", "x\n", 1)
    assert difference("f", old, one) == ("--- f\n+++ f\n@@ -1,7 +1,7 @@\n 0\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n")
    assert json.dumps(difference("f", None, "x" * 1_000_000)).count("left out") == 1
