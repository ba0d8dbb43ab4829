"""Attributes that a round trip through an artifact changes or refuses: VHLO has fewer kinds of them than MLIR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from vhlo_tools.bindings import Operation, source_of
from vhlo_tools.findings import Finding
from vhlo_tools.program import Program, place_of

__all__ = ["ChangedForm", "changed_attributes", "changed_forms", "refused_attributes"]

# By the class of the bindings, and what it is in words. Source: `convertGeneric` in
# stablehlo/transforms/StablehloLegalizeToVhlo.cpp, and what comes back of each from jaxlib 0.10.2 and 0.12.0.1.
_REFUSED: Final = {
    "UnitAttr": "a unit attribute",
    "DenseI8ArrayAttr": "an array<i8>",
    "DenseI16ArrayAttr": "an array<i16>",
    "DenseI32ArrayAttr": "an array<i32>",
    "DenseF32ArrayAttr": "an array<f32>",
    "DenseF64ArrayAttr": "an array<f64>",
    "DenseResourceElementsAttr": "a dense_resource",
}
_CHANGED: Final = {"DenseI64ArrayAttr": "an array<i64>", "DenseBoolArrayAttr": "an array<i1>"}

# Ops of other dialects keep their attributes as they are.
_PORTABLE: Final = ("builtin", "func", "stablehlo")


class _Held(NamedTuple):
    op: Operation
    holder: str
    name: str
    what: str
    attribute: Any
    path: str
    word: str


class ChangedForm(NamedTuple):
    """An attribute that comes back from an artifact in another form.

    Attributes:
        holder: What holds it: ``module``, ``function``, ``argument``, ``result`` or ``op``.
        text: Its own form.
    """

    holder: str
    text: str


def refused_attributes(program: Program) -> list[Finding]:
    """Return an error for every attribute of ``program`` that has no form in VHLO."""
    return [
        _finding(
            program,
            held,
            level="error",
            says="which has no form in VHLO",
            remedy="drop it, or spell it with an integer, a string, or a dense tensor",
        )
        for held in _attributes(program, _REFUSED, dotted=False)
    ]


def changed_attributes(program: Program) -> list[Finding]:
    """Return a warning for every attribute of ``program`` that comes back as another kind."""
    return [
        _finding(
            program,
            held,
            level="warning",
            says="which comes back from an artifact as a dense tensor",
            remedy="spell it as a dense tensor, or have its reader take both",
        )
        for held in _attributes(program, _CHANGED, dotted=True)
    ]


def changed_forms(program: Program) -> dict[str, ChangedForm]:
    """Return what :func:`changed_attributes` is about by path, as differences between artifacts spell it.

    Ops are told apart by how many such came before.
    """
    found: dict[str, ChangedForm] = {}
    ops: Counter[str] = Counter()
    for held in _attributes(program, _CHANGED, dotted=True):
        path = f"{held.path} {held.name}"
        if held.word == "op":
            ops[path] += 1
            path = f"{held.path} #{ops[path] - 1} {held.name}"
        found[path] = ChangedForm(held.word, str(held.attribute))
    return found


def _finding(program: Program, held: _Held, *, level: Any, says: str, remedy: str) -> Finding:
    return Finding(
        feature="attribute_fidelity",
        level=level,
        kind="attribute",
        message=f"{held.name} of {held.holder} is {held.what}, {says}",
        op=str(held.op.name),
        location=place_of(source_of(held.op.location), program.name),
        remedy=remedy,
    )


def _attributes(program: Program, kinds: dict[str, str], *, dotted: bool) -> Iterator[_Held]:
    """Yield the attributes of the ``kinds``; with ``dotted`` only those whose names say that they are discardable.

    Inherent attributes come back as they were, whatever VHLO makes of them in between.
    """
    # Held while its ops are looked at: they die with it.
    module = program.load()
    for op in program.provider.walk(module):
        if str(op.name).partition(".")[0] not in _PORTABLE:
            continue
        attributes = op.attributes
        function = op.name == "func.func"
        for name, attribute in _named(attributes):
            what = kinds.get(type(attribute).__name__)
            if what is not None and ("." in name or not dotted):
                holder = f"@{attributes['sym_name'].value}" if function else f"{op.name}"
                word = "function" if function else "module" if op.name == "builtin.module" else "op"
                path = "module" if word == "module" else holder
                yield _Held(op, holder, name, what, attribute, path, word)
        if not function:
            continue
        for key, word in (("arg_attrs", "argument"), ("res_attrs", "result")):
            if key not in attributes:
                continue
            for number, dictionary in enumerate(attributes[key]):
                for name, attribute in _named(dictionary):
                    what = kinds.get(type(attribute).__name__)
                    if what is not None:
                        function_name = f"@{attributes['sym_name'].value}"
                        holder, path = f"{word} {number} of {function_name}", f"{function_name} {word} {number}"
                        yield _Held(op, holder, name, what, attribute, path, word)


def _named(attributes: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and attributes; what iterating over the bindings' own map gives differs between releases."""
    for each in attributes:
        yield (each, attributes[each]) if isinstance(each, str) else (each.name, each.attr)
