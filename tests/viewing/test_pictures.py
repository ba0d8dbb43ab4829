"""Pictures of graphs: what they show of a program, and how it is written down."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.corpus_files import corpus_files

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.errors import InvalidInputError
from vhlo_tools.viewing import Picture, ProgramGraph, dot_lines, mermaid_lines, picture_of, program_graph

LOOP = """
func.func @main(%arg0: tensor<2xf32>, %arg1: tensor<2xf32>, %unused: tensor<i1>) -> tensor<2xf32> {
  %0:2 = stablehlo.while(%a = %arg0, %b = %arg1) : tensor<2xf32>, tensor<2xf32>
    cond { %c = stablehlo.constant dense<false> : tensor<i1> stablehlo.return %c : tensor<i1> }
    do { %d = stablehlo.tan %b : tensor<2xf32> stablehlo.return %d, %a : tensor<2xf32>, tensor<2xf32> }
  %1 = stablehlo.add %0#0, %0#0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @other(%arg0: tensor<2xf32>) -> tensor<2xf32> { return %arg0 : tensor<2xf32> }
"""


def graph_of(text: str, target: str = "1.9.0") -> ProgramGraph:
    return program_graph(bytes(vt.serialize(text, target=target)))


def arrows(picture: Picture) -> dict[tuple[str, str], int]:
    """The arrows of a picture, by the names in the boxes."""
    names = {box.id: box.lines[0] for box in picture.root.walk()}
    return {(names[arrow.source], names[arrow.target]): arrow.uses for arrow in picture.arrows}


def test_everything_is_shown_where_there_is_room() -> None:
    picture = picture_of(graph_of(LOOP))
    assert arrows(picture) == {
        ("argument 0", "while"): 1,
        ("argument 1", "while"): 1,
        ("while", "add"): 2,
        ("add", "return"): 1,
        ("constant", "return"): 1,
        ("argument 1 of region 1", "tan"): 1,
        ("tan", "return"): 1,
        ("argument 0 of region 1", "return"): 1,
        ("argument 0", "return"): 1,
    }
    (tan,) = [box for box in picture.root.walk() if box.lines[0] == "tan"]
    assert tan.lines == ("tan", "tensor<2xf32>", "since 1.4.0")
    (loop,) = [box for box in picture.root.walk() if box.lines[0] == "while"]
    assert (loop.kind, loop.lines[1:], str(loop.introduced)) == ("unfolded", ("5 ops", "since 1.4.0"), "1.4.0")


def test_what_is_folded_has_the_arrows_of_what_is_in_it() -> None:
    picture = picture_of(graph_of(LOOP), function="main", most=3)
    assert arrows(picture) == {
        ("argument 0", "while"): 1,
        ("argument 1", "while"): 1,
        ("while", "add"): 2,
        ("add", "return"): 1,
    }
    assert {box.lines[0]: box.kind for box in picture.root.walk()}["while"] == "folded"
    (root, *others) = picture_of(graph_of(LOOP), most=0).root.walk()
    assert (root.kind, {box.kind for box in others}) == ("unfolded", {"folded"})


def test_a_function_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InvalidInputError, match="no function @absent; expected one of its functions: @main, @other"):
        picture_of(graph_of(LOOP), function="absent")


def test_many_arguments_are_one_box() -> None:
    arguments = ", ".join(f"%a{number}: tensor<f32>" for number in range(13))
    uses = "".join(f"%{number} = stablehlo.abs %a{number} : tensor<f32>\n" for number in range(13))
    picture = picture_of(graph_of(f"func.func @main({arguments}) -> tensor<f32> {{ {uses} return %0 : tensor<f32> }}"))
    assert [box.lines for box in picture.root.walk() if box.kind == "argument"] == [("13 arguments",)]
    assert sum(arrow.uses for arrow in picture.arrows) == 14


@pytest.mark.sample(2)
@pytest.mark.parametrize("most", [0, 1, 20, 200, None])
def test_pictures_of_real_programs(most: int | None) -> None:
    for _, data in islice(corpus_files(ordinary=False), 0, None, 7):
        graph = program_graph(data)
        picture = picture_of(graph, most=most)
        boxes = {box.id: box for box in picture.root.walk()}
        assert len(boxes) == sum(1 for _ in picture.root.walk())
        inner = [box for box in boxes.values() if box.kind in ("op", "folded")]
        assert most is None or len(inner) <= max(most, len(graph.groups.members))
        assert all(box.size == 1 for box in inner if box.kind == "op")
        for source, target, uses in picture.arrows:
            assert {source, target} <= boxes.keys()
            assert source != target
            assert uses > 0
        if most is None:
            # Nothing is folded but arguments: all ops and uses are there.
            stand_for_ops = sum(group.op is not None for group in graph.groups.walk())
            assert len(inner) + stand_for_ops == graph.groups.size == len(graph)
            assert sum(arrow.uses for arrow in picture.arrows) == sum(1 for _ in graph.edges())
        assert all(line.isprintable() for write in (dot_lines, mermaid_lines) for line in write(picture))


@pytest.mark.parametrize("suffix", ["dot", "gv", "mmd", "mermaid", "other"])
def test_the_suffix_chooses_the_language(suffix: str, tmp_path: Path) -> None:
    output = tmp_path / f"graph.{suffix}"
    command = ["report", str(EXAMPLES / "saxpy.mlir"), "-o", str(output)]
    assert main(command) == 0
    first = {"dot": "digraph program {\n", "m": "flowchart TB\n", "other": "<!doctype html>\n"}
    begins = first["m"] if suffix.startswith("m") else first["other" if suffix == "other" else "dot"]
    assert output.read_text().startswith(begins)
    assert main(command) == 2
    assert main([*command, "--force", "--output-format", "mermaid"]) == 0
    assert output.read_text().startswith("flowchart TB\n")


def test_a_refused_function_at_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(EXAMPLES / "keras_mlp.mlirbc"), "--format", "dot", "--function", "absent"]) == 2
    assert "no function @absent; expected one of its functions: @main, @_var, @_where" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["P"], "give -o FILE, such as -o page.html or -o graph.svg, or --output-format for stdout"),
        (["P", "-o", "O.dot", "--target", "1.0.0"], "--target is for --output-format html: found dot"),
        (["P", "P", "-o", "O.svg"], "OTHER is for --output-format html: found svg"),
        (
            ["P", "-o", "O.html", "--max-nodes", "4"],
            "--max-nodes is for --output-format dot or",
        ),
        (
            ["P", "-o", "O.json", "--function", "f"],
            "dot or mermaid or svg: found json",
        ),
        (["S", "-o", "O.dot"], "is a folder: a graph is of one program, and -o page.html of a store"),
    ],
)
def test_what_a_report_is_not(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"P": str(EXAMPLES / "saxpy.mlir"), "S": str(EXAMPLES / "jax_store")}
    said = [names.get(each, str(tmp_path / each) if each.startswith("O") else each) for each in arguments]
    assert main(["report", *said]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_names_of_a_program_stay_texts() -> None:
    name = 'a"]; b -> c; <script>%%{`|#'
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    body = "{ %0 = stablehlo.abs %a : tensor<f32> return %0 : tensor<f32> }"
    text = f'func.func @"{quoted}"(%a: tensor<f32>) -> tensor<f32> {body}'
    picture = picture_of(graph_of(text))
    (dot,) = [line for line in dot_lines(picture) if "script" in line]
    assert dot.strip() == 'label="@a\\"]; b -> c; <script>%%{`|#\\n3 ops";'
    (mermaid,) = [line for line in mermaid_lines(picture) if "script" in line]
    label = re.fullmatch(r'\s*subgraph group1\["([^"]*)"\]', mermaid)
    assert label is not None
    assert not re.search(r"[`|{}\]]|<(?!br/>)", label[1])
