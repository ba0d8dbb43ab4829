"""Programs checked by the processes of an executor, which read them: the same report as in one process."""

from __future__ import annotations

import gc
import os
import subprocess
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NoReturn

import pytest
from support.gate_programs import GOOD, DeadlyExaminer, blocked, write

import vhlo_tools as vt
from vhlo_tools.api import resolve_target
from vhlo_tools.errors import SettingsError
from vhlo_tools.files import Buffer
from vhlo_tools.gate import (
    FORMATS,
    Answer,
    Baseline,
    FindingsCache,
    Gate,
    Listing,
    Override,
    Question,
    Revision,
    Settings,
    changes_since,
    listing,
    render,
)
from vhlo_tools.gate.examination import Content, Examiner, Task
from vhlo_tools.gate.examinations import DistributedExaminations
from vhlo_tools.stores import identity_of

SETTINGS = Settings(target=("1.3.0", "1.9.0"))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    """Two processes with another working directory, as workers of a cluster have."""
    other = str(tmp_path_factory.mktemp("elsewhere"))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=os.chdir, initargs=(other,)) as executor:
        yield executor


def read_nothing(path: str) -> Buffer | None:
    return None


def report(gate: Gate, paths: list[str], output_format: str, executor: Executor | None) -> str:
    files = gate.files(paths) if executor is None else gate.listing(paths)
    answers = gate.answers(files, read_nothing, executor=executor)
    return "".join(render(output_format, gate.scope(files), answers))


def test_reports_are_those_of_one_process(folder: Path, elsewhere: Executor) -> None:
    # Four of a kind are as good as twelve, and one is large.
    for path in (*folder.glob("text[4-9]*"), *folder.glob("bytes[4-9]*"), folder / "transformer_step.mlir"):
        path.unlink()
    for output_format in FORMATS:
        here, there = (report(Gate(SETTINGS), ["."], output_format, each) for each in (None, elsewhere))
        assert "text0.mlir" in here, output_format
        assert there == here, output_format


def test_a_file_that_cannot_be_read_here_has_its_place_among_the_others(folder: Path, elsewhere: Executor) -> None:
    questions = (Question(resolve_target("1.3.0")),)
    gone = Content("gone", error="gone: No such file or directory")
    contents = (gone, Content(str(folder / "text0.mlir")), gone)
    tasks = [Task(each, questions, each.path) for each in contents]
    first, found, last = DistributedExaminations(Examiner(), elsewhere).of(tasks)
    assert (first.error, last.error) == (gone.error, gone.error)
    assert found.findings[0][0].feature == "tan"


def test_a_baseline_is_that_of_one_process(folder: Path, elsewhere: Executor) -> None:
    written = []
    for executor in (None, elsewhere):
        gate = Gate(SETTINGS, Baseline(folder / "baseline.json"))
        report(gate, ["."], "json", executor)
        assert gate.baseline is not None
        gate.baseline.write()
        written.append((folder / "baseline.json").read_text())
    assert written[0] == written[1]
    # It has programs by their contents, which only the processes have read.
    assert '"content": "' in written[0]
    again = Gate(SETTINGS, Baseline.read(folder / "baseline.json"))
    states = {each.path: each.state for each in again.answers(again.listing(["."]), read_nothing, executor=elsewhere)}
    assert states["text0.mlir"] == states["bytes0.mlirbc"] == "ok"
    assert again.baseline is not None
    assert again.baseline.stale() == []


class Idle(Executor):
    """An executor that is asked for nothing."""

    def submit(self, *arguments: object, **options: object) -> NoReturn:
        raise AssertionError("a program is read that is known")


def test_what_is_known_is_not_sent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vhlo_tools.stores.members._SETTLED", -1)
    for path in (*folder.glob("text[4-9]*"), *folder.glob("bytes[4-9]*"), *folder.glob("bad*"), *folder.glob("cut*")):
        path.unlink()

    def again(executor: Executor) -> list[Answer]:
        gate, cache = Gate(SETTINGS, Baseline(folder / "baseline.json")), FindingsCache(folder / "cache")
        return list(gate.answers(gate.listing(["."]), read_nothing, executor=executor, cache=cache))

    with ThreadPoolExecutor(1) as thread:
        found = again(thread)
    assert again(Idle()) == found
    # Other content of the same size, with the times of the old one.
    changed = folder / "bytes0.mlirbc"
    before, data = changed.stat(), changed.read_bytes()
    assert data.count(b"model.py") == 1
    changed.write_bytes(data.replace(b"model.py", b"other.py"))
    os.utime(changed, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(AssertionError, match="a program is read that is known"):
        again(Idle())
    with ThreadPoolExecutor(1) as thread:
        (other,) = (each for each in again(thread) if each.path == "bytes0.mlirbc")
    assert {str(finding.location).partition(":")[0] for _, finding in other.findings} == {"other.py"}


def test_what_changed_since_it_was_listed_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows which of the two was examined, nor whether a file that was just written is written again."""
    questions = (Question(resolve_target("1.3.0")),)
    path = folder / "text0.mlir"

    def examined(identity: str | None) -> str | None:
        (found,) = Examiner()([Task(Content(str(path), identity=identity), questions, str(path))])
        return found.identity

    monkeypatch.setattr("vhlo_tools.stores.members._SETTLED", -1)
    listed = identity_of(path.stat())
    assert examined(listed) == listed is not None
    assert examined("1 2 3 4") is None
    assert examined(None) is None
    monkeypatch.setattr("vhlo_tools.stores.members._SETTLED", 1 << 62)
    assert identity_of(path.stat()) is None
    assert examined(listed) is None


def test_standard_input_is_sent(folder: Path, elsewhere: Executor) -> None:
    def read(path: str) -> bytes | None:
        return blocked(7).encode() if path == "-" else None

    paths = ["text0.mlir", "-", "missing.mlir"]
    first, standard, missing = Gate(SETTINGS).answers(paths, read, executor=elsewhere)
    assert [each.path for each in (first, standard, missing)] == paths
    assert (first.state, standard.state) == ("blocked", "blocked")
    assert [str(found.location) for _, found in standard.findings][:1] == ["model.py:7:3"]
    assert missing.error == "missing.mlir: No such file or directory"


def test_what_programs_were_is_sent(folder: Path, elsewhere: Executor) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "first"]):
        subprocess.run([*git, *command], check=True)
    write(folder / "text0.mlir", blocked(1, 2))
    write(folder / "new.mlir", blocked(1))
    write(folder / "copy0.mlirbc", blocked(1))
    gate, found = Gate(SETTINGS), []
    for executor in (None, elsewhere):
        with Revision("HEAD") as revision:
            changes = changes_since(revision, gate.files(["."])).changed
            found.append(list(gate.answers_against(revision, changes, read_nothing, executor=executor)))
    assert [each.path for each in found[0]] == ["copy0.mlirbc", "new.mlir", "text0.mlir"]
    assert any(finding.feature == "regression_finding" for _, finding in found[0][2].findings)
    assert found[0] == found[1]


def test_stores_are_checked_from_python(folder: Path, elsewhere: Executor) -> None:
    (folder / "scratch").mkdir()
    write(folder / "scratch" / "text.mlir", blocked(1))
    expected = list(Gate(SETTINGS).answers(Gate(SETTINGS).files(["."])[:-1], read_nothing))
    assert len(expected) > 30
    for given in ({}, {"jobs": 2}, {"executor": elsewhere}):
        found = list(vt.check_store(".", ["1.3.0", vt.Version("1.9.0")], exclude=["scratch/"], **given))
        assert found == expected
    (answer,) = vt.check_store([Path("bytes0.mlirbc")], readable_by="1.3.0", executor=elsewhere)
    assert "result_accuracy" in {finding.feature for _, finding in answer.findings}
    for paths, target, error in (
        ("missing", "1.3.0", vt.SettingsError),
        (".", "elsewhere==1.0", vt.UnknownTargetError),
        (".", (), ValueError),
    ):
        with pytest.raises(error):
            vt.check_store(paths, target, executor=elsewhere)


def test_a_process_that_crashes_belongs_to_whoever_started_it(folder: Path) -> None:
    write(folder / "deadly.mlir", GOOD)
    questions = (Question(resolve_target("1.3.0")),)
    requests = [Task(Content(each), questions, each) for each in ("text0.mlir", "deadly.mlir", "text1.mlir")]
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor,
        pytest.raises(vt.WorkerError, match="only the owner of the executor can restart it"),
    ):
        list(DistributedExaminations(DeadlyExaminer(), executor).of(requests))


def test_a_listing_is_found_as_it_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "_HEAD", 3)
    found = Listing(["."], SETTINGS)
    assert [each.path for each in found.head()] == ["bad0.mlir", "bad1.mlir", "bad2.mlir"]
    assert (found.number, found.is_complete) == (3, False)
    paths = [each.path for each in found]
    assert paths == Gate(SETTINGS).files(["."])
    assert (found.number, found.is_complete) == (len(paths), True)
    assert found.size == sum((folder / each).stat().st_size for each in paths)
    # Each once, whatever leads to it.
    twice = ["text0.mlir", ".", "text*.mlir", "./**/**/text1.mlir"]
    assert sorted(each.path for each in Listing(twice, SETTINGS)) == sorted([*paths, "./text1.mlir"])
    with pytest.raises(SettingsError, match="missing: not a file"):
        Listing([".", "missing"], SETTINGS)


def test_the_questions_of_a_listing_that_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(target=("1.3.0",), overrides=(Override(("text*",), {}, target=("1.9.0",)),))
    gate = Gate(settings)
    assert [str(each) for each in gate.scope(gate.listing(["bad0.mlir"])).questions] == ["1.3.0"]
    monkeypatch.setattr(listing, "_HEAD", 1)
    assert [str(each) for each in gate.scope(gate.listing(["."])).questions] == ["1.3.0", "1.9.0"]


def test_memory_does_not_grow_with_the_store(tmp_path: Path, elsewhere: Executor) -> None:
    """What this process holds when the last answer comes is no more for ten times as many files."""
    text = bytes(vt.serialize(GOOD))
    held: list[int] = []
    # The first run has imports.
    for number in (100, 100, 1000):
        top = tmp_path / f"{len(held)}"
        for each in range(number):
            path = top / f"{each // 100}" / f"{each:05}.mlirbc"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        gate = Gate(SETTINGS, Baseline(tmp_path / "baseline.json"))
        tracemalloc.start()
        try:
            answers = gate.answers(gate.listing([str(top)]), read_nothing, executor=elsewhere)
            assert all(answer.ok for answer in islice(answers, number))
            gc.collect()
            # The table of names that pathlib interns grows by steps, and not with the names that are in use.
            others = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, "*pathlib*")])
            held.append(sum(each.size for each in others.statistics("filename")))
            assert next(answers, None) is None
        finally:
            tracemalloc.stop()
    # One path for each file would be more.
    assert held[2] < held[1] + 50_000, held
