"""Collectives as JAX writes them for eight devices, against what JAX gives on these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vhlo_tools.interpreter.engines import ReferenceEngine
from vhlo_tools.program import load_program

#: What each device computes of its part, and where the parts of the result are.
BODIES = {
    "psum": ("lax.psum(x, 'b')", "P('a')"),
    "psum of all": ("lax.psum(x, ('a', 'b'))", "P()"),
    "pmax": ("lax.pmax(x, 'a')", "P('b')"),
    "all_gather": ("lax.all_gather(x, 'b', axis=1, tiled=True)", "P(('a', 'b'))"),
    "reduce_scatter": ("lax.psum_scatter(x, 'a', scatter_dimension=0, tiled=True)", "P(('a', 'b'))"),
    "ppermute": ("lax.ppermute(x, 'b', [(0, 1), (1, 3), (3, 2)])", "P(('a', 'b'))"),
    "all_to_all": ("lax.all_to_all(x, 'b', split_axis=1, concat_axis=0, tiled=True)", "P(('a', 'b'))"),
    "axis_index": ("x + lax.axis_index('b').astype(x.dtype)", "P(('a', 'b'))"),
    "loop": ("lax.fori_loop(0, 3, lambda i, y: lax.ppermute(y, 'b', [(k, (k + 1) % 4) for k in range(4)]) * 2 + x, x)",
             "P(('a', 'b'))"),
}  # fmt: skip

_SCRIPT = """
import sys
import jax, numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

jax.config.update("jax_use_shardy_partitioner", False)
mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
x = np.load("x.npy")
for number, (body, out) in enumerate(%r):
    function = eval(f"jax.jit(jax.shard_map(lambda x: {body}, mesh=mesh, in_specs=P(('a', 'b')), out_specs={out}, "
                    "check_vma=False))")
    shards = sorted(function(x).addressable_shards, key=lambda shard: shard.device.id)
    np.save(f"{number}.npy", np.stack([np.asarray(shard.data) for shard in shards]))
    open(f"{number}.mlir", "w").write(function.lower(x).as_text())
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the program of each body, and what JAX gives for it on each device."""
    folder = tmp_path_factory.mktemp("jax")
    np.save(folder / "x.npy", np.random.default_rng(0).integers(-9, 9, (32, 4)).astype(np.float32))
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    script = [sys.executable, "-c", _SCRIPT % list(BODIES.values())]
    subprocess.run(script, cwd=folder, env=environment, check=True)
    return folder


@pytest.mark.parametrize("body", BODIES)
def test_devices_get_what_they_get_from_jax(body: str, written: Path) -> None:
    number = list(BODIES).index(body)
    # What each device runs is a function of its own; main puts shards together.
    text = (written / f"{number}.mlir").read_text()
    text = text.replace("@main", "@whole").replace("@shmap_body", "@main").replace("private @main", "public @main")
    parts = np.split(np.load(written / "x.npy"), 8)
    found = ReferenceEngine(load_program(inner(text))).execute_parallel([[part] for part in parts], 1, 8)
    for (result,), expected in zip(found, np.load(written / f"{number}.npy"), strict=True):
        assert result is not None
        np.testing.assert_array_equal(result, expected)


def inner(text: str) -> str:
    """Return a program without the function ``@whole``."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if "@whole" in line)
    end = next(number for number, line in enumerate(lines) if number > start and line.startswith("  }"))
    return "\n".join([*lines[:start], *lines[end + 1 :]])
