"""jax.export files with other artifacts put in, read by jax's own reader and by ours."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
import pytest
from hypothesis import given, strategies as st
from jax._src import core, effects
from jax._src.export import serialization_generated
from jax._src.interpreters import mlir
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer, inspect_bytes
from vhlo_tools.cli.main import main
from vhlo_tools.files import decode_jax_export, read_bytes, read_signature
from vhlo_tools.files.jax_export import replace_modules
from vhlo_tools.files.mapping import join, view

FILES = sorted((*EXAMPLES.glob("jax_store/*.jax_export"), EXAMPLES / "symbolic_export.jax_export"))
FUTURE = b"from the future"
LOSS = EXAMPLES / "jax_store" / "loss.jax_export"
files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def replaced(data: bytes, modules: list[bytes]) -> bytes:
    return join(replace_modules(data, lambda number, _: [modules[number]]))


def modules_of(data: bytes) -> list[bytes]:
    return [bytes(level.module) for level in decode_jax_export(data).levels()]


@functools.cache
def seen_by_jax(data: bytes) -> list[dict[str, str]]:
    """Return what jax's generated reader finds, but for the artifacts, in the function and its derivatives."""
    levels = []
    exported: Any = jax.export.deserialize(bytearray(data))
    while exported is not None:
        fields = {name: str(getattr(exported, name)) for name in exported.__dataclass_fields__ if name != "_get_vjp"}
        module = fields.pop("mlir_module_serialized")
        assert module
        levels.append(fields)
        exported = exported.vjp() if exported.has_vjp() else None
    return levels


def modules_seen_by_jax(data: bytes) -> list[bytes]:
    modules = []
    exported: Any = jax.export.deserialize(bytearray(data))
    while exported is not None:
        modules.append(exported.mlir_module_serialized)
        exported = exported.vjp() if exported.has_vjp() else None
    return modules


@functools.cache
def newer_file() -> bytes:
    """Return a file with a derivative, as a jax writes it that has one field more than we know."""
    texts: list[int] = []

    def start(builder: Any) -> None:
        texts.append(builder.CreateString(FUTURE.decode()))
        builder.StartObject(40)

    def end(builder: Any) -> int:
        builder.PrependUOffsetTRelativeSlot(39, texts.pop(), 0)
        return int(builder.EndObject())

    exported = jax.export.export(jax.jit(lambda x: x * x), platforms=["cpu"])(np.ones(3, np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serialization_generated, "ExportedStart", start)
        patch.setattr(serialization_generated, "ExportedEnd", end)
        return bytes(exported.serialize(vjp_order=1))


def fields_of_the_future(data: bytes) -> list[bytes]:
    """Return the new field, of the function and of its derivative, as jax would read it."""
    found = []
    exported = serialization_generated.Exported.GetRootAsExported(data)
    while exported is not None:
        table = exported._tab
        found.append(table.String(table.Offset(4 + 2 * 39) + table.Pos))
        exported = exported.Vjp()
    return found


@files
def test_the_same_artifacts_make_the_same_file(path: Path) -> None:
    data = path.read_bytes()
    assert bytes(JaxContainer(data).with_artifacts(lambda artifact: artifact)) == data


# Of time jax takes what it wants the first time.
@given(st.sampled_from(FILES), st.lists(st.integers(0, 5000), min_size=3, max_size=3))
def test_artifacts_of_any_size(path: Path, sizes: list[int]) -> None:
    data = path.read_bytes()
    before = modules_of(data)
    wanted = [b"ML\xefR" + bytes([number + 1]) * size for number, size in enumerate(sizes)][: len(before)]
    after = replaced(data, wanted)
    assert modules_of(after) == modules_seen_by_jax(after) == wanted
    assert seen_by_jax(after) == seen_by_jax(data)
    # Nothing is left of what was there before.
    assert abs(len(after) - len(data) - sum(map(len, wanted)) + sum(map(len, before))) < 8 * len(wanted)
    assert replaced(after, before) == data


# Of time jax takes what it wants the first time.
@given(st.lists(st.integers(0, 5000), min_size=2, max_size=2))
def test_files_of_a_newer_jax(sizes: list[int]) -> None:
    data = newer_file()
    before = modules_of(data)
    assert fields_of_the_future(data) == [FUTURE] * 2
    wanted = [b"ML\xefR" + bytes([number + 1]) * size for number, size in enumerate(sizes)]
    after = replaced(data, wanted)
    assert fields_of_the_future(after) == [FUTURE] * 2
    assert modules_of(after) == modules_seen_by_jax(after) == wanted
    assert seen_by_jax(after) == seen_by_jax(data)
    grown = [len(new) for new, old in zip(wanted, before, strict=True) if len(new) > len(old)]
    # What grows is added at the end, aligned and with its size before it; anything else takes the old place.
    assert len(data) + sum(grown) <= len(after) <= len(data) + sum(each + 4 + 8 for each in grown) + 8
    again = replaced(after, before)
    assert (modules_of(again), fields_of_the_future(again)) == (before, [FUTURE] * 2)


def test_nothing_is_left_of_an_artifact_in_a_file_of_a_newer_jax() -> None:
    data = newer_file()
    before = modules_of(data)
    assert replaced(data, before) == data
    for wanted in ([b"ML\xefR"] * 2, [each + b"\1" for each in before]):
        after = replaced(data, wanted)
        for old in before:
            at = data.index(old)
            place = after[at : at + len(old)]
            assert place == (b"ML\xefR" if wanted[0] == b"ML\xefR" else b"").ljust(len(old), b"\0")


@files
def test_all_of_a_file_moves(path: Path) -> None:
    container = JaxContainer.open(path)
    oldest = max(artifact.requirements().downgradable_to for artifact in container.artifacts)
    for version in (oldest, vt.Version("1.13.0"), vt.resolve_target("current").version):
        moved = container.retargeted(version)
        data = bytes(moved)
        assert len(moved) == len(data)
        assert modules_seen_by_jax(data) == [bytes(artifact) for artifact in moved.artifacts]
        assert seen_by_jax(data) == seen_by_jax(path.read_bytes())
        assert {artifact.version for artifact in JaxContainer(data).artifacts} == {version}
        for before, after in zip(container.artifacts, JaxContainer(data).artifacts, strict=True):
            assert vt.diff(before, after, ignore=["version"]) == []


@files
def test_locations_are_stripped_everywhere(path: Path) -> None:
    stripped = JaxContainer.open(path).stripped()
    assert len(stripped) <= path.stat().st_size
    for before, after in zip(JaxContainer.open(path).artifacts, JaxContainer(bytes(stripped)).artifacts, strict=True):
        assert vt.strip(before) == after


def test_every_refusal_of_every_derivative() -> None:
    def gathered(x: Any, i: Any) -> Any:
        return jax.numpy.take_along_axis(x, i, 0).sum()

    arguments = (jax.ShapeDtypeStruct((3, 4), np.float32), jax.ShapeDtypeStruct((1, 4), np.int32))
    exported = jax.export.export(jax.jit(gathered), platforms=["cpu"])(*arguments)
    container = JaxContainer(bytes(exported.serialize(vjp_order=1)), name="gathered")
    with pytest.raises(vt.DowngradeError) as raised:
        container.retargeted(vt.Version("1.0.0"))
    assert "gathered cannot be written for 1.0.0" in raised.value.summary
    ops = [finding.op for finding in raised.value.findings]
    assert {"stablehlo.gather", "stablehlo.scatter"} <= set(ops)
    assert container.retargeted(vt.Version("1.1.0")).version == vt.Version("1.1.0")


def test_what_is_no_file_of_jax() -> None:
    for data in (b"", b"\0" * 64, (EXAMPLES / "convnet.bc").read_bytes()):
        with pytest.raises(vt.MalformedArtifactError):
            JaxContainer(data)


def test_a_file_holds_no_ordinary_bytecode() -> None:
    data = replaced(LOSS.read_bytes(), [(EXAMPLES / "convnet.bc").read_bytes()] * 3)
    with pytest.raises(vt.MalformedArtifactError, match="x is ordinary MLIR bytecode"):
        JaxContainer(data, name="x")


def test_how_functions_are_called() -> None:
    signature = read_signature(decode_jax_export((EXAMPLES / "jax_store" / "evaluate.jax_export").read_bytes()))
    assert signature.in_tree == (
        "(({'hidden': f32[6,4], 'output': f32[4]}, u32[2], [f32[8,6], f32[8]]), {'step': i32[], 'threshold': f32[]})"
    )
    assert signature.out_tree == "{'loss': f32[], 'within': i32[]}"
    assert [(each.path, each.main) for each in signature.arguments] == [
        ("args[0]['hidden']", 0),
        ("args[0]['output']", 1),
        ("args[1]", None),
        ("args[2][0]", 2),
        ("args[2][1]", 3),
        ("kwargs['step']", None),
        ("kwargs['threshold']", 4),
    ]
    described = inspect_bytes((EXAMPLES / "jax_store" / "sharded_predict.jax_export").read_bytes(), "x")
    assert [each["sharding"] for each in described["arguments"]] == [
        "P() over batch=2 in device memory",
        "P() over batch=2 in device memory",
        "P('batch') over batch=2 in device memory",
    ]
    assert (described["devices"], described["vjps"]) == (2, [])
    (first, second) = inspect_bytes(LOSS.read_bytes(), "x")["vjps"]
    assert (len(first["arguments"]), len(second["arguments"])) == (5, 9)
    assert first["artifact"]["kind"] == "portable-artifact"


class Ordered(effects.Effect):  # type: ignore[misc]  # jax is not looked into for its types
    """An effect that is not like any other, for jax knows them by their class."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


def function_with_an_effect() -> Any:
    for kinds in (effects.lowerable_effects, effects.ordered_effects):
        kinds.add_type(Ordered)
    primitive = core.Primitive("ordered")
    primitive.def_effectful_abstract_eval(lambda x: (x, {Ordered()}))

    def lower(context: Any, x: Any) -> list[Any]:
        context.set_tokens_out(mlir.TokenSet({Ordered(): context.tokens_in.get(Ordered())}))
        return [x]

    mlir.register_lowering(primitive, lower)
    return jax.jit(lambda unused, x: primitive.bind(x) + 1)


def test_tokens_and_platforms_shift_the_arguments_of_main() -> None:
    x = np.ones(3, np.float32)
    exported = jax.export.export(function_with_an_effect(), platforms=["cpu", "tpu"])(x, x)
    container = JaxContainer(bytes(exported.serialize()))
    signature = read_signature(container.export)
    (effect,) = container.export.ordered_effects
    assert effect.endswith("test_jax_container.Ordered")
    assert signature.main_arguments == ("platform index", f"token of {effect}", "args[1]")
    assert signature.main_results == (f"token of {effect}", "result")
    assert [each.main for each in signature.arguments] == [None, 2]
    main = next(each for each in container.artifacts[0].inventory().functions if each.name == "main")
    assert main.arguments == ("tensor<i32>", "!vhlo.token_v1", "tensor<3xf32>")
    assert main.results == ("!vhlo.token_v1", "tensor<3xf32>")
    moved = jax.export.deserialize(bytearray(bytes(container.retargeted(vt.Version("1.0.0")))))
    assert moved.ordered_effects == (Ordered(),)


def test_a_file_that_would_be_too_large(tmp_path: Path) -> None:
    """Nothing is read of what is only too large, so that a file of holes will do."""
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(5 << 30)
    holes = read_bytes(path)
    with pytest.raises(vt.InvalidProgramError, match="exceed the maximum size of a FlatBuffer: store"):
        replace_modules(LOSS.read_bytes(), lambda *_: [view(holes)])
    with pytest.raises(vt.InvalidProgramError, match="exceed the maximum size of a FlatBuffer: store"):
        replace_modules(LOSS.read_bytes(), lambda *_: [view(holes)[: 3 << 30]])


@files
def test_the_arguments_of_main_are_those_it_has(path: Path) -> None:
    container = JaxContainer.open(path)
    for level, artifact in zip(container.export.levels(), container.artifacts, strict=True):
        (main,) = [each for each in artifact.inventory().functions if each.name == "main"]
        signature = read_signature(level)
        assert len(signature.main_arguments) == len(main.arguments)
        assert len(signature.main_results) == len(main.results)
        for argument in signature.arguments:
            if argument.main is not None:
                assert signature.main_arguments[argument.main] == argument.path


def test_save_replaces_only_when_forced(tmp_path: Path) -> None:
    path = tmp_path / "saved.jax_export"
    path.write_bytes(b"precious")
    container = JaxContainer.open(EXAMPLES / "symbolic_export.jax_export")
    with pytest.raises(FileExistsError):
        container.save(path)
    assert path.read_bytes() == b"precious"
    container.save(path, force=True)
    assert path.read_bytes() == bytes(container)


def test_artifacts_keep_the_signature_that_the_file_around_them_states() -> None:
    container = JaxContainer.open(EXAMPLES / "jax_store" / "gelu.jax_export")
    program = """func.func @main(%a: tensor<4xf8E4M3>) -> tensor<4xf8E4M3> {
      %0 = stablehlo.add %a, %a : tensor<4xf8E4M3>
      return %0 : tensor<4xf8E4M3> }"""
    other = vt.serialize(program, "1.6.0", expand=True, allow_signature_change=True)
    with pytest.raises(vt.DowngradeError, match="must keep its signature, which the jax.export file") as refused:
        container.with_artifacts(lambda artifact: other)
    messages = [each.message for each in refused.value.findings]
    assert messages[0].startswith("argument 0 of @main takes ui8 in place of f8E4M3")
    assert messages[1].startswith("result 0 of @main is ui8 in place of f8E4M3")
    assert {each.level for each in refused.value.findings} == {"error"}
    assert "write the artifact alone" in str(refused.value)
    # Notes alone are no refusal.
    noted = container.with_artifacts(lambda artifact: artifact.with_findings(other.findings))
    assert noted.artifacts == container.artifacts


def test_no_file_is_written_that_jax_could_not_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = jax.ShapeDtypeStruct((4,), jax.numpy.float8_e4m3)
    source, output = tmp_path / "f8.jax_export", tmp_path / "old.jax_export"
    source.write_bytes(jax.export.export(jax.jit(lambda x: x + x))(shape).serialize())
    allowed = ["--target", "1.6.0", "--expand", "--allow-signature-change"]
    assert main(["retarget", str(source), *allowed, "-o", str(output)]) == 1
    assert "must keep its signature" in capsys.readouterr().err
    assert not output.exists()
    assert main(["serialize", str(source), *allowed, "-o", str(output)]) == 0
