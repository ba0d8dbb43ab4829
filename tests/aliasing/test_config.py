"""The model of aliases: what XLA refuses is refused at the call, with a reason."""

from __future__ import annotations

import doctest
import re

import pytest

import vhlo_tools as vt
from vhlo_tools.aliasing import (
    Alias,
    AliasConfig,
    Array,
    Donor,
    Opaque,
    Signature,
    Tuple,
    config,
    config as hlo_form,
    format_aliases,
    format_donors,
    parse_aliases,
    parse_donors,
    violations,
)

F4, S4, F8 = Array("f32", (4,)), Array("s32", (4,)), Array("f32", (8,))
NESTED = Tuple((F4, Tuple((S4, F8))))


def two() -> AliasConfig:
    return AliasConfig(Signature((F4, S4, F8), Tuple((F4, S4, F8))))


def test_doctests() -> None:
    for module in (config, hlo_form):
        assert doctest.testmod(module).failed == 0


def test_aliases_and_donors_are_kept_in_order() -> None:
    found = two()
    found.set_up_alias((1,), 0)
    found.set_up_alias((2,), 2, kind="must-alias")
    found.set_up_donor(1)
    assert found.aliases == (Alias((1,), 0), Alias((2,), 2, (), "must-alias"))
    assert found.donors == (Donor(1),)
    assert found.alias_of_output((1,)) == Alias((1,), 0)
    assert found.alias_of_parameter(2) == Alias((2,), 2, (), "must-alias")
    assert found.alias_of_parameter(1) is None
    assert found == AliasConfig(found.signature, found.aliases, found.donors)
    assert bool(found)
    assert not two()


@pytest.mark.parametrize(
    ("alias", "rule", "message"),
    [
        (Alias((4,), 0), "output-index", "there is no output {4}: the result is (f32[4], s32[4], f32[8], f32[8])"),
        (Alias((), 3), "output-index", "output {} is (f32[4], s32[4], f32[8], f32[8]), which is not an array"),
        (Alias((-1,), 0), "output-index", "there is no output {-1}"),
        (Alias((0,), 4), "parameter-number", "there is no parameter 4: the program has 4"),
        (Alias((0,), -1), "parameter-number", "there is no parameter -1"),
        (Alias((0,), 0, (0,)), "parameter-index", "parameter 0 has no array at {0}: its shape is f32[4]"),
        (Alias((2,), 2), "output-twice", "output {2} is aliased with parameter 2 and with parameter 1"),
        (Alias((3,), 1), "parameter-twice", "parameter 1 at {} is aliased with two outputs"),
        (Alias((0,), 0), "donor-and-alias", "parameter 0 at {} is a donor and has an alias"),
        (Alias((3,), 1, (), "must-alias"), "parameter-twice", "parameter 1 at {} is aliased with two outputs"),
        (Alias((1,), 2), "size", "output {1} is s32[4] of 16 bytes; parameter 2 at {} is f32[8] of 32"),
        (
            Alias((1,), 3, (), "must-alias"),
            "shape",
            "output {1} is s32[4]; parameter 3 at {} is f32[4], but must",
        ),
        (Alias((0,), 2), "size", "output {0} is f32[4] of 16 bytes; parameter 2 at {} is f32[8] of 32"),
    ],
)
def test_rules(alias: Alias, rule: str, message: str) -> None:
    signature = Signature((F4, F8, F8, F4), Tuple((F4, S4, F8, F8)))
    before: list[Alias | Donor] = [Alias((2,), 1), Donor(0)]
    (violation,) = violations(signature, [*before, alias])
    assert violation.rule == rule
    assert violation.message.startswith(message)
    assert violation.remedy
    held = AliasConfig(signature, [Alias((2,), 1)], [Donor(0)])
    with pytest.raises(vt.AliasError) as refused:
        held.set_up_alias(alias.output_index, alias.parameter_number, alias.parameter_index, alias.kind)
    assert str(refused.value) == f"{violation.message}: {violation.remedy}"
    assert (held.aliases, held.donors) == ((Alias((2,), 1),), (Donor(0),))


def test_donors_have_rules_too() -> None:
    held = AliasConfig(Signature((F4, NESTED), F4), [Alias((), 0)])
    for number, index, message in (
        (0, (), "parameter 0 at {} is a donor and has an alias"),
        (1, (), "parameter 1 has no array at {}: its shape is (f32[4], (s32[4], f32[8]))"),
        (2, (), "there is no parameter 2: the program has 2"),
        (1, (2,), "parameter 1 has no array at {2}"),
    ):
        with pytest.raises(vt.AliasError, match=re.escape(message)):
            held.set_up_donor(number, index)
    held.set_up_donor(1, (1, 0))
    held.set_up_donor(1, (1, 0))
    assert held.donors == (Donor(1, (1, 0)),)


def test_nested_tuples_and_tokens() -> None:
    held = AliasConfig(Signature((NESTED,), Tuple((Tuple((F8, Opaque())), F4))))
    held.set_up_alias((0, 0), 0, (1, 1))
    held.set_up_alias((1,), 0, (0,), "must-alias")
    assert repr(held) == "AliasConfig({ {0,0}: (0, {1,1}, may-alias), {1}: (0, {0}, must-alias) })"
    with pytest.raises(vt.AliasError, match=re.escape("output {0,1} is token[], which is not an array")):
        held.set_up_alias((0, 1), 0, (1, 0))


def test_sizes_known_at_run_time_only_are_not_compared() -> None:
    held = AliasConfig(Signature((Array("f32", (None,)),), Array("f32", (4,))))
    held.set_up_alias()
    assert held.aliases == (Alias((), 0),)


def test_sizes_with_bounds_are_those() -> None:
    bounded = Array("f32", (None, 2), (4, None))
    assert (str(bounded), bounded.bytes) == ("f32[<=4,2]", 32)
    held = AliasConfig(Signature((bounded, Array("f32", (None, 2), (5, None))), F8))
    held.set_up_alias()
    assert held.aliases == (Alias((), 0),)
    for kind, message in (("may-alias", "of 40"), ("must-alias", "must-alias requires equal types and shapes")):
        with pytest.raises(vt.AliasError, match=message):
            AliasConfig(held.signature, [Alias((), 1, (), kind)])  # type: ignore[arg-type]


def test_sizes_of_small_elements() -> None:
    assert [Array("s4", (3,)).bytes, Array("pred", (3,)).bytes, Array("f8e4m3fn", (3,)).bytes] == [2, 3, 3]
    assert [Array("u2", (5,)).bytes, Array("f4e2m1fn", (3,)).bytes, Array("f6e2m3fn", (3,)).bytes] == [2, 2, 3]
    assert Array.of_stablehlo("ui16", (2,)) == Array("u16", (2,))
    assert Array.of_stablehlo("!quant.uniform<i8:f32, 1.0>", (2,)).bytes is None


def test_a_kind_that_is_none() -> None:
    with pytest.raises(vt.AliasError, match="unknown kind of alias 'may'"):
        two().set_up_alias((0,), 0, kind="may")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ {}: 0 }", [Alias((), 0)]),
        ("{ {}: (0, {}) }", [Alias((), 0)]),
        ("{{}:(0,{},must-alias)}", [Alias((), 0, (), "must-alias")]),
        ("{ {0,1}: (2, {1, 0}, may-alias), {3}: 4 }", [Alias((0, 1), 2, (1, 0)), Alias((3,), 4)]),
        ("{}", []),
        ("{ }", []),
    ],
)
def test_hlo_form_is_read(text: str, expected: list[Alias]) -> None:
    assert parse_aliases(text) == expected
    assert parse_aliases(format_aliases(expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "x", "{", "{ {}: }", "{ {}: (0) }", "{ {}: (0, {}, may) }", "{ {}: 0 {1}: 1 }", "{ {}: 0, x }", "{ {a}: 0 }"],
)
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(vt.AliasError, match=r"expected|comma"):
        parse_aliases(text)


def test_hlo_form_of_donors() -> None:
    donors = [Donor(0), Donor(2, (1, 0))]
    assert format_donors(donors) == "{ (0, {}), (2, {1,0}) }"
    assert parse_donors("{(0,{}), ( 2 , {1, 0} ) }") == donors
    with pytest.raises(vt.AliasError, match="expected"):
        parse_donors("{ 0 }")


@pytest.mark.parametrize(("length", "shown"), [(80, "x" * 80), (81, f"{'x' * 80}...")])
def test_long_shapes_are_cut_short(length: int, shown: str) -> None:
    held = AliasConfig(Signature((F4,), Opaque("x" * length)))
    with pytest.raises(vt.AliasError, match=re.escape(f"there is no output {{0}}: the result is {shown}: give")):
        held.set_up_alias((0,), 0)
