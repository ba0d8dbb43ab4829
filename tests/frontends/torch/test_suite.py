"""A tenth of the models that ``tests/conformance/check_torch_models.py`` exports, each in a process of its own."""

from __future__ import annotations

from typing import Final

import pytest
from check_torch_models import comparison, table, try_model
from torch_models.table import CASES
from torch_models.trial import OWN, Trial

#: With what each shows.
MODELS: Final = {
    "torchvision/swin_v1": "rolls, and windows of an image",
    "torchvision/shufflenet_v2": "BatchNorm, and channels that change places",
    "transformers/gpt2": "a view after attention",
    "transformers/mixtral": "groups of rows, each with a matrix of its own",
    "timm/vit_tiny": "attention without a mask",
    "small/as_strided": "a dynamic batch",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model(name: str) -> None:
    trial = try_model(name, "auto")
    assert trial.ok, trial.reason
    assert trial.error is not None
    assert trial.error <= CASES[name].tolerance


def test_a_model_that_is_not_exported_has_a_reason() -> None:
    trial = try_model("small/cond", "torch-mlir")
    assert not trial.ok
    assert "cond at " in trial.reason
    assert trial.seconds > 0


def test_the_tables() -> None:
    found = [
        Trial("a", "torchax", ok=True, error=0.0, seconds=1, peak=30 << 20, before=10 << 20),
        Trial("a", OWN["torchax"], ok=True, seconds=2, peak=50 << 20, before=10 << 20),
        Trial("b", "torchax", ok=False, reason="no op"),
    ]
    assert table([found[0], found[2]], ["torchax"]).splitlines() == [
        *("| model | torchax |", "|---|---|", "| a | equal |", "| b | no [1] |", "| **of 2** | **1** |", "", "1. no op")
    ]
    assert comparison(found).splitlines()[2:] == ["| a | torchax | 1.00 | 2.00 | 0.50 | 20 | 40 | 0.50 |"]
