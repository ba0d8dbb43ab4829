"""What reproducers of findings are written with: the bindings, the interpreter and XLA of the installed release.

Runs inside a released jaxlib, torch-mlir or TensorFlow, old ones included, and so imports nothing of this project.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

import contextlib
import io
import os
from importlib import import_module
from inspect import signature
from types import SimpleNamespace

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

try:
    PREFIX = "jaxlib.mlir"
    ir = import_module(f"{PREFIX}.ir")
    stablehlo = import_module(f"{PREFIX}.dialects.stablehlo")
except ImportError:
    PREFIX = "torch_mlir"
    with contextlib.suppress(ImportError):  # TensorFlow comes without bindings for MLIR
        ir = import_module(f"{PREFIX}.ir")
        stablehlo = import_module(f"{PREFIX}._mlir_libs._stablehlo")

import numpy as np


class RefusedError(Exception):
    """The library refuses a program; the message has its diagnostics."""


def context():
    """Return a context with the dialects of StableHLO programs, as each release registers them."""
    made = ir.Context()
    for name in ("register_jax_dialects", "_jax_mlir_ext"):
        try:
            extension = import_module(f"{PREFIX}._mlir_libs.{name}")
        except ImportError:
            continue
        registry = ir.DialectRegistry()
        extension.register_dialects(registry)
        made.append_dialect_registry(registry)
    for name in ("stablehlo", "chlo", "sdy", "mhlo", "torch"):
        try:
            import_module(f"{PREFIX}.dialects.{name}").register_dialect(made)
        except (ImportError, AttributeError):
            continue
    if PREFIX == "torch_mlir":
        stablehlo.register_dialect(made)
    made.load_all_available_dialects()
    if hasattr(stablehlo, "deserialize_portable_artifact_str"):
        # Types of `quant` and `vhlo` are known only after something was deserialized.
        empty = stablehlo.serialize_portable_artifact_str("module {}", stablehlo.get_minimum_version())
        stablehlo.deserialize_portable_artifact(made, empty)
    return made


def heard(function, in_context):
    """Call a function of the bindings; raise ``RefusedError`` with the diagnostics of MLIR if it fails."""
    said = []

    def collect(diagnostic):
        said.append(diagnostic.message)
        return True

    handler = in_context.attach_diagnostic_handler(collect)
    try:
        return function()
    except Exception as error:  # what a release raises differs
        raise RefusedError("; ".join(said) or str(error)) from None
    finally:
        handler.detach()


def parse(source, in_context=None):
    return ir.Module.parse(source, in_context or context())


def bytecode(module):
    file = io.BytesIO()
    module.operation.write_bytecode(file)
    return file.getvalue()


def write(source, target):
    if PREFIX == "jaxlib.mlir" and not hasattr(stablehlo, "serialize_portable_artifact_str"):
        return stablehlo.serialize_portable_artifact(source, target)  # up to jaxlib 0.4.31
    module = parse(source)
    return heard(lambda: stablehlo.serialize_portable_artifact(module, target), module.context)


def read(artifact):
    if PREFIX == "jaxlib.mlir" and not hasattr(stablehlo, "deserialize_portable_artifact_str"):
        return str(parse(stablehlo.deserialize_portable_artifact(artifact)))  # up to jaxlib 0.4.31
    made = context()
    return str(heard(lambda: stablehlo.deserialize_portable_artifact(made, artifact), made))


def passed(source, pipeline):
    """Return the text of a module after passes, such as ``func.func(chlo-legalize-to-stablehlo)``."""
    module = parse(source)
    with contextlib.suppress(AttributeError):
        stablehlo.register_stablehlo_passes()
    with module.context:
        manager = import_module(f"{PREFIX}.passmanager").PassManager.parse(f"builtin.module({pipeline})")
        manager.run(module.operation)
    return str(module)


def function(arguments, body, results, returned="%r"):
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\nreturn {returned} : {results}\n}}"


def evaluated(source, *inputs, unsigned=False):
    """Return what the reference interpreter gives, as lists."""
    module = parse(source)
    with module.context:
        kinds = [
            {"type": ir.IntegerType.get_unsigned(8 * each.itemsize)} if each.dtype.kind == "u" else {}
            for each in map(np.asarray, inputs)
        ]
        given = [
            ir.DenseElementsAttr.get(np.array(each, order="C"), **kind)
            for each, kind in zip(inputs, kinds, strict=True)
        ]
    results = heard(lambda: stablehlo.eval_module(module, given), module.context)
    return [np.array(each).tolist() for each in results]


def client(devices=1):
    make = import_module("jaxlib.xla_client").make_cpu_client
    return make(num_devices=devices) if devices > 1 else make()


def prepare():
    """Set what jax sets when it is imported, without which old clients abort."""
    try:
        extension = import_module("jaxlib._jax")  # since 0.6.1
    except ImportError:
        extension = import_module("jaxlib.xla_extension")
    settings = getattr(extension, "jax_jit", None) or extension.config
    if hasattr(settings, "set_thread_local_state_initialization_callback"):
        settings.set_thread_local_state_initialization_callback(lambda: None)
    if hasattr(settings, "global_state") and hasattr(settings.global_state(), "enable_memories"):
        settings.global_state().enable_memories = False


def compiled(program, devices=1):
    """Return a program compiled by XLA for as many replicas, and the devices."""
    xla = import_module("jaxlib.xla_client")
    options = xla.CompileOptions()
    options.num_replicas = options.executable_build_options.num_replicas = devices
    grid = np.arange(devices, dtype=np.int32).reshape(devices, 1)
    options.executable_build_options.device_assignment = xla.DeviceAssignment.create(grid)
    made = client(devices)
    if not hasattr(made, "compile_and_load"):
        prepare()
        return made.compile(program, options), None, made  # up to jaxlib 0.6
    chosen = xla.DeviceList(tuple(made.local_devices()[:devices]))
    return made.compile_and_load(program, chosen, options), chosen, made


def partitioned(program, count):
    """Let XLA compile a program, split over devices by Shardy."""
    xla = import_module("jaxlib.xla_client")
    prepare()
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
    options = xla.CompileOptions()
    build = options.executable_build_options
    options.num_partitions = build.num_partitions = count
    options.num_replicas = build.num_replicas = 1
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    build.device_assignment = xla.DeviceAssignment.create(np.arange(count, dtype=np.int32).reshape(1, count))
    make = xla.make_cpu_client
    made = make(num_devices=count) if "num_devices" in signature(make).parameters else make()
    if not hasattr(made, "compile_and_load"):
        return made.compile(program, options)  # up to jaxlib 0.6
    return made.compile_and_load(program, xla.DeviceList(tuple(made.local_devices()[:count])), options)


def run(program, *inputs, devices=1):
    """Return what XLA gives on a CPU, as lists; on several devices each input is a list of an array for each."""
    xla = import_module("jaxlib.xla_client")
    executable, chosen, keep = compiled(program, devices)
    if chosen is None:
        given = [keep.buffer_from_pyval(np.array(each)) for each in inputs]
        return [np.asarray(each).tolist() for each in executable.execute(given)]
    sharding = xla.GSPMDSharding(chosen, xla.HloSharding.manual() if devices > 1 else xla.HloSharding.replicate())
    arguments = []
    for each in inputs:
        arrays = [np.array(part, order="C") for part in (each if devices > 1 else [each])]
        described = SimpleNamespace(shape=arrays[0].shape, dtype=arrays[0].dtype, weak_type=False)
        arguments.append(xla.batched_device_put(described, sharding, arrays, list(chosen), True, enable_x64=True))
    by_result = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    found = [[each._single_device_array_to_np_array_did_copy()[0] for each in arrays] for arrays in by_result]
    del keep
    return [[each.tolist() for each in arrays] if devices > 1 else arrays[0].tolist() for arrays in found]


def call_module(source, dtype, *inputs):
    """Return the only result of text that TensorFlow's XlaCallModule runs on a CPU, in the shape of the first input."""
    tf = import_module("tensorflow")
    bindings = import_module("tensorflow.compiler.mlir.stablehlo.stablehlo")
    operations = import_module("tensorflow.compiler.tf2xla.ops.gen_xla_ops")
    artifact = bindings.serialize_portable_artifact_str(source, bindings.get_minimum_version())

    @tf.function(jit_compile=True, autograph=False)
    def call(*values):
        return operations.xla_call_module(
            values,
            version=9,  # the newest, since which modules are portable artifacts of StableHLO programs
            module=artifact,
            Sout=[inputs[0].shape],
            Tout=[tf.dtypes.as_dtype(dtype)],
            platforms=["CPU"],
            dim_args_spec=[],
            function_list=[],
            has_token_input_output=False,
            disabled_checks=[],
        )

    (result,) = call(*map(tf.constant, inputs))
    return result.numpy()


def hlo(program):
    """Return text of MLIR as text of HLO, as XLA converts it."""
    mlir = import_module("jaxlib._jax").mlir
    computation = mlir.mlir_module_to_xla_computation(program, use_tuple_args=False, return_tuple=False)
    return computation.as_hlo_text()


def stablehlo_of(text):
    """Return text of HLO as text of MLIR, as XLA converts it."""
    try:
        of_hlo = import_module("jaxlib._hlo")
    except ImportError:
        of_hlo = import_module("jaxlib._jax")  # up to jaxlib 0.10.1
    proto = of_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return str(parse(import_module("jaxlib._jax").mlir.hlo_to_stablehlo(proto)))


def flipped(data, bit):
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
