"""Some of the random programs on which XLA, the interpreter and numpy must agree."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from engine_sweep import draw_program, ended, swept
from packaging.version import Version
from sweep_ops import OPS, UNDRAWN
from sweep_programs import Drawn, Value

from vhlo_tools.bindings import get_provider
from vhlo_tools.execution import KNOWN_FAULTS
from vhlo_tools.execution.known_faults import faults_in
from vhlo_tools.spec import known_ops

CHUNKS = 12
#: Programs of seed 0 that are wrong, or crash, as jaxlib comes, by their fault.
FOUND = {
    "xla-kernels-of-products": 762,
    "xla-kernels-of-rank-7": 5580,
    "xla-kernels-of-dilated-windows": 866,
    "xla-kernels-of-minima": 436,
    "xla-update-by-a-slice-of-itself": 1448,
    "xla-scatter-of-one-value": 2086,
    "xla-scatter-without-an-index": 406,
    "xla-sort-taken-for-a-top-k": 2064,
}
#: Those that are right on processors without AVX-512, for which XLA has other kernels; what the finding runs is not.
BY_PROCESSOR = {FOUND["xla-kernels-of-products"]}
#: One with windows of a scatter partly outside, which the interpreter updates in parts, and XLA and JAX do not.
PARTLY_OUTSIDE = 886


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_engines_agree(chunk: int) -> None:
    counts = Counter[str]()
    for number in range(chunk, 300, CHUNKS):
        drawn = draw_program(1, number)
        how, why = ended(drawn)
        assert how not in ("different", "crashed"), f"--seed 1 --only {number}: {why}\n{drawn.text}"
        counts[how] += 1
    assert counts["refused"] <= 2


@pytest.mark.long
def test_known_faults_are_found_again() -> None:
    provider, in_play = get_provider(None), {PARTLY_OUTSIDE}
    for fault in KNOWN_FAULTS:
        if fault.id in FOUND:
            text = draw_program(0, FOUND[fault.id]).text
            module = provider.parse(provider.new_context(), text)
            is_mended = bool(fault.mended) and release() >= Version(fault.mended)
            assert (fault in faults_in(provider, module, "xla")) is not is_mended
            in_play |= set() if is_mended else {FOUND[fault.id]}
    plain = {number: how for number, how, _ in swept(sorted(in_play), 0, 1, is_plain=True)}
    failed = {number for number, how in plain.items() if how in ("different", "crashed")}
    assert in_play - BY_PROCESSOR <= failed <= in_play, plain
    judged = {number: how for number, how, _ in swept(sorted(FOUND.values()), 0, 1, is_plain=False)}
    assert set(judged.values()) == {"equal"}, judged


def release() -> Version:
    return Version(get_provider(None).library.name.split()[1])


def test_every_op_is_drawn_or_there_is_a_reason() -> None:
    assert not OPS.keys() & UNDRAWN.keys()
    assert OPS.keys() | UNDRAWN.keys() == {op.name for op in known_ops()}


def test_the_program_of_a_number_is_always_the_same() -> None:
    one, other = draw_program(1, 7), draw_program(1, 7)
    assert one.text == other.text
    assert all(map(np.array_equal, one.inputs, other.inputs))


def identity(given: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> Drawn:
    text = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    return Drawn(text, [given], [Value("%x", "f32", (2,), expected)])


def test_what_differs_or_is_refused_is_told() -> None:
    given = np.array([0, 2], np.float32)
    assert ended(identity(given, given))[0] == "equal"
    assert ended(identity(given, given + 1)) == ("different", "numpy and xla, reference")
    assert ended(identity(given, given * np.float32(-1) * -1))[0] == "equal"
    assert ended(identity(given, np.array([-0.0, 2], np.float32))) == ("different", "numpy and xla, reference")
    assert ended(identity(given.astype(np.int32), given))[0] == "refused"
