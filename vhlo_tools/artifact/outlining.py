"""Outline of a file: its readers, inputs, outputs and contents, in a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vhlo_tools.aliasing import format_index
from vhlo_tools.files import Kind
from vhlo_tools.spec import first_release, known_releases, newest_version
from vhlo_tools.version import Version

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


def outline(description: Mapping[str, Any]) -> Iterator[Line]:
    """``description`` is from :func:`inspect_bytes` or :func:`inspect_folder`."""
    yield Line("is", f"{_KINDS[description['kind']]}{_particulars(description)}, {description['size']:,} bytes")
    if description["kind"] not in _OF_A_VERSION:
        yield Line("read by", "depends on the version that it is written for: see `vhlo check --target minimum`")
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


def _of_artifact(description: Mapping[str, Any]) -> Iterator[Line]:
    yield Line("read by", _readers(description["requirements"]))
    entry = _entry(description["functions"])
    if entry is None:
        yield from (Line(label, "nothing: it has no function") for label in ("takes", "gives"))
    else:
        yield Line("takes", _counted(_types(entry["arguments"]), "argument") + _donated(description))
        yield Line("gives", _counted(_types(entry["results"]), "result") + _aliased(description))
    yield Line("holds", _contents(description))


def _of_jax_export(description: Mapping[str, Any]) -> Iterator[Line]:
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


def _of_bytecode(description: Mapping[str, Any]) -> Iterator[Line]:
    yield Line(
        "holds",
        _listed([f"{dialect} ({_count(len(ops), 'op name')})" for dialect, ops in description["dialects"].items()]),
    )


def _of_hlo(description: Mapping[str, Any]) -> Iterator[Line]:
    if description.get("parameters") is not None:
        yield Line("takes", _counted(description["parameters"], "parameter") + _donated(description))
        yield Line("gives", f"{description['result']}{_aliased(description)}")


def _of_saved_model(description: Mapping[str, Any]) -> Iterator[Line]:
    for label, side in (("takes", "inputs"), ("gives", "outputs")):
        for name, signature in description["signatures"].items():
            tensors = [f"{each}: {kind}" for each, kind in signature[side].items()]
            yield Line(label, f"{_counted(tensors, side[:-1])} ({name})")


def _of_torch_export(description: Mapping[str, Any]) -> Iterator[Line]:
    weights = f"{_count(description['weights'], 'weight')}, {description['weight_bytes']:,} bytes"
    yield Line("holds", f"{_listed(description['models'])}; {weights}")


_LINES: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[Line]]]] = {
    Kind.PORTABLE_ARTIFACT: _of_artifact,
    Kind.JAX_EXPORT: _of_jax_export,
    Kind.MLIR_BYTECODE: _of_bytecode,
    Kind.HLO_TEXT: _of_hlo,
    Kind.HLO_PROTO: _of_hlo,
    Kind.SAVED_MODEL: _of_saved_model,
    Kind.TORCH_EXPORT: _of_torch_export,
}


def _readers(requirements: Mapping[str, Any]) -> str:
    """Describe who reads an artifact, because of which features, and how far back it could be written."""
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
