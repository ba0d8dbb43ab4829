"""The steps of CI: which of them a change asks for, and how they run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import ci
import pytest
from ci import Outcome, Record, chosen, passed_before, run_steps
from ci_steps import ENVIRONMENT, STEPS, LackingError, Step
from support.corpus import ROOT

LONGER = [step.name for step in STEPS if step.changes and not step.full and not step.name.endswith(ENVIRONMENT)]
FULL = {step.name for step in STEPS if step.full}
#: Of a machine on which every step takes a minute of all cores.
QUICK = Record("", {step.name: (60, 60 * ci._cores()) for step in STEPS})


def names(changed: list[str] | None, turn: int = 0, record: Record | None = None) -> set[str]:
    steps, left = chosen(changed, record, turn)
    assert set(left) <= FULL
    return {step.name for step in steps} & {*LONGER, *FULL}


def test_each_longer_step_has_its_turn() -> None:
    assert [names([], turn) for turn in range(len(LONGER))] == [{name} for name in LONGER]


def test_what_always_runs_runs_always() -> None:
    always = {step.name for step in STEPS if not step.changes}
    assert {"environment", "lint", "types", "layers", "tests", "wheel", "docs"} <= always
    assert always <= {step.name for step in chosen([], None, 0)[0]}


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (
            "vhlo_tools/bytecode/primitives.py",
            {"compiled modules", "newest Python", "data that end at 1.16", "long tests"},
        ),
        ("vhlo_tools/execution/xla/workarounds.py", {"jax", "torch", "tensorflow", "lowest versions"}),
        ("vhlo_tools/stores/tables.py", {"scale"}),
        ("vhlo_tools/viewing/web/page.css", {"pages"}),
        ("docs/ci.md", {"site"}),
        ("Dockerfile", {"container"}),
        ("action.yml", {"hook and action"}),
        ("dialect_specs/versions.toml", {"data that end at 1.18", "data that end at 1.20"}),
        ("pyproject.toml", {"lowest versions", "jax", "scale", "container", "hook and action"}),
    ],
)
def test_a_change_asks_for_what_can_notice_it(file: str, expected: set[str]) -> None:
    assert expected <= names([file])


def test_a_module_beside_the_rooms_concerns_every_step() -> None:
    assert names(["vhlo_tools/records.py"]) == set(LONGER)


def test_a_file_beside_the_package_asks_for_nothing_but_the_turn() -> None:
    assert names(["LICENSE"], 3) == {LONGER[3]}


def test_what_runs_in_full_only_is_left_by_all_others_and_said() -> None:
    assert FULL
    changed = ["vhlo_tools/execution/xla/workarounds.py", "vhlo_tools/integrations/keras.py"]
    assert set(chosen(changed, None, 0)[1]) >= {each for each in FULL if not each.endswith(": environment")}
    assert not chosen(["docs/ci.md"], None, 0)[1]


def test_a_full_run_goes_on_with_what_failed_and_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "KEPT", tmp_path / "build" / "kept.json")
    assert passed_before() == {}
    steps = {step.name: step for step in STEPS}
    ci._keep([Outcome(steps[name], "passed", 9, 8) for name in ("tests", "jax", "scale")])
    ci_kept = json.loads(ci.KEPT.read_text()) | {"no such step": ["HEAD", 1, 1]}
    ci.KEPT.write_text(json.dumps(ci_kept))
    for changed, expected in (([], {"jax", "scale"}), (["tests/frontends/scale/any.py"], {"jax"})):
        monkeypatch.setattr(ci, "_changed_since", lambda commit, changed=changed: changed)
        assert set(passed_before()) == expected
    assert passed_before()["jax"] == Outcome(steps["jax"], "passed", 9, 8)
    ci.KEPT.write_text(ci.KEPT.read_text().replace(ci_kept["jax"][0], "0" * 40))
    assert passed_before() == {}
    ci.KEPT.write_text("{")
    assert passed_before() == {}


def test_where_no_record_is_known_everything_is_concerned() -> None:
    assert names(None) == set(LONGER)


def test_every_room_is_noticed_by_some_step() -> None:
    for path in (ROOT / "vhlo_tools").iterdir():
        assert names([f"vhlo_tools/{path.name}/any.py" if path.is_dir() else f"vhlo_tools/{path.name}"]) > {LONGER[0]}


def test_what_takes_too_long_is_left_and_said_but_not_the_one_whose_turn_it_is() -> None:
    steps, left = chosen(None, QUICK, 5)
    assert left
    assert LONGER[5] not in left
    assert len(steps) <= ci.MINUTES
    taken = {step.name for step in steps} & set(LONGER)
    assert taken | set(left) == {*LONGER, *FULL}
    assert len(chosen(None, QUICK, 5, slowness=2.0)[1]) > len(left)
    slow = Record("", {step.name: (9999, 9999) for step in STEPS})
    steps, left = chosen(None, slow, 5)
    assert {step.name for step in steps} & set(LONGER) == {LONGER[5]}


def test_what_a_step_waits_for_is_a_step_before_it() -> None:
    known: set[str] = set()
    for step in STEPS:
        assert set(step.after) <= known, step.name
        known.add(step.name)


def test_commands_are_there() -> None:
    for step in STEPS:
        for word in step.command:
            if word.startswith(("scripts/", "./scripts/")):
                assert (ROOT / word).is_file(), step.name


# Runs of steps


def step(name: str, code: str = "", cores: int = 1, after: tuple[str, ...] = ()) -> Step:
    return Step(name, (sys.executable, "-c", code), cores=cores, after=after)


def test_steps_say_what_they_printed_and_how_they_ended(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    steps = [
        step("good", "print('fine')"),
        step("bad", "import sys; print('wrong', file=sys.stderr); sys.exit(3)"),
        step("next", after=("bad",)),
        step("after next", after=("next",)),
        step("last", "print('still')", after=("good",)),
    ]
    results = {each.step.name: each.result for each in run_steps(steps)}
    assert results == {
        "good": "passed",
        "bad": "failed",
        "next": "not started",
        "after next": "not started",
        "last": "passed",
    }
    said = capfdbinary.readouterr().out.decode()
    assert "fine\n== passed: good" in said
    assert "wrong\n== failed: bad (exit code 3)" in said
    assert said.index("passed: good") < said.index("passed: last")


def test_what_a_machine_lacks_is_no_failure_but_nothing_passes_after_it(capfd: pytest.CaptureFixture[str]) -> None:
    def lacking() -> Mapping[str, str]:
        raise LackingError("there is no moon")

    steps = [Step("moon", ("true",), after=(), variables=lacking), step("tide", after=("moon",))]
    assert {each.step.name: each.result for each in run_steps(steps)} == {
        "moon": "cannot run here",
        "tide": "cannot run here",
    }
    assert "moon: not run, there is no moon" in capfd.readouterr().out


def test_steps_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "_cores", lambda: 2)
    code = f"import pathlib, sys, time; place = pathlib.Path({str(tmp_path)!r}); " + (
        "mine = place / sys.argv[1]; mine.touch(); time.sleep(0.5); "
        "(place / f'seen by {sys.argv[1]}').write_text(' '.join(sorted(each.name for each in place.glob('[a-z]')))); "
        "mine.unlink()"
    )
    parts = {"a": 1, "b": 1, "c": 2, "d": 0, "e": 8}
    steps = [Step(name, (sys.executable, "-c", code, name), cores=cores, after=()) for name, cores in parts.items()]
    assert {each.result for each in run_steps(steps)} == {"passed"}
    seen = {name: set((tmp_path / f"seen by {name}").read_text().split()) - {"d"} for name in parts}
    # More cores than there are is all of them.
    assert (seen["c"], seen["e"]) == ({"c"}, {"e"})
    assert {"a", "b"} in (seen["a"], seen["b"])


def test_what_runs_ends_with_the_run(tmp_path: Path) -> None:
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / "scripts")!r})
from ci import run_steps
from ci_steps import Step
run_steps([Step("endless", ("sh", "-c", "echo $$ > {tmp_path}/pid; sleep 600"), after=())])
"""
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 1
    deadline = time.monotonic() + 60
    # Another process may get the number.
    command = Path(f"/proc/{int((tmp_path / 'pid').read_text())}/cmdline")
    while command.exists() and b"sleep" in command.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_record_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci, "RECORD", tmp_path / "full.toml")
    assert Record.read() is None
    outcomes = [ci.Outcome(step("one"), "passed", 12.3, 20.4), ci.Outcome(step("some: environment"), "passed", 1, 2)]
    Record.write(outcomes, 100)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    found = Record.read()
    assert found is not None
    assert found == Record(head.stdout.strip(), {"one": (12, 20), "some: environment": (1, 2)}, found.pace)
    assert 0.01 < found.pace < 60
    (tmp_path / "full.toml").write_text((tmp_path / "full.toml").read_text().replace(head.stdout.strip(), "0" * 40))
    assert Record.read() is None


def test_the_jobs_of_a_forge_are_the_steps() -> None:
    done = subprocess.run([ROOT / ".ci" / "run", "--list", "--full"], capture_output=True, text=True, check=True)
    assert {*LONGER, *(each for each in FULL if not each.endswith(": environment"))} < set(json.loads(done.stdout))
