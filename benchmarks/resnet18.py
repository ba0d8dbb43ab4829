"""ResNet-18 as in "Deep Residual Learning for Image Recognition" (He et al., 2015), with random weights.

Written out here, so that measuring with a network of that size needs no torchvision.
"""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int, wanted: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, wanted, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(wanted)
        self.conv2 = nn.Conv2d(wanted, wanted, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(wanted)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or channels != wanted:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, wanted, 1, stride=stride, bias=False), nn.BatchNorm2d(wanted)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the features."""
        inner = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (inner + self.shortcut(x)).relu()


class ResNet18(nn.Module):
    """An image to 1000 scores."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.blocks = nn.Sequential(*(Block(before, width, 1 + (before < width)) for before, width in pairwise(widths)))
        self.scores = nn.Linear(512, 1000)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return the scores."""
        return self.scores(self.blocks(self.stem(image)).mean((2, 3)))


def resnet18() -> nn.Module:
    """Return the network, ready to classify, with the same weights every time: 11.7 million."""
    torch.manual_seed(18)
    return ResNet18().eval()


def image() -> torch.Tensor:
    """Return an image of the usual size."""
    return torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(224))
