"""Preparation of programs for XLA, and errors before XLA would crash."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

import numpy as np

from vhlo_tools.aliasing import Alias, AliasConfig, Donor
from vhlo_tools.bindings import CALLEES, Module, Operation, Provider, XlaFailure, function_of
from vhlo_tools.conversion import make_plain
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.handlers import refusal
from vhlo_tools.execution.isolated import bytecode_of, call_isolated, module_here
from vhlo_tools.execution.lowering.patterns import apply_required
from vhlo_tools.execution.lowering.shapes import has_bounds, is_dynamic, refine, release_bounds
from vhlo_tools.execution.lowering.types import is_quantized, store_quantized
from vhlo_tools.execution.op_traits import OP_TRAITS
from vhlo_tools.execution.reference.preparation import TOO_LARGE, is_too_large
from vhlo_tools.execution.values import (
    ArgumentType,
    TokenType,
    ValueType,
    explained,
    flat_config,
    main_of,
    parse_value_type,
    retype_main,
    signature_of,
)
from vhlo_tools.execution.xla.workarounds import WORKAROUNDS, hide_constants
from vhlo_tools.printable import printable
from vhlo_tools.program import Program, read_module_aliases, write_module_aliases
from vhlo_tools.records import dataclass

# Limits of XLA: programs on which its compiler or the compiled code crashes, detected before XLA gets them
#
# Determined by experiments with jaxlib 0.10.2 and 0.12.0.1: the limits are not documented.

#: XLA's recursion in jaxlib 0.10.2 survives between 200 and 250 levels of regions and calls, and needs minutes for as
#: many. That of 0.12.0.1 survives more calls and 300 branches, which take half a minute, and not 1,000.
_DEEPEST: Final = 100
#: XLA compiles a program of so many ops in some minutes.
_MOST_OPS: Final = 1_000_000


class CallGraph:
    """``recursive`` has the functions that call themselves, directly or indirectly."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        self._ops: Counter[str] = Counter()
        self._levels: defaultdict[str, int] = defaultdict(int)
        self._calls: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
        for op in ops:
            if str(op.name) in ("builtin.module", "func.func") or op.operation.parent.name == "builtin.module":
                continue
            name, level = function_of(op), _level(op)
            self._ops[name] += 1
            self._levels[name] = max(self._levels[name], level)
            if str(op.name) in CALLEES:
                self._calls[name].append((str(op.attributes[CALLEES[str(op.name)]].value), level))
        self.recursive: frozenset[str] = frozenset()
        try:
            graph = {name: {callee for callee, _ in calls} for name, calls in self._calls.items()}
            self._order = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            self._order, self.recursive = [], frozenset(error.args[1])

    def exceeded_limit(self) -> str | None:
        """The limit after all calls are inlined."""
        ops, levels = Counter(self._ops), dict(self._levels)
        for name in self._order:
            for callee, level in self._calls[name]:
                ops[name] += ops[callee]
                levels[name] = max(levels.get(name, 0), level + levels.get(callee, 0))
        if max(levels.values(), default=0) > _DEEPEST:
            return f"regions and calls are nested more than {_DEEPEST} levels deep, and deeper nesting crashes XLA"
        if (most := max(ops.values(), default=0)) > _MOST_OPS:
            return f"it has {most} ops after XLA inlines all calls: the limit is {_MOST_OPS}"
        return None


def _level(op: Any) -> int:
    """Counted only up to the limit."""
    level, parent = 1, op.operation.parent
    while parent.name != "func.func" and level <= _DEEPEST:
        level, parent = level + 1, parent.parent
    return level


# Programs that XLA for the CPU cannot run: errors before XLA hangs, and errors that name the op

#: Ops that XLA does not implement on a CPU, or at which it waits forever.
_OPS: Final[Mapping[str, str]] = {name: traits.xla_gap for name, traits in OP_TRAITS.items() if traits.xla_gap}
_OF_SIX_BITS: Final = re.compile("[<x]f6E")
_OF_TWO_BITS: Final = re.compile(r"[<x]u?i2[,>]")
#: A name with a line end, as MLIR prints it, and what stands for a byte of it.
_NAME: Final = re.compile(r'"([^"]*\\0A[^"]*)"')
_ESCAPE: Final = re.compile(r"\\([0-9A-F]{2})")
#: Element types that older releases of XLA lack.
_NARROW: Final = re.compile(r"(f4E2M1FN|f6E2M3FN|f6E3M2FN)\b")


def check_ops(provider: Provider, module: Any, name: str) -> None:
    ops = provider.walk(module)
    graph = CallGraph(ops)
    for op in ops:
        if reason := _reason(provider, op, graph.recursive):
            raise refusal(op, name, reason, "the engine xla")
    if limit := graph.exceeded_limit():
        raise EngineError(f"{name}: the engine xla cannot run it: {limit}")


def _reason(provider: Provider, op: Operation, recursive: frozenset[str]) -> str | None:
    name = str(op.name)
    if name == "func.func" and not len(op.regions[0].blocks):
        return "the function is declared, but not defined"
    if name == "func.call" and str(op.attributes["callee"].value) in recursive:
        return "it calls a recursive function, and XLA inlines all calls"
    if name == "stablehlo.constant" and provider.is_in_resource(op):
        return "the program does not contain the bytes of its dense_resource"
    if name.startswith("stablehlo.") and any(
        _OF_SIX_BITS.search(str(each.type)) for each in (*op.operands, *op.results)
    ):
        return "XLA does not support 6-bit floats on a CPU; the engine reference does"
    if name in ("stablehlo.sort", "stablehlo.reduce"):
        of_two_bits = {bool(_OF_TWO_BITS.search(str(each.type))) for each in op.operands}
        if True in of_two_bits and name == "stablehlo.sort":
            return "XLA treats a byte of packed two-bit elements as one element; use the engine reference"
        if len(of_two_bits) > 1:
            return "XLA does not reduce elements of two bits beside others; use the engine reference"
    if any(map(is_too_large, op.results)):
        return TOO_LARGE
    return _OPS.get(name)


def refused(program: Program, failure: XlaFailure) -> EngineError:
    said = said_by_xla(program, failure)
    if narrow := sorted(set(_NARROW.findall(program.provider.text(program.load())))):
        return EngineError(
            f"{program.name}: XLA in {program.provider.library.name} does not support elements of "
            f"{' and '.join(narrow)}: use the engine reference",
            said=said,
        )
    if said.startswith("UNIMPLEMENTED"):
        return EngineError(
            f"{program.name} contains something that XLA does not implement on a CPU, use the engine reference",
            said=said,
        )
    return EngineError(f"XLA cannot compile {program.name}", said=said)


def said_by_xla(program: Program, failure: XlaFailure) -> str:
    """Its words, in which the line ends of names in the program are escaped, and no others."""
    text = program.provider.text(program.load(), debug_info=True, largest_constant=16)
    # MLIR prints bytes that are not ASCII as escapes, too.
    escaped = {_ESCAPE.sub(lambda found: chr(int(found[1], 16)), each) for each in _NAME.findall(text)}
    names = [each.encode("latin-1", "ignore").decode(errors="replace") for each in escaped]
    said = str(failure)
    for name in sorted(names, key=len, reverse=True):
        said = said.replace(name, printable(name))
    return said


# Programs with bounded dimensions, which XLA runs as they are: with the memory of the bounds, and sizes beside it
#
# Results of bounded sizes are returned in full, followed by their sizes, and are cut to these afterwards. Source:
# ``xla/service/dynamic_padder.cc`` in openxla/xla.

#: The dimensions of each array result whose sizes follow the results.
OpenDimensions = tuple[tuple[int, ...], ...]

_SIGN: Final = "#stablehlo.bounds<"


def runs_bounded(provider: Provider, module: Module, arguments: Iterable[ValueType]) -> bool:
    """Arguments must be static, and each other dimension known or bounded."""
    if any(isinstance(each, ArgumentType) and not each.is_static for each in arguments):
        return False
    types = (result.type for op in provider.walk(module) for result in op.results)
    return all(_is_bounded(each) for each in types if isinstance(each, provider.ir.RankedTensorType))


def _is_bounded(type_: Any) -> bool:
    if type_.has_static_shape:
        return True
    text = str(type_)
    if _SIGN not in text:
        return False
    bounds = text.partition(_SIGN)[2].partition(">")[0].split(",")
    return all(bound.strip() != "?" for axis, bound in enumerate(bounds) if type_.is_dynamic_dim(axis))


def open_dimensions(results: Iterable[ValueType]) -> OpenDimensions:
    return tuple(
        tuple(axis for axis, size in enumerate(each.shape) if size is None)
        for each in results
        if isinstance(each, ArgumentType)
    )


def return_sizes(provider: Provider, module: Module, main: Operation, results: Sequence[ValueType]) -> None:
    """Bounded results are returned in full, followed by their sizes."""
    arrays = [each for each in results if isinstance(each, ArgumentType)]
    if all(each.is_static for each in arrays):
        return
    ir = provider.ir
    terminator = list(main.regions[0].blocks[0].operations)[-1].operation
    config = read_module_aliases(module.operation).config()
    with main.context, main.location, ir.InsertionPoint(terminator):

        def make(name: str, operands: Sequence[Any], type_: Any, **attributes: Any) -> Any:
            return ir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes).result

        i32 = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
        i64 = ir.IntegerType.get_signless(64)
        returned, sizes = [], []
        for value, type_ in zip(terminator.operands, arrays, strict=True):
            shape = [bound if size is None else size for size, bound in zip(type_.shape, type_.bounds, strict=True)]
            for axis in (axis for axis, size in enumerate(type_.shape) if size is None):
                dimension = ir.IntegerAttr.get(i64, axis)
                sizes.append(make("stablehlo.get_dimension_size", [value], i32, dimension=dimension))
                full = ir.DenseElementsAttr.get(np.int32(shape[axis] or 0), type=i32.element_type, shape=[])
                bound = make("stablehlo.constant", [], i32, value=full)
                value = make(
                    "stablehlo.set_dimension_size",
                    [value, bound],
                    _closed(provider, value.type, axis, shape),
                    dimension=dimension,
                )
            returned.append(value)
        ir.Operation.create("func.return", operands=[*returned, *sizes])
        terminator.erase()
        retype_main(ir, main, main.regions[0].blocks[0].arguments, (*returned, *sizes))
    _keep_static_aliases(provider, module, config, open_dimensions(arrays))


def _closed(provider: Provider, type_: Any, axis: int, shape: Sequence[int | None]) -> Any:
    """The type with the bounded dimension ``axis`` at its full size."""
    ir = provider.ir
    sizes = [shape[at] if at == axis else size for at, size in enumerate(type_.shape)]
    left = [at for at, size in enumerate(sizes) if size == ir.ShapedType.get_dynamic_size()]
    if not left:
        return ir.RankedTensorType.get(sizes, type_.element_type)
    bounds = ", ".join(str(shape[at]) if at in left else "?" for at in range(len(sizes)))
    return ir.RankedTensorType.get(sizes, type_.element_type, ir.Attribute.parse(f"#stablehlo.bounds<{bounds}>"))


def _keep_static_aliases(provider: Provider, module: Module, config: AliasConfig, opened: OpenDimensions) -> None:
    """The sizes after the results make one result a list of several, so aliases are written anew."""
    aliases = []
    for each in config.aliases:
        number = each.output_index[0] if each.output_index else 0
        if not opened[number]:
            aliases.append(Alias((number,), each.parameter_number, each.parameter_index, each.kind))
    signature = read_module_aliases(module.operation).signature
    donors: Sequence[Donor] = config.donors
    write_module_aliases(module.operation, AliasConfig(signature, aliases, donors), "module", provider=provider)


# Preparation of programs for XLA: static shapes, quantized tensors as stored, and no tokens

_REWRITE: Final = "vhlo_tools.execution.xla.preparation:rewrite_here"
_RESOURCE: Final = "dense_resource"
#: Ops in programs that XLA has compiled, which it does not compile again.
_COMPILED: Final = re.compile(r"mhlo\.(bitcast|fusion)\b")


@dataclass(frozen=True, slots=True)
class PreparedForXla:
    module: Module  # its main has only arrays of static shapes
    results: tuple[ArgumentType | None, ...]  # of the program's own main, in full; None for a token
    opened: OpenDimensions  # bounded dimensions of each array result, whose sizes follow the results


def prepared(program: Program, shapes: Sequence[tuple[int, ...]], *, bounded: bool = False) -> PreparedForXla:
    """If ``bounded`` dimensions may remain, results are followed by their sizes."""
    provider, name = program.provider, program.name
    module = provider.as_module(program.load())
    _, results = signature_of(main_of(module, name))
    check_ops(provider, module, name)
    text = provider.text(module, largest_constant=0)
    if has_bounds(text) or is_quantized(text) or is_dynamic(text) or _RESOURCE in text or _COMPILED.search(text):
        # In a child process, because the passes crash on some programs.
        whole = memoryview(bytecode_of(provider, module))
        module = provider.parse(
            provider.new_context(),
            call_isolated(_REWRITE, name, whole, provider.prefix, name, [tuple(shape) for shape in shapes], bounded),
        )
        check_ops(provider, module, name)
    else:
        _drop_tokens(provider, module, name)
    apply_required(provider, module, WORKAROUNDS, name)
    hide_constants(provider, module)
    _, given = signature_of(main_of(module, name))
    opened = open_dimensions(results)
    pending = iter([each for each in given if isinstance(each, ArgumentType)])
    types = tuple(None if isinstance(each, TokenType) else next(pending) for each in results)
    # Without sizes, the results have the shapes that follow from those of the inputs.
    return PreparedForXla(module, types, opened if any(pending) else ((),) * len(opened))


def rewrite_here(
    bytecode: memoryview, provider: str, name: str, shapes: Sequence[tuple[int, ...]], bounded: bool = False
) -> bytes:
    """Called in a child process, because the passes crash on some programs."""
    bindings, module = module_here(bytecode, provider, name)
    text = bindings.text(module, largest_constant=0)
    with explained(bindings, name, "cannot be rewritten for XLA"):
        if has_bounds(text) or is_quantized(text) or _RESOURCE in text or _COMPILED.search(text):
            module = bindings.as_module(make_plain(bindings, module, name))
        if has_bounds(text) and bounded and not is_quantized(text):
            main = main_of(module, name)
            arguments, results = signature_of(main)
            if runs_bounded(bindings, module, arguments):
                _drop_tokens(bindings, module, name)
                return_sizes(bindings, module, main, results)
                return bytecode_of(bindings, module)
        if has_bounds(text):
            release_bounds(bindings, module, name)
        if is_quantized(text):
            store_quantized(bindings, module, name)
    arguments, _ = signature_of(main_of(module, name))
    _drop_tokens(bindings, module, name)
    tensors = [each for each in arguments if isinstance(each, ArgumentType)]
    types = [each.with_shape(shape).text for each, shape in zip(tensors, shapes, strict=True)]
    if is_dynamic(bindings.text(module, largest_constant=0)):
        with explained(bindings, name, "does not match these inputs"):
            refine(bindings, module, types)
    return bytecode_of(bindings, module)


def _is_token(value: Any) -> bool:
    return isinstance(parse_value_type(str(value.type)), TokenType)


def _drop_tokens(provider: Provider, module: Module, name: str) -> None:
    """Token arguments become ops in the body of ``main``."""
    main = main_of(module, name)
    if not any(isinstance(each, TokenType) for types in signature_of(main) for each in types):
        return
    ir, config = provider.ir, flat_config(read_module_aliases(module.operation).config(), tokens=False)
    block = main.regions[0].blocks[0]
    with main.context, main.location:
        with ir.InsertionPoint.at_block_begin(block):
            for number, argument in reversed(list(enumerate(block.arguments))):
                if _is_token(argument):
                    made = ir.Operation.create("stablehlo.after_all", results=[argument.type])
                    argument.replace_all_uses_with(made.result)
                    block.erase_argument(number)
        terminator = block.operations[len(block.operations) - 1]
        kept = [each for each in terminator.operands if not _is_token(each)]
        with ir.InsertionPoint(terminator):
            ir.Operation.create("func.return", operands=kept)
        terminator.operation.erase()
        retype_main(ir, main, block.arguments, kept)
    write_module_aliases(module.operation, config, provider=provider)
