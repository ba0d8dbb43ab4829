"""Read the artifacts on stdin with the bare jaxlib of this environment, and print what became of each, as JSON.

Each artifact stands after its length in eight bytes; for each there is its StableHLO as text, or an error.

Runs inside a released jaxlib, old ones included, and so imports nothing of this project.
"""

import json
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
    if hasattr(stablehlo, "deserialize_portable_artifact_str"):
        # Quantized types are known only after something was deserialized.
        empty = stablehlo.serialize_portable_artifact_str("module {}", "0.9.0")
        stablehlo.deserialize_portable_artifact(made, empty)
    return made


def read(artifact: bytes) -> str:
    """Return the StableHLO in an artifact as text."""
    if hasattr(stablehlo, "deserialize_portable_artifact_str"):
        return str(stablehlo.deserialize_portable_artifact(context(), artifact))
    # Up to jaxlib 0.4.31 only the form that gives bytecode works; the other crashes the process.
    program = stablehlo.deserialize_portable_artifact(artifact)
    try:
        return str(ir.Module.parse(program, context()))
    except ir.MLIRError:
        # It has read the artifact, but no context of these releases knows quantized types.
        return ""


outcomes = []
while size := sys.stdin.buffer.read(8):
    data = sys.stdin.buffer.read(int.from_bytes(size, "little"))
    try:
        outcomes.append({"text": read(data)})
    except Exception as error:  # what a release raises differs
        outcomes.append({"error": repr(error)})
print(json.dumps(outcomes))
