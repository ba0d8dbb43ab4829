"""Convert programs whose weights are inputs to StableHLO, by torchax: torch's ops as functions of JAX."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.artifact import Artifact
from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.integrations.jax_functions import exclude_from_locations
from vhlo_tools.integrations.torch.export_errors import data_dependent, explained
from vhlo_tools.integrations.torch.graph_evaluation import GraphEvaluator
from vhlo_tools.integrations.torch.numpy_arrays import as_numpy
from vhlo_tools.integrations.torch.symbolic_sizes import SymbolicSizes
from vhlo_tools.integrations.torch.torchax_loading import load_torchax

if TYPE_CHECKING:
    from vhlo_tools.integrations.torch.lifting import Lifted

#: Artifacts are for processes without jax: their custom calls are those of XLA for CPUs, if there are any.
_PLATFORM: Final = "cpu"
#: The files whose frames are at the start of each thread.
_OF_THREADS: Final = (Path(threading.__file__), Path(futures.__file__).parent)


def decompositions() -> dict[Any, Callable[..., Any]]:
    load_torchax()
    from torch.export import default_decompositions
    from torchax.decompositions import DECOMPOSITIONS

    return {**dict(default_decompositions().items()), **DECOMPOSITIONS}


def import_program(lifted: Lifted, name: str) -> Artifact:
    """Return an artifact whose ``main`` takes all inputs, weights and hidden tensors."""
    registry = load_torchax()
    import jax
    import jax.export
    from torchax.ops.mappings import TORCH_DTYPE_TO_JAX

    program = lifted.program
    if unknown := data_dependent(program):
        raise InvalidProgramError(
            f"torchax cannot convert {name} to StableHLO: {unknown} returns a shape that depends on values"
        )
    evaluator = GraphEvaluator(registry.all_aten_ops, TORCH_DTYPE_TO_JAX, name)
    constants = [as_numpy(each, f"{name}: a constant") for each in lifted.small]

    def main(*values: Any) -> tuple[Any, ...]:
        return evaluator.evaluate(program.graph_module, (*values, *constants))

    def lowered() -> Any:
        sizes = SymbolicSizes.of(program)
        with _settings():
            given = [
                jax.ShapeDtypeStruct(sizes.shape(value.shape), TORCH_DTYPE_TO_JAX[value.dtype])
                for value in _tensors(lifted)
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


def _tensors(lifted: Lifted) -> Iterator[Any]:
    """Yield the inputs as torch describes them."""
    placeholders = [node for node in lifted.program.graph.nodes if node.op == "placeholder"]
    for node in placeholders[: len(placeholders) - len(lifted.small)]:
        yield node.meta["val"]


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
