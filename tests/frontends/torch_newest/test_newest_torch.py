"""torch-mlir beside the newest torch that pip resolves, which torchax does not fit."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import vhlo_tools as vt
from vhlo_tools.integrations.torch import export


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 6, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


MODELS = {
    "linear": (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)), (2, 4)),
    "convolution": (nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)), (2, 1, 8, 8)),
    "recurrent": (Recurrent(), (2, 3, 4)),
    "attention": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (2, 3, 8)),
}


@pytest.mark.parametrize("weights", ["constants", "arguments"])
@pytest.mark.parametrize("name", MODELS)
def test_models_compute_what_torch_does(name: str, weights: Any) -> None:
    torch.manual_seed(0)
    model, shape = MODELS[name]
    exported = export(model.eval(), (torch.rand(shape),), weights=weights, importer="torch-mlir", verify=True)
    assert exported.findings == ()
    assert exported.outputs == ("output0",)


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


def test_what_is_refused_has_its_line() -> None:
    with pytest.raises(vt.InvalidProgramError, match=r"test_newest_torch\.py:\d+ \(.*torch\.cond choose"):
        export(Branch(), (torch.ones(2),))
