"""Models of Keras as people write them: exported, moved to the oldest version that they allow, run, compared.

`KERAS_BACKEND=jax python tests/conformance/keras_programs.py [--only REGEX]`, in an environment of
`scripts/frontends.py`, for each backend in turn. Prints what became of each; the exit code is 1 if one differs, or is
refused otherwise than `REFUSED` says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np
from framework_programs import Outcome, became, main
from keras import layers, ops

from vhlo_tools.integrations.keras import export

CASES: dict[str, Callable[[], Outcome]] = {}
BACKEND: Final = keras.backend.backend()
#: What the messages of those that are refused say, on each backend.
REFUSED: Final[dict[str, dict[str, str]]] = {
    "all": {"random numbers in inference": "keras.random.normal at"},
    "tensorflow": {
        "resized by cubes": "ResizeBicubic (resizing_1/resize/ResizeBicubic)",
        "categories counted": "DenseBincount (PartitionedCall/category_encoding_1/bincount/DenseBincount)",
        "hashed features": "AsString (hashing_1/AsString)",
        "numbers looked up": "LookupTableFindV2 (integer_lookup_1/None_Lookup/LookupTableFindV2)",
        "strings": "string_lookup (StringLookup) takes it",
        "a histogram": "Reshape changes the shape of a tensor whose size depends on values",
        "own: warped images": "ImageProjectiveTransformV3",
    },
    "torch": {
        "own: loops and branches": "what is run may not depend on the values of tensors",
        "own: operations": "what is run may not depend on the values of tensors",
        "own: images": "what is run may not depend on the values of tensors",
        "random numbers in inference": "what is run may not depend on the values of tensors",
        "a histogram": "aten.histogram.bin_ct",
    },
}
#: Those of layers of Keras, which are named.
LINELESS: Final = (
    "resized by cubes",
    "categories counted",
    "hashed features",
    "numbers looked up",
    "strings",
    "a histogram",
)


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def case(name: str, make: Callable[[], Any], *inputs: Any, is_declared: bool = True, **options: Any) -> None:
    """Add a model; without declared inputs it is exported by examples."""
    assert name not in CASES

    def tried() -> Outcome:
        keras.utils.clear_session()
        keras.utils.set_random_seed(0)
        model = make()
        given = keras.tree.map_structure(ops.convert_to_tensor, list(inputs))
        wanted = model(*given, **({"training": False} if is_declared else {}))
        _draw_statistics(model)
        wanted = model(*given, **({"training": False} if is_declared else {}))
        expected = [ops.convert_to_numpy(ops.stop_gradient(each)) for each in keras.tree.flatten(wanted)]
        # By the shapes that the model declares, on drawn inputs; or on the examples.
        examples = () if is_declared and getattr(model, "inputs", None) else inputs
        exported = export(model, *examples, **{"verify": True, **options})
        arrays = [np.asarray(each) for each in keras.tree.flatten(list(inputs))]
        what, said = became(exported.artifact, [(arrays, expected)])
        return what, "; ".join([said, *dict.fromkeys(f"{each.feature}: {each.message}" for each in exported.findings)])

    CASES[name] = tried


def _draw_statistics(model: Any) -> None:
    """Normalizations start with 0 and 1, which hide what they do."""
    for each in model.non_trainable_weights:
        if "moving" in each.path:
            each.assign(np.abs(drawn(*each.shape)) + 0.5)


def functional(name: str, connect: Callable[..., Any], *inputs: Any, declared: Any = None, **options: Any) -> None:
    """Add a functional model with the inputs `x`, `y`, ... of these shapes, the first dimension open."""

    def make() -> Any:
        made = [
            keras.Input(
                shape or each.shape[1:], dtype="string" if each.dtype.kind == "U" else each.dtype.name, name=letter
            )
            for letter, each, shape in zip("xyz", inputs, declared or [None] * len(inputs), strict=False)
        ]
        return keras.Model(made if len(made) > 1 else made[0], connect(*made))

    given = inputs if len(inputs) == 1 else (list(inputs),)
    case(name, make, *given, **({"batch_size": len(inputs[0])} | options))


X, SERIES, IMAGE = drawn(2, 6), drawn(2, 5, 4), np.abs(drawn(2, 8, 8, 3))
NUMBERS = np.array([[3, 4], [7, 9]], np.int32)
TOKENS = np.array([[1, 2, 3, 0, 0], [4, 5, 6, 7, 8]], np.int32)

# Layers


def residual(x: Any) -> Any:
    y = layers.Conv2D(3, 3, padding="same", use_bias=False)(x)
    y = layers.BatchNormalization()(layers.Activation("relu")(y))
    gate = layers.Dense(3, "sigmoid")(layers.Dense(2, "relu")(layers.GlobalAveragePooling2D(keepdims=True)(y)))
    return layers.Add()([x, layers.Multiply()([y, gate])])


def unet(x: Any) -> Any:
    down = layers.SeparableConv2D(4, 3, padding="same", activation="swish")(x)
    middle = layers.Conv2D(8, 3, dilation_rate=2, padding="same")(layers.AveragePooling2D(2)(down))
    up = layers.UpSampling2D(interpolation="bilinear")(middle)
    return layers.Conv2D(2, 1)(layers.Concatenate()([layers.Cropping2D(1)(layers.ZeroPadding2D(1)(up)), down]))


def encoder(x: Any) -> Any:
    y = layers.Embedding(9, 8, mask_zero=True)(x)
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True), merge_mode="sum")(y)
    return layers.GRU(3, reset_after=False)(y), layers.TimeDistributed(layers.Dense(2))(y)


def attentive(x: Any, y: Any) -> Any:
    z = layers.Attention(use_scale=True)([x, y])
    z = layers.LayerNormalization()(z + layers.AdditiveAttention()([z, y]))
    z = layers.GroupQueryAttention(4, 4, 2)(z, y, use_causal_mask=True)
    return layers.MultiHeadAttention(2, 3, output_shape=5, attention_axes=(1,))(z, z, use_causal_mask=True)


def siamese(x: Any, y: Any) -> Any:
    tower = keras.Sequential([layers.Dense(5, "tanh"), layers.UnitNormalization()])
    one, two = tower(x), tower(y)
    return {"near": layers.Dot(1, normalize=True)([one, two]), "apart": layers.Subtract()([one, two])}


def mixture(x: Any) -> Any:
    gates = layers.Softmax()(layers.Dense(3)(x))
    experts = ops.stack([layers.Dense(4, activation=each)(x) for each in ("gelu", "selu", "mish")], 1)
    return ops.einsum("be,bed->bd", gates, experts)


def preprocessed(x: Any) -> Any:
    x = layers.Rescaling(2.0, -1.0)(x)
    x = layers.Resizing(6, 5, crop_to_aspect_ratio=True)(layers.CenterCrop(7, 7)(x))
    return layers.Normalization(axis=-1, mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0])(x)


def features(x: Any, y: Any) -> Any:
    bins = layers.Discretization(bin_boundaries=[-1.0, 0.0, 1.0])(x)
    return layers.Flatten()(ops.one_hot(bins, 4)), layers.Embedding(10, 2, embeddings_constraint="unit_norm")(y)


def hashed(x: Any) -> Any:
    return layers.HashedCrossing(7)([x[:, :1], x[:, 1:2]]), layers.Hashing(5)(x)


functional("residual with squeezed channels", residual, IMAGE)
functional("U-Net", unet, IMAGE)
functional("masked recurrent encoder", encoder, TOKENS)
functional("attention of four kinds", attentive, SERIES, drawn(2, 5, 4) * 2)
functional("two towers, and a mapping", siamese, X, X[::-1].copy())
functional("mixture of experts", mixture, X)
functional("preprocessed images", preprocessed, IMAGE)
functional("resized by cubes", lambda x: layers.Resizing(6, 5, interpolation="bicubic")(x), IMAGE)
functional("features of categories", features, X, NUMBERS)
functional("categories counted", lambda x: layers.CategoryEncoding(10, "count")(x), NUMBERS)
if BACKEND == "tensorflow":
    # Layers of TensorFlow alone.
    functional("hashed features", hashed, NUMBERS)
    functional("numbers looked up", lambda x: layers.IntegerLookup(vocabulary=[3, 5, 7])(x), NUMBERS)
    functional(
        "strings", lambda x: layers.StringLookup(vocabulary=["a"], output_mode="one_hot")(x), np.array([["a"], ["b"]])
    )
functional("convolutional LSTM", lambda x: layers.ConvLSTM2D(3, 3, return_sequences=True)(x), drawn(2, 3, 5, 5, 2))
functional(
    "a stack of cells", lambda x: layers.RNN([layers.LSTMCell(4), layers.GRUCell(3)], return_state=True)(x), SERIES
)
functional(
    "simple RNN, backwards and unrolled", lambda x: layers.SimpleRNN(3, go_backwards=True, unroll=True)(x), SERIES
)
functional(
    "convolutions of one dimension",
    lambda x: layers.Conv1DTranspose(3, 3, 2)(
        layers.DepthwiseConv1D(2, depth_multiplier=2)(
            layers.Conv1D(4, 3, padding="causal", dilation_rate=2, groups=2)(x)
        )
    ),
    SERIES,
)
functional(
    "volumes",
    lambda x: layers.GlobalMaxPooling3D()(layers.Conv3DTranspose(2, 2)(layers.MaxPooling3D(2)(layers.Conv3D(3, 2)(x)))),
    drawn(1, 6, 6, 6, 1),
)
functional(
    "normalizations",
    lambda x: [
        each(x)
        for each in (
            layers.GroupNormalization(3),
            layers.RMSNormalization(),
            layers.LayerNormalization(axis=[1, 2, 3]),
            layers.SpectralNormalization(layers.Conv2D(2, 2)),
        )
    ],
    IMAGE,
)
functional(
    "activations",
    lambda x: (
        [each(x) for each in (layers.PReLU(), layers.LeakyReLU(), layers.ELU(), layers.ReLU(6.0, 0.1, 0.2))]
        + [
            layers.Activation(each)(x)
            for each in (
                "hard_silu",
                "log_softmax",
                "glu",
                "sparsemax",
                "squareplus",
                "celu",
                "softsign",
                "exponential",
            )
        ]
    ),
    X,
)
functional(
    "shaped", lambda x: layers.Permute((2, 1))(layers.RepeatVector(3)(layers.Flatten()(layers.Reshape((2, 3))(x)))), X
)
functional(
    "merged",
    lambda x, y: [
        each([x, y]) for each in (layers.Average(), layers.Maximum(), layers.Minimum(), layers.Concatenate(0))
    ],
    X,
    X * 2,
)
functional("products of tensors", lambda x: layers.EinsumDense("abc,cd->abd", (None, 3), bias_axes="d")(x), SERIES)
functional(
    "dropped out in training alone",
    lambda x: layers.SpatialDropout1D(0.5)(layers.GaussianNoise(1.0)(layers.AlphaDropout(0.5)(x))),
    SERIES,
)
functional("low rank, after LoRA", lambda x: _with_lora(x), X)
functional(
    "audio: mel spectrogram",
    lambda x: layers.MelSpectrogram(16, sequence_stride=8, num_mel_bins=4, sampling_rate=100, min_freq=1)(x),
    drawn(2, 64),
)
functional("audio: STFT", lambda x: layers.STFTSpectrogram("magnitude", 16, 8, 16)(x), drawn(2, 64, 1))
functional(
    "open length",
    lambda x: layers.GlobalAveragePooling1D()(layers.Conv1D(3, 2)(x)),
    SERIES,
    declared=[(None, 4)],
    shapes={"x": (2, 5, 4)},
)


def _with_lora(x: Any) -> Any:
    layer = layers.Dense(4)
    y = layer(x)
    layer.enable_lora(2)
    layer.lora_kernel_b.assign(drawn(2, 4))
    return layer(y[:, :1] + x)


# Layers and models of one's own


@keras.saving.register_keras_serializable()
class Rotary(layers.Layer):
    def call(self, x: Any) -> Any:
        length, width = x.shape[1], x.shape[2]
        angles = ops.arange(length, dtype=x.dtype)[:, None] * 100.0 ** -(ops.arange(0, width, 2, dtype=x.dtype) / width)
        one, two = ops.split(x, 2, -1)
        return ops.concatenate(
            [one * ops.cos(angles) - two * ops.sin(angles), one * ops.sin(angles) + two * ops.cos(angles)], -1
        )


class Memory(layers.Layer):
    """What has a weight that it writes in training."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(
            shape=(shape[-1], 3), initializer="glorot_uniform", regularizer="l2", name="kernel"
        )
        self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False, name="seen")

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            self.seen.assign_add(1.0)
        self.add_loss(ops.mean(x**2))
        return ops.matmul(x, self.kernel) + self.seen


class Decoder(keras.Model):
    def __init__(self) -> None:
        super().__init__()
        self.table = layers.Embedding(9, 8)
        self.blocks = [layers.MultiHeadAttention(2, 4) for _ in range(2)]
        self.norms = {"first": layers.LayerNormalization(), "last": layers.RMSNormalization()}
        self.rotary = Rotary()

    def call(self, inputs: Any, training: bool = False) -> Any:
        x = self.rotary(self.table(inputs["tokens"]))
        for block in self.blocks:
            x = x + block(x, x, use_causal_mask=True)
        logits = ops.matmul(self.norms["last"](self.norms["first"](x)), ops.transpose(self.table.embeddings))
        return {"logits": logits, "next": ops.argmax(logits[:, -1], -1), "seen": inputs["mask"]}


class Loops(layers.Layer):
    def call(self, x: Any) -> Any:
        total = ops.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, ops.tanh(y) + x), (0, x))[1]
        scanned, _ = ops.scan(lambda carry, each: (carry * 0.5 + each, carry), ops.zeros_like(x[0]), x)
        branch = ops.cond(ops.sum(x) > 0, lambda: ops.sin(x), lambda: ops.cos(x))
        mapped = ops.vectorized_map(lambda row: ops.logsumexp(row), x)
        folded = ops.fori_loop(0, 2, lambda i, y: y * 1.5, x)
        return total, scanned, branch, mapped, folded, ops.switch(1, [lambda: x, lambda: -x])


class Operations(layers.Layer):
    def call(self, x: Any) -> Any:
        indices = ops.convert_to_tensor(np.array([[0], [1], [0]], np.int32))
        return (
            *ops.top_k(x, 2),
            ops.segment_sum(x[0], ops.convert_to_tensor([0, 0, 1, 1, 2, 2]), 3),
            ops.scatter(indices, x[0, :3], (2,)),
            ops.scatter_update(x, [[0, 1]], [5.0]),
            ops.slice_update(x, [0, 2], ops.zeros((1, 2))),
            ops.take_along_axis(x, ops.argsort(x, -1), -1),
            ops.cumsum(x, 1),
            ops.erfinv(x / 9),
            ops.logical_xor(x > 0, x > 1),
            ops.one_hot(ops.argmax(x, -1), 6),
            ops.searchsorted(ops.sort(x[0]), x[1]),
            ops.in_top_k(ops.convert_to_tensor([1, 2]), x, 3),
        )


class Algebra(layers.Layer):
    def call(self, x: Any) -> Any:
        spd = ops.matmul(ops.transpose(x), x) + 4 * ops.eye(6)
        factor = ops.cholesky(spd)
        values, vectors = ops.eigh(spd)
        return (
            factor,
            ops.solve(spd, ops.transpose(x)),
            ops.solve_triangular(factor, ops.transpose(x), lower=True),
            values,
            ops.matmul(vectors * ops.sqrt(values), ops.transpose(vectors)),
            ops.abs(ops.qr(ops.transpose(x))[1]),
            ops.norm(x, axis=1),
            ops.inv(spd),
            ops.svd(x, compute_uv=False),
        )


class Signals(layers.Layer):
    def call(self, x: Any) -> Any:
        real, imaginary = ops.rfft(x)
        return real, imaginary, ops.irfft((real, imaginary)), ops.extract_sequences(x, 4, 2), *ops.fft((x, x * 0))


class Images(layers.Layer):
    def call(self, x: Any) -> Any:
        return (
            ops.image.resize(x, (5, 9), interpolation="bilinear"),
            ops.image.extract_patches(x, 2),
            ops.image.rgb_to_grayscale(x),
            ops.image.map_coordinates(x[0, :, :, 0], ops.convert_to_tensor([[0.5, 1.5], [2.0, 3.25]]), 1),
            ops.image.crop_images(x, 1, 2, target_height=4, target_width=5),
            ops.image.gaussian_blur(x),
        )


class Warped(layers.Layer):
    def call(self, x: Any) -> Any:
        transform = ops.convert_to_tensor([[1.0, 0.1, 0.0, 0.0, 1.1, 0.5, 0.0, 0.0]] * 2)
        return ops.image.affine_transform(x, transform, interpolation="bilinear")


class Sampled(layers.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.generator = keras.random.SeedGenerator(7)

    def call(self, x: Any) -> Any:
        return x + keras.random.normal(ops.shape(x), seed=self.generator)


class Histogram(layers.Layer):
    def call(self, x: Any) -> Any:
        return ops.histogram(x[0], 4, (-2, 2))[0]


case("own: decoder of a mapping", Decoder, {"tokens": TOKENS, "mask": TOKENS > 0}, is_declared=True)
case("own: a weight that training writes", Memory, X)
case("own: rotary positions", Rotary, SERIES, is_declared=False)
case("own: loops and branches", Loops, X, is_declared=False)
case("own: operations", Operations, X, is_declared=False)
case("own: algebra", Algebra, X[:, ::-1].copy(), is_declared=False)
case("own: signals", Signals, drawn(2, 8), is_declared=False)
case("own: images", Images, IMAGE, is_declared=False)
case("own: warped images", Warped, IMAGE, is_declared=False)
functional("own: a layer around a function", lambda x: layers.Lambda(lambda y: ops.clip(y, -0.5, 0.5) ** 2)(x), X)
case(
    "own: a model in a model",
    lambda: keras.Sequential([keras.Input((6,)), keras.Sequential([layers.Dense(4), Memory()])]),
    X,
    batch_size=2,
)
case("saved and loaded again", lambda: _saved_and_loaded(), X, batch_size=2)
case("cloned, in half precision", lambda: _in_half(), X, batch_size=2)
case("quantized to int8", lambda: _quantized("int8"), X, batch_size=2)
case("quantized to int4", lambda: _quantized("int4"), X, batch_size=2)
case("quantized to float8", lambda: _quantized("float8"), X, batch_size=2)
case("after a step of training", lambda: _trained(), X, batch_size=2)
case("random numbers in inference", Sampled, X, is_declared=False)
case("a histogram", Histogram, X, is_declared=False)


def _small() -> Any:
    return keras.Sequential(
        [keras.Input((6,)), layers.Dense(8, "relu"), layers.BatchNormalization(), layers.Dense(3, "softmax")]
    )


def _saved_and_loaded() -> Any:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        _small().save(Path(folder) / "model.keras")
        return keras.saving.load_model(Path(folder) / "model.keras")


def _in_half() -> Any:
    return keras.models.clone_model(
        _small(),
        clone_function=lambda layer: type(layer).from_config({**layer.get_config(), "dtype": "mixed_bfloat16"}),
    )


def _quantized(mode: str) -> Any:
    model = keras.Sequential([keras.Input((6,)), layers.Dense(8, "relu"), layers.Dense(3)])
    model.quantize(mode)
    return model


def _trained() -> Any:
    model = _small()
    model.compile(keras.optimizers.AdamW(0.1), "sparse_categorical_crossentropy")
    model.fit(drawn(8, 6), np.arange(8) % 3, verbose=0)
    return model


if __name__ == "__main__":
    sys.exit(main(CASES, REFUSED.get("all", {}) | REFUSED.get(BACKEND, {}), __doc__, LINELESS))
