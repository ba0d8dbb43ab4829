"""Functions of TensorFlow as people write them: exported, and run by both engines: `tensorflow_suite.py [NAME ...]`.

Prints a Markdown table: of each function how far the results of each engine are from TensorFlow's, or why it is
refused. It needs the environment of `scripts/frontends.py tensorflow`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import tensorflow as tf

import vhlo_tools as vt
from vhlo_tools.integrations.tensorflow import export

Engine = Literal["reference", "xla"]
Array = np.ndarray[Any, Any]
ENGINES: Final[tuple[Engine, ...]] = ("reference", "xla")


@dataclass(frozen=True, slots=True)
class Case:
    """A function, and what it is called with."""

    function: Callable[..., Any]  # the function
    inputs: tuple[Any, ...]  # its inputs
    tolerance: float = 1e-5  # the largest distance of a result, as :func:`distance` measures it
    #: whether TensorFlow compiles it for the comparison too, because its own kernels draw other numbers
    compiled: bool = False


def drawn(*shape: int) -> Array:
    """Return numbers of the normal distribution, the same for the same shape."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


M, P, V = drawn(4, 6), np.abs(drawn(4, 6)) + 0.1, drawn(8)
S = (M[:, :4] @ M[:, :4].T + 4 * np.eye(4)).astype(np.float32)
IMAGE, KERNEL = np.clip(np.abs(drawn(1, 8, 8, 3)), 0, 1), drawn(3, 3, 3, 4) * np.float32(0.3)
I = np.array([3, 1, 3, 7, 1, 0], np.int32)  # noqa: E741
BOXES = np.array(
    [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 0.2, 1, 1.2], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]], np.float32
)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)
WEIGHTS, RECURRENT, EMBEDDING = drawn(6, 16), drawn(4, 16), drawn(8, 3)
SEED = np.array([1, 2], np.int32)


def lstm(x: tf.Tensor) -> tf.Tensor:
    def step(state: Any, at: tf.Tensor) -> Any:
        h, c = state
        i, f, g, o = tf.split(at @ WEIGHTS + h @ RECURRENT, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    return tf.scan(step, x[:, None, :], (tf.zeros([1, 4]), tf.zeros([1, 4])))[0]


def until_large(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    steps = tf.constant(0)
    while tf.reduce_sum(x) < 200.0 and steps < 50:
        x = x * 1.5
        steps += 1
    return x, steps


def tensor_array(x: tf.Tensor) -> tf.Tensor:
    rows = tf.TensorArray(tf.float32, 4)
    for index in tf.range(4):
        rows = rows.write(index, x[index] * tf.cast(index, tf.float32))
    return rows.stack()


def gradient(x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.nn.softmax(tf.matmul(x, x, transpose_b=True)) @ x)
    return tape.gradient(y, x)


def ctc_loss(logits: tf.Tensor) -> tf.Tensor:
    lengths = tf.constant([2, 2]), tf.constant([5, 5])
    return tf.nn.ctc_loss(tf.constant([[1, 2], [2, 1]]), logits, *lengths, logits_time_major=True, blank_index=0)


def preprocessed(image: tf.Tensor) -> tf.Tensor:
    image = tf.image.resize(tf.cast(tf.cast(image * 255, tf.uint8), tf.float32), [6, 6])
    return tf.image.per_image_standardization(tf.image.central_crop(image, 0.5))


def spectrogram(x: tf.Tensor) -> tf.Tensor:
    mel = tf.signal.linear_to_mel_weight_matrix(4, 5, 8000, 20.0, 3500.0)
    return tf.math.log(tf.abs(tf.signal.stft(x, 8, 4)) @ mel + 1e-3)


#: Functions that come in: most of them of more than one op.
CASES: Final[dict[str, Case]] = {
    # Sizes that depend on values.
    "boolean_mask": Case(lambda x: tf.boolean_mask(x, x[:, 0] > 0), (M,)),
    "boolean_mask, mean": Case(lambda x: tf.reduce_mean(tf.boolean_mask(x, x > 0)), (V,)),
    "boolean_mask, sort": Case(lambda x: tf.sort(tf.boolean_mask(x, x > 0)), (V,)),
    "boolean_mask, concat": Case(lambda x: tf.concat([tf.boolean_mask(x, x > 0), tf.boolean_mask(x, x < 0)], 0), (V,)),
    "boolean_mask, matmul": Case(lambda x, y: tf.matmul(tf.boolean_mask(x, x[:, 0] > 0), y, False, True), (M, P)),
    "where": Case(lambda x: tf.where(x > 0), (M,), 0),
    "where, gather_nd": Case(lambda x: tf.gather_nd(x, tf.where(x > 0)) * 2, (M,)),
    "where, count": Case(lambda x: tf.shape(tf.where(x > 0))[0], (V,), 0),
    "unique": Case(lambda x: tf.unique(x)[0], (I,), 0),
    "unique, indices": Case(lambda x: tuple(tf.unique(x)), (I,), 0),
    "sparse.from_dense": Case(lambda x: tf.sparse.to_dense(tf.sparse.from_dense(tf.nn.relu(x))), (M,), 0),
    "dynamic_partition": Case(lambda x: tuple(tf.dynamic_partition(x, tf.cast(x > 0, tf.int32), 2)), (V,), 0),
    "ragged, sums of rows": Case(lambda x: tf.reduce_sum(tf.RaggedTensor.from_row_lengths(x, [1, 4, 3]), axis=1), (V,)),
    # Boxes, boundaries, and order.
    "non_max_suppression": Case(lambda b, s: tf.image.non_max_suppression(b, s, 4), (BOXES, SCORES), 0),
    "top_k": Case(lambda x: tuple(tf.math.top_k(x, 3)), (M,), 0),
    "sort and argsort": Case(lambda x: (tf.sort(x, 1, "DESCENDING"), tf.argsort(x, 0, stable=True)), (M,), 0),
    "searchsorted": Case(lambda x: tf.searchsorted(tf.sort(x), [0.0, 0.5]), (V,), 0),
    # Control flow.
    "LSTM by scan": Case(lstm, (M,)),
    "while": Case(until_large, (P,), 1e-4),
    "cond": Case(lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: tf.sin(x), lambda: tf.cos(x)), (M,)),
    "map_fn": Case(lambda x: tf.map_fn(lambda row: tf.reduce_max(row) - row, x), (M,)),
    "vectorized_map": Case(lambda x: tf.vectorized_map(lambda row: row / tf.norm(row), x), (M,)),
    "TensorArray": Case(tensor_array, (M,)),
    "gradient of attention": Case(gradient, (M,), 1e-4),
    # Products and images.
    "einsum": Case(lambda a, b: tf.einsum("ij,kj->ik", a, b), (M, P)),
    "conv2d": Case(lambda x, k: tf.nn.relu(tf.nn.conv2d(x, k, 2, "SAME")), (IMAGE, KERNEL)),
    "depthwise_conv2d": Case(lambda x, k: tf.nn.depthwise_conv2d(x, k, [1, 1, 1, 1], "VALID"), (IMAGE, KERNEL)),
    "image preprocessing": Case(preprocessed, (IMAGE,)),
    "extract_patches": Case(
        lambda x: tf.image.extract_patches(x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"), (IMAGE,), 0
    ),
    # Indices.
    "tensor_scatter_nd_update": Case(lambda x: tf.tensor_scatter_nd_update(x, [[0], [2]], x[:2] * 10), (M,)),
    "unsorted_segment_mean": Case(lambda x: tf.math.unsorted_segment_mean(x, [0, 0, 1, 2], 3), (M,)),
    "embedding_lookup": Case(lambda i: tf.nn.embedding_lookup(tf.constant(EMBEDDING), i), (I,), 0),
    "reverse_sequence": Case(lambda x: tf.reverse_sequence(x, [1, 2, 3, 6], 1, 0), (M,), 0),
    "cumulative": Case(
        lambda x: (tf.cumsum(x, 1, exclusive=True, reverse=True), tf.math.cumprod(x, 0), tf.cumsum(x)), (M,)
    ),
    # Signals, linear algebra, and special functions.
    "log-mel spectrogram": Case(spectrogram, (drawn(32),)),
    "cholesky": Case(tf.linalg.cholesky, (S,)),
    "qr": Case(lambda x: tf.abs(tf.linalg.qr(x)[1]), (S,)),
    "solve": Case(tf.linalg.solve, (S, M)),
    "lstsq": Case(tf.linalg.lstsq, (S, M), 1e-4),
    "eigvalsh": Case(tf.linalg.eigvalsh, (S,), 1e-4),
    "expm": Case(lambda x: tf.linalg.expm(x / 10), (S,)),
    "igamma": Case(lambda x: tf.math.igamma(x, x), (P,)),
    # Losses, quantization, and random numbers.
    "ctc_loss": Case(ctc_loss, (drawn(5, 2, 4),)),
    "fake_quant": Case(lambda x: tf.quantization.fake_quant_with_min_max_vars(x, -1.0, 1.0), (M,)),
    "stateless_dropout": Case(
        lambda x, s: tf.nn.experimental.stateless_dropout(x, 0.5, s, rng_alg="philox"), (V, SEED), compiled=True
    ),
}


TABLE = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2]), tf.constant([3, 4])), -1)

#: Functions that XLA does not have, each with the op that is named, and the line that made it.
REFUSED: Final[dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]]] = {
    "lookup in a table": (lambda x: TABLE.lookup(x), (I,), "LookupTableFindV2"),
    "unique_with_counts": (lambda x: tuple(tf.unique_with_counts(x)), (I,), "UniqueWithCounts"),
    "segment_sum (of sorted ids)": (lambda x: tf.math.segment_sum(x, [0, 0, 1, 2]), (M,), "SegmentSum"),
    "range up to an input": (lambda x: tf.range(x[0]), (I,), "Range"),
    "bincount up to an input": (lambda x: tf.math.bincount(x), (I,), "DenseBincount"),
    "ragged, to_tensor": (
        lambda x: tf.RaggedTensor.from_row_lengths(x, [1, 4, 3]).to_tensor(),
        (V,),
        "RaggedTensorToTensor",
    ),
    "sparse_dense_matmul": (
        lambda x: tf.sparse.sparse_dense_matmul(tf.sparse.SparseTensor([[0, 0], [1, 3]], [1.0, 2.0], [2, 4]), x),
        (M,),
        "SparseTensorDenseMatMul",
    ),
    "crop_and_resize": (
        lambda x: tf.image.crop_and_resize(x, [[0.0, 0.0, 0.5, 0.5]], [0], [4, 4]),
        (IMAGE,),
        "CropAndResize",
    ),
    "resize, bicubic": (lambda x: tf.image.resize(x, [5, 11], method="bicubic"), (IMAGE,), "ResizeBicubic"),
    "ctc_greedy_decoder": (lambda x: tf.nn.ctc_greedy_decoder(x, [5, 5])[1], (drawn(5, 2, 4),), "CTCGreedyDecoder"),
    "det": (tf.linalg.det, (S,), "MatrixDeterminant"),
    "gamma with a state": (lambda: tf.random.gamma([3], 1.0), (), "RandomGamma"),
}


def exported(name: str) -> vt.Artifact:
    case = CASES[name]
    return export(case.function, *case.inputs, name=name).bound().artifact


def expected(case: Case) -> list[Array]:
    function = tf.function(case.function, jit_compile=case.compiled)
    return [each.numpy() for each in tf.nest.flatten(function(*map(tf.constant, case.inputs)))]


def distance(found: Any, wanted: list[Array]) -> float:
    """Return the largest distance of a number, relative to those beyond one.

    Raises:
        AssertionError: If types or shapes are not equal, or NaN is not at the same places.
    """
    largest = 0.0
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert np.array_equal(np.isnan(one), np.isnan(other))
        wide, width = one.astype(np.complex128), other.astype(np.complex128)
        gaps = np.abs(wide - width) / np.maximum(1, np.abs(width))
        largest = max(largest, float(np.nanmax(gaps, initial=0)))
    return largest


def _rows(names: list[str]) -> Iterator[str]:
    yield "| function | reference | XLA | tolerance |\n|---|---|---|---|"
    for name in names:
        if name in CASES:
            case = CASES[name]
            artifact, wanted = exported(name), expected(case)
            found = [f"{distance(vt.run(artifact, case.inputs, engine=each), wanted):.0e}" for each in ENGINES]
            said = " | ".join("equal" if each == "0e+00" else each for each in found)
            yield f"| `{name}` | {said} | {case.tolerance:g} |"
        else:
            function, inputs, _ = REFUSED[name]
            try:
                export(function, *inputs, name=name)
            except vt.UnsupportedFeatureError as error:
                yield f"| `{name}` | refused: `{error.findings[-1].op}` | refused | |"
            else:
                yield f"| `{name}` | is no longer refused | | |"


if __name__ == "__main__":
    for row in _rows(sys.argv[1:] or [*CASES, *REFUSED]):
        print(row, flush=True)
