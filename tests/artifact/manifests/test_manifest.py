"""Manifests: what they say, what is read, what differs, and where they are."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pickle
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES
from support.corpus_files import corpus_files

import vhlo_tools as vt
from vhlo_tools.artifact import (
    JaxContainer,
    Making,
    Manifest,
    check_manifest,
    find_manifest,
    manifest_place,
    write_with_manifest,
)
from vhlo_tools.artifact.manifest import LARGE, MOST_CONSTANTS
from vhlo_tools.cli.main import main
from vhlo_tools.files import place

PROGRAM = """
func.func @main(%a: tensor<512xf32> {tf.aliasing_output = 0 : i32}, %b: tensor<4xf32> {jax.buffer_donor = true})
    -> (tensor<512xf32>, tensor<f32>) {
  %w = stablehlo.constant dense<"0xWEIGHTS"> : tensor<512xf32>
  %0 = stablehlo.add %a, %w : tensor<512xf32>
  %1 = stablehlo.constant dense<2.0> : tensor<f32>
  return %0, %1 : tensor<512xf32>, tensor<f32>
}
""".replace("WEIGHTS", bytes(range(256)).hex().upper() * 8)


@pytest.fixture(scope="module")
def artifact() -> vt.Artifact:
    return vt.serialize(PROGRAM, "1.9.0")


def entries_of(manifest: Manifest) -> dict[str, Any]:
    found = json.loads(manifest.encode())
    assert isinstance(found, dict)
    return found


def sealed(entries: dict[str, Any]) -> bytes:
    """Return a manifest with a checksum that is right, as an attacker would write it."""
    body = {key: value for key, value in entries.items() if key != "checksum"}
    checksum = hashlib.sha256(json.dumps(body, indent=2).encode()).hexdigest()
    return (json.dumps({**body, "checksum": checksum}, indent=2) + "\n").encode()


def test_what_a_manifest_says(artifact: vt.Artifact) -> None:
    manifest = Manifest.of(artifact)
    assert (manifest.size, manifest.sha256) == (len(artifact), hashlib.sha256(bytes(artifact)).hexdigest())
    assert (manifest.kind, manifest.version, manifest.producer) == ("portable-artifact", "1.9.0", "StableHLO_v1.9.0")
    assert manifest.signature is not None
    assert manifest.signature.arguments == ("tensor<512xf32>", "tensor<4xf32>")
    assert manifest.signature.results == ("tensor<512xf32>", "tensor<f32>")
    assert manifest.aliases == (vt.Alias((0,), 0),)
    assert manifest.donors == (vt.Donor(1),)
    (weight,) = manifest.constants
    listed = next(each for each in vt.constants(artifact) if each.bytes == 2048)
    assert (weight.path, weight.type, weight.bytes, weight.sha256) == (
        listed.path,
        "tensor<512xf32>",
        2048,
        listed.digest,
    )
    required = artifact.requirements()
    assert (manifest.readable_since, manifest.downgradable_to) == (
        str(required.readable_since),
        str(required.downgradable_to),
    )
    assert manifest.made is not None
    assert (manifest.made.command, manifest.made.target) == ("serialize", "1.9.0")
    assert manifest.made.library is not None
    assert manifest.made.library.startswith("jaxlib ")
    assert manifest.verify(artifact) == ()


def test_how_it_was_made() -> None:
    program = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    made = vt.serialize(program, "1.0.0", expand=True, allow_relaxed=["result_accuracy"], strip_debug_info=True).made
    assert made is not None
    assert made.options == {"allow_relaxed": ("result_accuracy",), "expand": True, "strip_debug_info": True}
    written = vt.serialize(program, "1.9.0")
    moved = vt.retarget(written, "1.0.0", engine="bytes").made
    assert moved == Making("retarget", "1.0.0", None, {"engine": "bytes"})
    by_library = vt.retarget(written, "1.0.0", engine="mlir").made
    assert by_library is not None
    assert by_library.library is not None
    assert vt.strip(written).made == Making("strip")


def test_every_artifact_of_the_corpus_has_a_manifest_that_is_read_again() -> None:
    number = 0
    for name, data in corpus_files(ordinary=False):
        number += 1
        if number % 10:
            continue
        manifest = Manifest.of(data)
        assert Manifest.decode(manifest.encode()) == manifest, name
        assert manifest.verify(data) == (), name
    assert number > 1000


def test_a_jax_export_file_has_one_of_its_function() -> None:
    path = EXAMPLES / "symbolic_export.jax_export"
    manifest = Manifest.of(path)
    assert (manifest.kind, manifest.size) == ("jax-export", path.stat().st_size)
    inside = Manifest.of(vt.open_artifact(path))
    assert (manifest.version, manifest.signature) == (inside.version, inside.signature)
    assert manifest.verify(path) == manifest.verify(JaxContainer.open(path)) == ()
    # The artifact in the file is not the file.
    assert {each.field for each in manifest.verify(vt.open_artifact(path))} == {"size", "sha256", "kind"}


def test_what_differs_is_said(artifact: vt.Artifact) -> None:
    manifest = Manifest.of(artifact)
    other = vt.serialize(PROGRAM.replace("tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"), "1.8.0")
    found = {each.field: (each.expected, each.found) for each in manifest.verify(other)}
    assert found["version"] == ("1.9.0", "1.8.0")
    assert found["aliases"] == ("1 of them", "0")
    assert found["donors"] == (
        "parameter_number 1, parameter_index () as number 0",
        "parameter_number 0, parameter_index ()",
    )
    assert "sha256" in found
    assert {each.field for each in manifest.verify(other, contents=False)} <= {"size", "sha256"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "jax-export"),
        ("size", 1),
        ("sha256", "0" * 64),
        ("producer", "StableHLO_v1.8.0"),
        ("version", "1.8.0"),
        ("bytecode_version", 5),
        ("readable_since", "1.8.0"),
        ("downgradable_to", "1.8.0"),
        ("features", ["tan"]),
        ("other_dialects", ["sdy"]),
        ("signature", None),
        ("aliases", []),
        ("donors", []),
        ("constants", []),
    ],
)
def test_a_manifest_that_lies_differs_from_the_artifact(artifact: vt.Artifact, field: str, value: object) -> None:
    entries = entries_of(Manifest.of(artifact))
    lying = Manifest.decode(sealed({**entries, field: value}))
    assert [each.field for each in lying.verify(artifact)] == [field]


def test_what_another_release_concluded_is_not_compared(artifact: vt.Artifact) -> None:
    entries = entries_of(Manifest.of(artifact))
    other = Manifest.decode(sealed({**entries, "tool": "vhlo_tools 0.0.1", "readable_since": "1.8.0"}))
    assert other.verify(artifact) == ()


CHANGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "another beginning": (lambda data: b" " + data, "does not begin as every manifest does"),
    "empty": (lambda data: b"", "does not begin as every manifest does"),
    "cut short": (lambda data: data[:-40], "is not a manifest that can be used"),
    "windows": (lambda data: data.replace(b"\n", b"\r\n"), "does not begin"),
    "spaces at the end": (lambda data: data + b" ", "damaged or was edited"),
    "checksum": (lambda data: data.replace(b'"checksum": "', b'"checksum": "0'), "damaged or was edited"),
    "edited": (lambda data: data.replace(b"StableHLO_v1.9.0", b"StableHLO_v1.9.1"), "damaged or was edited"),
    "unknown key": (lambda data: sealed({**json.loads(data), "more": 1}), "an unknown key, 'more'"),
    "unknown key inside": (
        lambda data: sealed({**json.loads(data), "donors": [{"x": 2, "parameter_number": 1}]}),
        "edited",
    ),
    "missing key": (
        lambda data: sealed({key: value for key, value in json.loads(data).items() if key != "size"}),
        "the key 'size' is missing",
    ),
    "newer structure": (
        lambda data: sealed({**json.loads(data), "vhlo_manifest": 2}),
        "of version 2, and this release knows 1 alone",
    ),
    "another type": (lambda data: sealed({**json.loads(data), "size": "1"}), r"Expected `int`, got `str`"),
    "a number for a truth": (lambda data: sealed({**json.loads(data), "size": True}), r"Expected `int`"),
    "nested": (lambda data: b'{\n  "vhlo_manifest": ' + b"[" * 100_000, "nests too deeply"),
    "twice": (lambda data: data.replace(b'"kind"', b'"size"', 1), "occurs twice"),
    "not a number": (lambda data: data.replace(b'"bytecode_version": 6', b'"bytecode_version": NaN'), "NaN"),
    "too large": (lambda data: data + b" " * (1 << 24), "a manifest has at most"),
    "not text": (lambda data: data + b"\xff", "is not a manifest that can be used"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_manifest_is_refused(artifact: vt.Artifact, change: str) -> None:
    changed, said = CHANGES[change]
    with pytest.raises(vt.ManifestError, match=said) as caught:
        Manifest.decode(changed(Manifest.of(artifact).encode()), name="m.json")
    assert str(caught.value).startswith("m.json ")
    assert str(caught.value).isprintable()


def test_only_the_largest_constants_have_digests() -> None:
    number = MOST_CONSTANTS + 10
    constants = "\n".join(f"%{i} = stablehlo.constant dense<{i}> : tensor<{LARGE // 8 + i}xi64>" for i in range(number))
    text = f"func.func @main() -> tensor<i64> {{ {constants}\n %r = stablehlo.constant dense<0> : tensor<i64>\n"
    manifest = Manifest.of(vt.serialize(text + "return %r : tensor<i64> }"))
    assert [each.bytes for each in manifest.constants] == [LARGE + 8 * i for i in range(10, number)]


def test_no_name_in_a_program_controls_a_terminal() -> None:
    call = "stablehlo.custom_call @k() {api_version = 1 : i32} : () -> tensor<300xi64>"
    text = f"func.func @main() -> tensor<300xi64> {{ %0 = {call}\n return %0 : tensor<300xi64> }}"
    manifest = Manifest.of(vt.serialize(text))
    lying = Manifest.decode(sealed({**entries_of(manifest), "producer": "\x1b[31m\udcff"}))
    (difference,) = lying.verify(vt.serialize(text))
    assert str(difference).isprintable()
    with pytest.raises(vt.ManifestError, match="half of a surrogate pair"):
        Manifest.decode(sealed({**entries_of(manifest), "producer": "\ud800"}))


def test_reading_one_manifest_for_another_artifact(tmp_path: Path, artifact: vt.Artifact) -> None:
    path = tmp_path / "a.mlirbc"
    write_with_manifest(path, artifact.chunks, Manifest.of(artifact))
    assert check_manifest(path.read_bytes(), path).state == "matches"
    assert check_manifest(path.read_bytes(), path, False).state == "none"
    assert check_manifest(path.read_bytes(), None).state == "none"
    other = tmp_path / "b.mlirbc"
    vt.serialize(PROGRAM, "1.8.0").save(other)
    assert check_manifest(other.read_bytes(), other).state == "none"
    assert check_manifest(other.read_bytes(), other, str(manifest_place(path))).state == "differs"
    with pytest.raises(vt.ManifestError, match=r"b\.mlirbc has no manifest, and one is required"):
        vt.require(other, "1.9.0", manifest=True)
    with pytest.raises(vt.ManifestError, match="no file beside which"):
        vt.require(other.read_bytes(), "1.9.0", manifest=True)
    with pytest.raises(vt.ManifestError, match=r"b\.mlirbc is not the file"):
        vt.require(other, "1.9.0", manifest=Manifest.of(artifact))
    with pytest.raises(vt.ManifestError, match="the input is not the file"):
        vt.require(other.read_bytes(), "1.9.0", manifest=manifest_place(path))
    with pytest.raises(vt.ManifestError, match="no bytes that a manifest could describe"):
        vt.load_executable(object(), manifest=True)
    assert vt.require(path, "1.9.0", manifest=True)
    assert vt.require(artifact, "1.9.0", manifest=Manifest.load(manifest_place(path)))


def test_every_conversion_refuses_a_file_that_was_changed(tmp_path: Path, artifact: vt.Artifact) -> None:
    path = tmp_path / "a.mlirbc"
    write_with_manifest(path, artifact.chunks, Manifest.of(artifact))
    changed = vt.serialize(PROGRAM.replace("2.0", "3.0"), "1.9.0")
    path.write_bytes(bytes(changed))
    (finding,) = [each for each in vt.check(path, "1.9.0") if each.kind == "manifest"]
    assert (finding.feature, finding.level) == ("manifest_differs", "error")
    for call in (
        lambda: vt.serialize(path, "1.9.0"),
        lambda: vt.retarget(path, "1.0.0"),
        lambda: vt.strip(path),
        lambda: vt.deserialize(path),
        lambda: vt.run(path, []),
        lambda: vt.run_parallel(path, []),
    ):
        with pytest.raises(vt.ManifestError, match="is not the file that its manifest"):
            call()
    manifest_place(path).write_bytes(b"{}")  # type: ignore[union-attr]
    (finding,) = [each for each in vt.check(path, "1.9.0") if each.kind == "manifest"]
    assert finding.feature == "manifest_unreadable"


def test_a_link_has_the_manifest_of_its_file(tmp_path: Path, artifact: vt.Artifact) -> None:
    path, link = tmp_path / "blob", tmp_path / "model.mlirbc"
    write_with_manifest(path, artifact.chunks, Manifest.of(artifact))
    link.symlink_to(path)
    assert find_manifest(link) == Path(os.path.realpath(path) + ".manifest.json")
    beside = Path(f"{link}.manifest.json")
    beside.symlink_to(manifest_place(path))
    assert find_manifest(link) == beside


def test_whatever_writes_a_file_removes_the_manifest_of_what_was_there(tmp_path: Path, artifact: vt.Artifact) -> None:
    path = tmp_path / "a.mlirbc"
    write_with_manifest(path, artifact.chunks, Manifest.of(artifact))
    with pytest.raises(FileExistsError):
        artifact.save(path)
    assert find_manifest(path) is not None
    artifact.save(path, force=True)
    assert find_manifest(path) is None
    # A file of such a name that is no manifest belongs to somebody else.
    foreign = tmp_path / "a.mlirbc.manifest.json"
    foreign.write_text('{"name": "app"}')
    artifact.save(path, force=True)
    assert foreign.read_text() == '{"name": "app"}'
    with pytest.raises(FileExistsError):
        write_with_manifest(tmp_path / "b" / ".." / "a.mlirbc", artifact.chunks, Manifest.of(artifact))


def test_an_interrupted_write_leaves_no_wrong_manifest(
    tmp_path: Path, artifact: vt.Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.mlirbc"
    write_with_manifest(path, artifact.chunks, Manifest.of(artifact))
    other = vt.serialize(PROGRAM, "1.8.0")
    states = []
    replaced = os.replace

    def replace(*arguments: Any, **options: Any) -> None:
        # Before and after each step at which a reader sees a change.
        states.append(check_manifest(path.read_bytes(), path).state)
        replaced(*arguments, **options)
        states.append(check_manifest(path.read_bytes(), path).state)

    monkeypatch.setattr(os, "replace", replace)
    write_with_manifest(path, other.chunks, Manifest.of(other), force=True)
    assert states == ["none", "none", "none", "matches"]


def test_urls_have_manifests_only_if_they_are_named(artifact: vt.Artifact) -> None:
    assert str(manifest_place(place("s3://b/a.mlirbc"))) == "s3://b/a.mlirbc.manifest.json"
    assert find_manifest("s3://b/a.mlirbc") is None
    with pytest.raises(vt.InvalidUrlError):
        manifest_place(place("s3://b/"))


def test_an_error_with_differences_crosses_processes() -> None:
    error = vt.ManifestError("it differs", ["size: expected 1, found 2"])
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.differences) == ("it differs\n  size: expected 1, found 2", error.differences)


def _socket(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


#: What has the name of a manifest, and is none.
NO_FILES: dict[str, Callable[[Path], object]] = {
    "FIFO": lambda path: os.mkfifo(path),
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link that leads nowhere": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_an_error_and_not_no_manifest(
    kind: str, artifact: vt.Artifact, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.mlirbc"
    artifact.save(path)
    NO_FILES[kind](tmp_path / "a.mlirbc.manifest.json")
    for command in (["inspect"], ["run"], ["manifest", "check"], ["manifest", "write"]):
        assert main([*command, str(path)]) == 2
        assert f"a {kind}: expected" in capsys.readouterr().err
    for command in (["retarget"], ["retarget", "--manifest"]):
        assert main([*command, str(path), "--target", "1.0.0", "-o", str(path), "--force"]) == 2
        assert f"a {kind}: expected" in capsys.readouterr().err
    assert main(["check", str(path), "--target", "1.9.0"]) == 1
    assert "manifest_unreadable" in capsys.readouterr().out
    (record,) = vt.migrate(path, "1.0.0")
    assert f"a {kind}: expected" in (record.reason or "")
    assert path.read_bytes() == bytes(artifact)
