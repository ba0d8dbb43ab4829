"""Serialization, deserialization and retargeting against the library's own functions."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from support.corpus import (
    EXAMPLES,
    FEATURES,
    around,
    example_programs,
    features_of_library,
    some_versions,
    writable_versions,
)
from support.raw import RawLibrary

import vhlo_tools as vt
from vhlo_tools.artifact import inspect_bytes
from vhlo_tools.bindings import Provider, get_provider
from vhlo_tools.cli.main import main
from vhlo_tools.files import decode_jax_export
from vhlo_tools.spec import known_releases

pytestmark = pytest.mark.every_python

# Below this, locations are made plain for readers that do not know ranges, which the library does not do.
RANGES_SINCE = vt.Version("1.9.0")
MIXED_SINCE = vt.Version("1.11.0")


def raw_module(raw: RawLibrary, path: Path) -> Any:
    data = path.read_bytes()
    if path.suffix == ".jax_export":
        stored = vt.open_artifact(bytes(decode_jax_export(data).module))
        readable = min(stored.version, get_provider().library.current)
        return raw.deserialize(bytes(vt.retarget(stored, readable, engine="bytes")))
    return raw.parse(data.decode() if path.suffix == ".mlir" else data)


def without_sharding_rules(path: Path, folder: Path) -> Path:
    """Return a copy of a program without the rules of its custom calls."""
    text, number = re.subn(r", sdy\.sharding_rule = #sdy\.op_sharding_rule<[^>]*->[^>]*>", "", path.read_text())
    assert number
    (folder / path.name).write_text(text)
    return folder / path.name


@pytest.mark.sample(2)
@pytest.mark.parametrize("allow", [False, True], ids=["stablehlo", "other-dialects"])
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_every_example_at_every_version_is_what_the_library_makes(
    path: Path, allow: bool, raw: RawLibrary, tmp_path: Path
) -> None:
    reached = []
    if path.name == "custom_calls.mlir" and not allow:
        # A sharding rule means nothing on one device.
        allow, path = True, without_sharding_rules(path, tmp_path)
    # Shardings of several devices stay, but readers older than 1.11.0 know no other dialects.
    is_sharded = path.name.startswith("sharded_") and not allow
    for version in some_versions(path.name):
        expected = None
        if not is_sharded or version >= MIXED_SINCE:
            expected = raw.serialize(raw_module(raw, path), str(version), allow_other_dialects=allow or is_sharded)
        if expected is None:
            with pytest.raises((vt.DowngradeError, vt.UnsupportedFeatureError)):
                vt.serialize(path, version, allow_other_dialects=allow)
            continue
        reached.append(version)
        artifact = vt.serialize(path, version, allow_other_dialects=allow)
        if version >= RANGES_SINCE:
            assert bytes(artifact) == expected
        assert str(vt.deserialize(artifact)) == str(raw.deserialize(expected))
    assert reached


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", example_programs(), ids=lambda path: path.name)
def test_every_artifact_moves_to_every_version_as_the_library_would_move_it(path: Path, raw: RawLibrary) -> None:
    newest = vt.serialize(path, allow_other_dialects=True)
    for version in some_versions(path.name):
        expected = raw.serialize(raw.deserialize(bytes(newest)), str(version), allow_other_dialects=True)
        if expected is None:
            with pytest.raises(vt.DowngradeError):
                vt.retarget(newest, version)
            continue
        down = vt.retarget(newest, version)
        assert str(vt.deserialize(down)) == str(raw.deserialize(expected))
        up = vt.retarget(down, newest.version)
        assert (up.version, up.bytecode_version) == (newest.version, newest.bytecode_version)
        assert str(vt.deserialize(up)) == str(vt.deserialize(newest))


def with_locations(module: Any) -> str:
    text: str = module.operation.get_asm(enable_debug_info=True)
    return text


def test_range_locations_become_plain_ones_only_for_readers_that_do_not_know_them() -> None:
    program = """
    func.func @main(%a: tensor<4xf32> loc("arg.py":1:2 to :9)) -> tensor<4xf32> {
      %0 = stablehlo.abs %a : tensor<4xf32> loc(fused["m.py":4:3 to 5:9, callsite("n"("q.py":3:4 to :5) at "c.py":1:1)])
      return %0 : tensor<4xf32> loc("plain.py":6:1)
    }"""
    kept = with_locations(vt.deserialize(vt.serialize(program, "1.9.0")))
    assert all(place in kept for place in ('"arg.py":1:2 to :9', '"m.py":4:3 to 5:9', '"q.py":3:4 to :5'))
    plain = with_locations(vt.deserialize(vt.serialize(program, "1.8.0")))
    assert " to " not in plain
    for place in ('"arg.py":1:2', '"m.py":4:3', '"q.py":3:4', '"c.py":1:1', '"plain.py":6:1'):
        assert place in plain


@pytest.mark.parametrize("target", ["current", "0.9.0", "0.8.0", "1.0.0"])
def test_the_module_of_the_caller_stays_as_it_is(target: str, raw: RawLibrary) -> None:
    module = raw_module(raw, EXAMPLES / "transformer_step.mlir")
    before = with_locations(module)
    try:
        vt.serialize(module, target)
    except vt.VhloToolsError:
        assert target in ("0.9.0", "0.8.0", "1.0.0")
    assert with_locations(module) == before
    assert module.operation.verify()


def test_the_insertion_point_of_the_caller_stays_as_it_is(raw: RawLibrary) -> None:
    module = raw.parse("module {}")
    with raw.ir.InsertionPoint(module.body):
        vt.serialize(module)
    assert len(module.body.operations) == 0


def test_serialization_is_deterministic() -> None:
    path = EXAMPLES / "transformer_step.mlir"
    assert len({vt.serialize(path, "1.4.2") for _ in range(3)}) == 1


def test_the_version_is_written_as_asked() -> None:
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", "jaxlib==0.4.31")
    assert (artifact.producer, artifact.version) == ("StableHLO_v1.4.2", vt.Version("1.4.2"))


def test_aligned_data_is_written_as_the_library_writes_it(raw: RawLibrary) -> None:
    program = """
    func.func @main() -> tensor<4xf32> {
      %0 = arith.constant dense_resource<weights> : tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    {-# dialect_resources: { builtin: { weights: "0x40000000000000000000803f0000004000004040" } } #-}
    """
    # Versions of one, two and three more characters: the padding before the data differs.
    for target in ("1.9.0", "1.10.0", "1.10.10"):
        artifact = vt.serialize(program, target, allow_other_dialects=True)
        assert max(section.alignment for section in artifact.sections) == 64
        assert bytes(artifact) == raw.serialize(raw.parse(program), target, allow_other_dialects=True)


def test_other_dialects_for_readers_that_cannot_know_them_are_warned_of() -> None:
    path = EXAMPLES / "sharded_matmul.mlir"
    old = vt.serialize(path, "1.10.0", allow_other_dialects=True)
    assert {(f.level, f.feature, f.introduced) for f in old.findings} == {
        ("warning", "mixed_dialects", vt.Version("1.11.0"))
    }
    assert {f.op for f in old.findings} == {"sdy.mesh", "func.func", "sdy.sharding_constraint"}
    assert not vt.serialize(path, "1.11.0", allow_other_dialects=True).findings


def test_an_artifact_keeps_the_dialects_it_holds() -> None:
    mixed = vt.serialize(EXAMPLES / "sharded_matmul.mlir", allow_other_dialects=True)
    assert "sdy" in inspect_bytes(bytes(vt.retarget(mixed, "1.12.0")), "x")["dialects"]


@pytest.mark.long
def test_aliases_survive_every_version() -> None:
    path = EXAMPLES / "transformer_step.mlir"
    aliases = path.read_text().count("tf.aliasing_output")
    assert aliases == 25
    for version in writable_versions():
        if version >= vt.Version("1.1.0"):
            assert str(vt.deserialize(vt.serialize(path, version))).count("tf.aliasing_output") == aliases


@pytest.mark.sample(2)
@pytest.mark.parametrize("feature", features_of_library(), ids=lambda feature: feature.id)
def test_feature_programs_are_what_the_library_makes(feature: Any, raw: RawLibrary) -> None:
    path = FEATURES / f"{feature.id}.mlir"
    for version in some_versions(feature.id, *around(feature)):
        expected = raw.serialize(raw.parse(path.read_text()), str(version))
        if expected is None:
            with pytest.raises(vt.DowngradeError):
                vt.serialize(path, version)
        else:
            assert bytes(vt.serialize(path, version)) == expected or version < RANGES_SINCE
            assert str(vt.deserialize(vt.serialize(path, version))) == str(raw.deserialize(expected))


def test_deserialize_into_a_context_of_the_caller(raw: RawLibrary) -> None:
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", "1.0.0")
    for context in (raw.context(), raw.ir.Context()):
        module = vt.deserialize(artifact, context)
        assert module.context is context or module.context == context


def test_a_damaged_body_is_malformed_and_says_why(provider: Provider) -> None:
    artifact = vt.serialize(EXAMPLES / "saxpy.mlir", "1.0.0")
    data = bytes(artifact).replace(b"add_v1", b"adx_v1")
    with pytest.raises(vt.MalformedArtifactError, match=r"StableHLO 1.0.0\) cannot be read by .*vhlo.adx_v1"):
        vt.deserialize(data)
    future = data.replace(b"StableHLO_v1.0.0", b"StableHLO_v9.0.0")
    with pytest.raises(vt.MalformedArtifactError, match="install one with StableHLO 9.0.0 or later"):
        vt.deserialize(future)
    with pytest.raises(vt.MalformedArtifactError, match="cannot be read"):
        vt.retarget(data, "0.9.0", engine="mlir")
    with pytest.raises(vt.DowngradeError, match="vhlo.adx_v1"):
        vt.retarget(data, "0.9.0")


BROADCAST = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<0> : tensor<1x1xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@pytest.mark.whole_data("names a version and what came with it")
def test_what_is_newer_than_the_library_is_brought_down_to_be_read(raw: RawLibrary, tmp_path: Path, capfd: Any) -> None:
    old = vt.serialize(BROADCAST, "current")
    new = vt.retarget(old, "1.22.0", engine="bytes")
    assert "vhlo.collective_broadcast_v2" in new.inventory().ops
    newer = get_provider().library.current < new.version
    with pytest.raises(ValueError, match="failed to deserialize") if newer else nullcontext():
        raw.deserialize(bytes(new))
    assert str(vt.deserialize(bytes(new))) == str(vt.deserialize(old))
    path = tmp_path / "new.mlirbc"
    new.save(path)
    assert main(["deserialize", str(path)]) == 0
    assert ("vhlo: note: " in capfd.readouterr().err) == newer


def test_retarget_takes_artifacts_only() -> None:
    jax_export = (
        "is a jax.export file, which contains an artifact.*`vhlo retarget`.*integrations.jax accept the file as it is"
    )
    with pytest.raises(vt.MalformedArtifactError, match=jax_export):
        vt.retarget(EXAMPLES / "symbolic_export.jax_export", "1.0.0")
    with pytest.raises(vt.MalformedArtifactError, match="is text"):
        vt.retarget(EXAMPLES / "saxpy.mlir", "1.0.0")


def test_targets_that_cannot_be_written() -> None:
    with pytest.raises(vt.UnknownTargetError, match="newer than"):
        vt.serialize(EXAMPLES / "saxpy.mlir", "9.0.0")
    with pytest.raises(vt.UnknownTargetError, match="older than 0.9.0"):
        vt.serialize(EXAMPLES / "saxpy.mlir", "0.8.9")
    with pytest.raises(vt.InvalidVersionError):
        vt.serialize(EXAMPLES / "saxpy.mlir", "99999999999999999999.0.0")
    newest = str(max(known_releases(), key=lambda each: each.stablehlo))
    assert vt.serialize(EXAMPLES / "saxpy.mlir", newest).version <= vt.resolve_target("current").version
