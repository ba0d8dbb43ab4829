"""`tensorflow_counter.mlir`: a `tf.Module` that counts rows, keeps their mean and spread, and normalises them.

The text is what TensorFlow gives (`experimental_get_compiler_ir`), without locations but for the names of arguments,
which TensorFlow leaves out: `main` takes the batch and then the variables, and returns the result and then the new
values of the variables, each aliased with its argument in `mhlo.input_output_alias`, and each by way of an `mhlo.copy`,
which no portable artifact can hold as it is.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import tensorflow as tf

PRODUCER = "2.21.0"
"""The release of tensorflow-cpu that wrote the file in the repository; another one writes other text."""

NAME = "tensorflow_counter.mlir"
ROWS, COLUMNS = 8, 4

_LOCATION = re.compile(r' loc\((?:#\w+|unknown|"[^"]*"|fused\[[^\]]*\])\)')


class Counter(tf.Module):
    """Statistics of all rows that were ever seen."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = tf.Variable(0, name="rows")
        self.mean = tf.Variable(tf.zeros(COLUMNS), name="mean")
        self.squares = tf.Variable(tf.zeros(COLUMNS), name="squares")

    @tf.function(input_signature=[tf.TensorSpec([ROWS, COLUMNS], tf.float32, name="batch")], jit_compile=True)
    def update(self, batch: tf.Tensor) -> tf.Tensor:
        """Take a batch into the statistics, and return it with their mean and spread taken out."""
        before = tf.cast(self.rows, tf.float32)
        rows = before + ROWS
        mean = tf.reduce_mean(batch, axis=0)
        shift = mean - self.mean
        # Both groups of rows have a mean of their own, and the distance of these adds to the squares.
        between = shift * shift * (before * ROWS / rows)
        self.squares.assign_add(tf.reduce_sum((batch - mean) ** 2, axis=0) + between)
        self.mean.assign_add(shift * (ROWS / rows))
        self.rows.assign_add(ROWS)
        return (batch - self.mean) * tf.math.rsqrt(self.squares / rows + 1e-6)


def build() -> bytes:
    """Return the text."""
    batch = tf.TensorSpec([ROWS, COLUMNS], tf.float32)
    # Held by a name, for its method does not hold it.
    counter = Counter()
    text: str = counter.update.experimental_get_compiler_ir(batch)(stage="stablehlo")
    lines = [_LOCATION.sub("", line) for line in text.splitlines() if not line.startswith("#loc")]
    # As TensorFlow captures them, with what its variables are called.
    called = {id(each.handle): each.name.partition(":")[0] for each in counter.variables}
    captured = [called[id(each)] for each in counter.update.get_concrete_function(batch).captured_inputs]
    return "\n".join([*_named(lines, ["batch", *captured]), ""]).encode()


def _named(lines: list[str], names: list[str]) -> list[str]:
    """Return text in which the arguments of `main` have names, as JAX writes them: in their locations."""
    (main,) = (number for number, line in enumerate(lines) if line.startswith("  func.func @main("))
    for number, name in enumerate(names):
        lines[main] = re.sub(rf"(%arg{number}: tensor<[^>]*>)", rf'\1 loc("{name}")', lines[main])
    return lines


def main() -> None:
    """Write the text to the folder that the command line names, or a SavedModel of the module."""
    parser = argparse.ArgumentParser(description=f"Rewrite {NAME}.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, metavar="DIR", help="folder to write to")
    parser.add_argument("--saved-model", type=Path, metavar="DIR", help="write a SavedModel instead, as this folder")
    options = parser.parse_args()
    if tf.__version__ != PRODUCER:
        print(f"note: tensorflow {tf.__version__}, not {PRODUCER}: expect other text", file=sys.stderr)
    if options.saved_model is not None:
        module = Counter()
        tf.saved_model.save(module, str(options.saved_model), signatures={"serving_default": module.update})
        return
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / NAME).write_bytes(build())


if __name__ == "__main__":
    main()
