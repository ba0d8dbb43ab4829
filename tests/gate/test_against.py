"""Programs compared with a revision of git, in real repositories."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.gate_programs import GOOD, blocked, check, check_json, write
from support.json_records import body

import vhlo_tools as vt
from vhlo_tools.gate import FORMATS, Change, Revision

ASKED = (".", "--target", "1.3.0", "--against", "HEAD")
ALIASED = GOOD.replace("%a: tensor<4xf32>)", "%a: tensor<4xf32> {tf.aliasing_output = 0 : i32})")
OTHER_TYPE = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }\n"
WITH_HELPER = GOOD + "func.func @helper(%a: tensor<i32>) { return }\nfunc.func private @inner() { return }\n"


def git(*arguments: str, folder: Path | None = None) -> str:
    settled = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.com",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.com",
    }
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **settled}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(message: str = "change", folder: Path | None = None) -> str:
    git("add", "--all", folder=folder)
    git("commit", "--quiet", "--allow-empty", "--message", message, folder=folder)
    return git("rev-parse", "HEAD", folder=folder)


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a good program, one with a finding, and one with an alias, as text and as bytes."""
    top = tmp_path_factory.mktemp("committed")
    git("init", "--quiet", "--initial-branch=main", folder=top)
    write(top / ".gitignore", ".vhlo-cache/\n")
    write(top / "good.mlir", GOOD)
    write(top / "old.mlir", blocked(10))
    write(top / "aliased.mlir", ALIASED)
    for name, text in (("good", GOOD), ("old", blocked(10)), ("aliased", ALIASED)):
        vt.serialize(text).save(top / f"{name}.mlirbc")
    commit("first", top)
    return top


@pytest.fixture(autouse=True)
def repository(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    top = tmp_path / "a repository"
    shutil.copytree(committed, top, symlinks=True)
    monkeypatch.chdir(top)
    monkeypatch.delenv("VHLO_TOOLS_NO_CACHE")
    # It knows files by more than is copied.
    git("update-index", "-q", "--refresh")
    return top


def features(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, list[str]]:
    """Return the features of the new findings of each program that was checked."""
    report = check_json(capsys, *ASKED, *options)
    return {
        file["path"]: sorted(each["feature"] for each in file["findings"] if each["baseline"] == "new")
        for file in report["files"]
    }


def replaced(path: Path, text: str) -> None:
    """Replace a program, as text or as bytes, depending on the name of the file."""
    if path.suffix == ".mlir":
        write(path, text)
    else:
        vt.serialize(text).save(path, force=True)


def test_programs_that_are_as_they_were_are_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, *ASKED) == (
        0,
        "checked 0 programs: no errors; 6 unchanged since HEAD; 1 other file is no program\n",
        "",
    )
    summary = check_json(capsys, *ASKED)["summary"]
    assert summary == {
        "programs": 0, "ok": 0, "unreadable": 0, "blocked": 0, "warned": 0, "unrecognised": 1, "against": "HEAD",
        "unchanged": 6, "deleted": 0,
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("good", blocked(5), ["regression_finding", "regression_target"]),
        ("good", OTHER_TYPE, ["regression_signature"]),
        ("good", ALIASED, ["regression_alias"]),
        ("aliased", GOOD, ["regression_alias"]),
        ("aliased", ALIASED.replace("tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"), ["regression_alias"]),
        # What it had before is known, wherever it stands now; one more is not, and the target was out of reach.
        ("old", blocked(77), []),
        ("old", blocked(10, 11), ["regression_finding"]),
        ("old", GOOD, []),
        ("good", WITH_HELPER, []),
    ],
)
def test_what_is_worse(
    name: str, text: str, found: list[str], suffix: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replaced(repository / f"{name}{suffix}", text)
    assert features(capsys) == {f"{name}{suffix}": found}
    assert check(capsys, *ASKED)[0] == int(bool(found))


def test_a_function_that_is_gone(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository / "good.mlir", WITH_HELPER)
    commit()
    write(repository / "good.mlir", GOOD)
    ((finding,),) = (file["findings"] for file in check_json(capsys, *ASKED)["files"])
    assert (finding["feature"], finding["kind"], finding["level"]) == ("regression_signature", "regression", "error")
    assert finding["function"] == "helper"
    assert finding["message"] == "@helper was (tensor<i32>) -> () at HEAD, and now is no public function"


def test_readers_are_compared_too(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vt.serialize(GOOD, "1.0.0").save(repository / "good.mlirbc", force=True)
    commit()
    vt.serialize(blocked(1)).save(repository / "good.mlirbc", force=True)
    asked = ("good.mlirbc", "--readable-by", "1.3.0", "--against", "HEAD")
    (file,) = check_json(capsys, *asked)["files"]
    targets = [each["message"] for each in file["findings"] if each["feature"] == "regression_target"]
    assert targets == ["at HEAD the program could be read by 1.3.0, and now it cannot"]


def test_all_findings_of_a_new_program_count(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository / "not tracked.mlir", blocked(1))
    write(repository / "added.mlir", blocked(1, 2))
    git("add", "added.mlir")
    # A copy of a program with findings that is still there.
    write(repository / "copy.mlir", blocked(10))
    assert features(capsys) == {"added.mlir": ["tan", "tan"], "copy.mlir": ["tan"], "not tracked.mlir": ["tan"]}


def test_moved_programs(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "the exports").mkdir()
    git("mv", "old.mlir", "the exports/old one.mlir")
    git("mv", "old.mlirbc", "the exports/old.mlirbc")
    assert features(capsys) == {}
    # Without git, what is as it was is found too.
    (repository / "good.mlir").rename(repository / "the exports/good.mlir")
    assert features(capsys) == {}
    # Moved and changed: git finds it once it is in the index.
    text = blocked(10).replace("}\n", "  // and a line more\n}\n")
    write(repository / "the exports/old one.mlir", text)
    git("add", "--all")
    assert features(capsys) == {"the exports/old one.mlir": []}


def test_a_revision_is_whatever_git_takes(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = git("rev-parse", "HEAD")
    git("tag", "v1")
    write(repository / "good.mlir", blocked(1))
    commit()
    for revision in (first[:10], "v1", "HEAD~1", "main@{1}"):
        assert check(capsys, ".", "--target", "1.3.0", "--against", revision)[0] == 1
    assert check(capsys, *ASKED)[0] == 0


@pytest.mark.parametrize("revision", ["--output=x", "-x", "", " ", "none", "HEAD:good.mlir", "a\nb", "main..HEAD"])
def test_what_is_no_revision(revision: str, repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = check(capsys, ".", "--target", "1.3.0", f"--against={revision}")
    assert (code, out) == (2, "")
    assert "expected a branch, a tag or a commit" in err
    assert sorted(each.name for each in repository.glob("*x")) == []


def test_a_shallow_clone_says_what_to_fetch(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = git("rev-parse", "HEAD")
    write(repository / "good.mlir", blocked(1))
    commit()
    git("clone", "--quiet", "--depth=1", f"file://{repository}", str(tmp_path / "shallow"))
    monkeypatch.chdir(tmp_path / "shallow")
    code, _, err = check(capsys, ".", "--target", "1.3.0", "--against", first)
    assert code == 2
    assert "this clone is shallow and lacks most of the history" in err
    assert f"`git fetch --depth=1 origin {first}` fetches one, as FETCH_HEAD" in err
    git("fetch", "--quiet", "--depth=1", "origin", first)
    assert check(capsys, ".", "--target", "1.3.0", "--against", "FETCH_HEAD")[0] == 1


def test_a_partial_clone_asks_nobody(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(repository / "good.mlir", blocked(1))
    commit()
    git("config", "uploadpack.allowFilter", "true")
    git("clone", "--quiet", "--filter=blob:none", f"file://{repository}", str(tmp_path / "partial"))
    monkeypatch.chdir(tmp_path / "partial")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "file")
    code, _, err = check(capsys, ".", "--target", "1.3.0", "--against", "HEAD~1")
    assert (code, "this clone lacks the content of good.mlir at HEAD~1" in err) == (2, True)


def test_no_work_tree(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    monkeypatch.chdir(tmp_path / "bare")
    program = str(write(tmp_path / "outside.mlir", GOOD))
    code, _, err = check(capsys, program, "--target", "1.3.0", "--against", "HEAD")
    assert (code, "is in no work tree of git" in err, "git worktree add" in err) == (2, True, True)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "is in no work tree of git" in check(capsys, program, "--target", "1.3.0", "--against", "HEAD")[2]
    monkeypatch.chdir(repository)
    code, _, err = check(capsys, program, "--target", "1.3.0", "--against", "HEAD")
    assert (code, f"{program} is outside of the repository {repository}" in err) == (2, True)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    code, _, err = check(capsys, *ASKED)
    assert (code, "the program git is not on the PATH" in err) == (2, True)


def test_submodules_have_revisions_of_their_own(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    git("clone", "--quiet", ".", str(tmp_path / "other"))
    git("submodule", "--quiet", "add", str(tmp_path / "other"), "sub/module")
    commit()
    code, _, err = check(capsys, *ASKED)
    assert code == 2
    assert "sub/module/aliased.mlir is in the submodule sub/module: check it there" in err
    assert check(capsys, *ASKED, "--exclude", "sub")[0] == 0
    monkeypatch.chdir(repository / "sub/module")
    assert check(capsys, *ASKED)[0] == 0


def pointer(data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(data)}\n"


def test_files_in_git_lfs(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = GOOD.encode(), blocked(1).encode()
    write(repository / "large.mlir", pointer(old))
    commit()
    # As `git lfs checkout` leaves it: the content in the work tree, its pointer in the commit.
    (repository / "large.mlir").write_bytes(old)
    assert features(capsys) == {}
    (repository / "large.mlir").write_bytes(new)
    code, _, err = check(capsys, *ASKED)
    assert code == 2
    assert "large.mlir is in Git LFS, and its content at HEAD is not here: `git lfs fetch origin HEAD`" in err
    digest = hashlib.sha256(old).hexdigest()
    kept = repository / ".git/lfs/objects" / digest[:2] / digest[2:4] / digest
    write(kept, GOOD)
    assert features(capsys) == {"large.mlir": ["regression_finding", "regression_target"]}
    write(kept, GOOD.replace("main", "mine"))
    assert "the content that Git LFS keeps is damaged" in check(capsys, *ASKED)[2]
    # A clone without the contents.
    write(repository / "large.mlir", pointer(new))
    (file,) = check_json(capsys, "large.mlir", "--target", "1.3.0")["files"]
    assert file["reason"] == "large.mlir is a pointer of Git LFS, and not what it points to: `git lfs pull` fetches it"


def test_links(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "deep").mkdir()
    (repository / "deep/link.mlir").symlink_to("../good.mlir")
    (repository / "linked").symlink_to("deep")
    commit()
    assert features(capsys) == {}
    write(repository / "good.mlir", blocked(1))
    worse = ["regression_finding", "regression_target"]
    assert features(capsys) == {"good.mlir": worse, "deep/link.mlir": worse}
    (file,) = check_json(capsys, "linked/link.mlir", "--target", "1.3.0", "--against", "HEAD")["files"]
    assert len(file["findings"]) == 2


def test_folders_that_are_programs(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository / "saved/saved_model.pb", "nothing")
    write(repository / "saved/variables/variables.index", "nothing")
    commit()
    asked = ("saved", "--target", "1.3.0", "--against", "HEAD")
    assert check(capsys, *asked)[:2] == (0, "checked 0 programs: no errors; 1 unchanged since HEAD\n")
    write(repository / "saved/variables/variables.index", "something")
    assert [each["path"] for each in check_json(capsys, *asked)["files"]] == ["saved"]


def test_a_program_that_could_not_be_checked_before_is_new(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository / "bad.mlir", "nonsense")
    commit()
    write(repository / "bad.mlir", blocked(1))
    assert features(capsys) == {"bad.mlir": ["tan"]}
    write(repository / "good.mlir", "nonsense")
    assert check(capsys, *ASKED)[0] == 2


@pytest.mark.parametrize(
    ("options", "code", "found"),
    [
        ((), 1, ["regression_finding", "regression_signature", "regression_target"]),
        (("--warn", "regression"), 0, ["regression_finding", "regression_signature", "regression_target"]),
        (("--allow", "regression_*"), 0, []),
        (("--allow", "regression", "--deny", "regression_signature"), 1, ["regression_signature"]),
        # What the team allows is no regression either.
        (("--allow", "tan"), 1, ["regression_signature"]),
        (("--warn", "tan"), 1, ["regression_finding", "regression_signature"]),
    ],
)
def test_regressions_have_levels(
    options: tuple[str, ...], code: int, found: list[str], repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(repository / "good.mlir", blocked(1).replace("%arg: tensor<4xf32>", "%arg: tensor<4xf32>, %b: tensor<i1>"))
    assert check(capsys, *ASKED, *options)[0] == code
    assert features(capsys, *options) == {"good.mlir": found}


def test_with_a_baseline(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository / "good.mlir", blocked(1))
    baseline = ("--baseline", "known.json")
    assert check(capsys, ".", "--target", "1.3.0", *baseline, "--update-baseline")[0] == 0
    assert check(capsys, *ASKED, *baseline, "--fail-on-stale")[0] == 0
    write(repository / "good.mlir", blocked(1, 2))
    assert features(capsys, *baseline) == {"good.mlir": ["regression_finding", "regression_target"]}
    code, _, err = check(capsys, *ASKED, *baseline, "--update-baseline")
    assert (code, "leave out --against" in err) == (2, True)


def test_it_is_a_setting(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository / "vhlo-tools.toml", "target = '1.3.0'\nagainst = 'main'\npaths = ['.']")
    assert check(capsys)[:2] == (
        0,
        "checked 0 programs: no errors; 6 unchanged since main; 1 other file is no program\n",
    )
    write(repository / "good.mlir", OTHER_TYPE)
    assert check(capsys)[0] == 1


def test_every_format_has_regressions(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(repository / "good.mlir", OTHER_TYPE)
    replaced(repository / "old.mlirbc", blocked(10, 11))
    for output_format in FORMATS:
        reports = [
            check(capsys, *ASKED, "--output-format", output_format, *options)
            for options in (("--no-cache",), (), (), ("-j", "2", "--no-cache"))
        ]
        assert [each == reports[0] for each in reports] == [True] * 4
        code, out, _ = reports[0]
        assert (code, "regression_signature" in out, "regression_finding" in out) == (1, True, True), output_format


def test_known_findings_of_sarif_are_suppressed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replaced(repository / "old.mlir", blocked(10) + "\n")
    run = json.loads(check(capsys, *ASKED, "--output-format", "sarif")[1])["runs"][0]
    (result,) = run["results"]
    assert (result["ruleId"], result["baselineState"]) == ("tan", "unchanged")
    assert result["suppressions"][0]["justification"] == "known: it is there at HEAD"


def test_a_repository_runs_nothing(repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mark = tmp_path / "it ran"
    script = write(tmp_path / "script", f"#!/bin/sh\ntouch '{mark}'\ncat\n")
    script.chmod(0o755)
    write(repository / ".gitattributes", "* filter=evil diff=evil merge=evil\n")
    commit()
    for key in (
        "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command",
        "diff.external", "core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "uploadpack.packObjectsHook",
        "alias.ls-tree", "alias.cat-file", "alias.rev-parse", "gpg.program", "credential.helper",
    ):  # fmt: skip
        value = f"!{script}" if key.startswith(("alias", "credential")) else str(script)
        git("config", key, value)
    hooks = repository / ".git/hooks"
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit", "fsmonitor-watchman"):
        (hooks / hook).unlink(missing_ok=True)
        (hooks / hook).symlink_to(script)
    write(repository / "good.mlir", blocked(1))
    os.utime(repository / "old.mlir")
    (repository / "aliased.mlir").rename(repository / "moved.mlir")
    write(repository / "moved.mlir", ALIASED + "\n")
    assert features(capsys)["good.mlir"] == ["regression_finding", "regression_target"]
    assert not mark.exists()
    # So that the test can fail: git itself runs it.
    subprocess.run(["git", "status"], cwd=repository, capture_output=True, check=False)
    assert mark.exists()


def test_paths_of_a_hostile_tree_stay_inside(repository: Path, tmp_path: Path) -> None:
    with Revision("HEAD") as revision:
        entry = revision.entry("good.mlir")
        assert entry is not None
        # Git refuses to write such a tree; a repository made by hand may have one.
        revision.__dict__["_entries"] = {"saved/../../../escaped": entry}
        with pytest.raises(vt.RevisionError, match="is no path of a file"):
            Change("saved", "saved").old(revision, tmp_path)
    assert list(tmp_path.rglob("escaped*")) == []


def test_programs_that_were_deleted_are_told(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "good.mlir").rename(repository / "moved.mlir")
    left = sorted(each.name for each in repository.glob("*.mlir*"))
    (repository / left[0]).unlink()
    code, out, _ = check(capsys, *ASKED)
    assert out.splitlines()[-2] == f"{left[0]}: deleted since HEAD"
    assert out.splitlines()[-1].startswith("checked 0 programs: no errors; 5 unchanged, 1 deleted since HEAD")
    report = check_json(capsys, *ASKED)
    assert (code, report["deleted"], report["summary"]["deleted"]) == (0, [left[0]], 1)
    lines = check(capsys, *ASKED, "--output-format", "jsonl")[1].splitlines()
    assert body(lines[-1]) == {"deleted": [left[0]], "summary": report["summary"]}
    assert check_json(capsys, *ASKED, "--exclude", left[0])["deleted"] == []
    assert check_json(capsys, "m*.mlir", "--target", "1.3.0", "--against", "HEAD")["deleted"] == []
    assert check_json(capsys, "*.mlir*", "--target", "1.3.0", "--against", "HEAD")["deleted"] == [left[0]]
