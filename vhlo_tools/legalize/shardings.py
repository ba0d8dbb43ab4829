"""Removal of Shardy from programs for one device, where it has no meaning.

JAX writes meshes without axes, constraints on them, and sharding rules of custom calls into such programs too.
Shardings of several devices remain.
"""

from __future__ import annotations

from vhlo_tools.bindings import ModuleOp, Provider
from vhlo_tools.rewriting import Notes, drop_shardy, has_several_devices, is_of_shardy, shardy_attributes


def drop_single_device_shardings(provider: Provider, module: ModuleOp, notes: Notes) -> None:
    ops = list(provider.walk(module))
    found = [op for op in ops if is_of_shardy(op) or any(shardy_attributes(op))]
    is_dropped = bool(found) and not any(map(has_several_devices, found))
    # MLIR invalidates them on erasure.
    del ops, found
    if is_dropped:
        drop_shardy(provider, module, notes, ": the program is for one device")
