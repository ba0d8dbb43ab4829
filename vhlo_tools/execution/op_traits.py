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
#: for floats of four and six bits, and for ops that XLA compiles incorrectly.
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
    "abs": OpTraits(),
    "add": OpTraits(rewritings=("bounds",), combines=True),
    "after_all": OpTraits(),
    "all_gather": OpTraits(reference="devices", rewritings=("xla workarounds",), groups="replica_groups"),
    "all_reduce": OpTraits(reference="devices", groups="replica_groups"),
    "all_to_all": OpTraits(
        reference="devices", rewritings=("xla workarounds",), groups="replica_groups", one_axis=True
    ),
    "and": OpTraits(rewritings=("bounds",), combines=True),
    "async_done": OpTraits(reference="host"),
    "async_start": OpTraits(reference="host"),
    "atan2": OpTraits(rewritings=("bounds",)),
    "batch_norm_grad": OpTraits(reference="lowered", rewritings=("lowering",)),
    "batch_norm_inference": OpTraits(reference="lowered", rewritings=("lowering",)),
    "batch_norm_training": OpTraits(reference="lowered", rewritings=("lowering",)),
    "bitcast_convert": OpTraits(quantized="passed on"),
    "broadcast": OpTraits(reference="lowered", rewritings=("lowering",)),
    "broadcast_in_dim": OpTraits(rewritings=("bounds",), quantized="moved", keeps_domain=True),
    "case": OpTraits(
        control_flow=True, may_hold_host_ops=True, quantized="passed on", cost="branch", domains={0: "index"}
    ),
    "cbrt": OpTraits(),
    "ceil": OpTraits(rewritings=("narrow floats",)),
    "cholesky": OpTraits(reference="lowered", rewritings=("lowering",), domains={None: "definite"}),
    "clamp": OpTraits(rewritings=("bounds",)),
    "collective_broadcast": OpTraits(reference="devices", xla_gap=_NOT_IN_XLA, groups="replica_groups", one_axis=True),
    "collective_permute": OpTraits(reference="devices", groups="source_target_pairs", one_axis=True),
    "collective_reduce": OpTraits(reference="devices", groups="replica_groups"),
    "compare": OpTraits(rewritings=("lowering", "bounds")),
    "complex": OpTraits(rewritings=("bounds",)),
    "composite": OpTraits(may_hold_host_ops=True, quantized="passed on", cost="callee"),
    "compute_reshape_shape": OpTraits(reference="unsupported"),
    "concatenate": OpTraits(rewritings=("xla workarounds",), quantized="moved", keeps_domain=True),
    "constant": OpTraits(cost="free"),
    "convert": OpTraits(rewritings=("narrow floats",), keeps_domain=True),
    "convolution": OpTraits(rewritings=("lowering",), cost="convolution"),
    "cosine": OpTraits(),
    "count_leading_zeros": OpTraits(),
    "create_token": OpTraits(reference="lowered", rewritings=("lowering",)),
    "cross-replica-sum": OpTraits(reference="unsupported"),
    "cstr_reshapable": OpTraits(reference="unsupported"),
    "custom_call": OpTraits(reference="host"),
    "divide": OpTraits(rewritings=("lowering", "narrow floats", "bounds"), combines=True, domains={1: "nonzero"}),
    "dot": OpTraits(reference="lowered", rewritings=("lowering",)),
    "dot_general": OpTraits(rewritings=("lowering",), cost="contraction"),
    "dynamic_broadcast_in_dim": OpTraits(quantized="moved", keeps_domain=True),
    "dynamic_conv": OpTraits(rewritings=("lowering",)),
    "dynamic_gather": OpTraits(rewritings=("lowering",), quantized="moved", domains={1: "index"}),
    "dynamic_iota": OpTraits(),
    "dynamic_pad": OpTraits(quantized="moved"),
    "dynamic_reshape": OpTraits(quantized="moved", keeps_domain=True),
    "dynamic_slice": OpTraits(rewritings=("lowering",), quantized="moved", domains={None: "index"}, keeps_domain=True),
    "dynamic_update_slice": OpTraits(
        rewritings=("lowering", "xla workarounds"), quantized="moved", domains={None: "index"}
    ),
    "einsum": OpTraits(reference="lowered", rewritings=("lowering",)),
    "exponential": OpTraits(),
    "exponential_minus_one": OpTraits(),
    "fft": OpTraits(rewritings=("lowering",)),
    "floor": OpTraits(rewritings=("narrow floats",)),
    "gather": OpTraits(rewritings=("lowering",), quantized="moved", domains={1: "index"}, keeps_domain=True),
    "get_dimension_size": OpTraits(quantized="passed on"),
    "get_tuple_element": OpTraits(rewritings=("lowering",), quantized="passed on"),
    "if": OpTraits(control_flow=True, may_hold_host_ops=True, quantized="passed on", cost="branch"),
    "imag": OpTraits(),
    "infeed": OpTraits(reference="devices", xla_gap=_NEVER_FED),
    "iota": OpTraits(),
    "is_finite": OpTraits(),
    "log": OpTraits(rewritings=("narrow floats",), domains={None: "positive"}),
    "log_plus_one": OpTraits(rewritings=("narrow floats",), domains={None: "positive"}),
    "logistic": OpTraits(),
    "map": OpTraits(may_hold_host_ops=True, quantized="passed on"),
    "maximum": OpTraits(rewritings=("bounds",), combines=True),
    "minimum": OpTraits(rewritings=("bounds",), combines=True),
    "multiply": OpTraits(rewritings=("bounds",), combines=True),
    "negate": OpTraits(),
    "not": OpTraits(),
    "optimization_barrier": OpTraits(quantized="passed on"),
    "or": OpTraits(rewritings=("bounds",), combines=True),
    "outfeed": OpTraits(reference="devices", xla_gap=_NEVER_TAKEN),
    "pad": OpTraits(quantized="moved", keeps_domain=True),
    "partition_id": OpTraits(reference="devices"),
    "popcnt": OpTraits(),
    "power": OpTraits(rewritings=("narrow floats", "bounds"), combines=True, domains={0: "positive"}),
    "real": OpTraits(),
    "real_dynamic_slice": OpTraits(reference="lowered", rewritings=("lowering",), quantized="moved", keeps_domain=True),
    "recv": OpTraits(reference="devices", xla_gap=_NOT_IN_XLA, groups="source_target_pairs", one_axis=True),
    "reduce": OpTraits(may_hold_host_ops=True, quantized="passed on", cost="operands"),
    "reduce_precision": OpTraits(),
    "reduce_scatter": OpTraits(reference="devices", groups="replica_groups"),
    "reduce_window": OpTraits(quantized="passed on", cost="window"),
    "remainder": OpTraits(rewritings=("lowering", "narrow floats", "bounds"), domains={1: "nonzero"}),
    "replica_id": OpTraits(reference="devices"),
    "reshape": OpTraits(rewritings=("bounds",), quantized="moved", keeps_domain=True),
    "return": OpTraits(quantized="passed on", cost="free"),
    "reverse": OpTraits(quantized="moved", keeps_domain=True),
    "rng": OpTraits(reference="unsupported", reference_gap=_RNG),
    "rng_bit_generator": OpTraits(reference="lowered", rewritings=("lowering", "xla workarounds")),
    "round_nearest_afz": OpTraits(rewritings=("narrow floats",)),
    "round_nearest_even": OpTraits(rewritings=("narrow floats",)),
    "rsqrt": OpTraits(rewritings=("narrow floats",), domains={None: "positive"}),
    "scatter": OpTraits(
        rewritings=("lowering", "xla workarounds"), quantized="passed on", cost="operands", domains={1: "index"}
    ),
    "select": OpTraits(rewritings=("bounds",), quantized="moved", keeps_domain=True),
    "select_and_scatter": OpTraits(quantized="passed on", cost="operands"),
    "send": OpTraits(reference="devices", xla_gap=_NOT_IN_XLA, groups="source_target_pairs", one_axis=True),
    "set_dimension_size": OpTraits(reference="lowered", rewritings=("bounds",)),
    "shift_left": OpTraits(rewritings=("bounds",), domains={1: "shift"}),
    "shift_right_arithmetic": OpTraits(rewritings=("bounds",), domains={1: "shift"}),
    "shift_right_logical": OpTraits(rewritings=("bounds",), domains={1: "shift"}),
    "sign": OpTraits(),
    "sine": OpTraits(),
    "slice": OpTraits(rewritings=("bounds",), quantized="moved", keeps_domain=True),
    "sort": OpTraits(rewritings=("xla workarounds",), quantized="passed on", cost="sort"),
    "sqrt": OpTraits(domains={None: "positive"}),
    "subtract": OpTraits(rewritings=("bounds",), combines=True),
    "tan": OpTraits(rewritings=("narrow floats",)),
    "tanh": OpTraits(),
    "torch_index_select": OpTraits(reference="lowered", rewritings=("lowering",)),
    "trace": OpTraits(reference="unsupported"),
    "transpose": OpTraits(quantized="moved", keeps_domain=True),
    "triangular_solve": OpTraits(rewritings=("lowering",), domains={0: "definite"}),
    "tuple": OpTraits(quantized="passed on"),
    "unary_einsum": OpTraits(reference="lowered", rewritings=("lowering",)),
    "uniform_dequantize": OpTraits(reference="lowered"),
    "uniform_quantize": OpTraits(reference="lowered"),
    "while": OpTraits(control_flow=True, may_hold_host_ops=True, quantized="passed on", cost="loop"),
    "xor": OpTraits(rewritings=("bounds",), combines=True),
}
#: Ops of other dialects that occur in programs.
_OTHER_DIALECTS: Final[Mapping[str, OpTraits]] = {
    "builtin.module": OpTraits(),
    "chlo.acos": OpTraits(reference="legalized", domains={None: "unit"}),
    "chlo.acosh": OpTraits(reference="legalized", domains={None: "above-one"}),
    "chlo.asin": OpTraits(reference="legalized", domains={None: "unit"}),
    "chlo.atanh": OpTraits(reference="legalized", domains={None: "unit"}),
    "chlo.digamma": OpTraits(reference="legalized", domains={None: "positive"}),
    "chlo.erf_inv": OpTraits(reference="legalized", domains={None: "unit"}),
    "chlo.lgamma": OpTraits(reference="legalized", domains={None: "positive"}),
    "chlo.polygamma": OpTraits(reference="legalized", domains={None: "positive"}),
    "chlo.zeta": OpTraits(reference="legalized", domains={None: "positive"}),
    "func.call": OpTraits(may_hold_host_ops=True, quantized="passed on", cost="callee"),
    "func.func": OpTraits(quantized="passed on"),
    "func.return": OpTraits(quantized="passed on", cost="free"),
    "mhlo.copy": OpTraits(reference="legalized", keeps_domain=True),
    "sdy.manual_computation": OpTraits(reference="host"),
    "sdy.mesh": OpTraits(),
    "sdy.propagation_barrier": OpTraits(reference="lowered", rewritings=("lowering",)),
    "sdy.reshard": OpTraits(reference="lowered", rewritings=("lowering",)),
    "sdy.sharding_constraint": OpTraits(reference="lowered", rewritings=("lowering",)),
    "sdy.sharding_group": OpTraits(reference="lowered", rewritings=("lowering",)),
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
