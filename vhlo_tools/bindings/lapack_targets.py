"""Registration of jaxlib's LAPACK custom calls with XLA.

The routines are jaxlib's, and call the LAPACK of scipy. Source: ``jaxlib/lapack.py`` in jax-ml/jax.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from vhlo_tools.bindings.no_jax import WithoutJax
from vhlo_tools.bindings.parts import missing_part
from vhlo_tools.bindings.providers import get_provider
from vhlo_tools.bindings.xla_client import xla_client
from vhlo_tools.errors import MissingExtraError

_OTHERS: Final = frozenset({"tridiagonal_solve_perturbed_ffi"})


def is_lapack(target: str) -> bool:
    return target in _OTHERS or (target.startswith("lapack_") and target.endswith("_ffi"))


def missing_routine(target: str) -> str:
    """Return why jaxlib does not register the routine of a custom call."""
    return missing_part(get_provider("jaxlib"), target) or "the installed jaxlib has no such routine"


@cache
def register_lapack() -> frozenset[str]:
    """Register the routines with XLA for the CPU, and return all their targets."""
    client = xla_client()
    if find_spec("scipy") is None:
        raise MissingExtraError(
            "LAPACK custom calls use the LAPACK of scipy, which is not installed: install vhlo-tools[scipy]"
        )
    with WithoutJax():
        lapack = import_module("jaxlib.lapack")
        for platform, routines in lapack.registrations().items():
            for target, function, version in routines:
                client.register_custom_call_target(target, function, platform=platform, api_version=version)
        lapack._lapack.initialize()
    return frozenset(lapack._lapack.registrations())
