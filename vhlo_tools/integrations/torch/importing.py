"""Programs with their weights as inputs to StableHLO, by torch-mlir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings import MLIRFailure, Module, Provider, get_provider
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.torch.mending import mend
from vhlo_tools.integrations.torch.refusals import data_dependent, explained, failing_ops, first_words

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.integrations.torch.lifting import Lifted

__all__ = ["import_program"]

# Those of `torch_mlir.fx.export_and_import`, which prints what goes wrong and leaves the module in a temporary file.
_TO_BACKEND: Final = "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline"
_TO_STABLEHLO: Final = "torch-backend-to-stablehlo-backend-pipeline"
# If more ops of torch are left than that, the pass that failed was one of the first, and they say nothing.
_FEW: Final = 8


def import_program(lifted: Lifted, name: str, *, constants: bool) -> Module:
    """Return a program as a StableHLO module of torch-mlir's bindings.

    Args:
        lifted: The program. Its graph is used up.
        name: What to call it in messages.
        constants: Whether its weights become constants; otherwise they stay arguments.

    Raises:
        InvalidProgramError: If torch-mlir cannot; the message names the op.
    """
    from torch_mlir.dialects import torch as torch_dialect
    from torch_mlir.extras.fx_importer import FxImporter

    provider = get_provider("torch_mlir")
    context = provider.ir.Context()
    torch_dialect.register_dialect(context)
    importer = FxImporter(context=context)
    with explained(f"torch-mlir cannot import {name}"):
        importer.import_frozen_program(lifted.program, func_name="main")
    module: Module = importer.module
    # As errors alone they would be lost where a pass goes on after one.
    context.emit_error_diagnostics = True
    for pipeline in (_TO_BACKEND, _TO_STABLEHLO):
        try:
            provider.run_passes(module, pipeline, verify=True)
        except MLIRFailure as failure:
            raise _refusal(lifted, module, provider, failure, name) from failure
    mend(module, provider)
    values = [*(lifted.weights.values() if constants else ()), *lifted.hidden]
    if values:
        _embed(module, provider, len(lifted.inputs) + len(lifted.weights) * (not constants), values)
    return module


def _embed(module: Module, provider: Provider, start: int, values: Sequence[np.ndarray[Any, Any]]) -> None:
    """Replace the arguments of ``main`` from ``start`` on by constants."""
    ir = provider.ir
    (main,) = module.body.operations
    block = main.regions[0].blocks[0]
    with module.context, ir.Location.unknown():
        place = ir.InsertionPoint.at_block_begin(block)
        for offset, value in enumerate(values):
            argument = block.arguments[start + offset]
            attribute = _elements(ir, value, argument.type.element_type)
            constant = ir.Operation.create(
                "stablehlo.constant", results=[argument.type], attributes={"value": attribute}, ip=place
            )
            argument.replace_all_uses_with(constant.result)
        for _ in values:
            block.erase_argument(start)
        kind = main.attributes["function_type"].value
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kind.inputs[:start], kind.results))


def _elements(ir: Any, value: np.ndarray[Any, Any], element: Any) -> Any:
    import numpy as np

    if value.dtype.kind not in "biuf":
        # Types of ml_dtypes, which are no buffers.
        value = value.view(np.dtype(f"u{value.dtype.itemsize}"))
    return ir.DenseElementsAttr.get(value, type=element, shape=list(value.shape))


def _refusal(
    lifted: Lifted, module: Module, provider: Provider, failure: MLIRFailure, name: str
) -> InvalidProgramError:
    """Return the error for a program that torch-mlir refuses, with the ops that it could not turn into StableHLO."""
    named = failing_ops(failure.diagnostics)
    reasons = dict.fromkeys(
        first_words(each.message) for each in failure.diagnostics if not each.message.startswith("failed to legalize")
    )
    # Often only the constants are named that the op in question took; it stands there still.
    left = {str(op.name).removeprefix("torch."): None for op in provider.walk(module) if _is_torch(str(op.name))}
    if unknown := data_dependent(lifted.program):
        said = f"{unknown} gives a shape that depends on values"
    elif named:
        said = "; ".join(f"{op} at {found.source}" if found.source else op for op, found in named.items())
    else:
        said = "; ".join(left) if left and len(left) <= _FEW else "an op that it does not name"
    if reasons:
        said += f" ({'; '.join(reasons)})"
    return InvalidProgramError(f"torch-mlir cannot turn {name} into StableHLO: {said}", failure.diagnostics)


def _is_torch(op: str) -> bool:
    return op.startswith(("torch.aten.", "torch.prims.", "torch.operator", "torch.runtime.", "torch.torchvision."))
