"""`convnet.bc`: inference of a small image classifier, with its weights as constants inside."""

from __future__ import annotations

import math

import _emit
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

Weights = NDArray[np.float32]

CLASSES = 10
IMAGE = (1, 16, 16, 1)
LAYOUT = ("NHWC", "HWIO", "NHWC")

# Numpy keeps the bits of PCG64 for ever, but not what its distributions make of them.
BITS = np.random.PCG64(seed=0)


def weights(*shape: int) -> Weights:
    """Uniform in ±1/sqrt(fan in), by f32 arithmetic that gives the same bits everywhere."""
    bits = BITS.random_raw(math.prod(shape)).reshape(shape) >> 40
    uniform = bits.astype(np.float32) / 2**23 - 1
    return np.asarray(uniform / np.sqrt(np.float32(math.prod(shape[:-1]))))


def statistics(channels: int) -> Weights:
    """What batch normalization learned: a row each of scale, offset, mean and variance."""
    return weights(4, channels) + np.array([[1], [0], [0], [1]], np.float32)


KERNEL1, STATISTICS1 = weights(3, 3, 1, 8), statistics(8)
KERNEL2, STATISTICS2 = weights(3, 3, 8, 16), statistics(16)
DENSE, BIAS = weights(4 * 4 * 16, CLASSES), weights(CLASSES)


def convolution(x: Array, kernel: Weights) -> Array:
    """A convolution of stride 1 that keeps height and width."""
    kernel_constant = jnp.asarray(kernel)
    return lax.conv_general_dilated(x, kernel_constant, (1, 1), "SAME", dimension_numbers=LAYOUT)


def batch_norm(x: Array, learned: Weights) -> Array:
    """Normalize each channel by what training learned."""
    scale, offset, mean, variance = map(jnp.asarray, learned)
    return (x - mean) * lax.rsqrt(variance + 1e-3) * scale + offset


def max_pool(x: Array) -> Array:
    """Halve height and width."""
    window = (1, 2, 2, 1)
    pooled: Array = lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")
    return pooled


def classify(image: Array) -> Array:
    """The probability of each class."""
    x = max_pool(jax.nn.relu(batch_norm(convolution(image, KERNEL1), STATISTICS1)))
    x = max_pool(jax.nn.relu(batch_norm(convolution(x, KERNEL2), STATISTICS2)))
    return jax.nn.softmax(x.reshape(len(x), -1) @ DENSE + BIAS)


def build() -> bytes:
    """Lower the classifier for one image."""
    return _emit.mlir_bytecode(jax.jit(classify).lower(jnp.zeros(IMAGE)))


if __name__ == "__main__":
    _emit.main(build, "convnet.bc")
