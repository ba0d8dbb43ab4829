"""Large constants are inputs of a run: they are not copied to and fro in this process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vhlo_tools as vt
from vhlo_tools.artifact import manifest_place
from vhlo_tools.integrations.exported_model import bind_arguments

NUMBER = 40_000_000
PROGRAM = """
func.func private @half(%a: tensor<1xf32>) -> tensor<1xf32> {
  %h = stablehlo.constant dense<0.5> : tensor<1xf32>
  %0 = stablehlo.multiply %a, %h : tensor<1xf32>
  return %0 : tensor<1xf32>
}
func.func @main(%a: tensor<1xf32> {tf.aliasing_output = 0 : i32}, %w: tensor<NUMBERxf32>, %b: tensor<3xi8>)
    -> (tensor<1xf32>, tensor<3xi8>) {
  %s = stablehlo.slice %w [39999999:40000000] : (tensor<NUMBERxf32>) -> tensor<1xf32>
  %0 = stablehlo.add %a, %s : tensor<1xf32>
  %1 = func.call @half(%0) : (tensor<1xf32>) -> tensor<1xf32>
  return %1, %b : tensor<1xf32>, tensor<3xi8>
}
""".replace("NUMBER", str(NUMBER))
RUN = """
import sys, numpy as np, vhlo_tools as vt
def peak(): return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) << 10
small = vt.serialize("func.func @main(%a: tensor<1xf32>) -> tensor<1xf32> { return %a : tensor<1xf32> }")
vt.run(small, [[1]], engine=sys.argv[2])
before = peak()
x = np.ones(1, np.float32)
one, other = vt.run(sys.argv[1], [x], engine=sys.argv[2], donate=[0])
assert one.tolist() == [20_000_000], one
assert other.tolist() == [1, 2, 3]
print(peak() - before)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    values = np.arange(NUMBER, dtype=np.float32)
    weights: dict[str, Any] = {"w": values, "b": np.array([1, 2, 3], np.int8)}
    path = tmp_path_factory.mktemp("large") / "large.mlirbc"
    bind_arguments(vt.serialize(PROGRAM), weights).save(path)
    assert path.stat().st_size > values.nbytes
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read there")
@pytest.mark.parametrize("engine", ["reference", "xla"])
def test_the_caller_holds_the_file_once(program: Path, engine: str) -> None:
    ran = subprocess.run([sys.executable, "-c", RUN, program, engine], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    # It was four times the size.
    assert int(ran.stdout) < 1.25 * program.stat().st_size


def test_a_wrong_number_of_inputs_is_that_of_the_program(program: Path) -> None:
    for inputs in ([], [[1], [2]]):
        with pytest.raises(vt.InvalidInputError, match=rf"requires 1 inputs, got {len(inputs)}"):
            vt.run(program, inputs)


def test_the_manifest_of_the_file_counts(program: Path) -> None:
    vt.Manifest.of(program).save(manifest_place(program))
    data = bytearray(program.read_bytes())
    data[-1] ^= 1
    program.write_bytes(data)
    with pytest.raises(vt.ManifestError):
        vt.run(program, [[1]])
