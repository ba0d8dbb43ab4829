"""Each change of a program makes one precise difference, and what means the same makes none."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from support.corpus_files import read_corpus_file
from support.walking import walk

import vhlo_tools as vt
from vhlo_tools.artifact.comparison import diff_artifacts
from vhlo_tools.artifact.differences import DifferenceKind
from vhlo_tools.bindings import get_provider
from vhlo_tools.bytecode import BlockArgument, Operation, Value, encode
from vhlo_tools.conversion.fidelity import expansion, to_vhlo

PROGRAM = """module @m attributes {mhlo.num_partitions = 1 : i32} {
  func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %s = stablehlo.constant dense<2.5> : tensor<4xf32>
    %0 = stablehlo.add %a, %b : tensor<4xf32>
    %1 = stablehlo.subtract %0, %c : tensor<4xf32>
    %2 = call @helper(%1) : (tensor<4xf32>) -> tensor<4xf32>
    %i = stablehlo.constant dense<0> : tensor<i32>
    %3:2 = stablehlo.while(%x = %i, %y = %2) : tensor<i32>, tensor<4xf32> cond {
      %n = stablehlo.constant dense<5> : tensor<i32>
      %p = stablehlo.compare LT, %x, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %o = stablehlo.constant dense<1> : tensor<i32>
      %q = stablehlo.add %x, %o : tensor<i32>
      %r = stablehlo.subtract %y, %s : tensor<4xf32>
      stablehlo.return %q, %r : tensor<i32>, tensor<4xf32>
    }
    return %3#1 : tensor<4xf32>
  }
  func.func private @helper(%h: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %h : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""

# What is replaced by what in the text, and what is said of it.
CHANGES: dict[str, tuple[str, str, list[str]]] = {
    "a renamed function": ("@helper", "@other", ['function attribute: @helper sym_name: "helper" -> "other"']),
    "an attribute": (
        "compare LT",
        "compare LE",
        ["op: @main/6:stablehlo.while/0/1:stablehlo.compare comparison_direction: LT -> LE"],
    ),
    "a constant": (
        "3.0",
        "3.5",
        [
            "constant: @main/0:stablehlo.constant value: "
            "dense<[1, 2, 3, 4]> : tensor<4xf32> -> dense<[1, 2, 3.5, 4]> : tensor<4xf32>"
        ],
    ),
    "a constant in a region": (
        "dense<5>",
        "dense<6>",
        [
            "constant: @main/6:stablehlo.while/0/0:stablehlo.constant value: "
            "dense<5> : tensor<i32> -> dense<6> : tensor<i32>"
        ],
    ),
    "swapped operands": (
        "%0, %c",
        "%c, %0",
        [
            "op: @main/3:stablehlo.subtract operands: (2:stablehlo.add, 0:stablehlo.constant) -> "
            "(0:stablehlo.constant, 2:stablehlo.add)"
        ],
    ),
    "swapped operands in a region": (
        "%y, %s",
        "%s, %y",
        [
            "op: @main/6:stablehlo.while/1/2:stablehlo.subtract operands: "
            "(6:stablehlo.while/1 argument 1, 1:stablehlo.constant) -> "
            "(1:stablehlo.constant, 6:stablehlo.while/1 argument 1)"
        ],
    ),
    "an alias": ("output = 0", "output = 1", ["alias: @main argument 0 tf.aliasing_output: 0 : i32 -> 1 : i32"]),
    "a donor": (
        "%b: tensor<4xf32>)",
        "%b: tensor<4xf32> {jax.buffer_donor = true})",
        ["donor: @main argument 1 jax.buffer_donor: added true"],
    ),
    "an argument attribute": (
        "%b: tensor<4xf32>)",
        '%b: tensor<4xf32> {mhlo.sharding = "{replicated}"})',
        ['argument attribute: @main argument 1 mhlo.sharding: added "{replicated}"'],
    ),
    "a result attribute": (
        "-> tensor<4xf32> {\n    %c",
        '-> (tensor<4xf32> {jax.result_info = "out"}) {\n    %c',
        ['result attribute: @main result 0 jax.result_info: added "out"'],
    ),
    "a function attribute": (
        "func.func private",
        "func.func",
        ['function attribute: @helper sym_visibility: "private" -> ""'],
    ),
    "a module attribute": (
        "partitions = 1",
        "partitions = 2",
        ["module attribute: module mhlo.num_partitions: 1 : i32 -> 2 : i32"],
    ),
    "another op": (
        "stablehlo.exponential",
        "stablehlo.tanh",
        [
            "op: @helper/0:stablehlo.exponential: "
            "stablehlo.exponential : tensor<4xf32> -> stablehlo.tanh : tensor<4xf32>"
        ],
    ),
    "one op more": (
        "    %1 = stablehlo.subtract %0,",
        "    %m = stablehlo.multiply %0, %0 : tensor<4xf32>\n    %1 = stablehlo.subtract %m,",
        [
            "op: @main/3:stablehlo.multiply: added stablehlo.multiply : tensor<4xf32>",
            "op: @main/3:stablehlo.subtract operands: (2:stablehlo.add, 0:stablehlo.constant) -> "
            "(added 3:stablehlo.multiply, 0:stablehlo.constant)",
        ],
    ),
    "one argument more": ("@main(", "@main(%new: tensor<i1>, ", ["signature: @main argument 0: added tensor<i1>"]),
    "one function more": (
        "  func.func private",
        "  func.func @more() { return }\n  func.func private",
        ["function: @more: added () -> (), 1 op: 1 func.return"],
    ),
}


@pytest.fixture(scope="module")
def before() -> vt.Artifact:
    return vt.serialize(PROGRAM)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_makes_one_precise_difference(name: str, before: vt.Artifact) -> None:
    old, new, expected = CHANGES[name]
    after = vt.serialize(PROGRAM.replace(old, new), alias_lint=False)
    assert [str(each) for each in diff_artifacts(before, after)] == expected
    assert len(diff_artifacts(after, before)) == len(expected)


def test_what_means_the_same_differs_in_nothing(before: vt.Artifact) -> None:
    main, helper = PROGRAM.index("  func.func @main"), PROGRAM.index("  func.func private")
    swapped = PROGRAM[:main] + PROGRAM[helper:-2] + PROGRAM[main:helper] + "}\n"
    assert diff_artifacts(before, before) == []
    assert diff_artifacts(before, vt.serialize(swapped)) == []
    assert diff_artifacts(before, vt.strip(before)) == []


def test_another_element_type_shows_everywhere(before: vt.Artifact) -> None:
    found = diff_artifacts(before, vt.serialize(PROGRAM.replace("f32", "f64")))
    kinds = {each.kind for each in found}
    assert kinds == {"signature", "constant", "op"}
    assert "signature: @main result 0: tensor<4xf32> -> tensor<4xf64>" in map(str, found)
    assert "op: @main/2:stablehlo.add results: (tensor<4xf32>) -> (tensor<4xf64>)" in map(str, found)


def test_locations_on_request(before: vt.Artifact) -> None:
    after = vt.serialize(PROGRAM.replace("    %0 = stablehlo.exponential", "          %0 = stablehlo.exponential"))
    assert diff_artifacts(before, after) == []
    (found,) = diff_artifacts(before, after, locations=True)
    assert (found.kind, found.path) == ("location", "@helper/0:stablehlo.exponential")
    assert found.before is not None
    assert found.before.endswith(":22:10")
    assert found.after is not None
    assert found.after.endswith(":22:16")
    kinds: list[DifferenceKind] = [each.kind for each in diff_artifacts(before, vt.strip(before), locations=True)]
    assert set(kinds) == {"location"}


def test_a_splat_equals_the_same_elements_written_out(before: vt.Artifact) -> None:
    file = vt.open_artifact(bytes(before)).file
    file.load()
    splats = [(i, file.decode("attribute", i)) for i in range(len(file.attributes))]
    (index, value), *_ = [
        (i, each) for i, each in splats if each and each.name == "tensor_v1" and each.field("data") == b"\0\0\x20\x40"
    ]
    assert isinstance(value, Value)
    wide = replace(value, fields=(value.fields[0], bytes(value.field("data")) * 4))
    file.attributes[index] = file.encode("attribute", wide)
    after = vt.Artifact(encode(file))
    assert len(after) > len(before)
    assert diff_artifacts(before, after) == []


def test_versions(before: vt.Artifact) -> None:
    (found,) = diff_artifacts(before, vt.serialize(PROGRAM, "1.9.0"))
    assert (found.kind, found.path, found.after) == ("version", "", "1.9.0")


def test_a_damaged_artifact_is_refused(before: vt.Artifact) -> None:
    file = vt.open_artifact(bytes(before)).file
    section = next(each for each in file.sections if each.name == "ir")
    damaged = bytearray(bytes(before))
    damaged[section.offset + 2] ^= 0xFE
    with pytest.raises(vt.MalformedArtifactError):
        diff_artifacts(before, vt.Artifact(bytes(damaged)))


def test_attributes_of_shardy_by_what_they_mean() -> None:
    program = """sdy.mesh @mesh = <["x"=2, "y"=4]>
      func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p3]>}) -> tensor<8xf32> {
        %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
        return %0 : tensor<8xf32>
      }"""
    before = vt.serialize(program, allow_other_dialects=True)

    def kinds(old: str, new: str) -> list[tuple[str, str]]:
        after = vt.serialize(program.replace(old, new), allow_other_dialects=True)
        return [(each.kind, each.path) for each in diff_artifacts(before, after)]

    # The tables of the file change, and with them the bytes of the attributes.
    assert kinds("%a", "%renamed") == []
    assert kinds("@main", "@a_function_of_another_name") == [("function attribute", "@main sym_name")]
    assert kinds('"y"=4', '"y"=8') == [("op", "module/0:sdy.mesh mesh")]
    assert kinds("p3", "p4") == [("argument attribute", "@main argument 0 sdy.sharding")]
    assert kinds('{"x"}', '{"y"}') == [("op", "@main/1:sdy.sharding_constraint sharding")]


def test_flipped_bits_are_differences_or_refused(before: vt.Artifact) -> None:
    whole = bytes(before)
    for at in range(40, len(whole), 7):
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        try:
            found = diff_artifacts(before, vt.Artifact(bytes(flipped)), locations=True)
        except vt.MalformedArtifactError:
            continue
        assert all(str(each) for each in found)


def chain(*ops: str) -> vt.Artifact:
    """Return a program of ops of two equal operands, each the result of the op before."""
    lines = [f"%{i + 1} = stablehlo.{op} %{i}, %{i} : tensor<f32>" for i, op in enumerate(ops)]
    text = "\n".join(["func.func @main(%0: tensor<f32>) -> tensor<f32> {", *lines])
    return vt.serialize(f"{text}\nreturn %{len(ops)} : tensor<f32>\n}}")


def test_ops_of_one_side_are_told_where_they_stand_between_those_of_both() -> None:
    found = diff_artifacts(chain("add", "multiply", "power"), chain("multiply", "subtract", "divide"))
    assert [(each.path, each.before is None, each.after is None) for each in found] == [
        ("@main/0:stablehlo.add", False, True),
        ("@main/1:stablehlo.multiply operands", False, False),
        ("@main/2:stablehlo.power", False, True),
        ("@main/1:stablehlo.subtract", True, False),
        ("@main/2:stablehlo.divide", True, False),
        ("@main/3:func.return operands", False, False),
    ]


def test_many_differences_are_told_in_few_words() -> None:
    chance = random.Random(0)
    one, other = (chain("add", *chance.choices(("add", "multiply", "power"), k=6000), "add") for _ in range(2))
    found = diff_artifacts(one, other)
    assert len(found) == 1
    assert found[0].path.endswith(" and following")
    assert "stablehlo.power" in str(found[0])


def test_functions_may_use_values_of_the_module() -> None:
    # The library's expansions move constants of other dialects out of functions.
    inside = vt.open_artifact(read_corpus_file("jaxlib-0.10.2/mixed_arith@0.17.0.mlirbc"))
    module = vt.deserialize(inside)
    for pipeline in (to_vhlo(allow_other_dialects=True), expansion(inside.version)):
        get_provider().run_passes(module.operation, pipeline, verify=False)
    outside = vt.open_artifact(get_provider().serialize(module, inside.version, allow_other_dialects=True))
    assert '"arith.constant"' in outside.text().partition("vhlo.func_v1")[0]
    assert diff_artifacts(outside, outside, locations=True) == []
    found = list(map(str, diff_artifacts(inside, outside)))
    assert "op: module/0:arith.constant: added arith.constant : tensor<4xf32>" in found
    assert not [each for each in found if "cast" in each.partition("operands")[0]]


# All that differ in one, and the return that uses the last of them.
@pytest.mark.parametrize(("ops", "told"), [(500, 500), (501, 2)])
def test_up_to_a_thousand_ops_that_differ_are_told_one_by_one(ops: int, told: int) -> None:
    found = diff_artifacts(chain(*["add"] * ops), chain(*["multiply"] * ops))
    assert len(found) == told
    assert {each.kind for each in found} == {"op"}


def test_functions_that_are_renamed_together_with_those_they_call() -> None:
    program = """
    func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = call @outer(%a) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @outer(%a: tensor<f32>) -> tensor<f32> {
      %0 = call @inner(%a) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func private @inner(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.abs %a : tensor<f32>
      return %0 : tensor<f32>
    }"""
    renamed = program.replace("@outer", "@around").replace("@inner", "@within")
    found = list(map(str, diff_artifacts(vt.serialize(program), vt.serialize(renamed))))
    assert sorted(found) == [
        'function attribute: @inner sym_name: "inner" -> "within"',
        'function attribute: @outer sym_name: "outer" -> "around"',
    ]


def test_many_elements_are_told_by_their_digest() -> None:
    def program(last: int) -> vt.Artifact:
        numbers = ", ".join(map(str, [*range(99), last]))
        constant = f"%0 = stablehlo.constant dense<[{numbers}]> : tensor<100xi32>"
        return vt.serialize(f"func.func @main() -> tensor<100xi32> {{ {constant} return %0 : tensor<100xi32> }}")

    (found,) = diff_artifacts(program(99), program(100))
    assert found.kind == "constant"
    for text in (found.before, found.after):
        assert text is not None
        assert text.startswith("tensor<100xi32>, 400 bytes, sha256 ")
    assert found.before != found.after


def test_arguments_of_blocks_are_compared() -> None:
    artifact = vt.serialize(PROGRAM)

    def changed(change: Callable[[list[BlockArgument]], list[BlockArgument]]) -> vt.Artifact:
        file = artifact.copy_of_file()
        loops = (each for each in walk(file.ir) if isinstance(each, Operation) and len(each.regions) == 2)
        block = next(loops).regions[0].blocks[0]
        block.arguments = change(list(block.arguments))
        return artifact.edited(file)

    def said(one: vt.Artifact, other: vt.Artifact) -> str:
        return str(diff_artifacts(one, other)[0])

    retyped = changed(lambda given: [given[0]._replace(type=given[1].type), given[1]])
    assert said(artifact, retyped) == "op: @main/6:stablehlo.while/0 argument 0: tensor<i32> -> tensor<4xf32>"
    more = changed(lambda given: [*given, given[0]])
    assert said(artifact, more) == "op: @main/6:stablehlo.while/0 argument 2: added tensor<i32>"
    assert said(more, artifact) == "op: @main/6:stablehlo.while/0 argument 2: removed tensor<i32>"
