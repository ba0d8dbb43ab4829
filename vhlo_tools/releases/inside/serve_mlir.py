"""Read, write and run artifacts with the bare bindings of this environment: jaxlib, alone or under jax, or torch-mlir.

Runs inside released packages, the oldest of 2023, and so takes the functions that each of them has.
"""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from frames import Refusal, serve, words_of

try:
    PREFIX = "jaxlib.mlir"
    ir: ModuleType = import_module(f"{PREFIX}.ir")
    stablehlo: ModuleType = import_module(f"{PREFIX}.dialects.stablehlo")
except ImportError:
    PREFIX = "torch_mlir"
    ir = import_module(f"{PREFIX}.ir")
    stablehlo = import_module(f"{PREFIX}._mlir_libs._stablehlo")

# Up to jaxlib 0.4.31 only the forms that take and give text or bytecode work; the others crash the process.
BY_BYTES = not hasattr(stablehlo, "deserialize_portable_artifact_str") and PREFIX == "jaxlib.mlir"


def context() -> Any:
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
    if not BY_BYTES:
        # Quantized types are known only after something was deserialized.
        empty = stablehlo.serialize_portable_artifact_str("module {}", "0.9.0")
        stablehlo.deserialize_portable_artifact(made, empty)
    return made


def called(step: str, function: Callable[..., Any], *arguments: Any, diagnosed: Any = None) -> Any:
    """Convert a refusal to a `Refusal` with the words of the diagnostics, where they can be had."""
    said = []

    def collect(diagnostic: Any) -> bool:
        said.append(diagnostic.message)
        return True

    handler = diagnosed and diagnosed.attach_diagnostic_handler(collect)
    try:
        return function(*arguments)
    except Exception as error:  # what a release raises differs
        raise Refusal(step, "; ".join(said) or words_of(error)) from None
    finally:
        if handler:
            handler.detach()


def module_of(artifact: bytes) -> Any:
    made = context()
    if BY_BYTES:
        program = called("read", stablehlo.deserialize_portable_artifact, artifact)
        return called("parse", ir.Module.parse, program, made)
    return called("read", stablehlo.deserialize_portable_artifact, made, artifact, diagnosed=made)


def describe() -> tuple[dict[str, Any], list[bytes]]:
    """Return the StableHLO version of the bindings, and the oldest that they write, where they say them."""
    current, minimum = (getattr(stablehlo, f"get_{name}_version", None) for name in ("current", "minimum"))
    distributions = ("jaxlib", "jax") if PREFIX == "jaxlib.mlir" else ("torch-mlir",)
    found = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    about = {"packages": found, "stablehlo": current and current(), "minimum": minimum and minimum(), "windows": {}}
    requirements = getattr(stablehlo, "StablehloCompatibilityRequirement", None)
    ask = getattr(stablehlo, "get_version_from_compatibility_requirement", None)
    if requirements is not None and ask is not None:
        about["windows"] = {name: ask(getattr(requirements, name)) for name in ("WEEK_4", "WEEK_12")}
    return about, []


def read(artifact: bytes, text: bool = False) -> tuple[str, list[bytes]]:
    if BY_BYTES and not text:
        called("read", stablehlo.deserialize_portable_artifact, artifact)
        return "", []
    module = module_of(artifact)
    return str(module) if text else "", []


def write(*programs: bytes, target: str, kind: str) -> tuple[str, list[bytes]]:
    """Write the first of some spellings (text, or artifacts) that the release reads."""
    refusal = Refusal("read", "no program was given")
    for program in programs:
        try:
            return "", [write_one(program, target, kind)]
        except Refusal as error:
            refusal = error
    raise refusal


def write_one(program: bytes, target: str, kind: str) -> Any:
    if BY_BYTES:
        artifact = kind == "artifact"
        text = called("read", stablehlo.deserialize_portable_artifact, program) if artifact else program.decode()
        return called("write", stablehlo.serialize_portable_artifact, text, target)
    made = context()
    if kind == "artifact":
        module = called("read", stablehlo.deserialize_portable_artifact, made, program, diagnosed=made)
    else:
        module = called("read", ir.Module.parse, program.decode(), made)
    return called("write", stablehlo.serialize_portable_artifact, module, target, diagnosed=made)


CLIENT: list[object] = []


def client_of(xla_client: Any, extension: Any) -> Any:
    """Return the client of XLA for this CPU, made once, after the settings that jax makes on import."""
    if not CLIENT:
        settings = getattr(extension, "jax_jit", None) or extension.config
        if hasattr(settings, "set_thread_local_state_initialization_callback"):
            settings.set_thread_local_state_initialization_callback(lambda: None)
        if hasattr(settings, "global_state") and hasattr(state := settings.global_state(), "enable_memories"):
            state.enable_memories = False
        CLIENT.append(xla_client.make_cpu_client())
    return CLIENT[0]


def compiled(xla_client: Any, client: Any, program: bytes) -> Any:
    """Compile by the form of calls that this release has."""
    options = xla_client.CompileOptions()
    if not hasattr(client, "compile_and_load"):
        return client.compile(program, options)
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    return client.compile_and_load(program, devices, options)


def placed(xla_client: Any, client: Any, array: Any) -> Any:
    device = client.local_devices()[0]
    put = getattr(xla_client, "batched_device_put", None)
    if put is None or "enable_x64" not in (put.__doc__ or ""):
        # Up to some release before 0.9.1 it needs settings that jax makes, and executables take lists.
        return [client.buffer_from_pyval(array, device)]
    described = SimpleNamespace(shape=array.shape, dtype=array.dtype, weak_type=False)
    sharding = xla_client.GSPMDSharding(xla_client.DeviceList((device,)), xla_client.HloSharding.replicate())
    return put(described, sharding, [array], [device], True, enable_x64=True)


def host(array: Any) -> Any:
    import numpy as np

    if hasattr(array, "_single_device_array_to_np_array_did_copy"):
        return array._single_device_array_to_np_array_did_copy()[0]
    return np.asarray(array)


def run_by_xla(artifact: bytes, inputs: list[Any]) -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    xla_client = import_module("jaxlib.xla_client")
    try:
        extension = import_module("jaxlib._jax")  # since 0.6.1
    except ImportError:
        extension = import_module("jaxlib.xla_extension")
    if BY_BYTES:
        program = called("read", extension.mlir.deserialize_portable_artifact, artifact)
    else:
        program = called("read", stablehlo.deserialize_portable_artifact_str, artifact)
    client = client_of(xla_client, extension)
    executable = called("compile", compiled, xla_client, client, program)

    def results() -> Any:
        found = executable.execute_sharded([placed(xla_client, client, array) for array in inputs])
        return [host(arrays[0]) for arrays in found.disassemble_into_single_device_arrays()]

    return called("run", results)


def run_by_interpreter(artifact: bytes, inputs: list[Any]) -> Any:
    """Run an artifact on the reference interpreter, which torch-mlir has."""
    import numpy as np

    module = module_of(artifact)
    made = module.context
    with made, ir.Location.unknown():
        main = next(each for each in module.body.operations if each.name.value == "main")
        types = [ir.RankedTensorType(each) for each in main.type.inputs]
        attributes = [
            ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=each.element_type, shape=each.shape)
            for array, each in zip(inputs, types)  # noqa: B905  # the engine refuses another number
        ]
        found = called("run", stablehlo.eval_module, module, attributes, diagnosed=made)
        return [np.array(each) for each in found]


def run(artifact: bytes, inputs: bytes) -> tuple[str, list[bytes]]:
    """Return the results as an archive of arrays."""
    from arrays import pack_arrays, unpack_arrays

    function = run_by_xla if PREFIX == "jaxlib.mlir" else run_by_interpreter
    return "", [pack_arrays(function(artifact, unpack_arrays(inputs)))]


if __name__ == "__main__":
    serve({"describe": describe, "read": read, "write": write, "run": run})
