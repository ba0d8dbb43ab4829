"""Traits of ops for evaluation: one table, from which the tables of both engines are derived.

A module that maps ops to functions keeps that mapping, and a test compares it with this table; a module that needs the
ops with a property derives them with :func:`ops_where`. An op of StableHLO that is missing here fails a test.

Sources: StableHLO specification (``docs/spec.md``); for the ops that the interpreter evaluates, ``eval`` in
``stablehlo/reference/Ops.cpp`` of openxla/stablehlo; for the ops that XLA lacks,
``xla/service/cpu/thunk_emitter.cc`` in openxla/xla, and runs of these ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Literal

from vhlo_tools.records import dataclass

#: How the engine reference runs an op. ``evaluated``: by the interpreter, on one device and without effects; or nothing
#: needs evaluation. ``lowered``: after rewriting into such ops. ``host`` and ``devices``: stepped through in Python,
#: alone or together with other devices. ``legalized``: converted to StableHLO before an engine gets the program.
ReferenceSupport = Literal["evaluated", "lowered", "host", "devices", "legalized", "unsupported"]

#: The sets of patterns that rewrite ops: for ops that the interpreter lacks or crashes on, for bounds of dimensions,
#: for floats of up to eight bits, and for ops that XLA compiles incorrectly.
Rewriting = Literal["lowering", "bounds", "narrow floats", "xla workarounds"]

#: The attribute that specifies the groups of devices.
GroupsAttribute = Literal["replica_groups", "source_target_pairs"]

#: The effect of an op on quantized elements: ``moved`` keeps the stored integers if all values have the same
#: quantization; ``passed on`` always keeps them, each in a value of the same type, or passes them to regions of the op.
Quantized = Literal["computed", "moved", "passed on"]

#: What determines the number of steps of an op.
Cost = Literal[
    "free", "results", "operands", "window", "contraction", "convolution", "sort", "branch", "loop", "callee"
]

#: The values that an operand may have: ``shift`` is below the number of bits, ``unit`` from -1 to 1, ``definite``
#: positive definite matrices, ``index`` from 0 to below an end.
DomainKind = Literal["any", "shift", "nonzero", "positive", "above-one", "unit", "definite", "index"]


@dataclass(frozen=True, slots=True)
class OpTraits:
    reference: ReferenceSupport = "evaluated"
    reference_gap: str | None = None  # why the engine reference does not run the op, if it is not just missing there
    xla_gap: str | None = None  # why the engine xla cannot run the op on a CPU; None if it can
    rewritings: tuple[Rewriting, ...] = ()  # sets of patterns that include one for the op
    control_flow: bool = False  # its regions are blocks that run in sequence, not functions of elements
    may_hold_host_ops: bool = False  # it is stepped through if its regions or its callee contain ops that are
    groups: GroupsAttribute | None = None  # attribute that specifies the groups of devices
    one_axis: bool = False  # groups are along replicas or along partitions, never along both
    quantized: Quantized = "computed"  # effect on quantized elements
    #: elementwise on two operands of the type of the result: a reduction with it is computed on whole tensors
    combines: bool = False
    cost: Cost = "results"  # what determines the number of its steps
    #: values that operands may have, by operand number; None for any operand
    domains: Mapping[int | None, DomainKind] = field(default_factory=dict)
    keeps_domain: bool = False  # values in the domain of the result are in that of the operands


_RNG: Final = "its results are implementation-defined; the engine xla can run it, and rng_bit_generator runs here"
_NOT_IN_XLA: Final = "XLA does not implement it on a CPU; the engine reference can run it"
_NEVER_FED: Final = "there is no infeed source, so XLA would wait forever"
_NEVER_TAKEN: Final = "there is no outfeed consumer, so XLA would wait forever"

#: The ops of StableHLO, without the dialect.
_STABLEHLO: Final[Mapping[str, OpTraits]] = {
    # The interpreter and XLA have these as they are.
    **dict.fromkeys(
        (
            *("abs", "after_all", "cbrt", "count_leading_zeros", "dynamic_iota", "exponential", "imag"),
            *("is_finite", "not", "real", "sign"),
        ),
        OpTraits(),
    ),
    **dict.fromkeys(("and", "or", "xor"), OpTraits(rewritings=("bounds",), combines=True)),
    **dict.fromkeys(("add", "multiply"), OpTraits(rewritings=("bounds", "xla workarounds"), combines=True)),
    **dict.fromkeys(("maximum", "minimum"), OpTraits(rewritings=("bounds", "xla workarounds"), combines=True)),
    "subtract": OpTraits(rewritings=("narrow floats", "bounds", "xla workarounds"), combines=True),
    **dict.fromkeys(
        ("all_reduce", "collective_reduce", "reduce_scatter"), OpTraits(reference="devices", groups="replica_groups")
    ),
    **dict.fromkeys(("async_done", "async_start", "custom_call"), OpTraits(reference="host")),
    "clamp": OpTraits(rewritings=("bounds", "xla workarounds")),
    "complex": OpTraits(rewritings=("bounds",)),
    "exponential_minus_one": OpTraits(rewritings=("lowering",)),
    "popcnt": OpTraits(rewritings=("xla workarounds",)),
    "sine": OpTraits(rewritings=("narrow floats", "xla workarounds")),
    "atan2": OpTraits(rewritings=("narrow floats", "bounds")),
    **dict.fromkeys(
        (
            *("batch_norm_grad", "batch_norm_inference", "batch_norm_training", "broadcast", "create_token", "dot"),
            *("einsum", "torch_index_select", "unary_einsum"),
        ),
        OpTraits(reference="lowered", rewritings=("lowering",)),
    ),
    **dict.fromkeys(
        ("bitcast_convert", "get_dimension_size", "optimization_barrier", "tuple"), OpTraits(quantized="passed on")
    ),
    **dict.fromkeys(
        ("broadcast_in_dim", "reshape", "select", "slice"),
        OpTraits(rewritings=("bounds",), quantized="moved", keeps_domain=True),
    ),
    **dict.fromkeys(
        (
            *("ceil", "cosine", "floor", "iota", "logistic", "negate", "reduce_precision", "round_nearest_afz"),
            *("round_nearest_even", "tan", "tanh"),
        ),
        OpTraits(rewritings=("narrow floats",)),
    ),
    **dict.fromkeys(
        # No library that runs here has the ops of 1.23.0 and 1.24.0.
        ("compute_reshape_shape", "cross-replica-sum", "cstr_reshapable", "exp2", "fma", "log2", "trace"),
        OpTraits(reference="unsupported"),
    ),
    **dict.fromkeys(
        ("dynamic_broadcast_in_dim", "dynamic_reshape", "pad", "reverse", "transpose"),
        OpTraits(quantized="moved", keeps_domain=True),
    ),
    "log": OpTraits(rewritings=("narrow floats", "xla workarounds"), domains={None: "positive"}),
    "rsqrt": OpTraits(rewritings=("narrow floats",), domains={None: "positive"}),
    "log_plus_one": OpTraits(rewritings=("narrow floats", "lowering"), domains={None: "positive"}),
    **dict.fromkeys(
        ("shift_left", "shift_right_arithmetic", "shift_right_logical"),
        OpTraits(rewritings=("bounds",), domains={1: "shift"}),
    ),
    "all_gather": OpTraits(reference="devices", rewritings=("xla workarounds",), groups="replica_groups"),
    "all_to_all": OpTraits(
        reference="devices", rewritings=("xla workarounds",), groups="replica_groups", one_axis=True
    ),
    "case": OpTraits(
        control_flow=True, may_hold_host_ops=True, quantized="passed on", cost="branch", domains={0: "index"}
    ),
    "cholesky": OpTraits(reference="lowered", rewritings=("lowering",), domains={None: "definite"}),
    "collective_broadcast": OpTraits(reference="devices", xla_gap=_NOT_IN_XLA, groups="replica_groups", one_axis=True),
    "collective_permute": OpTraits(reference="devices", groups="source_target_pairs", one_axis=True),
    "compare": OpTraits(rewritings=("lowering", "bounds", "xla workarounds")),
    "composite": OpTraits(may_hold_host_ops=True, quantized="passed on", cost="callee"),
    "concatenate": OpTraits(rewritings=("xla workarounds",), quantized="moved", keeps_domain=True),
    "constant": OpTraits(cost="free"),
    "convert": OpTraits(rewritings=("narrow floats", "xla workarounds"), keeps_domain=True),
    "convolution": OpTraits(rewritings=("lowering", "narrow floats"), cost="convolution"),
    "divide": OpTraits(
        rewritings=("lowering", "narrow floats", "bounds", "xla workarounds"), combines=True, domains={1: "nonzero"}
    ),
    "dot_general": OpTraits(rewritings=("lowering", "narrow floats", "xla workarounds"), cost="contraction"),
    "dynamic_conv": OpTraits(rewritings=("lowering",)),
    "dynamic_gather": OpTraits(rewritings=("lowering", "xla workarounds"), quantized="moved", domains={1: "index"}),
    "dynamic_pad": OpTraits(quantized="moved"),
    "dynamic_slice": OpTraits(
        rewritings=("lowering", "xla workarounds"), quantized="moved", domains={None: "index"}, keeps_domain=True
    ),
    "dynamic_update_slice": OpTraits(
        rewritings=("lowering", "xla workarounds"), quantized="moved", domains={None: "index"}
    ),
    "fft": OpTraits(rewritings=("lowering",)),
    "gather": OpTraits(
        rewritings=("lowering", "xla workarounds"), quantized="moved", domains={1: "index"}, keeps_domain=True
    ),
    "get_tuple_element": OpTraits(rewritings=("lowering",), quantized="passed on"),
    "if": OpTraits(control_flow=True, may_hold_host_ops=True, quantized="passed on", cost="branch"),
    "infeed": OpTraits(reference="devices", xla_gap=_NEVER_FED),
    "map": OpTraits(may_hold_host_ops=True, quantized="passed on"),
    "outfeed": OpTraits(reference="devices", xla_gap=_NEVER_TAKEN),
    "partition_id": OpTraits(reference="devices"),
    "power": OpTraits(
        rewritings=("narrow floats", "bounds", "xla workarounds"), combines=True, domains={0: "positive"}
    ),
    "real_dynamic_slice": OpTraits(reference="lowered", rewritings=("lowering",), quantized="moved", keeps_domain=True),
    "recv": OpTraits(reference="devices", xla_gap=_NOT_IN_XLA, groups="source_target_pairs", one_axis=True),
    "reduce": OpTraits(may_hold_host_ops=True, quantized="passed on", cost="operands"),
    "reduce_window": OpTraits(rewritings=("xla workarounds",), quantized="passed on", cost="window"),
    "remainder": OpTraits(rewritings=("lowering", "narrow floats", "bounds"), domains={1: "nonzero"}),
    "replica_id": OpTraits(reference="devices"),
    "return": OpTraits(quantized="passed on", cost="free"),
    "rng": OpTraits(reference="unsupported", reference_gap=_RNG),
    "rng_bit_generator": OpTraits(reference="lowered", rewritings=("lowering", "xla workarounds")),
    "scatter": OpTraits(
        rewritings=("lowering", "xla workarounds"), quantized="passed on", cost="operands", domains={1: "index"}
    ),
    "select_and_scatter": OpTraits(quantized="passed on", cost="operands"),
    "send": OpTraits(reference="devices", xla_gap=_NOT_IN_XLA, groups="source_target_pairs", one_axis=True),
    "set_dimension_size": OpTraits(reference="lowered", rewritings=("bounds",)),
    "sort": OpTraits(rewritings=("xla workarounds",), quantized="passed on", cost="sort"),
    "sqrt": OpTraits(rewritings=("xla workarounds",), domains={None: "positive"}),
    "triangular_solve": OpTraits(rewritings=("lowering",), domains={0: "definite"}),
    "uniform_dequantize": OpTraits(reference="lowered"),
    "uniform_quantize": OpTraits(reference="lowered"),
    "while": OpTraits(control_flow=True, may_hold_host_ops=True, quantized="passed on", cost="loop"),
}
#: Ops of other dialects that occur in programs.
_OTHER_DIALECTS: Final[Mapping[str, OpTraits]] = {
    "builtin.module": OpTraits(),
    **dict.fromkeys(
        ("chlo.acos", "chlo.asin", "chlo.atanh", "chlo.erf_inv"),
        OpTraits(reference="legalized", domains={None: "unit"}),
    ),
    "chlo.acosh": OpTraits(reference="legalized", domains={None: "above-one"}),
    **dict.fromkeys(
        ("chlo.digamma", "chlo.lgamma", "chlo.polygamma", "chlo.zeta"),
        OpTraits(reference="legalized", domains={None: "positive"}),
    ),
    "func.call": OpTraits(may_hold_host_ops=True, quantized="passed on", cost="callee"),
    "func.func": OpTraits(quantized="passed on"),
    "func.return": OpTraits(quantized="passed on", cost="free"),
    "mhlo.copy": OpTraits(reference="legalized", keeps_domain=True),
    "sdy.manual_computation": OpTraits(reference="host"),
    "sdy.mesh": OpTraits(),
    **dict.fromkeys(
        ("sdy.propagation_barrier", "sdy.reshard", "sdy.sharding_constraint", "sdy.sharding_group"),
        OpTraits(reference="lowered", rewritings=("lowering",)),
    ),
}

#: Traits by op name, including the dialect.
OP_TRAITS: Final[Mapping[str, OpTraits]] = {
    **{f"stablehlo.{name}": traits for name, traits in _STABLEHLO.items()},
    **_OTHER_DIALECTS,
}


def ops_where(holds: Callable[[OpTraits], bool]) -> frozenset[str]:
    return frozenset(name for name, traits in OP_TRAITS.items() if holds(traits))


#: Ops whose regions are blocks that run in sequence.
CONTROL_FLOW: Final = ops_where(lambda traits: traits.control_flow)
