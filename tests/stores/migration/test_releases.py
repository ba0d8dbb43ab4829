"""A store that ten old releases of jaxlib wrote, migrated up and down: a share of check_migrate_releases.py."""

from __future__ import annotations

from pathlib import Path

import check_migrate_releases


def test_a_store_of_ten_releases_goes_up_and_down(tmp_path: Path) -> None:
    assert check_migrate_releases.fill(tmp_path, 2) == 20
    seen = list(check_migrate_releases.check(tmp_path, None))
    assert [each.problems for each in seen] == [(), (), ()]
    assert [each.target for each in seen] == ["current", "1.0.0", "0.9.0"]
    assert all(any(status.startswith("moved (same program") for status in each.statuses) for each in seen)
