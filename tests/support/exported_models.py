"""What holds for every exported model at any version: it reads back with its names, and XLA gives what it gave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from support.xla_cpu import run_on_xla
from vhlo_tools.integrations.exported_model import ExportedModel

CURRENT = "current"


def check_model(
    export: Callable[[str], ExportedModel], inputs: Sequence[Any], expected: Sequence[Any], tolerance: float
) -> ExportedModel:
    """Export a model for the current version and for the oldest that it reaches, and run both with its weights.

    Args:
        export: What exports it for a target.
        inputs: Its inputs.
        expected: What the framework gives for them.
        tolerance: How far from that a number may be, and what share of it.

    Returns:
        The model of the current version.
    """
    current = export(CURRENT)
    oldest = str(current.artifact.requirements().downgradable_to)
    for model in (current, export(oldest)):
        assert arguments_of_main(vt.deserialize(model.artifact)) == len(model.arguments)
        assert len(model.inputs) == len(inputs)
        named = model.artifact.declared_aliases()
        assert tuple(each.name for each in named.parameters) == model.arguments
        assert tuple(each.name for each in named.results) == model.outputs
        close(results_of(model, inputs), expected, tolerance)
    assert model.artifact.version == vt.Version(oldest)
    assert (model.inputs, model.outputs, list(model.weights)) == (
        current.inputs,
        current.outputs,
        list(current.weights),
    )
    assert model.artifact.inventory().aliases == current.artifact.inventory().aliases
    return current


def arguments_of_main(module: Any) -> int:
    """Return how many arguments the function ``main`` of a module has."""
    functions = {each.attributes["sym_name"].value: each.operation for each in module.body.operations}
    return len(functions["main"].regions[0].blocks[0].arguments)


def results_of(model: ExportedModel, inputs: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return what XLA gives for ``inputs``, and for the weights as they were exported."""
    results = run_on_xla(bytes(model.artifact), [*inputs, *model.weights.values()])
    assert len(results) == len(model.outputs)
    return results


def close(found: Sequence[np.ndarray[Any, Any]], expected: Sequence[Any], tolerance: float) -> None:
    """Assert that arrays are of the same types and close to each other."""
    assert len(found) == len(expected)
    for one, other in zip(found, map(np.asarray, expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        # Types of ml_dtypes have no differences of their own.
        wide = np.complex128 if np.iscomplexobj(other) else np.float64
        np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=tolerance, atol=tolerance)


def check_writing_options(export: Callable[..., ExportedModel], folder: Path) -> None:
    """Check that an export of the tangent, given options alone, treats those of writing as ``vt.serialize`` does."""
    with pytest.raises(vt.DowngradeError) as raised:
        export(target="1.0.0")
    assert {each.feature for each in raised.value.findings} == {"tan"}
    with pytest.raises(ValueError, match="'tan' has no relaxed expansion"):
        export(target="1.0.0", allow_relaxed=["tan"])
    model = export(target="1.0.0", expand=["tan"], allow_signature_change=True)
    assert [each.feature for each in model.findings if each.level == "note"] == ["tan"]
    model.save(folder / "tan.mlirbc", manifest=True)
    made = vt.Manifest.load(folder / "tan.mlirbc.manifest.json").made
    assert made is not None
    assert (made.command, made.target) == ("export", "1.0.0")
    assert made.options == {"allow_signature_change": True, "expand": ("tan",)}
    assert vt.open_artifact(folder / "tan.mlirbc") == model.artifact
    model.artifact.save(folder / "tan.mlirbc", force=True)
    assert not (folder / "tan.mlirbc.manifest.json").exists()
