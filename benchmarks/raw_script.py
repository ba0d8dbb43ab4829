"""What one would write with nothing but jaxlib: `raw_script.py round-trip|serialize|print FROM TO [VERSION]`.

Whole processes of ours are measured beside it, so it imports nothing of this package. `round-trip` reads an artifact
and writes it for a version, `serialize` writes MLIR text as an artifact, and `print` an artifact as text.
"""

import sys
from pathlib import Path

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo

step, source, path, *version = sys.argv[1:]
context, registry = ir.Context(), ir.DialectRegistry()
_jax_mlir_ext.register_dialects(registry)
context.append_dialect_registry(registry)
stablehlo.register_dialect(context)
context.load_all_available_dialects()
data = Path(source).read_bytes()
module = (
    ir.Module.parse(data, context) if step == "serialize" else stablehlo.deserialize_portable_artifact(context, data)
)
made = str(module).encode() if step == "print" else stablehlo.serialize_portable_artifact(module, version[0])
Path(path).write_bytes(made)
