"""The trial of one model in a process of its own: ``python -m torch_models.trial NAME IMPORTER`` prints it as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Final

from torch_models.memory import PEAK_HERE, peak_here

#: What the frameworks' own exporters are called: for comparisons of time and memory.
OWN: Final = {"torchax": "own-torchax", "torch-mlir": "own-torch-mlir"}
_MEMORY: Final = 10 << 30


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of a trial."""

    name: str  # the name of the model
    importer: str  # the importer, or the framework's own exporter
    ok: bool  # whether it was exported, and is equal within the tolerance
    reason: str = ""  # why not
    error: float | None = None  # the largest difference of a result, relative to the largest number in it
    seconds: float = 0.0  # the time of the export, once the packages are imported
    peak: int = 0  # the peak memory of the process by then, in bytes
    before: int = 0  # the peak memory before the export, with the model and the packages loaded
    child: int = 0  # the peak memory of the child process of torch-mlir
    size: int = 0  # the size of the artifact in bytes


def main() -> None:
    """Try one model, and print the outcome as the last line."""
    name, importer = sys.argv[1:3]
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):  # noqa: PTH123
        outcome = _tried(name, importer)
    print(json.dumps(asdict(outcome)))


def _tried(name: str, importer: str) -> Trial:
    import torch

    from torch_models.table import CASES

    case = CASES[name]
    torch.manual_seed(7)
    torch.set_grad_enabled(False)
    try:
        model, inputs = case.build(), case.inputs()
        _set_parameters(model, inputs)
        model.eval()
        expected = model(*(each.clone() for each in inputs))
        program = torch.export.export(model, inputs, dynamic_shapes=case.shapes, strict=False)
    except Exception as error:
        return Trial(name, importer, ok=False, reason=f"torch.export: {_first(error)}")
    _import_packages(importer)
    before, began = peak_here(), time.perf_counter()
    try:
        exported = (_export_own if importer in OWN.values() else _export)(program, importer)
        seconds = time.perf_counter() - began
        measured: dict[str, Any] = {"seconds": seconds, "before": before, **_memory(importer), "size": len(exported)}
        if importer in OWN.values():
            return Trial(name, importer, ok=True, **measured)
        worst = _difference(exported, program, inputs, expected)
        reason = "" if worst <= case.tolerance else f"differs by {worst:.1e}, more than {case.tolerance:.0e}"
        return Trial(name, importer, not reason, reason, worst, **measured)
    except Exception as error:
        spent = time.perf_counter() - began
        return Trial(name, importer, ok=False, reason=_first(error), seconds=spent, before=before, **_memory(importer))


def _import_packages(importer: str) -> None:
    """Import what an export imports, so that its time is that of the export."""
    import vhlo_tools.integrations.torch.importing  # noqa: F401
    from vhlo_tools.integrations.torch.torchax import load_torchax

    if importer in ("auto", "torchax", OWN["torchax"]):
        load_torchax()
        import torchax.export  # noqa: F401
    if importer in ("torch-mlir", OWN["torch-mlir"]):
        from torch_mlir import fx  # noqa: F401


def _set_parameters(model: Any, inputs: Any) -> None:
    """Set what a model starts with so that its outputs depend on its inputs.

    Heads of zeros get random numbers, and BatchNorm its statistics from the inputs: with those it starts with, outputs
    of deep models vanish.
    """
    import torch

    for parameter in model.parameters():
        if parameter.ndim > 1 and not parameter.any():
            parameter.normal_(std=0.02)

    norms = [each for each in model.modules() if isinstance(each, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = None
    if norms:
        model.train()
        # One image of one position has no variance.
        model(*(torch.cat([each, each.flip(-1)]) for each in inputs))


def _export(program: Any, importer: str) -> bytes:
    from vhlo_tools.integrations.torch import export

    return bytes(export(program, importer=importer, import_memory=_MEMORY // 2, import_timeout=240).artifact)  # type: ignore[arg-type]


def _export_own(program: Any, importer: str) -> bytes:
    """Export with the framework's own exporter."""
    if importer == OWN["torchax"]:
        import torchax.export

        _, exported = torchax.export.exported_program_to_stablehlo(program)
        return bytes(exported.mlir_module_serialized)
    from torch_mlir import fx

    # What it makes has ops of other dialects, such as `tensor` and `math`, so that it cannot be an artifact as it is.
    file = io.BytesIO()
    fx.export_and_import(program, output_type="stablehlo", func_name="main").operation.write_bytecode(file)
    return file.getvalue()


def _difference(artifact: bytes, program: Any, inputs: Any, expected: Any) -> float:
    """Run an artifact, and return the largest difference from torch's results, relative to the largest number in each.

    Raises:
        ValueError: If a result has another type or shape, NaN in other places, or nothing but zeros.
    """
    import numpy as np
    import torch

    import vhlo_tools as vt

    results = vt.run(
        artifact, [each.numpy() for each in inputs], engine="reference" if program.range_constraints else "xla"
    )
    wanted = [each.numpy() for each in torch.utils._pytree.tree_leaves(expected) if isinstance(each, torch.Tensor)]
    if [(each.shape, each.dtype) for each in results] != [(each.shape, each.dtype) for each in wanted]:
        raise ValueError("results of other shapes or types")
    worst = 0.0
    for result, each in zip(results, wanted, strict=True):
        if not np.array_equal(np.isnan(result), np.isnan(each)):
            raise ValueError("NaN in other places")
        scale = float(np.abs(np.nan_to_num(each)).max(initial=0))
        if not scale:
            raise ValueError("a result of zeros only shows nothing")
        worst = max(worst, float(np.abs(np.nan_to_num(result - each)).max(initial=0)) / scale)
    return worst


def _memory(importer: str) -> dict[str, int]:
    """Return the peak memory of this process, and of the child process that torch-mlir ran in."""
    from vhlo_tools.bindings import isolation

    here = peak_here()
    return {"peak": here, "child": isolation.call(PEAK_HERE) if importer == "torch-mlir" else 0}


def _first(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


if __name__ == "__main__":
    main()
