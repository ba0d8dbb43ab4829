"""What JAX's primitives compute on three engines: a small share of tests/conformance/numerical_suite.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).parents[2] / "conformance" / "numerical_suite.py"

#: Words in the names of harnesses, which end in each outcome on IREE.
WORDS = (
    "add_dtypes_lhs_float32",
    "cos_shape_float32",
    "cumsum_dtype_by_fun_shape_uint8_8_9_axis",
    "dot_general_dtypes_and_precision_lhs_float32",
    "newdtype_complex64",
    "top_k_stability",
)


def test_the_engines_end_as_listed() -> None:
    only = [argument for word in WORDS for argument in ("--only", word)]
    command = [sys.executable, str(SUITE), "--engines", "reference,xla,iree", "--processes", "1", *only]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    for outcome in ("agrees", "refused", "differs", "died"):
        assert f"iree {outcome}" in done.stdout
    assert int(done.stdout.splitlines()[-1].split()[0]) >= len(WORDS)
