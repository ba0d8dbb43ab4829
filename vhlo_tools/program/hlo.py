"""Programs of HLO: text, and protocol buffers.

XLA makes StableHLO of them. It takes tuple parameters apart without taking their aliases along, and drops donors; both
are put right here.
"""

from __future__ import annotations

from typing import Any, Final

from vhlo_tools.aliasing import Alias, Donor, Signature, leaves
from vhlo_tools.aliasing.hlo_header import HloHeader, parse_header, with_long_aliases
from vhlo_tools.bindings import ModuleOp, Provider, named_attributes
from vhlo_tools.bindings.xla import XlaFailure, hlo_of_text, stablehlo_of_hlo, text_of_hlo
from vhlo_tools.errors import AliasError, InvalidProgramError

__all__ = ["module_of_hlo", "proto_of_text"]

_DONOR: Final = "jax.buffer_donor"
_ALIASES: Final = "mhlo.input_output_alias"


def proto_of_text(text: str, name: str) -> bytes:
    """Return HLO text as an ``HloModuleProto``; aliases in the short form that XLA documents are read too.

    Args:
        text: The text.
        name: What to call it in messages.

    Raises:
        InvalidProgramError: If it is not valid.
        ProviderError: If jaxlib is not installed.
    """
    try:
        return hlo_of_text(with_long_aliases(text))
    except (AliasError, XlaFailure) as error:
        raise InvalidProgramError(f"{name} is not valid HLO: {error}") from error


def module_of_hlo(proto: bytes, provider: Provider, name: str) -> ModuleOp:
    """Return an ``HloModuleProto`` as a StableHLO module with its aliases and donors.

    Args:
        proto: The module.
        provider: The bindings for the module.
        name: What to call it in messages.

    Raises:
        InvalidProgramError: If it is not valid, or XLA makes no StableHLO of it.
        ProviderError: If jaxlib is not installed.
    """
    try:
        header = parse_header(text_of_hlo(proto).partition("\n")[0])
        module = provider.parse(provider.new_context(), stablehlo_of_hlo(proto))
    except (AliasError, XlaFailure) as error:
        raise InvalidProgramError(f"{name} is not valid HLO, or has no form in StableHLO: {error}") from error
    if header.aliases or header.donors:
        _restore(module, provider, header, name)
    return module


def _restore(module: Any, provider: Provider, header: HloHeader, name: str) -> None:
    """Write the aliases and donors of ``header`` into ``module``, for the arguments that its ``main`` has."""
    ir = provider.ir
    main = next(op for op in module.body.operations if _symbol(op) == "main")
    arguments = len(main.regions[0].blocks[0].arguments)
    results = len(main.attributes["function_type"].value.results)
    flat = _flattened(header, arguments, results, name)
    with module.context:
        entries = ", ".join(_entry(alias) for alias in flat[0])
        module.operation.attributes[_ALIASES] = ir.Attribute.parse(f"[{entries}]")
        before = list(main.attributes["arg_attrs"]) if "arg_attrs" in main.attributes else []
        before += [ir.DictAttr.get({})] * (arguments - len(before))
        donors = {donor.parameter_number for donor in flat[1]}
        after = [
            ir.DictAttr.get({**dict(named_attributes(held)), _DONOR: ir.BoolAttr.get(True)})
            if index in donors
            else held
            for index, held in enumerate(before)
        ]
        if donors:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(after)


def _symbol(op: Any) -> str:
    symbol: str = op.attributes["sym_name"].value if "sym_name" in op.attributes else ""
    return symbol


def _flattened(header: HloHeader, arguments: int, results: int, name: str) -> tuple[list[Alias], list[Donor]]:
    """Return aliases and donors by the arguments and results of ``main``, of which XLA took tuples apart."""
    signature = header.signature
    if signature is None:
        raise InvalidProgramError(f"{name} does not say what it takes, although it has aliases")
    parameter = _places(signature, arguments)
    output = _outputs(signature, results)
    aliases = [
        Alias(output.get(each.output_index, each.output_index), *_moved(each, parameter), each.kind)
        for each in header.aliases
    ]
    return aliases, [Donor(*_moved(each, parameter)) for each in header.donors]


def _places(signature: Signature, arguments: int) -> dict[tuple[int, tuple[int, ...]], int]:
    """Return the argument that each part of a parameter became; none if they are as they were."""
    if len(signature.parameters) == arguments:
        return {}
    parts = [(number, index) for number, shape in enumerate(signature.parameters) for index, _ in leaves(shape)]
    return {part: argument for argument, part in enumerate(parts)} if len(parts) == arguments else {}


def _outputs(signature: Signature, results: int) -> dict[tuple[int, ...], tuple[int, ...]]:
    """Return where each output stands now; none if they are as they were."""
    parts = [index for index, _ in leaves(signature.result)]
    if len(parts) != results or all(len(index) < 2 for index in parts):
        return {}
    return {index: (number,) if results > 1 else () for number, index in enumerate(parts)}


def _moved(entry: Alias | Donor, places: dict[tuple[int, tuple[int, ...]], int]) -> tuple[int, tuple[int, ...]]:
    argument = places.get((entry.parameter_number, entry.parameter_index))
    return (entry.parameter_number, entry.parameter_index) if argument is None else (argument, ())


def _entry(alias: Alias) -> str:
    """Return an alias as the attribute of the module has it."""

    def array(index: tuple[int, ...]) -> str:
        return f"array<i64: {', '.join(map(str, index))}>" if index else "array<i64>"

    return (
        f'{{alias = {{kind = "{alias.kind.replace("-", "_")}", parameter_index = {array(alias.parameter_index)}, '
        f"parameter_number = {alias.parameter_number} : i64}}, output_index = {array(alias.output_index)}}}"
    )
