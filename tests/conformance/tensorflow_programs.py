"""Functions of TensorFlow as people write and save them: exported, moved to the oldest version, run, compared.

`python tests/conformance/tensorflow_programs.py [--only REGEX]`, in the environment of
`scripts/frontends.py tensorflow`. Prints what became of each; the exit code is 1 if one differs, or is refused
otherwise than `REFUSED` says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import tensorflow as tf
from framework_programs import Outcome, became, main

from vhlo_tools.integrations.tensorflow import export, export_saved_model

CASES: dict[str, Callable[[], Outcome]] = {}
#: What the messages of those that are refused say.
REFUSED: Final[dict[str, str]] = {
    "image: resized by area": "ResizeArea",
    "image: resized with antialiasing": "ScaleAndTranslate",
    "image: drawn boxes": "DrawBoundingBoxesV2",
    "image: combined suppression": "CombinedNonMaxSuppression",
    "image: decoded": "EncodeJpeg",
    "image: glimpses": "ExtractGlimpseV2",
    "linalg: LU": "Lu",
    "linalg: LU, solved": "Lu",
    "linalg: square root": "MatrixSquareRoot",
    "linalg: tridiagonal": "TridiagonalSolve",
    "linalg: eigenvalues of no symmetry": "Eig",
    "segments: sorted": "SegmentMean",
    "indices: Euclidean norms": "EuclideanNorm",
    "indices: histogram": "HistogramFixedWidth",
    "indices: counted": "DenseBincount",
    "indices: sets of values": "UniqueWithCounts",
    "indices: padded rows": "RaggedTensorToTensor",
    "nn: pool with places": "MaxPoolWithArgmax",
    "nn: sampled losses": "LogUniformCandidateSampler",
    "nn: bags of embeddings": "SparseSegmentMean",
    "nn: quantized": "QuantizeV2",
    "random: shuffled": "StatelessShuffle",
    "random: gamma": "StatelessRandomGammaV3",
    "strings: split": "AsString",
    "strings: hashed": "AsString",
    "strings: shown": "StringFormat",
    "tables: looked up": "LookupTableFindV2",
    "data: reduced": "TensorSliceDataset",
    "saved: encode, and count, as constants": "AssignAddVariableOp",
    "saved: examples of strings": "tensor of type string",
}


def drawn(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def case(name: str, function: Callable[..., Any], *inputs: Any, compiled: bool = False, **options: Any) -> None:
    """Add a function; ``compiled`` if TensorFlow's own kernels give other numbers or signs than XLA."""
    assert name not in CASES

    def tried() -> Outcome:
        model = export(function, *inputs, **options)
        given = [np.asarray(each) for each in tf.nest.flatten(inputs)]
        wanted = tf.function(function, jit_compile=compiled)(*tf.nest.map_structure(tf.constant, inputs))
        what, said = became(model.bound().artifact, [(given, [each.numpy() for each in tf.nest.flatten(wanted)])])
        return what, f"{said}{_noted(model)}"

    CASES[name] = tried


def _noted(model: Any) -> str:
    return "".join(dict.fromkeys(f"; {each.feature}: {each.message}" for each in model.findings))


def stateful(name: str, make: Callable[[], Any], *inputs: Any, steps: int = 3) -> None:
    """Add the method ``step`` of a module, called several times with the values that it returned for its variables."""
    assert name not in CASES

    def tried() -> Outcome:
        module = make()
        model = export(module.step, *inputs)
        given = [np.asarray(each) for each in tf.nest.flatten(inputs)]
        updated = model.outputs[len(model.outputs) - sum(each in model.weights for each in model.outputs) :]
        values = dict(model.weights)
        for _ in range(steps):
            wanted = [each.numpy() for each in tf.nest.flatten(module.step(*inputs)) if each is not None]
            # The values that variables have now.
            again = export(module.step, *inputs, verify=False)
            after = {each: again.weights[each] for each in updated}
            expected = [*wanted, *(after[each] for each in updated)]
            outcome = became(model.artifact, [([*given, *values.values()], expected)])
            if outcome[0] != "equal":
                return outcome
            values |= after
        return outcome[0], f"{outcome[1]}{_noted(model)}"

    CASES[name] = tried


def saved(
    name: str, make: Callable[[], tuple[Any, dict[str, Any]]], signature: str, inputs: dict[str, Any], **options: Any
) -> None:
    """Add a signature of a SavedModel."""
    assert name not in CASES

    def tried() -> Outcome:
        module, signatures = make()
        with TemporaryDirectory() as folder:
            tf.saved_model.save(module, folder, signatures, tf.saved_model.SaveOptions(save_debug_info=True))
            model = export_saved_model(folder, signature, verify=True, **options)
            called = tf.saved_model.load(folder).signatures[signature]
            before = list(model.weights.values())
            found = called(**{each: tf.constant(value) for each, value in inputs.items()})
        wanted = [found[each].numpy() for each in sorted(found)]
        # The variable that `encode` counts with.
        wanted += [
            before[model.arguments.index(each) - len(model.inputs)] + 10 for each in model.outputs[len(wanted) :]
        ]
        return became(model.artifact, [([*(inputs[each] for each in model.inputs), *before], wanted)])

    CASES[name] = tried


X, Y, V, P = drawn(4, 6), drawn(6, 5), drawn(8), np.abs(drawn(3, 5)) + 0.1
SPD = (lambda m: (m @ m.T + 4 * np.eye(4)).astype(np.float32))(drawn(4, 4))
IMAGE = np.abs(np.tanh(drawn(1, 8, 8, 3)))
IDS, SEED = np.array([2, 0, 1, 2], np.int32), np.array([1, 2], np.int32)

# Signals and images

case(
    "signal: frames and overlap",
    lambda x: tf.signal.overlap_and_add(tf.signal.frame(x, 8, 4) * tf.signal.hann_window(8), 4),
    drawn(32),
)
case("signal: inverse STFT", lambda x: tf.signal.inverse_stft(tf.signal.stft(x, 16, 4) * 2, 16, 4), drawn(64))
case("signal: cepstral coefficients", lambda x: tf.signal.mfccs_from_log_mel_spectrograms(x), drawn(2, 3, 8))
case(
    "signal: DCT", lambda x: (tf.signal.dct(x, 2, norm="ortho"), tf.signal.idct(x, 2), tf.signal.dct(x, 3)), drawn(2, 8)
)
case(
    "signal: FFT of two dimensions",
    lambda x: tf.math.real(tf.signal.ifft2d(tf.signal.fft2d(tf.cast(x, tf.complex64)) ** 2)),
    X,
)
case(
    "signal: shifted real FFT",
    lambda x: (tf.signal.fftshift(tf.abs(tf.signal.rfft2d(x)), 0), tf.signal.irfft(tf.signal.rfft(x))),
    X,
)
case(
    "signal: analytic",
    lambda x: tf.math.angle(
        tf.signal.ifft(tf.signal.fft(tf.cast(x, tf.complex64)) * tf.cast(tf.range(8) < 4, tf.complex64))
    ),
    V,
)
case("image: colours", lambda x: (tf.image.rgb_to_hsv(x), tf.image.rgb_to_yuv(x), tf.image.rgb_to_grayscale(x)), IMAGE)
case("image: hue and saturation", lambda x: tf.image.adjust_saturation(tf.image.adjust_hue(x, 0.1), 0.5), IMAGE)
case(
    "image: contrast, gamma and brightness",
    lambda x: tf.image.adjust_contrast(tf.image.adjust_gamma(tf.image.adjust_brightness(x, 0.1), 0.7), 2.0),
    IMAGE,
)
case(
    "image: edges", lambda x: (tf.image.sobel_edges(x), tf.image.image_gradients(x), tf.image.total_variation(x)), IMAGE
)
case(
    "image: likeness",
    lambda a, b: (tf.image.ssim(a, b, 1.0, filter_size=5), tf.image.psnr(a, b, 1.0)),
    IMAGE,
    IMAGE[:, ::-1].copy(),
)
case(
    "image: padded and cropped",
    lambda x: (
        tf.image.resize_with_crop_or_pad(x, 6, 11),
        tf.image.resize_with_pad(x, 5, 9),
        tf.image.flip_left_right(x),
    ),
    IMAGE,
)
case("image: resized by area", lambda x: tf.image.resize(x, [4, 2], "area"), IMAGE)
case("image: resized with antialiasing", lambda x: tf.image.resize(x, [5, 3], antialias=True), IMAGE)
case("image: turned", lambda x: (tf.image.rot90(x[0]), tf.image.transpose(x)), IMAGE)
case(
    "image: drawn boxes", lambda x: tf.image.draw_bounding_boxes(x, [[[0.1, 0.1, 0.6, 0.6]]], [[1.0, 0.0, 0.0]]), IMAGE
)
case(
    "image: non-maximum suppression, padded",
    lambda b, s: tf.image.non_max_suppression_padded(b, s, 3, pad_to_max_output_size=True)[0],
    np.abs(drawn(5, 4)).cumsum(1),
    drawn(5),
)
case(
    "image: combined suppression",
    lambda b, s: tuple(tf.image.combined_non_max_suppression(b[None, :, None], s[None, :, None], 3, 3)),
    np.abs(drawn(5, 4)).cumsum(1),
    drawn(5),
)
case("image: decoded", lambda x: tf.io.decode_jpeg(tf.io.encode_jpeg(tf.cast(x[0] * 255, tf.uint8))), IMAGE)
case("image: glimpses", lambda x: tf.image.extract_glimpse(x, [4, 4], [[0.0, 0.0]]), IMAGE)

# Linear algebra

case(
    "linalg: triangles and bands",
    lambda x: (
        tf.linalg.band_part(x, 1, 0),
        tf.linalg.set_diag(x, tf.zeros(4)),
        tf.linalg.diag(x, k=1),
        tf.linalg.trace(x),
    ),
    SPD,
)
case("linalg: LU", lambda x: tf.linalg.lu(x)[0], SPD)
case("linalg: LU, solved", lambda x, y: tf.linalg.lu_solve(*tf.linalg.lu(x), y), SPD, X)
case("linalg: Cholesky, solved", lambda x, y: tf.linalg.cholesky_solve(tf.linalg.cholesky(x), y), SPD, X)
case("linalg: inverse and determinant", lambda x: (tf.linalg.inv(x), tf.linalg.logdet(x)), SPD)
case("linalg: square root", lambda x: tf.linalg.sqrtm(x), SPD)
case("linalg: pseudoinverse", lambda x: tf.linalg.pinv(x), X, compiled=True)
case(
    "linalg: tridiagonal, without pivots",
    lambda d, y: tf.linalg.tridiagonal_solve(d, y, "compact", partial_pivoting=False),
    np.abs(drawn(3, 4)) + np.array([[0], [3], [0]], np.float32),
    drawn(4, 2),
)
case(
    "linalg: tridiagonal",
    lambda d, y: tf.linalg.tridiagonal_solve(d, y, "compact"),
    np.abs(drawn(3, 4)) + np.array([[0], [3], [0]], np.float32),
    drawn(4, 2),
)
case(
    "linalg: operators",
    lambda x, y: tf.linalg.LinearOperatorLowRankUpdate(
        tf.linalg.LinearOperatorDiag(tf.ones(4) * 3), y, is_self_adjoint=True, is_positive_definite=True
    ).solve(x),
    X,
    drawn(4, 2),
)
case(
    "linalg: norms",
    lambda x: (
        tf.norm(x),
        tf.norm(x, 1, axis=1),
        tf.norm(x, np.inf),
        tf.linalg.normalize(x, axis=0)[0],
        tf.linalg.global_norm([x, x * 2]),
    ),
    X,
)
case("linalg: eigenvalues of no symmetry", lambda x: tf.linalg.eigvals(x), SPD)
case(
    "linalg: einsum of three", lambda a, b, c: tf.einsum("ij,jk,ik->i", a, b, c, optimize="optimal"), X, Y, drawn(4, 5)
)
case(
    "linalg: conjugate gradients",
    lambda x, y: (
        tf.linalg.experimental.conjugate_gradient(
            tf.linalg.LinearOperatorFullMatrix(x, is_self_adjoint=True, is_positive_definite=True), y, max_iter=4
        ).x
    ),
    SPD,
    drawn(4),
)

# Control flow


def newton(x: tf.Tensor) -> Any:
    return tf.while_loop(
        lambda i, y: tf.logical_and(i < 20, tf.reduce_max(tf.abs(y * y - x)) > 1e-5),
        lambda i, y: (i + 1, 0.5 * (y + x / y)),
        (0, x),
        maximum_iterations=15,
    )


def broken(x: tf.Tensor) -> tf.Tensor:
    total = tf.zeros([])
    for i in tf.range(8):
        if x[i] > 1.0:
            break
        if x[i] < -1.0:
            continue
        total += x[i]
    return total


def nested(x: tf.Tensor) -> tf.Tensor:
    for i in tf.range(3):
        for j in tf.range(2):
            x = tf.cond(tf.equal((i + j) % 2, 0), lambda x=x: x * 1.1, lambda x=x: x - 0.1)
    return x


def beam(x: tf.Tensor) -> Any:
    scores, tokens = tf.zeros([1, 2]), tf.TensorArray(tf.int32, 3)
    for t in tf.range(3):
        total = tf.reshape(scores[:, :, None] + tf.nn.log_softmax(x[t])[None, None], [1, -1])
        scores, flat = tf.math.top_k(total, 2)
        tokens = tokens.write(t, flat % 6)
    return scores, tokens.stack()


def collatz(n: tf.Tensor) -> tf.Tensor:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@tf.custom_gradient
def clipped(x: tf.Tensor) -> Any:
    return tf.exp(x), lambda dy: tf.clip_by_value(dy * tf.exp(x), -1.0, 1.0)


def through_loop(x: tf.Tensor) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, tf.sin(y) * x), (0, x), maximum_iterations=4)[1]
    return tape.gradient(y, x)


case("control: Newton", newton, P)
case("control: break and continue", broken, V)
case("control: loops in loops", nested, X)
case("control: beam search", beam, X)
case("control: until one", collatz, np.array(7, np.int32))
case(
    "control: case", lambda x: tf.case([(x[0, 0] > 1, lambda: x), (x[0, 1] > 0, lambda: -x)], default=lambda: x * 2), X
)
case(
    "control: scan of several",
    lambda x: tf.scan(lambda s, v: (s[0] + v, tf.maximum(s[1], v)), x, (tf.zeros(6), tf.fill([6], -9.0))),
    X,
)
case("control: fold", lambda x: (tf.foldl(lambda a, b: a * 0.5 + b, x), tf.foldr(lambda a, b: a - b, x)), X)
case(
    "control: arrays split, joined and gathered",
    lambda x: (lambda a: (a.gather([2, 0]), a.concat(), a.size()))(tf.TensorArray(tf.float32, 4).unstack(x)),
    X,
)
case("control: gradient of a loop", through_loop, V / 2)
case("control: custom gradient", lambda x: tf.gradients(clipped(x), x)[0], V)
case(
    "control: recomputed",
    lambda x: tf.gradients(tf.recompute_grad(lambda y: tf.reduce_sum(tf.tanh(y) ** 3))(x), x)[0],
    V,
)
case(
    "control: Jacobian and Hessian",
    lambda x: (lambda y: tf.hessians(tf.reduce_sum(tf.sin(y) * y**2), y)[0])(tf.identity(x)),
    V,
)
case(
    "control: forward derivative",
    lambda x, t: (lambda a: a.jvp(tf.sin(x) * x) if a.__enter__() else None)(tf.autodiff.ForwardAccumulator(x, t)),
    V,
    V * 2,
)
case("control: asserted", lambda x: tf.debugging.assert_all_finite(tf.ensure_shape(x, [4, 6]), "no") * 2, X)
case(
    "control: parallel loops",
    lambda x: tf.vectorized_map(lambda r: tf.linalg.matvec(SPD, r[:4]) + tf.sort(r)[:4], x),
    X,
)

# Indices and segments

case(
    "segments: maxima, products and roots",
    lambda x: (
        tf.math.unsorted_segment_max(x, IDS, 4),
        tf.math.unsorted_segment_prod(x, IDS, 3),
        tf.math.unsorted_segment_sqrt_n(x, IDS, 3),
        tf.math.unsorted_segment_min(x, IDS, 3),
    ),
    X,
)
case("segments: sorted", lambda x: tf.math.segment_mean(x, [0, 0, 1, 1]), X)
case(
    "segments: one-hot and confusion",
    lambda i: (tf.one_hot(i, 3, 2.0, -1.0, axis=0), tf.math.confusion_matrix(i, i[::-1], 3)),
    IDS,
)
case(
    "indices: slices of strides",
    lambda x: (x[::-1, 1:-1:2, tf.newaxis], x[..., -1], tf.strided_slice(x, [0, 5], [4, 0], [2, -2])),
    X,
)
case(
    "indices: batched gather",
    lambda x, i: (tf.gather(x, i, axis=1, batch_dims=1), tf.gather_nd(x, i[:, :, None], batch_dims=1)),
    X,
    np.array([[0, 1], [5, 2], [3, 3], [4, 0]], np.int32),
)
case(
    "indices: scattered maximum and difference",
    lambda x: (tf.tensor_scatter_nd_max(x, [[0], [2]], -x[:2]), tf.tensor_scatter_nd_sub(x, [[1], [1]], x[2:])),
    X,
)
case(
    "indices: mirrored, rolled, repeated",
    lambda x: (
        tf.pad(x, [[1, 1], [2, 0]], "SYMMETRIC"),
        tf.roll(x, [1, -2], [0, 1]),
        tf.repeat(x, 2, 1),
        tf.tile(x, [2, 1]),
    ),
    X,
)
case(
    "indices: space and depth",
    lambda x: (
        tf.nn.space_to_depth(x, 2),
        tf.nn.depth_to_space(tf.tile(x, [1, 1, 1, 4]), 2),
        tf.space_to_batch(x, [2, 2], [[0, 0], [0, 0]]),
    ),
    IMAGE,
)
case(
    "indices: where of three, and extremes",
    lambda x: (
        tf.where(x > 0, x, tf.zeros_like(x)),
        tf.argmin(x, 1),
        tf.math.reduce_std(x),
        tf.math.in_top_k([1, 2, 0, 3], x, 2),
    ),
    X,
)
case("indices: Euclidean norms", lambda x: tf.math.reduce_euclidean_norm(x, 0), X)
case("indices: meshes", lambda x: tf.stack(tf.meshgrid(x[:3], x[3:], indexing="ij"), -1), V)
case("indices: histogram", lambda x: tf.histogram_fixed_width(x, [-2.0, 2.0], 5), V)
case("indices: counted by a product", lambda i: tf.reduce_sum(tf.one_hot(i, 3), 0), IDS)
case("indices: counted", lambda i: tf.math.bincount(i, minlength=3, maxlength=3, binary_output=False), IDS)
case("indices: sets of values", lambda x: tf.unique_with_counts(x).y, IDS)
case("indices: dynamic stitch", lambda x: tf.dynamic_stitch([[0, 2], [1, 3]], [x[:2], x[2:]]), X)
case("indices: padded rows", lambda x: tf.RaggedTensor.from_tensor(x, [2, 6, 1, 3]).to_tensor(), X)
case("indices: a mask of lengths", lambda x: tf.boolean_mask(x, tf.sequence_mask([2, 6, 1, 3], 6)), X)

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
for _name, _options in {
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
}.items():
    stateful(f"training: {_name}", lambda name=_name, options=_options: Trained(name, **options), X, IDS)
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


if __name__ == "__main__":
    sys.exit(main(CASES, REFUSED, __doc__))
