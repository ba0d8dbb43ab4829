"""Functions that jax.jit lowered: they are programs, and what jax dropped of their donations is told."""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools import api
from vhlo_tools.aliasing import ALIAS_FEATURES, DROPPED
from vhlo_tools.files import Kind, identify
from vhlo_tools.integrations.jax import export

X = np.arange(4, dtype=np.float32)
SHAPE = jax.ShapeDtypeStruct((4,), "float32")
NOT_USABLE = pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")


def lowered(function: Any, *arguments: Any, donate: Any = (), **keywords: Any) -> Any:
    return jax.jit(function, donate_argnums=donate).lower(*arguments, **keywords)


def dropped(findings: Any) -> list[str]:
    found = [each for each in findings if each.feature == DROPPED]
    assert all((each.level, each.kind) == (ALIAS_FEATURES[DROPPED], "alias") and each.remedy for each in found)
    return [each.message for each in found]


@pytest.mark.parametrize("target", ["0.9.0", "1.0.0", "current"])
def test_a_lowered_function_comes_in_with_its_aliases(target: str) -> None:
    program = lowered(lambda state, x: (state + x, x.sum()), SHAPE, SHAPE, donate=0)
    assert identify(program).kind is Kind.JAX_LOWERED
    artifact = vt.serialize(program, target)
    assert artifact.aliases().aliases == (vt.Alias((0,), 0),)
    assert artifact.declared_aliases().parameters[0].name == "state"
    assert not dropped(artifact.findings)
    # The module is as it was lowered: jax.export also merges constants.
    assert vt.serialize(program.compiler_ir("stablehlo"), target).aliases() == artifact.aliases()
    (total, _) = vt.run(program, [X, X])
    np.testing.assert_array_equal(total, X + X)


@NOT_USABLE
def test_a_dropped_donation_is_told() -> None:
    program = lowered(lambda a, b, *, c: (a * 2, b.sum(), c.sum()), SHAPE, {"w": SHAPE}["w"], c=SHAPE, donate=(0, 1))
    said = ["args[1], float32[4], is donated, but jax dropped the donation: no output can overwrite it"]
    artifact = vt.serialize(program, "1.0.0")
    assert dropped(artifact.findings) == dropped(vt.check(program)) == dropped(artifact.alias_findings()) == said
    assert dropped(vt.check(artifact)) == said
    assert dropped(api.aliased_artifact(program).alias_findings()) == said
    (finding,) = (each for each in artifact.findings if each.feature == DROPPED)
    assert (finding.path, finding.function) == ("@main argument 1", "main")
    # In text nobody can know.
    assert not dropped(vt.check(program.as_text()))


@NOT_USABLE
def test_arguments_that_jax_left_out_are_counted() -> None:
    tree = {"used": SHAPE, "unused": SHAPE}
    program = lowered(lambda x, tree: tree["used"].sum() + x, 1.0, tree, donate=(1,))
    assert dropped(vt.serialize(program).findings) == [
        "args[1]['unused'], float32[4], is donated, but jax dropped the donation: the function does not use it",
        "args[1]['used'], float32[4], is donated, but jax dropped the donation: no output can overwrite it",
    ]
    # Beside one that it kept.
    kept = lowered(lambda unused, x: x + 1, SHAPE, SHAPE, donate=(1,))
    assert not dropped(vt.serialize(kept).findings)
    assert vt.serialize(kept).aliases().aliases == (vt.Alias((), 0),)


def test_a_donor_is_no_dropped_donation() -> None:
    artifact = vt.serialize(lowered(lambda x: x.reshape(2, 2), SHAPE, donate=0))
    assert artifact.aliases().donors == (vt.Donor(0),)
    assert not artifact.alias_findings()


def test_weights_and_options_of_other_frontends_are_refused() -> None:
    program = lowered(lambda x: x, SHAPE)
    with pytest.raises(vt.InvalidInputError, match="omit weights"):
        api.export_model(program, weights="arguments")
    with pytest.raises(vt.InvalidInputError, match="does not support --batch-size"):
        vt.serialize(program, batch_size=2)
    exported = api.export_model(program, "1.0.0")
    assert (exported.inputs, exported.outputs) == (("x",), ("result",))


@NOT_USABLE
def test_an_export_tells_what_jax_dropped() -> None:
    def step(unused: Any, a: Any, b: Any) -> Any:
        return a + 1, b.sum()

    said = [
        "args[0], float32[4], is donated, but jax dropped the donation: the function does not use it",
        "args[2], float32[4], is donated, but jax dropped the donation: no output can overwrite it",
    ]
    program = export(step, donate_argnums=(0, 1, 2), platforms=["cpu", "cuda"])(SHAPE, SHAPE, SHAPE)
    assert dropped(program.artifact.findings) == said
    assert dropped(export(jax.jit(step, donate_argnums=0))(X, X, X).artifact.findings) == said[:1]
    assert not dropped(export(step)(X, X, X).artifact.findings)
    # An Exported and its file do not have it.
    assert not dropped(vt.serialize(program.exported).findings)
    assert "donat" not in " ".join(vars(program.exported))


def test_recognising_one_imports_no_jax() -> None:
    """By the name of its class: another class of that name from elsewhere is none."""
    import subprocess

    code = (
        "import sys; from vhlo_tools.files import identify\n"
        "Lowered = type('Lowered', (), {'__module__': 'jax._src.stages'}); other = type('Lowered', (), {})\n"
        "print(identify(Lowered()).kind, identify(other()).kind, 'jax' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["jax-lowered", "None", "False"]
