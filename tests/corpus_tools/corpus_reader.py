"""Read files of the corpus with the bare jaxlib of this environment, and print for each whether it could be read.

Runs inside a released jaxlib. The argument is a folder or a zip file, and standard input names the files in it, one per
line; each is answered by a line of JSON, ``[name, read]``.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import json
import sys
import zipfile
from pathlib import Path

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, sdy, stablehlo


def context():
    """Return a context with the dialects of JAX's programs."""
    made = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made.append_dialect_registry(registry)
    for dialect in (chlo, sdy, stablehlo):
        dialect.register_dialect(made)
    made.load_all_available_dialects()
    made.allow_unregistered_dialects = True
    return made


def reads(data):
    """Return whether the library makes a module of the bytes."""
    made = context()
    made.attach_diagnostic_handler(lambda _: True)
    try:
        if b"StableHLO_v" in data[:16]:
            stablehlo.deserialize_portable_artifact(made, data).operation.verify()
        else:
            # Loads the dialects of types that ordinary bytecode may hold, such as the quantized ones.
            stablehlo.deserialize_portable_artifact(
                made, stablehlo.serialize_portable_artifact_str(b"module {}", "0.9.0")
            )
            ir.Module.parse(data, made).operation.verify()
    except (ValueError, ir.MLIRError):
        return False
    return True


source = Path(sys.argv[1])
archive = None if source.is_dir() else zipfile.ZipFile(source)
for name in sys.stdin.read().splitlines():
    contents = archive.read(name) if archive else (source / name).read_bytes()
    print(json.dumps([name, reads(contents)]), flush=True)
