"""Which outputs use the donors of a program."""

from __future__ import annotations

from vhlo_tools.aliasing import Alias, AliasConfig, Array, Donor, Signature
from vhlo_tools.aliasing.config import compiled_aliases
from vhlo_tools.aliasing.shapes import Opaque, Shape, Tuple

F4, F8, F16 = (Array("f32", (size,)) for size in (4, 8, 16))


def compiled(parameters: tuple[Shape, ...], results: tuple[Shape, ...], *entries: Alias | Donor) -> list[Alias]:
    config = AliasConfig(Signature(parameters, Tuple(results)))
    for entry in entries:
        if isinstance(entry, Alias):
            config.set_up_alias(entry.output_index, entry.parameter_number, entry.parameter_index, entry.kind)
        else:
            config.set_up_donor(entry.parameter_number, entry.parameter_index)
    return list(compiled_aliases(config))


def test_donors_and_outputs_of_one_size_belong_together() -> None:
    found = compiled((F4, F8, F16), (F16, F4, F8), Donor(0), Donor(1), Donor(2))
    assert found == [Alias((0,), 2), Alias((1,), 0), Alias((2,), 1)]


def test_the_first_donor_takes_the_first_output() -> None:
    assert compiled((F4, F4), (F8, F4, F4), Donor(0), Donor(1)) == [Alias((1,), 0), Alias((2,), 1)]
    assert compiled((F4, F4), (F4,), Donor(0), Donor(1)) == [Alias((0,), 0)]
    assert compiled((F4, F4), (F4, F4), Donor(1)) == [Alias((0,), 1)]


def test_donors_and_outputs_without_a_partner_stay_alone() -> None:
    assert compiled((F4, F16), (F8,), Donor(0), Donor(1)) == []
    assert compiled((F16, F4), (F8, F4), Donor(0), Donor(1)) == [Alias((1,), 1)]
    assert compiled((F4,), (Opaque(), F4), Donor(0)) == [Alias((1,), 0)]


def test_an_output_that_has_an_alias_is_not_left() -> None:
    held = Alias((0,), 0, (), "must-alias")
    assert compiled((F4, F4), (F4, F4), held, Donor(1)) == [held, Alias((1,), 1)]
    assert compiled((F4, F4), (F4,), held, Donor(1)) == [held]


def test_sizes_known_at_run_time_only() -> None:
    unknown = Array("f32", (None,))
    # Such an output may take any donor, so that nobody knows.
    assert compiled((F4,), (unknown, F4), Donor(0)) == []
    assert compiled((unknown, F4), (F4,), Donor(0), Donor(1)) == [Alias((0,), 1)]


def test_parts_of_parameters() -> None:
    assert compiled((Tuple((F8, F4)),), (F4,), Donor(0, (1,))) == [Alias((0,), 0, (1,))]
