"""Known providers, and the selection of one."""

from __future__ import annotations

import os
from importlib.util import find_spec

from vhlo_tools.bindings.provider import Provider, Registrar
from vhlo_tools.errors import ProviderError

_STABLEHLO = Registrar("_mlir_libs._stablehlo")
_CHLO = Registrar("_mlir_libs._chlo")

#: In order of preference. `mlir` is OpenXLA's own wheel, which is on no package index and is not tested here.
PROVIDERS = (
    Provider(
        prefix="jaxlib.mlir",
        distribution="jaxlib",
        registrars=(
            Registrar("_mlir_libs._jax_mlir_ext", "register_dialects", of_registry=True),
            _STABLEHLO,
            _CHLO,
            Registrar("_mlir_libs._sdy", op_classes="dialects.sdy"),
            Registrar("_mlir_libs._mlirHlo", "register_mhlo_dialect"),
        ),
    ),
    Provider(prefix="torch_mlir", distribution="torch-mlir", registrars=(_STABLEHLO,)),
    Provider(prefix="mlir", distribution="stablehlo", registrars=(_STABLEHLO, _CHLO)),
)


def get_provider(name: str | None = None) -> Provider:
    """``name`` is a prefix or distribution; by default ``VHLO_TOOLS_PROVIDER``, or else the first that is installed."""
    name = name or os.environ.get("VHLO_TOOLS_PROVIDER") or None
    known = ", ".join(provider.prefix for provider in PROVIDERS)
    if name is not None:
        for provider in PROVIDERS:
            if name in (provider.prefix, provider.distribution):
                if not _installed(provider):
                    raise ProviderError(
                        f"the MLIR bindings {provider.prefix!r} are not installed: install {provider.distribution}"
                    )
                return provider
        raise ProviderError(f"{name!r} is not a known provider of MLIR bindings: expected one of {known}")
    for provider in PROVIDERS:
        if _installed(provider):
            return provider
    raise ProviderError(f"no MLIR bindings are installed: install jaxlib (looked for {known})")


def provider_of(value: object) -> Provider | None:
    """Return ``None`` if ``value`` is not an MLIR object."""
    for cls in type(value).__mro__:
        for provider in PROVIDERS:
            if cls.__module__.startswith((f"{provider.prefix}._mlir_libs.", f"{provider.prefix}.dialects.")):
                return provider
    return None


def _installed(provider: Provider) -> bool:
    try:
        return find_spec(f"{provider.prefix}.ir") is not None
    except ImportError:
        return False
