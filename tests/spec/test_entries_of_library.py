"""Every type and attribute of the specification against the installed library: its life, its code and its fields."""

from __future__ import annotations

from typing import Any

import pytest
from support.corpus import writable_versions
from support.vhlo_library import CURRENT, Vhlo, names_in_binary

from vhlo_tools.bytecode import decode, encode_entry, print_program
from vhlo_tools.spec import EntryKind, Spelling, find_enum, known_enums, known_ops, spellings_of

pytestmark = pytest.mark.every_python

F32, I8 = "!vhlo.f32_v1", "!vhlo.i8_v1"
BOUNDS = "#vhlo.type_extensions_v1<bounds = [3, ?]>"

#: One or more texts for each kind that takes parameters, so that each of its encodings occurs.
TEXTS: dict[str, list[str]] = {
    "type buffer_v1": [f"!vhlo.buffer_v1<2x?x{F32}>"],
    "type complex_v1": [f"!vhlo.complex_v1<{F32}>"],
    "type func_v1": [f"!vhlo.func_v1<({F32}, {I8}) -> {F32}>", "!vhlo.func_v1<(()) -> ()>"],
    "type future_v1": [f"!vhlo.future_v1<{F32}>"],
    "type quant_per_axis_v1": [f"!vhlo.quant_per_axis_v1<{I8}:{F32}, 1, [0.5, 0.25], [0, -3], -128:127, 1>"],
    "type quant_v1": [f"!vhlo.quant_v1<{I8}:{F32}, 0.1:-3, -128:127, 1>"],
    "type tensor_v1": [f"!vhlo.tensor_v1<{F32}>", f"!vhlo.tensor_v1<2x?x{F32}, {BOUNDS}>"],
    "type tuple_v1": [f"!vhlo.tuple_v1<{F32}, !vhlo.token_v1>"],
    "type unranked_tensor_v1": [f"!vhlo.unranked_tensor_v1<{F32}>"],
    "attribute array_v1": ["#vhlo.array_v1<[#vhlo.bool_v1<true>, #vhlo.bool_v1<false>]>", "#vhlo.array_v1<[]>"],
    "attribute axis_ref_v1": [
        '#vhlo.axis_ref_v1<name = #vhlo.string_v1<"x">>',
        '#vhlo.axis_ref_v1<name = #vhlo.string_v1<"x">, sub_axis_info = #vhlo.bool_v1<true>>',
    ],
    "attribute bool_v1": ["#vhlo.bool_v1<true>", "#vhlo.bool_v1<false>"],
    "attribute dict_v1": ['#vhlo.dict_v1<{#vhlo.string_v1<"a"> = #vhlo.bool_v1<true>}>'],
    # VHLO text makes a double of every float; others come from StableHLO, and are tested with the printer.
    "attribute float_v1": ["#vhlo.float_v1<1.500000e+00 : !vhlo.f64_v1>", "#vhlo.float_v1<-2.0 : !vhlo.f64_v1>"],
    "attribute integer_v1": [
        *(f"#vhlo.integer_v1<{value} : {name}>" for name in ("i4", "i8", "i16", "i32", "i64") for value in (-3, 5)),
        *(f"#vhlo.integer_v1<7 : {name}>" for name in ("ui8", "ui64", "index")),
    ],
    "attribute mesh_axis_v1": ['#vhlo.mesh_axis_v1<name = #vhlo.string_v1<"x">, size = 2>'],
    "attribute mesh_v1": [
        "#vhlo.mesh_v1<axes = #vhlo.array_v1<[]>>",
        "#vhlo.mesh_v1<axes = #vhlo.array_v1<[]>, device_ids = #vhlo.bool_v1<true>>",
    ],
    "attribute output_operand_alias_v1": [
        "#vhlo.output_operand_alias_v1<outputTupleIndices = [1, 0], operandIndex = 2, operandTupleIndices = []>"
    ],
    "attribute replica_group_mesh_axes_v1": [
        "#vhlo.replica_group_mesh_axes_v1<mesh = #vhlo.bool_v1<true>, axes = #vhlo.array_v1<[]>>"
    ],
    "attribute result_accuracy_v1": [
        "#vhlo.result_accuracy_v1<atol = 1.0e-5, rtol = 0.5, ulps = 3, mode = #vhlo<result_accuracy_mode_v1 TOLERANCE>>"
    ],
    "attribute string_v1": ['#vhlo.string_v1<"a\\\\b\\22c">', '#vhlo.string_v1<"">'],
    "attribute sub_axis_info_v1": ["#vhlo.sub_axis_info_v1<pre_size = 1, size = 2>"],
    "attribute tensor_v1": [
        "#vhlo.tensor_v1<dense<[1, -2]> : tensor<2xi64>>",
        "#vhlo.tensor_v1<dense<true> : tensor<9xi1>>",
        "#vhlo.tensor_v1<dense<> : tensor<0xf32>>",
    ],
    "attribute type_extensions_v1": [BOUNDS],
    "attribute type_v1": [f"#vhlo.type_v1<{F32}>"],
}

ENTRIES: list[tuple[EntryKind, Spelling]] = [
    (kind, spelling)
    for kind in ("type", "attribute")
    for spelling in spellings_of("vhlo", kind)
    if spelling.min is not None and spelling.min <= CURRENT
]


def texts_of(kind: EntryKind, spelling: Spelling) -> list[str]:
    """Return texts of the type or attribute, as attributes."""
    enum = find_enum(spelling.name)
    if kind == "attribute" and enum:
        # A case that is younger than its enum is tested with the enums.
        return [f"#vhlo<{spelling.name} {case.name}>" for case in enum.cases if case.min == enum.min]
    texts = TEXTS.get(f"{kind} {spelling.name}", [f"!vhlo.{spelling.name}"])
    return [f"#vhlo.type_v1<{text}>" if kind == "type" else text for text in texts]


def module_with(attribute: str) -> str:
    properties = (
        "arg_attrs = #vhlo.array_v1<[]>, function_type = #vhlo.type_v1<!vhlo.func_v1<(()) -> ()>>, "
        'res_attrs = #vhlo.array_v1<[]>, sym_name = #vhlo.string_v1<"f">, sym_visibility = #vhlo.string_v1<"">'
    )
    body = '({ "vhlo.return_v1"() : () -> () })'
    return f'"vhlo.func_v1"() <{{{properties}}}> {body} {{test.held = {attribute}}} : () -> ()'


@pytest.fixture(scope="module")
def vhlo(provider: Any) -> Vhlo:
    return Vhlo(provider)


@pytest.mark.parametrize(("kind", "spelling"), ENTRIES, ids=[f"{kind}-{each.name}" for kind, each in ENTRIES])
def test_its_life_is_what_the_library_allows(kind: EntryKind, spelling: Spelling, vhlo: Vhlo) -> None:
    for text in texts_of(kind, spelling):
        allowed = []
        for version in writable_versions():
            module = vhlo.provider.parse(vhlo.context, module_with(text))
            try:
                vhlo.provider.run_passes(module, f"vhlo-to-version{{target={version}}}", verify=True)
            except Exception as error:
                assert type(error).__name__ == "MLIRFailure"
            else:
                allowed.append(version)
        expected = [
            version
            for version in writable_versions()
            if spelling.min is not None
            and spelling.min <= version
            and (spelling.max is None or version <= spelling.max)
        ]
        assert allowed == expected, text


@pytest.mark.parametrize(("kind", "spelling"), ENTRIES, ids=[f"{kind}-{each.name}" for kind, each in ENTRIES])
def test_its_bytes_and_its_text_are_what_the_library_writes(kind: EntryKind, spelling: Spelling, vhlo: Vhlo) -> None:
    codes = set()
    for text in texts_of(kind, spelling):
        data = vhlo.bytecode(module_with(text))
        file = decode(data)
        table = file.attributes if kind == "attribute" else file.types
        values = [file.decode(kind, index) for index in range(len(table))]
        assert None not in values
        for entry, value in zip(table, values, strict=True):
            assert value is not None
            assert encode_entry(file, kind, value) == entry.data
            codes |= {value.encoding.code} if value.name == spelling.name and value.dialect == "vhlo" else set()
        assert vhlo.generic(print_program(file)) == vhlo.generic(module_with(text))
    assert codes == {encoding.code for encoding in spelling.encodings}


@pytest.mark.long
def test_the_library_has_no_type_or_attribute_that_the_specification_lacks() -> None:
    specified = {spelling.name for kind in ("type", "attribute") for spelling in spellings_of("vhlo", kind)}
    specified |= {version.name for op in known_ops() for version in op.versions}
    specified |= {enum.name for enum in known_enums()}
    assert {name for name in names_in_binary() if name not in specified} == set()


@pytest.mark.parametrize("kind", ["type", "attribute"])
def test_codes_are_unique_and_enums_are_attributes(kind: EntryKind) -> None:
    codes = [encoding.code for spelling in spellings_of("vhlo", kind) for encoding in spelling.encodings]
    assert len(codes) == len(set(codes))
    fields = [field for each in spellings_of("vhlo", kind) for encoding in each.encodings for field in encoding.fields]
    expected = {enum.name for enum in known_enums()} if kind == "attribute" else set()
    assert {field.enum for field in fields if field.enum} == expected
