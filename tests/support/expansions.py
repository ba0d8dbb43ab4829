"""Programs before and after an expansion, compared on the engines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

import vhlo_tools as vt
from vhlo_tools.findings import Finding
from vhlo_tools.spec import known_feature, known_versions
from vhlo_tools.verification import Tolerance, compare

Engine = Literal["reference", "xla"]
ENGINES: tuple[Engine, ...] = ("reference", "xla")


def version_before(feature: str) -> vt.Version:
    introduced = known_feature(feature).introduced
    return max(each.version for each in known_versions() if each.version < introduced)


def expanded(
    program: Any, feature: str, target: str | vt.Version | None = None, *, relaxed: bool = False
) -> tuple[vt.Artifact, list[Finding]]:
    """Return a program written for a version without a feature, and the notes of what was expanded.

    Args:
        program: The program.
        feature: The id of the feature: only its expansion is allowed.
        target: The version; by default the newest one without the feature.
        relaxed: Whether its relaxed expansion is allowed, and not the exact one.
    """
    options: Any = {"allow_relaxed": [feature]} if relaxed else {"expand": [feature]}
    artifact = vt.serialize(program, target or version_before(feature), **options)
    assert artifact.requirements().findings(artifact.version) == []
    assert artifact.requirements().readable_since <= artifact.version
    notes = [each for each in artifact.findings if each.feature == feature]
    assert notes, "nothing was expanded"
    # What was expanded has nothing left to be expanded.
    assert vt.serialize(artifact, artifact.version, **options) == artifact
    return artifact, notes


def check_same(
    before: Any,
    after: vt.Artifact,
    inputs: Sequence[Any] | Iterable[Sequence[Any]],
    *,
    ulps: int = 0,
    absolute: float = 0,
    engines: Iterable[Engine] = ENGINES,
) -> None:
    """Check that two programs have the same results on each engine: the same bits, or within a bound.

    Args:
        before: The program with the expected results.
        after: The program that was expanded.
        inputs: A sequence of inputs, each a sequence of arrays.
        ulps: How many units in the last place floats may differ.
        absolute: How much floats may differ.
        engines: The engines.
    """
    given = [list(each) for each in inputs]
    for engine in engines:
        # Compiled once for all inputs.
        loaded, other = (vt.load_executable(program, engine=engine) for program in (before, after))
        for arrays in given:
            _check(loaded.run(arrays), other.run(arrays), ulps, absolute, engine)


def check_same_on_devices(
    before: Any,
    after: vt.Artifact,
    inputs: Sequence[Sequence[Any]],
    *,
    engines: Iterable[Engine] = ENGINES,
    expected_by: Engine | None = None,
    ulps: int = 0,
    replicas: int | None = None,
    partitions: int | None = None,
) -> None:
    """Check that two programs have the same results on every device, of each engine.

    Args:
        before: The program with the expected results.
        after: The program that was expanded.
        inputs: The inputs of each device.
        engines: The engines.
        expected_by: The engine that runs the first program, if not every engine does.
        ulps: How many units in the last place floats may differ.
        replicas: As for :func:`vhlo_tools.run_parallel`.
        partitions: As for :func:`vhlo_tools.run_parallel`.
    """
    for engine in engines:
        expected, found = (
            vt.run_parallel(program, inputs, replicas=replicas, partitions=partitions, engine=by)
            for program, by in ((before, expected_by or engine), (after, engine))
        )
        for one, other in zip(expected, found, strict=True):
            _check(one, other, ulps, 0, engine)


def _check(expected: Sequence[Any], found: Sequence[Any], ulps: int, absolute: float, engine: str) -> None:
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if not ulps and not absolute:
            # Bits, with the sign of zeros; a NaN is one whatever its bits are.
            different = (np.isnan(one) & np.isnan(other)) if one.dtype.kind in "fcV" else np.zeros(one.shape, bool)
            one, other = (np.where(different, np.zeros_like(each), each) for each in (one, other))
            assert one.tobytes() == other.tobytes(), f"{engine}: {one} {other}"
        else:
            outcome = compare(other, one, Tolerance(ulps, absolute=absolute), "")
            assert outcome.passed, f"{engine}: {outcome}"
