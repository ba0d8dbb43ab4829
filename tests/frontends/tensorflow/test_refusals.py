"""What TensorFlow, XLA or StableHLO cannot do is said by name, in errors of this package."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import vhlo_tools as vt
from vhlo_tools.integrations.tensorflow import export, export_saved_model

VECTOR = tf.TensorSpec([4], tf.float32)


def refused(error: type[vt.VhloToolsError], function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    with pytest.raises(error) as caught:
        export(function, *arguments, name="f", **options)
    return str(caught.value)


def test_types_that_stablehlo_does_not_have() -> None:
    strings = tf.TensorSpec([4], tf.string)
    message = refused(vt.UnsupportedFeatureError, tf.strings.length, strings)
    assert "the input input of f is a tensor of type string, which StableHLO does not support" in message
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(lambda x: tf.strings.length(x), strings, name="f")
    (finding,) = caught.value.findings
    assert (finding.op, finding.location and finding.location.file) == ("StringLength", __file__)
    message = refused(vt.UnsupportedFeatureError, lambda x: {"text": tf.strings.as_string(x)}, VECTOR)
    assert "the output text of f is a tensor of type string" in message
    message = refused(
        vt.UnsupportedFeatureError, lambda x: tf.reduce_sum(x), tf.RaggedTensorSpec([2, None], tf.float32)
    )
    assert "the input x of f is a RaggedTensorSpec" in message
    message = refused(vt.UnsupportedFeatureError, lambda x: tf.RaggedTensor.from_row_lengths(x, [1, 3]), VECTOR)
    assert "the output output0 of f is a RaggedTensor" in message


def printing(x: tf.Tensor) -> tf.Tensor:
    tf.print(x)
    return x


@pytest.mark.parametrize(
    ("function", "op"),
    [
        (printing, "StringFormat"),
        (lambda x: tf.py_function(lambda value: value, [x], tf.float32), "EagerPyFunc"),
        (lambda x: tf.numpy_function(lambda value: value, [x], tf.float32), "PyFunc"),
    ],
)
def test_ops_that_xla_does_not_have(function: Callable[..., Any], op: str) -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(function, VECTOR, name="f")
    assert caught.value.summary == "XLA cannot compile f"
    (finding,) = caught.value.findings
    assert (finding.op, finding.message) == (op, f"{op} is an op that XLA cannot compile")
    assert finding.location is not None
    assert finding.location.file == __file__


@pytest.mark.parametrize(
    ("function", "op"),
    [(lambda x: tf.reshape(x, tf.cast(x[:2], tf.int32)), "Reshape"), (lambda x: tf.range(x[0]), "Range")],
)
def test_shapes_that_depend_on_values(function: Callable[..., Any], op: str) -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(function, VECTOR, name="f")
    (finding,) = caught.value.findings
    assert finding.op == op
    assert f"of {op} depends on an input of the function: XLA needs its value to compile the op" in finding.message
    assert finding.location is not None
    assert finding.location.file.endswith("test_refusals.py")


def test_branches_whose_shapes_differ_in_several_dimensions() -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(tf.image.rot90, tf.TensorSpec([4, 3, 3]), tf.TensorSpec([], tf.int32), name="f")
    (finding,) = caught.value.findings
    assert finding.op == "StatelessIf"
    assert "of StatelessIf return tensors of different shapes, (?, ?, 3) in common" in finding.message
    # One function for all quarters of a square.
    assert export(tf.image.rot90, tf.TensorSpec([4, 4, 3]), tf.TensorSpec([], tf.int32)).outputs == ("output0",)

    def turned(image: tf.Tensor, quarters: tf.Tensor) -> tf.Tensor:
        return tf.image.rot90(image, quarters)

    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(turned, tf.TensorSpec([4, 3, 3]), tf.TensorSpec([], tf.int32))
    assert caught.value.findings[0].location == vt.SourceLocation(__file__, turned.__code__.co_firstlineno + 1)


def written(x: tf.Tensor, size: int, count: Any, *, grows: bool = True) -> tf.Tensor:
    array = tf.TensorArray(tf.float32, size=size, dynamic_size=grows, element_shape=[])
    loop = tf.while_loop(lambda i, _: i < count, lambda i, array: (i + 1, array.write(i, x[i] * 2)), (0, array))
    return loop[1].stack()


def listed(x: tf.Tensor) -> tf.Tensor:
    array = tf.TensorArray(tf.float32, size=3, dynamic_size=True)
    for number in range(4):
        array = array.write(number, x[number])
    return array.stack()


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (lambda x: written(x, 0, 4), 0),
        (lambda x: written(x, 0, tf.cast(x[3], tf.int32)), 0),
        (lambda x: tf.cond(x[0] > 0, lambda: written(x, 0, 2), lambda: x[:2]), 0),
        (listed, 3),
    ],
)
def test_arrays_that_grow(function: Callable[..., Any], size: int, tmp_path: Path) -> None:
    def check(caught: pytest.ExceptionInfo[vt.UnsupportedFeatureError], *, lines: bool) -> None:
        (finding,) = caught.value.findings
        assert (finding.op, finding.level) == ("TensorListSetItem", "error")
        assert f"a TensorArray that grows keeps its first size, {size}" in finding.message
        assert (finding.location is not None and finding.location.file == __file__) == lines

    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(function, VECTOR, name="f")
    check(caught, lines=True)
    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=tf.function(function, input_signature=[VECTOR]))
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export_saved_model(tmp_path)
    check(caught, lines=False)


def test_arrays_that_may_grow() -> None:
    model = export(lambda x: written(x, 4, tf.cast(x[3], tf.int32)), VECTOR)
    (finding,) = model.findings
    assert (finding.level, finding.op) == ("warning", "TensorListSetItem")
    assert "what is written to it beyond element 3 is lost" in finding.message
    x = np.array([1, 2, 3, 4], np.float32)
    assert vt.run(model.artifact, [x])[0].tolist() == [2, 4, 6, 8]
    assert export(lambda x: written(x, 4, 4, grows=False), VECTOR).findings == ()


def test_ops_of_a_saved_model_have_the_name_of_their_layer(tmp_path: Path) -> None:
    @tf.function(input_signature=[VECTOR])
    def function(x: tf.Tensor) -> tf.Tensor:
        with tf.name_scope("hashing"):
            return tf.strings.to_hash_bucket_fast(tf.strings.as_string(x, name="text"), 3)

    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=function)
    with pytest.raises(vt.UnsupportedFeatureError, match=r"AsString \(hashing/text\) is an op that XLA cannot compile"):
        export_saved_model(tmp_path)


def chosen(x: tf.Tensor) -> tf.Tensor:
    return tf.cond(x[0] > 0, lambda: tf.tan(x), lambda: x + tf.random.normal([4]))


@pytest.mark.parametrize("is_recorded", [True, False])
def test_findings_about_a_saved_model_have_the_lines_that_it_records(is_recorded: bool, tmp_path: Path) -> None:
    options = tf.saved_model.SaveOptions(save_debug_info=is_recorded)
    function = tf.function(chosen, input_signature=[VECTOR])
    tf.saved_model.save(tf.Module(), str(tmp_path), signatures=function, options=options)
    line = vt.SourceLocation(__file__, chosen.__code__.co_firstlineno + 1) if is_recorded else None
    (finding,) = export_saved_model(tmp_path).findings
    assert (finding.op, finding.location) == ("RandomStandardNormal", line)
    with pytest.raises(vt.DowngradeError) as caught:
        export_saved_model(tmp_path, target="1.3.0")
    assert {each.location for each in caught.value.findings} == {line}


def test_what_xla_says_of_one_op_has_its_name_and_line() -> None:
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(lambda d, y: tf.linalg.tridiagonal_solve(d, y, "compact"), tf.TensorSpec([3, 4]), tf.TensorSpec([4, 2]))
    (finding,) = caught.value.findings
    assert finding.op == "TridiagonalSolve"
    assert finding.message.endswith("(TridiagonalSolve): Current implementation does not yet support pivoting.")
    assert finding.location is not None
    assert finding.location.file == __file__


def test_a_reshape_of_a_tensor_whose_size_depends_on_values() -> None:
    def placed(x: tf.Tensor) -> tf.Tensor:
        return tf.searchsorted([0.0, 1.0], tf.boolean_mask(x, x > 0))

    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(placed, VECTOR, name="f")
    finding = caught.value.findings[0]
    assert "changes the shape of a tensor whose size depends on values" in finding.message
    assert finding.op
    assert finding.location is not None
    assert finding.location.file == __file__


def test_what_is_captured_and_is_no_variable() -> None:
    values = tf.lookup.KeyValueTensorInitializer(tf.constant([1, 2]), tf.constant([3, 4]))
    table = tf.lookup.StaticHashTable(values, -1)
    with pytest.raises(vt.UnsupportedFeatureError) as caught:
        export(lambda x: tf.cond(x[0] > 0, lambda: table.lookup(x), lambda: x), tf.TensorSpec([2], tf.int32), name="f")
    finding = caught.value.findings[-1]
    assert (finding.feature, finding.op) == ("tensorflow_type", "LookupTableFindV2")
    assert "LookupTableFindV2 uses a resource from outside of f that is not a variable, such as a" in finding.message
    assert finding.location is not None
    assert finding.location.file.endswith("test_refusals.py")


def test_functions_that_cannot_be_traced() -> None:
    message = refused(vt.InvalidProgramError, lambda x: tf.matmul(x, x), VECTOR)
    assert message.startswith("TensorFlow cannot trace f: ")
    assert "matmul" in message.lower()
    assert "\n" not in message


def test_what_autograph_says_of_code_is_its_end() -> None:
    def function(x: tf.Tensor) -> tf.Tensor:
        return x.rows

    message = refused(vt.InvalidProgramError, function, VECTOR)
    assert re.fullmatch("TensorFlow cannot trace f: .*has no attribute `?'?rows.*", message)


def test_shapes_that_stay_open() -> None:
    spec = tf.TensorSpec([None, 4], tf.float32)
    message = refused(vt.InvalidInputError, lambda x: x * 2, spec)
    assert message == (
        "the input x has the shape (?, 4), but a program is compiled for a shape without unknown sizes: "
        "specify batch_size (--batch-size)"
    )
    message = refused(vt.InvalidInputError, lambda x: x * 2, tf.TensorSpec([None, None], tf.float32), batch_size=1)
    assert message.endswith(
        "the input x has the shape (?, ?), but a program is compiled for a shape without unknown sizes: "
        "specify its shape, as shapes={'x': ...}"
    )
    message = refused(vt.InvalidInputError, lambda x: x * 2, tf.TensorSpec(None, tf.float32), batch_size=1)
    assert "the input x has any shape" in message
    message = refused(vt.InvalidInputError, lambda x: x * 2, spec, shapes={"x": (1, 5)})
    assert message == "the input x has the shape (?, 4), which (1, 5) does not match"
    message = refused(vt.InvalidInputError, lambda x: x * 2, spec, shapes={"y": (1, 4)})
    assert message == "f has no input y: its inputs are x"


def test_targets_that_are_too_old() -> None:
    message = refused(vt.DowngradeError, tf.tan, VECTOR, target="1.3.0")
    assert "f cannot be written for 1.3.0; it can be written for StableHLO 1.4.0 or later" in message


def half_tangent(x: tf.Tensor) -> tf.Tensor:
    return tf.cond(x[0] > 0, lambda: tf.tan(x), lambda: x) / 2


def test_findings_of_artifacts_point_at_the_line_of_the_user() -> None:
    with pytest.raises(vt.DowngradeError) as caught:
        export(half_tangent, VECTOR, target="1.3.0")
    (place,) = {finding.location for finding in caught.value.findings}
    assert place == vt.SourceLocation(__file__, half_tangent.__code__.co_firstlineno + 1)
    text = str(vt.deserialize(export(half_tangent, VECTOR).artifact).operation.get_asm(enable_debug_info=True))
    assert "test_refusals.py" in text
    assert "site-packages" not in text


def test_folders_that_are_no_saved_models(tmp_path: Path) -> None:
    with pytest.raises(vt.InvalidProgramError, match="is not a SavedModel that TensorFlow can read"):
        export_saved_model(tmp_path)
    (tmp_path / "saved_model.pb").write_bytes(b"\x12\x05abc")
    with pytest.raises(vt.InvalidProgramError, match="is not a SavedModel that TensorFlow can read"):
        export_saved_model(tmp_path)


def test_signatures_that_are_not_there(tmp_path: Path) -> None:
    double = tf.function(lambda x: x * 2, input_signature=[VECTOR])
    tf.saved_model.save(tf.Module(), str(tmp_path), signatures={"double": double, "again": double})
    with pytest.raises(
        vt.InvalidInputError, match="has no signature 'serving_default'; its signatures are: again, double"
    ):
        export_saved_model(tmp_path)
    tf.saved_model.save(tf.Module(), str(tmp_path / "none"))
    with pytest.raises(vt.InvalidInputError, match="its signatures are: none"):
        export_saved_model(tmp_path / "none")
    assert np.array_equal(export_saved_model(tmp_path, "double").inputs, ["x"])
