"""The Markdown of generated pages."""

from __future__ import annotations

from pages import cell, code, codes, fence, slug, table


def test_a_cell_is_one_line_and_ends_nowhere_else() -> None:
    assert cell("one\n  two | three") == "one two &#124; three"
    assert cell("`a | b` | c") == "`a | b` &#124; c"


def test_code_keeps_its_ticks() -> None:
    assert code("a") == "`a`"
    assert code("a`b") == "`` a`b ``"
    assert codes(["a", 1]) == "`a`, `1`"
    assert codes([], "none") == "none"
    assert fence("text", "```\na\n```\n") == "````text\n```\na\n```\n````\n"


def test_a_table() -> None:
    assert list(table(["a", "b"], [["1", "2"]])) == ["| a | b |", "|---|---|", "| 1 | 2 |", ""]


def test_slugs_are_those_of_github() -> None:
    assert slug("f8E4M3FNUZ_f8E5M2FNUZ") == "f8e4m3fnuz_f8e5m2fnuz"
    assert slug("1.22.0") == "1220"
    assert slug("What it `does`: all") == "what-it-does-all"
