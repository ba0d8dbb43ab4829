"""Read the artifact on stdin with the bare jaxlib of this environment, and print the StableHLO as text.

Runs inside a released jaxlib, old ones included, and so imports nothing of this project.
"""

import sys
from importlib import import_module

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


def context() -> ir.Context:
    """Return a context with the dialects of JAX's programs, as each release registers them."""
    made = ir.Context()
    for name in ("register_jax_dialects", "_jax_mlir_ext"):
        try:
            extension = import_module(f"jaxlib.mlir._mlir_libs.{name}")
        except ImportError:
            continue
        registry = ir.DialectRegistry()
        extension.register_dialects(registry)
        made.append_dialect_registry(registry)
    for name in ("stablehlo", "chlo", "sdy"):
        try:
            import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(made)
        except ImportError:
            continue
    made.load_all_available_dialects()
    return made


artifact = sys.stdin.buffer.read()
if hasattr(stablehlo, "deserialize_portable_artifact_str"):
    print(stablehlo.deserialize_portable_artifact(context(), artifact))
else:
    # Up to jaxlib 0.4.31 only the form that gives bytecode works; the other ends the process.
    print(ir.Module.parse(stablehlo.deserialize_portable_artifact(artifact), context()))
