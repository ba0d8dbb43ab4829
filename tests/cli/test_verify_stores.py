"""``vhlo verify`` of two stores, and ``vt.verify_stores``: every pair has its outcome, whatever it holds."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import tracemalloc
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import pytest
from support.corpus import EXAMPLES
from support.json_records import body

import vhlo_tools as vt
from vhlo_tools.api import EquivalenceChecker, store_verification
from vhlo_tools.cli.main import main
from vhlo_tools.stores import Workers

#: Programs of one meaning that the library does not read as one, and a third of another.
TWICE, SUM, SQUARE, WIDER = (
    f"func.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> {{\n{body}"
    f"  return %0 : tensor<{size}xf32>\n}}\n".replace("SIZE", str(size))
    for size, body in (
        (4, "  %c = stablehlo.constant dense<2.0> : tensor<4xf32>\n  %0 = stablehlo.multiply %a, %c : tensor<4xf32>\n"),
        (4, "  %0 = stablehlo.add %a, %a : tensor<4xf32>\n"),
        (4, "  %0 = stablehlo.multiply %a, %a : tensor<4xf32>\n"),
        (8, "  %0 = stablehlo.add %a, %a : tensor<8xf32>\n"),
    )
)
CALL = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @unknown(%a) {backend_config = "NUMBER"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stores with a pair of each outcome."""
    folder = tmp_path_factory.mktemp("stores")
    old, new = folder / "old", folder / "new"
    written = {
        "bytes": (TWICE, TWICE),
        "folder/results": (TWICE, SUM),
        "mismatch": (TWICE, SQUARE),
        "other inputs": (TWICE, WIDER),
        "unverified": (CALL.replace("NUMBER", "1"), CALL.replace("NUMBER", "2")),
        "missing": (TWICE, None),
        "added": (None, TWICE),
    }
    for store in (old, new):
        (store / "folder").mkdir(parents=True)
    for name, texts in written.items():
        for store, text in zip((old, new), texts, strict=True):
            if text is not None:
                vt.serialize(text, "1.9.0").save(store / f"{name}.mlirbc")
    vt.retarget(old / "bytes.mlirbc", "1.1.0").save(new / "program.mlirbc")
    (old / "program.mlirbc").write_bytes((old / "bytes.mlirbc").read_bytes())
    (old / "text.mlir").write_text(TWICE)
    vt.serialize(TWICE, "1.1.0").save(new / "text.mlirbc")
    for store in (old, new):
        (store / "evaluate.jax_export").write_bytes((EXAMPLES / "jax_store/evaluate.jax_export").read_bytes())
        (store / "damaged.mlirbc").write_bytes((old / "bytes.mlirbc").read_bytes()[:100])
    return folder


@pytest.fixture(autouse=True)
def stores(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


OUTCOMES = {
    "added.mlirbc": ("added", None),
    "bytes.mlirbc": ("same", "same bytes"),
    "damaged.mlirbc": ("unreadable", None),
    "evaluate.jax_export": ("same", "same bytes"),
    "folder/results.mlirbc": ("same", "same results"),
    "mismatch.mlirbc": ("mismatch", None),
    "missing.mlirbc": ("missing", None),
    "other inputs.mlirbc": ("mismatch", None),
    "program.mlirbc": ("same", "same program"),
    "text.mlirbc": ("same", "same program"),
    "unverified.mlirbc": ("unverified", None),
}


def test_every_pair_has_its_outcome_in_any_process() -> None:
    with ThreadPoolExecutor(2) as threads:
        for given in ({}, {"jobs": 2}, {"executor": threads}):
            found = list(vt.verify_stores("old", Path("new"), rounds=2, **given))
            # In the order of the second store; then what it lacks.
            paths = sorted(
                (each.path for each in found), key=lambda path: (path == "missing.mlirbc", "/" in path, path)
            )
            assert [each.path for each in found] == paths
            assert {each.path: (each.status, each.verified) for each in found} == OUTCOMES
    by_path = {each.path: each for each in found}
    differs = "new/mismatch.mlirbc does not compute the same as old/mismatch.mlirbc"
    assert differs in str(by_path["mismatch.mlirbc"].reason)
    assert "only programs with the same parameters" in str(by_path["other inputs.mlirbc"].reason)
    assert "old/damaged.mlirbc: " in str(by_path["damaged.mlirbc"].reason)
    program, text = by_path["program.mlirbc"], by_path["text.mlirbc"]
    assert (str(program.version), str(program.new_version), program.kind) == ("1.9.0", "1.1.0", "portable-artifact")
    assert (text.before, text.after, text.kind, text.version) == ("old/text.mlir", "new/text.mlirbc", "mlir-text", None)
    assert program.size == Path("old/program.mlirbc").stat().st_size
    assert by_path["missing.mlirbc"].size == Path("old/missing.mlirbc").stat().st_size
    assert all(each.seconds is not None for each in found)


@pytest.mark.usefixtures("kept")
def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["verify", "old", "new", "--rounds", "2", "-j", "2"]
    assert main(command) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["added", "-", *_size("new/added.mlirbc"), "added.mlirbc"]
    assert lines[-1].startswith("5 the same (2 by bytes, 2 by program, 1 by results; ")
    assert lines[-1].count(",") == 2 + 5
    assert main([*command, "--exclude", "damaged*", "--output-format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], len(report["files"])) == (False, len(OUTCOMES) - 1)
    assert report["summary"]["files"] == {"same": 5, "mismatch": 2, "unverified": 1, "missing": 1, "added": 1}
    same = ["--exclude", "[!befpt]*", "--exclude", "damaged*"]
    assert main([*command, *same, "-o", "report.jsonl", "--output-format", "jsonl"]) == 0
    assert "4 the same (2 by bytes, 2 by program; " in capsys.readouterr().err
    *files, end = (body(line) for line in Path("report.jsonl").read_text().splitlines())
    assert end == {"ok": True, "summary": end["summary"]}
    assert [each["path"] for each in files if each["ok"]] == [
        "bytes.mlirbc",
        "evaluate.jax_export",
        "program.mlirbc",
        "text.mlirbc",
    ]


@pytest.mark.usefixtures("kept")
def test_names_control_no_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for store in ("old", "new"):
        Path(store, "mismatch.mlirbc").rename(f"{store}/\x1b[31m\n::error::.mlirbc")
    Path(os.fsdecode(b"old/\xff.mlirbc")).write_bytes(Path("old/bytes.mlirbc").read_bytes())
    command = ["verify", "old", "new", "--rounds", "1", "-j", "2", "--exclude", "[!?:]*[!:].mlirbc"]
    for arguments in (command, [*command, "-o", "report.txt"]):
        assert main(arguments) == 1
    texts = [capsys.readouterr().out, Path("report.txt").read_text()]
    for text in texts:
        assert "\\x1b[31m" in text
        assert "\x1b" not in text
        assert "\n::error" not in text
    assert "does not compute the same as" in texts[0]
    assert main([*command, "--output-format", "json"]) == 1
    assert any(each["status"] == "missing" for each in json.loads(capsys.readouterr().out)["files"])


def _size(path: str) -> list[str]:
    return [str(Path(path).stat().st_size), "B"]


def test_options_that_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    files = ["old/bytes.mlirbc", "new/bytes.mlirbc"]
    for arguments, message in (
        (["old", "new", "-i", "1"], "-i, --engines, --handler and --bisect are for two programs"),
        (["old", "new", "--bisect"], "-i, --engines, --handler and --bisect are for two programs"),
        (["old", "new", "--output-format", "parquet"], "give -o FILE"),
        (["old", "new", "-o", "new"], "new is a folder"),
        (["old", "new/bytes.mlirbc"], "new/bytes.mlirbc is not a store as old is"),
        ([*files, "-j", "2"], "are for stores"),
        ([*files, "--exclude", "*"], "are for stores"),
        ([*files, "--dask", "tcp://127.0.0.1:1"], "are for stores"),
        ([*files, "--output-format", "jsonl"], "--output-format jsonl is for stores"),
    ):
        assert main(["verify", *arguments]) == 2
        assert message in capsys.readouterr().err
    assert main(["verify", *files, "-o", "report.txt"]) == 0
    assert Path("report.txt").read_text().startswith("new/bytes.mlirbc computes the same as old/bytes.mlirbc")
    assert capsys.readouterr().out == ""


def test_memory_does_not_grow_with_the_stores(tmp_path: Path) -> None:
    """What is held when the last record comes is no more for ten times as many pairs."""
    program = Path("old/bytes.mlirbc").read_bytes()
    held: list[int] = []
    # The first run has imports.
    for number in (100, 100, 1000):
        for store in ("one", "other"):
            for each in range(number):
                path = tmp_path / f"{store}{len(held)}" / f"{each // 100}" / f"{each:05}.mlirbc"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(program)
        tracemalloc.start()
        try:
            records = vt.verify_stores(tmp_path / f"one{len(held)}", tmp_path / f"other{len(held)}")
            assert all(record.verified == "same bytes" for record in islice(records, number))
            gc.collect()
            # The table of names that pathlib interns grows by steps, and not with the names that are in use.
            others = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, "*pathlib*")])
            held.append(sum(each.size for each in others.statistics("filename")))
            assert next(records, None) is None
        finally:
            tracemalloc.stop()
    # One path for each pair would be more.
    assert held[2] < held[1] + 50_000, held


def _die(self: object, tasks: Sequence[store_verification._Task]) -> list[vt.PairRecord]:
    if any("mismatch" in task.pair.path for task in tasks):
        os.kill(os.getpid(), signal.SIGKILL)
    return store_verification._Comparison(EquivalenceChecker())(tasks)


class Deadly:
    __call__ = _die


def test_a_pair_that_kills_its_process_has_failed_alone() -> None:
    verification = store_verification.StoreVerification("old", "new", EquivalenceChecker(rounds=2))
    verification._work = Deadly()  # type: ignore[assignment]
    with Workers(jobs=2) as workers:
        found = {each.path: (each.status, each.verified) for each in verification.records(workers)}
    assert found == {**OUTCOMES, "mismatch.mlirbc": ("failed", None)}
