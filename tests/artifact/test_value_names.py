"""What arguments and results are called."""

from __future__ import annotations

from dataclasses import replace

import pytest

import vhlo_tools as vt
from vhlo_tools.artifact import Artifact

PROGRAM = """
func.func @main(
    %a: tensor<f32> loc("plain"), %b: tensor<f32> loc("placed"("a.py":1:2)), %c: tensor<f32> loc("a.py":3:4),
    %d: tensor<f32> loc(callsite("called" at "b.py":5:6)), %e: tensor<f32> loc(fused["first", "second"]),
    %f: tensor<f32> loc(fused["c.py":7:8, "later"]), %g: tensor<f32> loc(unknown)
) -> (tensor<f32> {jax.result_info = "loss"}, tensor<f32>, tensor<f32> {jax.result_info = ""}) {
  return %a, %b, %c : tensor<f32>, tensor<f32>, tensor<f32>
}
"""


def named(artifact: Artifact) -> tuple[list[str | None], list[str | None]]:
    program = artifact.declared_aliases()
    return [each.name for each in program.parameters], [each.name for each in program.results]


def test_arguments_are_called_by_the_names_that_their_locations_begin_with() -> None:
    artifact = vt.serialize(PROGRAM)
    assert named(artifact) == (["plain", "placed", None, "called", "first", None, None], ["loss", None, None])
    places = [each.location and str(each.location) for each in artifact.declared_aliases().parameters]
    assert places == [None, "a.py:1:2", "a.py:3:4", "b.py:5:6", None, "c.py:7:8", None]
    assert named(vt.strip(artifact))[0] == [None] * 7


def test_a_function_without_a_body_has_arguments_without_names() -> None:
    artifact = vt.serialize("func.func private @main(tensor<f32>, tensor<f32>) -> tensor<f32>")
    assert named(artifact) == ([None, None], [None])


def test_arguments_beyond_those_of_the_signature_do_not_count() -> None:
    artifact = vt.serialize('func.func @main(%a: tensor<f32> loc("a")) { return }')
    file = artifact.copy_of_file()
    (block,) = file.ir.operations[0].regions[0].blocks[0].operations[0].regions[0].blocks
    block.arguments.append(block.arguments[0])
    assert named(artifact.edited(file)) == (["a"], [])


def test_names_are_written_and_others_stay() -> None:
    artifact = vt.serialize(PROGRAM).with_names({0: "x", 1: "y", 2: "z", 6: "last"}, {1: "second", 2: "third"})
    assert named(artifact) == (["x", "y", "z", "called", "first", None, "last"], ["loss", "second", "third"])
    # In place of a name, and around what is a place.
    places = [each.location and str(each.location) for each in artifact.declared_aliases().parameters]
    assert places == [None, "a.py:1:2", "a.py:3:4", "b.py:5:6", None, "c.py:7:8", None]
    vt.deserialize(artifact)


@pytest.mark.parametrize(
    ("parameters", "results"), [({7: "x"}, {}), ({}, {3: "x"}), ({-1: "x"}, {}), ({7: "x"}, {3: "y"})]
)
def test_names_of_what_is_not_there_are_refused(parameters: dict[int, str], results: dict[int, str]) -> None:
    with pytest.raises(vt.InvalidProgramError, match="no function main with the arguments and results"):
        vt.serialize(PROGRAM).with_names(parameters, results)


def test_names_need_a_function_with_a_body() -> None:
    for program in ("func.func private @main(tensor<f32>)", "func.func @a() { return } func.func @b() { return }"):
        with pytest.raises(vt.InvalidProgramError, match="no function main"):
            vt.serialize(program).with_names({}, {})


def test_a_function_whose_type_is_that_of_no_function_has_no_arguments() -> None:
    artifact = vt.serialize(PROGRAM)
    file = artifact.copy_of_file()
    kinds = {
        index: value
        for index in range(len(file.attributes))
        if (value := file.decode("attribute", index)) is not None and value.name == "type_v1"
    }
    number = next(n for n in range(len(file.types)) if (t := file.decode("type", n)) is not None and t.name == "f32_v1")
    for index, value in kinds.items():
        file.attributes[index] = file.encode("attribute", replace(value, fields=(number,)))
    assert named(artifact.edited(file)) == ([], [])
