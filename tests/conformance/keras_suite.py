"""Models of `keras.applications` and `keras_hub` with random weights, exported and run: `keras_suite.py [NAME ...]`.

Each model runs in a process of its own, on each backend of `--backends` that is installed, and its results on XLA are
compared with those of Keras. Prints a Markdown table. `keras_hub` has to be installed beside what
`scripts/frontends.py` installs; without it only the models of `keras.applications` run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]
#: The largest distance of a result, relative to the largest number in it.
TOLERANCE: Final = 1e-4
BACKENDS: Final = ("tensorflow", "jax")
#: The models that run in CI.
SMALLEST: Final = ("MobileNet", "MobileNetV2", "MobileNetV3Small")

TOKENS: Final = np.array([[2, 5, 9, 11, 3, 0], [2, 7, 3, 0, 0, 0]], np.int32)
MASK: Final = (TOKENS > 0).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one model."""

    distance: float  # the largest distance of a result, relative to the largest number in it
    seconds: float  # the time of the export
    ops: int  # the number of ops of the artifact
    parameters: int  # the number of weights


def image(size: int) -> Array:
    return np.random.default_rng(0).uniform(-1, 1, (1, size, size, 3)).astype(np.float32)


def application(name: str, size: int = 32, **options: Any) -> tuple[Any, Any]:
    """Return a model of `keras.applications`, and an image."""
    from keras import applications

    options = {"classes": 10, "classifier_activation": None, **options}
    model = getattr(applications, name)(weights=None, input_shape=(size, size, 3), **options)
    return model, image(size)


def text_model(name: str, **options: Any) -> tuple[Any, Any]:
    """Return a backbone of `keras_hub` for text, and tokens."""
    import keras_hub

    model = getattr(keras_hub.models, name)(vocabulary_size=32, **options)
    wanted = [each.name for each in model.inputs]
    inputs = {"token_ids": TOKENS, "padding_mask": MASK, "segment_ids": np.zeros_like(TOKENS)}
    inputs |= {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in dict(inputs).items()}
    return model, {each: inputs[each] for each in wanted}


def vision_model(name: str, size: int = 32, **options: Any) -> tuple[Any, Any]:
    """Return a backbone of `keras_hub` for images, and an image."""
    import keras_hub

    return getattr(keras_hub.models, name)(image_shape=(size, size, 3), **options), image(size)


def whisper() -> tuple[Any, Any]:
    import keras_hub

    model = keras_hub.models.WhisperBackbone(
        vocabulary_size=32, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32, max_encoder_sequence_length=8
    )
    features = np.random.default_rng(0).standard_normal((2, 8, 80)).astype(np.float32)
    return model, {"encoder_features": features, "decoder_token_ids": TOKENS, "decoder_padding_mask": MASK}


Make = Callable[[], tuple[Any, Any]]
APPLICATIONS: Final[dict[str, Make]] = {
    "MobileNet": partial(application, "MobileNet", alpha=0.25),
    "MobileNetV2": partial(application, "MobileNetV2", alpha=0.35),
    "MobileNetV3Small": partial(application, "MobileNetV3Small", alpha=0.75, minimalistic=True),
    "EfficientNetB0": partial(application, "EfficientNetB0"),
    "EfficientNetV2B0": partial(application, "EfficientNetV2B0"),
    "ResNet50": partial(application, "ResNet50"),
    "DenseNet121": partial(application, "DenseNet121"),
    "ConvNeXtTiny": partial(application, "ConvNeXtTiny"),
    "InceptionV3": partial(application, "InceptionV3", 75),
    "Xception": partial(application, "Xception", 71),
    "NASNetMobile": partial(application, "NASNetMobile"),
}
_SMALL: Final = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "intermediate_dim": 32}
_LLAMA: Final = {
    "num_layers": 2,
    "num_query_heads": 4,
    "num_key_value_heads": 2,
    "hidden_dim": 32,
    "intermediate_dim": 64,
}
HUB: Final[dict[str, Make]] = {
    "BertBackbone": partial(text_model, "BertBackbone", **_SMALL, max_sequence_length=6),
    "DistilBertBackbone": partial(text_model, "DistilBertBackbone", **_SMALL, max_sequence_length=6),
    "GPT2Backbone": partial(text_model, "GPT2Backbone", **_SMALL, max_sequence_length=6),
    "LlamaBackbone": partial(text_model, "LlamaBackbone", **_LLAMA),
    "MistralBackbone": partial(text_model, "MistralBackbone", **_LLAMA, sliding_window=4),
    "GemmaBackbone": partial(text_model, "GemmaBackbone", **_LLAMA, head_dim=8),
    "T5Backbone": partial(text_model, "T5Backbone", **_SMALL),
    "WhisperBackbone": whisper,
    "ViTBackbone": partial(
        vision_model, "ViTBackbone", patch_size=8, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32
    ),
    "ResNetBackbone": partial(
        vision_model,
        "ResNetBackbone",
        input_conv_filters=[64],
        input_conv_kernel_sizes=[7],
        stackwise_num_filters=[64, 128],
        stackwise_num_blocks=[2, 2],
        stackwise_num_strides=[1, 2],
        block_type="basic_block",
    ),
}


def outcome_of(name: str, weights: Any = "constants") -> Outcome:
    """Return the outcome of a model on the backend that Keras runs on.

    Raises:
        AssertionError: If types or shapes of results are not those of Keras.
    """
    import keras

    import vhlo_tools as vt
    from vhlo_tools.integrations.keras import export

    keras.utils.set_random_seed(0)
    model, inputs = {**APPLICATIONS, **HUB}[name]()
    given = keras.tree.map_structure(keras.ops.convert_to_tensor, inputs)
    wanted = [keras.ops.convert_to_numpy(each) for each in keras.tree.flatten(model(given, training=False))]
    leaves = keras.tree.flatten(inputs)
    began = perf_counter()
    exported = export(model, batch_size=len(leaves[0]), shapes=_shapes(keras, model, inputs), weights=weights)
    seconds = perf_counter() - began
    # The order of the inputs is that of their names.
    by_name = inputs if isinstance(inputs, dict) else {exported.inputs[0]: inputs}
    found = vt.run(exported.artifact, [by_name[each] for each in exported.inputs] + list(exported.weights.values()))
    distance = 0.0
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.isfinite(other).all()
        assert other.std() > 0
        distance = max(distance, float(np.max(np.abs(one - other)) / np.max(np.abs(other))))
    ops = sum(exported.artifact.inventory().ops.values())
    return Outcome(distance, seconds, ops, int(model.count_params()))


def _shapes(keras: Any, model: Any, inputs: Any) -> dict[str, Sequence[int]]:
    values = inputs if isinstance(inputs, dict) else {}
    return {each.name: values[each.name].shape for each in model.inputs if each.name in values}


def _run(name: str, backend: str) -> str:
    settings = {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, __file__, "--child", name]
    process = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        return f"failed: {lines[-1][:200] if lines else process.returncode} |"
    outcome = Outcome(**json.loads(process.stdout.splitlines()[-1]))
    said = f"{outcome.distance:.0e}" if outcome.distance else "equal"
    said = said if outcome.distance <= TOLERANCE else f"**differs: {said}**"
    return f"{said} | {outcome.seconds:.1f} s, {outcome.ops} ops"


def main() -> int:
    """Run the models that are named, by default all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        outcome = outcome_of(options.child)
        print(json.dumps({each: getattr(outcome, each) for each in Outcome.__slots__}))
        return 0
    known = [*APPLICATIONS, *(HUB if find_spec("keras_hub") else ())]
    columns = [f"{each} | export on {each}" for each in options.backends]
    print(f"| model | {' | '.join(columns)} |\n|---{'|---' * 2 * len(options.backends)}|")
    failed = False
    for name in options.names or known:
        row = [_run(name, backend) for backend in options.backends]
        failed = failed or any("failed" in each or "differs" in each for each in row)
        print(f"| `{name}` | {' | '.join(row)} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
