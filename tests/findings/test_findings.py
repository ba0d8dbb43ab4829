"""Findings for upstream: each is reproduced on the release that it is shown on; the installed one is as recorded."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from support.corpus import ROOT
from support.reproductions import (
    INSTALLED,
    Answer,
    Finding,
    Outcome,
    Result,
    Variant,
    expected_outcome,
    installed_release,
    known_findings,
    known_results,
    news,
    run,
    standalone,
)
from upstream_findings import main

from vhlo_tools.spec import known_releases

#: What is run by the tests.
FINDINGS = [each for each in known_findings().values() if not each.by_hand]
HERE = installed_release("jaxlib") or ""
OLDEST_SUPPORTED = Version("0.8.1")


# The data


def test_ids_are_in_one_style_and_each_is_there_once() -> None:
    assert len(known_findings()) > 80
    for name, finding in known_findings().items():
        assert re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)+", name)
        assert all((finding.title, finding.expected, finding.happens, finding.where))


@pytest.mark.parametrize("finding", known_findings().values(), ids=lambda each: each.id)
def test_its_releases_are_known_and_its_workaround_is_there(finding: Finding) -> None:
    known = {f"{each.package}=={each.release}" for each in known_releases()}
    assert {finding.release, finding.writer or finding.release, finding.reader or finding.release} <= known
    assert finding.library in {"StableHLO", "MLIR", "XLA", "torch-mlir", "jax", "TensorFlow"}
    assert (ROOT / finding.workaround).is_file()


@pytest.mark.parametrize("finding", known_findings().values(), ids=lambda each: each.id)
def test_a_reproducer_and_what_it_is_shown_as_are_programs_of_python(finding: Finding) -> None:
    for code in (finding.code, finding.writer_code, finding.reader_code, standalone(finding)):
        compile(code, finding.id, "exec")
    assert "vhlo_tools" not in standalone(finding)


def test_results_are_of_findings_and_each_was_reproduced_where_it_is_shown() -> None:
    by_run = {(each.finding, each.release): each.outcome for each in known_results()}
    assert len(by_run) == len(known_results())
    assert {finding for finding, _ in by_run} == set(known_findings())
    for finding in known_findings().values():
        assert by_run[finding.id, finding.release] == "reproduced"


def test_a_workaround_that_no_supported_release_needs_has_a_reason_to_stay() -> None:
    outcomes: defaultdict[str, list[str]] = defaultdict(list)
    for each in known_results():
        (specifier,) = Requirement(each.release).specifier
        if each.release.startswith("torch-mlir") or Version(specifier.version) >= OLDEST_SUPPORTED:
            outcomes[each.finding].append(each.outcome)
    for finding in known_findings().values():
        assert bool(finding.kept) == (set(outcomes[finding.id]) <= {"mended"}), (
            f"{finding.id}: the workaround in {finding.workaround} can go, unless `kept` says why it stays"
        )


def test_the_page_is_what_the_data_gives() -> None:
    assert main(["write", "--check"]) == 0, "run `python scripts/upstream_findings.py write`"


# The runs


@pytest.fixture(scope="module")
def on_releases() -> Mapping[str, Answer]:
    """Return how all findings ended on the releases that they are shown on."""
    return {answer.finding.id: answer for answer in run((each, each.release) for each in FINDINGS)}


@pytest.mark.releases
@pytest.mark.parametrize("finding", FINDINGS, ids=lambda each: each.id)
def test_it_is_reproduced_on_the_release_that_it_is_shown_on(
    finding: Finding, on_releases: Mapping[str, Answer]
) -> None:
    assert on_releases[finding.id].outcome == "reproduced", on_releases[finding.id].seen


@pytest.mark.every_python
@pytest.mark.long
def test_the_installed_release_is_as_recorded() -> None:
    """Where a newer one mends something, this says which workaround can go."""
    here = [each for each in FINDINGS if installed_release(each.package)]
    answers = run((each, INSTALLED) for each in here)
    said = [news(each, installed_release(each.finding.package) or "", known_results()) for each in answers]
    assert [each for each in said if each] == []
    assert {answer.outcome for answer in answers} >= {"reproduced", "mended"}


# What a run makes of a reproducer

SAMPLE = Finding(
    group="crashes",
    id="a-sample",
    title="A sample",
    library="MLIR",
    where="nowhere",
    release="jaxlib==0.10.2",
    ends=("SIGSEGV",),
    expected="nothing",
    happens="something",
    workaround="README.md",
    code="",
)
KILL = "import os, signal\nos.kill(os.getpid(), signal.{})"
AT_THE_END = "import atexit, os, signal\natexit.register(lambda: os.kill(os.getpid(), signal.SIGSEGV))"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("changes", "outcome", "seen"),
    [
        ({"code": KILL.format("SIGSEGV")}, "reproduced", "SIGSEGV"),
        ({"code": KILL.format("SIGTERM")}, "changed", "SIGTERM"),
        ({"code": "parse('module {}')"}, "mended", "right"),
        ({"code": "parse('nothing')"}, "mended", "error: MLIRError"),
        ({"code": "raise SystemExit(3)"}, "changed", "exit code 3"),
        ({"code": "while True: pass", "ends": ("hang",), "seconds": 0.3}, "reproduced", "hang"),
        ({"code": "while True: pass", "seconds": 0.3}, "changed", "hang"),
        ({"code": "bytearray(1 << 40)", "ends": ("memory",)}, "reproduced", "memory"),
        ({"code": "found, right = 1, 2", "ends": ("wrong",)}, "reproduced", "wrong"),
        ({"code": "found, right = 2, 2", "ends": ("wrong",)}, "mended", "right"),
        ({"code": "parse('nothing')", "ends": ("wrong",)}, "changed", "error: MLIRError"),
        ({"code": "parse('nothing')", "ends": ("error",), "says": "expected|custom op"}, "reproduced", "error: "),
        ({"code": "parse('nothing')", "ends": ("error",), "says": "quant"}, "changed", "error: MLIRError"),
        ({"code": "parse('module {}')", "ends": ("error",), "says": "quant"}, "mended", "right"),
        # The process is over only when everything is freed.
        ({"code": AT_THE_END}, "reproduced", "SIGSEGV"),
    ],
)
def test_how_it_ends_is_judged(changes: Mapping[str, object], outcome: str, seen: str) -> None:
    (answer,) = run([(replace(SAMPLE, **changes), INSTALLED)])  # type: ignore[arg-type]
    assert answer.outcome == outcome
    assert answer.seen.startswith(seen)


def test_one_variant_is_enough_and_all_are_told() -> None:
    variants = tuple(Variant(each, each) for each in ("SIGSEGV", "SIGINT"))
    code = "import os, signal\nif V == 'SIGSEGV': os.kill(os.getpid(), signal.SIGSEGV)"
    (answer,) = run([(replace(SAMPLE, variants=variants, code=code), INSTALLED)])
    assert (answer.outcome, answer.seen) == ("reproduced", "SIGSEGV: SIGSEGV; SIGINT: right")


def test_bytes_go_from_release_to_release() -> None:
    writer = replace(
        SAMPLE, writer=INSTALLED, writer_code="give(b'abc')", ends=("wrong",), code="found, right = given, b'abc'"
    )
    reader = replace(
        SAMPLE, ends=("wrong",), code="give(b'abc')", reader=INSTALLED, reader_code="found, right = given, b''"
    )
    unwritten = replace(reader, code="raise ValueError")
    failed = replace(writer, writer_code="raise ValueError")
    answers = run((each, INSTALLED) for each in (writer, reader, unwritten, failed))
    # To refuse to write it is as good as to write it well; a failure of the older writer says nothing.
    assert [each.outcome for each in answers] == ["mended", "reproduced", "mended", "changed"]


@pytest.mark.parametrize("name", ["interpreter-total-order", "interpreter-cholesky"])
def test_what_is_shown_runs_alone(name: str) -> None:
    program = standalone(known_findings()[name])
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    if name == "interpreter-cholesky":
        assert done.returncode == -signal.SIGABRT
    else:
        assert (done.returncode, done.stdout) == (0, "found [False, False, False] and not [True, True, True]\n")


def test_what_is_shown_of_several_releases_hands_bytes_on() -> None:
    finding = replace(
        SAMPLE, writer=INSTALLED, writer_code="give(b'abc')", ends=("wrong",), code="found, right = given, 1"
    )
    program = standalone(finding)
    assert f"# On {INSTALLED}, which prints the argument of this program:\n\n# give(b'abc')\n" in program
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, b"abc".hex()], capture_output=True, text=True, check=False
    )
    assert done.stdout == "found b'abc' and not 1\n"


@pytest.mark.long
def test_the_command_says_what_became_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--installed", "interpreter-total-order", "interpreter-cholesky"]) == 0
    assert capsys.readouterr().out == (
        f"interpreter-cholesky on {HERE}: reproduced (SIGABRT)\ninterpreter-total-order on {HERE}: reproduced (wrong)\n"
    )
    # Of old releases alone.
    assert main(["run", "--installed", "xla-conversion-pair"]) == 1
    assert "is in vhlo_tools/conversion/expansion/dot_algorithm.py" in capsys.readouterr().out
    assert main(["list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(known_findings())
    with pytest.raises(SystemExit):
        main(["run", "no-such-finding"])
    assert "no finding 'no-such-finding'" in capsys.readouterr().err


def test_words_that_are_no_end() -> None:
    with pytest.raises(ValueError, match="'SIGSEGFAULT' is neither a signal nor one of error, hang, memory, wrong"):
        replace(SAMPLE, ends=("SIGSEGFAULT",))
    with pytest.raises(ValueError, match="without `says`, any error would do"):
        replace(SAMPLE, ends=("error",))


def recorded(release: str, outcome: Outcome) -> Result:
    return Result(SAMPLE.id, release, outcome, "", date(2026, 11, 23))


def test_what_is_expected_of_a_release_is_what_is_recorded_of_the_newest_before_it() -> None:
    results = [recorded("jaxlib==0.10.2", "reproduced"), recorded("jaxlib==0.9.2", "mended")]
    assert expected_outcome(SAMPLE.id, "jaxlib==0.10.2", results) == "reproduced"
    assert expected_outcome(SAMPLE.id, "jaxlib==0.11.0", results) == "reproduced"
    assert expected_outcome(SAMPLE.id, "jaxlib==0.10.0", results) == "mended"
    assert expected_outcome(SAMPLE.id, "jaxlib==0.8.3", results) is None
    assert expected_outcome(SAMPLE.id, "torch-mlir==20261001", results) is None


def test_a_release_that_mends_it_says_that_the_workaround_can_go() -> None:
    results = [recorded("jaxlib==0.10.2", "reproduced")]
    mended = Answer(SAMPLE, INSTALLED, "mended", "right")
    said = news(mended, "jaxlib==0.99.0", results) or ""
    assert "a-sample is mended in the installed release, jaxlib==0.99.0: the workaround in README.md can go" in said
    changed = news(Answer(SAMPLE, INSTALLED, "changed", "SIGFPE"), "jaxlib==0.99.0", results) or ""
    assert changed.startswith("a-sample was reproduced, and on jaxlib==0.99.0 is changed: SIGFPE")
    assert news(Answer(SAMPLE, INSTALLED, "reproduced", ""), "jaxlib==0.99.0", results) is None
    # As soon as it is recorded, nothing is new.
    assert news(mended, "jaxlib==0.99.0", [*results, recorded("jaxlib==0.99.0", "mended")]) is None
    assert Requirement(HERE).name == "jaxlib"
