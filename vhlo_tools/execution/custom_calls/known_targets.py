"""Table of the custom calls that run without a handler, with their rules.

Sources: ``xla/hlo/transforms/expanders/eigh_expander.cc`` and ``qr_expander.cc``, ``xla/service/cpu/thunk_emitter.cc``,
``xla/service/spmd/shardy/constants.h``, ``xla/service/memory_annotations.h`` and
``xla/mlir_hlo/mhlo/transforms/stablehlo_legalize_to_hlo`` in openxla/xla; for ``dce_sink`` ``jax/_src/lax/lax.py`` in
jax-ml/jax.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from vhlo_tools.execution.custom_calls.approx_top_k import ApproxTopK
from vhlo_tools.execution.custom_calls.call_rules import Rule, Signature
from vhlo_tools.execution.custom_calls.configurations import ANY, FrontendAttribute, MhloOp, TextConfiguration
from vhlo_tools.execution.custom_calls.lapack_rules import LAPACK

_FLOATS: Final = ("f16", "bf16", "f32", "f64")
_COMPLEX: Final = ("complex<f32>", "complex<f64>")
_INTEGERS: Final = tuple(f"{sign}{bits}" for sign in ("i", "ui") for bits in (8, 16, 32, 64))

_SAME: Final = Rule(
    "one tensor, and returns it",
    (Signature(("T *",), ("T *",)),),
    configuration=ANY,
    aliases=None,
)
_MANUAL: Final = Rule(
    "one tensor, and returns a tensor of as many dimensions and the same element type",
    (Signature(("T ~",), ("T ~",)),),
    configuration=ANY,
    aliases=None,
)
_NOTHING: Final = Rule("tensors, and returns nothing", (Signature(None, ()),), configuration=ANY, aliases=None)
_ASSERTION: Final = Rule(
    "two tensors of the same type, and returns nothing",
    (Signature(("T *", "T *"), ()),),
    configuration=ANY,
    aliases=None,
)

#: Calls that the toolkit replaces or computes in Python: annotations and assertions.
_OF_TOOLKIT: Final = {
    **dict.fromkeys(
        (
            "LayoutConstraint",
            "MoveToDevice",
            "MoveToHost",
            "Sharding",
            "annotate_device_placement",
        ),
        _SAME,
    ),
    **dict.fromkeys(("SPMDFullToShardShape", "SPMDShardToFullShape"), _MANUAL),
    "dce_sink": _NOTHING,
    "xla.sdy.FuncResultSharding": replace(_SAME, configuration=FrontendAttribute("xla.sdy.sharding")),
    **dict.fromkeys(("check.expect_almost_eq", "check.expect_close", "check.expect_eq"), _ASSERTION),
    "check.eq": Rule(
        "two tensors of the same type, and returns a boolean",
        (Signature(("T *", "T *"), ("i1",)),),
        configuration=ANY,
        aliases=None,
    ),
}

#: Calls that XLA expands into ops, or for which it has a function, on a CPU.
_OF_XLA: Final = {
    "Eigh": Rule(
        "one symmetric or Hermitian matrix, and returns its eigenvectors and eigenvalues",
        (Signature(("T * n n",), ("T * n n", "real * n")),),
        (*_FLOATS, *_COMPLEX),
        TextConfiguration(
            r"[01],[01],[1-9]\d{0,8},(0?\.\d+|0|\d(\.\d*)?[eE]-\d{1,3})",
            '"LOWER,SORT,ITERATIONS,TOLERANCE", such as "1,1,100,1e-6", with a tolerance below 1',
        ),
        may_be_tuple=True,
    ),
    "Qr": Rule(
        "one matrix, and returns its QR decomposition",
        (Signature(("T * m n",), ("T * m n", "T * min(m,n)")),),
        (*_FLOATS, *_COMPLEX),
        may_be_tuple=True,
    ),
    "ProductOfElementaryHouseholderReflectors": Rule(
        "k Householder reflectors in a matrix with at least as many rows as columns, and returns their product",
        (Signature(("T * m n", "T * k"), ("T * m n",), ("n <= m", "k <= n")),),
        (*_FLOATS, *_COMPLEX),
        may_be_tuple=True,
    ),
    "TopK": Rule(
        "one tensor of f32 with one or two dimensions, and returns the k largest elements along its last one and their "
        "indices as i32",
        (Signature(("T * n",), ("T * k", "i32 * k"), ("k <= n",)),),
        ("f32",),
        # As XLA of jaxlib 0.12 writes it in programs that it has compiled, where 0.10 writes nothing.
        TextConfiguration(
            r'\{is_stable = true, order = "TOTAL"\}', '{is_stable = true, order = "TOTAL"}', is_optional=True
        ),
        ranks=(1, 2),
        comparisons=(("f32", "GT"),),
        may_be_tuple=True,
    ),
}

#: Ops of MHLO that StableHLO lacks, as exports of JAX contain them.
_OF_MHLO: Final = {
    **{
        f"mhlo.{name}": Rule(
            "one tensor, and returns the function of its elements",
            (Signature(("T *",), ("T *",)),),
            _FLOATS if name == "erf" else (*_FLOATS, *_COMPLEX),
            MhloOp(),
        )
        for name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh", "tan")
    },
    "mhlo.topk": Rule(
        "one tensor, and returns the k largest elements along its last dimension and their indices as i32",
        (Signature(("T * n",), ("T * k", "i32 * k"), ("k <= n",)),),
        (*_FLOATS, *_INTEGERS),
        MhloOp({"k": "i64"}, frozenset({"largest"})),
    ),
}

#: The rule of each target that is known.
RULES: Final[Mapping[str, Rule | ApproxTopK]] = {
    **_OF_TOOLKIT,
    **_OF_XLA,
    **_OF_MHLO,
    **LAPACK,
    "ApproxTopK": ApproxTopK(),
}

#: Why targets are not known, for messages: the pattern of the name, and the reason.
RESERVED: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (
            r"xla_(ffi_|buffer_)?(partitioned_)?python_(cpu|gpu)_callback",
            "it calls a function of the process that created the program",
        ),
        (
            r"(local_)?xla\.sdy\..*|SliceToDynamic|PadToStatic|__onednn\$.*|__ynn\$.*|__(cublas|cudnn|cusolver|cub|gpu|triton"
            r"|builtin)\$?.*|X64(Combine|SplitLow|SplitHigh)|DynamicGte|AllocateBuffer|CreateBuffer",
            "XLA reserves this target for its own passes, and does not check it in input programs",
        ),
        (r"lapack_\w+(?<!_ffi)|blas_\w+", "jaxlib no longer has this function: it was replaced in 2024"),
        (r"(cu|hip)(solver|blas|sparse|_).*|hip_.*|tpu_custom_call|mosaic_.*", "it is for another platform than a CPU"),
    )
)
