"""Loading of HLO programs: text, and protocol buffers.

XLA converts them to StableHLO. It flattens tuple parameters without updating their aliases, and drops donors; both are
fixed here.
"""

from __future__ import annotations

from vhlo_tools.aliasing import Alias, AliasConfig, Array, Donor, ShapeIndex, Signature, leaves, subshape
from vhlo_tools.bindings import MLIRFailure, ModuleOp, Provider, XlaFailure
from vhlo_tools.errors import AliasError, InvalidProgramError, MalformedArtifactError
from vhlo_tools.files import HloHeader, is_plain_hlo, plain_hlo, read_hlo_module, view, with_long_aliases
from vhlo_tools.program.module_aliases import read_module_aliases, write_module_aliases
from vhlo_tools.program.program import explain_failure
from vhlo_tools.program.screening import convert_hlo, screen_source


def proto_of_text(text: str, name: str, trusted: bool = False) -> bytes:
    """Accepts aliases in the short form that XLA documents, too."""
    try:
        proto: bytes = convert_hlo("hlo_of_text", with_long_aliases(text), name, trusted=trusted)
        return proto
    except (AliasError, XlaFailure) as error:
        raise InvalidProgramError(f"{name} is not valid HLO", said=str(error)) from error


def module_of_hlo(proto: bytes, provider: Provider, name: str, trusted: bool = False) -> ModuleOp:
    """Keeps aliases and donors."""
    try:
        header = read_hlo_module(view(proto))
        plain = proto if is_plain_hlo(proto, header) else plain_hlo(proto, name)
        bytecode: bytes = convert_hlo("stablehlo_of_hlo", plain, name, trusted=trusted)
        if not trusted:
            # XLA writes what it did not verify.
            screen_source(bytecode, provider, name)
        module = provider.parse(provider.new_context(), bytecode)
        if header.aliases or header.donors:
            declared = read_module_aliases(module.operation)
            config = _flattened(header, declared.signature, name)
            write_module_aliases(module.operation, config, "module", provider=provider)
    except (AliasError, MalformedArtifactError, XlaFailure) as error:
        raise InvalidProgramError(f"{name} is not valid HLO, or cannot be represented in StableHLO: {error}") from error
    except MLIRFailure as failure:
        said = explain_failure(name, provider, failure)
        raise InvalidProgramError(f"{name} is not valid HLO: {said}", failure.diagnostics) from failure
    return module


def _flattened(header: HloHeader, main: Signature, name: str) -> AliasConfig:
    """XLA flattens tuples depth first (``xla/hlo/translate/hlo_to_mhlo/hlo_function_importer.cc``)."""
    signature = header.signature
    if signature is None:
        raise InvalidProgramError(f"{name} has aliases, but no host_program_shape that they refer to")
    inputs = [(number, *leaf) for number, shape in enumerate(signature.parameters) for leaf in leaves(shape)]
    outputs = list(leaves(signature.result))
    flat = Signature.of_results(tuple(shape for *_, shape in inputs), tuple(shape for _, shape in outputs))
    if flat != main:
        raise InvalidProgramError(f"{name} has the signature {flat} by its aliases, but XLA made {main} of it")
    arguments = {(number, index): (position, ()) for position, (number, index, _) in enumerate(inputs)}
    results = {index: (position,) if len(outputs) > 1 else () for position, (index, _) in enumerate(outputs)}

    # An index that is not a leaf is kept, so that the lint reports it.
    def argument(entry: Alias | Donor) -> tuple[int, ShapeIndex]:
        key = entry.parameter_number, entry.parameter_index
        return arguments.get(key, key)

    aliases, donors = [], [Donor(*argument(each)) for each in header.donors]
    for each in header.aliases:
        alias = Alias(results.get(each.output_index, each.output_index), *argument(each), each.kind)
        if _fits(signature, each) and not _fits(main, alias):
            # Of the same size on the device only, where any compiler may find again that it fits.
            donors.append(Donor(alias.parameter_number, alias.parameter_index))
        else:
            aliases.append(alias)
    return AliasConfig(main, tuple(aliases), tuple(donors))


def _fits(signature: Signature, alias: Alias) -> bool:
    """Whether output and parameter exist and have the same size in bytes."""
    output = subshape(signature.result, alias.output_index)
    number = alias.parameter_number
    exists = 0 <= number < len(signature.parameters)
    held = subshape(signature.parameters[number], alias.parameter_index) if exists else None
    return isinstance(output, Array) and isinstance(held, Array) and output.bytes == held.bytes
