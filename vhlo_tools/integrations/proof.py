"""Proof of an export: on example inputs, the artifact computes what the framework does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from vhlo_tools.errors import InvalidProgramError
from vhlo_tools.findings import Finding

if TYPE_CHECKING:
    import numpy as np

    from vhlo_tools.artifact import Artifact

    Array = np.ndarray[Any, Any]

#: The seconds that a proof may take, however fast the export was: a compiler alone takes some.
LEAST_SECONDS: Final = 10.0
#: How far results may be apart, in units of the precision of their type and of their largest number: frameworks and
#: engines round the steps of a program each in its own order.
_UNITS: Final = 2048


class ProofError(InvalidProgramError):
    """The artifact does not compute what the framework does; the message says which result differs, and since when."""


def unproven(framework: str, reason: str) -> Finding:
    message = f"the results were not compared with what {framework} computes: {reason}"
    return Finding("unproven", "note", "op", message, remedy="compare the results on inputs of your own (vt.run)")


def results_of(artifact: Artifact, inputs: Sequence[Any], seconds: float) -> tuple[Any, ...]:
    """Run an artifact on the engine that suits it."""
    from vhlo_tools.execution import choose_executable
    from vhlo_tools.program import load_program

    program = load_program(artifact, name=artifact.name, trusted=True)
    return choose_executable(program, timeout=seconds).run(inputs, timeout=seconds)


def differences(found: Sequence[Any], expected: Sequence[Any], names: Sequence[str]) -> Iterator[str]:
    """Yield how results differ by more than their precision explains: ``output0[3] is 2.0, expected 1.0``."""
    for name, one, other in zip(names, found, expected, strict=True):
        if (said := difference(one, other)) is not None:
            yield f"{name}{said}"


def difference(found: Array, expected: Array) -> str | None:
    """Return how an array differs; ``None`` if it does not by more than its precision explains. All NaNs are equal."""
    import numpy as np
    from ml_dtypes import finfo

    if found.shape != expected.shape:
        return f" has the shape {found.shape}, expected {expected.shape}"
    if not found.size:
        return None
    one, other = np.asarray(found), np.asarray(expected)
    is_inexact = one.dtype.kind in "fc" or "float" in one.dtype.name
    if is_inexact:
        precision = float(finfo(one.dtype).eps) * _UNITS  # type: ignore[no-untyped-call]
        wide = np.complex128 if one.dtype.kind == "c" else np.float64
        one, other = one.astype(wide), other.astype(wide)
        finite = np.abs(other[np.isfinite(other)])
        allowed = min(precision, 0.25) * (float(finite.max()) if finite.size else 0.0)
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
