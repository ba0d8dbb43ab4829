"""Discardable attributes, and whether a program survives serialization with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from vhlo_tools.artifact import Artifact
from vhlo_tools.bindings import (
    MLIRFailure,
    ModuleOp,
    Operation,
    Provider,
    class_of,
    leaves,
    named_attributes,
    source_of,
)
from vhlo_tools.bytecode import File
from vhlo_tools.findings import Finding, Level
from vhlo_tools.program import PORTABLE, Program, is_inherent, place_of
from vhlo_tools.spec import encodings_of, known_feature
from vhlo_tools.version import Version

# The passes of StableHLO used for conversion, in the syntax of the pass manager
#
# Source: ``stablehlo/transforms/Passes.td`` in openxla/stablehlo.


def to_vhlo(*, allow_other_dialects: bool) -> str:
    return f"stablehlo-legalize-to-vhlo{{allow-other-dialects={str(allow_other_dialects).lower()}}}"


def to_version(version: Version) -> str:
    return f"vhlo-to-version{{target={version}}}"


def expansion(version: Version) -> str:
    return f"stablehlo-compatibility-expander{{target={version}}}"


# The attributes of a program that VHLO must represent generically, because no VHLO op defines them
#
# They are the discardable attributes of ops, functions, arguments and results, and the contents of dictionaries such as
# ``backend_config``. Attributes of a module are written unchanged.

_TYPED: Final = frozenset({"BoolAttr", "DenseFPElementsAttr", "DenseIntElementsAttr", "FloatAttr", "IntegerAttr"})


class Held(NamedTuple):
    op: Operation
    holder: str  # owner within the op, such as "argument 0 of @main"
    word: str  # "argument", "function", "op" or "result"
    path: str  # of the owner in differences between artifacts, such as "@main argument 0"
    name: str
    attribute: Any


def held_attributes(program: Program, module: ModuleOp) -> Iterator[Held]:
    """The caller must keep ``module``, a copy of ``program``, alive in the meantime.

    Constants in resources are included, although they are inherent attributes: they have no form in VHLO either.
    """
    for op in program.provider.walk(module):
        dialect, _, short = str(op.name).partition(".")
        if dialect not in PORTABLE:
            continue
        attributes = op.attributes
        is_function = op.name == "func.func"
        symbol = f"@{attributes['sym_name'].value}" if is_function else ""
        for name, attribute in named_attributes(attributes):
            if is_inherent(short, name, attribute):
                continue
            holder = symbol or str(op.name)
            yield Held(op, holder, "function" if is_function else "op", holder, name, attribute)
        for key, word in (("arg_attrs", "argument"), ("res_attrs", "result")) if is_function else ():
            for number, dictionary in enumerate(attributes[key]) if key in attributes else ():
                for name, attribute in named_attributes(dictionary):
                    path = f"{symbol} {word} {number}"
                    yield Held(op, f"{word} {number} of {symbol}", word, path, name, attribute)


class AttributeProbe:
    """Tries which attributes the installed library can represent in VHLO."""

    def __init__(self, provider: Provider, *, allow_other_dialects: bool) -> None:
        self._provider = provider
        self._pipeline = to_vhlo(allow_other_dialects=allow_other_dialects)
        self._known: dict[object, bool] = {}

    def refuses(self, attribute: Any) -> bool:
        kind = class_of(attribute)
        # For numbers and strings only the type matters; this limits the number of trials.
        key = (kind, str(attribute.type)) if kind in _TYPED or kind == "StringAttr" else attribute
        if key not in self._known:
            self._known[key] = self._tried(attribute)
        return self._known[key]

    def _tried(self, attribute: Any) -> bool:
        ir = self._provider.ir
        module = ir.Module.parse("func.func private @probe()", attribute.context)
        module.body.operations[0].attributes["probe.attribute"] = attribute
        try:
            self._provider.run_passes(module, self._pipeline, verify=False)
        except MLIRFailure:
            return True
        return False


# Attributes that a round trip through an artifact changes or rejects: VHLO has fewer kinds of attributes than MLIR

#: The remedy for other dialects.
KEEP_OR_LOWER: Final = (
    "lower it to StableHLO first, or keep it with --allow-other-dialects (allow_other_dialects=True) for consumers "
    "since 1.11.0 that know the dialect"
)

# Attributes that a round trip changes, by their class in the bindings: the original and the resulting form. Source:
# `convertGeneric` in stablehlo/transforms/StablehloLegalizeToVhlo.cpp, and round trips of sixty kinds of attributes
# with jaxlib 0.10.2 and 0.12.0.1.
_CHANGED: Final = {
    "DenseBoolArrayAttr": ("an array<i1>", "a dense tensor"),
    "DenseI64ArrayAttr": ("an array<i64>", "a dense tensor"),
    "FlatSymbolRefAttr": ("a symbol reference", "a string"),
}
# The resulting forms in an artifact, and the lists and dictionaries that may contain them.
_MADE: Final = frozenset({"array_v1", "dict_v1", "string_v1", "tensor_v1"})
_DICTIONARIES: Final = ("dictionary", "dict_v1")

# Descriptions of rejected attributes; other attributes are printed by MLIR.
_WORDS: Final = {
    "DenseF32ArrayAttr": "an array<f32>",
    "DenseF64ArrayAttr": "an array<f64>",
    "DenseI8ArrayAttr": "an array<i8>",
    "DenseI16ArrayAttr": "an array<i16>",
    "DenseI32ArrayAttr": "an array<i32>",
    "UnitAttr": "a unit attribute",
}
_LONGEST: Final = 60
#: The remedy for an attribute without a form in VHLO.
RESPELL: Final = "remove it, or write it as an integer, a string, or a dense tensor"
_WHOLE: Final = (
    "omit --no-legalize, so that it is inlined; or, if the value was elided when the program was printed, print all "
    "constants"
)


class ChangedForm(NamedTuple):
    holder: str  # "function", "argument", "result" or "op"
    text: str  # original form
    comes_back: str  # restored form, in words


def refused_attributes(program: Program, *, allow_other_dialects: bool) -> list[Finding]:
    probe = AttributeProbe(program.provider, allow_other_dialects=allow_other_dialects)
    module = program.load()
    return [
        _refusal(program, held, words)
        for held in held_attributes(program, module)
        for words in dict.fromkeys(_in_words(each) for each in leaves(held.attribute) if probe.refuses(each))
    ]


def changed_attributes(program: Program, written: Artifact | None = None) -> list[Finding]:
    """The bytes of ``written``, the program's artifact, make loading most programs unnecessary."""
    if written is not None and not _may_have_changed(written.file):
        return []
    return [
        _finding(
            program,
            held,
            f"{what}, which an artifact restores as {back}",
            "warning",
            f"write it as {back}, or make its reader accept both",
        )
        for held, what, back in _changed(program)
    ]


def changed_forms(program: Program) -> dict[str, ChangedForm]:
    """Ops are distinguished by the number of preceding ops of the same name."""
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
    """Yields attributes with the original and the restored form, in words."""
    # The module must be kept alive while its ops are in use.
    module = program.load()
    for held in held_attributes(program, module):
        for kind in sorted({class_of(each) for each in leaves(held.attribute)} & _CHANGED.keys()):
            yield held, *_CHANGED[kind]


def _refusal(program: Program, held: Held, words: str) -> Finding:
    dialect = words[1:].partition(".")[0].partition("<")[0] if words.startswith("#") else "builtin"
    if dialect in ("builtin", "stablehlo", "vhlo"):
        remedy = _WHOLE if words.startswith("dense_resource<") else RESPELL
        return _finding(program, held, f"{words}, which VHLO cannot represent", "error", remedy)
    mixed = known_feature("mixed_dialects")
    says = f"{words} of the dialect {dialect}, which is not part of StableHLO"
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
    """Only attributes in dictionaries can change their form."""
    dialects = [file.dialect(index) for index in range(len(file.dialects.names))]
    plain = [
        frozenset(
            code << 1 | 1
            for code, encoding in encodings_of(dialect, "attribute").items()
            if encoding.name not in _DICTIONARIES
        )
        for dialect in dialects
    ]
    for index in file.attributes.others(plain):
        value = file.decode("attribute", index)
        if value is None or value.name not in _DICTIONARIES:
            continue
        held = (file.decode("attribute", index) for _, index in value.field("elements"))
        if any(each is not None and each.name in _MADE for each in held):
            return True
    return False
