"""Import of PyTorch programs by torch-mlir."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.bindings import MLIRFailure, Module, Provider, get_provider, isolation, source_of
from vhlo_tools.errors import EngineError, EngineStartError, EngineTimeoutError, InvalidProgramError
from vhlo_tools.findings import Diagnostic
from vhlo_tools.integrations.proof import first_words
from vhlo_tools.integrations.torch.export_errors import (
    data_dependent,
    described,
    explained,
    failing_ops,
    is_users,
    mend,
)
from vhlo_tools.integrations.torch.graphs import wrap_indices
from vhlo_tools.integrations.torch.refused_ops import refuse_listed
from vhlo_tools.records import dataclass

if TYPE_CHECKING:
    import torch

    from vhlo_tools.integrations.torch.lifting import Lifted

# Decompositions of torch ops for torch-mlir: its own table, with corrections and additions


def decompositions() -> dict[Any, Callable[..., Any]]:
    import torch
    from torch._decomp import get_decompositions
    from torch_mlir.extras.fx_decomp_util import get_decomposition_table

    aten, bytes_ = torch.ops.aten, (torch.bool, torch.uint8)
    return {
        **get_decomposition_table(),
        # Otherwise they are exported unchanged, and then rejected.
        **get_decompositions([aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d]),
        # torch-mlir squares numbers of 16 bits as such, and torch in float32.
        **get_decompositions([aten._fused_rms_norm]),
        aten.rms_norm.default: _rms_norm,
        # torch-mlir 20261001 returns the sign of the dividend, as fmod does.
        aten.remainder.Tensor: _remainder,
        aten.remainder.Scalar: _remainder,
        aten.remainder.Scalar_Tensor: _remainder,
        aten.fmod.Scalar: lambda dividend, divisor: torch.fmod(*_tensors(dividend, divisor)),
        # All sorts are stable: mend().
        aten.sort.stable: lambda value, *, stable=None, dim=-1, descending=False: torch.sort(value, dim, descending),
        aten.div.Tensor_mode: _divide,
        aten.div.Scalar_mode: _divide,
        aten.floor_divide.default: partial(_divide, rounding_mode="floor"),
        aten.copysign.Tensor: _copysign,
        aten.copysign.Scalar: _copysign,
        aten.sign.default: _sign,
        aten.max_pool2d_with_indices.default: _max_pool,
        aten.max_pool3d_with_indices.default: _max_pool,
        aten.clamp.Tensor: _clamp,
        aten.clamp_min.Tensor: _clamp,
        aten.clamp_max.Tensor: lambda value, most: _clamp(value, None, most),
        # torch-mlir shifts bytes, and starts their extrema, as if they were signed; of booleans it has other places.
        **{
            op: partial(_through, torch.int32, bytes_, op)
            for op in (
                *(aten.max.default, aten.max.dim, aten.min.default, aten.min.dim, aten.bitwise_right_shift.Tensor),
                *(aten.amax.default, aten.amin.default, aten.argmax.default, aten.argmin.default),
            )
        },
        # It returns the bits of bytes for whether they are set.
        **{op: partial(_through, torch.bool, bytes_, op) for op in (aten.any.default, aten.any.dim, aten.all.dim)},
        # It adds numbers of 16 bits as such, so that the sum of 5000 ones of bfloat16 is 256.
        **{
            op: partial(_through, torch.float32, (torch.float16, torch.bfloat16), op)
            for op in (
                *(aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim, aten.cumsum.default),
                *(aten.prod.default, aten.prod.dim_int, aten.linalg_vector_norm.default),
                *(aten.avg_pool1d.default, aten.avg_pool2d.default, aten.avg_pool3d.default),
            )
        },
    }


def _rms_norm(value: torch.Tensor, shape: Any, weight: torch.Tensor | None = None, eps: float | None = None) -> Any:
    import torch

    return torch.ops.aten._fused_rms_norm(value, shape, weight, eps)[0]


def _divide(dividend: Any, divisor: Any, *, rounding_mode: str | None) -> torch.Tensor:
    """torch-mlir rounds quotients of integers down as floats, which hold fewer digits."""
    import torch

    one, other = _tensors(dividend, divisor)
    if rounding_mode != "floor":
        return NotImplemented
    if one.dtype.is_floating_point:
        # The floor of a quotient that is rounded to the next integer is too large.
        rest = torch.fmod(one, other)
        exact = (one - rest) / other
        exact = torch.where((rest != 0) & ((rest < 0) != (other < 0)), exact - 1, exact)
        floor = torch.floor(exact)
        floor = torch.where(exact - floor > 0.5, floor + 1, floor)
        return torch.where(other == 0, one / other, torch.where(exact == 0, one / other * 0, floor))
    quotient = torch.div(one, other, rounding_mode="trunc")
    rest = one - quotient * other
    return torch.where((rest != 0) & ((rest < 0) != (other < 0)), quotient - 1, quotient)


def _copysign(value: Any, sign: Any) -> torch.Tensor:
    """torch-mlir changes the sign of integers before it converts them."""
    import torch

    if value.dtype.is_floating_point:
        return NotImplemented
    kind = torch.get_default_dtype()
    return torch.copysign(value.to(kind), sign.to(kind) if isinstance(sign, torch.Tensor) else sign)


def _max_pool(
    value: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    """With ``ceil_mode``, torch-mlir pads both ends; pad here, behind alone, and count places without the padding."""
    import torch

    rank, given = len(kernel), stride
    padding, dilation, stride = (
        list(each) * (rank if len(each) == 1 else 1) for each in (padding, dilation, stride or kernel)
    )
    pool = torch.ops.aten.max_pool2d_with_indices if rank == len("hw") else torch.ops.aten.max_pool3d_with_indices
    if value.ndim == rank + 1:
        # torch-mlir takes batches alone.
        both = pool(value.unsqueeze(0), kernel, stride, padding, dilation, ceil_mode)
        return tuple(each.squeeze(0) for each in both)
    if not ceil_mode:
        # torch-mlir takes an absent stride for one of 1.
        return NotImplemented if given else pool(value, kernel, stride, padding, dilation)
    sizes, behind = value.shape[-rank:], []
    for size, window, step, before, spread in zip(sizes, kernel, stride, padding, dilation, strict=True):
        reach = spread * (window - 1) + 1
        count = -(-(size + 2 * before - reach) // step) + 1
        count -= int((count - 1) * step >= size + before)
        behind.append(max(0, (count - 1) * step + reach - size - before))
    lowest = float("-inf") if value.dtype.is_floating_point else torch.iinfo(value.dtype).min
    around = [each for pair in zip(reversed(padding), reversed(behind), strict=True) for each in pair]
    padded = torch.constant_pad_nd(value, around, lowest)
    maxima, rest = pool(padded, kernel, stride, [0] * rank, dilation)
    place, unit = torch.zeros_like(rest), 1
    for size, whole, before in reversed(list(zip(sizes, padded.shape[-rank:], padding, strict=True))):
        quotient = torch.div(rest, whole, rounding_mode="trunc")
        place = place + (rest - quotient * whole - before) * unit
        rest, unit = quotient, unit * size
    return maxima, place


def _clamp(value: torch.Tensor, least: torch.Tensor | None = None, most: torch.Tensor | None = None) -> torch.Tensor:
    """torch-mlir has True for the least boolean, and lacks half of the forms."""
    import torch

    raised = value if least is None else torch.maximum(value, least)
    return raised if most is None else torch.minimum(raised, most)


def _through(other: torch.dtype, kinds: Sequence[torch.dtype], op: Any, *args: Any, **kwargs: Any) -> Any:
    """Compute of another type what torch-mlir does wrong of some."""
    import torch

    kind = args[0].dtype
    if kind not in kinds or kind == other or kwargs.pop("dtype", None) not in (None, kind):
        return NotImplemented
    found = op(*(each.to(other) if isinstance(each, torch.Tensor) else each for each in args), **kwargs)
    return torch.utils._pytree.tree_map(lambda each: each.to(kind) if each.dtype == other else each, found)


def _sign(value: torch.Tensor) -> torch.Tensor:
    """torch-mlir has -1 for a NaN."""
    import torch

    if value.dtype.is_complex or value.dtype == torch.bool:
        return NotImplemented
    return (value > 0).to(value.dtype) - (value < 0).to(value.dtype)


def _remainder(dividend: Any, divisor: Any) -> torch.Tensor:
    import torch

    rest = torch.fmod(*_tensors(dividend, divisor))
    # A number is compared as such, not as a tensor: torch-mlir evaluates 0.3 < 0 as true.
    if isinstance(divisor, torch.Tensor):
        other_sign = (rest < 0) != (divisor < 0)
    else:
        other_sign = rest > 0 if divisor < 0 else rest < 0
    return torch.where((rest != 0) & other_sign, rest + divisor, rest)


def _tensors(one: Any, other: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both as tensors of torch's result type, in which tensors take precedence over numbers."""
    import torch

    kind = torch.result_type(one, other)
    device = next(each.device for each in (one, other) if isinstance(each, torch.Tensor))
    first, second = (
        each.to(kind) if isinstance(each, torch.Tensor) else torch.scalar_tensor(each, dtype=kind, device=device)
        for each in (one, other)
    )
    return first, second


# Convert modules of torch's dialect to StableHLO by the passes of torch-mlir, which run in a child process
#
# Nothing here imports torch, so that the child starts fast.

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


# Convert programs whose weights are inputs to StableHLO, by torch-mlir

# If more torch ops than this remain, one of the first passes failed, and the remaining ops are not the cause.
_FEW: Final = 8
# The share of the limits that the first ops of a program may use while the op that exceeds them is sought, with bounds
# in seconds and in bytes: starting takes some of both.
_SHARE: Final = 4
_SECONDS: Final = (3.0, 10.0)
_MEMORY: Final = 512 << 20


def import_program(lifted: Lifted, name: str, limits: isolation.Limits) -> Module:
    """Return a module whose ``main`` takes all inputs and weights; the graph of ``lifted`` is consumed.

    The passes of torch-mlir run in a child process, because few ops can take all the memory of a machine.
    """
    from torch._ops import HigherOrderOperator
    from torch_mlir.extras.fx_importer import FxImporter

    refuse_listed(lifted.program.graph_module, "torch-mlir", name)
    for node in lifted.program.graph.nodes:
        if isinstance(node.target, HigherOrderOperator):
            raise InvalidProgramError(
                f"torch-mlir cannot convert {name} to StableHLO: {described(node)} (it has no ops on functions)"
            )
    wrap_indices(lifted.program.graph)
    _rename_remainders(lifted.program.graph)
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


def _rename_remainders(graph: torch.fx.Graph) -> None:
    """Give fmod, in place, the name of the op that torch-mlir makes an fmod of, without a rounded quotient."""
    import torch

    for node in graph.nodes:
        if node.target is torch.ops.aten.fmod.Tensor:
            node.target = torch.ops.aten.remainder.Tensor


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
        said = "; ".join(f"{op} at {found.source}" if is_users(found.source) else op for op, found in named.items())
    else:
        said = "; ".join(left) if left and len(left) <= _FEW else "an op that it does not report"
    if reasons:
        said += f" ({'; '.join(reasons)})"
    return InvalidProgramError(f"torch-mlir cannot convert {name} to StableHLO: {said}", converted.diagnostics)
