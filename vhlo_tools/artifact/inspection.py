"""Inspection of a file from its bytes alone: in full, and as an outline of a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from vhlo_tools.aliasing import format_index
from vhlo_tools.artifact.artifact import Artifact, names_by_dialect
from vhlo_tools.bytecode import decode
from vhlo_tools.errors import AliasError, InvalidProgramError
from vhlo_tools.files import Kind, recognise, view
from vhlo_tools.spec import first_release, known_releases, newest_version
from vhlo_tools.version import Version

if TYPE_CHECKING:
    from vhlo_tools.artifact.inventory import Function
    from vhlo_tools.bytecode import File
    from vhlo_tools.compat import Requirements
    from vhlo_tools.files import Buffer, HloHeader, JaxExport, SavedSignature

# Outline of a file: its readers, inputs, outputs and contents, in a line each

#: So many of a list are named; of the others there is the number.
_NAMED: Final = 4

#: The name of each kind of file in a sentence.
_KINDS: Final[Mapping[str, str]] = {
    Kind.PORTABLE_ARTIFACT: "portable artifact",
    Kind.MLIR_BYTECODE: "MLIR bytecode (no portable artifact)",
    Kind.MLIR_TEXT: "MLIR text",
    Kind.JAX_EXPORT: "function exported by jax.export",
    Kind.HLO_TEXT: "HLO as text",
    Kind.HLO_PROTO: "HLO as protocol buffer",
    Kind.TORCH_EXPORT: "model exported by torch.export",
    Kind.SAVED_MODEL: "SavedModel of TensorFlow",
}

#: The kinds of files that hold an artifact, which is written for a version; the others are yet to be written for one.
_OF_A_VERSION: Final = frozenset({Kind.PORTABLE_ARTIFACT, Kind.JAX_EXPORT})

#: The functions that a program is entered by, by preference: ``main`` is that of XLA.
_ENTRY: Final = "main"


class Line(NamedTuple):
    label: str  # ``is``, ``read by``, ``takes``, ``gives`` or ``holds``
    text: str


#: Who reads a program that is no artifact yet.
NOT_WRITTEN: Final = Line("read by", "depends on the version that it is written for: see `vhlo check --target minimum`")


def outline(description: Mapping[str, Any]) -> Iterator[Line]:
    """``description`` is from :func:`inspect_bytes` or :func:`inspect_folder`."""
    yield Line("is", f"{_KINDS[description['kind']]}{_particulars(description)}, {description['size']:,} bytes")
    if description["kind"] not in _OF_A_VERSION:
        yield NOT_WRITTEN
    lines = _LINES.get(description["kind"])
    if lines is not None:
        yield from lines(description)


def _particulars(description: Mapping[str, Any]) -> str:
    if "version" in description:
        return f" of StableHLO {description['version']} (bytecode version {description['bytecode_version']})"
    if "producer" in description:
        return f" of {description['producer']}, bytecode version {description['bytecode_version']}"
    if "function" in description:
        return f", {description['function']}, for {', '.join(description['platforms'])}"
    if "lines" in description:
        return f", {_count(description['lines'], 'line')}"
    return ""


def _outline_of_artifact(description: Mapping[str, Any]) -> Iterator[Line]:
    yield Line("read by", _readers(description["requirements"]))
    entry = _entry(description["functions"])
    if entry is None:
        yield from (Line(label, "nothing: it has no function") for label in ("takes", "gives"))
    else:
        yield Line("takes", _counted(_types(entry["arguments"]), "argument") + _donated(description))
        yield Line("gives", _counted(_types(entry["results"]), "result") + _aliased(description))
    yield Line("holds", _contents(description))


def _outline_of_jax_export(description: Mapping[str, Any]) -> Iterator[Line]:
    held, jax = description["artifact"], description["readable_by"]
    by = f"jax {jax['oldest']} to {jax['newest']}" if jax else "no known release of jax"
    # Newer artifacts may be of a kind that this package cannot look into.
    required = held.get("requirements")
    yield Line(
        "read by", f"{by}; its artifact of StableHLO {held['version']} by {_readers(required)}" if required else by
    )
    dropped = sum(each["main"] is None for each in description["arguments"])
    unused = f"; {dropped} unused" if dropped else ""
    for label, side, noun, said in (("takes", "arguments", "argument", unused), ("gives", "results", "result", "")):
        yield Line(label, _counted([f"{each['path']} {each['type']}" for each in description[side]], noun) + said)
    derivatives = f"; {_count(len(description['vjps']), 'derivative')}" if description["vjps"] else ""
    yield Line("holds", (_contents(held) if "ops" in held else f"{held['size']:,} bytes") + derivatives)


def _outline_of_bytecode(description: Mapping[str, Any]) -> Iterator[Line]:
    yield Line(
        "holds",
        _listed([f"{dialect} ({_count(len(ops), 'op name')})" for dialect, ops in description["dialects"].items()]),
    )


def _outline_of_hlo(description: Mapping[str, Any]) -> Iterator[Line]:
    if description.get("parameters") is not None:
        yield Line("takes", _counted(description["parameters"], "parameter") + _donated(description))
        yield Line("gives", f"{description['result']}{_aliased(description)}")


def _of_saved_model(description: Mapping[str, Any]) -> Iterator[Line]:
    for label, side in (("takes", "inputs"), ("gives", "outputs")):
        for name, signature in description["signatures"].items():
            tensors = [f"{each}: {kind}" for each, kind in signature[side].items()]
            yield Line(label, f"{_counted(tensors, side[:-1])} ({name})")


def _outline_of_torch_export(description: Mapping[str, Any]) -> Iterator[Line]:
    weights = f"{_count(description['weights'], 'weight')}, {description['weight_bytes']:,} bytes"
    yield Line("holds", f"{_listed(description['models'])}; {weights}")


_LINES: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[Line]]]] = {
    Kind.PORTABLE_ARTIFACT: _outline_of_artifact,
    Kind.JAX_EXPORT: _outline_of_jax_export,
    Kind.MLIR_BYTECODE: _outline_of_bytecode,
    Kind.HLO_TEXT: _outline_of_hlo,
    Kind.HLO_PROTO: _outline_of_hlo,
    Kind.SAVED_MODEL: _of_saved_model,
    Kind.TORCH_EXPORT: _outline_of_torch_export,
}


def _readers(requirements: Mapping[str, Any]) -> str:
    """Describe who reads an artifact, because of which features, and how far back it could be written."""
    if requirements["unreadable"]:
        return f"nobody: {requirements['unreadable'][0]}"
    if requirements["newer_than_data"]:
        return f"unknown versions: it is newer than the data of vhlo_tools, which end at StableHLO {newest_version()}"
    since = requirements["readable_since"]
    packages = dict.fromkeys(each.package for each in known_releases())
    first = [first_release(package, Version(since)) for package in packages]
    known = ", ".join(f"{each.package} {each.release}" for each in first if each)
    because = [each["id"] for each in requirements["features"] if each["introduced"] == since]
    said = f"StableHLO {since} and newer ({f'since {known}' if known else 'no known release'})"
    said += f" because of {', '.join(because)}" if because else ""
    older = [
        f"{words} for {requirements[key]} and newer"
        for key, words in (("downgradable_to", "can be rewritten"), ("expandable_to", "with expansions"))
    ]
    # Expansions that reach no older version are not worth a word.
    same = requirements["downgradable_to"] == requirements["expandable_to"]
    return f"{said}; {', '.join(older[:1] if same else older)}"


def _entry(functions: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    named = [each for each in functions if each["name"] == _ENTRY]
    return next(iter([*named, *functions]), None)


def _types(values: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(each["type"]) for each in values]


def _aliased(description: Mapping[str, Any]) -> str:
    aliases = description["aliases"]
    if len(aliases) > _NAMED:
        return f"; {len(aliases):,} of them aliased with parameters"
    pairs = [f"{format_index(each['output_index'])} with parameter {each['parameter_number']}" for each in aliases]
    return f"; aliased: {', '.join(pairs)}" if pairs else ""


def _donated(description: Mapping[str, Any]) -> str:
    donors = description["donors"]
    return f"; donated: {_listed([str(each['parameter_number']) for each in donors])}" if donors else ""


def _counted(texts: Sequence[str], noun: str) -> str:
    return f"{_count(len(texts), noun)}: {_listed(texts)}" if texts else f"no {noun}s"


def _contents(description: Mapping[str, Any]) -> str:
    ops, constants = description["ops"], description["constants"]
    # The module and functions are what ops stand in.
    names = [name for name in ops if name.startswith("vhlo.") and not name.startswith("vhlo.func_")]
    total = sum(ops[name] for name in names)
    functions = _count(len(description["functions"]), "function")
    kinds = [f"{ops[name]:,} {name.removeprefix('vhlo.').rpartition('_v')[0]}" for name in names]
    weights = (
        f"{_count(constants['count'], 'constant')} of {constants['bytes']:,} bytes"
        if constants["count"]
        else "no constants"
    )
    unknown = [each["name"] for each in description["requirements"]["unknown"]]
    parts = [
        f"{_count(total, 'op')} in {functions}" + (f": {_listed(kinds)}" if kinds else ""),
        weights,
        *([f"unknown to vhlo_tools: {_listed(unknown)}"] if unknown else []),
    ]
    return "; ".join(parts)


def _listed(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _NAMED:,} more" if len(texts) > _NAMED else ""
    return ", ".join(texts[:_NAMED]) + more


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# Inspection of a file from its bytes alone, in the structure of ``inspect --output-format json``


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
    inventory = artifact.inventory()
    return {
        "version": str(artifact.version),
        **_of_file(artifact.file),
        # `asdict` would copy what functions share.
        **asdict(replace(inventory, functions=())),
        "functions": [_of_function(function) for function in inventory.functions],
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
        "unreadable": [each.message for each in requirements.unreadable],
    }


def _of_function(function: Function) -> dict[str, Any]:
    """Return a function with the attributes of each argument and result beside its type."""
    return {
        "name": function.name,
        "arguments": _of_values(function.arguments, function.argument_attributes),
        "results": _of_values(function.results, function.result_attributes),
    }


def _of_values(types: Sequence[str], attributes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    made: dict[tuple[str, int], dict[str, Any]] = {}
    for kind, held in zip(types, attributes, strict=True):
        # One for all that are alike: many arguments share their attributes.
        made.setdefault((kind, id(held)), {"type": kind, **({"attributes": held} if held else {})})
    return [made[kind, id(held)] for kind, held in zip(types, attributes, strict=True)]


def _of_bytecode(data: Buffer, name: str) -> dict[str, Any]:
    return _of_file(decode(data, name))


def _of_jax_export(data: Buffer, name: str) -> dict[str, Any]:
    from vhlo_tools.artifact.jax_container import JaxContainer, derivative_names, first_writer
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
