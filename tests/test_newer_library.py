"""A library that is newer than the specification: everything goes on working, and what is unknown is named.

The specification is cut before the installed library, in a copy of the checkout. What the package says there of
programs that need what came after the cut is held against what the whole specification says of them: it may say that it
does not know, and must not say anything else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Self

import pytest
from support.corpus import EXAMPLES, FEATURES
from support.newer_library_answers import KINDS, verified
from support.specs_folder import OURS, ROOT, run_in_checkout

import vhlo_tools as vt
from vhlo_tools.bindings import get_provider
from vhlo_tools.spec import ENCODING_KINDS, known_features, known_versions
from vhlo_tools.spec_tools import cut

pytestmark = [
    pytest.mark.whole_data("the specification is cut here, and must know what it is cut from"),
    pytest.mark.every_python,
]

LIBRARY = get_provider().library.current.minor_release
#: Two versions before the library too, so that every library is cut where it has something new.
CUTS = sorted(
    {
        *(each for each in map(vt.Version, ("1.16.0", "1.18.0", "1.20.0")) if each < LIBRARY),
        max(entry.version for entry in known_versions() if entry.version.minor <= LIBRARY.minor - 2),
    }
)
ALIASED = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%a) {call_target_name = "kernel", output_operand_aliases = [
    #stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}
    : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
Vhlo = Callable[..., subprocess.CompletedProcess[str]]
#: By name, or, where only what is allowed has changed, by the op.
UNKNOWN = re.compile(r"is unknown: the file was written for|do not have the reason")


def programs_after(version: vt.Version) -> list[Path]:
    """Return the programs that need what came after a version, and that the library has."""
    young = (each for each in known_features() if version < each.introduced <= LIBRARY)
    # What is a rule of the encoding is on no op.
    return [FEATURES / f"{each.id}.mlir" for each in young if each.kind not in ENCODING_KINDS]


@pytest.fixture(scope="module", params=CUTS, ids=str)
def checkout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout whose specification ends before the library."""
    folder = tmp_path_factory.mktemp(f"cut-{request.param}")
    cut(OURS, request.param, folder / "dialect_specs")
    for name in ("vhlo_tools", "tests", "examples"):
        (folder / name).symlink_to(ROOT / name)
    return folder


class Asked:
    """A process whose package reads the specification of a copy, and which answers questions."""

    def __init__(self, checkout: Path, *options: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "tests/support/newer_library_answers.py", *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=checkout, env=environment, stdin=pipe, stdout=pipe, text=True)

    def __call__(self, *question: object) -> Any:
        """Return the answer to a question; what goes wrong there, its stderr shows, which is that of the tests."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(each) for each in question]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, f"the process ended with {self.process.wait()}"
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def asked(checkout: Path) -> Iterator[Asked]:
    with Asked(checkout) as process:
        yield process


@pytest.fixture(scope="module")
def vhlo(asked: Asked) -> Vhlo:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        code, out, error = asked("vhlo", *arguments)
        assert "Traceback" not in error, error
        return subprocess.CompletedProcess(arguments, code, out, error)

    return run


@pytest.fixture(scope="module")
def answers(checkout: Path, asked: Asked) -> Any:
    """What is said of each program where the library is there."""
    (checkout / "with").mkdir()
    return asked("answers", checkout / "with", EXAMPLES / "saxpy.mlir", *programs_after(known_end(checkout)))


@pytest.fixture(scope="module")
def answers_without(checkout: Path, answers: Any) -> Any:
    """What is said of the same programs, as artifacts, where no library is."""
    (checkout / "without").mkdir()
    with Asked(checkout, "--no-library") as process:
        return process("answers", checkout / "without", *(each["path"] for each in answers["programs"].values()))


def known_end(checkout: Path) -> vt.Version:
    return vt.Version(checkout.name.removeprefix("cut-")[:-1])


@cache
def is_writable(name: str, target: str) -> bool:
    """Return what the whole specification says: whether a program can be written for a version."""
    path = FEATURES / f"{name}.mlir"
    found = vt.check(path if path.exists() else EXAMPLES / f"{name}.mlir", target)
    return not any(each.level == "error" for each in found)


def cases(answers: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield each program with each target, what is said of both, and of the program."""
    for name, told in answers["programs"].items():
        for target in answers["targets"]:
            yield name, target, told[target], told


def refused(said: Any) -> bool:
    return isinstance(said, dict) and "error" in said


def has_errors(found: Any) -> bool:
    return any(each["level"] == "error" for each in found)


def test_the_cuts_bring_something_unknown() -> None:
    assert all(programs_after(each) for each in CUTS)


def test_current_is_that_of_the_library(answers: Any) -> None:
    assert vt.Version(answers["current"]) == get_provider().library.current
    assert vt.Version(answers["ends"]) < LIBRARY
    assert {told["version"] for told in answers["programs"].values()} == {answers["current"]}


def test_what_is_unknown_is_named(answers: Any) -> None:
    named = set()
    for name, told in answers["programs"].items():
        requirements = told["inspect"]
        assert requirements["newer_than_data"] is True
        assert any(
            f"the data of vhlo_tools end at StableHLO {answers['ends']}" in each for each in told["inspect_text"]
        )
        feature = next((each for each in known_features() if each.id == name), None)
        unknown = {each["name"] for each in requirements["unknown"]}
        if feature is None:
            assert unknown == set()
        elif feature.kind != "constraint":
            # Of a constraint there is nothing in the bytes that would be new.
            assert unknown, name
        # No version is guessed for what is unknown.
        assert unknown.isdisjoint(each["id"] for each in requirements["features"])
        named |= unknown
    # Beside what shows in the bytes, everything after some cuts is constraints.
    assert named or all(each.kind == "constraint" for each in known_features() if each.id in answers["programs"])


def test_it_is_read_through_the_library(answers: Any) -> None:
    for name, told in answers["programs"].items():
        assert told["stripped"] == [], name
        for key in ("text", "aliases", "deserialized"):
            assert isinstance(told[key], str), (name, key, told[key])


def test_checks_say_what_the_whole_specification_says(answers: Any) -> None:
    for name, target, said, told in cases(answers):
        for found in (said["check"], told["program"][target]):
            assert not refused(found), (name, target, found)
            assert has_errors(found) != is_writable(name, target), (name, target, found)
        if vt.Version(answers["ends"]) < vt.Version(target) < LIBRARY:
            # The library was asked, which is said.
            assert "newer_than_data" in {each["feature"] for each in said["check"]}, (name, target)


def test_retargeting_does_what_the_whole_specification_does(answers: Any) -> None:
    for name, target, said, told in cases(answers):
        assert refused(said["auto"]) != is_writable(name, target), (name, target, said["auto"])
        if refused(said["auto"]):
            assert said["auto"]["error"] == "DowngradeError"
            assert "update vhlo_tools" in said["auto"]["message"] or not has_unknown(said["auto"]["findings"])
        else:
            assert said["auto"]["version"] == target
            expected = vt.retarget(told["path"], target)
            assert vt.diff(said["auto"]["path"], expected, locations=False) == [], (name, target)


def has_unknown(found: Any) -> bool:
    return any(each["unknown"] for each in found)


def test_bytes_alone_are_moved_with_a_warning_or_refused_by_name(answers: Any, answers_without: Any) -> None:
    for told in (answers, answers_without):
        for name, target, said, _ in cases(told):
            by_bytes = said["bytes"]
            if vt.Version(target) > vt.Version(told["ends"]):
                assert by_bytes["error"] == "UnknownTargetError"
                assert f"to {told['ends']} are known" in by_bytes["message"]
            elif refused(by_bytes):
                assert by_bytes["error"] == "DowngradeError", by_bytes
                assert not is_writable(name, target) or has_unknown(by_bytes["findings"])
            else:
                warned = [each["feature"] for each in by_bytes["findings"] if each["level"] == "warning"]
                assert "newer_than_data" in warned, (name, target)


def test_without_a_library_nothing_passes_that_should_not(answers_without: Any) -> None:
    for name, target, said, _ in cases(answers_without):
        is_below = vt.Version(target) < LIBRARY
        passed = not any(each["level"] in ("error", "warning") for each in said["check"])
        assert passed == (not is_below), (name, target, said["check"])
        assert refused(said["require"]) == is_below, (name, target, said["require"])
        if is_below:
            assert has_unknown(said["check"]) or not is_writable(name, target), (name, target)


def test_a_reader_is_only_vouched_for_if_it_reads(answers: Any) -> None:
    for name, target, said, told in cases(answers):
        if not refused(said["require"]):
            vt.require(told["path"], target)
            assert is_writable(name, target)
        else:
            assert said["require"]["error"] == "UnsupportedFeatureError"
    before = answers["targets"][2]
    assert not refused(answers["programs"]["saxpy"][before]["require"])


def test_every_finding_of_it_has_all_that_is_needed(answers: Any, answers_without: Any) -> None:
    count = 0
    for told in (answers, answers_without):
        for _name, target, said, _ in cases(told):
            for each in (*said["check"], *(said["require"]["findings"] if refused(said["require"]) else ())):
                if not each["unknown"]:
                    assert each["feature"] != "newer_than_data"
                    continue
                count += 1
                assert each["introduced"] is None
                # What is said of aliases holds for every version.
                assert each["target"] == target or (each["level"], each["target"]) == ("note", None)
                assert (
                    f"end at {told['ends']}" in each["message"] or f"end at StableHLO {told['ends']}" in each["message"]
                )
                assert each["level"] == "note" or "update vhlo_tools" in each["remedy"]
    assert count > 10


@pytest.fixture(scope="module")
def store(checkout: Path, answers: Any) -> Path:
    """A folder with one program that is known, and one with something unknown."""
    folder = checkout / "store"
    folder.mkdir()
    unknown = next(name for name in answers["programs"] if name != "saxpy")
    for name, file in (("saxpy", "known.mlirbc"), (unknown, "unknown.mlirbc")):
        (folder / file).write_bytes(Path(answers["programs"][name]["path"]).read_bytes())
    return folder


def test_the_gate_answers_for_each_file_and_target(checkout: Path, vhlo: Vhlo, store: Path) -> None:
    end = str(known_end(checkout))
    done = vhlo("check", str(store), "--target", end, "--target", "current", "--output-format", "json")
    assert done.returncode == 1, done.stderr
    files = {Path(each["path"]).name: each for each in json.loads(done.stdout)["files"]}
    assert files["known.mlirbc"]["ok"]
    assert files["known.mlirbc"]["findings"] == []
    assert not files["unknown.mlirbc"]["ok"]
    verdicts = {each["target"].partition(" ")[0]: each["ok"] for each in files["unknown.mlirbc"]["targets"]}
    assert verdicts == {end: False, "current": True}
    errors = [each for each in files["unknown.mlirbc"]["findings"] if each["level"] == "error"]
    assert errors
    assert all(each["unknown"] and each["introduced"] is None for each in errors)


def test_reports_have_a_field_of_it(checkout: Path, vhlo: Vhlo, store: Path) -> None:
    end = str(known_end(checkout))
    done = vhlo("check", str(store), "--target", end, "--output-format", "sarif")
    (run,) = json.loads(done.stdout)["runs"]
    assert done.returncode == 1
    assert {each["properties"].get("unknown") for each in run["results"] if each["level"] == "error"} == {True}
    text = vhlo("check", str(store), "--target", end)
    shown = " ".join(text.stdout.split())
    assert UNKNOWN.search(shown)
    assert "update vhlo_tools" in shown


def test_a_migration_goes_on_with_the_other_files(checkout: Path, vhlo: Vhlo, store: Path, tmp_path: Path) -> None:
    end = str(known_end(checkout))
    # That workers read the same specification, one cut shows.
    jobs = "2" if known_end(checkout) == CUTS[0] else "1"
    done = vhlo("migrate", str(store), "--target", end, "--output-dir", str(tmp_path), "--verify", "--jobs", jobs)
    assert done.returncode == 1, done.stderr
    assert UNKNOWN.search(done.stdout + done.stderr)
    assert [each.name for each in tmp_path.rglob("*.mlirbc")] == ["known.mlirbc"]
    assert vt.verify(store / "known.mlirbc", next(tmp_path.rglob("*.mlirbc"))).passed


def test_an_old_store_goes_up_to_the_version_of_the_library(vhlo: Vhlo, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    vt.serialize(EXAMPLES / "saxpy.mlir", "1.0.0").save(tmp_path / "store/old.mlirbc")
    done = vhlo("migrate", str(tmp_path / "store"), "--target", "current", "--verify")
    assert done.returncode == 0, done.stdout + done.stderr
    assert vt.open_artifact(tmp_path / "store/old.mlirbc").version == get_provider().library.current


def test_every_kind_of_target_can_be_written_and_read(answers: Any) -> None:
    told = answers["programs"]["saxpy"]
    for target in KINDS:
        said = told["kinds"][target]
        assert said["text"] == told["deserialized"], target
        assert said["version"] == said["meant"], target
        if target in ("current", "MAX", "WEEK_4", "WEEK_12"):
            assert said["meant"] == str(vt.resolve_target(target).version)


def test_commands_work(vhlo: Vhlo, tmp_path: Path) -> None:
    written = tmp_path / "written.mlirbc"
    saxpy = str(EXAMPLES / "saxpy.mlir")
    assert vhlo("serialize", saxpy, "--target", "current", "-o", str(written)).returncode == 0
    assert vhlo("deserialize", str(written), "-o", str(tmp_path / "text.mlir")).returncode == 0
    assert vhlo("verify", saxpy, str(written)).returncode == 0
    assert vhlo("inspect", str(written)).returncode == 0


def test_it_runs(answers: Any) -> None:
    """Including what is unknown: the engine has it, or says what it lacks, as it does with the whole specification."""
    for name, told in answers["programs"].items():
        path = FEATURES / f"{name}.mlir"
        whole = verified(path if path.exists() else EXAMPLES / f"{name}.mlir", Path(told["path"]).read_bytes())
        if refused(whole):
            assert told["verified"]["error"] == whole["error"], name
        else:
            assert told["verified"] is whole is True, name
    assert answers["programs"]["saxpy"]["verified"] is True


def test_aliases_of_an_unknown_call_are_not_said_to_be_none(checkout: Path, vhlo: Vhlo, tmp_path: Path) -> None:
    program = tmp_path / "call.mlir"
    program.write_text(ALIASED)
    written = tmp_path / "call.mlirbc"
    assert vhlo("serialize", str(program), "-o", str(written)).returncode == 0
    shown = vhlo("alias", "show", str(written), "--output-format", "json")
    said = json.loads(shown.stdout)
    if known_end(checkout) < vt.Version("1.18.0") <= LIBRARY:
        assert (said["calls"], said["unknown"]) == ([], ["vhlo.custom_call_v2"])
        assert "vhlo.custom_call_v2 is unknown" in vhlo("alias", "show", str(written)).stderr
        assert "its aliases were not examined" in vhlo("check", str(written), "--target", "current").stdout
    else:
        assert [len(each["aliases"]) for each in said["calls"]] == [1]
        assert said["unknown"] == []


def test_unknown_ops_that_differ_are_different(vhlo: Vhlo, tmp_path: Path) -> None:
    """Although nobody can say in what, but for the bytes; and what strips them changes nothing else."""
    paths = []
    for target in ("kernel", "another"):
        paths.append(tmp_path / f"{target}.mlirbc")
        program = tmp_path / f"{target}.mlir"
        program.write_text(ALIASED.replace("kernel", target))
        assert vhlo("serialize", str(program), "-o", str(paths[-1])).returncode == 0
    assert vhlo("diff", *map(str, paths)).returncode == 1
    assert vhlo("diff", str(paths[0]), str(paths[0])).returncode == 0
    stripped = tmp_path / "stripped.mlirbc"
    assert vhlo("retarget", "--strip-debug-info", str(paths[0]), "-o", str(stripped)).returncode == 0
    # Here everything is known.
    assert vt.diff(stripped, paths[0]) == []
    assert str(vt.deserialize(stripped)) == str(vt.deserialize(paths[0]))
    text = vhlo("deserialize", str(paths[0]), "--emit", "vhlo", "-o", str(tmp_path / "text"))
    assert text.returncode == 0, text.stderr
    assert "custom_call_v" in (tmp_path / "text").read_text()


def test_a_version_that_nobody_has_is_refused(checkout: Path, answers: Any) -> None:
    """In a process of its own, as a user runs a command."""
    written = answers["programs"]["saxpy"]["path"]
    command = ("-m", "vhlo_tools.cli.main", "retarget", written, "--target", "1.99.0", "-o", "none")
    done = run_in_checkout(checkout, *command)
    assert done.returncode == 2, done.stderr
    assert f"to {answers['ends']} are known, and " in done.stderr


def test_all_versions_after_the_cut_are_those_of_the_whole() -> None:
    assert all(any(entry.version > each for entry in known_versions()) for each in CUTS)
