"""Convert programs whose weights are inputs to StableHLO, by torch-mlir."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings import Module, Provider, get_provider, isolation, source_of
from vhlo_tools.errors import EngineError, EngineStartError, EngineTimeoutError, InvalidProgramError
from vhlo_tools.integrations.torch.export_errors import data_dependent, explained, failing_ops, first_words
from vhlo_tools.integrations.torch.graph_edits import wrap_indices
from vhlo_tools.integrations.torch.torch_mlir_conversion import (
    CONVERT,
    CONVERT_FIRST,
    Converted,
    bytecode_of,
    convert,
    named_ops,
    new_context,
)

if TYPE_CHECKING:
    from vhlo_tools.integrations.torch.lifting import Lifted

# If more torch ops than this remain, one of the first passes failed, and the remaining ops are not the cause.
_FEW: Final = 8
# The share of the limits that the first ops of a program may use while the op that exceeds them is sought, with bounds
# in seconds and in bytes: starting takes some of both.
_SHARE: Final = 4
_SECONDS: Final = (3.0, 10.0)
_MEMORY: Final = 512 << 20


def decompositions() -> dict[Any, Callable[..., Any]]:
    from vhlo_tools.integrations.torch import torch_mlir_decompositions

    return torch_mlir_decompositions.decompositions()


def import_program(lifted: Lifted, name: str, limits: isolation.Limits) -> Module:
    """Return a module whose ``main`` takes all inputs and weights; the graph of ``lifted`` is consumed.

    The passes of torch-mlir run in a child process, because few ops can take all the memory of a machine.
    """
    from torch_mlir.extras.fx_importer import FxImporter

    wrap_indices(lifted.program.graph)
    provider = get_provider("torch_mlir")
    importer = FxImporter(context=new_context(provider))
    with explained(f"torch-mlir cannot import {name}"):
        importer.import_frozen_program(lifted.program, func_name="main")
    module: Module = importer.module
    data = bytecode_of(module)
    try:
        converted = Converted(*(isolation.call(CONVERT, data, limits=limits) if isolation.AVAILABLE else convert(data)))
    except EngineStartError:
        raise
    except EngineError as error:
        raise _exceeded(name, module, provider, data, limits, error) from error
    if converted.bytecode is None:
        raise _refusal(lifted, converted, name)
    return provider.parse(provider.new_context(), converted.bytecode)


def _exceeded(
    name: str, module: Module, provider: Provider, data: bytes, limits: isolation.Limits, error: EngineError
) -> InvalidProgramError:
    """The error names the op that makes the child process fail."""
    op = _failing_op(named_ops(module, provider), data, limits)
    said = f"torch-mlir cannot convert {name} to StableHLO"
    if op is not None:
        source = source_of(op.location)
        said += f": {str(op.name).removeprefix('torch.')}" + (f" at {source}" if source else "")
    remedy = "install and use the importer torchax"
    if isinstance(error, EngineTimeoutError):
        remedy = f"raise the limit, import_timeout= (--import-timeout), or {remedy}"
    elif "memory" in str(error):
        remedy = f"raise the limit, import_memory= (--import-memory), or {remedy}"
    return InvalidProgramError(f"{said}: {error}; {remedy}")


def _failing_op(ops: Sequence[Any], data: bytes, limits: isolation.Limits) -> Any:
    """Return the first op with which a program fails within smaller limits; ``None`` if it does not fail then."""
    least, most = _SECONDS
    smaller = isolation.Limits(
        seconds=min(max(least, (limits.seconds or most) / _SHARE), most),
        memory=limits.memory and max(_MEMORY, limits.memory // _SHARE),
        output=limits.output,
    )

    def fails(number: int) -> bool:
        try:
            isolation.call(CONVERT_FIRST, data, number, limits=smaller)
        except EngineStartError:
            raise
        except EngineError:
            return True
        return False

    if not ops or not fails(len(ops)):
        return None
    low, high = 0, len(ops)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle, high)
    return ops[high - 1]


def _refusal(lifted: Lifted, converted: Converted, name: str) -> InvalidProgramError:
    """The error names the ops that torch-mlir could not convert to StableHLO."""
    named = failing_ops(converted.diagnostics)
    reasons = dict.fromkeys(
        first_words(each.message) for each in converted.diagnostics if not each.message.startswith("failed to legalize")
    )
    # Often the diagnostics name only the constant operands of the failing op, which is still in the module.
    left = [each.removeprefix("torch.") for each in converted.left]
    if unknown := data_dependent(lifted.program):
        said = f"{unknown} returns a shape that depends on values"
    elif named:
        said = "; ".join(f"{op} at {found.source}" if found.source else op for op, found in named.items())
    else:
        said = "; ".join(left) if left and len(left) <= _FEW else "an op that it does not report"
    if reasons:
        said += f" ({'; '.join(reasons)})"
    return InvalidProgramError(f"torch-mlir cannot convert {name} to StableHLO: {said}", converted.diagnostics)
