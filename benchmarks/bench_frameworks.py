"""What exporting from TensorFlow, Keras and JAX takes, beside the framework's own export, each as a process of its own.

``bench.py frameworks`` runs it, with the Python of an environment that has the extras ``tensorflow``, ``jax`` and
``keras``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from typing import Final

from support.processes import Run

MEGABYTE: Final = 1 << 20

_TENSORFLOW: Final = """
import tensorflow as tf
from vhlo_tools.integrations.tensorflow import export
def theirs(f, *inputs):
    f = tf.function(f, jit_compile=True)
    return f.experimental_get_compiler_ir(*inputs)(stage="stablehlo_serialized")
def ours(f, *inputs):
    return bytes(export(f, *inputs).artifact)
"""
_KERAS_ON_TENSORFLOW: Final = f"""
{_TENSORFLOW}
import keras
def call(model):
    return lambda x: model(x, training=False)
"""
_KERAS_ON_JAX: Final = """
import jax, jax.export, keras
from vhlo_tools.integrations.keras import export
def theirs(model, x):
    def call(trainable, others, x):
        return model.stateless_call(trainable, others, x, training=False)[0]
    values = [[each.value for each in group] for group in (model.trainable_variables, model.non_trainable_variables)]
    return jax.export.export(jax.jit(call))(*values, x).serialize()
def ours(model, x):
    return bytes(export(model, batch_size=len(x), weights="arguments").artifact)
"""
_JAX: Final = """
import jax, jax.export, jax.numpy as jnp
from vhlo_tools.integrations import jax as vhlo_jax
def theirs(f, *inputs):
    return jax.export.export(jax.jit(f))(*inputs).serialize()
def ours(f, *inputs):
    return bytes(vhlo_jax.export(f)(*inputs).artifact)
"""
_JAX_BLOCK: Final = """
def block(w, x):
    for layer in w:
        q, k, v = (x @ layer[name] for name in ("q", "k", "v"))
        a = jax.nn.softmax(jnp.einsum("bid,bjd->bij", q, k) / 8, axis=-1)
        x = x + jnp.einsum("bij,bjd->bid", a, v)
        x = x + jax.nn.gelu(x @ layer["up"]) @ layer["down"]
        x = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)
    return x
sizes = {"q": (64, 64), "k": (64, 64), "v": (64, 64), "up": (64, 256), "down": (256, 64)}
f = jax.grad(lambda w, x: block(w, x).sum())
inputs = [[{name: jnp.ones(size) for name, size in sizes.items()} for _ in range(12)], jnp.ones((2, 16, 64))]
"""
_JAX_CONV: Final = """
def f(w, x):
    for kernel in w:
        y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = x + jax.nn.relu((y - y.mean(0)) * jax.lax.rsqrt(y.var(0) + 1e-5))
    return x.mean((1, 2))
inputs = [[jnp.ones((3, 3, 64, 64)) for _ in range(50)], jnp.ones((2, 32, 32, 64))]
"""
_JAX_SCAN: Final = """
def f(w, x):
    def step(state, at):
        state = jnp.tanh(state @ w + at)
        return state, state
    return jax.lax.scan(step, x[0], x)
f = jax.grad(lambda w, x, f=f: f(w, x)[1].sum())
inputs = [jnp.ones((64, 64)), jnp.ones((100, 8, 64))]
"""
_TF_BLOCK: Final = """
from keras import layers
x = tokens = keras.Input((16, 64))
for _ in range(6):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
    x = x + layers.Dense(64)(layers.Dense(256, activation="gelu")(x))
model = keras.Model(tokens, x)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """Something that is exported."""

    name: str  # the name in the table
    prepare: str  # the code that makes it
    call: str  # the arguments of ``theirs`` and ``ours``
    backend: str = "jax"  # the backend of Keras


def _application(name: str) -> str:
    return f"model = keras.applications.{name}(weights=None, input_shape=(32, 32, 3))\n"


_KERAS: Final = {
    "MobileNetV2": (_application("MobileNetV2"), "(1, 32, 32, 3)"),
    "ResNet50": (_application("ResNet50"), "(1, 32, 32, 3)"),
    "six blocks of a transformer": (_TF_BLOCK, "(1, 16, 64)"),
}
CASES: Final = (
    *(
        Case(
            f"{name} (Keras on TensorFlow)", _KERAS_ON_TENSORFLOW + make, f"call(model), tf.zeros({size})", "tensorflow"
        )
        for name, (make, size) in _KERAS.items()
    ),
    *(
        Case(f"{name} (Keras on JAX)", _KERAS_ON_JAX + make, f"model, jax.numpy.zeros({size})")
        for name, (make, size) in _KERAS.items()
    ),
    Case("gradients of twelve blocks of a transformer (JAX)", _JAX + _JAX_BLOCK, "f, *inputs"),
    Case("fifty convolutions with normalization (JAX)", _JAX + _JAX_CONV, "f, *inputs"),
    Case("gradients of a scan (JAX)", _JAX + _JAX_SCAN, "f, *inputs"),
)
_KINDS: Final = ("theirs", "ours")
# Making a model takes longer than exporting it, so only the export is timed.
_MEASURED: Final = """
import json, resource, time
began = time.perf_counter()
{kind}({call})
print(json.dumps([time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


def _measure(case: Case, kind: str) -> Run:
    program = case.prepare + _MEASURED.format(kind=kind, call=case.call)
    settings = {"KERAS_BACKEND": case.backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True, check=True
    )
    return Run(*json.loads(process.stdout.splitlines()[-1]))


def run(turns: int) -> None:
    """Measure, and print a table in Markdown.

    Args:
        turns: How often each is run, in turn.
    """
    print("| program | framework's, s | ours, s | ratio | framework's, peak MB | ours, peak MB | ratio |")
    print("|---|---|---|---|---|---|---|")
    for case in CASES:
        runs: dict[str, list[Run]] = {kind: [] for kind in _KINDS}
        for turn in range(turns):
            # Whoever comes second finds warm files.
            for kind in _KINDS[:: 1 if turn % 2 else -1]:
                runs[kind].append(_measure(case, kind))
        seconds = [statistics.median(each.seconds for each in runs[kind]) for kind in _KINDS]
        peaks = [statistics.median(each.peak for each in runs[kind]) / MEGABYTE for kind in _KINDS]
        cells = [f"{each:.2f}" for each in (*seconds, seconds[1] / seconds[0])]
        cells += [*(f"{each:.0f}" for each in peaks), f"{peaks[1] / peaks[0]:.2f}"]
        print(f"| {case.name} | {' | '.join(cells)} |", flush=True)
