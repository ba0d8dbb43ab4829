"""Functions whose arguments may change, and those that are damaged or depended on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.walking import walk

import vhlo_tools as vt
from vhlo_tools.bytecode import File, Operation
from vhlo_tools.bytecode.editing import Tables

PROGRAM = """func.func @main(%a: tensor<2xf32> {my.x = 1 : i32}) -> tensor<2xf32> attributes {my.y = 2 : i32} {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %a, %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}"""


def edited(edit: Callable[[File], None]) -> vt.Artifact:
    artifact = vt.serialize(PROGRAM)
    file = artifact.copy_of_file()
    edit(file)
    return artifact.edited(file)


def replace_attribute(file: File, name: str, change: Callable[[tuple[object, ...]], tuple[object, ...]]) -> None:
    """Change the fields of the one attribute of a kind that is not empty."""
    (index,) = (
        index
        for index in range(len(file.attributes))
        if (each := file.decode("attribute", index)) is not None and each.name == name and each.fields != ((),)
    )
    value = file.decode("attribute", index)
    assert value is not None
    file.attributes[index] = file.encode("attribute", replace(value, fields=change(value.fields)))


def constant_of(file: File) -> Operation:
    names = {index for index in range(len(file.dialects.ops)) if file.op_name(index) == "vhlo.constant_v1"}
    (found,) = (op for op in walk(file.ir) if isinstance(op, Operation) and op.name in names)
    return found


def another_type(file: File) -> None:
    (index,) = (n for n in range(len(file.types)) if (t := file.decode("type", n)) is not None and t.name == "func_v1")
    kind = file.decode("type", index)
    assert kind is not None
    inputs, outputs = kind.fields
    file.types[index] = file.encode("type", replace(kind, fields=(inputs * 2, outputs)))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (another_type, "@main has 1 arguments, but its type or argument attributes are for another number"),
        (
            lambda file: replace_attribute(file, "array_v1", lambda fields: (fields[0] * 2,)),  # type: ignore[operator]
            "@main has 1 arguments, but its type or argument attributes are for another number",
        ),
        (
            lambda file: replace_attribute(file, "type_v1", lambda fields: (constant_of(file).results[0],)),
            "@main does not have a function type",
        ),
        (lambda file: setattr(constant_of(file), "properties", None), "a constant has no value, or not one result"),
        (lambda file: setattr(constant_of(file), "operands", (0,)), "a constant has no value, or not one result"),
    ],
    ids=["type", "attributes", "no type", "no value", "operands"],
)
def test_damage(edit: Callable[[File], None], message: str) -> None:
    with pytest.raises(vt.MalformedArtifactError, match=message):
        vt.externalize_constants(edited(edit), min_size=0)


def test_a_constant_with_two_results_or_none() -> None:
    for count in (0, 2):

        def edit(file: File, count: int = count) -> None:
            op = constant_of(file)
            op.results = op.results * count
            # Its users come to use what remains.
            for each in walk(file.ir):
                if isinstance(each, Operation) and each.operands:
                    each.operands = (0,) * len(each.operands)

        with pytest.raises(vt.MalformedArtifactError, match="a constant has no value, or not one result"):
            vt.constants(edited(edit))


def test_a_function_without_a_body() -> None:
    artifact = vt.serialize("func.func private @main(tensor<f32>) -> tensor<f32>")
    with pytest.raises(vt.InvalidInputError, match="the function @main has no body"):
        vt.externalize_constants(artifact, min_size=0)


def test_a_program_without_functions() -> None:
    with pytest.raises(vt.InvalidInputError, match="the program has no function @main; it has none"):
        vt.externalize_constants(vt.serialize("module {}"), min_size=0)


def test_what_a_module_names_is_not_called() -> None:
    def edit(file: File) -> None:
        tables = Tables(file)
        name = tables.builtin("string", tables.string("main"))
        file.ir.operations[0].attributes = tables.dictionary({"callee": name})

    assert len(vt.externalize_constants(edited(edit), min_size=0).record.moved) == 1


@pytest.mark.parametrize("version", ["0.9.0", "0.14.0", "1.9.0"])
def test_nothing_that_the_function_had_stays_behind(version: str) -> None:
    """Its type and its attributes are written anew, and the old ones are gone from the tables."""
    result = vt.externalize_constants(vt.serialize(PROGRAM, version), min_size=0).artifact
    again = vt.serialize(vt.deserialize(result), version)
    for kind in ("array_v1", "dict_v1", "type_v1", "tensor_v1"):
        name = f"vhlo.{kind}"
        assert result.inventory().attributes.get(name) == again.inventory().attributes.get(name), name
    dictionaries = [each.inventory().attributes.get("builtin.dictionary", 0) for each in (result, again)]
    assert dictionaries[0] == dictionaries[1]
    assert "my.y = #vhlo.integer_v1<2 : i32>" in result.text()
