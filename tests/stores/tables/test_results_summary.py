"""Counts of a table of results; those of files of them are tested in tests/frontends/scale."""

from __future__ import annotations

from vhlo_tools.stores import ResultsSummary
from vhlo_tools.stores.results_summary import FeatureCount, Tally


def test_of_too_many_texts_the_rarest_are_counted_together() -> None:
    tally = Tally()
    tally.add("often", 7)
    for number in range(2000):
        tally.add(f"{number:04}")
    assert tally.ranked() == [("often", 7), *((f"{number:04}", 1) for number in range(999))]
    assert tally.others == 2000 - 999


def test_features_of_the_most_files_come_first_and_equal_ones_by_name() -> None:
    summary = ResultsSummary("migration", {})
    summary.features |= {"tan": FeatureCount(1, 1), "i2": FeatureCount(1, 9), "composite": FeatureCount(2, 2)}
    assert [name for name, _ in summary.ranked_features()] == ["composite", "i2", "tan"]
    assert summary.as_json()["new_size"] == 0
