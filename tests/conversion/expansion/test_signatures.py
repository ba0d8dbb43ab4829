"""Arguments and results of public functions whose types are newer than the target, stored as integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.element_types import EVERY_TYPE
from support.expansions import ENGINES
from support.release_runs import run_by_release
from support.vhlo_process import kept_workers

import vhlo_tools as vt
from vhlo_tools.cli.main import main
from vhlo_tools.spec import known_features

_TYPES = (
    *("i2", "ui2", "f4E2M1FN", "f6E2M3FN", "f6E3M2FN", "f8E8M0FNU", "f8E3M4", "f8E4M3", "f8E4M3B11FNUZ"),
    *("f8E4M3FNUZ", "f8E5M2FNUZ"),
)
_BITS = {"i2": 2, "ui": 2, "f4": 4, "f6": 6, "f8": 8}

#: An argument that is an alias, a donor, and one of another type; a function that others call.
_PROGRAM = """func.func @main(%a: tensor<NxE> {tf.aliasing_output = 0 : i32, mhlo.sharding = "{replicated}"},
    %b: tensor<NxE> {jax.buffer_donor = true}, %c: tensor<3xf32> {a.b = "c"})
    -> (tensor<NxE> {jax.result_info = "x"}, tensor<3xf32>, tensor<NxE>) {
  %0 = func.call @larger(%a, %b) : (tensor<NxE>, tensor<NxE>) -> tensor<NxE>
  return %0, %c, %a : tensor<NxE>, tensor<3xf32>, tensor<NxE>
}
func.func @larger(%a: tensor<NxE>, %b: tensor<NxE>) -> tensor<NxE> {
  %0 = stablehlo.maximum %a, %b : tensor<NxE>
  return %0 : tensor<NxE>
}"""
_SIMPLE = "func.func @main(%a: tensor<4xf8E4M3>) -> tensor<4xf8E4M3> { return %a : tensor<4xf8E4M3> }"


def _values(element: str) -> np.ndarray[Any, Any]:
    values: np.ndarray[Any, Any] = np.arange(1 << _BITS[element[:2]], dtype=np.uint8).view(EVERY_TYPE[element])
    return values


def _stored(values: np.ndarray[Any, Any], element: str) -> np.ndarray[Any, Any]:
    return values.astype(np.int8 if element == "i2" else np.uint8) if "i2" in element else values.view(np.uint8)


@pytest.mark.sample(3)
@pytest.mark.parametrize("element", _TYPES)
def test_every_value(element: str) -> None:
    values = _values(element)
    program = _PROGRAM.replace("xE>", f"x{element}>").replace("<Nx", f"<{values.size}x")
    feature = next(each for each in known_features() if f"{element}_v1" in each.names)
    artifact = vt.serialize(program, "0.9.0", expand=True, allow_signature_change=True)
    inputs = [values, values[::-1].copy(), np.ones(3, np.float32)]
    given = [_stored(each, element) for each in inputs[:2]] + inputs[2:]
    # The interpreter of f8E8M0FNU has an infinity in the place of NaN.
    numbers = [each.astype(np.float64) for each in inputs[:2]]
    with np.errstate(invalid="ignore"):
        expected = np.maximum(*numbers)
    for engine in ENGINES:
        larger, other, same = vt.run(artifact, given, engine=engine)
        for found, wanted in ((larger, expected), (same, numbers[0])):
            assert found.dtype == given[0].dtype
            read = found.astype(EVERY_TYPE[element]) if "i2" in element else found.view(EVERY_TYPE[element])
            np.testing.assert_array_equal(read.astype(np.float64), wanted)
        is_number = ~np.isnan(numbers[0])
        np.testing.assert_array_equal(same[is_number], given[0][is_number])
        np.testing.assert_array_equal(other, inputs[2])
    assert str(artifact.aliases()) == str(vt.serialize(program).aliases())
    text = str(vt.deserialize(artifact))
    assert all(held in text for held in ('mhlo.sharding = "{replicated}"', 'a.b = "c"', 'jax.result_info = "x"'))
    notes = [each.message for each in artifact.findings if each.feature == feature.id and each.op == "func.func"]
    stored = "i8" if element == "i2" else "ui8"
    assert notes[0].startswith(f"argument 0 of @main takes {stored} in place of {element}: give array.")
    assert notes[2].startswith(f"result 0 of @main is {stored} in place of {element}: read it with result.")
    # Two arguments and results of @main; two and one of @larger.
    assert len(notes) == 7
    assert vt.serialize(artifact, "0.9.0", expand=True, allow_signature_change=True) == artifact


def test_integers_that_are_no_values_are_wrapped() -> None:
    program = "func.func @main(%a: tensor<3xi2>) -> tensor<3xi2> { return %a : tensor<3xi2> }"
    artifact = vt.serialize(program, "0.9.0", expand=True, allow_signature_change=True)
    (found,) = vt.run(artifact, [np.array([5, -3, 2], np.int8)], engine="reference")
    np.testing.assert_array_equal(found, [1, 1, -2])


def test_sizes_that_are_known_at_run_time_only() -> None:
    program = _SIMPLE.replace("<4x", "<?x")
    artifact = vt.serialize(program, "0.9.0", expand=True, allow_signature_change=True)
    bits = np.arange(0x79, dtype=np.uint8)
    np.testing.assert_array_equal(vt.run(artifact, [bits], engine="reference")[0], bits)


def test_without_the_option_it_is_refused_and_the_option_named() -> None:
    with pytest.raises(vt.DowngradeError, match="add --allow-signature-change, which stores arguments and results"):
        vt.serialize(_SIMPLE, "0.9.0")
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(_SIMPLE, "0.9.0", expand=True)
    assert (
        "@main has argument 0 of tensor<4xf8E4M3>, result 0 of tensor<4xf8E4M3>, on which its callers rely: "
        "--allow-signature-change (allow_signature_change=True) stores them as integers"
    ) in str(refused.value)
    # The option allows no expansion by itself.
    with pytest.raises(vt.DowngradeError):
        vt.serialize(_SIMPLE, "0.9.0", allow_signature_change=True)
    # A private function has no callers but those of the program.
    private = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = stablehlo.convert %a : (tensor<4xf32>) -> tensor<4xf8E4M3>
      %1 = func.call @same(%0) : (tensor<4xf8E4M3>) -> tensor<4xf8E4M3>
      %2 = stablehlo.convert %1 : (tensor<4xf8E4M3>) -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    """ + _SIMPLE.replace("@main", "private @same")
    assert vt.serialize(private, "0.9.0", expand=True).version == vt.Version("0.9.0")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "func.func @main(%a: tuple<tensor<i2>>) -> tensor<i2> { %0 = stablehlo.get_tuple_element %a[0]"
            " : (tuple<tensor<i2>>) -> tensor<i2> return %0 : tensor<i2> }",
            "@main has argument 0 of tuple<tensor<i2>>, result 0 of tensor<i2>: only plain tensors can be stored",
        ),
        (
            "func.func @main(%a: tensor<?xi2, #stablehlo.bounds<4>>) { return }",
            "@main has argument 0 of tensor<?xi2, #stablehlo.bounds<4>>: only plain tensors can be stored as integers",
        ),
        (
            "func.func @main(%a: tensor<!quant.uniform<i2:f32, 2.0>>) { return }",
            "@main has argument 0 of tensor<!quant.uniform<i2:f32, 2.000000e+00>>: only plain tensors can be stored",
        ),
    ],
    ids=["tuple", "bounds", "quantized"],
)
def test_what_cannot_be_stored(text: str, reason: str) -> None:
    with pytest.raises(vt.DowngradeError) as refused:
        vt.serialize(text, "1.1.0", expand=True, allow_signature_change=True)
    assert f"it cannot be expanded: {reason}" in str(refused.value)


def test_functions(tmp_path: Path) -> None:
    whole = vt.serialize(_SIMPLE)
    artifact = vt.serialize(_SIMPLE, "1.6.0", expand=True, allow_signature_change=True)
    assert vt.retarget(whole, "1.6.0", expand=True, allow_signature_change=True) == artifact
    assert {each.level for each in vt.check(whole, "1.6.0", expand=True)} == {"error"}
    assert {each.level for each in vt.check(whole, "1.6.0", expand=True, allow_signature_change=True)} == {"note"}
    assert "tensor<4xui8>" in str(vt.expand(_SIMPLE, "1.6.0", allow_signature_change=True).module)


@pytest.mark.long
def test_commands_and_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program, newest, old = (tmp_path / name for name in ("p.mlir", "new.mlirbc", "old.mlirbc"))
    program.write_text(_SIMPLE)
    vt.serialize(_SIMPLE).save(newest)
    allowed = ["--target", "1.6.0", "--expand", "--allow-signature-change"]
    expected = bytes(vt.serialize(program, "1.6.0", expand=True, allow_signature_change=True))
    assert main(["serialize", str(program), "-o", str(old), *allowed[:-1]]) == 1
    assert main(["serialize", str(program), "-o", str(old), *allowed]) == 0
    assert old.read_bytes() == expected
    assert main(["retarget", str(newest), "-o", str(old), "--force", *allowed]) == 0
    assert main(["check", str(newest), *allowed[:-1]]) == 1
    assert main(["check", str(newest), *allowed]) == 0
    settings = tmp_path / "vhlo-tools.toml"
    for flag, code in (("true", 0), ("false", 1)):
        settings.write_text(f'target = "1.6.0"\nexpand = true\nallow-signature-change = {flag}\n')
        assert main(["check", str(newest)]) == code
    with kept_workers():
        assert main(["migrate", str(newest), "-j", "1", *allowed[:-1]]) == 1
        assert main(["migrate", str(newest), "-j", "1", *allowed]) == 0
    assert newest.read_bytes() == old.read_bytes()


def test_an_old_release_runs_what_holds_young_types() -> None:
    """The same bits as before, of all types."""
    lines, names = [], []
    for element in _TYPES:
        held, source = f"tensor<2x4x{element}>", "%a" if "i2" not in element else "%s"
        multiply = "maximum" if element == "f8E8M0FNU" else "multiply"
        add = "maximum" if element == "f8E8M0FNU" else "add"
        lines += [
            f"%c{element} = stablehlo.convert {source} : (tensor<2x4xf32>) -> {held}",
            f"%m{element} = stablehlo.{multiply} %c{element}, %c{element} : {held}",
            f"%n{element} = stablehlo.{add} %m{element}, %c{element} : {held}",
            f"%r{element} = stablehlo.convert %n{element} : ({held}) -> tensor<2x4xf32>",
        ]
        names.append(f"%r{element}")
    body = "\n".join(lines)
    types = ", ".join(["tensor<2x4xf32>"] * len(names))
    program = f"""func.func @main(%a: tensor<2x4xf32>, %b: tensor<2x4xbf16>) -> ({types}) {{
      %w = stablehlo.constant dense<4.0> : tensor<2x4xf32>
      %s = stablehlo.multiply %a, %w : tensor<2x4xf32>
      {body}
      return {", ".join(names)} : {types} }}"""
    artifact = vt.serialize(program, "0.9.0", expand=True)
    inputs = [
        np.arange(8, dtype=np.float32).reshape(2, 4) / 8,
        (np.arange(8).reshape(2, 4) / 4).astype(ml_dtypes.bfloat16),
    ]
    outcome = run_by_release("jaxlib==0.4.26", artifact, [inputs])
    assert outcome.results, outcome.error
    for element, one, other in zip(
        _TYPES, outcome.results[0], vt.run(program, inputs, engine="reference"), strict=True
    ):
        if element == "f8E8M0FNU":
            # The interpreter converts zero to the least power of two.
            one, other = one[inputs[0] > 0], other[inputs[0] > 0]
        np.testing.assert_array_equal(one, other)
