from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.artifact import inspect_bytes, other_dialects, outline_of
from vhlo_tools.bytecode.editing import Tables

pytestmark = pytest.mark.every_python


@pytest.fixture(scope="module")
def artifact() -> vt.Artifact:
    return vt.serialize(EXAMPLES / "saxpy.mlir", "1.4.2")


def test_header_and_sections(artifact: vt.Artifact) -> None:
    assert artifact.version == vt.Version("1.4.2")
    assert artifact.producer == "StableHLO_v1.4.2"
    assert artifact.bytecode_version == 6
    assert {section.name for section in artifact.sections} >= {"string", "dialect", "ir", "properties"}
    assert artifact.dialects == {"builtin": ["module"], "vhlo": artifact.dialects["vhlo"]}
    assert set(artifact.dialects["vhlo"]) == {"add_v1", "broadcast_in_dim_v1", "func_v1", "multiply_v1", "return_v1"}
    assert not other_dialects(artifact)


def test_artifacts_are_pickled_and_copied(artifact: vt.Artifact) -> None:
    moved = vt.retarget(artifact, "1.0.0")
    tangent = "func.func @main(%a: tensor<f32>) { %0 = stablehlo.tan %a : tensor<f32> return }"
    warned = artifact.with_findings(vt.check(tangent, "1.3.0"))
    for given in (artifact, moved, vt.strip(moved), warned):
        for same in (pickle.loads(pickle.dumps(given)), copy.copy(given), copy.deepcopy([given])[0]):
            assert (same, same.name, same.version, same.made) == (given, given.name, given.version, given.made)
            assert (same.findings, same.trusted) == (given.findings, given.trusted)
            assert vt.diff(same, given, locations=True) == []
    assert warned.findings


def test_path_bytes_and_artifact_are_the_same(artifact: vt.Artifact, tmp_path: Path) -> None:
    path = tmp_path / "saxpy.mlirbc"
    artifact.save(path)
    assert vt.open_artifact(path) == vt.open_artifact(str(path)) == vt.open_artifact(bytes(artifact)) == artifact
    assert vt.open_artifact(artifact) is artifact
    assert len({artifact, vt.open_artifact(path)}) == 1


def test_artifacts_are_called_by_their_paths_unless_they_have_a_name(artifact: vt.Artifact, tmp_path: Path) -> None:
    path = tmp_path / "saxpy.mlirbc"
    artifact.save(path)
    assert vt.open_artifact(path).name == vt.open_artifact(str(path)).name == str(path)
    assert vt.open_artifact(path, name="mine").name == vt.open_artifact(bytes(artifact), name="mine").name == "mine"
    assert vt.open_artifact(bytes(artifact)).name == "the input"


def test_an_edited_artifact_is_what_was_written(artifact: vt.Artifact) -> None:
    file = artifact.copy_of_file()
    index = next(at for at, text in enumerate(file.strings) if text == b"main")
    names = [at for at in range(len(file.attributes)) if (each := file.decode("attribute", at)) and "str" in each.name]
    # What was looked at before is what counts afterwards only in the file that was edited.
    (name,) = [at for at in names if file.decode("attribute", at).field("value") == index]  # type: ignore[union-attr]
    file.strings.append(b"renamed")
    tables = Tables(file)
    file.attributes[name] = file.attributes[tables.vhlo("string_v1", tables.string("renamed"))]
    edited = artifact.edited(file)
    assert edited.file is not file
    assert [each.name for each in edited.inventory().functions] == ["renamed"]
    assert vt.open_artifact(bytes(edited)) == edited


def test_save_replaces_only_when_forced(artifact: vt.Artifact, tmp_path: Path) -> None:
    path = tmp_path / "saxpy.mlirbc"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        artifact.save(path)
    assert path.read_bytes() == b"precious"
    artifact.save(path, force=True)
    assert path.read_bytes() == bytes(artifact)


def test_a_large_file_can_be_saved_over_itself(tmp_path: Path) -> None:
    elements = 1 << 22
    hexadecimal = bytes(range(256)).hex() * (4 * elements // 256)
    text = f"""func.func @main() -> tensor<{elements}xi32> {{
      %0 = stablehlo.constant dense<"0x{hexadecimal}"> : tensor<{elements}xi32>
      return %0 : tensor<{elements}xi32>
    }}"""
    path = tmp_path / "large.mlirbc"
    vt.serialize(text).save(path)
    large = vt.open_artifact(path)
    before = path.read_bytes()
    large.save(path, force=True)
    assert path.read_bytes() == before == bytes(large)
    assert vt.retarget(path, "0.9.0").bytecode_version == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"  \n", "white space"),
        (b"module {}", "is text: expected a portable artifact; `vhlo serialize` converts"),
        ((EXAMPLES / "convnet.bc").read_bytes(), "is ordinary MLIR bytecode, which has no compatibility"),
        (b"ML\xefR\x0dStableHLO_v1.0\x00", "'StableHLO_v1.0', whose version is invalid|ends without"),
    ],
)
def test_what_is_no_artifact(data: bytes, message: str) -> None:
    with pytest.raises(vt.MalformedArtifactError, match=message):
        vt.open_artifact(data)


@pytest.mark.parametrize("version", ["1.00.0", "abc", "", "99999999999999999999.0.0", "1.0"])
def test_a_header_version_that_is_none(artifact: vt.Artifact, version: str) -> None:
    data = bytes(artifact).replace(b"StableHLO_v1.4.2", b"StableHLO_v" + version.encode())
    with pytest.raises(vt.MalformedArtifactError, match="whose version is invalid") as refused:
        vt.open_artifact(data)
    assert refused.value.section == "header"


def test_a_version_from_the_future_is_read(artifact: vt.Artifact) -> None:
    data = bytes(artifact).replace(b"StableHLO_v1.4.2", b"StableHLO_v9.9.9")
    assert vt.open_artifact(data).version == vt.Version("9.9.9")


def test_inspection_of_every_kind(artifact: vt.Artifact) -> None:
    described = inspect_bytes(bytes(artifact), "x")
    assert described["kind"] == "portable-artifact"
    assert (described["version"], described["bytecode_version"]) == ("1.4.2", 6)
    assert sum(section["size"] for section in described["sections"]) < described["size"] == len(artifact)
    export = inspect_bytes((EXAMPLES / "symbolic_export.jax_export").read_bytes(), "x")
    assert (export["kind"], export["platforms"], export["artifact"]["kind"]) == (
        "jax-export",
        ["cpu"],
        "portable-artifact",
    )
    assert inspect_bytes((EXAMPLES / "convnet.bc").read_bytes(), "x")["producer"].startswith("MLIR")
    assert inspect_bytes((EXAMPLES / "saxpy.mlir").read_bytes(), "x")["kind"] == "mlir-text"


@pytest.mark.parametrize(
    ("program", "lines"),
    [
        (
            """
            func.func @main(%a: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<f32> {jax.buffer_donor = true})
                -> tensor<2xf32> {
              %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
              return %0 : tensor<2xf32>
            }""",
            {
                "takes": "2 arguments: tensor<2xf32>, tensor<f32>; donated: 1",
                "gives": "1 result: tensor<2xf32>; aliased: {0} with parameter 0",
                "holds": "2 ops in 1 function: 1 constant, 1 return; 1 constant of 8 bytes",
            },
        ),
        (
            "func.func @main() { return }",
            {"takes": "no arguments", "gives": "no results", "holds": "1 op in 1 function: 1 return; no constants"},
        ),
    ],
)
def test_the_outline_of_an_artifact(program: str, lines: dict[str, str]) -> None:
    assert dict(outline_of(vt.serialize(program))).items() >= lines.items()
