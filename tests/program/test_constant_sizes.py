"""What a child process reads of an artifact with constants: everything but their values."""

from __future__ import annotations

import numpy as np
import pytest
from support.element_types import TYPES

import vhlo_tools as vt
from vhlo_tools.files.mapping import join
from vhlo_tools.program.constant_sizes import without_values

_COUNT = 1 << 16
#: What the rest of the program may take.
_MOST = 1000


def artifact_of(element: str, text: str | None = None) -> vt.Artifact:
    """Return an artifact with a constant of random bytes, or one that is written as ``text``."""
    kind = f"tensor<{_COUNT}x{element}>"
    size = _COUNT // 8 if element == "i1" else _COUNT * np.dtype(TYPES[element]).itemsize
    values = np.random.default_rng(0).integers(0, 2, size, np.uint8).tobytes()
    shown = f'"0x{values.hex().upper()}"' if text is None else text
    return vt.serialize(
        f"func.func @main() -> {kind} {{ %0 = stablehlo.constant dense<{shown}> : {kind} return %0 : {kind} }}"
    )


@pytest.mark.sample(6)
@pytest.mark.parametrize("element", TYPES)
def test_a_program_without_its_values_is_the_same_program_with_zeros(element: str) -> None:
    artifact = artifact_of(element)
    short = without_values(artifact.copy_of_file())
    assert short is not None
    assert len(join(short)) < _MOST < len(artifact)
    zeros = vt.open_artifact(join(short))
    (constant,) = vt.diff(artifact, zeros)
    assert constant.kind == "constant"
    # By somebody else's reading.
    assert f"tensor<{_COUNT}x{element}>" in str(vt.deserialize(zeros))
    found = np.asarray(vt.run(zeros, [])[0])
    assert found.shape == (_COUNT,)
    assert len(np.unique(found.view(np.uint8))) == 1


@pytest.mark.parametrize(("element", "text"), [("f32", "1.5"), ("i1", "true"), ("complex<f64>", "(1.0, 2.0)")])
def test_a_constant_of_one_value_is_left_alone(element: str, text: str) -> None:
    assert without_values(artifact_of(element, text).copy_of_file()) is None


def test_the_artifact_keeps_its_values() -> None:
    artifact = artifact_of("f32")
    before = bytes(artifact)
    assert len(str(vt.deserialize(vt.open_artifact(before)))) > 4 * _COUNT
    assert without_values(artifact.copy_of_file()) is not None
    assert bytes(artifact) == before
    moved = vt.retarget(artifact, "1.0.0")
    short = without_values(moved.copy_of_file())
    assert short is not None
    assert vt.open_artifact(join(short)).version == vt.Version("1.0.0")
