"""Two programs compared by what they compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vhlo_tools.api.execution import EngineChoice, load_executable

if TYPE_CHECKING:
    from vhlo_tools.interpreter import Handler
    from vhlo_tools.program import ProgramSource
    from vhlo_tools.verification import Drawing, Tolerance, VerificationReport

__all__ = ["draw_inputs", "verify"]


def verify(
    before: ProgramSource,
    after: ProgramSource,
    inputs: Sequence[Any] | None = None,
    seed: int = 0,
    *,
    rounds: int = 1,
    drawing: Drawing | None = None,
    tolerance: Tolerance | None = None,
    engine: EngineChoice = "auto",
    handlers: Mapping[str, Handler] | None = None,
    bisect: bool = False,
    names: tuple[str | None, str | None] = (None, None),
    provider: str | None = None,
    trusted: bool = False,
) -> VerificationReport:
    """Run two programs on the same inputs, and compare what they give.

    Programs with aliases are run a second time, with every input given away that has one.

    Args:
        before: The program whose outputs are expected: anything that :func:`serialize` takes.
        after: The program whose outputs are compared with these.
        inputs: The inputs, as :func:`run` takes them; by default :func:`draw_inputs` draws them.
        seed: What inputs are drawn from. The same seed draws the same inputs.
        rounds: How often inputs are drawn, from one seed after the other.
        drawing: How inputs are drawn; ``seed`` takes the place of the seed in it.
        tolerance: How far apart floats may be, by default four units in the last place.
        engine: What runs both, as for :func:`run`.
        handlers: Functions that compute custom calls of both, as for :func:`run`.
        bisect: Whether to find the first op where they part, if they do, on the reference interpreter.
        names: What to call the programs in messages, by default their paths.
        provider: The bindings to use, by default the installed ones.
        trusted: Whether MLIR may parse artifacts and bytecode in this process at once, as for :func:`serialize`.

    Returns:
        The report, which tells whether the programs ``passed``, and prints what was compared.

    Raises:
        VerificationError: If the programs do not take the same.
        InvalidInputError: If the inputs do not fit.
        EngineError: If one of the programs cannot be run.
        AliasError: If aliases of one of them are wrong.
        InvalidProgramError: If one of them is no valid program.
        MalformedArtifactError: If one of them is a damaged artifact.
    """
    from vhlo_tools.verification import Drawing, Tolerance, find_divergence, verify_executables
    from vhlo_tools.verification import draw_inputs as draw

    loading: Any = {"handlers": handlers, "provider": provider, "trusted": trusted}
    one = load_executable(before, engine=engine, name=names[0], **loading)
    other = load_executable(after, engine=engine, name=names[1], **loading)
    if one.engine != other.engine:
        # Of two engines each has its own last bits.
        one = load_executable(before, engine="xla", name=names[0], **loading)
        other = load_executable(after, engine="xla", name=names[1], **loading)
    sets: list[tuple[str, Sequence[Any]]] = []
    if inputs is not None:
        sets.append(("given", inputs))
    else:
        for each in range(seed, seed + rounds):
            sets.append((f"drawn from seed {each}", draw(one, replace(drawing or Drawing(), seed=each))))
    report = verify_executables(one, other, sets, tolerance := tolerance or Tolerance())
    if report.passed or not bisect:
        return report
    inputs = next(drawn for (_, drawn), each in zip(sets, report.rounds, strict=True) if not each.passed)
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

    Floats are mostly normal, integers small; those that come to an op with a domain are within it: roots and logarithms
    get positive numbers, divisions no zeros, gathers and slices indices within range, Cholesky definite matrices.

    Args:
        program: Anything that :func:`serialize` takes.
        seed: The same seed draws the same inputs.
        drawing: How inputs are drawn; ``seed`` takes the place of the seed in it.
        name: What to call the program in messages, by default its path.
        provider: The bindings to use, by default those of the module, or the installed ones.
        trusted: Whether MLIR may parse an artifact or bytecode in this process at once, as for :func:`serialize`.

    Raises:
        InvalidProgramError: If it is no valid program, or has no ``main``.
        EngineError: If it takes what has no form in numpy.
        MalformedArtifactError: If it is a damaged artifact.
    """
    from vhlo_tools.verification import Drawing
    from vhlo_tools.verification import draw_inputs as draw

    executable = load_executable(program, engine="reference", name=name, provider=provider, trusted=trusted)
    return draw(executable, replace(drawing or Drawing(), seed=seed))
