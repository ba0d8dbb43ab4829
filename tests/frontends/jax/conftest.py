"""What the tests of JAX share: two devices, and the functions of the examples."""

from __future__ import annotations

import sys
from pathlib import Path

import jax

# Before anything asks for a device.
jax.config.update("jax_num_cpu_devices", 2)
sys.path.append(str(Path(__file__).parents[3] / "examples"))
