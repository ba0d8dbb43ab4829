"""Read files of an archive with the bindings of this environment, and print for each what became of it.

Runs inside a released jaxlib or torch-mlir, old ones included, and so imports nothing of this project. The argument is
a zip file, and standard input names the files in it, one per line; each is answered by a line of JSON, `[name, error]`,
where no error is an empty text. Some files crash the process: whoever reads goes on behind the first without an answer.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import json
import sys
import zipfile
from importlib import import_module

try:
    PREFIX = "jaxlib.mlir"
    ir = import_module(f"{PREFIX}.ir")
    stablehlo = import_module(f"{PREFIX}.dialects.stablehlo")
except ImportError:
    PREFIX = "torch_mlir"
    ir = import_module(f"{PREFIX}.ir")
    stablehlo = import_module(f"{PREFIX}._mlir_libs._stablehlo")

# Up to jaxlib 0.4.31 only the form that gives bytecode works; the other crashes the process.
OLD = not hasattr(stablehlo, "deserialize_portable_artifact_str") and PREFIX == "jaxlib.mlir"


def context():
    """Return a context with the dialects of JAX's programs, as each release registers them."""
    made = ir.Context()
    for name in ("register_jax_dialects", "_jax_mlir_ext"):
        try:
            extension = import_module(f"{PREFIX}._mlir_libs.{name}")
        except ImportError:
            continue
        registry = ir.DialectRegistry()
        extension.register_dialects(registry)
        made.append_dialect_registry(registry)
    for name in ("stablehlo", "chlo", "sdy", "mhlo"):
        try:
            import_module(f"{PREFIX}.dialects.{name}").register_dialect(made)
        except (ImportError, AttributeError):
            continue
    if PREFIX == "torch_mlir":
        stablehlo.register_dialect(made)
    made.load_all_available_dialects()
    return made


def error_of(data):
    """Return what the library says of an artifact that it refuses, and nothing of one that it reads."""
    said = []

    def collect(diagnostic):
        said.append(diagnostic.message)
        return True

    try:
        if OLD:
            stablehlo.deserialize_portable_artifact(data)
        else:
            made = context()
            made.attach_diagnostic_handler(collect)
            stablehlo.deserialize_portable_artifact(made, data)
    except Exception as error:  # what a release raises differs
        return "; ".join(said)[:300] or repr(error)[:300]
    return ""


archive = zipfile.ZipFile(sys.argv[1])
for name in sys.stdin.read().splitlines():
    print(json.dumps([name, error_of(archive.read(name))]), flush=True)
