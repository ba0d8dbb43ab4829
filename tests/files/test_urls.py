from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.errors import InvalidUrlError
from vhlo_tools.files import Url, glob_start, is_glob, is_url, local_path, matcher, place


@pytest.mark.parametrize(
    ("text", "bucket", "key"),
    [
        ("s3://b/k", "b", "k"),
        ("s3://b", "b", ""),
        ("S3://b/a//c d%20e?f#g", "b", "a//c d%20e?f#g"),
        ("gs://b//k", "b", "/k"),
        ("az://c/ü/*.mlirbc", "c", "ü/*.mlirbc"),
        ("memory://a/b", "", "a/b"),
    ],
)
def test_urls_of_objects(text: str, bucket: str, key: str) -> None:
    found = place(text)
    assert isinstance(found, Url)
    assert (found.bucket, found.key) == (bucket, key)
    assert place(str(found)) == place(os.fspath(found)) == place(found) == found


def test_the_account_of_azure() -> None:
    found = place("abfss://c@account.dfs.core.windows.net/k")
    assert isinstance(found, Url)
    assert (found.bucket, found.key, found.account) == ("c", "k", "account.dfs.core.windows.net")
    assert place(str(found)) == found


def test_local_paths_stay_what_they_are(tmp_path: Path) -> None:
    for text in ("a/b.mlirbc", "/a", "./s3:/b", "with:colon", "C:"):
        assert place(text) == Path(text)
    assert not is_url("s3:/b/k")
    file = tmp_path / "ü 1.mlirbc"
    assert place(file.as_uri()) == place(f"file://{file}") == place(f"file://localhost{file}") == file
    file = tmp_path / "100%25"
    file.touch()
    assert place(f"file://{file}") == file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://host/a.mlirbc", "https:// is not supported: expected s3://, gs://, .* download the file first"),
        ("ftp://host/a", "ftp:// is not supported"),
        ("s3://", "names no bucket"),
        ("gs:///k", "names no bucket"),
        ("s3://*/k", "only keys may be globs"),
        ("file://elsewhere/k", "a file of the machine elsewhere"),
        ("az://c@http://evil/k", "not an account"),
        (Path("s3://b/k"), "drops a slash: pass the URL as a str"),
    ],
)
def test_what_is_no_place(text: str | Path, told: str) -> None:
    with pytest.raises(InvalidUrlError, match=told):
        place(text)


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA:hidden@b/k",
        "https://user:hidden@host/k",
        "az://c/k?sv=2024&sig=hidden",
        "s3://b/k?X-Amz-Credential=a&X-Amz-Signature=hidden",
        "gs://b/k?X-Goog-Signature=hidden",
    ],
)
def test_secrets_are_not_repeated(text: str) -> None:
    with pytest.raises(InvalidUrlError) as caught:
        place(text)
    assert "hidden" not in str(caught.value)
    assert "***" in str(caught.value)


def test_parts_of_urls() -> None:
    url = Url("s3", "b", "folder/name.tar.mlirbc")
    assert (url.name, url.suffix, str(url.parent)) == ("name.tar.mlirbc", ".mlirbc", "s3://b/folder/")
    assert str(url.with_suffix(".npy")) == "s3://b/folder/name.tar.npy"
    assert str(Url("s3", "b", "") / "k") == str(Url("s3", "b", "k")) == "s3://b/k"
    assert str(Url("s3", "b", "a/") / "k") == str(Url("s3", "b", "a") / "k") == "s3://b/a/k"
    assert [each.is_prefix for each in (url, url.parent, Url("s3", "b", ""))] == [False, True, True]


def test_what_must_be_local() -> None:
    assert local_path("a/b", "a suite") == Path("a/b")
    with pytest.raises(InvalidUrlError, match="a suite must be local"):
        local_path("s3://b/k", "a suite")


GLOBS = {
    "a/*.mlirbc": (["a/x.mlirbc", "a/ü.mlirbc"], ["a/b/x.mlirbc", "a/.x.mlirbc", "a/x.mlir"]),
    "**/*.mlirbc": (["x.mlirbc", "a/b/x.mlirbc"], ["a/.hidden/x.mlirbc", "x"]),
    "a/**": (["a/x", "a/b/c"], ["a/.x", "b/a"]),
    "a/**/b": (["a/b", "a/c/d/b"], ["ab", "a/cb"]),
    "v[0-9]?/x": (["v1a/x"], ["v1/x", "va1/x", "v1//x"]),
    "[!a]x": (["bx"], ["ax", "/x", ".x"]),
    "x[": (["x["], ["x"]),
    "a.b+(c)*": (["a.b+(c)d"], ["aXb+(c)d"]),
}


@pytest.mark.parametrize("pattern", GLOBS)
def test_globs_of_keys(pattern: str) -> None:
    url = Url("s3", "b", pattern)
    chosen = matcher(url.key)
    fits, others = GLOBS[pattern]
    assert [key for key in (*fits, *others) if chosen.fullmatch(key)] == fits
    assert is_glob(url)
    assert all(key.startswith(glob_start(url).key) for key in fits)


def test_globs_choose_what_python_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import glob

    names = ("a.x", "b/a.x", "b/.c/a.x", ".a.x", "b/c/d/a.x", "b/[a].x", "b/a-.x")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for pattern in ("*.x", "**/*.x", "b/*", "b/**", "**/c/**/*.x", "?.x", "b/[[]a*", "b/[!b]*.x", "b/[a-]-.x"):
        expected = {each for each in glob.glob(pattern, recursive=True) if Path(each).is_file()}  # noqa: PTH207
        chosen = matcher(pattern)
        assert {name for name in names if chosen.fullmatch(name)} == expected, pattern


def test_a_file_url_is_a_path_for_the_gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(tmp_path / "a.mlirbc")
    assert main(["check", "--target", "1.4.0", tmp_path.as_uri(), "--output-format", "json"]) == 0
    assert [each["path"] for each in json.loads(capsys.readouterr().out)["files"]] == [str(tmp_path / "a.mlirbc")]


@pytest.mark.long
def test_a_store_may_be_named_by_the_url_of_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, moved, journal = tmp_path / "a store", tmp_path / "moved", tmp_path / "journal"
    store.mkdir()
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.9.0").save(store / "saxpy.mlirbc")
    asked = ["migrate", store.as_uri(), "--target", "1.4.0", "--output-dir", moved.as_uri()]
    assert main([*asked, "--journal", journal.as_uri()]) == 0
    assert journal.is_file()
    assert vt.open_artifact((moved / "saxpy.mlirbc").as_uri()).version == vt.Version("1.4.0")
    assert main(["verify", store.as_uri(), moved.as_uri()]) == 0
    assert main(["store", "status", store.as_uri(), "--output-format", "json"]) == 0
    assert str(store / "saxpy.mlirbc") in capsys.readouterr().out
    (record,) = vt.migrate(store.as_uri(), "1.3.0")
    assert (record.path, record.status) == (str(store / "saxpy.mlirbc"), "moved")
    assert main([*asked, "--journal", "s3://bucket/journal"]) == 2
    assert "a journal must be local" in capsys.readouterr().err
