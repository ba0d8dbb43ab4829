"""Collectives as JAX writes them for eight devices, on both engines, against what JAX gives on these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.api import EngineChoice

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
    "other parts": ("lax.psum(x, 'b').T", "P('b', 'a')"),
}  # fmt: skip
#: Programs with more to them than one body for all axes.
WHOLE = {
    "before and after": "lambda x: shard(lambda y: lax.psum(y, 'b'), P(('a', 'b')), P('a'))(x * 2).sum(0) + x[0]",
    "in a loop": "lambda x: lax.fori_loop(0, 3, lambda _, y: shard(lambda z: z - lax.pmean(z, 'a'), P('b', 'a'), "
                 "P('b', 'a'))(y), x)",
    "along one axis": "lambda x: shard(lambda y: lax.psum(y, 'a').sum(0, keepdims=True), P('a'), P(), {'a'})(x)",
    "one in another": "lambda x: shard(lambda y: shard(lambda z: lax.psum(z, 'b') * 3, P(None, 'b'), P(), {'b'}, None)"
                      "(y), P('a'), P('a'), {'a'})(x)",
}  # fmt: skip
PARTITIONERS = ("gspmd", "shardy")
ENGINES: tuple[EngineChoice, ...] = ("reference", "xla")

_SCRIPT = """
import sys
import jax, numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
x = np.load("x.npy")

def shard(body, in_specs, out_specs, axes=frozenset(), mesh=mesh):
    return jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, axis_names=axes, check_vma=False)

bodies, whole = %r
for partitioner in ("gspmd", "shardy"):
    jax.config.update("jax_use_shardy_partitioner", partitioner == "shardy")
    programs = {name: f"shard(lambda x: {body}, P(('a', 'b')), {out})" for name, (body, out) in bodies.items()}
    for name, text in {**programs, **whole}.items():
        lowered = jax.jit(eval(text)).lower(x)
        open(f"{partitioner} {name}.mlir", "w").write(lowered.as_text())
        result = lowered.compile()(x)
        np.save(f"{partitioner} {name}.npy", np.asarray(result))
        shards = sorted(result.addressable_shards, key=lambda shard: shard.device.id)
        np.save(f"{partitioner} {name} shards.npy", np.stack([np.asarray(shard.data) for shard in shards]))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with each program, and what JAX gives for it: as a whole, and on each device."""
    folder = tmp_path_factory.mktemp("jax")
    np.save(folder / "x.npy", np.random.default_rng(0).integers(-9, 9, (32, 4)).astype(np.float32))
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", _SCRIPT % ((BODIES, WHOLE),)], cwd=folder, env=environment, check=True)
    return folder


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("body", BODIES)
def test_devices_get_what_they_get_from_jax(body: str, engine: EngineChoice, written: Path) -> None:
    # What each device runs is a function of its own; main puts shards together.
    text = (written / f"gspmd {body}.mlir").read_text()
    text = text.replace("@main", "@whole").replace("@shmap_body", "@main").replace("private @main", "public @main")
    parts = np.split(np.load(written / "x.npy"), 8)
    found = vt.run_parallel(inner(text), [[part] for part in parts], partitions=8, engine=engine)
    for (result,), expected in zip(found, np.load(written / f"gspmd {body} shards.npy"), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("partitioner", "name"), [(partitioner, name) for partitioner in PARTITIONERS for name in (*BODIES, *WHOLE)]
)
def test_the_whole_is_what_jax_makes_of_it(partitioner: str, name: str, engine: EngineChoice, written: Path) -> None:
    program, x = written / f"{partitioner} {name}.mlir", np.load(written / "x.npy")
    ((result,),) = vt.run_parallel(program, [[x]], engine=engine)
    np.testing.assert_allclose(result, np.load(written / f"{partitioner} {name}.npy"), rtol=1e-6)


def test_a_program_for_several_devices_runs_on_all_of_them(written: Path) -> None:
    given = np.load(written / "x.npy")
    for engine in ("auto", "reference", "xla"):
        (found,) = vt.run(written / "shardy psum.mlir", [given], engine=engine)
        ((expected,),) = vt.run_parallel(written / "shardy psum.mlir", [[given]])
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def inner(text: str) -> str:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if "@whole" in line)
    end = next(number for number, line in enumerate(lines) if number > start and line.startswith("  }"))
    return "\n".join([*lines[:start], *lines[end + 1 :]])
