"""Run by releases of jax: ``jax_session.py write FOLDER`` exports functions, ``jax_session.py call FILE`` calls them.

The name of a file says which function it is: all before the first dot. Derivatives are called as well where there are.
``jax_session.py try FILE`` prints a line of JSON for each file, with the outcome, and does not stop at the first error.
"""

from __future__ import annotations

import collections
import json
import os
import sys
from pathlib import Path
from typing import Any

# Before jax is imported.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

X = np.arange(6, dtype=np.float32).reshape(2, 3) / 7
MESH = Mesh(np.array(jax.devices()[:2]), ("rows",))
ROWS = NamedSharding(MESH, PartitionSpec("rows"))


def plain(tree: Any, unused: Any, scale: Any) -> Any:
    return {"sum": jnp.sum(jnp.tanh(tree["x"]) * scale), "rest": [tree["x"] * tree["x"]]}


def symbolic(x: Any) -> Any:
    return x - jnp.mean(x, axis=0)


def anywhere(x: Any) -> Any:
    return jnp.exp(x) + 1


def sharded(x: Any) -> Any:
    return x @ x.T


Pair = collections.namedtuple("Pair", ("first", "second"))
if hasattr(jax.export, "register_namedtuple_serialization"):
    jax.export.register_namedtuple_serialization(Pair, serialized_name="tests.Pair")


def named(pair: Any) -> Any:
    return Pair(pair.first + pair.second, pair.first)


def keyed(key: Any, x: Any) -> Any:
    return x + jax.random.normal(key, x.shape)


def small(x: Any) -> Any:
    return x.astype(jnp.float32) + 1


def tiny(x: Any) -> Any:
    return x.astype(jnp.float32) + 1


KEY = jax.random.key(0)
ARGUMENTS = {
    "plain": ({"x": X}, X, np.float32(3)),
    "symbolic": (X,),
    "anywhere": (X,),
    "sharded": (X,),
    "named": (Pair(X, 2 * X),),
    "keyed": (KEY, X),
    "small": (jnp.asarray(X, jnp.float8_e4m3fn),),
    # A type that old releases lack.
    **({"tiny": (jnp.asarray(X, jnp.float8_e8m0fnu),)} if hasattr(jnp, "float8_e8m0fnu") else {}),
}
#: What not every release can write: it is left out there.
NEWER = ("named", "keyed", "small", "tiny")


def write(folder: Path) -> None:
    (rows,) = jax.export.symbolic_args_specs((X,), ("rows, 3",))
    calls = {
        "plain": jax.export.export(jax.jit(plain), platforms=["cpu"])(*ARGUMENTS["plain"]),
        "symbolic": jax.export.export(jax.jit(symbolic), platforms=["cpu"])(rows),
        "anywhere": jax.export.export(jax.jit(anywhere), platforms=["cpu", "tpu"])(X),
        "sharded": jax.export.export(jax.jit(sharded, in_shardings=ROWS, out_shardings=ROWS), platforms=["cpu"])(X),
    }
    for name, exported in calls.items():
        order = 1 if name in ("plain", "anywhere") else 0
        (folder / f"{name}.jax_export").write_bytes(exported.serialize(vjp_order=order))


def write_newer(folder: Path) -> None:
    for name in NEWER:
        try:
            exported = jax.export.export(jax.jit(globals()[name]), platforms=["cpu"])(*ARGUMENTS[name])
            (folder / f"{name}.jax_export").write_bytes(exported.serialize())
        except Exception as error:
            print(f"not written: {name}: {type(error).__name__}: {error}"[:200])


def attempt(path: Path) -> dict[str, str]:
    """Return the outcome for a file: ``called``, or the step that failed and its error."""
    name, step = path.name.partition(".")[0], "load"
    try:
        exported = jax.export.deserialize(bytearray(path.read_bytes()))
        step = "call"
        arguments = ARGUMENTS[name]
        run = jax.jit(exported.call, in_shardings=ROWS) if name == "sharded" else exported.call
        found = run(*arguments)
        step = "compare"
        compare(found, globals()[name](*arguments))
        return {"outcome": "called"}
    except Exception as error:
        return {"outcome": step, "error": f"{type(error).__name__}: {error}"[:300]}


def call(path: Path) -> None:
    name = path.name.partition(".")[0]
    function, arguments = globals()[name], ARGUMENTS[name]
    exported = jax.export.deserialize(bytearray(path.read_bytes()))
    run = jax.jit(exported.call, in_shardings=ROWS) if name == "sharded" else exported.call
    compare(run(*arguments), function(*arguments))
    if exported.has_vjp():

        def slope(function: Any) -> Any:
            return jax.grad(lambda *arguments: sum(jnp.sum(each) for each in jax.tree.leaves(function(*arguments))))

        compare(slope(exported.call)(*arguments), slope(function)(*arguments))
        print("derivative", end=" ")
    print("called", path.name)


def compare(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]))
    elif sys.argv[1] == "write-all":
        write(Path(sys.argv[2]))
        write_newer(Path(sys.argv[2]))
    elif sys.argv[1] == "try":
        for argument in Path(sys.argv[2]).read_text().splitlines():
            print(json.dumps({"file": argument, **attempt(Path(argument))}), flush=True)
    else:
        for argument in sys.argv[2:]:
            call(Path(argument))
