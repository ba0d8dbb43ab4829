"""Signatures with aliases and donors, random ones, and programs of MLIR that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from hypothesis import strategies as st

from vhlo_tools.aliasing import (
    Alias,
    AliasAttributes,
    AliasConfig,
    Array,
    Donor,
    Opaque,
    Plain,
    Shape,
    Signature,
    Tuple,
    Unit,
    leaves,
)

_ELEMENTS = {"f32": "f32", "s32": "i32", "u8": "ui8", "f64": "f64", "pred": "i1", "s4": "i4", "c64": "complex<f32>"}

_ARRAYS = st.builds(
    Array,
    st.sampled_from(list(_ELEMENTS)),
    st.lists(st.sampled_from([1, 2, 4, 8]), max_size=2).map(tuple),
)


def _shapes(tuples: bool) -> st.SearchStrategy[Shape]:
    if not tuples:
        return _ARRAYS
    return st.recursive(
        st.one_of(_ARRAYS, _ARRAYS, st.just(Opaque())),
        lambda inner: st.lists(inner, max_size=3).map(lambda shapes: Tuple(tuple(shapes))),
        max_leaves=4,
    )


@st.composite
def signatures(draw: st.DrawFn, *, tuples: bool = True) -> Signature:
    """Return signatures, in which shapes come back, so that there is something to alias."""
    shapes = draw(st.lists(_shapes(tuples), min_size=1, max_size=4))
    some = st.lists(st.sampled_from(shapes), max_size=4)
    return Signature.of_results(tuple(draw(some)), tuple(draw(some)))


@st.composite
def configs(draw: st.DrawFn, *, tuples: bool = True) -> AliasConfig:
    signature = draw(signatures(tuples=tuples))
    return _filled(AliasConfig(signature), draw(st.randoms(use_true_random=False)))


def random_config(random: Random, signature: Signature) -> AliasConfig:
    """Return aliases and donors for a signature that XLA takes."""
    return _filled(AliasConfig(signature), random)


def _filled(config: AliasConfig, random: Random) -> AliasConfig:
    signature = config.signature
    inputs = [
        (number, index, shape)
        for number, parameter in enumerate(signature.parameters)
        for index, shape in leaves(parameter)
        if isinstance(shape, Array)
    ]
    random.shuffle(inputs)
    outputs = [(index, shape) for index, shape in leaves(signature.result) if isinstance(shape, Array)]
    for number, index, held in inputs:
        fitting = [
            (place, shape)
            for place, shape in outputs
            if isinstance(shape, Array) and shape.bytes == held.bytes and config.alias_of_output(place) is None
        ]
        if fitting and random.random() < 0.6:
            place, shape = random.choice(fitting)
            kind = "must-alias" if shape == held and random.random() < 0.3 else "may-alias"
            config.set_up_alias(place, number, index, kind)  # type: ignore[arg-type]
        elif random.random() < 0.2:
            config.set_up_donor(number, index)
    return config


def type_text(shape: Shape) -> str:
    if isinstance(shape, Tuple):
        return f"tuple<{', '.join(map(type_text, shape.elements))}>"
    if isinstance(shape, Opaque):
        return "!stablehlo.token"
    return f"tensor<{''.join(f'{size}x' for size in shape.sizes)}{_ELEMENTS[shape.element]}>"


def module_text(signature: Signature, encoded: AliasAttributes) -> str:
    """Return a program of a signature of arrays, whose results are zeros, with aliases and donors as attributes."""
    results = _results(signature)
    types = [type_text(shape) for shape in results]
    arguments = [
        f"%a{number}: {type_text(shape)}{_dictionary(encoded.arguments[number], 'i32', ' ')}"
        for number, shape in enumerate(signature.parameters)
    ]
    zeros = [
        f"%r{number} = stablehlo.constant dense<{_zero(shape)}> : {kind}"
        for number, (shape, kind) in enumerate(zip(results, types, strict=True))
    ]
    values = f"{', '.join(f'%r{number}' for number in range(len(types)))} : {', '.join(types)}" if types else ""
    attributes = _dictionary(encoded.module, "i64", " attributes ")
    body = "\n    ".join([*zeros, f"return {values}"])
    return f"""module{attributes} {{
  func.func public @main({", ".join(arguments)}) -> ({", ".join(types)}) {{
    {body}
  }}
}}"""


def declaration_text(signature: Signature, encoded: AliasAttributes) -> str:
    """Return a program that has a signature of any kind and no more."""
    arguments = [
        f"{type_text(shape)}{_dictionary(each, 'i32', ' ')}"
        for shape, each in zip(signature.parameters, encoded.arguments, strict=True)
    ]
    types = ", ".join(map(type_text, _results(signature)))
    attributes = _dictionary(encoded.module, "i64", " attributes ")
    return f"module{attributes} {{ func.func private @main({', '.join(arguments)}) -> ({types}) }}"


def _results(signature: Signature) -> Sequence[Shape]:
    if isinstance(signature.result, Tuple) and signature.results != 1:
        return signature.result.elements
    return (signature.result,)


def _zero(shape: Shape) -> str:
    element = shape.element if isinstance(shape, Array) else ""
    return {"pred": "false", "c64": "(0.0, 0.0)"}.get(element, "0.0" if element.startswith("f") else "0")


def _dictionary(attributes: Mapping[str, Plain], integers: str, before: str) -> str:
    """Return a dictionary of MLIR, whose integers are of one type."""
    return f"{before}{attribute_text(dict(attributes), integers)}" if attributes else ""


def attribute_text(value: Plain, integers: str) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{key} = {attribute_text(each, integers)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(attribute_text(each, integers) for each in value) + "]"
        case tuple():
            return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
        case bool():
            return str(value).lower()
        case int():
            return f"{value} : {integers}"
        case str():
            return f'"{value}"'
        case Unit():
            return "unit"
    return value.text


def encoded_entries(signature: Signature, entries: Sequence[Alias | Donor]) -> AliasAttributes:
    """Return any entries as attributes: of the module, and donors of arguments."""
    arguments: list[dict[str, Plain]] = [{} for _ in signature.parameters]
    module: list[Plain] = []
    for entry in entries:
        if isinstance(entry, Donor):
            arguments[entry.parameter_number]["jax.buffer_donor"] = True
        else:
            kind = entry.kind.replace("-", "_")
            inner: Plain = {
                "kind": kind,
                "parameter_index": entry.parameter_index,
                "parameter_number": entry.parameter_number,
            }
            module.append({"alias": inner, "output_index": entry.output_index})
    return AliasAttributes(tuple(arguments), {"mhlo.input_output_alias": module} if module else {})
