"""Legalization: ops of CHLO, MHLO and upstream dialects become ops of StableHLO."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider, class_of, leaves, named_attributes, source_of
from vhlo_tools.bytecode import decode, encode, inline_resources
from vhlo_tools.conversion.arith_ops import ARITHMETIC, chlo_twin
from vhlo_tools.conversion.patterns import Build, Pattern, apply_patterns, discardable, lost, patterns_of
from vhlo_tools.conversion.rewriter import DIMENSION_BITS, MatchFailure, Notes, Rewriter
from vhlo_tools.conversion.shardy import drop_shardy, has_several_devices, is_of_shardy, shardy_attributes
from vhlo_tools.conversion.tensor_ops import SHAPES, TENSORS, unnest
from vhlo_tools.errors import InvalidProgramError, MalformedArtifactError
from vhlo_tools.findings import Finding
from vhlo_tools.program import Program, encode_attributes
from vhlo_tools.version import Version

# Patterns for ops of the dialect ``mhlo`` that its own conversion to StableHLO does not convert
#
# Source: ``mhlo/IR/hlo_ops.td`` in openxla/xla.

#: Ops with an equivalent of the same name in CHLO, which is legalized afterwards.
_IN_CHLO: Final = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf", "sinh")


def _same(rewriter: Rewriter) -> Sequence[Any]:
    """A copy affects only the location of a value, a domain only the devices that have it."""
    return [rewriter.operand(0)]


def _top_k(rewriter: Rewriter) -> Sequence[Any]:
    if "largest" in rewriter.op.attributes and not rewriter.op.attributes["largest"].value:
        raise MatchFailure("the smallest elements")
    types = [rewriter.converted_type(result.type) for result in rewriter.op.results]
    return rewriter.make_several("chlo.top_k", rewriter.operands(), types, k=rewriter.op.attributes["k"])


def _after_token(rewriter: Rewriter) -> Sequence[Any]:
    """A barrier with the token, because the value must not be computed before the token exists."""
    operands = list(rewriter.op.operands)
    return rewriter.make_several("stablehlo.optimization_barrier", operands, [each.type for each in operands])[:1]


def _fusion(rewriter: Rewriter) -> Sequence[Any]:
    """A fusion only groups ops for code generation; a body without arguments uses the values outside."""
    block = rewriter.op.regions[0].blocks[0]
    *_, end = block.operations
    if [value.type for value in end.operands] != [result.type for result in rewriter.op.results]:
        raise MatchFailure("its body returns other types than its own")
    return rewriter.body(rewriter.operands() if len(block.arguments) else [])


def _bitcast(rewriter: Rewriter) -> Sequence[Any]:
    """The order in memory is kept; layouts name dimensions from minor to major (``xla/layout.h`` in openxla/xla)."""
    operand, result = rewriter.operand(0), rewriter.result_type()
    sizes, element = rewriter.static(result), result.element_type
    in_memory = rewriter.transpose(operand, _major_to_minor(rewriter, "source_layout", len(operand.type.shape)))
    if operand.type.element_type != element:
        before = after = list(rewriter.static(in_memory.type))
        count, wanted = math.prod(before), math.prod(sizes)
        # Of narrower elements, each wider one has several along a dimension more.
        if 0 < wanted < count:
            before, after = [wanted, count // wanted], [wanted]
        elif 0 < count < wanted:
            before, after = [count], [count, wanted // count]
        in_memory = rewriter.reshape(in_memory, before)
        in_memory = rewriter.make("stablehlo.bitcast_convert", [in_memory], rewriter.tensor(after, element))
    target = _major_to_minor(rewriter, "result_layout", len(sizes))
    in_memory = rewriter.reshape(in_memory, [sizes[at] for at in target])
    return [rewriter.transpose(in_memory, sorted(range(len(sizes)), key=target.__getitem__))]


def _major_to_minor(rewriter: Rewriter, name: str, rank: int) -> list[int]:
    order = list(range(rank))
    if name in rewriter.op.attributes:
        order = [int(each) for each in rewriter.op.attributes[name]][::-1]
    if sorted(order) != list(range(rank)):
        raise MatchFailure(f"{name} is not a permutation of {rank} dimensions")
    return order


#: The patterns for ops of `mhlo`.
MHLO: Final[dict[str, Build]] = {
    "mhlo.add_dependency": _after_token,
    "mhlo.bitcast": _bitcast,
    "mhlo.copy": _same,
    "mhlo.domain": _same,
    "mhlo.fusion": _fusion,
    "mhlo.topk": _top_k,
    **{f"mhlo.{name}": chlo_twin for name in _IN_CHLO},
}


# Inlining of constants in resources of a module

_SIGN: Final = "dense_resource<"


def inlined(provider: Provider, module: ModuleOp, notes: Notes) -> ModuleOp:
    """The bindings cannot read resources: the module goes through bytecode, which has a section for them."""
    found = 0
    for op in provider.walk(module):
        for name, attribute in named_attributes(op.attributes):
            for each in leaves(attribute):
                # Resources have no class in the bindings; what has a class may be a large constant, and is not printed.
                if class_of(each) == "Attribute" and (text := str(each)).startswith(_SIGN):
                    found += 1
                    notes.add(op, f"the {name} of {op.name} was in a resource of the module, {text}, and was inlined")
    if not found:
        return module
    file = decode(b"".join(provider.bytecode(module, provider.library.current)))
    try:
        inline_resources(file)
    except MalformedArtifactError as error:
        raise InvalidProgramError(
            f"{notes.program} contains a resource that does not match its type: {error}"
        ) from error
    # Released to limit the number of copies of large constants.
    data = encode(file)
    del file
    return provider.parse(module.context, data)


# Removal of Shardy from programs for one device, where it has no meaning
#
# JAX writes meshes without axes, constraints on them, and sharding rules of custom calls into such programs too.
# Shardings of several devices remain.


def drop_single_device_shardings(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    found = [op for op in provider.walk(module) if is_of_shardy(op) or any(shardy_attributes(op))]
    is_dropped = bool(found) and not any(map(has_several_devices, found))
    # MLIR invalidates them on erasure.
    del found
    if is_dropped:
        drop_shardy(provider, module, notes, ": the program is for one device")


# Legalization of CHLO scans to loops
#
# Before 1.18.0, StableHLO scans forwards even with ``is_reverse``, crashes the process on complex numbers, and creates
# ops of dynamic shapes that XLA does not compile; no version supports a scan within a scan. The loops built here have
# the ops of ``ConvertScanOp`` in ``stablehlo/transforms/ChloLegalizeToStablehlo.cpp`` of openxla/stablehlo 1.18.0, so
# that an artifact does not depend on the library. Semantics of a scan:
# https://openxla.org/xla/operation_semantics#scan.

_SCAN: Final = "chlo.scan"
_MENDED: Final = Version("1.18.0")


def legalizes_scans(provider: Provider) -> bool:
    return provider.library.current >= _MENDED


def legalize_scans(provider: Provider, module: ModuleOp) -> list[Operation]:
    """Returns the scans that cannot be replaced, on which the library may crash."""
    apply_patterns(provider, module, [Pattern(_SCAN, _loop)])
    return [op for op in provider.walk(module) if str(op.name) == _SCAN]


def _loop(rewriter: Rewriter) -> Sequence[Any]:
    op = rewriter.op
    dimension = int(op.attributes["dimension"].value)
    of_inputs, of_carries = op.attributes["operandSegmentSizes"]
    inputs, inits = list(op.operands)[:of_inputs], list(op.operands)[of_inputs:]
    outputs = [result.type for result in list(op.results)[: len(op.results) - of_carries]]
    extent = _extent(rewriter, inputs, outputs, dimension)
    index = rewriter.size(0)
    filled = [_zeros(rewriter, type_, extent, dimension) for type_ in outputs]
    initial = [index, *inits, *filled]
    types = [each.type for each in initial]

    def goes_on(index: Any, *_: Any) -> Sequence[Any]:
        return [rewriter.compare("LT", index, extent)]

    def step(index: Any, *values: Any) -> Sequence[Any]:
        at = _position(rewriter, index, extent)
        slices = [_slice(rewriter, each, at, dimension) for each in inputs]
        made = rewriter.body([*slices, *values[:of_carries]])
        pairs = zip(values[of_carries:], made[: len(outputs)], strict=True)
        updated = [_update(rewriter, whole, part, at, dimension) for whole, part in pairs]
        following = rewriter.make("stablehlo.add", [index, rewriter.size(1)], index.type)
        return [following, *made[len(outputs) :], *updated]

    _, *results = rewriter.make_several("stablehlo.while", initial, types, [(types, goes_on), (types, step)])
    return [*results[of_carries:], *results[:of_carries]]


def _extent(rewriter: Rewriter, inputs: Sequence[Any], outputs: Sequence[Any], dimension: int) -> Any:
    """The number of steps."""
    if not inputs:
        if "scan_dim_size" in rewriter.op.attributes:
            return rewriter.size(int(rewriter.op.attributes["scan_dim_size"].value))
        # Without inputs there are outputs, as the verifier ensures.
        return rewriter.size(_known(rewriter, outputs[0])[dimension])
    of_32 = rewriter.tensor((), rewriter.integer(32))
    asked = rewriter.make("stablehlo.get_dimension_size", inputs[:1], of_32, dimension=rewriter.number(dimension))
    return rewriter.convert(asked, rewriter.integer(DIMENSION_BITS))


def _zeros(rewriter: Rewriter, type_: Any, extent: Any, dimension: int) -> Any:
    if not rewriter.is_number(type_) and not rewriter.is_complex(type_):
        raise MatchFailure(f"outputs of type {type_}")
    zero = rewriter.constant(rewriter.tensor((), type_.element_type), 0)
    to = rewriter.integers([])
    if None not in rewriter.shape(type_):
        return rewriter.make("stablehlo.broadcast_in_dim", [zero], type_, broadcast_dimensions=to)
    sizes = [rewriter.size(size) for size in _known(rewriter, type_, but=dimension)]
    sizes[dimension] = extent
    of_sizes = rewriter.joined(sizes, extent.type.element_type)
    return rewriter.make("stablehlo.dynamic_broadcast_in_dim", [zero, of_sizes], type_, broadcast_dimensions=to)


def _known(rewriter: Rewriter, type_: Any, but: int | None = None) -> list[int]:
    """The size of the dimension ``but``, which may be dynamic, is returned as 1."""
    sizes = [1 if at == but else size for at, size in enumerate(rewriter.shape(type_))]
    return list(rewriter.static(rewriter.tensor(sizes, type_.element_type)))


def _position(rewriter: Rewriter, index: Any, extent: Any) -> Any:
    if "is_reverse" not in rewriter.op.attributes or not rewriter.op.attributes["is_reverse"].value:
        return index
    last = rewriter.make("stablehlo.subtract", [extent, rewriter.size(1)], index.type)
    return rewriter.make("stablehlo.subtract", [last, index], index.type)


def _slice(rewriter: Rewriter, whole: Any, at: Any, dimension: int) -> Any:
    sizes = _known(rewriter, whole.type, but=dimension)
    part = rewriter.dynamic_slice(whole, _starts(rewriter, at, len(sizes), dimension), sizes)
    return rewriter.reshape(part, sizes[:dimension] + sizes[dimension + 1 :])


def _update(rewriter: Rewriter, whole: Any, part: Any, at: Any, dimension: int) -> Any:
    sizes = _known(rewriter, whole.type, but=dimension)
    part = rewriter.reshape(part, sizes)
    starts = _starts(rewriter, at, len(sizes), dimension)
    return rewriter.make("stablehlo.dynamic_update_slice", [whole, part, *starts], whole.type)


def _starts(rewriter: Rewriter, at: Any, rank: int, dimension: int) -> list[Any]:
    zero = rewriter.size(0)
    return [at if each == dimension else zero for each in range(rank)]


# The sequence of rewrites that makes a program portable

# Passes in the syntax of the pass manager. Sources: ``stablehlo/transforms/Passes.td`` in openxla/stablehlo and
# ``mhlo/transforms/hlo_legalize_to_stablehlo`` in openxla/xla. MHLO ops without an equivalent in StableHLO remain, and
# do not become custom calls to XLA.
_CHLO_TO_STABLEHLO: Final = "func.func(chlo-legalize-to-stablehlo)"
_MHLO_TO_STABLEHLO: Final = "hlo-legalize-to-stablehlo{allow-xla-features=true}"

# The verifiers of these ops accept any element type, but the pass crashes the process on elements other than floats.
_OF_FLOATS: Final = frozenset({"chlo.broadcast_next_after", "chlo.broadcast_polygamma"})

_PATTERNS: Final = patterns_of({**MHLO, **ARITHMETIC, **TENSORS, **SHAPES})


def make_portable(program: Program) -> tuple[ModuleOp, tuple[Finding, ...]]:
    """Constructs without a rewrite remain; the conversion to VHLO rejects them."""
    provider = program.provider
    notes = Notes(program.name)
    module = program.load()
    drop_single_device_shardings(provider, module, notes)
    module = make_plain(provider, module, program.name, notes)
    encode_attributes(provider, module, lambda op, message: notes.add(op, message, "attribute"))
    provider.verify(module)
    return module, tuple(notes.findings)


def make_plain(provider: Provider, module: ModuleOp, name: str, notes: Notes | None = None) -> ModuleOp:
    """Rewrites in place as far as possible."""
    notes = notes or Notes(name)
    module = inlined(provider, module, notes)
    with _noted(provider, module, "chlo", notes):
        with _noted(provider, module, "mhlo", notes) as found:
            if (found or _has_types_of_mhlo(provider, module)) and provider.has_mhlo_passes:
                provider.run_passes(module, _MHLO_TO_STABLEHLO, verify=False)
        _apply_patterns(provider, module, notes)
        if _survives_chlo(provider, module):
            provider.run_passes(module, _CHLO_TO_STABLEHLO, verify=False)
            # With dynamic shapes, legalized CHLO contains ops that compute shapes; these rewrites are not reported.
            _apply_patterns(provider, module, Notes(""))
    return module


def _survives_chlo(provider: Provider, module: ModuleOp) -> bool:
    """Legalizes scans; true if CHLO is left, and the library can legalize it without crashing."""
    # Most programs contain no CHLO, and skip the further steps.
    if not _ops_of(provider, module, "chlo") or legalize_scans(provider, module):
        return False
    ir = provider.ir
    values = [each for op in _ops_of(provider, module, "chlo") if str(op.name) in _OF_FLOATS for each in op.operands]
    return all(isinstance(ir.ShapedType(each.type).element_type, ir.FloatType) for each in values)


def _apply_patterns(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    unnest(provider, module, notes)
    apply_patterns(provider, module, _PATTERNS, notes)


def _has_types_of_mhlo(provider: Provider, module: ModuleOp) -> bool:
    """Tokens or bounded tensors of MHLO in function types may occur without ops of MHLO."""
    functions = [op for op in provider.walk(module) if str(op.name) == "func.func"]
    return any(sign in str(op.attributes["function_type"]) for op in functions for sign in ("!mhlo.", "#mhlo."))


def _ops_of(provider: Provider, module: ModuleOp, dialect: str) -> list[Operation]:
    return [op for op in provider.walk(module) if str(op.name).startswith(f"{dialect}.")]


@contextmanager
def _noted(provider: Provider, module: ModuleOp, dialect: str, notes: Notes) -> Iterator[bool]:
    """Adds notes afterwards, for the ops of the dialect that were replaced."""
    ops = _ops_of(provider, module, dialect)
    # The pass for MHLO keeps attributes of ops, that for CHLO does not.
    before = [(str(op.name), source_of(op.location), list(discardable(op)) if dialect == "chlo" else []) for op in ops]
    del ops
    yield bool(before)
    left = {str(op.name) for op in _ops_of(provider, module, dialect)} if before else set()
    for name, location, attributes in before:
        # The end of a region is not an op of its own, and that of an inlined one is gone.
        if name not in left and (name != "mhlo.return" or attributes):
            notes.add_at(name, location, f"{name} was rewritten to StableHLO{lost(attributes)}")
