"""The files of `examples/jax_store` at several versions, loaded and called by jax itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.export
import numpy as np
import pytest
from make_jax_store import STORE, loss

import vhlo_tools as vt
from vhlo_tools.artifact import JaxContainer, other_dialects
from vhlo_tools.integrations.jax import open_export, retarget, strip

FOLDER = Path(__file__).parents[3] / "examples" / "jax_store"
#: XLA may fuse otherwise what it reads in another form.
TOLERANCE = 1e-6


def oldest(container: JaxContainer) -> vt.Version:
    return max(artifact.requirements().downgradable_to for artifact in container.artifacts)


def versions() -> list[tuple[str, str]]:
    return [(name, where) for name in STORE for where in ("oldest", "own", "current")]


def at(name: str, where: str) -> tuple[JaxContainer, Any]:
    """Return a file of the store at a version, and what jax loads from it."""
    container = open_export(FOLDER / f"{name}.jax_export")
    target = {"oldest": str(oldest(container)), "own": str(container.version), "current": "current"}[where]
    moved = retarget(container, target)
    assert moved.version == vt.resolve_target(target).version
    return moved, jax.export.deserialize(bytearray(bytes(moved)))


def assert_close(found: Any, expected: Any) -> None:
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)


def assert_computes(exported: Any, name: str) -> None:
    arguments, keywords = STORE[name].inputs()
    call = exported.call
    if exported.nr_devices > 1:
        mesh = jax.make_mesh((2,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
        shardings = jax.tree.unflatten(exported.in_tree, exported.in_shardings_jax(mesh))[0]
        call = jax.jit(exported.call, in_shardings=shardings)
    assert_close(call(*arguments, **keywords), STORE[name].function()(*arguments, **keywords))


@pytest.mark.parametrize(("name", "where"), versions())
def test_a_file_computes_what_its_function_computes(name: str, where: str) -> None:
    _, exported = at(name, where)
    assert exported.nr_devices == STORE[name].devices
    assert_computes(exported, name)


@pytest.mark.parametrize("where", ["oldest", "own", "current"])
def test_derivatives_come_along(where: str) -> None:
    container, exported = at("loss", where)
    (params, x, y), _ = STORE["loss"].inputs()
    assert {artifact.version for artifact in container.artifacts} == {container.version}
    assert len(container.artifacts) == 3
    assert_close(jax.grad(exported.call)(params, x, y), jax.grad(loss)(params, x, y))

    def twice(function: Any) -> Any:
        def slope(x: Any) -> Any:
            return jax.grad(function, argnums=1)(params, x, y).sum()

        return jax.grad(slope)(x)

    assert_close(twice(exported.call), twice(loss))
    with pytest.raises(ValueError, match="No VJP is available"):
        exported.vjp().vjp().vjp()


def test_symbolic_dimensions_take_any_size() -> None:
    _, exported = at("standardize", "oldest")
    for shape in ((1, 1), (4, 3), (9, 2)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        assert_close(exported.call(x), STORE["standardize"].function()(x))


@pytest.mark.parametrize("name", STORE)
def test_jax_reads_the_rest_as_it_was(name: str) -> None:
    data = (FOLDER / f"{name}.jax_export").read_bytes()
    before, after = (jax.export.deserialize(bytearray(each)) for each in (data, bytes(retarget(data, "1.4.0"))))
    assert before.mlir_module_serialized != after.mlir_module_serialized
    fields = ("fun_name", "in_tree", "in_avals", "out_tree", "out_avals", "nr_devices", "platforms", "ordered_effects")
    more = ("unordered_effects", "disabled_safety_checks", "calling_convention_version", "module_kept_var_idx")
    shardings = ("uses_global_constants", "_in_named_shardings", "_out_named_shardings")
    for field in (*fields, *more, *shardings):
        # Symbols of two files are never equal.
        assert str(getattr(before, field)) == str(getattr(after, field)), field


@pytest.mark.parametrize("name", STORE)
def test_a_stripped_file_computes_the_same(name: str) -> None:
    whole = open_export(FOLDER / f"{name}.jax_export")
    exported = jax.export.deserialize(bytearray(bytes(strip(whole))))
    assert b"make_jax_store" in bytes(whole.artifacts[0])
    # Where attributes of another dialect may refer to strings, these stay.
    assert (b"make_jax_store" in exported.mlir_module_serialized) == bool(other_dialects(whole.artifacts[0]))
    assert_computes(exported, name)
