"""Read and run artifacts with a release of IREE, compiled for this CPU. IREE writes none."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from frames import Refusal, serve, words_of
from iree.compiler import compile_str, ir

#: IREE narrows elements of 64 bits unless it is told not to.
FLAGS = (
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-i64-to-i32=false",
    "--iree-input-demote-f64-to-f32=false",
)


def describe() -> tuple[dict[str, Any], list[bytes]]:
    """A release of IREE does not say its StableHLO version."""
    from importlib import metadata

    found = {name: metadata.version(name) for name in ("iree-base-compiler", "iree-base-runtime")}
    return {"packages": found, "stablehlo": None, "minimum": None, "windows": {}}, []


def parsed(artifact: bytes) -> str:
    """Read an artifact, as the compiler does first."""
    try:
        with ir.Context():
            return str(ir.Module.parse(artifact))
    except Exception as error:
        raise Refusal("read", words_of(error)) from None


def read(artifact: bytes, text: bool = False) -> tuple[str, list[bytes]]:
    """The program in the text is still VHLO."""
    program = parsed(artifact)
    return program if text else "", []


def run(artifact: bytes, inputs: bytes) -> tuple[str, list[bytes]]:
    """Return the results as an archive of arrays."""
    from arrays import pack_arrays, unpack_arrays
    from iree import runtime

    parsed(artifact)
    try:
        built = compile_str(artifact, input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=list(FLAGS))
    except Exception as error:
        words = next((line for line in str(error).splitlines() if "error: " in line), words_of(error))
        raise Refusal("compile", words) from None
    try:
        module = runtime.load_vm_flatbuffer(built, driver="local-task")
        found = module.main(*unpack_arrays(inputs))
        results = () if found is None else found if isinstance(found, tuple | list) else (found,)
        return "", [pack_arrays([each.to_host() for each in results])]
    except Exception as error:
        raise Refusal("run", words_of(error)) from None


serve({"describe": describe, "read": read, "run": run})
