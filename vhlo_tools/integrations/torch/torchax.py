"""Import of PyTorch programs by torchax."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidProgramError, ProviderError
from vhlo_tools.integrations.jax_functions import exclude_from_locations
from vhlo_tools.integrations.torch.export_errors import data_dependent, explained, symbolic_shapes
from vhlo_tools.integrations.torch.graphs import GraphEvaluator, as_numpy
from vhlo_tools.integrations.torch.jax_repairs import JAX_REPAIRS
from vhlo_tools.integrations.torch.refused_ops import refuse_listed

if TYPE_CHECKING:
    from vhlo_tools.bindings.isolation import Limits
    from vhlo_tools.integrations.torch.lifting import Lifted

# Load torchax beside a torch that it was not released for

#: The versions that were tried.
_FITTING: Final = "torchax 0.0.13 fits torch 2.12.0 and 2.13.0 with jax 0.10.2"
_TELEMETRY: Final = "ENABLE_RUNTIME_UPTIME_TELEMETRY"


def load_torchax() -> ModuleType:
    """Return torchax's filled table of ops; an error names the versions of torch and jax that fit."""
    failed = _load()
    if failed is not None:
        said = f"torchax {_version('torchax')} beside torch {_version('torch')} and jax {_version('jax')}"
        raise ProviderError(f"{said} cannot be imported: {failed}; {_FITTING}")
    from torchax.ops import ops_registry

    registry: ModuleType = ops_registry
    return registry


@cache
def _load() -> str | None:
    """Import torchax, and return the reason if that fails. A failed import is not tried again: it leaves halves."""
    try:
        with _torch_unchanged(), _removed_overloads():
            import torchax.decompositions
            import torchax.ops.jaten  # noqa: F401 - fills the table of ops
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return None


@contextmanager
def _removed_overloads() -> Iterator[None]:
    """Let torchax name overloads that torch no longer has.

    torchax 0.0.13 lists overloads with names of dimensions, which torch 2.13 has removed, as keys of tables: of casts
    under autocast, and of ops to decompose. An object that equals no overload does as well there.
    """
    from torch._ops import OpOverloadPacket

    own = OpOverloadPacket.__getattr__

    def overload(packet: Any, name: str) -> Any:
        try:
            return own(packet, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return object()

    OpOverloadPacket.__getattr__ = overload
    try:
        yield
    finally:
        OpOverloadPacket.__getattr__ = own


@contextmanager
def _torch_unchanged() -> Iterator[None]:
    """Undo or prevent the changes outside of torchax by its import: settings of torch and jax, and decompositions.

    torchax makes JAX a device of torch, which the conversion does not need, and with which torch.export of control flow
    fails.
    """
    import jax
    import torch
    from torch._decomp import global_decomposition_table

    fast, telemetry = torch.backends.mha.get_fastpath_enabled(), os.environ.get(_TELEMETRY)
    client = getattr(jax.config, "jax_pjrt_client_create_options", None)
    tables = {name: dict(table) for name, table in global_decomposition_table.items()}
    rename, register = torch.utils.rename_privateuse1_backend, torch._register_device_module
    torch.utils.rename_privateuse1_backend = torch._register_device_module = lambda *_: None
    try:
        yield
    finally:
        torch.utils.rename_privateuse1_backend, torch._register_device_module = rename, register
        torch.backends.mha.set_fastpath_enabled(fast)
        if telemetry is None:
            os.environ.pop(_TELEMETRY, None)
        if client:
            jax.config.update("jax_pjrt_client_create_options", client)
        for name, table in tables.items():
            global_decomposition_table[name].clear()
            global_decomposition_table[name].update(table)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(unknown)"


# Convert programs whose weights are inputs to StableHLO, by torchax: torch's ops as functions of JAX

#: Artifacts are for processes without jax: their custom calls are those of XLA for CPUs, if there are any.
_PLATFORM: Final = "cpu"
#: The files whose frames are at the start of each thread.
_OF_THREADS: Final = (Path(threading.__file__), Path(futures.__file__).parent)


def decompositions() -> dict[Any, Callable[..., Any]]:
    load_torchax()
    from torch.export import default_decompositions
    from torchax.decompositions import DECOMPOSITIONS

    found = {**dict(default_decompositions().items()), **DECOMPOSITIONS}
    return {op: function for op, function in found.items() if str(op) not in JAX_REPAIRS}


def import_program(lifted: Lifted, name: str, _: Limits) -> Artifact:
    """Return an artifact whose ``main`` takes all inputs, weights and hidden tensors; JAX needs no limits."""
    registry = load_torchax()
    import jax
    import jax.export
    from torchax.ops.mappings import TORCH_DTYPE_TO_JAX

    program = lifted.program
    if unknown := data_dependent(program):
        raise InvalidProgramError(
            f"torchax cannot convert {name} to StableHLO: {unknown} returns a shape that depends on values"
        )
    refuse_listed(program.graph_module, "torchax", name)
    evaluator = GraphEvaluator(registry.all_aten_ops, TORCH_DTYPE_TO_JAX, name)
    constants = [as_numpy(each, f"{name}: a constant") for each in lifted.small]

    def main(*values: Any) -> tuple[Any, ...]:
        return evaluator.evaluate(program.graph_module, (*values, *constants))

    def lowered() -> Any:
        shape_of = symbolic_shapes(program)
        with _settings():
            # The inputs as torch describes them.
            values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
            given = [
                jax.ShapeDtypeStruct(shape_of(value.shape), TORCH_DTYPE_TO_JAX[value.dtype])
                for value in values[: len(values) - len(lifted.small)]
            ]
            return jax.export.export(jax.jit(main, keep_unused=True), platforms=[_PLATFORM])(*given)

    with explained(f"torchax cannot import {name}"), ThreadPoolExecutor(1) as thread:
        # In a thread of its own, source locations do not have the lines of the caller.
        try:
            exported = thread.submit(lowered).result()
        except InvalidProgramError as error:
            # Without the notes of JAX about its own frames.
            raise InvalidProgramError(str(error)) from error
    return Artifact(exported.mlir_module_serialized, name=name, trusted=True)


@contextmanager
def _settings() -> Iterator[None]:
    """Let JAX have torch's 64-bit types, and locations that are lines of the user's modules alone."""
    import jax
    import torch
    import torchax
    from jax.extend import source_info_util

    exclude_from_locations()
    for excluded in (Path(torch.__file__).parent, Path(torchax.__file__).parent, *_OF_THREADS):
        source_info_util.register_exclusion(str(excluded))
    # With whole tracebacks JAX writes ranges of columns, which readers older than StableHLO 1.9.0 reject.
    whole = jax.config.jax_include_full_tracebacks_in_locations
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    try:
        with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
            yield
    finally:
        jax.config.update("jax_include_full_tracebacks_in_locations", whole)
