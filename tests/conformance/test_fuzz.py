"""The campaign notices what must not be, and finds nothing in a short run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from fuzz.campaign import Campaign
from fuzz.seeds import collect
from fuzz.self_test import DEEDS

pytestmark = pytest.mark.long

#: Among the first inputs of this seed is every deed.
SEED = 0
INPUTS = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("campaign")
    collect(folder / "seeds", step=8)
    return folder


def test_what_must_not_be_is_counted(folder: Path) -> None:
    campaign = Campaign(folder, SEED)
    campaign.run("self-test", INPUTS)
    campaign.close()
    counts = campaign.counts["self-test"]
    assert counts["inputs"] == INPUTS
    assert {column for column in DEEDS if counts[column]} == set(DEEDS)
    assert sum(counts[column] for column in DEEDS) == INPUTS
    kept = {path.name.rpartition("-")[2] for path in (folder / "problems").iterdir()}
    assert kept == set(DEEDS) - {"answered", "refused"}
    assert "| self-test | 24 |" in campaign.report()
    again = Campaign(folder, SEED, resume=True)
    again.run("self-test", INPUTS)
    again.close()
    assert again.counts["self-test"] == counts
    with pytest.raises(ValueError, match="is that of the seed 0"):
        Campaign(folder, SEED + 1, resume=True)


def test_what_was_interrupted_is_run(folder: Path) -> None:
    campaign = Campaign(folder, 3)
    campaign.run("reader", 60)
    campaign.close()
    journal = folder / "journal.jsonl"
    head, *_ = journal.read_text().splitlines()
    part = {"layer": "reader", "start": 20, "stop": 40, "counts": {"answered": 20}, "problems": []}
    journal.write_text(f'{head}\n{json.dumps(part)}\n{{"layer": "rea')
    again = Campaign(folder, 3, resume=True)
    again.run("reader", 60)
    again.close()
    assert again.counts["reader"]["inputs"] == 60
    assert sorted(
        tuple(json.loads(line).values())[1:3] for line in journal.read_text().splitlines()[1:] if line[-1] == "}"
    )


@pytest.mark.parametrize(
    ("layer", "inputs"),
    [("reader", 100), ("containers", 100), ("mlir", 15), ("reference", 4), ("xla", 4), ("commands", 10)],
)
def test_a_short_campaign(layer: str, inputs: int, folder: Path) -> None:
    campaign = Campaign(folder, 1)
    campaign.run(layer, inputs)
    campaign.close()
    counts = campaign.counts[layer]
    assert counts["inputs"] == inputs
    assert Counter({key: number for key, number in counts.items() if number}).keys() <= {
        "inputs",
        "answered",
        "refused",
        "MiB",
    }
    assert 50 < counts["MiB"] < 2048
    assert not campaign.problems, campaign.report()
