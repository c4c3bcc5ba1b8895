"""Plans as pictures: whatever stands in a file, the SVG is well-formed and the Mermaid text keeps its shape."""

from __future__ import annotations

import re
from random import Random
from xml.etree import ElementTree

import pytest

from halo_lang.language.record import replace
from halo_lang.plan.graph import mermaid, svg
from halo_lang.plan.plan import Plan
from plans import AGENT, pipeline, plan

HOSTILE = [
    '"]; x --> y',
    "<script>alert(1)</script>",
    "&amp;&#x3c;",
    "]]>",
    "<!--",
    "end",
    "%%{init: {}}%%",
    "```",
    "#quot;#59;",
    ":::external",
    "click a href",
    "\\n\\",
    "\x1b[2K\x00\x08",
    "\ufffe\uffff\u202e\u2028",
    "\U0001f600é漢",
    "'`$()[]{}|~",
    "\n  end\n  evil --> evil",
]


def with_texts(texts: list[str]) -> Plan:
    made = plan(AGENT + pipeline("|> A.go()"))
    stage = made.stages[0]
    stages = [
        replace(stage, number=f"{at}", target=text, model=text, conditions=(text,)) for at, text in enumerate(texts)
    ]
    return replace(made, stages=tuple(stages))


def shown(text: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]


def test_an_svg_is_well_formed_and_shows_what_stands_there() -> None:
    made = svg([with_texts(HOSTILE)])
    assert len(shown(made)) == 1 + 2 * len(HOSTILE)
    tags = {node.tag.rpartition("}")[2] for node in ElementTree.fromstring(made).iter()}
    assert tags == {"svg", "style", "text", "rect", "path"}
    assert any("<script>alert(1)</script>" in text for text in shown(made))


LABEL = re.compile(r'    s0_\d+\["[^"\[\]<>\n]*(?:<br>[^"\[\]<>\n]*)*"\]:::(external|write|read|plain)')
ARROW = re.compile(r"    s0_\d+ --> s0_\d+")
OTHER = re.compile(r'flowchart TD|  subgraph p0\["[^"]*"\]|  end|  classDef [a-z]+ [a-z0-9#:,]+')


def test_no_text_breaks_out_of_mermaid() -> None:
    rows = mermaid([with_texts(HOSTILE)]).split("\n")
    assert all(LABEL.fullmatch(row) or ARROW.fullmatch(row) or OTHER.fullmatch(row) for row in rows)
    assert sum(LABEL.fullmatch(row) is not None for row in rows) == len(HOSTILE)
    # Outside entities nothing stands that Mermaid reads as markup.
    for row in rows:
        if LABEL.fullmatch(row):
            inner = re.sub(r"#\d+;|<br>", "", row[row.index('"') + 1 : row.rindex('"')])
            assert not set(inner) & set('"<>[]{}|#;&`%\\')


@pytest.mark.parametrize("seed", range(20))
def test_any_text(seed: int) -> None:
    chance = Random(seed)
    texts = ["".join(chr(chance.choice((chance.randrange(32, 127), chance.randrange(0xD800)))) for _ in range(30))]
    assert len(shown(svg([with_texts(texts)]))) == 3
    rows = mermaid([with_texts(texts)]).split("\n")
    assert all(LABEL.fullmatch(row) or ARROW.fullmatch(row) or OTHER.fullmatch(row) for row in rows), rows


def test_a_block_has_the_colour_of_its_gravest_call() -> None:
    text = 'tool F : Workspace(".", write: true)\ntool C : Slack(Env.T)\ntool W : Mcp("serve")\n' + pipeline(
        "|> F.list()", '|> F.mkdir("d")', "|> C.post(text: x)", "|> W.find(x)", "|> System.Print(x)"
    )
    tones = re.findall(r":::(\w+)", mermaid([plan(text)]))
    assert tones == ["read", "write", "external", "external", "plain"]


def test_several_pipelines_and_none() -> None:
    both = [plan(AGENT + pipeline("|> A.go()")), plan(AGENT + pipeline())]
    assert mermaid(both).count("subgraph") == 2
    assert len(shown(svg(both))) == 4
    assert shown(svg([])) == []
