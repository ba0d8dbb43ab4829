"""Known faults of engines: results that are wrong, or crashes, and what is done about each before an engine runs.

Each is a finding in ``docs/upstream-findings.md``, with the smallest program and the releases that it was run on.
``tests/conformance/engine_sweep.py`` and ``element_values.py`` look for more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from packaging.version import Version

from vhlo_tools.bindings import ModuleOp, Operation, Provider
from vhlo_tools.execution.op_traits import ops_where
from vhlo_tools.execution.protocols import EngineName
from vhlo_tools.execution.xla.workarounds import is_folded, replaced, replaced_before
from vhlo_tools.records import dataclass

#: What is done: programs are ``rewritten`` into ops that the engine computes right, compiled with an ``option``, or
#: ``refused``.
FaultRemedy = Literal["rewritten", "option", "refused"]
_REMEDIES: Final[Mapping[FaultRemedy, str]] = {
    "rewritten": "avoided by other ops",
    "option": "avoided by an option of the compiler",
    "refused": "such programs are refused",
}


@dataclass(frozen=True, slots=True)
class KnownFault:
    """Something that an engine gets wrong by itself, and that is avoided here.

    Attributes:
        id: The name of the finding in ``docs/upstream-findings.md``, with the smallest program and the releases.
        engine: The engine.
        title: What goes wrong.
        remedy: What is done about it: ``rewritten``, ``option`` or ``refused``.
        ops: The ops in which it shows, without the dialect; empty if it shows in ops of any name.
        mended: The first release of jaxlib that was found to be right; empty if there is none.
    """

    id: str
    engine: EngineName
    title: str
    remedy: FaultRemedy
    ops: tuple[str, ...]
    mended: str

    def __str__(self) -> str:
        ops = f" of {' and '.join(self.ops)}" if 0 < len(self.ops) < 3 else ""
        return f"{self.id}: a known fault of {self.engine}{ops}, {_REMEDIES[self.remedy]}: {self.title}"


#: What tells an op that has a fault among those of its name.
_Sign = Callable[[Operation], bool]


def _elements(values: Iterable[Any]) -> list[str]:
    return [str(getattr(each.type, "element_type", each.type)) for each in values]


def _takes(pattern: str, first: int = 0) -> _Sign:
    """The elements of an operand from ``first`` on are of a type that matches."""
    return lambda op: any(re.match(pattern, each) for each in _elements(list(op.operands)[first:]))


def _has(attribute: str, pattern: str) -> _Sign:
    return lambda op: attribute in op.attributes and re.search(pattern, str(op.attributes[attribute])) is not None


def _makes(pattern: str) -> _Sign:
    return lambda op: any(re.match(pattern, each) for each in _elements(op.results))


def _converts(op: Operation) -> bool:
    return _elements(op.results) != _elements(op.operands)[:1]


def _has_several(op: Operation) -> bool:
    return len(op.operands) > 1


def _scatters_several(op: Operation) -> bool:
    return len(op.operands) > 3


def _scatters_without_index(op: Operation) -> bool:
    return 0 in op.operands[len(op.operands) // 2].type.shape


def _is_dilated(op: Operation) -> bool:
    return "base_dilations" in op.attributes and any(int(each) != 1 for each in op.attributes["base_dilations"])


def _stores_unsigned(op: Operation) -> bool:
    return any(each.startswith("!quant.uniform<u") for each in _elements((*op.operands, *op.results)))


def _by_unsigned_constant(op: Operation) -> bool:
    given: list[Any] = list(op.operands)[1:]
    names = [str(getattr(each.owner, "name", "")) for each in given]
    return any(
        name == "stablehlo.constant" and element.startswith("ui")
        for name, element in zip(names, _elements(given), strict=True)
    )


def _draws_signed(op: Operation) -> bool:
    return not _elements(op.results)[-1].startswith("ui")


def _is_replaced(op: Operation) -> bool:
    return bool(replaced(op))


def _differs_among_constants(op: Operation) -> bool:
    return is_folded(op) and str(op.name) != "stablehlo.count_leading_zeros"


def _was_replaced(op: Operation) -> bool:
    return bool(replaced_before(op))


def _is_rounded_twice(op: Operation) -> bool:
    return _makes("bf16|f8E8M0FNU")(op) or (_takes("f64")(op) and _makes("f16")(op))


def _takes_minima(op: Operation) -> bool:
    made = {str(each.name) for region in op.regions for block in region.blocks for each in block.operations}
    return not made.isdisjoint({"stablehlo.minimum", "stablehlo.maximum"}) and _elements(op.operands)[0][0] in "bf"


def _is_mixed_with_two_bits(op: Operation) -> bool:
    return len({re.match("u?i2$", each) is None for each in _elements(op.operands)}) > 1


def _pads_negatively(op: Operation) -> bool:
    return "padding" in op.attributes and min(map(int, op.attributes["padding"]), default=0) < 0


def _is_of_rank_7(op: Operation) -> bool:
    return any(len(each.type.shape) >= 7 for each in op.operands)


def _always(_: Operation) -> bool:
    return True


_SLICES: Final = "dynamic_gather dynamic_slice gather"
_INDEXED: Final = "dynamic_gather dynamic_slice dynamic_update_slice gather scatter"
_NARROW_FLOATS: Final = " ".join(
    sorted(each.partition(".")[2] for each in ops_where(lambda traits: "narrow floats" in traits.rewritings))
)
_ROUNDINGS: Final = "ceil floor round_nearest_afz round_nearest_even"
_of_two_bits: Final = _takes("u?i2$")
_by_narrow_index: Final = _takes(r"ui|i(2|4|8|16)$", 1)

#: By engine and remedy, and by name: the title, the ops, and what tells those that have the fault.
_ROWS: Final[Mapping[tuple[EngineName, FaultRemedy], Mapping[str, tuple[str, str, _Sign]]]] = {
    ("reference", "rewritten"): {
        "interpreter-complex-exponential-minus-one": (
            *("digits are lost near zero", "exponential_minus_one log_plus_one"),
            _makes("complex"),
        ),
        "interpreter-fft-precision": ("Fourier transforms of f32 lose bits", "fft", _always),
        "interpreter-floor-of-f8E3M4": ("the result is NaN", _ROUNDINGS, _makes("f8E3M4$")),
        "interpreter-integer-convolution": ("sums of integers overflow", "convolution dynamic_conv", _converts),
        "interpreter-narrow-float-ops": ("each step is rounded", _NARROW_FLOATS, _makes("f8E|f16|bf16")),
        "interpreter-narrow-float-overflow": ("infinities become zero", _NARROW_FLOATS, _makes("f[46]E")),
        "interpreter-odd-irfft": ("odd lengths are taken for even ones", "fft", _has("fft_type", "IRFFT")),
        "interpreter-rounding-of-six-bits": ("the result is zero", _ROUNDINGS, _makes("f6E2M3FN")),
        "interpreter-scatter-overwrites": ("a scatter writes over its own inputs", "scatter", _always),
        "interpreter-total-order": ("TOTALORDER compares numbers", "compare", _has("compare_type", "TOTALORDER")),
        "interpreter-unsigned-indices": ("the highest bit is taken for a sign", _INDEXED, _takes("ui", 1)),
        "interpreter-unsigned-quantization": ("unsigned storage is treated as signed", "", _stores_unsigned),
        "interpreter-zero-of-f8E8M0FNU": ("zeros become powers of two", "", _makes("f8E8M0FNU")),
    },
    ("xla", "option"): {
        "xla-kernels-of-dilated-windows": ("the base dilation is ignored", "reduce_window", _is_dilated),
        "xla-kernels-of-minima": ("NaN is lost among minima and maxima", "reduce reduce_window", _takes_minima),
        "xla-kernels-of-products": ("the last of many rows are wrong", "dot dot_general", _always),
        "xla-kernels-of-rank-7": ("sums of products of rank 7 crash", "reduce", _is_of_rank_7),
    },
    ("xla", "rewritten"): {
        "xla-all-gather-of-narrow-elements": ("several operands are misplaced", "all_gather", _has_several),
        "xla-all-to-all-of-several-operands": ("several operands are taken for parts", "all_to_all", _has_several),
        "xla-algebra-of-floats": ("terms are computed as real numbers", "add divide log", _is_replaced),
        "xla-constants-of-narrow-elements": (
            *("constants are computed by other rules", ""),
            _differs_among_constants,
        ),
        "xla-constant-reassociation": ("terms cancel out", "add divide log multiply power subtract", _was_replaced),
        "xla-complex-order": ("real parts alone are compared", "clamp compare maximum minimum", _takes("complex")),
        "xla-complex-sine": ("digits are lost near zero", "sine", _takes("complex")),
        "xla-concatenate-of-two-bits": ("elements of two bits crash", "concatenate", _of_two_bits),
        "xla-double-rounding-to-bf16": ("numbers are rounded twice", "convert", _is_rounded_twice),
        "xla-four-bit-elements": (
            "bits of the sign, or the greatest integer",
            "convert popcnt",
            _takes("i4$|f4E2M1FN"),
        ),
        "xla-integer-powers": ("six bits of the exponent are used", "power", _takes("u?i")),
        "xla-narrow-start-indices": ("the limit of narrow indices overflows", "dynamic_update_slice", _by_narrow_index),
        "xla-products-of-two-bits": ("elements of two bits are refused", "dot_general", _of_two_bits),
        "xla-random-bits-of-another-type": ("the result is unsigned", "rng_bit_generator", _draws_signed),
        "xla-scatter-by-a-narrow-index": ("a single window is not scattered", "scatter", _by_narrow_index),
        "xla-scatter-of-one-value": ("operands that are equal are updated in one place", "scatter", _scatters_several),
        "xla-scatter-without-an-index": ("one update of several is applied", "scatter", _scatters_without_index),
        "xla-sort-taken-for-a-top-k": ("any iota is taken for the sorted positions", "sort", _has_several),
        "xla-square-root-of-f8E3M4": ("results are rounded twice", "sqrt", _takes("f8E3M4")),
        "xla-sums-of-booleans": ("the sum of two constants is their parity", "add", _takes("i1$")),
        "xla-unsigned-constant-indices": ("the highest bit is a sign", _SLICES, _by_unsigned_constant),
        "xla-update-by-a-slice-of-itself": ("the update may be overwritten", "dynamic_update_slice", _always),
        "xla-windows-of-one-with-negative-padding": ("windows of one crash", "reduce_window", _pads_negatively),
        "xla-zeros-of-negative-constants": (
            *("those of a wider number are counted", "count_leading_zeros"),
            _takes("i(8|16|32)$"),
        ),
    },
    ("xla", "refused"): {
        "xla-reduction-of-two-bits-beside-others": ("a check of its own fails", "reduce", _is_mixed_with_two_bits),
        "xla-sort-of-two-bits": ("bytes are sorted", "sort", _of_two_bits),
    },
}
#: The first release of jaxlib that was found to be right.
_MENDED: Final = dict.fromkeys(
    (
        *("interpreter-integer-convolution", "interpreter-scatter-overwrites", "xla-constant-reassociation"),
        *("xla-integer-powers", "xla-kernels-of-products", "xla-kernels-of-rank-7", "xla-narrow-start-indices"),
        *("xla-scatter-by-a-narrow-index", "xla-scatter-without-an-index", "xla-zeros-of-negative-constants"),
    ),
    "0.12.0.1",
)
#: All known faults, and what tells an op that has each.
_SIGNS: Final[Mapping[KnownFault, _Sign]] = {
    KnownFault(name, engine, title, remedy, tuple(ops.split()), _MENDED.get(name, "")): sign
    for (engine, remedy), rows in _ROWS.items()
    for name, (title, ops, sign) in rows.items()
}
KNOWN_FAULTS: Final[tuple[KnownFault, ...]] = tuple(_SIGNS)


def faults_in(provider: Provider, module: ModuleOp, engine: EngineName) -> tuple[KnownFault, ...]:
    """Those of the engine that ops of the module show, in the installed release as far as it is known."""
    package, _, release = provider.library.name.partition(" ")
    rows = {
        fault: sign
        for fault, sign in _SIGNS.items()
        if fault.engine == engine
        and not (fault.mended and package == "jaxlib" and Version(release) >= Version(fault.mended))
    }
    found = set()
    for op in provider.walk(module):
        name = str(op.name).partition(".")[2]
        for fault, sign in rows.items():
            if fault not in found and (not fault.ops or name in fault.ops) and sign(op):
                found.add(fault)
    return tuple(fault for fault in rows if fault in found)
