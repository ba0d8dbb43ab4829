"""Programs checked in several processes: the same report as in one, whatever becomes of the processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.gate_programs import GOOD, DeadlyExaminer, blocked, check, write
from support.vhlo_process import kept_workers

from vhlo_tools.api import Checked, resolve_target
from vhlo_tools.findings import Finding
from vhlo_tools.gate import FORMATS, Question, contents, examinations
from vhlo_tools.gate.contents import digest_at, read_ahead, unread
from vhlo_tools.gate.examination import Content, Examination, Examiner, Task
from vhlo_tools.gate.examinations import Examinations
from vhlo_tools.gate.findings_cache import FindingsCache
from vhlo_tools.stores import ListedFile

QUESTIONS = (Question(resolve_target("1.3.0")),)


@pytest.fixture
def started() -> Iterator[list[int]]:
    """Let programs be examined by processes that others have been examined by; return the numbers asked for."""
    with kept_workers() as asked:
        yield asked


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes after the first program, whatever it took."""
    monkeypatch.setattr(examinations, "_TRIED", 0.0)
    monkeypatch.setattr(examinations, "_WORTH", 0.0)


@pytest.mark.usefixtures("soon")
def test_reports_do_not_depend_on_the_number_of_processes(
    folder: Path, started: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    # Four of a kind are as good as twelve, and one is large.
    for path in (*folder.glob("text[4-9]*"), *folder.glob("bytes[4-9]*"), folder / "transformer_step.mlir"):
        path.unlink()
    for output_format in FORMATS:
        asked = (".", "--target", "1.3.0", "--target", "1.9.0", "--output-format", output_format, "--no-cache")
        one, two = (check(capsys, *asked, "-j", jobs)[:2] for jobs in ("1", "2"))
        assert one == two, output_format
        assert one[0] == 2, output_format
    assert started == [2] * len(FORMATS)


@pytest.mark.usefixtures("soon")
def test_a_report_of_processes_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (".", "--target", "1.3.0", "--exclude", "[!bt]*", "--no-cache")
    one, two = (check(capsys, *asked, "-j", jobs)[:2] for jobs in ("1", "2"))
    assert one == two
    assert (one[0], "text11.mlir" in one[1]) == (2, True)


def requests(*paths: str) -> Iterator[Task]:
    return (
        Task(each, QUESTIONS, each.path)
        for each in read_ahead(map(ListedFile, paths), lambda path: None, lambda file: False)
    )


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("times", "dies"), [(99, True), (1, False)])
def test_a_program_that_kills_its_process_is_unreadable_and_the_others_are_not(
    times: int, dies: bool, folder: Path
) -> None:
    write(folder / "deadly.mlir", blocked(99))
    # Equal to it, and so as deadly to this process.
    write(folder / "deadly copy.mlir", blocked(99))
    paths = [
        "text0.mlir",
        "text1.mlir",
        "deadly.mlir",
        "deadly copy.mlir",
        *(f"bytes{number}.mlirbc" for number in range(12)),
    ]
    run = Examinations(DeadlyExaminer(times=times), FindingsCache(), jobs=2)
    found = dict(zip(paths, run.of(requests(*paths), len(paths)), strict=True))
    assert [path for path, each in found.items() if each.error is not None] == [
        "deadly.mlir",
        "deadly copy.mlir",
    ] * dies
    if dies:
        assert str(found["deadly.mlir"].error).startswith("deadly.mlir: the process that checked it crashed, twice")
    assert all(each.findings[0][0].feature == "tan" for each in found.values() if each.error is None)


@dataclass(frozen=True, slots=True)
class Tracing(Examiner):
    """Notes the process of each program."""

    def __call__(self, tasks: Sequence[Task]) -> list[Examination]:
        for task in tasks:
            Path(f"{task.content.path}.process").write_text(str(os.getpid()))
        return Examiner.__call__(self, tasks)


def processes(folder: Path) -> set[int]:
    return {int(each.read_text()) for each in folder.glob("*.process")}


def test_little_work_stays_in_this_process(folder: Path) -> None:
    paths = [f"bytes{number}.mlirbc" for number in range(12)]
    assert len(list(Examinations(Tracing(), FindingsCache(), jobs=2).of(requests(*paths), len(paths)))) == 12
    assert processes(folder) == {os.getpid()}


@pytest.mark.usefixtures("soon")
def test_much_work_is_done_elsewhere_and_known_programs_are_not_sent(folder: Path) -> None:
    paths = [f"bytes{number}.mlirbc" for number in range(12)]
    cache = FindingsCache()
    list(Examinations(Tracing(), cache, jobs=2).of(requests(*paths), len(paths)))
    others = processes(folder) - {os.getpid()}
    assert others
    for each in folder.glob("*.process"):
        each.unlink()
    again = list(Examinations(Tracing(), cache, jobs=2).of(requests(*paths), len(paths)))
    assert len(again) == 12
    assert processes(folder) == set()
    assert not any(_lives(each) for each in others)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("soon", "started")
def test_equal_programs_are_sent_once(folder: Path) -> None:
    paths = ["text0.mlir", "bytes0.mlirbc", "copy0.mlirbc", "copy1.mlirbc", "named0.mlir", "named1.mlir", "bad0.mlir"]
    found = list(Examinations(Tracing(), FindingsCache(), jobs=2).of(requests(*paths), len(paths)))
    assert found[1].findings == found[2].findings == found[3].findings
    assert {each.name for each in folder.glob("copy*.process")} == set()
    assert [str(each.findings[0][0].location) for each in found[4:6]] == ["named0.mlir:3:8", "named1.mlir:3:8"]
    assert found[6].error is not None


@pytest.mark.usefixtures("soon", "started")
def test_what_waits_for_a_program_that_takes_long_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known programs, and those equal to one that is being examined, need no process, and yet are not all held."""
    monkeypatch.setattr(examinations, "waiting_results", lambda workers: 6)
    cache = FindingsCache()
    known = [f"bytes{number}.mlirbc" for number in range(10)]
    list(Examinations(Tracing(), cache).of(requests(*known), len(known)))
    paths = [
        "text0.mlir",
        "bytes10.mlirbc",
        *known * 5,
        "text1.mlir",
        *known * 5,
        "bytes11.mlirbc",
        *["text2.mlir"] * 50,
    ]
    expected = list(Examinations(Tracing(), FindingsCache()).of(requests(*paths), len(paths)))
    begun = 0

    def counted() -> Iterator[Task]:
        nonlocal begun
        for request in requests(*paths):
            begun += 1
            yield request

    found = []
    for each in Examinations(Tracing(), cache, jobs=2).of(counted(), len(paths)):
        found.append(each)
        assert begun - len(found) <= 7
    assert found == expected


def test_files_are_read_in_order_and_no_further_than_needed(folder: Path) -> None:
    write(folder / "big.mlir", f"// {'x' * (1 << 21)}\n{GOOD}")
    paths = ["missing", "big.mlir", "bytes0.mlirbc"]
    missing, big, small = read_ahead(map(ListedFile, paths), lambda path: None, lambda file: False)
    assert (missing.path, missing.error) == ("missing", "missing: No such file or directory")
    # Read again when it is examined.
    assert (big.data, len(big.digest or b"")) == (None, 32)
    assert small.data == (folder / "bytes0.mlirbc").read_bytes()
    (examination,) = Examinations(Examiner(), FindingsCache()).of(requests("big.mlir"), 1)
    assert examination.findings == ((),)


def test_a_release_is_asked_where_no_error_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Finding("refused", "error", "op", "a release refuses it")
    monkeypatch.setattr(Checked, "confirmed_findings", lambda *_: [refused])
    examiner = Examiner(confirm_with=("jaxlib==0.4.31",))
    found = [examiner.examine(program, QUESTIONS).findings[0] for program in (GOOD, blocked(1))]
    assert [[each.feature for each in findings] for findings in found] == [["refused"], ["tan"]]


def test_a_folder_that_is_read_here_has_its_digest(tmp_path: Path) -> None:
    """Whether or not there is a framework that reads it."""
    (tmp_path / "saved").mkdir()
    write(tmp_path / "saved" / "saved_model.pb", "graph")
    path = str(tmp_path / "saved")
    (found,) = Examiner()([Task(Content(path), QUESTIONS, path)])
    assert found.digest == digest_at(tmp_path / "saved")


def test_only_objects_of_this_process_are_read_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "read_bytes", lambda where: GOOD.encode())
    files = [ListedFile("memory://a/b.mlir"), ListedFile("s3://b/k.mlir", 5)]
    assert [(each.data, each.size) for each in unread(files, lambda path: None)] == [(GOOD.encode(), 0), (None, 5)]
