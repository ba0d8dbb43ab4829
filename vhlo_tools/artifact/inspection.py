"""Inspection of a file from its bytes alone, in the structure of ``inspect --output-format json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact.artifact import Artifact, names_by_dialect
from vhlo_tools.artifact.outlining import Line, outline
from vhlo_tools.bytecode import decode
from vhlo_tools.errors import AliasError, InvalidProgramError
from vhlo_tools.files import Kind, recognise, view

if TYPE_CHECKING:
    from vhlo_tools.bytecode import File
    from vhlo_tools.compat import Requirements
    from vhlo_tools.files import Buffer, HloHeader, JaxExport, SavedSignature


def inspect_bytes(data: Buffer, name: str) -> dict[str, Any]:
    kind = recognise(data, name)
    return {"kind": str(kind), "size": len(data), **_DETAILS[kind](data, name)}


def inspect_folder(path: Path) -> dict[str, Any]:
    # Imported here, as are the next, because each kind of file needs another reader.
    from vhlo_tools.files import is_saved_model, read_saved_model

    if not is_saved_model(path):
        raise InvalidProgramError(f"{path} is a folder, but not a SavedModel: expected a file saved_model.pb in it")
    held = read_saved_model(path)
    return {
        "kind": str(Kind.SAVED_MODEL),
        "size": held.graph_bytes + held.variable_bytes,
        **asdict(held),
        "signatures": {each.name: _of_signature(each) for each in held.signatures},
    }


def _of_signature(signature: SavedSignature) -> dict[str, Any]:
    return {
        side: {tensor.name: str(tensor) for tensor in tensors}
        for side, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs))
    }


def outline_of(artifact: Artifact) -> Iterator[Line]:
    kind = str(Kind.PORTABLE_ARTIFACT)
    return outline({"kind": kind, "size": len(artifact), **_described(artifact)})


def _of_artifact(data: Buffer, name: str) -> dict[str, Any]:
    return _described(Artifact(data, name=name))


def _described(artifact: Artifact) -> dict[str, Any]:
    inventory = asdict(artifact.inventory())
    return {
        "version": str(artifact.version),
        **_of_file(artifact.file),
        **inventory,
        "functions": [_of_function(function) for function in inventory["functions"]],
        "requirements": _of_requirements(artifact.requirements()),
    }


def _of_requirements(requirements: Requirements) -> dict[str, Any]:
    return {
        "readable_since": str(requirements.readable_since),
        "downgradable_to": str(requirements.downgradable_to),
        "expandable_to": str(requirements.expandable_to),
        "features": [
            {"id": each.id, "introduced": str(each.introduced), "count": each.count} for each in requirements.features
        ],
        "newer_than_data": requirements.is_newer_than_data,
        "unknown": [asdict(each) for each in requirements.unknown],
    }


def _of_function(function: dict[str, Any]) -> dict[str, Any]:
    """Return a function with the attributes of each argument and result beside its type."""
    sides = {"arguments": "argument_attributes", "results": "result_attributes"}
    return {
        "name": function["name"],
        **{
            side: [
                {"type": kind, **({"attributes": attributes} if attributes else {})}
                for kind, attributes in zip(function[side], function[key], strict=True)
            ]
            for side, key in sides.items()
        },
    }


def _of_bytecode(data: Buffer, name: str) -> dict[str, Any]:
    return _of_file(decode(data))


def _of_jax_export(data: Buffer, name: str) -> dict[str, Any]:
    from vhlo_tools.artifact.jax_container import JaxContainer, derivative_names
    from vhlo_tools.artifact.jax_readers import first_writer
    from vhlo_tools.files import decode_jax_export

    function, *derivatives = decode_jax_export(data).levels()
    names = derivative_names(name)
    readers, writer = JaxContainer(data, name=name).readers(), first_writer(function)
    return {
        "written_by": writer and {"since": writer.release, "date": str(writer.date)},
        "readable_by": {"oldest": readers[0].release, "newest": readers[-1].release} if readers else None,
        **_of_exported(function, f"the artifact in {name}"),
        "vjps": [_of_exported(each, f"the artifact of {next(names)}") for each in derivatives],
    }


def _of_exported(export: JaxExport, name: str) -> dict[str, Any]:
    from vhlo_tools.files import read_signature

    signature = read_signature(export)
    return {
        "function": export.function_name,
        "platforms": list(export.platforms),
        "calling_convention_version": export.calling_convention_version,
        "serialization_version": export.serialization_version,
        "jax_version": export.jax_version,
        "devices": export.devices,
        "in_tree": signature.in_tree,
        "out_tree": signature.out_tree,
        "kept_arguments": list(export.kept_arguments),
        "arguments": [asdict(each) for each in signature.arguments],
        "results": [asdict(each) for each in signature.results],
        "main_arguments": list(signature.main_arguments),
        "main_results": list(signature.main_results),
        "ordered_effects": list(export.ordered_effects),
        "unordered_effects": list(export.unordered_effects),
        "disabled_checks": list(export.disabled_checks),
        "uses_global_constants": export.uses_global_constants,
        "artifact": inspect_bytes(export.module, name),
    }


def _of_torch_export(data: Buffer, name: str) -> dict[str, Any]:
    from vhlo_tools.files import decode_torch_export

    return asdict(decode_torch_export(data))


def _of_hlo_text(data: Buffer, name: str) -> dict[str, Any]:
    from vhlo_tools.files import read_hlo_text

    try:
        return {**_of_hlo(read_hlo_text(bytes(data).decode("utf-8", "backslashreplace"))), **_of_text(data, name)}
    except AliasError as error:
        raise InvalidProgramError(f"{name} is not valid HLO: {error}") from error


def _of_hlo_proto(data: Buffer, name: str) -> dict[str, Any]:
    from vhlo_tools.files import find_hlo_module, read_hlo_module

    module = find_hlo_module(view(data))
    return {} if module is None else _of_hlo(read_hlo_module(module))


def _of_hlo(header: HloHeader) -> dict[str, Any]:
    """Return an HLO module in the structure used for artifacts."""
    signature = header.signature
    return {
        "module": header.name,
        "parameters": [str(shape) for shape in signature.parameters] if signature else None,
        "result": str(signature.result) if signature else None,
        "aliases": [asdict(each) for each in header.aliases],
        "donors": [asdict(each) for each in header.donors],
    }


def _of_text(data: Buffer, name: str) -> dict[str, Any]:
    text = bytes(data)
    # The last may have no end.
    return {"lines": text.count(b"\n") + (not text.endswith(b"\n"))}


def _of_file(file: File) -> dict[str, Any]:
    return {
        "producer": file.producer,
        "bytecode_version": file.version,
        "dialects": names_by_dialect(file),
        "sections": [asdict(section) for section in file.sections],
    }


_DETAILS: Final[dict[Kind, Callable[[Buffer, str], dict[str, Any]]]] = {
    Kind.PORTABLE_ARTIFACT: _of_artifact,
    Kind.MLIR_BYTECODE: _of_bytecode,
    Kind.JAX_EXPORT: _of_jax_export,
    Kind.MLIR_TEXT: _of_text,
    Kind.HLO_TEXT: _of_hlo_text,
    Kind.HLO_PROTO: _of_hlo_proto,
    Kind.TORCH_EXPORT: _of_torch_export,
}
