"""Aliases as attributes of MLIR: each form says what the model says, or refuses it and names the one that can."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from support.alias_programs import configs

import vhlo_tools as vt
from vhlo_tools.aliasing import (
    Alias,
    AliasConfig,
    Array,
    Donor,
    Form,
    Opaque,
    Other,
    Plain,
    Signature,
    Tuple,
    Unit,
    describe,
    encode_aliases,
    encode_call,
    fits,
    format_aliases,
    format_donors,
    parse_aliases,
    parse_donors,
    read_call,
    read_declared,
)

pytestmark = pytest.mark.every_python

F4, F8 = Array("f32", (4,)), Array("f32", (8,))
ONE = Signature.of_results((F4, F4), (F4,))
TWO = Signature.of_results((F4, F4), (F4, F4))


@given(configs())
def test_every_form_says_the_same_or_names_the_one_that_can(config: AliasConfig) -> None:
    assert parse_aliases(format_aliases(config.aliases)) == list(config.aliases)
    assert parse_donors(format_donors(config.donors)) == list(config.donors)
    forms: tuple[Form, ...] = ("argument", "module")
    for form in forms:
        if fits(config, form):
            encoded = encode_aliases(config, form)
            read = read_declared(config.signature, encoded.arguments, encoded.module)
            assert read.config() == config
            assert not read.problems
            assert not read.replaced
            assert read.form == (form if config.aliases else None)
        else:
            with pytest.raises(vt.AliasError, match="of the module|only buffer_donor of HLO"):
                encode_aliases(config, form)
    # The module says every alias there is, and donors of whole arguments.
    assert fits(config, "module") == all(not donor.parameter_index for donor in config.donors)
    plain = all(alias.kind == "may-alias" and not alias.parameter_index for alias in config.aliases)
    outputs = all(len(alias.output_index) < 2 for alias in config.aliases)
    if fits(config, "argument"):
        assert plain
        assert outputs
        assert not encode_aliases(config).module
    elif fits(config, "module"):
        assert encode_aliases(config) == encode_aliases(config, "module")


@given(configs())
def test_calls_say_must_alias_and_nothing_else(config: AliasConfig) -> None:
    if any(alias.kind == "may-alias" for alias in config.aliases):
        with pytest.raises(vt.AliasError, match="can only express must-alias"):
            encode_call(config.aliases)
    else:
        assert read_call(encode_call(config.aliases)) == config.aliases


@pytest.mark.parametrize(
    ("alias", "message"),
    [
        (
            Alias((0,), 0, (), "must-alias"),
            "cannot express must-alias, which the alias of output {0} requires: use mhlo.input_output",
        ),
        (Alias((0,), 1, (0,)), "cannot express the index {0} in parameter 1"),
        (Alias((1, 0), 0), "cannot express the index {1,0} within one result"),
    ],
)
def test_what_arguments_cannot_say(alias: Alias, message: str) -> None:
    config = AliasConfig(Signature.of_results((F4, Tuple((F4,))), (F4, Tuple((F4,)))), [alias])
    with pytest.raises(vt.AliasError, match=re.escape(message)):
        encode_aliases(config, "argument")
    assert encode_aliases(config) == encode_aliases(config, "module")


def test_what_no_attribute_can_say() -> None:
    config = AliasConfig(Signature.of_results((Tuple((F4,)),), (F4,)), donors=[Donor(0, (0,))])
    with pytest.raises(vt.AliasError, match="donated at .0.: only buffer_donor of HLO can express this"):
        encode_aliases(config)


def test_one_result_that_is_a_tuple() -> None:
    # It is result 0 to an argument, and what is in it cannot be said there.
    signature = Signature.of_results((F4,), (Tuple((F4, F4)),))
    assert not fits(AliasConfig(signature, [Alias((1,), 0)]), "argument")
    read = read_declared(signature, [{"tf.aliasing_output": 1}], {})
    assert [problem.kind for problem in read.problems] == ["malformed"]
    with pytest.raises(vt.AliasError, match="but the only result has number 0"):
        read.config()
    assert read_declared(signature, [{"tf.aliasing_output": 0}], {}).aliases == (Alias((), 0),)


@pytest.mark.parametrize(
    ("value", "aliases"),
    [
        (1, (Alias((1,), 0),)),
        (-3, (Alias((-3,), 0),)),
        (False, (Alias((0,), 0),)),
        (True, (Alias((-1,), 0),)),
        ("x", ()),
        (Unit(), ()),
        (Other("1.0 : f32"), ()),
        ((0,), ()),
    ],
)
def test_what_counts_as_an_output(value: Plain, aliases: tuple[Alias, ...]) -> None:
    read = read_declared(TWO, [{"tf.aliasing_output": value, "other": 1}, {}], {})
    assert read.aliases == aliases
    assert [problem.kind for problem in read.problems] == ([] if aliases else ["ignored"])
    assert not read.problems or describe(value) in read.problems[0].message


@pytest.mark.parametrize(
    ("value", "donors"),
    [(True, (Donor(1),)), (False, (Donor(1),)), (1, ()), (Unit(), ()), ("true", ())],
)
def test_what_counts_as_a_donor(value: Plain, donors: tuple[Donor, ...]) -> None:
    read = read_declared(TWO, [{}, {"jax.buffer_donor": value}], {})
    assert read.donors == donors
    assert len(read.problems) == (not donors)


def test_the_one_result_has_no_index() -> None:
    assert read_declared(ONE, [{}, {"tf.aliasing_output": 0}], {}).config().aliases == (Alias((), 1),)
    with pytest.raises(vt.AliasError, match=re.escape("there is no output {1}: the result is f32[4]")):
        read_declared(ONE, [{}, {"tf.aliasing_output": 1}], {}).config()


def entry(**changes: Any) -> dict[str, Any]:
    alias = {"kind": "may_alias", "parameter_index": (), "parameter_number": 1}
    whole: dict[str, Any] = {"alias": alias, "output_index": (0,)}
    for key, value in changes.items():
        holder = whole if key in whole else alias
        holder[key] = value
        if value is None:
            del holder[key]
    return whole


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("may_alias", "may-alias"), *((kind, "must-alias") for kind in ("must_alias", "may-alias", 0, 1, True, Unit()))],
)
def test_kinds_of_the_module(kind: Plain, expected: str) -> None:
    read = read_declared(TWO, [{}, {}], {"mhlo.input_output_alias": [entry(kind=kind)]})
    assert read.config().aliases == (Alias((0,), 1, (), expected),)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [
        *("x", {}),
        *(entry(**{name: None}) for name in ("alias", "output_index", "kind", "parameter_index", "parameter_number")),
        *(entry(parameter_number="x"), entry(parameter_index=Other("array<i32: 1>"))),
        *(entry(output_index=value) for value in ([0], 0)),
    ],
    ids=str,
)
def test_entries_that_xla_may_die_of(value: Plain) -> None:
    read = read_declared(TWO, [{}, {}], {"mhlo.input_output_alias": [value]})
    assert read.aliases == ()
    assert [problem.kind for problem in read.problems] == ["malformed"]
    with pytest.raises(vt.AliasError, match="malformed and may crash XLA: .*: expected"):
        read.config()


def test_what_xla_ignores_of_modules() -> None:
    read = read_declared(
        ONE, [{"mhlo.buffer_donor": True}, {}], {"mhlo.input_output_alias": "x", "mhlo.buffer_donor": []}
    )
    assert not read.config()
    assert [(problem.kind, problem.argument) for problem in read.problems] == [
        ("ignored", 0),
        ("ignored", None),
        ("ignored", None),
    ]


def test_aliases_of_the_module_take_the_place_of_those_of_arguments() -> None:
    arguments: list[dict[str, Plain]] = [{"tf.aliasing_output": 0}, {"tf.aliasing_output": 1}]
    both = read_declared(TWO, arguments, {"mhlo.input_output_alias": [entry()]})
    assert both.config().aliases == (Alias((0,), 1),)
    assert both.replaced == (Alias((0,), 0), Alias((1,), 1))
    assert (both.form, both.form_of(Alias((0,), 1)), both.form_of(Donor(0))) == ("module", "module", "argument")
    # One that is said twice is one, and an empty list takes the place of nothing.
    arguments = [{}, {"tf.aliasing_output": 0}]
    assert read_declared(TWO, arguments, {"mhlo.input_output_alias": [entry()]}).replaced == ()
    assert read_declared(TWO, arguments, {"mhlo.input_output_alias": []}).form == "argument"


def test_what_is_replaced_is_checked_all_the_same() -> None:
    # XLA sets aliases of arguments up before it reads the module, and compares sizes only of those that count.
    module: dict[str, Plain] = {"mhlo.input_output_alias": [entry(parameter_number=0)]}
    signature = Signature.of_results((F4, F8), (F4, F4))
    assert read_declared(signature, [{}, {"tf.aliasing_output": 1}], module).violations() == []
    (found,) = read_declared(signature, [{}, {"tf.aliasing_output": 2}], module).violations()
    assert found.rule == "output-index"
    (found,) = read_declared(signature, [{"jax.buffer_donor": True}, {}], module).violations()
    assert found.rule == "donor-and-alias"


def test_what_is_replaced_is_not_compiled() -> None:
    signature = Signature.of_results((F4, F4), (F4, Tuple((F4,))))
    arguments: list[dict[str, Plain]] = [{"tf.aliasing_output": 1}, {}]
    assert read_declared(signature, arguments, {"mhlo.input_output_alias": [entry()]}).violations() == []
    (found,) = read_declared(signature, arguments, {}).violations()
    assert found.rule == "output-index"


def test_tokens_are_aliased_with_nothing() -> None:
    signature = Signature.of_results((Opaque(), F4), (Opaque(), F4))
    for arguments in ([{"jax.buffer_donor": True}, {}], [{}, {"tf.aliasing_output": 0}]):
        with pytest.raises(vt.AliasError, match="has no array|not an array"):
            read_declared(signature, arguments, {}).config()
