"""Read, write and run artifacts with a release of TensorFlow: its StableHLO functions, and `XlaCallModule`."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(Path(__file__).parent))

from frames import Refusal, serve, words_of
from tensorflow.compiler.mlir.stablehlo import stablehlo

#: The version of `XlaCallModule` since which it reads portable artifacts with any dialects of StableHLO's programs.
CALL_MODULE = 9


def called(step: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:  # what a release raises differs
        raise Refusal(step, words_of(error)) from None


def describe() -> tuple[dict[str, Any], list[bytes]]:
    """Return the StableHLO version of the release, and the oldest that it writes, where it says them."""
    from importlib import metadata

    found = {}
    for name in ("tensorflow", "tensorflow-cpu"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    current, minimum = (getattr(stablehlo, f"get_{name}_version", None) for name in ("current", "minimum"))
    return {
        "packages": found,
        "stablehlo": current and current(),
        "minimum": minimum and minimum(),
        "windows": {},
    }, []


def function_of(name: str) -> Any:
    """Return the form of a function that takes and gives bytes, which newer releases name `..._str`."""
    return getattr(stablehlo, f"{name}_str", None) or getattr(stablehlo, name)


def deserialized(artifact: bytes) -> Any:
    """Return the program in an artifact as ordinary bytecode."""
    return called("read", function_of("deserialize_portable_artifact"), artifact)


def read(artifact: bytes, text: bool = False) -> tuple[str, list[bytes]]:
    """Without bindings for MLIR there is no text of an artifact."""
    deserialized(artifact)
    return "", []


def write(*programs: bytes, target: str, kind: str) -> tuple[str, list[bytes]]:
    """Write the first of some spellings (text, or artifacts) that the release reads."""
    function = function_of("serialize_portable_artifact")
    refusal = Refusal("read", "no program was given")
    for program in programs:
        try:
            plain = deserialized(program) if kind == "artifact" else program
            return "", [called("write", function, plain, target)]
        except Refusal as error:
            refusal = error
    raise refusal


def run(artifact: bytes, inputs: bytes, results: Any) -> tuple[str, list[bytes]]:
    """Return the results, of given shapes and element types, as an archive of arrays."""
    import tensorflow as tf
    from arrays import pack_arrays, unpack_arrays
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    deserialized(artifact)
    arguments = unpack_arrays(inputs)

    @tf.function(jit_compile=True, autograph=False)  # type: ignore[untyped-decorator]
    def call(*values: Any) -> Any:
        return gen_xla_ops.xla_call_module(
            values,
            version=CALL_MODULE,
            module=artifact,
            dim_args_spec=[],
            Tout=[tf.dtypes.as_dtype(dtype) for dtype, _ in results],
            Sout=[tf.TensorShape(shape) for _, shape in results],
            platforms=["CPU"],
            function_list=[],
            has_token_input_output=False,
            disabled_checks=[],
        )

    values = called("run", lambda: [tf.constant(each) for each in arguments])
    found = called("run", lambda: call(*values))
    return "", [pack_arrays([each.numpy() for each in found])]


serve({"describe": describe, "read": read, "write": write, "run": run})
