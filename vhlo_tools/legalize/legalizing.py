"""The sequence of rewrites that makes a program portable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider, source_of
from vhlo_tools.findings import Finding
from vhlo_tools.legalize.arithmetic import ARITHMETIC
from vhlo_tools.legalize.dense_resources import inlined
from vhlo_tools.legalize.mhlo import MHLO
from vhlo_tools.legalize.scans import legalize_scans
from vhlo_tools.legalize.shardings import drop_single_device_shardings
from vhlo_tools.legalize.tensor_and_shape import SHAPES, TENSORS, unnest
from vhlo_tools.program import Program, encode_attributes
from vhlo_tools.rewriting import Notes, apply_patterns, discardable, lost, patterns_of

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
    # A program that was passed as a module has not been verified, and the bindings may crash on an invalid one.
    provider.verify(module)
    drop_single_device_shardings(provider, module, notes)
    module = _made_plain(provider, module, notes)
    encode_attributes(provider, module, lambda op, message: notes.add(op, message, "attribute"))
    provider.verify(module)
    return module, tuple(notes.findings)


def make_plain(provider: Provider, module: ModuleOp, name: str) -> ModuleOp:
    """Rewrites in place as far as possible."""
    return _made_plain(provider, module, Notes(name))


def _made_plain(provider: Provider, module: ModuleOp, notes: Notes) -> ModuleOp:
    module = inlined(provider, module, notes)
    _rewrite(provider, module, notes)
    return module


def _rewrite(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    with _noted(provider, module, "chlo", notes):
        with _noted(provider, module, "mhlo", notes) as found:
            if (found or _has_types_of_mhlo(provider, module)) and provider.has_mhlo_passes:
                provider.run_passes(module, _MHLO_TO_STABLEHLO, verify=False)
        _apply_patterns(provider, module, notes)
        if _survives_chlo(provider, module):
            provider.run_passes(module, _CHLO_TO_STABLEHLO, verify=False)
            # With dynamic shapes, legalized CHLO contains ops that compute shapes; these rewrites are not reported.
            _apply_patterns(provider, module, Notes(""))


def _survives_chlo(provider: Provider, module: ModuleOp) -> bool:
    """Legalizes scans; true if CHLO is left, and the library can legalize it without crashing."""
    # Most programs contain no CHLO, and skip the further steps.
    if not _ops_of(provider, module, "chlo") or legalize_scans(provider, module):
        return False
    ops = _ops_of(provider, module, "chlo")
    return all(_has_floats(provider, op) for op in ops if str(op.name) in _OF_FLOATS)


def _has_floats(provider: Provider, op: Operation) -> bool:
    ir = provider.ir
    return all(isinstance(ir.ShapedType(each.type).element_type, ir.FloatType) for each in op.operands)


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
        if name not in left:
            notes.add_at(name, location, f"{name} was rewritten to StableHLO{lost(attributes)}")
