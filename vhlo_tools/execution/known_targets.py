"""Custom calls that run without a handler, each with its rule; all others are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from vhlo_tools.bindings import approx_top_k_size
from vhlo_tools.execution.call_rules import (
    ANY,
    CallForm,
    FrontendAttribute,
    MhloOp,
    Rule,
    Signature,
    TextConfiguration,
    TypedConfiguration,
)
from vhlo_tools.execution.handlers import handler_advice
from vhlo_tools.execution.values import ArgumentType
from vhlo_tools.records import dataclass

# The rule for ``ApproxTopK``, as ``jax.lax.approx_max_k`` and ``approx_min_k`` emit it on every platform
#
# XLA for the CPU sorts, and returns the exact result. Sources: ``jax/_src/lax/ann.py`` in jax-ml/jax, and
# ``xla/hlo/builder/lib/approx_topk.cc`` in openxla/xla.

_CONFIG: Final = "mhlo.backend_config"
_ENTRIES: Final = {
    "aggregate_to_topk": "i1",
    "is_fallback": "i1",
    "recall_target": "f32",
    "reduction_dim": "i64",
    "reduction_input_size_override": "i64",
    "top_k": "i64",
}
_OPTIONAL: Final = frozenset({"is_fallback"})
_FLOATS: Final = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True, slots=True)
class ApproxTopK:
    requires: str = (
        "a tensor of floats, one of i32 of the same shape, the initial value of each, and a function that compares two "
        "values, and returns the largest or smallest values along a dimension and their indices"
    )

    def reason_against(self, form: CallForm) -> str | None:
        if form.attributes.get("api_version", 1) != 1:
            return f"its api_version is {form.attributes['api_version']}, expected 1"
        for name in (
            "backend_config",
            "has_side_effect",
            "operand_layouts",
            "result_layouts",
            "output_operand_aliases",
        ):
            if form.attributes.get(name, "") not in ("", False):
                return f"it has the attribute {name}, expected none"
        if form.is_tuple:
            return "its results are a tuple, expected tensors"
        return _reason_against_entries(form) or _reason_against_types(form, form.attributes[_CONFIG])


def _reason_against_entries(form: CallForm) -> str | None:
    config = form.attributes.get(_CONFIG)
    if not isinstance(config, Mapping) or not _ENTRIES.keys() - _OPTIONAL <= config.keys() <= _ENTRIES.keys():
        found = ", ".join(sorted(map(str, config))) if isinstance(config, Mapping) else repr(config)
        return f"its {_CONFIG} has {found}, expected {', '.join(_ENTRIES)}"
    for name, type_ in _ENTRIES.items():
        entry_type = form.entry_types.get((_CONFIG, name))
        if name in config and entry_type != type_:
            return f"{name} in its {_CONFIG} has the type {entry_type}, expected {type_}"
    if not 0 < config["recall_target"] <= 1:
        return f"its recall_target is {config['recall_target']}, expected a number above 0, at most 1"
    return None


def _reason_against_types(form: CallForm, config: Mapping[str, Any]) -> str | None:
    types = (*form.operands, *form.results)
    if len(form.operands) != 4 or len(form.results) != 2:
        return f"it has {len(form.operands)} operands and {len(form.results)} results, expected 4 and 2"
    tensors = [each for each in types if isinstance(each, ArgumentType) and each.is_static]
    if len(tensors) != 6:
        return "an operand or result is not a tensor of known shape"
    shape, element, axis = tensors[0].static_shape, tensors[0].element, config["reduction_dim"]
    if element not in _FLOATS or not 0 <= axis < len(shape):
        return (
            f"its operand 0 is {tensors[0].text} and its reduction_dim is {axis}, expected floats and a dimension of it"
        )
    least = config["reduction_input_size_override"]
    size, k = shape[axis], config["top_k"]
    if not 1 <= k <= size or not (least == -1 or least >= size):
        return f"its top_k is {k} and its reduction_input_size_override is {least}, and the dimension has size {size}"
    if not config["aggregate_to_topk"]:
        k = approx_top_k_size(size, len(shape), k, config["recall_target"], least)
    given = (*shape[:axis], k, *shape[axis + 1 :])
    wanted = [(element, shape), ("i32", shape), (element, ()), ("i32", ()), (element, given), ("i32", given)]
    for number, (tensor, (wanted_element, wanted_shape)) in enumerate(zip(tensors, wanted, strict=True)):
        if (tensor.element, tensor.static_shape) != (wanted_element, wanted_shape):
            name = f"operand {number}" if number < 4 else f"result {number - 4}"
            return f"its {name} is {tensor.text}, expected {wanted_element}{list(wanted_shape)}"
    if form.comparisons not in (((element, "GT"),), ((element, "LT"),)):
        return f"its called_computations must be one function that compares two values of {element} by GT or LT"
    return None


# Rules for the LAPACK routines of jaxlib, which check neither shapes nor the values of their attributes
#
# Sources: ``jaxlib/cpu/lapack_kernels.cc`` and ``jax/_src/lax/linalg.py`` in jax-ml/jax. The names of sizes are those
# of LAPACK.

_LETTERS: Final = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}

_SQUARE, _MATRIX, _INFO = "T * n n", "T * m n", "i32 *"
_LEAST = "min(m,n)"
#: Among results: eigenvalues, which routines for real matrices return in two parts.
_EIGENVALUES: Final = "eigenvalues"


def _rules(
    routine: str,
    requires: str,
    *signatures: Signature,
    aliases: Iterable[tuple[int, int]] = ((0, 0),),
    **entries: str,
) -> dict[str, Rule]:
    """One rule for each element type.

    ``routine`` lacks the letter of that type; after a slash stands the name for complex numbers, if it is another.
    """
    real, _, of_complex = routine.partition("/")
    rules = {}
    for letter, element in _LETTERS.items():
        is_real = element in _FLOATS
        parts = ("T * n", "T * n") if is_real else ("T * n",)
        rules[f"lapack_{letter}{real if is_real else of_complex or real}_ffi"] = Rule(
            requires,
            tuple(_with_eigenvalues(each, parts) for each in signatures),
            (element,),
            TypedConfiguration(entries),
            column_major=True,
            aliases=frozenset(aliases),
            may_be_tuple=True,
        )
    return rules


def _with_eigenvalues(signature: Signature, parts: tuple[str, ...]) -> Signature:
    if _EIGENVALUES not in signature.results:
        return signature
    at = signature.results.index(_EIGENVALUES)
    results = (*signature.results[:at], *parts, *signature.results[at + 1 :])
    return Signature(signature.operands, results, signature.where, signature.when)


_SVD: Final = tuple(
    Signature((_MATRIX,), (_MATRIX, f"real * {_LEAST}", u, vt, _INFO), when={"mode": modes})
    for u, vt, modes in (("T * m m", _SQUARE, "AN"), (f"T * m {_LEAST}", f"T * {_LEAST} n", "SN"))
)
_DIAGONALS: Final = ("T * n", "T * n", "T * n", "T * n k")

#: The rules of all routines that jaxlib 0.10 to 0.12 register, by target.
LAPACK: Final[Mapping[str, Rule]] = {
    **_rules(
        "getrf",
        "one matrix, and returns its LU decomposition",
        Signature((_MATRIX,), (_MATRIX, f"i32 * {_LEAST}", _INFO)),
    ),
    **_rules(
        "geqrf", "one matrix, and returns its QR decomposition", Signature((_MATRIX,), (_MATRIX, f"T * {_LEAST}"))
    ),
    **_rules(
        "geqp3",
        "a matrix and pivots, and returns its QR decomposition",
        Signature((_MATRIX, "i32 * n"), (_MATRIX, "i32 * n", f"T * {_LEAST}")),
        aliases=((0, 0), (1, 1)),
    ),
    **_rules(
        "orgqr/ungqr",
        "k Householder reflectors in a matrix with at least as many rows as columns, and returns their product",
        Signature((_MATRIX, "T * k"), (_MATRIX,), ("n <= m", "k <= n")),
    ),
    **_rules(
        "ormqr/unmqr",
        "Householder reflectors and a matrix, and returns the product of both",
        Signature(("T * m p", "T * k", _MATRIX), (_MATRIX,), ("k <= p", "k <= m"), {"left": (True,)}),
        Signature(("T * n p", "T * k", _MATRIX), (_MATRIX,), ("k <= p", "k <= n"), {"left": (False,)}),
        aliases=((2, 0),),
        left="bool",
        transpose="bool",
    ),
    **_rules(
        "potrf",
        "one square matrix, and returns its Cholesky factor",
        Signature((_SQUARE,), (_SQUARE, _INFO)),
        uplo="LU",
    ),
    **_rules("gesdd", "one matrix, and returns its singular value decomposition", *_SVD, mode="ANS"),
    **_rules("gesvd", "one matrix, and returns its singular value decomposition", *_SVD, mode="ANS"),
    **_rules(
        "syevd/heevd",
        "one symmetric or Hermitian matrix, and returns its eigenvectors and eigenvalues",
        Signature((_SQUARE,), (_SQUARE, "real * n", _INFO)),
        mode="NV",
        uplo="LU",
    ),
    **_rules(
        "sytrd/hetrd",
        "one symmetric or Hermitian matrix, and returns it in tridiagonal form",
        Signature((_SQUARE,), (_SQUARE, "real * n", "real * n-1", "T * n-1", _INFO)),
        uplo="LU",
    ),
    **_rules(
        "geev",
        "one square matrix, and returns its eigenvalues and eigenvectors",
        Signature((_SQUARE,), (_EIGENVALUES, "complex * n n", "complex * n n", _INFO)),
        aliases=(),
        compute_left="NV",
        compute_right="NV",
    ),
    # With eigenvalues to be sorted the routine calls a function that does not exist.
    **_rules(
        "gees",
        "one square matrix, and returns its Schur form, with unsorted eigenvalues",
        Signature((_SQUARE,), (_SQUARE, _SQUARE, _EIGENVALUES, _INFO, _INFO)),
        mode="NV",
        sort="N",
    ),
    # For a block of one row of a larger matrix the routine asks for less memory than it then requires, and fails.
    **_rules(
        "gehrd",
        "one square matrix, and returns it in Hessenberg form",
        Signature((_SQUARE,), (_SQUARE, "T * n-1", _INFO), ("1 <= low", "low <= high-1", "high <= n")),
        Signature((_SQUARE,), (_SQUARE, "T * n-1", _INFO), ("n == 1", "low == 1", "high == 1")),
        low="i32",
        high="i32",
    ),
    **_rules(
        "gtsv",
        "three diagonals and right-hand sides, and returns the solutions",
        Signature(_DIAGONALS, (*_DIAGONALS, _INFO), ("1 <= n",)),
        aliases=((0, 0), (1, 1), (2, 2), (3, 3)),
    ),
    **_rules(
        "trsm",
        "a triangular matrix and right-hand sides, and returns the solutions",
        Signature(("T * m m", _MATRIX), (_MATRIX,), when={"side": "L"}),
        Signature((_SQUARE, _MATRIX), (_MATRIX,), when={"side": "R"}),
        aliases=((1, 0),),
        side="LR",
        uplo="LU",
        trans_x="NTC",
        diag="NU",
    ),
    "tridiagonal_solve_perturbed_ffi": Rule(
        "three diagonals and right-hand sides, and returns the solutions",
        (Signature(_DIAGONALS, ("T * n k",), ("1 <= n",)),),
        tuple(_LETTERS.values()),
        TypedConfiguration(),
        column_major=True,
        may_be_tuple=True,
    ),
}


# Table of the custom calls that run without a handler, with their rules
#
# Sources: ``xla/hlo/transforms/expanders/eigh_expander.cc`` and ``qr_expander.cc``,
# ``xla/service/cpu/thunk_emitter.cc``, ``xla/service/spmd/shardy/constants.h``, ``xla/service/memory_annotations.h``
# and ``xla/mlir_hlo/mhlo/transforms/stablehlo_legalize_to_hlo`` in openxla/xla; for ``dce_sink``
# ``jax/_src/lax/lax.py`` in jax-ml/jax.

_COMPLEX: Final = ("complex<f32>", "complex<f64>")
_INTEGERS: Final = tuple(f"{sign}{bits}" for sign in ("i", "ui") for bits in (8, 16, 32, 64))

#: Targets that only say where their operand is, or how it is laid out.
PLACING: Final = frozenset({"LayoutConstraint", "MoveToDevice", "MoveToHost", "Sharding", "annotate_device_placement"})


def _of_any(requires: str, operands: tuple[str, ...] | None, results: tuple[str, ...]) -> Rule:
    return Rule(requires, (Signature(operands, results),), configuration=ANY, aliases=None)


_SAME: Final = _of_any("one tensor, and returns it", ("T *",), ("T *",))
_MANUAL: Final = _of_any(
    "one tensor, and returns a tensor of as many dimensions and the same element type", ("T ~",), ("T ~",)
)
_ASSERTION: Final = _of_any("two tensors of the same type, and returns nothing", ("T *", "T *"), ())

#: Calls that the toolkit replaces or computes in Python: annotations and assertions.
_OF_TOOLKIT: Final = {
    **dict.fromkeys(PLACING, _SAME),
    **dict.fromkeys(("SPMDFullToShardShape", "SPMDShardToFullShape"), _MANUAL),
    "dce_sink": _of_any("tensors, and returns nothing", None, ()),
    "xla.sdy.FuncResultSharding": replace(_SAME, configuration=FrontendAttribute("xla.sdy.sharding")),
    **dict.fromkeys(("check.expect_almost_eq", "check.expect_close", "check.expect_eq"), _ASSERTION),
    "check.eq": _of_any("two tensors of the same type, and returns a boolean", ("T *", "T *"), ("i1",)),
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


# Check of a custom call that has no handler against the rules


def reason_against(form: CallForm) -> str | None:
    rule = RULES[form.target]
    if (reason := rule.reason_against(form)) is None:
        return None
    advice = handler_advice(form.target)
    return f"{form.target} requires {rule.requires}: {reason}; to compute something else, give {advice}"


def reserved_reason(target: str) -> str | None:
    return next((reason for pattern, reason in RESERVED if pattern.fullmatch(target)), None)
