"""Attributes that a round trip through an artifact changes or refuses: VHLO has fewer kinds of them than MLIR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import class_of, leaves, source_of
from vhlo_tools.bytecode import File, decode_entry
from vhlo_tools.convert.attributes import Held, Probe, held_attributes
from vhlo_tools.dialect import encodings_of, known_feature
from vhlo_tools.findings import Finding, Level
from vhlo_tools.program import Program, place_of

__all__ = ["KEEP_OR_LOWER", "RESPELL", "ChangedForm", "changed_attributes", "changed_forms", "refused_attributes"]

#: What to do about other dialects.
KEEP_OR_LOWER: Final = (
    "lower it to StableHLO first, or keep it with --allow-other-dialects (allow_other_dialects=True) for consumers "
    "since 1.11.0 that know the dialect"
)

# What a round trip changes, by the class of the bindings: what it is, and what it comes back as. Source:
# `convertGeneric` in stablehlo/transforms/StablehloLegalizeToVhlo.cpp, and what comes back of sixty kinds of attributes
# from jaxlib 0.10.2 and 0.12.0.1.
_CHANGED: Final = {
    "DenseBoolArrayAttr": ("an array<i1>", "a dense tensor"),
    "DenseI64ArrayAttr": ("an array<i64>", "a dense tensor"),
    "FlatSymbolRefAttr": ("a symbol reference", "a string"),
}
# What they are in an artifact, or what may hold them.
_MADE: Final = frozenset({"array_v1", "dict_v1", "string_v1", "tensor_v1"})
_DICTIONARIES: Final = ("dictionary", "dict_v1")

# What is refused, in words; anything else is shown as MLIR prints it.
_WORDS: Final = {
    "DenseF32ArrayAttr": "an array<f32>",
    "DenseF64ArrayAttr": "an array<f64>",
    "DenseI8ArrayAttr": "an array<i8>",
    "DenseI16ArrayAttr": "an array<i16>",
    "DenseI32ArrayAttr": "an array<i32>",
    "UnitAttr": "a unit attribute",
}
_LONGEST: Final = 60
#: What to do about an attribute without a form in VHLO.
RESPELL: Final = "drop it, or spell it with an integer, a string, or a dense tensor"
_WHOLE: Final = (
    "let it be inlined (without --no-legalize); or, if its value was left out when the program was printed, print all "
    "constants"
)


class ChangedForm(NamedTuple):
    """An attribute that comes back from an artifact in another form.

    Attributes:
        holder: What holds it: ``function``, ``argument``, ``result`` or ``op``.
        text: Its own form.
        comes_back: The other form, in words.
    """

    holder: str
    text: str
    comes_back: str


def refused_attributes(program: Program, *, allow_other_dialects: bool) -> list[Finding]:
    """Return an error for every attribute of ``program`` that the library finds no form for in VHLO.

    Args:
        program: The program.
        allow_other_dialects: Whether attributes of other dialects may stay.
    """
    probe = Probe(program.provider, allow_other_dialects=allow_other_dialects)
    module = program.load()
    return [
        _refusal(program, held, words)
        for held in held_attributes(program, module)
        for words in dict.fromkeys(_in_words(each) for each in leaves(held.attribute) if probe.refuses(each))
    ]


def changed_attributes(program: Program, written: Artifact | None = None) -> list[Finding]:
    """Return a warning for every attribute of ``program`` that comes back as another kind.

    Args:
        program: The program.
        written: The artifact that was made of it, if one could be made; its bytes spare most programs a walk.
    """
    if written is not None and not _may_have_changed(written.file):
        return []
    return [
        _finding(
            program,
            held,
            f"{what}, which comes back from an artifact as {back}",
            "warning",
            f"spell it as {back}, or have its reader take both",
        )
        for held, what, back in _changed(program)
    ]


def changed_forms(program: Program) -> dict[str, ChangedForm]:
    """Return what :func:`changed_attributes` is about by path, as differences between artifacts spell it.

    Ops are told apart by how many such came before.
    """
    found: dict[str, ChangedForm] = {}
    ops: Counter[str] = Counter()
    for held, _, back in _changed(program):
        path = f"{held.path} {held.name}"
        if held.word == "op":
            ops[path] += 1
            path = f"{held.path} #{ops[path] - 1} {held.name}"
        found[path] = ChangedForm(held.word, str(held.attribute), back)
    return found


def _changed(program: Program) -> Iterator[tuple[Held, str, str]]:
    """Yield what changes, in words, and what it comes back as."""
    # Held while its ops are looked at: they die with it.
    module = program.load()
    for held in held_attributes(program, module):
        for kind in sorted({class_of(each) for each in leaves(held.attribute)} & _CHANGED.keys()):
            yield held, *_CHANGED[kind]


def _refusal(program: Program, held: Held, words: str) -> Finding:
    dialect = words[1:].partition(".")[0].partition("<")[0] if words.startswith("#") else "builtin"
    if dialect in ("builtin", "stablehlo", "vhlo"):
        remedy = _WHOLE if words.startswith("dense_resource<") else RESPELL
        return _finding(program, held, f"{words}, which has no form in VHLO", "error", remedy)
    mixed = known_feature("mixed_dialects")
    says = f"{words} of the dialect {dialect}, which is no part of StableHLO"
    return replace(
        _finding(program, held, says, "error", KEEP_OR_LOWER),
        feature=mixed.id,
        kind=mixed.kind,
        introduced=mixed.introduced,
    )


def _finding(program: Program, held: Held, says: str, level: Level, remedy: str) -> Finding:
    within = "holds" if class_of(held.attribute) in ("ArrayAttr", "DictAttr") else "is"
    return Finding(
        feature="attribute_fidelity",
        level=level,
        kind="attribute",
        message=f"{held.name} of {held.holder} {within} {says}",
        op=str(held.op.name),
        location=place_of(source_of(held.op.location), program.name),
        remedy=remedy,
    )


def _in_words(attribute: Any) -> str:
    known = _WORDS.get(class_of(attribute))
    text = known or str(attribute)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _may_have_changed(file: File) -> bool:
    """Tell whether an attribute may have become another kind: those that can stand in dictionaries."""
    dialects = [file.dialect(index) for index in range(len(file.dialects.names))]
    skipped = [
        frozenset(
            code << 1 | 1
            for code, encoding in encodings_of(dialect, "attribute").items()
            if encoding.name not in _DICTIONARIES
        )
        for dialect in dialects
    ]
    every = [frozenset(range(256))] * len(dialects)
    for _, entry in file.scan([*skipped, *every]):
        value = decode_entry(file, "attribute", entry)
        if value is None or value.name not in _DICTIONARIES:
            continue
        held = (file.decode("attribute", index) for _, index in value.field("elements"))
        if any(each is not None and each.name in _MADE for each in held):
            return True
    return False
