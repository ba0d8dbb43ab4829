"""What an artifact requires, against what the library does at every version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.corpus import EXAMPLES, FEATURES, ROOT, example_programs, features_of_library, writable_versions
from support.walking import walk

import vhlo_tools as vt
from vhlo_tools.bindings import MLIRFailure, Provider, get_provider
from vhlo_tools.bindings.diagnostics import captured
from vhlo_tools.bytecode import Operation, encode
from vhlo_tools.bytecode.editing import Tables
from vhlo_tools.bytecode.entries import Entry
from vhlo_tools.compat import ExpansionPolicy, Requirements
from vhlo_tools.compat.uses import custom_call_notes
from vhlo_tools.findings import NEWER_THAN_DATA
from vhlo_tools.program import load_program
from vhlo_tools.spec import Feature, newest_version

DATA_END = f"the data of vhlo_tools end at {newest_version()}"
COMPARISON = """func.func @main(%a: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.compare LT, %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}"""
PROGRAMS = [*example_programs(), *(FEATURES / f"{feature.id}.mlir" for feature in features_of_library())]
EXPANDED = [
    feature
    for feature in features_of_library()
    if any(each.always and each.effect == "exact" for each in feature.expansions)
]


def writes(provider: Provider, path: Path, version: vt.Version, passes: str | None = None) -> bool:
    """Tell whether the library alone writes the program for `version`."""
    module = load_program(path).load()
    with captured(module.context):
        try:
            if passes is not None:
                provider.run_passes(module, passes, verify=True)
            provider.serialize(provider.as_module(module), version, allow_other_dialects=True)
        except MLIRFailure:
            return False
    return True


def requirements_of(program: str | Path, target: str | vt.Version | None = None) -> Requirements:
    """Return the requirements of a program, by default at the newest version that the library and the data have."""
    target = target or min(get_provider().library.current, newest_version())
    return vt.serialize(program, target, allow_other_dialects=True, name="program.mlir").requirements()


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.name)
def test_what_stands_in_the_way_is_what_the_library_refuses(path: Path, provider: Provider) -> None:
    requirements = requirements_of(path)
    written = {version: writes(provider, path, version) for version in writable_versions()}
    for version, done in written.items():
        errors = [finding for finding in requirements.findings(version) if finding.level == "error"]
        assert bool(errors) != done, (version, errors)
    assert requirements.downgradable_to == min(version for version, done in written.items() if done)


@pytest.mark.parametrize("feature", features_of_library(), ids=lambda feature: feature.id)
def test_every_feature_is_found_and_never_for_what_is_older(feature: Feature) -> None:
    requirements = requirements_of(FEATURES / f"{feature.id}.mlir", str(feature.introduced))
    assert requirements.readable_since == feature.introduced
    assert (feature.id, feature.introduced) in [(each.id, each.introduced) for each in requirements.features]
    before = [version for version in writable_versions() if version < feature.introduced][-1]
    (refused, *_) = [each for each in requirements.reader_findings(before) if each.feature == feature.id]
    assert (refused.kind, refused.introduced) == (feature.kind, feature.introduced)
    assert feature.title in refused.message
    assert requirements.reader_findings(feature.introduced) == []
    assert requirements.contradiction is None


@pytest.mark.parametrize("feature", EXPANDED, ids=lambda feature: feature.id)
def test_expansions_reach_what_is_promised(feature: Feature) -> None:
    path = FEATURES / f"{feature.id}.mlir"
    reached = requirements_of(path).expandable_to
    assert reached < feature.introduced
    assert vt.serialize(path, reached, expand=True).requirements().downgradable_to <= reached


@pytest.mark.sample(8)
@pytest.mark.parametrize("feature", features_of_library(), ids=lambda feature: feature.id)
def test_what_is_promised_holds_where_expansions_have_limits(feature: Feature) -> None:
    path = ROOT / "tests" / "programs" / "expansion" / f"{feature.id}.mlir"
    expansion = feature.expansion("exact")
    if expansion is None:
        assert requirements_of(FEATURES / path.name).expandable_to >= feature.introduced
        return
    reached = requirements_of(path).expandable_to
    assert vt.serialize(path, reached, expand=True).version == reached
    # What has limits is not promised, but applies to this program.
    assert reached == vt.Version("0.9.0") if expansion.always else reached >= feature.introduced
    assert not [each for each in vt.check(path, "0.9.0", expand=True) if each.level == "error"]


def test_what_the_tables_say_needs_no_look_at_the_program() -> None:
    for program, since, down in (("saxpy.mlir", "0.15.0", "0.9.0"), ("saxpy.mlir", "0.9.0", "0.9.0")):
        artifact = vt.serialize(EXAMPLES / program, since)
        requirements = artifact.requirements()
        assert (str(requirements.readable_since), str(requirements.downgradable_to)) == (since, down)
        assert "_program" not in artifact.file.__dict__
    # What a convolution may not mix before 1.20.0 is not in the tables.
    artifact = vt.serialize(
        """func.func @main(%a: tensor<1x8x8x2xf32>, %k: tensor<3x3x2x4xf32>) -> tensor<1x6x6x4xf32> {
          %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
            {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x6x6x4xf32>
          return %0 : tensor<1x6x6x4xf32>
        }""",
        "1.0.0",
    )
    assert artifact.requirements().findings(vt.Version("1.0.0")) == []
    assert "_program" not in artifact.file.__dict__


EIGHT = """
func.func @main(%a: tensor<4xf32>, %c: tensor<4x4xf32>, %i: tensor<4xi32>) -> tensor<4xf32> {
  %0 = stablehlo.tan %a : tensor<4xf32> loc("model.py":1:1)
  %1 = "stablehlo.tanh"(%a) {
    result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>
  } : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":2:1)
  %2 = "stablehlo.exponential"(%a) {
    result_accuracy = #stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<HIGHEST>>
  } : (tensor<4xf32>) -> tensor<4xf32> loc("block"("model.py":3:1))
  %3 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xf8E3M4> loc(callsite("model.py":4:1 at "train.py":9:1))
  %4 = stablehlo.convert %i : (tensor<4xi32>) -> tensor<4xi2> loc(fused["model.py":5:1, "other.py":1:1])
  %5 = stablehlo.dot_general %c, %c, contracting_dims = [1] x [0], algorithm = <
    lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1,
    rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false
  > : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("model.py":6:1)
  %6 = stablehlo.custom_call @f(%a) {api_version = 4 : i32, backend_config = {x = 1 : i64}}
    : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":7:1)
  %7 = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<[[0]]> : tensor<1x1xi64>}
    : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":8:1)
  return %a : tensor<4xf32>
}
"""


def test_eight_blockers_on_eight_lines_are_all_found() -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(EIGHT, "0.9.0", name="eight.mlir")
    lines: dict[str, set[str]] = {}
    for finding in refused.value.findings:
        lines.setdefault(f"{finding.feature} {finding.introduced}", set()).add(str(finding.location))
    assert lines == {
        "tan 1.4.0": {"model.py:1:1"},
        "result_accuracy 1.10.0": {"model.py:2:1"},
        # What the result accuracy of tanh is made of came a version before tanh had one.
        "exponential_result_accuracy 1.9.0": {"model.py:3:1"},
        "f8E4M3_f8E3M4 1.7.0": {"model.py:4:1"},
        "i2 1.2.0": {"model.py:5:1"},
        "dot_algorithm 1.6.0": {"model.py:6:1"},
        "custom_call_dictionary_backend_config 1.3.0": {"model.py:7:1"},
        "collective_broadcast 0.16.0": {"model.py:8:1"},
    }
    assert all(f.function == "main" and f.path and f.remedy for f in refused.value.findings)


def test_places_inside_of_regions_and_private_functions() -> None:
    program = """
    func.func private @helper(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.tan %a : tensor<4xf32> loc(unknown)
      return %0 : tensor<4xf32> loc(unknown)
    } loc(unknown)
    func.func @main(%a: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = func.call @helper(%a) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":42:1)
        %2 = stablehlo.tan %1 : tensor<4xf32> loc("model.py":43:1)
        stablehlo.return %2 : tensor<4xf32>
      }, { stablehlo.return %a : tensor<4xf32> }) : (tensor<i1>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    helper, main = requirements_of(program).findings(vt.Version("1.0.0"))
    assert (helper.function, helper.path) == ("helper", "@helper/0:stablehlo.tan")
    assert (str(helper.location), str(main.location)) == ("model.py:42:1", "model.py:43:1")
    assert "in @helper, called here," in helper.message
    assert main.path == "@main/0:stablehlo.if/0/1:stablehlo.tan"


def test_an_attribute_named_like_that_of_a_call_is_none() -> None:
    program = """
    func.func private @helper(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.tan %a : tensor<4xf32> loc(unknown)
      return %0 : tensor<4xf32> loc(unknown)
    } loc(unknown)
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.negate %a {callee = "helper"} : tensor<4xf32> loc("model.py":41:1)
      %1 = func.call @helper(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":42:1)
      return %1 : tensor<4xf32>
    }"""
    (finding,) = requirements_of(program).findings(vt.Version("1.0.0"))
    assert (finding.function, str(finding.location)) == ("helper", "model.py:42:1")


def test_the_same_on_one_line_is_counted() -> None:
    line = '%{} = stablehlo.tan %a : tensor<4xf32> loc("model.py":42:1)'
    lines = "\n".join(line.format(number) for number in range(7))
    program = f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{ {lines} return %a : tensor<4xf32> }}"
    (finding,) = requirements_of(program).findings(vt.Version("1.0.0"))
    assert (finding.count, finding.path) == (7, "@main/0:stablehlo.tan")
    assert [(each.id, each.count) for each in requirements_of(program, "1.4.0").features] == [("tan", 7)]


def test_what_is_written_in_another_way_unasked_is_no_finding_and_raises_readable_since() -> None:
    program = """
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> loc("m.py":1:2 to :8) }
    """
    try:
        requirements = requirements_of(program)
    except vt.InvalidProgramError:
        pytest.fail("ranges are written since 1.9.0, and read by every supported library")
    assert (str(requirements.readable_since), str(requirements.downgradable_to)) == ("1.9.0", "0.9.0")
    assert requirements.findings(vt.Version("1.0.0")) == requirements.findings(vt.Version("1.9.0")) == []
    # Nobody does that for who reads the bytes as they are.
    (finding,) = requirements.reader_findings(vt.Version("1.0.0"))
    assert (finding.level, finding.feature, str(finding.location)) == ("error", "range_locations", "m.py:1:2")


def test_errors_come_before_warnings_wherever_they_stand() -> None:
    program = """
    func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = arith.constant 1 : i32
      %1 = stablehlo.tan %a : tensor<4xf32> loc("m.py":2:2)
      return %1 : tensor<4xf32>
    }"""
    found = requirements_of(program).findings(vt.Version("1.0.0"))
    assert [(each.level, each.feature) for each in found] == [("error", "tan"), ("warning", "mixed_dialects")]


def test_types_that_readers_dropped_again_are_withdrawn_where_ops_give_them() -> None:
    artifact = vt.serialize("func.func @main(%a: tensor<f32>) { %0 = stablehlo.abs %a : tensor<f32> return }", "0.9.0")

    def withdrawn(*, in_result: bool) -> list[set[str]]:
        file = artifact.copy_of_file()
        unranked = Tables(file).structure("type", {"type": "unranked_tensor_v1", "element": {"type": "f32_v1"}})
        (op,) = (each for each in walk(file.ir) if isinstance(each, Operation) and each.results)
        if in_result:
            op.results = (unranked,)
        requirements = artifact.edited(file).requirements()
        found = (requirements.reader_findings(vt.Version(reader)) for reader in ("0.18.0", "0.18.9", "0.19.0", "1.0.0"))
        return [{each.feature for each in findings} for findings in found]

    assert withdrawn(in_result=False) == [set()] * 4
    assert withdrawn(in_result=True) == [set(), set(), *[{"withdrawn_unranked_tensor_v1"}] * 2]


def test_integer_attributes_of_two_bits_end_every_reader() -> None:
    artifact = vt.serialize("func.func @main() { return }", "1.9.0")
    file = artifact.copy_of_file()
    assert artifact.requirements().reader_findings(vt.Version("1.9.0")) == []
    tables = Tables(file)
    tables.vhlo("integer_v1", tables.structure("type", {"type": "i2_v1"}), 1)
    (found,) = artifact.edited(file).requirements().reader_findings(vt.Version("1.9.0"))
    assert (found.feature, found.level) == ("i2_attribute", "error")


def test_a_header_that_the_contents_contradict() -> None:
    data = bytes(vt.serialize(FEATURES / "tan.mlir", "1.4.0")).replace(b"StableHLO_v1.4.0", b"StableHLO_v1.2.0")
    artifact = vt.open_artifact(data)
    contradiction = artifact.requirements().contradiction
    assert contradiction is not None
    assert (contradiction.level, contradiction.feature) == ("warning", "header_version")
    assert "the header specifies StableHLO 1.2.0, but only 1.4.0 or later can read it" in contradiction.message
    assert "header_version" in {finding.feature for finding in vt.check(artifact, "1.4.0")}


def test_the_future_is_newer_than_all_that_is_known() -> None:
    data = bytes(vt.serialize(FEATURES / "tan.mlir", "1.4.0"))
    artifact = vt.open_artifact(data.replace(b"StableHLO_v1.4.0", b"StableHLO_v9.4.0").replace(b"tan_v1", b"tan_v9"))
    requirements = artifact.requirements()
    assert str(requirements.readable_since) == str(requirements.downgradable_to) == "9.4.0"
    newest = newest_version()
    for found in (requirements.findings(newest), requirements.reader_findings(newest)):
        assert [(each.feature, each.level) for each in found] == [
            ("vhlo.tan_v9", "error"),
            (NEWER_THAN_DATA, "warning"),
        ]
        unknown, newer = found
        # No version is guessed.
        assert unknown.unknown
        assert newer.unknown
        assert unknown.introduced is newer.introduced is None
        assert unknown.message == f"vhlo.tan_v9 is unknown: the file was written for StableHLO 9.4.0, and {DATA_END}"
        assert str(unknown.remedy).startswith("update vhlo_tools; or add StableHLO 9.4.0 to the data with `vhlo spec")
    assert requirements.findings(vt.Version("9.4.0")) == requirements.reader_findings(vt.Version("9.5.0")) == []
    assert [(each.name, each.kind, each.count) for each in requirements.unknown] == [("vhlo.tan_v9", "op", 1)]
    assert requirements.features == ()
    assert requirements.is_newer_than_data


def test_what_no_version_has_in_a_file_of_a_known_one() -> None:
    data = bytes(vt.serialize(FEATURES / "tan.mlir", "1.4.0"))
    requirements = vt.open_artifact(data.replace(b"tan_v1", b"tan_v9")).requirements()
    (unknown,) = requirements.findings(newest_version())
    assert [unknown] == [replace(each, target=newest_version()) for each in requirements.findings(vt.Version("1.4.0"))]
    assert unknown.message == f"vhlo.tan_v9 is unknown: the file was written for StableHLO 1.4.0, and {DATA_END}"
    assert "damaged, or of a fork" in str(unknown.remedy)
    assert not requirements.is_newer_than_data


def test_types_attributes_and_cases_that_nobody_knows_are_named_by_number() -> None:
    artifact = vt.serialize(FEATURES / "tan.mlir", "current")
    file = artifact.copy_of_file()
    vhlo = next(index for index in range(len(file.dialects.names)) if file.dialect(index) == "vhlo")
    for table, code in ((file.types, 99), (file.attributes, 98)):
        table.append(Entry(vhlo, True, bytes([code << 1 | 1])))
    unknown = artifact.edited(file).requirements().unknown
    assert [(each.name, each.kind) for each in unknown] == [
        ("vhlo attribute code 98", "attribute"),
        ("vhlo type code 99", "type"),
    ]


def test_a_case_of_an_enum_as_old_as_vhlo_that_nobody_knows() -> None:
    """The first bytes of such an attribute are those of the oldest files."""
    artifact = vt.serialize(COMPARISON, "1.0.0")
    file = artifact.copy_of_file()
    (index,) = file.called("attribute", "vhlo", "comparison_direction_v1")
    entry = file.attributes[index]
    file.attributes[index] = entry._replace(data=bytes(entry.data)[:1] + bytes([63 << 1 | 1]))
    requirements = artifact.edited(file).requirements()
    assert [each.name for each in requirements.unknown] == ["comparison_direction_v1.63"]
    assert [each.feature for each in requirements.findings(vt.Version("1.0.0"))] == ["comparison_direction_v1.63"]


def test_inside_of_a_per_axis_quantized_type_the_library_does_not_look(provider: Provider, tmp_path: Path) -> None:
    program = tmp_path / "per_axis.mlir"
    kind = "tensor<2x!quant.uniform<i2:f32:0, {1.0, 2.0}>>"
    program.write_text(f"func.func @main(%a: {kind}) -> {kind} {{ return %a : {kind} }}")
    old = vt.Version("1.0.0")
    assert writes(provider, program, old)
    requirements = requirements_of(program)
    assert (str(requirements.readable_since), str(requirements.downgradable_to)) == ("1.2.0", "0.18.0")
    assert {(f.level, f.feature) for f in requirements.findings(old)} == {("warning", "i2")}


def test_arguments_of_blocks_are_overlooked_too() -> None:
    program = """
    func.func @main(%a: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
      %0 = "stablehlo.reduce"(%a, %z) ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        stablehlo.return %y : tensor<f32>
      }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    artifact = vt.serialize(program, "1.0.0")
    newer = vt.serialize("func.func @main(%a: tensor<f8E3M4>) { return }", "1.7.0")
    types = [newer.file.decode("type", index) for index in range(len(newer.file.types))]
    (young,) = [value for value in types if value is not None and value.name == "f8E3M4_v1"]
    file = artifact.file
    file.types.append(file.encode("type", young))
    (reduce,) = [op for op in walk(file.ir) if isinstance(op, Operation) and op.regions and len(op.operands) == 2]
    block = reduce.regions[0].blocks[0]
    block.arguments[0] = block.arguments[0]._replace(type=len(file.types) - 1)
    requirements = vt.open_artifact(encode(file)).requirements()
    assert (str(requirements.readable_since), str(requirements.downgradable_to)) == ("1.7.0", "0.9.0")
    (finding,) = requirements.findings(vt.Version("1.0.0"))
    assert (finding.level, finding.feature, finding.op) == ("warning", "f8E4M3_f8E3M4", "stablehlo.reduce")


def test_remedies_name_the_expansions_that_were_not_tried() -> None:
    old = vt.Version("1.0.0")
    for name, tried, told, untold in (
        ("tan", ExpansionPolicy(), "rewrite it with --expand;", "which gives up"),
        ("tan", ExpansionPolicy(exact=frozenset({"tan"})), "choose 1.4.0", "rewrite it"),
        ("result_accuracy", ExpansionPolicy(), "with --allow-relaxed result_accuracy, which gives up the", "--expand"),
        ("i2", ExpansionPolicy(), "add --allow-signature-change", "which gives up"),
        (
            "i2",
            ExpansionPolicy(exact=frozenset({"tan"}), signature_change=True),
            "rewrite it with --expand;",
            "--allow-signature-change",
        ),
    ):
        (finding, *_) = requirements_of(FEATURES / f"{name}.mlir").findings(old, tried)
        assert told in str(finding.remedy), (name, tried, finding.remedy)
        assert untold not in str(finding.remedy), (name, tried, finding.remedy)
        # An error says nothing of what can still be written.
        assert "still" not in finding.message, finding
    # A feature is not expanded for the version that has it.
    tan = ExpansionPolicy(exact=frozenset({"tan"}))
    assert tan.allowed(vt.Version("1.4.0")) == []
    assert [feature.id for feature, _ in tan.allowed(vt.Version("1.3.0"))] == ["tan"]


def test_warnings_say_what_can_still_be_written() -> None:
    kind = "tensor<2x!quant.uniform<i2:f32:0, {1.0, 2.0}>>"
    types = requirements_of(f"func.func @main(%a: {kind}) {{ return }}").findings(vt.Version("1.0.0"))
    mixed = requirements_of("func.func @main() { %0 = arith.constant 1 : i32 return }").findings(vt.Version("1.0.0"))
    said = "it can still be written, but readers older than 1.2.0 reject the file"
    assert [(each.feature, said in each.message) for each in (*types, *mixed)] == [
        ("i2", True),
        ("mixed_dialects", False),
    ]


def test_operands_are_looked_at_in_each_op() -> None:
    reduces = "\n".join(
        f"""%{at} = "stablehlo.reduce"(%a{at}, %z) ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          stablehlo.return %y : tensor<f32> }}) {{dimensions = array<i64: 0>}}
          : (tensor<4x{element}>, tensor<f32>) -> tensor<f32> loc("m.py":{at}:1)"""
        for at, element in enumerate(("f32", "bf16", "f32"))
    )
    takes = "%a0: tensor<4xf32>, %a1: tensor<4xbf16>, %a2: tensor<4xf32>, %z: tensor<f32>"
    found = requirements_of(f"func.func @main({takes}) {{ {reduces} return }}").findings(vt.Version("0.16.0"))
    assert [(each.feature, str(each.location)) for each in found] == [("mixed_precision_reduction", "m.py:1:1")]


def test_custom_calls_are_described() -> None:
    artifact = vt.serialize(
        """func.func @main(%a: tensor<4xf32>) {
          %0 = stablehlo.custom_call @f(%a) {api_version = 4 : i32, backend_config = {x = 1 : i64}}
            : (tensor<4xf32>) -> tensor<4xf32>
          %1 = stablehlo.custom_call @g(%a) {backend_config = "ab"} : (tensor<4xf32>) -> tensor<4xf32>
          return }"""
    )
    assert [each.message for each in custom_call_notes(artifact.file, "a")] == [
        "a custom call of f (API_VERSION_TYPED_FFI) with a dictionary of 1 as backend_config",
        "a custom call of g (API_VERSION_ORIGINAL) with 2 bytes as backend_config",
    ]
    # An API version that is text of MLIR, which is not read.
    file = artifact.copy_of_file()
    apis = [file.decode("attribute", index) for index in range(len(file.attributes))]
    index = next(index for index, each in enumerate(apis) if each is not None and each.name == "api_version_v1")
    file.attributes[index] = file.attributes[index]._replace(custom=False, data=b"api\0")
    first, _ = custom_call_notes(file, "a")
    assert first.message.startswith("a custom call of f (None) with")
