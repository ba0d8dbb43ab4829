"""Functions of signals, images, matrices, control flow and indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tensorflow_program_cases.registry import IDS, IMAGE, SPD, P, V, X, Y, case, drawn

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
