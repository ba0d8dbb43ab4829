"""Verification that two programs compute the same results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vhlo_tools.api.running import EngineChoice, load_executable

if TYPE_CHECKING:
    from vhlo_tools.execution import Handler
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.verification import Drawing, Tolerance, VerificationReport

__all__ = ["draw_inputs", "verify"]


def verify(
    before: ProgramSource,
    after: ProgramSource,
    inputs: Sequence[Any] | None = None,
    seed: int = 0,
    *,
    rounds: int | None = None,
    drawing: Drawing | None = None,
    tolerance: Tolerance | None = None,
    engine: EngineChoice = "auto",
    handlers: Mapping[str, Handler] | None = None,
    bisect: bool = False,
    timeout: float | None = None,
    names: tuple[str | None, str | None] = (None, None),
    provider: str | None = None,
    trusted: bool = False,
) -> VerificationReport:
    """Run two programs on the same inputs, and compare their outputs.

    Programs with aliases are run a second time, with every aliased input donated.

    Args:
        before: The program with the expected outputs: anything that :func:`serialize` accepts.
        after: The program with the outputs to compare.
        inputs: The inputs, in the form that :func:`run` accepts; by default :func:`draw_inputs` draws them.
        seed: The seed for drawing inputs. The same seed draws the same inputs.
        rounds: The number of sets of inputs to draw, from consecutive seeds, of several scales, with edge cases among
            them; by default as many of 256 as take two seconds, up to the first with another result.
        drawing: The settings for drawing inputs; ``seed`` replaces their seed.
        tolerance: The maximum distance between floats, by default four units in the last place.
        engine: The engine for both programs, as for :func:`run`.
        handlers: Functions that compute custom calls of both, as for :func:`run`.
        bisect: Whether to find the first op whose results differ, if any, on the reference interpreter.
        timeout: The limit in seconds of each run, as for :func:`run`.
        names: The names of the programs in messages, by default their paths.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`serialize`.

    Returns:
        The report, with ``passed`` and, as text, the comparisons.

    Raises:
        VerificationError: If the programs have different inputs.
        InvalidInputError: If the inputs do not match the programs.
        EngineError: If one of the programs cannot be run; EngineTimeoutError if a run exceeds its limit.
        AliasError: If one of them has invalid aliases.
        InvalidProgramError: If one of them is not a valid program.
        MalformedArtifactError: If one of them is a damaged artifact.
    """
    import numpy as np

    from vhlo_tools.verification import Drawing, Tolerance, drawings, find_divergence, verify_executables
    from vhlo_tools.verification import draw_inputs as draw

    loading: Any = {"handlers": handlers, "timeout": timeout, "provider": provider, "trusted": trusted}
    one = load_executable(before, engine=engine, name=names[0], **loading)
    other = load_executable(after, engine=engine, name=names[1], **loading)
    if one.engine != other.engine:
        # Different engines differ in the last bits.
        one = load_executable(before, engine="xla", name=names[0], **loading)
        other = load_executable(after, engine="xla", name=names[1], **loading)
    sets: list[Sequence[Any]] = []

    def given() -> Iterator[tuple[str, Sequence[Any]]]:
        if inputs is not None:
            sets.append(inputs)
            yield "given", inputs
            return
        for name, each in drawings(replace(drawing or Drawing(), seed=seed), rounds):
            sets.append(draw(one, each))
            yield name, sets[-1]

    tolerance = tolerance or Tolerance()
    # Handlers of custom calls compute with edge cases too.
    with np.errstate(all="ignore"):
        report = verify_executables(one, other, given(), tolerance, until_failure=rounds is None)
    if report.passed or not bisect:
        return report
    inputs = next(drawn for drawn, each in zip(sets, report.rounds, strict=True) if not each.passed)
    first, second = (
        each if each.engine == "reference" else load_executable(source, engine="reference", name=name, **loading)
        for each, source, name in zip((one, other), (before, after), names, strict=True)
    )
    divergence = find_divergence(first, second, inputs, tolerance)
    return replace(report, divergence=divergence, looked_for_divergence=True)


def draw_inputs(
    program: ProgramSource,
    seed: int = 0,
    *,
    drawing: Drawing | None = None,
    name: str | None = None,
    provider: str | None = None,
    trusted: bool = False,
) -> tuple[Any, ...]:
    """Return inputs for ``main`` of a program, drawn from a seed.

    Floats are mostly normally distributed, integers small; inputs of ops with a restricted domain are within it: roots
    and logarithms get positive numbers, divisions no zeros, gathers and slices valid indices, Cholesky definite
    matrices.

    Args:
        program: Anything that :func:`serialize` accepts.
        seed: The seed; the same seed draws the same inputs.
        drawing: The settings for drawing inputs; ``seed`` replaces their seed.
        name: The name of the program in messages, by default its path.
        provider: The bindings to use, by default those of the module, or the installed ones.
        trusted: Whether MLIR may parse bytes directly in this process, as for :func:`serialize`.

    Raises:
        InvalidProgramError: If it is not a valid program, or has no ``main``.
        EngineError: If it has an input that numpy cannot represent.
        MalformedArtifactError: If it is a damaged artifact.
    """
    from vhlo_tools.verification import Drawing
    from vhlo_tools.verification import draw_inputs as draw

    executable = load_executable(program, engine="reference", name=name, provider=provider, trusted=trusted)
    return draw(executable, replace(drawing or Drawing(), seed=seed))
