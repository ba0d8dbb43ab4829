"""Proof of an export: on example inputs, the artifact computes what the framework does."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import EngineError, InvalidProgramError
from vhlo_tools.findings import Finding

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.artifact import Artifact
    from vhlo_tools.integrations.exported_model import ExportedModel

    Array = np.ndarray[Any, Any]

#: The seconds that a proof may take, however fast the export was: a compiler alone takes some.
LEAST_SECONDS: Final = 10.0
#: How far results may be apart, in units of the precision of their type and of their largest number: frameworks and
#: engines round the steps of a program each in its own order.
_UNITS: Final = 2048


class ProofError(InvalidProgramError):
    """The artifact does not compute what the framework does; the message says which result differs."""


#: What Keras sets before a message: in bold, it is the next line.
_CALLED: Final = re.compile(r"Exception encountered when calling (?P<layer>.+?)\.?")
_BOLD: Final = re.compile(r"\x1b\[\d*m")


def first_words(text: str) -> str:
    """Return the first nonempty line of a message, or the one that says what was wrong in a layer of Keras."""
    lines = [line for each in text.splitlines() if (line := _BOLD.sub("", each).strip())]
    called = _CALLED.fullmatch(lines[0]) if len(lines) > 1 else None
    return f"{lines[1]} (in {called['layer']})" if called else next(iter(lines), "")


def unproven(framework: str, reason: str) -> Finding:
    message = f"the results were not compared with what {framework} computes: {reason}"
    return Finding("unproven", "note", "op", message, remedy="compare the results on inputs of your own (vt.run)")


def verified(
    model: ExportedModel,
    framework: str,
    compute: Callable[[Sequence[Array]], Sequence[Array]],
    examples: Sequence[Array] | None,
    *,
    verify: bool | None,
    started: float,
    reason: str | None = None,
) -> ExportedModel:
    """Compare what a model computes with what its framework does; raise ``ProofError`` if they differ.

    ``compute`` takes the inputs of ``main`` without the weights, and returns what ``main`` does. Without ``examples``,
    inputs are drawn if ``verify`` is set, and otherwise nothing is done. ``started`` is when the export was;
    ``reason`` is one for which results of this program may differ.
    """
    if verify is False or (verify is None and examples is None):
        return model
    seconds = max(LEAST_SECONDS, monotonic() - started)
    if drawn := [each for each in model.findings if each.feature == "random_state"]:
        place = f" at {drawn[0].location}" if drawn[0].location else ""
        reason = f"it draws random numbers ({drawn[0].op}{place})"
    reason = reason or _compared(model, framework, compute, examples, seconds)
    if reason is None:
        return model
    if verify:
        raise InvalidProgramError(f"{model.artifact.name} cannot be compared with what {framework} computes: {reason}")
    findings = [*model.findings, unproven(framework, reason)]
    return replace(model, artifact=model.artifact.with_findings(findings))


def _compared(
    model: ExportedModel,
    framework: str,
    compute: Callable[[Sequence[Array]], Sequence[Array]],
    examples: Sequence[Array] | None,
    seconds: float,
) -> str | None:
    """Return why results cannot be compared."""
    try:
        inputs = _drawn(model) if examples is None else examples
        # Of the inputs themselves, which may be donated.
        found = results_of(model.artifact, [*inputs, *model.weights.values()], seconds)
    except EngineError as error:
        return str(error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = compute(inputs)
    except Exception as error:
        return f"{framework} raises {type(error).__name__}: {first_words(str(error))}"
    names = model.outputs or [f"output{number}" for number in range(len(found))]
    said = next(differences(found, expected, names, coarsest(model.artifact)), None)
    if said is not None:
        raise ProofError(
            f"the program of {model.artifact.name} does not compute what {framework} does: {said} "
            f"(verify=False, --no-verify exports it as it is)"
        )
    return None


def _drawn(model: ExportedModel) -> Sequence[Array]:
    from vhlo_tools.execution import choose_executable
    from vhlo_tools.program import load_program
    from vhlo_tools.verification import Drawing, draw_inputs

    program = load_program(model.artifact, name=model.artifact.name, trusted=True)
    return draw_inputs(choose_executable(program), Drawing())[: len(model.inputs)]


def coarsest(artifact: Artifact) -> float:
    """Return the precision of the coarsest type of floats in a program."""
    types = artifact.inventory().types
    return max((eps for kind, eps in _PRECISIONS.items() if any(each.startswith(kind) for each in types)), default=0.0)


#: By the beginnings of the names of types in VHLO.
_PRECISIONS: Final = {
    "vhlo.f4E": 0.5,
    "vhlo.f6E": 0.25,
    "vhlo.f8E": 0.25,
    "vhlo.bf16": 2.0**-7,
    "vhlo.f16": 2.0**-10,
}


def results_of(artifact: Artifact, inputs: Sequence[Any], seconds: float) -> tuple[Any, ...]:
    """Run an artifact on the engine that suits it."""
    from vhlo_tools.execution import choose_executable
    from vhlo_tools.program import load_program

    program = load_program(artifact, name=artifact.name, trusted=True)
    return choose_executable(program, timeout=seconds).run(inputs, timeout=seconds)


def differences(
    found: Sequence[Any], expected: Sequence[Any], names: Sequence[str], precision: float = 0.0
) -> Iterator[str]:
    """Yield how results differ by more than their precision explains: ``output0[3] is 2.0, expected 1.0``.

    ``precision`` is that of the steps, if it is less than that of the results.
    """
    import numpy as np

    floats = [np.abs(np.asarray(each).astype(np.complex128)) for each in expected if _is_inexact(each)]
    # A result of nothing but rounding, such as a gradient that is zero, is as inexact as the numbers that cancel.
    scale = max((float(each[np.isfinite(each)].max(initial=0.0)) for each in floats), default=0.0)
    for name, one, other in zip(names, found, expected, strict=True):
        if (said := difference(one, other, precision, scale)) is not None:
            yield f"{name}{said}"


def _is_inexact(array: Array) -> bool:
    return array.dtype.kind in "fc" or "float" in array.dtype.name


def difference(found: Array, expected: Array, precision: float = 0.0, scale: float = 0.0) -> str | None:
    """Return how an array differs; ``None`` if it does not by more than its precision explains. All NaNs are equal.

    Numbers may also differ by the precision of numbers of the size ``scale``.
    """
    import numpy as np
    from ml_dtypes import finfo

    if found.shape != expected.shape:
        return f" has the shape {found.shape}, expected {expected.shape}"
    if not found.size:
        return None
    one, other = np.asarray(found), np.asarray(expected)
    if one.dtype == np.uint8 and _is_inexact(other) and other.dtype.itemsize == 1:
        # Stored as integers: the bits of floats that the target lacks (allow_signature_change).
        one = one.view(other.dtype)
    if _is_inexact(one):
        eps = max(precision, float(finfo(one.dtype).eps))  # type: ignore[no-untyped-call]
        wide = np.complex128 if one.dtype.kind == "c" else np.float64
        one, other = one.astype(wide), other.astype(wide)
        finite = np.abs(other[np.isfinite(other)])
        allowed = max(min(eps * _UNITS, 0.25) * float(finite.max(initial=0.0)), eps * scale)
        with np.errstate(invalid="ignore"):
            same = (one == other) | (np.isnan(one) & np.isnan(other)) | (np.abs(one - other) <= allowed)
    else:
        same = one == other.astype(one.dtype)
    if same.all():
        return None
    at = tuple(int(each) for each in np.unravel_index(int(np.argmin(same)), same.shape))
    place = f"[{', '.join(map(str, at))}]" if at else ""
    count = same.size - int(np.count_nonzero(same))
    others = f", and {count - 1} other elements differ" if count > 1 else ""
    return f"{place} is {found[at]}, expected {expected[at]}{others}"
