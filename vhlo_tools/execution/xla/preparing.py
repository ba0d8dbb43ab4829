"""Preparation of programs for XLA: static shapes, quantized tensors as stored, and no tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, Opaque, Signature, leaves
from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.execution.reference.isolated import bytecode_of, call_isolated
from vhlo_tools.execution.reference.lowering.bounds import has_bounds, release_bounds
from vhlo_tools.execution.reference.lowering.dynamic_shapes import is_dynamic
from vhlo_tools.execution.reference.lowering.quantization import is_quantized, store_quantized
from vhlo_tools.execution.reference.refining import refine_shapes
from vhlo_tools.execution.values.arrays import ArgumentType, TokenType, ValueType, parse_value_type
from vhlo_tools.execution.values.main_function import main_of
from vhlo_tools.execution.xla.bounded import OpenDimensions, open_dimensions, return_sizes, runs_bounded
from vhlo_tools.execution.xla.unsupported import check_ops
from vhlo_tools.execution.xla.workarounds import work_around
from vhlo_tools.legalize import make_plain
from vhlo_tools.program import Program, explain_failure, load_program, read_module_aliases, write_module_aliases
from vhlo_tools.records import dataclass

_REWRITE: Final = "vhlo_tools.execution.xla.preparing:rewrite_here"
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
    _, results = _signature(main_of(module, name))
    check_ops(provider, module, name)
    if _is_rewritten(provider.text(module, largest_constant=0)):
        # In a child process, because the passes crash on some programs.
        whole = memoryview(bytecode_of(provider, module))
        module = provider.parse(
            provider.new_context(),
            call_isolated(_REWRITE, name, whole, provider.prefix, name, [tuple(shape) for shape in shapes], bounded),
        )
        check_ops(provider, module, name)
    else:
        _drop_tokens(provider, module, main_of(module, name))
    work_around(provider, module, name)
    _, given = _signature(main_of(module, name))
    opened = open_dimensions(results)
    pending = iter([each for each in given if isinstance(each, ArgumentType)])
    types = tuple(None if isinstance(each, TokenType) else next(pending) for each in results)
    # Without sizes, the results have the shapes that follow from those of the inputs.
    return PreparedForXla(module, types, opened if any(pending) else ((),) * len(opened))


def rewrite_here(
    bytecode: memoryview, provider: str, name: str, shapes: Sequence[tuple[int, ...]], bounded: bool = False
) -> bytes:
    """Called in a child process, because the passes crash on some programs."""
    program = load_program(bytes(bytecode), name=name, provider=provider, trusted=True)
    bindings = program.provider
    module = bindings.as_module(program.load())
    text = bindings.text(module, largest_constant=0)
    try:
        if has_bounds(text) or is_quantized(text) or _RESOURCE in text or _COMPILED.search(text):
            module = bindings.as_module(make_plain(bindings, module, name))
        if has_bounds(text) and bounded and not is_quantized(text):
            main = main_of(module, name)
            arguments, results = _signature(main)
            if runs_bounded(bindings, module, arguments):
                _drop_tokens(bindings, module, main)
                return_sizes(bindings, module, main, results)
                return bytecode_of(bindings, module)
        if has_bounds(text):
            release_bounds(bindings, module, name)
        if is_quantized(text):
            store_quantized(bindings, module, name)
    except MLIRFailure as failure:
        said = explain_failure(name, bindings, failure)
        raise EngineError(f"{name} cannot be rewritten for XLA: {said}", failure.diagnostics) from failure
    main = main_of(module, name)
    arguments, _ = _signature(main)
    _drop_tokens(bindings, module, main)
    tensors = [each for each in arguments if isinstance(each, ArgumentType)]
    refine_shapes(program, module, [each.with_shape(shape) for each, shape in zip(tensors, shapes, strict=True)])
    return bytecode_of(bindings, module)


def _is_rewritten(text: str) -> bool:
    plain = not (has_bounds(text) or is_quantized(text) or is_dynamic(text))
    return not plain or _RESOURCE in text or _COMPILED.search(text) is not None


def _is_token(type_: Any) -> bool:
    return isinstance(parse_value_type(str(type_)), TokenType)


def _signature(main: Operation) -> tuple[list[ValueType], list[ValueType]]:
    function_type = main.attributes["function_type"].value
    arguments, results = function_type.inputs, function_type.results
    return [parse_value_type(str(each)) for each in arguments], [parse_value_type(str(each)) for each in results]


def _drop_tokens(provider: Provider, module: Module, main: Operation) -> None:
    """Token arguments become ops in the body of ``main``."""
    function_type = main.attributes["function_type"].value
    if not any(_is_token(each) for each in (*function_type.inputs, *function_type.results)):
        return
    ir, config = provider.ir, _without_tokens(read_module_aliases(module.operation).config())
    block = main.regions[0].blocks[0]
    with main.context, main.location:
        with ir.InsertionPoint.at_block_begin(block):
            for number, argument in reversed(list(enumerate(block.arguments))):
                if _is_token(argument.type):
                    made = ir.Operation.create("stablehlo.after_all", results=[argument.type])
                    argument.replace_all_uses_with(made.result)
                    block.erase_argument(number)
        terminator = block.operations[len(block.operations) - 1]
        kept = [each for each in terminator.operands if not _is_token(each.type)]
        with ir.InsertionPoint(terminator):
            ir.Operation.create("func.return", operands=kept)
        terminator.operation.erase()
        # A run depends on no attributes of arguments and results, except aliases.
        for name in ("arg_attrs", "res_attrs"):
            if name in main.attributes:
                del main.attributes[name]
        types = [each.type for each in block.arguments], [each.type for each in kept]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    write_module_aliases(module.operation, config, provider=provider)


def _without_tokens(config: AliasConfig) -> AliasConfig:
    parameters = [number for number, each in enumerate(config.signature.parameters) if not isinstance(each, Opaque)]
    results = [(index, each) for index, each in leaves(config.signature.result) if not isinstance(each, Opaque)]
    places = {index: () if len(results) == 1 else (number,) for number, (index, _) in enumerate(results)}
    signature = Signature.of_results(
        tuple(config.signature.parameters[number] for number in parameters), tuple(shape for _, shape in results)
    )
    return AliasConfig(
        signature,
        [
            Alias(places[each.output_index], parameters.index(each.parameter_number), (), each.kind)
            for each in config.aliases
        ],
        [Donor(parameters.index(each.parameter_number)) for each in config.donors],
    )
