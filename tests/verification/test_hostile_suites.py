"""Golden suites from elsewhere: what is wrong with a record is that record's error, and nothing outside is read."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES

import vhlo_tools as vt
from vhlo_tools.cli.main import main

SAXPY = EXAMPLES / "saxpy.mlir"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded") / "suite"
    vt.record_golden(folder, SAXPY, name="a")
    for name in ("b", "c"):
        shutil.copytree(folder / "a", folder / name)
    return folder


@pytest.fixture
def suite(recorded: Path, tmp_path: Path) -> Path:
    """Return a suite of three records, of which the tests spoil the second."""
    return Path(shutil.copytree(recorded, tmp_path / "suite"))


def edit(record: Path, change: Callable[[Any], object]) -> None:
    said = json.loads((record / "golden.json").read_text())
    change(said)
    (record / "golden.json").write_text(json.dumps(said))


def put(record: Path, data: bytes) -> None:
    """Put a file in the place of the first input."""
    (record / "input.0.npy").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    edit(record, lambda said: said["inputs"][0].update(sha256=digest))


def npy(shape: str, descr: str = "'<f4'", follow: bytes = b"") -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + follow


def outside(record: Path) -> Path:
    target = record.parent.parent / "secret.npy"
    shutil.copy(record / "input.0.npy", target)
    return target


def linked(record: Path) -> None:
    target = outside(record)
    (record / "input.0.npy").unlink()
    (record / "input.0.npy").symlink_to(target)


def manifest(content: bytes) -> Callable[[Path], object]:
    return lambda record: (record / "golden.json").write_bytes(content)


def special(name: str, make: Callable[[Path], object]) -> Callable[[Path], object]:
    def spoil(record: Path) -> None:
        (record / name).unlink()
        make(record / name)

    return spoil


def listening(path: Path) -> None:
    # Paths of sockets are short.
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def moved_out(record: Path) -> None:
    target = record.parent.parent / "elsewhere"
    record.rename(target)
    record.symlink_to(target)


def named_object(record: Path) -> None:
    put(record, npy("()", "'|V8'", bytes(8)))
    edit(record, lambda said: INPUT(said).update(dtype="object"))


def zipped() -> bytes:
    file = io.BytesIO()
    np.savez(file, np.zeros(4, np.float32))
    return file.getvalue()


def pickled() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([{}], object), allow_pickle=True)
    return file.getvalue()


INPUT: Callable[[Any], Any] = lambda said: said["inputs"][0]  # noqa: E731
#: What is done to a record, what is said of it, and the exit code.
SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "absolute": (lambda r: edit(r, lambda s: INPUT(s).update(file=str(outside(r)))), "is not the name of a file in"),
    "above": (
        lambda r: edit(r, lambda s: INPUT(s).update(file=f"../../{outside(r).name}")),
        "is not the name of a file",
    ),
    "beside": (lambda r: edit(r, lambda s: INPUT(s).update(file="../a/input.0.npy")), "is not the name of a file"),
    "zero": (lambda r: edit(r, lambda s: INPUT(s).update(file="a\0b")), "is not the name of a file"),
    "link": (linked, "outside of the record"),
    "linked record": (moved_out, "outside of the suite"),
    "loop": (special("golden.json", lambda p: p.symlink_to(p)), "golden.json"),
    "fifo": (special("input.0.npy", os.mkfifo), "it is a FIFO: expected a regular file"),
    "fifo manifest": (special("golden.json", os.mkfifo), "it is a FIFO: expected a regular file"),
    "socket": (special("model.mlirbc", listening), "No such device"),
    "folder": (special("golden.json", os.mkdir), "golden.json"),
    "empty": (manifest(b""), "is not a record: Expecting value"),
    "deep": (manifest(b"[" * 100_000), "is not a record: it nests too deeply"),
    "twice": (manifest(b'{"format": 1, "format": 1}'), "the key 'format' occurs twice"),
    "not UTF-8": (manifest(b"\xff"), "is not a record: "),
    "list": (manifest(b"[]"), "expected an object with a format"),
    "newer": (manifest(b'{"format": 2}'), "has the format 2, expected 1"),
    "lacking": (manifest(b'{"format": 1}'), "it lacks 'artifact_sha256'"),
    "type": (lambda r: edit(r, lambda s: s.update(engine=3)), "engine is 3, expected a string"),
    "inputs": (lambda r: edit(r, lambda s: s.update(inputs=3)), "is not a record: "),
    "input": (lambda r: edit(r, lambda s: s.update(inputs=[3])), "3 is not an input or output"),
    "key": (lambda r: edit(r, lambda s: INPUT(s).update(more=1)), "is not an input or output"),
    "place": (lambda r: edit(r, lambda s: INPUT(s).update(place="0" + ".0" * 5000)), "is not a place"),
    "same place": (lambda r: edit(r, lambda s: INPUT(s).update(place="1.0")), "values at the same place|place"),
    "tolerance": (lambda r: edit(r, lambda s: s.update(tolerance={"ulp": "4"})), "the tolerance ulp is '4'"),
    "dtype": (named_object, "not an element type"),
    "npz": (lambda r: put(r, zipped()), "is not an array of float32"),
    "pickle": (lambda r: put(r, pickled()), "contains Python objects"),
    "terabytes": (lambda r: put(r, npy("(1099511627776,)")), "announces 4398046511104 bytes, and 0 follow"),
    "exabytes": (lambda r: put(r, npy(f"({'1' * 4000},)")), "is not an array of float32"),
    "negative": (lambda r: put(r, npy("(-4,)", follow=bytes(4))), "is not an array of float32"),
    "header": (lambda r: put(r, npy("((((")), "is not an array of float32"),
    "truths": (lambda r: put(r, npy("(2, False)")), "is no shape"),
    "surrogate": (lambda r: edit(r, lambda s: INPUT(s).update(file="\ud800.npy")), "is half of a surrogate pair"),
    "cut": (lambda r: put(r, b"\x93NUMPY"), "is not an array of float32"),
    "missing": (lambda r: (r / "model.mlirbc").unlink(), "No such file"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("what", SPOILED)
def test_what_is_wrong_is_the_error_of_one_record(what: str, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil, message = SPOILED[what]
    spoil(suite / "b")
    code = main(["golden", "check", str(suite), "--output-format", "json"])
    records = json.loads(capsys.readouterr().out)["records"]
    assert [(each["name"], each["passed"]) for each in records] == [("a", True), ("b", False), ("c", True)]
    assert any(part in records[1]["problem"] for part in message.split("|"))
    assert (code, records[1]["readable"]) == (2, False)
    assert main(["golden", "check", str(suite)]) == 2
    said = capsys.readouterr()
    assert "b: " in said.out.replace(" (StableHLO", ": ")
    assert said.err == "3 records, 1 failed\n"


def test_another_shape_is_no_defect_of_the_record(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(suite / "b", npy("(3,)", follow=bytes(12)))
    assert main(["golden", "check", str(suite)]) == 1
    assert capsys.readouterr().err == "3 records, 1 failed\n"


def test_an_unknown_engine_is_the_error_of_one_record(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(suite / "b", lambda said: said.update(engine="warp"))
    assert main(["golden", "check", str(suite)]) == 1
    assert "b (StableHLO" in capsys.readouterr().out


def test_a_large_file_is_not_read(suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vhlo_tools.verification import golden as array_files

    monkeypatch.setattr(array_files, "LARGEST_FILE", 1 << 20)
    with (suite / "b/input.0.npy").open("ab") as file:
        file.truncate(1 << 40)
    _, found, _ = vt.check_golden(suite)
    assert found.problem is not None
    assert f"has {1 << 40} bytes; the limit is {1 << 20}" in found.problem


def test_no_record_chooses_a_plugin(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its library would run as code of the caller."""
    library = tmp_path / "plugin.so"
    library.write_bytes(b"GetPjrtApi")
    for engine in (f"pjrt:{library}", "pjrt:libtpu", "pjrt:", "gpu"):
        edit(suite / "b", lambda said, engine=engine: said.update(engine=engine))  # type: ignore[misc]
        outcomes = {each.record.name: each for each in vt.check_golden(suite)}
        assert [name for name, each in outcomes.items() if each.passed] == ["a", "c"]
        assert f"was made on the engine {engine}, which no record chooses" in str(outcomes["b"].problem)
        assert main(["golden", "check", str(suite)]) == 1
        assert "choose one that you trust (engine=, --engine)" in capsys.readouterr().out
    assert main(["golden", "check", str(suite), "--engine", "reference"]) == 0
