"""Compatibility windows and readers, by the day."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

import vhlo_tools as vt
from vhlo_tools.spec import newest_version
from vhlo_tools.stores.windows import ReadingReleases, ends_of, horizon_end, readers_since, written_on

TODAY = date(2026, 1, 31)
V1_9 = vt.Version("1.9.0")


@pytest.mark.parametrize(
    ("horizon", "end"),
    [
        ("0d", date(2026, 1, 31)),
        ("90d", date(2026, 5, 1)),
        ("4w", date(2026, 2, 28)),
        ("1m", date(2026, 2, 28)),
        ("11m", date(2026, 12, 31)),
        ("12m", date(2027, 1, 31)),
        ("2y", date(2028, 1, 31)),
    ],
)
def test_horizons(horizon: str, end: date) -> None:
    assert horizon_end(horizon, TODAY) == end


@pytest.mark.parametrize("horizon", ["", "d", "3", "3q", "-3d", "3d ", "9999999999d", "9999y"])
def test_no_horizons(horizon: str) -> None:
    with pytest.raises(vt.UnknownTargetError, match="horizon"):
        horizon_end(horizon, TODAY)


def test_files_are_dated_by_their_version() -> None:
    assert written_on(V1_9) == written_on(vt.Version("1.9.5")) == date(2025, 1, 28)
    assert written_on(vt.Version("99.0.0")) is None


def test_windows_of_jax_export_files_count_from_their_day() -> None:
    backward_and_forward = {"backward": date(2030, 1, 28), "forward": date(2027, 1, 28)}
    assert ends_of(V1_9) == backward_and_forward
    assert ends_of(V1_9, jax_export=date(2026, 2, 28)) == {**backward_and_forward, "jax-export": date(2026, 8, 28)}
    assert ends_of(vt.Version("99.0.0"), jax_export=date(2026, 2, 28)) == {"jax-export": date(2026, 8, 28)}
    assert ends_of(vt.Version("99.0.0")) == {}


@pytest.mark.parametrize(
    ("version", "backward", "forward"),
    [
        # Six months backward and one forward, for all of 0.x.
        ("0.9.0", date(2023, 9, 2), date(2023, 4, 2)),
        ("0.16.3", date(2024, 5, 30), date(2023, 12, 30)),
        ("0.20.0", date(2024, 11, 10), date(2024, 6, 10)),
        # Five years and two, three days later.
        ("1.0.0", date(2029, 5, 13), date(2026, 5, 13)),
    ],
)
def test_files_have_the_promise_that_held_for_them(version: str, backward: date, forward: date) -> None:
    assert ends_of(vt.Version(version)) == {"backward": backward, "forward": forward}


def jaxlib(readers: tuple[ReadingReleases, ...]) -> tuple[str, str] | None:
    return next(((each.oldest, each.newest) for each in readers if each.package == "jaxlib"), None)


def test_readers_hold_one_of_the_versions_and_are_out_on_the_day() -> None:
    versions = [vt.Version("1.13.0"), vt.Version("1.14.0")]
    # jaxlib 0.9.2 is of 2026-03-18, and its StableHLO is 1.14.0; that of 0.10.0, of 2026-04-16, is 1.16.0.
    assert jaxlib(readers_since(frozenset(versions), date(2026, 3, 17))) == ("0.7.1", "0.9.1")
    assert jaxlib(readers_since(frozenset(versions), date(2026, 3, 18))) == ("0.7.1", "0.9.2")
    assert jaxlib(readers_since(frozenset(versions), date(2026, 12, 31))) == ("0.7.1", "0.9.2")
    assert jaxlib(readers_since(frozenset(versions), date(2025, 1, 1))) is None
    assert jaxlib(readers_since(frozenset(), date(2026, 12, 31))) is None


def test_text_of_readers() -> None:
    assert str(ReadingReleases("jaxlib", "0.7.1", "0.9.2")) == "jaxlib 0.7.1 to 0.9.2"
    assert str(ReadingReleases("jaxlib", "0.7.1", "0.7.1")) == "jaxlib 0.7.1"


def test_readers_of_the_newest_version() -> None:
    readers = readers_since(frozenset({newest_version()}), date.today() + timedelta(days=3650))
    assert readers == (ReadingReleases("libtpu", "0.0.52", "0.0.52"),)
