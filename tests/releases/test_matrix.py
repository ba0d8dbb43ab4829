"""The matrix of releases: real ones, and what is said of them."""

from __future__ import annotations

import json
import subprocess
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.corpus import EXAMPLES, FEATURES, ROOT
from support.endless_programs import LOOP
from support.json_records import schema_problems
from support.vhlo_process import vhlo_process as run_vhlo

import vhlo_tools as vt
from vhlo_tools.cli.matrix import text_lines
from vhlo_tools.releases import (
    Answer,
    Cell,
    Evaluation,
    Matrix,
    MatrixProgram,
    PackageRelease,
    ReleaseFacts,
    ReleaseProcess,
    build_matrix,
    environment,
    specified_version,
)

pytestmark = pytest.mark.releases

HISTORY = ROOT / "tests" / "programs" / "history"
PROGRAMS = {
    "saxpy": EXAMPLES / "saxpy.mlir",
    "integers": HISTORY / "integers.mlir",
    "complex": HISTORY / "complex_numbers.mlir",
    "tan": FEATURES / "tan.mlir",
    "algorithm": FEATURES / "dot_algorithm.mlir",
    "sharded": EXAMPLES / "sharded_matmul.mlir",
    "loop": HISTORY / "control_flow.mlir",
}
PRODUCERS = ("jaxlib==0.4.13", "jaxlib==0.4.31", "torch-mlir==20261001")
CONSUMERS = ("jaxlib==0.4.31", "jaxlib==0.8.3", "torch-mlir==20261001")


def vhlo(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    done = run_vhlo(*map(str, arguments), **options)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@cache
def made() -> Matrix:
    return vt.matrix(PROGRAMS, producers=PRODUCERS, consumers=CONSUMERS, jobs=2)


def cell(program: str, producer: str, consumer: str) -> Cell:
    (found,) = (
        each for each in made().cells if (each.program, each.producer, each.consumer) == (program, producer, consumer)
    )
    return found


def test_every_prediction_is_confirmed() -> None:
    matrix = made()
    assert len(matrix.cells) == len(PROGRAMS) * len(PRODUCERS) * len(CONSUMERS)
    assert [str(each) for each in (*matrix.disagreements, *matrix.differing)] == []
    assert matrix.passed
    assert not matrix.contradicted


def test_outcomes_are_those_of_the_releases() -> None:
    assert cell("saxpy", "jaxlib==0.4.13", "jaxlib==0.8.3").outcome == "equal"
    # `tan` came with 1.4.0; the producer of 0.13.4 does not know it.
    unwritten = cell("tan", "jaxlib==0.4.13", "jaxlib==0.8.3")
    assert (unwritten.outcome, unwritten.predicted, unwritten.version) == ("unwritten", False, None)
    assert "1.4.0" in unwritten.reasons[0]
    refused = cell("algorithm", "torch-mlir==20261001", "jaxlib==0.4.31")
    assert (refused.outcome, refused.predicted, refused.confirmed) == ("refused", False, True)
    assert refused.words
    # What other dialects become, no specification says.
    assert cell("sharded", "torch-mlir==20261001", "jaxlib==0.8.3").predicted is None


def test_the_specification_knows_releases_by_every_name() -> None:
    version = vt.Version("1.13.7")
    for name in ("tensorflow==2.21.0", "tensorflow-cpu==2.21.0"):
        assert specified_version(PackageRelease.parse(name)) == version
    assert specified_version(PackageRelease.parse("jax==0.4.31")) == specified_version(
        PackageRelease.parse("jaxlib==0.4.31")
    )
    assert specified_version(PackageRelease.parse("jaxlib==9.9.9")) is None


def facts(name: str, version: str, said: str | None = None) -> ReleaseFacts:
    return ReleaseFacts(name, vt.Version(version), vt.Version(said or version), {})


def test_a_disagreement_is_said_with_the_words_of_both() -> None:
    reasons = ("stablehlo.tan needs StableHLO 1.4.0",)
    cells = (
        Cell("a", "p==1", "c==1", vt.Version("1.9.0"), True, (), "refused", False, "read: unknown op"),
        Cell("b", "p==1", "c==1", vt.Version("1.9.0"), False, reasons, "equal", True),
        Cell("c", "p==1", "c==1", None, True, (), "unwritten", False, "write: no"),
        Cell("d", "p==1", "c==1", vt.Version("1.9.0"), True, (), "differs", True, "output 0: far off"),
        Cell("e", "p==1", "c==1", vt.Version("1.9.0"), True, (), "crash", False, "ended by SIGSEGV"),
    )
    matrix = Matrix((facts("p==1", "1.9.0"),), (facts("c==1", "1.9.0", "1.8.0"),), tuple("abcde"), cells)
    assert [each.program for each in matrix.disagreements] == ["a", "b", "c", "e"]
    assert [each.program for each in matrix.differing] == ["d"]
    assert [str(each) for each in matrix.contradicted] == ["c==1"]
    assert not matrix.passed
    said = "\n".join(map(str, cells))
    assert "the specification says that c==1 reads it; but c==1 refuses it: read: unknown op" in said
    assert "does not read it (stablehlo.tan needs StableHLO 1.4.0); but c==1 reads it, and computes the same" in said
    assert "c: the specification says that p==1 can write it; p==1 did not write it: write: no" in said
    assert "c==1 died of it: ended by SIGSEGV" in said


def test_what_a_release_read_and_then_died_of_was_read() -> None:
    cell = Cell("a", "p==1", "c==1", vt.Version("1.9.0"), True, (), "crash", True, "ended by SIGSEGV")
    matrix = Matrix((facts("p==1", "1.9.0"),), (facts("c==1", "1.9.0"),), ("a",), (cell,))
    assert "p==1        1.9.0      1/1" in list(text_lines(matrix))
    assert matrix.passed


def test_the_command(tmp_path: Path) -> None:
    arguments = ["matrix", EXAMPLES / "saxpy.mlir", FEATURES / "tan.mlir", "--producers", "jaxlib==0.8.3"]
    arguments += ["--consumers", "jaxlib==0.4.31,jaxlib==0.8.3"]
    done = vhlo(*arguments)
    assert done.returncode == 0, done.stderr
    assert "jaxlib==0.8.3  1.13.5     1/2 (1=)        2/2 (2=)" in done.stdout
    assert "4 cells: 4 of 4 predictions confirmed" in done.stdout
    assert "jaxlib==0.8.3 wrote 2 of 2 programs" in done.stderr
    report = tmp_path / "matrix.json"
    done = vhlo(*arguments, "--no-run", "--target", "1.0.0", "--output-format", "json", "-o", report)
    assert done.returncode == 1  # `tan` cannot be written for 1.0.0, though the producer has it
    found = json.loads(report.read_text())
    assert schema_problems("matrix", found) == []
    assert {(each["program"], each["outcome"]) for each in found["cells"]} == {
        (str(EXAMPLES / "saxpy.mlir"), "read"),
        (str(FEATURES / "tan.mlir"), "unwritten"),
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--producers", "jaxlib", "--consumers", "jaxlib==0.8.3"], "'jaxlib' is not a release"),
        (["--producers", ",", "--consumers", "jaxlib==0.8.3"], "at least one release"),
        (["--producers", "iree-base-compiler==3.13.0", "--consumers", "jaxlib==0.8.3"], "writes no artifacts"),
        (["--producers", "packaging==24.0", "--consumers", "jaxlib==0.8.3"], "does not read artifacts"),
        (
            ["--producers", "jaxlib==0.8.3", "--consumers", "jaxlib==0.8.3", "--picture", "a.gif"],
            "expected a name that ends in .svg, .png, .pdf",
        ),
        (["--producers", "jaxlib==0.8.3", "--consumers", "jaxlib==0.8.3", "--format", "parquet"], "give -o FILE"),
    ],
)
def test_mistakes_are_errors(arguments: list[str], said: str) -> None:
    done = vhlo("matrix", EXAMPLES / "saxpy.mlir", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_release_has_one_column_however_it_is_spelt() -> None:
    found = vt.matrix(
        [EXAMPLES / "saxpy.mlir", bytes(vt.serialize(EXAMPLES / "saxpy.mlir", "1.0.0"))],
        producers=["jaxlib==0.8.3", "JAXLIB == 0.8.3"],
        consumers=["jaxlib==0.8.3"],
        run=False,
    )
    assert [str(each) for each in found.producers] == ["jaxlib==0.8.3"]
    assert found.programs == (str(EXAMPLES / "saxpy.mlir"), "program 1")
    assert found.counts("jaxlib==0.8.3", "jaxlib==0.8.3").total() == 2


@pytest.mark.parametrize("wrong", [b"", b"not an archive"])
def test_results_that_are_none_are_a_cell(wrong: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a process that a program took over."""
    answer = Answer(parts=(wrong,) if wrong else ())
    monkeypatch.setattr(ReleaseProcess, "run", lambda *_, **__: answer)
    found = vt.matrix([EXAMPLES / "saxpy.mlir"], producers=["jaxlib==0.8.3"], consumers=["jaxlib==0.8.3"])
    (cell,) = found.cells
    assert cell.outcome == "read"
    assert "its results cannot be read" in cell.words


def test_work_that_ends_early_waits_for_no_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One consumer does not start, while another runs what does not end; Ctrl-C ends the work as this error does."""
    environments = tmp_path / "environments"
    broken = environments / "jaxlib-0.4.31-py311" / "bin" / "python"
    broken.parent.mkdir(parents=True)
    broken.symlink_to("/bin/false")
    (broken.parents[1] / "companions.txt").write_text("msgspec")
    whole = environment("jaxlib==0.8.3").parents[1]
    (environments / whole.name).symlink_to(whole)
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path))
    value = np.asarray(np.float32(1))
    endless = MatrixProgram("endless", vt.serialize(LOOP, "1.0.0"), Evaluation((value,), (value,)))
    consumers = ("jaxlib==0.4.31", "jaxlib==0.8.3")
    begun = time.monotonic()
    with pytest.raises(vt.ReleaseEnvironmentError, match=r"jaxlib==0\.4\.31 does not start"):
        build_matrix([endless], consumers[1:], consumers, jobs=2, timeout=300, say=lambda line: None)
    assert time.monotonic() - begun < 60


@pytest.mark.skipif(find_spec("matplotlib") is not None, reason="pictures can be drawn here")
def test_a_picture_that_cannot_be_drawn_is_said_before_the_work(tmp_path: Path) -> None:
    releases = ["--producers", "jaxlib==0.8.3", "--consumers", "jaxlib==0.8.3"]
    done = vhlo("matrix", EXAMPLES / "saxpy.mlir", *releases, "--picture", tmp_path / "a.svg")
    assert done.returncode == 2
    assert "pip install '.[releases]' in a clone of vhlo_tools" in done.stderr
    assert "wrote" not in done.stderr


def test_sizes_are_said_and_nothing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VHLO_TOOLS_CACHE", str(tmp_path))
    releases = ["--producers", "jaxlib==0.8.3", "--consumers", "torch-mlir==20261001"]
    done = vhlo("matrix", EXAMPLES / "saxpy.mlir", *releases, "--sizes")
    assert done.returncode == 0, done.stderr
    first, second, total = done.stdout.splitlines()
    assert first.startswith("jaxlib==0.8.3: downloads at most ")
    assert second.startswith("torch-mlir==20261001: downloads at most ")
    assert int(total.split()[-2]) > 100
    assert not list(tmp_path.iterdir())
