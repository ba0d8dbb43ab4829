"""Providers of MLIR's bindings, and the dialects that each has."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from vhlo_tools.bindings.provider import Provider, Registrar
from vhlo_tools.errors import ProviderError

# Known providers, and the selection of one

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
    for provider in PROVIDERS:
        if name is None and _installed(provider):
            return provider
        if name in (provider.prefix, provider.distribution):
            if not _installed(provider):
                raise ProviderError(
                    f"the MLIR bindings {provider.prefix!r} are not installed: install {provider.distribution}"
                )
            return provider
    known = ", ".join(provider.prefix for provider in PROVIDERS)
    if name is not None:
        raise ProviderError(f"{name!r} is not a known provider of MLIR bindings: expected one of {known}")
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


# Parts of jaxlib that came with some release, and the messages where an older one is installed
#
# What depends on the version of StableHLO alone is not here: ``dialect_specs/releases.toml`` has the version of each.
# Nor is what every release can do, each in its own way: HLO, booleans, locations.
#
# Source: each release of jaxlib from 0.8.1 on, tried; ``tests/bindings/test_parts.py`` tries the installed one.

#: The part of XLA that passes several elements in one byte to functions of Python, and gets them back, as they are.
NARROW_ELEMENTS: Final = "elements of less than a byte in handlers"

#: The first release of jaxlib that has each part: an op of CHLO that the library lowers, the target of a custom call of
#: LAPACK, an op of StableHLO that the reference interpreter evaluates, or what a name here says.
PARTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NARROW_ELEMENTS: "0.10.2",
        "chlo.conj": "0.9.2",
        "chlo.scan": "0.9.1",
        "lapack_cunmqr_ffi": "0.10.0",
        "lapack_dormqr_ffi": "0.10.0",
        "lapack_sormqr_ffi": "0.10.0",
        "lapack_zunmqr_ffi": "0.10.0",
        "stablehlo.fft": "0.9.2",
        "stablehlo.triangular_solve": "0.10.2",
        "tridiagonal_solve_perturbed_ffi": "0.10.0",
    }
)

_UNKNOWN: Final = re.compile(
    r"custom op '(?P<custom>[\w.]+)' is unknown|unregistered operation '(?P<generic>[\w.]+)'"
    r"|unknown (?:stablehlo|vhlo) (?:attribute|type)\b",
    re.IGNORECASE,
)


def missing_part(provider: Provider, part: str) -> str | None:
    """Return a message if the installed jaxlib lacks a part, with the release that has it.

    Other providers, and parts that are not in :data:`PARTS`, are assumed to have everything.
    """
    since, release = PARTS.get(part), provider.release
    if since is None or release is None or provider.distribution != "jaxlib":
        return None
    # Imported here so that child processes that only parse do not import it.
    from packaging.version import Version

    # A build before a release is taken for it.
    if Version(release).release >= Version(since).release:
        return None
    return f"jaxlib {release} does not have it: install jaxlib {since} or newer"


def explain_unknown(provider: Provider, said: str) -> str | None:
    """Return which release may know an op that is unknown to MLIR by its message ``said``; ``None`` if none does."""
    found = _UNKNOWN.search(said)
    if found is None:
        return None
    op = found["custom"] or found["generic"] or ""
    if (missing := missing_part(provider, op)) is not None:
        return f"{op}: {missing}"
    if op and op.partition(".")[0] not in ("stablehlo", "vhlo"):
        return None
    from vhlo_tools.spec import find_op, first_release, known_releases

    # The newest version may be in no release of this library yet.
    library = provider.library
    newer = [each.stablehlo.minor_release for each in known_releases() if each.package == provider.distribution]
    newest = max(newer, default=library.current)
    known = find_op(op.partition(".")[2].removesuffix("_v1"))
    if known is not None and (since := known.versions[0].min).minor_release > newest:
        return (
            f"{op} is of StableHLO {since}, which no known release of {provider.distribution} has: give the program as "
            f"an artifact, whose newer ops are rewritten on request, or write it without"
        )
    release = first_release(provider.distribution, newest)
    if release is None or library.current.minor_release >= newest:
        return None
    return (
        f"{library.name} has StableHLO {library.current}: if the program is of a newer version, install a newer "
        f"{provider.distribution}, up to {release.release}, the first with StableHLO {newest} "
        f"(for Python {release.python})"
    )
