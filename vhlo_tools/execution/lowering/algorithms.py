"""Cholesky, triangular systems, Fourier transforms and random bits in ops of the interpreter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any, Final

from vhlo_tools.conversion import MatchFailure, Rewriter, Tensor, concatenate, iota, loop, select, tensors

# The Cholesky decomposition, column by column in a loop
#
# Only the triangle that the op specifies is read. As in XLA on a CPU, the other triangle of the result is zero, and if
# a matrix is not positive definite, its whole result is NaN. Source:
# ``xla/hlo/transforms/expanders/cholesky_expander.cc`` in openxla/xla.


def cholesky(rewriter: Rewriter) -> list[Any]:
    (matrices,) = tensors(rewriter)
    if 0 in matrices.shape:
        return [matrices.value]
    is_lower = "lower" in rewriter.op.attributes and rewriter.op.attributes["lower"].value
    lower = _lower(matrices if is_lower else _adjoint(matrices))
    return [(lower if is_lower else _adjoint(lower)).value]


def _adjoint(matrices: Tensor) -> Tensor:
    *batch, row, column = range(len(matrices.shape))
    return matrices.transpose(*batch, column, row).conjugate()


def _lower(matrices: Tensor) -> Tensor:
    rewriter, shape = matrices.rewriter, matrices.shape
    *batch, size, _ = shape
    of_index = rewriter.integer(64)
    rows, columns = (iota(rewriter, shape, of_index, len(batch) + each) for each in (0, 1))
    zero = Tensor(rewriter, rewriter.constant(rewriter.tensor((), of_index), 0))
    outer = [*range(len(batch) + 1)]

    def step(index: Tensor, rest: Tensor) -> Tensor:
        """Turns a column of ``rest`` into one of the factor, and subtracts its contribution from later columns."""
        at = [*[zero] * len(batch), index]
        column = rest.take([*at[:-1], zero, index], [*batch, size, 1])
        pivot = rest.take([*at, index], [*batch, 1, 1]).part("real").apply("sqrt").convert(matrices.element)
        # Above the diagonal the column contains elements that must not be read.
        below = iota(rewriter, column.shape, of_index, len(batch)).compare("GE", index.broadcast(column.shape))
        column = select(below, column / pivot.broadcast(column.shape, range(len(shape))), 0)
        across = column.reshape(*batch, size)
        share = across.broadcast(shape, outer) * across.conjugate().broadcast(shape, [*outer[:-1], len(outer)])
        after = columns.compare("GT", index.broadcast(shape))
        return select(after, rest - share, rest).put(column, [*at[:-1], zero, index])

    factor = select(rows.compare("GE", columns), loop(rewriter, size, matrices, step), 0)
    failed = factor.part("real").compare("NE", factor.part("real")).reduce("or", [len(shape) - 2, len(shape) - 1])
    nothing = Tensor(rewriter, rewriter.constant(matrices.type, 0)) / 0
    return select(failed.broadcast(shape, range(len(batch))), nothing, factor)


# Triangular systems of equations on which the interpreter crashes: in batches, and of adjoint matrices
#
# It confuses the diagonal of a batch with that of a matrix (``triangularSolveOp`` in ``stablehlo/reference/Ops.cpp`` of
# openxla/stablehlo), so each op gets a single matrix. An adjoint matrix is the transposed matrix of the conjugates.


def triangular_solve(rewriter: Rewriter) -> list[Any] | None:
    matrices, sides = tensors(rewriter)
    *batch, _, _ = sides.shape
    attributes = {each: rewriter.op.attributes[each] for each in ("left_side", "lower", "unit_diagonal", "transpose_a")}
    is_adjoint = "ADJOINT" in str(attributes["transpose_a"])
    if is_adjoint:
        matrices = matrices.conjugate()
        attributes["transpose_a"] = rewriter.attribute("#stablehlo<transpose TRANSPOSE>")
    if not batch or 0 in sides.shape:
        if not is_adjoint:
            return None
        return [rewriter.make("stablehlo.triangular_solve", [matrices.value, sides.value], sides.type, **attributes)]
    count = prod(batch)
    every_matrix = matrices.reshape(count, *matrices.shape[-2:])
    every_side = sides.reshape(count, *sides.shape[-2:])
    zero = Tensor(rewriter, rewriter.constant(rewriter.tensor((), rewriter.integer(64)), 0))

    def step(index: Tensor, solved: Tensor) -> Tensor:
        at = [index, zero, zero]
        matrix = every_matrix.take(at, [1, *every_matrix.shape[1:]]).reshape(*every_matrix.shape[1:])
        side = every_side.take(at, [1, *every_side.shape[1:]]).reshape(*every_side.shape[1:])
        solution = rewriter.make("stablehlo.triangular_solve", [matrix.value, side.value], side.type, **attributes)
        return solved.put(Tensor(rewriter, solution).reshape(1, *side.shape), at)

    return [loop(rewriter, count, every_side, step).reshape(*sides.shape).value]


# Fourier transforms, computed in f64 for f32, and to real numbers of odd length from the whole spectrum
#
# Measured: the interpreter of StableHLO 1.17.0 crashes on f32, and that of 1.22.0 loses bits; both treat the
# half of a spectrum of odd length as that of an even one.


def fft(rewriter: Rewriter) -> list[Any] | None:
    (operand,) = tensors(rewriter)
    result = rewriter.op.results[0].type
    lengths = [int(each) for each in rewriter.op.attributes["fft_length"]]
    is_odd = "IRFFT" in str(rewriter.op.attributes["fft_type"]) and lengths[-1] % 2 == 1
    if not is_odd and "f64" in str(operand.element):
        return None
    wide = operand.convert(_doubled(rewriter, operand.element))
    if is_odd:
        whole = _whole(wide, lengths)
        value = _transformed(whole, whole.type, lengths, "IFFT").part("real")
    else:
        type_ = rewriter.tensor(rewriter.static(result), _doubled(rewriter, result.element_type))
        value = _transformed(wide, type_, lengths)
    return [value.convert(result.element_type).value]


def _doubled(rewriter: Rewriter, element: Any) -> Any:
    return rewriter.type("complex<f64>" if rewriter.is_complex(element) else "f64")


def _transformed(value: Tensor, type_: Any, lengths: list[int], name: str | None = None) -> Tensor:
    rewriter = value.rewriter
    fft_type = rewriter.attribute(f"#stablehlo<fft_type {name}>") if name else rewriter.op.attributes["fft_type"]
    held = {"fft_type": fft_type, "fft_length": rewriter.integers(lengths)}
    return Tensor(rewriter, rewriter.make("stablehlo.fft", [value.value], type_, **held))


def _whole(half: Tensor, lengths: list[int]) -> Tensor:
    """``half`` has the frequencies from zero up; the rest is the conjugate at the opposite ones, in all dimensions."""
    rank = len(half.shape)
    *leading, last = range(rank - len(lengths), rank)
    rest = half.slice(last, 1, half.shape[last]).conjugate().reverse(last)
    for dimension in leading:
        # Frequency k moves to -k: zero stays, and the others are reversed.
        zero, others = rest.slice(dimension, 0, 1), rest.slice(dimension, 1, rest.shape[dimension])
        rest = concatenate([zero, others.reverse(dimension)], dimension)
    return concatenate([half, rest], last)


# ``rng_bit_generator`` in plain integer arithmetic, with exactly the bits that XLA produces on a CPU
#
# Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011), for the two generators; for the
# counter and the order of the words in XLA, ``xla/hlo/builder/lib/prng.cc`` and
# ``xla/hlo/transforms/expanders/rng_bit_generator_expander.cc`` in openxla/xla.

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_PARITY: Final = 0x1BD11BDA
_THREEFRY_GROUPS: Final = 5
_PHILOX_MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
_PHILOX_KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_PHILOX_ROUNDS: Final = 10


def rng_bit_generator(rewriter: Rewriter) -> list[Any]:
    (state,) = tensors(rewriter)
    result = rewriter.op.results[1].type
    if not rewriter.is_integer(state.type, 64):
        raise MatchFailure(f"a state of {state.type}: XLA requires ui64")
    algorithm = str(rewriter.op.attributes["rng_algorithm"]).rpartition(" ")[2].rstrip(">")
    # XLA's default on a CPU is Philox.
    generate, lengths = _ALGORITHMS["PHILOX" if algorithm == "DEFAULT" else algorithm]
    if state.shape[0] not in lengths:
        raise MatchFailure(
            f"a state of {state.shape[0]} numbers: XLA requires {' or '.join(map(str, lengths))} for {algorithm}"
        )
    words = state.bits(_unsigned(rewriter, 64))
    shape, width = rewriter.static(result), result.element_type.width
    if width == 6:
        raise MatchFailure(f"{result}: there are no integers of 6 bits in StableHLO")
    after, bits = generate(words, shape, 64 if width == 64 else 32)
    bits = bits.convert(_unsigned(rewriter, width)).bits(result.element_type)
    return [after.bits(state.element).value, bits.value]


def _threefry(state: Tensor, shape: tuple[int, ...], width: int) -> tuple[Tensor, Tensor]:
    # Each count yields two words of 32 bits: one of 64, or one for each half of a dimension.
    half, dimension = (shape, 0) if width == 64 else _halved(shape)
    key, counter = state.entry(0), state.entry(1)
    count = math.prod(half)
    counts = counter.broadcast((count,)) + iota(state.rewriter, (count,), state.element)
    pair = _threefry2x32(_words(counts), [each.broadcast((count,)) for each in _words(key)])
    after = concatenate([state.slice(0, 0, 1), state.slice(0, 1, 2) + count], 0)
    if width == 64:
        return after, _joined(*pair).reshape(*shape)
    if not shape:
        return after, pair[0].reshape()
    apart = (*half[: dimension + 1], 1, *half[dimension + 1 :])
    both = concatenate([each.reshape(*apart) for each in pair], dimension + 1)
    even = [*half]
    even[dimension] *= 2
    return after, both.reshape(*even).slice(dimension, 0, shape[dimension])


def _halved(shape: tuple[int, ...]) -> tuple[tuple[int, ...], int]:
    """Half as many elements, rounded up, and the index of the dimension that is halved."""
    if not shape:
        return (1,), 0
    even = [index for index, size in enumerate(shape) if size % 2 == 0]
    dimension = even[0] if even else max(range(len(shape)), key=lambda index: shape[index])
    half = list(shape)
    half[dimension] = (half[dimension] + 1) // 2
    return tuple(half), dimension


def _threefry2x32(counts: Sequence[Tensor], key: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    keys = [*key, key[0] ^ key[1] ^ _THREEFRY_PARITY]
    one, other = counts[0] + keys[0], counts[1] + keys[1]
    for group in range(_THREEFRY_GROUPS):
        for distance in _ROTATIONS[group % 2]:
            one = one + other
            other = ((other << distance) | (other >> (32 - distance))) ^ one
        one = one + keys[(group + 1) % 3]
        other = other + keys[(group + 2) % 3] + (group + 1)
    return one, other


def _philox(state: Tensor, shape: tuple[int, ...], width: int) -> tuple[Tensor, Tensor]:
    size = math.prod(shape)
    # Each count yields four words of 32 bits.
    count = -(-size * width // 128)
    key = state.entry(0)
    # A state of two numbers has no upper half of the counter: the key is used instead.
    low, high = state.entry(1), state.entry(2 if state.shape[0] == 3 else 0)
    counts = _added(low, high, iota(state.rewriter, (count,), state.element))
    words = _philox4x32([*_words(counts[0]), *_words(counts[1])], _words(key))
    if width == 64:
        words = [_joined(*words[:2]), _joined(*words[2:])]
    columns = concatenate([word.reshape(count, 1) for word in words], 1)
    bits = columns.reshape(count * len(words)).slice(0, 0, size).reshape(*shape)
    steps = Tensor(state.rewriter, state.rewriter.constant(state.rewriter.tensor((1,), state.element), count))
    after = [key.reshape(1), *(each.reshape(1) for each in _added(low, high, steps))]
    return concatenate(after[: state.shape[0]], 0), bits


def _added(low: Tensor, high: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
    """Addition of 64-bit ``steps`` to a scalar of 128 bits, given and returned as two halves."""
    low, high = low.broadcast(steps.shape), high.broadcast(steps.shape)
    total = low + steps
    return total, select(total.compare("LT", low), high + 1, high)


def _philox4x32(counts: list[Tensor], key: list[Tensor]) -> list[Tensor]:
    words, shape = counts, counts[0].shape
    for _ in range(_PHILOX_ROUNDS):
        (low_0, high_0), (low_1, high_1) = (
            _words(word.convert(_unsigned(word.rewriter, 64)) * factor)
            for word, factor in zip((words[0], words[2]), _PHILOX_MULTIPLIERS, strict=True)
        )
        keys = [each.broadcast(shape) for each in key]
        words = [high_1 ^ words[1] ^ keys[0], low_1, high_0 ^ words[3] ^ keys[1], low_0]
        key = [each + step for each, step in zip(key, _PHILOX_KEY_STEPS, strict=True)]
    return words


def _words(value: Tensor) -> list[Tensor]:
    """The lower, then the upper 32 bits."""
    of_32 = _unsigned(value.rewriter, 32)
    return [value.convert(of_32), (value >> 32).convert(of_32)]


def _joined(low: Tensor, high: Tensor) -> Tensor:
    of_64 = _unsigned(low.rewriter, 64)
    return low.convert(of_64) | (high.convert(of_64) << 32)


def _unsigned(rewriter: Rewriter, bits: int) -> Any:
    return rewriter.integer(bits, unsigned=True)


_ALGORITHMS: Final = {"THREE_FRY": (_threefry, (2,)), "PHILOX": (_philox, (2, 3))}
