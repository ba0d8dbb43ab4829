"""Commands and functions on URLs: what they answer is what they answer for the same file, and little is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import FEATURES
from support.store_buckets import Bucket

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer
from vhlo_tools.cli.main import main
from vhlo_tools.files import Url, counted, open_object, programs_at, stamp_of, write_object

MEGABYTE = 1 << 20
SAXPY = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = stablehlo.add %x, %c : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@pytest.fixture
def large(bucket: Bucket, artifact: Path) -> Url:
    write_object(bucket / "large.mlirbc", [artifact.read_bytes()])
    return bucket / "large.mlirbc"


def answer(capfd: pytest.CaptureFixture[str], *arguments: object) -> object:
    capfd.readouterr()
    assert main([str(each) for each in arguments]) == 0
    return json.loads(capfd.readouterr().out)


@pytest.mark.parametrize(
    "command",
    [["inspect"], ["check", "--target", "1.4.0"], ["alias", "show"]],
    ids=lambda command: str(command[0]),
)
def test_answers_are_those_of_the_file(
    large: Url, artifact: Path, command: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with counted() as traffic:
        found = answer(capfd, *command, large, "--output-format", "json")
    expected = json.dumps(answer(capfd, *command, artifact, "--output-format", "json"))
    assert json.dumps(found) == expected.replace(str(artifact), str(large))
    # Of 24 MB only tables.
    assert traffic.bytes_read < MEGABYTE


def test_retarget_from_and_to_stores(large: Url, artifact: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here.mlirbc", Url(large.scheme, large.bucket, f"{large.key}.moved.mlirbc")
    assert main(["retarget", str(artifact), "--target", "1.4.0", "-o", str(here)]) == 0
    assert main(["retarget", str(large), "--target", "1.4.0", "-o", str(there)]) == 0
    assert bytes(open_object(there)) == here.read_bytes()
    # An output that exists is refused before anything is read.
    with counted() as traffic:
        assert main(["retarget", str(large), "--target", "1.4.0", "-o", str(there)]) == 2
    assert traffic.bytes_read == 0
    # In place: what is read is the old version while the new one is written.
    assert main(["retarget", str(there), "--target", "1.9.0", "-o", str(there), "--force"]) == 0
    assert vt.open_artifact(str(there)).version == vt.Version("1.9.0")
    assert vt.diff(str(there), str(artifact)) == []


def test_from_text_to_results(bucket: Bucket, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_object(bucket / "saxpy {1}.mlir", [SAXPY.encode()])
    written = bucket / "saxpy.mlirbc"
    assert main(["serialize", str(bucket / "saxpy {1}.mlir"), "-o", str(written), "--target", "1.9.0"]) == 0
    assert main(["deserialize", str(written), "-o", str(bucket / "again.mlir")]) == 0
    assert b"stablehlo.add" in bytes(open_object(bucket / "again.mlir"))
    assert main(["retarget", "--strip-debug-info", str(written), "-o", str(bucket / "stripped.mlirbc")]) == 0
    assert main(["diff", str(written), str(bucket / "stripped.mlirbc")]) == 0
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    write_object(bucket / "x.npy", [(tmp_path / "x.npy").read_bytes()])
    output = bucket / "y.npy"
    assert main(["run", str(written), "--input", str(bucket / "x.npy"), "--output", str(output)]) == 0
    (tmp_path / "y.npy").write_bytes(bytes(open_object(output)))
    assert np.load(tmp_path / "y.npy").tolist() == [1, 3, 5, 7]
    moved = bucket / "moved.mlirbc"
    assert main(["constants", "externalize", str(written), "-o", str(moved), "--min-size", "1"]) == 0
    weights, restored = moved.with_suffix(".safetensors"), bucket / "restored.mlirbc"
    assert main(["constants", "restore", str(moved), "--weights", str(weights), "-o", str(restored)]) == 0
    assert main(["diff", str(written), str(restored)]) == 0
    found = answer(capfd, "constants", "extract", written, "-o", bucket / "values", "--output-format", "json")
    assert isinstance(found, dict)
    assert stamp_of(Url(written.scheme, written.bucket, (bucket / "values").key + "/main_0.npy")) or found["constants"]
    assert str(found["constants"][0]["file"]).startswith(str(bucket / "values"))


def test_functions_take_urls_and_universal_paths(bucket: Bucket) -> None:
    from upath import UPath

    url = bucket / "saxpy.mlirbc"
    vt.serialize(SAXPY, "1.9.0").save(str(url))
    for path in (str(url), url, UPath(str(url))):
        assert vt.open_artifact(path).version == vt.Version("1.9.0")
        assert vt.check(path, target="1.4.0") == []
        assert vt.run(path, [np.zeros(4, np.float32)])[0].tolist() == [1, 2, 3, 4]
    with pytest.raises(vt.InvalidUrlError, match="settings of its own"):
        vt.open_artifact(UPath(str(url), anon=True))
    with pytest.raises(vt.InvalidUrlError, match="drops a slash"):
        vt.open_artifact(Path(str(url)))
    with pytest.raises(vt.MalformedArtifactError):
        JaxContainer.open(str(url))


def test_what_a_bucket_a_folder_and_a_glob_select(bucket: Bucket) -> None:
    artifact = bytes(vt.serialize(SAXPY, "1.9.0"))
    programs = ("a.mlirbc", "deep/er/b.mlirbc", "deep/c", "text.mlir", "with [x]*.mlirbc")
    others = ("notes.txt", "deep/empty", ".vhlo-journal", "old.mlirbc.orig", "skipped/d.mlirbc")
    for key in programs:
        write_object(bucket / key, [artifact])
    for key in others:
        write_object(bucket / key, [b"" if key.endswith("empty") else b"text that is none"])
    exclude = ("*.orig", ".vhlo-*", "skipped")

    def selected(pattern: str) -> list[str]:
        found = [*programs_at(str(bucket / pattern) if pattern else str(bucket.url), exclude)]
        return sorted(each.removeprefix(str(bucket.url)) for each in found)

    assert selected("") == sorted(programs)
    assert selected("deep") == selected("deep/") == ["deep/c", "deep/er/b.mlirbc"]
    assert selected("*.mlirbc") == ["a.mlirbc", "with [x]*.mlirbc"]
    assert selected("**/*.mlirbc") == ["a.mlirbc", "deep/er/b.mlirbc", "skipped/d.mlirbc", "with [x]*.mlirbc"]
    assert selected("deep/*/?.mlirbc") == ["deep/er/b.mlirbc"]
    # A key is first what it says, letter for letter.
    assert selected("with [x]*.mlirbc") == ["with [x]*.mlirbc"]
    assert selected("notes.txt") == ["notes.txt"]
    assert selected("none") == selected("none*") == []


def test_a_listing_goes_page_by_page(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first objects come after one page of three, and suffixes decide without a look."""
    import boto3

    # Of a thousand each, which would take seconds to fill.
    monkeypatch.setattr("vhlo_tools.files.s3_store._PAGE", 100)
    client = boto3.client("s3")
    try:
        for number in range(205):
            client.put_object(Bucket=s3.url.bucket, Key=(s3 / f"{number:04}.mlirbc").key, Body=b"ML\xefR")
    finally:
        client.close()
    with counted() as traffic:
        found = programs_at(str(s3.url))
        first = next(found)
        assert traffic.requests == 1
        rest = list(found)
    assert first.endswith("/0000.mlirbc")
    assert [each.rpartition("/")[2] for each in rest] == [f"{number:04}.mlirbc" for number in range(1, 205)]
    assert traffic.requests == 3
    assert traffic.bytes_read == 0


def test_the_gate_of_a_bucket(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE", raising=False)
    vt.serialize(SAXPY, "1.9.0").save(str(bucket / "fine.mlirbc"))
    vt.serialize(FEATURES / "tan.mlir", "1.9.0").save(str(bucket / "new folder/tan.mlirbc"))
    vt.serialize(FEATURES / "tan.mlir", "1.9.0").save(str(bucket / "old/tan.mlirbc"))
    write_object(bucket / "damaged.mlirbc", [b"ML\xefR damaged"])
    baseline, cache = str(tmp_path / "baseline.json"), str(tmp_path / "cache")
    command = ["check", "--target", "1.0.0", "--exclude", "old/", "--cache-dir", cache, str(bucket.url)]
    for _ in range(2):
        assert main([*command, "--output-format", "json"]) == 2
        files = {each["path"]: each for each in json.loads(capsys.readouterr().out)["files"]}
        assert [path.removeprefix(str(bucket.url)) for path, each in files.items() if not each["ok"]] == [
            "damaged.mlirbc",
            "new folder/tan.mlirbc",
        ]
        assert len(files) == 3
    assert main([*command, "--output-format", "sarif"]) == 2
    assert "new%20folder/tan.mlirbc" in capsys.readouterr().out
    assert main([*command, "--exclude", "damaged.mlirbc", "--baseline", baseline, "--update-baseline"]) == 0
    assert main([*command, "--exclude", "damaged.mlirbc", "--baseline", baseline]) == 0


def test_objects_that_are_known_are_not_read_again(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE", raising=False)
    vt.serialize(SAXPY, "1.9.0").save(str(bucket / "fine.mlirbc"))
    tan = bytes(vt.serialize(FEATURES / "tan.mlir", "1.9.0"))
    write_object(bucket / "tan.mlirbc", [tan])
    # Of such an object only tables are read.
    size = 1 << 17
    large = f"""func.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> {{
      %c = stablehlo.constant dense<"0x{"0000803f" * (size - 1)}00000040"> : tensor<{size}xf32>
      %0 = stablehlo.tan %c : tensor<{size}xf32>
      return %0 : tensor<{size}xf32>
    }}"""
    vt.serialize(large, "1.9.0").save(str(bucket / "large.mlirbc"))
    command = ["check", str(bucket.url), "--target", "1.0.0", "--cache-dir", str(tmp_path), "--output-format", "json"]

    def run() -> tuple[list[Any], int]:
        with counted() as traffic:
            assert main(command) == 1
        return json.loads(capsys.readouterr().out)["files"], traffic.bytes_read

    first, read = run()
    assert read > len(tan)
    assert run() == (first, 0)
    write_object(bucket / "fine.mlirbc", [tan], force=True)
    (fine, *_), read = run()
    assert len(tan) <= read < 2 * len(tan)
    assert not fine["ok"]


def test_manifests_of_a_store(bucket: Bucket, capfd: pytest.CaptureFixture[str]) -> None:
    files = {"a.mlirbc": vt.serialize(SAXPY, "1.9.0"), "sub/b": vt.serialize(SAXPY, "1.8.0")}
    for name, artifact in files.items():
        write_object(bucket / name, [bytes(artifact)])
    write_object(bucket / "sub/notes", [b"a note"])
    store = str(bucket.url)
    check = ["check", store, "--target", "1.9.0", "--require-manifest", "--isolated", "--no-cache", "-j", "1"]
    assert main(check) == 1
    assert capfd.readouterr().out.count("error: manifest_missing") == 2
    assert main(["manifest", "check", store]) == 2
    assert capfd.readouterr().out.endswith("manifests: 2 missing; 1 other file is no artifact\n")
    assert main(["manifest", "write", store]) == 0
    assert capfd.readouterr().out == "manifests: 2 written; 1 other file is no artifact\n"
    for name, artifact in files.items():
        assert vt.Manifest.load(str(bucket / f"{name}.manifest.json")).verify(artifact) == ()
    assert main(check) == 0
    write_object(bucket / "sub/b", [bytes(files["a.mlirbc"])], force=True)
    assert main(check) == 1
    assert "manifest_differs" in capfd.readouterr().out
    assert main(["manifest", "check", store]) == 1
    assert "manifests: 1 matching, 1 different; 1 other" in capfd.readouterr().out
    assert main(["manifest", "write", "--force", store]) == 0
    assert main(["manifest", "check", store]) == 0
