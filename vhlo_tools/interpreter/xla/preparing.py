"""Programs made ready for XLA: of static shapes, with quantized tensors as they are stored, and without tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, Opaque, Signature, leaves
from vhlo_tools.bindings import MLIRFailure, Module, Operation, Provider
from vhlo_tools.errors import EngineError
from vhlo_tools.interpreter.entry import main_of
from vhlo_tools.interpreter.isolated import bytecode_of, call_isolated
from vhlo_tools.interpreter.lowering.bounds import has_bounds, release_bounds
from vhlo_tools.interpreter.lowering.quantization import is_quantized, store_quantized
from vhlo_tools.interpreter.lowering.shapes import is_dynamic
from vhlo_tools.interpreter.refining import refine_shapes
from vhlo_tools.interpreter.values import ArgumentType, TokenType, ValueType, parse_value_type
from vhlo_tools.interpreter.xla.lacking import check_ops
from vhlo_tools.interpreter.xla.mending import mend
from vhlo_tools.portable import make_plain
from vhlo_tools.program import Program, explain_failure, load_program, read_module_aliases, write_module_aliases

__all__ = ["Prepared", "prepared", "rewrite_here"]

_REWRITE: Final = "vhlo_tools.interpreter.xla.preparing:rewrite_here"
_RESOURCE: Final = "dense_resource"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program as XLA takes it.

    Attributes:
        module: It, whose ``main`` takes and gives only arrays of static shapes.
        results: What its own ``main`` gives; ``None`` for a token.
    """

    module: Module
    results: tuple[ArgumentType | None, ...]


def prepared(program: Program, shapes: Sequence[tuple[int, ...]]) -> Prepared:
    """Return a program for inputs of some shapes.

    Args:
        program: The program, whose ``main`` takes and gives arrays and tokens.
        shapes: The shape of each array that it takes.

    Raises:
        EngineError: If XLA cannot run it, or not with these inputs.
    """
    provider, name = program.provider, program.name
    module = provider.as_module(program.load())
    _, results = _signature(main_of(module, name))
    check_ops(provider, module, name)
    if _is_rewritten(provider.text(module, largest_constant=0)):
        # The passes do not survive everything.
        whole = memoryview(bytecode_of(provider, module))
        module = provider.parse(
            provider.new_context(),
            call_isolated(_REWRITE, name, whole, provider.prefix, name, [tuple(shape) for shape in shapes]),
        )
        check_ops(provider, module, name)
    else:
        _drop_tokens(provider, module, main_of(module, name))
    mend(provider, module, name)
    _, given = _signature(main_of(module, name))
    pending = iter([each for each in given if isinstance(each, ArgumentType)])
    return Prepared(module, tuple(None if isinstance(each, TokenType) else next(pending) for each in results))


def rewrite_here(bytecode: memoryview, provider: str, name: str, shapes: Sequence[tuple[int, ...]]) -> bytes:
    """Return a program with static shapes and without tokens, rewritten in this process.

    Args:
        bytecode: The program.
        provider: The import prefix of the bindings.
        name: What to call it in messages.
        shapes: The shape of each array that it takes.

    Raises:
        EngineError: If it cannot be rewritten, or does not fit.
    """
    program = load_program(bytes(bytecode), name=name, provider=provider, trusted=True)
    bindings = program.provider
    module = bindings.as_module(program.load())
    text = bindings.text(module, largest_constant=0)
    try:
        if has_bounds(text) or is_quantized(text) or _RESOURCE in text:
            module = bindings.as_module(make_plain(bindings, module, name))
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
    """Tell whether passes of the library are run on a program, which is printed as ``text``."""
    return has_bounds(text) or is_quantized(text) or is_dynamic(text) or _RESOURCE in text


def _is_token(kind: Any) -> bool:
    return isinstance(parse_value_type(str(kind)), TokenType)


def _signature(main: Operation) -> tuple[list[ValueType], list[ValueType]]:
    kind = main.attributes["function_type"].value
    return [parse_value_type(str(each)) for each in kind.inputs], [parse_value_type(str(each)) for each in kind.results]


def _drop_tokens(provider: Provider, module: Module, main: Operation) -> None:
    """Let ``main`` take and give no tokens, in place; those that it took are made in it."""
    kind = main.attributes["function_type"].value
    if not any(_is_token(each) for each in (*kind.inputs, *kind.results)):
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
        # What is said of arguments and results by their numbers, but for aliases, is nothing that a run depends on.
        for name in ("arg_attrs", "res_attrs"):
            if name in main.attributes:
                del main.attributes[name]
        types = [each.type for each in block.arguments], [each.type for each in kept]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    write_module_aliases(module.operation, config, provider=provider)


def _without_tokens(config: AliasConfig) -> AliasConfig:
    """Return the aliases and donors of a ``main`` of arrays and tokens without the tokens."""
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
