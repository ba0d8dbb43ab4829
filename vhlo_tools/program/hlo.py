"""Programs of HLO: text, and protocol buffers.

XLA makes StableHLO of them. It takes tuple parameters apart without taking their aliases along, and drops donors; both
are put right here.
"""

from __future__ import annotations

from vhlo_tools.aliasing import Alias, AliasConfig, Donor, Signature, leaves
from vhlo_tools.aliasing.hlo_header import HloHeader, parse_header, with_long_aliases
from vhlo_tools.bindings import Module, ModuleOp, Provider
from vhlo_tools.bindings.xla import XlaFailure
from vhlo_tools.errors import AliasError, InvalidProgramError
from vhlo_tools.program.aliases import read_module_aliases, write_module_aliases
from vhlo_tools.program.screening import convert_hlo

__all__ = ["module_of_hlo", "proto_of_text"]


def proto_of_text(text: str, name: str, trusted: bool = False) -> bytes:
    """Return HLO text as an ``HloModuleProto``; aliases in the short form that XLA documents are read too.

    Args:
        text: The text.
        name: What to call it in messages.
        trusted: Whether XLA parses it in this process at once, and not in a child process.

    Raises:
        InvalidProgramError: If it is not valid, or XLA does not survive it.
        ProviderError: If jaxlib is not installed.
    """
    try:
        proto: bytes = convert_hlo("hlo_of_text", with_long_aliases(text), name, trusted=trusted)
        return proto
    except (AliasError, XlaFailure) as error:
        raise InvalidProgramError(f"{name} is not valid HLO: {error}") from error


def module_of_hlo(proto: bytes, provider: Provider, name: str, trusted: bool = False) -> ModuleOp:
    """Return an ``HloModuleProto`` as a StableHLO module with its aliases and donors.

    Args:
        proto: The module.
        provider: The bindings for the module.
        name: What to call it in messages.
        trusted: Whether XLA reads it in this process at once, and not in a child process.

    Raises:
        InvalidProgramError: If it is not valid, XLA does not survive it, or makes no StableHLO of it.
        ProviderError: If jaxlib is not installed.
    """
    try:
        text: str = convert_hlo("text_of_hlo", proto, name, trusted=trusted)
        header = parse_header(text.partition("\n")[0])
        bytecode: bytes = convert_hlo("stablehlo_of_hlo", proto, name, trusted=trusted)
        module = provider.parse(provider.new_context(), bytecode)
        if header.aliases or header.donors:
            _restore(module, provider, header, name)
    except (AliasError, XlaFailure) as error:
        raise InvalidProgramError(f"{name} is not valid HLO, or has no form in StableHLO: {error}") from error
    return module


def _restore(module: Module, provider: Provider, header: HloHeader, name: str) -> None:
    """Write the aliases and donors of ``header`` into ``module``, for the arguments that its ``main`` has."""
    declared = read_module_aliases(module.operation)
    results = declared.signature.results or 0
    aliases, donors = _flattened(header, len(declared.signature.parameters), results, name)
    config = AliasConfig(declared.signature, aliases, donors)
    write_module_aliases(module.operation, config, "module", provider=provider)


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
