"""Convert modules of torch's dialect to StableHLO by the passes of torch-mlir, which run in a child process.

Nothing here imports torch, so that the child starts fast.
"""

from __future__ import annotations

import io
from typing import Any, Final

from vhlo_tools.bindings import MLIRFailure, Module, Provider, get_provider
from vhlo_tools.findings import Diagnostic
from vhlo_tools.integrations.torch.repairs import mend
from vhlo_tools.records import dataclass

#: The names of :func:`convert` and :func:`convert_first` for calls in a child process.
CONVERT: Final = f"{__name__}:convert"
CONVERT_FIRST: Final = f"{__name__}:convert_first"

# The passes of `torch_mlir.fx.export_and_import`, which prints errors and leaves the module in a temporary file.
_TO_BACKEND: Final = "func.func(torch-match-quantized-custom-ops),torchdynamo-export-to-torch-backend-pipeline"
_TO_STABLEHLO: Final = "torch-backend-to-stablehlo-backend-pipeline"
_OPS: Final = ("torch.aten.", "torch.prims.", "torch.operator", "torch.runtime.", "torch.torchvision.")


@dataclass(frozen=True, slots=True)
class Converted:
    bytecode: bytes | None  # of torch-mlir's own version; None if the conversion failed
    diagnostics: tuple[Diagnostic, ...] = ()
    left: tuple[str, ...] = ()  # the torch ops that a failure left in the module


def convert(data: bytes | memoryview) -> tuple[Any, ...]:
    """Convert the bytecode of a module of torch's dialect, and return the fields of :class:`Converted`."""
    provider = get_provider("torch_mlir")
    converted = _converted(provider, provider.parse(new_context(provider), bytes(data)))
    return converted.bytecode, converted.diagnostics, converted.left


def convert_first(data: bytes | memoryview, number: int) -> None:
    """Convert the first ``number`` of the :func:`named_ops`, in order to see whether that exceeds a limit."""
    provider = get_provider("torch_mlir")
    module = provider.parse(new_context(provider), bytes(data))
    _truncate(module, provider, number)
    _converted(provider, module)


def new_context(provider: Provider) -> Any:
    context = provider.ir.Context()
    provider.module("dialects.torch").register_dialect(context)
    # As exceptions alone, diagnostics would be lost if a pass continues after one.
    context.emit_error_diagnostics = True
    return context


def bytecode_of(module: Module) -> bytes:
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()


def named_ops(module: Module, provider: Provider) -> list[Any]:
    """Return the ops of ``main`` that stand for ops of the program."""
    return [op for op in _main(module).regions[0].blocks[0].operations if str(op.name).startswith(_OPS)]


def _converted(provider: Provider, module: Module) -> Converted:
    for pipeline in (_TO_BACKEND, _TO_STABLEHLO):
        try:
            provider.run_passes(module, pipeline, verify=True)
        except MLIRFailure as failure:
            left = dict.fromkeys(str(op.name) for op in provider.walk(module))
            return Converted(None, failure.diagnostics, tuple(each for each in left if each.startswith(_OPS)))
    mend(module, provider)
    return Converted(bytecode_of(module))


def _main(module: Module) -> Any:
    (main,) = module.body.operations
    return main


def _truncate(module: Module, provider: Provider, number: int) -> None:
    """Remove the ops of ``main`` after the first ``number`` that stand for ops of the program."""
    ir, main = provider.ir, _main(module)
    block = main.regions[0].blocks[0]
    ops = list(block.operations)
    last = named_ops(module, provider)[number - 1]
    results = list(last.results)
    place = next(at for at, op in enumerate(ops) if op == last.operation)
    for op in reversed(ops[place + 1 :]):
        op.operation.erase()
    with module.context, ir.Location.unknown():
        ir.Operation.create("func.return", operands=results, ip=ir.InsertionPoint(block))
        type_ = main.attributes["function_type"].value
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(type_.inputs, [each.type for each in results])
        )
