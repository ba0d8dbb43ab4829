"""Run an artifact from standard input on XLA of an old jaxlib, with the inputs of ``test_many_blockers``; outputs are
written as ``.npz``."""

import io
import sys

import ml_dtypes
import numpy as np
from jaxlib import xla_client, xla_extension

jit = xla_extension.jax_jit
# jax does this when it is imported.
jit.set_thread_local_state_initialization_callback(lambda: None)
jit.global_state().enable_memories = False

client = xla_client.make_cpu_client()
executable = client.compile(xla_extension.mlir.deserialize_portable_artifact(sys.stdin.buffer.read()))
inputs = [
    np.arange(8, dtype=np.float32).reshape(2, 4) / 8,
    (np.arange(8).reshape(2, 4) / 4).astype(ml_dtypes.bfloat16),
]
device = client.local_devices()[0]
outputs = executable.execute([client.buffer_from_pyval(each, device) for each in inputs])
archive = io.BytesIO()
np.savez(archive, *map(np.asarray, outputs))
sys.stdout.buffer.write(archive.getvalue())
