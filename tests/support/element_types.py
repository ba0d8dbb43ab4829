"""The numpy types of StableHLO's element types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

TYPES: dict[str, Any] = {
    "i1": np.bool_,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
    "bf16": ml_dtypes.bfloat16,
    **{
        f"f{name}": getattr(ml_dtypes, f"float{name.replace('E', '_e').lower()}")
        for name in ("8E3M4", "8E4M3", "8E4M3B11FNUZ", "8E4M3FN", "8E4M3FNUZ", "8E5M2", "8E5M2FNUZ", "8E8M0FNU")
    },
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "ui2": ml_dtypes.uint2,
    "ui4": ml_dtypes.uint4,
}
#: With the floats of less than eight bits, which not every engine has.
EVERY_TYPE: dict[str, Any] = {
    **TYPES,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
}
