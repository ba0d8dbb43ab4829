"""What XLA's options for a judge cost: compilation and runs of examples and of training steps, with and without them.

`python benchmarks/bench_judge.py [--pairs 15]` prints medians in milliseconds, and the ratio. The runs alternate, in
this process. Needs JAX, which makes the training steps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import vhlo_tools as vt
from vhlo_tools.bindings import xla_client
from vhlo_tools.bindings.xla_client import JUDGE_OPTIONS

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SETTINGS = {"plain": {}, "judge": JUDGE_OPTIONS}


def training_steps() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield the exports of three training steps, each with its inputs."""
    import jax
    import jax.numpy as jnp

    def mlp(params: Any, x: Any, y: Any) -> Any:
        for w, b in params:
            x = jax.nn.gelu(x @ w + b)
        return jnp.mean((x - y) ** 2)

    def cnn(params: Any, x: Any, y: Any) -> Any:
        for kernel in params:
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, kernel, (2, 2), "SAME"))
        return jnp.mean((x.mean((2, 3)) - y) ** 2)

    def attention(params: Any, x: Any, y: Any) -> Any:
        for q, k, v in params:
            x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
            scores = jax.nn.softmax((x @ q) @ jnp.swapaxes(x @ k, -1, -2) / 8.0)
            x = x + scores @ (x @ v)
        return jnp.mean((x - y) ** 2)

    chance = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return (chance.normal(size=shape) / 8).astype(np.float32)

    cases = {
        "mlp": (mlp, [(draw(256, 256), draw(256)) for _ in range(3)], draw(64, 256), draw(64, 256)),
        "cnn": (cnn, [draw(16, 3, 3, 3), draw(32, 16, 3, 3)], draw(8, 3, 32, 32), draw(8, 32)),
        "attention": (attention, [tuple(draw(64, 64) for _ in range(3)) for _ in range(2)], *(draw(4, 64, 64),) * 2),
    }
    for name, (loss, params, x, y) in cases.items():

        def step(params: Any, x: Any, y: Any, loss: Any = loss) -> Any:
            grads = jax.grad(loss)(params, x, y)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

        inputs = tuple(jax.tree.leaves((params, x, y)))
        yield f"step of {name}", jax.jit(step).lower(params, x, y).as_text(), inputs


def main() -> None:
    """Measure all cases."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    pairs = parser.parse_args().pairs
    names = ("saxpy.mlir", "keras_mlp.mlirbc", "tensorflow_counter.mlir", "transformer_step.mlir")
    cases = [(name, EXAMPLES / name, vt.draw_inputs(EXAMPLES / name)) for name in names]
    print(f"{'':26}{'compile':>9}{'judge':>9}{'ratio':>7}{'run':>9}{'judge':>9}{'ratio':>7}")
    for name, program, inputs in (*cases, *training_steps()):
        times: dict[str, dict[str, list[float]]] = {each: {"compile": [], "run": []} for each in SETTINGS}
        loaded = {}
        for setting, options in SETTINGS.items():
            xla_client.JUDGE_OPTIONS = options  # type: ignore[misc]
            for _ in range(3):
                begun = time.perf_counter()
                loaded[setting] = vt.load_executable(program, engine="xla", in_process=True)
                loaded[setting].run(inputs)
                times[setting]["compile"].append(time.perf_counter() - begun)
        for number in range(pairs * 2):
            setting = list(SETTINGS)[number % 2]
            begun = time.perf_counter()
            loaded[setting].run(inputs)
            times[setting]["run"].append(time.perf_counter() - begun)
        columns = []
        for what in ("compile", "run"):
            plain, judge = (median(times[each][what]) * 1000 for each in SETTINGS)
            columns.append(f"{plain:9.2f}{judge:9.2f}{judge / plain:7.2f}")
        print(f"{name:26}{''.join(columns)}", flush=True)


if __name__ == "__main__":
    main()
