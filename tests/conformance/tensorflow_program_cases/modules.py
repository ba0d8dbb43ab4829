"""Layers, losses, random numbers, and what has a state or is saved."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
import tensorflow as tf

from tensorflow_program_cases.registry import IDS, IMAGE, SEED, P, V, X, Y, case, drawn, saved, stateful

# Layers of tf.nn, and losses

K3 = drawn(3, 3, 3, 4) * np.float32(0.2)
case(
    "nn: transposed and dilated",
    lambda x, k: (
        tf.nn.conv2d_transpose(x, tf.transpose(k, [0, 1, 3, 2]), [1, 16, 16, 4], 2),
        tf.nn.atrous_conv2d(x, k, 2, "SAME"),
    ),
    IMAGE,
    K3,
)
case(
    "nn: separable, with explicit padding",
    lambda x, k: (
        tf.nn.separable_conv2d(x, k, tf.ones([1, 1, 12, 2]) / 9, [1, 1, 1, 1], "SAME"),
        tf.nn.conv2d(x, k, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]),
    ),
    IMAGE,
    K3,
)
case(
    "nn: convolution of three dimensions",
    lambda x: tf.nn.max_pool3d(tf.nn.conv3d(x[..., None], tf.ones([2, 2, 2, 1, 3]), [1] * 5, "SAME"), 2, 2, "SAME"),
    IMAGE,
)
case("nn: pool with places", lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID")[0], IMAGE)
case("nn: pools", lambda x: (tf.nn.avg_pool2d(x, 3, 2, "SAME"), tf.nn.pool(x, [2, 2], "AVG", [1, 2], "SAME")), IMAGE)
case(
    "nn: normalizations",
    lambda x: (
        tf.nn.l2_normalize(x, 1),
        tf.nn.local_response_normalization(x[None, None], 2),
        *tf.nn.moments(x, 0),
        tf.nn.weighted_moments(x, 0, x**2)[1],
    ),
    X,
)
case(
    "nn: activations",
    lambda x: (
        tf.nn.selu(x),
        tf.nn.elu(x),
        tf.nn.crelu(x),
        tf.nn.swish(x),
        tf.nn.softsign(x),
        tf.nn.relu6(x),
        tf.nn.leaky_relu(x),
        tf.nn.silu(x, 2.0),
    ),
    X,
)
case(
    "nn: losses",
    lambda x, y: (
        tf.nn.sigmoid_cross_entropy_with_logits(y, x),
        tf.nn.sparse_softmax_cross_entropy_with_logits(IDS, x),
        tf.nn.weighted_cross_entropy_with_logits(y, x, 2.0),
        tf.nn.log_poisson_loss(y, x),
        tf.nn.l2_loss(x),
    ),
    X,
    np.abs(X),
)
case("nn: sampled losses", lambda x: tf.nn.nce_loss(tf.ones([9, 6]) * 0.1, tf.zeros(9), IDS[:, None], x, 3, 9), X)
case(
    "nn: bags of embeddings",
    lambda x: tf.nn.embedding_lookup_sparse(x, tf.sparse.from_dense([[1, 2], [3, 0]]), None, combiner="mean"),
    X,
)
case(
    "nn: special functions",
    lambda x: (
        tf.math.betainc(x, x + 1, x / 5),
        tf.math.polygamma(1.0, x),
        tf.math.zeta(x + 1, x),
        tf.math.bessel_i0e(x),
        tf.math.erfinv(x / 5),
        tf.math.ndtri(x / 5),
        tf.math.lbeta(x),
        tf.math.xlog1py(x, x),
    ),
    P,
)
case(
    "nn: rounded numbers",
    lambda x: (
        tf.round(x * 3),
        tf.math.floormod(x, 0.7),
        tf.truncatediv(tf.cast(x * 9, tf.int32), 4),
        tf.math.nextafter(x, 0.0),
        tf.quantization.fake_quant_with_min_max_vars_per_channel(x, tf.fill([6], -1.0), tf.fill([6], 2.0)),
    ),
    X,
)
case("nn: quantized", lambda x: tf.quantization.dequantize(*tf.quantization.quantize(x, -2.0, 2.0, tf.qint8)), X)
case(
    "nn: int8 product",
    lambda x: tf.matmul(tf.cast(x * 40, tf.int8), tf.cast(tf.transpose(x) * 40, tf.int8), output_type=tf.int32),
    X,
)
case(
    "nn: bits",
    lambda i: (
        tf.bitwise.left_shift(i, 3),
        tf.bitwise.invert(i),
        tf.raw_ops.PopulationCount(x=i),
        tf.bitcast(tf.cast(i, tf.float32), tf.int32),
    ),
    IDS,
)
case(
    "nn: raw ops",
    lambda x: (
        tf.raw_ops.Softplus(features=x),
        tf.raw_ops.BiasAdd(value=x, bias=x[0]),
        tf.raw_ops.SquaredDifference(x=x, y=x[::-1]),
        tf.raw_ops.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=1.0),
        tf.raw_ops.MatrixDiagPartV3(input=x, k=[0, 1], padding_value=0.0),
    ),
    X,
)
case("nn: approximate top", lambda x: tf.math.approx_max_k(x, 2)[0], X)

# Random numbers, strings, tables

case(
    "random: uniform integers and truncated normals",
    lambda s: (
        tf.random.stateless_uniform([4], s, 0, 9, tf.int32),
        tf.random.stateless_truncated_normal([4], s),
        tf.random.split(s, 2),
    ),
    SEED,
    compiled=True,
)
case("random: shuffled", lambda s, x: tf.random.experimental.stateless_shuffle(x, s), SEED, X)
case("random: categorical", lambda s, x: tf.random.stateless_categorical(x, 3, s), SEED, X, compiled=True)
case("random: gamma", lambda s: tf.random.stateless_gamma([3], s, 2.0), SEED)
case(
    "random: flipped by seed",
    lambda x, s: tf.image.stateless_random_flip_left_right(tf.image.stateless_random_brightness(x, 0.2, s), s),
    IMAGE,
    SEED,
    compiled=True,
)
case(
    "random: a crop by seed",
    lambda x, s: tf.image.stateless_random_crop(x, [1, 4, 4, 3], s),
    IMAGE,
    SEED,
    compiled=True,
)
case("strings: split", lambda x: tf.strings.length(tf.strings.as_string(x)), V)
case(
    "strings: hashed", lambda x: tf.strings.to_hash_bucket_fast(tf.strings.join([tf.strings.as_string(x), "a"]), 9), IDS
)
case("strings: shown", lambda x: (tf.print("x", x), x)[1], V)
TABLE = tf.lookup.experimental.DenseHashTable(tf.int32, tf.int32, -1, -2, -3)
case("tables: looked up", lambda x: TABLE.lookup(x), IDS)
case("data: reduced", lambda x: tf.data.Dataset.from_tensor_slices(x).reduce(tf.zeros(6), lambda a, b: a + b), X)

# State, and steps of training


class Counter(tf.Module):
    def __init__(self) -> None:
        self.count, self.mean = tf.Variable(0, name="count"), tf.Variable(tf.zeros([6]), name="mean")
        self.ring = tf.Variable(tf.zeros([3, 6]))

    @tf.function
    def step(self, x: tf.Tensor) -> tf.Tensor:
        self.ring.scatter_nd_update([[self.count % 3]], x[:1])
        self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(x, 0))
        if tf.reduce_sum(x) > 0:
            self.count.assign_add(1)
        return self.ring[0] + self.mean


class Normalized(tf.Module):
    def __init__(self) -> None:
        self.w = tf.Variable(Y)
        self.moving = [tf.Variable(tf.zeros([5])), tf.Variable(tf.ones([5]))]

    @tf.function
    def step(self, x: tf.Tensor) -> tf.Tensor:
        y = tf.nn.conv2d(x[None, :, None] @ self.w, tf.eye(5)[None, None], 1, "SAME")
        y, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=y, scale=tf.ones(5), offset=tf.zeros(5), mean=[], variance=[]
        )
        for each, value in zip(self.moving, (mean, variance), strict=True):
            each.assign_sub(0.1 * (each - value))
        return y


class Trained(tf.Module):
    """Two layers with an optimizer: a name of Keras, or ops of TensorFlow alone."""

    def __init__(self, optimizer: str, **options: Any) -> None:
        self.layers = [tf.Variable(drawn(6, 5) / 2, name="first"), tf.Variable(drawn(5, 3) / 2, name="last")]
        self.optimizer = None
        if optimizer != "raw":
            self.optimizer = getattr(tf.keras.optimizers, optimizer)(0.01, **options)
            self.optimizer.build(self.layers)
        self.moments = [
            tf.Variable(tf.zeros_like(each), name=f"m{i}") for i, each in enumerate([*self.layers, *self.layers])
        ]

    def loss(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        hidden = tf.nn.gelu(x @ self.layers[0])
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, hidden @ self.layers[1]))

    @tf.function
    def step(self, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = self.loss(x, y)
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, self.layers), 1.0)
        if self.optimizer is not None:
            self.optimizer.apply_gradients(zip(gradients, self.layers, strict=True))
        else:
            for number, (value, gradient) in enumerate(zip(self.layers, gradients, strict=True)):
                first, second = self.moments[number], self.moments[number + 2]
                tf.raw_ops.ResourceApplyAdam(
                    var=value.handle,
                    m=first.handle,
                    v=second.handle,
                    beta1_power=0.9,
                    beta2_power=0.99,
                    lr=0.01,
                    beta1=0.9,
                    beta2=0.99,
                    epsilon=1e-6,
                    grad=gradient,
                )
        return loss


class Penalized(Trained):
    @tf.function
    def step(self, x: tf.Tensor, y: tf.Tensor) -> Any:
        with tf.GradientTape(persistent=True) as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                loss = self.loss(x, y)
            penalty = tf.reduce_sum(inner.gradient(loss, x) ** 2)
            total = loss + penalty
        for value in self.layers:
            value.assign_sub(0.1 * outer.gradient(total, value))
        return total, outer.jacobian(loss, x)


class Drawn(tf.Module):
    def __init__(self) -> None:
        self.generator = tf.random.Generator.from_seed(3, alg="philox")

    @tf.function(jit_compile=True)
    def step(self) -> tf.Tensor:
        return self.generator.normal([4]) + self.generator.uniform([4])


stateful("state: counter, mean and ring", Counter, X)
stateful("state: batch normalization", Normalized, X)
stateful("state: generator of random numbers", Drawn)
_OPTIMIZERS: Final[dict[str, dict[str, Any]]] = {
    "SGD": {"momentum": 0.9, "nesterov": True},
    "Adam": {"amsgrad": True},
    "AdamW": {},
    "RMSprop": {"centered": True},
    "Adagrad": {},
    "Adadelta": {},
    "Adamax": {},
    "Nadam": {},
    "Ftrl": {},
    "Lion": {},
    "Adafactor": {},
    "Lamb": {},
    "raw": {},
}
for _name, _options in _OPTIMIZERS.items():
    stateful(f"training: {_name}", partial(Trained, _name, **_options), X, IDS)
stateful("training: penalized by a gradient", lambda: Penalized("raw"), X, IDS)

# Open sizes, and SavedModels


@tf.function(input_signature=[tf.TensorSpec([None, None, 4]), tf.TensorSpec([None], tf.int32)])
def attended(x: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    mask = tf.sequence_mask(lengths, tf.shape(x)[1])[:, None]
    scores = tf.where(mask, tf.matmul(x, x, transpose_b=True), -1e9)
    return tf.reshape(tf.nn.softmax(scores) @ x, [tf.shape(x)[0], -1])


SEQUENCES = drawn(2, 3, 4)
case("open: batch and length", attended, SEQUENCES, np.array([3, 1], np.int32))
case(
    "open: of any rank",
    tf.function(lambda x: tf.reduce_mean(tf.nn.l2_normalize(x, -1), -1), input_signature=[tf.TensorSpec(None)]),
    SEQUENCES,
)
case("open: nests of inputs", lambda d: {"sum": d["a"] + d["b"][0], "all": [d["b"][1]]}, {"a": X, "b": (X * 2, V)})


class Classifier(tf.Module):
    def __init__(self) -> None:
        self.table, self.last = tf.Variable(drawn(9, 4), name="table"), tf.Variable(drawn(4, 3), name="last")
        self.seen = tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None, 5], tf.int32, "tokens")])
    def classify(self, tokens: tf.Tensor) -> dict[str, tf.Tensor]:
        logits = tf.reduce_max(tf.gather(self.table, tokens), 1) @ self.last
        return {"scores": tf.nn.softmax(logits), "classes": tf.argmax(logits, -1)}

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, "tokens"), tf.TensorSpec([], name="scale")])
    def encode(self, tokens: tf.Tensor, scale: tf.Tensor) -> tf.Tensor:
        self.seen.assign_add(tf.size(tokens, tf.int64))
        return tf.gather(self.table, tokens) * scale


def classifier() -> Any:
    module = Classifier()
    return module, {"serving_default": module.classify, "encode": module.encode, "text": module.classify}


def of_strings() -> Any:
    module = tf.Module()
    module.parse = tf.function(
        lambda x: tf.io.parse_tensor(x, tf.float32), input_signature=[tf.TensorSpec([], tf.string)]
    )
    return module, module.parse


TOKENS = np.array([[1, 2, 8, 0, 3]] * 2, np.int32)
saved("saved: classify", classifier, "serving_default", {"tokens": TOKENS}, batch_size=2)
saved("saved: a copy of it", classifier, "text", {"tokens": TOKENS}, batch_size=2)
ENCODED: Final = {"tokens": TOKENS, "scale": np.float32(0.5)}
saved("saved: encode, and count", classifier, "encode", ENCODED, shapes={"tokens": (2, 5)})
saved(
    "saved: encode, and count, as constants",
    classifier,
    "encode",
    ENCODED,
    shapes={"tokens": (2, 5)},
    weights="constants",
)
saved("saved: examples of strings", of_strings, "serving_default", {"x": b""})
