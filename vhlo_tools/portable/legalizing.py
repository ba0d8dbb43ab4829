"""The order in which a program is made portable."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from vhlo_tools.bindings import ModuleOp, Operation, Provider, source_of
from vhlo_tools.findings import Finding
from vhlo_tools.portable.arithmetic import ARITHMETIC
from vhlo_tools.portable.leftovers import LEFTOVERS
from vhlo_tools.portable.notes import Notes
from vhlo_tools.portable.resources import inlined
from vhlo_tools.portable.rewriting import discardable, lost, rewrite_ops
from vhlo_tools.portable.scans import legalize_scans
from vhlo_tools.portable.tensors import SHAPES, TENSORS, unnest
from vhlo_tools.program import Program, spell

__all__ = ["make_plain", "make_portable"]

# The passes as the pass manager spells them. Sources: ``stablehlo/transforms/Passes.td`` in openxla/stablehlo and
# ``mhlo/transforms/hlo_legalize_to_stablehlo`` in openxla/xla. What of MHLO has no twin in StableHLO stays, and does
# not become a custom call to XLA.
_CHLO_TO_STABLEHLO: Final = "func.func(chlo-legalize-to-stablehlo)"
_MHLO_TO_STABLEHLO: Final = "hlo-legalize-to-stablehlo{allow-xla-features=true}"

# Their verifiers take elements of any type, and the pass ends the process over others than floats.
_OF_FLOATS: Final = frozenset({"chlo.broadcast_next_after", "chlo.broadcast_polygamma"})

_RULES: Final = {**LEFTOVERS, **ARITHMETIC, **TENSORS, **SHAPES}


def make_portable(program: Program) -> tuple[ModuleOp, tuple[Finding, ...]]:
    """Return ``program`` as a module without what a portable artifact cannot hold, and what was rewritten.

    What cannot be rewritten stays, and is refused by the legalization.

    Args:
        program: The program.

    Raises:
        MLIRFailure: If a pass fails, or what comes out is not valid.
        InvalidProgramError: If the program is not valid.
        MalformedArtifactError: If resources do not fit the attributes that refer to them.
    """
    provider = program.provider
    notes = Notes(program.name)
    module = program.load()
    # Nobody did if it came as a module, and the bindings may end the process over what is not valid.
    provider.verify(module)
    module = _made_plain(provider, module, notes)
    spell(provider, module, lambda op, message: notes.add(op, message, "attribute"))
    provider.verify(module)
    return module, tuple(notes.findings)


def make_plain(provider: Provider, module: ModuleOp, name: str) -> ModuleOp:
    """Return ``module``, rewritten in place as far as possible, without resources and other dialects than StableHLO.

    Args:
        provider: The bindings.
        module: A valid module.
        name: What to call it in messages.

    Raises:
        MLIRFailure: If a pass fails.
        InvalidProgramError: If resources do not fit the attributes that refer to them.
    """
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
        _apply_rules(provider, module, notes)
        if _survives_chlo(provider, module):
            provider.run_passes(module, _CHLO_TO_STABLEHLO, verify=False)
            # Where shapes are dynamic, what becomes of CHLO computes with them; of that nobody wants to hear.
            _apply_rules(provider, module, Notes(""))


def _survives_chlo(provider: Provider, module: ModuleOp) -> bool:
    """Tell whether there is any CHLO, all of which the library can be given once scans are legalized here."""
    # Most programs have none, and need not be looked through again.
    if not _ops_of(provider, module, "chlo") or legalize_scans(provider, module):
        return False
    ops = _ops_of(provider, module, "chlo")
    return all(_has_floats(provider, op) for op in ops if str(op.name) in _OF_FLOATS)


def _has_floats(provider: Provider, op: Operation) -> bool:
    ir = provider.ir
    return all(isinstance(ir.ShapedType(each.type).element_type, ir.FloatType) for each in op.operands)


def _apply_rules(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    unnest(provider, module, notes)
    rewrite_ops(provider, module, _RULES, notes)


def _has_types_of_mhlo(provider: Provider, module: ModuleOp) -> bool:
    """Tell whether functions take or give tokens or bounded tensors of MHLO, also where no op is of it."""
    functions = [op for op in provider.walk(module) if str(op.name) == "func.func"]
    return any(sign in str(op.attributes["function_type"]) for op in functions for sign in ("!mhlo.", "#mhlo."))


def _ops_of(provider: Provider, module: ModuleOp, dialect: str) -> list[Operation]:
    return [op for op in provider.walk(module) if str(op.name).startswith(f"{dialect}.")]


@contextmanager
def _noted(provider: Provider, module: ModuleOp, dialect: str, notes: Notes) -> Iterator[bool]:
    """Give whether ``module`` has ops of a dialect, and afterwards note those that are gone."""
    ops = _ops_of(provider, module, dialect)
    # The pass for MHLO leaves attributes on ops, that for CHLO does not.
    before = [(str(op.name), source_of(op.location), list(discardable(op)) if dialect == "chlo" else []) for op in ops]
    del ops
    yield bool(before)
    left = {str(op.name) for op in _ops_of(provider, module, dialect)} if before else set()
    for name, location, attributes in before:
        if name not in left:
            notes.add_at(name, location, f"{name} became plain StableHLO{lost(attributes)}")
