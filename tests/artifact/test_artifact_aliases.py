"""Aliases in the bytes of artifacts: what we read is what was written, and what we write is what the library reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.alias_programs import attribute_text, configs, declaration_text, random_config
from support.corpus import EXAMPLES, example_programs
from support.corpus_files import corpus_files, corpus_index, read_corpus_file
from support.vhlo_library import VERSIONS

import vhlo_tools as vt
from vhlo_tools import api
from vhlo_tools.aliasing import (
    ARGUMENT_ATTRIBUTES,
    Alias,
    AliasAttributes,
    AliasConfig,
    Array,
    Donor,
    Form,
    Plain,
    Signature,
    Tuple,
    encode_aliases,
    fits,
)
from vhlo_tools.artifact import Artifact
from vhlo_tools.artifact.aliases import read_aliases
from vhlo_tools.version import Version

FORMS: tuple[Form, ...] = ("argument", "module")


def whole_text(module: Any) -> str:
    return str(module.operation.get_asm(enable_debug_info=True))


def edited_by_bindings(artifact: Artifact, encoded: AliasAttributes) -> str:
    """Return what the library reads, with the attributes replaced by hand: all else must stay as it is."""
    module = vt.deserialize(artifact)
    ir, context = _ir(), module.context
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    main = next((op for op in functions if op.attributes["sym_name"].value == "main"), functions[0])
    with context:
        held = main.attributes["arg_attrs"] if "arg_attrs" in main.attributes else [{} for _ in encoded.arguments]
        changed = [{**_kept(each), **_parsed(new, "i32")} for each, new in zip(held, encoded.arguments, strict=True)]
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(each) for each in changed])
        attributes = module.operation.attributes
        if "mhlo.input_output_alias" in attributes and (
            encoded.module or str(attributes["mhlo.input_output_alias"]) != "[]"
        ):
            del attributes["mhlo.input_output_alias"]
        for name, value in _parsed(encoded.module, "i64").items():
            attributes[name] = value
        return whole_text(module)


def _ir() -> Any:
    from vhlo_tools.bindings import get_provider

    return get_provider().ir


def _kept(held: Any) -> dict[str, Any]:
    names = [each if isinstance(each, str) else each.name for each in held]
    return {name: held[name] for name in names if name not in ARGUMENT_ATTRIBUTES}


def _parsed(attributes: Mapping[str, Plain], integers: str) -> dict[str, Any]:
    return {name: _ir().Attribute.parse(attribute_text(each, integers)) for name, each in attributes.items()}


def check_edits(artifact: Artifact, random: Random) -> int:
    """Edit an artifact in every way, and return how often."""
    declared = artifact.declared_aliases().declared
    config = random_config(random, declared.signature)
    edits = 0
    for each in (config, AliasConfig(declared.signature)):
        for form in FORMS:
            if fits(each, form):
                written = Artifact(bytes(artifact.with_aliases(each, form)))
                assert written.aliases() == each
                assert written.declared_aliases().calls == artifact.declared_aliases().calls
                assert written.version == artifact.version
                assert whole_text(vt.deserialize(written)) == edited_by_bindings(artifact, encode_aliases(each, form))
                edits += 1
    return edits


@pytest.mark.long
@settings(max_examples=60)
@given(configs(), st.sampled_from(VERSIONS), st.sampled_from(FORMS))
def test_what_is_written_is_what_the_library_writes(config: AliasConfig, version: Version, form: Form) -> None:
    if not fits(config, form):
        form = "module"
    if not fits(config, form):
        config = AliasConfig(config.signature, config.aliases)
    program = declaration_text(config.signature, encode_aliases(config, form))
    artifact = vt.serialize(program, version)
    assert artifact.aliases() == config
    bare = vt.serialize(declaration_text(config.signature, encode_aliases(AliasConfig(config.signature))), version)
    assert not bare.aliases()
    written = Artifact(bytes(bare.with_aliases(config, form)))
    assert vt.diff(artifact, written) == []
    assert str(vt.deserialize(written)) == str(vt.deserialize(artifact))
    cleared = Artifact(bytes(written.with_aliases(AliasConfig(config.signature))))
    assert str(vt.deserialize(cleared)) == str(vt.deserialize(bare))
    assert vt.diff(cleared, bare) == []


@pytest.mark.sample(4)
@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_programs_with_everything_at_every_version(version: Version) -> None:
    """Locations, calls, attributes of other kinds on arguments: all of that stays."""
    for path in (EXAMPLES / "transformer_step.mlir", EXAMPLES / "saxpy.mlir"):
        try:
            artifact = vt.serialize(path, version)
        except vt.DowngradeError:
            continue
        assert check_edits(artifact, Random(str(version))) >= 3


@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_examples(path: Path) -> None:
    assert check_edits(vt.serialize(path, allow_other_dialects=True), Random(path.name)) >= 3


SAMPLE = sorted(entry.file for entry in corpus_index() if not entry.ordinary and entry.read_by_newest)[::80]


@pytest.mark.parametrize("name", SAMPLE)
def test_artifacts_of_the_archive(name: str) -> None:
    artifact = Artifact(read_corpus_file(name))
    try:
        vt.deserialize(artifact)
    except vt.MalformedArtifactError:
        # Newer than the installed library, or of a dialect that nobody knows.
        return
    if artifact.declared_aliases().function is not None:
        check_edits(artifact, Random(name))


#: What the programs of the archive say, whoever wrote them and at whatever version.
ARCHIVED: Mapping[str, tuple[tuple[Alias, ...], tuple[Donor, ...], list[tuple[Alias, ...]]]] = {
    "aliasing_output": ((Alias((0,), 1), Alias((1,), 0)), (Donor(2),), []),
    "module_input_output_alias": ((Alias((0,), 0),), (), []),
    "module_input_output_alias_arrays": ((Alias((0,), 0, (), "must-alias"), Alias((1,), 1, (1, 2))), (), []),
    "custom_call_tuple_alias": ((), (), [(Alias((1,), 0, (0,), "must-alias"),)]),
    "custom_call_layouts_aliases": (*((), ()), [(Alias((0,), 0, (), "must-alias"), Alias((1,), 1, (), "must-alias"))]),
    "jax_donated": ((Alias((0,), 0), Alias((1,), 1)), (), []),
}


@pytest.mark.whole_data("the corpus has ops that releases since wrote")
def test_aliases_of_the_archive() -> None:
    seen = set()
    for name, data in corpus_files(ordinary=False):
        program = Path(name).name.partition("@")[0]
        if program in ARCHIVED:
            said = Artifact(data).declared_aliases()
            found = (tuple(sorted(said.declared.aliases)), said.declared.donors, [call.aliases for call in said.calls])
            assert found == ARCHIVED[program], name
            assert not said.declared.problems
            seen.add(program)
    assert seen == set(ARCHIVED)


def test_what_is_kept_of_a_program() -> None:
    step = vt.serialize(EXAMPLES / "transformer_step.mlir")
    aliases = step.aliases()
    assert aliases.aliases == tuple(Alias((number,), number) for number in range(25))
    moved = step.with_aliases(aliases, "module")
    assert moved.declared_aliases().declared.form == "module"
    assert "tf.aliasing_output" not in str(vt.deserialize(moved))
    # Nor are the numbers of outputs left in the tables.
    before, after = (each.inventory().attributes["vhlo.integer_v1"] for each in (step, moved))
    assert before - after == len(aliases.aliases)
    # A form that a program has stays, until another is asked for.
    assert moved.with_aliases(aliases).declared_aliases().declared.form == "module"
    back = moved.with_aliases(aliases, "argument")
    assert vt.diff(back, step, locations=True) == []
    assert {each.kind for each in vt.diff(moved, step)} == {"alias"}


def test_names_and_places() -> None:
    declared = vt.serialize(EXAMPLES / "transformer_step.mlir").declared_aliases()
    assert declared.function == "main"
    assert declared.parameters[0].name == "params['down']"
    assert [each.name for each in declared.results[:2]] == ["result[0]['down']", "result[0]['embedding']"]
    placed = vt.serialize('func.func @main(%a: tensor<f32> loc("model.py":3:7)) { return }').declared_aliases()
    assert str(placed.parameters[0].location) == "model.py:3:7"


CALL = """
func.func @main(%a: tensor<4xf32>, %b: tensor<8xf32>) -> tensor<4xf32> {
  %true = stablehlo.constant dense<true> : tensor<i1>
  %0 = "stablehlo.if"(%true) ({
    %1:2 = stablehlo.custom_call @fill(%a, %b) {output_operand_aliases = [
      #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>]}
      : (tensor<4xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<4xf32>)
    stablehlo.return %1#1 : tensor<4xf32>
  }, {
    %1 = stablehlo.custom_call @none(%a) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.mark.parametrize("version", ["0.9.0", "current"])
def test_aliases_of_calls(version: str) -> None:
    (call,) = vt.serialize(CALL, version).declared_aliases().calls
    assert (call.path, call.target) == ("@main/1:stablehlo.if/0/0:stablehlo.custom_call", "fill")
    assert call.location is not None
    assert call.location.line == 5
    assert call.config() == AliasConfig(
        Signature((Array("f32", (4,)), Array("f32", (8,))), Tuple((Array("f32", (8,)), Array("f32", (4,))))),
        [Alias((1,), 0, (), "must-alias")],
    )


def test_shapes() -> None:
    program = """func.func private @main(
      tensor<?x4xi1>, tensor<?x4xbf16, #stablehlo.bounds<8, ?>>, tuple<tensor<ui4>, tuple<!stablehlo.token>>,
      tensor<2xcomplex<f32>>, tensor<4x!quant.uniform<i8:f32, 1.0>>)"""
    for version in ("0.9.0", "current"):
        signature = vt.serialize(program, version).aliases().signature
        assert [str(each) for each in signature.parameters[:4]] == [
            *("pred[?,4]", "bf16[<=8,4]", "(u4[], (token[]))", "c64[2]")
        ]
        assert signature.result == Tuple(())
        assert isinstance(signature.parameters[4], Array)
        assert signature.parameters[4].bytes is None


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("tf.aliasing_output = 4 : i32", "there is no output {4}"),
        ("tf.aliasing_output = 1 : i32", "output {1} is s32[4] of 16 bytes; parameter 0 at {} is f32[8] of 32"),
        ("tf.aliasing_output = true", "there is no output {-1}"),
        ("tf.aliasing_output = 255 : i8", "there is no output {-1}"),
        ("tf.aliasing_output = -1 : i64", "there is no output {-1}"),
        ("tf.aliasing_output = 0 : i32, jax.buffer_donor = false", "parameter 0 at {} is a donor and has an alias"),
    ],
)
@pytest.mark.parametrize("version", ["0.9.0", "current"])
def test_what_xla_would_refuse(argument: str, message: str, version: str) -> None:
    program = f"func.func private @main(tensor<8xf32> {{{argument}}}) -> (tensor<8xf32>, tensor<4xi32>)"
    artifact = vt.serialize(program, version, alias_lint=False)
    with pytest.raises(vt.AliasError) as refused:
        artifact.aliases()
    assert message in str(refused.value)
    # It can be set right all the same.
    signature = artifact.declared_aliases().declared.signature
    assert artifact.with_aliases(AliasConfig(signature, donors=[Donor(0)])).aliases().donors == (Donor(0),)


def test_configs_of_other_programs() -> None:
    artifact = vt.serialize("func.func private @main(tensor<4xf32>) -> tensor<4xf32>")
    with pytest.raises(vt.AliasError, match="the aliases are for the signature"):
        artifact.with_aliases(AliasConfig(Signature((), Tuple(()))))
    none = vt.serialize("module {}")
    assert not none.aliases()
    assert none.with_aliases(none.aliases()).aliases() == none.aliases()


def test_only_functions_and_main_are_entered() -> None:
    one = vt.serialize("func.func private @other(tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32>")
    assert one.declared_aliases().function == "other"
    two = vt.serialize("func.func private @f(tensor<4xf32>) func.func private @g(tensor<f32>)")
    assert two.declared_aliases().function is None


def test_constants_are_views() -> None:
    program = f"""func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<65536xf32>) {{
      %c = stablehlo.constant dense<"0x{bytes(range(256)).hex() * 1024}"> : tensor<65536xf32>
      return %a, %c : tensor<4xf32>, tensor<65536xf32>
    }}"""
    data = bytes(vt.serialize(program))
    artifact = Artifact(data)
    config = artifact.aliases()
    config.set_up_alias((0,), 0)
    written = artifact.with_aliases(config)
    largest = max(written.chunks, key=len)
    assert isinstance(largest, memoryview)
    assert len(largest) >= 4 * 65536
    assert largest.obj is data
    assert written.aliases() == config
    assert sum(map(len, written.chunks)) == len(bytes(written))


def test_nested_beyond_all_measure() -> None:
    """Shared values unfold to more than there is memory for: that is said, and not tried."""
    file = vt.serialize("func.func private @main(tuple<tensor<f32>, tensor<f32>>)").copy_of_file()
    table = [(index, file.decode("type", index)) for index in range(len(file.types))]
    pair = next(value for _, value in table if value is not None and value.name == "tuple_v1")
    at, function = next(each for each in table if each[1] is not None and each[1].name == "func_v1")
    assert function is not None
    inner = function.field("inputs")[0]
    for _ in range(40):
        file.types.append(file.encode("type", replace(pair, fields=((inner, inner),))))
        inner = len(file.types) - 1
    file.types[at] = file.encode("type", replace(function, fields=((inner,), ())))
    with pytest.raises(vt.MalformedArtifactError, match="expand to more than"):
        read_aliases(file)


def test_what_stands_on_other_functions_is_ignored() -> None:
    text = """
      func.func private @inner(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
        return %x : tensor<4xf32>
      }
      func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = func.call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }"""
    artifact = vt.serialize(text, "0.9.0")
    assert not artifact.aliases()
    (finding,) = artifact.alias_findings()
    assert (finding.feature, finding.level) == ("alias_ignored_attribute", "warning")
    assert "tf.aliasing_output of argument 0 of @inner is silently ignored: XLA only enters @main" in finding.message
    assert b"input_output_alias" not in api.program_of(artifact, "hlo-text")
