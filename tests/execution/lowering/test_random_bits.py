"""``rng_bit_generator`` gives XLA's bits and XLA's next state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.both_engines import function, run_on_both, tensor

import vhlo_tools as vt

pytestmark = pytest.mark.every_python

SHAPES: list[tuple[int, ...]] = [(), (1,), (3,), (0,), (3, 0), (2, 2), (5, 3), (3, 4, 5), (1, 1)]
ELEMENTS = ["i2", "i4", "ui4", "i8", "ui8", "i16", "ui16", "i32", "i64", "f16", "bf16", "f32", "f64", "f8E4M3FN"]
#: Near the ends, where halves of a counter carry over.
STATE = [2**64 - 1, 2**64 - 2, 2**64 - 1]

Wanted = tuple[tuple[int, ...], str]


def program(algorithm: str, length: int, wanted: Sequence[Wanted]) -> str:
    """Return a program that makes tensors of bits, each from the state that it takes."""
    state = f"tensor<{length}xui64>"
    ops, results, types = [], [], []
    for index, (shape, element) in enumerate(wanted):
        bits = tensor(shape, element)
        op = f"stablehlo.rng_bit_generator %a, algorithm = {algorithm} : ({state}) -> ({state}, {bits})"
        ops.append(f"%{index}:2 = {op}\n")
        results += [f"%{index}#0", f"%{index}#1"]
        types += [state, bits]
    return function(f"%a: {state}", " ".join(ops), results, types)


def check(algorithm: str, length: int, wanted: Sequence[Wanted]) -> None:
    found, expected = run_on_both(program(algorithm, length, wanted), [np.array(STATE[:length], np.uint64)])
    for index, (_, element) in enumerate(wanted):
        assert np.array_equal(found[2 * index], expected[2 * index])
        bits, by_xla = found[2 * index + 1], expected[2 * index + 1]
        # XLA calls bits unsigned integers, whatever they are meant to be.
        assert bits.shape == by_xla.shape
        if element in ("i2", "i4"):
            assert np.array_equal(bits.astype(int) % 2 ** int(element[1:]), by_xla.astype(int))
        else:
            assert bits.tobytes() == by_xla.tobytes()


@pytest.mark.sample(2)
@pytest.mark.parametrize(("algorithm", "length"), [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3)])
@pytest.mark.parametrize("element", ["ui32", "ui64"])
def test_every_shape(algorithm: str, length: int, element: str) -> None:
    check(algorithm, length, [(shape, element) for shape in SHAPES])


@pytest.mark.parametrize("algorithm", ["THREE_FRY", "PHILOX"])
def test_every_element_type(algorithm: str) -> None:
    check(algorithm, 2, [((3,), element) for element in ELEMENTS])


def test_the_default() -> None:
    check("DEFAULT", 3, [((3,), "ui32")])


def test_a_state_of_signed_numbers_stays_signed() -> None:
    text = program("PHILOX", 3, [((2,), "ui32")])
    unsigned = vt.run(text, [np.array(STATE, np.uint64)])
    signed = vt.run(text.replace("3xui64", "3xi64"), [np.array(STATE, np.uint64).view(np.int64)])
    assert (signed[0].dtype, signed[0].tobytes()) == (np.dtype(np.int64), unsigned[0].tobytes())
    assert np.array_equal(signed[1], unsigned[1])


def test_many_bits() -> None:
    (state, bits) = vt.run(program("THREE_FRY", 2, [((64, 33), "ui32")]), [np.array([1, 2], np.uint64)])
    assert state.tolist() == [1, 2 + 32 * 33]
    assert len(np.unique(bits)) == bits.size


@pytest.mark.parametrize(
    ("algorithm", "state", "element", "message"),
    [
        ("THREE_FRY", "3xui64", "ui32", "a state of 3 numbers: XLA requires 2 for THREE_FRY"),
        ("PHILOX", "4xui64", "ui32", "a state of 4 numbers: XLA requires 2 or 3 for PHILOX"),
        ("PHILOX", "2xui32", "ui32", r"a state of tensor<2xui32>: XLA requires ui64"),
        ("PHILOX", "2xui64", "f6E2M3FN", "there are no integers of 6 bits"),
    ],
)
def test_states_and_elements_without_meaning(algorithm: str, state: str, element: str, message: str) -> None:
    text = program(algorithm, 2, [((2,), element)]).replace("tensor<2xui64>", f"tensor<{state}>")
    length, kind = state.split("x")
    value: Any = np.zeros(int(length), kind.replace("ui", "uint"))
    with pytest.raises(vt.EngineError, match=rf"cannot run stablehlo.rng_bit_generator: .*{message}"):
        vt.run(text, [value])


def test_rng_is_refused_with_a_way_out() -> None:
    op = "stablehlo.rng %a, %a, %s, distribution = UNIFORM"
    text = function(
        "%a: tensor<f32>, %s: tensor<1xi64>",
        f"%0 = {op} : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<2xf32>",
        ["%0"],
        ["tensor<2xf32>"],
    )
    with pytest.raises(vt.EngineError, match="cannot run stablehlo.rng: .*the engine xla can run it"):
        vt.run(text, [1.0, [2]], engine="reference")
