"""`keras_mlp.mlirbc`: a small network of Keras as a portable artifact of StableHLO 1.0.0, its weights as constants.

The file in the repository was written on the JAX backend; on the others (`KERAS_BACKEND`) the same script writes other
ops with the same meaning. It has no locations, which would name the files of Keras on the machine that made it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers

import vhlo_tools as vt
from vhlo_tools.integrations.keras import export

NAME = "keras_mlp.mlirbc"
TARGET = "1.0.0"
BATCH, FEATURES, HIDDEN, CLASSES = 2, 6, 16, 3


def make_model() -> Any:
    """Return the network, with weights that are the same on every machine."""
    model = keras.Sequential(
        [
            layers.Input((FEATURES,), name="features"),
            layers.Dense(HIDDEN, activation="gelu", name="hidden"),
            layers.LayerNormalization(name="norm"),
            layers.Dropout(0.1, name="dropout"),
            layers.Dense(CLASSES, activation="softmax", name="classes"),
        ],
        name="mlp",
    )
    for number, weight in enumerate(model.weights):
        size = int(np.prod(weight.shape))
        values = ((np.arange(size) * 37 + number * 11) % 64 - 32) / 64
        weight.assign(values.reshape(weight.shape).astype(np.float32))
    return model


def build() -> bytes:
    """Return the artifact."""
    return bytes(vt.strip(export(make_model(), target=TARGET, batch_size=BATCH).artifact))


def main() -> None:
    """Write the artifact to the folder that the command line names."""
    parser = argparse.ArgumentParser(description=f"Rewrite {NAME}.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, metavar="DIR", help="folder to write to")
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_bytes(build())


if __name__ == "__main__":
    main()
