"""Snapshots of XLA, written by TensorFlow's classes of Protocol Buffers: a program, and the values of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.compiler.xla.service import hlo_pb2

import vhlo_tools as vt

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.array([[1, 2], [0, -1], [3, 0.5]], np.float32)
RESULTS: tuple[Any, ...] = (
    A @ B,
    np.int8(5),
    B.astype(ml_dtypes.bfloat16),
    A > 2,
    np.array([1 - 2j, 3j], np.complex64),
    B.astype("i4"),
)
FIELDS = {
    "float32": ("F32", "f32s"),
    "int8": ("S8", "s8s"),
    "bfloat16": ("BF16", "bf16s"),
    "bool": ("PRED", "preds"),
    "complex64": ("C64", "c64s"),
    "int32": ("S32", "s32s"),
}


@tf.function(jit_compile=True)
def function(a: Any, b: Any) -> Any:
    whole = tf.cast(tf.reduce_sum(b), tf.int8)
    return a @ b, whole, tf.cast(b, tf.bfloat16), a > 2, tf.constant(RESULTS[4]), tf.cast(b, tf.int32)


def literal(value: Any, *, columns_first: bool = False) -> Any:
    value = np.asarray(value)
    kind, field = FIELDS[value.dtype.name]
    made = xla_data_pb2.LiteralProto()
    made.shape.element_type = getattr(xla_data_pb2, kind)
    made.shape.dimensions.extend(value.shape)
    axes = range(value.ndim)
    made.shape.layout.minor_to_major.extend(axes if columns_first else reversed(axes))
    flat = value.reshape(-1, order="F" if columns_first else "C")
    if isinstance(getattr(made, field), bytes):
        setattr(made, field, flat.tobytes())
    else:
        getattr(made, field).extend(flat.view(np.float32).tolist() if field == "c64s" else flat.tolist())
    return made


def snapshot(**options: bool) -> Any:
    proto = function.experimental_get_compiler_ir(A, B)(stage="hlo_serialized")
    module = hlo_pb2.HloProto(hlo_module=hlo_pb2.HloModuleProto.FromString(proto))
    made = hlo_pb2.HloSnapshot(hlo=module, execution_platform="Host")
    made.arguments.extend([literal(A, **options), literal(B, **options)])
    made.result.shape.CopyFrom(module.hlo_module.host_program_shape.result)
    made.result.tuple_literals.extend(literal(each, **options) for each in RESULTS)
    return made


@pytest.mark.parametrize("columns_first", [False, True])
def test_values_of_a_run_become_a_record(tmp_path: Path, columns_first: bool) -> None:
    file = tmp_path / "run.hlo_snapshot.pb"
    file.write_bytes(snapshot(columns_first=columns_first).SerializeToString())
    record = vt.record_golden(tmp_path / "suite", file, name="run")
    for found, given in zip(record.values(record.inputs), (A, B), strict=True):
        np.testing.assert_array_equal(found, given)
    for found, wanted in zip(record.values(record.outputs), RESULTS, strict=True):
        assert found.dtype == np.asarray(wanted).dtype
        np.testing.assert_array_equal(found, wanted)
    assert record.library == "XLA for Host, in its snapshot"
    (replayed,) = vt.check_golden(tmp_path / "suite")
    assert replayed.passed, replayed


def test_a_result_that_the_program_does_not_have_is_found(tmp_path: Path) -> None:
    made = snapshot()
    made.result.tuple_literals[0].f32s[1] += 1
    vt.record_golden(tmp_path, made.SerializeToString(), name="wrong")
    (replayed,) = vt.check_golden(tmp_path)
    assert not replayed.passed


def test_programs_in_snapshots_run_as_others(tmp_path: Path) -> None:
    data = snapshot().SerializeToString()
    for found, wanted in zip(vt.run(data, [A, B]), RESULTS, strict=True):
        np.testing.assert_array_equal(found, wanted)
    made = vt.record_golden(tmp_path, data, [A + 1, B], name="other inputs")
    assert "StableHLO" in made.library
    # A module alone has no values, and gets drawn ones.
    alone = vt.record_golden(tmp_path, hlo_pb2.HloSnapshot.FromString(data).hlo.SerializeToString(), name="drawn")
    assert "StableHLO" in alone.library


def test_damaged_snapshots_are_refused(tmp_path: Path) -> None:
    data = snapshot().SerializeToString()
    for end in (len(data) - 3, len(data) - 40):
        with pytest.raises(vt.VhloToolsError):
            vt.record_golden(tmp_path, data[:end], name=f"cut{end}")
    made = snapshot()
    made.arguments[0].f32s.pop()
    with pytest.raises(vt.VhloToolsError):
        vt.record_golden(tmp_path, made.SerializeToString(), name="too few")
    assert list(tmp_path.iterdir()) == []
