"""The first line of HLO text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import vhlo_tools as vt
from vhlo_tools.aliasing import Alias, Array, Donor, Signature
from vhlo_tools.aliasing.shapes import Opaque, Shape, Tuple
from vhlo_tools.files.hlo import HloHeader, parse_header, read_hlo_text, with_long_aliases

F4 = Array("f32", (4,))


def test_all_that_the_line_says_in_any_order() -> None:
    line = (
        "HloModule jit_step, is_scheduled=true, buffer_donor={ (1, {}) }, "
        "input_output_alias={ {0}: (0, {}, must-alias) }, "
        "entry_computation_layout={(f32[4]{0}, f32[4]{0})->(f32[4]{0}, s32[])}, replica_count=2"
    )
    assert parse_header(line) == HloHeader(
        "jit_step",
        (Alias((0,), 0, (), "must-alias"),),
        (Donor(1),),
        Signature((F4, F4), Tuple((F4, Array("s32", ())))),
    )


def test_a_line_that_says_no_more_than_the_name() -> None:
    assert parse_header("  HloModule name") == HloHeader("name", (), (), None)
    # Another attribute whose name ends like ours.
    assert parse_header("HloModule name, no_buffer_donor={ (1, {}) }").donors == ()


@pytest.mark.parametrize(
    ("layout", "parameters", "result"),
    [
        ("()->f32[4]{0}", (), F4),
        ("(f32[4])->()", (F4,), Tuple(())),
        ("(s32[])->s32[]", (Array("s32", ()),), Array("s32", ())),
        ("(f32[2,3]{1,0}, pred[])->f32[2, 3]", (Array("f32", (2, 3)), Array("pred", ())), Array("f32", (2, 3))),
        # Sizes that are known at run time only.
        ("(f32[<=8,?]{1,0})->f32[4]", (Array("f32", (None, None), (8, None)),), F4),
        ("(f32[?]{0})->f32[4]", (Array("f32", (None,)),), F4),
        ("(f32[8,16]{1,0:T(8,128)(2,1)S(5)})->f32[4]{0:T(128)P(u8[16]{0})}", (Array("f32", (8, 16)),), F4),
        ("((), (f32[4]), ((())))->()", (Tuple(()), Tuple((F4,)), Tuple((Tuple((Tuple(()),)),))), Tuple(())),
        ("(token[], opaque[])->f32[4]", (Opaque("token[]"), Opaque("opaque[]")), F4),
        ("((f32[4], (s32[])), f32[4])->f32[4]", (Tuple((F4, Tuple((Array("s32", ()),)))), F4), F4),
        # As XLA counts from the sixth on.
        ("(f32[4], /*index=5*/f32[4])->(f32[4], /*index=5*/ f32[4]{0})", (F4, F4), Tuple((F4, F4))),
        ("(f32[4], /*index=5*/(f32[4]))->f32[4]", (F4, Tuple((F4,))), F4),
    ],
)
def test_shapes(layout: str, parameters: tuple[Shape, ...], result: Shape) -> None:
    header = parse_header(f"HloModule name, entry_computation_layout={{{layout}}}")
    assert header.signature == Signature(parameters, result)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("module @name", "'module @name' is not the first line of HLO text"),
        ("HloModule name, buffer_donor={ (1, {}) ", "the braces of buffer_donor are not closed"),
        ("HloModule name, entry_computation_layout={(f32[4])}", "expected an HLO shape, found ''"),
        ("HloModule name, entry_computation_layout={f32[4]->f32[4]}", "expected an HLO shape, found ''"),
        ("HloModule name, entry_computation_layout={(f32[4] f32[4])->f32[4]}", "found ' f32.4.\\)->f32.4.'"),
        ("HloModule name, entry_computation_layout={(?)->f32[4]}", "expected an HLO shape, found '\\?\\)->f32.4.'"),
        (f"HloModule name, entry_computation_layout={{{'(' * 200}->f32[4]}}", "shapes nest deeper than 100"),
    ],
)
def test_other_forms_are_refused(line: str, message: str) -> None:
    with pytest.raises(vt.AliasError, match=message):
        parse_header(line)


@pytest.mark.parametrize("read", [parse_header, read_hlo_text])
@pytest.mark.parametrize("size", ["9" * 5000, "<=" + "9" * 5000])
def test_sizes_of_more_than_64_bits(size: str, read: Callable[[str], HloHeader]) -> None:
    with pytest.raises(vt.AliasError, match="expected an HLO shape, found 'f32"):
        read(f"HloModule m, entry_computation_layout={{(f32[{size}]{{0}})->f32[4]{{0}}}}")


def test_a_size_that_is_a_digit_and_no_number() -> None:
    found = parse_header("HloModule m, entry_computation_layout={(f32[\u00b2])->f32[4]}").signature
    assert found == Signature((Array("f32", (None,)),), F4)


@pytest.mark.parametrize(
    "entry", ["input_output_alias={ {}: (N, {}) }", "input_output_alias={ {N}: 0 }", "buffer_donor={ (0, {N}) }"]
)
def test_numbers_of_aliases_that_are_too_long(entry: str) -> None:
    line = f"HloModule m, {entry.replace('N', '9' * 5000)}"
    with pytest.raises(vt.AliasError, match="is not an entry of a list of aliases or donors"):
        parse_header(line)


def test_aliases_in_the_form_that_xla_reads() -> None:
    text = "HloModule name, input_output_alias={ {}: 0 }, replica_count=2\n\nENTRY main {}\n"
    long = "HloModule name, input_output_alias={ {}: (0, {}, may-alias) }, replica_count=2\n\nENTRY main {}\n"
    assert with_long_aliases(text) == with_long_aliases(long) == long
    assert with_long_aliases(text.partition("\n")[0]) == long.partition("\n")[0]
    # Only the first line counts.
    other = "HloModule name\n, input_output_alias={ {}: 0 }\n"
    assert with_long_aliases(other) == other


ENTRY = """HloModule m, input_output_alias={ {0}: (1, {}, may-alias) }

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (b: f32[4], a: (s32[], ())) -> (f32[4]) {
  // Parameters may come in any order.
  %b.1 = f32[4]{0} parameter(1)
  a = (s32[], /*index=1*/()) parameter(0), sharding={replicated}
  ROOT %out = (f32[4]{0}) tuple(%b.1), metadata={op_name="}"}
}
"""


def test_without_a_layout_the_entry_has_the_signature() -> None:
    header = read_hlo_text(ENTRY)
    assert header.signature == Signature((Tuple((Array("s32", ()), Tuple(()))), F4), Tuple((F4,)))
    assert header.aliases == (Alias((0,), 1),)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ENTRY", "%other"),
        ("parameter(0), sh", "parameter(2), sh"),
        ("= f32[4]{0} par", "= b(f32[4]) par"),
        ("ROOT %out", "%out"),
    ],
)
def test_an_entry_of_another_form_has_no_signature(old: str, new: str) -> None:
    assert old in ENTRY
    assert read_hlo_text(ENTRY.replace(old, new)).signature is None
