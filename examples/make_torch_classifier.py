"""`torch_classifier.pt2`: a PyTorch image classifier as torch.export writes it, weights included."""

# mypy: allow-subclassing-any, no-warn-return-any

from __future__ import annotations

import argparse
import io
import re
import sys
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn

PRODUCER = "2.13.0"
"""The torch release that wrote the file in the repository; another one writes other bytes."""

CLASSES = 10
IMAGE = (1, 1, 16, 16)
CHANNELS = 16

# Of a traceback, the frames of this script: the others name folders of the machine.
OWN_FRAME = re.compile(r'File ".*/(examples/[^/"]+\.py)", (line \d+, in \w+\n.*)')


class Classifier(nn.Module):
    """Convolutions with batch normalization, then attention between the places of what they found."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, CHANNELS, 3, padding=1), nn.BatchNorm2d(CHANNELS), nn.ReLU(), nn.MaxPool2d(2)),
        )
        self.attention = nn.MultiheadAttention(CHANNELS, num_heads=2, batch_first=True)
        self.norm = nn.LayerNorm(CHANNELS)
        self.scores = nn.Linear(CHANNELS, CLASSES)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        """Return the probability of each class, and which places looked at which."""
        places = self.features(image).flatten(2).transpose(1, 2)
        found, looked = self.attention(places, places, places)
        pooled = self.norm(places + found).mean(1)
        return {"probabilities": self.scores(pooled).softmax(-1), "attention": looked}


def classifier() -> Classifier:
    """Return the classifier, ready to classify, with the same random weights every time."""
    torch.manual_seed(0)
    model = Classifier()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.5, 1.5)
    return model.eval()


def build() -> bytes:
    """Export the classifier for one image."""
    program = torch.export.export(classifier(), (torch.zeros(IMAGE),))
    for node in program.graph.nodes:
        frames = OWN_FRAME.findall(node.meta.pop("stack_trace", ""))
        if frames:
            node.meta["stack_trace"] = "\n".join(f'  File "{file}", {rest}' for file, rest in frames)
    buffer = io.BytesIO()
    # The file names the version, of which builds for processors and for GPUs differ in what follows the plus.
    with mock.patch.object(torch, "__version__", torch.__version__.partition("+")[0]):
        torch.export.save(program, buffer)
    return buffer.getvalue()


def main() -> None:
    """Write the file into the folder that the command line asks for."""
    parser = argparse.ArgumentParser(description="Rewrite torch_classifier.pt2.")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent,
        metavar="DIR",
        help="folder to write to (default: the examples folder)",
    )
    folder: Path = parser.parse_args().out
    if torch.__version__.partition("+")[0] != PRODUCER:
        print(f"note: torch {torch.__version__}, not {PRODUCER}: expect other bytes", file=sys.stderr)
    content = build()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "torch_classifier.pt2").write_bytes(content)


if __name__ == "__main__":
    main()
