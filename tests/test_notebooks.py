"""What notebooks show of results: the same as texts, and nothing that a program's names could add."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.aliasing import Array, Signature
from vhlo_tools.markup import facts, table

HOSTILE = Path(__file__).parent / "programs" / "hostile" / "names_with_escapes.mlir"
SAXPY = EXAMPLES / "saxpy.mlir"
DONATED = (
    "func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<f32> {jax.buffer_donor = true})"
    " -> tensor<4xf32> { %c = stablehlo.tan %a : tensor<4xf32> func.return %c : tensor<4xf32> }"
)


class Page(HTMLParser):
    """The cells of the tables of a page, row by row, and all of its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag in ("tr", "caption"):
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if not self.rows:
            self.rows.append([])
        if not self.rows[-1]:
            self.rows[-1].append("")
        self.rows[-1][-1] += data


def shown(value: object) -> list[list[str]]:
    text = value._repr_html_()  # type: ignore[attr-defined]  # not every object has it
    page = Page(text)
    assert page.tags <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
    return page.rows


@pytest.fixture(scope="module")
def artifact() -> vt.Artifact:
    return vt.serialize(DONATED, target="1.4.0")


def test_an_artifact_is_shown_as_inspect_does(artifact: vt.Artifact) -> None:
    (title,), *lines = shown(artifact)
    assert title == artifact.name
    assert [label for label, _ in lines] == ["is", "read by", "takes", "gives", "holds"]
    assert lines[3][1] == "1 result: tensor<4xf32>; aliased: {0} with parameter 0"


def test_an_artifact_that_is_damaged_inside_is_shown_as_such(artifact: vt.Artifact) -> None:
    data = bytearray(bytes(artifact))
    section = next(each for each in artifact.sections if each.name == "ir")
    data[section.offset : section.offset + section.size] = bytes(section.size)
    damaged = vt.open_artifact(bytes(data))
    (_, (_, said), (label, reason)) = shown(damaged)
    assert "StableHLO 1.4.0" in said
    assert label == "damaged"
    assert "ir section" in reason


def test_requirements_are_shown_with_their_features(artifact: vt.Artifact) -> None:
    assert shown(artifact.requirements()) == [
        ["requirements"],
        ["readable since", "1.4.0"],
        ["downgradable to", "1.4.0"],
        ["expandable to", "0.9.0"],
        ["features"],
        ["feature", "introduced", "count"],
        ["tan", "1.4.0", "1"],
    ]


def test_aliases_are_shown_with_their_shapes() -> None:
    config = vt.AliasConfig(Signature((Array("f32", (4,)), Array("f32", ())), Array("f32", (4,))))
    config.set_up_alias(parameter_number=0)
    config.set_up_donor(1)
    assert shown(config)[1:] == [
        ["output", "parameter", "index", "shape", "kind"],
        ["{}", "0", "{}", "f32[4]", "may-alias"],
        ["", "1", "{}", "f32[]", "donor"],
    ]


def test_findings_are_a_list_and_a_table() -> None:
    found = vt.check(DONATED, "1.0.0")
    assert found == [*found]
    _, heads, *rows = shown(found)
    assert [row[heads.index("feature")] for row in rows] == [each.feature for each in found]
    assert "tan" in [each.feature for each in found]
    assert shown(found[0]) == [["findings"], heads, rows[0]]
    assert shown(vt.check(SAXPY, "1.4.0")) == [["no findings"]]


def test_differences_are_a_list_and_a_table(artifact: vt.Artifact) -> None:
    assert shown(vt.diff(artifact, vt.retarget(artifact, "1.9.0"))) == [
        ["differences"],
        ["kind", "where", "before", "after"],
        ["version", "", "1.4.0", "1.9.0"],
    ]
    assert shown(vt.diff(artifact, artifact)) == [["no differences"]]


@pytest.mark.long
def test_reports_are_tables(artifact: vt.Artifact, tmp_path: Path) -> None:
    rows = shown(vt.verify(artifact, vt.retarget(artifact, "1.9.0")))
    assert "computes the same as" in rows[0][0]
    assert rows[2][:4] == ["drawn from seed 0", "0", "float32", "0"]
    artifact.save(tmp_path / "a.mlirbc")
    summary = vt.MigrationSummary()
    for record in vt.migrate([tmp_path], target="1.9.0"):
        summary.add(record)
    assert shown(summary)[2] == ["moved", "1", str(len(artifact))]


def test_names_are_texts() -> None:
    artifact = vt.serialize(HOSTILE)
    for value in (artifact, artifact.requirements(), vt.check(artifact, "0.9.0"), vt.diff(artifact, SAXPY)):
        assert all(cell.isprintable() for row in shown(value) for cell in row)
    assert shown_text(facts("<b>", [("<i>", "\x1b[31m&amp;")])) == [["<b>"], ["<i>", "\\x1b[31m&amp;"]]


def shown_text(text: str) -> list[list[str]]:
    return Page(text).rows


def test_of_very_many_rows_the_first_are_shown() -> None:
    rows = shown_text(table("many", ("number",), ([number] for number in range(100_000))))
    assert len(rows) == 203
    assert rows[-2:] == [["199"], ["and 99,800 more"]]
