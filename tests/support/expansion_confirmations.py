"""Expanded programs, read and run by released jaxlibs that are older than what was expanded.

For each expansion that is declared there is a program in ``tests/programs/expansion/``. It is written for the newest
version without the feature, which the newest jaxlib without the feature gets, and for the oldest version that the
expansion reaches, which two of the oldest jaxlibs get.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import vhlo_tools as vt
from support.corpus import ROOT
from support.expansions import version_before
from support.newer_ops import newer
from support.release_runs import ReleaseRun, run_by_release, run_sharded_by_release
from vhlo_tools.artifact import STAND_IN
from vhlo_tools.spec import Effect, ExpansionConfirmation, Feature, Release, known_features, known_releases

PROGRAMS = ROOT / "tests" / "programs" / "expansion"
#: The oldest release in `releases.toml`, and the first one of StableHLO 0.19.
OLD_RELEASES = ("0.4.13", "0.4.26")
#: The first release whose XLA reads shardings in Shardy's own form of HLO, and its version of StableHLO.
OLDEST_SHARDED = ("0.4.35", vt.Version("1.7.8"))
#: The devices of programs with shardings.
SHARDED_DEVICES = 2
#: XLA of two releases computes elementary functions of f32 in its own ways, and so do the expansions that are written
#: with them: 16 units in the last place. Everything else has the same bits, as the inputs are short binary fractions.
ULPS = {"exp2": 16, "log2": 16, "tan": 16, "exponential_result_accuracy": 16, "result_accuracy": 16}

ELEMENTS: dict[str, Any] = {
    "i32": np.int32,
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}

Array = np.ndarray[Any, Any]
#: The results of each device.
Results = Sequence[Sequence[Array]]


@dataclass(frozen=True, slots=True)
class Case:
    """An expanded program for a release."""

    feature: Feature  # the feature
    effect: Effect  # the effect of its expansion
    release: str  # the release of jaxlib
    written: vt.Version  # the version that the program is written for

    @property
    def is_sharded(self) -> bool:
        """Whether what is written has shardings, and so runs on several devices as one program."""
        return (self.feature.id, self.effect) == ("mixed_dialects", "exact")

    @property
    def program(self) -> str:
        """The program."""
        return (PROGRAMS / f"{self.feature.id}.mlir").read_text()

    def artifact(self) -> vt.Artifact:
        options: Any = {"expand": True} if self.effect == "exact" else {"allow_relaxed": [self.feature.id]}
        # Text of ops that no library knows has what stands for them.
        is_newer = f"@{STAND_IN}" in self.program
        write: Any = vt.retarget if is_newer else vt.serialize
        artifact: vt.Artifact = write(newer(self.program) if is_newer else self.program, self.written, **options)
        assert self.feature.id in {each.feature for each in artifact.findings}, "nothing was expanded"
        return artifact


def cases(features: Sequence[Feature] = ()) -> Iterator[Case]:
    """Yield the cases of all expansions that are declared, or of those of some features."""
    for feature in features or known_features():
        for expansion in feature.expansions:
            if newest := newest_without(feature):
                yield Case(feature, expansion.effect, newest.release, version_before(feature.id))
            if (oldest := Case(feature, expansion.effect, *OLDEST_SHARDED)).is_sharded:
                yield oldest
            for release in OLD_RELEASES:
                yield Case(feature, expansion.effect, release, vt.Version("0.9.0"))


def newest_without(feature: Feature) -> Release | None:
    """Return the newest release of jaxlib that does not know a feature; ``None`` if all know it."""
    older = [
        each
        for each in known_releases()
        if each.package == "jaxlib" and each.stablehlo.minor_release < feature.introduced
    ]
    return max(older, key=lambda each: (each.stablehlo, each.date), default=None)


def confirm(case: Case) -> ExpansionConfirmation:
    """Let the release of a case read and run its program.

    Raises:
        AssertionError: If it does not read it, or has other results than XLA has here.
    """
    given = inputs(case.program)
    artifact = case.artifact()
    known = (case.feature.id, case.effect, case.release, case.written)
    if case.is_sharded:
        by_shardy = case.written >= OLDEST_SHARDED[1]
        programs = {"p": (artifact, given[0])}
        found = run_sharded_by_release(f"jaxlib=={case.release}", SHARDED_DEVICES, programs, shardy=by_shardy)
        assert "p/error" not in found, f"{case}: {found['p/error']}"
        wanted = vt.run_parallel(case.program, given, partitions=SHARDED_DEVICES)
        check_results(case, [[found[f"p/{number}"] for number in range(len(wanted[0]))]], wanted)
        return ExpansionConfirmation(*known)
    outcome = run_by_release(f"jaxlib=={case.release}", artifact, given)
    assert outcome.failed != "read", f"{case}: {outcome.error}"
    assert outcome.failed != "process", f"{case}: {outcome.error}"
    if outcome.results is not None:
        check_results(case, outcome.results, expected(case.program, artifact, given))
    return ExpansionConfirmation(*known, not_run=_reason(outcome))


def inputs(program: str) -> list[list[Array]]:
    """Return fixed inputs for each replica of a program: fractions of at most five bits, and integers from 0 to 7."""
    devices = int(found[1]) if (found := re.search(r"mhlo\.num_replicas = (\d+)", program)) else 1
    taken, _, _ = program.partition("@main(")[2].partition("->")
    types = re.findall(r"tensor<((?:\d+x)*)(\w+)>", taken)
    return [[_values(shape, element, device) for shape, element in types] for device in range(devices)]


def _values(shape: str, element: str, device: int) -> Array:
    sizes = [int(size) for size in shape.split("x") if size]
    numbers = np.arange(np.prod(sizes, dtype=int)).reshape(sizes) + 5 * device
    return (numbers % 8 if element == "i32" else (numbers % 32 - 16) / 8).astype(ELEMENTS[element])


def expected(program: str, artifact: vt.Artifact, given: Results) -> Results:
    """Return what the newest release here computes: of the program, on the first engine that runs it.

    Neither may, as neither knows buffers, and both fail at reductions of mixed precision: then of the artifact on XLA.
    """
    for engine in ("xla", "reference"):
        with suppress(vt.EngineError):
            return _run(program, given, engine)
    return _run(artifact, given, "xla")


def _run(program: str | vt.Artifact, given: Results, engine: Any) -> Results:
    if len(given) == 1:
        return [vt.run(program, given[0], engine=engine)]
    return vt.run_parallel(program, given, replicas=len(given), engine=engine)


def check_results(case: Case, found: Results, wanted: Results) -> None:
    """Check that two programs have the same results on each device, bit by bit or within the bound of the feature."""
    for device, (one, other) in enumerate(zip(found, wanted, strict=True)):
        for number, (result, value) in enumerate(zip(one, map(np.asarray, other), strict=True)):
            assert result.dtype == value.dtype
            assert result.shape == value.shape
            where = f"{case}: result {number} of device {device}: {result} instead of {value}"
            if ulps := ULPS.get(case.feature.id):
                assert np.all(np.abs(result - value) <= ulps * np.spacing(np.abs(value))), where
            else:
                assert result.tobytes() == value.tobytes(), where


def _reason(outcome: ReleaseRun) -> str | None:
    """Return what a release said of a program that it does not run, in one line."""
    return None if outcome.results is not None else f"{outcome.failed}: {outcome.error.strip().splitlines()[0][:160]}"
