"""The routines of LAPACK that jaxlib has for custom calls of jax, made known to XLA.

They are jaxlib's, and call the LAPACK that scipy comes with. Source: ``jaxlib/lapack.py`` in jax-ml/jax.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from vhlo_tools.bindings.no_jax import WithoutJax
from vhlo_tools.bindings.xla_client import xla_client
from vhlo_tools.errors import MissingExtraError

__all__ = ["is_lapack", "register_lapack"]

_OTHERS: Final = frozenset({"tridiagonal_solve_perturbed_ffi"})


def is_lapack(target: str) -> bool:
    """Tell whether a custom call of ``target`` is one of LAPACK's."""
    return target in _OTHERS or (target.startswith("lapack_") and target.endswith("_ffi"))


@cache
def register_lapack() -> frozenset[str]:
    """Make the routines known to XLA for the CPU, and return the targets of all.

    Raises:
        MissingExtraError: If scipy is not installed.
        ProviderError: If jaxlib is not installed.
    """
    client = xla_client()
    if find_spec("scipy") is None:
        raise MissingExtraError(
            "custom calls of LAPACK use the LAPACK of scipy, which is not installed: install vhlo-tools[scipy]"
        )
    with WithoutJax():
        lapack = import_module("jaxlib.lapack")
        for platform, routines in lapack.registrations().items():
            for target, function, version in routines:
                client.register_custom_call_target(target, function, platform=platform, api_version=version)
        lapack._lapack.initialize()
    return frozenset(lapack._lapack.registrations())
