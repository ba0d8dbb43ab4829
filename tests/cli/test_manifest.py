"""Manifests on the command line: written with artifacts, kept true by every command, and required."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.artifact import Making
from vhlo_tools.cli.main import main

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlirbc"
    assert main(["serialize", str(SAXPY), "-o", str(path), "--target", "1.9.0", "--manifest"]) == 0
    return path


def manifest_of(path: Path) -> Any:
    return json.loads(Path(f"{path}.manifest.json").read_text())


def change(path: Path) -> None:
    """Change the program in a file to another one that can be read."""
    path.write_bytes(bytes(vt.retarget(path.read_bytes(), "1.8.0")))


def test_serialize_writes_one(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = manifest_of(model)
    assert found["made"]["target"] == "1.9.0"
    assert found["made"]["source"] == hashlib.sha256(SAXPY.read_bytes()).hexdigest()
    assert found["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()
    assert main(["manifest", "show", str(model)]) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parametrize("program", ["saxpy.mlir", "symbolic_export.jax_export"])
@pytest.mark.parametrize("command", ["strip", "retarget"])
def test_other_commands_write_one(tmp_path: Path, command: str, program: str) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    if program == "saxpy.mlir":
        vt.serialize(SAXPY, "1.9.0").save(before)
    else:
        shutil.copy(EXAMPLES / program, before)
    change = ["--target", "1.10.0"] if command == "retarget" else ["--strip-debug-info"]
    assert main(["retarget", str(before), "-o", str(after), "--manifest", *change]) == 0
    made = manifest_of(after)["made"]
    assert made["command"] == command
    assert made["source"] == hashlib.sha256(before.read_bytes()).hexdigest()
    assert main(["manifest", "check", str(after)]) == 0


def test_a_file_that_has_a_manifest_keeps_having_one(model: Path) -> None:
    first = manifest_of(model)
    assert main(["serialize", str(SAXPY), "-o", str(model), "--target", "1.8.0", "--force"]) == 0
    second = manifest_of(model)
    assert (first["version"], second["version"]) == ("1.9.0", "1.8.0")
    assert main(["alias", "set", str(model), "--alias", "0=1", "-o", str(model), "--force"]) == 0
    third = manifest_of(model)
    assert (len(second["aliases"]), len(third["aliases"]), third["made"]["command"]) == (0, 1, "alias")
    assert main(["manifest", "check", str(model)]) == 0


def test_a_manifest_has_to_lie_beside_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serialize", str(SAXPY), "-o", "-", "--manifest"]) == 2
    assert "a manifest is a file beside the output" in capsys.readouterr().err
    foreign = tmp_path / "a.mlirbc.manifest.json"
    foreign.write_text("{}")
    command = ["serialize", str(SAXPY), "-o", str(tmp_path / "a.mlirbc"), "--manifest"]
    assert main(command) == 2
    assert "exists and is no manifest: --force replaces it" in capsys.readouterr().err
    assert not (tmp_path / "a.mlirbc").exists()
    assert main([*command, "--force"]) == 0
    foreign.unlink()
    (tmp_path / "a.mlirbc").unlink()
    foreign.mkdir()
    assert main(command) == 2
    assert "is a folder" in capsys.readouterr().err


def test_one_of_a_file_that_is_gone_is_replaced(model: Path) -> None:
    model.unlink()
    assert main(["serialize", str(SAXPY), "-o", str(model), "--target", "1.8.0", "--manifest"]) == 0
    assert manifest_of(model)["version"] == "1.8.0"


def test_every_command_that_reads_it_refuses_what_was_changed(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ["-i", "1.0", "-i", "[1, 2, 3, 4]", "-i", "[1, 2, 3, 4]"]
    assert main(["run", str(model), *inputs]) == 0
    change(model)
    out = ["-o", str(tmp_path / "out")]
    for command, code in (
        (["inspect", str(model)], 2),
        (["run", str(model), *inputs], 2),
        (["check", str(model), "--target", "1.9.0", "--isolated", "--no-cache"], 1),
        (["manifest", "check", str(model)], 1),
        (["serialize", str(model), *out], 2),
        (["retarget", str(model), *out, "--target", "1.0.0"], 2),
        (["retarget", str(model), *out, "--strip-debug-info"], 2),
        (["deserialize", str(model), *out], 2),
        (["constants", "list", str(model)], 2),
        (["alias", "show", str(model)], 2),
    ):
        capsys.readouterr()
        assert main(command) == code, command
        said = "".join(capsys.readouterr())
        assert " is not the file that its manifest " in " ".join(said.split()), command
    assert not (tmp_path / "out").exists()
    assert main(["run", str(model), *inputs, "--no-manifest"]) == 0
    assert main(["inspect", str(model), "--no-manifest"]) == 0
    assert main(["manifest", "write", str(model)]) == 2
    assert "--force replaces it" in capsys.readouterr().err
    assert main(["manifest", "write", str(model), "--force"]) == 0
    assert main(["manifest", "check", str(model)]) == 0


def test_a_manifest_can_be_required_or_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = model.with_name("bare.mlirbc")
    shutil.copy(model, bare)
    for command in ("inspect", "run"):
        values = [] if command == "inspect" else ["-i", "1", "-i", "[1, 2, 3, 4]", "-i", "[1, 2, 3, 4]"]
        assert main([command, str(model), *values, "--require-manifest"]) == 0
        assert main([command, str(bare), *values, "--require-manifest"]) == 2
        assert "has no manifest, and one is required" in capsys.readouterr().err
        assert main([command, str(bare), *values, "--manifest", f"{model}.manifest.json"]) == 0
        assert main([command, str(bare), *values, "--manifest", "nowhere.json"]) == 2
        assert main([command, str(bare), *values, "--no-manifest", "--require-manifest"]) == 2
        assert "exclude each other" in capsys.readouterr().err


def test_inspect_says_the_state(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def state() -> Any:
        capsys.readouterr()
        main(["inspect", str(model), "--format", "json"])
        return json.loads(capsys.readouterr().out)["manifest"]

    assert state() == "matches"
    change(model)
    assert state() == "differs"
    Path(f"{model}.manifest.json").unlink()
    assert state() == "none"


def test_verify_says_what_differs(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(model)
    assert main(["manifest", "check", str(model), "--format", "json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert (said["manifest"], said["signed"]) == ("differs", None)
    assert {"field": "version", "expected": "1.9.0", "found": "1.8.0"} in said["differences"]
    Path(f"{model}.manifest.json").write_text("{}")
    assert main(["manifest", "check", str(model)]) == 2
    assert "is not a manifest that can be used" in capsys.readouterr().err
    Path(f"{model}.manifest.json").unlink()
    assert main(["manifest", "check", str(model)]) == 2
    assert "`vhlo manifest write` makes it" in capsys.readouterr().err


def test_options_of_signatures_that_exclude_each_other(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in (
        (["check", str(model), "--public-key", "a", "--certificate-chain", "b"], "exclude each other"),
        (["check", str(model), "--signature", "a"], "needs --public-key or --certificate-chain"),
        (["sign", str(model), "--private-key", "a", "--certificate-chain", "b"], "needs --certificate"),
        (["write", "-"], "give the name of that file"),
    ):
        assert main(["manifest", *options]) == 2
        assert said in capsys.readouterr().err


def test_a_missing_extra_is_named(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What Python takes for a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "model_signing", None)
    Path(f"{model}.sig").write_text("{}")
    for options in (["sign", "--private-key", "a", "--force"], ["check", "--public-key", "a"]):
        assert main(["manifest", options[0], str(model), *options[1:]]) == 2
        assert "pip install '.[signing]' in a clone of vhlo_tools" in capsys.readouterr().err


def test_check_takes_no_manifest_for_a_program(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f"{model}.sig").write_text("{}")
    monkeypatch.chdir(tmp_path)
    for paths in (".", "*"):
        assert main(["check", paths, "--target", "1.9.0", "--isolated", "--format", "json"]) == 0
        assert [each["path"] for each in json.loads(capsys.readouterr().out)["files"]] == ["model.mlirbc"]


def test_findings_in_the_cache_hide_no_change(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE", raising=False)
    command = ["check", "model.mlirbc", "--target", "1.9.0", "--isolated", "--cache-dir", "cache", "--format", "json"]
    other = tmp_path / "other.mlirbc"
    shutil.copy(model, other)
    change(other)
    # Both contents are known before they change places.
    assert main(["check", "other.mlirbc", *command[2:]]) == 0
    assert main(command) == 0
    shutil.copy(other, model)
    capsys.readouterr()
    assert main(command) == 1
    (file,) = json.loads(capsys.readouterr().out)["files"]
    assert [(each["feature"], each["kind"]) for each in file["findings"]] == [("manifest_differs", "manifest")]
    assert main([*command, "--allow", "manifest"]) == 0


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "github", "sarif", "junit", "gitlab"])
def test_every_report_has_the_finding(model: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", str(model), "--target", "1.9.0", "--isolated", "--no-cache", "--format", form]
    change(model)
    assert main(command) == 1
    assert "manifest_differs" in capsys.readouterr().out
    Path(f"{model}.manifest.json").unlink()
    assert main([*command, "--require-manifest"]) == 1
    assert "manifest_missing" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["write"], ["show"], ["check"], ["sign", "--private-key", "key.pem"]])
def test_stdin_has_no_file_beside_it(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifest", *command, "-"]) == 2
    assert "give the name of that file" in capsys.readouterr().err


def test_the_manifest_of_a_link_is_shown(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is compared: beside the link, or beside what it leads to."""
    link = tmp_path / "link.mlirbc"
    link.symlink_to(model)
    assert main(["manifest", "show", str(link)]) == 0
    assert json.loads(capsys.readouterr().out) == manifest_of(model)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two artifacts, of which a link names one outside; a jax.export file of another name; text, and no program."""
    folder, outside = tmp_path / "store", tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    outside.mkdir()
    vt.serialize(SAXPY, "1.9.0").save(folder / "a.mlirbc")
    vt.serialize(SAXPY, "1.8.0").save(outside / "b.mlirbc")
    (folder / "sub" / "b.mlirbc").symlink_to(outside / "b.mlirbc")
    shutil.copy(EXAMPLES / "symbolic_export.jax_export", folder / "sub" / "c.bin")
    shutil.copy(SAXPY, folder / "d.mlir")
    (folder / "notes.txt").write_text("a note\n")
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_manifests_of_a_folder(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_in(store.parent)
    assert main(["manifest", "check", str(store)]) == 2
    lines = capsys.readouterr().out.splitlines()
    first = f"{store}/a.mlirbc: it has no manifest: expected {store}/a.mlirbc.manifest.json"
    assert (lines[0], lines[-1]) == (first, "manifests: 3 missing; 2 other files are no artifacts")
    assert main(["manifest", "write", str(store)]) == 0
    assert capsys.readouterr().out == "manifests: 3 written; 2 other files are no artifacts\n"
    names = ("a.mlirbc", "sub/b.mlirbc", "sub/c.bin")
    new = files_in(store.parent).items() - before.items()
    assert {name for name, _ in new} == {f"store/{name}.manifest.json" for name in names}
    for name in names:
        assert vt.Manifest.load(f"{store}/{name}.manifest.json").verify(store / name) == ()
    for words in (["write"], ["write", "--force"], ["check"]):
        assert main(["manifest", *words, str(store)]) == 0
        assert capsys.readouterr().out == "manifests: 3 matching; 2 other files are no artifacts\n"
    assert main(["manifest", "check", str(store / "a.mlirbc"), str(store / "sub"), "--exclude", "c.*"]) == 0
    assert capsys.readouterr().out == "manifests: 2 matching\n"


def test_what_differs_in_a_folder_is_told(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifest", "write", str(store)]) == 0
    made = vt.Manifest.of(store / "sub" / "c.bin", made=Making("export"))
    made.save(store / "sub" / "c.bin.manifest.json", force=True)
    change(store / "a.mlirbc")
    capsys.readouterr()
    for words, code in ((["check", "--output-format", "json"], 1), (["write"], 1)):
        assert main(["manifest", *words, str(store)]) == code
    said, text = capsys.readouterr().out.rsplit("}\n", 1)
    found = json.loads(said + "}")
    assert found["summary"] == {"other": 2, "differs": 1, "matches": 2}
    assert [each["status"] for each in found["files"]] == ["differs", "matches", "matches"]
    assert "version" in {each["field"] for each in found["files"][0]["differences"]}
    assert text.endswith("manifests: 2 matching, 1 different; 2 other files are no artifacts\n")
    assert text.startswith(f"{store}/a.mlirbc: its manifest describes another file: ")
    (store / "d.mlirbc").write_text("version https://git-lfs.github.com/spec/v1\n")
    (store / "sub" / "b.mlirbc.manifest.json").write_text("{}")
    assert main(["manifest", "check", str(store)]) == 2
    assert "1 different, 1 damaged, 1 of unreadable files; 2 other" in capsys.readouterr().out
    assert main(["manifest", "write", "--force", str(store)]) == 2
    assert "2 written, 1 matching, 1 of unreadable files; 2 other" in capsys.readouterr().out
    # One that matches says how the file was made.
    assert manifest_of(store / "sub" / "c.bin")["made"]["command"] == "export"


def test_nothing_outside_of_a_folder_is_written(store: Path) -> None:
    victim = store.parent / "victim"
    victim.write_text("mine")
    (store / "a.mlirbc.manifest.json").symlink_to(victim)
    (store / "sub" / "c.bin.manifest.json").symlink_to(store.parent / "nothing")
    assert main(["manifest", "write", "--force", str(store)]) == 0
    assert victim.read_text() == "mine"
    assert {each.name for each in store.parent.iterdir()} == {"store", "outside", "victim"}
    assert not (store / "a.mlirbc.manifest.json").is_symlink()
    assert [each.name for each in (store.parent / "outside").iterdir()] == ["b.mlirbc"]
    # A folder below that is a link is not followed, named by a glob neither.
    (store / "sub" / "b.mlirbc.manifest.json").unlink()
    (store / "link").symlink_to(store.parent / "outside")
    assert main(["manifest", "write", f"{store}/*/b.mlirbc"]) == 2
    assert [each.name for each in (store.parent / "outside").iterdir()] == ["b.mlirbc"]


def test_a_folder_without_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["manifest", "check", str(tmp_path)]) == 2
    assert "not a folder with programs" in capsys.readouterr().err
    (tmp_path / "notes.txt").write_text("a note")
    paths = [str(tmp_path), str(tmp_path / "missing")]
    assert main(["manifest", "check", *paths, "--output-format", "json"]) == 2
    assert capsys.readouterr().out == ""
    assert main(["manifest", "check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "manifests: none; 1 other file is no artifact\n"


def checked(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    assert main(["check", *words, "--target", "1.9.0", "--isolated", "--no-cache", "--format", "json"]) in (0, 1)
    files = json.loads(capsys.readouterr().out)["files"]
    found = {Path(each["path"]).name: [found["feature"] for found in each["findings"]] for each in files}
    return {name: [each for each in features if each.startswith("manifest")] for name, features in found.items()}


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
def test_check_can_require_manifests(store: Path, jobs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a.mlirbc", "d.mlir", "b.mlirbc", "c.bin"]
    assert checked(str(store), capsys=capsys) == {each: [] for each in names}
    missing = ["manifest_missing"]
    found = checked(str(store), "--require-manifest", *jobs, capsys=capsys)
    assert found == {"a.mlirbc": missing, "d.mlir": [], "b.mlirbc": missing, "c.bin": missing}
    assert checked(str(store / "a.mlirbc"), "--require-manifest", *jobs, capsys=capsys) == {"a.mlirbc": missing}
    assert main(["manifest", "write", str(store)]) == 0
    capsys.readouterr()
    change(store / "a.mlirbc")
    found = checked(str(store), "--require-manifest", *jobs, capsys=capsys)
    assert found == {"a.mlirbc": ["manifest_differs"], "d.mlir": [], "b.mlirbc": [], "c.bin": []}


def test_manifests_that_check_requires(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(store)
    (store / "vhlo-tools.toml").write_text('paths = ["a.mlirbc"]\ntarget = "1.9.0"\nrequire-manifest = true\n')
    assert main(["check"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "a.mlirbc has no manifest, and one is required: expected a.mlirbc.manifest.json" in said
    assert main(["check", "--no-require-manifest"]) == 0
    assert main(["check", "--allow", "manifest_missing"]) == 0
    assert main(["check", "-"]) == 2
    assert "--require-manifest is for files" in capsys.readouterr().err
    (answer,) = vt.check_store("a.mlirbc", "1.9.0", require_manifest=True)
    assert [each.feature for _, each in answer.findings] == ["manifest_missing"]
