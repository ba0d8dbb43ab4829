"""A short campaign of the layers that need the extra: results as Parquet, and what object stores answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.campaign import Campaign
from fuzz.seeds import collect


@pytest.mark.parametrize(("layer", "inputs"), [("parquet", 100), ("stores", 60)])
def test_a_short_campaign(layer: str, inputs: int, tmp_path: Path) -> None:
    collect(tmp_path / "seeds", step=20)
    campaign = Campaign(tmp_path, 1)
    campaign.run(layer, inputs)
    campaign.close()
    counts = campaign.counts[layer]
    assert counts["answered"] + counts["refused"] == counts["inputs"] == inputs
    assert counts["answered"]
    assert not campaign.problems, campaign.report()
