from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given, strategies as st

import vhlo_tools as vt
from vhlo_tools.compat import Library, Target, newest_released_by, resolve_target
from vhlo_tools.spec import Release, known_releases
from vhlo_tools.version import Version

LIBRARY = Library(
    "jaxlib 0.0",
    current=Version("1.10.4"),
    minimum=Version("0.9.0"),
    requirements={
        "NONE": Version("1.10.4"),
        "WEEK_4": Version("1.9.5"),
        "WEEK_12": Version("1.8.8"),
        "MAX": Version("0.9.0"),
    },
)
TODAY = date(2025, 6, 1)
NEWER = pytest.mark.whole_data("names a release with a newer version")


def resolve(spelling: str) -> Target:
    return resolve_target(spelling, lambda: LIBRARY, as_of=TODAY)


@pytest.mark.parametrize(
    ("spelling", "version"),
    [
        ("1.9.0", "1.9.0"),
        ("1.8.5", "1.8.5"),
        ("current", "1.10.4"),
        ("minimum", "0.9.0"),
        ("NONE", "1.10.4"),
        ("WEEK_4", "1.9.5"),
        ("WEEK_12", "1.8.8"),
        ("MAX", "0.9.0"),
        ("0d", "1.10.9"),  # jaxlib 0.6.1 of 2025-05-21
        ("4w", "1.10.4"),  # 2025-05-04: jaxlib 0.6.0 of 2025-04-16
        ("12w", "1.9.3"),  # 2025-03-09: jaxlib 0.5.1 of 2025-02-24
        ("1y", "0.19.10"),  # 2024-06-01: jaxlib 0.4.28 of 2024-05-09
        ("2025-06-01", "1.10.9"),
        ("2024-07-29", "1.4.2"),
        ("2024-07-28", "1.1.3"),
        ("jaxlib==0.4.31", "1.4.2"),
        ("tensorflow==2.21.0", "1.13.7"),
        pytest.param("torch-mlir==20261001", "1.19.0", marks=NEWER),
        pytest.param("torch_mlir==20261001", "1.19.0", marks=NEWER),
        pytest.param("iree-base-compiler==3.13.0", "1.21.0", marks=NEWER),
        ("jaxlib==0.8.3,jaxlib==0.4.31,1.9.0", "1.4.2"),
        ("current, minimum", "0.9.0"),
    ],
)
def test_grammar(spelling: str, version: str) -> None:
    found = resolve(spelling)
    assert (found.version, found.spelling) == (Version(version), spelling)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("", "'' is not a target: expected a version"),
        ("newest", "is not a target"),
        ("week_4", "is not a target"),
        ("1.9.0,", "'' is not a target"),
        ("4m", "is not a target"),
        ("jaxlib=0.4.31", "is not a target"),
        ("2025-02-30", "not a valid date"),
        ("9999999w", "before the earliest date of the calendar"),
        ("9999y", "before the earliest date of the calendar"),
        ("30y", "no release is known by 1995-06-01: the first is jaxlib==0.4.13 of 2023-06-22"),
        ("jaxlib==0.1.0", r"the nearest known are jaxlib==0.4.13 \(StableHLO 0.13.4\); give one of these$"),
        ("jaxlib==0.4.300", r"jaxlib==0.4.38 \(StableHLO 1.8.7\) and jaxlib==0.5.0 \(.*\); give one of these$"),
        ("jaxlib==0.4.34.dev20240101", "is not a known release: .* give one of these$"),
        ("jax==0.7.3", "the nearest known are jax==0.7.2 .* and jax==0.8.0 "),
        ("jaxlb==0.4.31", "no releases of jaxlb are known: did you mean jaxlib?"),
        ("numpy==1.0", "known packages: iree-base-compiler, jax, jax-cuda12-pjrt, jax-cuda13-pjrt, jaxlib, libtpu"),
    ],
)
def test_unknown_targets(spelling: str, message: str) -> None:
    with pytest.raises(vt.UnknownTargetError, match=message):
        resolve(spelling)


@pytest.mark.parametrize(
    ("spelling", "version", "message"),
    [
        pytest.param(
            "jaxlib==99.0",
            "1.22.0",
            r"the nearest known are jaxlib==0.12.0.1 \(StableHLO 1.22.0\); taken for jaxlib==0.12.0.1. `python "
            r"scripts/releases.py jaxlib==99.0 --write`",
            marks=NEWER,
        ),
        pytest.param(
            "1.20.0,torch_mlir==20270101", "1.19.0", "torch-mlir==20270101 is not a known release", marks=NEWER
        ),
    ],
)
def test_an_unknown_release_is_taken_for_the_newest_known_one(spelling: str, version: str, message: str) -> None:
    with pytest.warns(vt.UnknownReleaseWarning, match=message):
        target = resolve(spelling)
    assert target.version.minor_release == Version(version).minor_release
    # Every format says so with the target.
    assert " is not known, and taken for " in str(target)


def test_a_build_of_a_release_is_that_release() -> None:
    assert resolve("jaxlib==0.4.31+cuda12.cudnn91").consumers == resolve("jaxlib==0.4.31").consumers


@pytest.mark.parametrize("spelling", ["1.00.0", "1.9", "-1.9.0", "99999999999999999999.0.0", "v1.9.0", "1.9.0,1.00.0"])
def test_what_looks_like_a_version_and_is_none(spelling: str) -> None:
    with pytest.raises(vt.InvalidVersionError):
        resolve(spelling)


@pytest.mark.parametrize("release", known_releases(), ids=str)
def test_every_known_release(release: Release) -> None:
    assert resolve(str(release)).version == release.stablehlo


def test_only_the_library_answers_for_itself() -> None:
    def asked() -> Library:
        raise AssertionError("the library was asked")

    for spelling in ("1.9.0", "minimum", "4w", "2025-06-01", "jaxlib==0.4.31"):
        resolve_target(spelling, asked, as_of=TODAY)
    with pytest.raises(AssertionError):
        resolve_target("WEEK_4", asked)


@given(st.dates(date(2023, 6, 22), date(2030, 1, 1)), st.integers(0, 400))
def test_windows_never_get_newer_by_looking_further_back(day: date, further: int) -> None:
    newer = newest_released_by(day)
    assert newer.date <= day
    if day - timedelta(days=further) >= date(2023, 6, 22):
        assert newest_released_by(day - timedelta(days=further)).stablehlo <= newer.stablehlo


def test_a_leap_day_counts_back_to_the_28th() -> None:
    target = resolve_target("1y", lambda: LIBRARY, as_of=date(2028, 2, 29))
    assert "2027-02-28" in target.reason


def test_within_what_the_library_writes() -> None:
    assert resolve("1.9.0").within(LIBRARY) == resolve("1.9.0")
    # A named consumer that reads more than the library writes is served with the newest it writes.
    served = resolve("jaxlib==0.9.0").within(LIBRARY)
    assert (served.version, served.spelling) == (LIBRARY.current, "jaxlib==0.9.0")
    with pytest.raises(vt.UnknownTargetError, match=r"target 1.11.0 is newer than 1.10.4, the newest that jaxlib 0.0"):
        resolve("1.11.0").within(LIBRARY)
    with pytest.raises(vt.UnknownTargetError, match=r"older than 0.9.0, the oldest"):
        resolve("0.8.0").within(LIBRARY)
    # A fleet with a consumer in it is served by what serves that, in whatever order it is spelled.
    for spelling in ("1.11.0,jaxlib==0.9.0", "jaxlib==0.9.0,1.11.0"):
        assert resolve(spelling).within(LIBRARY).version == LIBRARY.current
    with pytest.raises(vt.UnknownTargetError, match="newer than"):
        resolve("1.11.0,1.12.0").within(LIBRARY)


def test_the_installed_library_answers() -> None:
    current = vt.resolve_target("current")
    assert current.version == vt.resolve_target("NONE").version
    assert vt.resolve_target("MAX").version == vt.resolve_target("minimum").version == Version("0.9.0")
    assert vt.resolve_target("WEEK_12").version <= vt.resolve_target("WEEK_4").version <= current.version
